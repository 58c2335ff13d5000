"""Extremal perturbations: methods.md 8.5, its derivatives against autograd, its descent against PyTorch's, flags."""

from collections.abc import Generator, Sequence

import pytest
import torch
from scipy.ndimage import gaussian_filter
from torch import Tensor

from saliometer.engine.answer import Answers
from saliometer.engine.score import Failure, drive
from saliometer.methods._extremal import LEVELS, brush, mixed, pyramid, sharpened
from saliometer.methods.extremal_perturbation import REWARDS, preserving
from saliometer.perturb import blurred
from saliometer.types import Model, Question
from toys import CPU, Formula, Spy, batch_of, explain, explained, model_of, noise_batch, small_cnn

PATCH = torch.zeros(32, 32).index_fill(0, torch.arange(10, 22), 1) * torch.zeros(32).index_fill(
    0, torch.arange(10, 22), 1
)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def naive_masks(grids: Tensor, sides: tuple[int, int], step: int) -> Tensor:
    """(M, H, W): the smooth maximum as it is written down, every pixel against every node."""
    pixels = torch.cartesian_prod(*(torch.arange(side) for side in sides)).double()
    nodes = torch.cartesian_prod(*(step * torch.arange(-(-side // step)) for side in sides)).double()
    distance = torch.cdist(pixels, nodes)
    values = torch.exp(-2 * (distance / (3 * step) - 0.5).clamp(min=0) ** 2) * grids.flatten(1)[:, None]
    chances = (20 * values).masked_fill(distance > 4 * step + 1e-9, -torch.inf).softmax(2)
    return (values * chances).sum(2).view(-1, *sides)


@pytest.mark.parametrize(("sides", "step"), [((12, 9), 1), ((64, 20), 2), ((97, 20), 3), ((1, 5), 1)])
def test_a_mask_is_the_smooth_maximum_of_the_nodes_around_each_pixel(sides, step):
    paint = brush(torch.zeros(1, 1, *sides, dtype=torch.float64))
    grids = noise(3, *paint.nodes)
    assert paint.nodes == tuple(-(-side // step) for side in sides)
    torch.testing.assert_close(paint.masks(grids), naive_masks(grids, sides, step), rtol=0, atol=1e-12)


def test_masks_reach_from_0_to_nearly_1():
    paint = brush(torch.zeros(1, 1, 32, 32, dtype=torch.float64))
    assert paint.masks(torch.zeros(1, 32, 32, dtype=torch.float64)).abs().max() == 0
    full = paint.masks(torch.ones(1, 32, 32, dtype=torch.float64))
    assert full.min() > 0.95
    assert full.max() <= 1


@pytest.mark.parametrize("at_once", [2**26, 1])
def test_the_masks_derivative_is_autograds(at_once, monkeypatch):
    monkeypatch.setattr("saliometer.methods._extremal.AT_ONCE", at_once)
    paint = brush(torch.zeros(1, 1, 48, 33, dtype=torch.float64))  # nodes every 2 pixels
    grids, pull = noise(3, *paint.nodes).requires_grad_(), noise(3, 48, 33, seed=1) - 0.5
    (wanted,) = torch.autograd.grad((naive_masks(grids, (48, 33), 2) * pull).sum(), grids)
    found = paint.slopes(grids.detach(), paint.masks(grids.detach()), pull)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-12)


def test_the_pyramid_goes_from_20_pixels_of_blur_at_224_to_none():
    images = noise(2, 3, 56, 40)
    levels = pyramid(images)
    assert len(levels) == LEVELS == 8
    assert torch.equal(levels[7], images)
    torch.testing.assert_close(levels[0], blurred(images, 5.0))
    torch.testing.assert_close(levels[4], blurred(images, 5.0 * 3 / 7))


def test_images_are_mixed_straight_between_levels():
    levels = noise(8, 2, 3, 4, 5)
    for level in range(8):
        masks = torch.full((1, 2, 4, 5), level / 7, dtype=torch.float64)
        torch.testing.assert_close(mixed(levels, masks)[0][0], levels[level])
    masks = torch.full((1, 2, 4, 5), 2.25 / 7, dtype=torch.float64)
    mix, change = mixed(levels, masks)
    torch.testing.assert_close(mix[0], 0.75 * levels[2] + 0.25 * levels[3])
    torch.testing.assert_close(change[0], 7 * (levels[3] - levels[2]))
    whole = mixed(levels, torch.ones(1, 2, 4, 5, dtype=torch.float64))
    assert torch.equal(whole[0][0], levels[7])
    torch.testing.assert_close(whole[1][0], 7 * (levels[7] - levels[6]))


@pytest.mark.parametrize(("area", "wanted"), [(0.5, 0), (0.25, 0.25), (0.75, 0.25)])
def test_the_penalty_of_a_mask_that_is_half_on(area, wanted):
    masks = torch.tensor([[[[1.0, 0.0], [0.0, 1.0]]]])
    goal = sharpened(masks, (area,))
    assert (masks - goal).square().mean().item() == wanted
    assert goal.mean().item() == area


def test_the_goal_keeps_the_highest_pixels_of_each_mask():
    masks = noise(2, 3, 4, 5)
    goal = sharpened(masks, (0.1, 0.4))
    for area, some, goals in zip((2, 8), masks, goal, strict=True):
        for mask, sharp in zip(some, goals, strict=True):
            assert sharp.sum() == area
            assert mask[sharp == 1].min() > mask[sharp == 0].max()


@pytest.mark.parametrize("area", [0.01, 0.1, 0.5, 0.99])
def test_of_equal_pixels_the_last_are_kept(area):
    """As sorting pixels by their value, and then by their place, has it."""
    masks = (3 * noise(1, 4, 6, 7)).round()
    order = masks.flatten(2).argsort(dim=2, stable=True)
    sharp = (torch.arange(42) >= round((1 - area) * 42)).to(masks).expand_as(order)
    wanted = torch.empty_like(order, dtype=masks.dtype).scatter_(2, order, sharp)
    assert torch.equal(sharpened(masks, (area,)).flatten(2), wanted)


def driven(
    model: Model, levels: Tensor, grids: Tensor, areas: Sequence[float], gain: Tensor, weights: Sequence[float]
) -> Tensor:
    def game():
        return preserving(levels, brush(levels[-1]), grids, areas, gain, weights, "logit")

    targets = torch.zeros(levels.shape[1], dtype=torch.int64)
    found = drive({"game": game}, Answers(model, CPU), targets)["game"]
    assert not isinstance(found, Failure), found.traceback
    return found


def test_four_steps_are_those_of_pytorchs_descent():
    """A lopsided model, two areas, two images with gains of their own, a strong area weight; autograd in float64."""
    images = noise(2, 3, 12, 9)
    levels, areas, gain, weights = pyramid(images), (0.1, 0.3), torch.tensor([2.0, 0.5]).double(), [30, 60, 120, 240]
    slant = noise(3 * 12 * 9, seed=1) - 0.3

    def score(x: Tensor) -> Tensor:
        return torch.tanh(x.flatten(1) @ slant / 5)

    grids = 1 - 0.3 * noise(2, 2, 12, 9, seed=2)
    found = driven(model_of(Formula(score)), levels, grids, areas, gain, weights)

    parameters = grids.clone().requires_grad_()
    descent = torch.optim.SGD([parameters], lr=0.01, momentum=0.9, dampening=0.9)
    for t, weight in enumerate(weights):
        masks = naive_masks(parameters.flatten(0, 1), (12, 9), 1).view(2, 2, 12, 9)
        loss = torch.zeros((), dtype=torch.float64)
        for a, area in enumerate(areas):
            place = 7 * masks[a][:, None]
            tents = [levels[level] * (1 - (place - level).abs()).clamp(min=0) for level in range(8)]
            shown = torch.stack(tents).sum(0)
            reward = score(shown.flip(3) if t % 2 == 0 else shown)
            reference = (torch.arange(108) >= round((1 - area) * 108)).double()
            penalty = (masks[a].flatten(1).sort(1).values - reference).square().mean(1)
            loss = loss - (gain * reward - weight * penalty).sum()
        descent.zero_grad()
        loss.backward()
        descent.step()
        parameters.data.clamp_(0, 1)
    wanted = naive_masks(parameters.detach().flatten(0, 1), (12, 9), 1).view(2, 2, 12, 9)
    assert (wanted - naive_masks(grids.flatten(0, 1), (12, 9), 1).view(2, 2, 12, 9)).abs().max() > 0.01
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-10)


def faded(areas: tuple[float, ...], reward: str) -> Tensor:
    """(areas, 32, 32): the toy of the sheet, an image of ones faded to 0 whose score is ten times the patch's mean."""
    levels = torch.linspace(0, 1, 8).view(8, 1, 1, 1, 1).expand(8, 1, 1, 32, 32)
    model = model_of(Formula(lambda x: 10 * (x @ PATCH.flatten()) / 144))
    grids = 1 - 1e-3 * noise(len(areas), 1, 32, 32).float()
    first, growth = REWARDS[reward]
    weights = [first * growth**t for t in range(800)]
    return driven(model, levels, grids, areas, torch.ones(1), weights)[:, 0]


def test_the_toy_of_the_sheet_is_found():
    """0.879 inside, 0.026 outside, area 0.146."""
    (mask,) = faded((144 / 1024,), "scaled")
    assert mask[PATCH > 0].mean().item() == pytest.approx(0.879, abs=0.01)
    assert mask[PATCH == 0].mean().item() == pytest.approx(0.026, abs=0.01)
    assert mask.mean().item() == pytest.approx(0.146, abs=0.003)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reward", "area", "wanted"), [("scaled", 0.05, (0.334, 0.001, 0.048)), ("raw", 144 / 1024, (0.007, 0.165, 0.143))]
)
def test_a_smaller_area_is_kept_too_and_torchrays_schedule_misses_the_toy(reward, area, wanted):
    """The mean inside, outside and overall."""
    (mask,) = faded((area,), reward)
    found = [mask[PATCH > 0].mean().item(), mask[PATCH == 0].mean().item(), mask.mean().item()]
    assert found == pytest.approx(wanted, abs=0.02)


def texture() -> tuple[Model, Tensor]:
    """Black and white pixels, and a model that reads those of the patch: blur takes them away."""
    checks = ((torch.arange(32)[:, None] + torch.arange(32)) % 2).float()
    checks = torch.cat((checks[:, :16], checks[:, :16].flip(1)), 1)  # the same in a mirror
    template = (checks - 0.5) * PATCH
    return model_of(Formula(lambda x: 40 * (x @ template.flatten()) / 144)), checks[None, None]


def test_it_marks_the_patch_that_the_score_reads():
    model, images = texture()
    found = explained(model, batch_of(images), "extremal_perturbation(steps=200,areas='0.1')")
    inside, outside = found.maps[0, 0][PATCH > 0], found.maps[0, 0][PATCH == 0]
    assert inside.mean() > outside.mean() + 0.1
    assert PATCH.flatten()[found.maps.argmax()] == 1
    assert found.flags["flat_score"].tolist() == [False]


def test_it_reports_the_area_it_reached_and_the_score_it_kept():
    model, images = texture()
    found = explained(model, batch_of(images), "extremal_perturbation(steps=2,areas='0.1,0.97')")
    assert sorted(found.facts) == ["area 0.1", "area 0.97", "score 0.1", "score 0.97"]
    assert found.facts["area 0.97"].item() > 0.9
    whole = model.logits(images)[0, 0].item()
    assert 0.5 * whole < found.facts["score 0.97"].item() <= whole
    assert found.flags["loose"].tolist() == [True]  # two steps are too few for a tenth
    near = explained(model, batch_of(images), "extremal_perturbation(steps=2,areas='0.97')")
    assert near.flags["loose"].tolist() == [False]


def test_the_map_is_the_sum_of_the_masks():
    model, images = texture()
    one, two, both = (
        explain(model, batch_of(images), f"extremal_perturbation(steps=5,areas='{areas}')")
        for areas in ("0.1", "0.4", "0.1,0.4")
    )
    torch.testing.assert_close(one + two, both)


def test_the_map_is_out_of_focus_by_nine_hundredths_of_the_shorter_side(monkeypatch):
    """Two masks of a spot each; the border mirrors, its edge pixels not repeated."""
    masks = torch.zeros(2, 1, 32, 32)
    masks[0, 0, 16, 16], masks[1, 0, 2, 30] = 1, 0.5

    def given(*_: object) -> Generator[Question, Tensor, Tensor]:
        yield from ()
        return masks

    monkeypatch.setattr("saliometer.methods.extremal_perturbation.preserving", given)
    model, images = texture()
    found = explain(model, batch_of(images), "extremal_perturbation(areas='0.1,0.2',steps=1)")[0, 0]
    wanted = gaussian_filter(masks.sum((0, 1)).double().numpy(), 0.09 * 32, mode="mirror", truncate=4)
    torch.testing.assert_close(found.double(), torch.from_numpy(wanted), rtol=0, atol=1e-7)


def test_an_image_that_blur_leaves_alone_gets_zeros_and_a_word():
    model, images = texture()
    batch = batch_of(torch.cat((images, torch.full_like(images, 0.5))))
    found = explained(model, batch, "extremal_perturbation(steps=3)")
    assert found.flags["flat_score"].tolist() == [False, True]
    assert found.maps[1].abs().max() == 0
    assert found.maps[0].abs().max() > 0


def test_a_step_is_one_pass_for_each_area():
    spy = Spy(small_cnn())
    explain(model_of(spy), noise_batch(3), "extremal_perturbation(steps=5,areas='0.1,0.2')", size=64)
    assert sum(spy.sizes) == 3 * (2 + 5 * 2 + 2)


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ("steps=0", ValueError, "extremal_perturbation: steps=0, wanted 1 or more"),
        ("areas=''", ValueError, "extremal_perturbation: areas='', wanted shares of the image like '0.05,0.1'"),
        ("areas='0.1,half'", ValueError, "extremal_perturbation: areas='0.1,half', wanted"),
        ("areas='0.1,1'", ValueError, "extremal_perturbation: areas='0.1,1', wanted"),
        ("reward=contrast", LookupError, "there is no reward 'contrast'"),
        ("output=logits", LookupError, "there is no output 'logits'"),
    ],
)
def test_what_cannot_be_done_is_refused(params, error, words):
    with pytest.raises(AssertionError, match=rf"(?s){error.__name__}: {words}"):
        explain(model_of(small_cnn()), noise_batch(), f"extremal_perturbation({params})")
