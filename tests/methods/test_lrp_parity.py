"""LRP and deep Taylor against zennit 0.5.1, against themselves written in other ways, and what they owe to sums.

zennit starts with 1 where we start with the logit, so it is handed the logit; it adds a stabiliser to every
denominator, which is made small; it forgets the epsilon of a batch norm, which is set to 0; our averages have an
epsilon of 1e-9.
"""

from copy import deepcopy
from dataclasses import replace
from functools import cache

import pytest
import torch
import torchvision
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as F

from doubles import double, raw, scores
from saliometer import explain
from saliometer.graph import Network
from saliometer.methods._lrp import Books, alpha_beta, descended, flat, table, w_square, z, z_box
from saliometer.types import Batch, Model
from toys import model_of, noise_batch, small_cnn

DOUBLE = torch.float64
LRP = ("lrp_z", "lrp_epsilon", "lrp_epsilon(epsilon=0.25,scale=rms)", "lrp_alpha_beta", "lrp_gamma",
       "lrp_preset_a_flat", "lrp_preset_b_flat", "lrp_epsilon_plus")  # fmt: skip
POSITIVE = ("deep_taylor", "lrp_alpha_beta(alpha=1.0,beta=0.0)")


def made(*layers: nn.Module, seed: int = 0) -> nn.Sequential:
    """Random weights, and biases that matter, in double precision."""
    net = nn.Sequential(*layers).double().eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(seed)
    for values in net.parameters():
        values.normal_(0, 0.3 if values.ndim == 1 else values[0].numel() ** -0.5, generator=generator)
    return net


@cache  # networks are captured once; what changes them works on a copy
def padded(dtype: torch.dtype = DOUBLE) -> nn.Sequential:
    """Convolutions with padding and stride, a maximum, an average and two dense layers, for 12x12 images."""
    return made(
        nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 5, 3, 2, 1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(5, 4, 3, padding=1), nn.ReLU(), nn.AvgPool2d(3), nn.Flatten(), nn.Linear(4, 7), nn.ReLU(),
        nn.Linear(7, 3),
    ).to(dtype)  # fmt: skip


def bounded(net: nn.Module) -> Model:
    """Images in [-1, 1]."""
    return replace(model_of(net), low=-1.0, high=1.0)


def batch_of(count: int = 4, side: int = 12, seed: int = 0) -> Batch:
    images = 2 * torch.rand(count, 3, side, side, dtype=DOUBLE, generator=torch.Generator().manual_seed(seed)) - 1
    return Batch(images, torch.arange(count) % 3, torch.arange(count))


# zennit


def zennit(net: nn.Module, batch: Batch, composite: object) -> Tensor:
    attribution = pytest.importorskip("zennit.attribution")
    logits = scores(model_of(net), batch.images, batch.targets)[:, None]
    net.requires_grad_()
    with attribution.Gradient(model=net, composite=composite) as attributor, torch.no_grad():
        classes = net(batch.images).shape[1]
        start = torch.zeros(len(logits), classes, dtype=DOUBLE).scatter_(1, batch.targets[:, None], logits)
        with torch.enable_grad():
            return attributor(batch.images.clone(), start)[1].detach()


def composite(name: str, images: Tensor, stabilizer: float = 1e-12, canonizers: list | None = None) -> object:
    """zennit's composites that are said to be our methods; those it does not ship are put together from its rules."""
    composites = pytest.importorskip("zennit.composites")
    rules, types = pytest.importorskip("zennit.rules"), pytest.importorskip("zennit.types")
    if name in ("EpsilonPlusFlat", "EpsilonAlpha2Beta1Flat", "EpsilonPlus", "EpsilonGammaBox"):
        epsilon = 1.0 if name.endswith("Flat") else 1e-6
        box = {"low": -torch.ones_like(images), "high": torch.ones_like(images)} if name.endswith("Box") else {}
        return getattr(composites, name)(epsilon=epsilon, stabilizer=stabilizer, canonizers=canonizers, **box)
    rule = {
        "AlphaBeta": lambda: rules.AlphaBeta(2, 1, stabilizer=stabilizer),
        "ZPlus": lambda: rules.ZPlus(stabilizer=stabilizer, zero_params="bias"),
        "Epsilon": lambda: rules.Epsilon(1.0),
        "Z": lambda: rules.Epsilon(stabilizer),
    }[name]
    layers = [(types.Activation, rules.Pass()), (types.AvgPool, rules.Norm(stabilizer=stabilizer))]
    layers += [(types.Convolution, rule()), (types.Linear, rule())]
    return composites.LayerMapComposite(layers, canonizers=canonizers)


