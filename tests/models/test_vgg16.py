"""SMERF's VGG16: shapes and sizes from its description (smerf.md 3.1), frozen or with batch norm."""

import pytest
import torch
from torch import nn
from torchvision.models import vgg16 as torchvisions

from architecture_toys import SMALL, complete, maps_of, seen_shapes
from saliometer import registry

NET = registry.models["vgg16"].function


@pytest.mark.parametrize("frozen", [False, True])
def test_its_layers_give_the_shapes_of_the_paper(frozen):
    seen = seen_shapes(NET(2, 3, frozen=frozen), torch.zeros(2, 3, 64, 64))
    wanted = {
        "pool1": (64, 32, 32), "pool2": (128, 16, 16), "pool3": (256, 8, 8), "relu4_3": (512, 8, 8),
        "relu5_3": (512, 4, 4), "pool5": (512, 2, 2), "flatten": (512,), "dense1": (1024,), "dense2": (512,),
        "dense3": (256,), "output": (2,),
    }  # fmt: skip
    assert {name: seen[name] for name in wanted} == wanted


def test_its_convolutions_are_torchvisions():
    with torch.device("meta"):
        theirs = [tuple(value.shape) for name, value in torchvisions().features.state_dict().items()]
        ours = [tuple(value.shape) for name, value in NET(2, 3, frozen=True).state_dict().items() if "conv" in name]
    assert ours == theirs


def test_frozen_features_are_not_trained_and_have_no_batch_norm():
    net = NET(2, 3, frozen=True, width=SMALL)
    trained = {name.partition(".")[0] for name, value in net.named_parameters() if value.requires_grad}
    assert trained == {"dense1", "dense2", "dense3", "output"}
    assert not any(isinstance(layer, nn.BatchNorm2d) for layer in net)


def test_from_scratch_every_convolution_is_trained_and_normalised():
    net = NET(2, 3, width=SMALL)
    assert all(value.requires_grad for value in net.parameters())
    assert sum(isinstance(layer, nn.BatchNorm2d) for layer in net) == 13


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("method", ["lrp_z", "lrp_epsilon", "guided_backprop", "deep_taylor"])
def test_walks_by_rules_give_finite_maps(method, frozen):
    assert maps_of(NET(2, 3, width=SMALL, frozen=frozen), method).isfinite().all()


def test_deeplift_adds_up_through_pooling_and_batch_norm():
    complete(NET(2, 3, width=SMALL), "deeplift_rescale")
