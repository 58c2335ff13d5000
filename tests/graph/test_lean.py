"""A lean pass gives the network's own logits, from fewer steps and from the weights as they are now.

Every test goes both ways: as on a GPU, for which a CPU stands here, and as on a CPU where it has oneDNN.
"""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils import parametrizations

from graph_toys import pictures, torchvision_net, written
from saliometer.fused import onednn
from saliometer.graph.capture import UnfitError
from saliometer.graph.finishing import Finishing
from saliometer.graph.joined import Joined, Norms
from saliometer.graph.lean import Lean
from saliometer.graph.precomputed import Precomputed

ON_CPU = onednn.fits(torch.zeros(1))
WAYS = ["gpu", pytest.param("cpu", marks=pytest.mark.skipif(not ON_CPU, reason="wants an x86 CPU with oneDNN"))]


@pytest.fixture(params=WAYS, autouse=True)
def way(request, monkeypatch) -> str:
    if request.param == "gpu":
        monkeypatch.setattr(onednn, "fits", lambda images: False)
    return request.param


def close(found: Tensor, wanted: Tensor) -> None:
    """Within rounding of the largest."""
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5 * float(wanted.abs().max()))


def stirred(net: nn.Module) -> nn.Module:
    """With batch norms that have seen something."""
    rng = torch.Generator().manual_seed(0)
    for module in net.modules():
        if isinstance(module, nn.BatchNorm2d):
            for vector, low, high in (
                (module.running_mean, -0.2, 0.2), (module.running_var, 0.5, 2.0), (module.weight.data, 0.5, 1.5),
                (module.bias.data, -0.2, 0.2),
            ):  # fmt: skip
                vector.uniform_(low, high, generator=rng)
    return net


def lean_of(net: nn.Module, side: int = 8) -> Lean:
    return Lean(net, net, pictures(1, side))


def left(lean: Lean) -> list[str]:
    return ["joined" if isinstance(step, Joined) else step.op for step in lean.steps]


def check(net: nn.Module, side: int = 8, counts: tuple[int, ...] = (1, 5), plain: bool = False) -> Lean:
    """The lean pass of a network that agrees with it on batches of these sizes; `plain` wants values laid out so."""
    lean = lean_of(net, side)
    if plain:
        lean.lay_out_plainly()
    for count in counts:
        images = pictures(count, side)
        with torch.no_grad():
            close(lean(images.clone()), net(images.clone()))
    return lean


@pytest.mark.parametrize(
    ("name", "others", "convolutions", "layout"),
    [
        ("resnet18", ["max_pool2d", "adaptive_avg_pool2d", "flatten", "linear"], 20, torch.contiguous_format),
        ("mobilenet_v2", ["adaptive_avg_pool2d", "flatten", "linear"], 52, torch.channels_last),
    ],
)
def test_nothing_is_left_but_convolutions_and_the_head(name, others, convolutions, layout, way):
    lean = check(stirred(torchvision_net(name)), 64)
    assert sorted(left(lean)) == sorted([*others, *["joined"] * convolutions])
    assert lean.layout == (layout if way == "gpu" else torch.channels_last)
    assert type(lean.way) is (Finishing if way == "gpu" else Precomputed)


@pytest.mark.parametrize("name", ["densenet121", "googlenet", "efficientnet_b0", "vgg11_bn", "alexnet"])
def test_other_networks_agree(name):
    lean = check(stirred(torchvision_net(name)), 64, (2,))
    assert "batch_norm" not in left(lean) or name == "densenet121"  # which has norms before its convolutions


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v2"])
def test_either_layout_gives_the_same(name):
    net = stirred(torchvision_net(name))
    lean, images = lean_of(net, 64), pictures(3, 64)
    with torch.no_grad():
        close(lean(images), net(images))
        lean.lay_out_plainly()
        assert lean.layout == torch.contiguous_format
        close(lean(images), net(images))


