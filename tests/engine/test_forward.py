"""Forward passes are lean ones, where they give what the network gives; here a CPU stands for a GPU as well."""

import gc
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor

import saliometer
from graph_toys import LOOKS, Written, looking, pictures, torchvision_net, written
from saliometer.engine import forward
from saliometer.engine.answer import Answers
from saliometer.engine.forward import Forward, forward_of
from saliometer.fused import onednn
from saliometer.graph.lean import SIZES, Lean
from saliometer.types import Gradients, Logits, Model, Scores, each, unaltered
from toys import CPU, model_of


class Random(nn.Module):
    """Its logits are never the same."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.conv(images).relu().mean((2, 3)) + torch.rand(len(images), 4))


WAYS = [
    "gpu",
    pytest.param(
        "cpu", marks=pytest.mark.skipif(not onednn.fits(torch.zeros(1)), reason="wants an x86 CPU with oneDNN")
    ),
]


@pytest.fixture(params=WAYS)
def lean(request, monkeypatch) -> str:
    """Lean passes, as on a GPU or as on a CPU."""
    if request.param == "gpu":
        monkeypatch.setattr(onednn, "fits", lambda images: False)
        monkeypatch.setattr(forward, "kernels", lambda *values: True)
    return request.param


@contextmanager
def the_network_alone() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forward, "kernels", lambda *values: None)
        patch.setattr(onednn, "fits", lambda images: False)
        yield


@pytest.fixture(scope="module")
def net() -> nn.Module:
    return torchvision_net("resnet18").requires_grad_(False)


def test_without_a_gpu_and_onednn_the_network_itself_runs(net):
    model = model_of(net)
    with the_network_alone():
        assert forward_of(model, pictures(1, 32)) == model.logits


class Chunked(nn.Module):
    """Few rows at a time, as networks do that are short of memory."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head = nn.Conv2d(3, 4, 3), nn.Linear(4, 3)

    def forward(self, images: Tensor) -> Tensor:
        return torch.cat([self.head(self.conv(some).relu().mean((2, 3))) for some in images.split(4)])


class Pooling(nn.Module):
    """Looks at its values by `view`, for all channels at once, as blurring pools do; channels last would be faster."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.deep = nn.Conv2d(3, 8, 1), nn.Conv2d(8, 8, 3, groups=8)
        self.head = nn.Linear(8, 3)

    def forward(self, images: Tensor) -> Tensor:
        values = self.deep(self.one(images).relu())
        count, channels, height, width = values.shape
        pooled = nn.functional.avg_pool2d(values.view(count * channels, 1, height, width), 2)
        return self.head(pooled.view(count, channels, height // 2, width // 2).mean((2, 3)))


class Settable(nn.Module):
    """Does what attributes say that a network's weights do not show."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.head, self.times = nn.Conv2d(3, 4, 3), nn.Linear(4, 3), 1
        self.how, self.bend = {"times": 1}, nn.functional.relu

    def forward(self, images: Tensor) -> Tensor:
        return self.head(self.bend(self.conv(images)).mean((2, 3)) * self.times * self.how["times"])


def seeded(net: type[nn.Module]) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return net().eval().requires_grad_(False)


def ran(net: nn.Module, count: int, monkeypatch) -> tuple[Forward, list[int]]:
    """Passes of so many images by the network's name, twice, right, and how many rows the network ran for them."""
    model, images, taken = model_of(net), pictures(count, 16), list[int]()
    with torch.no_grad():
        wanted = net(images)
        passes = forward_of(model, images[:1])
        with monkeypatch.context() as patch:
            real = Model.logits
            patch.setattr(Model, "logits", lambda self, x: (heard(x) and taken.append(len(x))) or real(self, x))
            for _ in range(2):
                torch.testing.assert_close(passes(images), wanted, rtol=1e-4, atol=1e-5)
    return passes, taken


def heard(images: Tensor) -> bool:
    """Not those that are captured, nor the few by which is found whether the network looks at numbers."""
    return not isinstance(images, FakeTensor) and len(images) > SIZES[0]


def test_lean_ones_run_compared_once(net, lean, monkeypatch):
    passes, taken = ran(net, 7, monkeypatch)
    assert taken == [7]  # to compare; the second time only the lean one ran
    other, taken = ran(net, 7, monkeypatch)
    assert taken == [7]  # captured no more, but compared again
    assert other._lean is passes._lean is not None


