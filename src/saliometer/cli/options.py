"""Options that several commands share, and how their words are read."""

from pathlib import Path
from typing import Annotated

import typer

Settings = Annotated[
    list[str], typer.Option("--setting", help="A way of reasoning, e.g. complex-cr2; repeat for several. Default: all.")
]
Seed = Annotated[int, typer.Option(help="Another seed for noise and ties (audit), images (bench), weights (train).")]
Device = Annotated[str, typer.Option(help="auto, cpu, cuda or cuda:1.")]
Limit = Annotated[int, typer.Option(help="At most this many samples (of each setting); 0 for all.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")]
Sampler = Annotated[str, typer.Option(help="disjoint, or authors (objects may overlap).")]
Labelling = Annotated[str, typer.Option(help="paper, or authors (box branch of the CR settings inverted).")]
Background = Annotated[
    str,
    typer.Option(
        help="Behind the objects: black, noise, natural (pieces of the few photographs that installed packages carry), "
        "natural:FOLDER, or your own as `file.py:name`. `natural(photographs=shared)`: train and test share them."
    ),
]
Arch = Annotated[
    str,
    typer.Option(
        help="Another network than the setting's own: alexnet, vgg16, `vgg16(frozen=true)` (ImageNet's features), "
        "resnet18, vit_small."
    ),
]
Robust = Annotated[bool, typer.Option("--robust", help="Models trained further on attacked images (PGD).")]
ModelName = Annotated[
    str,
    typer.Option(
        help="A torchvision or timm name (`resnet50`, `timm:vit_tiny_patch16_224`), `efficientnet_lite0`, one "
        "of ours as `textbox:simple-fr`, a folder that `saliometer train images` wrote, or your own as "
        "`module.py:build`.",
        show_default=False,
    ),
]
ImagePlace = Annotated[
    str,
    typer.Option(
        help="A picture, a folder of them, a folder per class, a CSV (columns file, label, mask), an npz, a "
        "torchvision data set as `cifar10:ROOT`, or `photographs`, a few that installed packages carry.",
        show_default=False,
    ),
]
Weights = Annotated[
    Path | None, typer.Option(help="Your weights: safetensors or a state dict, read without running code.")
]
Mean = Annotated[str, typer.Option(help="The model's input mean, e.g. 0.485,0.456,0.406.")]
Std = Annotated[str, typer.Option(help="The model's input standard deviation.")]
Size = Annotated[int, typer.Option(help="The side of the model's input; 0 takes it from the weights.")]
Resize = Annotated[
    int,
    typer.Option(help="The shorter side before the centre is cut out; 0 as the weights have it, --size for no cut."),
]
Classes = Annotated[int, typer.Option(help="How many classes to build the model with; 0 as its weights.")]
Output = Annotated[
    str,
    typer.Option(
        help="What the model gives out: logit, probability, or auto, which refuses what looks like probabilities."
    ),
]
Multilabel = Annotated[bool, typer.Option("--multilabel", help="Each class by itself, with a sigmoid.")]
RunFolder = Annotated[Path, typer.Argument(help="A run's folder, as `bench` printed it.", show_default=False)]


def named_files(given: list[str]) -> dict[str, Path]:
    found: dict[str, Path] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not (name and equals and path):
            raise ValueError(f"--maps {text}: wanted NAME=file.npz")
        if name in found:
            raise ValueError(f"--maps {text}: the name '{name}' is there twice")
        found[name] = Path(path)
    return found


def numbers(name: str, text: str) -> tuple[float, ...] | None:
    try:
        return tuple(float(part) for part in text.split(",")) if text else None
    except ValueError:
        raise ValueError(f"--{name} {text}: wanted numbers like 0.485,0.456,0.406") from None
