"""RISE: methods.md 8.1, masks that do not depend on how they are asked for, and scikit-image's enlargement."""

from dataclasses import replace

import pytest
import torch
from skimage import transform
from torch import Tensor

from saliometer.methods.rise import drawn, weighted
from saliometer.perturb import filled
from saliometer.seeds import fork, forks, uniform
from toys import Formula, Spy, batch_of, explain, explained, model_of, noise_batch, small_cnn

ONES = batch_of(torch.ones(1, 1, 56, 56))


def all_masks(images: Tensor, count: int, cells: int = 7, keep: float = 0.5, seed: int = 0) -> Tensor:
    return drawn(images, count, cells, keep, seed)(range(count))


def test_two_given_masks():
    masks = torch.tensor([[[1.0, 0.0]], [[0.0, 1.0]]])
    found = weighted(torch.tensor([[0.8], [0.2]]), lambda ks: masks[ks.start : ks.stop], keep=0.5)
    assert found.flatten().tolist() == pytest.approx([0.8, 0.2])


def test_a_constant_score_shows_the_mean_mask_and_says_so():
    model = model_of(Formula(lambda x: 0 * x[:, 0] + 3))
    found = explained(model, ONES, "rise(masks=300,output=logit)")
    assert found.flags["flat_score"].tolist() == [True]
    torch.testing.assert_close(found.maps[0, 0], 3 * all_masks(ONES.images, 300).mean(0) / 0.5, rtol=1e-5, atol=1e-5)
    centred = explain(model, ONES, "rise(masks=300,output=logit,centre=true)")
    assert centred.abs().max() < 1e-6


def expectations() -> Tensor:
    """(56,) float64: E[M(u)^2] / p is (1 - p) r(u) c(v) + p, with these r and c: the mean sum of squared weights.

    A grid of 7 enlarged to 64 pixels has cells of 64 / 7, of which the 8 offsets show seven eighths: what a pixel
    gets depends on where it lies, from 0.698 to 0.737. (methods.md 8.1 takes cells of 8 pixels: 0.7205 everywhere.)
    """
    place = ((torch.arange(64, dtype=torch.float64) + 0.5) * 7 / 64 - 0.5).clamp(0, 6)
    share = place - place.floor()
    squares = share.square() + (1 - share).square()
    return squares.unfold(0, 56, 1)[:8].mean(0)


def test_a_single_pixel_gets_its_expectation_and_the_rest_a_half():
    """8000 masks; one value has a standard error of 0.008, and far pixels are averaged."""
    model = model_of(Formula(lambda x: x.view(-1, 56, 56)[:, 28, 28]))
    found = explained(model, ONES, "rise(masks=8000,output=logit)")
    assert found.flags["flat_score"].tolist() == [False]
    assert (0.5 * expectations()[28] ** 2 + 0.5).item() == pytest.approx(0.7367, abs=1e-4)
    assert found.maps[0, 0, 28, 28].item() == pytest.approx(0.7367, abs=0.025)
    assert found.maps[0, 0, :14].mean().item() == pytest.approx(0.5, abs=0.01)


def test_the_expectation_holds_over_the_whole_image():
    """20000 masks: the standard error of the mean over pixels is 0.001."""
    masks = drawn(ONES.images, 20_000, 7, 0.5, 0)
    found = sum(masks(range(start, start + 1000)).square().mean(0) for start in range(0, 20_000, 1000)) / 20 / 0.5
    wanted = 0.5 * torch.outer(expectations(), expectations()) + 0.5
    assert found.mean().item() == pytest.approx(wanted.mean().item(), abs=0.004)
    correlation = torch.corrcoef(torch.stack((found.flatten().double(), wanted.flatten())))[0, 1]
    assert correlation > 0.9  # bright and dark pixels lie where they should


