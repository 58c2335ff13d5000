"""Fills, masks and blur: what an image without evidence looks like in the model's input space."""

import pytest
import torch
from scipy import ndimage

from saliometer.perturb import FILLS, blurred, filled, masked
from toys import fixture_l, model_of, seeds_of

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


def test_the_mean_is_that_of_the_references():
    references = torch.stack((torch.full((3, 4, 5), 1.0), torch.arange(60.0).view(3, 4, 5)))
    wanted = (references[0] + references[1]) / 2
    assert torch.equal(filled(NORMALISED, IMAGES, "mean", references=references), wanted.expand(2, 3, 4, 5))


@pytest.mark.parametrize(
    ("references", "words"),
    [
        (None, "fill=mean is the mean of reference images, but none came with the batch"),
        (torch.zeros(0, 3, 4, 5), "none came with the batch"),
        (torch.zeros(7, 3, 5, 4), r"references have shape \(3, 5, 4\), wanted that of the images, \(3, 4, 5\)"),
    ],
)
def test_a_mean_of_nothing_or_of_other_shapes_is_refused(references, words):
    with pytest.raises(ValueError, match=words):
        filled(NORMALISED, IMAGES, "mean", references=references)


def test_uniform_noise_covers_what_a_pixel_can_be_and_follows_the_images_seed():
    images, seeds = torch.zeros(2, 3, 64, 64), seeds_of(2)
    pixels = NORMALISED.pixels(filled(NORMALISED, images, "uniform", seeds=seeds))
    assert pixels.amin() >= -1e-6
    assert pixels.amax() <= 1 + 1e-6
    assert pixels.mean((2, 3)).flatten().tolist() == pytest.approx([0.5] * 6, abs=4 / (12 * 4096) ** 0.5)
    alone = filled(NORMALISED, images[1:], "uniform", seeds=seeds[1:])
    assert torch.equal(NORMALISED.pixels(alone), pixels[1:])
    assert not torch.equal(pixels[0], pixels[1])
    with pytest.raises(ValueError, match="fill=uniform is drawn by seed, but no seeds came"):
        filled(NORMALISED, images, "uniform")


def test_the_blur_fill_is_a_tenth_of_the_shorter_side_wide():
    images = torch.rand(2, 3, 20, 30, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wanted = ndimage.gaussian_filter(images.numpy(), (0, 0, 2, 2), mode="mirror")
    torch.testing.assert_close(filled(NORMALISED, images, "blur"), torch.from_numpy(wanted), rtol=0, atol=1e-14)


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_fill_has_the_shape_and_type_of_the_images(fill, dtype):
    images = IMAGES.to(dtype)
    found = filled(NORMALISED, images, fill, references=images, seeds=seeds_of(2))
    assert found.shape == images.shape
    assert found.dtype == dtype


def test_an_unknown_fill_is_answered_with_all_there_are():
    with pytest.raises(
        LookupError, match=f"no fill 'blak'. Did you mean 'black'. There are: {', '.join(sorted(FILLS))}"
    ):
        filled(NORMALISED, IMAGES, "blak")


def test_a_mask_keeps_the_image_at_1_and_the_blank_at_0_to_the_last_bit():
    blank = torch.full_like(IMAGES, 1 / 3)
    masks = torch.tensor([0.0, 0.25, 1.0]).view(3, 1, 1, 1, 1)
    none, some, every = masked(IMAGES, masks, blank)
    assert torch.equal(none, blank)
    assert torch.equal(every, IMAGES)
    torch.testing.assert_close(some, 0.25 * IMAGES + 0.75 * blank)


@pytest.mark.parametrize(("border", "mode"), [("reflect", "mirror"), ("zero", "constant")])
@pytest.mark.parametrize("sigma", [0, 0.3, 1, 3.7, 12])
def test_parity_of_the_blur_with_scipy(sigma, border, mode):
    """scipy 1.17; the widest reach goes five times round a 9 x 14 image."""
    images = torch.rand(2, 3, 9, 14, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    wanted = ndimage.gaussian_filter(images.numpy(), (0, 0, sigma, sigma), mode=mode)
    torch.testing.assert_close(blurred(images, sigma, border=border), torch.from_numpy(wanted), rtol=0, atol=1e-14)


def test_the_blur_can_be_cut_off_sooner():
    """The 5 x 5 kernel of methods.md 9.2: centre 0.1621, corner 0.0030."""
    spot = torch.zeros(1, 1, 9, 9, dtype=torch.float64)
    spot[..., 4, 4] = 1
    kernel = blurred(spot, 1, truncate=2)[0, 0]
    assert kernel[4, 4].item() == pytest.approx(0.1621, abs=5e-5)
    assert kernel[2, 2].item() == pytest.approx(0.0030, abs=5e-5)
    assert (kernel > 0).sum() == 25
    assert kernel.sum().item() == pytest.approx(1)


def test_a_blur_leaves_a_single_pixel_and_a_flat_image_as_they_are():
    assert blurred(torch.ones(1, 1, 1, 1), 3).item() == pytest.approx(1)
    torch.testing.assert_close(blurred(torch.ones(1, 2, 1, 7), 3), torch.ones(1, 2, 1, 7))


def test_what_is_no_blur_is_refused():
    with pytest.raises(ValueError, match="blur: sigma=-1, wanted 0 or more"):
        blurred(IMAGES, -1)
    with pytest.raises(LookupError, match="there is no border 'wrap'"):
        blurred(IMAGES, 1, border="wrap")
