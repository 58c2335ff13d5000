"""Attribution to map: what is refused, how it is collapsed under each definition, and which pixels are highest."""

import cv2
import matplotlib
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from saliometer.maps import DEFINITIONS, RENDERINGS, blurred, checked, collapsed, complaints, dead, ranks, staged, top
from saliometer.seeds import forks

IMAGES = torch.zeros(4, 3, 8, 8)


def noise(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


# What a method may return


@pytest.mark.parametrize("shape", [(4, 3, 8, 8), (4, 1, 8, 8), (4, 8, 8)])
def test_one_value_per_pixel_is_taken_with_or_without_channels(shape):
    maps = noise(*shape)
    taken = checked(maps, "toy", IMAGES)
    assert taken.shape == (4, 3 if shape[1] == 3 else 1, 8, 8)
    assert torch.equal(taken.flatten(), maps.flatten())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.int32, torch.bool])
def test_any_real_type_becomes_float32(dtype):
    maps = (noise(4, 8, 8) > 0).to(dtype)
    taken = checked(maps, "toy", IMAGES)
    assert taken.dtype == torch.float32
    assert torch.equal(taken[:, 0], maps.float())


def test_a_map_is_cut_from_the_graph_that_made_it():
    maps = noise(4, 3, 8, 8).requires_grad_() * 2
    assert not checked(maps, "toy", IMAGES).requires_grad


@pytest.mark.parametrize(
    ("maps", "words"),
    [
        (
            torch.zeros(4, 64),
            "method 'toy' returned shape (4, 64), wanted (4, 3, 8, 8), (4, 1, 8, 8) or (4, 8, 8): one value per pixel",
        ),
        (torch.zeros(3, 8, 8), "method 'toy' returned shape (3, 8, 8), wanted (4, 3, 8, 8), (4, 1, 8, 8) or (4, 8, 8)"),
        (torch.zeros(4, 2, 8, 8), "method 'toy' returned shape (4, 2, 8, 8), wanted"),
        (torch.zeros(4, 7, 8), "method 'toy' returned shape (4, 7, 8), wanted"),
        (
            np.array(["x"]),
            "method 'toy' returned ndarray, wanted a tensor or array of shape (4, 3, 8, 8), (4, 1, 8, 8)",
        ),
        (None, "method 'toy' returned NoneType, wanted a tensor or array of shape"),
        (torch.zeros(4, 8, 8, dtype=torch.complex64), "method 'toy' returned torch.complex64, wanted real numbers"),
    ],
)
def test_anything_else_is_refused_with_what_came_and_what_was_wanted(maps, words):
    with pytest.raises(ValueError) as told:  # noqa: PT011 - the whole message is compared
        checked(maps, "toy", IMAGES)
    assert str(told.value).startswith(words)


def test_odd_maps_are_named():
    maps = noise(6, 3, 8, 8)
    maps[1, 2, 3, 4] = float("nan")
    maps[2, 0, 0, 0] = float("-inf")
    maps[3] = 0
    maps[4] = -2.5
    assert complaints(maps) == ["", "nan map", "nan map", "zero map", "constant map", ""]


# The clean definitions


def test_clean_is_the_absolute_sum_over_channels():
    maps = torch.tensor([[3.0, -2.0], [-1.0, -4.0]])[None, :, None, :]  # two channels, two pixels
    assert collapsed(maps, "clean", "heat").tolist() == [[[2.0, 6.0]]]


def test_clean_positive_is_the_positive_part_of_the_sum():
    maps = torch.tensor([[3.0, -2.0], [-1.0, -4.0]])[None, :, None, :]
    assert collapsed(maps, "clean_positive", "heat").tolist() == [[[2.0, 0.0]]]


@pytest.mark.parametrize("definition", ["clean", "clean_positive"])
def test_the_rendering_is_nothing_to_the_clean_definitions(definition):
    maps = noise(2, 3, 8, 8)
    first, *others = (collapsed(maps, definition, rendering) for rendering in RENDERINGS)
    assert all(torch.equal(first, other) for other in others)


