"""A user's own method: any callable (model, images, targets) -> maps, from a file, a module or Python."""

import hashlib
import importlib
import importlib.util
import inspect
import sys
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from saliometer.registry import Entry, Facts, Spec, unknown
from saliometer.seeds import fork
from saliometer.types import Batch, Model

OwnMethod = Callable[..., Tensor]


def is_own(name: str) -> bool:
    return ":" in name


def load(place: str) -> OwnMethod:
    """The callable at `file.py:name` or `package.module:name`."""
    where, _, name = place.rpartition(":")
    try:
        module = _from_file(Path(where)) if where.endswith(".py") else importlib.import_module(where)
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}"
        raise ValueError(
            f"method '{place}': '{where}' does not import ({reason}). Run `python {where}` to see"
        ) from error
    function = getattr(module, name, None)
    if function is None:
        names = [key for key, value in vars(module).items() if callable(value) and not key.startswith("_")]
        raise LookupError(f"method '{place}': in '{where}' " + unknown("callable", name, names))
    if not callable(function):
        raise ValueError(
            f"method '{place}' is {type(function).__name__}, wanted a callable (model, images, targets) -> maps"
        )
    return function  # type: ignore[no-any-return]


def _from_file(path: Path) -> Any:
    if not path.is_file():
        raise FileNotFoundError(f"no file '{path}'")
    spec = importlib.util.spec_from_file_location(f"saliometer_own_{path.stem}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.resolve().parent))  # so that it can import its neighbours
    try:
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
    finally:
        sys.path.pop(0)
    return module


def entry(function: OwnMethod, name: str) -> Entry:
    """The callable as a registry entry; its keyword parameters with defaults may be set by a Spec."""
    accepted = _parameters(function)
    takes_seed = "seed" in accepted

    def own(model: Model, batch: Batch, **params: Any) -> Tensor:
        if takes_seed:
            params["seed"] = fork("own method", name, batch.seeds.tolist()) % 2**31  # what numpy can take, too
        versions = [value._version for value in model.net.state_dict().values()]
        try:
            return function(model.net, batch.images.clone(), batch.targets.clone(), **params)
        finally:
            _left_alone(model.net, versions, name)

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


def _left_alone(net: nn.Module, versions: list[int], name: str) -> None:
    """Frozen and in eval mode again; weights that were written to cannot be trusted any more."""
    net.eval()
    net.requires_grad_(False)
    for value in net.parameters():
        value.grad = None
    if [value._version for value in net.state_dict().values()] != versions:
        raise ValueError(f"method '{name}' changed the model's weights in place: work on copy.deepcopy(model)")


def fingerprint(function: OwnMethod) -> str:
    """Of the code and what it closes over; fresh every time where that cannot be told, so nothing stale is used."""
    try:
        source = inspect.getsourcefile(function)
        code = Path(source).read_bytes() if source else inspect.getsource(function).encode()
    except (OSError, TypeError):
        return uuid.uuid4().hex
    state: list[object] = [getattr(function, "__qualname__", "")]
    for value in (getattr(function, "__defaults__", None) or ()) + tuple(
        cell.cell_contents for cell in getattr(function, "__closure__", None) or ()
    ):
        if not isinstance(value, bool | int | float | str | None):
            return uuid.uuid4().hex
        state.append(value)
    if not inspect.isfunction(function):  # an object or bound method may hold anything
        return uuid.uuid4().hex
    return hashlib.sha256(code + repr(state).encode()).hexdigest()


def label(spec: Spec) -> str:
    """What rows call it: the callable's name with its parameters, without the path."""
    return str(Spec(spec.name.rpartition(":")[2], spec.params))
