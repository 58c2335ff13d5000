"""What the CAM family shares: a layer's output as feature maps on a grid, the way back, and maps of the images."""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer import graph as graphs
from saliometer.graph import Network, UnfitError
from saliometer.methods._path import vanishes
from saliometer.types import Activations, At, Batch, Explained, Features, Model, Question, Scores, Walk, unaltered

RELUS = ("before", "after", "none")
SKEWED = math.log(1.5)  # a grid this far from the image's aspect ratio may have its channels elsewhere
APART = 16  # a sequence may begin with this many tokens that stand for no place
LAST = (nn.LayerNorm, nn.Linear)  # give out channels last, whatever goes in


@dataclass(frozen=True)
class Grid:
    """Where the places and the channels of a layer's output lie."""

    height: int
    width: int
    layout: str = "first"  # channels 'first' (N, k, h, w), 'last' (N, h, w, k), or 'tokens' (N, T, k)
    apart: int = 0  # tokens in front that stand for no place: class token, registers

    def maps(self, output: Tensor) -> Tensor:
        """(N, k, h, w) of what the layer gives out."""
        if self.layout == "tokens":
            output = output[:, self.apart :].unflatten(1, (self.height, self.width))
        return output if self.layout == "first" else output.movedim(-1, -3)

    def restored(self, maps: Tensor, output: Tensor) -> Tensor:
        """(M, N, ...) as the layer gives it out, of maps (M, N, k, h, w); tokens apart are those of its own output."""
        if self.layout == "first":
            return maps
        last = maps.movedim(-3, -1)
        if self.layout == "last":
            return last
        front = output[:, : self.apart].expand(len(maps), -1, -1, -1)
        return torch.cat((front, last.flatten(2, 3)), 2)


@dataclass(frozen=True, eq=False)
class Layer:
    """What a layer gives out on the images."""

    at: At
    grid: Grid
    output: Tensor  # (N, ...)

    @property
    def maps(self) -> Tensor:
        return self.grid.maps(self.output)

    def score(self) -> Generator[Question, Tensor, Tensor]:
        """(N,) float64: the target's logit."""
        return (yield Scores(unaltered(self.at.images)))[0].double()


def grid_of(shape: Sequence[int], images: Sequence[int], module: nn.Module) -> Grid | None:
    """The grid in an output of that shape, which has the aspect ratio of the images; None if it has no places."""
    grid = None
    if len(shape) == 3:
        grid = _sequence(shape[1], images[2], images[3])
    elif len(shape) == 4:
        first, last = (shape[2], shape[3]), (shape[1], shape[2])
        mistaken = skew(first, images) > SKEWED and skew(last, images) < skew(first, images)
        grid = Grid(*last, "last") if type(module) in LAST or mistaken else Grid(*first)
    return grid if grid and grid.height * grid.width > 1 else None


def skew(grid: Sequence[int], images: Sequence[int]) -> float:
    """How far two aspect ratios are apart, on a logarithmic scale."""
    return abs(math.log(grid[0] * images[3] / (grid[1] * images[2])))


def _sequence(tokens: int, height: int, width: int) -> Grid | None:
    """The grid that patches of some size make of an image, if all tokens but a few in front are its places."""
    sides = {(height // patch, width // patch) for patch in range(1, min(height, width) + 1)}
    sides |= {(-(-height // patch), -(-width // patch)) for patch in range(1, max(height, width) + 1)}
    fitting = [
        (tokens - rows * columns, rows, columns) for rows, columns in sides if 0 <= tokens - rows * columns <= APART
    ]
    return Grid(*min(fitting)[1:], "tokens", min(fitting)[0]) if fitting else None


def features(
    name: str, model: Model, batch: Batch, layer: str
) -> Generator[Question, Tensor, tuple[Layer, Tensor, Tensor]]:
    """A layer, its activations and the score's gradient there, (N, k, h, w) each; `name` is the method that asks."""
    at = _place(name, model, batch, layer)
    output, slopes = yield Features(at.images, at.layer)
    found = _found(name, model, at, output)
    return found, found.maps, found.grid.maps(slopes)


def activations(name: str, model: Model, batch: Batch, layer: str) -> Generator[Question, Tensor, Layer]:
    """A layer without gradients: a forward pass is enough."""
    at = _place(name, model, batch, layer)
    return _found(name, model, at, (yield Activations(at.images, at.layer)))


def is_affine_behind(at: At) -> Generator[Question, Tensor, bool]:
    """Whether the logits are an affine function of what the layer gives out, so that its gradient says all of it."""

    def run(network: Network, rows: slice) -> Tensor:
        graph = network.graph(at.images[rows])
        affine = at.layer in graph.layers and graphs.is_affine_behind(graph, graph.layers[at.layer])
        return torch.full((len(at.images[rows]),), affine)

    try:
        return bool((yield Walk(at.images, run, passes=0)).all())
    except UnfitError:  # its operations cannot be captured
        return False


def _place(name: str, model: Model, batch: Batch, layer: str) -> At:
    chosen, modules = layer or model.cam_layer, dict(model.net.named_modules())
    asked = [modules[chosen]] if chosen in modules else modules.values() if not chosen else ()
    if any(isinstance(module, torch.jit.ScriptModule) for module in asked):
        raise UnfitError(
            f"{name}: model '{model.name}' is TorchScript, which hides its layers: give the module it was made from"
        )
    if not chosen:
        raise UnfitError(
            f"{name}: model '{model.name}' has no layer of feature maps that all of the score passes; "
            f"name one with {name}(layer=NAME)"
        )
    return At(batch.images, chosen)


def _found(name: str, model: Model, at: At, output: Tensor) -> Layer:
    grid = grid_of(output.shape, at.images.shape, model.net.get_submodule(at.layer))
    if grid is None:
        raise UnfitError(
            f"{name}: layer '{at.layer}' gives shape {tuple(output.shape)}, wanted (N, channels, height, width), "
            "(N, height, width, channels) or (N, tokens, channels) with more than one place; "
            f"name another with {name}(layer=NAME)"
        )
    return Layer(at, grid, output)


def enlarged(maps: Tensor, images: Tensor) -> Tensor:
    """(N, k, H, W): maps (N, k, h, w) at the images' size, bilinear between pixel centres."""
    return F.interpolate(maps, images.shape[2:], mode="bilinear", align_corners=False)


def ranged(maps: Tensor) -> Tensor:
    """Each (h, w) map from 0 to 1; 0 everywhere where it is flat."""
    low, high = maps.amin((-2, -1), keepdim=True), maps.amax((-2, -1), keepdim=True)
    spread = high - low
    return (maps - low) / spread.where(spread > 0, 1)


def shown(
    maps: Tensor,
    layer: Layer,
    relu: str,
    flags: Mapping[str, Tensor] | None = None,
    residual: Tensor | None = None,
    promised: Tensor | None = None,
) -> Explained:
    """Maps (N, h, w) of a layer as those of the images, with a ReLU before or after they are enlarged, or none."""
    small = maps[:, None].relu() if relu == "before" else maps[:, None]
    large = enlarged(small, layer.at.images)
    large = large.relu() if relu == "after" else large
    return Explained(large, residual, promised, {"dead_cam": vanishes(large), **(flags or {})}, sides(layer))


def sides(layer: Layer) -> dict[str, Tensor]:
    """What a map of few places must be read with: how many there are."""
    images = layer.at.images
    return {
        "layer_height": images.new_full((len(images),), layer.grid.height),
        "layer_width": images.new_full((len(images),), layer.grid.width),
    }
