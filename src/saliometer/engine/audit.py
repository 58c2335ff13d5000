"""The audit: every method on a user's own model and images, judged by the battery of metrics, image by image."""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import torch
from torch import Tensor, nn

from saliometer import results
from saliometer.engine import device as devices
from saliometer.engine.answer import Answers
from saliometer.engine.asked import (
    REFERENCES,
    TARGETS,
    TASK,
    UNIT,
    UNIT_CUDA,
    Request,
    check_measures,
    methods_asked,
    metrics_asked,
)
from saliometer.engine.audit_maps import Made
from saliometer.engine.battery import Cost, Measure, Shelf, measured
from saliometer.engine.bench import ALIGN
from saliometer.engine.checkpoints import Checkpoints
from saliometer.engine.class_names import class_names, names_in
from saliometer.engine.compared import Comparison, Rows
from saliometer.engine.cose import Paired
from saliometer.engine.cose import check as check_pairs
from saliometer.engine.estimate import Estimate, estimate, try_parameters
from saliometer.engine.forward import forward_of
from saliometer.engine.judged import Judged
from saliometer.engine.mprt import Randomised
from saliometer.engine.mprt import check as check_randomised
from saliometer.engine.own import OwnMethod
from saliometer.engine.ready import Images, Loaded, batch_size_for, check_labels, model_given, model_ready, source_given
from saliometer.engine.resolve import Asked, free
from saliometer.engine.run import Run, Unit, begun, key
from saliometer.engine.score import Failure, Method, attributions, promise, remarks
from saliometer.engine.shared import Memory
from saliometer.engine.source import Source, mark_of
from saliometer.engine.thumbs import PHOTOS, keep_classes, keep_pairs, keep_photos, keep_sprites
from saliometer.files import put
from saliometer.graph import UnfitError
from saliometer.maps import NORMALISATIONS
from saliometer.registry import one_of
from saliometer.sanity.randomise import REFERENCES as STATISTICS
from saliometer.types import Explained, Model, Samples, Watch


