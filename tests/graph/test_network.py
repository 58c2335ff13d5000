"""A network that is walked: its logits and operations are those of the network itself, now and after it was changed."""

from collections import Counter
from copy import deepcopy

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from graph_toys import LOOKS, Written, kinds, looking, operations, pictures, settled, torchvision_net, written
from saliometer import explain
from saliometer.graph import Network, UnfitError, transpose, walk
from saliometer.graph import network as network_file
from saliometer.graph.capture import capture
from saliometer.graph.network import nonlinear, state_of
from toys import small_cnn

WALKS = ("guided_backprop", "lrp_epsilon", "deeplift_rescale", "deep_taylor")


def plain(net: Written, images: Tensor) -> Tensor:
    return net.head(F.relu(net.second(F.relu(net.first(images)))).mean((2, 3)))


# Null rules: with the true derivative at every step the walk is autograd; expected counts of methods.md 10.1


NETWORKS = {  # network -> side of the images, some of its operations
    "alexnet": (96, {"relu": 7, "max_pool2d": 3}),
    "vgg11_bn": (32, {"relu": 10, "max_pool2d": 5, "batch_norm": 8}),
    "resnet18": (64, {"relu": 17, "max_pool2d": 1, "add": 8, "batch_norm": 20}),
    "densenet121": (32, {"relu": 121, "max_pool2d": 1, "cat": 62}),
    "googlenet": (32, {"relu": 57, "max_pool2d": 13}),
    "mobilenet_v2": (32, {"hardtanh": 35, "add": 10}),
    "efficientnet_b0": (32, {"silu": 49, "sigmoid": 16, "mul": 16}),
    "convnext_tiny": (32, {"gelu": 18, "layer_norm": 23}),
    "swin_t": (32, {"softmax": 12, "gelu": 12, "layer_norm": 29}),
    "vit_b_16": (32, {"scaled_dot_product_attention": 12, "layer_norm": 25, "gelu": 12}),
}


def null(net: nn.Module, images: Tensor) -> tuple[Tensor, Tensor]:
    """A walk with the true derivative everywhere, and autograd."""
    network = Network(net, net)
    forward = network.run(images)
    network.settle()
    rules = dict.fromkeys({*kinds(forward.graph), "affine"}, transpose)
    start = torch.linspace(-1, 1, forward.logits.shape[1], dtype=images.dtype).expand_as(forward.logits)
    leaf = images.clone().requires_grad_()
    return walk(forward, start, rules), torch.autograd.grad((net(leaf) * start).sum(), leaf)[0]


@pytest.mark.parametrize("name", NETWORKS)
def test_torchvisions_networks_have_the_expected_operations_and_the_right_derivative(name):
    side, wanted = NETWORKS[name]
    net, images = torchvision_net(name), pictures(2, side)
    found, slopes = null(net, images)
    assert slopes.abs().max() > 0
    assert (found - slopes).abs().max() <= 1e-5 * slopes.abs().max()
    counts = Counter(operations(Network(net, net).graph(images)))
    assert {op: counts[op] for op in wanted} == wanted
    assert all(value.grad is None for value in net.parameters())


def test_in_double_precision_the_derivative_is_exact():
    found, slopes = null(torchvision_net("resnet18").double(), pictures(1, 32, torch.float64))
    assert (found - slopes).abs().max() <= 1e-10 * slopes.abs().max()


# Output check


def noisy(net: Written, images: Tensor) -> Tensor:
    return net.head(F.relu(net.first(images) + 0.1 * torch.rand(4, 6, 6)).mean((2, 3)))


def counting(net: Written, images: Tensor) -> Tensor:
    net.calls += 1
    return plain(net, images) * net.calls


@pytest.mark.parametrize("forward", [noisy, counting])
@pytest.mark.parametrize("method", WALKS)
def test_a_network_that_never_gives_the_same_twice_is_refused(forward, method):
    """A number that grows with every call may be caught as it is then, but not a second time."""
    net = written(forward, calls=0)

    def again() -> None:
        for _ in range(2):
            explain(net, pictures(), method)

    with pytest.raises(UnfitError, match=r"captured operations of Written give other logits .* perturbation methods"):
        again()
    assert explain(net, pictures(), "gradient").isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_graph_that_is_a_little_off_is_not_believed(dtype):
    """One weight of a captured graph is changed by a hundredth behind its back."""
    net, images = written(plain).to(dtype), pictures(dtype=dtype)
    network = settled(net, images)
    step = next(step for step in network.graph(images).steps if step.op == "linear")
    object.__setattr__(step, "args", (step.args[0], step.args[1] * 1.01, *step.args[2:]))
    network.run(images)
    with pytest.raises(UnfitError, match="give other logits than the network itself"):
        network.settle()
    settled(net, images)  # what was not believed is forgotten


