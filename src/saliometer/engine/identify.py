"""The same images through all seven models, and where each map's attribution lies (Figure 9 as a number)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from saliometer import identifiability, results
from saliometer.engine import device as devices
from saliometer.engine import presets, shipped
from saliometer.engine.bench import ALIGN, batch_size_of, enlist, listed_methods
from saliometer.engine.costs import Metered
from saliometer.engine.own import OwnMethod
from saliometer.engine.request import UNIT, Request, fixed
from saliometer.engine.resolve import Asked, resolve
from saliometer.engine.run import Run, Unit, key
from saliometer.engine.score import Failure, Method, attributions, remarks
from saliometer.files import put
from saliometer.graph import UnfitError
from saliometer.maps import collapsed, complaints, dead
from saliometer.registry import methods as known_methods
from saliometer.seeds import fork, forks
from saliometer.summary import Estimate, Scores, Uncertain
from saliometer.tasks.textbox import OBJECTS, SETTINGS, cycle, seen_as, textbox
from saliometer.types import PRIMARY, Explained, Samples, Watch

STREAM = "simple-nr"  # whose test images are shown to every model: its buckets are those that all settings define
CHANCE = 1 / len(SETTINGS)
DEFINITION, REGION = "clean", "box"


@dataclass(frozen=True)
class Asking:
    """What is measured; methods can join later."""

    per_bucket: int = 20
    seed: int = 0
    kind: str = "identify"
    settings: tuple[str, ...] = SETTINGS

    def __post_init__(self) -> None:
        if self.per_bucket < 2:
            raise ValueError(f"per-bucket is {self.per_bucket}: wanted 2 or more, to learn from others than are judged")

    def units(self, setting: str, model: str = "") -> list[Unit]:
        count = self.per_bucket * len(cycle(STREAM, "test"))
        return [Unit(setting, start, min(start + UNIT, count), model) for start in range(0, count, UNIT)]

    def samples(self, unit: Unit, device: torch.device) -> Samples:
        """The same images for every setting, with its own labels and roles, and noise of its own for methods."""
        shown = textbox(
            STREAM, start=unit.start, count=unit.stop - unit.start, seed=self.seed, device=str(device)
        )  # fmt: skip
        seeds = forks(fork("identify", *filter(None, (unit.setting, unit.model))), shown.batch.seeds)
        return seen_as(replace(shown, batch=replace(shown.batch, seeds=seeds)), unit.setting)


@dataclass(repr=False)
class Identified:
    """A finished run: how often each method's maps tell the seven models apart."""

    run: Run
    failed: dict[str, str] = field(default_factory=dict)  # method -> message
    left_out: dict[str, str] = field(default_factory=dict)

    def scores(self) -> Scores:
        return identifiability.identifiability(self.run.rows())

    def over_models(self) -> dict[str, Uncertain]:
        """method -> its mean with intervals over images and, apart from it, over models; {} with one of each."""
        return identifiability.over_models(self.run.rows())

    def table(self) -> dict[str, dict[str, Estimate]]:
        """method -> bucket, and 'mean' over buckets -> accuracy with its 95 % interval; best first."""
        scores = self.scores()
        found = {
            method: {"mean": scores.estimate(method, scores.of("all"))}
            | {bucket: scores.estimate(method, [place]) for place, (_, bucket) in enumerate(scores.cells)}
            for method in scores.methods
        }
        return dict(sorted(found.items(), key=lambda item: -np.nan_to_num(item[1]["mean"].value, nan=-1.0)))

    def problems(self) -> list[str]:
        """What a reader must know of the models and the maps, in words."""
        missed = [stem for stem, accepted in self.run.manifest.get("accepted", {}).items() if not accepted]
        return [f"{stem} was not accepted: its reasoning is not known" for stem in missed] + [
            f"{method}: {count} maps with the note '{why}'; all their shares are 0"
            for method, counts in identifiability.empty_maps(self.run.rows()).items()
            for why, count in counts.items()
            if not (method in known_methods and known_methods[method].facts.needs_truth)
        ]

    def __repr__(self) -> str:
        lines = [f"{method:28} {100 * cells['mean'].value:5.1f}" for method, cells in self.table().items()]
        return "\n".join([f"Settings told right x100 (chance {100 * CHANCE:.1f}) in {self.run.folder}:", *lines])


