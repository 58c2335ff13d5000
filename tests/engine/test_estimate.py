"""What an audit is said to take is what it takes: passes are counted by the questions themselves."""

import pytest
import torch

import saliometer
from audit_toys import failing, network, noise
from battery_toys import photos
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure
from saliometer.engine.estimate import Counting, asked, cost, estimate
from saliometer.engine.resolve import one_method
from saliometer.engine.score import attributions
from toys import CPU, model_of, small_cnn

MODEL = model_of(small_cnn())
SAMPLES = photos(noise(4))


def counted(*texts: str) -> Counting:
    answers = Answers(MODEL, CPU)
    found = Counting(3, len(SAMPLES))
    for text in texts:
        found.count(Measure.parse(text), MODEL, SAMPLES)
    assert answers.passes == 0  # nothing is run
    return found


@pytest.mark.parametrize(
    ("texts", "once", "each", "again"),
    [
        (["average_drop"], 1, 1, 0),
        (["average_drop", "average_increase", "average_gain"], 1, 1, 0),
        (["average_drop", "average_drop(space=normalised)"], 1, 2, 0),
        (["sparseness", "complexity"], 0, 0, 0),
        (["max_sensitivity(draws=3)", "avg_sensitivity(draws=3)"], 0, 0, 3),
        (["max_sensitivity(draws=3)", "avg_sensitivity(draws=5)"], 0, 0, 8),
        (["deletion(steps=4)", "average_drop"], 2, 4, 0),  # the image and grey are the curve's ends
    ],
)
def test_distinct_questions_are_counted(texts, once, each, again):
    found = counted(*texts)
    assert (found.about_images, found.about_maps, found.again) == (once, each, again)


def test_scores_of_two_kinds_are_two_questions():
    """The log-odds of the image, and its logit."""
    assert counted("average_drop", "faithfulness_correlation(runs=4)").about_images == 2 + 4


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("gradient", 1), ("smooth_grad(draws=10)", 10), ("rise(masks=100)", 100), ("random", 0), ("edge", 0)],
)
def test_a_methods_passes_follow_its_budget(text, wanted):
    assert cost(one_method(text)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("score_cam", None),  # as many as the layer has channels
        ("kernel_shap(segments=grid,cells=2)", 16),  # all coalitions of four segments
        ("occlusion(window=4,stride=4)", None),
        ("rise(masks=30)", 30),
        ("extremal_perturbation(steps=50)", 4 * 50),
        ("gradient", 1),
    ],
)
def test_what_hides_parts_is_asked_how_many_there_are(text, wanted):
    answers = Answers(MODEL, CPU)
    said = asked(one_method(text), answers, SAMPLES.batch)
    assert answers.passes <= 1  # of the layer's activations
    answers.passes = 0
    attributions([one_method(text)], answers, SAMPLES.batch)
    assert said == pytest.approx(answers.passes / len(SAMPLES), rel=0.05, abs=1)
    assert wanted is None or said == wanted


def test_a_method_that_does_not_go_with_the_network_is_estimated_by_its_usual_passes():
    assert asked(one_method("score_cam(layer=nowhere)"), Answers(MODEL, CPU), SAMPLES.batch) == 256


CHOSEN = [
    "average_drop", "average_increase", "insertion(steps=4)", "deletion(steps=8)", "sparseness", "local_accuracy",
    "max_sensitivity(draws=3)", "avg_sensitivity(draws=3)", "sufficiency(draws=2)", "road(shares='30,60')",
]  # fmt: skip


def test_the_estimate_is_what_the_run_then_takes(tmp_path):
    told = []
    found = saliometer.audit(
        network(), noise(), methods=["gradient", "grad_cam", "smooth_grad(draws=4)"], metrics=CHOSEN, out=tmp_path,
        tell=lambda *about: told.append(about),
    )  # fmt: skip
    assert not found.failed
    (expected, source, count), *rest = told
    assert not rest
    assert (len(source), count) == (5, 8)
    taken = sum(one["passes"] for one in found.costs().values())
    # the image's own score is known from the prediction, so that one pass may be saved
    assert taken <= expected.passes <= taken + len(source)
    assert expected.images == len(source)
    assert expected.seconds > 0
    assert set(expected.each) == {
        "gradient",
        "grad_cam",
        "smooth_grad(draws=4)",
        "all_ones",
        "centre",
        "edge",
        "fake_cam",
        "random",
    }


def test_seconds_grow_with_the_images_and_the_callers_generator_is_left_alone():
    before = torch.get_rng_state()
    answers, measures = Answers(MODEL, CPU), [Measure.parse("deletion(steps=8)")]
    methods = {one_method("gradient"): 1, one_method("rise(masks=50)"): 1}
    one = estimate(methods, measures, answers, SAMPLES, 1)
    assert torch.equal(before, torch.get_rng_state())
    assert one.seconds == pytest.approx(sum(one.each.values()), rel=0.5)
    assert one.passes_each == {"gradient": 8, "rise(masks=50)": 57}


def test_a_metric_that_fails_does_not_stop_the_estimate():
    with failing("deletion"):
        assert counted("deletion(steps=2)", "average_drop").about_maps == 1
