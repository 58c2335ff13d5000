"""SMERF's variant of AlexNet: five convolutions and four dense layers, each with batch norm, the output too."""

from collections import OrderedDict

from torch import nn

from saliometer.models._keras import batch_norm, glorot
from saliometer.registry import model

FILTERS, SIDES, UNITS = (96, 256, 384, 384, 256), (11, 5, 3, 3, 3), (4096, 4096, 1000)
POOLED = (1, 2, 5)  # convolutions that a pooling follows


@model()
def alexnet(classes: int, channels: int, *, width: float = 1.0) -> nn.Module:
    """AlexNet with batch norm for 64x64 images, as in SMERF; `width` is the share of its filters and units."""
    layers = OrderedDict[str, nn.Module](pad=nn.ZeroPad2d((3, 4, 3, 4)))  # Keras' 'same' for 11x11 in steps of 4
    before = channels
    for number, (filters, side) in enumerate(zip(FILTERS, SIDES, strict=True), start=1):
        filters = max(1, round(width * filters))
        stride, padding = (4, 0) if number == 1 else (1, side // 2)
        layers[f"conv{number}"] = nn.Conv2d(before, filters, side, stride, padding)
        layers[f"norm{number}"] = batch_norm(nn.BatchNorm2d, filters)
        layers[f"relu{number}"] = nn.ReLU()
        if number in POOLED:
            layers[f"pool{number}"] = nn.MaxPool2d(2)
        before = filters
    layers["flatten"] = nn.Flatten()
    before = 2 * 2 * before
    for number, units in enumerate(UNITS, start=1):
        units = max(1, round(width * units))
        layers[f"dense{number}"] = nn.Linear(before, units)
        layers[f"dense_norm{number}"] = batch_norm(nn.BatchNorm1d, units)
        layers[f"dense_relu{number}"] = nn.ReLU()
        layers[f"dropout{number}"] = nn.Dropout(0.4)
        before = units
    layers["output"] = nn.Linear(before, classes)
    layers["output_norm"] = batch_norm(nn.BatchNorm1d, classes)
    return glorot(nn.Sequential(layers))
