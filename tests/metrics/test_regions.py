"""The authors' metrics written once more from smerf.md 5.1-5.4, the ceilings of 5.6, and the oracle."""

import cv2
import matplotlib
import numpy as np
import pytest
import torch
from torch import Tensor

from saliometer import registry
from saliometer.maps import RENDERINGS, collapsed
from saliometer.tasks.textbox import SETTINGS, cycle, draw, reasonings, textbox
from saliometer.types import PRIMARY, SECONDARY, Samples

METRICS = ("pafl", "safl", "pmafl", "smafl", "piou", "siou")
SEISMIC = matplotlib.colormaps["seismic"](np.arange(256))[:, :3]
GRAY = matplotlib.colormaps["gray"](np.arange(256))[:, :3]


# The authors' path, slowly, with numpy, OpenCV and matplotlib (smerf.md 4.3, 5.1-5.4)


def scalar_map(attribution: np.ndarray, rendering: str) -> np.ndarray:
    """(C, H, W) signed to the (H, W) all their metrics read."""
    if rendering == "gray":
        strength = np.abs(attribution).sum(0)
        picture = GRAY[(strength / strength.max() * 255).astype(int)]
        read = picture.max(-1)
    elif rendering == "heat":
        total = attribution.sum(0)
        picture = SEISMIC[((total / np.abs(total).max() + 1) / 2 * 255).astype(int)]
        read = 1 - picture.mean(-1)
    elif rendering == "raw":
        read = attribution.max(0)
    elif rendering == "proj":
        clipped = np.clip(attribution, np.percentile(attribution, 1), np.percentile(attribution, 99))
        read = ((clipped / np.abs(clipped).max() + 1) / 2).max(0)
    elif rendering == "shap":
        read = ((attribution - attribution.min()) / (attribution.max() - attribution.min())).max(0)
    else:
        if rendering == "raw_heat_scaled":
            attribution = (attribution - attribution.min()) / (attribution.max() - attribution.min())
        read = 1 - attribution.mean(0)
    return cv2.blur(read, (7, 7))


def inside(box: list[int]) -> tuple[slice, slice]:
    return slice(box[0], box[1]), slice(box[2], box[3])


def slow_scores(read: np.ndarray, primary: list[list[int]], secondary: list[list[int]]) -> dict[str, float]:
    shares = (read - read.min()) / (read.max() - read.min())
    shares = shares / shares.sum()
    wanted = sum((bottom - top) * (right - left) for top, bottom, left, right in primary)
    counts, edges = np.histogram(read, bins=10)
    bin_ = 9
    while counts[bin_:].sum() < wanted:
        bin_ -= 1
    mask = read >= edges[bin_]
    decided = bin_ == 0 or np.abs(read - edges[bin_]).min() > 1e-9  # else rounding says on which side a pixel falls
    found = {}
    for letter, boxes in (("p", primary), ("s", secondary)):
        pixels = np.concatenate([shares[inside(box)].ravel() for box in boxes]) if boxes else np.array([np.nan])
        found[f"{letter}afl"], found[f"{letter}mafl"] = pixels.sum(), pixels.mean()
        ious = []
        for box in boxes:
            region = np.zeros_like(mask)
            region[inside(box)] = True
            ious.append((mask & region).sum() / (mask | region).sum())
        found[f"{letter}iou"] = np.mean(ious) if ious and primary and decided else np.nan
    return found


def boxes_of(samples: Samples, i: int, role: int) -> list[list[int]]:
    return [box for box, one in zip(samples.boxes[i].tolist(), samples.roles[i].tolist(), strict=True) if one == role]