@pytest.mark.parametrize(
    ("net", "count"), [(Random, 5), (Chunked, 9), (lambda: nn.Sequential(nn.Flatten(), nn.Linear(3 * 256, 3)), 5)]
)
def test_where_it_differs_or_gains_nothing_the_network_runs(net, count, lean, monkeypatch):
    torch.manual_seed(0)
    net = seeded(net)
    if isinstance(net, Random):
        passes = forward_of(model_of(net), pictures(1, 16))
        passes(pictures(5, 16))
    else:
        passes, taken = ran(net, count, monkeypatch)
        assert taken[-2:] == [count, count]
    assert passes._lean is None


def test_one_that_fails_with_channels_last_gets_the_plain_layout(lean, monkeypatch):
    passes, taken = ran(seeded(Pooling), 5, monkeypatch)
    assert taken == [5]
    assert passes._lean.layout == torch.contiguous_format


def test_a_network_that_was_changed_unseen_is_prepared_anew(lean, monkeypatch):
    net = seeded(Settable)
    first, _ = ran(net, 5, monkeypatch)
    net.times = 3
    second, _ = ran(net, 5, monkeypatch)
    assert second._lean is not first._lean
    handle = net.conv.register_forward_hook(lambda _module, _inputs, output: output * 0.5)
    third, _ = ran(net, 5, monkeypatch)
    handle.remove()
    assert third._lean is not second._lean


def test_what_is_not_a_number_goes_through_a_network_whose_lean_passes_hide_it(net, lean):
    model, images = model_of(net), pictures(5, 16)
    with torch.no_grad():
        passes = forward_of(model, images[:1])
        assert passes(images).isfinite().all()
        images[2, 0, 3, 3] = torch.nan
        assert passes(images).isfinite().all(1).tolist() == [True, True, False, True, True]


class Standardising(nn.Module):
    """Makes something that is not a number of images of one colour."""

    def __init__(self, scaled=lambda even: even / even.square().mean((1, 2, 3), keepdim=True).sqrt()) -> None:
        super().__init__()
        self.conv, self.head, self.scaled = nn.Conv2d(3, 4, 3), nn.Linear(4, 3), scaled

    def forward(self, images: Tensor) -> Tensor:
        even = images - images.mean((1, 2, 3), keepdim=True)
        return self.head(self.conv(self.scaled(even)).relu().mean((2, 3)))


SCALED = {
    "divide": lambda x: torch.divide(x, x.amax((1, 2, 3), keepdim=True)),
    "divide_": lambda x: (x + 0).divide_(x.amax((1, 2, 3), keepdim=True)),
    "layer_norm": lambda x: nn.functional.layer_norm(x, x.shape[1:], eps=0),
    "fmod": lambda x: torch.fmod(x, x.amax((1, 2, 3), keepdim=True)),
    "addcdiv": lambda x: torch.addcdiv(x, x, x.amax((1, 2, 3), keepdim=True)),
    "softmax": lambda x: torch.where(x == 0, -torch.inf, x).flatten(1).softmax(1).view_as(x),
}


@pytest.mark.parametrize("way", SCALED)
def test_whatever_makes_what_is_not_a_number(way, lean):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        net, images = Standardising(SCALED[way]).eval().requires_grad_(False), pictures(5, 16)
    grey = images.clone()
    grey[2] = 0.5
    with torch.no_grad():
        passes = forward_of(model_of(net), images[:1])
        for given in (images, grey, images):
            torch.testing.assert_close(passes(given), net(given), equal_nan=True)
    assert passes._lean is not None
    assert not net(grey).isfinite().all()


@pytest.mark.parametrize("grey_first", [False, True])
def test_what_is_not_a_number_on_the_way_stays_one(grey_first, lean):
    net, images = seeded(Standardising), pictures(5, 16)
    grey = images.clone()
    grey[2] = 0.5
    with torch.no_grad():
        passes = forward_of(model_of(net), images[:1])
        for given in (grey, images, grey, images) if grey_first else (images, grey, images):
            torch.testing.assert_close(passes(given), net(given), equal_nan=True)
    assert passes._lean is not None