@torch.inference_mode(False)  # whatever the caller is in, copies of the network can be asked for gradients
def audit(
    model: str | nn.Module | Model | Loaded,
    images: Images,
    labels: Tensor | Sequence[int] | Path | str | None = None,
    *,
    methods: Asked | Sequence[Asked] | Mapping[str, OwnMethod] = (),
    metrics: str | Sequence[str] = (),
    target: str = "predicted",
    full: bool = False,
    preset: str = "",
    controls: bool = True,
    normalisations: str | Sequence[str] = ("abs_max_minmax",),
    constant: str = "invalid",
    maps: Mapping[str, Path | str | Tensor | npt.NDArray[Any]] | None = None,
    masks: Tensor | Path | str | None = None,
    references: Tensor | None = None,
    checkpoints: Checkpoints | None = None,
    grains: Sequence[float] = (),
    remembered: Memory | None = None,
    weights: Path | str | None = None,
    mean: float | Sequence[float] | None = None,
    std: float | Sequence[float] | None = None,
    size: int = 0,
    resize: int = 0,
    classes: int = 0,
    output: str = "auto",
    multilabel: bool = False,
    name: str = "",
    pictures: int = PHOTOS,
    limit: int = 0,
    seed: int = 0,
    device: str = "auto",
    batch_size: int = 0,
    memory: float = 0.0,
    out: Path | str | None = None,
    tell: Callable[[Estimate, Source, int], None] = lambda estimate, source, methods: None,
    watch: Watch = lambda share, text: None,
) -> Judged:
    """Judge saliency methods on your own model and images.

    `model` is a network, or a name as `saliometer audit --model` takes it; `images` a tensor (N, C, H, W) as the model
    takes them, a DataLoader, or a place (folder, CSV, data set). `target` is the class that is explained and scored:
    predicted, label, or the least probable. `references` are images that methods may compare with, the images
    themselves by default; `remembered` lets audits of other targets on the same images share passes. `masks` say where
    the object is, for pointing_game and iou. `checkpoints` are other states of the model's training for cose: state
    dicts, files, folders or patterns; `grains` the sigmas in pixels of smoothed noise that joins its controls. A metric
    may name its own normalisation, `average_drop@signed_max_minmax`. Without `controls` only those asked for come
    along. The same call with the same `out` goes on where it was.
    """
    one_of("target", target, TARGETS)
    metrics, normalisations = ((one,) if isinstance(one, str) else one for one in (metrics, normalisations))
    for word in normalisations:
        one_of("normalisation", word, NORMALISATIONS)
    if not isinstance(maps, Mapping | None):
        raise ValueError(f"maps are of type {type(maps).__name__}: wanted them by name, {{'mine': maps}}")
    devices.check_batch(batch_size)
    place = devices.find(device)
    loaded = model_given(model, weights, mean, std, size, output, resize, classes)
    facts = loaded.facts
    source = source_given(images, labels, masks, loaded.preprocessing, limit, name)
    if target == "label" and source.labels is None:
        raise ValueError("target 'label' wants labels, but the images came without: give labels, or target 'predicted'")
    chosen = methods_asked(methods, preset, full, controls)
    asked = tuple(metrics) or metrics_asked(full, source)
    request = Request(
        str(facts["name"]), source.name, len(source), tuple(dict.fromkeys(asked)), tuple(dict.fromkeys(normalisations)),
        constant, target, seed, source.condition, pictures,
    )  # fmt: skip
    asked_for = request.measures()
    measures = [one for one in asked_for if not one.entry.facts.pairs]
    of_weights = [one for one in asked_for if one.entry.facts.randomises]
    of_pairs = [one for one in asked_for if one.entry.facts.pairs and one not in of_weights]
    check_measures(measures, source)
    if checkpoints is not None and not of_pairs:
        raise ValueError("checkpoints are for the metric 'cose', which was not asked for: add it to the metrics")
    ready = model_ready(loaded, source, multilabel, place)
    names = class_names(model, str(facts["name"])) if isinstance(model, str) else loaded.names
    source = check_labels(source, int(facts["classes"]), facts, target, names)
    given = [Made.read(free(label), found, source) for label, found in (maps or {}).items()]
    first = source.samples(0, min(UNIT, len(source)), seed, place)
    trial = replace(first, batch=replace(first.batch, references=first.batch.images))
    try_parameters(measures, ready, trial, int(facts["classes"]))
    room = batch_size or batch_size_for(ready, first.batch.images[:1], place, memory)
    forward = forward_of(ready, first.batch.images[:1])
    answers = Answers(ready, place, room, align=min(ALIGN, room), forward=forward)
    compared: list[Comparison] = []
    if of_pairs:
        check_pairs(of_pairs, target, source.labels is not None, first.batch.images.shape)
        compared.append(Paired(of_pairs, answers, checkpoints, seed, int(facts["classes"]), grains))
    if of_weights:
        check_randomised(of_weights)
        others = source.references(STATISTICS, seed, place) if references is None else references.to(place)
        compared.append(Randomised(of_weights, answers, first.batch.images[:1], others, seed, target))
    facts["warnings"] = [*facts["warnings"], *(words for one in compared for words in one.said)]
    fixed = {
        "images": source.fingerprint,
        "weights": facts["sha256"],
        "unit": UNIT,
        "input": facts.get("preprocessing", {}),
        "output": [facts.get("output", "logit"), ready.link],
        "references": "" if references is None else mark_of(references.detach().float()),
        **source.truth_mark,
        **({"models": marks} if (marks := {k: v for one in compared for k, v in one.marks.items()}) else {}),
    }
    folder = Path(out) if out else Path("runs") / f"audit-{key(request.manifest, fixed)[:8]}"
    fixed["unit"] = begun(folder).get("unit", UNIT if place.type == "cpu" else UNIT_CUDA)
    run = Run(folder, request.manifest, fixed)
    named = {one.label for one in chosen}
    beside = [control for one in compared if controls for control in one.controls if control.label not in named]
    every: list[Method | Made] = [*chosen, *given, *beside]
    _enlist(run, every, facts, source)
    keep_classes(run, names or names_in(source))
    outcome = Judged(run, [one.label for one in every])
    for one, measure in product(given, asked_for):
        if measure.entry.facts.reexplains or measure.entry.facts.pairs:
            why = "it calls the method again, and there are only maps"
            outcome.left_out[f"{one.label}, {measure.entry.name}"] = why
    units = request.units(fixed["unit"])
    todo = {unit: wanted for unit in units if (wanted := [one for one in every if _open(run, unit, one)])}
    if todo:
        _audit_units(
            request, run, todo, answers, source, measures, compared, outcome, references, remembered, tell, watch
        )  # fmt: skip
    return outcome


def _open(run: Run, unit: Unit, method: Method | Made) -> bool:
    """Whether it is still to be done: nothing is there, or a metric failed and may not fail again."""
    return not run.part(unit, method.label).exists() or run.failure(unit, method.label).exists()