@pytest.mark.parametrize("fill", ["zero", "white", "blur"])
@pytest.mark.parametrize("centre", [False, True])
def test_it_is_the_sum_over_masks_as_it_is_written_down(fill, centre):
    model, batch = model_of(small_cnn(), mean=(0.5,), std=(0.25,)), noise_batch()
    masks = all_masks(batch.images, 40, cells=3, keep=0.3, seed=5)
    blank = filled(model, batch.images, fill)
    total = torch.zeros(5, 1, 8, 8)
    with torch.no_grad():
        scores = torch.stack([model.logits(blank + mask * (batch.images - blank)).softmax(1) for mask in masks])
    scores = scores[:, range(5), batch.targets]
    for mask, score in zip(masks, scores - scores.mean(0) * centre, strict=True):
        total += score.view(5, 1, 1, 1) * mask
    text = f"rise(masks=40,cells=3,keep=0.3,seed=5,fill={fill},centre={str(centre).lower()})"
    torch.testing.assert_close(explain(model, batch, text), total / (40 * 0.3), rtol=1e-5, atol=1e-6)


def test_masks_are_the_same_in_any_portion_and_number():
    images = torch.zeros(1, 3, 20, 33)
    masks = drawn(images, 50, 7, 0.5, 0)
    parts = [masks(range(1)), masks(range(1, 20)), masks(range(20, 50))]
    assert torch.equal(torch.cat(parts), masks(range(50)))
    assert torch.equal(all_masks(images, 10), masks(range(10)))
    assert not torch.equal(all_masks(images, 10, seed=1), masks(range(10)))


def test_more_masks_than_exist_at_one_time_make_the_same_map(monkeypatch):
    model, batch = model_of(small_cnn()), noise_batch()
    wanted = explain(model, batch, "rise(masks=30)")
    monkeypatch.setattr("saliometer.methods.rise.BLOCK", 7)
    torch.testing.assert_close(explain(model, batch, "rise(masks=30)"), wanted)


@pytest.mark.parametrize("sides", [(56, 56), (20, 33), (1, 5)])
def test_parity_of_the_enlarged_grids_with_scikit_image(sides):
    """scikit-image 0.26, order 1, the border repeated as PyTorch does it."""
    count, cells = 5, 7
    images = torch.zeros(1, 1, *sides, dtype=torch.float64)
    seeds = forks(fork("rise", 0), torch.arange(count))
    grids = (uniform(seeds, "grids", cells, cells) < 0.5).double().numpy()
    corners = uniform(seeds, "corners", 2)
    cell = [-(-side // cells) for side in sides]
    for mask, grid, corner in zip(all_masks(images, count), grids, corners, strict=True):
        size = [side * (cells + 1) for side in cell]
        large = transform.resize(grid, size, order=1, mode="edge", anti_aliasing=False)
        top, left = (int(corner[i] * cell[i]) for i in (0, 1))
        wanted = torch.from_numpy(large[top : top + sides[0], left : left + sides[1]].copy())
        torch.testing.assert_close(mask, wanted, rtol=0, atol=1e-12)


def test_offsets_reach_every_pixel_of_a_cell():
    """A grid of 1 x 1 has no inner structure, one of 2 x 2 moves: the mask's steepest row is somewhere in one cell."""
    masks = all_masks(torch.zeros(1, 1, 16, 16), 400, cells=2)
    steepest = (masks[:, 1:] - masks[:, :-1]).abs().amax(2)
    assert len(steepest.argmax(1).unique()) >= 8


def test_all_images_share_their_masks_and_each_pass_is_counted_once():
    spy = Spy(small_cnn())
    explain(model_of(spy), noise_batch(), "rise(masks=30)")
    assert sum(spy.sizes) == 150
    same = batch_of(noise_batch(1).images.expand(2, -1, -1, -1))
    one, two = explain(model_of(small_cnn()), same, "rise(masks=30)")
    torch.testing.assert_close(one, two)


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ("masks=0", ValueError, "rise: masks=0, cells=7, keep=0.5; wanted masks and cells of 1 or more"),
        ("cells=0", ValueError, "rise: masks=4000, cells=0, keep=0.5; wanted"),
        ("keep=0.0", ValueError, "rise: masks=4000, cells=7, keep=0.0; wanted"),
        ("keep=1.5", ValueError, "rise: masks=4000, cells=7, keep=1.5; wanted"),
        ("fill=mean", ValueError, "fill=mean is the mean of reference images"),
        ("output=prob", LookupError, "there is no output 'prob'"),
    ],
)
def test_what_cannot_be_done_is_refused(params, error, words):
    with pytest.raises(AssertionError, match=rf"(?s){error.__name__}: {words}"):
        explain(model_of(small_cnn()), replace(noise_batch(), references=None), f"rise({params})")
