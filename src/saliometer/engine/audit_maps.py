"""Maps of an audit's images that were made elsewhere: one npz with an array `maps` and, if in another order, `ids`.

Where it says in `targets` which classes they explain, these have to be the audit's.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from saliometer.engine.score import Failure, Method
from saliometer.engine.source import Source
from saliometer.maps import checked
from saliometer.registry import Entry, Facts, Spec
from saliometer.types import Batch, Explained, Model, Samples


@dataclass(frozen=True, eq=False)
class Made:
    """Maps by image; whoever wants to explain again cannot."""

    label: str
    key: str
    array: Tensor  # (N, H, W) or (N, C, H, W)
    places: dict[str, int]  # image id -> place in the array
    targets: Tensor | None = None  # (N,) the classes that they explain, where they say so
    own: bool = True
    control: bool = False

    @classmethod
    def read(cls, name: str, place: Path | str | Tensor | npt.NDArray[Any], source: Source) -> "Made":
        """From a file, or a tensor or array in the order of the images."""
        held, data = _held(name, place)
        array, ids = held["maps"], held.get("ids")
        names = list(source.ids) if ids is None else [str(one) for one in ids.tolist()]
        if array.ndim not in (3, 4) or array.dtype.kind not in "fiub" or len(array) != len(names):
            raise ValueError(
                f"maps '{name}': array of shape {array.shape} and type {array.dtype} for {len(names)} images; wanted "
                "(N, H, W) or (N, C, H, W) numbers, one map for each image"
            )
        channels, *size = source.images(0, 1).shape[1:]
        if list(array.shape[1:]) not in (size, [1, *size], [channels, *size]):
            raise ValueError(
                f"maps '{name}': one map has shape {array.shape[1:]}, wanted {tuple(size)} or {(channels, *size)}: the "
                "size of the images as the model takes them"
            )
        places = {one: place for place, one in enumerate(names)}
        if len(places) < len(names):
            twice = next(one for place, one in enumerate(names) if places[one] != place)
            raise ValueError(f"maps '{name}': '{twice}' is there more than once in ids, wanted one map for each image")
        lacking = [one for one in source.ids if one not in places]
        if lacking:
            raise ValueError(f"maps '{name}': no map for {len(lacking)} images, first '{lacking[0]}'")
        values = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
        targets = held.get("targets")
        if targets is not None and (targets.shape != (len(names),) or targets.dtype.kind not in "iu"):
            raise ValueError(
                f"maps '{name}': targets of shape {targets.shape} and type {targets.dtype}, wanted {len(names)} whole "
                "numbers, the class that each map explains"
            )
        explained = None if targets is None else torch.from_numpy(targets.astype(np.int64))
        return cls(name, hashlib.sha256(data).hexdigest(), values, places, explained)

    def maps(self, samples: Samples) -> Explained | Failure:
        places = [self.places[one] for one in samples.ids]
        try:
            self._check_targets(places, samples)
            chosen = self.array[places]
            return Explained(checked(chosen, self.label, samples.batch.images))
        except ValueError as error:
            return Failure.of(error)

    def _check_targets(self, places: list[int], samples: Samples) -> None:
        if self.targets is None:
            return
        made, asked = self.targets[places].tolist(), samples.batch.targets.tolist()
        other = [place for place, pair in enumerate(zip(made, asked, strict=True)) if pair[0] != pair[1]]
        if other:
            place = other[0]
            raise ValueError(
                f"maps '{self.label}' explain class {made[place]} of '{samples.ids[place]}', the audit class "
                f"{asked[place]} ({len(other)} of {len(made)} images differ): make them for the audit's classes, or "
                "choose its --target by them"
            )

    def as_method(self) -> Method:
        """What metrics are told of it: a name, and no unit."""

        def again(model: Model, batch: Batch) -> Tensor:
            raise ValueError(f"maps '{self.label}' were made elsewhere: they cannot be made again")

        return Method(self.label, Entry(self.label, again, Facts(), own=True), Spec(self.label), self.key)


def _held(name: str, place: Path | str | Tensor | npt.NDArray[Any]) -> tuple[dict[str, npt.NDArray[Any]], bytes]:
    """What came, with `maps` among it, and the bytes that tell it from others."""
    if isinstance(place, Tensor | np.ndarray):
        array = np.ascontiguousarray(torch.as_tensor(place).detach().cpu().numpy())
        return {"maps": array}, array.tobytes()
    path = Path(place)
    try:
        data = path.read_bytes()
        file = np.load(path, allow_pickle=False)
        held = {key: file[key] for key in file.files} if isinstance(file, np.lib.npyio.NpzFile) else {"maps": file}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise ValueError(f"maps '{name}': cannot read '{path}' as npz ({error})") from error
    if "maps" not in held:
        raise ValueError(f"maps '{name}': '{path}' holds {', '.join(sorted(held)) or 'nothing'}, wanted 'maps'")
    return held, data