def test_few_sizes_go_through_a_gpu_with_channels_last(monkeypatch, way):
    net = stirred(torchvision_net("mobilenet_v2"))
    lean, seen = lean_of(net, 32), []
    plan = lean._plan
    monkeypatch.setattr(lean, "_plan", lambda count: seen.append(count) or plan(count))
    with torch.no_grad():
        for count in (1, 17, 65, 128, 129):
            close(lean(pictures(count, 32)), net(pictures(count, 32)))
    filled = [1, 17, 128, 128, 192]  # a few images may be all that memory holds
    assert seen == (filled if way == "gpu" else [1, 17, 65, 128, 129])


def pooled(net: nn.Module, values: Tensor) -> Tensor:
    return net.head(values.mean((2, 3)))


HEAD = ["mean", "linear"]
JOINED = {
    "bias alone": (lambda net, x: pooled(net, net.second(net.first(x))), ["joined"] * 2 + HEAD),
    "relu": (lambda net, x: pooled(net, net.relu(net.first(x))), ["joined", *HEAD]),
    "something between": (lambda net, x: pooled(net, F.relu6(20 * net.first(x))), ["joined", "mul", "relu6", *HEAD]),
    "capped": (lambda net, x: pooled(net, F.hardtanh(net.first(x), 0, 0.3)), ["joined", *HEAD]),
    "clamp": (lambda net, x: pooled(net, net.first(x).clamp(min=0, max=0.2)), ["joined", *HEAD]),
    "sum of two branches": (lambda net, x: pooled(net, F.relu(net.first(x) + net.other(x))), ["joined"] * 2 + HEAD),
    "bare sum of two branches": (lambda net, x: pooled(net, net.first(x) + net.other(x)), ["joined"] * 2 + HEAD),
    "sum of three branches": (
        lambda net, x: pooled(net, F.relu(net.first(x) + net.other(x) + net.third(x))), ["joined"] * 3 + HEAD,
    ),
    "sum behind a norm": (lambda net, x: pooled(net, net.norm(net.first(x) + net.other(x))),
                          ["joined", "joined", "batch_norm", *HEAD]),
    "doubled": (lambda net, x: pooled(net, (made := net.first(x)) + made), ["joined", "add", *HEAD]),
    "cropped": (lambda net, x: pooled(net, F.relu(net.padded(F.pad(x, (-1, -1, -1, -1))))), ["pad", "joined", *HEAD]),
    "sum with the images": (lambda net, x: net.narrow(F.relu(net.same(x) + x).mean((2, 3))), ["joined", *HEAD]),
    "sum of other shapes": (
        lambda net, x: pooled(net, F.relu(net.first(x) + x.mean((1, 2, 3), keepdim=True))),
        ["joined", "mean", "add", "relu", *HEAD],
    ),
    "read twice": (lambda net, x: pooled(net, (made := net.first(x)) * made.sigmoid()),
                   ["joined", "sigmoid", "mul", *HEAD]),
    "padded by hand": (lambda net, x: pooled(net, net.first(F.pad(x, (2, 2, 1, 1)))), ["joined", *HEAD]),
    "grouped": (lambda net, x: pooled(net, F.relu(net.deep(net.first(x)))), ["joined"] * 2 + HEAD),
    "strided 1x1": (lambda net, x: pooled(net, F.relu(net.strided(x))), ["joined", *HEAD]),
    "view by hand": (lambda net, x: net.wide(net.first(x).view(x.size(0), -1)), ["joined", "view", "linear"]),
}  # fmt: skip


def layers() -> dict[str, nn.Module]:
    torch.manual_seed(1)
    return {
        "other": nn.Conv2d(3, 4, 3), "same": nn.Conv2d(3, 3, 1), "deep": nn.Conv2d(4, 4, 3, padding=1, groups=4),
        "strided": nn.Conv2d(3, 4, 1, stride=2), "wide": nn.Linear(4 * 36, 3), "narrow": nn.Linear(3, 3),
        "third": nn.Conv2d(3, 4, 3), "padded": nn.Conv2d(3, 4, 3, padding=1), "norm": nn.BatchNorm2d(4),
        "bound": nn.Parameter(torch.zeros(())),
    }  # fmt: skip


