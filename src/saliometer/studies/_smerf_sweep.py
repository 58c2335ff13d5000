"""How PIOU hangs on K, the number of top pixels (SMERF's Figure 15): one bucket, every method, exact top-K."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
from torch import Tensor

from saliometer import results
from saliometer.engine import device as devices
from saliometer.engine.answer import Answers
from saliometer.engine.bench import ALIGN
from saliometer.engine.request import Request
from saliometer.engine.resolve import resolve
from saliometer.engine.run import Unit
from saliometer.engine.score import Failure, Method, attributions
from saliometer.maps import collapsed, dead, top
from saliometer.types import PRIMARY, Samples, Watch

KS = (100, 142, 185, 228, 271, 314, 357, 400)
SETTING, BUCKET = "complex-cr1", "9"
DEFINITIONS, REGION = ("clean", "authors"), "box"  # of the map; its top pixels are exact in both


def condition(k: int) -> str:
    return f"k({k})"


class Swept(NamedTuple):
    rows: pa.Table
    failed: dict[str, str]  # method -> message


def sweep(
    path: Path, methods: Sequence[str], per_bucket: int, shelf: Path, *, seed: int = 0, device: str = "auto",
    watch: Watch = lambda share, text: None,
) -> dict[str, str]:  # fmt: skip
    """Write the rows, unless they are there; what failed.

    That the models are those of the benchmark beside it is for that to check.
    """
    request, chosen = Request((SETTING,), per_bucket, seed=seed), resolve(list(methods))
    stems = request.models(SETTING, shelf)
    if path.is_file() and _whole(pq.read_table(path), chosen, len(stems)):
        return {}
    place = devices.find(device)
    blocks, failed = [results.SCHEMA.empty_table()], dict[str, str]()
    for number, stem in enumerate(stems.values()):
        model = request.known.load(SETTING, shelf, stem)
        model.net.to(place).to(memory_format=devices.memory_format(place))
        answers = Answers(model, place, devices.BATCH[place.type], align=ALIGN)

        def told(_: int, answers: Answers = answers, number: int = number) -> None:
            share = answers.passes / max(answers.asked, 1)
            watch((number + share) / len(stems), answers.doing)

        answers.watch = told
        found = _swept(request, answers, chosen)
        blocks.append(found.rows)
        failed |= found.failed
    results.write(path, [pa.concat_tables(blocks).unify_dictionaries()])
    return failed


def _whole(rows: pa.Table, methods: Sequence[Method], models: int) -> bool:
    there = set(rows["method"].unique().to_pylist())
    return there == {method.label for method in methods} and len(rows["model"].unique()) == models


def _swept(request: Request, answers: Answers, methods: Sequence[Method]) -> Swept:
    samples = _of_bucket(request.samples(Unit(SETTING, 0, request.count(SETTING)), answers.device))
    samples = samples.explaining(answers.predicted(samples.batch.images))
    batch = replace(samples.batch, references=request.references(SETTING, answers.device))
    made = attributions(methods, answers, batch, samples.region(PRIMARY, REGION))
    failed = {name: found.message for name, found in made.items() if isinstance(found, Failure)}
    blocks = [results.SCHEMA.empty_table()]
    for method in methods:
        found = made[method.label]
        if not isinstance(found, Failure):
            blocks += _rows(method, found.maps, samples, answers.model.name)
    return Swept(pa.concat_tables(blocks), failed)


def _of_bucket(samples: Samples) -> Samples:
    places = [place for place, bucket in enumerate(samples.buckets) if bucket == BUCKET]
    batch = samples.batch
    return replace(
        samples,
        batch=replace(batch, images=batch.images[places], targets=batch.targets[places], seeds=batch.seeds[places]),
        ids=tuple(samples.ids[place] for place in places),
        labels=samples.labels[places],
        objects=samples.objects[places],
        boxes=samples.boxes[places],
        roles=samples.roles[places],
        buckets=tuple(samples.buckets[place] for place in places),
    )


def _rows(method: Method, maps: Tensor, samples: Samples, model: str) -> Iterator[pa.Table]:
    constant = {
        "task": "textbox", "setting": SETTING, "model": model, "method": method.label, "metric": "piou",
        "region": REGION, "target": "predicted",
    }  # fmt: skip
    for definition in DEFINITIONS:
        flat = collapsed(maps, definition, method.rendering)
        empty = dead(flat, definition)
        flat = flat.where(~empty[:, None, None], 0)
        notes = ["scored as empty" if one else "" for one in empty.tolist()]
        for k in KS:
            values = overlap(flat, samples, k).where(~empty, 0)
            named = constant | {"definition": definition, "condition": condition(k)}
            yield results.block(named, samples.ids, samples.buckets, np.asarray(values.cpu()), notes)


def overlap(maps: Tensor, samples: Samples, k: int) -> Tensor:
    """(N,) float64: intersection over union of the k highest pixels and the objects that decide."""
    truth = samples.region(PRIMARY, REGION)
    chosen = top(maps, torch.full((len(maps),), k, device=maps.device), samples.batch.seeds)
    return (chosen & truth).sum((1, 2)).double() / (chosen | truth).sum((1, 2)).clamp(min=1)
