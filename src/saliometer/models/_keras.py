"""What the SMERF networks share: Keras' initialisation and batch norm."""

from collections.abc import Callable

from torch import nn


def glorot(net: nn.Module) -> nn.Module:
    """Glorot-uniform kernels and zero biases, in place, from the global generator."""
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return net


def batch_norm(kind: Callable[..., nn.Module], features: int) -> nn.Module:
    """With Keras' epsilon and momentum (which PyTorch counts from the other end)."""
    return kind(features, eps=1e-3, momentum=0.01)
