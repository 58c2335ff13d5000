"""The ground-truth benchmark: every method on models whose reasoning is known, scored per image."""

import itertools
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliometer import results
from saliometer.engine import device as devices
from saliometer.engine import presets
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Cost
from saliometer.engine.condition import Condition, few_photographs
from saliometer.engine.costs import Metered
from saliometer.engine.given import Given
from saliometer.engine.memory import fitting, made
from saliometer.engine.own import OwnMethod
from saliometer.engine.request import Request, default_folder, fixed
from saliometer.engine.resolve import Asked, free, resolve
from saliometer.engine.run import Run, Unit
from saliometer.engine.score import Failure, Method, attributions, promise, remarks, repeatable, scores
from saliometer.engine.thumbs import keep_scene, keep_thumbnails
from saliometer.engine.variants import variants
from saliometer.files import put
from saliometer.graph import UnfitError
from saliometer.summary import Scores, Standing, Uncertain, oddities, over_models, problems, standings
from saliometer.types import PRIMARY, Explained, Samples, Watch

METRICS = ("pafl", "safl", "piou", "siou", "pmafl", "smafl", "success", "failure")
ALIGN = 4  # with passes of a multiple of 4 images, gradients on the CPU come out the same to the bit for any batch size


@dataclass(repr=False)
class Outcome:
    """A finished benchmark: its run, and what went wrong with the methods that were asked for."""

    run: Run
    asked: list[str]  # the methods of this call; the run may hold more
    failed: dict[str, str] = field(default_factory=dict)  # method -> message
    left_out: dict[str, str] = field(default_factory=dict)  # of 'all', those that do not fit these models -> why

    def standings(self, metric: str = "pafl", definition: str = "") -> list[Standing]:
        """The ranked table, by clean PAFL unless asked otherwise."""
        controls = [name for name, facts in self.run.manifest["methods"].items() if facts["control"]]
        return standings(Scores(self.run.rows(), metric, definition or self.definition()), controls)

    def definition(self) -> str:
        """What methods are ranked by: clean, where it was asked for."""
        asked: list[str] = self.run.manifest["request"]["definitions"]
        return "clean" if "clean" in asked else asked[0]

    def under(self, condition: str, metric: str = "pafl") -> dict[str, float]:
        """method -> mean score under another condition: `budget(100)`, `seed(1)`."""
        scores = Scores(self.run.rows(), metric, self.definition(), condition=condition)
        return {method: float(scores.means[:, place].mean()) for place, method in enumerate(scores.methods)}

    def over_models(self, metric: str = "pafl") -> dict[str, Uncertain]:
        """method -> its mean with intervals over images and, apart from it, over models; {} with one model each."""
        return over_models(self.run.rows(), metric, self.definition())

    def conditions(self) -> list[str]:
        return sorted({facts["condition"] for facts in self.run.manifest.get("variants", {}).values()})

    def __repr__(self) -> str:
        lines = [f"{s.rank or '-':>4} {s.method:28} {100 * s.mean.value:6.1f}" for s in self.standings()]
        return "\n".join([f"PAFL x100 in {self.run.folder}:", *lines])

    def broken(self) -> bool:
        """Whether any map was NaN: the numbers of that method are not to be trusted."""
        found = oddities(self.run.rows())
        return any("nan map" in found.get(method, {}) for method in self.asked)

    def problems(self) -> list[str]:
        """What a reader must know of models and maps, in words."""
        said = [
            f"the model of {setting} was not accepted (accuracy {facts['accuracy']:.3f}): its reasoning is not known"
            for setting, facts in self.run.manifest["models"].items()
            if not facts["accepted"]
        ]
        few = few_photographs(self.run.manifest["fixed"])
        return said + [few] * bool(few) + problems(self.run.rows())


