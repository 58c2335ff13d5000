"""The list of pairs: 48 of data for each image, by its seed alone."""

import pytest
import torch

from cose_toys import pictures
from saliometer.cose.operations import OPERATIONS
from saliometer.cose.pairs import data_pairs

SEEDS = torch.tensor([11, 22, 33, 44, 55])


def listed(pairs) -> list[tuple[str, list[int]]]:
    return [(pair.name, pair.bins.tolist()) for pair in pairs]


def test_twenty_geometric_and_twenty_eight_photometric_pairs():
    pairs = data_pairs(SEEDS)
    assert len(pairs) == 48
    assert sum(pair.geometric for pair in pairs) == 20


def test_magnitudes_are_drawn_without_replacement_from_sixty_and_never_zero():
    seeds = torch.arange(2000)
    for name, operation in OPERATIONS.items():
        bins = torch.stack([pair.bins for pair in data_pairs(seeds, [name])], 1)
        if not operation.most:
            assert bins.shape == (2000, 1)
            assert not bool(bins.any())
            continue
        assert bins.shape == (2000, 6)
        assert all(len(set(row)) == 6 for row in bins.tolist())
        counts = torch.bincount(bins.flatten() + 30, minlength=61)
        assert int(counts[30]) == 0
        drawn = counts[torch.arange(61) != 30]
        assert int(drawn.min()) > 140  # 200 each, standard deviation 13.4
        assert int(drawn.max()) < 260


def test_the_list_depends_on_the_images_own_seed_alone():
    together = listed(data_pairs(SEEDS))
    for place in range(len(SEEDS)):
        alone = listed(data_pairs(SEEDS[place : place + 1]))
        assert alone == [(name, bins[place : place + 1]) for name, bins in together]
    assert listed(data_pairs(SEEDS + 1)) != together


def test_a_subset_of_operations_or_magnitudes_is_a_subset_of_the_pairs():
    every = listed(data_pairs(SEEDS))
    some = listed(data_pairs(SEEDS, ["rotate", "blur"], magnitudes=2))
    assert len(some) == 3
    assert all(pair in every for pair in some)


def test_operations_do_not_share_their_draws():
    rotate, contrast = (torch.stack([p.bins for p in data_pairs(SEEDS, [name])]) for name in ("rotate", "contrast"))
    assert not torch.equal(rotate, contrast)


def test_a_pair_transforms_each_image_and_says_how():
    (pair,) = data_pairs(SEEDS, ["rotate"], magnitudes=1)
    images = pictures(5, 3, 20, 20)
    assert pair.images(images).shape == images.shape
    assert pair.labels(images.shape)[0] == OPERATIONS["rotate"].label(int(pair.bins[0]), images.shape)


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_pair_works_where_the_images_are_and_never_waits_for_a_value_of_theirs(name):
    """On the device without memory: nothing can be read from it, and what lies elsewhere does not mix with it."""
    pixels = torch.empty(len(SEEDS), 3, 20, 21, dtype=torch.uint8, device="meta")
    maps = torch.empty(len(SEEDS), 20, 21, device="meta")
    (pair,) = data_pairs(SEEDS, [name], magnitudes=1)
    found = pair.images(pixels), pair.undone(maps), pair.valid(maps), pair.valid(maps, partly=True)
    assert {some.device.type for some in found if some is not None} == {"meta"}
    assert found[0].shape == pixels.shape
    assert found[1].shape == maps.shape


def test_bad_requests_are_refused():
    with pytest.raises(LookupError, match="Did you mean 'rotate'"):
        data_pairs(SEEDS, ["rotat"])
    with pytest.raises(ValueError, match="magnitudes=61, wanted 1 to 60"):
        data_pairs(SEEDS, magnitudes=61)