def test_sums_over_channels_are_exact_where_float32_would_lose_them():
    maps = torch.tensor([1e8, 1.0, -1e8])[None, :, None, None]
    assert collapsed(maps, "clean", "heat").item() == 1.0


def test_an_unknown_definition_is_refused():
    with pytest.raises(LookupError, match=r"no definition 'author'. Did you mean 'authors'"):
        collapsed(IMAGES, "author", "heat")


# The authors' definition: smerf.md 4.3 and 5.1


def unblurred(maps: Tensor, rendering: str) -> Tensor:
    return RENDERINGS[rendering](maps.double())


def test_heat_reads_the_darkness_of_matplotlibs_seismic():
    """All 256 colours of matplotlib's table, each met by one pixel: parity with matplotlib 3.11 to 1e-6."""
    levels = (np.arange(256) + 0.5) / 255 * 2 - 1  # the middle of every level's interval
    levels = np.clip(levels, -1, 1)
    levels[0] = -1  # so that the largest absolute value is 1
    colours = matplotlib.colormaps["seismic"](np.arange(256))[:, :3]
    found = unblurred(torch.from_numpy(levels)[None, None, None, :], "heat")[0, 0]
    np.testing.assert_allclose(found.numpy(), 1 - colours.mean(1), atol=1e-6)


@pytest.mark.parametrize(
    ("relative", "darkness"), [(0.0, 0.0), (0.5, 2 / 3), (-0.5, 2 / 3), (1.0, 5 / 6), (-1.0, 0.9), (0.25, 1 / 3)]
)
def test_heat_is_compressive_and_blind_to_sign(relative, darkness):
    """The corner values of smerf.md 5.1; one level of 256 is 0.0053 there."""
    maps = torch.tensor([relative, 1.0 if relative >= 0 else -1.0])[None, None, None, :]
    assert unblurred(maps, "heat")[0, 0, 0].item() == pytest.approx(darkness, abs=0.006)


def test_heat_sums_channels_before_it_divides_by_the_largest_absolute_value():
    maps = torch.tensor([[3.0, -1.0], [-2.0, -3.0]])[None, :, None, :]  # sums 1 and -4
    alone = torch.tensor([0.25, -1.0])[None, None, None, :]
    assert torch.equal(unblurred(maps, "heat"), unblurred(alone, "heat"))


def test_gray_is_the_summed_absolute_value_in_256_levels():
    maps = torch.tensor([[3.0, -1.0, 0.0], [-2.0, 0.0, 0.01]])[None, :, None, :]  # strengths 5, 1, 0.01
    assert unblurred(maps, "gray")[0, 0].tolist() == [1.0, 51 / 255, 0.0]  # 0.01 / 5 * 255 = 0.51, cut to level 0


def test_raw_takes_the_largest_channel_as_it_is():
    maps = torch.tensor([[3.0, -1.0], [-2.0, -3.0]])[None, :, None, :]
    assert unblurred(maps, "raw").tolist() == [[[3.0, -1.0]]]


def test_raw_heat_is_one_minus_the_mean_of_the_channels():
    maps = torch.tensor([[0.25, 0.5], [0.75, 0.25], [0.5, 0.0]])[None, :, None, :]
    assert unblurred(maps, "raw_heat").tolist() == [[[0.5, 0.75]]]


def test_raw_heat_scaled_first_scales_over_all_pixels_and_channels():
    maps = torch.tensor([[-4.0, 0.0], [4.0, 2.0]])[None, :, None, :]  # scaled: 0, 0.5 and 1, 0.75
    assert unblurred(maps, "raw_heat_scaled").tolist() == [[[0.5, 0.375]]]


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_the_authors_map_is_the_rendering_blurred(rendering):
    maps = noise(3, 3, 16, 16)
    together = collapsed(maps, "authors", rendering)
    assert torch.equal(together, blurred(unblurred(maps, rendering)))
    alone = torch.cat([collapsed(one[None], "authors", rendering) for one in maps])
    assert torch.equal(together, alone)


