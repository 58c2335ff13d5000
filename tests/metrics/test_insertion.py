"""Insertion: analytic models, where it starts, rank invariance."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import ndimage

from battery_toys import Odds, judged, photos, value
from saliometer.perturb import unfocused
from toys import Spy, model_of, small_cnn

GENERATOR = torch.Generator().manual_seed(0)
ONE = torch.rand(1, 3, 8, 8, generator=GENERATOR) + 0.1
MAPS = torch.rand(5, 8, 8, generator=GENERATOR)
FAKE = torch.ones(1, 8, 8)
FAKE[0, 0, 0] = 0.0


class Seen(Spy):
    """Keeps the images themselves."""

    def __init__(self, net):
        super().__init__(net)
        self.images = []

    def forward(self, images):
        self.images.extend(images.clone())
        return super().forward(images)


def pixel(row: int, column: int) -> Odds:
    """Sure as soon as one pixel is in focus."""
    return Odds(lambda x: (x[:, :, row, column] == ONE[:, :, row, column]).all(1).float())


@pytest.mark.parametrize("blur", ["rise", "true_gaussian"])
@pytest.mark.parametrize("steps", [1, 4, 64])
def test_the_fraction_of_intact_pixels_gives_one_half_for_every_map(steps, blur):
    net = Odds(lambda x: (x == ONE).all(1).float().mean((1, 2)))
    maps = torch.cat((MAPS, FAKE, torch.zeros(1, 8, 8)))
    values = value(f"insertion(steps={steps},blur={blur})", net, maps, photos(ONE.expand(7, 3, 8, 8)))
    assert values.tolist() == pytest.approx([0.5] * 7, abs=1e-7)


@pytest.mark.parametrize("rank", [0, 1, 7, 31, 63])
def test_one_decisive_pixel_gives_a_step_at_its_rank(rank):
    maps = torch.randperm(64, generator=GENERATOR).view(1, 8, 8).float()
    row, column = divmod((63 - maps).flatten().argsort()[rank].item(), 8)
    assert value("insertion(steps=64)", pixel(row, column), maps, photos(ONE)).item() == pytest.approx(
        1 - (rank + 0.5) / 64
    )


def test_ties_as_rise_has_them_run_the_raster_backwards():
    for place in (0, 1, 62, 63):
        found = value("insertion(steps=64,ties=rise)", pixel(*divmod(place, 8)), FAKE, photos(ONE))
        assert found.item() == pytest.approx(1 - (63 - place + 0.5) / 64)


def test_it_goes_from_the_blurred_image_to_the_image():
    net = Seen(small_cnn())
    value("insertion(steps=2)", net, MAPS[:1], photos(ONE))
    start, whole, half = net.images
    assert torch.equal(start, unfocused(ONE, "rise")[0])
    assert torch.equal(whole, ONE[0])
    top = MAPS[0] >= MAPS[0].flatten().sort().values[32]
    assert torch.equal(half, torch.where(top, whole, start))


def test_in_raw_space_it_fades_to_black_and_in_normalised_space_to_grey():
    mean, std = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3)
    for space in ("raw", "normalised"):
        net = Seen(small_cnn())
        model = model_of(net, mean=mean, std=std)
        inputs = (ONE - torch.tensor(mean).view(3, 1, 1)) / torch.tensor(std).view(3, 1, 1)
        value(f"insertion(steps=2,space={space})", model, MAPS[:1], photos(inputs))
        pixels = model.pixels(net.images[0][None])
        wanted = unfocused(ONE, "rise") if space == "raw" else model.pixels(unfocused(inputs, "rise"))
        torch.testing.assert_close(pixels, wanted, atol=1e-5, rtol=0)


def test_the_authors_kernel_is_nearly_flat_and_the_true_one_is_not():
    delta = torch.zeros(1, 1, 31, 31, dtype=torch.float64)
    delta[..., 15, 15] = 1
    square = torch.zeros(11, 11, dtype=torch.float64)
    square[5, 5] = 1
    folded = torch.from_numpy(ndimage.gaussian_filter(square.numpy(), 5))
    for kernel, ratio in (("rise", 1.14), ("true_gaussian", torch.e)):
        found = unfocused(delta, kernel)[0, 0]
        window = found[10:21, 10:21]
        assert [found.sum().item(), window.sum().item()] == pytest.approx([1, 1])
        assert (window[5, 5] / window[0, 0]).item() == pytest.approx(ratio, abs=0.005)
        if kernel == "rise":
            torch.testing.assert_close(window, folded)
            assert window[5, 5].item() == pytest.approx(0.00883, abs=5e-6)
            assert window[0, 0].item() == pytest.approx(0.00774, abs=5e-6)


def test_beyond_the_border_lies_zero():
    kernel = unfocused(torch.nn.functional.pad(torch.ones(1, 1, 1, 1).double(), (5, 5, 5, 5)), "rise")
    image = torch.rand(1, 2, 20, 17, dtype=torch.float64, generator=GENERATOR)
    wanted = torch.nn.functional.conv2d(image.transpose(0, 1), kernel, padding=5).transpose(0, 1)
    torch.testing.assert_close(unfocused(image, "rise"), wanted)


def test_another_kernel_is_refused():
    with pytest.raises(AssertionError, match="there is no kernel 'box'"):
        value("insertion(blur=box)", small_cnn(), MAPS[:1], photos(ONE))


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), change=st.sampled_from([lambda m: 3 * m + 1, torch.exp, lambda m: m**3]))
def test_only_ranks_matter(seed, change):
    maps = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.01
    images = photos(torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(seed + 1)))
    before, after = (value("insertion(steps=16)", small_cnn(), m, images) for m in (maps, change(maps)))
    assert torch.equal(before, after)


def test_its_cost_is_that_of_the_facts():
    _, _, cost = judged("insertion(steps=16)", small_cnn(), MAPS, photos(ONE.expand(5, 3, 8, 8)))
    assert cost.passes == 5 * 17
