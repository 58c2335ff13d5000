"""Digits, half digits and digits with shapes: what is drawn, what decides, and what is left when it is erased."""

import hashlib

import pytest
import torch

from saliometer.tasks import digits as digits_module
from saliometer.tasks import half_digits as half_module
from saliometer.tasks import shape_digits as shape_module
from saliometer.tasks.digits import digits
from saliometer.tasks.half_digits import half_digits
from saliometer.tasks.shape_digits import CIRCLE, NOTHING, RECTANGLE, placed, seen_as, shape_digits
from saliometer.types import ABSENT, PRIMARY, SECONDARY

DIGESTS = {  # golden
    ("digits", "digit"): "d34a1216e7e9c0b3",
    ("half_digits", "bottom"): "fc357b20101785c1",
    ("half_digits", "top"): "294a48751122531a",
    ("shape_digits", "shape"): "61afbdf26891716b",
    ("shape_digits", "digit"): "61afbdf26891716b",
}
TASKS = [
    (digits, "digit"),
    (half_digits, "bottom"),
    (half_digits, "top"),
    (shape_digits, "shape"),
    (shape_digits, "digit"),
]


def kinds_of(samples) -> torch.Tensor:
    return torch.tensor([(int(bucket) - 1) // 10 for bucket in samples.buckets])


@pytest.mark.parametrize(("task", "setting"), TASKS)
def test_an_image_is_the_same_alone_and_in_any_part_of_a_stream(task, setting):
    whole = task(setting, count=70, split="train")
    part = task(setting, count=9, start=52, split="train")
    assert torch.equal(whole.batch.images[52:61], part.batch.images)
    assert torch.equal(whole.labels[52:61], part.labels)
    assert torch.equal(whole.batch.seeds[52:61], part.batch.seeds)
    assert whole.ids[52:61] == part.ids
    assert torch.equal(whole.objects[52:61], part.objects)
    assert torch.equal(whole.boxes[52:61], part.boxes)


@pytest.mark.parametrize(("task", "setting"), TASKS)
def test_streams_never_change(task, setting):
    images = task(setting, count=60).batch.images
    found = hashlib.sha256((images * 255).round().to(torch.uint8).numpy().tobytes()).hexdigest()[:16]
    assert found == DIGESTS[task.__name__, setting]


def test_digits_come_round_in_tens():
    samples = digits("digit", count=30)
    assert samples.labels.tolist() == [*range(10)] * 3
    assert (samples.roles == PRIMARY).all()
    assert torch.equal(samples.objects[:, 0], samples.batch.images[:, 0] > 0.2)
    assert not digits_module.erased("digit", PRIMARY, count=3).any()


@pytest.mark.parametrize(
    ("setting", "kept", "lost"), [("bottom", slice(0, 14), slice(14, 28)), ("top", slice(14, 28), slice(0, 14))]
)
def test_half_of_the_images_lack_their_half_and_the_rest_are_whole(setting, kept, lost):
    samples, plain = half_digits(setting, count=40), digits("digit", count=40).batch.images
    deleted = samples.labels == 1
    assert deleted.sum() == 20
    assert torch.equal(samples.batch.images[~deleted], plain[~deleted])
    assert torch.equal(samples.batch.images[deleted][:, :, kept], plain[deleted][:, :, kept])
    assert not samples.batch.images[deleted][:, :, lost].any()
    deciding, distracting = (samples.region(role, "ink") for role in (PRIMARY, SECONDARY))
    assert deciding[:, lost].all()
    assert distracting[:, kept].all()
    assert (deciding ^ distracting).all()
    assert torch.equal(samples.boxed, samples.objects)
    bare = half_module.erased(setting, PRIMARY, count=40)
    assert not bare[:, :, lost].any()
    assert torch.equal(bare[:, :, kept], samples.batch.images[:, :, kept])
    assert not half_module.erased(setting, SECONDARY, count=40)[:, :, kept].any()


def test_both_labellings_show_the_same_images_and_swap_the_roles():
    one, other = (shape_digits(setting, count=60) for setting in ("shape", "digit"))
    assert torch.equal(one.batch.images, other.batch.images)
    assert torch.equal(one.batch.seeds, other.batch.seeds)
    assert one.buckets == other.buckets
    assert one.labels.tolist() == [i // 10 % 3 for i in range(60)]
    assert other.labels.tolist() == [i % 10 for i in range(60)]
    there = kinds_of(one) != NOTHING
    assert torch.equal(one.region(PRIMARY, "ink")[there], other.region(SECONDARY, "ink")[there])
    assert torch.equal(one.region(SECONDARY, "ink"), other.region(PRIMARY, "ink"))
    assert (one.roles[~there] == torch.tensor([SECONDARY, ABSENT])).all()
    assert not one.region(PRIMARY, "ink")[~there].any()
    again = seen_as(one, "digit")
    assert torch.equal(again.labels, other.labels)
    assert torch.equal(again.batch.targets, other.labels)
    assert torch.equal(again.roles, other.roles)


def test_masks_share_nothing_and_what_both_cover_is_recorded():
    samples = shape_digits("shape", count=300)
    digit, shape = samples.objects.unbind(1)
    assert not (digit & shape).any()
    assert samples.unlabelled.any()
    assert not (samples.unlabelled & (digit | shape)).any()
    ink, shapes, _, _ = shape_module.layers("sklearn", "test", torch.arange(300), 0)
    assert torch.equal(samples.unlabelled, (ink > 0.2) & (shapes > 0.2))
    assert torch.equal(samples.batch.images[:, 0], torch.maximum(ink, shapes))
    there = kinds_of(samples) != NOTHING
    assert shape[there].flatten(1).any(1).all()  # none is hidden
    assert digit.flatten(1).any(1).all()


def test_rectangles_are_filled_with_sides_of_5_to_10_pixels_anywhere():
    _, shapes, _, _ = shape_module.layers("sklearn", "train", torch.arange(3000), 0)
    rectangles = shapes[torch.arange(3000) // 10 % 3 == RECTANGLE] > 0
    rows, columns = rectangles.any(2).sum(1), rectangles.any(1).sum(1)
    assert torch.equal(rectangles.sum((1, 2)), rows * columns)
    for side in (rows, columns):
        assert set(side.tolist()) == set(range(5, 11))
    assert rectangles.any(0).all()  # every pixel is covered now and then


def test_circles_are_empty_rings_of_radius_4_to_7():
    _, shapes, _, _ = shape_module.layers("sklearn", "train", torch.arange(3000), 0)
    circles = shapes[torch.arange(3000) // 10 % 3 == CIRCLE]
    assert circles.amax((1, 2)).min() > 0.9
    rows = (circles > 0.5).any(2).sum(1)
    assert rows.min() >= 8
    assert rows.max() <= 17
    span = torch.arange(28.0)
    mass = circles.sum((1, 2))
    centres = [(circles.sum(dim) * span).sum(1) / mass for dim in (2, 1)]
    inside = circles[torch.arange(len(circles)), centres[0].round().long(), centres[1].round().long()]
    assert not inside.any()
    radii = (rows - 1.5) / 2
    assert ((mass / (2 * torch.pi * radii)) - 1.5).abs().mean() < 0.2  # lines 1.5 pixels wide


def test_a_shape_that_would_hide_is_drawn_again_and_no_other():
    seeds = torch.arange(40)
    kinds = torch.full((40,), RECTANGLE)
    free = placed(kinds, seeds, torch.zeros(40, 28, 28, dtype=torch.bool).index_fill(2, torch.tensor([0]), True))
    thick = torch.zeros(40, 28, 28, dtype=torch.bool)
    thick[:, 4:24, 4:24] = True
    found = placed(kinds, seeds, thick)
    own = (found > 0.2) & ~thick
    assert own.flatten(1).any(1).all()
    same = (found == free).flatten(1).all(1)
    assert 0 < same.sum() < 40
    with pytest.raises(ValueError, match="still covers its digit or lies within it"):
        placed(kinds, seeds, torch.ones(40, 28, 28, dtype=torch.bool))


@pytest.mark.parametrize(
    ("setting", "role", "left"),
    [
        ("shape", PRIMARY, "digit"),
        ("shape", SECONDARY, "shape"),
        ("digit", PRIMARY, "shape"),
        ("digit", SECONDARY, "digit"),
    ],
)
def test_erasing_leaves_no_trace(setting, role, left):
    ink, shapes, _, _ = shape_module.layers("sklearn", "test", torch.arange(10, 40), 0)
    found = shape_module.erased(setting, role, count=30, start=10)
    assert torch.equal(found[:, 0], ink if left == "digit" else shapes)


@pytest.mark.parametrize(("task", "setting"), TASKS)
def test_a_source_without_digits_is_refused(task, setting, tmp_path):
    with pytest.raises(ValueError, match="no pictures of the test part"):
        task(setting, source=str(tmp_path))


def test_jitter_moves_each_digit_by_itself_and_nothing_else():
    still, moved = (shape_module.layers("sklearn", "train", torch.arange(300), 0, jitter) for jitter in (0, 2))
    torch.testing.assert_close(still[0].sum((1, 2)), moved[0].sum((1, 2)))  # they have a frame of 4 pixels
    assert torch.equal(still[3], moved[3])
    ways = set()
    for one, other in zip(still[0], moved[0], strict=True):
        found = [(y, x) for y in range(-2, 3) for x in range(-2, 3) if torch.equal(one.roll((y, x), (0, 1)), other)]
        assert found
        ways.add(found[0])
    assert len(ways) == 25
    assert not torch.equal(digits("digit", count=10, jitter=1).batch.images, digits("digit", count=10).batch.images)
    bottom = half_digits("bottom", count=40, jitter=2)
    assert not bottom.batch.images[bottom.labels == 1][:, :, 14:].any()


def test_dimmed_digits_keep_their_shapes_masks_and_labels():
    plain, dimmed = (shape_digits("shape", count=60, split="train", faintest=least) for least in (1.0, 0.3))
    assert torch.equal(plain.labels, dimmed.labels)
    assert torch.equal(plain.objects, dimmed.objects)
    one, other = plain.batch.images[:, 0], dimmed.batch.images[:, 0]
    digit, shape = plain.objects.unbind(1)
    assert torch.equal(one[shape], other[shape])  # the shape's ink is left alone
    shares = torch.stack([b[own].sum() / a[own].sum() for a, b, own in zip(one, other, digit, strict=True)])
    assert shares.min() >= 0.3
    assert shares.max() <= 1
    assert shares.std() > 0.1  # each digit has its own
    again = shape_digits("shape", count=5, start=40, split="train", faintest=0.3)
    assert torch.equal(again.batch.images[:, 0], other[40:45])