def test_the_blur_is_opencvs_7x7_box_with_its_default_border():
    """Parity with cv2.blur of OpenCV 5.0 to 1e-6, corners and edges included."""
    maps = noise(3, 64, 64).double()
    wanted = np.stack([cv2.blur(one.numpy(), (7, 7)) for one in maps])
    np.testing.assert_allclose(blurred(maps).numpy(), wanted, atol=1e-6)


def test_a_spot_is_blurred_to_a_49th_and_mirrored_at_the_corner():
    spot = torch.zeros(1, 9, 9, dtype=torch.float64)
    spot[0, 4, 4] = 49
    assert blurred(spot)[0, 1:8, 1:8].round(decimals=9).unique().tolist() == [1.0]
    corner = torch.zeros(1, 9, 9, dtype=torch.float64)
    corner[0, 1, 1] = 49  # reflect-101 mirrors it to -1 in both directions
    assert blurred(corner)[0, 0, 0].item() == pytest.approx(4)


# Maps that cannot be scored


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_a_constant_map_is_dead_to_the_authors_and_alive_to_clean(rendering):
    """The authors subtract the minimum; 0.1 and 1/3 are not exact in binary, so rounding must not revive the map."""
    for value in (0.1, 1 / 3, 1.0, 1e6):
        maps = torch.full((2, 3, 64, 64), value)
        assert dead(collapsed(maps, "authors", rendering), "authors").tolist() == [True, True]
        assert dead(collapsed(maps, "clean", rendering), "clean").tolist() == [False, False]


@pytest.mark.parametrize("definition", DEFINITIONS)
@pytest.mark.parametrize("rendering", RENDERINGS)
def test_nan_infinite_and_zero_maps_are_dead_under_every_definition(definition, rendering):
    maps = noise(4, 3, 64, 64)
    maps[1, 1, 5, 5] = float("nan")
    maps[2, 0, 63, 63] = float("inf")
    maps[3] = 0
    assert dead(collapsed(maps, definition, rendering), definition).tolist() == [False, True, True, True]


def test_a_map_without_a_positive_value_is_dead_to_clean_positive_alone():
    maps = -noise(1, 1, 8, 8).abs()
    assert [dead(collapsed(maps, name, "heat"), name).item() for name in DEFINITIONS] == [False, True, False]


def test_channels_that_cancel_leave_a_dead_map():
    maps = torch.cat([noise(1, 1, 8, 8), -noise(1, 1, 8, 8)], 1)
    assert dead(collapsed(maps, "clean", "heat"), "clean").tolist() == [True]


# The highest pixels


def seeds(count: int) -> Tensor:
    return forks(0, torch.arange(count))


def test_the_highest_pixels_are_the_highest():
    maps = torch.tensor([[[5.0, 1.0], [4.0, 2.0]], [[0.0, 3.0], [1.0, 2.0]]])
    assert top(maps, torch.tensor([2, 3]), seeds(2)).tolist() == [
        [[True, False], [True, False]],
        [[False, True], [True, True]],
    ]


@given(
    maps=st.lists(st.lists(st.integers(0, 4), min_size=12, max_size=12), min_size=1, max_size=4),
    data=st.data(),
)
def test_exactly_as_many_pixels_are_chosen_as_asked_and_none_below_one_left_out(maps, data):
    values = torch.tensor(maps, dtype=torch.float64).view(-1, 3, 4)
    counts = torch.tensor([data.draw(st.integers(0, 12)) for _ in maps])
    chosen = top(values, counts, seeds(len(maps)))
    assert torch.equal(chosen.sum((1, 2)), counts)
    for one, picked in zip(values, chosen, strict=True):
        if picked.any() and not picked.all():
            assert one[picked].min() >= one[~picked].max()


def test_no_pixel_is_chosen_where_none_is_asked_for():
    assert not top(noise(2, 8, 8), torch.tensor([0, 0]), seeds(2)).any()
    assert not top(torch.zeros(2, 8, 8), torch.tensor([0, 0]), seeds(2)).any()


