"""ROAD: the fill against direct solves and by hand, the curves by a model that reads one pixel."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from scipy.sparse.linalg import spsolve
from torch import Tensor, nn

from battery_toys import Odds, all_costs, judged, photos, value
from saliometer.metrics import _fill
from saliometer.metrics._fill import restored
from toys import model_of, small_cnn


def random(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float64) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


def holes(share: float, *shape: int, seed: int = 0) -> Tensor:
    """Exactly this share of each image's pixels, drawn at random."""
    noise = random(*shape, seed=seed).flatten(1)
    return (noise.argsort(1).argsort(1) < round(share * noise.shape[1])).view(shape)


def directly(image: Tensor, missing: Tensor) -> Tensor:
    """(C, H, W): the same equations written down one by one and solved by elimination."""
    height, width = missing.shape
    places = {tuple(place): i for i, place in enumerate(missing.nonzero().tolist())}
    matrix, right = np.zeros((len(places), len(places))), np.zeros((len(places), len(image)))
    for (row, column), i in places.items():
        for down in (-1, 0, 1):
            for across in (-1, 0, 1):
                there = row + down, column + across
                if (down, across) == (0, 0) or not (0 <= there[0] < height and 0 <= there[1] < width):
                    continue
                weight = 1 / 6 if 0 in (down, across) else 1 / 12
                matrix[i, i] += weight
                if there in places:
                    matrix[i, places[there]] -= weight
                else:
                    right[i] += weight * image[:, there[0], there[1]].numpy()
    filled = image.clone()
    filled[:, missing] = torch.from_numpy(spsolve(csr_matrix(matrix), right).reshape(len(places), -1).T)
    return filled


# The fill


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_fill_is_the_one_of_a_direct_solve(share):
    images, missing = random(3, 3, 16, 16), holes(share, 3, 16, 16)
    wanted = torch.stack([directly(*pair) for pair in zip(images, missing, strict=True)])
    torch.testing.assert_close(restored(images, missing), wanted, rtol=0, atol=1e-7)
    rough = restored(images.float(), missing)
    torch.testing.assert_close(rough.double(), wanted, rtol=0, atol=5e-4)


def test_the_fill_is_the_one_of_pytorch_grad_cam_whose_weights_are_right():
    road = pytest.importorskip("pytorch_grad_cam.metrics.road")
    image, missing = random(3, 16, 16), holes(0.7, 1, 16, 16)
    filled = road.NoisyLinearImputer(noise=0)(image.float(), (~missing[0]).float())
    torch.testing.assert_close(restored(image[None], missing)[0].float(), filled, rtol=0, atol=1e-5)


def test_one_missing_pixel_is_the_weighted_mean_of_its_neighbours():
    image = random(1, 1, 5, 5)
    a = image[0, 0]
    by_hand = {
        (2, 2): (a[1, 2] + a[3, 2] + a[2, 1] + a[2, 3]) / 6 + (a[1, 1] + a[1, 3] + a[3, 1] + a[3, 3]) / 12,
        (0, 2): (a[0, 1] + a[0, 3] + a[1, 2]) / 4 + (a[1, 1] + a[1, 3]) / 8,
        (4, 0): (a[3, 0] + a[4, 1]) * 2 / 5 + a[3, 1] / 5,
    }
    for place, wanted in by_hand.items():
        missing = torch.zeros(1, 5, 5, dtype=torch.bool)
        missing[0][place] = True
        filled = restored(image, missing)
        torch.testing.assert_close(filled[0, 0][place], wanted)
        assert torch.equal(filled[0, 0][~missing[0]], a[~missing[0]])


def test_a_constant_image_is_filled_with_itself_and_a_black_one_exactly():
    missing = holes(0.9, 4, 12, 12)
    grey = torch.full((4, 3, 12, 12), 0.3, dtype=torch.float64)
    torch.testing.assert_close(restored(grey, missing), grey)
    assert restored(torch.zeros(4, 3, 12, 12), missing).eq(0).all()


