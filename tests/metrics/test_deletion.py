"""Deletion: analytic models, rank invariance, ties, shared end points."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from battery_toys import Odds, all_costs, judged, photos, value
from toys import model_of, small_cnn

GENERATOR = torch.Generator().manual_seed(0)
ONE = torch.rand(1, 3, 8, 8, generator=GENERATOR) + 0.1
IMAGES = ONE.expand(5, 3, 8, 8).clone()
MAPS = torch.rand(5, 8, 8, generator=GENERATOR)
FAKE = torch.ones(1, 8, 8)
FAKE[0, 0, 0] = 0.0
INTACT = Odds(lambda x: (x == ONE).all(1).float().mean((1, 2)))  # the fraction of pixels that are as they were


def pixel(row: int, column: int, image: torch.Tensor = ONE) -> Odds:
    """Sure as long as one pixel is as it was."""
    return Odds(lambda x: (x[:, :, row, column] == image[:, :, row, column]).all(1).float())


@pytest.mark.parametrize("steps", [1, 4, 16, 64])
def test_the_fraction_of_intact_pixels_gives_one_half_for_every_map(steps):
    maps = torch.cat((MAPS, FAKE, torch.zeros(1, 8, 8)))
    values = value(f"deletion(steps={steps})", INTACT, maps, photos(ONE.expand(7, 3, 8, 8)))
    assert values.tolist() == pytest.approx([0.5] * 7, abs=1e-7)


@pytest.mark.parametrize("rank", [0, 1, 7, 31, 63])
def test_one_decisive_pixel_gives_a_step_after_its_rank(rank):
    maps = torch.randperm(64, generator=GENERATOR).view(1, 8, 8).float()
    row, column = divmod((63 - maps).flatten().argsort()[rank].item(), 8)
    values = value("deletion(steps=64)", pixel(row, column), maps, photos(ONE))
    assert values.item() == pytest.approx((rank + 0.5) / 64)  # 1 for s_0 to s_rank
    coarse = value("deletion(steps=8)", pixel(row, column), maps, photos(ONE))
    assert coarse.item() == pytest.approx((rank // 8 + 0.5) / 8)


def test_a_last_partial_step_keeps_its_width():
    """Ten pixels in steps of 3: s = 1, 0.7, 0.4, 0.1, 0."""
    image = torch.rand(1, 1, 2, 5, generator=GENERATOR) + 0.1
    net = Odds(lambda x: (x == image).float().mean((1, 2, 3)))
    values = value("deletion(steps=4)", net, torch.rand(1, 2, 5), photos(image))
    assert values.item() == pytest.approx((0.5 + 0.7 + 0.4 + 0.1) / 4)


@settings(deadline=None, max_examples=25)
@given(
    seed=st.integers(0, 10**6),
    change=st.sampled_from([lambda m: 3 * m + 1, torch.exp, lambda m: m**3, lambda m: m.sqrt(), lambda m: m * 1e-6]),
    tied=st.booleans(),
)
def test_only_ranks_matter(seed, change, tied):
    maps = torch.rand(2, 8, 8, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) + 0.01
    maps = (maps * 4).ceil() / 4 if tied else maps
    images = photos(torch.rand(2, 3, 8, 8, generator=torch.Generator().manual_seed(seed + 1)))
    before, after = (value("deletion(steps=16)", small_cnn(), m, images) for m in (maps, change(maps)))
    assert torch.equal(before, after)


def test_ties_as_rise_has_them_run_the_raster_backwards():
    """Fake-CAM and a constant map lose the last pixel first, the top left one last."""
    for maps in (FAKE, torch.full((1, 8, 8), 0.3), torch.zeros(1, 8, 8)):
        for place in (0, 1, 8, 62, 63):
            found = value("deletion(steps=64,ties=rise)", pixel(*divmod(place, 8)), maps, photos(ONE))
            assert found.item() == pytest.approx((63 - place + 0.5) / 64)


def test_ties_by_seed_follow_the_image_and_are_fair():
    count = 400
    samples = photos(ONE.expand(count, 3, 8, 8))
    flat = torch.ones(count, 8, 8)
    values = value("deletion(steps=64)", pixel(0, 0), flat, samples)
    assert values.mean().item() == pytest.approx(0.5, abs=4 * (1 / 12 / count) ** 0.5)
    alone = value("deletion(steps=64)", pixel(0, 0), flat[:1], photos(ONE, first=107))
    assert alone.item() == pytest.approx(values[7].item())


def test_draws_are_averaged_where_there_are_ties_and_change_nothing_elsewhere():
    mixed = torch.cat((MAPS[:2], torch.ones(1, 8, 8)))
    samples = photos(ONE.expand(3, 3, 8, 8))
    net = Odds(lambda x: (x[:, 0, 0] == ONE[:, 0, 0]).float().mean(1))
    once, many = (value(f"deletion(steps=16,draws={draws})", net, mixed, samples) for draws in (1, 5))
    assert torch.equal(once[:2], many[:2])
    assert once[2] != many[2]
    assert abs(value("deletion(steps=16,draws=40)", net, mixed, samples)[2] - 0.5) < 0.1


def test_draws_cost_nothing_where_no_map_has_ties():
    model = model_of(small_cnn())
    _, _, cost = judged("deletion(steps=16,draws=5)", model, MAPS, photos(IMAGES))
    assert cost.passes == 5 * 17
    _, _, cost = judged("deletion(steps=16,draws=5)", model, torch.ones_like(MAPS), photos(IMAGES))
    assert cost.passes == 5 * (2 + 5 * 15)
    _, _, cost = judged("deletion(steps=16,draws=5,ties=rise)", model, torch.ones_like(MAPS), photos(IMAGES))
    assert cost.passes == 5 * 17


def test_the_ends_are_shared_with_other_metrics():
    texts = ["average_drop", "deletion(steps=4)", "insertion(steps=4)", "deletion(steps=8)"]
    costs = all_costs(texts, model_of(small_cnn()), MAPS[:, None], photos(IMAGES))
    assert [cost.passes for cost in costs] == [5 * passes for passes in (2, 4, 4, 7)]


def test_what_is_left_is_grey_or_black():
    model = model_of(Odds(lambda x: x.mean((1, 2, 3)) * 0.25 + 0.5), mean=(0.5,), std=(0.25,))
    white = photos(torch.full((1, 1, 4, 4), 2.0))  # pixels of 1: p = 1, grey 0.5, black 0
    assert value("deletion(steps=16)", model, MAPS[:1, :4, :4], white).item() == pytest.approx(0.75)
    assert value("deletion(steps=16,space=raw)", model, MAPS[:1, :4, :4], white).item() == pytest.approx(0.5)


def test_a_value_does_not_depend_on_its_neighbours_or_on_the_packing():
    generator = torch.Generator().manual_seed(5)
    images, maps = torch.rand(4, 3, 8, 8, generator=generator), torch.rand(4, 8, 8, generator=generator).round()
    net = Odds(lambda x: (x.mean((1, 2, 3)) - 0.25).sigmoid())
    together = value("deletion(steps=16)", net, maps, photos(images))
    for size in (1, 3, 64):
        packed = judged("deletion(steps=16)", net, maps, photos(images), size=size)[0]["deletion"]
        assert packed.tolist() == pytest.approx(together.tolist(), abs=1e-6)
    for i in range(4):
        alone = value("deletion(steps=16)", net, maps[i : i + 1], photos(images[i : i + 1], first=100 + i))
        assert alone.item() == pytest.approx(together[i].item(), abs=1e-6)


def test_a_broken_map_is_invalid_and_a_constant_one_is_not():
    maps = MAPS.clone()
    maps[0, 2, 2], maps[1] = torch.nan, 0.5
    found, notes, _ = judged("deletion(steps=4)", small_cnn(), maps, photos(IMAGES))
    assert found["deletion"].isnan().tolist() == [True, False, False, False, False]
    assert notes[:3] == ["nan map", "constant map", ""]


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("steps=0", "steps=0: wanted 1 or more"),
        ("draws=0", "draws=0: wanted 1 or more"),
        ("ties=last", "there is no ties 'last'"),
        ("space=pink", "there is no space 'pink'"),
    ],
)
def test_what_makes_no_sense_is_refused(params, words):
    with pytest.raises(AssertionError, match=words):
        value(f"deletion({params})", small_cnn(), MAPS, photos(IMAGES))
