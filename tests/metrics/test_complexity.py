"""Complexity: the closed forms of the entropy."""

from math import log

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from battery_toys import judged, photos, value
from linear_toys import linear, pictures, some, weights

MODEL = linear(weights())
SAMPLES = pictures(1)


def entropy(maps):
    return value("complexity", MODEL, maps, SAMPLES)


@given(st.integers(1, 64))
def test_k_equal_pixels_of_n(k):
    maps = torch.zeros(1, 64)
    maps[:, :k] = 0.2
    found = entropy(maps.view(1, 8, 8)).item()
    assert found == pytest.approx(log(k), abs=1e-6)
    assert found >= 0


def test_constant_maps_are_as_complex_as_can_be_and_empty_ones_invalid():
    assert entropy(torch.full((1, 8, 8), 0.4)).item() == pytest.approx(log(64))
    values, notes, _ = judged("complexity", MODEL, torch.zeros(1, 8, 8), SAMPLES)
    assert values["complexity"].isnan().all()
    assert "no shares" in notes[0]


def test_what_a_constant_map_is_depends_on_the_normalisation():
    maps = torch.stack((torch.zeros(8, 8), torch.full((8, 8), -2.0)))[None]
    kinds = ("abs_max_minmax", "abs_joint_minmax", "signed_joint_minmax")
    found = [value("complexity", MODEL, maps, SAMPLES, normalisation=kind).item() for kind in kinds]
    assert found == pytest.approx([log(64)] * 3)
    values, notes, _ = judged("complexity", MODEL, maps, SAMPLES, normalisation="signed_max_minmax")
    assert values["complexity"].isnan().all()
    assert "no shares" in notes[0]


def test_a_constant_map_is_zeros_if_that_is_asked_for():
    values, _, _ = judged("complexity", MODEL, torch.ones(1, 8, 8), SAMPLES, constant="zeros")
    assert values["complexity"].isnan().all()


def test_normalisations_are_those_of_their_names():
    maps = torch.zeros(1, 3, 8, 8)
    maps[0, :2, 2, 3] = torch.tensor([-1.0, 1.0])
    one = value("complexity", MODEL, maps, SAMPLES, normalisation="signed_max_minmax").item()
    joint = value("complexity", MODEL, maps, SAMPLES, normalisation="signed_joint_minmax").item()
    top, rest = 1 / 32.5, 0.5 / 32.5
    assert one == pytest.approx(0, abs=1e-9)
    assert joint == pytest.approx(-top * log(top) - 63 * rest * log(rest))


def test_fake_cam_and_noise_at_the_papers_size():
    samples = photos(torch.rand(2, 3, 224, 224))
    maps = torch.ones(2, 224, 224)
    maps[0, 0, 0] = 0
    maps[1] = torch.rand(224, 224, generator=torch.Generator().manual_seed(0))
    fake, noise = value("complexity", MODEL, maps, samples).tolist()
    assert fake == pytest.approx(10.8233, abs=1e-4)
    assert noise == pytest.approx(log(50176) - 0.193, abs=3e-3)


def test_signs_scale_and_places_are_nothing_to_it():
    maps = some(1, 1, 8, 8)
    order = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(entropy(maps), entropy(-1e5 * maps))
    torch.testing.assert_close(entropy(maps), entropy(maps.flatten(2)[..., order].view_as(maps)))


def test_it_stays_between_0_and_that_of_equal_shares():
    for seed in range(20):
        assert 0 <= entropy(some(1, 3, 8, 8, seed=seed).pow(9)).item() <= log(64)