PAIRS = [
    ("EpsilonPlusFlat", "lrp_preset_a_flat"), ("EpsilonAlpha2Beta1Flat", "lrp_preset_b_flat"),
    ("EpsilonPlus", "lrp_epsilon_plus"), ("EpsilonGammaBox", "lrp_gamma"), ("AlphaBeta", "lrp_alpha_beta"),
    ("ZPlus", "lrp_alpha_beta(alpha=1.0,beta=0.0,bias=ignore)"), ("Epsilon", "lrp_epsilon"), ("Z", "lrp_z"),
]  # fmt: skip


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_a_network_with_biases_and_padding_is_explained_as_by_zennit(theirs, ours):
    net, batch = padded(), batch_of()
    wanted = zennit(deepcopy(net), batch, composite(theirs, batch.images))
    found = raw(bounded(net), batch, ours).maps
    assert wanted.abs().max() > 0
    assert (found - wanted).abs().max() <= 3e-7 * wanted.abs().max()  # as much as the averages' 1e-9 do


@pytest.mark.parametrize(("bias", "agrees"), [("split", True), ("full", False), ("ignore", False)])
def test_only_a_split_bias_is_zennits(bias, agrees):
    net, batch = padded(), batch_of()
    wanted = zennit(deepcopy(net), batch, composite("EpsilonPlusFlat", batch.images))
    found = raw(bounded(net), batch, f"lrp_preset_a_flat(bias={bias})").maps
    assert ((found - wanted).abs().max() <= 1e-6 * wanted.abs().max()) == agrees


