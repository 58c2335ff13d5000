"""Monotonicity in its four definitions: known answers, ceilings, tiny probabilities."""

import pytest
import torch
from torch import nn

from battery_toys import Odds, all_costs, judged, photos, value
from saliometer.metrics.monotonicity import set_means, set_sizes
from toys import model_of, small_cnn

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.rand(6, 3, 8, 8, generator=GENERATOR) * 0.8 + 0.1
MAPS = torch.rand(6, 8, 8, generator=GENERATOR)
WEIGHTS = torch.arange(64.0).view(8, 8)[None]  # how much each pixel matters
NGUYEN = "monotonicity(sets=16,fills=4)"


class Weighted(nn.Module):
    """Log-odds that a weighted sum over what differs from one image moves, whatever it is changed to."""

    def __init__(self, weights, image, offset=0.0, scale=0.01):
        super().__init__()
        self.weights, self.image, self.offset, self.scale = weights, image, offset, scale

    def forward(self, images):
        intact = (images == self.image).all(1).float()
        odds = self.offset + self.scale * (intact * self.weights).sum((1, 2))
        return torch.stack((odds, torch.zeros_like(odds)), 1)


def fake(side: int, count: int = 1) -> torch.Tensor:
    maps = torch.ones(count, side, side)
    maps[:, 0, 0] = 0.0
    return maps


# Nguyen and Martinez


def test_a_map_that_knows_what_matters_has_1_and_its_opposite_minus_1():
    samples = photos(IMAGES[:1])
    net = Weighted(WEIGHTS[0], IMAGES[:1])
    assert value(NGUYEN, net, WEIGHTS + 1, samples).item() == pytest.approx(1)
    assert value(NGUYEN, net, 65 - WEIGHTS, samples).item() == pytest.approx(-1)
    assert value(NGUYEN, net, (WEIGHTS + 1) ** 3 * 1e-9, samples).item() == pytest.approx(1)


@pytest.mark.parametrize("offset", [-300.0, -60.0, 0.0, 20.0, 60.0])
def test_tiny_and_sure_probabilities_change_nothing_about_the_order(offset):
    net = Weighted(WEIGHTS[0], IMAGES[:1], offset)
    assert value(NGUYEN, net, WEIGHTS + 1, photos(IMAGES[:1])).item() == pytest.approx(1)
    assert value(NGUYEN, net, WEIGHTS + 1, photos(IMAGES[:1], 1)).item() == pytest.approx(1)


def test_a_random_map_has_about_0():
    count = 60
    maps = torch.rand(count, 8, 8, generator=GENERATOR)
    net = Weighted(WEIGHTS[0], IMAGES[:1])
    values = value("monotonicity(sets=64,fills=1)", net, maps, photos(IMAGES[:1].expand(count, 3, 8, 8)))
    assert values.mean().item() == pytest.approx(0, abs=4 / (63 * count) ** 0.5)


@pytest.mark.parametrize(("sets", "ceiling"), [(4, 0.775), (16, 0.420), (64, 0.215)])
def test_fake_cam_cannot_pass_its_ceiling(sets, ceiling):
    assert (3 / (sets + 1)) ** 0.5 == pytest.approx(ceiling, abs=5e-4)
    least = torch.ones(8, 8)
    least[0, 0] = 0.0  # the special pixel is the only one that does not matter
    one = photos(IMAGES[:1])
    reached = value(f"monotonicity(sets={sets},fills=2)", Weighted(least, IMAGES[:1]), fake(8), one).item()
    if sets == 64:  # the sets' own change is tied as well, so the ranks agree wholly
        assert reached == pytest.approx(1)
    generator = torch.Generator().manual_seed(sets)
    for _ in range(5):  # no two sets change alike
        uneven = torch.rand(8, 8, generator=generator) + 1
        uneven[0, 0] = -10.0 if sets == 64 else 0.0
        net = Weighted(uneven, IMAGES[:1])
        for maps in (fake(8), 1 - fake(8)):
            assert abs(value(f"monotonicity(sets={sets},fills=2)", net, maps, one).item()) <= ceiling + 5e-4


def test_the_ceiling_is_reached_where_the_special_set_matters_least():
    weights = torch.rand(8, 8, generator=GENERATOR) + 1
    weights[0, 0] = 0.0
    found = value("monotonicity(sets=64,fills=1)", Weighted(weights, IMAGES[:1]), fake(8), photos(IMAGES[:1]))
    assert found.item() == pytest.approx((3 / 65) ** 0.5)


