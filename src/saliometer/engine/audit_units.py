"""The loop of an audit: chunk by chunk, each method's maps are made and judged."""

from collections.abc import Callable, Mapping, Sequence

from saliometer.engine.audit_maps import Made
from saliometer.engine.audit_method import judge
from saliometer.engine.audit_work import Work
from saliometer.engine.battery import Shelf
from saliometer.engine.estimate import Estimate, estimate
from saliometer.engine.run import Unit
from saliometer.engine.score import Method
from saliometer.engine.source import Source
from saliometer.engine.thumbs import keep_photos
from saliometer.types import Watch

Wanted = Mapping[Unit, Sequence[Method | Made]]
LEAST = 1e-6  # seconds of a method that takes none
TRIED = 4  # images that questions are counted on


def run_units(work: Work, todo: Wanted, tell: Callable[[Estimate, Source, int], None], watch: Watch) -> None:
    expected, answers = _expected(work, todo), work.answers
    tell(expected, work.source, len(expected.each))
    weights = {label: max(seconds, LEAST) for label, seconds in expected.each.items()}
    total = sum(_images(unit) * weights.get(one.label, LEAST) for unit, wanted in todo.items() for one in wanted)
    done = 0.0
    for unit, wanted in todo.items():
        samples = work.samples(unit.start, unit.stop)
        if _want_references(work, wanted):
            samples = work.with_references(samples)
        work.shared_at(unit, samples)
        shelf = Shelf(answers)
        if unit.start < work.request.pictures:
            keep_photos(work.run, unit, samples, work.model)
        for one in wanted:
            answers.passes, share = 0, _images(unit) * weights.get(one.label, LEAST) / total
            each = max(1.0, _images(unit) * expected.passes_each.get(one.label, 1.0))

            def told(_: int, done: float = done, share: float = share, each: float = each) -> None:
                watch(done + share * min(1.0, answers.passes / each), answers.doing)

            answers.watch = told
            judge(work, unit, one, samples, shelf)
            done += share
            work.run.manifest["passes"] += answers.passes
            work.run.keep()
            watch(done, f"{one.label}: images {unit.start + 1}-{unit.stop}")


def _images(unit: Unit) -> int:
    return unit.stop - unit.start


def _expected(work: Work, todo: Wanted) -> Estimate:
    """How long all of it will take, by the first images that are left."""
    each: dict[Method | Made, int] = {}  # for how many images each is wanted
    for unit, wanted in todo.items():
        for one in wanted:
            each[one] = each.get(one, 0) + _images(unit)
    begin = next(iter(todo))
    trial = work.samples(begin.start, min(begin.stop, begin.start + TRIED))
    again, predicted, beside = (
        sum(getattr(one, word) for one in work.compared) for word in ("again", "predicted", "beside")
    )
    return estimate(each, work.measures, work.answers, trial, sum(map(_images, todo)), again, predicted, beside)


def _want_references(work: Work, wanted: Sequence[Method | Made]) -> bool:
    to_mean = any("mean" in dict(measure.spec.params).values() for measure in work.measures)
    return to_mean or any(isinstance(one, Method) and one.entry.facts.needs_references for one in wanted)
