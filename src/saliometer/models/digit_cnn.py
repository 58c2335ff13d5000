"""The network for digits of the first sanity checks (Adebayo et al., 2018): two convolutions and one hidden layer."""

from collections import OrderedDict

from torch import nn

from saliometer.registry import model, one_of

INITS = ("truncated_normal", "pytorch")


@model()
def digit_cnn(
    classes: int, channels: int, *, rows: int = 64, columns: int = 64, width: float = 1.0,
    init: str = "truncated_normal",
) -> nn.Module:  # fmt: skip
    """Two 5x5 convolutions of 32 and 64, each max-pooled, and a dense layer of 1024; `width` is the share of them."""
    one_of("init", init, INITS)
    layers = OrderedDict[str, nn.Module]()
    before = channels
    for number, filters in enumerate((32, 64), start=1):
        filters = max(1, round(width * filters))
        layers[f"conv{number}"] = nn.Conv2d(before, filters, 5, padding=2)
        layers[f"relu{number}"] = nn.ReLU()
        layers[f"pool{number}"] = nn.MaxPool2d(2)
        before = filters
    units = max(1, round(width * 1024))
    layers |= OrderedDict(flatten=nn.Flatten(), dense=nn.Linear(rows // 4 * (columns // 4) * before, units))
    layers |= OrderedDict(relu=nn.ReLU(), output=nn.Linear(units, classes))
    net = nn.Sequential(layers)
    return truncated_normal(net) if init == "truncated_normal" else net


def truncated_normal(net: nn.Module, std: float = 0.1, bias: float = 0.1) -> nn.Module:
    """TensorFlow's: cut at two standard deviations; in place, from the global generator."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.trunc_normal_(layer.weight, std=std, a=-2 * std, b=2 * std)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, bias)
    return net
