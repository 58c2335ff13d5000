"""The ground-truth benchmark: every method on seven models whose reasoning is known, scored per image."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from saliometer import registry, results
from saliometer.engine import device as devices
from saliometer.engine import own, shipped
from saliometer.engine.answer import Answers
from saliometer.engine.given import Given
from saliometer.engine.run import Run, Unit, key, write_text
from saliometer.engine.score import Failure, Method, attributions, repeatable, scores
from saliometer.engine.thumbs import keep_scene, keep_thumbnails
from saliometer.engine.train import train
from saliometer.maps import DEFINITIONS
from saliometer.registry import Spec, one_of
from saliometer.summary import oddities, problems
from saliometer.tasks._glyphs import glyphs
from saliometer.tasks.textbox import SETTINGS, VERSION, cycle, textbox
from saliometer.types import PRIMARY, Samples

TASK, METRICS = "textbox", ("pafl", "safl", "piou", "siou", "pmafl", "smafl", "success", "failure")
REGIONS, TARGETS = ("box", "ink"), ("predicted", "label")
ALIGN = 4  # with passes of a multiple of 4 images, maps on the CPU come out the same to the bit for any batch size
UNIT = 128  # samples that are computed and kept together
Watch = Callable[[float, str], None]  # (share done, what is running)
Asked = str | own.OwnMethod


@dataclass(frozen=True)
class Request:
    """What is to be measured; methods can join a run later, the rest is settled when it starts."""

    settings: tuple[str, ...] = SETTINGS
    per_bucket: int = 20
    limit: int = 0  # the most samples of a setting; 0 for all
    definitions: tuple[str, ...] = ("clean",)
    region: str = "box"
    target: str = "predicted"
    seed: int = 0

    def __post_init__(self) -> None:
        for kind, chosen, known in (
            ("setting", self.settings, SETTINGS),
            ("definition", self.definitions, DEFINITIONS),
            ("region", (self.region,), REGIONS),
            ("target", (self.target,), TARGETS),
        ):
            for name in chosen:
                one_of(kind, name, known)
            if not chosen:
                raise ValueError(f"no {kind} given: wanted one or more of {', '.join(known)}")
        if self.per_bucket < 1 or self.limit < 0:
            raise ValueError(f"per-bucket is {self.per_bucket} and limit {self.limit}: wanted 1 or more, 0 or more")
        if self.region == "ink" and "authors" in self.definitions:
            raise ValueError("definition 'authors' exists for region 'box' only: the authors scored bounding boxes")

    def count(self, setting: str) -> int:
        whole = self.per_bucket * len(cycle(setting, "test"))
        return min(whole, self.limit) if self.limit else whole

    def units(self, setting: str) -> list[Unit]:
        count = self.count(setting)
        return [Unit(setting, start, min(start + UNIT, count)) for start in range(0, count, UNIT)]

    def samples(self, unit: Unit, device: torch.device | str = "cpu") -> Samples:
        return textbox(unit.setting, start=unit.start, count=unit.stop - unit.start, seed=self.seed, device=str(device))


@dataclass
class Outcome:
    """A finished benchmark: its run, and what went wrong with the methods that were asked for."""

    run: Run
    failed: dict[str, str] = field(default_factory=dict)  # method -> message

    def broken(self) -> bool:
        """Whether any map was NaN: the numbers of that method are not to be trusted."""
        return any("nan map" in counts for counts in oddities(self.run.rows()).values())

    def problems(self) -> list[str]:
        """What a reader must know of maps that came back odd, in words."""
        return problems(self.run.rows())


def resolve(asked: Sequence[Asked]) -> list[Method]:
    """The methods asked for, or all known ones if none or only the user's own are; controls always come along."""
    chosen = [one_method(one) for one in asked]
    if all(method.entry.own for method in chosen):
        chosen += [one_method(name) for name in registry.methods if not registry.methods[name].facts.control]
    named = {method.spec.name for method in chosen}
    chosen += [one_method(n) for n in registry.methods if registry.methods[n].facts.control and n not in named]
    labels = [method.label for method in chosen]
    twice = {label for label in labels if labels.count(label) > 1}
    if twice:
        raise ValueError(f"two methods are called {', '.join(sorted(twice))}: rename one, or ask for it once")
    return chosen


