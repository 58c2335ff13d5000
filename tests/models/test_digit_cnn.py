"""The network for digits: the layers and the initialisation of the first sanity checks."""

import pytest
import torch
from torch import nn

from saliometer.models.digit_cnn import digit_cnn
from saliometer.seeds import scoped


def built(**params) -> nn.Module:
    with scoped("digit_cnn"):
        return digit_cnn(10, 1, rows=28, columns=28, **params)


def test_its_layers_are_those_of_the_reference():
    net = built()
    shapes = {name: tuple(value.shape) for name, value in net.named_parameters() if name.endswith("weight")}
    assert shapes == {
        "conv1.weight": (32, 1, 5, 5),
        "conv2.weight": (64, 32, 5, 5),
        "dense.weight": (1024, 7 * 7 * 64),
        "output.weight": (10, 1024),
    }
    assert net(torch.zeros(2, 1, 28, 28)).shape == (2, 10)


def test_weights_are_a_normal_cut_at_two_deviations_and_biases_a_tenth():
    net = built()
    assert all((value == 0.1).all() for name, value in net.named_parameters() if name.endswith("bias"))
    dense = net.dense.weight
    assert dense.abs().max() <= 0.2
    assert dense.std().item() == pytest.approx(0.0880, abs=0.001)  # of a normal of 0.1 so cut
    plain = built(init="pytorch")
    assert plain.dense.weight.abs().max() < 0.02
    with pytest.raises(LookupError, match="there is no init 'glorot'"):
        built(init="glorot")


def test_width_and_size_are_chosen():
    net = built(width=0.25)
    assert (net.conv1.out_channels, net.conv2.out_channels, net.dense.out_features) == (8, 16, 256)
    with scoped("wide"):
        wide = digit_cnn(5, 3, rows=28, columns=56, width=0.1)
    assert wide(torch.zeros(1, 3, 28, 56)).shape == (1, 5)
