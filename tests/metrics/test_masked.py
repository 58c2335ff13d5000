"""What AD, AI, AG and local accuracy share: identities, tiny and saturated probabilities, passes asked once."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from battery_toys import Odds, all_costs, judged, photos, value
from saliometer.metrics._masked import blank, drop, gain, moved, rises
from saliometer.registry import Spec
from saliometer.types import Subject
from toys import explain, model_of, small_cnn

GENERATOR = torch.Generator().manual_seed(0)
IMAGES = torch.rand(6, 3, 8, 8, generator=GENERATOR)
MAPS = torch.rand(6, 8, 8, generator=GENERATOR)
MODEL = model_of(small_cnn(), mean=(0.5, 0.4, 0.3), std=(0.2, 0.25, 0.3))
LOGITS = st.floats(-3000, 3000)


class Logit(nn.Module):
    """Two classes whose log-odds are the first pixel's value."""

    def forward(self, images):
        return torch.stack((images[:, 0, 0, 0], torch.zeros(len(images))), 1)


class Unsteady(nn.Module):
    """Rounds otherwise whenever it is asked, as a device does in batches of other sizes."""

    def __init__(self):
        super().__init__()
        self.calls = 0

    def forward(self, images):
        self.calls += 1
        return torch.stack((images.mean((1, 2, 3)) + 1e-6 * self.calls, torch.zeros(len(images))), 1)


@given(before=LOGITS, after=LOGITS)
def test_gain_is_at_most_increase_which_is_at_most_what_drop_leaves(before, after):
    one, other = torch.tensor([before], dtype=torch.float64), torch.tensor([after], dtype=torch.float64)
    assert 0 <= gain(one, other) <= rises(one, other) <= 1 - drop(one, other) <= 1


@settings(deadline=None, max_examples=20)
@given(seed=st.integers(0, 10**6), target=st.integers(0, 2), space=st.sampled_from(["raw", "normalised"]))
def test_the_identity_holds_for_every_data_set(seed, target, space):
    generator = torch.Generator().manual_seed(seed)
    images, maps = torch.randn(3, 3, 8, 8, generator=generator), torch.rand(3, 8, 8, generator=generator)
    fall, rise, won = (
        value(f"average_{name}(space={space})", MODEL, maps, photos(images, target))
        for name in ("drop", "increase", "gain")
    )
    assert (won <= rise).all()
    assert (rise <= 1 - fall).all()


@pytest.mark.parametrize("name", ["average_drop", "average_increase", "average_gain", "local_accuracy"])
def test_a_mask_of_ones_changes_nothing_at_all(name):
    for net in (MODEL, Unsteady()):
        values = value(name, net, torch.full((6, 8, 8), 3.0), photos(IMAGES), constant="ones")
        assert values.tolist() == [0.0] * 6


@pytest.mark.parametrize("size", [0, 1, 4])
@pytest.mark.parametrize("name", ["average_drop", "average_increase", "average_gain", "local_accuracy"])
def test_all_ones_are_a_mask_already(name, size):
    maps = explain(MODEL, photos(IMAGES).batch, "all_ones")
    found, notes, _ = judged(name, MODEL, maps, photos(IMAGES), method="all_ones", size=size)
    assert found[name].tolist() == [0.0] * 6
    assert not any("scaled" in note for note in notes)


@pytest.mark.parametrize("name", ["average_drop", "average_increase", "average_gain", "local_accuracy"])
def test_constant_and_broken_maps_are_invalid_and_the_others_are_not(name):
    maps = MAPS.clone()
    maps[0], maps[1], maps[2, 3, 3] = 1.0, 0.0, torch.nan
    found, notes, _ = judged(name, MODEL, maps, photos(IMAGES))
    assert found[name].isnan().tolist() == [True] * 3 + [False] * 3
    assert notes[:3] == [
        "constant map; constant maps cannot be scaled", "zero map; constant maps cannot be scaled", "nan map"
    ]  # fmt: skip
    assert torch.equal(found[name][3:], value(name, MODEL, MAPS, photos(IMAGES))[3:])


def test_what_one_has_asked_costs_the_next_nothing():
    names = ["average_drop", "average_increase", "average_gain", "local_accuracy"]
    costs = all_costs(names, MODEL, MAPS[:, None], photos(IMAGES))
    assert [cost.passes for cost in costs] == [12, 0, 0, 0]
    assert [cost.shared for cost in costs] == [0, 12, 12, 12]


def test_a_logit_or_another_space_is_another_question():
    costs = all_costs(["average_drop", "average_drop(space=normalised)"], MODEL, MAPS[:, None], photos(IMAGES))
    assert [cost.passes for cost in costs] == [12, 6]


