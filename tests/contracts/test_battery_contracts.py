"""What every metric of the audit's battery keeps to, checked on each that is registered."""

import math
from dataclasses import replace

import pytest
import torch
from torch import Tensor, nn

from battery_toys import judged, photos
from saliometer import registry
from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, drive
from saliometer.maps import STAGES, staged
from saliometer.registry import Spec
from saliometer.types import Batch, Maps, Samples, Subject
from toys import CPU, model_of, small_cnn

BATTERY = [name for name, entry in registry.metrics.items() if entry.facts.reads]
LOCATED = [name for name in BATTERY if registry.metrics[name].facts.needs_truth]
RANKED = ["insertion", "deletion", "monotonicity", "road", "pointing_game", "iou"]
COUNT, SIDE, PIXELS = 6, 8, 64
MODEL = model_of(small_cnn())
CLOSE = {"rtol": 1e-4, "atol": 1e-5}  # small differences of scores in single precision
IN_WORDS = {"n": PIXELS, "ln n": math.log(PIXELS), "1 - 1/n": 1 - 1 / PIXELS, "1 / pixels": 1 / PIXELS}


def pictures(count: int = COUNT, first: int = 100) -> Samples:
    """Noise with an object in one quarter; the predicted classes are explained, and not one alone."""
    images = torch.rand(count, 3, SIDE, SIDE, generator=torch.Generator().manual_seed(1))
    images *= torch.linspace(0.3, 2, count).view(-1, 1, 1, 1)
    masks = torch.zeros(count, SIDE, SIDE, dtype=torch.bool)
    masks[:, 1:5, 2:6] = True
    return photos(images, MODEL.net(images).argmax(1), masks, first)


SAMPLES = pictures()


def noise(channels: int = 3) -> Tensor:
    return torch.randn(COUNT, channels, SIDE, SIDE, generator=torch.Generator().manual_seed(2))


def quick(name: str) -> str:
    return str(Spec(name, tuple(sorted(registry.metrics[name].facts.quick.items()))))


def values(name: str, maps: Tensor, samples: Samples = SAMPLES, size: int = 0, method: str = "gradient") -> Tensor:
    return judged(quick(name), MODEL, maps, samples, size=size, method=method)[0][name]


def only(samples: Samples, place: int) -> Samples:
    batch, one = samples.batch, slice(place, place + 1)
    return Samples(
        Batch(batch.images[one], batch.targets[one], batch.seeds[one]), samples.ids[one], samples.labels[one],
        samples.objects[one], samples.boxes[one], samples.roles[one], samples.buckets[one],
    )  # fmt: skip


def shown(name: str, method: str, maps: Tensor, samples: Samples) -> list[Tensor]:
    """Every altered copy (count, N, C, H, W) that a metric asks about."""
    entry, seen, answers = registry.metrics[name], [], Answers(MODEL, CPU)

    def answer(questions, targets):
        ((asker, question),) = questions.items()
        if hasattr(question, "variants"):
            seen.append(question.variants(range(question.count)).clone())
        if isinstance(question, Maps):
            return {asker: torch.ones(question.count, len(targets))}
        return answers(questions, targets)

    read = staged(maps, entry.facts.reads, "abs_max_minmax")
    subject = Subject(MODEL, Spec(method), registry.methods[method].facts.unit)
    start = {name: lambda: entry.function(read, samples, subject, **entry.facts.quick)}
    found = drive(start, answer, samples.batch.targets)[name]
    assert not isinstance(found, Failure), found.traceback
    return seen