def _audit_units(
    request: Request, run: Run, todo: Mapping[Unit, Sequence[Method | Made]], answers: Answers, source: Source,
    measures: Sequence[Measure], compared: Sequence[Comparison], outcome: Judged, references: Tensor | None,
    memory: Memory | None, tell: Callable[[Estimate, Source, int], None], watch: Watch,
) -> None:  # fmt: skip
    working: dict[Method | Made, int] = {}  # for how many images each is wanted
    for unit, wanted in todo.items():
        for one in wanted:
            working[one] = working.get(one, 0) + unit.stop - unit.start
    begin = next(iter(todo))
    trial = _targeted(
        request, source.samples(begin.start, min(begin.stop, begin.start + 4), request.seed, answers.device), answers
    )
    left = sum(unit.stop - unit.start for unit in todo)
    again, predicted, beside = (
        sum(getattr(one, word) for one in compared) for word in ("again", "predicted", "beside")
    )
    expected = estimate(working, measures, answers, trial, left, again, predicted, beside)
    tell(expected, source, len(working))
    work = {label: max(seconds, 1e-6) for label, seconds in expected.each.items()}
    total = sum((unit.stop - unit.start) * work.get(one.label, 1e-6) for unit, wanted in todo.items() for one in wanted)
    done = 0.0
    for unit, wanted in todo.items():
        samples = _targeted(request, source.samples(unit.start, unit.stop, request.seed, answers.device), answers)
        to_mean = any("mean" in dict(measure.spec.params).values() for measure in measures)
        if to_mean or any(isinstance(one, Method) and one.entry.facts.needs_references for one in wanted):
            if references is None:
                references = source.references(REFERENCES, request.seed, answers.device)
            others = references.to(answers.device)
            samples = replace(samples, batch=replace(samples.batch, references=others))
        answers.shared = None
        if memory is not None:
            chunk = f"{answers.model.fingerprint} {request.seed} {source.fingerprint} {unit.start}"
            answers.shared = memory.at(chunk, _classes(samples, answers))
        shelf = Shelf(answers)
        if unit.start < request.pictures:
            keep_photos(run, unit, samples, answers.model)
        for one in wanted:
            images = unit.stop - unit.start
            answers.passes, share = 0, images * work.get(one.label, 1e-6) / total
            each = max(1.0, images * expected.passes_each.get(one.label, 1.0))

            def told(_: int, done: float = done, share: float = share, each: float = each) -> None:
                watch(done + share * min(1.0, answers.passes / each), f"{answers.doing}")

            answers.watch = told
            _one_method(request, run, unit, one, samples, shelf, measures, compared, outcome)
            done += share
            run.manifest["passes"] += answers.passes
            run.keep()
            watch(done, f"{one.label}: images {unit.start + 1}-{unit.stop}")


def _classes(samples: Samples, answers: Answers) -> Tensor:
    """(3, N): label, predicted and least probable class; the label is the predicted one where there is none."""
    most, least = answers.extremes(samples.batch.images)
    return torch.stack((samples.labels.where(samples.labels >= 0, most), most, least))


def _targeted(request: Request, samples: Samples, answers: Answers) -> Samples:
    """The samples with the class that is explained: the label unless another is asked for."""
    if request.target == "label":
        return samples
    most, least = answers.extremes(samples.batch.images)
    return samples.explaining(most if request.target == "predicted" else least)