# Count check


def sly(kind: str):
    """On fake images it runs other operations than on real ones, with the same result for images in [0, 1]."""

    def forward(net: Written, images: Tensor) -> Tensor:
        fake = type(images) is not Tensor
        features = net.first(images)
        if kind == "missed" and not fake:
            features = F.relu(features + 10) - 10
        if kind == "added" and fake:
            features = F.relu(features + 10) - 10
        if kind == "gate" and not fake:
            features = features * torch.sigmoid(features * 0 + 100)
        if kind == "product" and not fake:
            features = features * (features * 0 + 1)
        if kind == "quotient" and not fake:
            features = features / (features * 0 + 1)
        if kind == "maximum" and not fake:
            features = torch.maximum(features, features - 1)
        if kind == "norm" and not fake:
            features = features * F.layer_norm(features, (6, 6)).mul(0).add(1)
        return net.head(F.relu(features).mean((2, 3)))

    return forward


@pytest.mark.parametrize("kind", ["missed", "added", "gate", "product", "quotient", "maximum", "norm"])
def test_an_operation_that_capture_did_not_see_is_found_by_counting(kind):
    """The output is the same, and so would be the gradient: only the count tells."""
    net, images = written(sly(kind)), pictures()
    torch.testing.assert_close(net(images), written(sly("honest"))(images), rtol=1e-4, atol=1e-5)
    with pytest.raises(UnfitError, match=r"Written runs '\w+' \d times, but \d were caught, so methods that walk"):
        explain(net, images, "guided_backprop")
    assert explain(written(sly("honest")), images, "guided_backprop").isfinite().all()


@pytest.mark.parametrize("how", LOOKS)
@pytest.mark.parametrize("method", ["guided_backprop", "lrp_epsilon"])
def test_a_network_that_looks_at_its_images_is_refused_also_where_it_gets_along_without(how, method):
    """The first image, by which a walk is compared with the network, does not show it."""
    net, images = written(looking(LOOKS[how])), pictures()
    images[0] *= 0.1
    assert bool(LOOKS[how](images[1:] + 0.4))
    with pytest.raises(UnfitError, match="methods that walk its operations are refused"):
        explain(net, images, method)


def test_an_operation_that_hides_a_nonlinear_one_is_not_taken_for_linear():
    net = written(plain)
    graph = Network(net, net).graph(pictures())
    step = next(step for step in graph.steps if step.op == "mean")
    honest = step.call
    object.__setattr__(step, "call", lambda *args, **kwargs: honest(*args, **kwargs).relu())
    with pytest.raises(UnfitError, match="the operation 'mean' in 'Written' was taken for linear, but it runs relu"):
        nonlinear(graph, pictures())


def test_what_is_computed_from_weights_alone_is_not_counted():
    """A temperature that is learned as its logarithm, a gate that is a parameter, weights that are normalised."""

    def forward(net: Written, images: Tensor) -> Tensor:
        weight = F.normalize(net.head.weight).clamp(max=0.9) * F.softplus(net.head.bias).exp()[:, None]
        mask = images.new_zeros(6, 6).masked_fill(torch.eye(6) > 0, 1)  # of the images only the type
        features = F.relu(net.first(images)) * net.second.bias.sigmoid().view(4, 1, 1) + mask
        return F.linear(features.mean((2, 3)), weight)

    net = written(forward)
    assert dict(nonlinear(Network(net, net).graph(pictures()), pictures())) == {"relu": 1}
    for method in WALKS:
        assert explain(net, pictures(), method).isfinite().all()


def test_an_encoder_that_would_run_fused_is_seen_in_parts():
    """PyTorch's encoder layers run as one operation where no gradient is wanted."""
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    net = written(lambda net, x: net.head(net.layer(x.flatten(1, 2))[:, 0, :4]), layer=layer).requires_grad_(False)
    with torch.no_grad():
        graph = settled(net, pictures()).graph(pictures())
    assert Counter(operations(graph))["layer_norm"] == 2
    found, slopes = null(net, pictures())
    torch.testing.assert_close(found, slopes, rtol=1e-4, atol=1e-6)


# Changes between two calls


def weights_in_place(net: nn.Sequential) -> None:
    with torch.no_grad():
        net[2].weight.mul_(-1)


def weights_behind_the_back(net: nn.Sequential) -> None:
    net[2].weight.data.mul_(-1)  # which leaves no trace


def weights_replaced(net: nn.Sequential) -> None:
    net[2].weight.data = net[2].weight.data * -1


def parameter_replaced(net: nn.Sequential) -> None:
    values = net[2].weight.data * -1
    del net[2].weight
    net[2].weight = nn.Parameter(values)


