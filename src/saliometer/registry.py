"""Names to functions: @task, @model, @method, @metric; Spec, a name with parameters; "did you mean"."""

import ast
import difflib
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from keyword import iskeyword
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")
Value = bool | int | float | str

NAMED = re.compile(r"\s*([^()]+?)\s*(?:\((.*)\))?\s*", re.DOTALL)  # name(parameters)
OWN = re.compile(r"\s*(.+\.py:\w+)(?:\((.*)\))?\s*", re.DOTALL)  # path.py:name(parameters); a path may hold brackets
FAMILIES = {"task": "tasks", "model": "models", "method": "methods", "metric": "metrics"}


@dataclass(frozen=True)
class Facts:
    """What everyone must know of an entry; each family uses its own few."""

    quick: Mapping[str, Value] = field(default_factory=dict)  # parameters that let contract tests run it in a blink
    random: bool = False  # its result depends on the seed
    control: bool = False  # a method that explains nothing, there for comparison: in every table unasked
    hides: bool = False  # a method that hides parts of an image and looks at the score
    rules: Mapping[str, Any] | None = None  # of a method that walks the network: those families have a rule
    needs_references: bool = False  # a method that compares with other images of the data
    passes: int = 1  # what a method or metric costs for one image by default, in passes through the network, roughly
    usual: bool = True  # comes along unasked, if it is quick or a control
    budget: str = ""  # the parameter that sets how many passes a method takes
    needs_truth: bool = False  # a method that is handed the scored region, a metric that reads objects and roles
    rendering: str = "heat"  # how SMERF's authors turn this method's map into a picture (maps.py)
    mask: bool = False  # a method whose map is a mask already, not to be scaled
    multiplier: str = ""  # what a method's values are a multiple of: the 'input', or its difference to the 'baseline'
    unit: str = "map"  # of a method's values: 'gradient' per input value, 'contribution' to the score, or neither
    better: str = ""  # 'higher' or 'lower', for a metric
    formula: str = ""  # a metric in one line of mathematics, in plain Unicode; docs/metrics.md has the symbols
    turned: tuple[str, ...] = ()  # settings under which the other direction is better: 'order=morf'
    reads: str = ""  # what a metric of the battery reads of an attribution (maps.STAGES)
    parts: Mapping[str, str] = field(default_factory=dict)  # beside its value -> 'higher', 'lower' or '' if neither is
    flat: bool = False  # a metric of scaled maps that has a value for constant ones: ones, or zeros where they are 0
    reexplains: bool = False  # a metric that calls the method again
    pairs: bool = False  # a metric of pairs of maps, of changed images or models; its value is made of all pairs
    randomises: bool = False  # one of pairs with maps of the model after layers of it were drawn anew
    stage: Callable[[Mapping[str, Any]], str] | None = None  # its parameters -> how a metric of pairs reads maps
    descriptive: bool = False  # a metric that says what an image or map is like, not how good it is
    degenerate: tuple[str, str, str] = ("", "", "")  # what it gives for a constant, an all-zero, a one-pixel map
    bounds: tuple[float, float] = (0.0, 1.0)  # of a metric
    beyond: tuple[str, ...] = ()  # settings under which values leave them: 'output=logit'
    needs: tuple[int, ...] = ()  # the roles that an image must show to be scored by a metric; else NaN, with a note
    dead: float = float("nan")  # what a metric gives a map that is NaN or empty
    definitions: tuple[str, ...] = ()  # the named definitions a metric has, the default first
    regions: tuple[str, ...] = ()  # the regions a metric can score
    settings: tuple[str, ...] = ()  # of a task
    classes: int | Mapping[str, int] = 0  # of a task; by setting, where they differ


@dataclass(frozen=True)
class Entry:
    name: str
    function: Callable[..., Any]
    facts: Facts
    own: bool = False  # the user's, not ours

    @property
    def summary(self) -> str:
        return (inspect.getdoc(self.function) or "").split("\n")[0]

    def classes(self, setting: str) -> int:
        """How many classes a task has in a setting."""
        held = self.facts.classes
        return held if isinstance(held, int) else held[setting]

    @cached_property
    def parameters(self) -> dict[str, Value]:
        """The keyword-only parameters a Spec may set, with their defaults."""
        given = inspect.signature(self.function).parameters.values()
        return {p.name: p.default for p in given if p.kind is p.KEYWORD_ONLY and p.default is not p.empty}


