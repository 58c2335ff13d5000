"""The battery's engine: definitions in words, questions answered once, maps explained again, cells that fail."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from battery_toys import all_costs, judged, photos, value
from saliometer.engine.answer import Answers
from saliometer.engine.battery import Measure, Shelf, measured
from saliometer.engine.score import Failure
from saliometer.registry import Entry, Facts, Spec
from saliometer.seeds import fork, forks
from saliometer.types import Maps, Scored, Scores, each, unaltered
from toys import CPU, asked, explain, model_of, small_cnn

MODEL = model_of(small_cnn())
IMAGES = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(0))
SAMPLES = photos(IMAGES, MODEL.net(IMAGES).argmax(1))
MAPS = torch.rand(4, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def own(function, reads: str = "signed", **facts) -> Measure:
    """A metric that is not registered."""
    return Measure(Entry(function.__name__, function, Facts(better="higher", reads=reads, **facts)), Spec("own"))


def run(measures, maps=MAPS, method: str = "gradient", size: int = 0, said=()):
    shelf = Shelf(Answers(MODEL, CPU, size))
    return list(measured(measures, asked(method), maps, SAMPLES, shelf, said))


class Colourful(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = small_cnn()

    def forward(self, images: Tensor) -> Tensor:
        several = (images.amax((1, 2, 3)) > images.amin((1, 2, 3)))[:, None]
        return self.net(images).where(several, torch.nan)


# Definitions


@pytest.mark.parametrize(
    ("text", "given", "wanted"),
    [
        ("average_drop", {}, "abs_max_minmax(space=raw)"),
        ("average_drop(space=normalised)", {}, "abs_max_minmax(space=normalised)"),
        ("average_drop", {"normalisation": "signed_joint_minmax"}, "signed_joint_minmax(space=raw)"),
        ("average_drop", {"constant": "ones"}, "abs_max_minmax_constant_ones(space=raw)"),
        ("sparseness", {"constant": "ones"}, "abs_max_minmax_constant_ones"),
        ("sparseness", {"normalisation": "signed_joint_minmax"}, "signed_joint_minmax"),
        ("completeness", {"normalisation": "signed_joint_minmax"}, "attribution(baseline=own,tolerance=0.01)"),
    ],
)
def test_a_definition_names_the_stage_and_every_parameter(text, given, wanted):
    assert Measure.parse(text, **given).definition == wanted


@pytest.mark.parametrize("text", ["average_drop(spaces=raw)", "average_dorp"])
def test_what_is_not_there_is_refused_when_it_is_read(text):
    with pytest.raises(LookupError, match="Did you mean"):
        Measure.parse(text)


# What is asked once


def test_questions_of_one_key_are_answered_once_and_counted_as_saved():
    costs = all_costs(["average_drop", "average_increase", "average_gain"], MODEL, MAPS, SAMPLES)
    assert [cost.passes for cost in costs] == [8, 0, 0]  # the image and the masked image
    assert [cost.shared for cost in costs] == [0, 8, 8]


def test_max_and_avg_sensitivity_share_their_explanations():
    costs = all_costs(["max_sensitivity(draws=3)", "avg_sensitivity(draws=3)"], MODEL, MAPS, SAMPLES)
    assert [cost.passes for cost in costs] == [12, 0]
    assert [cost.shared for cost in costs] == [0, 12]
    other = all_costs(["max_sensitivity(draws=3)", "avg_sensitivity(draws=2)"], MODEL, MAPS, SAMPLES)
    assert [cost.shared for cost in other] == [0, 0]


def test_answers_about_maps_are_dropped_with_the_maps_and_those_about_images_stay():
    shelf, measures = Shelf(Answers(MODEL, CPU)), [Measure.parse("average_drop")]
    first, second = (list(measured(measures, asked("gradient"), maps, SAMPLES, shelf)) for maps in (MAPS, 1 - MAPS))
    assert (first[0][2].passes, second[0][2].passes) == (8, 4)
    fresh = value("average_drop", MODEL, 1 - MAPS, SAMPLES)
    assert torch.equal(second[0][1][0].values, fresh)
    assert not torch.equal(second[0][1][0].values, first[0][1][0].values)


def test_two_stages_or_two_kinds_of_score_never_share_an_answer():
    shelf, calls = Shelf(Answers(MODEL, CPU)), []

    def find() -> torch.Tensor:
        calls.append(1)
        return torch.tensor(len(calls))

    question = Scores(unaltered(IMAGES), key="masked raw")
    found = [int(shelf.ask(question, stage, find)) for stage in ("one", "two", "one")]
    assert found == [1, 2, 1]
    assert int(shelf.ask(replace(question, of="log_odds"), "one", find)) == 3
    assert int(shelf.ask(replace(question, count=2), "one", find)) == 4
    assert int(shelf.ask(replace(question, key=""), "one", find)) == 5
    image = Scores(unaltered(IMAGES), key="image")
    assert [int(shelf.ask(image, stage, find)) for stage in ("one", "two")] == [6, 6]


# Explaining again


def test_the_method_itself_explains_each_copy_with_the_same_targets_and_seeds_of_its_own():
    """A metric that takes the sum of the maps of the images and of their doubles."""

    def again(maps, samples, subject):
        images = samples.batch.images
        found = yield Maps(each(lambda k: images * (k + 1)), 2, lambda maps: maps.sum((2, 3, 4)).double())
        return found[0] + 10 * found[1]

    for method in ("gradient", "smooth_grad(draws=2)"):
        for size in (1, 3, 64):
            ((_, scores, cost),) = run([own(again, "attribution", reexplains=True)], method=method, size=size)
            sums = []
            for k in range(2):
                seeds = forks(fork("explained again", k), SAMPLES.batch.seeds)
                batch = replace(SAMPLES.batch, images=IMAGES * (k + 1), seeds=seeds)
                sums.append(explain(MODEL, batch, method).sum((1, 2, 3)).double())
            torch.testing.assert_close(scores[0].values, sums[0] + 10 * sums[1], rtol=1e-5, atol=1e-5)
            assert cost.passes == 4 * 2 * (1 if method == "gradient" else 2)


def test_a_method_that_fails_when_it_explains_again_fails_that_metric_alone():
    found = run([Measure.parse("max_sensitivity(draws=2)"), Measure.parse("sparseness")], method="cam")
    assert isinstance(found[0][1], Failure)
    assert not isinstance(found[1][1], Failure)


# Notes and failures


@pytest.mark.parametrize(
    "text",
    ["average_drop", "average_increase", "average_gain", "local_accuracy", "completeness", "insertion(steps=4)",
     "deletion(steps=4)", "monotonicity(definition=arya,sets=4)", "monotonicity(definition=arya_share,sets=4)",
     "effective_complexity(definition=nguyen)", "sufficiency(draws=2)", "necessity(draws=2)"],
)  # fmt: skip
def test_what_the_model_cannot_say_is_no_score(text):
    """Of a network that gives NaN for images of one colour: no comparison makes a 0 or a 1 of that."""
    images = torch.cat((IMAGES[:2], torch.full_like(IMAGES[:2], 0.5)))
    values, notes, _ = judged(text, model_of(Colourful()), MAPS, photos(images, SAMPLES.batch.targets))
    for found in values.values():
        assert found[2:].isnan().all()
    assert all("the model gives NaN" in note for note in notes[2:])
    if text == "average_drop":  # others ask about copies of one colour
        assert values[text][:2].isfinite().all()
        assert notes[:2] == ["", ""]


def test_a_metric_that_fails_does_not_stop_the_others():
    def broken(maps, samples, subject):
        raise RuntimeError("out of luck")

    def halfway(maps, samples, subject):
        yield Scores(unaltered(samples.batch.images))
        raise RuntimeError("out of luck later")

    found = run([own(broken), own(halfway), Measure.parse("sparseness")])
    assert [isinstance(scores, Failure) for _, scores, _ in found] == [True, True, False]
    assert found[0][1].message == "RuntimeError: out of luck"
    assert "halfway" in found[1][1].traceback


def test_parts_that_the_facts_do_not_list_are_a_failure():
    def chatty(maps, samples, subject):
        return Scored(torch.zeros(4), {"more": torch.zeros(4)})

    ((_, found, _),) = run([own(chatty)])
    assert found.message == "ValueError: metric 'chatty' gave the parts ['more'], but its facts list []"


def test_notes_join_what_the_map_the_method_and_the_metric_say():
    def picky(maps, samples, subject):
        values = torch.tensor([1.0, 2.0, float("nan"), 4.0])
        return Scored(values, {}, {"not this one": torch.tensor([False, True, False, True])})

    maps = MAPS.clone()
    maps[3] = 0
    ((_, (scores,), _),) = run([own(picky)], maps, said=["", "odd", "", ""])
    assert scores.values.isnan().tolist() == [False, True, True, True]
    assert scores.notes == ["", "odd; not this one", "undefined", "zero map; not this one"]


def test_a_constant_map_is_invalid_or_counts_as_ones_or_zeros_where_maps_are_scaled():
    maps, samples = MAPS.clone(), photos(IMAGES)
    maps[1] = 0.3
    found, notes, _ = judged("average_drop", MODEL, maps, samples)
    assert found["average_drop"].isnan().tolist() == [False, True, False, False]
    assert notes[1] == "constant map; constant maps cannot be scaled"
    whole = judged("average_drop", MODEL, maps, samples, constant="ones")[0]["average_drop"]
    assert whole[1] == 0
    black, before = (MODEL.net(one).softmax(1)[0, 0].item() for one in (torch.zeros(1, 3, 8, 8), IMAGES[1:2]))
    nothing = judged("average_drop", MODEL, maps, samples, constant="zeros")[0]["average_drop"]
    assert nothing[1].item() == pytest.approx((before - black) / before, abs=1e-5)
    assert nothing[1] > 0.01  # not what ones give
    assert torch.equal(whole[[0, 2, 3]], found["average_drop"][[0, 2, 3]])
