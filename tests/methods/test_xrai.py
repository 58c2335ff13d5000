"""XRAI: the greedy painting of methods.md 9.1, grown segments, its two baselines, and what it sums to."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import ndimage

from doubles import double, linear, raw, smooth_cnn
from saliometer.methods._segments import felzenszwalb, grown
from saliometer.methods.xrai import _painted, painted
from saliometer.types import Batch
from toys import Spy, batch_of, explain, explained, fixture_l, flat, model_of, noise_batch, small_cnn

VALUES = np.array([4.0, 2.0, 0.0, -2.0])


def regions(*pixels: tuple[int, ...]) -> np.ndarray:
    """Regions of four pixels, counted from 1."""
    return np.array([[place + 1 in region for place in range(4)] for region in pixels])


@pytest.mark.parametrize(
    ("masks", "fewest", "wanted"),
    [
        (regions((1, 2), (3, 4), (1, 2, 3, 4)), 1, [3, 3, -1, -1]),
        (regions((2, 3), (1, 2, 3, 4)), 1, [1, 1, 1, 1]),
        (regions((1,)), 1, [4, 0, 0, 0]),
        (regions((1,), (1, 2), (2, 3, 4)), 2, [3, 3, -1, -1]),  # one pixel is too few; {3, 4} are new and enough
        (regions((1, 2, 3), (3, 4)), 2, [2, 2, 2, -2]),  # {4} is too few once 3 is taken: its own mean
        (regions((1, 4), (2, 3)), 1, [1, 1, 1, 1]),
    ],
)
def test_the_best_region_is_painted_first_with_the_mean_of_what_it_adds(masks, fewest, wanted):
    assert painted(VALUES, masks, fewest).tolist() == pytest.approx(wanted, abs=1e-15)


def test_ties_go_to_the_first_region():
    values = np.array([0.0, 2.0, 0.0, 4.0])
    assert painted(values, regions((1, 2), (2, 3)), 1).tolist() == [1, 1, 0, 4]
    assert painted(values, regions((2, 3), (1, 2)), 1).tolist() == [0, 1, 1, 4]


def greedy(values: np.ndarray, masks: list[np.ndarray], fewest: int) -> np.ndarray:
    """methods.md 9.1 word by word, every mean made anew."""
    maps, covered, left = np.full(values.shape, np.nan), np.zeros(values.shape, dtype=bool), list(masks)
    while left := [mask for mask in left if (mask & ~covered).sum() >= fewest]:
        best = max(left, key=lambda mask: values[mask & ~covered].mean())
        new = best & ~covered
        maps[new], covered = values[new].mean(), covered | best
        left = [mask for mask in left if mask is not best]
    maps[~covered] = values[~covered].mean() if (~covered).any() else 0
    return maps


def test_running_sums_give_what_sums_made_anew_give():
    rng = np.random.default_rng(0)
    for fewest in (1, 4, 9):
        values, masks = rng.normal(size=200), rng.random((40, 200)) < rng.random((40, 1)) / 2
        masks[:, 190:] = False  # never covered
        found = painted(values, masks, fewest)
        np.testing.assert_allclose(found, greedy(values, list(masks), fewest), rtol=0, atol=1e-12)
        assert found.sum() == pytest.approx(values.sum(), abs=1e-12)


@pytest.mark.parametrize("radius", [0, 1, 2, 5])
def test_segments_grow_by_a_disk(radius):
    """scipy's binary dilation with x^2 + y^2 <= r^2, which sees nothing beyond the border."""
    rng = np.random.default_rng(1)
    labels = np.stack([rng.integers(0, 3, (9, 12)), np.repeat(np.arange(2), 54).reshape(9, 12)])
    span = np.arange(-radius, radius + 1)
    disk = span[:, None] ** 2 + span**2 <= radius**2
    wanted = [ndimage.binary_dilation(labels[s] == k, disk) for s, count in ((0, 3), (1, 2)) for k in range(count)]
    assert np.array_equal(grown(labels, radius), np.reshape(wanted, (5, -1)))


@pytest.mark.parametrize(("height", "grown_by"), [(224, 5), (112, 2)])
def test_segments_grow_by_five_pixels_at_a_height_of_224(height, grown_by):
    """The left half has all the attribution; its segment takes in that many columns more and shares with them."""
    columns = torch.arange(20)
    values = (columns < 10).double().expand(1, 1, height, 20)
    labels = (columns >= 10).long().expand(1, 1, height, 20)
    reach = 10 + grown_by
    wanted = torch.where(columns < reach, 10 / reach, 0.0).double().expand(1, 1, height, 20)
    torch.testing.assert_close(_painted(values, labels), wanted)