def bench(
    methods: Asked | Sequence[Asked] | Mapping[str, OwnMethod] = (),
    *,
    task: str = "textbox",
    settings: Iterable[str] = (),
    per_bucket: int = 20,
    limit: int = 0,
    definitions: Iterable[str] = ("clean",),
    region: str = "box",
    target: str = "predicted",
    seed: int = 0,
    sampler: str = "disjoint",
    labelling: str = "paper",
    device: str = "auto",
    out: Path | str | None = None,
    preset: str = "",
    budget: int = 0,
    seeds: int = 1,
    maps: Mapping[str, Path | str] | None = None,
    models: Path | str | None = None,
    background: str = "black",
    arch: str = "",
    robust: bool = False,
    model_seeds: Iterable[int] = (),
    retrain: bool = False,
    batch_size: int = 0,
    memory: float = 0.0,
    watch: Watch = lambda share, text: None,
) -> Outcome:
    """Score methods against models whose reasoning is known, beside all known methods and the controls.

    `task` is textbox, handmade, or a file of your own, `my_task.py`; without `settings` all of its settings are taken.
    A method is a name, `smooth_grad(draws=50)`, `file.py:name`, or a callable (model, images, targets) -> maps; a
    mapping gives callables names of their own. `preset` takes a paper's methods with its parameters: smerf, zhang or
    cose. With `budget`, methods that can are also scored at so many passes an image; with `seeds`, those that draw are
    also scored with other seeds of their own. `maps` names files of maps made elsewhere. `memory` is a limit in GiB.
    `models` is a folder that `train` wrote; of it every model with this `background`, `arch` and `robust` is explained,
    or those of `model_seeds`. The same call with the same `out` goes on where it was.
    """
    request = Request(
        tuple(settings), per_bucket, limit, tuple(definitions), region, target, seed, sampler, labelling,
        Condition(background, arch, robust), tuple(model_seeds), task,
    )  # fmt: skip
    given = [Given.read(free(name), Path(path), request) for name, path in (maps or {}).items()]
    devices.check_batch(batch_size)
    asked = list(methods.items()) if isinstance(methods, Mapping) else listed_methods(methods)
    chosen = resolve([*(presets.preset(preset) if preset else []), *asked])
    clash = {one.label for one in given} & {method.label for method in chosen}
    if clash:
        raise ValueError(f"maps are named {', '.join(sorted(clash))} like a method: give them another name")
    place = devices.find(device)
    if request.known.train is None and (models or retrain):
        raise ValueError(f"the models of '{task}' are not trained: leave out --models and --retrain")
    shelf = Path(models) if models else request.known.shelf
    met = fixed(request, None if retrain else shelf)
    folder = Path(out) if out else default_folder(request, met)
    if given and len(met["weights"]) > len(request.settings):
        raise ValueError(f"'{shelf}' holds several models of a setting, and maps are of one: name it with --model-seed")
    run = Run(folder, request.told(), met)
    both: list[Method | Given] = [*chosen, *given, *variants(chosen, budget, seeds)]
    enlist(run, both)
    if retrain:
        shelf = folder / "models"
        _retrain(request, shelf, place, watch)
    run.manifest["models"] = {
        stem: _model_facts(request, setting, shelf, stem)
        for setting in request.settings
        for stem in request.models(setting, shelf).values()
    }
    run.manifest["counts"] = {setting: request.count(setting) for setting in request.settings}
    if request.known.words:
        run.manifest["words"] = dict(request.known.words)
    outcome = Outcome(run, [method.label for method in both])
    size = batch_size or (_fitting(request, shelf, place, memory) if memory else 0)
    _all_units(request, run, both, shelf, place, batch_size_of(run, place, size), watch, outcome)
    return outcome


def listed_methods(methods: Asked | Sequence[Asked]) -> list[Asked | tuple[str, OwnMethod]]:
    return [methods] if isinstance(methods, str) or callable(methods) else list(methods)


def _model_facts(request: Request, setting: str, shelf: Path, stem: str) -> dict[str, Any]:
    card = request.known.card(setting, shelf, stem)
    return {name: card[name] for name in ("sha256", "accepted", "accuracy", "seed", "labelling", "sampler", "loss")}


