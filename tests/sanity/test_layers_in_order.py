"""Layers in the order in which they run, whatever way they are defined; what cannot be randomised is said."""

import pytest
import torch
import torchvision
from torch import Tensor, nn

from saliometer.sanity.layers import layers_in_order
from sanity_toys import attending, backwards, pictures
from toys import small_cnn


def names(net: nn.Module, images: Tensor | None = None, **asked) -> list[str]:
    return [layer.name for layer in layers_in_order(net, pictures() if images is None else images, **asked)]


def test_the_order_is_that_of_the_forward_pass_and_a_norm_goes_with_its_layer():
    assert names(backwards(), by="module") == ["first", "norm", "second", "head"]
    for by in ("layer", "block"):
        assert names(backwards(), by=by) == ["first", "second", "head"]
    first = layers_in_order(backwards(), pictures())[0]
    assert [part.name for part in first.parts] == ["first", "norm"]


def test_a_transformers_projections_token_and_positions_are_layers():
    wanted = ["patches", "token", "positions"]
    assert names(attending(), by="block") == [*wanted, "blocks.0", "blocks.1", "head"]
    inside = ["attention.in_proj", "attention.out_proj", "scale", "mlp.0", "mlp.2"]
    assert names(attending(), by="layer")[3:8] == [f"blocks.0.{name}" for name in inside]
    block = layers_in_order(attending(), pictures())[3]
    assert {part.name for part in block.parts} == {f"blocks.0.{name}" for name in (*inside, "ln_1", "ln_2")}


def test_every_number_of_a_network_belongs_to_one_layer():
    net = attending()
    for by in ("block", "layer", "module"):
        parts = [part for layer in layers_in_order(net, pictures(), by=by) for part in layer.parts]
        held = [id(getattr(part.module, name)) for part in parts for name in part.tensors]
        assert sorted(held) == sorted(id(value) for value in net.parameters())


@pytest.mark.parametrize(
    ("build", "blocks", "first", "last"),
    [
        ("resnet18", 10, ["conv1", "layer1.0"], ["layer4.1", "fc"]),
        ("vgg11_bn", 11, ["features.0", "features.4"], ["classifier.3", "classifier.6"]),
        ("mobilenet_v2", 20, ["features.0.0", "features.1"], ["features.18.0", "classifier.1"]),
        ("swin_t", 17, ["features.0.0", "features.1.0"], ["features.7.1", "head"]),
    ],
)
def test_blocks_of_known_networks(build, blocks, first, last):
    net = getattr(torchvision.models, build)(weights=None).eval()
    found = names(net, torch.zeros(1, 3, 64, 64))
    assert (len(found), found[:2], found[-2:]) == (blocks, first, last)


def test_inception_has_the_17_stages_of_the_paper():
    net = torchvision.models.inception_v3(weights=None, init_weights=False).eval()
    found = names(net, torch.zeros(1, 3, 96, 96))
    assert len(found) == 17
    assert (found[0], found[-2:]) == ("Conv2d_1a_3x3", ["Mixed_7c", "fc"])


def test_a_downsampling_branch_stands_where_it_runs():
    net = torchvision.models.resnet18(weights=None).eval()
    found = names(net, torch.zeros(1, 3, 64, 64), by="layer")
    at = found.index("layer2.0.downsample.0")
    assert found[at - 2 : at] == ["layer2.0.conv1", "layer2.0.conv2"]


def test_weights_that_two_layers_share_are_drawn_once():
    net = nn.Sequential(nn.Flatten(), nn.Linear(6, 6, bias=False), nn.ReLU(), nn.Linear(6, 6, bias=False))
    net[3].weight = net[1].weight
    assert names(net, torch.zeros(1, 6, 1, 1)) == ["1"]


def test_only_some_are_wanted_and_an_unknown_name_is_told_the_nearest():
    assert names(backwards(), only=["head", "first"]) == ["first", "head"]
    with pytest.raises(LookupError, match=r"no layer 'heda'\. Did you mean 'head'"):
        names(backwards(), only=["heda"])
    with pytest.raises(LookupError, match=r"no grouping 'blocks'\. Did you mean 'block'"):
        names(backwards(), by="blocks")


class Whole(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3, 3, dtype=torch.int8), requires_grad=False)

    def forward(self, images: Tensor) -> Tensor:
        return images.mean((2, 3)) @ self.weight.float()


def quantised() -> nn.Module:
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 3))
    return torch.ao.quantization.quantize_dynamic(net, {nn.Linear}, dtype=torch.qint8)


@pytest.mark.parametrize(
    ("net", "words"),
    [
        (nn.Sequential(nn.Flatten(), nn.ReLU()), "no parameters, so there is nothing to randomise"),
        (nn.Sequential(nn.Flatten(), nn.LazyLinear(3)), "'1.weight' has no shape yet: run the model once"),
        (Whole(), "'weight' is of type torch.int8, wanted floating point"),
    ],
)
def test_what_cannot_be_drawn_anew_is_said(net, words):
    with pytest.raises(ValueError, match=words):
        names(net)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_quantised_network_is_refused():
    with pytest.raises(ValueError, match="layer '1' is quantised"):
        names(quantised())


def test_a_network_whose_weights_are_never_read_is_refused():
    class Idle(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.idle = nn.Linear(2, 2)

        def forward(self, images: Tensor) -> Tensor:
            return images.mean((2, 3))

    with pytest.raises(ValueError, match="no weights that its scores depend on"):
        names(Idle())


@pytest.mark.parametrize("training", [False, True])
def test_looking_leaves_no_trace(training):
    net = nn.Sequential(nn.BatchNorm2d(3), small_cnn()).train(training)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    names(net)
    assert all(module.training is training for module in net.modules())
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert all(value.grad is None for value in net.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())