def test_a_constant_map_and_a_model_that_does_not_care_are_invalid():
    maps = MAPS.clone()
    maps[0], maps[1], maps[2, 0, 0] = 0.0, 7.0, torch.nan
    found, notes, _ = judged(NGUYEN, small_cnn(), maps, photos(IMAGES))
    assert found["monotonicity"].isnan().tolist() == [True, True, True, False, False, False]
    reason = "sets or scores that are all the same have no correlation"
    assert notes == [f"zero map; {reason}", f"constant map; {reason}", "nan map", "", "", ""]
    deaf, notes, _ = judged(NGUYEN, Odds(lambda x: torch.full((len(x),), 0.3)), MAPS, photos(IMAGES))
    assert deaf["monotonicity"].isnan().all()
    assert notes == [reason] * 6
    assert value(NGUYEN, Odds(lambda x: torch.zeros(len(x))), MAPS, photos(IMAGES)).isnan().all()


def test_fills_are_noise_in_pixels_and_only_in_the_set():
    seen = []

    class Kept(nn.Module):
        def forward(self, images):
            seen.extend(images.clone())
            return images.mean((2, 3))

    model = model_of(Kept(), mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.3))
    value("monotonicity(sets=4,fills=2)", model, MAPS[:1], photos(IMAGES[:1]))
    _, *copies = seen
    assert len(copies) == 8
    changed = torch.stack([(copy != IMAGES[0]).all(0) for copy in copies])
    assert changed.sum((1, 2)).tolist() == [16] * 8
    assert torch.equal(changed[:4].sum(0), torch.ones(8, 8, dtype=torch.int64))  # every pixel in one set
    assert torch.equal(changed[:4], changed[4:])
    pixels = model.pixels(torch.stack(copies)).movedim(1, -1)[changed]
    assert 0 <= pixels.min() < 0.1
    assert 0.9 < pixels.max() <= 1
    assert len(pixels.unique()) > 0.99 * pixels.numel()  # a number of its own for each pixel, channel and fill


def test_sets_are_equal_where_they_can_be_and_none_is_empty():
    assert set_sizes(50176, 224).tolist() == [224] * 224
    assert set_sizes(10, 4).tolist() == [3, 3, 2, 2]
    assert set_sizes(3, 224).tolist() == [1, 1, 1]
    means = set_means(torch.tensor([[[4.0, 0.0, 2.0], [2.0, 1.0, 9.0]]]).double(), set_sizes(6, 4))
    assert means.tolist() == [[6.5, 2.0, 1.0, 0.0]]


def test_sets_of_unequal_size_do_not_look_different_by_their_size():
    flat = torch.full((1, 7, 7), 0.1)
    assert len(set_means(flat.double(), set_sizes(49, 10)).unique()) == 1
    samples = photos(IMAGES[:1, :, :7, :7])
    net = Odds(lambda x: (x.mean((1, 2, 3)) - 0.5).sigmoid())
    assert value("monotonicity(sets=10,fills=2)", net, flat, samples).isnan().all()


def test_it_costs_what_its_facts_say():
    _, _, cost = judged("monotonicity(sets=16,fills=3)", small_cnn(), MAPS, photos(IMAGES))
    assert cost.passes == 6 * (1 + 48)


@pytest.mark.parametrize("definition", ["nguyen", "arya_share", "cumulative_pearson"])
def test_a_value_does_not_depend_on_its_neighbours_or_on_the_packing(definition):
    text = f"monotonicity(definition={definition},sets=16,fills=3)"
    weights = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(1))
    net = Odds(lambda x: ((x.double() * weights).sum((1, 2, 3)) - 40).sigmoid().float())
    together = value(text, net, MAPS, photos(IMAGES))
    for size in (1, 7, 1000):
        packed = judged(text, net, MAPS, photos(IMAGES), size=size)[0]["monotonicity"]
        assert packed.tolist() == pytest.approx(together.tolist(), abs=1e-6)
    for i in range(6):
        alone = value(text, net, MAPS[i : i + 1], photos(IMAGES[i : i + 1], first=100 + i))
        assert alone.item() == pytest.approx(together[i].item(), abs=1e-6)


# Arya et al.

RISING = Odds(lambda x: x.mean((1, 2, 3)))


