"""The pointing game: hits by hand, void pixels, tolerance, chance, and where Quantus errs."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.ndimage import distance_transform_edt
from torch import Tensor

from battery_toys import judged, photos, value
from saliometer.metrics.pointing_game import widened
from saliometer.types import SECONDARY, Samples
from toys import small_cnn

NET = small_cnn()


def marked(masks: Tensor, void: Tensor | None = None, first: int = 100) -> Samples:
    """Images whose objects are known, with pixels that nobody labelled."""
    return replace(photos(torch.rand(len(masks), 3, *masks.shape[1:]), masks=masks, first=first), unlabelled=void)


def masks(count: int = 3, side: int = 8) -> Tensor:
    found = torch.zeros(count, side, side, dtype=torch.bool)
    for i in range(count):
        found[i, i : i + 3, 2:6] = True
    return found


def test_the_mask_as_a_map_hits_and_its_complement_does_not():
    truth = masks()
    assert value("pointing_game", NET, truth.float(), marked(truth)).tolist() == [1, 1, 1]
    assert value("pointing_game", NET, (~truth).float(), marked(truth)).tolist() == [0, 0, 0]


def test_one_pixel_decides():
    truth, maps = masks(2), torch.rand(2, 8, 8)
    maps[0, 1, 3] = 2.0
    maps[1, 7, 7] = 2.0
    assert value("pointing_game", NET, maps, marked(truth)).tolist() == [1, 0]


def test_void_pixels_are_out_of_the_ranking():
    truth, void = masks(2), torch.zeros(2, 8, 8, dtype=torch.bool)
    void[:, 7] = True
    maps = torch.zeros(2, 8, 8)
    maps[:, 7, 0] = 3.0  # the highest of all, but nobody knows what it shows
    maps[0, 1, 3] = 2.0  # the highest labelled pixel: on the mask
    maps[1, 6, 0] = 2.0  # and off it
    assert value("pointing_game", NET, maps, marked(truth, void)).tolist() == [1, 0]
    inside = truth.clone()
    inside[:, 7, :] = True  # a void part of an object counts nowhere
    found, *_ = judged("pointing_game", NET, maps, marked(inside, void))
    assert found["pointing_game"].tolist() == [1, 0]
    assert found["pointing_game.chance"].tolist() == [12 / 56, 12 / 56]


def test_a_constant_map_scores_chance():
    truth = masks(1).expand(1000, 8, 8)
    found, *_ = judged("pointing_game", NET, torch.zeros(1000, 8, 8), marked(truth))
    assert found["pointing_game"].mean().item() == pytest.approx(12 / 64, abs=0.03)
    assert found["pointing_game.chance"].unique().tolist() == [12 / 64]


def test_tolerance_is_a_euclidean_distance_that_is_still_a_hit():
    truth = torch.zeros(1, 12, 12, dtype=torch.bool)
    truth[0, 5, 5] = True
    samples = marked(truth)
    for place, distance in (((5, 5), 0.0), ((5, 7), 2.0), ((2, 1), 5.0), ((6, 6), 2**0.5)):
        maps = torch.zeros(1, 12, 12)
        maps[0][place] = 1
        assert value(f"pointing_game(tolerance={distance + 1e-9})", NET, maps, samples).item() == 1
        if distance:
            assert value(f"pointing_game(tolerance={distance - 1e-6})", NET, maps, samples).item() == 0
    maps = torch.zeros(1, 12, 12)
    maps[0, 2, 1] = 1
    assert value("pointing_game(tolerance=5)", NET, maps, samples).item() == 1  # 3, 4, 5: exactly


@pytest.mark.parametrize("reach", [0, 0.5, 1, 1.5, 4.29, 15, 40])
def test_a_widened_mask_is_that_of_a_distance_transform(reach):
    mask = torch.rand(3, 20, 27, generator=torch.Generator().manual_seed(1)) < 0.01
    wanted = np.stack([distance_transform_edt(~one.numpy()) <= reach for one in mask])
    assert np.array_equal(widened(mask, reach).numpy(), wanted)


def test_chance_at_224_with_and_without_tolerance():
    truth = torch.zeros(1, 224, 224, dtype=torch.bool)
    truth[0, 60:130, 60:150] = True
    for text, wanted in (("pointing_game", 0.126), ("pointing_game(tolerance=15)", 0.234)):
        found, *_ = judged(text, NET, truth.float(), marked(truth))
        assert found["pointing_game.chance"].item() == pytest.approx(wanted, abs=5e-4)


def test_several_objects_count_as_their_union_and_others_not():
    objects = torch.zeros(1, 3, 8, 8, dtype=torch.bool)
    objects[0, 0, 0, 0] = objects[0, 1, 7, 7] = objects[0, 2, 4, 4] = True
    samples = replace(
        marked(masks(1)), objects=objects, boxes=torch.zeros(1, 3, 4, dtype=torch.int64),
        roles=torch.tensor([[1, 1, SECONDARY]], dtype=torch.int8),
    )  # fmt: skip
    for place, hit in (((0, 0), 1), ((7, 7), 1), ((4, 4), 0)):
        maps = torch.zeros(1, 8, 8)
        maps[0][place] = 1
        assert value("pointing_game", NET, maps, samples).item() == hit


@pytest.mark.parametrize("metric", ["pointing_game", "iou"])
def test_without_a_mask_there_is_no_value(metric):
    truth, void = masks(3), torch.zeros(3, 8, 8, dtype=torch.bool)
    truth[0] = False
    void[1] = truth[1]
    found, notes, cost = judged(metric, NET, torch.rand(3, 8, 8), marked(truth, void))
    for values in found.values():
        assert values.isnan().tolist() == [True, True, False]
    assert notes == ["no labelled pixel of the target"] * 2 + [""]
    assert cost.passes == 0
    found, notes, _ = judged(metric, NET, torch.rand(1, 8, 8), photos(torch.rand(1, 3, 8, 8)))  # no object at all
    assert found[metric].isnan().all()


def test_a_strictly_increasing_change_of_the_map_is_nothing_to_it():
    maps, truth = torch.rand(40, 8, 8, generator=torch.Generator().manual_seed(0)).mul(5).round(), masks(1)
    samples = marked(truth.expand(40, 8, 8))
    for metric in ("pointing_game", "iou"):
        assert torch.equal(value(metric, NET, maps, samples), value(metric, NET, maps.exp() * 7 + 1, samples))


def test_quantus_gives_a_constant_map_and_an_empty_mask_the_best_score():
    quantus = pytest.importorskip("quantus")
    truth = masks(3)
    truth[2] = False
    maps = torch.rand(3, 8, 8, generator=torch.Generator().manual_seed(0))
    maps[0] = 1.0
    judge = quantus.PointingGame(disable_warnings=True, normalise=False)
    images = np.zeros((3, 1, 8, 8), np.float32)
    theirs = judge(
        model=None, x_batch=images, y_batch=np.zeros(3, int), a_batch=maps[:, None].numpy(),
        s_batch=truth[:, None].numpy().astype(int),
    )  # fmt: skip
    assert [bool(theirs[0]), bool(theirs[2])] == [True, True]
    ours = value("pointing_game", NET, maps, marked(truth))
    assert ours[1].item() == float(theirs[1])  # where it is right
    assert ours[2].isnan()
    flat = value("pointing_game", NET, torch.ones(500, 8, 8), marked(truth[:1].expand(500, 8, 8)))
    assert flat.mean().item() == pytest.approx(12 / 64, abs=0.06)


def test_a_negative_tolerance_is_refused():
    with pytest.raises(AssertionError, match=r"tolerance=-1\.0, wanted 0 pixels or more"):
        value("pointing_game(tolerance=-1.0)", NET, torch.rand(1, 8, 8), marked(masks(1)))
