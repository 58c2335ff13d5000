"""The layer that CAM methods read: torchvision's networks, blocks and poolings, ways round it, clean-up."""

import pytest
import torch
import torchvision
from torch import Tensor, nn

from cam_toys import ChannelsLast, Tokens, gap_cnn, made
from saliometer.engine.explain import explain
from saliometer.engine.layers import cam_layer
from saliometer.methods._cam import Grid, grid_of
from toys import small_cnn


def image(side: int = 8, channels: int = 3) -> Tensor:
    return torch.rand(1, channels, side, side, generator=torch.Generator().manual_seed(0))


NETWORKS = {  # network -> side of the image, layer and its grid there
    "alexnet": (96, "features.11", Grid(5, 5)),
    "vgg16": (64, "features.29", Grid(4, 4)),
    "resnet18": (64, "layer4", Grid(2, 2)),
    "densenet121": (64, "features", Grid(2, 2)),
    "googlenet": (64, "inception5b", Grid(2, 2)),
    "mobilenet_v2": (64, "features", Grid(2, 2)),
    "efficientnet_b0": (64, "features", Grid(2, 2)),
    "convnext_tiny": (64, "features", Grid(2, 2)),
    "vit_b_16": (224, "encoder.layers.encoder_layer_11.ln_1", Grid(14, 14, "tokens", 1)),
    "swin_t": (64, "features.7.1.norm1", Grid(2, 2, "last")),
}


LARGE = ("alexnet", "vgg16", "vit_b_16")  # initialised in a quicker way


def network(name: str) -> nn.Module:
    """With random weights, in eval mode."""
    build = getattr(torchvision.models, name)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        if name not in LARGE:
            return build(weights=None, **({"init_weights": False} if name == "googlenet" else {})).eval()
        with torch.device("meta"):
            net = build(weights=None).eval()
        net = net.to_empty(device="cpu").requires_grad_(False)
        for values in net.parameters():
            values.uniform_(-0.05, 0.05)
        return net


@pytest.mark.parametrize("name", NETWORKS)
def test_torchvisions_networks(name):
    side, layer, grid = NETWORKS[name]
    net, heard = network(name), []
    assert cam_layer(net, image(side)) == layer
    found = net.get_submodule(layer)
    handle = found.register_forward_hook(lambda _module, _inputs, output: heard.append(output.shape))
    with torch.no_grad():
        net(image(side))
    handle.remove()
    assert [grid_of(shape, (1, 3, side, side), found) for shape in heard] == [grid]


def test_the_shipped_networks_layer_is_found_too(simple_model, complex_model, simple_samples):
    """What engine/shipped.py says is what would be found, so Grad-CAM is the same for a bare network."""
    for model in (simple_model, complex_model):
        assert cam_layer(model.net, simple_samples.batch.images[:1]) == model.cam_layer


@pytest.mark.parametrize(
    ("net", "layer"),
    [
        pytest.param(small_cnn(), "3", id="a ReLU before a flattening"),
        pytest.param(gap_cnn(), "3", id="a ReLU before a mean"),
        pytest.param(nn.Sequential(nn.Flatten(), nn.Linear(192, 3)), "", id="no feature maps"),
        pytest.param(nn.Sequential(nn.Conv2d(3, 4, 8), nn.Flatten(), nn.Linear(4, 3)), "", id="one place"),
        pytest.param(made(Tokens).net, "norm", id="tokens before an attention"),
        pytest.param(made(ChannelsLast).net, "norm", id="channels last"),
    ],
)
def test_small_networks(net, layer):
    assert cam_layer(net.eval(), image()) == layer


def headed(*layers: nn.Module, places: int = 9) -> nn.Sequential:
    """Layers in a block of their own, behind a convolution with a ReLU (6 x 6 places) and before a linear layer."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Sequential(*layers), nn.Flatten(), nn.Linear(4 * places, 3)
    ).eval()  # fmt: skip


@pytest.mark.parametrize(
    ("net", "layer"),
    [
        pytest.param(headed(nn.MaxPool2d(2)), "1", id="a pooling and the block that ends with it"),
        pytest.param(headed(nn.MaxPool2d(2), nn.Dropout()), "1", id="a dropout on a pooling"),
        pytest.param(headed(nn.MaxPool2d(2), nn.Identity(), nn.Dropout2d()), "1", id="several that pass it on"),
        pytest.param(
            headed(nn.Conv2d(4, 4, 3, 2, 1), nn.ReLU(inplace=True)), "2", id="a block counts as its last layer"
        ),
        pytest.param(headed(nn.Conv2d(4, 4, 3, 2, 1), nn.Dropout()), "2", id="a block that ends with a dropout"),
        pytest.param(headed(nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(4, 4, 1))), "2", id="a convolution on a pooling"),
    ],
)
def test_poolings_are_left_out_and_blocks_are_not(net, layer):
    assert cam_layer(net, image()) == layer


class Residual(nn.Module):
    """x + f(x), so f is not the only way."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(4, 4, 3, padding=1)

    def forward(self, features: Tensor) -> Tensor:
        return features + self.convolution(features)