def test_weights_written_to_without_a_trace_are_read_in_the_next_call(lean, monkeypatch):
    """Also where logits move by less than what is called alike."""
    net, images = seeded(Settable), pictures(2, 16)
    monkeypatch.setattr("saliometer.engine.forward.WORTH", {"cpu": 60 * 16 * 16})
    before = saliometer.explain(net, images, "rise(masks=30)", torch.tensor([1, 2]))
    net.conv.bias.data[0].add_(1e-6)
    with the_network_alone():
        net.conv.bias.data[0].add_(2e-5)
        wanted = saliometer.explain(net, images, "rise(masks=30)", torch.tensor([1, 2]))
    found = saliometer.explain(net, images, "rise(masks=30)", torch.tensor([1, 2]))
    assert float((found - wanted).abs().max()) < 0.2 * float((before - wanted).abs().max())


def replaced(net: nn.Module) -> None:
    net.conv.bias = nn.Parameter(net.conv.bias + torch.tensor([2e-5, 0, 0, 0]), requires_grad=False)


def other_times(net: nn.Module) -> None:
    net.times = 1 + 1e-5


def other_number(net: nn.Module) -> None:
    net.how["times"] = 2


def other_function(net: nn.Module) -> None:
    net.bend = nn.functional.relu6


def other_forward(net: nn.Module) -> None:
    real = net.conv.forward
    net.conv.forward = lambda images: real(images) * (1 + 1e-5)


def other_stride(net: nn.Module) -> None:
    net.conv.stride = (2, 2)


@pytest.mark.parametrize("change", [other_number, other_function, other_forward, other_stride])
def test_changes_that_the_first_images_do_not_show_are_seen(change, lean):
    """An attribute of any kind is looked at, whatever it does to logits."""
    net, images = seeded(Settable), pictures(5, 16)
    with torch.no_grad():
        first = forward_of(model_of(net), images[:1])
        first(images)
        change(net)
        second = forward_of(model_of(net), images[:1])
        second(images)
        third = forward_of(model_of(net), images[:1])
        third(images)
    assert second._lean is not first._lean
    assert third._lean is second._lean


def test_hooks_are_heard_from_the_next_pass_on(lean):
    net, images, heard = seeded(Settable), pictures(5, 16), []
    with torch.no_grad():
        plain = net(images)
        passes = forward_of(model_of(net), images[:1])
        for _ in range(2):
            torch.testing.assert_close(passes(images), plain)
        handle = net.conv.register_forward_hook(lambda _module, _inputs, output: heard.append(output) or output * 2)
        torch.testing.assert_close(passes(images), net(images))
        torch.testing.assert_close(forward_of(model_of(net), images[:1])(images), net(images))
        assert not any(type(values) is not Tensor for values in heard)  # nothing fake is left with the listener
        handle.remove()
        torch.testing.assert_close(passes(images), plain)


def same_for(net: nn.Module, *batches: Tensor) -> Forward:
    """Passes that gave the network's own logits for all these images, one batch after the other."""
    model = model_of(net)
    with torch.no_grad():
        passes = forward_of(model, batches[0][:1])
        for images in batches:
            torch.testing.assert_close(passes(images.clone()), net(images.clone()), equal_nan=True)
    return passes


@pytest.mark.parametrize("how", LOOKS)
def test_a_network_that_looks_at_its_images_runs_itself(how, lean):
    """It may do something else for images of which those that are compared say nothing."""
    dark = 0.1 * pictures(5, 16)
    assert bool(LOOKS[how](dark + 0.6))
    passes = same_for(written(looking(LOOKS[how])), dark, dark + 0.6)
    assert passes._lean is None


LARGER = {  # what a network does with batches of more than four, which dark images do not show
    "clamp": lambda x: x.clamp(max=0.5),
    "where": lambda x: torch.where(x > 0.5, -x, x),
    "by the size": lambda x: x + len(x) // 4 * (x - 0.5).relu(),
    "in parts": lambda x: torch.cat([part.clamp(max=0.5) for part in x.split(2)]),
    "another order": lambda x: x.roll(1, 0),
}
SIZED = {  # the same operations with other numbers
    "bound": lambda x: x.clamp(max=0.5 if len(x) > 4 else 9.0),
    "factor": lambda x: x + len(x) // 4 * (x - 0.5).relu(),
}


