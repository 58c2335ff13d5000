"""Jinja2 as the report uses it: everything is escaped, a missing value is an error, scores are printed times 100."""

import math
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from saliometer.judgement import FLOORS, printed
from saliometer.progress import duration
from saliometer.report import words

DASH = "–"


def percent(value: float) -> str:
    """A fraction times 100 with one decimal; a dash for NaN."""
    return DASH if math.isnan(value) else f"{100 * value:.1f}"


def score(value: float, share: bool) -> str:
    """As the scoreboard prints it."""
    return DASH if math.isnan(value) else printed(value, share)


def clip(value: float) -> str:
    """A share that a bar can draw."""
    return "0" if math.isnan(value) else f"{min(max(value, 0.0), 1.0):.4f}"


def broken(name: str) -> Markup:
    """A name that may break after its underscores, brackets and commas."""
    return Markup("<wbr>").join(part for part in re.split(r"(?<=[_(,])", name) if part)


def span(seconds: float) -> str:
    return duration(seconds) if seconds >= 1 else "under 1 s"


@cache
def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"percent": percent, "bucket": words.bucket, "kind": words.kind, "score": score, "clip": clip}
    made.filters |= {"broken": broken, "span": span}
    made.globals |= {"words": words, "DASH": DASH, "FLOORS": FLOORS}
    return made


@cache
def _compiled(text: str) -> Template:
    return environment().from_string(text)


def fill(text: str, **values: Any) -> Markup:
    """A template's text with its values, as HTML that is not escaped again."""
    return Markup(_compiled(text).render(**values))
