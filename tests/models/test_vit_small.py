"""The small vision transformer: tokens, width, and what refuses it with a reason."""

import pytest
import torch

from architecture_toys import maps_of, seen_shapes
from saliometer import registry

NET = registry.models["vit_small"].function


def test_it_sees_64_patches_and_a_class_token():
    seen = seen_shapes(NET(2, 3), torch.zeros(2, 3, 64, 64))
    assert seen["conv_proj"] == (192, 8, 8)
    assert seen["encoder"] == (65, 192)


def test_it_can_be_trained_from_the_first_step():
    """torchvision's head starts at 0, which gives the layers before it no gradient."""
    net = NET(2, 3)
    net(torch.rand(2, 3, 64, 64))[:, 0].sum().backward()
    assert net.conv_proj.weight.grad.abs().max() > 0


@pytest.mark.parametrize("method", ["gradient", "grad_cam"])
def test_gradients_and_cam_work(method):
    assert maps_of(NET(2, 3), method).isfinite().all()


@pytest.mark.parametrize("method", ["lrp_epsilon", "deeplift_rescale"])
def test_walks_by_rules_say_why_they_refuse(method):
    with pytest.raises(AssertionError, match="UnfitError: there is no rule for the operation 'layer_norm'"):
        maps_of(NET(2, 3), method)
