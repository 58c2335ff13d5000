"""ResNet-20 for CIFAR-10 (He et al., 2016): three stages of three blocks, 16, 32 and 64 channels wide."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from saliometer.registry import model

BLOCKS, WIDTHS = 3, (16, 32, 64)


class Block(nn.Module):
    """Two 3x3 convolutions beside a shortcut without weights (option A): every second place, channels of zeros."""

    def __init__(self, before: int, width: int) -> None:
        super().__init__()
        self.stride, self.added = width // before, width - before
        self.conv1 = nn.Conv2d(before, width, 3, self.stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu1, self.relu2 = nn.ReLU(), nn.ReLU()

    def forward(self, features: Tensor) -> Tensor:
        found = self.bn2(self.conv2(self.relu1(self.bn1(self.conv1(features)))))
        beside = features[:, :, :: self.stride, :: self.stride] if self.added else features
        beside = F.pad(beside, (0, 0, 0, 0, self.added // 2, self.added // 2)) if self.added else beside
        return self.relu2(found + beside)  # type: ignore[no-any-return]


class ResNet20(nn.Module):
    """Layers are named as in the weights that Idelbayev (2018) published."""

    def __init__(self, classes: int, channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(channels, WIDTHS[0], 3, padding=1, bias=False)
        self.bn1, self.relu = nn.BatchNorm2d(WIDTHS[0]), nn.ReLU()
        self.layer1, self.layer2, self.layer3 = (
            nn.Sequential(Block(before, width), *(Block(width, width) for _ in range(BLOCKS - 1)))
            for before, width in zip((WIDTHS[0], *WIDTHS), WIDTHS, strict=False)
        )
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.linear = nn.Linear(WIDTHS[-1], classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d | nn.Linear):
                nn.init.kaiming_normal_(module.weight)

    def forward(self, images: Tensor) -> Tensor:
        features = self.relu(self.bn1(self.conv1(images)))
        features = self.layer3(self.layer2(self.layer1(features)))
        return self.linear(torch.flatten(self.avgpool(features), 1))  # type: ignore[no-any-return]


@model()
def resnet20(classes: int, channels: int) -> nn.Module:
    """ResNet-20 as made for CIFAR-10, 0.3 million weights; any side from 8 pixels up."""
    return ResNet20(classes, channels)
