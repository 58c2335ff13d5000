"""Families: what kind of operation each spelling is, and that what has none is tested for being affine."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from graph_toys import Written, graph_of, pictures, written
from saliometer import registry
from saliometer.engine.answer import working
from saliometer.graph import Graph, Network, RefusedError, Step, ceiling, family, gate_of, transpose, walk
from saliometer.graph.families import affine

WEIGHTS = torch.linspace(-1, 1, 4 * 4).view(4, 4)
CELLS = torch.tensor([3, 1, 0, 0])


def behind(operation) -> Written:
    """A convolution, then an operation on its (N, 4, 6, 6) features, then a mean over places."""
    return written(lambda net, x: operation(net.first(x)).flatten(2).mean(2))


def asked(graph: Graph) -> Step:
    """The operation in question: the last before the flattening and the mean that does more than route, if one does."""
    steps = graph.steps[2:-2]
    return [*steps[-1:], *(step for step in steps if family(graph, step) != "route")][-1]


def kind(operation) -> str:
    graph = graph_of(behind(operation))
    return family(graph, asked(graph))


OPERATIONS = {
    "kernel": {
        "conv2d": lambda x: F.conv2d(x, WEIGHTS[..., None, None]),
        "conv_transpose2d": lambda x: F.conv_transpose2d(x, WEIGHTS[..., None, None]),
        "linear": lambda x: F.linear(x.flatten(2).transpose(1, 2), WEIGHTS),
        "matmul": lambda x: WEIGHTS @ x.flatten(2),
        "mm": lambda x: torch.mm(x.permute(0, 2, 3, 1).flatten(0, 2), WEIGHTS).view(3, 36, 4),
        "addmm": lambda x: torch.addmm(WEIGHTS[0], x.permute(0, 2, 3, 1).flatten(0, 2), WEIGHTS).view(3, 36, 4),
        "bmm": lambda x: torch.bmm(WEIGHTS.expand(3, 4, 4), x.flatten(2)),
        "einsum": lambda x: torch.einsum("nchw,cd->ndhw", x, WEIGHTS),
        "einsum, weights first": lambda x: torch.einsum("dc,nchw->ndhw", WEIGHTS, x),
    },
    "relu": {
        "relu": F.relu,
        "clamp": lambda x: x.clamp(min=0),
        "clamp_min": lambda x: torch.clamp_min(x, 0),
        "threshold": lambda x: F.threshold(x, 0, 0),
        "maximum": lambda x: torch.maximum(torch.zeros(()), x),
        "where": lambda x: torch.where(x > 0, x, 0.0),
        "where, at least": lambda x: torch.where(x >= 0, x, torch.zeros_like(x)),
        "product": lambda x: x * (x > 0),
        "product, as numbers": lambda x: (x > 0).float() * x,
        "product, of its type": lambda x: x * (x > 0).to(x.dtype),
    },
    "relu_capped": {
        "relu6": F.relu6,
        "hardtanh": lambda x: F.hardtanh(x, 0, 2),
        "clamp": lambda x: x.clamp(0, 0.5),
    },
    "from_zero": {
        **{name: getattr(F, name) for name in (
            "leaky_relu", "elu", "selu", "celu", "gelu", "silu", "mish", "tanh", "hardswish", "hardtanh")},
        "prelu": lambda x: F.prelu(x, torch.full((4,), 0.1)),
        "clamp": lambda x: x.clamp(-1, 2),
        "clamp from above": lambda x: x.clamp(max=0.2),
        "clamp from below": lambda x: x.clamp(min=-0.2),
        "clamp_max": lambda x: torch.clamp_max(x, 0.2),
    },
    "gate": {"sigmoid": torch.sigmoid, "hardsigmoid": F.hardsigmoid},
    "elementwise": {"softplus": F.softplus, "logsigmoid": F.logsigmoid, "abs": torch.abs},
    "gated": {
        "sigmoid": lambda x: x * x.mean((2, 3), keepdim=True).sigmoid(),
        "hardsigmoid first": lambda x: F.hardsigmoid(x) * x,
        "softmax, spread out": lambda x: x * x.mean((2, 3)).softmax(1)[:, :, None, None].expand_as(x),
        "of another's type": lambda x: x * x.double().sigmoid().type_as(x),
    },
    "product": {
        "two": lambda x: x * x.flip(3),
        "a square": lambda x: x * x,
        "another mask": lambda x: x * (x > 0.1),
        "a mask of something else": lambda x: x * (x.flip(3) > 0),
    },
    "max": {
        "max_pool2d": lambda x: F.max_pool2d(x, 2),
        "with places": lambda x: F.max_pool2d(x, 2, return_indices=True)[0],
        "max_pool1d": lambda x: F.max_pool1d(x.flatten(2), 2),
        "adaptive": lambda x: F.adaptive_max_pool2d(x, 2),
        "amax": lambda x: x.amax(3),
        "max along a dimension": lambda x: x.max(3).values,
    },
    "average": {
        "avg_pool2d": lambda x: F.avg_pool2d(x, 2),
        "adaptive": lambda x: F.adaptive_avg_pool2d(x, 2),
        "mean": lambda x: x.mean(3),
        "sum": lambda x: x.sum(3),
        "nearest": lambda x: F.interpolate(x, scale_factor=2.0),
        "bilinear": lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"),
    },
    "norm": {"batch norm": nn.BatchNorm2d(4).eval()},
    "add": {"sum": lambda x: x + x.flip(3), "difference": lambda x: x - x.flip(3), "twice": lambda x: x + x},
    "shift": {"constant": lambda x: x + 1, "tensor": lambda x: CELLS.view(4, 1, 1) - x, "minus": lambda x: x - 2},
    "scale": {
        "factor": lambda x: 2 * x,
        "quotient": lambda x: x / CELLS.view(4, 1, 1).add(1),
        "sign": lambda x: -x,
    },
    "route": {
        "cat": lambda x: torch.cat((x, x), 1),
        "stack": lambda x: torch.stack((x, x), 1),
        "slice": lambda x: x[:, 1:],
        "permute": lambda x: x.permute(0, 1, 3, 2),
        "pad": lambda x: F.pad(x, (1, 1)),
        "roll": lambda x: x.roll(1, 3),
        "flip": lambda x: x.flip(3),
        "pixel_shuffle": lambda x: F.pixel_shuffle(x, 2),
        "channel_shuffle": lambda x: F.channel_shuffle(x, 2),
        "view": lambda x: x.view(3, 4, 36),
        "repeat": lambda x: x.repeat(1, 2, 1, 1),
        "view_as": lambda x: x.view_as(torch.empty(3, 4, 36)),
    },
    "same": {"clone": torch.clone},
    "": {
        "softmax": lambda x: x.softmax(1),
        "layer_norm": lambda x: F.layer_norm(x, (6, 6)),
        "group_norm": lambda x: F.group_norm(x, 2),
        "instance norm": F.instance_norm,
        "batch statistics": nn.BatchNorm2d(4, track_running_stats=False).eval(),
        "quotient": lambda x: x / (x.flip(3) + 9),
        "one over": lambda x: torch.reciprocal(x + 9),
        "rounded quotient": lambda x: torch.div(x, 0.1, rounding_mode="floor"),
        "local response": lambda x: F.local_response_norm(x, 2),
        "pow": lambda x: x**2,
        "exp": torch.exp,
        "topk": lambda x: x.topk(2, 3).values,
        "matmul of two": lambda x: x @ x,
        "einsum of two": lambda x: torch.einsum("nchw,nchv->ncwv", x, x),
        "convolution with found weights": lambda x: F.conv2d(x, x.mean((0, 2, 3))[None, :, None, None]),
        "clamp off zero": lambda x: x.clamp(min=0.1),
        "clamp below zero": lambda x: x.clamp(-2, -1),
        "clamp by tensors": lambda x: x.clamp(min=torch.full((4, 1, 1), -50.0)),
        "maximum of two": lambda x: torch.maximum(x, x.flip(3)),
        "max of two": lambda x: torch.max(x, x.flip(3)),
        "where of two": lambda x: torch.where(x > 0, x, x.flip(3)),
        "where of another": lambda x: torch.where(x.flip(3) > 0, x, 0.0),
        "threshold elsewhere": lambda x: F.threshold(x, 0.1, 0.1),
    },
}  # fmt: skip
CASES = [(wanted, name) for wanted, found in OPERATIONS.items() for name in found]


@pytest.mark.parametrize(("wanted", "name"), CASES)
def test_every_spelling_has_its_family(wanted, name):
    assert kind(OPERATIONS[wanted][name]) == wanted


def test_the_upper_bound_of_a_capped_relu():
    bounds = {F.relu6: 6, (lambda x: F.hardtanh(x, 0, 2)): 2, (lambda x: x.clamp(0, 0.5)): 0.5, F.relu: float("inf")}
    for operation, bound in bounds.items():
        graph = graph_of(behind(operation))
        assert ceiling(graph.steps[2]) == bound


def test_a_gate_is_the_factor_from_a_sigmoid():
    for name, operation in OPERATIONS["gated"].items():
        graph = graph_of(behind(operation))
        product = next(step for step in graph.steps if step.op == "mul")
        gate = gate_of(graph, product)
        assert gate != 1, name  # that is the convolution
        assert gate in product.inputs, name


# Operations without a family: whether they are affine


def is_affine(operation, images: Tensor | None = None) -> bool:
    graph = graph_of(behind(operation))
    values = {0: pictures() if images is None else images}
    for step in graph.steps[1:]:
        if step is asked(graph):
            assert family(graph, step) == "", step
            return affine(step, {number: values[number] for number in step.inputs})
        values[step.number] = step(values)
    raise AssertionError


AFFINE = {
    "cumsum": lambda x: x.cumsum(3),
    "index": lambda x: x[:, CELLS],
    "index_select": lambda x: x.index_select(1, CELLS),
    "unfold": lambda x: F.unfold(x, 2).unflatten(1, (4, 4)),
    "bicubic": lambda x: F.interpolate(x, scale_factor=2.0, mode="bicubic"),
    "lerp": lambda x: torch.lerp(x, x.flip(3), 0.3),
    "constant mask": lambda x: torch.where(CELLS.view(4, 1, 1) > 0, x, 0.5),
    "tril": torch.tril,
}


@pytest.mark.parametrize("name", AFFINE)
def test_an_unknown_operation_that_is_affine_is_found_to_be(name):
    assert is_affine(AFFINE[name])
    assert is_affine(AFFINE[name], pictures() * 1e3)


BENT = {
    "hypot": lambda x: torch.hypot(x, torch.ones_like(x)),
    "square": torch.square,
    "rrelu": lambda x: F.rrelu(x, 0.9, 0.9),
    "logaddexp": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "sort": lambda x: x.sort(3).values,
    "median": lambda x: x.median(3).values[..., None],
    "round": torch.round,
    "norm": lambda x: x.norm(dim=3),
    "data as places": lambda x: x.gather(3, (x * 0).long()),
    "matmul of two": OPERATIONS[""]["matmul of two"],
    "far bounds": OPERATIONS[""]["clamp by tensors"],
}


@pytest.mark.parametrize("name", BENT)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_an_unknown_operation_that_bends_is_found_to(name, size):
    """Also if it bends a little, far off, or nowhere near these values: steps are as large as they are."""
    assert not is_affine(BENT[name], size * pictures())


@pytest.mark.parametrize("name", ["layer_norm", "group_norm", "instance norm", "sin", "erf"])
def test_an_operation_that_bends_is_refused_also_where_it_looks_straight(name):
    """Around values that are all 0 a normalisation is odd, so that what it gives on both sides cancels."""
    operation = {"sin": torch.sin, "erf": torch.erf}.get(name) or OPERATIONS[""][name]
    net, black = behind(operation), 0 * pictures()
    net.first.bias.data.zero_()
    forward = Network(net, net).run(black)
    rules = dict.fromkeys(("kernel", "average", "route", "shift", "affine"), transpose)
    with pytest.raises(RefusedError, match="no rule for the operation"):
        walk(forward, torch.ones_like(forward.logits), rules)


def test_affine_operations_are_walked_and_others_refused_by_name_and_place():
    images = pictures()
    for operation, works in ((AFFINE["cumsum"], True), (torch.abs, False)):
        net = behind(operation)
        forward = Network(net, net).run(images)
        rules = dict.fromkeys(("kernel", "average", "route", "affine"), transpose)
        start = torch.ones_like(forward.logits)
        if works:
            leaf = images.clone().requires_grad_()
            wanted = torch.autograd.grad(net(leaf).sum(), leaf)[0]
            torch.testing.assert_close(walk(forward, start, rules), wanted)
            rules.pop("affine")
            with pytest.raises(RefusedError, match="no rule for the operation 'cumsum' in 'Written'"):
                walk(forward, start, rules)
        else:
            with pytest.raises(RefusedError, match="no rule for the operation 'abs' in 'Written'"):
                walk(forward, start, rules)


# What works is said without running it


WALKS = [name for name, entry in registry.methods.items() if entry.facts.rules is not None]


@pytest.mark.parametrize(
    ("operation", "refusing"),
    [
        (F.relu, set()),
        (OPERATIONS["relu"]["where"], set()),
        (OPERATIONS["relu"]["product, as numbers"], set()),
        (F.gelu, {"guided_backprop", "deconvnet", "guided_grad_cam", "deep_taylor"}),
        (OPERATIONS["gated"]["sigmoid"], {"guided_backprop", "deconvnet", "guided_grad_cam", "deep_taylor"}),
        (OPERATIONS["product"]["two"], {name for name in WALKS if not name.startswith(("deep_shap", "deeplift"))}),
        (torch.exp, set(WALKS)),
    ],
)
def test_methods_that_have_all_the_rules_are_named(operation, refusing):
    assert set(WALKS) - set(working(graph_of(behind(operation)))) == refusing