def one_method(asked: Asked) -> Method:
    """A method by name, spec string, place in a file or module, or as a callable."""
    if not isinstance(asked, str):
        name = getattr(asked, "__name__", type(asked).__name__)
        return _own(asked, Spec(name))
    spec = Spec.parse(asked)
    if own.is_own(spec.name):
        return _own(own.load(spec.name), spec)
    entry = registry.methods[spec.name]
    spec.check("method", entry)
    return Method(str(spec), entry, spec, key(str(spec)))


def _own(function: own.OwnMethod, spec: Spec) -> Method:
    label = own.label(spec)
    if label in registry.methods:
        raise ValueError(
            f"'{label}' is the name of a method of saliometer: rename yours, so that tables tell them apart"
        )
    entry = own.entry(function, label)
    spec.check("method", entry)
    return Method(label, entry, spec, key(label, own.fingerprint(function)))


def bench(
    methods: Asked | Sequence[Asked] = (),
    *,
    settings: Iterable[str] = SETTINGS,
    per_bucket: int = 20,
    limit: int = 0,
    definitions: Iterable[str] = ("clean",),
    region: str = "box",
    target: str = "predicted",
    seed: int = 0,
    device: str = "auto",
    out: Path | str | None = None,
    maps: Mapping[str, Path | str] | None = None,
    models: Path | str | None = None,
    retrain: bool = False,
    batch_size: int = 0,
    watch: Watch = lambda share, text: None,
) -> Outcome:
    """Score methods against models whose reasoning is known, beside all known methods and the controls.

    A method is a name, `smooth_grad(draws=50)`, `file.py:name`, or a callable (model, images, targets) -> maps. `maps`
    names files of maps made elsewhere. The same call with the same `out` goes on where it was.
    """
    request = Request(tuple(settings), per_bucket, limit, tuple(definitions), region, target, seed)
    given = [Given.read(name, Path(path), request) for name, path in (maps or {}).items()]
    asked = [methods] if isinstance(methods, str) or callable(methods) else list(methods)
    chosen = resolve(asked)
    clash = {one.label for one in given} & {method.label for method in chosen}
    if clash:
        raise ValueError(f"maps are named {', '.join(sorted(clash))} like a method: give them another name")
    place = devices.find(device)
    folder = Path(out) if out else default_folder(request)
    weights = Path(models) if models else shipped.FOLDER
    if retrain:
        weights = folder / "models"
    run = Run(folder, vars(request), fixed(request, weights, retrain))
    run.manifest.setdefault("device", str(place))
    run.manifest.setdefault("batch", batch_size or devices.BATCH[place.type])
    both: list[Method | Given] = [*chosen, *given]
    _enlist(run, both)
    if retrain:
        _retrain(request, weights, place, watch)
    outcome = Outcome(run)
    _all_units(request, run, both, weights, place, batch_size, watch, outcome)
    run.keep()
    return outcome


def _enlist(run: Run, methods: Sequence[Method | Given]) -> None:
    """Add methods to the run; one whose code has changed is told apart by its key and starts anew."""
    known = run.manifest["methods"]
    for method in methods:
        if known.get(method.label, {}).get("key") != method.key:
            known[method.label] = {"key": method.key, "own": method.own, "control": method.control}
    run.keep()


def default_folder(request: Request) -> Path:
    """Depends on what is measured but not on the methods, so that a new method finds the others done."""
    return Path("runs") / f"{TASK}-{key(vars(request))[:8]}"


def fixed(request: Request, weights: Path, retrain: bool = False) -> dict[str, Any]:
    """What the request meets: the benchmark's version in full."""
    hashes = {s: "retrained" if retrain else shipped.card(s, weights)["sha256"] for s in request.settings}
    return {
        "task": VERSION,
        "sampler": "disjoint",
        "glyphs": key(glyphs().tolist())[:16],
        "weights": hashes,
        "unit": UNIT,
    }


