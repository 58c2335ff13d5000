"""Small pictures for the report: one image of each bucket and every method's map of it, so that no model is needed."""

import json
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.engine.run import Run, Unit
from saliometer.files import put
from saliometer.types import Model, Samples


def keep_scene(run: Run, setting: str, samples: Samples) -> None:
    """The first image of each bucket with its objects, label and explained class."""
    shown = _first_of_each(samples.buckets)
    pixels = (samples.batch.images[shown] * 255).round().byte()  # (N, C, H, W)
    savez(
        run.folder / "thumbs" / setting / "scene.npz",
        shown=np.array(shown),
        images=_joined(pixels).cpu().numpy(),
        boxes=samples.boxes[shown].cpu().numpy(),
        roles=samples.roles[shown].cpu().numpy(),
        labels=samples.labels[shown].cpu().numpy(),
        targets=samples.batch.targets[shown].cpu().numpy(),
        buckets=np.array([samples.buckets[i] for i in shown]),
        ids=np.array([samples.ids[i] for i in shown]),
    )


def _joined(pixels: Tensor) -> Tensor:
    """(N, H, W, 3) where the three channels differ, else (N, H, W)."""
    colour = pixels.shape[1] == 3 and bool((pixels != pixels[:, :1]).any())
    return pixels.permute(0, 2, 3, 1) if colour else pixels.float().mean(1).round().byte()


def keep_thumbnails(run: Run, setting: str, method: str, maps: Tensor) -> None:
    """Signed maps, channels summed, each divided by its largest absolute value."""
    with np.load(run.folder / "thumbs" / setting / "scene.npz") as scene:
        shown = scene["shown"].tolist()
    joined = maps[shown].nan_to_num().sum(1)
    most = joined.abs().amax((1, 2), keepdim=True)
    scaled = (joined / most.where(most > 0, 1)).half()
    savez(run.thumbnails(setting, method), maps=scaled.cpu().numpy())


PHOTOS, SIDE = 100, 112  # how many of an audit's images are kept for the report, and their longer side


def keep_classes(run: Run, names: Sequence[str]) -> None:
    """What the model's classes are called, where that is known."""
    if names:
        put(run.classes, (json.dumps(list(names), ensure_ascii=False) + "\n").encode())


def keep_photos(run: Run, unit: Unit, samples: Samples, model: Model) -> None:
    """Images of an audit, small, with label, explained class and, where there is a mask, the object."""
    images = model.pixels(samples.batch.images).clamp(0, 1)
    images = images if images.shape[1] in (1, 3) else images.mean(1, keepdim=True)  # no picture has other channels
    size = _fitted(images.shape[2:], SIDE)
    small = F.interpolate(images, size, mode="bilinear", antialias=True)
    objects = F.adaptive_avg_pool2d(samples.objects.float(), size) >= 0.5  # (N, 1 or 0, H, W)
    savez(
        run.sprites(unit),
        objects=objects.cpu().numpy(),
        images=(small * 255).round().byte().permute(0, 2, 3, 1).cpu().numpy(),
        labels=samples.labels.cpu().numpy(),
        targets=samples.batch.targets.cpu().numpy(),
        ids=np.array(samples.ids),
    )


def keep_sprites(run: Run, unit: Unit, method: str, maps: Tensor) -> None:
    """Signed maps, channels summed, at most 56 pixels wide, in 8 bits: the largest absolute value is 127.

    Where no value is negative the lowest counts as 0: RISE's maps differ little from their mean. A constant map, which
    has no lowest value, is shown as it is.
    """
    joined = maps.nan_to_num(0.0, 0.0, 0.0).sum(1, keepdim=True).float()
    small = F.adaptive_avg_pool2d(joined, _fitted(maps.shape[2:], SIDE // 2))[:, 0]
    low, high = small.amin((1, 2), keepdim=True).clamp(min=0), small.amax((1, 2), keepdim=True)
    small = small - low.where(low < high, 0)
    most = small.abs().amax((1, 2), keepdim=True)
    scaled = (127 * small / most.where(most > 0, 1)).round().to(torch.int8)
    savez(run.sprites(unit, method), maps=scaled.cpu().numpy())


def keep_pairs(run: Run, unit: Unit, method: str, arrays: Mapping[str, npt.NDArray[Any]], ids: Sequence[str]) -> None:
    """A few pairs that COSE compares, beside the method's maps."""
    savez(run.pairs(unit.setting, method), ids=np.array(ids[: len(arrays["maps"])]), **arrays)


def _fitted(shape: Sequence[int], side: int) -> tuple[int, int]:
    height, width = shape
    share = min(1.0, side / max(height, width))
    return max(1, round(height * share)), max(1, round(width * share))


def _first_of_each(buckets: tuple[str, ...]) -> list[int]:
    return [buckets.index(bucket) for bucket in dict.fromkeys(buckets)]


def savez(path: Path, **arrays: npt.NDArray[np.generic]) -> None:
    data = BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    put(path, data.getvalue())