@pytest.mark.parametrize("how", LARGER)
def test_a_network_that_does_something_else_in_larger_batches_runs_itself(how, lean):
    def forward(net: Written, images: Tensor) -> Tensor:
        return net.head(net.first(LARGER[how](images) if len(images) > 4 else images).relu().mean((2, 3)))

    dark = 0.1 * pictures(1, 16).expand(5, -1, -1, -1)
    passes = same_for(written(forward), dark[:4], dark, dark + 0.6 * pictures(5, 16))
    assert passes._lean is None


@pytest.mark.parametrize("how", SIZED)
def test_a_network_of_which_numbers_change_with_the_batch_runs_itself(how, lean):
    def forward(net: Written, images: Tensor) -> Tensor:
        return net.head(net.first(SIZED[how](images)).relu().mean((2, 3)))

    dark = 0.1 * pictures(5, 16)
    passes = same_for(written(forward), dark[:3], dark, dark + 0.6)
    assert passes._lean is None


def squared(net: Written, images: Tensor) -> Tensor:
    """What the first layer gives out, to the 16th power."""
    values = net.first(images)
    for _ in range(4):
        values = values * values
    return net.head(net.second(values).relu().mean((2, 3)))


def divided(net: Written, images: Tensor) -> Tensor:
    values = images / images.std((1, 2, 3), keepdim=True).pow(6)
    return net.head(net.second(net.first(values).square()).relu().mean((2, 3)))


def shortened(net: Written, images: Tensor) -> Tensor:
    return net.head(net.first((30 * images).half().square().float()).relu().mean((2, 3)))


@pytest.mark.parametrize(
    ("forward", "change"),
    [
        (squared, lambda x: 1e3 * x),
        (squared, lambda x: 1e30 * x),
        (divided, lambda x: 1 + 1e-6 * x),
        (shortened, lambda x: 9 * x),
    ],
)
def test_sums_that_leave_float32_are_not_hidden(forward, change, lean):
    """They are infinite, and so of both signs that the next sum is not a number, of which a clamp on a CPU makes 0."""
    net, images = written(forward), 5 * pictures(4, 16)
    changed = images.clone()
    changed[1] = change(images[1])
    assert not net(changed)[1].isfinite().any()
    same_for(net, images, changed, images)


def test_lean_passes_go_on_behind_images_that_are_too_bright_for_them(lean):
    images = pictures(4, 16)
    assert same_for(written(squared), images, 1e3 * images, images)._lean is not None


@pytest.mark.parametrize("first", [0.0, 1e-6])
def test_images_that_are_brighter_than_the_first_get_them_too(first, lean, monkeypatch):
    net, images = seeded(Settable), pictures(4, 16)
    passes = same_for(net, first * images, images)
    monkeypatch.setattr(Model, "logits", lambda *_: pytest.fail("they were compared before"))
    with torch.no_grad():
        passes(images)


@pytest.mark.parametrize(("off_by", "alike"), [(0, True), (1e-6, True), (1e-2, False)])
def test_a_class_that_is_switched_off_hides_no_difference(off_by, alike):
    own = torch.tensor([[1.0, -1e9, 2.0], [0.5, -1e9, 0.1]])
    found = own + off_by * torch.tensor([0.0, 0.0, 1.0])
    assert (forward._tried(lambda images: found, pictures(2), own) is found) == alike


def test_no_images_give_no_logits(lean):
    net, images = seeded(Settable), pictures(5, 16)
    with torch.no_grad():
        for first in (0, 5):
            passes = forward_of(model_of(net), images[:1])
            for count in (first, 0, 5, 0):
                assert passes(images[:count]).shape == (count, 3)
            assert passes._lean is not None


def test_what_was_made_of_weights_goes_with_the_passes(lean):
    net, images = seeded(Settable), pictures(5, 16)
    with torch.no_grad():
        passes = forward_of(model_of(net), images[:1])
        passes(images)
    kept = passes._lean.way
    del passes
    gc.collect()
    assert getattr(kept, "_ready", None) is None


