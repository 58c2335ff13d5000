"""Fills: what an image without evidence looks like in the model's input space."""

import pytest
import torch

from saliometer.perturb import FILLS, filled
from toys import fixture_l, model_of

IMAGES = torch.rand(2, 3, 4, 5, generator=torch.Generator().manual_seed(0))
NORMALISED = model_of(fixture_l(), mean=(0.5, 0.25, 0.1), std=(0.5, 0.25, 0.2))


@pytest.mark.parametrize(
    ("fill", "colour"), [("zero", (0.0, 0.0, 0.0)), ("black", (-1.0, -1.0, -0.5)), ("white", (1.0, 3.0, 4.5))]
)
def test_a_fill_is_its_colour_in_the_models_input_space(fill, colour):
    wanted = torch.tensor(colour)[None, :, None, None].expand(2, 3, 4, 5)
    torch.testing.assert_close(filled(NORMALISED, IMAGES, fill), wanted)


def test_black_and_white_are_0_and_1_in_pixels():
    for fill, value in (("black", 0.0), ("white", 1.0)):
        pixels = NORMALISED.pixels(filled(NORMALISED, IMAGES, fill))
        torch.testing.assert_close(pixels, torch.full_like(IMAGES, value))


def test_black_is_zero_where_the_model_takes_pixels():
    plain = model_of(fixture_l())
    assert torch.equal(filled(plain, IMAGES, "black"), filled(plain, IMAGES, "zero"))


def test_an_unknown_fill_is_answered_with_all_there_are():
    with pytest.raises(
        LookupError, match=f"no fill 'blak'. Did you mean 'black'. There are: {', '.join(sorted(FILLS))}"
    ):
        filled(NORMALISED, IMAGES, "blak")
