"""What the names in rows mean, in words for a newcomer."""

from typing import NamedTuple


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
    "fake_cam": "marks everything; never sees the model",
}

TARGETS = {"predicted": "the class the model predicts", "label": "the image's true class"}
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


def bucket(number: str) -> str:
    """What images of a bucket show."""
    return BUCKETS.get(number, f"bucket {number}")


def kind(method: str) -> str:
    """A method's name without parameters."""
    return method.partition("(")[0]


def listed(names: list[str], most: int = 4) -> list[str]:
    """At most so many names, and how many are left out."""
    return names if len(names) <= most else [*names[: most - 1], f"{len(names) - most + 1} more"]