def state(net: nn.Module) -> dict[str, object]:
    """All that a metric must leave as it found it."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    return {
        "hooks": [len(getattr(module, kind)) for module in net.modules() for kind in hooks],
        "training": [module.training for module in net.modules()],
        "requires_grad": [value.requires_grad for value in net.parameters()],
        "weights": [(value._version, value.grad is None) for value in net.parameters()],
        "grad mode": torch.is_grad_enabled(),
        "generator": torch.get_rng_state().tolist(),
    }


@pytest.mark.parametrize("name", BATTERY)
def test_it_says_what_it_is_and_its_facts_hold_together(name):
    entry = registry.metrics[name]
    assert entry.summary.endswith(".")
    assert entry.facts.reads in STAGES
    assert entry.facts.bounds[0] < entry.facts.bounds[1]
    assert entry.facts.passes >= 0
    assert all(entry.facts.degenerate)
    assert set(entry.facts.parts.values()) <= {"higher", "lower", ""}
    assert entry.facts.reads == "scaled" or not entry.facts.flat
    Spec(name, tuple(entry.facts.quick.items())).check("metric", entry)


def test_parts_that_say_nothing_of_how_good_a_map_is_have_no_direction():
    found = [
        f"{name}.{part}" for name in BATTERY for part, way in registry.metrics[name].facts.parts.items() if not way
    ]
    assert found == [
        "attack_sensitivity.transfer", "completeness.residual", "faithfulness_correlation.spread", "iou.chance",
        "pointing_game.chance",
    ]  # fmt: skip


def test_only_what_says_nothing_of_how_good_a_map_is_is_descriptive():
    assert [name for name in BATTERY if registry.metrics[name].facts.descriptive] == ["extent", "probability"]


@pytest.mark.parametrize("name", BATTERY)
def test_it_gives_one_finite_double_for_each_image_within_its_bounds_in_few_passes(name):
    found, notes, cost = judged(quick(name), MODEL, noise(), SAMPLES)
    low, high = registry.metrics[name].facts.bounds
    assert found[name].shape == (COUNT,)
    assert found[name].dtype == torch.float64
    assert found[name].isfinite().all(), notes
    assert found[name].min() >= low
    assert found[name].max() <= high
    assert cost.passes <= 40 * COUNT
    assert notes == [""] * COUNT


@pytest.mark.parametrize("name", BATTERY)
def test_its_parts_are_those_it_lists_and_have_its_shape(name):
    found, _, _ = judged(quick(name), MODEL, noise(), SAMPLES)
    assert set(found) == {name} | {f"{name}.{part}" for part in registry.metrics[name].facts.parts}
    assert all(one.shape == (COUNT,) and one.dtype == torch.float64 for one in found.values())


@pytest.mark.parametrize("name", BATTERY)
def test_a_value_is_the_same_alone_and_in_a_batch(name):
    together = values(name, noise())
    alone = [values(name, noise()[i : i + 1], only(SAMPLES, i)) for i in range(COUNT)]
    torch.testing.assert_close(together, torch.cat(alone), **CLOSE)


@pytest.mark.parametrize("size", [1, 4, 17])
@pytest.mark.parametrize("name", BATTERY)
def test_a_value_is_the_same_whatever_fits_into_one_pass(name, size):
    torch.testing.assert_close(values(name, noise()), values(name, noise(), size=size), **CLOSE)


@pytest.mark.parametrize("name", BATTERY)
def test_the_same_call_gives_the_same_bits(name):
    one = values(name, noise())
    torch.rand(3)
    assert torch.equal(one, values(name, noise()))


@pytest.mark.parametrize("name", BATTERY)
def test_what_it_shows_the_model_does_not_depend_on_the_method(name):
    """On equal maps; an attack that follows a method's own map has the same map to follow here."""
    one, two = (shown(name, method, noise(), SAMPLES) for method in ("gradient", "smooth_grad"))
    assert len(one) == len(two)
    assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


@pytest.mark.parametrize("name", BATTERY)
def test_what_it_shows_of_an_image_does_not_depend_on_its_neighbours(name):
    together, alone = shown(name, "gradient", noise(), SAMPLES), shown(name, "gradient", noise()[2:3], only(SAMPLES, 2))
    assert len(together) >= len(alone)  # an attack asks as often as the most stubborn image wants
    if len(together) == len(alone):
        for one, other in zip(together, alone, strict=True):
            torch.testing.assert_close(one[:, 2:3], other, **CLOSE)


@pytest.mark.parametrize("name", BATTERY)
def test_inputs_model_and_settings_are_as_they_were(name):
    maps, samples = noise(), pictures()
    tensors = (maps, samples.batch.images, samples.batch.targets, samples.batch.seeds, samples.objects)
    copies, before = [tensor.clone() for tensor in tensors], state(MODEL.net)
    values(name, maps, samples)
    assert state(MODEL.net) == before
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(tensors, copies, strict=True))
    assert not samples.batch.images.requires_grad


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", BATTERY)
def test_a_map_that_is_not_finite_has_no_value_and_harms_no_other(name, bad):
    maps = noise()
    maps[1, 0, 3, 3] = bad
    found, notes, _ = judged(quick(name), MODEL, maps, SAMPLES)
    others = [0, 2, 3, 4, 5]
    for one in found.values():
        assert one.isnan().tolist() == [False, True, False, False, False, False]
    assert notes[1].startswith("nan map")
    assert [notes[i] for i in others] == [""] * 5
    torch.testing.assert_close(found[name][others], values(name, noise())[others], **CLOSE)