def test_a_ramp_is_restored_inside_a_hole_but_not_where_the_hole_touches_the_border():
    rows, columns = torch.arange(14.0).double(), torch.arange(14.0).double()
    ramp = (0.02 * rows[:, None] + 0.03 * columns)[None, None]
    missing = torch.zeros(2, 14, 14, dtype=torch.bool)
    missing[0, 3:10, 2:11] = True
    missing[1, 3:10, :5] = True
    filled = restored(ramp.expand(2, 1, 14, 14), missing)
    torch.testing.assert_close(filled[0], ramp[0], rtol=0, atol=1e-8)
    assert (filled[1] - ramp[0]).abs().max() > 0.01


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_filled_values_lie_between_the_known_ones(dtype):
    images, missing = random(4, 2, 15, 17).to(dtype), holes(0.8, 4, 15, 17)
    filled = restored(images, missing)
    known = images.masked_fill(missing[:, None], torch.nan)
    low, high = (known.nan_to_num(edge).flatten(2) for edge in (9.0, -9.0))
    assert (filled.flatten(2).amin(2) >= low.amin(2) - 1e-4).all()
    assert (filled.flatten(2).amax(2) <= high.amax(2) + 1e-4).all()


def test_the_fill_commutes_with_a_scale_and_an_offset_of_each_channel():
    images, missing = random(2, 3, 16, 16), holes(0.6, 2, 16, 16)
    scale, offset = torch.tensor([2.0, 0.5, 3.0]).view(3, 1, 1), torch.tensor([-1.0, 0.2, 4.0]).view(3, 1, 1)
    torch.testing.assert_close(restored(images * scale + offset, missing), restored(images, missing) * scale + offset)


def test_a_fill_is_the_same_alone_and_in_a_batch():
    images, missing = random(6, 3, 16, 16).float(), holes(0.5, 6, 16, 16)
    missing[3] = holes(0.9, 1, 16, 16)[0]  # takes longer than the others
    together = restored(images, missing)
    alone = torch.cat([restored(images[i : i + 1], missing[i : i + 1]) for i in range(6)])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-6)


def test_what_was_not_found_is_nan_and_takes_nobody_else_with_it():
    images, missing = random(3, 1, 24, 24).float(), holes(0.01, 3, 24, 24)
    missing[1] = True
    missing[1, 0, 0] = missing[1, 23, 23] = False  # all but two corners: many steps
    filled = restored(images, missing, steps=6)
    assert filled[1, 0][missing[1]].isnan().all()
    assert filled[[0, 2]].isfinite().all()
    missing[1] = True  # nothing to go by
    assert restored(images, missing)[1].isnan().all()
    assert restored(images[1:2], missing[1:2]).isnan().all()


