"""What every metric of regions keeps to; those of the battery have contracts of their own."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from saliometer import registry, summary
from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, drive, scores
from saliometer.maps import RENDERINGS, collapsed
from saliometer.tasks.textbox import textbox
from saliometer.types import NEITHER, PRIMARY, SECONDARY, Batch, Samples
from toys import CPU, model_of, small_cnn

METRICS = [name for name, entry in registry.metrics.items() if not (entry.facts.reads or entry.facts.pairs)]
TRUTHFUL = [name for name in METRICS if registry.metrics[name].facts.needs_truth]
CASES = [(name, definition) for name in TRUTHFUL for definition in registry.metrics[name].facts.definitions]
SAMPLES = textbox("complex-cr2", count=20)
BOTH = torch.tensor([PRIMARY in roles and SECONDARY in roles for roles in SAMPLES.roles.tolist()])
MODEL = model_of(torch.nn.Sequential(torch.nn.AvgPool2d(8), small_cnn()))


def noise(seed: int = 0, count: int = 20) -> Tensor:
    """Signed maps of three channels."""
    return torch.randn(count, 3, 64, 64, generator=torch.Generator().manual_seed(seed))


def valued(name: str, maps: Tensor, samples: Samples, definition: str, region: str = "box", rendering: str = "heat"):
    """(N,): the metric on signed maps, whether it asks the model or not."""
    params = {"definition": definition, "region": region} if registry.metrics[name].facts.definitions else {}
    read = collapsed(maps, definition, rendering)
    run = {name: lambda: registry.metrics[name].function(read, samples, **params)}
    values = drive(run, Answers(MODEL, CPU), samples.batch.targets)[name]
    assert not isinstance(values, Failure), values.traceback
    return values


def part(samples: Samples, places: Tensor) -> Samples:
    batch = Batch(samples.batch.images[places], samples.batch.targets[places], samples.batch.seeds[places])
    pick = places.tolist()
    return Samples(
        batch, tuple(samples.ids[i] for i in pick), samples.labels[places], samples.objects[places],
        samples.boxes[places], samples.roles[places], tuple(samples.buckets[i] for i in pick),
    )  # fmt: skip


@pytest.mark.parametrize("name", METRICS)
def test_it_says_what_it_is_and_its_facts_hold_together(name):
    entry = registry.metrics[name]
    assert entry.summary.endswith(".")
    assert entry.facts.bounds[0] < entry.facts.bounds[1]
    assert (entry.facts.better == "lower") == summary.lower_is_better(name)
    if entry.facts.definitions:
        assert entry.parameters["definition"] == entry.facts.definitions[0]
        assert entry.parameters["region"] == entry.facts.regions[0]


@pytest.mark.parametrize(("name", "definition"), CASES)
def test_it_gives_one_finite_value_per_sample(name, definition):
    maps = noise()
    maps[10:] = SAMPLES.region(PRIMARY, "box")[10:, None].float()
    values = valued(name, maps, SAMPLES, definition)
    assert values.shape == (20,)
    assert values.is_floating_point()
    assert values.isfinite().all()
    assert len(values[BOTH].unique()) > 1  # not one answer for everything


@pytest.mark.parametrize(("name", "definition"), CASES)
def test_a_value_is_the_same_alone_and_in_another_order(name, definition):
    maps = noise()
    together = valued(name, maps, SAMPLES, definition)
    order = torch.tensor([7, 3, 19, 0])
    alone = [valued(name, maps[i : i + 1], part(SAMPLES, torch.tensor([i])), definition) for i in order.tolist()]
    assert torch.equal(together[order], torch.cat(alone))
    assert torch.equal(together[order], valued(name, maps[order], part(SAMPLES, order), definition))


@pytest.mark.parametrize("region", ["box", "ink"])
@pytest.mark.parametrize(("name", "definition"), CASES)
def test_the_truth_scores_better_than_the_truth_shuffled(name, definition, region):
    if definition == "authors" and region == "ink":
        pytest.skip("the authors score boxes only")
    truth = SAMPLES.region(PRIMARY, region)[:, None].float()
    order = torch.randperm(4096, generator=torch.Generator().manual_seed(0))
    shuffled = truth.flatten(2)[..., order].view_as(truth)
    right, wrong = (valued(name, maps, SAMPLES, definition, region, "raw")[BOTH].double() for maps in (truth, shuffled))
    sign = 1 if registry.metrics[name].facts.better == "higher" else -1
    gap = sign * (right - wrong)
    assert gap.mean() > 0
    assert gap.min() >= -0.02  # two primary objects hold the authors' IOU of a perfect map down


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize(("name", "definition"), CASES)
def test_the_scale_of_a_map_is_nothing_to_it(name, definition, rendering):
    """A power of two scales without rounding, so that no pixel of a rendered picture changes its level."""
    one, two = (valued(name, factor * noise(), SAMPLES, definition, rendering=rendering) for factor in (1, 1 / 1024))
    torch.testing.assert_close(one, two, rtol=1e-6, atol=1e-9)
    if definition != "authors":
        torch.testing.assert_close(one, valued(name, 3.7 * noise(), SAMPLES, definition), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "definition"), [case for case in CASES if len(registry.metrics[case[0]].facts.needs) == 1]
)
def test_a_role_it_does_not_need_is_nothing_to_it(name, definition):
    """Taking the secondary objects' role away leaves a primary metric where it was, and the other way round."""
    (needed,) = registry.metrics[name].facts.needs
    idle = SECONDARY if needed == PRIMARY else PRIMARY
    other = replace(SAMPLES, roles=SAMPLES.roles.masked_fill(SAMPLES.roles == idle, NEITHER))
    assert torch.equal(valued(name, noise(), SAMPLES, definition), valued(name, noise(), other, definition))


