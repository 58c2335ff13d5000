"""SMERF's variant of VGG16: thirteen convolutions, the mean over places, three dense layers of 1024, 512 and 256."""

from collections import OrderedDict

from torch import nn

from saliometer.models._keras import glorot
from saliometer.registry import model

BLOCKS = ((64, 64), (128, 128), (256, 256, 256), (512, 512, 512), (512, 512, 512))
UNITS = (1024, 512, 256)


@model()
def vgg16(classes: int, channels: int, *, frozen: bool = False, width: float = 1.0) -> nn.Module:
    """VGG16 for 64x64 images: frozen ImageNet features as in SMERF, or with batch norm and trained as a whole.

    `width` is the share of its filters and units. The frozen features are for whoever trains it to fill in.
    """
    layers = OrderedDict[str, nn.Module]()
    before = channels
    for block, widths in enumerate(BLOCKS, start=1):
        for number, filters in enumerate(widths, start=1):
            place, filters = f"{block}_{number}", max(1, round(width * filters))
            layers[f"conv{place}"] = nn.Conv2d(before, filters, 3, padding=1)
            if not frozen:
                layers[f"norm{place}"] = nn.BatchNorm2d(filters)
            layers[f"relu{place}"] = nn.ReLU()
            before = filters
        layers[f"pool{block}"] = nn.MaxPool2d(2)
    layers |= OrderedDict(mean=nn.AdaptiveAvgPool2d(1), flatten=nn.Flatten())
    for number, units in enumerate(UNITS, start=1):
        units = max(1, round(width * units))
        layers[f"dense{number}"], layers[f"dense_relu{number}"] = nn.Linear(before, units), nn.ReLU()
        before = units
    layers["output"] = nn.Linear(before, classes)
    net = nn.Sequential(layers)
    if frozen:
        glorot(net)
    for layer in net:
        if isinstance(layer, nn.Conv2d) and frozen:
            layer.requires_grad_(False)
        elif isinstance(layer, nn.Conv2d) and layer.bias is not None:
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
            nn.init.zeros_(layer.bias)
    return net
