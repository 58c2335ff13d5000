"""Segments: pieces follow colour, are counted from 0, and are cut once for each image."""

import pytest
import torch
from torch import Tensor

from saliometer.methods import _segments
from saliometer.methods._segments import felzenszwalb, grid, members, quickshift


@pytest.fixture(autouse=True)
def _forgetful():
    _segments._known.clear()


def quarters(channels: int = 3, side: int = 32) -> Tensor:
    """(1, C, side, side): four squares of different colour."""
    image = torch.zeros(1, channels, side, side)
    half = side // 2
    image[..., :half, half:], image[..., half:, :half], image[..., half:, half:] = 0.3, 0.6, 1.0
    return image


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_no_piece_of_quickshift_goes_across_an_edge(channels):
    image = quarters(channels)
    labels = quickshift(image)
    assert labels.shape == (1, 32, 32)
    assert labels.dtype == torch.int64
    for label in range(int(labels.max()) + 1):
        colours = image[0, 0][labels[0] == label]
        assert len(colours)  # counted from 0 without gaps
        assert len(colours.unique()) == 1


@pytest.mark.parametrize("channels", [1, 3, 5])
@pytest.mark.parametrize("side", [32, 64])
def test_felzenszwalb_makes_a_piece_of_each_square(channels, side):
    """It smooths first, so the pixels by the edges may be pieces of their own."""
    labels = felzenszwalb(quarters(channels), side=side, min_size=side)
    assert labels.shape == (1, 6, 32, 32)
    assert labels.dtype == torch.int64
    for scale in labels[0, :3]:
        inner = [scale[rows][:, columns].unique() for rows in (slice(0, 10), slice(22, 32))
                 for columns in (slice(0, 10), slice(22, 32))]  # fmt: skip
        assert [len(labels) for labels in inner] == [1] * 4
        assert len(torch.cat(inner).unique()) == 4
        assert scale.unique().tolist() == list(range(int(scale.max()) + 1))


def test_large_scales_of_felzenszwalb_give_fewer_pieces():
    image = torch.rand(2, 3, 32, 32, generator=torch.Generator().manual_seed(0))
    labels = felzenszwalb(image, side=64, min_size=4)
    assert labels.shape == (2, 6, 32, 32)
    counts = labels.amax((2, 3)) + 1
    assert (counts[:, 0] > 2 * counts[:, -1]).all()


def test_pieces_are_those_of_scikit_image_on_the_resized_picture_brought_back_by_nearest():
    """scikit-image 0.26: cubic on the way to the square, order 0 on the way back; labels are counted anew."""
    from skimage import segmentation, transform

    image = torch.rand(1, 3, 20, 30, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    picture = image[0].permute(1, 2, 0).numpy()
    picture = 2 * (picture - picture.min()) / (picture.max() - picture.min()) - 1
    pieces = segmentation.felzenszwalb(transform.resize(picture, (70, 70), order=3), scale=100, min_size=9)
    back = transform.resize(pieces, (20, 30), order=0, preserve_range=True, anti_aliasing=False)
    wanted = torch.from_numpy(back.round()).unique(return_inverse=True)[1]
    found = felzenszwalb(image, scales=(100,), min_size=9, side=70)[0, 0]
    assert wanted.max() > 10
    assert torch.equal(found, wanted)


def test_values_are_stretched_before_felzenszwalb_cuts():
    image = torch.rand(1, 3, 24, 24, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert torch.equal(felzenszwalb(image, side=48), felzenszwalb(0.25 * image + 0.5, side=48))


@pytest.mark.parametrize("colour", [[0.5, 0.5, 0.5], [0.1, 0.9, 0.4]])
def test_a_constant_image_is_one_piece(colour):
    image = torch.tensor(colour).view(1, 3, 1, 1).expand(2, 3, 40, 40)
    assert quickshift(image).unique().tolist() == [0]
    assert felzenszwalb(image, side=40).unique().tolist() == [0]


def test_quickshift_is_the_same_whatever_the_neighbours_and_the_moment():
    images = torch.rand(3, 3, 24, 24, generator=torch.Generator().manual_seed(0))
    together = quickshift(images, max_dist=10)
    _segments._known.clear()
    assert torch.equal(together, torch.cat([quickshift(images[i : i + 1], max_dist=10) for i in range(3)]))
    assert not torch.equal(together[0], together[1])


def test_an_image_is_cut_once_for_the_same_parameters(monkeypatch):
    from skimage import segmentation

    calls = []
    real = segmentation.quickshift
    monkeypatch.setattr(segmentation, "quickshift", lambda *a, **k: calls.append(1) or real(*a, **k))
    images = quarters()
    first = quickshift(images)
    assert torch.equal(quickshift(images.clone()), first)
    assert len(calls) == 1
    quickshift(images, ratio=0.5)
    quickshift(images, seed=1)
    quickshift(1 - images)
    assert len(calls) == 4
    first += 1  # the caller's own copy
    assert torch.equal(quickshift(images), first - 1)


def test_what_is_remembered_is_bounded(monkeypatch):
    monkeypatch.setattr(_segments, "KEPT", 2)
    images = torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0))
    quickshift(images)
    assert len(_segments._known) == 2


def test_a_grid_has_even_cells_and_no_empty_ones():
    labels = grid(torch.zeros(2, 3, 4, 6), 2)
    assert labels.shape == (2, 4, 6)
    assert labels[1].tolist() == [[0, 0, 0, 1, 1, 1]] * 2 + [[2, 2, 2, 3, 3, 3]] * 2
    assert grid(torch.zeros(1, 1, 1, 3), 2).tolist() == [[[0, 0, 1]]]
    assert grid(torch.zeros(1, 1, 2, 2), 9).tolist() == [[[0, 1], [2, 3]]]
    with pytest.raises(ValueError, match="grid: cells=0, wanted 1 or more"):
        grid(torch.zeros(1, 1, 2, 2), 0)


def test_members_are_the_pixels_of_each_piece():
    labels = torch.tensor([[[0, 1], [1, 1]]])
    assert members(labels).int().tolist() == [[[[1, 0], [0, 0]], [[0, 1], [1, 1]]]]
    assert members(labels, 3).shape == (1, 3, 2, 2)