@pytest.mark.parametrize("name", ["average_drop", "average_increase", "average_gain", "local_accuracy"])
def test_a_value_does_not_depend_on_its_neighbours(name):
    net = Odds(lambda x: (x.sum((1, 2, 3)) / 100).sigmoid())
    together = value(name, net, MAPS, photos(IMAGES))
    for i in range(6):
        alone = value(name, net, MAPS[i : i + 1] * 1e6, photos(IMAGES[i : i + 1], first=100 + i))
        assert alone[0].item() == pytest.approx(together[i].item(), abs=1e-6)


def test_blank_is_black_in_pixels_or_zero_in_the_models_input():
    subject = Subject(MODEL, Spec("gradient"))
    black, grey = (blank(photos(IMAGES), subject, space) for space in ("raw", "normalised"))
    torch.testing.assert_close(MODEL.pixels(black), torch.zeros_like(IMAGES))
    assert torch.equal(grey, torch.zeros_like(IMAGES))
    with pytest.raises(LookupError, match="there is no space 'grey'"):
        blank(photos(IMAGES), subject, "grey")


def test_a_tiny_probability_keeps_its_ratio_and_a_sure_one_its_rest():
    """Log-odds from -60 to -61 lose 1 - 1/e of p, and from 20 to 21 win 1 - 1/e of 1 - p."""
    maps = torch.tensor([[[0.5, 1.0], [0.0, 0.0]]])
    tiny = photos(torch.full((1, 1, 2, 2), -60.0))  # to -30
    assert value("average_gain", Logit(), maps, tiny).item() == pytest.approx(torch.e**-30, rel=1e-4, abs=0)
    assert value("average_increase", Logit(), maps, tiny).item() == 1
    sure = photos(torch.full((1, 1, 2, 2), 60.0))
    assert value("average_drop", Logit(), maps, sure).item() == pytest.approx(torch.e**-30, rel=1e-2, abs=0)
    assert value("local_accuracy", Logit(), maps, sure).item() == pytest.approx(torch.e**-30, rel=1e-4, abs=0)
    low, high = torch.tensor([-60.0, 20.0]).double(), torch.tensor([-61.0, 21.0]).double()
    assert drop(low, high)[0].item() == pytest.approx(1 - 1 / torch.e, rel=1e-9)
    assert gain(low, high)[1].item() == pytest.approx(1 - 1 / torch.e, rel=1e-6)


@pytest.mark.parametrize("odds", [28.0, 30.0, 40.0, 700.0, 1000.0, 1e5])
def test_shares_are_exact_however_sure_a_model_is(odds):
    one, other = torch.tensor([odds, odds + 1]).double()
    assert gain(one, other).item() == pytest.approx(1 - 1 / torch.e, rel=1e-9)
    assert drop(-one, -other).item() == pytest.approx(1 - 1 / torch.e, rel=1e-9)
    assert gain(other, one) == drop(-other, -one) == gain(one, one) == drop(-one, -one) == 0


def test_certainty_is_not_undefined():
    never, always = torch.tensor([-torch.inf, torch.inf]).double()
    assert gain(always, always) == drop(never, never) == gain(always, never) == drop(never, always) == 0
    assert gain(never, always) == drop(always, never) == 1
    assert gain(torch.tensor(0.0).double(), torch.tensor(torch.nan)).isnan()


@given(before=st.floats(-20, 20), after=st.floats(-20, 20))
def test_shares_are_those_of_the_plain_formula(before, after):
    one, other = torch.tensor([before, after]).double()
    p, q = one.sigmoid().item(), other.sigmoid().item()
    assert drop(one, other).item() == pytest.approx(max(0, p - q) / p, abs=1e-6)
    assert gain(one, other).item() == pytest.approx(max(0, q - p) / (1 - p), abs=1e-6)


@given(before=st.floats(-30, 30), after=st.floats(-30, 30))
def test_what_moved_is_the_difference_of_probabilities(before, after):
    one, other = torch.tensor(before).double(), torch.tensor(after).double()
    assert moved(one, other).item() == pytest.approx((other.sigmoid() - one.sigmoid()).item(), abs=1e-12)
    assert moved(one, other) == -moved(other, one) or (one > 0) != (other > 0)


def test_what_moved_near_certainty_is_not_lost():
    one, other = torch.tensor([50.0]).double(), torch.tensor([51.0]).double()
    assert one.sigmoid() == other.sigmoid() == 1
    assert moved(one, other).item() == pytest.approx(torch.e**-50 - torch.e**-51, rel=1e-9, abs=0)
