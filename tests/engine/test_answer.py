"""Answers: full batches whatever is asked, one pass for many askers, smaller batches when memory is short."""

import pytest
import torch
from torch import Tensor, nn

from saliometer.engine.answer import Answers
from saliometer.engine.score import attributions
from saliometer.types import Batch, Features, Gradients, Logits, Model, each
from toys import CPU, Cramped, Formula, Spy, asked, flat, model_of, noise_batch, small_cnn


@pytest.fixture
def spy() -> Spy:
    return Spy(small_cnn())


@pytest.fixture
def model(spy: Spy) -> Model:
    return model_of(spy, "net.3")


@pytest.fixture
def batch() -> Batch:
    return noise_batch(5)


def slopes(net: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    """Gradients of the targets' logits, image by image."""
    found = []
    for image, target in zip(images, targets, strict=True):
        one = image[None].clone().requires_grad_()
        found.append(torch.autograd.grad(net(one)[0, target], one)[0])
    return torch.cat(found)


def brightened(images: Tensor):
    return each(lambda k: images * (1 + k / 10))


def weighted(k: int, gradient: Tensor) -> Tensor:
    return (k + 1) * gradient


# Packing


@pytest.mark.parametrize(
    ("size", "sizes"),
    [(20, [20, 15]), (35, [35]), (64, [35]), (12, [10, 10, 10, 5]), (5, [5] * 7), (3, [3, 2] * 7), (1, [1] * 35)],
)
def test_images_times_variants_go_through_in_batches_as_full_as_they_fit(spy, model, batch, size, sizes):
    question = Gradients(brightened(batch.images), 7, weighted)
    found = Answers(model, CPU, size)({"toy": question}, batch.targets)["toy"]
    assert spy.sizes == sizes
    wanted = sum((k + 1) * slopes(spy.net, batch.images * (1 + k / 10), batch.targets) for k in range(7))
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("size", "sizes"), [(20, [20, 15]), (64, [35]), (3, [3, 2] * 7)])
def test_logits_are_packed_the_same_way_and_come_back_variant_by_variant(spy, model, batch, size, sizes):
    found = Answers(model, CPU, size)({"toy": Logits(brightened(batch.images), 7)}, batch.targets)["toy"]
    assert spy.sizes == sizes
    assert found.shape == (7, 5, 3)
    wanted = torch.stack([spy.net(batch.images * (1 + k / 10)) for k in range(7)])
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_each_variant_is_made_once(model, batch):
    made = []

    def variant(k: int) -> Tensor:
        made.append(k)
        return batch.images

    Answers(model, CPU, 10)({"toy": Logits(each(variant), 5)}, batch.targets)
    assert made == list(range(5))


def test_logits_may_be_asked_for_other_images_than_those_explained(model, batch):
    """A metric may crop or stack: the number of images is the variant's, not the targets'."""
    found = Answers(model, CPU, 4)({"toy": Logits(each(lambda k: batch.images[:2]), 3)}, batch.targets)["toy"]
    assert found.shape == (3, 2, 3)


def test_features_are_activations_and_slopes_of_the_layer(spy, model, batch):
    found = Answers(model, CPU, 2)({"toy": Features(batch.images, "net.3")}, batch.targets)["toy"]
    activations = spy.net[:4](batch.images).requires_grad_()
    score = spy.net[4:](activations).gather(1, batch.targets[:, None]).sum()
    assert found.shape == (2, 5, 5, 4, 4)
    torch.testing.assert_close(found[0], activations.detach())
    torch.testing.assert_close(found[1], torch.autograd.grad(score, activations)[0])


@pytest.mark.parametrize("align", [4, 8])
def test_passes_are_filled_up_to_a_multiple_and_the_filling_is_dropped(spy, model, batch, align):
    answers = Answers(model, CPU, 16, align=align)
    questions = {"a": Gradients(brightened(batch.images), 7), "b": Features(batch.images, "net.3")}
    found = answers(questions, batch.targets)
    assert all(size % align == 0 for size in spy.sizes)
    assert answers.passes == 40
    wanted = Answers(model, CPU, 16)(questions, batch.targets)
    for name in questions:
        torch.testing.assert_close(found[name], wanted[name], rtol=1e-5, atol=1e-6)


