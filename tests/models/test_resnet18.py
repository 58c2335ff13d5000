"""ResNet-18 for 64x64 images: torchvision's blocks behind a smaller stem."""

import torch
from torchvision.models import resnet18 as torchvisions

from architecture_toys import complete, seen_shapes
from saliometer import registry

NET = registry.models["resnet18"].function


def test_its_blocks_have_32_16_8_and_4_places_a_side():
    seen = seen_shapes(NET(2, 3), torch.zeros(2, 3, 64, 64))
    assert [seen[f"layer{n}"] for n in range(1, 5)] == [(64, 32, 32), (128, 16, 16), (256, 8, 8), (512, 4, 4)]


def test_all_but_the_stem_is_torchvisions():
    ours, theirs = NET(1000, 3).state_dict(), torchvisions().state_dict()
    assert {k: v.shape for k, v in ours.items() if k != "conv1.weight"} == {
        k: v.shape for k, v in theirs.items() if k != "conv1.weight"
    }


def test_deeplift_adds_up_through_its_shortcuts():
    complete(NET(2, 3), "deeplift_rescale")
