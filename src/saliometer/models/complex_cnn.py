"""The network of SMERF's complex settings: four strided convolutions and two hidden layers."""

from collections import OrderedDict

from torch import nn

from saliometer.models._keras import glorot
from saliometer.registry import model


@model()
def complex_cnn(classes: int, channels: int) -> nn.Module:
    """Four strided 3x3 convolutions and two dense layers of 200, for 64x64 images; 674,338 parameters."""
    layers = OrderedDict[str, nn.Module]()
    width = channels
    for number, filters in enumerate((64, 128, 256, 64), start=1):
        layers[f"conv{number}"] = nn.Conv2d(width, filters, 3, stride=2)
        layers[f"relu{number}"] = nn.ReLU()
        width = filters
    layers["flatten"] = nn.Flatten()
    width = 3 * 3 * width
    for number in (1, 2):
        layers[f"dense{number}"] = nn.Linear(width, 200)
        layers[f"dense_relu{number}"] = nn.ReLU()
        width = 200
    layers["output"] = nn.Linear(width, classes)
    return glorot(nn.Sequential(layers))
