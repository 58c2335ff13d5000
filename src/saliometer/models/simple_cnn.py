"""The small network of SMERF's simple settings: three strided convolutions and one hidden layer."""

from collections import OrderedDict

from torch import nn

from saliometer.models._keras import glorot
from saliometer.registry import model


@model()
def simple_cnn(classes: int, channels: int) -> nn.Module:
    """Three strided 3x3 convolutions and a dense layer of 200, for 64x64 images; 684,122 parameters."""
    layers = OrderedDict[str, nn.Module]()
    width = channels
    for number, filters in enumerate((32, 64, 64), start=1):
        layers[f"conv{number}"] = nn.Conv2d(width, filters, 3, stride=2)
        layers[f"relu{number}"] = nn.ReLU()
        width = filters
    layers |= OrderedDict(flatten=nn.Flatten(), dense=nn.Linear(7 * 7 * width, 200), relu=nn.ReLU())
    layers["output"] = nn.Linear(200, classes)
    return glorot(nn.Sequential(layers))
