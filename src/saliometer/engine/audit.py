"""The audit: every method on a user's own model and images, judged by the battery of metrics, image by image."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy.typing as npt
import torch
from torch import Tensor, nn

from saliometer.engine import device as devices
from saliometer.engine.answer import Answers
from saliometer.engine.asked import (
    TARGETS,
    UNIT,
    UNIT_CUDA,
    Request,
    check_measures,
    methods_asked,
    metrics_asked,
)
from saliometer.engine.audit_maps import Made
from saliometer.engine.audit_units import run_units
from saliometer.engine.audit_work import Work
from saliometer.engine.bench import ALIGN
from saliometer.engine.checkpoints import Checkpoints
from saliometer.engine.class_names import class_names, names_in
from saliometer.engine.compared import Comparison
from saliometer.engine.cose import Paired
from saliometer.engine.cose import check as check_pairs
from saliometer.engine.estimate import Estimate, try_parameters
from saliometer.engine.forward import forward_of
from saliometer.engine.judged import Judged
from saliometer.engine.mprt import Randomised
from saliometer.engine.mprt import check as check_randomised
from saliometer.engine.own import OwnMethod
from saliometer.engine.ready import Images, Loaded, batch_size_for, check_labels, model_given, model_ready, source_given
from saliometer.engine.resolve import Asked, free
from saliometer.engine.run import Run, Unit, begun, key
from saliometer.engine.score import Method
from saliometer.engine.shared import Memory
from saliometer.engine.source import Source, mark_of
from saliometer.engine.thumbs import PHOTOS, keep_classes
from saliometer.maps import NORMALISATIONS
from saliometer.registry import one_of
from saliometer.sanity.randomise import REFERENCES as STATISTICS
from saliometer.types import Model, Watch


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
        work = Work(request, outcome, source, answers, measures, compared, references, remembered)
        run_units(work, todo, tell, watch)
    return outcome


def _open(run: Run, unit: Unit, method: Method | Made) -> bool:
    """Whether it is still to be done: nothing is there, or a metric failed and may not fail again."""
    return not run.part(unit, method.label).exists() or run.failure(unit, method.label).exists()


def _enlist(run: Run, methods: Sequence[Method | Made], facts: Mapping[str, Any], source: Source) -> None:
    for method in methods:
        known = run.manifest["methods"]
        if known.get(method.label, {}).get("key") != method.key:
            known[method.label] = {"key": method.key, "own": method.own, "control": method.control}
    run.manifest["model"] = json.loads(json.dumps(facts))  # as it will be read
    run.manifest["skipped"] = dict(source.skipped)
    run.manifest["labelled"] = source.labels is not None
    run.keep()
