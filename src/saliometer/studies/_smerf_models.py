"""The models of SMERF's conditions: which folder has them, and training those that are missing; needs no terminal."""

import argparse
import shlex
import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from saliometer.engine import device as devices
from saliometer.engine import imagenet, shipped
from saliometer.engine.condition import PLAIN, Condition
from saliometer.engine.robust import trained
from saliometer.engine.train import EPOCHS, PER_BUCKET_TRAIN, size
from saliometer.studies._smerf_study import CONDITIONS
from saliometer.tasks.textbox import SETTINGS
from saliometer.types import Watch

FROZEN = "vgg16(frozen=true)"
RESTARTS = 3  # fresh trainings until one is accepted
KEPT = ("setting", "seed", "sha256", "accepted", "accuracy", "accuracy_per_bucket", "features")  # of a card, by a study


def condition_of(part: str, images: str = "", shelf: Path | None = None) -> Condition:
    """The condition of a part of the study, on one's own photographs where they are given.

    VGG16 is the paper's, with frozen features of ImageNet, where the folder holds it or, with none of either kind,
    where torchvision's cache holds the weights.
    """
    chosen = CONDITIONS[part] | ({"background": f"natural:{images}"} if part == "natural" and images else {})
    if part == "vgg16" and shelf and (_holds(shelf, FROZEN) or (not _holds(shelf, part) and imagenet.cached())):
        chosen = {"arch": FROZEN}
    return Condition(**chosen)


def _holds(shelf: Path, arch: str) -> bool:
    """Whether a folder has a model of any setting."""
    return any((shelf / f"{Condition(arch=arch).stem(setting, 0)}.json").is_file() for setting in SETTINGS)


def why_missing(condition: Condition, shelf: Path | None) -> str:
    """Why a folder cannot be benchmarked under a condition, and what to run; '' where all seven settings are there."""
    told = condition.told().items()
    options = " ".join(f"--{name}" if value is True else f"--{name} {shlex.quote(value)}" for name, value in told)
    train = f"`saliometer train textbox {options} --out DIR`, then --models DIR; or --scale paper, which trains them"
    if shelf is None:
        return f"its models are trained by {train}"
    lost = []
    for setting in SETTINGS:
        try:
            shipped.found(setting, shelf, condition)
        except ValueError as error:
            if "other photographs" in str(error):
                return str(error)
            lost.append(setting)
    return f"'{shelf}' lacks its models of {', '.join(lost)}: {train}" if lost else ""


def lacking(condition: Condition, shelf: Path, seeds: Sequence[int]) -> list[tuple[str, int]]:
    """(setting, seed) of the models that are not there, or not accepted and not tried often enough."""
    return [(s, seed) for seed in seeds for s in SETTINGS if not _done(s, seed, condition, shelf)]


def _done(setting: str, seed: int, condition: Condition, shelf: Path) -> bool:
    found: Mapping[int, str] = {}
    with suppress(ValueError):  # none of that setting
        found = shipped.found(setting, shelf, condition)
    if seed not in found or not (shelf / f"{found[seed]}.safetensors").is_file():
        return False
    card = shipped.card(setting, shelf, found[seed])
    return bool(card["accepted"]) or int(card.get("tried", RESTARTS)) >= RESTARTS


def train_missing(condition: Condition, shelf: Path, seeds: Sequence[int], device: str, watch: Watch) -> None:
    """Train what is lacking; the plain models of seed 0 are those that ship."""
    todo = lacking(condition, shelf, seeds)
    for number, (setting, seed) in enumerate(todo):
        if condition == PLAIN and not seed:
            _copy(setting, shelf)
            continue

        def told(share: float, text: str, number: int = number) -> None:
            watch((number + share) / len(todo), f"training {text}")

        trained(setting, shelf, condition=condition, seed=seed, restarts=RESTARTS, device=device, watch=told)


def _copy(setting: str, shelf: Path) -> None:
    shelf.mkdir(parents=True, exist_ok=True)
    for ending in ("safetensors", "json"):  # the card last: with it, the model is there
        shutil.copyfile(shipped.FOLDER / f"{setting}.{ending}", shelf / f"{setting}.{ending}")


def cards(condition: Condition, shelf: Path) -> dict[str, dict[str, Any]]:
    """What a study keeps of the models it explains, by the name of their files."""
    return {stem: {name: card[name] for name in KEPT if name in card} for stem, card in _cards(condition, shelf)}


def _cards(condition: Condition, shelf: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    for setting in SETTINGS:
        for stem in shipped.found(setting, shelf, condition).values():
            yield stem, shipped.card(setting, shelf, stem)


# The commands of `python -m saliometer.studies.smerf`


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
    parser.add_argument("--restarts", type=int, default=RESTARTS, help="fresh trainings until one is accepted")
    parser.add_argument("--epochs", type=int, default=0)
    parser.add_argument("--limit", type=int, default=0, help="at most so many training images")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="models trained at the same time, each in a process")
    _conditions(parser)
    given = parser.parse_args(options)
    todo = [(given, seed, setting) for seed in given.seed or [0] for setting in given.setting or SETTINGS]
    if given.jobs < 2:
        return sum(map(_train_one, todo))
    todo.sort(key=lambda one: -size(EPOCHS, one[2]) * size(PER_BUCKET_TRAIN, one[2]))  # the longest first
    with ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool:
        return sum(pool.map(_train_one, todo))


def _train_one(asked: tuple[argparse.Namespace, int, str]) -> bool:
    """Prints a line; whether the model was missed."""
    given, seed, setting = asked
    condition = Condition(given.background, given.arch, given.robust)
    start = time.perf_counter()
    card = trained(
        setting, given.folder, condition=condition, seed=seed, weights=given.weights, epochs=given.epochs,
        limit=given.limit, restarts=given.restarts, device=str(devices.find(given.device)),
    )  # fmt: skip
    print(_line(condition.stem(setting, seed), card, time.perf_counter() - start), flush=True)
    return not card["accepted"]


def _line(stem: str, card: dict[str, Any], seconds: float) -> str:
    got = ", ".join(f"{name} {part['got']:.4f}" for name, part in card["acceptance"].items())
    robust = f", robust accuracy {card['robust_accuracy']:.4f}" if card.get("robust") else ""
    verdict = "accepted" if card["accepted"] else "NOT accepted"
    return f"{stem}: {verdict} after {card['tried']} tries, {seconds:.1f} s; {got}{robust}"
