"""What tests of architectures share: shapes seen on the way, and maps of a network with random weights."""

import torch
from torch import Tensor, nn

from saliometer.engine.shipped import CAM_LAYERS
from saliometer.seeds import scoped
from toys import batch_of, explain, explained, model_of

SMALL = 0.05  # the share of filters and units that keeps a test short
IMAGES = torch.rand(3, 3, 64, 64, generator=torch.Generator().manual_seed(0))


def seen_shapes(net: nn.Module, images: Tensor) -> dict[str, tuple[int, ...]]:
    """Of what every child gives out, without the number of images."""
    seen: dict[str, tuple[int, ...]] = {}
    for name, layer in net.named_children():
        layer.register_forward_hook(lambda _m, _i, out, name=name: seen.update({name: tuple(out.shape[1:])}))
    with torch.no_grad():
        net(images)
    return seen


def settled(net: nn.Module) -> nn.Module:
    """In eval mode, with batch statistics of some noise."""
    with scoped("settled"), torch.no_grad():
        for _ in range(20):
            net(torch.rand(16, 3, 64, 64))
    return net.eval()


def maps_of(net: nn.Module, method: str) -> Tensor:
    inside = dict(net.named_modules())
    layer = next(one for one in reversed(CAM_LAYERS.values()) if one in inside)
    return explain(model_of(settled(net), layer), batch_of(IMAGES), method)


def complete(net: nn.Module, method: str) -> None:
    """The map's sum is what the method promises."""
    found = explained(model_of(settled(net)), batch_of(IMAGES), method)
    assert found.residual is not None
    scale = found.promised.abs().clamp(min=1e-2)
    assert (found.residual.abs() / scale).max() < 1e-2
    assert found.maps.abs().amax((1, 2, 3)).min() > 0
