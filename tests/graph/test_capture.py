"""Capture: the same steps for every spelling, overwriting followed or refused, constants found, nothing left behind."""

from collections import Counter
from threading import Event, Thread

import pytest
import torch
import torchvision
from torch import Tensor, nn
from torch.nn import functional as F

from graph_toys import Written, graph_of, operations, pictures, written
from saliometer.graph import Network, UnfitError, walk
from saliometer.graph.capture import Graph, capture
from saliometer.methods._rules import GUIDED


def output(graph: Graph, images: Tensor) -> Tensor:
    """What the steps of a graph give, run one by one."""
    values = {0: images}
    for step in graph.steps[1:]:
        values[step.number] = step(values)
    return values[graph.output]


def agrees(net: nn.Module, images: Tensor) -> bool:
    """A network that overwrites its images is handed copies."""
    with torch.no_grad():
        return torch.allclose(output(graph_of(net, images), images.clone()), net(images.clone()), atol=1e-6)


# Spellings


def plain(net: Written, images: Tensor) -> Tensor:
    return net.head(net.relu(net.second(net.relu(net.first(images)))).mean((2, 3)))


SPELLINGS = {
    "modules": plain,
    "functions": lambda net, x: F.linear(
        F.relu(F.conv2d(F.relu(F.conv2d(x, net.first.weight, net.first.bias)), net.second.weight, net.second.bias))
        .mean((2, 3)), net.head.weight, net.head.bias),
    "methods": lambda net, x: net.head(net.second(net.first(x).relu()).relu().mean(dim=(2, 3))),
    "in place": lambda net, x: net.head(F.relu(net.second(net.first(x).relu_()), inplace=True).mean((2, 3))),
    "dropout": lambda net, x: net.head(
        F.dropout(F.dropout2d(net.relu(net.second(F.alpha_dropout(net.relu(net.first(x)), 0.5, False, True))), 0.5,
                              False), 0.5, False, True).mean((2, 3))),
}  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_modules_functions_methods_and_dropout_are_the_same_steps(spelling):
    net = written(SPELLINGS[spelling])
    assert operations(graph_of(net)) == ["conv2d", "relu", "conv2d", "relu", "mean", "linear"]
    assert agrees(net, pictures())


def test_a_reused_module_is_a_step_for_each_use():
    graph = graph_of(written(plain))
    assert [step.place for step in graph.steps if step.op == "relu"] == ["relu", "relu"]
    assert len({step.number for step in graph.steps if step.op == "relu"}) == 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("frozen", [False, True])
def test_precision_and_gradients_of_the_parameters_do_not_matter(dtype, frozen):
    net = written(plain).to(dtype).requires_grad_(not frozen)
    assert agrees(net, pictures(dtype=dtype))


COUNTS = {  # methods.md 10.1; the others are in test_network.py, where they run as well
    "vgg16_bn": {"relu": 15, "max_pool2d": 5, "batch_norm": 13, "conv2d": 13, "linear": 3},
}


@pytest.mark.parametrize("name", COUNTS)
def test_torchvisions_networks_have_the_expected_operations(name):
    with torch.device("meta"):  # weights are not needed
        net = getattr(torchvision.models, name)(weights=None).eval()
    found = Counter(operations(capture(net, net, torch.empty(2, 3, 64, 64, device="meta"))))
    assert {op: found[op] for op in COUNTS[name]} == COUNTS[name]


# Places


class Block(nn.Module):
    def __init__(self, act: nn.Module, several: bool) -> None:
        super().__init__()
        self.act, self.several = act, several

    def forward(self, images: Tensor) -> Tensor | tuple[Tensor, Tensor]:
        found = self.act(images.flatten(1)[:, :8]).exp()
        return (found, images) if self.several else found


