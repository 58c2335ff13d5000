"""Centre: methods.md 9.3."""

import pytest
import torch

from toys import batch_of, explain, fixture_l, model_of

PLAIN = model_of(fixture_l())


def test_it_is_the_gaussian_of_the_sheet():
    """3 x 3, standard deviation 1 pixel."""
    maps = explain(PLAIN, batch_of(torch.zeros(2, 3, 3, 3)), f"centre(width={1 / 3})")
    assert maps.shape == (2, 1, 3, 3)
    side, corner = 0.60653, 0.36788
    for one in maps:
        assert one.flatten().tolist() == pytest.approx(
            [corner, side, corner, side, 1, side, corner, side, corner], abs=1e-5
        )


def test_it_is_40_pixels_wide_at_224():
    bump = explain(PLAIN, batch_of(torch.zeros(1, 1, 224, 300)), "centre")[0, 0].double()
    assert bump[111, 149] == bump[112, 150] == bump.max()
    assert (bump[112, 150 + 40] / bump[112, 150]).log().item() == pytest.approx(-(40.5**2 - 0.5**2) / 3200, rel=1e-5)
    assert (bump[112 + 40, 150] / bump[112, 150]).log().item() == pytest.approx(-(40.5**2 - 0.5**2) / 3200, rel=1e-5)


def test_it_knows_nothing_of_the_image():
    one, other = (
        explain(PLAIN, batch_of(images), "centre") for images in (torch.zeros(2, 3, 8, 9), torch.rand(2, 3, 8, 9))
    )
    assert torch.equal(one, other)


def test_a_width_of_nothing_is_refused():
    with pytest.raises(AssertionError, match="centre: width=0, wanted more than 0"):
        explain(PLAIN, batch_of(torch.zeros(1, 1, 4, 4)), "centre(width=0)")
