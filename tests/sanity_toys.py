"""Networks for sanity checks: layers defined in another order than they run, tokens, tables, batch norms."""

import torch
from torch import Tensor, nn

from saliometer.seeds import scoped


class Backwards(nn.Module):
    """Defined from the head to the first layer; one layer is never run."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(5, 3)
        self.unused = nn.Linear(4, 4)
        self.second = nn.Conv2d(4, 5, 3)
        self.norm = nn.BatchNorm2d(4)
        self.first = nn.Conv2d(3, 4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.second(self.norm(self.first(images)).relu()).relu().mean((2, 3)))


class Attending(nn.Module):
    """A class token, position embeddings, attention whose projection is no layer of its own, a layer scale."""

    def __init__(self, width: int = 8, blocks: int = 2) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, stride=4)
        self.token = nn.Parameter(torch.randn(1, 1, width))
        self.positions = nn.Parameter(torch.randn(1, 5, width))
        self.blocks = nn.Sequential(*(Block(width) for _ in range(blocks)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 3)

    def forward(self, images: Tensor) -> Tensor:
        patches = self.patches(images).flatten(2).mT
        tokens = torch.cat((self.token.expand(len(images), -1, -1), patches), 1) + self.positions
        return self.head(self.norm(self.blocks(tokens))[:, 0])


class Block(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.linspace(0.5, 1.5, width))
        self.ln_1 = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.ln_2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, tokens: Tensor) -> Tensor:
        seen = self.ln_1(tokens)
        tokens = tokens + self.scale * self.attention(seen, seen, seen, need_weights=False)[0]
        return tokens + self.mlp(self.ln_2(tokens))


def trained(net: nn.Module, seed: int = 0) -> nn.Module:
    """Every number another than an initialiser would give it; in eval mode, frozen."""
    with scoped("trained", seed), torch.no_grad():
        for name, value in (*net.named_parameters(), *net.named_buffers()):
            if value.is_floating_point():
                value.add_(0.3 * torch.randn_like(value))
                if name.endswith("running_var"):
                    value.abs_().add_(0.1)
    return net.eval().requires_grad_(False)


def backwards() -> nn.Module:
    with scoped("backwards"):
        return trained(Backwards())


def attending() -> nn.Module:
    with scoped("attending"):
        return trained(Attending())


def pictures(count: int = 4, side: int = 8) -> Tensor:
    with scoped("pictures"):
        return torch.rand(count, 3, side, side)


def state(net: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in net.state_dict().items()}


def changed(net: nn.Module, before: dict[str, Tensor]) -> set[str]:
    return {name for name, value in net.state_dict().items() if not torch.equal(value, before[name])}
