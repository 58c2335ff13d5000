"""PAFL and SAFL: the toy fixtures of the paper, shares worked out by hand, and what they may add up to."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saliometer.metrics.pafl import pafl
from saliometer.metrics.safl import safl
from saliometer.tasks.textbox import SETTINGS, textbox
from saliometer.types import ABSENT, NEITHER, PRIMARY, SECONDARY
from toys import samples_of

# The paper's toy (smerf.md 5.6): A is 247 px, B is 100 px, on 64x64.
TOY = samples_of([[[2, 21, 3, 16], [40, 50, 30, 40]]], [[PRIMARY, SECONDARY]], side=64)


def toy(b: float, background: float) -> Tensor:
    """The toy's map, min-max scaled as the paper does it; the scale itself drops out of a share."""
    maps = torch.full((1, 64, 64), background, dtype=torch.float64)
    maps[:, 2:21, 3:16] = 1
    maps[:, 40:50, 30:40] = b
    return (maps - maps.min()) / (maps.max() - maps.min())


def both(maps: Tensor, definition: str = "clean") -> tuple[float, float]:
    return pafl(maps, TOY, definition=definition).item(), safl(maps, TOY, definition=definition).item()


def test_the_papers_first_toy():
    assert both(toy(0.8, 0.001)) == pytest.approx((0.7554, 0.2446), abs=5e-5)


@pytest.mark.parametrize(
    ("background", "primary", "secondary"),
    [
        (
            0.001,
            (0.985, 0.892, 0.805, 0.733, 0.673, 0.622, 0.578, 0.540, 0.507, 0.478, 0.451),
            (0.000, 0.108, 0.195, 0.267, 0.327, 0.378, 0.422, 0.460, 0.493, 0.522, 0.549),
        ),
        (
            0.8,
            (0.076, 0.084, 0.116, 0.832, 0.553, 0.414, 0.331, 0.275, 0.236, 0.206, 0.183),
            (0.000, 0.000, 0.000, 0.168, 0.447, 0.586, 0.669, 0.725, 0.764, 0.794, 0.817),
        ),
    ],
)
def test_the_papers_sweeps_of_b(background, primary, secondary):
    """B from 0 to 3.0 in steps of 0.3; three digits are given."""
    found = [both(toy(0.3 * step, background)) for step in range(11)]
    assert [one for one, _ in found] == pytest.approx(primary, abs=6e-4)
    assert [two for _, two in found] == pytest.approx(secondary, abs=6e-4)


def test_the_authors_focus_subtracts_the_minimum_itself():
    scaled = toy(0.9, 0.8)
    assert both(scaled * 7 + 3, "authors") == pytest.approx(both(scaled), abs=1e-12)


FOUR = torch.zeros(1, 4, 4, dtype=torch.float64)
FOUR[0, 0, 0], FOUR[0, 1, 1], FOUR[0, 3, 3] = 1.0, 2.0, 5.0


def test_a_share_is_what_lies_inside_over_the_whole():
    samples = samples_of([[[0, 2, 0, 2], [3, 4, 3, 4]]], [[PRIMARY, SECONDARY]], side=4)
    assert pafl(FOUR, samples).item() == pytest.approx(3 / 8)
    assert safl(FOUR, samples).item() == pytest.approx(5 / 8)


def test_what_lies_on_objects_of_neither_role_counts_as_background():
    samples = samples_of([[[0, 1, 0, 1], [1, 2, 1, 2], [3, 4, 3, 4]]], [[PRIMARY, NEITHER, SECONDARY]], side=4)
    assert pafl(FOUR, samples).item() == pytest.approx(1 / 8)
    assert safl(FOUR, samples).item() == pytest.approx(5 / 8)


def test_an_absent_object_counts_for_nothing_even_if_a_box_is_left_in_its_place():
    samples = samples_of([[[0, 1, 0, 1], [3, 4, 3, 4]]], [[PRIMARY, ABSENT]], side=4)
    assert pafl(FOUR, samples).item() == pytest.approx(1 / 8)
    assert safl(FOUR, samples).item() == 0


def test_where_boxes_overlap_clean_counts_once_and_the_authors_twice():
    samples = samples_of([[[0, 2, 0, 2], [1, 3, 1, 3]]], [[PRIMARY, PRIMARY]], side=4)
    assert pafl(FOUR, samples).item() == pytest.approx(3 / 8)
    assert pafl(FOUR, samples, definition="authors").item() == pytest.approx(5 / 8)


def test_a_flat_map_scores_the_share_of_the_area():
    samples = textbox("complex-cr3", count=10)
    flat = torch.full((10, 64, 64), 0.3, dtype=torch.float64)
    area = samples.region(PRIMARY, "box").double().mean((1, 2))
    torch.testing.assert_close(pafl(flat, samples), area)


@given(seed=st.integers(0, 10_000), setting=st.sampled_from(SETTINGS), definition=st.sampled_from(["clean", "authors"]))
def test_the_two_never_add_up_to_more_than_one_where_boxes_are_disjoint(seed, setting, definition):
    samples = textbox(setting, count=6, start=seed % 50)
    maps = torch.rand(6, 64, 64, generator=torch.Generator().manual_seed(seed), dtype=torch.float64) ** (1 + seed % 9)
    total = pafl(maps, samples, definition=definition) + safl(maps, samples, definition=definition)
    assert total.max() <= 1 + 1e-12
    background = ~(samples.region(PRIMARY, "box") | samples.region(SECONDARY, "box"))
    if definition == "clean":
        rest = (maps * background).sum((1, 2)) / maps.sum((1, 2))
        torch.testing.assert_close(total + rest, torch.ones(6, dtype=torch.float64))


def test_the_ink_of_a_letter_is_a_smaller_region_than_its_box():
    samples = textbox("simple-nr", count=8)
    maps = samples.objects[:, 0].double() + 0.01
    box, ink = (pafl(maps, samples, region=region) for region in ("box", "ink"))
    pixels = samples.objects[:, 0].sum((1, 2)).double()
    torch.testing.assert_close(ink, 1.01 * pixels / (pixels + 0.01 * 4096))
    assert (box > ink).all()
