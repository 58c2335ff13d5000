"""Handmade networks: exact on every image, and blind to all but the two objects."""

import pytest
import torch
from torch.nn import functional as F

from saliometer.engine.handmade import load
from saliometer.tasks.handmade import SHAPES, TASK, handmade
from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY

MANY = 800
LABELS = {  # cross, ring -> label
    "and": {(0, 0): 0, (1, 0): 0, (0, 1): 0, (1, 1): 1},
    "or": {(0, 0): 0, (1, 0): 1, (0, 1): 1, (1, 1): 1},
    "xor": {(0, 0): 0, (1, 0): 1, (0, 1): 1, (1, 1): 0},
}
SETTINGS = list(LABELS)


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_bucket_s_label_and_roles_are_those_of_the_rule(setting):
    samples = handmade(setting, count=8)
    for label, (cross, ring, disc) in zip(samples.labels.tolist(), samples.roles.tolist(), strict=True):
        there = int(cross != ABSENT), int(ring != ABSENT)
        assert label == LABELS[setting][there]
        assert disc in (SECONDARY, ABSENT)
        lone = NEITHER if setting == "and" else PRIMARY
        wanted = PRIMARY if sum(there) == 2 else lone
        assert [part for part in (cross, ring) if part != ABSENT] == [wanted] * sum(there)
    assert len(set(samples.buckets)) == 8


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_network_is_exact_on_every_image(setting, seed):
    """Not one wrong, and the logits are +-4 to the bit, whatever lies beside the objects."""
    net = load(setting).net
    for start in range(0, MANY, 200):
        samples = handmade(setting, count=200, start=start, seed=seed)
        logits = net(samples.batch.images)
        assert torch.equal(logits.argmax(1), samples.labels)
        assert torch.equal(logits[:, 1], 8.0 * samples.labels - 4.0)
        assert torch.equal(logits[:, 0], -logits[:, 1])


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_other_pixel_moves_the_logits(setting):
    """Noise is drawn anew over the whole range it can take and the disc at any brightness: not a bit changes."""
    samples, net = handmade(setting, count=160), load(setting).net
    before = net(samples.batch.images)
    rng = torch.Generator().manual_seed(0)
    cross, ring, disc = samples.objects.unbind(1)
    for _ in range(5):
        noise = torch.rand(samples.batch.images.shape, generator=rng)
        images = torch.where((cross | ring)[:, None], samples.batch.images, 0.5 * noise)
        images = torch.where(disc[:, None], noise, images)
        assert not torch.equal(images, samples.batch.images)
        assert torch.equal(net(images), before)


@pytest.mark.parametrize("setting", ["and", "xor"])
def test_every_pixel_of_the_objects_that_decide_moves_them(setting):
    """One pixel of a cross or ring made dark takes it out of the picture."""
    samples, net = handmade(setting, count=8), load(setting).net
    place = next(i for i, roles in enumerate(samples.roles.tolist()) if roles[:2] == [PRIMARY, PRIMARY])
    image, ink = samples.batch.images[place], samples.objects[place, :2].any(0).nonzero()
    copies = image.repeat(len(ink), 1, 1, 1)
    copies[torch.arange(len(ink)), :, ink[:, 0], ink[:, 1]] = 0.2
    flipped = net(copies).argmax(1) != samples.labels[place]
    assert len(ink) == int(SHAPES["cross"].sum() + SHAPES["ring"].sum())
    assert flipped.all()


def test_the_gradient_lies_on_the_objects_alone():
    samples, net = handmade("xor", count=80), load("xor").net
    images = samples.batch.images.requires_grad_()
    gradient = torch.autograd.grad(net(images)[:, 1].sum(), images)[0].abs().sum(1)
    assert torch.equal(gradient > 0, samples.region(PRIMARY, "ink"))


@pytest.mark.parametrize(("one", "other"), [(a, b) for a in ("cross", "ring") for b in SHAPES if a != b])
def test_no_shape_holds_another_at_any_shift(one, other):
    """With objects a pixel apart, a found shape lies within one object, for its pixels hang together."""
    counted = F.conv2d(F.pad(SHAPES[other][None, None], [9] * 4), SHAPES[one][None, None])
    assert counted.max() < SHAPES[one].sum()


@pytest.mark.parametrize("name", ["cross", "ring"])
def test_the_pixels_of_a_shape_hang_together(name):
    reached = torch.zeros(9, 9, dtype=torch.bool)
    reached.view(-1)[int(SHAPES[name].flatten().nonzero()[0])] = True
    for _ in range(81):
        grown = F.max_pool2d(reached.float()[None, None], 3, 1, 1)[0, 0] > 0
        reached = grown & (SHAPES[name] > 0)
    assert torch.equal(reached, SHAPES[name] > 0)


def test_objects_keep_a_pixel_apart():
    samples = TASK.samples("xor", count=400)
    grown = F.max_pool2d(samples.objects.float(), 3, 1, 1) > 0
    for one in range(3):
        others = torch.cat((samples.objects[:, :one], samples.objects[:, one + 1 :]), 1).any(1)
        assert not (grown[:, one] & others).any()


def test_the_noise_is_darker_than_a_half():
    samples = handmade("and", count=40)
    behind = samples.batch.images.where(~samples.objects.any(1, keepdim=True), 0)
    assert 0.45 < behind.max() < 0.5
    assert behind.std() > 0.1
