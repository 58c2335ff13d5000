"""Driving: whoever asks waits for the answer, failures stay with their owner, and values carry notes."""

import pytest
import torch
from torch import Tensor

from saliometer import registry
from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, Method, attributions, drive, repeatable, scores
from saliometer.registry import Entry, Facts, Spec
from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY, Batch, Explained, Gradients, Logits, Model, each
from toys import CPU, Formula, Spy, asked, explain, flat, model_of, noise_batch, samples_of, small_cnn


def method_of(function, name: str = "own", **facts) -> Method:
    return Method(name, Entry(name, function, Facts(**facts)), Spec(name))


# Driving


def test_what_returns_at_once_needs_no_pass(toy_model):
    answers = Answers(toy_model, CPU)
    assert drive({"a": lambda: 3, "b": lambda: "x"}, answers, torch.zeros(1)) == {"a": 3, "b": "x"}
    assert answers.passes == 0


def test_a_generator_may_ask_twice_and_gets_each_answer_in_turn():
    """First the slope of x^3 at 2, then the score a step along it: f(2 + 12 / 6) = 64."""

    def asks():
        images = flat([2.0]).images
        slope = yield Gradients(each(lambda k: images))
        logits = yield Logits(each(lambda k: images + slope / 6))
        return slope.item(), logits[0, 0, 0].item()

    model = model_of(Formula(lambda x: (x**3).sum(1)))
    assert drive({"toy": asks}, Answers(model, CPU), flat([2.0]).targets) == {"toy": (12.0, 64.0)}


def test_questions_of_one_round_share_a_pass_and_results_keep_the_order_asked_for():
    spy = Spy(small_cnn())
    batch = noise_batch()

    def once():
        return (yield Gradients(each(lambda k: batch.images))).sum().item()

    def twice():
        first = yield Gradients(each(lambda k: batch.images))
        second = yield Gradients(each(lambda k: batch.images))
        return torch.equal(first, second)

    found = drive({"twice": twice, "now": lambda: 1, "once": once}, Answers(model_of(spy), CPU), batch.targets)
    assert list(found) == ["twice", "now", "once"]
    assert found["twice"] is True
    assert spy.sizes == [5, 5]  # one pass for each round


def raising(error: Exception):
    raise error


@pytest.mark.parametrize("when", ["start", "first question", "answer", "question"])
def test_a_failure_stays_with_its_owner_wherever_it_happens(toy_model, toy_batch, when):
    def bad():
        if when == "first question":
            raise ZeroDivisionError("here")
        variant = (lambda k: raising(ZeroDivisionError("here"))) if when == "question" else lambda k: toy_batch.images
        yield Gradients(each(variant))
        raise ZeroDivisionError("here")

    def good():
        return (yield Gradients(each(lambda k: toy_batch.images)))

    starts = {"bad": (lambda: raising(ZeroDivisionError("here"))) if when == "start" else bad, "good": good}
    found = drive(starts, Answers(toy_model, CPU), toy_batch.targets)
    assert isinstance(found["bad"], Failure)
    assert found["bad"].message == "ZeroDivisionError: here"
    assert "Traceback" in found["bad"].traceback
    torch.testing.assert_close(found["good"], explain(toy_model, toy_batch, "gradient"))


def test_an_asker_may_catch_its_failure_and_ask_something_else(toy_model, toy_batch):
    def careful():
        try:
            yield Gradients(each(lambda k: raising(ValueError("too far"))))
        except ValueError as error:
            logits = yield Logits(each(lambda k: toy_batch.images))
            return str(error), logits.shape

    assert drive({"toy": careful}, Answers(toy_model, CPU), toy_batch.targets) == {"toy": ("too far", (1, 5, 3))}