@pytest.mark.parametrize("kind", ["constant", "all zero", "one pixel"])
@pytest.mark.parametrize("name", BATTERY)
def test_degenerate_maps_do_what_it_says(name, kind):
    maps = torch.zeros(COUNT, 1, SIDE, SIDE)
    if kind == "constant":
        maps += 0.7
    elif kind == "one pixel":
        maps[:, 0, 3, 4] = 0.7
    words = registry.metrics[name].facts.degenerate[["constant", "all zero", "one pixel"].index(kind)]
    found, notes, _ = judged(quick(name), MODEL, maps, SAMPLES)
    if name == "faithfulness_correlation" and kind == "one pixel":
        assert words == "invalid where it is never drawn"
        return
    assert found[name].isnan().tolist() == [words.startswith("invalid")] * COUNT, notes
    if words.startswith("invalid"):
        assert all(notes)
    plain = words.partition(" (")[0]  # in brackets stand definitions that are not the default
    number = IN_WORDS.get(plain, float(plain) if plain.isdecimal() else None)
    if number is not None:
        torch.testing.assert_close(found[name], torch.full_like(found[name], number), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", BATTERY)
def test_a_constant_map_cannot_be_scaled_unless_it_has_a_value(name):
    facts = registry.metrics[name].facts
    _, notes, _ = judged(quick(name), MODEL, torch.full((COUNT, 1, SIDE, SIDE), 0.7), SAMPLES)
    unscaled = facts.reads == "scaled" and not facts.flat
    assert ["cannot be scaled" in note for note in notes] == [unscaled] * COUNT
    assert unscaled == (facts.degenerate[0] == "invalid, for it cannot be scaled")


@pytest.mark.parametrize("name", BATTERY)
def test_a_mask_is_not_scaled(name):
    maps = torch.ones(COUNT, 1, SIDE, SIDE)
    found, notes, _ = judged(quick(name), MODEL, maps, SAMPLES, method="all_ones")
    assert not any("cannot be scaled" in note for note in notes)
    if registry.metrics[name].facts.reads == "scaled":
        assert found[name].isfinite().all(), notes


@pytest.mark.parametrize("name", BATTERY)
def test_only_what_says_it_is_random_follows_the_seed(name):
    """Maps of few levels, so that orders of equal pixels count."""
    maps = torch.randint(0, 3, (COUNT, 1, SIDE, SIDE), generator=torch.Generator().manual_seed(0)).float()
    others = [replace(SAMPLES, batch=replace(SAMPLES.batch, seeds=SAMPLES.batch.seeds + step)) for step in (1000, 2000)]
    one = values(name, maps)
    same = all(torch.equal(one, values(name, maps, other)) for other in others)
    assert same != registry.metrics[name].facts.random


@pytest.mark.parametrize("name", RANKED)
def test_a_metric_of_ranks_ignores_an_increasing_change(name):
    order = torch.stack([torch.randperm(PIXELS, generator=torch.Generator().manual_seed(i)) for i in range(COUNT)])
    maps = (order.float() / PIXELS).view(COUNT, 1, SIDE, SIDE)
    one = values(name, maps)
    for changed in (maps**3, maps.exp(), 5 * maps, maps.where(maps < 0.5, maps + 100)):
        torch.testing.assert_close(one, values(name, changed), rtol=1e-12, atol=1e-12)
    assert not torch.equal(one, values(name, 1 - maps))


@pytest.mark.parametrize("name", LOCATED)
def test_what_wants_masks_has_no_value_without(name):
    bare = photos(SAMPLES.batch.images, SAMPLES.batch.targets)
    found, notes, _ = judged(quick(name), MODEL, noise(), bare)
    assert found[name].isnan().all()
    assert notes == ["no labelled pixel of the target"] * COUNT


@pytest.mark.parametrize("name", LOCATED)
def test_the_mask_itself_scores_best(name):
    assert (values(name, SAMPLES.objects.float()) == 1).all()


@pytest.mark.parametrize("name", BATTERY)
def test_a_network_in_double_precision_gives_the_same(name):
    double = model_of(small_cnn().double())
    samples = replace(SAMPLES, batch=replace(SAMPLES.batch, images=SAMPLES.batch.images.double()))
    found = judged(quick(name), double, noise().double(), samples)[0][name]
    torch.testing.assert_close(found, values(name, noise()), rtol=1e-3, atol=1e-4)
