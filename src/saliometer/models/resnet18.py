"""ResNet-18 for small images (He et al., 2016): torchvision's, with a 3x3 stem and no pooling before the blocks."""

from torch import nn
from torchvision.models.resnet import BasicBlock, ResNet

from saliometer.registry import model


@model()
def resnet18(classes: int, channels: int) -> nn.Module:
    """ResNet-18 with a 3x3 stem in steps of 2, for 64x64 images: its blocks give 32, 16, 8 and 4 places a side."""
    net: nn.Module = ResNet(BasicBlock, [2, 2, 2, 2], num_classes=classes)
    net.conv1 = nn.Conv2d(channels, 64, 3, stride=2, padding=1, bias=False)
    nn.init.kaiming_normal_(net.conv1.weight, mode="fan_out", nonlinearity="relu")
    net.maxpool = nn.Identity()
    return net