def _one_method(
    request: Request, run: Run, unit: Unit, method: Method | Made, samples: Samples, shelf: Shelf,
    measures: Sequence[Measure], compared: Sequence[Comparison], outcome: Judged,
) -> None:  # fmt: skip
    """Explain one chunk, judge the maps, keep rows; with the rows the chunk is finished."""
    timed = Timer(shelf.answers)
    made_elsewhere = isinstance(method, Made)
    if isinstance(method, Made):
        found: Explained | Failure = method.maps(samples)
    else:
        found = attributions([method], shelf.answers, samples.batch)[method.label]
    if isinstance(found, Failure):
        put(run.failure(unit, method.label), found.traceback.encode())
        left_out = isinstance(found.error, UnfitError) and isinstance(method, Method) and method.unasked
        (outcome.left_out if left_out else outcome.failed).setdefault(method.label, found.message)
        return
    said = remarks(found)
    constant = {
        "task": TASK, "setting": unit.setting, "model": request.model, "method": method.label, "target": request.target,
        "condition": request.condition, "region": "",
    }  # fmt: skip
    blocks, costs = [], {"maps": timed.cost()}
    for score in promise(found, said):
        blocks.append(_block(constant, score.metric, score.definition, samples, score.values, score.notes))
    subject = method if isinstance(method, Method) else method.as_method()
    broken: list[str] = []
    fitting = [one for one in measures if not (made_elsewhere and one.entry.facts.reexplains)]
    owners = [one for one in compared if method in one.controls]  # whose own control it is
    fitting = [] if owners else fitting
    for measure, scored, cost in measured(fitting, subject, found.maps, samples, shelf, said):
        metric = measure.entry.name
        if isinstance(scored, Failure):
            outcome.failed.setdefault(f"{method.label}, {metric}", scored.message)
            broken.append(f"{metric}: {scored.traceback}")
            nothing = torch.full((len(samples),), float("nan"))
            notes = [f"failed: {scored.message}"] * len(samples)
            blocks.append(_block(constant, metric, measure.definition, samples, nothing, notes))
            continue
        for one in scored:
            blocks.append(_block(constant, one.metric, one.definition, samples, one.values, one.notes))
        costs[f"{metric} {measure.definition}"] = cost
    for comparison in () if made_elsewhere else owners or compared:
        timed, metric = Timer(shelf.answers), comparison.name
        try:
            rows = comparison.rows(subject, found.maps, samples)
            blocks += _pair_blocks(constant, samples, rows)
            shown = comparison.pictures(subject, found.maps, rows) if unit.start == 0 and request.pictures else {}
            if shown and not method.control:
                keep_pairs(run, unit, method.label, shown, samples.ids)
            costs[metric] = timed.cost()
        except MemoryError:
            raise
        except Exception as error:
            failed = Failure.of(error)
            outcome.failed.setdefault(f"{method.label}, {metric}", failed.message)
            broken.append(f"{metric}: {failed.traceback}")
    blocks += [_cost_block(constant, unit, what, cost) for what, cost in costs.items()]
    if broken:
        put(run.failure(unit, method.label), "\n".join(broken).encode())
    else:
        run.failure(unit, method.label).unlink(missing_ok=True)
    if unit.start < request.pictures:
        keep_sprites(run, unit, method.label, found.maps)
    results.write(run.part(unit, method.label), blocks)


class Timer:
    """Seconds and passes since it was made."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._start, self._passes = time.perf_counter(), answers.passes

    def cost(self) -> Cost:
        if self._answers.device.type == "cuda":
            torch.cuda.synchronize()
        return Cost(time.perf_counter() - self._start, self._answers.passes - self._passes)


def _block(
    constant: Mapping[str, str], metric: str, definition: str, samples: Samples, values: Tensor, notes: Sequence[str]
) -> Any:
    named = {**constant, "metric": metric, "definition": definition}
    return results.block(named, samples.ids, samples.buckets, np.asarray(values.cpu(), dtype=np.float64), notes)


def _pair_blocks(constant: Mapping[str, str], samples: Samples, rows: Sequence[Rows]) -> list[Any]:
    """One block for each definition; the metric says what the prediction did, the condition what was changed."""
    found, before = [], constant["condition"]
    for definition in dict.fromkeys(one.definition for one in rows):
        some = [one for one in rows if one.definition == definition]
        values = np.array([one.values for one in some], np.float64).flatten()
        metrics, conditions, notes = (
            [text for one in some for text in getattr(one, name)] for name in ("metrics", "conditions", "notes")
        )
        if before:
            conditions = [" ".join(filter(None, (before, condition))) for condition in conditions]
        named = {**constant, "metric": "", "definition": definition}
        ids, buckets = (list(texts) * len(some) for texts in (samples.ids, samples.buckets))
        block = results.block(named, ids, buckets, values, notes)
        found.append(results.with_texts(results.with_texts(block, "metric", metrics), "condition", conditions))
    return found


def _cost_block(constant: Mapping[str, str], unit: Unit, what: str, cost: Cost) -> Any:
    """Seconds, passes and passes saved as rows: the definition says what for, the sample which images."""
    span, blocks = f"{unit.start}-{unit.stop}", []
    for word, value in (("seconds", cost.seconds), ("passes", cost.passes), ("passes_shared", cost.shared)):
        named = {**constant, "metric": f"cost.{word}", "definition": what}
        blocks.append(results.block(named, [span], [""], np.array([float(value)]), [""]))
    return pa.concat_tables(blocks)


def _enlist(run: Run, methods: Sequence[Method | Made], facts: Mapping[str, Any], source: Source) -> None:
    for method in methods:
        known = run.manifest["methods"]
        if known.get(method.label, {}).get("key") != method.key:
            known[method.label] = {"key": method.key, "own": method.own, "control": method.control}
    run.manifest["model"] = json.loads(json.dumps(facts))  # as it will be read
    run.manifest["skipped"] = dict(source.skipped)
    run.manifest["labelled"] = source.labels is not None
    run.keep()
