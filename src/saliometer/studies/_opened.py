"""The study that a folder holds, whichever paper's it is."""

import json
from collections.abc import Callable
from pathlib import Path

from saliometer.registry import one_of
from saliometer.studies import _cose_study, _smerf_study, yona, zhang

Study = _cose_study.Study | _smerf_study.Study | zhang.Study | yona.Study
OPENED: dict[str, Callable[[Path], Study]] = {
    "cose": _cose_study.opened, "smerf": _smerf_study.opened, "zhang": zhang.opened, "yona": yona.opened,
}  # fmt: skip


def opened(folder: Path) -> Study:
    """As far as it is there."""
    path = folder / "study.json"
    try:
        name = str(json.loads(path.read_text(encoding="utf-8"))["study"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ValueError(
            f"no readable study in '{folder}' ({error!r}): run `saliometer reproduce` in this folder"
        ) from error
    return OPENED[one_of("study", name, OPENED)](folder)
