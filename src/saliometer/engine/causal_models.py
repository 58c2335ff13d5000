"""The causal checks' networks: random, with published weights, trained on a labelling, or on labels in disorder."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor, nn

from saliometer import registry
from saliometer.engine import zoo
from saliometer.engine.causal import IMAGENET, TESTED, Causal, gates, right, scaled
from saliometer.engine.device import memory_format
from saliometer.engine.layers import cam_layer, middle_layer
from saliometer.engine.shipped import CAM_LAYERS, MIDDLE_LAYERS
from saliometer.engine.train import digest_of, rounded, save, so_far
from saliometer.models._together import fit_together
from saliometer.models.fit import Recipe, fit
from saliometer.registry import Spec
from saliometer.sanity.gates import MEMORISED, memory_gate, missed
from saliometer.sanity.randomise import estimate
from saliometer.seeds import fork, forks, scoped, uniform
from saliometer.tasks.pairs import enlarged
from saliometer.types import Model, Watch

REFERENCES = 512  # training images that batch norms of random networks are set by
FAINTEST = 0.3  # of a digit's ink for networks that name shapes: others learn that a circle without its digit is a 0
TOGETHER = 4096  # training images drawn at a time
KEEP_EVERY = 20.0  # seconds of training that a kill may cost, beside the epoch it falls in


@dataclass(frozen=True)
class Training:
    """How the networks of a labelling are made. Adebayo et al.: Adam at 1e-4, batches of 50, 50 epochs."""

    arch: str = "digit_cnn"
    images: int = 60_000  # in every epoch; for `digit_cnn` others in each, unless labels are in disorder
    recipe: Recipe = field(default_factory=lambda: Recipe(epochs=20, batch=128, rate=1e-3))
    jitter: int = 1  # pixels that digits are moved by
    faintest: float = 1.0  # share of its ink that a digit beside a shape keeps at the least, drawn for each
    shuffled: bool = False  # labels in disorder, until they are known by heart
    until: float = 0.0  # accuracy on test images that ends training early; 0 for none
    weights: Path | None = None  # of a published network, where they are not found by its name
    tested: int = field(default=0, repr=False)  # images that a card's gates are measured on; 0 for TESTED


FULL = Training()
SMOKE = Training("digit_cnn(width=0.25)", 5_000, Recipe(epochs=4, batch=32, rate=3e-3))
FINE = Training("efficientnet_lite0", 20_000, Recipe(epochs=3, batch=128, rate=3e-4))  # for pairs of photographs


@dataclass(frozen=True, eq=False)
class Fitted:
    """A trained network and its card."""

    model: Model
    card: dict[str, Any]


def untrained(causal: Causal, draws: Sequence[int], training: Training = FULL, device: str = "cpu") -> list[Model]:
    """Random networks of the same shape and head, one for each draw."""
    nets = [_fresh(causal, training, draw, device, "random") for draw in draws]
    return [_wrapped(net, causal, training, draw, "random") for net, draw in zip(nets, draws, strict=True)]


def pretrained(causal: Causal, draws: Sequence[int], training: Training = FINE, device: str = "cpu") -> list[Model]:
    """Published weights under an untrained head, one for each draw."""
    if Spec.parse(training.arch).name not in IMAGENET:
        raise ValueError(f"there are no published weights of {training.arch}: wanted {' or '.join(IMAGENET)}")
    nets = [_fresh(causal, training, draw, device, "pretrained") for draw in draws]
    return [_wrapped(net, causal, training, draw, "pretrained") for net, draw in zip(nets, draws, strict=True)]


def trained(
    causal: Causal, seeds: Sequence[int], folder: Path, training: Training = FULL, *, device: str = "cpu",
    watch: Watch = lambda share, text: None,
) -> list[Fitted]:  # fmt: skip
    """Networks trained on a labelling, one for each seed; what `folder` holds is not trained again."""
    todo = lacking(causal, seeds, folder, training)
    together = at_a_time(training, device, len(todo))
    parts = [todo[start : start + together] for start in range(0, len(todo), together)]
    for place, part in enumerate(parts):

        def told(share: float, text: str, place: int = place, part: list[int] = part) -> None:
            which = ", ".join(map(str, part))
            watch((place + share) / len(parts), f"{causal.task} {causal.setting}, seed {which}, {text}")

        _train(causal, part, folder, training, device, told)
    return [_loaded(causal, seed, folder, training, device) for seed in seeds]


def lacking(causal: Causal, seeds: Sequence[int], folder: Path, training: Training) -> list[int]:
    """The seeds whose networks a folder does not hold."""
    return [seed for seed in seeds if not _kept(causal, seed, folder, training)[0]]


def at_a_time(training: Training, device: str, count: int) -> int:
    """How many of so many networks are trained as one: all small ones on a GPU, which a single one would not fill."""
    several = torch.device(device).type != "cpu" and Spec.parse(training.arch).name == "digit_cnn"
    return max(1, count) if several else 1


def stem(causal: Causal, seed: int, training: Training) -> str:
    """As files are named: `shape_digits-shape.digit_cnn-width=0-25.shuffled.seed3`."""
    arch = "".join(letter if letter.isalnum() or letter in "_=" else "-" for letter in training.arch).strip("-")
    parts = [f"{causal.task}-{causal.setting}", arch, "shuffled" if training.shuffled else "", f"seed{seed}"]
    return ".".join(filter(None, parts))


def _settled(causal: Causal, seed: int, training: Training) -> dict[str, Any]:
    """What a card says of the request."""
    return causal.told() | vars(training.recipe) | {
        "model": training.arch, "images": training.images, "jitter": training.jitter, "faintest": training.faintest,
        "shuffled": training.shuffled, "until": training.until, "seed": seed,
    }  # fmt: skip


def _kept(causal: Causal, seed: int, folder: Path, training: Training) -> tuple[dict[str, Any], Path]:
    path = folder / f"{stem(causal, seed, training)}.json"
    return so_far(path, _settled(causal, seed, training))[0], path.with_suffix(".safetensors")


def _training_set(causal: Causal, training: Training, device: str, epoch: int = 0) -> tuple[Tensor, Tensor]:
    """(n, C, H, W) pixels, tiles not yet enlarged, and (n,) labels."""
    images, labels, small = [], [], replace(causal, side=0)
    more: dict[str, float] = {"jitter": training.jitter} if causal.task != "pairs" else {}
    more |= {"faintest": training.faintest} if causal.task == "shape_digits" else {}
    first = epoch * training.images
    for start in range(first, first + training.images, TOGETHER):
        samples = small.samples("train", min(TOGETHER, first + training.images - start), start, device, **more)
        images.append(samples.batch.images)
        labels.append(samples.labels)
    return torch.cat(images), torch.cat(labels)


def _train(causal: Causal, seeds: list[int], folder: Path, training: Training, device: str, watch: Watch) -> None:
    nets = [_fresh(causal, training, seed, device, "trained") for seed in seeds]
    streams = [fork("causal", causal.task, causal.setting, seed) for seed in seeds]
    settled = [_settled(causal, seed, training) for seed in seeds]
    checkpoint = folder / f"{stem(causal, seeds[0], training)}.{digest_of(repr(settled))[:8]}.checkpoint"
    folder.mkdir(parents=True, exist_ok=True)

    @lru_cache(maxsize=1)
    def drawn(epoch: int) -> tuple[Tensor, Tensor]:
        images, labels = _training_set(causal, training, device, epoch)
        return images, torch.stack([_disorder(labels, seed) if training.shuffled else labels for seed in seeds])

    if Spec.parse(training.arch).name == "digit_cnn":
        enough = MEMORISED if training.shuffled else 2.0
        reached = fit_together(
            nets, (lambda epoch: drawn(0)) if training.shuffled else drawn, training.images, training.recipe, streams,
            enough=enough, checkpoint=checkpoint, every=KEEP_EVERY, watch=watch,
        )  # fmt: skip
    else:
        ((net,), (stream,), (seed,)), (images, labels) = (nets, streams, seeds), drawn(0)
        reached = [_alone(net, causal, training, images, labels[0], stream, seed, checkpoint, watch)]
    for net, seed, told, share in zip(nets, seeds, settled, reached, strict=True):
        model = _wrapped(rounded(net), causal, training, seed, "trained")
        count = training.tested or TESTED
        found = gates(causal, [model], [], training.arch, count=count, converged=not training.until, device=device)
        card = told | {
            "accuracy": found[0].value, "train_accuracy": share, "trained_on": device, "tried": 1,
            "accepted": not missed([memory_gate([share])] if training.shuffled else found),
            "acceptance": {gate.name: {"got": gate.value, "wanted": gate.bar} for gate in found},
            "labelling": "", "sampler": "disjoint",
        }  # fmt: skip
        save(net, folder / f"{stem(causal, seed, training)}.safetensors", card)
    checkpoint.unlink(missing_ok=True)


def _alone(
    net: nn.Module, causal: Causal, training: Training, images: Tensor, labels: Tensor, stream: int, seed: int,
    checkpoint: Path, watch: Watch,
) -> float:  # fmt: skip
    """For networks with batch norm or published weights; its accuracy on what it was trained on."""
    model, device = _wrapped(net, causal, training, seed, "trained", frozen=False), str(images.device)
    layout = memory_format(images.device, net)
    net.to(memory_format=layout)

    def known() -> float:
        parts = zip(images.split(TOGETHER), labels.split(TOGETHER), strict=True)
        return _share(torch.cat([right(model, enlarged(some, causal.side), own) for some, own in parts]))

    def enough() -> bool:
        net.eval()
        if training.shuffled:
            return known() > MEMORISED
        return bool(training.until) and _accuracy(causal, model, device) >= training.until

    def shown(chosen: Tensor) -> Tensor:
        return scaled(enlarged(images[chosen], causal.side), model).contiguous(memory_format=layout)

    fit(net, shown, labels, training.recipe, stream, enough=enough, checkpoint=checkpoint, watch=watch)
    return known()


def _disorder(labels: Tensor, seed: int) -> Tensor:
    """The labels in an order drawn once."""
    lots = uniform(forks(fork("disorder", seed), torch.arange(len(labels), device=labels.device)), "lot", 1)[:, 0]
    return labels[lots.argsort(stable=True)]


def _accuracy(causal: Causal, model: Model, device: str) -> float:
    samples = causal.held_out().samples("test", TESTED, device=device)
    return _share(right(model, samples.batch.images, samples.labels))


def _share(right: Tensor) -> float:
    return right.double().mean().item()


def _loaded(causal: Causal, seed: int, folder: Path, training: Training, device: str) -> Fitted:
    card, path = _kept(causal, seed, folder, training)
    return load(causal, path, card, device, training.weights)


def load(
    causal: Causal, path: Path, card: dict[str, Any], device: str = "cpu", published: Path | None = None
) -> Fitted:  # fmt: skip
    """The network of a card, its weights checked and widened to float32; `published` are those it started from."""
    data = path.read_bytes() if path.is_file() else b""
    if hashlib.sha256(data).hexdigest() != card["sha256"]:
        raise ValueError(
            f"weights '{path}' are missing or not those of their card: delete both files, and they are trained anew"
        )
    training = Training(card["model"], weights=published)
    net = _fresh(causal, training, card["seed"], "cpu", "loaded")
    net.load_state_dict(safetensors.torch.load(data))  # copied into float32
    state = "shuffled" if card["shuffled"] else "trained"
    return Fitted(_wrapped(net.to(device), causal, training, card["seed"], state), card)


# Networks


def _fresh(causal: Causal, training: Training, seed: int, device: str, state: str) -> nn.Module:
    """A network before training, each `state` with draws of its own; one of ImageNet is published but for its head.

    Batch norms of a random one are set by training images: theirs would be 0 and 1.
    """
    spec, published = Spec.parse(training.arch), state in ("trained", "pretrained")
    with scoped("causal weights", state, causal.task, causal.setting, str(spec), seed):
        if spec.name in IMAGENET:
            net = _of_imagenet(spec, causal.classes, training.weights, published)
        else:
            spec.check("model", registry.models[spec.name])
            shape = causal.samples("test", 1).batch.images.shape
            size = {"rows": shape[2], "columns": shape[3]} if spec.name == "digit_cnn" else {}
            net = registry.models[spec.name].function(causal.classes, shape[1], **size, **dict(spec.params))
    net.to(device).eval()
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm1d | nn.BatchNorm2d)]
    if norms and state == "random":
        pixels = causal.samples("train", REFERENCES, device=device).batch.images
        estimate(net, norms, scaled(pixels, _wrapped(net, causal, training, seed, state, frozen=False)))
    return net


def _of_imagenet(spec: Spec, classes: int, weights: Path | None, published: bool) -> nn.Module:
    """With an untrained head."""
    found = _FOUND[spec.name](replace(spec, name=spec.name.removeprefix("torchvision:")), weights, 0)
    net, head = found.net, _HEADS[spec.name]
    if not published:
        for module in net.modules():
            if callable(getattr(module, "reset_parameters", None)):
                module.reset_parameters()  # type: ignore[operator]
    old = getattr(net, head)
    setattr(net, head, nn.Linear(old.in_features, classes))
    return net


_FOUND: dict[str, Callable[[Spec, Path | None, int], zoo.Found]] = {
    "efficientnet_lite0": zoo.from_lite,
    "torchvision:resnet18": zoo.from_torchvision,
}
_HEADS = {"efficientnet_lite0": "_fc", "torchvision:resnet18": "fc"}
_SCALES = {
    "efficientnet_lite0": ((0.5,) * 3, (0.5,) * 3),
    "torchvision:resnet18": ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)),
}


def _wrapped(
    net: nn.Module, causal: Causal, training: Training, seed: int, state: str, *, frozen: bool = True
) -> Model:
    spec = Spec.parse(training.arch)
    name = str(Spec(spec.name, tuple(sorted((dict(spec.params) | {"seed": seed, "state": state}).items()))))
    mean, std = _SCALES.get(spec.name, ((0.0,), (1.0,)))
    if not frozen:
        return Model(name, net, "", "", mean, std)
    net.eval().requires_grad_(False)
    device = str(next(net.parameters()).device)
    if spec.name in CAM_LAYERS:
        layers = CAM_LAYERS[spec.name], MIDDLE_LAYERS[spec.name]
    else:
        image = scaled(causal.samples("test", 1, device=device).batch.images, Model(name, net, "", "", mean, std))
        layers = cam_layer(net, image), middle_layer(net, image)
    held = {key: value.detach().cpu().contiguous() for key, value in net.state_dict().items()}
    digest = hashlib.sha256(safetensors.torch.save(held)).hexdigest()
    return Model(name, net, layers[0], digest, mean, std, middle_layer=layers[1])
