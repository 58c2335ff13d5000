"""SSIM beside scikit-image on the same pairs, and the values of cose.md, table 6.2."""

import numpy as np
import pytest
import torch
from skimage.data import astronaut
from skimage.metrics import structural_similarity
from torch import Tensor
from torch.nn import functional as F

from cose_toys import pictures
from saliometer.cose.controls import sobel_edge
from saliometer.cose.inverse import eroded, turned_back, validity
from saliometer.cose.operations import turned
from saliometer.cose.ssim import global_ssim, ssim

SIDE = 224


def uniform(seed: int, count: int = 1, side: int = SIDE) -> Tensor:
    return torch.rand(count, side, side, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def flat(value: float) -> Tensor:
    return torch.full((1, SIDE, SIDE), value, dtype=torch.float64)


def theirs(one: Tensor, other: Tensor, data_range: float, full: bool = False):
    return structural_similarity(
        one.double().numpy(), other.double().numpy(), win_size=5, data_range=data_range, full=full
    )


def families() -> dict[str, tuple[Tensor, Tensor]]:
    """Pairs of maps of many kinds, (4, 61, 53) each."""
    noise = torch.rand(2, 4, 61, 53, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    smooth = pictures(8, 1, 61, 53)[:, 0].double().view(2, 4, 61, 53) / 255
    cams = F.interpolate(noise[:, :, :7, :7], size=(61, 53), mode="bilinear")
    sparse = (noise > 0.99).double()
    return {
        "noise": (noise[0], noise[1]), "smooth": (smooth[0], smooth[1]), "cams": (cams[0], cams[1]),
        "sparse": (sparse[0], sparse[1]), "near": (smooth[0], smooth[0] + 0.01 * noise[0]),
        "inverted": (noise[0], 1 - noise[0]), "signed": (2 * noise[0] - 1, 2 * noise[1] - 1),
    }  # fmt: skip


@pytest.mark.parametrize("data_range", [1.0, 2.0])
@pytest.mark.parametrize("name", sorted(families()))
def test_it_is_scikit_images(name, data_range):
    one, other = families()[name]
    wanted = [theirs(a, b, data_range) for a, b in zip(one, other, strict=True)]
    assert ssim(one, other, data_range=data_range).tolist() == pytest.approx(wanted, abs=1e-6)
    assert ssim(one.float(), other.float(), data_range=data_range).tolist() == pytest.approx(wanted, abs=1e-4)


def test_in_single_precision_flat_maps_keep_their_digits():
    wanted = (2 * 0.3 * 0.9 + 1e-4) / (0.3**2 + 0.9**2 + 1e-4)
    assert float(ssim(flat(0.3).float(), flat(0.9).float())) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("data_range", [1.0, 2.0])
def test_with_a_mask_only_windows_inside_count_and_the_border_can_be_mirrored(data_range):
    one, other = families()["near"]
    valid = validity("rotate", torch.tensor([5, -9, 20, 30]), one)
    assert valid is not None
    kept = eroded(valid)
    inner = torch.zeros_like(kept)
    inner[:, 2:-2, 2:-2] = kept[:, 2:-2, 2:-2]
    for mirrored, mask in ((True, kept), (False, inner)):
        found = ssim(one, other, valid, data_range=data_range, mirrored=mirrored)
        for a, b, inside, ours in zip(one, other, mask, found.tolist(), strict=True):
            windows = theirs(a, b, data_range, full=True)[1]
            assert ours == pytest.approx(windows[inside.numpy()].mean(), abs=1e-6)


def test_what_lies_outside_the_mask_does_not_matter():
    one, other = families()["near"]
    valid = validity("translate_x", torch.tensor([30, -30, 12, -7]), one)
    assert valid is not None
    junk = other.where(valid, 17.0)
    for form in (ssim, global_ssim):
        torch.testing.assert_close(form(one, junk, valid), form(one, other.where(valid, 0.0), valid), atol=1e-9, rtol=0)


# Table 6.2


@pytest.mark.parametrize(
    ("one", "other", "wanted"),
    [
        (flat(0.4), flat(0.4), (1, 1, 1)),
        (flat(0.3), flat(0.9), (0.60004, 0.60018, 0.60440)),
        (flat(0.0), flat(1.0), (1.0e-4, 4.0e-4, 0.00990)),
        (uniform(1), uniform(1), (1, 1, 1)),
    ],
)
def test_exact_values_of_the_table(one, other, wanted):
    found = ssim(one, other), ssim(one, other, data_range=2.0), global_ssim(one, other)
    assert [float(value) for value in found] == pytest.approx(wanted, abs=6e-6)


def relu_maps(seed: int) -> Tensor:
    small = torch.randn(16, 1, 7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(seed)).relu()
    large = F.interpolate(small, size=(SIDE, SIDE), mode="bilinear")[:, 0]
    low, high = large.amin((1, 2), keepdim=True), large.amax((1, 2), keepdim=True)
    return (large - low) / (high - low)


@pytest.mark.parametrize(
    ("one", "other", "wanted", "within"),
    [
        (uniform(1, 8), uniform(2, 8), (0.005, 0.022, 0.1525), 0.005),
        (uniform(1, 8), 1 - uniform(1, 8), (-0.963, -0.931, -0.694), 0.005),
        (relu_maps(1), relu_maps(2), (0.32, 0.44, 0.30), 0.05),
    ],
)
def test_measured_values_of_the_table(one, other, wanted, within):
    found = ssim(one, other), ssim(one, other, data_range=2.0), global_ssim(one, other)
    assert [float(value.mean()) for value in found] == pytest.approx(wanted, abs=within)


@pytest.mark.parametrize(("share", "wanted"), [(0.001, (0.95, 0.95)), (0.01, (0.60, 0.61)), (0.1, (0.009, 0.022))])
def test_sparse_maps_look_alike_whatever_they_show(share, wanted):
    one, other = (uniform(3, 8) < share).double(), (uniform(4, 8) < share).double()
    found = float(ssim(one, other).mean()), float(ssim(one, other, data_range=2.0).mean())
    assert found == pytest.approx(wanted, abs=0.01)


def blobs() -> Tensor:
    place = torch.arange(SIDE, dtype=torch.float64) - 100
    return (-(place[:, None].square() + (place + 20).square()) / (2 * 30.0**2)).exp()[None]


def edges() -> Tensor:
    """Of a photograph that scikit-image carries, its middle."""
    pixels = torch.from_numpy(astronaut()[:SIDE, 100 : 100 + SIDE].copy()).permute(2, 0, 1)[None].double() / 255
    nothing = torch.zeros(1, dtype=torch.int64)
    return sobel_edge(pixels, nothing, nothing, 2)


@pytest.mark.parametrize(
    ("maps", "wanted", "within"),
    [(blobs(), (0.998, 0.999), 0.002), (edges(), (0.94, 0.96), 0.03), (uniform(5), (0.75, 0.76), 0.01)],
    ids=["blob", "edges", "noise"],
)
def test_a_turn_and_back_costs_a_noisy_map_more_than_a_smooth_one(maps, wanted, within):
    bins = torch.tensor([-27, -13, -4, 3, 8, 17, 25])
    several = maps.expand(len(bins), -1, -1)
    back = turned_back(turned(several[:, None], bins)[:, 0], bins)
    valid = validity("rotate", bins, several)
    found = [float(ssim(several, back, valid, data_range=data_range).mean()) for data_range in (1.0, 2.0)]
    assert found == pytest.approx(wanted, abs=within)


# Where it is undefined


@pytest.mark.parametrize("side", [3, 4])
def test_maps_without_a_window_are_nan(side):
    assert bool(ssim(torch.ones(2, side, 9), torch.ones(2, side, 9)).isnan().all())


def test_a_mask_without_a_window_is_nan_and_the_neighbour_is_not():
    valid = torch.ones(2, 12, 12, dtype=torch.bool)
    valid[0, ::4] = False
    found = ssim(uniform(1, 2, 12), uniform(2, 2, 12), valid)
    assert found.isnan().tolist() == [True, False]
    assert global_ssim(uniform(1, 2, 12), uniform(2, 2, 12), valid & False).isnan().all()


def test_it_is_the_same_alone_and_in_a_batch_and_whichever_comes_first():
    one, other = families()["smooth"]
    found = ssim(one, other)
    assert found.tolist() == [float(ssim(one[i : i + 1], other[i : i + 1])) for i in range(4)]
    assert found.tolist() == pytest.approx(ssim(other, one).tolist(), abs=1e-12)
    assert np.all(found.numpy() <= 1)
