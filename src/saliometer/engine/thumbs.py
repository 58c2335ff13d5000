"""Small pictures for the report: one image of each bucket and every method's map of it, so that no model is needed."""

from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt
from torch import Tensor

from saliometer.engine.run import Run
from saliometer.files import put
from saliometer.types import Samples


def keep_scene(run: Run, setting: str, samples: Samples) -> None:
    """The first image of each bucket with its objects, label and explained class."""
    shown = _first_of_each(samples.buckets)
    pixels = (samples.batch.images[shown, 0] * 255).round().byte()
    _savez(
        run.folder / "thumbs" / setting / "scene.npz",
        shown=np.array(shown),
        images=pixels.cpu().numpy(),
        boxes=samples.boxes[shown].cpu().numpy(),
        roles=samples.roles[shown].cpu().numpy(),
        labels=samples.labels[shown].cpu().numpy(),
        targets=samples.batch.targets[shown].cpu().numpy(),
        buckets=np.array([samples.buckets[i] for i in shown]),
        ids=np.array([samples.ids[i] for i in shown]),
    )


def keep_thumbnails(run: Run, setting: str, method: str, maps: Tensor) -> None:
    """Signed maps, channels summed, each divided by its largest absolute value."""
    with np.load(run.folder / "thumbs" / setting / "scene.npz") as scene:
        shown = scene["shown"].tolist()
    joined = maps[shown].nan_to_num().sum(1)
    most = joined.abs().amax((1, 2), keepdim=True)
    scaled = (joined / most.where(most > 0, 1)).half()
    _savez(run.thumbnails(setting, method), maps=scaled.cpu().numpy())


def _first_of_each(buckets: tuple[str, ...]) -> list[int]:
    return [buckets.index(bucket) for bucket in dict.fromkeys(buckets)]


def _savez(path: Path, **arrays: npt.NDArray[np.generic]) -> None:
    data = BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    put(path, data.getvalue())