def test_a_model_too_large_for_memory_is_no_methods_failure(toy_batch):
    class Full(torch.nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            raise RuntimeError("CUDA out of memory")

    with pytest.raises(MemoryError, match="one image of model 'toy'"):
        attributions([asked("gradient")], Answers(model_of(Full()), CPU), toy_batch)


# A metric that asks: style.md's deletion, on a model that is sure until one pixel goes


def deletion(maps: Tensor, images: Tensor, targets: Tensor, steps: int):
    """The area under the softmax curve while the map's highest pixels go black, from the whole image to none."""
    places = maps.flatten(1).argsort(1, descending=True).argsort(1)  # (N, pixels)

    def erased(step: int) -> Tensor:
        kept = places >= round(places.shape[1] * step / steps)
        return images * kept.view_as(maps)[:, None]

    logits = yield Logits(each(erased), steps + 1)
    curve = logits.softmax(-1)[:, torch.arange(len(maps)), targets]
    return torch.trapezoid(curve, dx=1 / steps, dim=0)


@pytest.mark.parametrize("size", [1, 3, 64])
@pytest.mark.parametrize(("rank", "area"), [(0, 1 / 16), (2, 5 / 16), (7, 15 / 16)])
def test_a_metric_that_yields_logits_gets_its_curve(rank, area, size):
    """Eight pixels, one decides (score 40 or -40); it goes at step rank + 1, so the curve is 1 up to `rank`."""
    model = model_of(Formula(lambda x: 80 * (x[:, 3] > 0.5).float() - 40))
    images = torch.ones(2, 1, 2, 4)
    maps = torch.linspace(0, 0.5, 8).repeat(2, 1)
    maps[:, [3, 7 - rank]] = maps[:, [7 - rank, 3]]  # pixel 3 is the rank-th highest
    targets = torch.zeros(2, dtype=torch.int64)
    run = {"deletion": lambda: deletion(maps.view(2, 2, 4), images, targets, 8)}
    found = drive(run, Answers(model, CPU, size), targets)["deletion"]
    assert found.tolist() == pytest.approx([area] * 2, abs=1e-6)


def test_metrics_and_methods_may_ask_in_the_same_round(toy_model, toy_batch):
    run = {
        "deletion": lambda: deletion(toy_batch.images.mean(1), toy_batch.images, toy_batch.targets, 4),
        "gradient": lambda: asked("gradient").start(toy_model, toy_batch),
    }
    found = drive(run, Answers(toy_model, CPU), toy_batch.targets)
    assert found["deletion"].shape == (5,)
    torch.testing.assert_close(found["gradient"].maps, explain(toy_model, toy_batch, "gradient"))


# Attributions


def test_a_method_with_a_wrong_shape_fails_and_the_others_go_on(toy_model, toy_batch):
    def flattened(model: Model, batch: Batch) -> Tensor:
        return batch.images.flatten(1)

    found = attributions([method_of(flattened), asked("gradient")], Answers(toy_model, CPU), toy_batch)
    assert found["own"].message == (
        "ValueError: method 'own' returned shape (5, 192), wanted (5, 3, 8, 8), (5, 1, 8, 8) or (5, 8, 8): "
        "one value per pixel"
    )
    assert isinstance(found["gradient"], Explained)


def test_parameters_of_the_spec_reach_the_method(toy_model, toy_batch):
    found = attributions([asked("random(channels=3)"), asked("random")], Answers(toy_model, CPU), toy_batch)
    assert found["random(channels=3)"].maps.shape == (5, 3, 8, 8)
    assert found["random"].maps.shape == (5, 1, 8, 8)


def test_a_method_that_follows_the_global_generator_is_not_repeatable(toy_model, toy_batch):
    def careless(model: Model, batch: Batch) -> Tensor:
        return torch.rand_like(batch.images)

    answers = Answers(toy_model, CPU)
    for method, wanted in (
        (method_of(careless), False),
        (asked("random"), True),
        (asked("smooth_grad(draws=2)"), True),
    ):
        maps = attributions([method], answers, toy_batch)[method.label].maps
        assert repeatable(method, answers, toy_batch, maps) is wanted


def test_a_nan_does_not_make_a_method_unrepeatable(toy_model, toy_batch):
    def divides(model: Model, batch: Batch) -> Tensor:
        return batch.images / (batch.images > 0.5)

    method, answers = method_of(divides), Answers(toy_model, CPU)
    maps = attributions([method], answers, toy_batch)["own"].maps
    assert maps.isinf().any()
    assert repeatable(method, answers, toy_batch, maps)


# Values and notes


SAMPLES = samples_of(
    boxes=[[[0, 2, 0, 2], [5, 8, 5, 8]]] * 6,
    roles=[[PRIMARY, SECONDARY]] * 4 + [[SECONDARY, ABSENT], [PRIMARY, NEITHER]],
)


def strange() -> Tensor:
    """Noise, zeros, NaN, a constant, noise, and a map without a positive value."""
    maps = torch.rand(6, 1, 8, 8, generator=torch.Generator().manual_seed(0)) + 0.1
    maps[1], maps[2, 0, 3, 3], maps[3] = 0, float("nan"), 0.7
    maps[5] *= -1
    return maps


def table(metrics: list[str], definitions: list[str], note: str = "", maps: Tensor | None = None):
    answers = Answers(model_of(small_cnn()), CPU)
    found = scores(
        strange() if maps is None else maps, "heat", SAMPLES, answers, metrics=metrics, definitions=definitions,
        region="box", said=[note] * len(SAMPLES),
    )  # fmt: skip
    return {(one.metric, one.definition): one for one in found}


def test_every_metric_is_scored_in_every_definition():
    found = table(["pafl", "siou"], ["clean", "authors"])
    assert list(found) == [("pafl", "clean"), ("siou", "clean"), ("pafl", "authors"), ("siou", "authors")]
    assert all(one.values.dtype == torch.float64 and one.region == "box" for one in found.values())


def test_notes_say_what_is_odd_and_what_is_missing():
    found = table(["pafl", "safl", "siou"], ["clean"])
    odd = ["", "zero map", "nan map", "constant map"]
    assert found["pafl", "clean"].notes == [*odd, "no primary object", ""]
    assert found["safl", "clean"].notes == [*odd, "", "no secondary object"]
    assert found["siou", "clean"].notes == [*odd, "no primary object", "no secondary object"]


def test_a_note_of_the_run_comes_first():
    assert table(["pafl"], ["clean"], "random")["pafl", "clean"].notes == [
        "random", "random; zero map", "random; nan map", "random; constant map", "random; no primary object", "random",
    ]  # fmt: skip


@pytest.mark.parametrize("metric", ["pafl", "safl", "piou", "siou", "success", "failure", "pmafl", "smafl"])
def test_zero_and_nan_maps_score_0_and_are_not_left_out(metric):
    values = table([metric], ["clean"])[metric, "clean"].values
    assert values[[1, 2]].tolist() == [0, 0]


def test_a_constant_map_scores_the_area_under_clean_and_0_under_authors():
    found = table(["pafl"], ["clean", "authors"])
    assert found["pafl", "clean"].values[3].item() == pytest.approx(4 / 64)
    assert found["pafl", "authors"].values[3].item() == 0


def test_a_map_that_only_one_definition_finds_empty_is_noted_there():
    found = table(["pafl"], ["clean", "clean_positive"])
    assert found["pafl", "clean"].notes[5] == ""
    assert found["pafl", "clean"].values[5] > 0
    assert found["pafl", "clean_positive"].notes[5] == "scored as empty"
    assert found["pafl", "clean_positive"].values[5] == 0


def test_undefined_stays_undefined_though_the_map_is_empty():
    maps = torch.zeros(6, 1, 8, 8)
    one = table(["pafl"], ["clean"], maps=maps)["pafl", "clean"]
    assert one.values[:4].tolist() == [0] * 4
    assert one.values[4].isnan()
    assert one.notes[4] == "zero map; no primary object"


def test_a_metric_that_fails_is_our_fault_and_ends_the_run(monkeypatch):
    def crooked(maps, samples, *, definition: str = "clean", region: str = "box"):
        """A metric with a mistake."""
        raise ZeroDivisionError("oops")

    entry = Entry("crooked", crooked, Facts(better="higher"))
    monkeypatch.setitem(registry.metrics._load(), "crooked", entry)
    with pytest.raises(RuntimeError, match="metric 'crooked' failed: ZeroDivisionError: oops"):
        table(["crooked"], ["clean"])


def test_a_metric_may_ask_the_model_in_a_scored_run(monkeypatch):
    def confidence(maps, samples, *, definition: str = "clean", region: str = "box"):
        """The target's logit on a black image, for every map."""
        logits = yield Logits(each(lambda k: torch.zeros(len(maps), 3, 8, 8)))
        return logits[0, torch.arange(len(maps)), samples.batch.targets]

    monkeypatch.setitem(registry.metrics._load(), "confidence", Entry("confidence", confidence, Facts(better="higher")))
    values = table(["confidence"], ["clean"], maps=strange()[[0] * 6])["confidence", "clean"].values
    wanted = small_cnn()(torch.zeros(1, 3, 8, 8))[0, 0].item()
    assert values.tolist() == pytest.approx([wanted] * 6)
