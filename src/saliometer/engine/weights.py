"""Weights from a file: read without running code, fitted to a network in words, and their fingerprint."""

import hashlib
import pickle
import re
import warnings
import zipfile
from argparse import Namespace
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

State = dict[str, Tensor]

WRAPPERS = ("state_dict", "model_state_dict", "model", "net")  # what training scripts keep weights under; no averages
PREFIXES = ("module.", "model.", "_orig_mod.")  # of DataParallel, Lightning and torch.compile
ADVICE = "save net.state_dict() with torch.save, or as safetensors"
NAMED = 3  # keys of each kind that an error names


def read(path: Path, inside: Sequence[str] = WRAPPERS) -> State:
    """The state dict in a safetensors or PyTorch file, maybe `inside` something; a pickle that would run code is
    refused.
    """
    if not path.is_file():
        raise ValueError(f"no weights file '{path}': wanted a safetensors file or a PyTorch state dict")
    with path.open("rb") as file:
        start = file.read(16)
    if not start:
        raise ValueError(f"weights '{path}' are an empty file: wanted a safetensors file or a PyTorch state dict")
    if path.suffix == ".safetensors" or (start[8:9] == b"{" and not start.startswith(b"PK")):
        return _safetensors(path)
    other = _another_format(path, start)
    if other:
        raise ValueError(f"weights '{path}' are {other}, wanted a state dict: {ADVICE}")
    return _unwrapped(_unpickled(path), path, inside)


def _safetensors(path: Path) -> State:
    try:
        return safetensors.torch.load_file(path)
    except (safetensors.SafetensorError, OSError, ValueError, KeyError) as error:
        raise ValueError(f"weights '{path}' are no readable safetensors file ({error}): copy it again") from error


def _another_format(path: Path, start: bytes) -> str:
    """What the file is, where it is something known that holds no state dict."""
    if path.suffix == ".onnx" or re.match(rb"\x08[\x01-\x1f][\x12\x1a\x3a\x42]", start):
        return "an ONNX model"
    if start.startswith(b"\x89HDF"):
        return "an HDF5 file, as Keras writes them"
    if not zipfile.is_zipfile(path):
        return ""
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
    inside = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inside or any(name.startswith("code/") for name in inside):
        return "a TorchScript program"
    if any(name.endswith(".npy") for name in names):
        return "NumPy arrays"
    return "" if "data.pkl" in inside else "a zip archive without a state dict"


def _unpickled(path: Path) -> Any:
    try:
        with warnings.catch_warnings(), _options_allowed():
            warnings.simplefilter("ignore")  # of other pickles than torch.save's, which are refused in words
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        culprit = re.search(r"GLOBAL ([\w.]+)", str(error))
        with path.open("rb") as file:
            pickled = file.read(1) in (b"\x80", b"P")
        if not pickled:
            raise ValueError(f"weights '{path}' are corrupt or of an unknown format: {ADVICE}") from error
        what = f"'{culprit[1]}'" if culprit else "more than tensors"
        raise ValueError(
            f"weights '{path}' are refused: to read them would load {what} and could run a stranger's code. "
            f"Wanted tensors alone: {ADVICE}"
        ) from error
    except Exception as error:  # a damaged file fails in many ways
        reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else 'no reason given'}"
        raise ValueError(f"weights '{path}' cannot be read ({reason}): copy the file again, or {ADVICE}") from error


@contextmanager
def _options_allowed() -> Iterator[None]:
    """Training scripts keep their options beside the weights, in a namespace of values that runs nothing."""
    before = torch.serialization.get_safe_globals()
    torch.serialization.add_safe_globals([Namespace])
    try:
        yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(before)


def _unwrapped(held: Any, path: Path, inside: Sequence[str]) -> State:
    """The state dict itself, out of what a training script put around it."""
    while isinstance(held, Mapping) and not any(isinstance(value, Tensor) for value in held.values()):
        inner = next((held[key] for key in inside if isinstance(held.get(key), Mapping)), None)
        if inner is None:
            break
        held = inner
    if not isinstance(held, Mapping):
        raise ValueError(f"weights '{path}' hold a {type(held).__name__}, wanted a state dict: {ADVICE}")
    state: State = OrderedDict((str(key), value) for key, value in held.items() if isinstance(value, Tensor))
    if not state:
        found = _some(map(str, held)) or "nothing"
        raise ValueError(f"weights '{path}' hold no tensors but {found}: wanted a state dict, bare or under {inside}")
    if hasattr(held, "_metadata"):
        state._metadata = held._metadata  # type: ignore[attr-defined]  # layers read their version in it
    return state


