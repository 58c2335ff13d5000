"""The walk: signals add up and wait for each other, what lets none through is refused; folding keeps the function."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from graph_toys import Written, kinds, operations, pictures, written
from saliometer import explain
from saliometer.graph import Chosen, Here, Network, Pass, RefusedError, UnfitError, refusal, transpose, walk
from saliometer.graph.folding import folded

FAMILIES = ("kernel", "average", "max", "norm", "add", "shift", "scale", "route", "same", "relu", "relu_capped",
            "from_zero", "gate", "gated", "product", "affine")  # fmt: skip
NULL = dict.fromkeys(FAMILIES, transpose)


def run(net: nn.Module, images: Tensor, **settings: bool) -> Pass:
    network = Network(net, net)
    forward = network.run(images, **settings)
    network.settle()
    return forward


def slopes(net: nn.Module, images: Tensor, start: Tensor) -> Tensor:
    leaf = images.clone().requires_grad_()
    return torch.autograd.grad((net(leaf) * start).sum(), leaf)[0]


def agrees(net: nn.Module, images: Tensor) -> None:
    forward = run(net, images)
    start = torch.randn(forward.logits.shape, generator=torch.Generator().manual_seed(0)).to(images)
    torch.testing.assert_close(walk(forward, start, NULL), slopes(net, images, start))


# Signals


def reused(net: Written, images: Tensor) -> Tensor:
    """Read five times, by different families."""
    features = F.relu(net.first(images))
    joined = torch.cat((features, features.flip(3)), 1).unflatten(1, (2, 4)).sum(1)
    return net.head((features + joined * features + features.clone() / 2).mean((2, 3)))


def twice(net: Written, images: Tensor) -> Tensor:
    """The same convolution and the same images, again."""
    return net.head(net.second(F.relu(net.first(images))).mean((2, 3)) + net.first(images + 1).amax((2, 3)))


def broadcast(net: Written, images: Tensor) -> Tensor:
    features = net.first(images)
    return net.head((features + features.mean((2, 3), keepdim=True) * features.amax(1, keepdim=True)).mean((2, 3)))


def outer(net: Written, images: Tensor) -> Tensor:
    """Kernels that are no convolutions, and parts that are read out of order."""
    a, b, c, d = net.first(images).unbind(1)
    mixed = torch.einsum("nhw,wv->nhv", b, torch.linspace(0, 1, 36).view(6, 6).to(b)) + torch.eye(6).to(a) @ a
    return net.head(torch.stack((d, mixed, a, c + a), 1).mean((2, 3)))


@pytest.mark.parametrize("forward", [reused, twice, broadcast, outer])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_signals_that_meet_are_added(forward, dtype):
    agrees(written(forward).to(dtype), pictures(dtype=dtype))


def test_a_walk_is_linear_in_its_start_and_repeats_if_the_pass_is_kept():
    net, images = written(twice), pictures()
    forward = run(net, images, keep=True)
    start = torch.randn(forward.logits.shape, generator=torch.Generator().manual_seed(0))
    once = walk(forward, start, NULL)
    torch.testing.assert_close(walk(forward, 3 * start, NULL), 3 * once)
    assert not once.requires_grad


def test_each_images_signal_is_its_own():
    net, images = written(reused), pictures()
    forward = run(net, images)
    start = torch.zeros_like(forward.logits)
    start[1, 2] = 1
    found = walk(forward, start, NULL)
    assert found[1].abs().max() > 0
    assert found[[0, 2]].abs().max() == 0


# What lets nothing through


STOPS = {
    "detach": lambda net, x: net.head(F.relu(net.first(x)).mean((2, 3)) + net.first(x).amax((2, 3)).detach()),
    "to": lambda net, x: net.head(F.relu(net.first(x)).mean((2, 3)) + (net.first(x) * 9).long().float().mean((2, 3))),
}  # fmt: skip


@pytest.mark.parametrize("op", STOPS)
@pytest.mark.parametrize("method", ["guided_backprop", "lrp_epsilon", "deeplift_rescale"])
def test_a_branch_that_nothing_goes_back_through_is_refused_and_not_passed_over(op, method):
    with pytest.raises(UnfitError, match=rf"nothing can be sent back through the operation '{op}' in 'Written'. Works"):
        explain(written(STOPS[op]), pictures(), method)


def test_an_operation_without_a_rule_is_named_with_its_place():
    net = written(lambda net, x: net.act(net.head(net.first(x).mean((2, 3)))), act=nn.Softmax(1))
    forward = run(net, pictures())
    with pytest.raises(RefusedError, match=r"^there is no rule for the operation 'softmax' in 'act'$"):
        walk(forward, torch.ones_like(forward.logits), NULL)
    assert refusal(forward.graph, NULL).op == "softmax"


def test_what_no_signal_passes_needs_no_rule():
    """A gate gets no relevance, so whatever made it may be anything."""
    net = written(lambda net, x: net.head((net.first(x) * net.second(net.first(x)).exp().mean((2, 3), keepdim=True).sigmoid()).mean((2, 3))))  # fmt: skip # noqa: E501
    forward = run(net, pictures())
    rules = {name: rule for name, rule in NULL.items() if name not in ("gate", "affine")}
    rules["gated"] = lambda here, signal: here.only(signal, 0)
    assert refusal(forward.graph, rules) is None
    assert walk(forward, torch.ones_like(forward.logits), rules).abs().max() > 0


# Masks


@pytest.mark.parametrize(
    "relu",
    [lambda x: torch.where(x > 0, x, 0.0), lambda x: x * (x > 0), lambda x: (x > 0).float() * x,
     lambda x: (x >= 0).to(x.dtype) * x],
)  # fmt: skip
def test_the_activation_is_told_from_the_mask(relu):
    net = written(lambda net, x: net.head(relu(net.first(x)).mean((2, 3))))
    forward = run(net, pictures())
    step = next(step for step in forward.graph.steps if step.op in ("where", "mul"))
    here = Here(forward, step)
    assert forward.graph.steps[step.inputs[here.main]].op == "conv2d"


# A reference pass


def test_chosen_rows_of_a_reference_are_as_if_it_had_been_run_on_them():
    net, images = written(reused), pictures()
    forward, rows = run(net, images, slopes=False), torch.tensor([2, 0, 0, 1])
    chosen, wanted = Chosen(forward, rows), run(net, images[rows])
    torch.testing.assert_close(chosen.logits, wanted.logits)
    for number in range(len(forward.graph.steps)):
        torch.testing.assert_close(chosen.values[number], wanted.values[number])


def sequence_first(net: Written, images: Tensor) -> Tensor:
    """Places along the first dimension, images along the second."""
    return F.relu(net.head(F.relu(net.first(images)).flatten(2).permute(2, 0, 1))).mean(0)


def test_images_along_another_dimension_are_right_or_refused():
    net, images = written(sequence_first), pictures(5)
    agrees(net, images)
    with pytest.raises(UnfitError, match="images do not stay apart in the operation"):
        explain(net, images, "deep_shap", references=pictures(4))
    found = explain(net, images, "lrp_z", full=True, channels=True)
    torch.testing.assert_close(
        found.maps, explain(net, images, "input_x_gradient", channels=True), rtol=1e-3, atol=1e-6
    )
    assert not found.flags["loose"].any()


# Folding


def fill(norm: nn.Module) -> nn.Module:
    generator = torch.Generator().manual_seed(0)
    for values in (*norm.parameters(), norm.running_mean):
        values.data.normal_(generator=generator)
    norm.running_var.uniform_(0.5, 2, generator=generator)
    return norm


def normed(net: Written, images: Tensor) -> Tensor:
    return net.last(F.relu(net.head(F.relu(net.norm(net.first(images))).mean((2, 3)))))


NORMS = {
    "convolution": (normed, {"norm": fill(nn.BatchNorm2d(4))}, True),
    "without weights": (normed, {"norm": fill(nn.BatchNorm2d(4, affine=False))}, True),
    "another epsilon": (normed, {"norm": fill(nn.BatchNorm2d(4, eps=0.5))}, True),
    "no bias before": (normed, {"first": nn.Conv2d(3, 4, 3, bias=False), "norm": fill(nn.BatchNorm2d(4))}, True),
    "groups": (normed, {"first": nn.Conv2d(3, 6, 3, groups=3), "norm": fill(nn.BatchNorm2d(6)),
                        "head": nn.Linear(6, 3)}, True),
    "linear": (lambda net, x: net.last(net.norm(net.head(net.first(x).mean((2, 3))))), {
        "norm": fill(nn.BatchNorm1d(3))}, True),
    "read twice": (lambda net, x: net.last(net.head((net.norm(y := net.first(x)) + y).mean((2, 3)))), {
        "norm": fill(nn.BatchNorm2d(4))}, False),
    "behind a constant": (lambda net, x: net.last(net.head(net.norm(net.first(x) + 1).mean((2, 3)))), {
        "norm": fill(nn.BatchNorm2d(4))}, True),
    "behind a ramp": (lambda net, x: net.last(net.head(net.norm(net.first(x) + torch.arange(6)).mean((2, 3)))), {
        "norm": fill(nn.BatchNorm2d(4))}, False),
    "behind a sum": (lambda net, x: net.last(net.head(net.norm(net.first(x) + x[:, :1, 1:-1, 1:-1]).mean((2, 3)))), {
        "norm": fill(nn.BatchNorm2d(4))}, False),
    "on the images": (lambda net, x: net.last(net.head(net.first(net.norm(x)).mean((2, 3)))), {
        "norm": fill(nn.BatchNorm2d(3))}, False),
    "transposed": (normed, {"first": nn.ConvTranspose2d(3, 4, 3), "norm": fill(nn.BatchNorm2d(4))}, True),
    "channels that are places": (lambda net, x: net.last(net.norm(net.mix(x.flatten(2))).mean(1)), {
        "mix": nn.Linear(64, 3), "norm": fill(nn.BatchNorm1d(3))}, False),
}  # fmt: skip


@pytest.mark.parametrize("case", NORMS)
@pytest.mark.parametrize("frozen", [False, True])
def test_a_norm_is_folded_into_what_only_it_reads(case, frozen):
    forward, layers, folds = NORMS[case]
    net = written(forward, last=nn.Linear(3, 2), **layers).double().requires_grad_(not frozen)
    images = pictures(dtype=torch.float64)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    plain, short = run(net, images), run(net, images, fold=True)
    assert kinds(plain.graph).count("norm") == 1
    assert kinds(short.graph).count("norm") == (0 if folds else 1)
    torch.testing.assert_close(short.logits, plain.logits, rtol=1e-12, atol=1e-12)
    start = torch.ones_like(plain.logits)
    torch.testing.assert_close(walk(short, start, NULL), walk(plain, start, NULL), rtol=1e-10, atol=1e-12)
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())


def test_a_sign_behind_a_kernel_becomes_a_kernel_of_the_other_sign():
    net = written(lambda net, x: torch.cat((-net.head(y := net.first(x).mean((2, 3))), net.head(y)), 1))
    forward = run(net, pictures(), fold=True)
    assert operations(forward.graph).count("neg") == 0
    assert operations(forward.graph).count("linear") == 2 + 1  # `head` runs twice, and once with the other sign
    assert operations(folded(forward.graph)) == operations(forward.graph)