def test_ties_fall_by_seed_and_not_by_place():
    """2000 flat maps, 16 of 64 pixels each: every pixel is chosen in a quarter of them, whatever its place."""
    count = 2000
    chosen = top(torch.zeros(count, 8, 8), torch.full((count,), 16), seeds(count)).double()
    assert (chosen.mean(0) - 0.25).abs().max() < 4.5 * np.sqrt(0.25 * 0.75 / count)
    together = torch.corrcoef(chosen.flatten(1).T)[~torch.eye(64, dtype=torch.bool)]  # -1/63 in a fair draw
    assert (together + 1 / 63).abs().max() < 5 / np.sqrt(count)


def test_ties_at_the_threshold_alone_are_drawn():
    maps = torch.tensor([3.0, 1.0, 1.0, 1.0, 1.0, 0.0]).expand(1000, 1, 6)
    share = top(maps, torch.full((1000,), 3), seeds(1000)).double().mean((0, 1))
    assert share[0] == 1
    assert share[5] == 0
    torch.testing.assert_close(share[1:5], torch.full((4,), 0.5).double(), atol=0.07, rtol=0)


def test_ties_are_the_same_for_the_same_seed_alone_or_not():
    maps, counts = torch.zeros(5, 8, 8), torch.tensor([1, 5, 9, 20, 40])
    together = top(maps, counts, seeds(5))
    alone = torch.cat([top(maps[i : i + 1], counts[i : i + 1], seeds(5)[i : i + 1]) for i in range(5)])
    assert torch.equal(together, alone)
    assert not torch.equal(together[0], top(maps[:1], counts[:1], seeds(2)[1:])[0])


def test_a_monotone_change_of_the_map_changes_no_choice():
    maps = noise(6, 8, 8).mul(4).round()  # with ties
    counts = torch.tensor([1, 5, 9, 20, 40, 63])
    chosen = top(maps, counts, seeds(6))
    for change in (torch.exp, lambda x: 3 * x - 7, lambda x: x**3, torch.atan):
        assert torch.equal(top(change(maps.double()), counts, seeds(6)), chosen)


def test_numpy_arrays_are_taken():
    maps = np.random.default_rng(0).random((4, 8, 8))
    torch.testing.assert_close(checked(maps, "toy", IMAGES), torch.from_numpy(maps).float()[:, None])


# What a metric of the battery reads, on one image of two channels and two pixels

TWO = torch.tensor([[[[-4.0, 1.0]], [[0.0, 2.0]]]])


@pytest.mark.parametrize(
    ("reads", "normalisation", "wanted"),
    [
        ("scaled", "abs_max_minmax", [1, 0]),
        ("scaled", "abs_joint_minmax", [1, 1 / 2]),
        ("scaled", "signed_max_minmax", [0, 1]),
        ("scaled", "signed_joint_minmax", [2 / 3, 1]),
        ("order", "abs_max_minmax", [4, 2]),
        ("order", "signed_max_minmax", [0, 2]),
        ("signed", "abs_max_minmax", [-4, 3]),
        ("attribution", "abs_max_minmax", [-4, 1, 0, 2]),
    ],
)
def test_what_each_stage_makes_of_an_attribution(reads, normalisation, wanted):
    assert staged(TWO, reads, normalisation).flatten().tolist() == pytest.approx(wanted)


def test_ranks_of_maps_without_ties_are_their_order_beside_maps_with_ties_or_not():
    maps = torch.rand(3, 4, 5, generator=torch.Generator().manual_seed(0))
    seeds = torch.arange(3)
    alone = ranks(maps, seeds)
    assert torch.equal(maps.flatten(1).gather(1, alone.flatten(1).argsort(1)), maps.flatten(1).sort(1).values.flip(1))
    tied = maps.clone()
    tied[2, :, :2] = 0.5
    beside = ranks(tied, seeds)
    assert torch.equal(beside[:2], alone[:2])
    assert not torch.equal(beside[2], ranks(tied, seeds + 1)[2])  # its ties fall by lot