@pytest.fixture(scope="module")
def residual() -> nn.Module:
    """A ResNet of torchvision's blocks, one per stage and narrow, with statistics as if it had been trained."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net = torchvision.models.ResNet(torchvision.models.resnet.BasicBlock, [1, 1, 1, 1], num_classes=3).double()
        for norm in net.modules():
            if isinstance(norm, nn.BatchNorm2d):
                norm.running_mean.normal_(0, 0.1)
                norm.running_var.uniform_(0.5, 1.5)
                norm.weight.data.uniform_(0.5, 1.5)
                norm.bias.data.normal_(0, 0.1)
                norm.eps = 1e-300
    return net.eval()


@pytest.mark.parametrize(("theirs", "ours"), PAIRS[:4])
def test_a_residual_network_is_explained_as_by_zennit_with_its_canonizer(theirs, ours, residual):
    canonizer = pytest.importorskip("zennit.torchvision").ResNetCanonizer()
    batch = batch_of(1, 32)
    wanted = zennit(residual, batch, composite(theirs, batch.images, canonizers=[canonizer]))
    found = raw(bounded(residual), batch, ours).maps
    assert (found - wanted).abs().max() <= 1e-7 * wanted.abs().max()


# Where relevance went


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("text", [*LRP, "deep_taylor", "lrp_alpha_beta(bias=full)", "deep_taylor(bias=full)"])
def test_the_books_close(text, seed):
    """R_out is what arrives, what biases and epsilons took and what was lost: 1e-12 of it, in float32 1e-5."""
    net, batch = padded(), batch_of(seed=seed)
    found = raw(bounded(net), batch, text)
    parts = sum(found.facts.get(part, 0) for part in ("bias", "epsilon", "lost"))
    torch.testing.assert_close(found.maps.sum((1, 2, 3)) + parts + found.facts["closing"], found.promised)
    assert (found.facts["closing"].abs() <= 1e-12 * found.promised.abs()).all()
    assert not found.flags["loose"].any()
    torch.testing.assert_close(found.residual, found.maps.sum((1, 2, 3)) - found.promised)
    if "full" in text:
        return  # denominators may come near 0 there, which float32 does not survive
    single = replace(batch, images=batch.images.float())
    found = raw(bounded(padded(torch.float32)), single, text)
    assert (found.facts["closing"].abs() <= 1e-5 * found.promised.abs()).all()
    assert found.facts["closing"].dtype == found.residual.dtype == DOUBLE


class Joined(nn.Module):
    """Constants beside the features and around them, negative ones too, and sums with signs; `factor` is 1."""

    def __init__(self, factor: float | None = None) -> None:
        super().__init__()
        self.factor = factor
        self.first, self.second, self.third = nn.Conv2d(3, 4, 3), nn.Conv2d(5, 4, 3), nn.Conv2d(4, 4, 3)
        self.head = nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.first(images))
        x = torch.cat((x, torch.full_like(x[:, :1], -0.7)), 1)
        x = F.relu(self.second(self.hidden(F.pad(x, (1, 1, 1, 1), value=-0.4))) - 0.2)
        x = F.relu(self.third(self.hidden(torch.add(x, x.flip(3), alpha=-0.5))))
        return self.head(self.hidden(x - 0.1).mean((2, 3)))

    def hidden(self, x: Tensor) -> Tensor:
        """A product with 1, behind which nobody knows that values cannot be negative."""
        return x if self.factor is None else x * self.factor


@cache
def joined(factor: float | None = None) -> nn.Module:
    net = Joined(factor).double().eval()
    for values in net.parameters():
        values.data.normal_(0, 0.4, generator=torch.Generator().manual_seed(1))
    return net


@pytest.mark.parametrize("text", [*LRP, "deep_taylor"])
def test_constants_in_the_network_take_their_part_as_biases_do(text):
    net = joined()
    found = raw(bounded(net), batch_of(), text)
    assert (found.facts["closing"].abs() <= 1e-11 * (found.promised.abs() + found.maps.abs().sum((1, 2, 3)))).all()
    assert not found.flags["loose"].any()
    if text == "lrp_z":
        torch.testing.assert_close(found.maps, raw(bounded(net), batch_of(), "input_x_gradient").maps, rtol=1e-5, atol=1e-9)  # fmt: skip # noqa: E501


@pytest.mark.parametrize(
    "text", ["lrp_alpha_beta", "lrp_preset_b_flat", "lrp_epsilon_plus", "lrp_gamma", "deep_taylor"]
)
def test_what_may_be_negative_is_not_taken_for_positive(text):
    """Rules leave out the negative part of values that cannot be negative, which must be found out rightly."""
    found, wanted = (raw(bounded(joined(factor)), batch_of(), text).maps for factor in (None, 1.0))
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-14)


# The same network written in other ways


def twins(one: nn.Module, other: nn.Module, text: str, batch: Batch, **scale: object) -> None:
    pair = [raw(replace(bounded(net), **scale), batch, text).maps for net in (one, other)]
    assert pair[0].abs().max() > 0 or text == "deep_taylor"
    torch.testing.assert_close(*pair, rtol=1e-9, atol=1e-14)


@cache
def padded_apart() -> nn.Module:
    net = nn.Sequential(nn.ZeroPad2d(1), nn.Conv2d(3, 6, 3), *padded()[1:]).double().eval()
    net[1].load_state_dict(padded()[0].state_dict())
    return net


@pytest.mark.parametrize("text", [*LRP, "deep_taylor"])
def test_padding_can_be_a_layer_of_its_own(text):
    twins(padded(), padded_apart(), text, batch_of())


@cache
def one_and_two() -> tuple[nn.Module, nn.Module]:
    one = made(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(4 * 100, 1))
    two = nn.Sequential(*one[:3], nn.Linear(400, 2)).double().eval()
    two[3].weight.data = torch.cat((-one[3].weight, one[3].weight))
    two[3].bias.data = torch.cat((-one[3].bias, one[3].bias))
    return one, two


@pytest.mark.parametrize("text", [*LRP, "deep_taylor"])
@pytest.mark.parametrize("target", [0, 1])
def test_one_logit_is_explained_as_two_with_opposite_weights(text, target):
    """What speaks against yes speaks for no."""
    twins(*one_and_two(), text, replace(batch_of(), targets=torch.full((4,), target)))


class Arithmetic(nn.Module):
    """A batch norm as sums and products with constants."""

    def __init__(self, norm: nn.BatchNorm2d) -> None:
        super().__init__()
        self.norm = norm

    def forward(self, x: Tensor) -> Tensor:
        gamma, beta, mean, variance = (
            values.view(-1, 1, 1) for values in self.norm.state_dict().values() if values.ndim
        )
        return beta + gamma * (x - mean) / (variance + self.norm.eps).sqrt()


@cache
def normed(way: str) -> nn.Module:
    """A transposed convolution with groups, then a plain one, with batch norms that have negative factors."""
    net = made(nn.ConvTranspose2d(3, 6, 3, groups=3), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 3),
               nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))  # fmt: skip
    for place in (1, 4):
        norm = net[place]
        norm.weight.copy_(torch.linspace(-1.5, 1, len(norm.weight)))
        norm.running_mean.copy_(torch.linspace(-0.3, 0.4, len(norm.weight)))
        norm.running_var.copy_(torch.linspace(0.2, 2, len(norm.weight)))
        if way == "by hand":
            _fold(net[place - 1], norm)
            net[place] = nn.Identity()
        elif way == "arithmetic":
            net[place] = Arithmetic(norm)
        elif way == "frozen":
            net[place] = torchvision.ops.FrozenBatchNorm2d(len(norm.weight)).double()
            net[place].load_state_dict({k: v for k, v in norm.state_dict().items() if v.ndim})
    return torch.jit.trace(net.eval(), batch_of().images) if way == "traced" else net.eval()


def _fold(kernel: nn.Conv2d | nn.ConvTranspose2d, norm: nn.BatchNorm2d) -> None:
    """A transposed kernel's weights are (inputs, outputs of a group, ...)."""
    factors = norm.weight / (norm.running_var + norm.eps).sqrt()
    for channel, factor in enumerate(factors):
        if isinstance(kernel, nn.Conv2d):
            kernel.weight[channel] *= factor
        else:
            group, place = divmod(channel, kernel.weight.shape[1])
            kernel.weight[group : group + 1, place] *= factor  # each group has one input
    kernel.bias.copy_((kernel.bias - norm.running_mean) * factors + norm.bias)


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
@pytest.mark.parametrize("text", [*LRP, "deep_taylor"])
@pytest.mark.parametrize("way", ["modules", "frozen", "arithmetic", "traced"])
def test_a_batch_norm_is_part_of_the_kernel_before_it_however_it_is_written(text, way):
    twins(normed("by hand"), normed(way), text, batch_of())


