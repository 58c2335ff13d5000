"""A few images of each scene with one model's map of each group, kept so that the report needs no model."""

from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional as F

from saliometer.engine.run import Run
from saliometer.files import put
from saliometer.studies._yona_evidence import names
from saliometer.studies._yona_maps import Maps
from saliometer.studies._yona_scenes import Scene

LONGEST = 128  # pixels


@dataclass(frozen=True, eq=False)
class Pictures:
    """Images of one scene, and what the first model of each group makes of them."""

    images: npt.NDArray[np.uint8]  # (k, H, W) or (k, H, W, 3)
    deciding: npt.NDArray[np.bool_]  # (k, H, W): what decides the scene's first task
    labels: Mapping[str, npt.NDArray[np.int64]]  # task -> (k,)
    predictions: Mapping[str, npt.NDArray[np.int64]]  # group -> (k,)
    classes: Mapping[str, tuple[str, ...]]  # task -> names of classes, where they have any
    maps: Mapping[str, Mapping[str, npt.NDArray[np.float16]]]  # method -> group -> (k, h, w), from -1 to 1


def keep_scene(
    run: Run, scene: Scene, predictions: Mapping[str, Tensor], classes: Mapping[str, tuple[str, ...]]
) -> None:
    """The images, their labels and what the first model of each group takes them for."""
    shown = list(scene.shown)
    model = next(iter(scene.groups.values())).models[0]
    pixels = (model.pixels(scene.images[shown]).clamp(0, 1) * 255).round().byte()  # (k, C, H, W)
    images = pixels[:, 0] if pixels.shape[1] == 1 else pixels.permute(0, 2, 3, 1)
    told: dict[str, Any] = {"images": images, "deciding": scene.regions(scene.focal)[0][shown]}
    told |= {f"label {task}": samples.labels[shown] for task, samples in scene.samples.items()}
    told |= {f"predicted {name}": predictions[name][0][shown] for name in _whole(scene)}
    arrays = {name: np.asarray(value.cpu()) for name, value in told.items()}
    arrays |= {f"classes {task}": np.array(some) for task, some in classes.items()}
    _savez(run.folder / "thumbs" / scene.name / "scene.npz", arrays)


def keep_maps(run: Run, scene: Scene, label: str, maps: Maps) -> None:
    """Signed, channels summed, each divided by its largest absolute value."""
    found = {}
    for name in _whole(scene):
        joined = maps[name][0][list(scene.shown)].nan_to_num().sum(1, keepdim=True).float()
        share = min(1.0, LONGEST / max(joined.shape[2:]))
        small = joined if share == 1 else F.interpolate(joined, scale_factor=share, mode="area")
        most = small.abs().amax((1, 2, 3), keepdim=True)
        found[name] = np.asarray((small / most.where(most > 0, 1))[:, 0].to(torch.float16).cpu())
    _savez(run.thumbnails(scene.name, label), found)


def _whole(scene: Scene) -> list[str]:
    """Groups that are shown every image."""
    return [name for name, group in scene.groups.items() if group.places is None]


def _savez(path: Path, arrays: Mapping[str, npt.NDArray[Any]]) -> None:
    data = BytesIO()
    np.savez_compressed(data, **arrays)  # type: ignore[arg-type]
    put(path, data.getvalue())


def pictures(run: Run, scene: str) -> Pictures | None:
    """Of one scene, as far as they are there."""
    path = run.folder / "thumbs" / scene / "scene.npz"
    if not path.is_file():
        return None
    told = _read(path)

    def under(word: str) -> dict[str, Any]:
        return {key.removeprefix(f"{word} "): value for key, value in told.items() if key.startswith(f"{word} ")}

    kept = {label: run.thumbnails(scene, label) for label in run.manifest["methods"]}
    return Pictures(
        told["images"], told["deciding"], under("label"), under("predicted"),
        {task: tuple(some.tolist()) for task, some in under("classes").items()},
        {names(label): _read(place) for label, place in kept.items() if place.is_file()},
    )  # fmt: skip


def _read(path: Path) -> dict[str, Any]:
    with np.load(path, allow_pickle=False) as kept:
        return {key: kept[key] for key in kept.files}