def test_the_network_sees_full_precision_and_repeatable_kernels(batch):
    seen = []

    class Looks(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
            seen.append((cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark, matmul.allow_tf32))
            return images.flatten(1)[:, :3]

    torch.backends.cudnn.benchmark = True
    try:
        answers = Answers(model_of(Looks()), CPU)
        answers(
            {"a": Gradients(each(lambda k: batch.images)), "b": Logits(each(lambda k: batch.images))}, batch.targets
        )
        answers.predicted(batch.images)
        assert torch.backends.cudnn.benchmark
    finally:
        torch.backends.cudnn.benchmark = False
    assert seen == [(False, True, False, False)] * 3


# Sharing


def test_gradient_input_x_gradient_and_grad_cam_share_one_pass(spy, model, batch):
    answers = Answers(model, CPU)
    attributions([asked(name) for name in ("gradient", "input_x_gradient", "grad_cam")], answers, batch)
    assert spy.sizes == [5]
    assert answers.passes == answers.asked == 5


def test_equal_images_share_a_pass_and_others_do_not(spy, model, batch):
    questions = {
        "a": Gradients(each(lambda k: batch.images)),
        "b": Gradients(each(lambda k: batch.images.clone())),
        "c": Gradients(each(lambda k: batch.images + 1)),
    }
    found = Answers(model, CPU)(questions, batch.targets)
    assert spy.sizes == [5, 5]
    assert torch.equal(found["a"], found["b"])
    torch.testing.assert_close(found["c"], slopes(spy.net, batch.images + 1, batch.targets))


def test_nothing_is_shared_between_calls_for_the_targets_may_differ(spy, model, batch):
    answers = Answers(model, CPU)
    for targets in (batch.targets, (batch.targets + 1) % 3):
        found = answers({"a": Gradients(each(lambda k: batch.images))}, targets)["a"]
        torch.testing.assert_close(found, slopes(spy.net, batch.images, targets))


def test_what_went_through_is_counted_and_the_watch_is_told(spy, model, batch):
    told = []
    answers = Answers(model, CPU, 10, watch=told.append)
    answers({"a": Gradients(brightened(batch.images), 3), "b": Logits(brightened(batch.images), 2)}, batch.targets)
    answers.predicted(batch.images)
    assert told == spy.sizes == [10, 5, 10, 5]
    assert answers.passes == answers.asked == 30


def test_the_predicted_class_has_the_highest_logit(spy, model, batch):
    answers = Answers(model, CPU, 2)
    assert torch.equal(answers.predicted(batch.images), spy.net(batch.images).argmax(1))
    assert answers.classes(batch.images[:1]) == 3


# Memory


QUESTIONS = {
    "gradients": lambda images: Gradients(brightened(images), 4, weighted),
    "logits": lambda images: Logits(brightened(images), 4),
    "one gradient": lambda images: Gradients(each(lambda k: images)),
    "features": lambda images: Features(images, "net.3"),
}


@pytest.mark.parametrize(
    "words", ["CUDA out of memory. Tried to allocate 2 GiB", "DefaultCPUAllocator: can't allocate memory: you tried"]
)
@pytest.mark.parametrize("kind", QUESTIONS)
def test_a_batch_that_does_not_fit_is_halved_until_it_does(batch, kind, words):
    question = QUESTIONS[kind](batch.images)
    cramped = Cramped(small_cnn(), most=3, words=words)
    answers = Answers(model_of(cramped, "net.3"), CPU, 16)
    found = answers({"toy": question}, batch.targets)["toy"]
    roomy = Answers(model_of(Spy(small_cnn()), "net.3"), CPU, 16)({"toy": question}, batch.targets)["toy"]
    torch.testing.assert_close(found, roomy, rtol=1e-5, atol=1e-6)
    assert answers.size == 2
    assert max(cramped.sizes) <= 2


def test_the_smaller_batch_is_kept_for_what_follows(batch):
    cramped = Cramped(small_cnn(), most=3)
    answers = Answers(model_of(cramped), CPU, 16)
    answers.predicted(batch.images)
    cramped.sizes.clear()
    answers.predicted(batch.images)
    assert cramped.sizes == [2, 2, 1]


def test_filling_up_does_not_keep_a_batch_from_shrinking(batch):
    cramped = Cramped(small_cnn(), most=3)
    answers = Answers(model_of(cramped), CPU, 16, align=8)
    torch.testing.assert_close(
        answers.predicted(batch.images), Answers(model_of(small_cnn()), CPU).predicted(batch.images)
    )
    assert answers.size == 2


def test_one_image_that_does_not_fit_ends_the_run(batch):
    answers = Answers(model_of(Cramped(small_cnn(), most=0)), CPU, 16)
    with pytest.raises(MemoryError, match="one image of model 'toy' does not fit into cpu's memory"):
        answers({"toy": Gradients(each(lambda k: batch.images))}, batch.targets)


# Failing


def test_any_other_error_of_the_network_is_its_askers_answer(batch):
    words = "mat1 and mat2 shapes cannot be multiplied"
    answers = Answers(model_of(Cramped(small_cnn(), most=0, words=words)), CPU, 16)
    found = answers(
        {"a": Gradients(each(lambda k: batch.images)), "b": Logits(each(lambda k: batch.images))}, batch.targets
    )
    assert [str(error) for error in found.values()] == [words] * 2
    assert answers.size == 16


def broken(k: int, *_: object) -> Tensor:
    if k == 1:
        raise ZeroDivisionError("no such variant")
    return torch.zeros(5, 3, 8, 8)


@pytest.mark.parametrize(
    "question",
    [
        Gradients(each(broken), 3),
        Logits(each(broken), 3),
        Gradients(each(lambda k: torch.zeros(5, 3, 8, 8)), 3, broken),
    ],
)
def test_an_error_inside_a_question_fails_its_asker_alone(model, batch, question):
    found = Answers(model, CPU)({"bad": question, "good": Gradients(each(lambda k: batch.images))}, batch.targets)
    assert isinstance(found["bad"], ZeroDivisionError)
    torch.testing.assert_close(found["good"], slopes(model.net, batch.images, batch.targets))


@pytest.mark.parametrize("layer", ["net.9", "net.7"])
def test_a_layer_that_cannot_be_read_fails_its_asker_alone(batch, layer):
    """'net.9' is not there; 'net.7' is, but no image passes it."""
    spy = Spy(small_cnn())
    spy.net.add_module("7", nn.Identity())
    spy.net.forward = lambda images: nn.Sequential(*list(spy.net)[:6])(images)
    model = model_of(spy, "net.3")
    questions = {
        "bad": Features(batch.images, layer),
        "good": Gradients(each(lambda k: batch.images)),
        "other": Features(batch.images, "net.3"),
    }
    found = Answers(model, CPU)(questions, batch.targets)
    assert isinstance(found["bad"], LookupError)
    assert isinstance(found["good"], Tensor), found["good"]
    assert isinstance(found["other"], Tensor), found["other"]


def test_two_layers_are_not_mixed_up(batch):
    """'a' runs last but comes first in the alphabet."""
    net = nn.Sequential()
    for name, module in zip(("z", "relu", "a", "relu2", "flat", "out"), small_cnn(), strict=True):
        net.add_module(name, module)
    questions = {layer: Features(batch.images, layer) for layer in ("z", "a")}
    together = Answers(model_of(net), CPU)(questions, batch.targets)
    for layer, question in questions.items():
        alone = Answers(model_of(net), CPU)({layer: question}, batch.targets)[layer]
        torch.testing.assert_close(together[layer], alone)


def test_what_is_no_question_fails_its_asker_alone(model, batch):
    found = Answers(model, CPU)({"bad": batch.images, "good": Gradients(each(lambda k: batch.images))}, batch.targets)
    assert isinstance(found["bad"], Exception)
    assert isinstance(found["good"], Tensor)


@pytest.mark.parametrize("question", [Gradients, Logits])
def test_a_question_about_nothing_is_refused(model, batch, question):
    found = Answers(model, CPU)({"toy": question(each(lambda k: batch.images), 0)}, batch.targets)["toy"]
    assert isinstance(found, Exception)


def test_a_network_without_a_logit_per_class_is_refused(batch):
    class Wrong(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return images.mean((1, 2, 3))

    found = Answers(model_of(Wrong()), CPU)({"toy": Gradients(each(lambda k: batch.images))}, batch.targets)["toy"]
    assert str(found) == "model 'toy' gave shape (5,), wanted (5, classes)"


def test_answers_are_laid_out_plainly_though_the_cpu_runs_channels_last(batch):
    layouts = []

    class Looks(Spy):
        def forward(self, images: Tensor) -> Tensor:
            layouts.append(images.is_contiguous(memory_format=torch.channels_last))
            return super().forward(images)

    found = Answers(model_of(Looks(small_cnn())), CPU)({"toy": Gradients(each(lambda k: batch.images))}, batch.targets)
    assert layouts == [True]
    assert found["toy"].is_contiguous()


def test_double_precision_is_kept():
    batch = flat([1.0, 2.0])
    images = batch.images.double() + 1e-12
    found = Answers(model_of(Formula(lambda x: (x**2).sum(1))), CPU)(
        {"toy": Gradients(each(lambda k: images))}, batch.targets
    )["toy"]
    assert torch.equal(found, 2 * images)
