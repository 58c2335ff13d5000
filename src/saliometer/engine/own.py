"""A user's own method: any callable (model, images, targets) -> maps, from a file, a module or Python."""

import copy
import hashlib
import importlib
import importlib.util
import inspect
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

import torch
from torch import Tensor

from saliometer.engine.device import exact
from saliometer.registry import Entry, Facts, Spec, unknown
from saliometer.seeds import fork
from saliometer.types import Batch, Model

OwnMethod = Callable[..., Tensor]


def is_own(name: str) -> bool:
    return ":" in name


def load(place: str, kind: str = "method", wanted: str = "(model, images, targets) -> maps") -> OwnMethod:
    """The callable at `file.py:name` or `package.module:name`."""
    where, _, name = place.rpartition(":")
    if not where or not name:
        raise ValueError(f"{kind} '{place}': wanted file.py:name or package.module:name")
    try:
        module = from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(f"{kind} '{place}': '{where}' does not import ({reason})") from error
    function = getattr(module, name, None)
    if function is None:
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise LookupError(f"{kind} '{place}': in '{where}' " + unknown("callable", name, names))
    if not callable(function):
        raise ValueError(f"{kind} '{place}' is {type(function).__name__}, wanted a callable {wanted}")
    return function  # type: ignore[no-any-return]


def from_file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"no file '{path}'")
    spec = importlib.util.spec_from_file_location(f"saliometer_own_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    neighbours = str(path.resolve().parent)
    if neighbours not in sys.path:
        sys.path.append(neighbours)  # it may import them, also when it is called
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def entry(function: OwnMethod, name: str) -> Entry:
    """The callable as a registry entry; its keyword parameters with defaults may be set by a Spec."""
    accepted = _parameters(function)
    takes_seed = "seed" in accepted

    def own(model: Model, batch: Batch, **params: Any) -> Tensor:
        if takes_seed:
            params["seed"] = fork("own method", name, batch.seeds.tolist()) % 2**31  # what numpy can take, too
        net = copy.deepcopy(model.net)  # whatever it does to the network, no other method sees it
        with exact(), torch.enable_grad():
            return function(net, batch.images.clone(), batch.targets.clone(), **params)

    own.__doc__ = inspect.getdoc(function) or "a method of your own"
    settable = [p for p in accepted.values() if p.default is not p.empty and p.name != "seed"]
    own.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [p.replace(kind=p.KEYWORD_ONLY) for p in settable if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    )
    return Entry(name, own, Facts(), own=True)


def _parameters(function: OwnMethod) -> dict[str, inspect.Parameter]:
    try:
        return dict(inspect.signature(function).parameters)
    except (TypeError, ValueError):  # some compiled callables have none
        return {}


PLAIN = (bool, int, float, str, bytes, type(None))
NAMED = (ModuleType, FunctionType, BuiltinFunctionType, type)  # code, which the file's content or a version vouches for


def fingerprint(function: OwnMethod, place: str = "") -> str:
    """Of the file a method comes from or, for a callable from Python, of its code and the values it can see.

    Fresh every time where that cannot be told, so that nothing stale is used.
    """
    if place.endswith(".py"):
        return hashlib.sha256(Path(place).read_bytes()).hexdigest()
    try:
        if not inspect.isfunction(function):
            raise TypeError  # an object may hold anything
        code = Path(inspect.getsourcefile(function) or "").read_bytes()
    except (OSError, TypeError):
        return uuid.uuid4().hex
    seen = inspect.getclosurevars(function)
    state: list[Any] = [
        seen.nonlocals,
        seen.globals,
        function.__kwdefaults__ or {},
        dict(enumerate(function.__defaults__ or ())),
    ]
    values = {f"{place} {name}": value for place, part in enumerate(state) for name, value in part.items()}
    if not all(isinstance(value, PLAIN + NAMED) for value in values.values()):
        return uuid.uuid4().hex
    plain = {name: value for name, value in values.items() if isinstance(value, PLAIN)}
    return hashlib.sha256(code + repr((function.__qualname__, sorted(plain.items()))).encode()).hexdigest()


def label(spec: Spec) -> str:
    """What rows call it: the callable's name with its parameters, without the path."""
    return str(Spec(spec.name.rpartition(":")[2], spec.params))