@pytest.mark.parametrize("several", [False, True])
def test_a_step_knows_the_innermost_module_it_runs_in(several):
    """Also for functions between modules, and inside a module that gives out several tensors."""

    def forward(net: Written, images: Tensor) -> Tensor:
        found = net.blocks[0](images)
        found = found[0] if several else found
        return net.head(F.softmax(found, 1)[:, :4])

    net = written(forward, blocks=nn.ModuleList([Block(nn.Tanh(), several)]))
    places = {step.op: step.place for step in graph_of(net).steps}
    assert places["tanh"] == "blocks.0.act"
    assert places["exp"] == places["flatten"] == "blocks.0"
    assert places["softmax"] == "Written"
    assert places["linear"] == "head"


def test_a_layer_is_the_step_that_gives_its_output():
    graph = graph_of(written(plain))
    assert [graph.steps[graph.layers[name]].op for name in ("first", "second", "head")] == [
        "conv2d",
        "conv2d",
        "linear",
    ]
    assert graph.steps[graph.layers["relu"]].number == graph.layers["relu"] == 4  # the last use


# Overwriting


def aliased(net: Written, images: Tensor) -> Tensor:
    doubled = 2 * images
    other = doubled
    doubled += 1
    return net.head(net.first(other).mean((2, 3)))


FOLLOWED = {
    "an alias (y = 2x; z = y; y += 1)": aliased,
    "the images themselves": lambda net, x: net.head(net.first(x.sub_(0.5)).mean((2, 3))),
    "a view that is all that is left": lambda net, x: net.head(net.first(x).flatten(2).relu_().mean(2)),
    "through nn.Identity": lambda net, x: net.head((net.same(y := net.first(x)).relu_() + y).mean((2, 3))),
    "twice": lambda net, x: net.head(net.first(x).relu_().mul_(3).add_(1).mean((2, 3))),
    "a constant made from their shape": lambda net, x: net.head(
        (net.first(x) + torch.zeros_like(x[:, :1, 1:-1, 1:-1]).add_(2)).mean((2, 3))),
}  # fmt: skip


@pytest.mark.parametrize("case", FOLLOWED)
def test_what_writes_in_place_becomes_what_does_not(case):
    net = written(FOLLOWED[case], same=nn.Identity())
    assert not any(op.endswith("_") for op in operations(graph_of(net)))
    assert agrees(net, pictures())


def half_zeroed(net: Written, images: Tensor) -> Tensor:
    features = net.first(images)
    features[:, 0] = 0
    return net.head(features.mean((2, 3)))


def view_and_base(net: Written, images: Tensor) -> Tensor:
    features = net.first(images)
    features.flatten(2).relu_()
    return net.head(features.mean((2, 3)))


def filled(net: Written, images: Tensor) -> Tensor:
    padded = torch.zeros(len(images), 4, 8, 8)
    padded[:, :, 1:-1, 1:-1] = net.first(images)
    return net.head(padded.mean((2, 3)))


@pytest.mark.parametrize(("forward", "op"), [(half_zeroed, "fill_"), (view_and_base, "relu_"), (filled, "copy_")])
def test_a_view_that_is_written_to_is_refused_in_words(forward, op):
    with pytest.raises(UnfitError, match=rf"the operation '{op}' in 'Written' writes into a tensor .*perturbation"):
        graph_of(written(forward))


def pieces(cut):
    """Pieces of what a layer gives out are written to, then the whole is read."""

    def forward(net: Written, images: Tensor) -> Tensor:
        features = net.first(images)
        for piece in cut(features):
            piece.clamp_(max=0.1)
        return net.head(features.mean((2, 3)))

    return forward


CUTS = {
    "chunk": lambda x: x.chunk(2, 1),
    "split": lambda x: x.split(2, 1)[:1],
    "tensor_split": lambda x: torch.tensor_split(x, 2, 1),
    "unbind": lambda x: x.unbind(1),
    "iteration": lambda x: x.transpose(0, 1),
}


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("named", [True, False])
def test_pieces_that_are_written_to_are_refused_in_words(cut, named):
    net = written(pieces(CUTS[cut])).requires_grad_(False)
    with pytest.raises(UnfitError, match="writes into a tensor of which another view is used later"):
        capture(net, net, pictures(), named=named)


