"""The original check on the study's own models: layers drawn anew in cascades and alone (sanity.md 1 and 3.7)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from saliometer import results
from saliometer.engine.answer import Answers
from saliometer.engine.memory import at_once
from saliometer.engine.resolve import one_method
from saliometer.engine.run import Run, Unit
from saliometer.engine.score import Failure, attributions
from saliometer.files import put
from saliometer.graph import Network
from saliometer.registry import Spec
from saliometer.sanity import controls
from saliometer.sanity.entropy import entropy
from saliometer.sanity.layers import layers_in_order
from saliometer.sanity.plan import stages
from saliometer.sanity.randomise import Weights
from saliometer.sanity.similarity import similarity
from saliometer.seeds import fork, forks, normal
from saliometer.studies._yona_evidence import CONTROLS, ORDERS
from saliometer.studies._yona_measure import SECONDARY
from saliometer.studies._yona_parts import CHEAP, passes, pending
from saliometer.studies._yona_rows import Rows, model
from saliometer.types import Batch, Model, Watch

SHAKEN = 0.1  # of an image's range: the noise of smooth MPRT
NOISE = "fresh_noise"
BESIDE = ("edge", NOISE)  # the controls that are shown where they land
State = frozenset[int]  # the layers that are drawn anew


@dataclass(frozen=True)
class Extent:
    """How much of the classical check is run."""

    models: int
    images: int
    draws: int
    smooth: int  # noisy copies of an image


def measure_curves(
    run: Run, task: str, models: Sequence[Model], batch: Batch, labels: Sequence[str], extent: Extent, seed: int,
    device: torch.device, timed: Callable[[str], Any], watch: Watch,
) -> None:  # fmt: skip
    """Every method on the same states; what is there is not run again."""
    unit = Unit(task, 0, extent.images)
    todo = pending(run, unit, labels)
    if not todo:
        return
    with timed(f"curves {task}: {', '.join(todo)}"):
        some = batch[: extent.images]
        rows = {label: Rows(label) for label in todo}
        failed: dict[str, Failure] = {}
        for number, one in enumerate(models[: extent.models]):
            watch(number / extent.models, f"classical curves of {task}, model {number + 1} of {extent.models}")
            asked = [label for label in todo if label not in failed]
            failed |= _curves(rows, task, number, one, some, asked, extent, seed, device)
    for label, failure in failed.items():
        put(run.failure(unit, label), failure.traceback.encode())
    for label in todo:
        if label not in failed:
            run.failure(unit, label).unlink(missing_ok=True)
            results.write(run.part(unit, label), [rows[label].table()])


def _curves(
    rows: Mapping[str, Rows], task: str, number: int, one: Model, batch: Batch, labels: Sequence[str], extent: Extent,
    seed: int, device: torch.device,
) -> dict[str, Failure]:  # fmt: skip
    """One trained model: all states, each explained once by all methods."""
    layers = layers_in_order(one.net, batch.images[:1], by="layer")
    plan = {order: stages(order, [layer.name for layer in layers]) for order in ORDERS}
    upward = {stage.chosen for stage in plan["bottom_up"]}
    who = model(task, number)
    seen = _Seen(one, batch, labels, who, device)
    whole = seen.maps("")
    failed = {label: maps for label, maps in whole.items() if isinstance(maps, Failure)}
    known = {label: maps for label, maps in whole.items() if isinstance(maps, Tensor)}
    measures = [similarity(name, batch.images.shape) for name in SECONDARY]
    read = {(label, m.name): m.read(maps) for label, maps in known.items() for m in measures}
    shaken = _Shaken(seen, extent.smooth, seed)
    calm = {label: measures[0].read(maps) for label, maps in shaken.maps("").items()}
    alike: dict[tuple[str, str, str], dict[State, list[Tensor]]] = {}  # label, measure, variant -> by state
    entropies: dict[str, list[Tensor]] = {}
    with Weights(one.net, layers, seed=fork("classical", seed, task, number)) as weights:
        for draw in range(extent.draws):
            for state in dict.fromkeys(stage.chosen for some in plan.values() for stage in some):
                weights.become(state, draw)
                Network(one.net, one.logits).look_again()
                for label, maps in seen.maps(f"{sorted(state)} {draw}").items():
                    if not isinstance(maps, Tensor) or label not in known:
                        failed |= {label: maps} if isinstance(maps, Failure) else {}
                        continue
                    for m in measures:
                        value = m.compare(read[label, m.name], m.read(maps)).nanmean()
                        alike.setdefault((label, m.name, "plain"), {}).setdefault(state, []).append(value)
                    if len(state) == len(layers):
                        entropies.setdefault(label, []).append(complexity_gain(known[label], maps).nanmean())
                for label, maps in shaken.maps(f"{sorted(state)} {draw}").items() if state in upward else ():
                    value = measures[0].compare(calm[label], measures[0].read(maps)).nanmean()
                    alike.setdefault((label, measures[0].name, "smooth"), {}).setdefault(state, []).append(value)
    for (label, measure, variant), by_state in alike.items():
        for order in ORDERS if variant == "plain" else ("bottom_up",):
            for stage in plan[order]:
                condition = str(Spec(order, (("layer", stage.layer), ("stage", stage.number))))
                mean = float(torch.stack(by_state[stage.chosen]).nanmean())
                rows[label].add(task, who, measure, mean, definition=variant, condition=condition)
    for label, values in entropies.items():
        rows[label].add(task, who, "efficient", float(torch.stack(values).nanmean()))
    return failed


class _Seen:
    """A model as it is now, and all methods' maps of the same images, each explaining its own prediction."""

    def __init__(self, one: Model, batch: Batch, labels: Sequence[str], who: str, device: torch.device) -> None:
        self.model, self.batch, self.who, self.device = one, batch, who, device
        self.size = at_once(one.logits, batch.images)
        self.methods = [one_method(label) for label in labels if label not in CONTROLS]
        self.controls = [label for label in labels if label in CONTROLS]

    def maps(self, state: str) -> dict[str, Tensor | Failure]:
        return self.explained(self.methods, self.batch, state)

    def explained(self, methods: Sequence[Any], batch: Batch, state: str) -> dict[str, Tensor | Failure]:
        """By these methods and all controls; a batch of several copies of the images explains what they are."""
        answers = Answers(self.model, self.device, self.size)
        own = answers.predicted(self.batch.images)
        batch = replace(batch, targets=own.repeat(len(batch.images) // len(own)))
        fixed = [one_method(name) for name in self.controls if name != NOISE]
        given = attributions([*methods, *fixed], answers, batch)
        found = {label: one if isinstance(one, Failure) else one.maps for label, one in given.items()}
        if NOISE in self.controls:
            size = (batch.images.shape[2], batch.images.shape[3])
            found[NOISE] = controls.fresh_noise(batch.seeds, f"{self.who} {state}", size)
        return found


class _Shaken:
    """Smooth MPRT: maps averaged over noisy copies of the images, the last one clean; methods of few passes only."""

    def __init__(self, seen: _Seen, copies: int, seed: int) -> None:
        self.seen, self.copies = seen, copies
        self.methods = [one for one in seen.methods if passes(one.label) <= CHEAP]
        images, seeds = seen.batch.images, seen.batch.seeds
        reach = images.amax((1, 2, 3), keepdim=True) - images.amin((1, 2, 3), keepdim=True)
        noisy = [
            images + SHAKEN * reach * normal(seeds, f"smooth {seed} {copy}", like=images) for copy in range(copies - 1)
        ]
        lots = torch.cat([forks(fork("smooth", copy), seeds) for copy in range(copies)])
        self.batch = Batch(torch.cat([*noisy, images]), seen.batch.targets.repeat(copies), lots)

    def maps(self, state: str) -> dict[str, Tensor]:
        found = self.seen.explained(self.methods, self.batch, state)
        return {
            label: maps.unflatten(0, (self.copies, -1)).mean(0)
            for label, maps in found.items()
            if isinstance(maps, Tensor)
        }


def complexity_gain(whole: Tensor, random: Tensor) -> Tensor:
    """(N,) efficient MPRT: how much more entropy a random model's map has, relative to the whole one's."""
    before, after = entropy(whole.sum(1)), entropy(random.sum(1))
    return (after - before) / before
