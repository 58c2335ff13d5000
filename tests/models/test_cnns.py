"""The two networks of SMERF: their sizes, their layers and how they start (smerf.md 3.1)."""

import math

import pytest
import torch
from torch import nn

from saliometer import registry
from saliometer.engine.shipped import CAM_LAYERS
from saliometer.seeds import scoped

SHAPES = {
    "simple_cnn": {
        "relu1": (32, 31, 31), "relu2": (64, 15, 15), "relu3": (64, 7, 7), "flatten": (3136,), "relu": (200,),
        "output": (2,),
    },
    "complex_cnn": {
        "relu1": (64, 31, 31), "relu2": (128, 15, 15), "relu3": (256, 7, 7), "relu4": (64, 3, 3), "flatten": (576,),
        "dense_relu1": (200,), "dense_relu2": (200,), "output": (2,),
    },
}  # fmt: skip
PARAMETERS = {"simple_cnn": 684_122, "complex_cnn": 674_338}


def built(name: str, seed: int = 0) -> nn.Module:
    with scoped("tests", seed):
        return registry.models[name].function(2, 3)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_network_has_the_parameters_of_the_authors_network(name):
    assert sum(value.numel() for value in built(name).parameters()) == PARAMETERS[name]


@pytest.mark.parametrize("name", SHAPES)
def test_every_layer_gives_the_shape_of_the_authors_layer(name):
    net, seen = built(name), {}
    for layer, module in net.named_children():
        module.register_forward_hook(lambda _m, _i, output, layer=layer: seen.update({layer: tuple(output.shape[1:])}))
    net(torch.zeros(2, 3, 64, 64))
    assert {layer: seen[layer] for layer in SHAPES[name]} == SHAPES[name]


@pytest.mark.parametrize("name", SHAPES)
def test_every_convolution_and_hidden_layer_is_followed_by_a_relu_and_the_output_by_nothing(name):
    kinds = [type(layer) for layer in built(name)]
    for kind, following in zip(kinds, [*kinds[1:], None], strict=True):
        if kind is nn.Conv2d or (kind is nn.Linear and following is not None):
            assert following is nn.ReLU
    assert kinds[-1] is nn.Linear


@pytest.mark.parametrize("name", SHAPES)
def test_weights_start_glorot_uniform_and_biases_at_zero(name):
    for layer in built(name).modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            places = layer.weight[0, 0].numel() if isinstance(layer, nn.Conv2d) else 1
            limit = math.sqrt(6 / ((layer.weight.shape[1] + layer.weight.shape[0]) * places))
            assert layer.weight.abs().max() <= limit
            assert layer.weight.abs().max() > 0.98 * limit
            assert layer.weight.var().item() == pytest.approx(limit**2 / 3, rel=0.1)
            assert layer.bias.abs().max() == 0


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_seed_gives_the_same_weights(name):
    one, same, other = (torch.cat([v.flatten() for v in built(name, s).parameters()]) for s in (0, 0, 1))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


@pytest.mark.parametrize("name", SHAPES)
def test_cam_methods_read_the_last_convolution_after_its_relu(name):
    layers = [layer for layer, module in built(name).named_children() if isinstance(module, nn.Conv2d)]
    names = [layer for layer, _ in built(name).named_children()]
    assert CAM_LAYERS[name] == names[names.index(layers[-1]) + 1]
