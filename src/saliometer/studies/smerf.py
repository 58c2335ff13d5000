"""SMERF (Kim, Plumb, Talwalkar, ICML 2022), rerun: every condition of the paper, its numbers beside ours, 29 claims.

python -m saliometer.studies.smerf run RUN      # one benchmark with our own defaults beside the paper's methods
python -m saliometer.studies.smerf train DIR    # the seven models; --background, --arch, --robust, --seed: see -h
python -m saliometer.studies.smerf run RUN --models DIR --background noise   # all seeds of them that are there
python -m saliometer.studies.smerf tables RUN   # the tables of docs/results/smerf.md
python -m saliometer.studies.smerf claims RUN   # what of the paper holds
"""

import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from saliometer.engine import device as devices
from saliometer.engine import shipped
from saliometer.engine.bench import bench
from saliometer.engine.condition import Condition
from saliometer.engine.identify import STREAM, identify
from saliometer.engine.run import opened as open_run
from saliometer.files import put
from saliometer.registry import one_of
from saliometer.studies._smerf_claims import claims
from saliometer.studies._smerf_models import asked, cards, condition_of, lacking, train_all, train_missing, why_missing
from saliometer.studies._smerf_paper import with_references
from saliometer.studies._smerf_study import CONDITIONS, IDENTIFY, SWEEP, Study, opened, read
from saliometer.studies._smerf_sweep import BUCKET, SETTING, sweep
from saliometer.studies._smerf_tables import DEFINITIONS, of_black
from saliometer.tasks.textbox import SETTINGS, cycle
from saliometer.types import Watch

PER_BUCKET = 100
OURS = (
    "smooth_grad", "integrated_gradients", "grad_cam", "deep_taylor", "lrp_preset_a_flat", "lrp_preset_b_flat",
    "lrp_alpha_beta", "deep_shap",
)  # fmt: skip  # with our own defaults
OTHER_K = f"other K, {SETTING} bucket {BUCKET}"  # the step that writes SWEEP
HEAVY = {"alexnet": 4.0, "vgg16": 12.0}  # an image's time beside that with SMERF's own networks
TRAINING = 2000.0  # a training's time in images explained with SMERF's own networks


@dataclass(frozen=True)
class Scale:
    """How much of the study is run."""

    per_bucket: int  # images of each bucket
    references: int  # that D-SHAP compares with
    told: int  # images a bucket that settings are told apart by
    seeds: tuple[int, ...] = ()  # of the plain models; none for those that ship, and then nothing is trained


SCALES = {"smoke": Scale(2, 10, 2), "quick": Scale(5, 50, 5), "paper": Scale(20, 1000, 20, (0, 1, 2))}
POOLED = {"alexnet": 100, "vgg16": 100}  # references at most, as the authors had there


@dataclass(frozen=True)
class Part:
    """A benchmark of the study and where its models lie."""

    name: str
    condition: Condition
    shelf: Path
    seeds: tuple[int, ...] = ()  # to be trained where they are missing

    def weight(self, images: float) -> float:
        return images * max(1, len(self.seeds)) * HEAVY.get(self.name, 1.0)


def reproduce(
    folder: Path,
    scale: str = "smoke",
    *,
    models: Path | None = None,
    images: str = "",
    device: str = "auto",
    seed: int = 0,
    say: Callable[[str], None] = lambda text: None,
    watch: Watch = lambda share, text: None,
) -> Study:
    """Every condition as a benchmark under one folder, each of which goes on where it was.

    `models` is a folder that `train` wrote; scale 'paper' trains what it lacks, others leave those conditions out.
    `images` is a folder of photographs for natural backgrounds.
    """
    chosen = SCALES[one_of("scale", scale, SCALES)]
    devices.find(device)
    if models is not None and not chosen.seeds and not models.is_dir():
        raise ValueError(f"there is no folder '{models}': --models wants one that `saliometer train` wrote")
    parts, missing = _parts(chosen, models, images, folder)
    _begin(folder, scale)
    for name, why in missing.items():
        say(f"Left out: {name}: {why}.")
    failed = dict[str, str]()
    whole = sum(len(cycle(setting, "test")) for setting in SETTINGS)  # buckets
    shares = _Shares(watch)
    for part in parts:
        shares.add(f"{part.name} models", TRAINING * len(lacking(part.condition, part.shelf, part.seeds)))
        shares.add(part.name, part.weight(chosen.per_bucket * whole))
        if part.name == "black":
            shares.add(OTHER_K, part.weight(chosen.per_bucket))
            shares.add(IDENTIFY, part.weight(chosen.told * len(cycle(STREAM, "test")) * len(SETTINGS)))
    kept: dict[str, Any] = {}
    for part in parts:
        train_missing(
            part.condition, part.shelf, part.seeds, str(devices.find(device)), shares.of(f"{part.name} models")
        )
        kept[part.name] = cards(part.condition, part.shelf)
        _tell(folder, scale, kept, missing)
        fewest = min(chosen.references, POOLED.get(part.name, chosen.references))
        methods = list(with_references(fewest).values())
        found = bench(
            methods, per_bucket=chosen.per_bucket, definitions=DEFINITIONS, seed=seed, device=device,
            models=part.shelf, out=folder / part.name, watch=shares.of(part.name), **vars(part.condition),
        )  # fmt: skip
        failed |= {f"{part.name}: {method}": why for method, why in found.failed.items()}
        if part.name == "black":
            failed |= _once(folder, part.shelf, methods, chosen, device, seed, shares)
    return replace(opened(folder), failed=failed)


