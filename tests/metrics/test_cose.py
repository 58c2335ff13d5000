"""The similarity of a pair in each mode; what is made of pairs is tested with the rows."""

import numpy as np
import pytest
import torch
from scipy.stats import pearsonr, spearmanr

from saliometer.cose.inverse import validity
from saliometer.cose.ssim import global_ssim, ssim
from saliometer.metrics.cose import cose

ONE, OTHER = torch.rand(2, 3, 20, 21, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
VALID = validity("rotate", torch.tensor([4, -11, 25]), ONE)


@pytest.mark.parametrize("valid", [None, VALID])
def test_modes_differ_in_their_constants_and_windows(valid):
    assert torch.equal(cose(ONE, OTHER, valid).values, ssim(ONE, OTHER, valid))
    published = ssim(ONE, OTHER, valid, data_range=2.0, mirrored=True)
    assert torch.equal(cose(ONE, OTHER, valid, mode="published").values, published)
    assert torch.equal(cose(ONE, OTHER, valid, mode="equation").values, global_ssim(ONE, OTHER, valid))


@pytest.mark.parametrize("valid", [None, VALID])
@pytest.mark.parametrize(("name", "peer"), [("pearson", pearsonr), ("spearman", spearmanr)])
def test_correlations_are_scipys_over_valid_pixels(name, peer, valid):
    one = (ONE * 9).round() / 9  # with ties
    found = cose(one, OTHER, valid, similarity=name).values
    mask = np.ones((3, 20, 21), bool) if valid is None else valid.numpy()
    wanted = [peer(a[inside], b[inside])[0] for a, b, inside in zip(one.numpy(), OTHER.numpy(), mask, strict=True)]
    assert found.tolist() == pytest.approx(wanted, abs=1e-9)


def test_undefined_pairs_are_nan_with_a_reason():
    flat = ONE.clone()
    flat[0] = 0.5
    scored = cose(flat, OTHER, similarity="pearson")
    assert scored.values.isnan().tolist() == [True, False, False]
    assert scored.invalid["a constant map has no correlation"].tolist() == [True, False, False]
    nothing = torch.zeros(3, 20, 21, dtype=torch.bool)
    assert bool(cose(ONE, OTHER, nothing).invalid["no window of 5x5 pixels lies inside"].all())
    broken = ONE.clone()
    broken[1, 2, 3] = torch.nan
    assert cose(broken, OTHER).invalid["nan map"].tolist() == [False, True, False]


def test_unknown_words_are_refused():
    with pytest.raises(LookupError, match="Did you mean 'published'"):
        cose(ONE, OTHER, mode="publisht")
    with pytest.raises(LookupError, match="Did you mean 'spearman'"):
        cose(ONE, OTHER, similarity="spearmen")
