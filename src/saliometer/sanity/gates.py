"""What must hold before a map is read: the networks know their task, and from the pixels that are said to decide it."""

from collections.abc import Sequence
from dataclasses import dataclass

NEAR_CHANCE = 0.03
UNMOVED = 0.05
MEMORISED = 0.95  # training accuracy above which labels in disorder are known by heart


@dataclass(frozen=True)
class Gate:
    """One condition: what was measured, and what was asked for."""

    name: str
    value: float
    bar: str
    passed: bool
    note: str = ""  # what a reader should know of it

    def __str__(self) -> str:
        return f"{self.name} is {self.value:.3f}, wanted {self.bar}"


def accuracy_gate(accuracies: Sequence[float], least: float, most: float = 1.0) -> Gate:
    """The lowest of all seeds, or where there is an upper bar too the one that is farthest out."""
    worst = min(accuracies, key=lambda value: min(value - least, most - value))
    bar = f"{least:g} or more" if most >= 1 else f"{least:g} to {most:g}"
    return Gate("accuracy of the worst seed", worst, bar, least <= worst <= most)


def chance_gate(accuracies: Sequence[float], classes: int) -> Gate:
    """The mean accuracy of random models: one alone may be off by luck."""
    mean, chance = sum(accuracies) / len(accuracies), 1 / classes
    bar = f"{chance:.3f} to within {NEAR_CHANCE:g}"
    return Gate("mean accuracy of random models", mean, bar, abs(mean - chance) <= NEAR_CHANCE)


def memory_gate(accuracies: Sequence[float]) -> Gate:
    """Of networks that were trained on labels in disorder: the lowest accuracy on those very images (sanity.md 1.2)."""
    worst = min(accuracies)
    return Gate("training accuracy of the worst seed", worst, f"more than {MEMORISED:g}", worst > MEMORISED)


def erasure_gates(
    whole: Sequence[float], without_a: Sequence[float], without_n: Sequence[float], classes: int
) -> list[Gate]:
    """Of each seed the accuracy on whole images, without what decides, and without what distracts (where there is any).

    Without A it must be at chance or below, to within 3 points; without N it must move by less than 5.
    """
    chance = 1 / classes
    worst = max(without_a)
    found = [
        Gate("accuracy with A erased", worst, f"{chance + NEAR_CHANCE:.3f} or less", worst <= chance + NEAR_CHANCE)
    ]
    if without_n:
        moved = max((abs(a - b) for a, b in zip(whole, without_n, strict=True)))
        found.append(Gate("change of accuracy with N erased", moved, f"below {UNMOVED:g}", moved < UNMOVED))
    return found


def missed(gates: Sequence[Gate]) -> str:
    """Why nothing may be concluded; '' where every gate was passed."""
    return "; ".join(str(gate) for gate in gates if not gate.passed)
