"""Maps made elsewhere: a file of arrays, one for each setting, scored like any method's."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor

from saliometer.engine.request import Request
from saliometer.engine.score import Failure
from saliometer.maps import checked
from saliometer.types import Explained, Samples


@dataclass(frozen=True, eq=False)
class Given:
    """Maps by setting, with the sample each belongs to."""

    label: str
    key: str
    arrays: dict[str, Tensor]  # setting -> (N, H, W) or (N, C, H, W)
    places: dict[str, dict[str, int]]  # setting -> sample id -> place in the array
    own: bool = True
    control: bool = False
    rendering: str = "heat"
    row: str = ""
    condition: str = ""

    @classmethod
    def read(cls, name: str, path: Path, request: Request) -> "Given":
        """From an npz that holds an array `SETTING` for each setting and, if not in export order, `SETTING.ids`."""
        try:
            data = path.read_bytes()
            file = np.load(path, allow_pickle=False)
            if not isinstance(file, np.lib.npyio.NpzFile):
                raise ValueError("it holds one array: save it with np.savez, named like its setting")
            with file:
                held = {key: file[key] for key in file.files}
        except (OSError, ValueError, EOFError, BadZipFile) as error:
            raise ValueError(f"maps '{name}': cannot read '{path}' as npz ({error})") from error
        missing = [setting for setting in request.settings if setting not in held]
        if missing:
            raise ValueError(
                f"maps '{name}': '{path}' holds {', '.join(sorted(held)) or 'nothing'}, wanted an array for each of "
                f"{', '.join(missing)}; leave settings out with --setting, or see `bench --export-images`"
            )
        arrays, places = {}, {}
        for setting in request.settings:
            array, ids = held[setting], held.get(f"{setting}.ids")
            if ids is None:
                ids = np.array([f"test-{i}" for i in range(request.count(setting))])
            real = np.issubdtype(array.dtype, np.floating) or np.issubdtype(array.dtype, np.integer)
            if array.ndim < 3 or len(ids) != len(array) or not (real or array.dtype == np.bool_):
                raise ValueError(
                    f"maps '{name}', {setting}: array of shape {array.shape} and type {array.dtype} for {len(ids)} "
                    f"samples; wanted one map of numbers for each ({request.count(setting)})"
                )
            arrays[setting] = torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
            places[setting] = {str(sample): place for place, sample in enumerate(ids.tolist())}
        return cls(name, hashlib.sha256(data).hexdigest(), arrays, places)

    def maps(self, setting: str, samples: Samples) -> Explained | Failure:
        places = self.places[setting]
        lacking = [sample for sample in samples.ids if sample not in places]
        try:
            if lacking:
                raise ValueError(
                    f"maps '{self.label}', {setting}: no map for {len(lacking)} samples, first {lacking[0]}"
                )
            chosen = self.arrays[setting][[places[sample] for sample in samples.ids]]
            return Explained(checked(chosen, self.label, samples.batch.images))
        except ValueError as error:
            return Failure.of(error)