@pytest.mark.parametrize(("name", "definition"), CASES)
def test_inputs_are_as_they_were(name, definition):
    maps = collapsed(noise(), definition, "heat")
    tensors = (maps, SAMPLES.batch.images, SAMPLES.objects, SAMPLES.boxes, SAMPLES.roles, SAMPLES.boxed)
    copies = [tensor.clone() for tensor in tensors]
    state = torch.get_rng_state()
    registry.metrics[name].function(maps, SAMPLES, definition=definition, region="box")
    assert all(torch.equal(tensor, copy) for tensor, copy in zip(tensors, copies, strict=True))
    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("name", TRUTHFUL)
@pytest.mark.parametrize("setting", ["simple-fr", "complex-fr", "complex-cr4"])
def test_a_value_is_nan_exactly_where_a_role_it_needs_is_missing_and_the_note_says_so(name, setting):
    samples = textbox(setting, count=12)
    needs = registry.metrics[name].facts.needs
    assert needs
    words = {PRIMARY: "primary", SECONDARY: "secondary"}
    for scored in scores(
        noise(count=12), "heat", samples, Answers(MODEL, CPU), metrics=[name], definitions=["clean", "authors"],
        region="box",
    ):  # fmt: skip
        for value, note, roles in zip(scored.values.tolist(), scored.notes, samples.roles.tolist(), strict=True):
            missing = [words[role] for role in needs if role not in roles]
            assert (value != value) == bool(missing)
            assert note == (f"no {' and no '.join(missing)} object" if missing else "")


@pytest.mark.parametrize(("name", "definition"), CASES)
def test_values_lie_within_the_bounds_and_the_best_is_reached_under_clean(name, definition):
    low, high = registry.metrics[name].facts.bounds
    values = torch.cat([valued(name, noise(seed), SAMPLES, definition)[BOTH] for seed in range(3)])
    truth = SAMPLES.region(PRIMARY, "box")[:, None].float()
    best = valued(name, truth, SAMPLES, definition, rendering="raw")[BOTH]
    assert torch.cat((values, best)).min() >= low
    assert torch.cat((values, best)).max() <= high
    if definition != "authors" and "mafl" not in name:
        wanted = high if registry.metrics[name].facts.better == "higher" else low
        assert (best == wanted).all()