class Normalised(nn.Module):
    """Pixels in [0, 1] are normalised inside, in one of several ways."""

    def __init__(self, net: nn.Module, how: str) -> None:
        super().__init__()
        self.net, self.how = net, how
        self.register_buffer("mean", torch.tensor(MEAN, dtype=DOUBLE).view(3, 1, 1))
        self.register_buffer("std", torch.tensor(STD, dtype=DOUBLE).view(3, 1, 1))

    def forward(self, images: Tensor) -> Tensor:
        if self.how == "factor":
            return self.net((images - self.mean) * (1 / self.std))
        if self.how == "affine":
            return self.net(images * (1 / self.std) - self.mean / self.std)
        if self.how == "batch norm":
            return self.net(F.batch_norm(images, self.mean.flatten(), self.std.flatten().square(), eps=1e-300))
        if self.how == "by channel":
            return self.net(torch.stack([(images[:, c] - MEAN[c]) / STD[c] for c in range(3)], 1))
        return self.net(torchvision.transforms.functional.normalize(images, MEAN, STD))


MEAN, STD = (0.4, 0.5, 0.6), (0.2, 0.3, 0.1)


@cache
def normalised(how: str) -> nn.Module:
    return Normalised(padded(), how)


WAYS = [(text, "torchvision") for text in (*LRP, "deep_taylor")]
WAYS += [(text, how) for text in ("lrp_z", "lrp_gamma", "deep_taylor") for how in ("factor", "affine", "by channel")]
WAYS += [(text, "batch norm") for text in (*LRP[3:], "deep_taylor")]  # which lrp_z and lrp_epsilon share by its terms


