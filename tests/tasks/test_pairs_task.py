"""Pairs: tiles side by side, either group's labels on the same images, and tiles that are erased or enlarged."""

import hashlib

import numpy as np
import pytest
import torch

from saliometer.tasks._bank import bank
from saliometer.tasks.pairs import erased, pairs, seen_as
from saliometer.types import PRIMARY, SECONDARY

DIGEST = "4f932921a7dd2dc7"  # golden


def levels(place) -> str:
    """A source whose pictures say their class: 8x8, class c has the grey 20 c, its second picture one more."""
    place.mkdir()
    labels = np.repeat(np.arange(10), 2)
    x = np.repeat((20 * labels + np.arange(20) % 2).astype(np.uint8), 64).reshape(20, 8, 8)
    for split in ("train", "test"):
        np.savez(place / f"{split}.npz", x=x, y=labels)
    return str(place)


def test_tiles_are_of_both_groups_and_labels_say_which(tmp_path):
    source = levels(tmp_path / "levels")
    samples = pairs("first", count=100, source=source)
    assert samples.batch.images.shape == (100, 1, 8, 16)
    shown = (samples.batch.images * 255).round().long() // 20  # the class of every pixel
    first, second = (shown[:, 0].masked_select(samples.objects[:, k]).view(100, -1) for k in (0, 1))
    assert torch.equal(first, samples.labels[:, None].expand(-1, 64))
    assert torch.equal(second, seen_as(samples, "second").labels[:, None].expand(-1, 64) + 5)
    assert torch.equal(samples.boxed, samples.objects)
    assert (samples.objects.sum((2, 3)) == 64).all()
    assert len(set(samples.buckets)) == 50
    assert samples.objects[:, 0, 0, 0].sum() == 50  # half of the first group's tiles are on the left


def test_both_labellings_show_the_same_images_and_swap_the_roles():
    one, other = (pairs(setting, count=50) for setting in ("first", "second"))
    assert torch.equal(one.batch.images, other.batch.images)
    assert torch.equal(one.region(PRIMARY, "ink"), other.region(SECONDARY, "ink"))
    assert one.labels.bincount().tolist() == other.labels.bincount().tolist() == [10] * 5
    assert not torch.equal(one.labels, other.labels)
    again = seen_as(one, "second")
    assert torch.equal(again.labels, other.labels)
    assert torch.equal(again.roles, other.roles)


def test_a_pair_is_the_same_alone_and_in_any_part_of_a_stream():
    whole, part = pairs("first", count=70, split="train"), pairs("first", count=9, start=52, split="train")
    assert torch.equal(whole.batch.images[52:61], part.batch.images)
    assert torch.equal(whole.labels[52:61], part.labels)
    assert whole.buckets[52:61] == part.buckets


def test_streams_of_pairs_never_change():
    images = (pairs("first", count=60).batch.images * 255).round().to(torch.uint8)
    assert hashlib.sha256(images.numpy().tobytes()).hexdigest()[:16] == DIGEST


def test_pictures_vary_and_those_of_training_are_not_shown_in_tests():
    def tiles(split: str) -> set[bytes]:
        images = pairs("first", count=300, split=split).batch.images
        return {one.numpy().tobytes() for one in torch.cat(images.split(28, 3)).contiguous()}

    train, test = tiles("train"), tiles("test")
    assert len(test) > 150
    assert not train & test


def test_an_erased_tile_has_the_training_mean_and_the_other_is_untouched():
    samples = pairs("second", count=20, split="test")
    mean = bank("sklearn", "train").pixels.double().mean().item() / 255
    for role, other in ((PRIMARY, SECONDARY), (SECONDARY, PRIMARY)):
        bare = erased("second", role, count=20, split="test")[:, 0]
        assert bare[samples.region(role, "ink")].unique().tolist() == pytest.approx([mean])
        kept = samples.region(other, "ink")
        assert torch.equal(bare[kept], samples.batch.images[:, 0][kept])


def test_tiles_are_enlarged_each_by_itself(tmp_path):
    samples = pairs("first", count=20, source=levels(tmp_path / "levels"), side=14)
    assert samples.batch.images.shape == (20, 1, 14, 28)
    left, right = samples.batch.images.split(14, 3)
    assert all(tile.max() - tile.min() < 1e-6 for tile in (*left, *right))  # no bleeding over the edge
    assert (samples.objects.sum((2, 3)) == 14 * 14).all()
