"""Scores: one logit, a sigmoid for each class, probabilities that saturation does not lose, any caller's mode."""

import math

import pytest
import torch
from torch import Tensor, nn

from saliometer import explain
from saliometer.engine.answer import Answers
from saliometer.types import Gradients, Model, Scores, unaltered
from toys import CPU, small_cnn

DOUBLE = torch.float64


class Given(nn.Module):
    """Logits that are linear in the first pixels: `weights` times them."""

    def __init__(self, weights: list[list[float]], dtype: torch.dtype) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights, dtype=dtype))

    def forward(self, images: Tensor) -> Tensor:
        return images.flatten(1)[:, : self.weights.shape[1]] @ self.weights.T


def asked(
    net: nn.Module, pixels: list[float], target: int, of: str, link: str = "softmax"
) -> tuple[float, list[float]]:
    """The score of a target and its gradient."""
    dtype = next(net.parameters()).dtype
    images = torch.tensor(pixels, dtype=dtype).view(1, 1, 1, -1)
    answers, targets = Answers(Model("toy", net, "", "", link=link), CPU), torch.tensor([target])
    found = answers({"score": Scores(unaltered(images), of=of), "slope": Gradients(unaltered(images), of=of)}, targets)
    assert all(isinstance(one, Tensor) for one in found.values()), found
    return found["score"].item(), found["slope"].flatten().tolist()


# Probabilities


@pytest.mark.parametrize(
    ("gap", "dtype"),
    [(3, DOUBLE), (40, DOUBLE), (-40, DOUBLE), (100, DOUBLE), (-100, DOUBLE), (3, torch.float32), (40, torch.float32),
     (85, torch.float32), (-85, torch.float32)],
)  # fmt: skip
def test_a_saturated_softmax_keeps_its_gradient(gap, dtype):
    """p (1 - p) = 1 / (2 + 2 cosh(gap)), down to 1e-38; autograd through a softmax gives 0 from a gap of 37 on."""
    net = Given([[1, 0], [0, 1]], dtype)
    score, slope = asked(net, [gap, 0], 0, "probability")
    wanted = 1 / (2 + 2 * math.cosh(gap))
    assert slope == pytest.approx([wanted, -wanted], rel=1e-12 if dtype == DOUBLE else 1e-5, abs=0)
    assert score == pytest.approx(1 / (1 + math.exp(-gap)), rel=1e-12 if dtype == DOUBLE else 1e-5, abs=0)
    if abs(gap) >= 40:
        leaf = torch.tensor([float(gap), 0.0], dtype=dtype).requires_grad_()
        lost = torch.autograd.grad(leaf.softmax(0)[0], leaf)[0]
        assert gap < 0 or lost[0] == 0


def test_the_probability_of_one_of_many_is_a_softmaxs():
    net = Given(torch.randn(5, 3, generator=torch.Generator().manual_seed(0)).tolist(), DOUBLE)
    pixels = torch.tensor([0.3, -2.0, 1.5], dtype=DOUBLE).requires_grad_()
    for target in range(5):
        wanted = (net.weights @ pixels).softmax(0)[target]
        score, slope = asked(net, pixels.tolist(), target, "probability")
        assert score == pytest.approx(wanted.item(), rel=1e-12)
        assert slope == pytest.approx(torch.autograd.grad(wanted, pixels)[0].tolist(), rel=1e-10)
        logarithm = (net.weights @ pixels).log_softmax(0)[target]
        score, slope = asked(net, pixels.tolist(), target, "log_probability")
        assert score == pytest.approx(logarithm.item(), rel=1e-12)
        assert slope == pytest.approx(torch.autograd.grad(logarithm, pixels)[0].tolist(), rel=1e-10)


@pytest.mark.parametrize("size", [1e3, 1e8, 3e38])
def test_huge_logits_give_numbers(size):
    for of in ("probability", "log_probability", "logit"):
        for link in ("softmax", "sigmoid"):
            score, slope = asked(Given([[1.0], [-1.0]], torch.float32), [size], 0, of, link)
            assert math.isfinite(score), (of, link)
            assert all(map(math.isfinite, slope)), (of, link)


@pytest.mark.parametrize(
    "method", ["gradient", "input_x_gradient", "smooth_grad(draws=4)", "integrated_gradients(steps=4)"]
)
def test_methods_keep_the_gradient_of_a_saturated_probability(method):
    net = Given([[40.0, 1.0], [0.0, 0.0]], DOUBLE).eval()
    text = method.replace("(", "(output=probability,") if "(" in method else f"{method}(output=probability)"
    maps = explain(net, torch.ones(1, 1, 1, 2, dtype=DOUBLE), text, torch.tensor([0]))
    assert (maps > 0).all()


# A sigmoid for each class