@pytest.mark.parametrize("change", [replaced, other_times])
def test_a_network_made_of_other_parts_is_prepared_anew(change, lean):
    """Also where logits move by less than what is called alike."""
    net, images = seeded(Settable), pictures(5, 16)
    with torch.no_grad():
        first = forward_of(model_of(net), images[:1])
        before = first(images)
        change(net)
        wanted = net(images)
        second = forward_of(model_of(net), images[:1])
        found = second(images)
    assert float((found - wanted).abs().max()) < 0.2 * float((before - wanted).abs().max())
    assert second._lean is not first._lean


def test_callers_in_inference_mode_get_it_too(lean):
    net, images = seeded(Settable), pictures(5, 16)
    with torch.inference_mode():
        passes = forward_of(model_of(net), images[:1])
        torch.testing.assert_close(passes(images), net(images))
    assert passes._lean is not None
    with torch.no_grad():
        passes = forward_of(model_of(net), images[:1])
        torch.testing.assert_close(passes(images), net(images))


def test_memory_that_runs_out_is_told(net, lean, monkeypatch):
    def short(*_):
        raise RuntimeError("CUDA out of memory")

    monkeypatch.setattr(Lean, "__call__", short)
    with torch.no_grad(), pytest.raises(RuntimeError, match="out of memory"):
        forward_of(model_of(net), pictures(1, 16))(pictures(2, 16))


def test_nothing_is_prepared_before_it_is_needed(lean, monkeypatch):
    monkeypatch.setattr(forward, "Lean", lambda *_: pytest.fail("nobody asked"))
    forward_of(model_of(seeded(Settable)), pictures(1, 16))


def test_a_network_is_freed(lean):
    net = seeded(Settable)
    with torch.no_grad():
        forward_of(model_of(net), pictures(1, 16))(pictures(4, 16))
    held = weakref.ref(net)
    del net
    gc.collect()
    assert held() is None


def test_answers_take_it_for_scores_but_not_for_gradients(net):
    model, images, targets = model_of(net), pictures(3, 32), torch.tensor([1, 2, 3])
    taken = []

    def counted(rows: Tensor) -> Tensor:
        taken.append(len(rows))
        return model.logits(rows)

    answers, plain = Answers(model, CPU, 8, forward=counted), Answers(model, CPU, 8)
    dark = each(lambda k: images / (k + 1))
    for question, used in (
        (Gradients(unaltered(images), 1), 0), (Scores(dark, 2), 6), (Logits(dark, 3), 9), (Gradients(dark, 2), 0),
        (Scores(unaltered(images), 1), 3),  # not from the pass back, which rounds in another way
    ):  # fmt: skip
        taken.clear()
        found = answers({"toy": question}, targets)["toy"]
        assert sum(taken) == used
        torch.testing.assert_close(found, plain({"toy": question}, targets)["toy"])


def test_an_audit_with_it_finds_the_same(net, lean, tmp_path):
    images = pictures(4, 32)
    asked = {"methods": ["gradient", "rise(masks=40)"], "metrics": ["average_drop", "insertion(steps=4)", "road"]}
    found = saliometer.audit(net, images, out=tmp_path / "lean", **asked).rows.to_pandas()
    with the_network_alone():
        plain = saliometer.audit(net, images, out=tmp_path / "plain", **asked).rows.to_pandas()
    found, plain = (rows[~rows.metric.str.startswith("cost")].reset_index() for rows in (found, plain))
    assert len(found) == len(plain) > 20
    torch.testing.assert_close(
        torch.tensor(found.value), torch.tensor(plain.value), rtol=1e-4, atol=1e-5, equal_nan=True
    )


def test_explain_takes_it_where_passes_are_many(lean, monkeypatch):
    net, images = torchvision_net("resnet18").requires_grad_(False), pictures(2, 32)
    with the_network_alone():
        plain = saliometer.explain(net, images, "rise(masks=30)")
    prepared = []
    monkeypatch.setattr(forward, "Lean", lambda *given: prepared.append(1) or Lean(*given))
    monkeypatch.setattr("saliometer.engine.forward.WORTH", {"cpu": 60 * 32 * 32})
    torch.testing.assert_close(saliometer.explain(net, images, "rise(masks=30)"), plain)
    saliometer.explain(net, images, "rise(masks=29)")  # fewer than it is worth
    saliometer.explain(net, images, "smooth_grad(draws=50)")  # goes back
    assert prepared == [1]