def halves(net: Written, images: Tensor) -> Tensor:
    """Pieces that share memory but no place in it."""
    one, other = net.first(images).chunk(2, 1)
    one.clamp_(max=0.1)
    other.neg_()
    return net.head(torch.cat((one, other), 1).mean((2, 3)))


def test_pieces_that_do_not_overlap_are_followed():
    net = written(halves).requires_grad_(False)
    assert agrees(net, pictures())


def behind_data(net: Written, images: Tensor) -> Tensor:
    features = net.first(images)
    features.data.clamp_(max=0.1)
    return net.head(features.mean((2, 3)))


def test_data_is_refused_in_words():
    with pytest.raises(UnfitError, match=r"takes a tensor's `.data`"):
        graph_of(written(behind_data))


def test_a_buffer_is_not_written_to_while_a_network_is_captured():
    def averaged(net: Written, images: Tensor) -> Tensor:
        net.seen += 1
        net.mean.mul_(0.5).add_(0.5 * images.mean())
        return net.head(net.first(images - net.mean).mean((2, 3)))

    net = written(averaged).requires_grad_(False)
    net.register_buffer("seen", torch.zeros(()))
    net.register_buffer("mean", torch.ones(()))
    calls = []
    with pytest.raises(UnfitError, match="writes what it makes of images into its weights or buffers, by 'add_'"):
        capture(net, lambda images: calls.append(images) or net(images), pictures())
    assert len(calls) == 1  # no other pass was made, which would count as well
    assert (float(net.seen), float(net.mean)) == (0, 1)


def test_what_a_network_counts_is_put_back():
    def counting(net: Written, images: Tensor) -> Tensor:
        net.seen += 1
        net.twice[1:].mul_(2)
        return net.head(net.first(images).mean((2, 3)))

    net = written(counting).requires_grad_(False)
    net.register_buffer("seen", torch.full((), 3.0))
    net.register_buffer("twice", torch.ones(2))
    assert capture(net, net, pictures()).facts["written"]
    assert (float(net.seen), net.twice.tolist()) == (3, [1, 1])
    assert agrees(net, pictures())
    assert not capture(*[written(halves).requires_grad_(False)] * 2, pictures()).facts["written"]


# Constants


def computed(net: Written, images: Tensor) -> Tensor:
    with torch.no_grad():
        weight = net.first.weight / net.first.weight.norm()
    gate = torch.sigmoid(net.head.bias.sum()) * torch.linspace(0, 1, 4)
    ramp = torch.arange(images.shape[-1] - 2) / images.new_tensor(6.0)
    features = F.conv2d(images, weight)
    return net.head(((features * gate.view(4, 1, 1).expand_as(features)).relu() + ramp).mean((2, 3)))


@pytest.mark.parametrize("gradients", [False, True])
def test_what_does_not_depend_on_the_images_is_computed_once(gradients):
    net = written(computed)
    with torch.set_grad_enabled(gradients):
        assert operations(graph_of(net)) == ["conv2d", "mul", "relu", "add", "mean", "linear"]
        assert torch.is_grad_enabled() == gradients  # though the forward turns it off and on
    assert agrees(net, pictures())


def test_weights_that_are_computed_from_others():
    net = written(plain, first=nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3)))
    assert operations(graph_of(net)) == ["conv2d", "relu", "conv2d", "relu", "mean", "linear"]
    assert agrees(net, pictures())


# Several outputs