def test_the_attribution_is_the_mean_of_two_integrated_gradients_and_the_highest_channel_counts():
    """A segment of its own for every pixel would show it; here the sums tell: w (x - (min + max) / 2), then max."""
    batch = double(noise_batch(classes=1))
    weights = torch.randn(3, 8, 8, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    found = raw(linear(weights), batch, "xrai(steps=2)")
    low, high = batch.images.amin((1, 2, 3), keepdim=True), batch.images.amax((1, 2, 3), keepdim=True)
    values = (weights * (batch.images - (low + high) / 2)).amax(1, keepdim=True)
    torch.testing.assert_close(found.promised, values.sum((1, 2, 3)))
    assert found.residual.abs().max() < 1e-12
    assert found.maps.shape == (5, 1, 8, 8)
    labels = felzenszwalb(batch.images).numpy()
    for i in range(5):  # 8x8 pixels: segments do not grow, and one new pixel is enough
        wanted = painted(values[i].numpy().ravel(), grown(labels[i], 0), 1)
        np.testing.assert_allclose(found.maps[i].numpy().ravel(), wanted, rtol=0, atol=1e-12)


def test_the_points_are_those_of_the_pair_rule_in_one_question():
    """x^2 of the whole image at 1, from 0 and from 1 (no way): n points k / (n - 1) weighed 1 / n."""
    net = Spy(smooth_cnn().net)
    batch = double(noise_batch())
    found = raw(model_of(net), batch, "xrai(steps=5)")
    assert sum(net.sizes) == 5 * 10
    totals = 0
    for edge in ("amin", "amax"):
        start = getattr(batch.images, edge)((1, 2, 3), keepdim=True)
        for k in range(5):
            shown = (start + k / 4 * (batch.images - start)).requires_grad_()
            score = net.net(shown).gather(1, batch.targets[:, None]).sum()
            totals = totals + (batch.images - start) * torch.autograd.grad(score, shown)[0] / 10
    torch.testing.assert_close(found.promised, totals.amax(1).sum((1, 2)), rtol=1e-10, atol=1e-12)


def test_a_bright_square_that_decides_is_painted_above_the_rest():
    """96x96 pixels, a score that reads the square alone: a slope of 1 for a value 0.5 above the mean baseline."""
    image = torch.zeros(1, 3, 96, 96)
    image[..., 30:60, 40:70] = 1
    weights = torch.zeros(3, 96, 96)
    weights[:, 30:60, 40:70] = 1
    maps = explain(linear(weights), batch_of(image), "xrai(steps=2)")[0, 0]
    assert maps[34:56, 44:66].min() > 0.4
    assert maps[:24].abs().max() < 0.01
    assert maps.sum().item() == pytest.approx(450, rel=1e-5)


def test_a_constant_image_is_one_segment_with_a_constant_map():
    images = torch.cat((torch.full((1, 3, 8, 8), 0.4), noise_batch(1).images))
    found = explained(model_of(small_cnn()), batch_of(images), "xrai(steps=2)")
    assert found.flags["one_segment"].tolist() == [True, False]
    assert found.flags["equal_baseline"].tolist() == [True, False]
    assert found.maps[0].unique().tolist() == [0]
    assert (found.residual[0].item(), found.promised[0].item()) == (0, 0)


def test_segments_are_cut_from_pixels_not_from_what_the_model_takes():
    """Channels scaled apart: the labels, and so the flat areas of the map, are those of the picture."""
    batch = noise_batch(1)
    model = replace(smooth_cnn(), mean=(0.1, 0.5, 0.9), std=(0.01, 1.0, 5.0))
    mean, std = (torch.tensor(values).view(1, 3, 1, 1) for values in (model.mean, model.std))
    images = double(Batch((batch.images - mean) / std, batch.targets, batch.seeds))
    maps = raw(model, images, "xrai(steps=2)").maps
    masks = grown(felzenszwalb(model.pixels(images.images)).numpy()[0], 0)
    assert len(maps.unique()) <= len(masks)


def test_what_cannot_be_done_is_refused():
    with pytest.raises(AssertionError, match="ValueError: xrai: steps=1, wanted 2 or more for rule=pair"):
        explain(model_of(fixture_l()), flat([1, 1]), "xrai(steps=1)")
