"""What COSE's Figures 1, 2 and 4 show: a few images with their maps, under changes that keep or move the prediction."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import torch

from saliometer.cose.operations import OPERATIONS, applied
from saliometer.engine.cose_pictures import ALIKE, APART, ITSELF, PLACES
from saliometer.engine.run import Run
from saliometer.registry import Spec
from saliometer.studies._claims import MissingError
from saliometer.studies._cose_evidence import MODES, Trained, named

if TYPE_CHECKING:
    from saliometer.studies._cose_study import Study

Photo = npt.NDArray[np.uint8]  # (H, W, 3)
PARTS = {"harmonic": "COSE", "consistency": "c", "sensitivity": "s", "discrimination": "D"}


@dataclass(frozen=True, eq=False)
class Shown:
    """An image under a change and the map of it, in [0, 1]."""

    condition: str
    similar: float  # to the map of the image itself
    changed: bool  # the prediction
    photo: Photo
    map: npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Gallery:
    """What a study kept of one model: by method and image, the changes by place."""

    model: Trained
    images: Mapping[str, Photo]
    right: Mapping[str, bool]  # whether the model is right on the image
    maps: Mapping[str, Mapping[str, Mapping[str, Shown]]]  # the paper's method -> image -> place of PLACES
    parts: Mapping[str, str]  # method -> COSE and its parts in words

    def both(self) -> list[str]:
        """Images that it gets right, and that have a pair of either kind under GradCAM."""
        held = self.maps.get("GradCAM", {})
        return [one for one, shown in held.items() if self.right[one] and {ALIKE, APART} <= set(shown)]


def galleries(study: "Study") -> list[Gallery]:
    """Of the table's models, those that have pictures."""
    found = []
    for told, trained in zip(study.models, study.trained, strict=True):
        if trained in study.evidence.models():
            gallery = _gallery(study, told, trained)
            if gallery.images and gallery.maps:
                found.append(gallery)
    return found


def _gallery(study: "Study", told: Mapping[str, Any], trained: Trained) -> Gallery:
    images: dict[str, Photo] = {}
    right: dict[str, bool] = {}
    maps: dict[str, dict[str, dict[str, Shown]]] = {}
    for run in study.runs(told).values():
        for photos in _photos(run):
            for place, name in enumerate(photos["ids"].tolist()):
                images.setdefault(name, photos["images"][place])
                right[name] = bool(photos["labels"][place] == photos["targets"][place])
        for method in run.manifest["methods"]:
            path = run.pairs(run.manifest["request"]["settings"][0], method)
            if path.is_file():
                with np.load(path) as held:
                    maps[named(method)] = _by_image({name: held[name] for name in held.files}, images)
    return Gallery(trained, images, right, maps, {method: _parts(study, trained, method) for method in maps})


def _photos(run: Run) -> list[dict[str, npt.NDArray[Any]]]:
    found = []
    for path in sorted(run.sprites_of(run.manifest["request"]["settings"][0]).glob("*.npz")):
        with np.load(path) as held:
            found.append({name: held[name] for name in ("ids", "images", "labels", "targets")})
    return found


def _by_image(held: Mapping[str, npt.NDArray[Any]], images: Mapping[str, Photo]) -> dict[str, dict[str, Shown]]:
    found: dict[str, dict[str, Shown]] = {}
    for number, name in enumerate(held["ids"].tolist()):
        if name not in images:
            continue
        found[name] = {}
        for place, word in enumerate(PLACES):
            condition = str(held["conditions"][number, place])
            if condition:
                found[name][word] = Shown(
                    condition, float(held["similar"][number, place]), bool(held["changed"][number, place]),
                    under(images[name], condition), held["maps"][number, place].astype(np.float64) / 255,
                )  # fmt: skip
    return found


def under(photo: Photo, condition: str) -> Photo:
    """A photograph under an operation, as a row's condition names it."""
    spec = Spec.parse(condition)
    if spec.name == ITSELF:
        return photo
    number = int(dict(spec.params).get("bin", 0))
    pixels = torch.from_numpy(np.ascontiguousarray(photo)).permute(2, 0, 1)[None]
    found: Photo = applied(spec.name, pixels, torch.tensor([number]))[0].permute(1, 2, 0).contiguous().numpy()
    return found


def told(condition: str) -> str:
    """A change in words for a caption."""
    spec = Spec.parse(condition)
    if spec.name not in OPERATIONS:
        return "the image"
    params = dict(spec.params)
    return f"{spec.name.replace('_', ' ')} {float(params['magnitude']):+.3g}" if params else spec.name.replace("_", " ")


def _parts(study: "Study", model: Trained, method: str) -> str:
    e = study.evidence.by(MODES[1])
    found = []
    for name, word in PARTS.items():
        try:
            found.append(f"{word} {round(float(e.of(name, model, method)[0]))}")
        except MissingError:
            found.append(f"{word} –")
    return ", ".join(found)


def like(galleries: Sequence[Gallery], kin: str) -> Gallery | None:
    """The first model of a kind."""
    return next((one for one in galleries if one.model.kin == kin), None)
