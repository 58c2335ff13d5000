"""A network that is to be judged, tried on a few images: is it a classifier, and are its outputs logits?"""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from saliometer.registry import one_of
from saliometer.seeds import normal

OUTPUTS = ("auto", "logit", "probability")
NEAR = 1e-3  # how far a row of probabilities may be from a sum of 1
REPEATS = 1e-3  # how far two passes of the same images may be apart, relative to the largest value
WANTED = "wanted a tensor (images, classes) of logits"


class LogProbabilities(nn.Module):
    """A network that gives probabilities, as one that gives logits: the softmax of log p is p.

    One probability becomes its log-odds, whose sigmoid is p.
    """

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        chances: Tensor = self.net(images)
        if chances.shape[1] == 1:
            return chances.logit(torch.finfo(chances.dtype).eps)
        return chances.clamp(min=torch.finfo(chances.dtype).tiny).log()


def as_logits(net: nn.Module, image: Tensor) -> nn.Module:
    """A network that gives probabilities, altered to give logits: its last softmax taken out if it is a layer.

    Methods that walk a network have no rule for a logarithm, which is taken where that layer is not found.
    """
    given, last = _last_squash(net, image)
    if last is None:
        return LogProbabilities(net).eval()
    places = [(parent, name) for parent in net.modules() for name, child in parent.named_children() if child is last]
    for parent, name in places:
        setattr(parent, name, nn.Identity())
    with torch.no_grad():
        bare = net(image)
    again = bare.sigmoid() if bare.shape[1] == 1 else bare.softmax(1)
    if torch.allclose(again, given, atol=1e-5):
        return net
    for parent, name in places:
        setattr(parent, name, last)
    return LogProbabilities(net).eval()


def _last_squash(net: nn.Module, image: Tensor) -> tuple[Tensor, nn.Module | None]:
    """What the network gives, and the softmax or sigmoid layer that gave it."""
    calls: list[tuple[nn.Module, Any]] = []
    layers = [module for module in net.modules() if isinstance(module, nn.Softmax | nn.Sigmoid) and module is not net]
    hooks = [layer.register_forward_hook(lambda layer, _, given: calls.append((layer, given))) for layer in layers]
    try:
        with torch.no_grad():
            given: Tensor = net(image)
    finally:
        for hook in hooks:
            hook.remove()
    return given, next((layer for layer, out in calls if out is given), None)


def checked_model(net: nn.Module, image: Tensor, output: str = "auto") -> int:
    """How many classes a network tells apart, 2 if it has one logit; it is put in eval mode and frozen.

    `image` is (N, C, H, W) as the network takes it; `output` says what the network gives, where that is known.
    """
    one_of("output", output, OUTPUTS)
    net.eval()
    for values in net.parameters():  # one by one, for TorchScript takes no other way; copies of it are no leaves
        (values if values.is_leaf else values.detach_()).requires_grad_(False)
    given = _tried(net, probes(image))
    _check_repeats(given, _tried(net, probes(image)))
    likely = looks_like_probability(given)
    if output == "auto" and likely:
        last = "sigmoid" if given.shape[1] == 1 else "softmax"
        raise ValueError(
            f"the model gives probabilities; wanted logits: remove its {last}, or pass --output probability, "
            "which takes the logarithm (--output logit if they are logits all the same)"
        )
    if output == "auto" and looks_like_sigmoids(given):
        raise ValueError(
            "the model's outputs never leave 0 to 1, like sigmoids of many classes; wanted logits: remove the "
            "sigmoid and pass --multilabel (--output logit if they are logits all the same)"
        )
    if output == "probability" and not likely:
        raise ValueError(
            f"--output probability, but the model gives values from {float(given.min()):.3g} to "
            f"{float(given.max()):.3g} with sums up to {float(given.sum(1).max()):.3g}: wanted values in [0, 1] that "
            "sum to 1 for each image. Leave --output away"
        )
    return max(given.shape[1], 2)


def probes(image: Tensor) -> Tensor:
    """Images unlike each other: two of the given, one mirrored and dimmed, and noise weak and strong."""
    one = image[:1]
    noise = normal(torch.arange(3, device=image.device), "probe", one.expand(3, *one.shape[1:]))
    strength = torch.tensor([1, 5, 50], device=image.device, dtype=image.dtype).view(-1, 1, 1, 1)
    return torch.cat((image[:2], 0.5 * one.flip(-1), noise * strength))


