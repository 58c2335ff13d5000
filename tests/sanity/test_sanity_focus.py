"""Focus, coverage, AUROC, pointing and double dissociation on maps worked out by hand."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from saliometer.sanity.effect import shares
from saliometer.sanity.focus import area_share, auroc, coverage, dilated, dissociation, focus, gain, pointing
from saliometer.seeds import forks, uniform

SEEDS = forks(3, torch.arange(2))


def scene() -> tuple[torch.Tensor, torch.Tensor]:
    """Two images of 4x4: A is the top left pair, N the bottom row; the second image has no N."""
    deciding, distracting = torch.zeros(2, 2, 4, 4, dtype=torch.bool)
    deciding[:, 0, :2] = True
    distracting[0, 3] = True
    return deciding, distracting


def test_focus_and_coverage_by_hand():
    maps = torch.zeros(2, 4, 4)
    maps[:, 0, 0], maps[:, 3, 3], maps[:, 2, 2] = 0.3, 0.1, 0.6
    found = focus(maps, *scene())
    assert found[0].item() == pytest.approx(0.75)
    assert found[1].isnan()  # nothing distracts
    assert coverage(maps, *scene()).tolist() == pytest.approx([0.4, 0.3])
    nowhere = torch.zeros(2, 4, 4, dtype=torch.bool)
    assert coverage(maps, nowhere, nowhere).isnan().all()  # an image that is left out is no map without coverage
    assert area_share(*scene())[0].item() == pytest.approx(2 / 6)
    assert area_share(*scene())[1].isnan()


def test_focus_is_undefined_where_neither_region_has_mass():
    maps = torch.zeros(2, 4, 4)
    maps[:, 1, 1] = 1
    assert focus(maps, *scene()).isnan().all()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1 << 30))
def test_a_flat_map_has_the_area_share_and_more_models_come_first(seed):
    deciding = uniform(forks(seed, torch.arange(3)), "a", 6, 6) > 0.6
    distracting = (uniform(forks(seed, torch.arange(3)), "n", 6, 6) > 0.5) & ~deciding
    flat = shares(torch.ones(5, 3, 1, 6, 6))[0]
    found = focus(flat, deciding, distracting)
    assert found.shape == (5, 3)
    torch.testing.assert_close(found[2], area_share(deciding, distracting), equal_nan=True, rtol=1e-5, atol=1e-6)
    half = auroc(flat, deciding, distracting)
    assert ((half == 0.5) | half.isnan()).all()


def test_auroc_is_scikit_learns_on_the_pixels_of_both():
    deciding = torch.zeros(2, 5, 5, dtype=torch.bool)
    distracting = deciding.clone()
    deciding[:, :2], distracting[:, 3:] = True, True
    maps = (uniform(SEEDS, "maps", 5, 5) * 5).round()[None].repeat(3, 1, 1, 1)  # with ties
    found = auroc(maps, deciding, distracting)
    assert found.shape == (3, 2)
    for image in range(2):
        both = deciding[image] | distracting[image]
        wanted = roc_auc_score(deciding[image][both].numpy(), maps[0, image][both].numpy())
        assert found[:, image].tolist() == pytest.approx([wanted] * 3)


def test_pointing_looks_at_the_whole_map_and_ties_fall_by_seed():
    deciding, _ = scene()
    maps = torch.zeros(3, 2, 4, 4)
    maps[0, :, 0, 1], maps[1, :, 2, 2] = 1, 1
    found = pointing(maps, deciding, SEEDS)
    assert found[0].tolist() == [1, 1]
    assert found[1].tolist() == [0, 0]
    many = pointing(torch.ones(1, 400, 4, 4), deciding[:1].expand(400, -1, -1), forks(7, torch.arange(400)))
    assert many.mean().item() == pytest.approx(2 / 16, abs=0.05)


def test_an_invalid_map_has_no_value_anywhere():
    maps = torch.full((2, 4, 4), torch.nan)
    deciding, distracting = scene()
    assert focus(maps, deciding, distracting).isnan().all()
    assert auroc(maps, deciding, distracting).isnan().all()
    assert pointing(maps, deciding, SEEDS).isnan().all()


def test_dilated_masks_grow_and_share_nothing():
    deciding, distracting = torch.zeros(2, 1, 9, 9, dtype=torch.bool)
    deciding[0, 4, 2], distracting[0, 4, 7] = True, True
    ours, others = dilated(deciding, distracting)
    assert not (ours & others).any()
    assert ours[0].sum() == 25  # 2 pixels to every side, nothing shared
    assert others[0, 2:7, 5:9].all()
    near = torch.zeros_like(distracting)
    near[0, 4, 5] = True
    ours, others = dilated(deciding, near)
    assert ours[0].sum() == others[0].sum() == 15  # two columns are both's


def test_dissociation_is_1_for_a_perfect_method_and_0_for_one_that_is_blind():
    deciding, distracting = (mask[:1] for mask in scene())
    first, second = (shares(mask[:, None].float())[0][None].repeat(4, 1, 1, 1) for mask in (deciding, distracting))
    on_first, on_second = (focus(maps, deciding, distracting) for maps in (first, second))
    assert dissociation(on_first, on_second).tolist() == [[1.0]] * 4
    assert dissociation(on_first, on_first).tolist() == [[0.0]] * 4
    with pytest.raises(ValueError, match="wanted the same images and seeds"):
        dissociation(on_first, on_second[:2])


def test_gain_is_a_share_of_what_was_left():
    assert gain(torch.tensor([0.8, 0.4]), torch.tensor([0.6, 0.4])).tolist() == pytest.approx([0.5, 0.0])