def identify(
    methods: Asked | Sequence[Asked] | Mapping[str, OwnMethod] = (),
    *,
    preset: str = "",
    per_bucket: int = 20,
    seed: int = 0,
    device: str = "auto",
    out: Path | str | None = None,
    models: Path | str | None = None,
    model_seeds: Iterable[int] = (),
    batch_size: int = 0,
    watch: Watch = lambda share, text: None,
) -> Identified:
    """Whether the seven models can be told apart by one method's maps of the same images.

    Methods are as for `bench`. Chance is 1/7; the oracle is the ceiling, for settings in which the same objects decide
    cannot be told apart. Of a folder `models` with several trainings, the seven of each seed are told apart from each
    other, or of each of `model_seeds`. The same call with the same `out` goes on where it was.
    """
    asking = Asking(per_bucket, seed)
    devices.check_batch(batch_size)
    asked = list(methods.items()) if isinstance(methods, Mapping) else listed_methods(methods)
    chosen = resolve([*(presets.preset(preset) if preset else []), *asked])
    place, shelf = devices.find(device), Path(models) if models else shipped.FOLDER
    request = Request(seed=seed, model_seeds=tuple(model_seeds))
    stems = _stems(request, shelf)
    met = fixed(request, shelf) | {"stream": STREAM, "folds": identifiability.FOLDS}
    folder = Path(out) if out else Path("runs") / f"identify-{key(vars(asking), met)[:8]}"
    run = Run(folder, vars(asking), met)
    run.manifest["counts"] = {setting: asking.per_bucket * len(cycle(STREAM, "test")) for setting in SETTINGS}
    run.manifest["accepted"] = {
        stem: shipped.card(setting, shelf, stem)["accepted"] for setting in SETTINGS for stem in stems[setting].values()
    }
    enlist(run, chosen)
    found = Identified(run)
    todo = list(_todo(asking, run, chosen, list(stems[STREAM])))
    size = batch_size_of(run, place, batch_size)
    for number, (unit, wanted) in enumerate(todo):
        watch(number / len(todo), " ".join(filter(None, (unit.setting, unit.model, f"{unit.start + 1}-{unit.stop}"))))
        stem = stems[unit.setting][unit.model]
        _one_unit(asking, found, unit, wanted, _answers(unit.setting, shelf, stem, place, size))
    _answers.cache_clear()
    return found


def _stems(request: Request, shelf: Path) -> dict[str, dict[str, str]]:
    """setting -> which of its trainings, '' for the first -> the name of its files; all settings have the same."""
    stems = {setting: request.models(setting, shelf) for setting in SETTINGS}
    seeds = {
        setting: [str(shipped.card(setting, shelf, stem)["seed"]) for stem in some.values()]
        for setting, some in stems.items()
    }
    most = max(seeds, key=lambda setting: len(seeds[setting]))
    for setting, some in seeds.items():
        if some != seeds[most]:
            raise ValueError(
                f"'{shelf}' holds {setting} with seed {', '.join(some)} and {most} with {', '.join(seeds[most])}: the "
                "seven models of one seed are told apart; train those that are missing, or choose with --model-seed"
            )
    return stems


def _todo(
    asking: Asking, run: Run, methods: Sequence[Method], models: Sequence[str]
) -> Iterator[tuple[Unit, list[Method]]]:
    for setting in asking.settings:
        for model in models:
            for unit in asking.units(setting, model):
                wanted = [method for method in methods if not run.part(unit, method.label).exists()]
                if wanted:
                    yield unit, wanted


@lru_cache(maxsize=1)
def _answers(setting: str, shelf: Path, stem: str, place: torch.device, size: int) -> Metered:
    model = shipped.load(setting, shelf, stem)
    model.net.to(place).to(memory_format=devices.memory_format(place))
    return Metered(model, place, size, align=ALIGN)


def _one_unit(asking: Asking, found: Identified, unit: Unit, wanted: Sequence[Method], answers: Metered) -> None:
    run, samples = found.run, asking.samples(unit, answers.device)
    samples = samples.explaining(answers.predicted(samples.batch.images))
    if any(method.entry.facts.needs_references for method in wanted):
        references = Request((unit.setting,), seed=asking.seed).references(unit.setting, answers.device)
        samples = replace(samples, batch=replace(samples.batch, references=references))
    before = answers.passes
    made = attributions(wanted, answers, samples.batch, samples.region(PRIMARY, REGION))
    for method in wanted:
        explained = made[method.label]
        if isinstance(explained, Failure):
            put(run.failure(unit, method.label), explained.traceback.encode())
            unfit = isinstance(explained.error, UnfitError) and method.unasked
            (found.left_out if unfit else found.failed).setdefault(method.label, explained.message)
            continue
        run.failure(unit, method.label).unlink(missing_ok=True)
        _keep(run, unit, method, answers.model.name, samples, explained)
    run.manifest["passes"] += answers.passes - before
    run.keep()


def shares(maps: Tensor, samples: Samples) -> tuple[dict[str, Tensor], list[str]]:
    """name -> (N,) float64: the share of clean attribution on each object's box and on the rest; and notes.

    All are 0 where a map is NaN or empty, and its note says so.
    """
    flat = collapsed(maps, DEFINITION, "heat")
    empty = dead(flat, DEFINITION)
    flat = flat.where(~empty[:, None, None], 0)
    total = flat.sum((1, 2))
    total = total.where(total > 0, 1)
    on = (flat[:, None] * samples.boxed).sum((2, 3)) / total[:, None]  # (N, objects)
    off = (flat * ~samples.boxed.any(1)).sum((1, 2)) / total
    notes = [odd or "scored as empty" * gone for odd, gone in zip(complaints(maps), empty.tolist(), strict=True)]
    return dict(zip(OBJECTS, on.unbind(1), strict=True)) | {"background": off}, notes


def _keep(run: Run, unit: Unit, method: Method, model: str, samples: Samples, explained: Explained) -> None:
    constant = {
        "task": "textbox", "setting": unit.setting, "model": model, "method": method.label, "definition": DEFINITION,
        "region": REGION, "target": "predicted", "condition": "",
    }  # fmt: skip
    found, odd = shares(explained.maps, samples)
    notes = ["; ".join(filter(None, both)) for both in zip(remarks(explained), odd, strict=True)]
    blocks = [
        results.block(
            constant | {"metric": identifiability.SHARES + name}, samples.ids, samples.buckets,
            np.asarray(values.cpu(), dtype=np.float64), notes,
        )
        for name, values in found.items()
    ]  # fmt: skip
    results.write(run.part(unit, method.label), blocks)