class Family(Mapping[str, Entry]):
    """One family's entries by name; its files are imported when it is first read."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, Entry] = {}
        self._read = False

    def _load(self) -> dict[str, Entry]:
        if not self._read:
            self._read = True
            package = importlib.import_module(f"saliometer.{FAMILIES[self.kind]}")
            for module in pkgutil.iter_modules(package.__path__):
                if not module.name.startswith("_"):
                    importlib.import_module(f"{package.__name__}.{module.name}")
        return self._entries

    def add(self, function: Callable[..., Any], facts: Facts) -> None:
        name = function.__name__
        if name in self._entries:
            raise ValueError(f"there are two {self.kind}s named '{name}': give one another name")
        if not function.__doc__:
            raise ValueError(f"{self.kind} '{name}' has no docstring: its first line is what `list` prints")
        if self.kind == "metric" and facts.better not in ("higher", "lower"):
            raise ValueError(f"metric '{name}' says better={facts.better!r}: wanted 'higher' or 'lower'")
        for part, better in facts.parts.items():
            if better not in ("higher", "lower", ""):
                raise ValueError(f"{self.kind} '{name}' says {part}={better!r}: wanted 'higher', 'lower' or ''")
        self._entries[name] = Entry(name, function, facts)

    def __getitem__(self, name: str) -> Entry:
        entries = self._load()
        if name not in entries:
            raise LookupError(unknown(self.kind, name, entries))
        return entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._load()

    def __iter__(self) -> Any:
        return iter(sorted(self._load()))

    def __len__(self) -> int:
        return len(self._load())


families = {kind: Family(kind) for kind in FAMILIES}
tasks, models, methods, metrics = families.values()


def _register(kind: str, **facts: Any) -> Callable[[Callable[P, R]], Callable[P, R]]:
    def keep(function: Callable[P, R]) -> Callable[P, R]:
        families[kind].add(function, Facts(**facts))
        return function

    return keep


task, model, method, metric = (partial(_register, kind) for kind in FAMILIES)


def unknown(kind: str, name: str, known: Iterable[str]) -> str:
    """The sentence for an unknown name: what came, what is nearest, what there is."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    return f"there is no {kind} '{name}'.{hint} There are: {', '.join(names) or 'none'}."


def one_of(kind: str, name: str, known: Iterable[str]) -> str:
    names = list(known)
    if name not in names:
        raise LookupError(unknown(kind, str(name), names))
    return name


@dataclass(frozen=True)
class Spec:
    """A name with parameters, `smooth_grad(draws=50)`: what is asked for, what a row prints, what a key hashes."""

    name: str
    params: tuple[tuple[str, Value], ...] = ()

    @classmethod
    @lru_cache(maxsize=1024)
    def parse(cls, text: str) -> "Spec":
        match = OWN.fullmatch(text) or NAMED.fullmatch(text)
        try:
            if match is None:
                raise SyntaxError
            call = ast.parse(f"f({match[2] or ''})", mode="eval").body
            if not isinstance(call, ast.Call) or call.args or not isinstance(call.func, ast.Name):
                raise SyntaxError
            if None in (keys := [k.arg for k in call.keywords]) or len(set(keys)) < len(keys):
                raise SyntaxError
            params = tuple(sorted((str(k.arg), _literal(k.value)) for k in call.keywords))
        except (SyntaxError, ValueError):
            raise ValueError(
                f"cannot read '{text}': wanted a name, or a name with parameters like smooth_grad(draws=50,noise=0.1); "
                "quote text that is not one word, grad_cam(layer='features.3')"
            ) from None
        return cls(match[1], params)

    def __str__(self) -> str:
        if not self.params:
            return self.name
        return f"{self.name}({','.join(f'{key}={_printed(value)}' for key, value in self.params)})"

    def check(self, kind: str, entry: Entry) -> None:
        """Raise unless every parameter exists and has a value of its default's type."""
        known = entry.parameters
        for key, value in self.params:
            if key not in known:
                raise LookupError(f"{kind} '{entry.name}': " + unknown("parameter", key, known))
            default = known[key]
            fits = type(value) is type(default) or (isinstance(default, float) and type(value) is int)
            if default is not None and not fits:
                wanted, came = type(default).__name__, type(value).__name__
                hint = f": write {key}='{value}'" if isinstance(default, str) else ""
                raise ValueError(f"{kind} '{entry.name}': {key}={_printed(value)} is {came}, wanted {wanted}{hint}")


def _literal(node: ast.expr) -> Value:
    if isinstance(node, ast.Name):
        return {"true": True, "false": False}.get(node.id.lower(), node.id)
    value = ast.literal_eval(node)
    if not isinstance(value, bool | int | float | str):
        raise ValueError
    return value


def _printed(value: Value) -> str:
    """As `_literal` reads it back: a string that is no plain word stands in quotes."""
    if isinstance(value, str) and (not value.isidentifier() or iskeyword(value) or value.lower() in ("true", "false")):
        return repr(value)
    return str(value).lower() if isinstance(value, bool) else str(value)
