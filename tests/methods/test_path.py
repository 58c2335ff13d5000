"""What all gradient and path methods keep to: methods.md 11, identities 1, 3, 7, 8 and 9."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from doubles import double, linear, raw, smooth_cnn
from saliometer.methods._path import RULES, loose, points
from saliometer.types import Batch
from toys import model_of, noise_batch, small_cnn

FIXED = [
    "gradient",
    "input_x_gradient",
    "integrated_gradients(steps=5)",
    "integrated_gradients(steps=5,path=legacy_double)",
    "blur_ig(steps=5)",
    "guided_ig(steps=10)",
]
DRAWN = ["smooth_grad(draws=3)", "ig_smooth_grad(draws=2,steps=3)", "expected_gradients(draws=4)"]


@pytest.fixture
def batch() -> Batch:
    references = torch.rand(4, 3, 8, 8, generator=torch.Generator().manual_seed(9))
    return double(replace(noise_batch(), references=references))


@pytest.mark.parametrize("text", [*FIXED, *DRAWN, "xrai(steps=3)"])
def test_a_score_times_three_has_a_map_times_three(text, batch):
    """Identity 7."""
    model, louder = smooth_cnn(), smooth_cnn()
    with torch.no_grad():
        louder.net[5].weight *= 3
        louder.net[5].bias *= 3
    torch.testing.assert_close(raw(louder, batch, text).maps, 3 * raw(model, batch, text).maps, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("text", ["var_grad(draws=3)", "smooth_grad(draws=3,squared=true)"])
def test_squares_of_a_score_times_three_are_nine_times_as_large(text, batch):
    model, louder = smooth_cnn(), smooth_cnn()
    with torch.no_grad():
        louder.net[5].weight *= 3
    torch.testing.assert_close(raw(louder, batch, text).maps, 9 * raw(model, batch, text).maps, rtol=1e-9, atol=1e-13)


class Mirrored(nn.Module):
    """The same score for an image and its mirror image."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images) + self.net(images.flip(3))


@pytest.mark.parametrize("text", FIXED)
def test_the_map_of_a_mirrored_image_is_the_mirrored_map(text, batch):
    """Identity 8."""
    model = model_of(Mirrored(smooth_cnn().net))
    found = raw(model, replace(batch, images=batch.images.flip(3)), text).maps
    torch.testing.assert_close(found, raw(model, batch, text).maps.flip(3), rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("text", [*FIXED, *DRAWN, "xrai(steps=3)"])
@pytest.mark.parametrize("output", ["logit", "probability"])
def test_a_constant_added_to_all_logits_is_nothing_to_the_map(text, output, batch):
    """Identity 9, for logits and for probabilities."""
    name, _, params = text.rstrip(")").partition("(")
    text = f"{name}({params}{params and ','}output={output})"
    model, shifted = smooth_cnn(), smooth_cnn()
    with torch.no_grad():
        shifted.net[5].bias += 7
    torch.testing.assert_close(raw(shifted, batch, text).maps, raw(model, batch, text).maps, rtol=1e-9, atol=1e-13)


def test_they_agree_on_a_network_without_biases(batch):
    """Identity 1: input times gradient is integrated gradients from 0, and sums to the score."""
    model = model_of(small_cnn(bias=False).double())
    wanted = raw(model, batch, "input_x_gradient")
    for rule in ("gauss_legendre", "middle", "right"):
        found = raw(model, batch, f"integrated_gradients(steps=5,rule={rule})")
        torch.testing.assert_close(found.maps, wanted.maps, rtol=1e-10, atol=1e-14)
        torch.testing.assert_close(found.promised, wanted.promised, rtol=1e-10, atol=1e-14)
        assert found.residual.abs().max() < 1e-13


def test_they_agree_on_a_linear_model_from_their_own_baselines(batch):
    """Identity 3, where the baseline is black for all: one black reference, black beyond sight of the blur."""
    weights = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    batch = replace(batch, references=torch.zeros(1, 3, 8, 8).double(), targets=torch.zeros(5, dtype=torch.int64))
    wanted = weights * batch.images
    texts = ("input_x_gradient", "integrated_gradients(steps=3)", "guided_ig(steps=5)", "expected_gradients(draws=3)")
    for text in texts:
        torch.testing.assert_close(raw(linear(weights), batch, text).maps, wanted, rtol=1e-10, atol=1e-13)
    soft = raw(linear(weights), batch, "blur_ig(steps=4,sigma=1e6)").maps  # spread over so much that nothing is left
    torch.testing.assert_close(soft, wanted, rtol=0, atol=1e-6)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("steps", [2, 3, 50])
def test_weights_sum_to_one_and_points_lie_on_the_way(rule, steps):
    places, weights = points("it", rule, steps)
    assert len(places) == len(weights) == steps
    assert sum(weights) == pytest.approx(1, abs=1e-12)
    assert 0 <= min(places) < max(places) <= 1


def test_a_sum_is_loose_beyond_one_per_cent_of_what_was_promised_and_never_below_1e_minus_8():
    maps = torch.tensor([1.02, 0.995, -1.02, 9e-9, 2e-8]).view(5, 1, 1, 1).double()
    promised = torch.tensor([1.0, 1.0, -1.0, 0.0, 0.0]).double()
    assert loose(maps, promised).tolist() == [True, False, True, False, True]
