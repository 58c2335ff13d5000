"""What the SMERF networks share: Keras' initialisation."""

from torch import nn


def glorot(net: nn.Module) -> nn.Module:
    """Glorot-uniform kernels and zero biases, in place, from the global generator."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return net
