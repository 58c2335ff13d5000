"""SMERF's numbers made up: a table of rows from a function, in the buckets that the protocol names."""

from collections.abc import Callable, Sequence

import pyarrow as pa

from saliometer import results
from saliometer.engine.presets import SMERF

PRIMARY = {
    "simple-fr": range(7, 13), "simple-nr": (2, 3, 5, 6, 8, 9, 11, 12), "complex-fr": (10, 11, 12),
    "complex-cr1": (2, 3, 4, 5, 6, 8, 9, 10, 11, 12), "complex-cr2": (2, 3, 5, 6, 7, 8, 9, 10, 11, 12),
    "complex-cr3": (5, 6, 7, 8, 9, 11, 12), "complex-cr4": (4, 5, 6, 8, 9, 11, 12),
}  # fmt: skip
SECONDARY = {
    "simple-fr": (2, 3, 4, 5, 6, 8, 9, 10, 11, 12), "simple-nr": (5, 6, 8, 9, 11, 12),
    "complex-fr": (2, 3, 5, 6, 8, 9, 11, 12), "complex-cr1": (5, 6, 8, 9, 11, 12), "complex-cr2": (5, 6, 8, 9, 11, 12),
    "complex-cr3": (2, 3, 8, 9, 11, 12), "complex-cr4": (2, 3, 5, 6, 11, 12),
}  # fmt: skip
BOTH = {s: tuple(bucket for bucket in some if bucket in SECONDARY[s]) for s, some in PRIMARY.items()}
SHOWN = {"pafl": PRIMARY, "piou": PRIMARY, "pmafl": PRIMARY, "safl": SECONDARY, "smafl": SECONDARY, "siou": BOTH}
Value = Callable[[str, str, str, int], float]  # (metric, the paper's name, setting, bucket) -> the one image's


def table(
    value: Value, definitions: Sequence[str] = ("clean",), specs: dict[str, str] = SMERF,
    metrics: Sequence[str] = tuple(SHOWN),
) -> pa.Table:  # fmt: skip
    """One image in every bucket."""
    rows = [
        {
            "task": "textbox", "setting": setting, "method": spec, "metric": metric, "definition": definition,
            "sample": f"test-{bucket}", "bucket": str(bucket), "value": value(metric, name, setting, bucket),
        }
        for definition in definitions
        for metric in metrics
        for name, spec in specs.items()
        for setting, buckets in SHOWN[metric].items()
        for bucket in buckets
    ]  # fmt: skip
    return told(rows)


def swept(value: Callable[[str, int], float], ks: Sequence[int], definition: str = "clean") -> pa.Table:
    """PIOU of K pixels on three images of complex-cr1, bucket 9; `value` of the paper's name and K."""
    return told(
        {
            "task": "textbox", "setting": "complex-cr1", "method": spec, "metric": "piou", "definition": definition,
            "condition": f"k({k})", "sample": f"test-{image}", "bucket": "9", "value": value(name, k),
        }
        for name, spec in SMERF.items()
        for k in ks
        for image in range(3)
    )  # fmt: skip


def told(rows) -> pa.Table:
    """Rows as a run holds them, '' in columns that are not named."""
    made = list(rows)
    columns = {name: [row.get(name, "") for row in made] for name in results.COLUMNS}
    arrays = [
        pa.array(columns[name]) if name == "value" else pa.array(columns[name]).dictionary_encode()
        for name in results.COLUMNS
    ]
    return pa.table(arrays, schema=results.SCHEMA)
