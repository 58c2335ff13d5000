"""The weights a training starts from: random, torchvision's, or a file of somebody's pre-training."""

import hashlib
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from torch import nn
from torchvision.models.vision_transformer import interpolate_embeddings

from saliometer.engine import zoo
from saliometer.engine.architectures import ARCHS, Arch, built, in_head
from saliometer.engine.keys import BESIDE, COUNTED, bare, in_our_words, style_of
from saliometer.engine.weights import WRAPPERS, State, check_finite, read
from saliometer.images.table import first_names
from saliometer.registry import Spec
from saliometer.seeds import scoped

RANDOM, PRETRAINED = "random", "pretrained"
ORIGINS = ("dino", "moco_v3", "ibot", "spark")
POSITIONS = "encoder.pos_embedding"
MAY_LACK = ("classifier.0.",)  # ConvNeXt's norm before the head, which SparK has no use for


@dataclass(frozen=True, eq=False)
class First:
    """A network's first weights, as somebody else calls them; none for random ones."""

    spec: Spec
    origin: str  # 'random', 'supervised', one of ORIGINS or 'file'
    state: State
    source: str  # in words
    told: dict[str, Any]  # what a card says of them


def first_weights(spec: Spec, init: str) -> First:
    """What `--init` names; a Swin becomes one with the window that its file was trained with."""
    origin, file = origin_of(init)
    if file:
        state = bare(read(file, ("teacher", *WRAPPERS, "module")))
        origin = _guessed(state) if origin == "file" else origin
        told = {"init": origin, "init_file": file.name, "init_sha256": _digest(file)}
        return First(_with_window(spec, in_our_words(state)), origin, state, f"'{file}'", told)
    if origin == RANDOM:
        return First(spec, origin, {}, "", {"init": origin})
    found = _published(spec)
    return First(spec, origin, found.net.state_dict(), found.source, {"init": origin, "init_weights": found.source})


def started(first: First, classes: int, side: int, hidden: tuple[int, ...], seed: int) -> nn.Module:
    """The network with its first weights and a fresh head."""
    with scoped("images weights", str(first.spec), seed):
        net = built(first.spec, classes, side, hidden)
    if first.state:
        first.told["init_fresh"] = adopt(net, ARCHS[first.spec.name], first.state, side, first.source)
    return net


def origin_of(init: str) -> tuple[str, Path | None]:
    """`random`, `supervised`, or who made the file: one of ORIGINS as in `dino:FILE`, else 'file'."""
    if init in (RANDOM, PRETRAINED):
        return RANDOM if init == RANDOM else "supervised", None
    name, colon, rest = init.partition(":")
    origin, path = (name, Path(rest)) if colon and name in ORIGINS else ("file", Path(init))
    if not path.is_file():
        raise ValueError(
            f"--init {init}: there is no such file; wanted random, pretrained, a file of weights, or "
            f"{', '.join(f'{one}:FILE' for one in ORIGINS)}"
        )
    return origin, path


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _guessed(state: State) -> str:
    if any(key.startswith("momentum_encoder.") for key in state):
        return "moco_v3"
    style = style_of(state)
    if style and style.family == "convnext" and "head.weight" not in state:
        return "spark"
    return "file"


def _published(spec: Spec) -> zoo.Found:
    if not ARCHS[spec.name].large:
        wanted = ", ".join(name for name, one in ARCHS.items() if one.large)
        raise ValueError(f"there are no published weights of {spec.name}: --init random or a file, or one of {wanted}")
    return zoo.from_torchvision(Spec(spec.name), None, 0)


def _with_window(spec: Spec, state: State) -> Spec:
    """Swin with the window that a file was trained with: its tables have (2 w - 1)^2 rows."""
    rows = [len(value) for key, value in state.items() if key.endswith("relative_position_bias_table")]
    if spec.name != "swin_t" or not rows:
        return spec
    window = (math.isqrt(max(rows)) + 1) // 2
    given = dict(spec.params).get("window", window)
    if given != window:
        raise ValueError(f"'{spec}', but the file is of a Swin with windows of {window}: leave the parameter out")
    return replace(spec, params=() if window == 7 else (("window", window),))


def adopt(net: nn.Module, arch: Arch, state: State, side: int, source: str) -> list[str]:
    """Put a backbone's weights into a network, all or none; what stays fresh beside the head comes back."""
    style, wanted = style_of(state), net.state_dict()
    if style and not arch.name.startswith(style.family):
        raise ValueError(f"weights {source} are of a {style.family} (they have '{style.mark}'), not of {arch.name}")
    named = in_our_words(state)
    state = {key: value for key, value in named.items() if key in wanted and not in_head(arch, key)}
    if POSITIONS in state:
        state[POSITIONS] = _positions(state, side, source)
    rest = [key for key in wanted if not in_head(arch, key) and not COUNTED.search(key)]
    fresh = [key for key in rest if key not in state and key.startswith(MAY_LACK)]
    missing = [key for key in rest if key not in state and key not in fresh]
    strange = [key for key in named if key not in wanted and not BESIDE.match(key)]
    shaped = [key for key, value in state.items() if value.shape != wanted[key].shape]
    if missing or strange or shaped:
        shapes = [f"{key} {tuple(state[key].shape)}, wanted {tuple(wanted[key].shape)}" for key in shaped]
        told = (("missing", missing), ("unknown", strange), ("of another shape", shapes))
        parts = "; ".join(f"{len(keys)} {word}: {first_names(keys)}" for word, keys in told if keys)
        raise ValueError(
            f"weights {source} do not fit {arch.name}: {parts}. Only heads, projectors and decoders may be left out"
        )
    net.load_state_dict(state, strict=False)
    check_finite(net, source)
    return fresh


def _positions(state: State, side: int, source: str) -> Any:
    """A file's position embeddings for another side, by bicubic interpolation on their grid."""
    patch = state["conv_proj.weight"].shape[-1] if "conv_proj.weight" in state else 16
    try:
        found = interpolate_embeddings(side, patch, {POSITIONS: state[POSITIONS]})
    except ValueError as error:
        raise ValueError(f"weights {source}: position embeddings cannot be brought to side {side} ({error})") from error
    return found[POSITIONS]
