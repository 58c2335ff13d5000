"""How alike maps are: against scipy and scikit-image, map by map."""

import numpy as np
import pytest
import torch
from scipy import stats
from skimage.feature import hog as their_hog
from skimage.metrics import structural_similarity
from torch import Tensor

from saliometer.sanity.similarity import (
    SIMILARITIES,
    cell_for,
    clipped,
    gaussian_ssim,
    hog,
    hog_similarity,
    second_moment,
    similarity,
    spearman,
    spread,
    ssim,
)
from saliometer.seeds import normal, uniform


def maps(purpose: str, count: int = 3, channels: int = 3, side: int = 56) -> Tensor:
    """Noise that is smooth here and there, signed."""
    found = normal(torch.arange(count), purpose, torch.zeros(count, channels, side, side))
    return found.cumsum(-1) * 0.1 + found


def alike(one: Tensor, share: float = 0.5) -> Tensor:
    return share * one + (1 - share) * maps("other", *one.shape[:2], one.shape[-1])


@pytest.mark.parametrize("absolute", [True, False])
def test_spearman_is_scipys_of_summed_channels(absolute):
    one, other = maps("a"), alike(maps("a"))
    read = (lambda m: m.abs().sum(1)) if absolute else (lambda m: m.sum(1))
    wanted = [stats.spearmanr(a.flatten(), b.flatten())[0] for a, b in zip(read(one), read(other), strict=True)]
    assert spearman(one, other, absolute=absolute).tolist() == pytest.approx(wanted, abs=1e-9)


def test_spearman_counts_valid_pixels_alone():
    one, other = maps("a"), alike(maps("a"))
    valid = uniform(torch.arange(3), "valid", 56, 56) > 0.6
    found = spearman(one, other, absolute=False, valid=valid)
    for a, b, inside, value in zip(one.sum(1), other.sum(1), valid, found, strict=True):
        assert float(value) == pytest.approx(stats.spearmanr(a[inside], b[inside])[0], abs=1e-9)


@pytest.mark.parametrize("channels", [1, 3])
def test_ssim_is_scikit_images_with_gaussian_weights(channels):
    one, other = maps("a", channels=channels), alike(maps("a", channels=channels), 0.8)
    wanted = [
        structural_similarity(a.numpy(), b.numpy(), gaussian_weights=True, channel_axis=0, data_range=1.0)
        for a, b in zip(spread(one).double(), spread(other).double(), strict=True)
    ]
    assert ssim(one, other).tolist() == pytest.approx(wanted, abs=1e-5)
    assert gaussian_ssim(spread(one), spread(one)).tolist() == pytest.approx([1] * 3, abs=1e-6)


@pytest.mark.parametrize(("channels", "side", "cell"), [(3, 56, 16), (1, 56, 16), (3, 61, 16), (1, 28, 9), (3, 48, 8)])
def test_hog_is_scikit_images(channels, side, cell):
    some = spread(maps("a", channels=channels, side=side))
    for one, found in zip(some.double().numpy(), hog(some, cell), strict=True):
        wanted = their_hog(one, pixels_per_cell=(cell, cell), channel_axis=0)
        np.testing.assert_allclose(found.numpy(), wanted, atol=1e-6)


def test_similarity_of_hogs_by_pearson_and_by_ranks():
    one, other = maps("a"), alike(maps("a"), 0.7)
    vectors = [hog(spread(some)) for some in (one, other)]
    for ranks, theirs in ((False, stats.pearsonr), (True, stats.spearmanr)):
        wanted = [theirs(a, b)[0] for a, b in zip(*vectors, strict=True)]
        assert hog_similarity(one, other, ranks=ranks).tolist() == pytest.approx(wanted, abs=1e-9)


def test_cells_get_smaller_on_small_maps():
    assert [cell_for(torch.Size((1, 1, side, side + 5))) for side in (224, 48, 47, 28, 8, 3, 2)] == [
        16,
        16,
        15,
        9,
        2,
        1,
        1,
    ]


def test_maps_are_cut_as_the_authors_show_them():
    one = maps("a")
    summed = one.abs().sum(1).double().numpy()
    low, high = summed.min((1, 2), keepdims=True), np.percentile(summed, 99, axis=(1, 2), keepdims=True)
    np.testing.assert_allclose(clipped(one, True).numpy(), np.clip((summed - low) / (high - low), 0, 1), atol=1e-5)
    summed = one.sum(1).double().numpy()
    span = np.abs(np.percentile(summed, 99, axis=(1, 2), keepdims=True))
    np.testing.assert_allclose(clipped(one, False).numpy(), np.clip((summed + span) / (2 * span), -1, 1), atol=1e-5)


def test_second_moment_is_one_and_keeps_signs():
    found = second_moment(1e-30 * maps("a"))
    assert found.square().mean((1, 2, 3)).tolist() == pytest.approx([1] * 3, rel=1e-5)
    assert torch.equal(found.sign(), maps("a").sign())


def test_one_name_keeps_signs_and_the_other_does_not():
    one, other = maps("a"), maps("b")
    found = {}
    for name, absolute in (("spearman", False), ("spearman_abs", True)):
        measure = similarity(name, one.shape)
        found[name] = measure.compare(measure.read(one), measure.read(other))
        torch.testing.assert_close(found[name], spearman(one, other, absolute=absolute))
    assert not torch.allclose(found["spearman"], found["spearman_abs"])


@pytest.mark.parametrize("name", list(SIMILARITIES))
@pytest.mark.parametrize("scaling", ["plain", "published", "second_moment"])
def test_each_is_1_with_itself_near_0_with_noise_and_the_same_alone(name, scaling):
    one, noise = maps("a", 4, side=96), normal(torch.arange(4), "noise", torch.zeros(4, 3, 96, 96))
    measure = similarity(name, one.shape, scaling)
    same = measure.compare(measure.read(one), measure.read(one.clone()))
    assert same.tolist() == pytest.approx([1] * 4, abs=1e-6)
    other = measure.compare(measure.read(one), measure.read(noise))
    assert float(other.abs().max()) < 0.35
    alone = measure.compare(measure.read(one[2:3]), measure.read(noise[2:3]))
    assert float(alone[0]) == pytest.approx(float(other[2]), abs=1e-9)


@pytest.mark.parametrize("name", [name for name in SIMILARITIES if name != "ssim_5x5"])
def test_a_constant_map_and_one_of_nan_have_no_similarity(name):
    one = maps("a", 3)
    odd = one.clone()
    odd[0], odd[1, 0, 3, 3] = 1.0, torch.nan
    measure = similarity(name, one.shape)
    found = measure.compare(measure.read(one), measure.read(odd))
    assert found.isnan().tolist() == [True, True, False]
    assert measure.why


def test_signs_matter_to_one_and_not_to_the_other():
    one = maps("a", channels=1)
    assert spearman(one, -one).tolist() == pytest.approx([1] * 3)
    assert spearman(one, -one, absolute=False).tolist() == pytest.approx([-1] * 3)


def test_an_unknown_name_is_told_the_nearest():
    with pytest.raises(LookupError, match=r"no similarity 'spearmann'\. Did you mean 'spearman'"):
        similarity("spearmann", torch.Size((1, 1, 8, 8)))
    with pytest.raises(LookupError, match="no scaling 'moment'"):
        similarity("ssim", torch.Size((1, 1, 8, 8)), "moment")
