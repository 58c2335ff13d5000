"""One rule for all methods, and the authors' by family."""

import numpy as np
import pytest
import torch

from saliometer.cose.scaling import family_scaled, scaled


def noise(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("shape", [(4, 3, 17, 23), (2, 1, 224, 224), (2, 3, 5, 5)])
def test_from_the_minimum_to_numpys_99th_percentile(shape):
    maps = noise(*shape)
    for one, ours in zip(maps, scaled(maps), strict=True):
        joined = np.abs(one.numpy()).sum(0)
        low, high = joined.min(), np.percentile(joined, 99)
        np.testing.assert_allclose(ours.numpy(), ((joined - low) / (high - low)).clip(0, 1), atol=1e-12)


def test_a_constant_map_is_zero_and_its_neighbour_is_not():
    maps = torch.cat((torch.full((1, 3, 8, 8), -0.7), torch.zeros(1, 3, 8, 8), noise(1, 3, 8, 8).float()))
    found = scaled(maps)
    assert not bool(found[:2].any())
    assert float(found[2].max()) == 1


def test_where_one_pixel_stands_out_it_is_one():
    maps = torch.zeros(1, 1, 20, 20)
    maps[0, 0, 3, 4] = -5
    assert torch.equal(scaled(maps)[0], (maps[0, 0] != 0).float())


def test_a_broken_map_stays_broken():
    maps = noise(2, 3, 8, 8)
    maps[0, 1, 2, 3] = torch.nan
    assert scaled(maps).isnan().flatten(1).all(1).tolist() == [True, False]


def test_the_size_of_a_map_does_not_matter():
    maps = noise(2, 3, 9, 9)
    torch.testing.assert_close(scaled(maps), scaled(-1e-3 * maps))


def test_the_authors_scale_cams_by_their_positive_part_and_lime_not_at_all():
    maps = noise(3, 1, 9, 9)
    cam = family_scaled(maps, "grad_cam_plus_plus")
    assert torch.equal(cam == 0, (maps[:, 0] <= 0))
    assert cam.amax((1, 2)).tolist() == [1.0] * 3
    assert torch.equal(family_scaled(maps.sign(), "lime"), maps[:, 0].sign())
    assert torch.equal(family_scaled(maps, "integrated_gradients"), scaled(maps))
    assert not bool(family_scaled(-maps.abs(), "grad_cam").any())  # what ReLU kills is empty
