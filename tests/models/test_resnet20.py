"""ResNet-20: its shapes, its shortcut, and the weights that others trained, where they are at hand."""

import os
from pathlib import Path

import numpy as np
import pytest
import torch

from architecture_toys import seen_shapes
from saliometer import explain, registry
from saliometer.engine.weights import fit, read
from saliometer.models.resnet20 import Block
from saliometer.seeds import scoped

NET = registry.models["resnet20"].function
DATA = Path(os.environ.get("SALIOMETER_DATA") or Path(__file__).parents[3] / "shared" / "data")
WEIGHTS, TESTS = DATA / "weights" / "resnet20-12fca82f.th", DATA / "cifar10" / "cifar10_test.npz"
published = pytest.mark.skipif(not (WEIGHTS.is_file() and TESTS.is_file()), reason="the shared data are not here")


def accuracy(step: int) -> float:
    """Of the published weights, on every so manieth test image."""
    net = NET(10, 3).eval()
    fit(net, read(WEIGHTS), "the published weights")
    with np.load(TESTS) as file:
        pixels, labels = torch.from_numpy(file["x"][::step]), torch.from_numpy(file["y"][::step])
    mean, std = (torch.tensor(v).view(1, 3, 1, 1) for v in ((0.485, 0.456, 0.406), (0.229, 0.224, 0.225)))
    images = (pixels.permute(0, 3, 1, 2) / 255 - mean) / std
    with torch.no_grad():
        right = torch.cat([net(part).argmax(1) for part in images.split(100)]) == labels
    return right.double().mean().item()


def test_three_stages_each_half_as_fine_and_twice_as_wide():
    seen = seen_shapes(NET(10, 3), torch.zeros(2, 3, 32, 32))
    assert [seen[f"layer{n}"] for n in (1, 2, 3)] == [(16, 32, 32), (32, 16, 16), (64, 8, 8)]
    assert sum(values.numel() for values in NET(10, 3).parameters()) == 269_722  # 0.27 million in the paper's table


def test_the_shortcut_takes_every_second_place_between_channels_of_zeros():
    block = Block(4, 8).eval()
    torch.nn.init.zeros_(block.bn2.weight)  # only the shortcut is left
    features = torch.rand(1, 4, 6, 6)
    found = block(features)
    assert torch.equal(found[:, 2:6], features[:, :, ::2, ::2])
    assert not found[:, :2].any()
    assert not found[:, 6:].any()


@pytest.mark.parametrize("method", ["gradient", "grad_cam(relu=none)", "lrp_epsilon", "deeplift_rescale"])
def test_methods_explain_it(method):
    with scoped("resnet20"):
        net = NET(5, 3)
        net(torch.rand(16, 3, 16, 16))  # for batch norm to have seen something
    maps = explain(net.eval(), torch.rand(2, 3, 16, 16), method)
    assert maps.isfinite().all()
    assert len(maps[0].unique()) > 9


@published
def test_the_published_weights_are_right_on_most_of_a_few_test_images():
    assert accuracy(step=20) == pytest.approx(0.9145, abs=0.06)  # 200 images: three standard errors


@published
@pytest.mark.slow
def test_the_published_weights_are_as_right_as_their_page_says():
    assert accuracy(step=1) == pytest.approx(0.9145, abs=2e-4)
