"""Tables in Markdown."""

from collections.abc import Sequence

import numpy as np

from saliometer.summary import Estimate


def grid(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> str:
    """A table whose first `words` columns are words, the others numbers."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * words + "---:|" * (len(head) - words)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def shown(one: Estimate, digits: int = 1) -> str:
    """A value and half of its interval; a dash where there is none."""
    if np.isnan(one.value):
        return "-"
    half = max(one.high - one.value, one.value - one.low)
    return f"{one.value:.{digits}f}" + ("" if np.isnan(half) else f" ±{half:.{digits}f}")