def fit(net: nn.Module, state: State, source: str) -> None:
    """Load `state`, less the prefixes of wrappers; every key and shape must fit."""
    wanted = net.state_dict()
    tensors = [key for key, value in wanted.items() if isinstance(value, Tensor)]
    state = _without_prefixes(state, set(wanted))
    missing = [key for key in tensors if key not in state and not key.endswith("num_batches_tracked")]
    unexpected = [key for key in state if key not in wanted]
    shaped = [key for key in tensors if key in state and wanted[key].shape != state[key].shape]
    if missing or unexpected or shaped:
        shapes = [f"{key} {tuple(state[key].shape)}, wanted {tuple(wanted[key].shape)}" for key in shaped]
        told = (("missing", missing), ("unexpected", unexpected), ("of another shape", shapes))
        parts = "; ".join(f"{len(keys)} {word}: {_some(keys)}" for word, keys in told if keys)
        raise ValueError(f"weights {source} do not fit the model: {parts}.{_advice(wanted, state, shaped)}")
    try:
        net.load_state_dict(state, strict=False)
    except Exception as error:  # quantised and other odd tensors
        raise ValueError(f"weights {source} do not load ({type(error).__name__}: {error}): {ADVICE}") from error


def _without_prefixes(state: State, wanted: set[str]) -> State:
    """A prefix goes if more keys fit without it."""
    for _ in range(len(PREFIXES)):
        for prefix in PREFIXES:
            shorter: State = OrderedDict((key.removeprefix(prefix), value) for key, value in state.items())
            fitting, fitting_now = len(wanted & shorter.keys()), len(wanted & state.keys())
            nested = not fitting_now and all(key.startswith(prefix) for key in state)
            if len(shorter) == len(state) and (fitting > fitting_now or nested):
                metadata = getattr(state, "_metadata", {})
                shorter._metadata = OrderedDict(  # type: ignore[attr-defined]
                    ((key + ".").removeprefix(prefix).removesuffix("."), value) for key, value in metadata.items()
                )
                state = shorter
    return state


def _advice(wanted: Mapping[str, Tensor], state: State, shaped: list[str]) -> str:
    """Where only the last layer differs, the file is for another number of classes."""
    heads = {(wanted[key].shape[0], state[key].shape[0]) for key in shaped if wanted[key].ndim and state[key].ndim}
    rests_equal = all(wanted[key].shape[1:] == state[key].shape[1:] for key in shaped)
    if len(heads) == 1 and rests_equal and len(shaped) <= 2 and shaped == list(wanted)[-len(shaped) :]:
        [(asked, held)] = heads
        return f" They are for {held} classes, the model for {asked}: pass --classes {held}"
    return " Give the model that these weights were trained in"


def _some(keys: Iterable[str]) -> str:
    named = list(keys)
    more = f" and {len(named) - NAMED} more" if len(named) > NAMED else ""
    return ", ".join(named[:NAMED]) + more


def check_finite(net: nn.Module, source: str) -> None:
    """Raise if a parameter or buffer is NaN or infinite."""
    tensors = {key: value for key, value in net.state_dict().items() if isinstance(value, Tensor)}
    bad = [key for key, value in tensors.items() if not bool(value.isfinite().all())]
    if bad:
        raise ValueError(
            f"weights {source} are NaN or infinite in {len(bad)} of {len(tensors)} tensors: {_some(bad)}. "
            "The training diverged or the file is damaged: take an earlier checkpoint"
        )


def fingerprint(net: nn.Module) -> str:
    """The SHA-256 of a network's state: names, types, shapes and bytes, in the order of names."""
    digest = hashlib.sha256()
    for key, value in sorted(net.state_dict().items()):
        if not isinstance(value, Tensor):
            digest.update(f"{key} {value!r}\n".encode())
            continue
        digest.update(f"{key} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()
