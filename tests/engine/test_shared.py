"""Scores of other targets found along the way: the maps are those without sharing, and cost no more passes."""

import pytest
import torch

from audit_toys import measured as rows_measured
from audit_toys import network, noise, same
from battery_toys import photos
from saliometer.engine.answer import Answers
from saliometer.engine.audit import audit
from saliometer.engine.battery import Measure, Shelf, measured
from saliometer.engine.score import Failure, attributions
from saliometer.engine.shared import Memory, Shared
from saliometer.types import Batch, Scores
from toys import CPU, asked, model_of, noise_batch, small_cnn

METHODS = {
    "rise(masks=20)": 20, "lime(samples=30,segments=grid,cells=3)": 30, "score_cam": 5, "occlusion(window=4)": 0,
    "rise(masks=20,fill=mean)": 20, "score_cam(weights=probability)": 5,
}  # fmt: skip
LABELS, OTHERS = torch.tensor([0, 1, 2, 0, 1]), torch.tensor([2, 0, 1, 1, 0])
CLASSES = torch.stack((LABELS, OTHERS))


def batch(targets: torch.Tensor) -> Batch:
    given = noise_batch()
    return Batch(given.images, targets, given.seeds, given.references)


def maps(text: str, targets: torch.Tensor, answers: Answers) -> torch.Tensor:
    method = asked(text)
    found = attributions([method], answers, batch(targets))[method.label]
    assert not isinstance(found, Failure), found
    return found.maps


def answering(shared: Shared | None = None, size: int = 7) -> Answers:
    answers = Answers(model_of(small_cnn(pooled=True)), CPU, size)
    answers.shared = shared
    return answers


@pytest.mark.parametrize("text", METHODS)
def test_maps_of_a_second_target_are_those_without_sharing(text):
    shared = answering(Shared(CLASSES))
    for targets in (LABELS, OTHERS):
        torch.testing.assert_close(maps(text, targets, shared), maps(text, targets, answering()), rtol=0, atol=1e-6)
    assert not torch.equal(maps(text, LABELS, shared), maps(text, OTHERS, shared))


@pytest.mark.parametrize("text", METHODS)
def test_the_second_target_costs_no_scores_again(text):
    answers = answering(Shared(CLASSES))
    maps(text, LABELS, answers)
    first, answers.passes = answers.passes, 0
    assert first >= 5 * METHODS[text]
    maps(text, OTHERS, answers)
    assert answers.passes == (5 if text.startswith("score_cam") else 0)  # activations are found anew


def test_a_target_that_was_not_announced_is_found_by_itself():
    third = torch.tensor([1, 2, 0, 2, 2])
    answers = answering(Shared(CLASSES))
    maps("rise(masks=20)", LABELS, answers)
    answers.passes = 0
    found = maps("rise(masks=20)", third, answers)
    assert answers.passes == 100
    assert torch.equal(found, maps("rise(masks=20)", third, answering()))


def test_other_parameters_and_scores_are_other_questions():
    answers = answering(Shared(CLASSES))
    maps("rise(masks=20)", LABELS, answers)
    for text in ("rise(masks=20,seed=1)", "rise(masks=20,output=logit)", "rise(keep=0.4,masks=20)", "rise(masks=21)"):
        answers.passes = 0
        found = maps(text, LABELS, answers)
        assert answers.passes >= 100
        assert torch.equal(found, maps(text, LABELS, answering()))


def test_what_is_handed_out_can_be_changed_by_its_owner():
    shared = Shared(CLASSES)
    shared.keep("words", torch.ones(2, 3, 5))
    shared.get("words", 0).zero_()
    assert bool((shared.get("words", 0) == 1).all())
    assert shared.get("other words", 0) is None


def test_places_of_targets():
    shared = Shared(torch.stack((LABELS, OTHERS, LABELS)))
    assert shared.place(LABELS) == 0
    assert shared.place(OTHERS) == 1
    assert shared.place(OTHERS[:3]) is None


def test_questions_whose_words_are_not_about_the_image_are_never_shared():
    images = noise(5)
    answers = answering(Shared(CLASSES))
    for key in ("", "map 1"):
        question = Scores(lambda ks: torch.stack([images] * len(ks)) * 0.5, 2, key=key)
        for targets in (LABELS, LABELS):
            answers.passes = 0
            answers({"asker": question}, targets)
            assert answers.passes == 10


@pytest.mark.parametrize("text", ["rise(masks=20)", "lime(samples=20,segments=grid,cells=3)", "score_cam"])
def test_altered_copies_are_explained_by_their_own_scores(text):
    """With the shared scores every shaken image would get the same weights."""
    samples = photos(noise(5), LABELS)

    def sensitivity(shared: Shared | None) -> torch.Tensor:
        answers, method = answering(shared), asked(text)
        first = attributions([method], answers, samples.batch)[method.label]
        measure = Measure.parse("max_sensitivity(draws=2)")
        ((_, found, _),) = measured([measure], method, first.maps, samples, Shelf(answers))
        assert not isinstance(found, Failure), found
        assert answers.shared is shared  # it is there again for the next
        return found[0].values

    alone = sensitivity(None)
    torch.testing.assert_close(sensitivity(Shared(CLASSES)), alone, rtol=0, atol=1e-6)
    assert bool((alone > 0).all())


def test_a_copy_as_large_as_the_chunk_is_no_exception():
    """One copy of every image with the same targets looks like the images themselves."""
    samples = photos(noise(5), LABELS)
    answers, method = answering(Shared(CLASSES), size=5), asked("rise(masks=20)")
    first = attributions([method], answers, samples.batch)[method.label]
    ((_, found, _),) = measured(
        [Measure.parse("max_sensitivity(draws=1)")], method, first.maps, samples, Shelf(answers)
    )
    assert bool((found[0].values > 1e-6).all())


def test_memory_keeps_chunks_apart_and_forgets_other_classes():
    memory = Memory()
    first = memory.at("images 0", CLASSES)
    assert memory.at("images 0", CLASSES.clone()) is first
    assert memory.at("images 5", CLASSES) is not first
    assert memory.at("images 0", CLASSES.flip(0)) is first  # the order does not matter
    assert memory.at("images 0", CLASSES.roll(1, 1)) is not first


def test_audits_that_remember_give_the_rows_of_those_that_do_not(tmp_path):
    net, images = network(), noise(5)
    asked_for = {
        "methods": ["rise(masks=20)", "lime(cells=3,samples=20,segments=grid)", "gradient"],
        "metrics": ["average_drop", "insertion(steps=4)", "max_sensitivity(draws=1)"],
        "controls": False,
        "device": "cpu",
    }
    labels = torch.tensor([0, 1, 2, 1, 0])
    memory, spent = Memory(), {}
    for target in ("label", "predicted", "least"):
        found = []
        for kind, remembered in (("shared", memory), ("alone", None)):
            outcome = audit(
                net, images, labels, target=target, remembered=remembered, out=tmp_path / kind / target, **asked_for
            )
            assert not outcome.failed
            spent[kind, target] = outcome.run.manifest["passes"]
            found.append(rows_measured(outcome))
        same(*found, tolerance=1e-6)
    for target in ("predicted", "least"):
        assert spent["shared", target] <= spent["alone", target] - 5 * 40  # RISE's and LIME's
    assert spent["alone", "label"] - 5 <= spent["shared", "label"] <= spent["alone", "label"]  # p(x) is known before