def stirred(net: nn.Module, image: Tensor) -> bool:
    """Whether anything in its input changes a network's output."""
    with torch.no_grad():
        given = net(probes(image))
    return not bool((given == given[:1]).all())


def looks_like_probability(given: Tensor) -> bool:
    """Whether rows (N, classes) are all in [0, 1] with sum 1; of a single column, whether it never leaves [0, 1]."""
    inside = bool(((given >= 0) & (given <= 1)).all())
    if given.shape[1] == 1:
        return inside
    return inside and bool(((given.sum(1) - 1).abs() <= NEAR).all())


def looks_like_sigmoids(given: Tensor) -> bool:
    """Whether all values lie in [0, 1] and come near both ends, as strong noise drives sigmoids there."""
    low, high = float(given.min()), float(given.max())
    return 0 <= low < 0.05 and 0.95 < high <= 1


def _tried(net: nn.Module, images: Tensor) -> Tensor:
    """(N, outputs), with everything that can be wrong with it said in words."""
    try:
        with torch.no_grad():
            given = net(images)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        shape, fits = tuple(images.shape), isinstance(error, RuntimeError | ValueError)  # as PyTorch says of shapes
        hint = "check --size and the channels of --mean" if fits else "mend its forward"
        raise ValueError(f"the model does not take images of shape {shape} ({reason}): {hint}") from error
    if not isinstance(given, Tensor):
        raise ValueError(f"the model gives {shown(given)}; {WANTED}: wrap it in a module that returns those alone")
    shape = tuple(given.shape)
    if given.ndim != 2 or len(given) != len(images) or not given.shape[1]:
        raise ValueError(f"the model gives shape {shape} for {len(images)} images; {WANTED}: {_guess(given, images)}")
    if not given.is_floating_point():
        raise ValueError(f"the model gives {given.dtype}; {WANTED}: return scores, not the class they choose")
    bad = int((~given[:1].isfinite()).sum())
    if bad:
        raise ValueError(f"the model gives {bad} values of {given.shape[1]} that are NaN or infinite; {WANTED}")
    if given.shape[1] == 1 and bool((given == 1).all() | (given == 0).all()):
        raise ValueError(
            "the model has fewer than two classes: a softmax over one output is always 1, its logarithm 0; remove it"
        )
    return given[given.isfinite().all(1)].double()  # strong noise may overflow, which is no fault


def _check_repeats(once: Tensor, again: Tensor) -> None:
    """Raise where chance has a part in what a network gives; rounding may differ from pass to pass."""
    size = float(once.abs().max()) if once.numel() else 0.0
    apart = float((once - again).abs().max()) if once.shape == again.shape and size else 0.0
    if once.shape != again.shape or apart > REPEATS * size:
        raise ValueError(
            f"the model gives other values for the same images twice (up to {apart:.3g} apart, of at most {size:.3g}), "
            "though it is in eval mode: wanted a model without chance, for scores would follow it. Is there a dropout "
            "in its forward that does not ask self.training?"
        )


def shown(given: Any) -> str:
    """The type of an output and the shapes in it."""
    if isinstance(given, Tensor):
        return str(tuple(given.shape))
    name = type(given).__name__
    if isinstance(given, Mapping):
        return f"{name}({', '.join(f'{key}: {shown(value)}' for key, value in given.items())})"
    if hasattr(given, "_fields"):
        return f"{name}({', '.join(f'{key}: {shown(getattr(given, key))}' for key in given._fields)})"
    if isinstance(given, tuple | list):
        return f"{name}({', '.join(map(shown, given))})"
    logits = getattr(given, "logits", None)
    return f"{name}(logits: {shown(logits)})" if isinstance(logits, Tensor) else name


def _guess(given: Tensor, images: Tensor) -> str:
    if given.ndim == 4:
        return "it looks like features or a segmentation, so pool it to one score for each class"
    if given.ndim == 1 and len(given) == len(images):
        return "if it is one logit for each image, keep its last dimension, (images, 1)"
    return "one row for each image, one column for each class"


def oddities(net: nn.Module) -> list[str]:
    """What makes a network's output doubtful though it can be judged."""
    norms = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)
    batchy = [name for name, module in net.named_modules() if isinstance(module, norms) and module.running_mean is None]
    if not batchy:
        return []
    return [
        f"{len(batchy)} batch norms have no running statistics ({', '.join(batchy[:3])}): "
        "an image's scores depend on the others in its batch, and so do its maps"
    ]