PARTS = {
    "split": lambda x: x.split([1, 3], 1),
    "chunk": lambda x: x.chunk(2, 1),
    "unbind": lambda x: [part[:, None] for part in x.unbind(1)],
    "tensor_split": lambda x: x.tensor_split(2, 1),
    "split_with_sizes": lambda x: torch.split_with_sizes(x, [2, 1, 1], 1),
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("kept", [slice(None), slice(1, None), slice(None, None, -1)])
def test_parts_find_their_way_back(part, kept):
    """All of them, not all, in another order: guided backprop is then the gradient, for there is no ReLU."""

    def forward(net: Written, images: Tensor) -> Tensor:
        parts = PARTS[part](net.first(images))[kept]
        joined = torch.cat([part * (place + 1) for place, part in enumerate(parts)], 1)
        return net.head(F.pad(joined, (0, 0, 0, 0, 0, 4 - joined.shape[1])).mean((2, 3)))

    net, images = written(forward), pictures()
    forward_pass = Network(net, net).run(images)
    leaf = images.clone().requires_grad_()
    wanted = torch.autograd.grad(net(leaf).sum(), leaf)[0]
    torch.testing.assert_close(walk(forward_pass, torch.ones_like(forward_pass.logits), GUIDED), wanted)


def test_maxima_with_their_places_are_one_step():
    net = written(lambda net, x: net.head(F.adaptive_max_pool2d(net.first(x), 1).flatten(1)))
    assert operations(graph_of(net)) == ["conv2d", "adaptive_max_pool2d", "flatten", "linear"]
    net = written(lambda net, x: net.head(F.max_unpool2d(*F.max_pool2d(net.first(x), 2, return_indices=True), 2).mean((2, 3))))  # fmt: skip # noqa: E501
    assert "places of maxima" in operations(graph_of(net))
    assert agrees(net, pictures())


# Libraries


@torch.library.custom_op("saliometer_tests::relu", mutates_args=())
def not_a_relu(images: Tensor) -> Tensor:
    return images.square()


@not_a_relu.register_fake
def _(images: Tensor) -> Tensor:
    return torch.empty_like(images)


def test_another_librarys_relu_is_not_taken_for_pytorchs():
    net = written(lambda net, x: net.head(not_a_relu(net.first(x)).mean((2, 3))))
    assert operations(graph_of(net))[1] == "saliometer_tests::relu"


@pytest.mark.filterwarnings("ignore:.*torch.jit:FutureWarning")
def test_a_traced_module_is_captured_and_a_scripted_one_refused():
    net = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 3)).eval()
    traced = torch.jit.trace(net, pictures())
    assert operations(graph_of(traced)) == ["convolution", "relu", "flatten", "linear"]
    half = nn.Sequential(nn.Conv2d(3, 3, 3, padding=1), torch.jit.script(net)).eval()
    with pytest.raises(UnfitError, match="operations of Sequential cannot be captured"):
        graph_of(half)
    assert not half[0]._forward_hooks
    assert not half[0]._forward_pre_hooks


# What cannot be captured


class StopsError(RuntimeError):
    pass


def stops(net: Written, images: Tensor) -> Tensor:
    raise StopsError("the second layer broke")


UNFIT = {
    "a branch on the data": lambda net, x: net.head(net.first(x).mean((2, 3))) * (2 if x.sum() > 0 else 1),
    "a number read": lambda net, x: net.head(net.first(x).mean((2, 3)) * float(x.max())),
    "numpy": lambda net, x: net.head(torch.from_numpy(net.first(x).detach().numpy()).mean((2, 3))),
}


@pytest.mark.parametrize("case", UNFIT)
def test_what_cannot_be_followed_is_refused_in_words(case):
    with pytest.raises(UnfitError, match=r"operations of Written cannot be captured \(.*perturbation methods work"):
        graph_of(written(UNFIT[case]))


def pooled(net: Written, images: Tensor) -> Tensor:
    return net.head(net.first(images).relu().mean((2, 3)))


OPERATIONS = ["conv2d", "relu", "mean", "linear"]
SHAPED = {
    "a shape that hangs on the data": lambda net, x: net.head(net.first(x).mean((2, 3))) * x[x > 0.5].mean(),
    "a count": lambda net, x: net.head(net.first(x).mean((2, 3))) + (x > 0.5).nonzero().shape[0],
}


@pytest.mark.parametrize("case", SHAPED)
def test_numbers_and_shapes_that_the_images_decide_are_refused_in_words(case):
    with pytest.raises(UnfitError, match=r"in Written the images decide a number or shape, by '(index|nonzero)'"):
        graph_of(written(SHAPED[case]))