def _once(
    folder: Path, shelf: Path, methods: list[str], scale: Scale, device: str, seed: int, shares: "_Shares"
) -> dict[str, str]:
    """What only the plain models are asked: PIOU for other K, and whether maps tell the settings apart."""
    swept = sweep(
        folder / SWEEP, methods, scale.per_bucket, shelf, seed=seed, device=device, watch=shares.of(OTHER_K)
    )  # fmt: skip
    told = identify(
        methods, per_bucket=scale.told, seed=seed, device=device, models=shelf, model_seeds=scale.seeds,
        out=folder / IDENTIFY, watch=shares.of(IDENTIFY),
    )  # fmt: skip
    failed = {f"{OTHER_K}: {method}": why for method, why in swept.items()}
    return failed | {f"{IDENTIFY}: {method}": why for method, why in told.failed.items()}


def _parts(scale: Scale, models: Path | None, images: str, folder: Path) -> tuple[list[Part], dict[str, str]]:
    """The conditions that can be run, and why others cannot."""
    if scale.seeds:
        shelf = models or folder / "models"
        seeds = {name: scale.seeds if name == "black" else (0,) for name in CONDITIONS}
        return [Part(name, condition_of(name, images, shelf), shelf, seeds[name]) for name in CONDITIONS], {}
    found, missing = [Part("black", condition_of("black"), shipped.FOLDER)], dict[str, str]()
    for name in CONDITIONS:
        if name != "black":
            condition = condition_of(name, images, models)
            if why := why_missing(condition, models):
                missing[name] = why
            elif models is not None:
                found.append(Part(name, condition, models))
    return found, missing


class _Shares:
    """How far the whole is, from how far its steps are; never back, though a step may find that more is asked."""

    def __init__(self, watch: Watch) -> None:
        self.watch, self.weights, self.most = watch, dict[str, float](), 0.0

    def add(self, step: str, weight: float) -> None:
        self.weights[step] = weight

    def of(self, step: str) -> Watch:
        total = sum(self.weights.values())
        before = sum(list(self.weights.values())[: list(self.weights).index(step)])

        def told(share: float, text: str) -> None:
            self.most = max(self.most, (before + share * self.weights[step]) / total)
            self.watch(self.most, f"{step}: {text}")

        return told


def _begin(folder: Path, scale: str) -> None:
    """Refuse a folder that holds another study, or this one at another scale."""
    if not (folder / "study.json").exists():
        return
    told = read(folder)
    if (told.get("study"), told.get("scale")) != ("smerf", scale):
        raise ValueError(
            f"'{folder}' holds the study {told.get('study')} at scale {told.get('scale')}, you asked for smerf at "
            f"{scale}: choose another folder with --out"
        )


def _tell(folder: Path, scale: str, models: Mapping[str, Any], missing: Mapping[str, str]) -> None:
    told = {"study": "smerf", "scale": scale, "models": models, "missing": missing}
    put(folder / "study.json", (json.dumps(told, indent=1) + "\n").encode())


def run(folder: Path, device: str = "auto", **models: Any) -> None:
    """The paper's methods with its parameters and ours with our defaults, in every definition."""
    bench(OURS, preset="smerf", per_bucket=PER_BUCKET, definitions=DEFINITIONS, out=folder, device=device, **models)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["run", place, *options]:
            run(Path(place), **asked(options))
        case ["train", *options]:
            sys.exit(train_all(options))
        case ["tables", place]:
            print("\n\n".join(of_black(open_run(Path(place)).rows())))
        case ["claims", place]:
            print(claims(open_run(Path(place)).rows()))
        case _:
            sys.exit(__doc__)
