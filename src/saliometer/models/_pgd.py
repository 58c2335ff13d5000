"""PGD: images moved within a small box so that a classifier errs most (Madry et al., 2018)."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer.seeds import uniform


@dataclass(frozen=True)
class Attack:
    """SMERF's: how far a pixel may move in all, by how much in a step, and how many steps."""

    eps: float = 0.3
    step: float = 0.1
    iterations: int = 10

    def grown(self, share: float) -> "Attack":
        """The same in so much of its size, at most all of it."""
        share = min(share, 1.0)
        return replace(self, eps=self.eps * share, step=self.step * share)


def pgd(net: nn.Module, images: Tensor, labels: Tensor, attack: Attack, seeds: Tensor | None = None) -> Tensor:
    """Untargeted and within [0, 1]; from a random place in the box where seeds are given, else from the image.

    The network is asked in eval mode, so that no batch statistics leak between images. Nothing waits for the device.
    """
    before = net.training
    net.eval()
    low, high = (images - attack.eps).clamp(min=0), (images + attack.eps).clamp(max=1)
    found = images
    if seeds is not None:
        moved = uniform(seeds, "pgd start", *images.shape[1:]).mul_(2 * attack.eps).sub_(attack.eps)
        found = torch.clamp(images + moved, low, high)
    for _ in range(attack.iterations):
        found = found.detach().requires_grad_()
        loss = F.cross_entropy(net(found), labels, reduction="sum")
        [slope] = torch.autograd.grad(loss, found)
        found = torch.clamp(found.detach() + attack.step * slope.sign(), low, high)
    net.train(before)
    return found.detach()
