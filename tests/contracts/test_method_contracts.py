"""What every method keeps to, checked on each that is registered, so a new file is covered before its tests are."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from saliometer import registry
from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, attributions, drive
from saliometer.maps import RENDERINGS
from saliometer.registry import Spec
from saliometer.types import Batch, Explained, Model
from toys import CPU, Mean, asked, explain, model_of, noise_batch, quick, small_cnn

METHODS = list(registry.methods)
EXPLAINING = [name for name in METHODS if not registry.methods[name].facts.control]
CLOSE = {"rtol": 1e-5, "atol": 1e-6}
TRUTH = torch.arange(5 * 64).view(5, 8, 8) % 3 == 0


def net_for(name: str, seed: int = 0) -> nn.Sequential:
    return small_cnn(seed=seed, pooled=name == "cam")  # which takes no other head


@pytest.fixture
def toy_model(name: str) -> Model:
    return model_of(net_for(name))


def maps_of(name: str, model: Model, batch: Batch, size: int = 0, truth: Tensor = TRUTH) -> Tensor:
    return explain(model, batch, quick(name), size=size, truth=truth)


def state(net: nn.Module) -> dict[str, object]:
    """All that a method must leave as it found it."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "hooks": [len(getattr(module, kind)) for module in net.modules() for kind in hooks],
        "training": [module.training for module in net.modules()],
        "requires_grad": [value.requires_grad for value in net.parameters()],
        "grad": [value.grad is None for value in net.parameters()],
        "weights": [value._version for value in net.state_dict().values()],
        "grad mode": torch.is_grad_enabled(),
        "generator": torch.get_rng_state().tolist(),
        "cudnn": (torch.backends.cudnn.deterministic, torch.backends.cudnn.benchmark, torch.backends.cudnn.allow_tf32),
        "matmul": torch.backends.cuda.matmul.allow_tf32,
    }


@pytest.mark.parametrize("name", METHODS)
def test_it_says_what_it_is_and_its_facts_hold_together(name):
    entry = registry.methods[name]
    assert entry.summary.endswith(".")
    assert entry.facts.rendering in RENDERINGS
    Spec(name, tuple(entry.facts.quick.items())).check("method", entry)


@pytest.mark.parametrize("name", METHODS)
def test_it_gives_one_finite_value_per_pixel(name, toy_model, toy_batch):
    method = asked(quick(name))
    raw = drive({name: lambda: method.start(toy_model, toy_batch, TRUTH)}, Answers(toy_model, CPU), toy_batch.targets)[
        name
    ]
    assert not isinstance(raw, Failure), raw.traceback
    raw = raw.maps if isinstance(raw, Explained) else raw
    assert raw.shape in {(5, 3, 8, 8), (5, 1, 8, 8)}
    assert raw.is_floating_point()
    assert raw.isfinite().all()
    assert not raw.requires_grad
    assert raw.abs().max() > 0


@pytest.mark.parametrize("name", METHODS)
def test_the_same_seed_gives_the_same_map(name, toy_model, toy_batch):
    one = maps_of(name, toy_model, toy_batch)
    torch.rand(3)
    assert torch.equal(one, maps_of(name, toy_model, toy_batch))


@pytest.mark.parametrize("name", METHODS)
def test_a_map_is_the_same_alone_and_in_a_batch(name, toy_model, toy_batch):
    together = maps_of(name, toy_model, toy_batch)
    alone = [maps_of(name, toy_model, toy_batch[i : i + 1], truth=TRUTH[i : i + 1]) for i in range(5)]
    torch.testing.assert_close(together, torch.cat(alone), **CLOSE)


@pytest.mark.parametrize("size", [1, 2, 7])
@pytest.mark.parametrize("name", METHODS)
def test_a_map_is_the_same_whatever_fits_into_one_pass(name, size, toy_model, toy_batch):
    together = maps_of(name, toy_model, toy_batch)
    torch.testing.assert_close(together, maps_of(name, toy_model, toy_batch, size=size), **CLOSE)


@pytest.mark.parametrize("name", METHODS)
def test_a_map_is_the_same_beside_other_methods(name, toy_model, toy_batch):
    methods = [asked(quick(other)) for other in METHODS if other != "cam" or name == "cam"]
    together = attributions(methods, Answers(toy_model, CPU), toy_batch, TRUTH)[quick(name)].maps
    torch.testing.assert_close(together, maps_of(name, toy_model, toy_batch), **CLOSE)


@pytest.mark.parametrize("name", METHODS)
def test_maps_follow_their_images_into_another_order(name, toy_model, toy_batch):
    order = torch.tensor([3, 0, 4, 1, 2])
    shuffled = Batch(toy_batch.images[order], toy_batch.targets[order], toy_batch.seeds[order], toy_batch.references)
    found = maps_of(name, toy_model, shuffled, truth=TRUTH[order])
    torch.testing.assert_close(found, maps_of(name, toy_model, toy_batch)[order], **CLOSE)


