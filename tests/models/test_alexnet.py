"""SMERF's AlexNet: shapes and sizes worked out from its description (smerf.md 3.1), batch norm as Keras has it."""

import pytest
import torch
from torch import nn

from architecture_toys import SMALL, complete, maps_of, seen_shapes
from saliometer import registry

NET = registry.models["alexnet"].function


def test_its_layers_give_the_shapes_of_the_paper():
    seen = seen_shapes(NET(2, 3), torch.zeros(2, 3, 64, 64))
    wanted = {
        "conv1": (96, 16, 16), "pool1": (96, 8, 8), "conv2": (256, 8, 8), "pool2": (256, 4, 4), "conv3": (384, 4, 4),
        "conv4": (384, 4, 4), "relu5": (256, 4, 4), "pool5": (256, 2, 2), "flatten": (1024,), "dense1": (4096,),
        "dense2": (4096,), "dense3": (1000,), "output": (2,), "output_norm": (2,),
    }  # fmt: skip
    assert {name: seen[name] for name in wanted} == wanted


def test_it_has_the_parameters_of_its_description():
    shapes = (3, 96, 11), (96, 256, 5), (256, 384, 3), (384, 384, 3), (384, 256, 3)
    convolutions = sum(before * after * side**2 + after for before, after, side in shapes)
    dense = sum(a * b + b for a, b in ((1024, 4096), (4096, 4096), (4096, 1000), (1000, 2)))
    norms = 2 * (96 + 256 + 384 + 384 + 256 + 4096 + 4096 + 1000 + 2)
    assert sum(value.numel() for value in NET(2, 3).parameters()) == convolutions + dense + norms


def test_every_layer_has_batch_norm_and_three_have_dropout():
    kinds = [type(layer) for layer in NET(2, 3, width=SMALL)]
    for place, kind in enumerate(kinds):
        if kind in (nn.Conv2d, nn.Linear):
            assert kinds[place + 1] in (nn.BatchNorm2d, nn.BatchNorm1d)
    assert kinds.count(nn.Dropout) == 3
    assert kinds[-1] is nn.BatchNorm1d
    norm = NET(2, 3, width=SMALL).norm1
    assert (norm.eps, norm.momentum) == (1e-3, 0.01)


def test_the_first_padding_is_keras_same():
    """11x11 in steps of 4 on 64 pixels: 16 places need 71, so 3 before and 4 after."""
    net = NET(1, 1, width=SMALL)
    first = net.pad(torch.ones(1, 1, 64, 64))
    assert first.shape == (1, 1, 71, 71)
    assert not first[..., :3, :].any()
    assert first[..., 3, 3] == 1


@pytest.mark.parametrize(
    "method", ["lrp_z", "lrp_epsilon", "lrp_alpha_beta", "deep_taylor", "guided_backprop", "deconvnet"]
)
def test_walks_by_rules_give_finite_maps(method):
    net = NET(2, 3, width=SMALL)
    nn.init.constant_(net.output_norm.bias, 5.0)  # deep_taylor has nothing to share out below 0
    maps = maps_of(net, method)
    assert maps.isfinite().all()
    assert maps.abs().amax((1, 2, 3)).min() > 0


@pytest.mark.parametrize("method", ["deeplift_rescale", "deeplift_reveal_cancel"])
def test_what_promises_to_add_up_does_through_pooling_and_batch_norm(method):
    complete(NET(2, 3, width=SMALL), method)