def smooth_noise(count: int, channels: int, seed: int) -> Tensor:
    """Signed maps with blobs, so that histograms are uneven."""
    noise = torch.randn(count, channels, 16, 16, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return torch.nn.functional.interpolate(noise, (64, 64), mode="bicubic") ** 3


@pytest.mark.parametrize("rendering", RENDERINGS)
@pytest.mark.parametrize(("setting", "sampler"), [("complex-cr3", "disjoint"), ("complex-cr1", "authors")])
def test_the_authors_metrics_agree_with_a_slow_reimplementation(rendering, setting, sampler):
    """All six metrics on 30 images: to 1e-7. Overlapping boxes are among the authors' images."""
    samples = textbox(setting, count=30, sampler=sampler)
    maps = smooth_noise(30, 3, seed=len(rendering))
    read = collapsed(maps, "authors", rendering)
    found = {name: registry.metrics[name].function(read, samples, definition="authors").numpy() for name in METRICS}
    seen = dict.fromkeys(METRICS, 0)
    for i in range(30):
        primary, secondary = boxes_of(samples, i, PRIMARY), boxes_of(samples, i, SECONDARY)
        wanted = slow_scores(scalar_map(maps[i].numpy(), rendering), primary, secondary)
        for name in METRICS:
            if not np.isnan(wanted[name]):
                assert found[name][i] == pytest.approx(wanted[name], abs=1e-7), f"{name} of image {i}"
                seen[name] += 1
    assert min(seen.values()) >= 10


# Ceilings: the object map on purpose, and the filled boxes that the oracle shows


def object_map(setting: str, count: int, sampler: str = "disjoint") -> Tensor:
    """(N, 1, H, W): the primary objects as drawn, letters by their ink's intensity."""
    samples = textbox(setting, count=count)
    layers = draw(setting, "test", torch.arange(count), 0, sampler).layers()
    return (layers * (samples.roles == PRIMARY)[..., None, None]).amax(1, keepdim=True)


def by_bucket(setting: str, maps: Tensor, metric: str, rendering: str, per_bucket: int) -> dict[int, float]:
    samples = textbox(setting, count=per_bucket * len(cycle(setting, "test")))
    values = registry.metrics[metric].function(collapsed(maps, "authors", rendering), samples, definition="authors")
    numbers = torch.tensor([int(bucket) for bucket in samples.buckets])
    return {n: values[numbers == n].mean().item() for n, said in reasonings(setting).items() if said.primary}


PER_BUCKET = 12


def ceilings(metric: str, rendering: str, filled: bool) -> dict[tuple[str, int], float]:
    found = {}
    for setting in SETTINGS:
        count = PER_BUCKET * len(cycle(setting, "test"))
        boxes = textbox(setting, count=count).region(PRIMARY, "box")[:, None].double()
        maps = boxes if filled else object_map(setting, count)
        found |= {(setting, n): value for n, value in by_bucket(setting, maps, metric, rendering, PER_BUCKET).items()}
    return found


@pytest.fixture(scope="module", params=["heat", "raw"])
def object_ceilings(request) -> dict[str, dict[tuple[str, int], float]]:
    return {metric: ceilings(metric, request.param, filled=False) for metric in ("pafl", "piou")}


@pytest.fixture(scope="module")
def oracle_ceilings() -> dict[str, dict[tuple[str, int], float]]:
    return {metric: ceilings(metric, "raw", filled=True) for metric in ("pafl", "piou")}


# What is primary -> where to find it
PLACES = {
    "Box1": [("simple-fr", n) for n in range(7, 13)],
    "Box2": [("complex-cr1", n) for n in (4, 5, 6)] + [("complex-cr4", n) for n in (4, 5, 6)],
    "A": [("simple-nr", n) for n in (2, 5, 8, 11)],
    "B": [("simple-nr", n) for n in (3, 6, 9, 12)],
    "Box1+Box2": [("complex-fr", n) for n in (10, 11, 12)] + [("complex-cr2", n) for n in (10, 11, 12)],
    "Box2+A": [("complex-cr3", n) for n in (5, 11)],
    "Box2+B": [("complex-cr3", n) for n in (6, 12)],
    "Box1+A": [("complex-cr4", n) for n in (8, 11)],
    "Box1+B": [("complex-cr4", n) for n in (9, 12)],
}


def mean_of(values: dict[tuple[str, int], float], what: str) -> float:
    return float(np.mean([values[place] for place in PLACES[what]]))


@pytest.mark.parametrize(
    ("what", "wanted", "tolerance"),
    [
        ("Box1", 0.69, 0.01),
        ("Box2", 0.33, 0.01),
        ("A", 0.91, 0.01),
        ("B", 0.84, 0.01),
        ("Box1+Box2", 0.64, 0.01),
        # The protocol's letters had 15 rows of ink, ours have 14 and less weight beside a box: up to 0.04 lower.
        ("Box2+A", 0.82, 0.045),
        ("Box2+B", 0.77, 0.03),
        ("Box1+A", 0.80, 0.045),
        ("Box1+B", 0.77, 0.03),
    ],
)
def test_the_ceiling_of_pafl_is_that_of_the_protocol(object_ceilings, what, wanted, tolerance):
    assert mean_of(object_ceilings["pafl"], what) == pytest.approx(wanted, abs=tolerance)


@pytest.mark.parametrize(
    ("what", "wanted", "tolerance"),
    [
        ("Box1", 0.82, 0.02),
        ("Box2", 0.96, 0.03),
        ("A", 285 / 4096, 1e-9),  # every pixel is chosen
        ("B", 0.73, 0.05),  # the protocol's rendering of B; ours gives 0.69
        ("Box1+Box2", 0.39, 0.015),
        ("Box2+A", 0.27, 0.02),
        ("Box2+B", 0.36, 0.045),
        ("Box1+A", 0.29, 0.02),
        ("Box1+B", 0.35, 0.015),
    ],
)
def test_the_ceiling_of_piou_is_that_of_the_protocol(object_ceilings, what, wanted, tolerance):
    assert mean_of(object_ceilings["piou"], what) == pytest.approx(wanted, abs=tolerance)


def test_the_mean_ceilings_over_14_simple_and_37_complex_buckets(object_ceilings):
    """0.795 and 0.68 for PAFL, 0.58 and 0.54 for PIOU, whose letters differ a little."""
    for metric, group, count, wanted, tolerance in (
        ("pafl", "simple", 14, 0.795, 0.01),
        ("pafl", "complex", 37, 0.68, 0.01),
        ("piou", "simple", 14, 0.58, 0.02),
        ("piou", "complex", 37, 0.54, 0.02),
    ):
        values = [value for (setting, _), value in object_ceilings[metric].items() if setting.startswith(group)]
        assert len(values) == count
        assert np.mean(values) == pytest.approx(wanted, abs=tolerance), f"{metric} {group}"


def test_the_lowest_ceilings_are_box2s_focus_and_the_letter_as_overlap(object_ceilings):
    lowest = min(object_ceilings["pafl"], key=object_ceilings["pafl"].get)
    assert lowest in PLACES["Box2"]
    assert min(object_ceilings["piou"].values()) == pytest.approx(0.07, abs=0.001)


@pytest.mark.parametrize(
    ("what", "focus", "iou"),
    [
        ("Box1", 0.69, 0.82),
        ("A", 0.81, 0.85),
        ("B", 0.79, 0.85),
        ("Box1+Box2", 0.64, 0.39),
        ("Box2+A", 0.78, 0.43),
        ("Box2+B", 0.76, 0.42),
        ("Box1+A", 0.78, 0.43),
        ("Box1+B", 0.76, 0.42),
    ],
)
def test_the_oracle_scores_the_protocols_filled_box_column(oracle_ceilings, what, focus, iou):
    assert mean_of(oracle_ceilings["pafl"], what) == pytest.approx(focus, abs=0.015)
    assert mean_of(oracle_ceilings["piou"], what) == pytest.approx(iou, abs=0.015)


def test_no_focus_on_box2_can_pass_a_third_away_from_borders():
    """16/49: the 7x7 blur spreads each pixel of a 4x4 box."""
    maps = torch.zeros(1, 1, 64, 64)
    maps[0, 0, 30:34, 30:34] = 1
    read = collapsed(maps, "authors", "raw")
    assert (read[0, 30:34, 30:34].sum() / read.sum()).item() == pytest.approx(16 / 49, abs=1e-9)


@pytest.mark.parametrize("region", ["box", "ink"])
@pytest.mark.parametrize("setting", SETTINGS)
def test_the_oracle_is_perfect_under_clean(setting, region):
    samples = textbox(setting, count=36)
    truth = samples.region(PRIMARY, region)
    scored = truth.any((1, 2))
    for definition in ("clean", "clean_positive"):
        read = collapsed(truth[:, None].float(), definition, "raw")
        value = {
            name: registry.metrics[name].function(read, samples, definition=definition, region=region)[scored]
            for name in ("pafl", "safl", "piou", "siou", "success", "failure")
        }
        for name in ("pafl", "piou", "success"):
            assert (value[name] == 1).all(), name
        for name in ("safl", "siou", "failure"):
            assert (value[name] == 0).all(), name