@pytest.mark.parametrize(("text", "how"), WAYS)
def test_normalising_inside_passes_relevance_on_as_if_it_were_done_outside(text, how):
    """Also in the bounds of the first layer, which are each channel's own."""
    net, pixels = padded(), batch_of().images.add(1).div(2)
    mean, std = (torch.tensor(values, dtype=DOUBLE).view(3, 1, 1) for values in (MEAN, STD))
    batch = replace(batch_of(), images=pixels)
    inside = raw(model_of(normalised(how)), batch, text).maps
    outside = raw(replace(model_of(net), mean=MEAN, std=STD), replace(batch, images=(pixels - mean) / std), text).maps
    torch.testing.assert_close(inside, outside, rtol=1e-9, atol=1e-14)
    if text != "deep_taylor":
        assert inside.abs().max() > 0


def test_the_bounds_of_the_first_layer_are_each_channels_own():
    """One value of each channel, weight 1: relevance in proportion to the distance from that channel's lowest value."""
    net = nn.Sequential(nn.Flatten(), nn.Linear(3, 2, bias=False)).double().eval()
    net[1].weight.data = torch.tensor([[1.0, 1, 1], [0, 0, 0]], dtype=DOUBLE)
    pixels = torch.tensor([0.9, 0.5, 0.7], dtype=DOUBLE).view(1, 3, 1, 1)
    mean, std = (torch.tensor(values, dtype=DOUBLE).view(1, 3, 1, 1) for values in (MEAN, STD))
    found = explain(net, (pixels - mean) / std, "deep_taylor", mean=MEAN, std=STD, channels=True,
                    targets=torch.tensor([0]))  # fmt: skip
    parts = pixels / std
    torch.testing.assert_close(found, net((pixels - mean) / std)[0, 0] * parts / parts.sum())
    with pytest.raises(ValueError, match="beyond the bounds"):
        explain(net, (pixels - mean) / std, "deep_taylor", targets=torch.tensor([0]))


# Identities of methods.md 11 on random networks


def random_net(seed: int, bias: bool) -> nn.Sequential:
    """Convolutions, ReLUs, poolings and a dense layer, by lot, for 12x12 images."""
    generator = torch.Generator().manual_seed(seed)

    def lot(*choices: object) -> object:
        return choices[int(torch.randint(len(choices), (), generator=generator))]

    layers, channels = [], 3
    for depth in range(lot(1, 2, 3)):
        width, stride = lot(2, 3, 5), 1 if depth else lot(1, 2)
        layers += [nn.Conv2d(channels, width, lot(1, 3), stride=stride, padding=1, bias=bias), nn.ReLU()]
        layers += [lot(nn.Identity(), nn.MaxPool2d(2, 1), nn.MaxPool2d(3, 1, 1), nn.AvgPool2d(2, 1))]
        channels = width
    pool = lot(nn.AdaptiveAvgPool2d(1), nn.AdaptiveMaxPool2d(1))
    return made(*layers, pool, nn.Flatten(), nn.Linear(channels, 3, bias=bias), seed=seed)