def module_replaced(net: nn.Sequential) -> None:
    net[3] = nn.Tanh().eval()


def module_added(net: nn.Sequential) -> None:
    net.insert(4, nn.Hardtanh(0, 0.1).eval())


def loaded(net: nn.Sequential) -> None:
    net.load_state_dict(small_cnn(seed=5).state_dict())


CHANGES = {change.__name__: change for change in (
    weights_in_place, weights_behind_the_back, weights_replaced, parameter_replaced, module_replaced, module_added,
    loaded)}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("method", ["lrp_epsilon", "deeplift_rescale"])
def test_a_network_that_was_changed_gets_a_map_of_its_own(change, method):
    net, images = small_cnn().eval(), pictures()
    before = explain(net, images, method, torch.tensor([0, 1, 2]))
    CHANGES[change](net)
    after = explain(net, images, method, torch.tensor([0, 1, 2]))
    twin = small_cnn().eval()
    CHANGES[change](twin)
    torch.testing.assert_close(after, explain(twin, images, method, torch.tensor([0, 1, 2])))
    assert not torch.allclose(before, after, rtol=1e-2)


def test_statistics_of_a_folded_norm_that_were_changed_are_folded_anew():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).eval()
    images, targets = pictures(), torch.tensor([0, 1, 2])
    before = explain(net, images, "lrp_epsilon", targets)
    net[1].running_mean.add_(0.2)
    after = explain(net, images, "lrp_epsilon", targets)
    fresh = nn.Sequential(*net).eval()  # another module, so nothing is known of it
    torch.testing.assert_close(after, explain(fresh, images, "lrp_epsilon", targets))
    assert not torch.allclose(before, after, rtol=1e-2)


FLAG = {"on": False}


def flagged(where: str):
    """A ReLU that becomes another nonlinearity when a flag in an attribute or somewhere else is set."""

    def forward(net: Written, images: Tensor) -> Tensor:
        on = FLAG["on"] if where == "elsewhere" else net.on
        features = net.first(images)
        return net.head((F.leaky_relu(features, 0.5) if on else F.relu(features)).mean((2, 3)))

    return forward


@pytest.mark.parametrize("where", ["attribute", "elsewhere"])
@pytest.mark.parametrize("method", ["lrp_epsilon", "deeplift_rescale"])
def test_a_flag_that_changes_the_forward_is_noticed(where, method):
    net, images, targets = written(flagged(where), on=False), pictures(), torch.tensor([0, 1, 2])
    before = explain(net, images, method, targets)
    net.on = FLAG["on"] = True
    try:
        after = explain(net, images, method, targets)
        torch.testing.assert_close(after, explain(written(flagged(where), on=True), images, method, targets))
    finally:
        FLAG["on"] = False
    assert not torch.allclose(before, after, rtol=1e-2)


@pytest.mark.parametrize("method", ["lrp_gamma", "deeplift_rescale", "deeplift_reveal_cancel", "deep_shap"])
def test_a_walk_that_is_done_again_tells_of_each_image_once(method):
    """Residuals are gathered beside the maps; those of the walk that was thrown away do not stay."""
    net, images, targets = written(flagged("elsewhere")), pictures(), torch.tensor([0, 1, 2])
    given = {"references": pictures(2, 8) / 2} if method == "deep_shap" else {}
    before = explain(net, images, method, targets, full=True, **given)
    FLAG["on"] = True
    try:
        after = explain(net, images, method, targets, full=True, **given)
        fresh = explain(written(flagged("elsewhere")), images, method, targets, full=True, **given)
    finally:
        FLAG["on"] = False
    assert not torch.allclose(before.maps, after.maps, rtol=1e-2)
    torch.testing.assert_close(after.maps, fresh.maps)
    torch.testing.assert_close(after.residual, fresh.residual)


@pytest.mark.parametrize("method", ["deep_taylor", "lrp_epsilon", "deeplift_reveal_cancel"])
def test_what_was_refused_is_captured_anew_once_it_can_be_walked(method):
    """The graph that is known has a sine in it, for which there is no rule; the network no longer has."""
    sine = [True]
    net = written(lambda net, x: net.head((torch.sin if sine[0] else F.relu)(net.first(x)).mean((2, 3))))
    with pytest.raises(UnfitError, match="no rule for the operation 'sin'"):
        explain(net, pictures(), method)
    sine[0] = False
    assert explain(net, pictures(), method).isfinite().all()


