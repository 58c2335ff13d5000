"""IOU with a mask: overlaps by hand, void pixels, and what chance gives."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from battery_toys import judged, photos, value
from saliometer.types import Samples
from toys import small_cnn

NET = small_cnn()


def marked(masks: Tensor, void: Tensor | None = None) -> Samples:
    return replace(photos(torch.rand(len(masks), 3, *masks.shape[1:]), masks=masks), unlabelled=void)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


def rows(count: int, images: int = 1, side: int = 10) -> Tensor:
    mask = torch.zeros(images, side, side, dtype=torch.bool)
    mask[:, :count] = True
    return mask


def test_the_mask_as_a_map_is_1_and_its_complement_0():
    truth = rows(4, 2)
    assert value("iou", NET, truth.float(), marked(truth)).tolist() == [1, 1]
    assert value("iou", NET, (~truth).float(), marked(truth)).tolist() == [0, 0]


def test_the_complement_of_more_than_half_overlaps_by_what_is_left():
    assert value("iou", NET, (~rows(7)).float(), marked(rows(7))).item() == 40 / 100  # 30 outside, 40 of the mask


def test_half_of_the_pixels_on_the_mask_is_a_third():
    maps = torch.zeros(1, 10, 10)
    maps[0, 2:6] = 1.0
    assert value("iou", NET, maps, marked(rows(4))).item() == pytest.approx(1 / 3)


@pytest.mark.parametrize(("share", "wanted"), [(0.05, 0.026), (0.3, 0.176), (0.6, 0.43)])
@pytest.mark.parametrize("constant", [False, True])
def test_random_and_constant_maps_score_what_chance_gives(share, wanted, constant):
    truth = rows(int(20 * share), 300, 20)
    maps = torch.zeros(300, 20, 20) if constant else drawn(300, 20, 20)
    found, *_ = judged("iou", NET, maps, marked(truth))
    assert found["iou.chance"].unique().item() == pytest.approx(wanted, abs=2e-3)
    assert found["iou"].mean().item() == pytest.approx(wanted, abs=6e-3)


def test_changing_void_pixels_alone_changes_nothing():
    truth, void = rows(4, 5), drawn(5, 10, 10, seed=3) < 0.2
    maps = drawn(5, 10, 10)
    other = torch.where(void, 9 * drawn(5, 10, 10, seed=4) - 4, maps)
    grown = truth | (void & (drawn(5, 10, 10, seed=5) < 0.5))
    one = judged("iou", NET, maps, marked(truth, void))[0]
    two = judged("iou", NET, other, marked(grown, void))[0]
    assert torch.equal(one["iou"], two["iou"])
    assert torch.equal(one["iou.chance"], two["iou.chance"])
    assert not torch.equal(one["iou"], judged("iou", NET, other, marked(truth))[0]["iou"])


def test_void_pixels_leave_counts_and_overlaps():
    truth, void = rows(4), torch.zeros(1, 10, 10, dtype=torch.bool)
    void[0, 0] = void[0, 9] = True
    maps = torch.zeros(1, 10, 10)
    maps[0, 0] = maps[0, 9] = 3.0  # void
    maps[0, 2:5] = 1.0  # 30 pixels, 20 of them among the 30 of the mask that count
    assert value("iou", NET, maps, marked(truth, void)).item() == 20 / 40


def test_ties_may_fall_as_in_rise():
    found = value("iou(ties=rise)", NET, torch.zeros(1, 10, 10), marked(rows(4)))
    assert found.item() == 0  # the last pixels come first