def _retrain(request: Request, weights: Path, place: torch.device, watch: Watch) -> None:
    for number, setting in enumerate(request.settings):
        if not (weights / f"{setting}.json").exists():

            def told(share: float, text: str, number: int = number) -> None:
                watch((number + share) / len(request.settings), f"training {text}")

            train(setting, weights, seed=request.seed, device=str(place), watch=told)


def _all_units(
    request: Request, run: Run, methods: Sequence[Method | Given], weights: Path, place: torch.device, batch_size: int,
    watch: Watch, outcome: Outcome,
) -> None:  # fmt: skip
    todo = {
        unit: [m for m in methods if not run.part(unit, m.label).exists()]
        for setting in request.settings
        for unit in request.units(setting)
    }
    todo = {unit: wanted for unit, wanted in todo.items() if wanted}
    loaded = {setting: shipped.load(setting, weights) for setting in dict.fromkeys(unit.setting for unit in todo)}
    for model in loaded.values():
        model.net.to(place).to(memory_format=devices.memory_format(place))
    pace = {setting: _pace(Answers(model, place), request, setting) for setting, model in loaded.items()}
    work = {unit: pace[unit.setting] * (unit.stop - unit.start) for unit in todo}
    total, done = sum(work.values()), 0.0
    for unit, wanted in todo.items():
        text = f"{unit.setting}, images {unit.start + 1} to {unit.stop}"
        answers = Answers(loaded[unit.setting], place, batch_size or run.manifest["batch"], align=ALIGN)

        def told(_: int, answers: Answers = answers, unit: Unit = unit, text: str = text, done: float = done) -> None:
            within = answers.passes / max(answers.asked, 1)
            watch((done + within * work[unit]) / total, f"{text}: {answers.doing}")

        answers.watch = told
        one_unit(request, run, unit, wanted, answers, outcome)
        done += work[unit]
        run.manifest["passes"] += answers.passes
        run.keep()
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
    request: Request, run: Run, unit: Unit, wanted: Sequence[Method | Given], answers: Answers, outcome: Outcome
) -> None:
    """Explain, score and keep one range of samples for every method that lacks it."""
    samples = request.samples(unit, answers.device)
    if request.target == "predicted":
        samples = samples.explaining(answers.predicted(samples.batch.images))
    truth = samples.region(PRIMARY, request.region)
    found: dict[str, Tensor | Failure] = attributions(
        [m for m in wanted if isinstance(m, Method)], answers, samples.batch, truth
    )
    found |= {m.label: m.maps(unit.setting, samples) for m in wanted if isinstance(m, Given)}
    if unit.start == 0:
        keep_scene(run, unit.setting, samples)
    for method in wanted:
        maps = found[method.label]
        if isinstance(maps, Failure):
            write_text(run.failure(unit, method.label), maps.traceback)
            outcome.failed.setdefault(method.label, maps.message)
            continue
        note = _random_note(run, method, answers, samples, maps)
        _keep(request, run, unit, method, samples, maps, answers, note)
        if unit.start == 0:
            keep_thumbnails(run, unit.setting, method.label, maps)
        run.failure(unit, method.label).unlink(missing_ok=True)


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
    request: Request, run: Run, unit: Unit, method: Method | Given, samples: Samples, maps: Tensor, answers: Answers,
    note: str,
) -> None:  # fmt: skip
    constant = {
        "task": TASK, "setting": unit.setting, "model": answers.model.name, "method": method.label,
        "target": request.target, "condition": "",
    }  # fmt: skip
    blocks = []
    for score in scores(
        maps, method.rendering, samples, answers, metrics=METRICS, definitions=request.definitions,
        region=request.region, note=note,
    ):  # fmt: skip
        named = {"metric": score.metric, "definition": score.definition, "region": score.region}
        values = np.asarray(score.values.cpu(), dtype=np.float64)
        blocks.append(results.block(constant | named, samples.ids, samples.buckets, values, score.notes))
    results.write(run.part(unit, method.label), blocks)
