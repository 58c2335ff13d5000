"""The small ViT, Swin and ConvNeXt for images of 32 to 64 pixels: grids, sizes, and methods on them."""

import pytest
import torch

from saliometer import explain, registry
from saliometer.seeds import scoped

NAMES = ("vit_tiny", "swin_tiny", "convnext_tiny")


def built(name: str, side: int = 32, classes: int = 5, **options) -> torch.nn.Module:
    with scoped("small networks"):
        return registry.models[name].function(classes, 3, side=side, **options)


def places(net: torch.nn.Module, layer: str, side: int) -> tuple[int, ...]:
    """The shape that a layer gives out on an image of some side."""
    seen: list[tuple[int, ...]] = []
    handle = net.get_submodule(layer).register_forward_hook(lambda _m, _i, out: seen.append(tuple(out.shape[1:])))
    with torch.no_grad():
        net.eval()(torch.zeros(1, 3, side, side))
    handle.remove()
    return seen[0]


@pytest.mark.parametrize("side", [32, 64])
def test_the_grid_is_the_same_for_every_side(side):
    assert places(built("vit_tiny", side), "conv_proj", side) == (192, 8, 8)
    assert places(built("vit_tiny", side, stem="conv"), "conv_proj", side) == (192, 8, 8)
    stages = [places(built("swin_tiny", side), f"features.{n}", side) for n in (1, 3, 5)]
    assert stages == [(16, 16, 64), (8, 8, 128), (4, 4, 256)]
    stages = [places(built("convnext_tiny", side), f"features.{n}", side) for n in (1, 3, 5)]
    assert stages == [(64, 16, 16), (128, 8, 8), (256, 4, 4)]


@pytest.mark.parametrize("name", NAMES)
def test_it_is_small(name):
    assert 1e6 < sum(values.numel() for values in built(name).parameters()) < 5e6


@pytest.mark.parametrize("name", NAMES)
def test_it_learns_from_the_first_step(name):
    net = built(name)
    net(torch.rand(2, 3, 32, 32))[:, 0].sum().backward()
    first = next(net.parameters() if name != "vit_tiny" else net.conv_proj.parameters())
    assert first.grad.abs().max() > 0


@pytest.mark.parametrize(("name", "side"), [("vit_tiny", 20), ("vit_tiny", 8), ("swin_tiny", 40), ("convnext_tiny", 8)])
def test_a_side_that_does_not_go_is_refused(name, side):
    with pytest.raises(ValueError, match=rf"{name} takes sides .* a multiple of \d+: {side} came"):
        built(name, side)


def test_an_unknown_stem_is_refused():
    with pytest.raises(LookupError, match="there is no stem 'convs'"):
        built("vit_tiny", stem="convs")


@pytest.mark.parametrize("method", ["grad_cam(relu=none)", "integrated_gradients(steps=3)", "smooth_grad(draws=2)"])
@pytest.mark.parametrize("name", [*NAMES, "resnet20"])
def test_methods_explain_it_and_find_their_layer(name, method):
    with scoped("small networks"):
        net = registry.models[name].function(5, 3, **({} if name == "resnet20" else {"side": 32}))
    images = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    maps = explain(net.eval(), images, method)
    assert maps.shape == (2, 32, 32)
    assert maps.isfinite().all()
    assert len(maps[0].unique()) > 4
