"""Blocks of an audit's rows: scores of images, comparisons of pairs, and what a metric took."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from torch import Tensor

from saliometer import results
from saliometer.engine.battery import Cost
from saliometer.engine.compared import Rows
from saliometer.engine.run import Unit
from saliometer.types import Samples


def block(
    constant: Mapping[str, str], metric: str, definition: str, samples: Samples, values: Tensor, notes: Sequence[str]
) -> Any:
    named = {**constant, "metric": metric, "definition": definition}
    return results.block(named, samples.ids, samples.buckets, np.asarray(values.cpu(), dtype=np.float64), notes)


def pair_blocks(constant: Mapping[str, str], samples: Samples, rows: Sequence[Rows]) -> list[Any]:
    """One block for each definition; the metric says what the prediction did, the condition what was changed."""
    found, before = [], constant["condition"]
    for definition in dict.fromkeys(one.definition for one in rows):
        some = [one for one in rows if one.definition == definition]
        values = np.array([one.values for one in some], np.float64).flatten()
        metrics, conditions, notes = (
            [text for one in some for text in getattr(one, name)] for name in ("metrics", "conditions", "notes")
        )
        if before:
            conditions = [" ".join(filter(None, (before, condition))) for condition in conditions]
        named = {**constant, "metric": "", "definition": definition}
        ids, buckets = (list(texts) * len(some) for texts in (samples.ids, samples.buckets))
        made = results.block(named, ids, buckets, values, notes)
        found.append(results.with_texts(results.with_texts(made, "metric", metrics), "condition", conditions))
    return found


def cost_block(constant: Mapping[str, str], unit: Unit, what: str, cost: Cost) -> Any:
    """Seconds, passes and passes saved as rows: the definition says what for, the sample which images."""
    span, blocks = f"{unit.start}-{unit.stop}", []
    for word, value in (("seconds", cost.seconds), ("passes", cost.passes), ("passes_shared", cost.shared)):
        named = {**constant, "metric": f"cost.{word}", "definition": what}
        blocks.append(results.block(named, [span], [""], np.array([float(value)]), [""]))
    return pa.concat_tables(blocks)
