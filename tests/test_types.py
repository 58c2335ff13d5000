"""The values that pass between stages: regions of objects, parts of a batch, pixels of a model."""

from dataclasses import replace

import torch

from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY, whole
from toys import fixture_l, model_of, noise_batch, samples_of

TWO = samples_of(
    boxes=[[[1, 3, 2, 6], [4, 8, 0, 1], [0, 0, 0, 0]], [[0, 1, 0, 1], [7, 8, 7, 8], [0, 2, 0, 2]]],
    roles=[[PRIMARY, SECONDARY, ABSENT], [PRIMARY, NEITHER, PRIMARY]],
)


def test_a_box_is_filled_half_open_and_an_absent_one_is_empty():
    filled = TWO.boxed
    wanted = torch.zeros(2, 3, 8, 8, dtype=torch.bool)
    wanted[0, 0, 1:3, 2:6] = True
    wanted[0, 1, 4:8, 0:1] = True
    wanted[1, 0, 0, 0] = True
    wanted[1, 1, 7, 7] = True
    wanted[1, 2, :2, :2] = True
    assert torch.equal(filled, wanted)


def test_a_region_is_the_union_of_the_objects_of_one_role():
    assert TWO.region(PRIMARY, "box").sum((1, 2)).tolist() == [8, 4]  # the 1x1 box lies in the 2x2 one
    assert TWO.region(SECONDARY, "box").sum((1, 2)).tolist() == [4, 0]
    assert TWO.region(NEITHER, "box").sum((1, 2)).tolist() == [0, 1]


def test_the_parts_of_a_role_keep_objects_apart():
    parts = TWO.parts(PRIMARY, "box")
    assert parts.sum((2, 3)).tolist() == [[8, 0, 0], [1, 0, 4]]
    assert TWO.parts(SECONDARY, "ink").sum((2, 3)).tolist() == [[0, 4, 0], [0, 0, 0]]


def test_other_roles_make_other_regions():
    """Regions are kept once made: a copy with other roles must not see them."""
    assert TWO.region(PRIMARY, "box").sum() == 12
    swapped = replace(TWO, roles=torch.full_like(TWO.roles, SECONDARY))
    assert swapped.region(PRIMARY, "box").sum() == 0
    assert swapped.region(SECONDARY, "box").sum() == 8 + 4 + 4 + 1


def test_region_ink_counts_the_pixels_drawn_and_not_the_box():
    ink = torch.zeros(1, 1, 8, 8, dtype=torch.bool)
    ink[0, 0, 2, 2:5] = True
    samples = samples_of([[[0, 4, 0, 6]]], [[PRIMARY]], ink=ink)
    assert samples.region(PRIMARY, "box").sum() == 24
    assert torch.equal(samples.region(PRIMARY, "ink"), ink[:, 0])


def test_a_part_of_a_batch_keeps_image_target_and_seed_together():
    batch = noise_batch(5)
    part = batch[1:3]
    assert len(part) == 2
    assert torch.equal(part.images, batch.images[1:3])
    assert part.targets.tolist() == [1, 2]
    assert part.seeds.tolist() == [101, 102]


def test_explaining_sets_the_targets_and_leaves_the_labels():
    explained = TWO.explaining(torch.tensor([1, 1]))
    assert explained.batch.targets.tolist() == [1, 1]
    assert explained.labels.tolist() == TWO.batch.targets.tolist() == [0, 0]
    assert explained.ids == TWO.ids


def test_a_models_input_goes_back_to_pixels_channel_by_channel():
    model = model_of(fixture_l(), mean=(0.5, 0.25, 0.0), std=(0.5, 0.25, 2.0))
    pixels = torch.rand(2, 3, 4, 4)
    shift, scale = torch.tensor([0.5, 0.25, 0.0]), torch.tensor([0.5, 0.25, 2.0])
    inputs = (pixels - shift[None, :, None, None]) / scale[None, :, None, None]
    torch.testing.assert_close(model.pixels(inputs), pixels)


def test_a_model_without_mean_and_std_takes_pixels():
    pixels = torch.rand(2, 3, 4, 4)
    assert torch.equal(model_of(fixture_l()).pixels(pixels), pixels)


def test_the_default_take_is_the_gradient_itself():
    gradient = torch.rand(2, 3)
    assert whole(5, gradient) is gradient
