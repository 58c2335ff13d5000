"""The models of SMERF's other conditions, trained one after the other in one process; plain Python, for a bare GPU."""

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saliometer.engine import device as devices
from saliometer.engine.condition import Condition
from saliometer.engine.robust import trained
from saliometer.tasks.textbox import SETTINGS


def _conditions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--background", default="black", help="black, noise, natural or natural:FOLDER")
    parser.add_argument("--arch", default="", help="alexnet, vgg16, resnet18, vit_small; the setting's own by default")
    parser.add_argument("--robust", action="store_true", help="trained further on attacked images")


def asked(options: Sequence[str]) -> dict[str, Any]:
    """Which models a benchmark is to explain."""
    parser = argparse.ArgumentParser(prog="smerf run RUN")
    parser.add_argument("--models", type=Path, help="a folder that `smerf train` wrote")
    parser.add_argument("--model-seed", type=int, action="append", default=[], dest="model_seeds")
    _conditions(parser)
    return vars(parser.parse_args(options))


def train_all(options: Sequence[str]) -> int:
    """Every setting for every seed; prints a line for each and returns how many were not accepted or failed."""
    parser = argparse.ArgumentParser(prog="smerf train")
    parser.add_argument("folder", type=Path, help="where weights and cards go; the same command goes on there")
    parser.add_argument("--seed", type=int, action="append", help="repeat for several; 0 by default")
    parser.add_argument("--setting", action="append", choices=SETTINGS, help="repeat for several; all by default")
    parser.add_argument("--weights", type=Path, help="ImageNet weights for 'vgg16(frozen=true)'")
    parser.add_argument("--restarts", type=int, default=3, help="fresh trainings until one is accepted")
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--limit", type=int, default=0, help="at most so many training images")
    parser.add_argument("--device", default="auto")
    _conditions(parser)
    given = parser.parse_args(options)
    condition = Condition(given.background, given.arch, given.robust)
    missed = 0
    for seed in given.seed or [0]:
        for setting in given.setting or SETTINGS:
            start = time.perf_counter()
            card = trained(
                setting, given.folder, condition=condition, seed=seed, weights=given.weights, epochs=given.epochs,
                limit=given.limit, restarts=given.restarts, device=str(devices.find(given.device)),
            )  # fmt: skip
            missed += not card["accepted"]
            print(_line(condition.stem(setting, seed), card, time.perf_counter() - start), flush=True)
    return missed


def _line(stem: str, card: dict[str, Any], seconds: float) -> str:
    got = ", ".join(f"{name} {part['got']:.4f}" for name, part in card["acceptance"].items())
    robust = f", robust accuracy {card['robust_accuracy']:.4f}" if card.get("robust") else ""
    verdict = "accepted" if card["accepted"] else "NOT accepted"
    return f"{stem}: {verdict} after {card['tried']} tries, {seconds:.1f} s; {got}{robust}"
