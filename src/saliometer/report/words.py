"""What the names in rows mean, in words for a newcomer."""

from collections.abc import Sequence
from typing import NamedTuple

from saliometer import registry
from saliometer.engine.run import Run
from saliometer.report.book import Term


class Setting(NamedTuple):
    """One model's known reasoning: its question, its rule, and how many buckets it defines."""

    question: str
    rule: str
    buckets: int


SETTINGS = {
    "simple-fr": Setting("Is Box1 there?", "class 1 if Box1 is there, else 0", 12),
    "simple-nr": Setting("Is it A or B?", "A is class 0, B is class 1; the boxes play no part", 8),
    "complex-fr": Setting("Are both boxes there?", "class 1 if Box1 and Box2 are both there, else 0", 12),
    "complex-cr1": Setting(
        "If Box2: Box1? Else: A or B?", "with Box2, class 1 if Box1 is there; without, the letter decides", 10
    ),
    "complex-cr2": Setting(
        "If Box1: Box2? Else: A or B?", "with Box1, class 1 if Box2 is there; without, the letter decides", 10
    ),
    "complex-cr3": Setting(
        "If Box2: A or B? Else: Box1?", "with Box2, the letter decides; without, class 1 if Box1 is there", 10
    ),
    "complex-cr4": Setting(
        "If Box1: A or B? Else: Box2?", "with Box1, the letter decides; without, class 1 if Box2 is there", 10
    ),
}

BUCKETS = {
    "1": "nothing", "2": "A", "3": "B", "4": "Box2", "5": "A + Box2", "6": "B + Box2",
    "7": "Box1", "8": "A + Box1", "9": "B + Box1", "10": "Box1 + Box2", "11": "A + Box1 + Box2",
    "12": "B + Box1 + Box2",
}  # fmt: skip

CONTROLS = {
    "oracle": "the truth itself as a map: the ceiling",
    "random": "noise",
    "edge": "the image's edges; never sees the model",
    "fake_cam": "marks everything but one corner",
    "centre": "a bump in the middle of the image; never sees the model",
    "all_ones": "the whole image as its own map",
    "input": "the image itself; never sees the model",
}

TARGETS = {
    "predicted": "the class the model predicts", "label": "the true class", "least": "the least probable class",
}  # fmt: skip
REGIONS = {"box": "its bounding box", "ink": "the pixels it is drawn with"}

DEFINITIONS = {
    "clean": "The map's channels are summed with their signs, then the absolute value is taken: attribution against "
    "the class counts as much as attribution for it. Nothing is blurred.",
    "clean_positive": "The map's channels are summed with their signs and only the positive part is kept: attribution "
    "against the class does not count. Nothing is blurred.",
    "authors": "What the code of the SMERF paper does, bug for bug, to compare with its figures: the map is drawn as a "
    "picture, read back as darkness, and blurred over 7 × 7 pixels. The blur spills even a perfect map out of its "
    "objects, so the ceiling lies below 100.",
}


SOURCE = "Kim, Plumb and Talwalkar, “Sanity Simulations for Saliency Methods”, ICML 2022."


def of_another_task(run: Run) -> bool:
    """Whether it is not TextBox's, and keeps words of its own."""
    return "words" in run.manifest


def bucket(number: str, run: Run) -> str:
    """What images of a bucket show; a run of another task than TextBox keeps its own words."""
    known: dict[str, str] = run.manifest["words"]["buckets"] if of_another_task(run) else BUCKETS
    return known.get(number, f"bucket {number}")


def rule(setting: str, run: Run) -> str:
    """By what a setting's images are labelled."""
    if of_another_task(run):
        return str(run.manifest["words"]["settings"].get(setting, "")).rstrip(".")
    return SETTINGS[setting].rule if setting in SETTINGS else ""


def question(setting: str, run: Run) -> str:
    """What a model answers; its rule, where that is not TextBox's."""
    return SETTINGS[setting].question if setting in SETTINGS and not of_another_task(run) else rule(setting, run)


def plain(text: str) -> str:
    """Without the marks of code."""
    return text.replace("`", "")


def kind(method: str) -> str:
    """A method's name without parameters."""
    return method.partition("(")[0]


def listed(names: list[str], most: int = 4) -> list[str]:
    """At most so many names, and how many are left out."""
    return names if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} more"]


def terms(run: Run, definitions: Sequence[str]) -> list[Term]:
    """What a benchmark's page speaks of."""
    formula = {name: entry.facts.formula for name, entry in registry.metrics.items()}
    region, told = run.manifest["request"]["region"], run.manifest.get("words")
    shown = "a letter (A, B or none), the large Box1 or not, and the small Box2 or not: twelve buckets"
    if told:
        shown = f"some of its objects, {', '.join(told['objects'])}: {len(told['buckets'])} buckets"
    return [
        Term(
            "Buckets",
            f"An image shows {shown}. "
            "In each setting one rule decides the class, so for each image some objects are primary (they decide) and "
            f"others secondary (they play no part). An object counts as {REGIONS[region]}. Write a for what a "
            "definition reads from the map at a pixel; it is never negative.",
        ),
        Term(
            "PAFL",
            "Primary attribution focus level: the share of the attribution on objects that decide. Higher is better.",
            formula["pafl"],
        ),
        Term(
            "SAFL",
            "Secondary attribution focus level: the share on objects that play no part. Lower is better.",
            formula["safl"],
        ),
        Term(
            "PMAFL, SMAFL",
            "The same share for each pixel of the objects, so that a large object has no advantage over a small one. "
            "SMAFL divides SAFL by the pixels of the secondary objects.",
            formula["pmafl"],
        ),
        Term(
            "PIOU, SIOU",
            "Overlap of the objects and the highest pixels of the map. SIOU asks the same T of the secondary objects.",
            formula["piou"],
        ),
        Term("Success", "Most of the attribution lies on what decides.", formula["success"]),
        Term("Failure", "What plays no part gets more than what decides.", formula["failure"]),
        Term(
            "Mean, interval",
            "Images are averaged within a bucket, then buckets with equal weight. Intervals come from resamples of the "
            "images within each bucket (10,000 for PAFL and SAFL, 2,000 for the rest), the same for all methods, so "
            "that differences are paired. They speak of these models: another training of a model is not part of them.",
        ),
        *(Term(name, text, here=name in definitions) for name, text in DEFINITIONS.items()),
        *(
            Term(f"Region {name}", f"An object counts as {text}.", here=name == region)
            for name, text in REGIONS.items()
        ),
        *(Term(f"Control {name}", f"{text[0].upper()}{text[1:]}.") for name, text in CONTROLS.items()),
        Term("Source", SOURCE, here=not told),
    ]