def harm(x):
    """The probability of images of which the first row speaks against the class."""
    return 0.5 + (x[:, :, 1:].mean((1, 2, 3)) - x[:, :, 0].mean((1, 2))) / 2


def test_arya_is_true_where_every_set_helps_and_false_where_one_does_not():
    sets = "definition=arya,sets=16"
    assert value(f"monotonicity({sets})", RISING, MAPS, photos(IMAGES)).tolist() == [1.0] * 6
    high = torch.arange(64.0).view(1, 8, 8).flip(1)  # the first row is the highest: it comes back last
    assert value(f"monotonicity({sets})", Odds(harm), high, photos(IMAGES[:1])).item() == 0.0


def test_the_share_counts_the_steps_that_do_not_fall():
    high = torch.arange(64.0).view(1, 8, 8).flip(1)
    share = value("monotonicity(definition=arya_share,sets=8)", Odds(harm), high, photos(IMAGES[:1]))
    assert share.item() == pytest.approx(7 / 8)  # one set is the first row
    falling = Odds(lambda x: 1 - x.mean((1, 2, 3)))
    assert value("monotonicity(definition=arya_share,sets=8)", falling, high, photos(IMAGES[:1])).item() == 0.0
    deaf = Odds(lambda x: torch.full((len(x),), 0.3))
    assert value("monotonicity(definition=arya_share,sets=8)", deaf, high, photos(IMAGES[:1])).item() == 1.0


def test_the_lowest_come_back_first():
    """The decisive pixel is the highest: nothing happens until the last step."""
    net = Odds(lambda x: 0.25 + 0.5 * (x[:, 0, 0, 0] > 0) - 0.25 * (x[:, 0, 7, 7] > 0))
    order = torch.arange(64.0).view(1, 8, 8)
    falls_first = value("monotonicity(definition=arya_share,sets=64)", net, order, photos(IMAGES[:1]))
    assert falls_first.item() == pytest.approx(63 / 64)
    seen = []

    class Kept(nn.Module):
        def forward(self, images):
            seen.extend((images != 0).all(1).flatten(1).sum(1).tolist())
            return torch.stack((images[:, 0, 0, 0], images[:, 0, 7, 7]), 1)

    value("monotonicity(definition=arya,sets=4)", Kept(), order, photos(IMAGES[:1]))
    assert seen == [0, 64, 16, 32, 48]


def test_what_the_three_ask_is_asked_once():
    texts = [f"monotonicity(definition={name},sets=8)" for name in ("arya", "arya_share", "cumulative_pearson")]
    costs = all_costs(texts, model_of(small_cnn()), MAPS[:, None], photos(IMAGES))
    assert [cost.passes for cost in costs] == [6 * 9, 0, 0]


# Cumulative


def test_cumulative_pearson_is_1_where_p_is_the_maps_own_sum():
    image = torch.ones(1, 1, 8, 8)
    maps = torch.arange(64.0).view(1, 8, 8) / 63
    net = Odds(lambda x: 0.1 + 0.8 * (x[:, 0] * maps).sum((1, 2)) / 32)
    assert value(
        "monotonicity(definition=cumulative_pearson,sets=16)", net, maps, photos(image)
    ).item() == pytest.approx(1)
    falling = Odds(lambda x: 0.9 - 0.8 * (x[:, 0] * maps).sum((1, 2)) / 32)
    found = value("monotonicity(definition=cumulative_pearson,sets=16)", falling, maps * 5 + 2, photos(image))
    assert found.item() == pytest.approx(-1)


def test_a_constant_map_is_scored_by_its_ties():
    constant = torch.full((6, 8, 8), 0.4)
    for definition in ("arya", "arya_share"):
        assert (
            value(f"monotonicity(definition={definition},sets=8)", RISING, constant, photos(IMAGES)).tolist()
            == [1.0] * 6
        )
    for maps in (constant, torch.zeros(6, 8, 8)):
        ones = torch.ones(6, 3, 8, 8)
        found = value("monotonicity(definition=cumulative_pearson,sets=8)", RISING, maps, photos(ones * 0.9))
        assert found.tolist() == pytest.approx([1.0] * 6)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ("definition=quantus", "there is no definition 'quantus'"),
        ("sets=1", "wanted 2 sets or more"),
        ("fills=0", "and 1 fill or more"),
    ],
)
def test_what_makes_no_sense_is_refused(params, words):
    with pytest.raises(AssertionError, match=words):
        value(f"monotonicity({params})", small_cnn(), MAPS, photos(IMAGES))
