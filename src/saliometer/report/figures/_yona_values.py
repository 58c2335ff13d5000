"""Numbers of the causal study in panels: methods down the side, a panel for each task or measure."""

from collections.abc import Callable, Iterable, Sequence
from math import ceil, floor, isfinite
from typing import TYPE_CHECKING

from saliometer.report.figures import Chart, _zhang
from saliometer.studies._claims import MissingError
from saliometer.studies._zhang_tables import Value
from saliometer.summary import Estimate

if TYPE_CHECKING:
    from saliometer.studies._yona_evidence import Evidence

EDGES = (17.0, 38.0)
Found = tuple[str, str, Callable[[str], Estimate]]  # panel, lane, a method's number


def panels(
    e: "Evidence", found: Iterable[Found], lanes: dict[str, _zhang.Lane], label: str, **how: object
) -> Chart | None:
    """None where the run holds none of it."""
    values = []
    for panel, lane, number in found:
        for method in (*e.methods, *e.controls):
            try:
                one = number(method)
            except MissingError:
                continue
            values.append(Value("", lane, method, panel, one.value, one.low, one.high, None))
    if not values:
        return None
    how = {"bounds": _bounds(values)} | how
    return _zhang.chart(values, e.methods, lanes, label=label, edges=EDGES, **how)  # type: ignore[arg-type]


def _bounds(values: Sequence[Value]) -> tuple[float, float]:
    """In tenths, the same for all panels; 0 is among them."""
    ends = [0.0, *(end for one in values for end in (one.ours, one.low, one.high) if end is not None and isfinite(end))]
    return floor(10 * min(ends)) / 10, ceil(10 * max(ends)) / 10


def point(value: float) -> Estimate:
    return Estimate(value, value, value)
