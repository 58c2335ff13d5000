"""The methods that are asked for: by name, by spec string, from a file or module, or as a callable."""

from collections.abc import Sequence
from dataclasses import replace

from saliometer import registry
from saliometer.engine import own
from saliometer.engine.run import key
from saliometer.engine.score import Method
from saliometer.registry import Spec

Asked = str | own.OwnMethod
QUICK = 60  # methods that take no more passes an image stand beside a new one unasked


def resolve(asked: Sequence[Asked | tuple[str, own.OwnMethod]]) -> list[Method]:
    """The methods asked for, or the quick ones if none or only the user's own are; controls always come along.

    The word 'all' stands for every method there is.
    """
    explaining = {name: entry.facts for name, entry in registry.methods.items() if not entry.facts.control}
    chosen = [one_method(one) for one in asked if one != "all"]
    if "all" in asked:
        named = {method.spec.name for method in chosen}
        chosen += [replace(one_method(name), unasked=True) for name in explaining if name not in named]
    if all(method.entry.own for method in chosen):
        chosen += [one_method(name) for name, facts in explaining.items() if facts.usual and facts.passes <= QUICK]
    named = {method.spec.name for method in chosen}
    controls = {name: entry.facts for name, entry in registry.methods.items() if entry.facts.control}
    chosen += [one_method(name) for name, facts in controls.items() if facts.usual and name not in named]
    labels = [method.label for method in chosen]
    twice = {label for label in labels if labels.count(label) > 1}
    if twice:
        raise ValueError(f"two methods are called {', '.join(sorted(twice))}: rename one, or ask for it once")
    return chosen


def one_method(asked: Asked | tuple[str, own.OwnMethod]) -> Method:
    """A method by name, spec string, place in a file or module, as a callable, or a callable with its name."""
    if isinstance(asked, tuple):
        return _own(asked[1], Spec(asked[0]))
    if not isinstance(asked, str):
        name = getattr(asked, "__name__", type(asked).__name__)
        return _own(asked, Spec(name))
    spec = Spec.parse(asked)
    if own.is_own(spec.name):
        return _own(own.load(spec.name), spec)
    if spec.name.endswith(".py"):
        raise ValueError(f"method '{spec.name}' is a file: wanted file.py:name, a callable in it")
    entry = registry.methods[spec.name]
    spec.check("method", entry)
    return Method(str(spec), entry, spec, key(str(spec)))


def free(label: str) -> str:
    """The label, unless it is empty or a method of ours has it."""
    if not isinstance(label, str) or not label.strip():
        raise ValueError(f"{label!r} is no name of a method: wanted words by which tables can call it")
    if label in registry.methods:
        raise ValueError(f"'{label}' is a method of saliometer: rename yours, so that tables tell them apart")
    return label


def _own(function: own.OwnMethod, spec: Spec) -> Method:
    label = free(own.label(spec))
    entry = own.entry(function, label)
    spec.check("method", entry)
    return Method(label, entry, spec, key(label, own.fingerprint(function, spec.name.rpartition(":")[0])))
