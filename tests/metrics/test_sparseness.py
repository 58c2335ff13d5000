"""Sparseness: the closed forms of the Gini index, and what leaves it as it is."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from battery_toys import judged, photos, value
from linear_toys import linear, pictures, some, weights
from saliometer.maps import NORMALISATIONS

MODEL = linear(weights())
SAMPLES = pictures(1)


def gini(maps):
    return value("sparseness", MODEL, maps, SAMPLES)


@given(st.integers(1, 64))
def test_k_equal_pixels_of_n(k):
    maps = torch.zeros(1, 64)
    maps[:, :k] = 3.0
    assert gini(maps.view(1, 8, 8)).item() == pytest.approx(1 - k / 64, abs=1e-5)


def test_a_constant_and_an_empty_map_are_even():
    for filling in (0.0, 0.4, -2.0):
        assert gini(torch.full((1, 8, 8), filling)).item() == pytest.approx(0, abs=1e-12)


def test_fake_cam_and_noise_at_the_papers_size():
    samples = photos(torch.rand(2, 3, 224, 224))
    maps = torch.ones(2, 224, 224)
    maps[0, 0, 0] = 0
    maps[1] = torch.rand(224, 224, generator=torch.Generator().manual_seed(0))
    fake, noise = value("sparseness", MODEL, maps, samples).tolist()
    assert fake == pytest.approx(1 / 50176, rel=1e-4)
    assert noise == pytest.approx(1 / 3, abs=3e-3)


def test_signs_and_scale_are_nothing_to_it_and_channels_join_by_their_largest():
    maps = some(1, 3, 8, 8)
    assert torch.equal(gini(maps), gini(-maps))
    torch.testing.assert_close(gini(maps), gini(maps * 1e6))
    torch.testing.assert_close(gini(maps), gini(maps.abs().amax(1)))


def test_a_map_is_read_between_its_own_minimum_and_maximum():
    maps = some(1, 8, 8).abs()
    torch.testing.assert_close(gini(maps), gini(maps + 5), rtol=1e-5, atol=0)


def test_normalisations_are_those_of_their_names():
    """One pixel: channels -1, 1 and 0, the others 0: signed and joint, the others lie half way up."""
    maps = torch.zeros(1, 3, 8, 8)
    maps[0, :2, 2, 3] = torch.tensor([-1.0, 1.0])
    found = {name: value("sparseness", MODEL, maps, SAMPLES, normalisation=name).item() for name in NORMALISATIONS}
    alone, raised = 1 - 1 / 64, 63 * 0.5 / (64 * (63 * 0.5 + 1))
    assert found == pytest.approx(
        {
            "abs_max_minmax": alone, "abs_joint_minmax": alone, "signed_max_minmax": alone,
            "signed_joint_minmax": raised,
        },
        abs=1e-5,
    )  # fmt: skip


def test_a_constant_map_counts_as_it_is_asked_to():
    for constant in ("ones", "zeros"):
        assert value("sparseness", MODEL, torch.ones(1, 8, 8), SAMPLES, constant=constant).item() == pytest.approx(0)


def test_neighbours_and_the_callers_map_are_left_alone():
    samples = pictures(3)
    maps = some(3, 1, 8, 8) * torch.tensor([1.0, 1e9, 1e-9]).view(-1, 1, 1, 1)
    copy = maps.clone()
    together = value("sparseness", MODEL, maps, samples)
    assert torch.equal(maps, copy)
    assert together.tolist() == [value("sparseness", MODEL, maps[i : i + 1], pictures(1)).item() for i in range(3)]


def test_a_nan_map_is_invalid_and_no_pass_is_made():
    maps = torch.ones(1, 8, 8)
    maps[0, 3, 3] = torch.nan
    values, notes, cost = judged("sparseness", MODEL, maps, SAMPLES)
    assert values["sparseness"].isnan().all()
    assert notes == ["nan map"]
    assert cost.passes == 0
