"""CSV files with a header: rows, columns by one of several names, and labels."""

import csv
from collections.abc import Sequence
from pathlib import Path

Row = dict[str, str]


def table(path: Path) -> list[Row]:
    """Rows with trimmed words, or an error if there are none."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            rows = [{str(k).strip(): (v or "").strip() for k, v in row.items() if k} for row in csv.DictReader(file)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"'{path}' cannot be read as CSV in UTF-8: {error}") from None
    if not rows:
        raise ValueError(f"'{path}' holds no rows: wanted a header with the column file, then one row for each picture")
    return rows


def column(rows: Sequence[Row], names: Sequence[str]) -> str | None:
    """Which of these names a table has, if any."""
    return next((name for name in names if name in rows[0]), None)


def labels_of(rows: Sequence[Row], file: str, label: str, path: Path) -> tuple[dict[str, int], tuple[str, ...]]:
    """File -> class, and what classes are called if words came: their label is the place in the sorted list."""
    odd = [f"{row[file]} ({row[label] or 'empty'})" for row in rows if not row[label].isdecimal()]
    names = sorted({row[label] for row in rows}) if len(odd) == len(rows) else []
    if odd and not all(map(_is_word, names or [""])):
        raise ValueError(
            f"'{path}', column {label}: {len(odd)} are no whole number of 0 or more: {first_names(odd)}. Wanted the "
            "place of each picture's class among the model's outputs, 0 for the first, or the class's name everywhere"
        )
    found: dict[str, int] = {}
    places = {name: place for place, name in enumerate(names)}
    for row in rows:
        value = places[row[label]] if names else int(row[label])
        if found.setdefault(row[file], value) != value:
            first = names[found[row[file]]] if names else found[row[file]]
            raise ValueError(f"'{path}' gives '{row[file]}' two labels, {first} and {row[label]}")
    return found, tuple(names)


def _is_word(value: str) -> bool:
    try:
        float(value)
    except ValueError:
        return bool(value)
    return False


def first_names(names: Sequence[str], most: int = 3) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
