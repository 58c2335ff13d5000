"""The methods that walk the network: known answers of methods.md 4-6, identities, twins and refusals."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import saliometer
from saliometer.types import Batch, Model
from toys import batch_of, explain, explained, flat, model_of, noise_batch, small_cnn

DOUBLE = torch.float64
CLOSE = {"rtol": 1e-10, "atol": 1e-12}
NEARLY = {"rtol": 1e-6, "atol": 1e-8}  # averages have an epsilon of 1e-9
WALKS = (
    "deconvnet", "guided_backprop", "guided_grad_cam", "lrp_z", "lrp_epsilon", "lrp_alpha_beta", "lrp_preset_a_flat",
    "lrp_preset_b_flat", "lrp_gamma", "lrp_epsilon_plus", "deep_taylor", "deeplift_rescale", "deeplift_reveal_cancel",
    "deep_shap(count=3)",
)  # fmt: skip


def dense(*layers: tuple[list[list[float]], list[float]]) -> nn.Sequential:
    """Linear layers with ReLUs between them, on flattened pixels; the last may have one row."""
    parts: list[nn.Module] = [nn.Flatten()]
    for weights, bias in layers:
        layer = nn.Linear(len(weights[0]), len(weights), dtype=DOUBLE)
        layer.weight.data = torch.tensor(weights, dtype=DOUBLE)
        layer.bias.data = torch.tensor(bias, dtype=DOUBLE)
        parts += [layer, nn.ReLU()]
    return nn.Sequential(*parts[:-1])


def two(row: list[float]) -> list[list[float]]:
    """A class and its opposite."""
    return [row, [-w for w in row]]


FIXTURES = {
    "L": dense((two([3, -2]), [1, -1])),
    "G": dense(([[1, 1], [1, -1], [0, 1]], [0, 0, 0]), (two([1, 2, -3]), [0, 0])),
    "S": dense(([[-1, -1]], [1]), (two([-1]), [1, -1])),
    "M": dense(([[1, -1], [1, 0]], [0, 0]), (two([-1, 1]), [0, 0])),
    "T": dense(([[1, -1], [0, 2]], [0, 0]), (two([1, 1]), [0, 0])),
    "Z": dense((two([4, -1, 1]), [1, -1])),
}


def double(batch: Batch) -> Batch:
    return Batch(batch.images.double(), batch.targets, batch.seeds, batch.references)


def answer(fixture: str, pixels: list[float], text: str, **scale: float) -> list[float]:
    model = Model("toy", FIXTURES[fixture].eval().requires_grad_(False), "0", "", **scale)
    maps = explain(model, double(flat(pixels)), text)
    return [round(value, 6) for value in maps.flatten().tolist()]


@pytest.mark.parametrize(
    ("fixture", "pixels", "text", "wanted"),
    [
        ("G", [1, 2], "gradient", [1, -2]),
        ("G", [1, 2], "deconvnet", [3, -1]),
        ("G", [1, 2], "guided_backprop", [1, 1]),
        ("S", [1, 1], "deeplift_rescale", [0.5, 0.5]),
        ("M", [3, 1], "deeplift_rescale", [0, 1]),
        ("L", [1, 1], "deeplift_rescale", [3, -2]),
        ("M", [3, 1], "deeplift_reveal_cancel", [0.5, 0.5]),
        ("S", [1, 1], "deeplift_reveal_cancel", [0.5, 0.5]),
        ("L", [1, 1], "deeplift_reveal_cancel", [3, -2]),
        ("Z", [1, 2, -1], "lrp_z", [4, -2, -1]),
        ("Z", [1, 2, -1], "lrp_epsilon", [2.666667, -1.333333, -0.666667]),
        ("Z", [1, 2, -1], "lrp_alpha_beta(alpha=1.0,beta=0.0)", [1.6, 0, 0]),
        ("Z", [1, 2, -1], "lrp_alpha_beta(alpha=1.0,beta=0.0,bias=full)", [1.6, 0, 0]),
        ("Z", [1, 2, -1], "lrp_alpha_beta(alpha=1.0,beta=0.0,bias=ignore)", [2, 0, 0]),
        ("Z", [1, 2, -1], "lrp_alpha_beta", [3.2, -1.333333, -0.666667]),
        ("Z", [1, 2, -1], "lrp_alpha_beta(bias=full)", [3.2, -2, -1]),
        ("Z", [1, 2, -1], "lrp_alpha_beta(bias=ignore)", [4, -1.333333, -0.666667]),
        ("Z", [1, 2, -1], "lrp_preset_a_flat", [0.666667, 0.666667, 0.666667]),
        ("T", [0.5, 0.2], "deep_taylor", [0.115385, 0.584615]),
    ],
)
def test_known_answers_of_the_sheet(fixture, pixels, text, wanted):
    assert answer(fixture, pixels, text) == pytest.approx(wanted, abs=1e-6)


def test_the_box_rule_of_the_sheet():
    assert answer("Z", [1, 2, -1], "lrp_gamma", low=-1.0, high=3.0) == pytest.approx([1.777778, 0.222222, 0], abs=1e-6)


def rule_on_z(part, bias: float = 1.0) -> list[float]:
    """A single rule on the one linear unit of fixture Z, started with its own value."""
    from saliometer.graph import Network
    from saliometer.methods._lrp import Books, descended, table, z

    net = dense(([[4, -1, 1]], [bias])).eval()
    forward = Network(net, net).run(torch.tensor([[[[1, 2, -1]]]], dtype=DOUBLE))
    return descended(forward, forward.logits, table(part, z()), Books()).flatten().tolist()


def test_gamma_flat_and_squared_weights():
    from saliometer.methods._lrp import flat as flat_rule
    from saliometer.methods._lrp import gamma, w_square

    assert rule_on_z(gamma(0.25)) == pytest.approx([3.0769, -1.2308, -0.6154], abs=1e-4)
    assert rule_on_z(gamma(0.25), bias=-6) == pytest.approx([2.7586, -1.7241, -0.8621], abs=1e-4)
    assert rule_on_z(flat_rule) == pytest.approx([2 / 3] * 3)
    assert rule_on_z(w_square) == pytest.approx([1.7778, 0.1111, 0.1111], abs=1e-4)


@pytest.mark.parametrize(("bias", "wanted"), [("split", 1), ("ignore", 1), ("full", 4)])
def test_a_negative_bias_in_its_three_meanings(bias, wanted):
    model = model_of(dense((two([4]), [-3, 3])))
    text = f"lrp_alpha_beta(alpha=1.0,beta=0.0,bias={bias})"
    assert explain(model, double(flat([1])), text).item() == pytest.approx(wanted)
    assert explain(model, double(flat([1])), "lrp_z").item() == pytest.approx(4)


def test_batch_norm_is_folded():
    net = nn.Sequential(nn.Conv2d(1, 1, 1), nn.BatchNorm2d(1, eps=1e-300), nn.Flatten()).double()
    net[0].weight.data.fill_(2)
    net[0].bias.data.fill_(1)
    norm = net[1]
    norm.weight.data.fill_(3)
    norm.bias.data.fill_(-1)
    norm.running_mean.fill_(1)
    norm.running_var.fill_(4)
    net = nn.Sequential(*net, Both())
    assert explain(model_of(net), double(flat([2])), "lrp_z").item() == pytest.approx(6)


class Both(nn.Module):
    def forward(self, score: Tensor) -> Tensor:
        return torch.cat((score, -score), 1)


def test_a_saturated_relu6_passes_relevance():
    net = nn.Sequential(nn.Flatten(), nn.Linear(1, 1, bias=False, dtype=DOUBLE), nn.ReLU6(), Both())
    net[1].weight.data.fill_(2)
    batch = double(flat([4]))
    assert explain(model_of(net), batch, "lrp_z").item() == pytest.approx(6)
    assert explain(model_of(net), batch, "input_x_gradient").item() == 0
    assert explain(model_of(net), batch, "guided_backprop").item() == 0
    assert explain(model_of(net), batch, "deconvnet").item() == pytest.approx(2)


class Pooled(nn.Module):
    """The sum of maxima over windows."""

    def __init__(self, width: int, stride: int) -> None:
        super().__init__()
        self.width, self.stride = width, stride

    def forward(self, images: Tensor) -> Tensor:
        score = F.max_pool2d(images, (1, self.width), (1, self.stride)).flatten(1).sum(1, keepdim=True)
        return torch.cat((score, -score), 1)


@pytest.mark.parametrize(
    ("pixels", "start", "stride", "wanted"),
    [([1, 4], [3, 0], 2, [0, 1]), ([1, 2], [3, 0], 2, [-1, 0]), ([0, 5, 0], [0, 0, 0], 1, [0, 10, 0])],
)
@pytest.mark.parametrize("name", ["deep_shap(count=1)"])
def test_a_maximum_pays_gains_and_losses_over_all_its_windows(name, pixels, start, stride, wanted):
    batch = double(flat(pixels))
    batch = Batch(batch.images, batch.targets, batch.seeds, torch.tensor(start, dtype=DOUBLE).view(1, 1, 1, -1))
    assert explain(model_of(Pooled(2, stride)), batch, name).flatten().tolist() == pytest.approx(wanted)


def test_ties_in_a_maximum_go_to_the_first():
    net = Pooled(4, 4)
    assert explain(model_of(net), double(flat([1, 3, 3, 0])), "lrp_z").flatten().tolist() == pytest.approx([0, 3, 0, 0])


class Product(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        pixels = images.flatten(1)
        score = pixels[:, :1] * pixels[:, 1:]
        return torch.cat((score, -score), 1)


def test_a_product_shares_its_difference():
    batch = double(flat([3, 2]))
    batch = Batch(batch.images, batch.targets, batch.seeds, torch.tensor([1.0, 5.0], dtype=DOUBLE).view(1, 1, 1, 2))
    assert explain(model_of(Product()), batch, "deep_shap(count=1)").flatten().tolist() == pytest.approx([7, -6])


def test_deep_shap_averages_over_references():
    references = torch.tensor([[0.0, 0.0], [1.0, 0.0]], dtype=DOUBLE).view(2, 1, 1, 2)
    batch = double(flat([1, 1]))
    found = explained(model_of(FIXTURES["S"]), Batch(batch.images, batch.targets, batch.seeds, references), "deep_shap")
    assert found.maps.flatten().tolist() == pytest.approx([0.25, 0.25])
    assert found.promised.tolist() == pytest.approx([0.5])


# A network with everything: biases, batch norm with a negative factor, a residual sum, overlapping maxima, averages


class Rich(nn.Module):
    def __init__(self, bias: bool = True, norm: bool = True) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 6, 3, padding=1, bias=bias)
        self.norm = nn.BatchNorm2d(6) if norm else nn.Identity()
        self.second = nn.Conv2d(6, 6, 3, padding=1, bias=bias)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(6 + 6, 3, bias=bias)

    def forward(self, images: Tensor) -> Tensor:
        x = self.relu(self.norm(self.first(images)))
        y = F.max_pool2d(self.relu(self.second(x) + x), 3, 2, 1)
        pooled = F.adaptive_avg_pool2d(torch.cat((y, F.avg_pool2d(x, 2)), 1), 1)
        return self.head(pooled.flatten(1))


def rich(seed: int = 0, **kinds: bool) -> Model:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        net = Rich(**kinds).double()
        if isinstance(net.norm, nn.BatchNorm2d):
            net.norm.weight.data.normal_()
            net.norm.bias.data.normal_()
            net.norm.running_mean.normal_()
            net.norm.running_var.uniform_(0.5, 2)
    return model_of(net, "second")


def batch_for(model: Model, count: int = 4) -> Batch:
    batch = double(noise_batch(count))
    return Batch(
        batch.images - 0.3,
        batch.targets,
        batch.seeds,
        torch.rand(7, 3, 8, 8, dtype=DOUBLE, generator=torch.Generator().manual_seed(0)) - 0.5,
    )


@pytest.mark.parametrize("seed", [0, 1])
def test_lrp_z_is_input_x_gradient_with_biases_norms_and_sums(seed):
    model = rich(seed)
    batch = batch_for(model)
    torch.testing.assert_close(explain(model, batch, "lrp_z"), explain(model, batch, "input_x_gradient"), **NEARLY)


def test_without_biases_all_agree_and_sum_to_the_score():
    model = rich(bias=False, norm=False)
    batch = batch_for(model)
    wanted = explain(model, batch, "input_x_gradient")
    for name in ("lrp_z", "deeplift_rescale", "integrated_gradients(rule=middle,steps=3)"):
        torch.testing.assert_close(explain(model, batch, name), wanted, **NEARLY)
    score = model.logits(batch.images).gather(1, batch.targets[:, None])[:, 0]
    torch.testing.assert_close(wanted.sum((1, 2, 3)), score, **CLOSE)


@pytest.mark.parametrize(
    "text", ["deeplift_rescale", "deeplift_reveal_cancel", "deep_shap(count=7)", "deep_shap(count=5)"]
)
@pytest.mark.parametrize("size", [0, 1, 3])
def test_differences_are_handed_back_whole(text, size):
    model = rich()
    found = explained(model, batch_for(model), text, size=size)
    assert found.residual.abs().max() < 1e-12
    assert found.promised.abs().max() > 1e-3
    torch.testing.assert_close(found.maps, explain(model, batch_for(model), text), **CLOSE)


@pytest.mark.parametrize("text", [w for w in WALKS if w.startswith("lrp")])
def test_all_relevance_is_accounted_for(text):
    model = rich()
    model = Model(**{**vars(model), "low": -1.0, "high": 1.0})
    found = explained(model, batch_for(model), text)
    assert found.facts["closing"].abs().max() < 1e-10
    assert not found.flags["loose"].any()


def test_deep_taylor_is_positive_and_conserves():
    model = Model(**{**vars(rich()), "low": -1.0, "high": 1.0})
    batch = batch_for(model)
    found = explained(model, batch, "deep_taylor")
    score = model.logits(batch.images).gather(1, batch.targets[:, None])[:, 0]
    assert (found.maps >= 0).all()
    assert found.flags["negative_target"].tolist() == (score <= 0).tolist()
    assert found.facts["closing"].abs().max() < 1e-12
    positive = score > 0
    torch.testing.assert_close(found.maps.sum((1, 2, 3))[positive], (score - found.facts["lost"])[positive], **CLOSE)


class Bare(nn.Module):
    """Scores (N,) that are added and taken away before they are put side by side."""

    def forward(self, images: Tensor) -> Tensor:
        one, other = images[..., :2].relu().sum((1, 2, 3)), images[..., 2:].relu().mean((1, 2, 3))
        return torch.stack((one + other, one - other), 1)


@pytest.mark.parametrize("text", [text for text in WALKS if text != "guided_grad_cam"])
def test_values_without_channels_are_walked(text):
    """Of positive pixels every relevance and difference is the pixel times its weight, 1 or a half."""
    batch = double(flat([0.2, 0.4, 0.6, 0.9], [0.5, 0.1, 0.3, 0.8]))
    batch = Batch(batch.images, batch.targets, batch.seeds, torch.zeros(1, 1, 1, 4, dtype=DOUBLE))
    wanted = torch.tensor([1, 1, 0.5, 0.5], dtype=DOUBLE).expand(2, 1, 1, 4)
    wanted = wanted if text in ("deconvnet", "guided_backprop") else wanted * batch.images
    torch.testing.assert_close(explain(model_of(Bare()), batch, text), wanted, **NEARLY)


class Spread(nn.Module):
    """The sum of x + mean(x) over places, where the mean is spread over them."""

    def forward(self, images: Tensor) -> Tensor:
        score: Tensor = (images.relu() + images.relu().mean(3, keepdim=True)).sum((1, 2, 3))
        return Both()(score[:, None])


def test_deep_taylor_shares_a_sum_with_a_spread_branch_place_by_place():
    """x + mean(x) at x = (1, 3): of 3 the mean gets 2, of 5 it gets 2, and these 4 it hands on as 1 and 3."""
    found = explained(model_of(Spread()), double(flat([1, 3])), "deep_taylor")
    assert found.maps.flatten().tolist() == pytest.approx([1 + 1, 3 + 3])


class Mirrored(nn.Module):
    """The mean over an image and its mirror image, which go through the network in one batch, side by side."""

    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    def forward(self, images: Tensor) -> Tensor:
        one, other = self.net(torch.cat((images, images.flip(3)))).tensor_split(2)
        return (one + other) / 2


@pytest.mark.parametrize("text", ["lrp_z", "lrp_alpha_beta", "deep_taylor"])
def test_images_that_are_not_kept_in_their_rows_have_books_of_their_own(text):
    model = model_of(Mirrored(rich().net))
    model = Model(**{**vars(model), "low": -1.0, "high": 1.0})
    batch = batch_for(model)
    found = explained(model, batch, text)
    assert found.facts["closing"].abs().max() < 1e-10
    assert not found.flags["loose"].any()
    for place in range(len(batch)):
        one = slice(place, place + 1)
        alone = explained(model, Batch(batch.images[one], batch.targets[one], batch.seeds[one]), text)
        torch.testing.assert_close(alone.maps, found.maps[one], **CLOSE)
        for fact in alone.facts:
            torch.testing.assert_close(alone.facts[fact], found.facts[fact][one], **CLOSE)


def test_one_reference_makes_deep_shap_deeplift():
    model = rich()
    batch = batch_for(model)
    zero = Batch(batch.images, batch.targets, batch.seeds, torch.zeros(1, 3, 8, 8, dtype=DOUBLE))
    torch.testing.assert_close(explain(model, zero, "deep_shap"), explain(model, batch, "deeplift_rescale"), **CLOSE)


def test_deep_shap_is_the_mean_of_deeplift_over_references():
    model = rich()
    batch = batch_for(model)
    each = [
        explain(model, Batch(batch.images, batch.targets, batch.seeds, one[None]), "deep_shap")
        for one in batch.references
    ]
    torch.testing.assert_close(explain(model, batch, "deep_shap"), torch.stack(each).mean(0), **CLOSE)


# Twins: the same function, written in other ways (Captum's trap)


class Spelled(nn.Module):
    """small_cnn with its ReLUs written in some other way."""

    def __init__(self, net: nn.Sequential, relu) -> None:
        super().__init__()
        self.first, self.second, self.head, self.relu = net[0], net[2], net[5], relu

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.relu(self.second(self.relu(self.first(images)))).flatten(1))


SPELLINGS = {
    "module": nn.ReLU(),
    "in place": nn.ReLU(inplace=True),
    "function": F.relu,
    "torch": torch.relu,
    "method": lambda x: x.relu(),
    "method in place": lambda x: x.relu_(),
    "clamp": lambda x: x.clamp(min=0),
    "clamp in place": lambda x: x.clamp_(min=0),
    "clamp_min": lambda x: torch.clamp_min(x, 0),
    "threshold": lambda x: F.threshold(x, 0, 0),
    "maximum": lambda x: torch.maximum(x, torch.zeros(())),
    "where": lambda x: torch.where(x > 0, x, torch.zeros(())),
    "product": lambda x: x * (x > 0),
    "relu6": F.relu6,
    "hardtanh": nn.Hardtanh(0, 1e6),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("text", WALKS)
def test_twins_get_the_same_map(text, spelling):
    plain, batch = small_cnn(), noise_batch(3)
    batch = Batch(batch.images, batch.targets, batch.seeds, torch.rand(4, 3, 8, 8))
    twin = model_of(Spelled(small_cnn(), SPELLINGS[spelling]), "second")
    one, two = explain(model_of(plain, "2"), batch, text), explain(twin, batch, text)
    torch.testing.assert_close(one, two, rtol=1e-4, atol=1e-6)


def test_a_walk_with_the_true_derivative_is_autograd():
    from saliometer.graph import Network, transpose, walk

    model = rich()
    images = batch_for(model).images
    network = Network(model.net, model.logits)
    forward = network.run(images)
    families = ("kernel", "average", "max", "norm", "add", "shift", "scale", "route", "same", "relu", "relu_capped")
    found = walk(forward, torch.ones_like(forward.logits), dict.fromkeys(families, transpose))
    leaf = images.clone().requires_grad_()
    torch.testing.assert_close(found, torch.autograd.grad(model.logits(leaf).sum(), leaf)[0], **CLOSE)


# Refusals


class Smooth(nn.Module):
    def __init__(self, act: nn.Module) -> None:
        super().__init__()
        self.body, self.act, self.head = nn.Conv2d(3, 4, 3), act, nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.act(self.body(images)).mean((2, 3)))


@pytest.mark.parametrize("name", ["guided_backprop", "deconvnet", "deep_taylor"])
@pytest.mark.parametrize("act", [nn.GELU(), nn.SiLU(), nn.LeakyReLU(), nn.Tanh(), nn.Softplus()])
def test_a_smooth_nonlinearity_is_refused_by_name(name, act):
    with pytest.raises(ValueError, match=r"there is no rule for the operation '\w+' in 'act'.*Works on .*gradient"):
        saliometer.explain(Smooth(act).eval(), torch.rand(2, 3, 8, 8), name)


@pytest.mark.parametrize("name", ["deeplift_rescale", "deeplift_reveal_cancel", "deep_shap"])
@pytest.mark.parametrize("act", [nn.GELU(), nn.Sigmoid(), nn.Softplus(2), nn.LogSigmoid()])
def test_differences_pass_smooth_nonlinearities_whole(name, act):
    net, images = Smooth(act).double().eval(), torch.rand(2, 3, 8, 8, dtype=DOUBLE) - 0.5
    references = torch.rand(3, 3, 8, 8, dtype=DOUBLE) if name == "deep_shap" else None
    found = saliometer.explain(net, images, name, references=references, full=True)
    assert found.promised.abs().max() > 1e-4
    assert found.residual.abs().max() < 1e-13


@pytest.mark.parametrize("act", [nn.GELU(), nn.Softplus()])
def test_the_true_derivative_can_be_asked_for(act):
    net = Smooth(act).eval()
    images = torch.rand(2, 3, 8, 8)
    found = saliometer.explain(net, images, "guided_backprop(other=gradient)", channels=True)
    torch.testing.assert_close(found, saliometer.explain(net, images, "gradient", channels=True))


@pytest.mark.parametrize("name", ["lrp_z", "deeplift_rescale", "deeplift_reveal_cancel"])
def test_layer_norm_has_no_rule(name):
    net = nn.Sequential(nn.Flatten(), nn.Linear(192, 8), nn.LayerNorm(8), nn.Linear(8, 3)).eval()
    with pytest.raises(ValueError, match="no rule for the operation 'layer_norm' in '2'"):
        saliometer.explain(net, torch.rand(2, 3, 8, 8), name)


class Branches(nn.Module):
    def forward(self, images: Tensor) -> Tensor:
        scores = images.flatten(1)[:, :3]
        return scores * 2 if images.sum() > 0 else scores


def test_a_branch_on_the_data_is_refused_for_walks_only():
    images = torch.rand(2, 3, 8, 8)
    with pytest.raises(ValueError, match="cannot be captured"):
        saliometer.explain(Branches().eval(), images, "lrp_z")
    assert saliometer.explain(Branches().eval(), images, "gradient").shape == (2, 8, 8)


def test_images_beyond_the_bounds_are_refused():
    with pytest.raises(ValueError, match="beyond the bounds 0 to 1"):
        saliometer.explain(small_cnn().eval(), torch.rand(2, 3, 8, 8) * 3, "deep_taylor")


def test_references_are_asked_for():
    with pytest.raises(ValueError, match="deep_shap compares with other images"):
        saliometer.explain(small_cnn().eval(), torch.rand(2, 3, 8, 8), "deep_shap")


def test_a_negative_target_gives_an_empty_deep_taylor_map():
    net = dense((two([1.0, 1.0]), [0, 0]))
    found = explained(model_of(net), batch_of(torch.ones(1, 1, 1, 2, dtype=DOUBLE), target=1), "deep_taylor")
    assert found.maps.abs().max() == 0
    assert found.flags["negative_target"].all()


class Branched(nn.Module):
    """u + v of two linear branches: 3 and 1 at x = 1, or a pair that nearly cancels."""

    def __init__(self, one: float, other: float) -> None:
        super().__init__()
        self.one, self.other = (nn.Linear(1, 1, bias=False, dtype=DOUBLE) for _ in range(2))
        self.one.weight.data.fill_(one)
        self.other.weight.data.fill_(other)

    def forward(self, images: Tensor) -> Tensor:
        pixels = images.flatten(1)
        return Both()(self.one(pixels) + self.other(pixels))


@pytest.mark.parametrize(("one", "other", "largest"), [(3.0, 1.0, 0.75), (100.0, -99.0, 100.0)])
def test_large_shares_of_opposite_branches_are_reported(one, other, largest):
    found = explained(model_of(Branched(one, other)), double(flat([1])), "lrp_z")
    assert found.facts["largest_share"].tolist() == pytest.approx([largest])
    assert found.maps.item() == pytest.approx(one + other)


class Weighed(nn.Module):
    """A linear layer as one operation that weighs its bias, or as another."""

    def __init__(self, fused: bool) -> None:
        super().__init__()
        self.layer, self.fused = nn.Linear(4, 2, dtype=DOUBLE), fused

    def forward(self, images: Tensor) -> Tensor:
        weight, bias = self.layer.weight, self.layer.bias
        if self.fused:
            return torch.addmm(bias, images.flatten(1), weight.T, beta=0.25, alpha=2)
        return F.linear(images.flatten(1), 2 * weight, bias / 4)


@pytest.mark.parametrize("name", ["lrp_z", "lrp_epsilon", "lrp_alpha_beta", "lrp_gamma", "deeplift_rescale"])
def test_a_weighed_bias_counts_as_much_as_it_weighs(name):
    fused, plain = Weighed(True), Weighed(False)
    plain.load_state_dict(fused.state_dict())
    batch = double(flat([1, 0.2, 0.7, 0.5]))
    torch.testing.assert_close(explain(model_of(fused), batch, name), explain(model_of(plain), batch, name), **CLOSE)
