"""Other states of the same network: training checkpoints from files or state dicts, and a randomly initialised copy."""

import re
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import torch
from torch import Tensor, nn

from saliometer.cose.table import CHECKPOINT, RANDOM
from saliometer.engine.checked import LogProbabilities
from saliometer.engine.weights import check_finite, fingerprint, fit, read
from saliometer.registry import Spec
from saliometer.seeds import scoped

ENDINGS = (".pt", ".pth", ".ckpt", ".bin", ".safetensors")
Place = Path | str
Checkpoints = Place | Sequence[Place | Mapping[str, Tensor]]


@dataclass(frozen=True, eq=False)
class State:
    """A copy of the network with other weights."""

    label: str  # what rows call it
    net: nn.Module
    sha256: str


def states(net: nn.Module, checkpoints: Checkpoints | None, seed: int) -> tuple[list[State], list[str]]:
    """A random copy and every checkpoint that differs from the network itself; and what is to be said of them."""
    own, said = fingerprint(net), []
    found = [State(RANDOM, fresh := randomised(net, seed), fingerprint(fresh))]
    if found[0].sha256 == own:
        raise ValueError(
            "the model has no weights to draw anew, so COSE has no other models: it is for trained networks"
        )
    given = [] if checkpoints is None else _listed(checkpoints)
    for label, state in given:
        source = f"of checkpoint '{label}'"
        copy = deepcopy(net)
        fit(copy.net if isinstance(copy, LogProbabilities) else copy, _read(state), source)
        check_finite(copy, source)
        mark = fingerprint(copy)
        if mark == own:
            said.append(f"checkpoint '{label}' is the model itself and was left out")
        else:
            found.append(State(str(Spec(CHECKPOINT, (("name", label),))), copy, mark))
    if not given:
        said.append(
            "COSE had no training checkpoints: sensitivity rests on changed images and one randomly initialised copy; "
            "give some with --checkpoints"
        )
    return found, said


def _read(state: Path | Mapping[str, Tensor]) -> dict[str, Tensor]:
    return read(state) if isinstance(state, Path) else dict(state)


def _listed(checkpoints: Checkpoints) -> list[tuple[str, Path | Mapping[str, Tensor]]]:
    """Names and what they stand for, epoch_9 before epoch_10."""
    several = [checkpoints] if isinstance(checkpoints, str | Path) else list(checkpoints)
    found: list[tuple[str, Path | Mapping[str, Tensor]]] = []
    for number, one in enumerate(several):
        if isinstance(one, Mapping):
            found.append((str(number), one))
        elif isinstance(one, str | Path):
            found += [(path.name, path) for path in _files(str(one))]
        else:
            raise ValueError(f"checkpoints hold {type(one).__name__}: wanted files, folders, patterns or state dicts")
    names = [name for name, _ in found]
    if len(set(names)) < len(names):  # files of the same name in several folders
        return [(str(held) if isinstance(held, Path) else name, held) for name, held in found]
    return found


def _files(place: str) -> list[Path]:
    path = Path(place)
    if path.is_dir():
        found = [file for file in path.iterdir() if file.suffix in ENDINGS and file.is_file()]
    elif path.is_file():
        found = [path]
    else:
        found = [Path(file) for file in glob(place, recursive=True) if Path(file).is_file()]  # noqa: PTH207 (absolute, too)
    if not found:
        raise ValueError(
            f"no checkpoints at '{place}': wanted a file, a pattern like 'runs/*/epoch_*.pt', or a folder with files "
            f"that end in {', '.join(ENDINGS)}"
        )
    return sorted(
        found, key=lambda file: [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", str(file))]
    )


def randomised(net: nn.Module, seed: int) -> nn.Module:
    """A copy whose layers are initialised again, head and running statistics included."""
    copy = deepcopy(net).cpu()
    with scoped("random model", seed), torch.no_grad():
        for module in copy.modules():
            reset = getattr(module, "reset_parameters", None) or getattr(module, "_reset_parameters", None)
            if callable(reset):
                reset()
                continue
            for values in module.parameters(recurse=False):  # tokens, positions, scales of one's own
                if values.is_floating_point():
                    values.normal_(0, 0.02)
    device = next((values.device for values in net.parameters()), torch.device("cpu"))
    return copy.to(device)