@pytest.mark.parametrize("shape", [(128, 128), (101, 77), (1, 40)])
def test_a_hole_of_nine_tenths_in_one_piece_takes_few_steps(shape):
    """Plain conjugate gradient takes hundreds; float32 stays far below the noise that is added."""
    image = random(1, 3, *shape)
    missing = (torch.arange(shape[0] * shape[1]) >= shape[0] * shape[1] // 10).view(1, *shape)
    exact = restored(image, missing, steps=96)
    assert exact.isfinite().all()
    torch.testing.assert_close(restored(image.float(), missing).double(), exact, rtol=0, atol=5e-4)


@pytest.mark.parametrize("shape", [(16, 16), (15, 9), (4, 7), (1, 40)])
def test_a_gpu_s_way_to_the_same_sums(shape):
    values = random(2, 3, *shape)
    torch.testing.assert_close(_fill.around_at_once(values), _fill._around(values))
    small = _fill._down(values)
    torch.testing.assert_close(_fill.down_at_once(values), small)
    torch.testing.assert_close(_fill.up_at_once(small, values), _fill._up(small, values))


def test_large_batches_are_solved_in_parts(monkeypatch):
    images, missing = random(5, 3, 16, 16), holes(0.5, 5, 16, 16)
    whole = restored(images, missing)
    monkeypatch.setitem(_fill.ROOM, "cpu", 2 * 3 * 16 * 16)
    torch.testing.assert_close(restored(images, missing), whole, rtol=0, atol=1e-7)


# The metric

SIDE = 10  # 100 pixels, so that shares are whole numbers of them


def lamp(place: int) -> Tensor:
    """(1, 1, 10, 10): black but for one white pixel."""
    image = torch.zeros(1, 1, SIDE * SIDE)
    image[..., place] = 1
    return image.view(1, 1, SIDE, SIDE)


def reads(place: int) -> nn.Module:
    return Odds(lambda images: images.flatten(1)[:, place])


def ordered(place: int, rank: int) -> Tensor:
    """(1, 10, 10): a map without ties that gives a pixel this rank."""
    others = [p for p in range(SIDE * SIDE) if p != place]
    order = [*others[:rank], place, *others[rank:]]
    maps = torch.zeros(SIDE * SIDE)
    maps[order] = torch.arange(SIDE * SIDE, 0, -1.0)
    return maps.view(1, SIDE, SIDE)


@pytest.mark.parametrize(
    ("rank", "morf", "lerf", "both"), [(0, 0, 1, 0.5), (99, 1, 0, -0.5), (45, 4 / 9, 5 / 9, 1 / 18)]
)
def test_a_model_that_reads_one_pixel(rank, morf, lerf, both):
    found, notes, cost = judged("road(noise=0.0)", reads(37), ordered(37, rank), photos(lamp(37)))
    assert found["road.morf"].item() == pytest.approx(morf, abs=1e-6)
    assert found["road.lerf"].item() == pytest.approx(lerf, abs=1e-6)
    assert found["road"].item() == pytest.approx(both, abs=1e-6)
    assert notes == [""]
    assert cost.passes == 18
    for order, wanted in (("morf", morf), ("lerf", lerf)):
        alone = value(f"road(order={order},noise=0.0)", reads(37), ordered(37, rank), photos(lamp(37)))
        assert alone.item() == pytest.approx(wanted, abs=1e-6)


def test_exactly_the_asked_share_goes_however_many_ties_there_are():
    seen: list[Tensor] = []

    def share(images: Tensor) -> Tensor:
        seen.append(images.clone())
        return images.mean((1, 2, 3)).clamp(0.01, 0.99)

    image = 0.2 + 0.6 * random(1, 3, SIDE, SIDE).float()
    maps = torch.zeros(1, SIDE, SIDE)
    maps[0, :5] = 1.0
    judged("road(shares='10,55')", Odds(share), maps, photos(image))
    gone = [(copy != image[0]).any(0) for copy in torch.cat(seen)]
    assert [int(one.sum()) for one in gone] == [10, 55, 10, 55]
    assert gone[0][:5].sum() == 10  # the highest first
    assert gone[1][:5].all()
    assert gone[2][5:].sum() == 10  # the lowest first
    assert gone[3][5:].all()


def test_pytorch_grad_cam_loses_every_pixel_of_a_constant_map():
    removal = pytest.importorskip("pytorch_grad_cam.metrics.perturbation_confidence")
    remove = removal.RemoveMostRelevantFirst(80, lambda image, mask: mask)
    assert remove(torch.zeros(3, 8, 8), torch.ones(8, 8)).sum() == 0  # asked to remove 20 % of the pixels
    maps, image = torch.ones(1, SIDE, SIDE), random(1, 3, SIDE, SIDE).float()
    kept = Odds(lambda images: (images == image).all(1).float().mean((1, 2)).clamp(0.01, 0.99))
    assert value("road(shares='20',order=morf)", kept, maps, photos(image)).item() == pytest.approx(0.8)


def test_noise_lies_on_filled_pixels_only_in_units_of_pixels_and_is_drawn_by_seed():
    seen: list[Tensor] = []

    def keep(images: Tensor) -> Tensor:
        seen.append(images.clone())
        return images.mean((1, 2, 3)).sigmoid()

    model = model_of(Odds(keep), mean=(0.5,), std=(0.25,))
    images = torch.full((2, 3, 32, 32), 0.4)
    maps = random(2, 32, 32).float()
    judged("road(shares='50')", model, maps, photos(images))
    first = torch.cat(seen)[:2] - images
    spread = first[first != 0]
    assert len(spread) == 2 * 3 * 512
    assert spread.std().item() == pytest.approx(0.01 / 0.25, rel=0.05)
    assert not torch.equal(first[0][first[0] != 0], first[1][first[1] != 0])
    seen.clear()
    judged("road(shares='50')", model, maps[1:], photos(images[1:], first=101))
    torch.testing.assert_close(torch.cat(seen)[:1] - images[1:], first[1:], rtol=0, atol=1e-5)


def test_a_random_map_scores_0_and_the_truth_more():
    images = 0.5 * random(200, 1, SIDE, SIDE, seed=1).float()
    images[:, :, 2:5, 2:5] = 1.0
    model = Odds(lambda x: x[:, :, 2:5, 2:5].mean((1, 2, 3)).clamp(0.01, 0.99))
    lots = value("road", model, random(200, SIDE, SIDE, seed=2).float(), photos(images))
    assert abs(lots.mean().item()) < 4 * lots.std().item() / 200**0.5
    flat = value("road", model, torch.zeros(200, SIDE, SIDE), photos(images))
    assert abs(flat.mean().item()) < 4 * flat.std().item() / 200**0.5
    truth = torch.zeros(200, SIDE, SIDE)
    truth[:, 2:5, 2:5] = 1
    assert (value("road", model, truth, photos(images)) > lots.mean() + 0.1).all()


def test_a_strictly_increasing_change_of_the_map_is_nothing_to_it():
    maps, samples = random(3, 8, 8).float(), photos(random(3, 3, 8, 8).float())
    one, two = (value("road", small_cnn(), m, samples) for m in (maps, (3 * maps).exp()))
    assert torch.equal(one, two)


def test_logits_and_accuracy_as_scores():
    net, images, maps = small_cnn(), random(4, 3, 8, 8).float(), random(4, 8, 8).float()
    samples = photos(images, net(images).argmax(1))
    found, *_ = judged("road(score=accuracy)", net, maps, samples)
    assert torch.equal((9 * found["road.morf"]).round(), 9 * found["road.morf"])
    logit, *_ = judged("road(score=logit)", net, maps, samples)
    assert not torch.allclose(logit["road.morf"], found["road.morf"])
    scaled = nn.Sequential(net, nn.Linear(3, 3, bias=False))
    scaled[1].weight.data = 5 * torch.eye(3)
    torch.testing.assert_close(judged("road(score=logit)", scaled, maps, samples)[0]["road"], 5 * logit["road"])


def test_the_three_orders_share_their_passes():
    images, maps = random(2, 3, 8, 8).float(), random(2, 1, 8, 8).float()
    costs = all_costs(["road", "road(order=morf)", "road(order=lerf)"], model_of(small_cnn()), maps, photos(images))
    assert [cost.passes for cost in costs] == [36, 0, 0]
    assert [cost.shared for cost in costs] == [0, 36, 36]


def test_an_image_whose_fill_was_not_found_is_invalid(monkeypatch):
    monkeypatch.setattr("saliometer.metrics.road.restored", lambda i, m: torch.full_like(i, torch.nan))
    maps, samples = random(1, 8, 8).float(), photos(random(1, 3, 8, 8).float())
    for score in ("probability", "accuracy"):
        found, notes, _ = judged(f"road(score={score})", small_cnn(), maps, samples)
        assert all(values.isnan().all() for values in found.values())
        assert "fill was not found" in notes[0]


@pytest.mark.parametrize("text", ["road(shares='0,50')", "road(shares='a')", "road(shares='')", "road(noise=-1.0)"])
def test_bad_parameters_are_named(text):
    with pytest.raises(AssertionError, match=r"metric 'road': .*wanted"):
        judged(text, small_cnn(), torch.rand(1, 8, 8), photos(torch.rand(1, 3, 8, 8)))
