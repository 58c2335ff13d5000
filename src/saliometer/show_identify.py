"""What `saliometer identify` shows: how often each method's maps tell the seven models apart."""

import math
from pathlib import Path
from typing import Any

from saliometer.engine.identify import CHANCE, Identified
from saliometer.show import percent, screen, show_end
from saliometer.summary import Estimate, Uncertain

NOTE = (
    "A map goes to the setting whose mean shares on the objects and the background are nearest, learnt from other "
    "images. Chance is {chance}; the oracle is what knowing the objects that decide gives, since settings in which the "
    "same objects decide look alike to it. A method above the oracle tells the models apart by something else: a "
    "fingerprint of the network, not its reasoning. ± is half of the 95 % interval over images."
)

MODELS = (
    "Means over {} trainings, the seven models of each seed told apart from each other; models ± is half of the 95 % "
    "interval over trainings."
)


def show(found: Identified, page: Path | None = None) -> None:
    from rich.markup import escape
    from rich.table import Table

    console, table = screen(), Table(title="Settings told right x100, by bucket", title_justify="left", box=None)
    cells = found.table()
    buckets = [name for name in next(iter(cells.values()), {}) if name != "mean"]
    table.add_column("method", overflow="fold")
    several = found.over_models()
    for name in ("mean ± 95 %", *["models ±"] * bool(several), *buckets):
        table.add_column(name, justify="right")
    controls = {name for name, facts in found.run.manifest["methods"].items() if facts["control"]}
    for method, values in cells.items():
        mean = values["mean"]
        half = max(mean.high - mean.value, mean.value - mean.low)
        told = [percent(several[method].models.high - mean.value)] if several else []
        told += [percent(values[bucket].value) for bucket in buckets]
        style = "dim" if method in controls else None
        table.add_row(escape(method), f"{percent(mean.value)} ± {percent(half)}", *told, style=style)
    console.print(table)
    console.print(NOTE.format(chance=percent(CHANCE)), highlight=False, soft_wrap=True)
    if several:
        count = max(one.count for one in several.values())
        console.print(MODELS.format(count), highlight=False, soft_wrap=True)
    show_end(found, page, console)


def as_dict(found: Identified, page: Path | None = None) -> dict[str, Any]:
    """The same for machines: one entry for each method and bucket, and for the mean over buckets."""

    def plain(value: float) -> float | None:
        return None if math.isnan(value) else float(value)

    def told(one: Uncertain) -> dict[str, Any]:
        ends = {name: plain(value) for name, value in vars(one.models).items()}
        return {"models": ends, "spread": plain(one.spread), "count": one.count}

    def entry(method: str, bucket: str, estimate: Estimate) -> dict[str, Any]:
        numbers = {name: plain(value) for name, value in vars(estimate).items()}
        return {"method": method, "bucket": bucket, **numbers}

    table = [entry(method, bucket, value) for method, row in found.table().items() for bucket, value in row.items()]
    controls = [name for name, facts in found.run.manifest["methods"].items() if facts["control"]]
    return {
        "run": str(found.run.folder), "report": str(page) if page else None, "chance": CHANCE, "controls": controls,
        "table": table, "over_models": {method: told(one) for method, one in found.over_models().items()},
        "failed": found.failed, "left_out": found.left_out, "warnings": found.problems(),
    }  # fmt: skip