@pytest.mark.parametrize("name", METHODS)
def test_inputs_model_and_settings_are_as_they_were(name, toy_model, toy_batch):
    before = state(toy_model.net)
    copies = [tensor.clone() for tensor in (toy_batch.images, toy_batch.targets, toy_batch.seeds, TRUTH)]
    maps_of(name, toy_model, toy_batch)
    assert state(toy_model.net) == before
    for tensor, copy in zip((toy_batch.images, toy_batch.targets, toy_batch.seeds, TRUTH), copies, strict=True):
        assert torch.equal(tensor, copy)
    assert not toy_batch.images.requires_grad
    assert toy_batch.images.grad is None


class BreaksError(RuntimeError):
    pass


class Breaks(nn.Module):
    def forward(self, features: Tensor) -> Tensor:
        raise BreaksError("the last layer broke")


@pytest.mark.parametrize("name", METHODS)
def test_everything_is_as_it_was_after_an_error_too(name, toy_batch):
    net = net_for(name)
    net[5] = Breaks()
    model = model_of(net)
    before = state(net)
    found = attributions([asked(quick(name))], Answers(model, CPU), toy_batch, TRUTH)[quick(name)]
    assert state(net) == before
    if name in EXPLAINING:
        assert isinstance(found, Failure)
        assert found.message == "BreaksError: the last layer broke"


@pytest.mark.parametrize("name", METHODS)
def test_only_what_says_it_is_random_follows_the_seed(name, toy_model, toy_batch):
    reseeded = replace(toy_batch, seeds=toy_batch.seeds + 1000)
    same = torch.equal(maps_of(name, toy_model, toy_batch), maps_of(name, toy_model, reseeded))
    assert same != registry.methods[name].facts.random


@pytest.mark.parametrize("name", METHODS)
def test_a_method_explains_the_target_and_a_control_does_not(name, toy_model, toy_batch):
    other = replace(toy_batch, targets=(toy_batch.targets + 1) % 3)
    one, two = maps_of(name, toy_model, toy_batch), maps_of(name, toy_model, other)
    changed = (one != two).flatten(1).any(1)
    assert changed.sum() >= 3 if name in EXPLAINING else not changed.any()  # a CAM may be dead for both


@pytest.mark.parametrize("name", METHODS)
def test_one_images_target_is_nothing_to_the_others(name, toy_model, toy_batch):
    targets = toy_batch.targets.clone()
    targets[2] = (targets[2] + 1) % 3
    others = torch.tensor([0, 1, 3, 4])
    one, two = maps_of(name, toy_model, toy_batch), maps_of(name, toy_model, replace(toy_batch, targets=targets))
    torch.testing.assert_close(one[others], two[others], **CLOSE)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_depends_on_the_weights_and_a_control_does_not(name, toy_batch):
    one, two = (maps_of(name, model_of(net_for(name, seed)), toy_batch) for seed in (0, 1))
    assert torch.equal(one, two) == (name not in EXPLAINING)


@pytest.mark.parametrize("name", METHODS)
def test_it_works_for_a_caller_without_gradients(name, toy_model, toy_batch):
    wanted = maps_of(name, toy_model, toy_batch)
    with torch.no_grad():
        found = maps_of(name, toy_model, toy_batch)
        assert not torch.is_grad_enabled()
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("name", METHODS)
def test_in_double_precision_it_works_in_double_precision_and_gives_the_same(name, toy_model, toy_batch):
    """What the method itself gives is looked at, for the engine would make it fit."""
    model = model_of(net_for(name).double())
    batch = replace(toy_batch, images=toy_batch.images.double(), references=toy_batch.references.double())
    method = asked(quick(name))
    raw = drive({name: lambda: method.start(model, batch, TRUTH)}, Answers(model, CPU), batch.targets)[name]
    assert not isinstance(raw, Failure), raw.traceback
    found = raw.maps if isinstance(raw, Explained) else raw
    assert found.dtype == torch.float64
    single = maps_of(name, toy_model, toy_batch)
    assert single.dtype == torch.float32
    assert (found - single).abs().max() <= 1e-4 * found.abs().max()


@pytest.mark.parametrize("name", METHODS)
def test_a_relu_that_works_in_place_changes_nothing(name, toy_batch):
    plain, hasty = net_for(name), net_for(name)
    for place in (1, 3):
        hasty[place] = nn.ReLU(inplace=True)
    for layer in (
        ("3",) if name == "cam" else ("2", "3")
    ):  # the layer that CAM methods read is overwritten by the one after it
        one, two = (maps_of(name, model_of(net, layer), toy_batch) for net in (plain, hasty))
        torch.testing.assert_close(one, two, **CLOSE)


@pytest.mark.parametrize("name", METHODS)
def test_one_channel_and_wide_images_work_too(name):
    head = [Mean(), nn.Linear(4, 2)] if name == "cam" else [nn.Flatten(), nn.Linear(4 * 6 * 10, 2)]
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), *head)
    images = torch.rand(102, 1, 8, 12, generator=torch.Generator().manual_seed(0))
    batch = replace(noise_batch(2), images=images[:2], targets=torch.tensor([0, 1]), references=images[2:])
    assert maps_of(name, model_of(net, "1"), batch, truth=images[:2, 0] > 0.5).shape == (2, 1, 8, 12)
