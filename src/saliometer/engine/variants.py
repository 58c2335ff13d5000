"""The same methods under another condition: with an equal budget of passes, or with other seeds of their own."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from saliometer.engine.run import key
from saliometer.engine.score import Method
from saliometer.registry import Spec


def variants(methods: Sequence[Method], budget: int = 0, seeds: int = 1) -> list[Method]:
    """What is run beside the methods themselves; rows name the condition."""
    if budget < 0 or seeds < 1:
        raise ValueError(
            f"budget is {budget} and seeds {seeds}: wanted a budget of 1 or more passes, seeds of 1 or more"
        )
    found: list[Method] = []
    for method in methods:
        if budget and method.entry.facts.budget:
            found.append(_with_budget(method, budget))
        found += _reseeded(method, seeds)
    return found


def _with_budget(method: Method, budget: int) -> Method:
    """The parameter that sets its passes, so that they come as near to the budget as they can."""
    facts = method.entry.facts
    default = method.entry.parameters[facts.budget]
    assert isinstance(default, int)
    value = max(1, round(budget * default / facts.passes)) if default else budget  # 0: as many as it needs
    spec = _changed(method.spec, facts.budget, value)
    return _named(method, f"budget({budget})", spec=spec)


def _reseeded(method: Method, seeds: int) -> Iterator[Method]:
    for seed in range(1, seeds):
        if "seed" in method.entry.parameters:
            yield _named(method, f"seed({seed})", spec=_changed(method.spec, "seed", seed))
        elif method.entry.facts.random and not method.control:
            yield _named(method, f"seed({seed})", reseed=seed)


def _changed(spec: Spec, name: str, value: int) -> Spec:
    return Spec(spec.name, tuple(sorted((dict(spec.params) | {name: value}).items())))


def _named(method: Method, condition: str, spec: Spec | None = None, reseed: int = 0) -> Method:
    spec = spec or method.spec
    return replace(
        method, label=f"{method.label} {condition}", row=method.label, condition=condition, spec=spec, reseed=reseed,
        key=key(method.key, condition, str(spec)),
    )  # fmt: skip