def test_with_multilabel_a_class_is_explained_whatever_the_others_say():
    net = Given([[1.0, 2.0], [3.0, -1.0], [0.5, 0.5]], DOUBLE).eval()
    images = torch.tensor([0.7, -0.4], dtype=DOUBLE).view(1, 1, 1, 2)
    for target in range(3):
        z = net(images)[0, target].item()
        p = 1 / (1 + math.exp(-z))
        found = explain(net, images, "gradient(output=probability)", torch.tensor([target]), multilabel=True)
        assert found.flatten().tolist() == pytest.approx([p * (1 - p) * w for w in net.weights[target].tolist()])
        assert asked(net, [0.7, -0.4], target, "log_probability", "sigmoid")[0] == pytest.approx(math.log(p))
    shared = explain(net, images, "gradient(output=probability)", torch.tensor([0]))
    alone = explain(net, images, "gradient(output=probability)", torch.tensor([0]), multilabel=True)
    assert not torch.allclose(shared, alone)


# One logit


def one_logit() -> nn.Sequential:
    return nn.Sequential(*small_cnn()[:5], nn.Linear(80, 1)).eval()


def test_one_logit_z_is_two_classes_with_scores_minus_z_and_z():
    net, images = one_logit(), torch.rand(4, 3, 8, 8)
    yes, no = (explain(net, images, "gradient", torch.full((4,), target)) for target in (1, 0))
    leaf = images.clone().requires_grad_()
    wanted = torch.autograd.grad(net(leaf).sum(), leaf)[0].sum(1)
    torch.testing.assert_close(yes, wanted)
    torch.testing.assert_close(no, -wanted)
    predicted = (net(images)[:, 0] > 0).long()
    torch.testing.assert_close(explain(net, images, "gradient"), explain(net, images, "gradient", predicted))
    with pytest.raises(ValueError, match=r"targets are 2\.\.2, but model 'Sequential' has 2 classes"):
        explain(net, images, "gradient", torch.full((4,), 2))


@pytest.mark.parametrize("multilabel", [False, True])
def test_one_logits_probability_is_a_sigmoid(multilabel):
    net = Given([[2.0, -1.0]], DOUBLE).eval()
    images = torch.tensor([0.7, 0.4], dtype=DOUBLE).view(1, 1, 1, 2)
    p = torch.sigmoid(net(images)).item()
    for target, sign in ((1, 1), (0, -1)):
        found = explain(net, images, "gradient(output=probability)", torch.tensor([target]), multilabel=multilabel)
        assert found.flatten().tolist() == pytest.approx([sign * p * (1 - p) * w for w in (2, -1)])


@pytest.mark.parametrize("method", ["guided_backprop", "deconvnet", "deeplift_rescale", "deeplift_reveal_cancel",
                                    "grad_cam", "rise(masks=20)", "occlusion(window=4,stride=4)"])  # fmt: skip
@pytest.mark.parametrize("target", [0, 1])
def test_one_logit_is_explained_as_two_opposite_ones(method, target):
    one = one_logit()
    two = nn.Sequential(*one[:5], nn.Linear(80, 2)).eval()
    two[5].weight.data = torch.cat((-one[5].weight, one[5].weight))
    two[5].bias.data = torch.cat((-one[5].bias, one[5].bias))
    images, targets = torch.rand(3, 3, 8, 8), torch.full((3,), target)
    wanted = explain(two, images, method, targets, multilabel=True)
    torch.testing.assert_close(explain(one, images, method, targets), wanted, rtol=1e-4, atol=1e-6)


# The caller's mode


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("method", ["gradient", "guided_backprop", "lrp_epsilon", "lrp_gamma", "deep_taylor",
                                    "deeplift_rescale", "deeplift_reveal_cancel", "deep_shap", "grad_cam",
                                    "integrated_gradients(steps=3)", "gradient(output=probability)"])  # fmt: skip
def test_callers_may_have_turned_gradients_off(method, mode, inside):
    """The images may be made inside as well, which makes them tensors that autograd does not take."""
    net, images, references = small_cnn().eval(), torch.rand(3, 3, 8, 8), torch.rand(4, 3, 8, 8)
    wanted = explain(net, images, method, references=references)
    with mode():
        if inside:
            images, references = images.clone(), references.clone()
        found = explain(net, images, method, references=references)
        assert torch.is_inference_mode_enabled() == (mode is torch.inference_mode)
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    assert torch.equal(found, wanted)
    assert not found.requires_grad


def test_images_that_ask_for_gradients_get_none():
    images = torch.rand(3, 3, 8, 8).requires_grad_()
    for method in ("gradient", "lrp_epsilon", "deeplift_rescale", "rise(masks=10)", "smooth_grad(draws=3)"):
        assert not explain(small_cnn().eval(), images, method).requires_grad, method
    assert images.grad is None