def _fitting(request: Request, shelf: Path, place: torch.device, memory: float) -> int:
    """The batch size at which every setting's model stays within so many GiB."""
    sizes = []
    for setting in request.settings:
        model = request.known.load(setting, shelf, request.models(setting, shelf)[""])
        model.net.to(place)
        image = request.samples(Unit(setting, 0, 1), place).batch.images
        sizes.append(fitting(made(model.logits, image), place, memory))
    return min(sizes)


def batch_size_of(run: Run, place: torch.device, wanted: int) -> int:
    """What is asked for, or what the run began with, so that it ends as if it had never stopped."""
    known = run.manifest.setdefault("batches", {})
    if wanted or place.type not in known:
        known[place.type] = wanted or devices.BATCH[place.type]
    run.keep()
    return int(known[place.type])


def enlist(run: Run, methods: Sequence[Method | Given]) -> None:
    """Add methods to the run; one whose code has changed is told apart by its key and starts anew."""
    for method in methods:
        known = run.manifest.setdefault("variants", {}) if method.condition else run.manifest["methods"]
        if known.get(method.label, {}).get("key") != method.key:
            known[method.label] = {"key": method.key, "own": method.own, "control": method.control}
            run.manifest.get("costs", {}).pop(method.label, None)
            if method.condition:
                known[method.label] |= {"method": method.row, "condition": method.condition}
    run.keep()


def _retrain(request: Request, shelf: Path, place: torch.device, watch: Watch) -> None:
    for number, setting in enumerate(request.settings):

        def told(share: float, text: str, number: int = number) -> None:
            watch((number + share) / len(request.settings), f"training {text}")

        assert request.known.train is not None
        request.known.train(
            setting, shelf, condition=request.condition, seed=request.seed, sampler=request.sampler,
            labelling=request.labelling, device=str(place), watch=told,
        )  # fmt: skip


def _all_units(
    request: Request, run: Run, methods: Sequence[Method | Given], shelf: Path, place: torch.device, batch_size: int,
    watch: Watch, outcome: Outcome,
) -> None:  # fmt: skip
    stems = {setting: request.models(setting, shelf) for setting in request.settings}
    todo = {
        unit: [m for m in methods if not run.part(unit, m.label).exists()]
        for setting in request.settings
        for which in stems[setting]
        for unit in request.units(setting, which)
    }
    todo = {unit: wanted for unit, wanted in todo.items() if wanted}
    loaded: dict[tuple[str, str], Metered] = {}
    for setting, which in dict.fromkeys((unit.setting, unit.model) for unit in todo):
        model = request.known.load(setting, shelf, stems[setting][which])
        model.net.to(place).to(memory_format=devices.memory_format(place))
        loaded[setting, which] = Metered(model, place, batch_size, align=ALIGN)
    pace = {one: _pace(answers, request, one[0]) for one, answers in loaded.items()}
    work = {unit: pace[unit.setting, unit.model] * (unit.stop - unit.start) for unit in todo}
    total, done = sum(work.values()), 0.0
    for unit, wanted in todo.items():
        text = " ".join(filter(None, (unit.setting, unit.model, f"{unit.start + 1}-{unit.stop}")))
        answers = loaded[unit.setting, unit.model]
        answers.passes = answers.asked = 0

        def told(_: int, answers: Answers = answers, unit: Unit = unit, text: str = text, done: float = done) -> None:
            within = answers.passes / max(answers.asked, 1)
            watch((done + within * work[unit]) / total, f"{text}: {answers.doing}")

        answers.watch = told
        try:
            one_unit(request, run, unit, wanted, answers, outcome)
        finally:  # an interrupted run keeps what its finished parts took
            run.manifest["passes"] += answers.passes
            run.keep()
        done += work[unit]
        watch(done / total, text)


