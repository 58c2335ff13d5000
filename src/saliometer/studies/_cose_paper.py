"""COSE's own numbers (Daroya, Sun and Maji, 2023): Table 1, the accuracies of its models, and its names for things."""

import csv
from functools import cache
from importlib.resources import files

from saliometer.engine.presets import COSE

METHODS = tuple(COSE)
CONV, TRANSFORMER = "ConvNets", "Transformers"
KIN = {"resnet": "ResNet50", "convnext": "ConvNext", "vit": "ViT-B/16", "swin": "Swin-T"}  # how ours begin -> theirs
FAMILIES = {"ResNet50": CONV, "ConvNext": CONV, "ViT-B/16": TRANSFORMER, "Swin-T": TRANSFORMER}
DATA = ("Caltech101", "CIFAR10", "CUB200", "EuroSAT", "Oxford102")
OVERALL = "Overall"
GATE = 75.0  # percent of test images that a model should get right


def kin(arch: str) -> str:
    """The paper's architecture that one of ours stands for; '' where there is none."""
    return next((theirs for ours, theirs in KIN.items() if arch.startswith(ours)), "")


def family(arch: str) -> str:
    return FAMILIES.get(kin(arch), "")


def data_named(name: str) -> str:
    """The paper's name of a data set, by letters and digits alone; the name itself where the paper has no such set."""
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    known = {one.lower(): one for one in DATA} | {"flowers102": "Oxford102", "cub2002011": "CUB200"}
    if plain == "cifar":
        return "CIFAR10"
    return next(
        (theirs for ours, theirs in known.items() if plain.startswith(ours) and not plain[len(ours) :][:1].isdigit()),
        name,
    )


@cache
def table() -> dict[tuple[str, str, str], float]:
    """(data set, architecture, method) -> COSE in percent, a mean over variants; also the Overall row."""
    return {(row["dataset"], row["model"], row["method"]): float(row["cose_percent"]) for row in _read("cose.csv")}


@cache
def accuracies() -> dict[tuple[str, str, str], float]:
    """(data set, architecture, variant) -> percent of the test images, as the authors' README has it."""
    return {
        (data, row["architecture"], row["variant"]): float(row[data])
        for row in _read("cose_accuracy.csv")
        for data in DATA
    }


@cache
def variants(architecture: str) -> tuple[str, ...]:
    """Initial weights that a cell of the table is the mean over."""
    return tuple(variant for data, name, variant in accuracies() if data == DATA[0] and name == architecture)


def mean(method: str, *, data: str = "", family: str = "") -> float:
    """Of Table 1 over all models, each variant counted, of one data set or one family."""
    cells = [
        (value, len(variants(model)))
        for (where, model, name), value in table().items()
        if name == method and where != OVERALL and data in ("", where) and family in ("", FAMILIES[model])
    ]
    return sum(value * weight for value, weight in cells) / sum(weight for _, weight in cells)


def _read(name: str) -> list[dict[str, str]]:
    text = files("saliometer.studies").joinpath(f"data/{name}").read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
