"""What every task keeps to, in every setting."""

import pytest
import torch

from saliometer import registry
from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY, Samples

CASES = [(name, setting) for name, entry in registry.tasks.items() for setting in entry.facts.settings]


def made(name: str, setting: str, **params) -> Samples:
    entry = registry.tasks[name]
    return entry.function(setting, **(dict(entry.facts.quick) | params))


@pytest.mark.parametrize("name", registry.tasks)
def test_it_says_what_it_is(name):
    entry = registry.tasks[name]
    assert entry.summary.endswith(".")
    assert entry.facts.settings
    assert all(entry.classes(setting) >= 2 for setting in entry.facts.settings)
    assert set(entry.facts.quick) <= set(entry.parameters)


@pytest.mark.parametrize("name", registry.tasks)
def test_an_unknown_setting_is_refused(name):
    with pytest.raises(LookupError, match="there is no setting 'xyzzy'"):
        made(name, "xyzzy")


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_everything_has_one_entry_per_sample_and_the_types_agreed_on(name, setting):
    samples = made(name, setting)
    count, parts = len(samples), samples.boxes.shape[1]
    height, width = samples.batch.images.shape[2:]
    assert count == registry.tasks[name].facts.quick["count"]
    assert samples.batch.images.dtype == torch.float32
    assert samples.batch.images.is_contiguous()
    assert samples.batch.targets.dtype == samples.labels.dtype == samples.batch.seeds.dtype == torch.int64
    assert samples.objects.shape == (count, parts, height, width)
    assert samples.objects.dtype == torch.bool
    assert samples.boxes.shape == (count, parts, 4)
    assert samples.roles.shape == (count, parts)
    assert samples.roles.dtype == torch.int8
    assert len(set(samples.ids)) == len(samples.buckets) == count
    assert len(samples.batch.seeds.unique()) == count


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_labels_are_classes_and_the_targets_until_the_engine_sets_others(name, setting):
    samples = made(name, setting)
    assert set(samples.labels.tolist()) == set(range(registry.tasks[name].classes(setting)))
    assert torch.equal(samples.labels, samples.batch.targets)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_objects_lie_within_their_boxes_and_absent_ones_nowhere(name, setting):
    samples = made(name, setting)
    absent = samples.roles == ABSENT
    assert set(samples.roles.unique().tolist()) <= {PRIMARY, SECONDARY, NEITHER, ABSENT}
    assert not (samples.objects & ~samples.boxed).any()
    assert not samples.objects[absent].any()
    assert not samples.boxes[absent].any()
    assert samples.objects.flatten(2).any(2)[~absent].all()
    assert (samples.roles == PRIMARY).any()


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_a_bucket_has_one_label_and_one_set_of_roles(name, setting):
    samples = made(name, setting)
    found: dict[str, set] = {}
    for bucket, label, roles in zip(samples.buckets, samples.labels.tolist(), samples.roles.tolist(), strict=True):
        found.setdefault(bucket, set()).add((label, tuple(roles)))
    assert all(len(kinds) == 1 for kinds in found.values())
    assert all(bucket.isdecimal() for bucket in found)  # summaries sort them as numbers


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_images_are_pixels_in_0_to_1_and_follow_seed_and_split(name, setting):
    one = made(name, setting)
    assert one.batch.images.min() == 0
    assert one.batch.images.max() == 1
    assert torch.equal(one.batch.images, made(name, setting).batch.images)
    assert not torch.equal(one.batch.images, made(name, setting, seed=1).batch.images)
    assert not torch.equal(one.batch.images, made(name, setting, split="train").batch.images)


@pytest.mark.parametrize(("name", "setting"), CASES)
def test_the_callers_generator_plays_no_part(name, setting):
    before = torch.get_rng_state()
    one = made(name, setting)
    assert torch.equal(before, torch.get_rng_state())
    torch.rand(1)
    assert torch.equal(one.batch.images, made(name, setting).batch.images)
