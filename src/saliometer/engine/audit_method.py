"""One method on one chunk of an audit: its maps are made, judged and kept as rows, with which the chunk is finished."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import torch

from saliometer import results
from saliometer.engine.answer import Answers
from saliometer.engine.asked import TASK
from saliometer.engine.audit_maps import Made
from saliometer.engine.audit_rows import block, cost_block, pair_blocks
from saliometer.engine.audit_work import Work
from saliometer.engine.battery import Cost, Measure, Shelf, measured
from saliometer.engine.compared import Comparison
from saliometer.engine.run import Unit
from saliometer.engine.score import Failure, Method, attributions, promise, remarks
from saliometer.engine.thumbs import keep_pairs, keep_sprites
from saliometer.files import put
from saliometer.graph import UnfitError
from saliometer.types import Explained, Samples


def judge(work: Work, unit: Unit, method: Method | Made, samples: Samples, shelf: Shelf) -> None:
    """A method that fails is written down, and so is each metric that fails; the others get their rows."""
    timed, made_elsewhere = Timer(work.answers), isinstance(method, Made)
    if isinstance(method, Made):
        found: Explained | Failure = method.maps(samples)
    else:
        found = attributions([method], work.answers, samples.batch)[method.label]
    if isinstance(found, Failure):
        put(work.run.failure(unit, method.label), found.traceback.encode())
        _lost(work, method, found).setdefault(method.label, found.message)
        return
    part = Part(work, unit, method if isinstance(method, Method) else method.as_method(), samples, found)
    part.keep_promise(timed.cost())
    owners = [one for one in work.compared if method in one.controls]  # whose own control it is
    if not owners:
        part.measure([one for one in work.measures if not (made_elsewhere and one.entry.facts.reexplains)], shelf)
    for comparison in () if made_elsewhere else owners or work.compared:
        part.compare(comparison)
    part.finish()


def _lost(work: Work, method: Method | Made, failed: Failure) -> dict[str, str]:
    """Where it is written down: what does not go together is left out, if nobody named the method."""
    unfit = isinstance(failed.error, UnfitError) and isinstance(method, Method) and method.unasked
    return work.outcome.left_out if unfit else work.outcome.failed


@dataclass(eq=False)
class Part:
    """The rows of one method on one chunk, as they come in."""

    work: Work
    unit: Unit
    method: Method
    samples: Samples
    found: Explained
    blocks: list[Any] = field(default_factory=list)
    costs: dict[str, Cost] = field(default_factory=dict)
    broken: list[str] = field(default_factory=list)  # metric and traceback

    @cached_property
    def constant(self) -> dict[str, str]:
        """What stands in each of its rows."""
        request = self.work.request
        return {
            "task": TASK, "setting": self.unit.setting, "model": request.model, "method": self.method.label,
            "target": request.target, "condition": request.condition, "region": "",
        }  # fmt: skip

    @cached_property
    def said(self) -> list[str]:
        return remarks(self.found)

    def keep_promise(self, cost: Cost) -> None:
        """How far the maps are from what the method claims, and what they took."""
        self.costs["maps"] = cost
        for one in promise(self.found, self.said):
            self.blocks.append(block(self.constant, one.metric, one.definition, self.samples, one.values, one.notes))

    def measure(self, measures: Sequence[Measure], shelf: Shelf) -> None:
        for measure, scored, cost in measured(measures, self.method, self.found.maps, self.samples, shelf, self.said):
            metric = measure.entry.name
            if isinstance(scored, Failure):
                fate = "left out" if self._fail(metric, scored) else "failed"
                nothing = torch.full((len(self.samples),), float("nan"))
                notes = [f"{fate}: {scored.message}"] * len(self.samples)
                self.blocks.append(block(self.constant, metric, measure.definition, self.samples, nothing, notes))
                continue
            for one in scored:
                made = block(self.constant, one.metric, one.definition, self.samples, one.values, one.notes)
                self.blocks.append(made)
            self.costs[f"{metric} {measure.definition}"] = cost

    def compare(self, comparison: Comparison) -> None:
        timed, maps = Timer(self.work.answers), self.found.maps
        try:
            rows = comparison.rows(self.method, maps, self.samples)
            self.blocks += pair_blocks(self.constant, self.samples, rows)
            pictured = self.unit.start == 0 and self.work.request.pictures and not self.method.control
            shown = comparison.pictures(self.method, maps, rows) if pictured else {}
            if shown:
                keep_pairs(self.work.run, self.unit, self.method.label, shown, self.samples.ids)
            self.costs[comparison.name] = timed.cost()
        except MemoryError:
            raise
        except Exception as error:
            self._fail(comparison.name, Failure.of(error))

    def _fail(self, metric: str, failed: Failure) -> bool:
        """Whether it is only left out."""
        lost = _lost(self.work, self.method, failed)
        lost.setdefault(f"{self.method.label}, {metric}", failed.message)
        self.broken.append(f"{metric}: {failed.traceback}")
        return lost is self.work.outcome.left_out

    def finish(self) -> None:
        """Write what was found; the rows come last, for with them the chunk is finished."""
        run, label = self.work.run, self.method.label
        if self.broken:
            put(run.failure(self.unit, label), "\n".join(self.broken).encode())
        else:
            run.failure(self.unit, label).unlink(missing_ok=True)
        if self.unit.start < self.work.request.pictures:
            keep_sprites(run, self.unit, label, self.found.maps)
        costs = [cost_block(self.constant, self.unit, what, cost) for what, cost in self.costs.items()]
        results.write(run.part(self.unit, label), self.blocks + costs)


class Timer:
    """Seconds and passes since it was made."""

    def __init__(self, answers: Answers) -> None:
        self._answers = answers
        self._start, self._passes = time.perf_counter(), answers.passes

    def cost(self) -> Cost:
        if self._answers.device.type == "cuda":
            torch.cuda.synchronize()
        return Cost(time.perf_counter() - self._start, self._answers.passes - self._passes)
