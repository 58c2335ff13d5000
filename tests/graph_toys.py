"""Networks to capture: torchvision's with random weights, and small ones written as one function."""

from collections.abc import Callable

import numpy as np
import torch
import torchvision
from torch import Tensor, nn

from saliometer.graph import Graph, Network, family
from saliometer.graph.capture import capture

LARGE = ("alexnet", "vgg11_bn", "vgg16_bn", "vit_b_16")  # initialised in a quicker way
SETTINGS = {"googlenet": {"init_weights": False}, "vit_b_16": {"image_size": 32}}


def torchvision_net(name: str) -> nn.Module:
    """With random weights, in eval mode; no gradient is zero because a head is."""
    build, settings = getattr(torchvision.models, name), SETTINGS.get(name, {})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if name not in LARGE:
            return build(weights=None, **settings).eval()
        with torch.device("meta"):
            net = build(weights=None, **settings).eval()
        net = net.to_empty(device="cpu")
        for values in (*net.parameters(), *net.buffers()):
            if values.is_floating_point():
                values.data.uniform_(0.01, 0.05) if values.ndim == 1 else values.data.uniform_(-0.05, 0.05)
        return net


class Written(nn.Module):
    """A small network whose forward is a function of its layers and the images."""

    def __init__(self, forward: Callable[["Written", Tensor], Tensor], **layers: object) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3)
        self.relu, self.head = nn.ReLU(inplace=True), nn.Linear(4, 3)
        for name, layer in layers.items():
            setattr(self, name, layer)
        self.written = forward

    def forward(self, images: Tensor) -> Tensor:
        return self.written(self, images)


def written(forward: Callable[[Written, Tensor], Tensor], seed: int = 0, **layers: object) -> Written:
    """In eval mode; the layers are `first` and `second`, `relu`, `head` (of 4 features), and what is given."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return Written(forward, **layers).eval()


def pictures(count: int = 3, side: int = 8, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.rand(count, 3, side, side, generator=torch.Generator().manual_seed(0), dtype=torch.float64).to(dtype)


def graph_of(net: nn.Module, images: Tensor | None = None) -> Graph:
    """Captured, and not yet checked."""
    return capture(net, net, pictures() if images is None else images)


def operations(graph: Graph) -> list[str]:
    return [step.op for step in graph.steps[1:]]


def kinds(graph: Graph) -> list[str]:
    return [family(graph, step) for step in graph.steps[1:]]


def settled(net: nn.Module, images: Tensor, **settings: bool) -> Network:
    """A network that has run once and agrees with itself."""
    network = Network(net, net)
    network.run(images, **settings)
    network.settle()
    return network


LOOKS: dict[str, Callable[[Tensor], object]] = {  # ways to ask whether images are bright on the whole
    "bool": lambda x: x.mean() > 0.5,
    "item": lambda x: x.mean().item() > 0.5,
    "float": lambda x: round(float(x.mean())),
    "tolist": lambda x: x.mean().tolist() > 0.5,
    "numpy": lambda x: x.detach().numpy().mean() > 0.5,
    "dlpack": lambda x: np.from_dlpack(x.detach()).mean() > 0.5,
    "equal": lambda x: torch.equal(x, x.clamp(min=0.4)),
    "contains": lambda x: True in (x.mean((1, 2, 3)) > 0.5),
    "nonzero": lambda x: len((x.mean((1, 2, 3)) > 0.5).nonzero()),
    "chosen": lambda x: len(x[x.mean((1, 2, 3)) > 0.5]),
    "by another type": lambda x: type(x) is Tensor and x.mean() > 0.5,
    "numpy by another type": lambda x: type(x) is Tensor and x.detach().numpy().mean() > 0.5,
}


def looking(look: Callable[[Tensor], object]) -> Callable[[Written, Tensor], Tensor]:
    """A forward that does something else for bright images, and goes on where it cannot look."""

    def forward(net: Written, images: Tensor) -> Tensor:
        try:
            bright = bool(look(images))
        except Exception:
            bright = False
        return net.head(net.first(images).relu().mean((2, 3))) * (3 if bright else 1)

    return forward