def test_two_threads_may_capture_at_once():
    """One waits for the other; else the first would end in the midst of the second."""
    found: list[list[str]] = []
    begun, ended = Event(), Event()

    def first(net: Written, images: Tensor) -> Tensor:
        if not other.ident:
            other.start()
        begun.wait(0.3)
        return pooled(net, images)

    def second(net: Written, images: Tensor) -> Tensor:
        begun.set()
        ended.wait()
        return pooled(net, images)

    other = Thread(target=lambda: found.append(operations(graph_of(written(second)))))
    assert operations(graph_of(written(first))) == OPERATIONS
    ended.set()
    other.join()
    assert found == [OPERATIONS]


def test_a_part_without_gradients_is_refused_by_its_first_operation():
    def forward(net: Written, images: Tensor) -> Tensor:
        with torch.no_grad():
            features = net.first(images)
        return net.head(net.second(features).mean((2, 3)))

    with pytest.raises(UnfitError, match="the operation 'conv2d' in 'first' runs with gradients turned off"):
        graph_of(written(forward))


def test_a_network_that_breaks_says_so_itself():
    with pytest.raises(StopsError, match="the second layer broke"):
        graph_of(written(stops))


def test_logits_that_do_not_depend_on_the_images_are_refused():
    with pytest.raises(ValueError, match="the logits of Written do not depend on the images"):
        graph_of(written(lambda net, x: net.head.bias.expand(len(x), 3)))


# Clean-up


def keeping(net: Written, images: Tensor) -> Tensor:
    """Writes into attributes, a list, a dictionary and a buffer, and makes something on first use."""
    if net.made is None:
        net.made = torch.linspace(0, 1, 6)
    net.last = net.first(images)
    net.log.append(net.last.mean())
    net.named["mean"] = net.last.mean()
    net.buffer = net.last.mean((0, 2, 3))
    return net.head((net.last + net.made).mean((2, 3)))


@pytest.mark.parametrize("breaks", [False, True])
def test_a_forward_that_keeps_things_is_left_with_no_fake_ones(breaks):
    forward = (lambda net, x: keeping(net, x) * (2 if x.sum() > 0 else 1)) if breaks else keeping
    net = written(forward, made=None, last="nothing", log=[1], named={"a": 2})
    net.register_buffer("buffer", torch.zeros(4))
    log, named, buffer = net.log, net.named, net.buffer
    if breaks:
        with pytest.raises(UnfitError):
            graph_of(net)
        assert all(type(value) in (int, Tensor) for value in (*net.log, *net.named.values()))
    else:
        graph_of(net)
        assert (net.made, net.last, net.log, net.named) == (None, "nothing", [1], {"a": 2})
        assert (net.log is log, net.named is named, net.buffer is buffer) == (True, True, True)
    assert type(net(pictures())) is Tensor


def state(net: nn.Module) -> dict[str, object]:
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks", "_state_dict_hooks")
    tensors = [*net.parameters(), *net.buffers()]
    return {
        "hooks": [len(getattr(module, kind)) for module in net.modules() for kind in hooks],
        "training": [module.training for module in net.modules()],
        "values": [(id(value), value._version, value.requires_grad, value.grad) for value in tensors],
        "modes": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_rng_state().tolist()),
        "dispatch": torch.utils._python_dispatch._len_torch_dispatch_stack(),
        "function": torch._C._len_torch_function_stack(),
    }


@pytest.mark.parametrize("case", ["works", *UNFIT, "overwrites", "breaks"])
def test_everything_is_as_it_was_also_after_an_error(case):
    forwards = {"works": plain, **UNFIT, "overwrites": half_zeroed, "breaks": stops}
    net = written(forwards[case])
    net.head.weight.requires_grad_(False)
    net.relu.register_forward_hook(lambda *_: None)
    before = state(net)
    for context in (torch.no_grad(), torch.enable_grad(), torch.inference_mode()):
        with context:
            inside = state(net)["modes"]
            try:
                graph_of(net)
            except (UnfitError, StopsError):
                assert case != "works"
            else:
                assert case == "works"
            assert state(net)["modes"] == inside
    assert state(net) == before