def test_a_change_that_the_first_image_does_not_show_is_noticed_too():
    """All of the first image's features are positive, so a ReLU and what follows it give the same for it."""
    net = written(flagged("elsewhere"))
    net.first.bias.data.fill_(2)
    images = torch.cat((torch.zeros(1, 3, 8, 8), 9 * (pictures(2) - 0.5)))
    targets = torch.tensor([0, 1, 2])
    before = explain(net, images, "deeplift_rescale", targets)
    FLAG["on"] = True
    try:
        torch.testing.assert_close(net(images)[:1], F.linear(F.relu(net.first(images)).mean((2, 3)), net.head.weight, net.head.bias)[:1])  # fmt: skip # noqa: E501
        assert not torch.allclose(before, explain(net, images, "deeplift_rescale", targets), rtol=1e-2)
    finally:
        FLAG["on"] = False


def test_operations_are_counted_once_while_autograds_trail_is_the_same(monkeypatch):
    """To count takes as long as many passes; what the trail does not show, the logits do."""
    counted = []
    enter = network_file._Counter.__enter__
    monkeypatch.setattr(network_file._Counter, "__enter__", lambda self: counted.append(1) or enter(self))
    net, images = written(flagged("elsewhere")), pictures()

    def counts() -> int:
        counted.clear()
        explain(net, images, "guided_backprop", torch.tensor([0, 1, 2]), other="gradient")
        return len(counted)

    assert counts() > 0
    assert counts() == 0
    monkeypatch.setitem(FLAG, "on", True)
    assert counts() > 0


def test_a_number_in_an_attribute_that_changed_is_noticed():
    net, images = written(lambda net, x: plain(net, x) * net.factor, factor=1.0), pictures()
    before = explain(net, images, "lrp_z", torch.tensor([0, 1, 2]))
    net.factor = 2.0
    torch.testing.assert_close(explain(net, images, "lrp_z", torch.tensor([0, 1, 2])), 2 * before)


def test_a_constant_somewhere_else_that_changed_is_refused_once_and_then_followed():
    """Nothing shows that a number in a closure has changed, but the logits do."""
    factor = [1.0]
    net, images = written(lambda net, x: plain(net, x) * factor[0]), pictures()
    before = explain(net, images, "lrp_z", torch.tensor([0, 1, 2]))
    factor[0] = 2.0
    with pytest.raises(UnfitError, match="give other logits"):
        explain(net, images, "lrp_z", torch.tensor([0, 1, 2]))
    torch.testing.assert_close(explain(net, images, "lrp_z", torch.tensor([0, 1, 2])), 2 * before)


def test_a_graph_is_kept_while_nothing_changes():
    net, images = written(plain), pictures()
    graph = settled(net, images).graph(images)
    assert settled(net, images).graph(images.clone()) is graph
    assert Network(net, net).graph(pictures(2)) is not graph
    assert Network(net, net).graph(pictures(3, 9)) is not graph
    state = state_of(net)
    explain(net, images, "gradient")
    assert state_of(net) == state


# Clean-up


@pytest.mark.parametrize("case", ["works", "refused", "noisy"])
def test_no_gradient_hook_or_mode_is_left(case):
    forwards = {"works": plain, "refused": lambda net, x: plain(net, x).softmax(1), "noisy": noisy}
    net, images = written(forwards[case]), pictures()
    images.requires_grad_()
    for method in WALKS:
        try:
            explain(net, images, method)
        except UnfitError:
            assert case != "works"
        else:
            assert case == "works"
        assert torch.is_grad_enabled()
        assert images.grad is None
        assert all(value.requires_grad and value.grad is None for value in net.parameters())
        assert not any(module._forward_hooks or module._forward_pre_hooks for module in net.modules())
        assert torch.utils._python_dispatch._len_torch_dispatch_stack() == 0


# Weights that were written to


def standardised(net: Written, images: Tensor) -> Tensor:
    weight = net.first.weight / net.first.weight.std()
    return net.head(F.relu(F.conv2d(images, weight)).mean((2, 3))[:, : net.head.in_features])


def by_number(net: Written, images: Tensor) -> Tensor:
    """What a forward makes of a weight in Python is a number in the graph."""
    return plain(net, images) * float(net.first.weight.flatten()[0])


@pytest.mark.parametrize(("forward", "captures"), [(plain, 1), (standardised, 3), (by_number, 3)])
@pytest.mark.parametrize("method", ["guided_backprop", "deeplift_rescale"])
def test_a_graph_of_the_networks_own_memory_is_used_again_and_no_other(forward, captures, method, monkeypatch):
    count = []

    def counted(*args):
        count.append(1)
        return capture(*args)

    net, images = written(forward), pictures()
    monkeypatch.setattr("saliometer.graph.network.capture", counted)
    explain(net, images, method)
    once = len(count)
    for factor in (0.5, -2.0):
        with torch.no_grad():
            net.first.weight.mul_(factor)
        found = explain(net, images, method)
        seen = len(count)
        torch.testing.assert_close(found, explain(deepcopy(net), images, method))
        del count[seen:]
    assert len(count) == once * captures