NETS = settings(max_examples=8)


@NETS
@given(st.integers(0, 10**6))
def test_without_biases_lrp_z_deeplift_and_ig_are_input_x_gradient_and_sum_to_the_score(seed):
    model, batch = bounded(random_net(seed, bias=False)), batch_of(2, seed=seed)
    wanted = raw(model, batch, "input_x_gradient").maps
    for text in ("lrp_z", "deeplift_rescale", "integrated_gradients(rule=middle,steps=3)"):
        torch.testing.assert_close(raw(model, batch, text).maps, wanted, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(wanted.sum((1, 2, 3)), scores(model, batch.images, batch.targets), rtol=1e-9, atol=1e-12)


@NETS
@given(st.integers(0, 10**6))
def test_with_biases_lrp_z_is_input_x_gradient_and_biases_take_the_rest(seed):
    net = random_net(seed, bias=True)
    model, batch = bounded(net), batch_of(1, seed=seed)
    found = raw(model, batch, "lrp_z")
    torch.testing.assert_close(found.maps, raw(model, batch, "input_x_gradient").maps, rtol=1e-6, atol=1e-7)
    biases = [value.requires_grad_() for name, value in net.named_parameters() if name.endswith("bias")]
    score = net(batch.images)[0, batch.targets[0]]
    slopes = torch.autograd.grad(score, biases, allow_unused=True)
    taken = sum((slope * value).sum() for slope, value in zip(slopes, biases, strict=True) if slope is not None)
    net.requires_grad_(False)
    torch.testing.assert_close(-found.residual[0], taken.detach(), rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(found.facts["bias"][0], taken.detach(), rtol=1e-5, atol=1e-6)


@NETS
@given(st.integers(0, 10**6))
def test_rules_without_negative_shares_give_no_negative_relevance(seed):
    """z-plus, flat, squared weights and the box rule, started with something positive."""
    net, images = random_net(seed, bias=True), batch_of(2, seed=seed).images
    plus = alpha_beta(1, 0, "ignore")
    box = z_box(*(torch.full((1, 1, 1, 1), end, dtype=DOUBLE) for end in (-1.0, 1.0)))
    for first in (plus, flat, w_square, box):
        forward = Network(net, net).run(images)

        def rule(here, relevance, books, first=first):
            return (first if here.step.inputs[0] == 0 else plus)(here, relevance, books)

        found = descended(forward, torch.ones_like(forward.logits), table(rule, z()), Books())
        assert (found >= 0).all()


LINEAR = ("gradient", "integrated_gradients(steps=4)", "lrp_z", "lrp_epsilon(epsilon=0.25,scale=rms)",
          "lrp_alpha_beta", "lrp_gamma(epsilon=0.0)", "deep_taylor", "deeplift_rescale", "deeplift_reveal_cancel",
          "guided_backprop", "deconvnet")  # fmt: skip


@cache
def louder() -> nn.Module:
    """The last layer counts three times as much."""
    net = deepcopy(padded())
    for values in net[11].parameters():
        values.mul_(3)
    return net


@pytest.mark.parametrize("text", LINEAR)
def test_a_target_that_counts_three_times_as_much_gets_three_times_the_map(text):
    once, thrice = (raw(bounded(net), batch_of(), text).maps for net in (padded(), louder()))
    torch.testing.assert_close(thrice, 3 * once, rtol=1e-9, atol=1e-14)


def test_an_absolute_epsilon_does_not_scale():
    once, thrice = (raw(bounded(net), batch_of(), "lrp_epsilon").maps for net in (padded(), louder()))
    assert not torch.allclose(thrice, 3 * once, rtol=1e-2)


@cache
def symmetric() -> nn.Sequential:
    """Every convolution is its own mirror image, and so is the pooling, before which nothing is equal."""
    net = made(nn.Conv2d(3, 6, 3, padding=1), nn.MaxPool2d(2), nn.ReLU(), nn.Conv2d(6, 5, 3, padding=1), nn.ReLU(),
               nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(5, 3))  # fmt: skip
    for layer in (net[0], net[3]):
        layer.weight.add_(layer.weight.flip(3).clone())
    return net


MIRRORED = ("gradient", "input_x_gradient", "integrated_gradients(steps=4)", "guided_backprop", "deconvnet", *LRP,
            "deep_taylor", "deeplift_rescale(baseline=blur)", "deeplift_reveal_cancel(baseline=blur)", "grad_cam",
            "layer_cam", "guided_grad_cam")  # fmt: skip


@pytest.mark.parametrize("text", MIRRORED)
def test_a_mirrored_image_gets_a_mirrored_map(text):
    model, batch = replace(bounded(symmetric()), cam_layer="4"), batch_of()
    mirrored = replace(batch, images=batch.images.flip(3))
    one, two = (raw(model, each, text).maps for each in (batch, mirrored))
    torch.testing.assert_close(two, one.flip(3), rtol=1e-9, atol=1e-14)


class Raised(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        return self.net(images) + 5


def test_a_constant_on_all_logits_changes_the_start_of_relevance_and_no_slope_or_difference():
    net, batch = padded(), batch_of()
    low, high = bounded(net), bounded(Raised(net))
    for text in ("gradient", "gradient(output=probability)", "integrated_gradients(steps=4)", "deeplift_rescale",
                 "deeplift_reveal_cancel", "guided_backprop", "deconvnet"):  # fmt: skip
        torch.testing.assert_close(raw(high, batch, text).maps, raw(low, batch, text).maps, rtol=1e-9, atol=1e-14)
    one, two = raw(low, batch, "lrp_alpha_beta"), raw(high, batch, "lrp_alpha_beta")
    torch.testing.assert_close(two.promised, one.promised + 5)
    assert raw(high, batch, "deep_taylor").maps.flatten(1).sum(1).gt(0).all()


# Degenerate cases


@pytest.mark.parametrize("text", LRP)
def test_a_score_of_zero_has_no_relevance(text):
    net = small_cnn(bias=False).double()
    net[5].weight.data.zero_()
    found = raw(bounded(net), double(noise_batch()), text)
    assert found.maps.abs().max() == 0
    assert found.flags["zero_gradient"].all()
    assert not found.flags["loose"].any()


@pytest.mark.parametrize("text", [*LRP, "deep_taylor"])
def test_a_black_image_gives_numbers(text):
    """Every product is 0, and without biases every sum: all is lost, and nothing is NaN."""
    batch = replace(double(noise_batch(2)), images=torch.zeros(2, 3, 8, 8, dtype=DOUBLE))
    for bias in (False, True):
        found = raw(bounded(small_cnn(bias=bias).double()), batch, text)
        assert found.maps.isfinite().all()
        assert all(value.isfinite().all() for value in found.facts.values())


def test_opposite_branches_that_blow_up_are_told():
    """u = 3, v = -2.9: u gets thirty times what there is."""

    class Opposite(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            u, v = images.flatten(1)[:, :1], images.flatten(1)[:, 1:]
            return torch.cat((u + v, u + v), 1)

    batch = Batch(torch.tensor([[3.0, -2.9], [3, 1]], dtype=DOUBLE).view(2, 1, 1, 2), torch.zeros(2, dtype=torch.int64),
                  torch.arange(2))  # fmt: skip
    found = raw(model_of(Opposite()), batch, "lrp_z")
    torch.testing.assert_close(found.maps.flatten(1), batch.images.flatten(1))
    torch.testing.assert_close(found.facts["largest_share"], torch.tensor([30.0, 0.75], dtype=DOUBLE))
