"""Maps laid back over their images: exact but for turns, and those as scikit-image has them."""

import numpy as np
import pytest
import torch
from scipy.ndimage import binary_erosion
from skimage.transform import rotate

from cose_toys import pictures
from saliometer.cose.inverse import eroded, turned_back, undone, validity
from saliometer.cose.operations import OPERATIONS, ROTATE, applied, turned

TRIED = torch.tensor([-30, -21, -20, -5, -1, 1, 8, 20, 30])
GEOMETRIC = ["flip_lr", "flip_ud", "translate_x", "translate_y", "rotate"]


def maps(side: int = 40, width: int = 0, count: int = len(TRIED)) -> torch.Tensor:
    return pictures(count, 1, side, width or side)[:, 0].double() / 255


@pytest.mark.parametrize("name", ["flip_lr", "flip_ud", "translate_x", "translate_y"])
@pytest.mark.parametrize(("height", "width"), [(40, 40), (41, 33)])
def test_there_and_back_is_the_same_wherever_it_is_valid(name, height, width):
    images = pictures(len(TRIED), 1, height, width)
    there = applied(name, images, TRIED if OPERATIONS[name].most else TRIED * 0)[:, 0].double()
    back = undone(name, there, TRIED)
    valid = validity(name, TRIED, back)
    wanted = images[:, 0].double()
    if valid is None:
        assert torch.equal(back, wanted)
        return
    assert torch.equal(back[valid], wanted[valid])
    assert bool((back[~valid] == 0).all())
    assert 0.84 < float(valid.double().mean()) < 1


@pytest.mark.parametrize("number", [20, -20])
@pytest.mark.parametrize("side", [41, 48, 224])
def test_a_right_angle_and_back_is_exactly_the_same(number, side):
    """In single precision too: a 0 that became 1e-7 would break its ties with other zeros, and move Spearman's rho."""
    images = pictures(1, 1, side, side).float()
    images = images.where(images > images.mean(), 0.0)
    bins = torch.tensor([number])
    assert torch.equal(undone("rotate", turned(images, bins)[:, 0], bins), images[:, 0])
    valid = validity("rotate", bins, images[:, 0])
    assert valid is not None
    assert bool(valid.all())


@pytest.mark.parametrize(("height", "width"), [(40, 40), (41, 41), (40, 57)])
def test_turning_back_is_scikit_images_bilinear_turn(height, width):
    some = maps(height, width)
    found = turned_back(some, TRIED)
    for one, number, ours in zip(some, TRIED.tolist(), found, strict=True):
        theirs = rotate(one.numpy(), -ROTATE.magnitude(number), order=1, mode="constant", cval=0, clip=False)
        assert np.abs(ours.numpy() - theirs).max() < 1e-6, number


@pytest.mark.parametrize(
    ("number", "share", "after"), [(1, 0.968, 0.951), (5, 0.871, 0.851), (10, 0.834, 0.814), (30, 0.834, 0.814)]
)
def test_a_turn_keeps_the_share_of_pixels_that_the_authors_code_keeps(number, share, after):
    valid = validity("rotate", torch.tensor([number, -number]), torch.zeros(2, 224, 224), partly=True)
    assert valid is not None
    assert valid.float().mean((1, 2)).tolist() == pytest.approx([share] * 2, abs=1e-3)
    assert eroded(valid).float().mean((1, 2)).tolist() == pytest.approx([after] * 2, abs=1e-3)


def test_unless_asked_no_pixel_counts_that_a_turn_fills_in_part():
    flat = torch.full((len(TRIED), 60, 61), 0.7)
    back = undone("rotate", turned(flat[:, None], TRIED)[:, 0], TRIED)
    whole, partly = (validity("rotate", TRIED, flat, partly=partly) for partly in (False, True))
    assert whole is not None
    assert partly is not None
    torch.testing.assert_close(back[whole], flat[whole], atol=1e-4, rtol=0)
    assert bool((whole <= partly).all())
    assert float(back[partly].min()) < 0.1
    assert float(whole.float().mean()) > 0.78


def test_a_translation_keeps_six_sevenths():
    valid = validity("translate_x", torch.tensor([30]), torch.zeros(1, 224, 224))
    assert valid is not None
    assert float(valid.float().mean()) == pytest.approx(192 / 224)
    assert float(eroded(valid).float().mean()) == pytest.approx(190 / 224)  # 0.848


def test_erosion_is_scipys_with_the_outside_valid():
    valid = torch.rand(3, 30, 31, generator=torch.Generator().manual_seed(0)) > 0.02
    for one, ours in zip(valid, eroded(valid), strict=True):
        wanted = binary_erosion(one.numpy(), np.ones((5, 5)), border_value=1)
        assert np.array_equal(ours.numpy(), wanted)


@pytest.mark.parametrize("name", sorted(set(OPERATIONS) - set(GEOMETRIC)))
def test_photometric_operations_leave_maps_where_they_are(name):
    some = maps()
    assert undone(name, some, TRIED) is some
    assert validity(name, TRIED, some) is None