def _pace(answers: Answers, request: Request, setting: str) -> float:
    """Seconds of a small forward pass: how long one setting takes beside another."""
    images = request.samples(Unit(setting, 0, 8), answers.device).batch.images
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        answers.predicted(images)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def one_unit(
    request: Request, run: Run, unit: Unit, wanted: Sequence[Method | Given], answers: Metered, outcome: Outcome
) -> None:
    """Explain, score and keep one range of samples for every method that lacks it."""
    samples = request.samples(unit, answers.device)
    if request.target == "predicted":
        samples = samples.explaining(answers.predicted(samples.batch.images))
    truth = samples.region(PRIMARY, request.region)
    if any(isinstance(m, Method) and m.entry.facts.needs_references for m in wanted):
        batch = replace(samples.batch, references=_references(request, unit.setting, answers.device))
        samples = replace(samples, batch=batch)
    answers.spent.clear()
    found: dict[str, Explained | Failure] = attributions(
        [answers.metered(m) for m in wanted if isinstance(m, Method)], answers, samples.batch, truth
    )
    found |= {m.label: m.maps(unit.setting, samples) for m in wanted if isinstance(m, Given)}
    shown = unit.start == 0 and not unit.model
    if shown:
        keep_scene(run, unit.setting, samples)
    for method in wanted:
        explained = found[method.label]
        if isinstance(explained, Failure):
            put(run.failure(unit, method.label), explained.traceback.encode())
            left_out = isinstance(explained.error, UnfitError) and isinstance(method, Method) and method.unasked
            (outcome.left_out if left_out else outcome.failed).setdefault(method.label, explained.message)
            continue
        few = "few photographs" * bool(few_photographs(run.manifest["fixed"]))
        note = "; ".join(filter(None, (_random_note(run, method, answers, samples, explained.maps), few)))
        if shown and not method.condition:
            keep_thumbnails(run, unit.setting, method.label, explained.maps)
        run.failure(unit, method.label).unlink(missing_ok=True)
        _keep(request, run, unit, method, samples, explained, answers, note)  # with it, the unit is finished
        if method.label in answers.spent:
            _charge(run, method.label, answers.spent[method.label])


def _charge(run: Run, label: str, cost: Cost) -> None:
    """Add what one unit of maps took.

    A pass that serves several methods counts for the first of them that asks; the prediction, metrics, and units that
    failed or were interrupted count for none.
    """
    known = run.manifest.setdefault("costs", {}).setdefault(label, {"seconds": 0.0, "passes": 0})
    known["seconds"] += cost.seconds
    known["passes"] += cost.passes


@lru_cache(maxsize=1)
def _references(request: Request, setting: str, device: torch.device) -> Tensor:
    return request.references(setting, device)


def _random_note(run: Run, method: Method | Given, answers: Answers, samples: Samples, maps: Tensor) -> str:
    """'random' for a user's method whose maps differ when it is called twice on its first batch."""
    if isinstance(method, Given) or not method.entry.own:
        return ""
    known = run.manifest["methods"][method.label]
    if "random" not in known:
        known["random"] = not repeatable(method, answers, samples.batch, maps)
        run.keep()
    return "random" if known["random"] else ""


def _keep(
    request: Request, run: Run, unit: Unit, method: Method | Given, samples: Samples, explained: Explained,
    answers: Answers, note: str,
) -> None:  # fmt: skip
    constant = {
        "task": request.known.name, "setting": unit.setting, "model": answers.model.name,
        "method": method.row or method.label, "target": request.target, "condition": method.condition,
    }  # fmt: skip
    blocks, said = [], remarks(explained, note)
    for score in itertools.chain(promise(explained, said), scores(
        explained.maps, method.rendering, samples, answers, metrics=METRICS, definitions=request.definitions,
        region=request.region, said=said,
    )):  # fmt: skip
        named = {"metric": score.metric, "definition": score.definition, "region": score.region}
        values = np.asarray(score.values.cpu(), dtype=np.float64)
        blocks.append(results.block(constant | named, samples.ids, samples.buckets, values, score.notes))
    results.write(run.part(unit, method.label), blocks)
