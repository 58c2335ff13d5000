"""Transforms: nothing where nothing is asked, exact where pixels fall on pixels, partners of other classes."""

import pytest
import torch
from torch import Tensor
from torchvision.transforms import InterpolationMode
from torchvision.transforms import functional as theirs

from saliometer.transforms import TRANSFORMS, VARIATIONS, parsed, partners, transformed


def pictures(count: int = 4, height: int = 16, width: int = 16) -> Tensor:
    return torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(0))


LABELS = torch.tensor([0, 1, 0, 2])


def under(text: str, pixels: Tensor, seed: int = 0) -> Tensor:
    return transformed(text, pixels, LABELS[: len(pixels)], seed)


@pytest.mark.parametrize(
    "text", ["mixup(weight=1.0)", "resize(side=16)", "rotation(degrees=0)", "rotation(degrees=360)", "crop(area=1.0)"]
)
def test_nothing_changes_where_nothing_is_asked(text):
    assert torch.equal(under(text, pictures()), pictures())


@pytest.mark.parametrize("text", [text for four in VARIATIONS.values() for text in four])
def test_size_and_range_are_kept_and_something_changes(text):
    pixels = pictures(height=130, width=140) if text.startswith("resize") else pictures()
    found = under(text, pixels)
    assert found.shape == pixels.shape
    assert found.min() >= -1e-6
    assert found.max() <= 1 + 1e-6
    assert not torch.allclose(found, pixels)


def test_every_transform_of_the_table_comes_in_four_variations():
    assert set(VARIATIONS) == set(TRANSFORMS)
    assert {len(set(four)) for four in VARIATIONS.values()} == {4}


# Rotation


def test_quarter_turns_are_exact_and_counter_clockwise():
    pixels = pictures()
    assert torch.equal(under("rotation(degrees=90)", pixels), pixels.transpose(2, 3).flip(2))
    assert torch.equal(under("rotation(degrees=180)", pixels), pixels.flip((2, 3)))
    assert torch.equal(under("rotation(degrees=270)", pixels), under("rotation(degrees=-90)", pixels))
    four = pixels
    for _ in range(4):
        four = under("rotation(degrees=90)", four)
    assert torch.equal(four, pixels)


@pytest.mark.parametrize("size", [(16, 16), (17, 17), (14, 20)])
@pytest.mark.parametrize("degrees", [45, 135, 30.5, 90, -20])
def test_other_angles_are_torchvisions(size, degrees):
    pixels = pictures(2, *size)
    wanted = theirs.rotate(pixels, degrees, InterpolationMode.BILINEAR)
    torch.testing.assert_close(under(f"rotation(degrees={degrees})", pixels), wanted, rtol=0, atol=2e-5)


def test_the_interpolated_turn_agrees_with_the_exact_one():
    pixels = pictures()
    torch.testing.assert_close(
        under("rotation(degrees=90.000001)", pixels), under("rotation(degrees=90)", pixels), rtol=0, atol=1e-4
    )


def test_corners_are_black_or_reflected():
    white = torch.ones(1, 3, 16, 16)
    assert under("rotation(degrees=45)", white)[0, :, 0, 0].eq(0).all()
    torch.testing.assert_close(under("rotation(degrees=45,border=reflect)", white), white)


# Resize and crop


def test_resize_is_down_and_up_as_torchvision_does_it():
    pixels = pictures(height=64, width=64)
    small = theirs.resize(pixels, [16], antialias=True)
    torch.testing.assert_close(under("resize(side=16)", pixels), theirs.resize(small, [64, 64], antialias=True))


def test_one_pixel_is_left_of_a_picture_of_one_colour():
    pixels = torch.full((2, 3, 16, 16), 0.25)
    for text in ("resize(side=1)", "crop(area=0.25)"):
        torch.testing.assert_close(under(text, pixels), pixels)


def test_a_crop_keeps_the_centre_of_that_area():
    pixels = torch.zeros(1, 3, 16, 16)
    pixels[..., 4:12, 4:12] = 1.0  # a quarter of the area
    torch.testing.assert_close(under("crop(area=0.25)", pixels), torch.ones_like(pixels))
    wanted = theirs.resize(theirs.center_crop(pictures(), [8, 8]), [16, 16], antialias=True)
    torch.testing.assert_close(under("crop(area=0.25)", pictures()), wanted)


# MixUp


def test_a_blend_is_weighed_and_its_partner_of_another_class():
    pixels = pictures()
    chosen = partners(LABELS, 3)
    found = under("mixup(weight=0.7)", pixels, seed=3)
    torch.testing.assert_close(found, 0.7 * pixels + 0.3 * pixels[chosen])
    assert (LABELS[chosen] != LABELS).all()


@pytest.mark.parametrize("seed", range(5))
def test_partners_are_a_derangement_between_classes(seed):
    draw = torch.Generator().manual_seed(seed)
    labels = torch.cat((torch.full((30,), 7), torch.randint(0, 5, (30 + seed,), generator=draw)))
    labels = labels[torch.randperm(len(labels), generator=draw)]
    chosen = partners(labels, seed)
    assert (labels[chosen] != labels).all()
    assert torch.equal(chosen.sort().values, torch.arange(len(labels)))
    assert torch.equal(chosen, partners(labels, seed))


def test_partners_are_drawn_by_seed():
    labels = torch.arange(50) % 10
    assert len({tuple(partners(labels, seed).tolist()) for seed in range(5)}) == 5


def test_partners_of_one_class_are_refused():
    with pytest.raises(ValueError, match="3 of 4 pictures are of one class"):
        partners(torch.tensor([1, 1, 1, 0]), 0)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("rotate(degrees=3)", "Did you mean 'rotation'"),
        ("crop(share=0.3)", "no parameter 'share'"),
        ("crop(area=0.0)", "wanted more than 0"),
        ("mixup(weight=0.2)", r"wanted 0\.5 to 1"),
        ("resize(side=17)", "wanted 1 to 16 pixels"),
        ("resize(side=3.5)", "is float, wanted int"),
        ("rotation(border=white)", "no border 'white'"),
    ],
)
def test_bad_words_are_refused(text, words):
    with pytest.raises((ValueError, LookupError), match=words):
        under(text, pictures())


def test_parsed_gives_the_parameters():
    entry, given = parsed("crop(area=0.4)")
    assert (entry.name, given, entry.parameters) == ("crop", {"area": 0.4}, {"area": 0.8})