class Skips(nn.Module):
    """Its last feature maps have a way round them."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.block, self.last = nn.Conv2d(3, 4, 3), Residual(), nn.Conv2d(4, 4, 3)
        self.head = nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        features = self.block(self.first(images))
        return self.head(torch.cat((self.last(features).mean((2, 3)), features.mean((2, 3))), 1))


def test_a_layer_with_a_way_round_it_is_passed_over():
    """`last` is not the only way, nor the convolution inside the block; the block itself is."""
    assert cam_layer(Skips().eval(), image()) == "block"


def test_a_layer_that_runs_twice_stands_for_its_last_call():
    """EfficientNet's first and last activation are one module: CAMs read what the last call gives out."""

    class Reused(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.second, self.relu = nn.Conv2d(3, 4, 3), nn.Conv2d(4, 4, 3), nn.ReLU()
            self.head = nn.Linear(4, 3)

        def forward(self, images: Tensor) -> Tensor:
            return self.head(self.relu(self.second(self.relu(self.first(images)))).mean((2, 3)))

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(4)
        net = Reused().eval()
    assert cam_layer(net, image()) == "relu"

    class Apart(Reused):
        def __init__(self) -> None:
            super().__init__()
            self.again = nn.ReLU()

        def forward(self, images: Tensor) -> Tensor:
            return self.head(self.again(self.second(self.relu(self.first(images)))).mean((2, 3)))

    apart = Apart().eval()
    apart.load_state_dict(net.state_dict())
    images = torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))
    for method in ("grad_cam", "layer_cam", "score_cam", "ablation_cam", "hires_cam"):
        one, other = (explain(which, images, method) for which in (net, apart))
        torch.testing.assert_close(one, other)
        assert one.abs().sum() > 0


def test_a_layer_that_nobody_calls_is_passed_over():
    net = gap_cnn()
    net[3].add_module("unused", nn.Conv2d(5, 5, 1))
    net.add_module("spare", nn.Conv2d(5, 5, 1))
    net.forward = lambda images: nn.Sequential(*list(net)[:7])(images)
    assert cam_layer(net.eval(), image()) == "3"


class WindowAttention(nn.Module):
    """Attends inside windows: its normalisation sees (windows, places, channels)."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.norm = nn.Conv2d(3, 8, 2, 2), nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mixed, self.head = nn.Conv2d(8, 8, 1), nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        features = self.patches(images)
        windows = self.norm(features.permute(0, 2, 3, 1).reshape(-1, 8, 8))  # two windows for each image
        mixed = self.attention(windows, windows, windows)[0].reshape(len(images), 4, 4, 8).permute(0, 3, 1, 2)
        return self.head(self.mixed(features + mixed).mean((2, 3)))


def test_places_of_a_window_are_not_those_of_the_image():
    assert cam_layer(WindowAttention().eval(), image()) == "mixed"


class ChannelAttention(nn.Module):
    """An attention without a normalisation, as convolutional networks have it."""

    def forward(self, features: Tensor) -> Tensor:
        return features * features.mean((2, 3), keepdim=True).sigmoid()


def test_an_attention_without_normalisation_is_a_layer_like_others():
    net = headed(nn.Conv2d(4, 4, 3, 2, 1), ChannelAttention())
    assert cam_layer(net, image()) == "2"


def hooks(net: nn.Module) -> list[int]:
    return [len(module._forward_hooks) + len(module._forward_pre_hooks) for module in net.modules()]


@pytest.mark.parametrize("breaks", [False, True])
def test_everything_is_as_it_was_also_after_an_error(breaks):
    net, spied = gap_cnn(), []
    net[1].register_forward_hook(lambda *_: spied.append(1))
    net[2].train()  # whatever the mode, it stays
    if breaks:
        net[6] = nn.Linear(7, 3)
    before, modes = hooks(net), [module.training for module in net.modules()]
    if breaks:
        with pytest.raises(RuntimeError):
            cam_layer(net, image())
    else:
        assert cam_layer(net, image()) == "3"
    assert hooks(net) == before
    assert [module.training for module in net.modules()] == modes
    assert spied


def test_double_precision_one_channel_and_no_images_at_all():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 2)).eval()
    assert cam_layer(net.double(), image(channels=1).double()) == "1"
    assert cam_layer(net, image(channels=1).double()[:0]) == "1"


def test_an_output_that_is_no_tensor_does_not_stop_the_search():
    class Says(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = gap_cnn()

        def forward(self, images: Tensor) -> dict[str, Tensor]:
            return {"logits": self.net(images)}

    assert cam_layer(Says().eval(), image()) == "net.3"
