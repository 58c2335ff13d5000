"""A study's folder: whether what is asked for can go on there."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def begin(folder: Path, asked: Mapping[str, Any]) -> None:
    """Refuse a folder that holds another study, or this one asked otherwise."""
    path = folder / "study.json"
    if not path.is_file():
        return
    try:
        told = dict(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise ValueError(f"no readable study in '{folder}' ({error}): choose another folder with --out") from error
    for name, value in asked.items():
        if told.get(name) != value:
            raise ValueError(
                f"'{folder}' holds a study with {name} '{told.get(name)}', you asked for '{value}': choose another "
                "folder with --out"
            )