@pytest.mark.parametrize("name", JOINED)
def test_what_follows_a_convolution_is_joined_to_it(name):
    forward, wanted = JOINED[name]
    with torch.random.fork_rng(devices=[]):
        net = written(forward, **layers())
    assert sorted(left(check(net, plain=name == "view by hand"))) == sorted(wanted)


def test_a_clamp_that_others_look_behind_stays():
    def forward(net, x):
        made = net.first(x)
        return pooled(net, F.relu(made) + made)

    lean = check(written(forward))
    assert left(lean)[:3] == ["joined", "relu", "add"]


def test_a_bound_that_can_be_written_to_stays():
    with torch.random.fork_rng(devices=[]):
        net = written(lambda net, x: pooled(net, net.first(x).clamp(min=net.bound)), **layers())
    lean = check(net)
    net.bound.data.fill_(0.3)
    with torch.no_grad():
        close(lean(pictures()), net(pictures()))


def odd_norm(net: nn.Module, x: Tensor) -> Tensor:
    norm = net.norm
    vectors = norm.weight, norm.bias, norm.running_mean, norm.running_var
    return torch.ops.aten._native_batch_norm_legit_no_training(net.first(x), *vectors, 0.1, 1e-5)[0]


ODD = {
    "norm by another name": lambda net, x: pooled(net, odd_norm(net, x)),
    "bias made of the images": lambda net, x: pooled(
        net, F.conv2d(x, net.first.weight, x.mean((0, 2, 3)).sum() + net.first.bias)
    ),
    "norm's weight made of the images": lambda net, x: pooled(
        net, F.batch_norm(net.first(x), net.norm.running_mean, net.norm.running_var, x.mean() + net.norm.weight)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD)
def test_odd_ways_to_write_it_are_left_alone(name):
    with torch.random.fork_rng(devices=[]):
        net = written(ODD[name], **layers())
    try:
        lean = lean_of(net)
    except UnfitError:
        return  # and the network itself runs
    with torch.no_grad():
        close(lean(pictures()), net(pictures()))


def test_uneven_padding_and_other_bends_stay():
    lean = check(written(lambda net, x: pooled(net, F.hardtanh(net.first(F.pad(x, (0, 1, 0, 1)))))))
    assert left(lean)[:3] == ["pad", "joined", "hardtanh"]
    filled = check(written(lambda net, x: pooled(net, net.first(F.pad(x, (1, 1, 1, 1), value=0.5)))))
    assert left(filled)[0] == "pad"


def test_padding_by_name_is_left_to_the_network():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        named = nn.Conv2d(4, 4, 3, padding="same")
    lean = check(written(lambda net, x: pooled(net, F.relu(net.named(net.first(x)))), named=named))
    assert left(lean)[:3] == ["joined", "conv2d", "relu"]


@pytest.mark.parametrize("what", ["weight", "bias", "running_mean", "running_var"])
def test_weights_are_those_of_now(what):
    net = stirred(torchvision_net("resnet18")).requires_grad_(False)
    lean, images = lean_of(net, 64), pictures(2, 64)
    with torch.no_grad():
        before = lean(images)
        getattr(net.layer1[0].bn1, what).mul_(-1.5 if what != "running_var" else 3)
        close(lean(images), net(images))
        assert not torch.allclose(lean(images), before, rtol=0, atol=1e-4 * float(before.abs().max()))
        net.layer2[0].conv1.weight.mul_(-1.5)
        net.fc.bias.add_(1)
        close(lean(images), net(images))


def test_weights_written_to_without_a_trace_are_read_when_it_begins_anew(way):
    net = stirred(torchvision_net("resnet18"))
    lean, images = lean_of(net, 64), pictures(2, 64)
    with torch.no_grad():
        before = lean(images)
        net.layer1[0].conv1.weight.data.mul_(-1.5)
        net.layer2[0].bn1.running_mean.data.add_(0.3)
        assert torch.equal(lean(images), before) == (way == "cpu")
        lean.begin_anew()
        close(lean(images), net(images))


def test_what_a_cpu_keeps_ready_serves_other_sizes_of_images(way):
    net = stirred(torchvision_net("mobilenet_v2"))
    lean = lean_of(net, 64)
    with torch.no_grad():
        for count in (4, 1, 16):
            close(lean(pictures(count, 64)), net(pictures(count, 64)))


def test_layouts_that_differ_are_added(way):
    """A residual sum of values with channels last and of values in the plain layout."""
    with torch.random.fork_rng(devices=[]):
        net = written(lambda net, x: pooled(net, F.relu(net.first(x) + net.third(x).contiguous().clone())), **layers())
    check(net, 16)


def test_images_are_left_as_they_were():
    lean, images = lean_of(written(lambda net, x: pooled(net, F.relu(net.same(x) + x)[:, :1].expand(-1, 4, -1, -1)),
                                   **layers())), pictures()  # fmt: skip
    kept = images.clone()
    with torch.no_grad():
        lean(images)
    assert torch.equal(images, kept)


def test_not_a_number_stays_one_or_it_is_said_that_it_does_not(way):
    net = written(lambda net, x: pooled(net, net.relu(net.first(x))))
    images = pictures()
    images[1, 0, 2, 2] = torch.nan
    lean = lean_of(net)
    with torch.no_grad():
        found = lean(images)
    assert lean.hides_nan == (way == "cpu")
    assert found.isfinite().all(1).tolist() == [True, lean.hides_nan, True]


def test_doubles_are_refused():
    net = written(lambda net, x: pooled(net, net.first(x))).double()
    with pytest.raises(UnfitError, match="float32"):
        Lean(net, net, pictures(1).double())


def test_weights_computed_on_the_way_are_refused():
    layer = parametrizations.weight_norm(nn.Conv2d(3, 4, 3))
    net = written(lambda net, x: pooled(net, net.normed(x)), normed=layer)
    with pytest.raises(UnfitError, match="computes weights"):
        lean_of(net)


def test_networks_that_count_in_their_buffers_are_refused():
    def counting(net: nn.Module, images: Tensor) -> Tensor:
        net.seen += 1
        return net.head(net.first(images).relu().mean((2, 3)))

    net = written(counting).requires_grad_(False)
    net.register_buffer("seen", torch.zeros(()))
    with pytest.raises(UnfitError, match="writes into its weights or buffers"):
        lean_of(net)


def test_networks_without_anything_to_join_are_refused():
    net = written(lambda net, x: net.wide(x.flatten(1)), wide=nn.Linear(3 * 64, 3))
    with pytest.raises(UnfitError, match="no convolution"):
        lean_of(net)


def test_a_network_that_repeats_a_token_for_each_image_is_refused():
    with pytest.raises(UnfitError, match="constant that differs"):
        lean_of(torchvision_net("vit_b_16"), 32)


def test_a_network_of_which_larger_batches_run_something_else_is_refused():
    net = written(lambda net, x: pooled(net, net.first(x)) * (2.5 if len(x) > 2 else 1.5))
    with pytest.raises(UnfitError, match="larger batches"):
        lean_of(net)


def test_another_thread_may_begin_while_weights_are_made_ready(monkeypatch):
    net = stirred(torchvision_net("resnet18"))
    lean, images, real, found = lean_of(net, 64), pictures(2, 64), Norms.now, []

    def now(norms: Norms) -> tuple[Tensor, Tensor]:
        with monkeypatch.context() as patch:
            patch.setattr(Norms, "now", real)
            found.append(lean(images))  # as the other would
        return real(norms)

    monkeypatch.setattr(Norms, "now", now)
    with torch.no_grad():
        close(lean(images), net(images))
        close(found[0], net(images))


def test_it_hangs_no_hooks_on_a_network(monkeypatch):
    """They would name its modules, for which it has no use, and take longer than all else."""
    net, hung = written(lambda net, x: pooled(net, net.relu(net.first(x)))), []
    monkeypatch.setattr(nn.Module, "register_forward_hook", lambda *given, **options: hung.append(given))
    check(net)
    assert not hung
