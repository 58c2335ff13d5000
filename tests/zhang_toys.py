"""Rows whose means are those that Zhang, Torres and Hermanns print, and changed ones."""

from collections.abc import Callable
from functools import cache

import numpy as np
import pyarrow as pa

from saliometer import results
from saliometer.engine.presets import ZHANG
from saliometer.studies._zhang_evidence import FAKE, METRICS, Evidence
from saliometer.studies._zhang_tables import paper

IMAGES = 4
PIXELS = 224 * 224
CONDITIONS = {
    "mixup": "mixup(weight=0.5)",
    "resize": "resize(side=32)",
    "rotation": "rotation(degrees=45)",
    "crop": "crop(area=0.8)",
}
TARGETS = {"ground_truth": "label", "predicted": "predicted", "least_probable": "least"}
Cell = tuple[str, str, str, str]  # metric as the paper calls it, method, target, condition
Change = Callable[[str, str, str, str], float | None]  # a cell -> another mean, None to leave it


@cache
def papers() -> dict[Cell, float]:
    """The means as printed; Fake-CAM's swapped cells under Resize put right."""
    found: dict[Cell, float] = {}
    for (table, condition, method, metric), value in paper().items():
        if table == 4:
            found[metric, method, "label", CONDITIONS[condition]] = value
        else:
            found[metric, method, TARGETS[condition], ""] = value
    for metric, value in (("AD_bar", 90.5), ("AG", 2.0)):
        found[metric, FAKE, "label", "resize(side=32)"] = value
    return found


def row_values(metric: str, mean: float) -> np.ndarray:
    """Images whose mean is what the paper prints, some above and some below."""
    _, factor, offset = METRICS[metric]
    return (mean - offset) / factor + 1e-6 * np.array([1, -1, 2, -2])


def block(metric: str, method: str, values, target: str = "label", condition: str = "", stage: str = "abs_max_minmax"):
    constant = dict.fromkeys(results.COLUMNS, "") | {
        "task": "images", "method": ZHANG[method], "metric": metric, "definition": stage, "target": target,
        "condition": condition,
    }  # fmt: skip
    ids = [f"image-{i}" for i in range(len(values))]
    return results.block(constant, ids, [""] * len(ids), np.array(values, dtype=np.float64), [""] * len(ids))


def evidence(blocks, labelled: bool = True) -> Evidence:
    return Evidence(pa.concat_tables(blocks).unify_dictionaries(), PIXELS, labelled)


@cache
def printed() -> pa.Table:
    """Rows whose means are the paper's; slow, so made once."""
    blocks = [
        block(METRICS[metric][0], method, row_values(metric, mean), target, condition)
        for (metric, method, target, condition), mean in papers().items()
    ]
    return pa.concat_tables(blocks).unify_dictionaries().combine_chunks()


def rows_of(change: Change = lambda *cell: None, keep: Callable[[Cell], bool] = lambda cell: True) -> list[pa.Table]:
    """The paper's rows, with other means where asked, and only some of them."""
    means = [(cell, value if (new := change(*cell)) is None else new) for cell, value in papers().items()]
    values = np.concatenate([row_values(cell[0], mean) for cell, mean in means])
    table = printed()
    place = table.column_names.index("value")
    table = table.set_column(place, table.schema.field(place), pa.array(values))
    return [table.filter(pa.array(np.repeat([keep(cell) for cell in papers()], IMAGES)))]
