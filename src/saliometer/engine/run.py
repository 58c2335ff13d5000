"""A run: a folder that holds what was asked, with what, and the rows; a unit of work is there in full or not at all."""

import hashlib
import json
import platform
import re
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch

import saliometer
from saliometer import results
from saliometer.files import put

FORMAT = 1
LIBRARIES = ("torch", "torchvision", "numpy", "pillow", "safetensors", "pyarrow")


@dataclass(frozen=True)
class Unit:
    """A fixed range of samples of one setting, for one of its models."""

    setting: str
    start: int
    stop: int
    model: str = ""  # which of several, 'seed1'; '' for the first or only one


class Run:
    """A run's folder. The same request goes on where it was; another request needs another folder."""

    def __init__(self, folder: Path, request: Mapping[str, Any], fixed: Mapping[str, Any]) -> None:
        """`request` is what the user asked for, `fixed` what it meets here: the task's version, weights, ..."""
        self.folder = folder
        told = {"request": dict(request), "fixed": dict(fixed)}
        known = read_manifest(folder) if _occupied(folder) else None
        if known is None:
            _make(folder)
            self.manifest: dict[str, Any] = {
                "format": FORMAT, "saliometer": saliometer.__version__, **_plain(told), "methods": {}, "passes": 0,
                "versions": versions(), "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "commands": [],
            }  # fmt: skip
        else:
            _same(folder, known, _plain(told))
            self.manifest = known
        self.manifest["commands"] = [*self.manifest["commands"], " ".join(sys.argv)][-20:]

    def keep(self) -> None:
        """Write the manifest; methods that another process has put there meanwhile stay."""
        for kind, there in _beside(self.folder).items():
            self.manifest[kind] = {**there, **self.manifest.get(kind, {})}
        put(self.folder / "run.json", (json.dumps(self.manifest, indent=1) + "\n").encode())

    def part(self, unit: Unit, method: str) -> Path:
        return self._place("rows", unit, method, ".parquet")

    def failure(self, unit: Unit, method: str) -> Path:
        return self._place("failures", unit, method, ".txt")

    def thumbnails(self, setting: str, method: str) -> Path:
        return self.folder / "thumbs" / setting / f"{self.slug(method)}.npz"

    def sprites(self, unit: Unit, method: str = "") -> Path:
        """Small pictures of one range of images: themselves, or a method's maps of them."""
        return self.sprites_of(unit.setting, method) / f"{unit.start:06}-{unit.stop:06}.npz"

    def sprites_of(self, setting: str, method: str = "") -> Path:
        """The folder of one method's, or of the images themselves."""
        return self.folder / "thumbs" / setting / (self.slug(method) if method else "images")

    @property
    def classes(self) -> Path:
        """What the model's classes are called, where that is known."""
        return self.folder / "classes.json"

    def pairs(self, setting: str, method: str) -> Path:
        """Pictures of a few pairs that COSE compares."""
        return self.folder / "thumbs" / setting / f"pairs-{self.slug(method)}.npz"

    def slug(self, method: str) -> str:
        key = self.counted[method]["key"]
        return f"{re.sub(r'[^A-Za-z0-9_.=-]+', '-', method)[:60].strip('-')}-{key[:10]}"

    def _place(self, kind: str, unit: Unit, method: str, ending: str) -> Path:
        name = ".".join(filter(None, (f"{unit.start:06}-{unit.stop:06}", unit.model))) + ending
        return self.folder / kind / unit.setting / self.slug(method) / name

    def parts(self) -> Iterator[Path]:
        """The finished parts of the methods this run counts, in order."""
        for setting in self.manifest["request"]["settings"]:
            for method in self.counted:
                yield from sorted((self.folder / "rows" / setting / self.slug(method)).glob("*.parquet"))

    @property
    def counted(self) -> dict[str, Any]:
        """The methods, and beside them those under another condition, by label."""
        return {**self.manifest["methods"], **self.manifest.get("variants", {})}

    def finished_any(self) -> bool:
        return any(True for _ in self.parts())

    def failures(self) -> dict[str, list[str]]:
        """The tracebacks of every method that failed somewhere."""
        found: dict[str, list[str]] = {}
        for method in self.counted:
            for path in sorted((self.folder / "failures").glob(f"*/{self.slug(method)}/*.txt")):
                found.setdefault(method, []).append(path.read_text(encoding="utf-8"))
        return found

    def rows(self) -> pa.Table:
        return results.read(self.parts())


def begun(folder: Path) -> dict[str, Any]:
    """What a run that was begun in this folder met there; empty if there is none."""
    return dict(read_manifest(folder)["fixed"]) if _occupied(folder) else {}


def opened(folder: Path) -> Run:
    """A run that is there already, to read it."""
    if not folder.is_dir():
        raise ValueError(
            f"there is no run folder '{folder}': `saliometer bench` or `audit` with --out {folder} makes one"
        )
    run = Run.__new__(Run)
    run.folder, run.manifest = folder, read_manifest(folder)
    return run


def run_in(folder: Path) -> Run:
    """The run in a folder; a folder of runs gets their names."""
    inside = [path.parent for path in sorted(folder.glob("*/run.json"))]
    if inside and not (folder / "run.json").is_file():
        some = ", ".join(f"'{path}'" for path in inside[:3])
        raise ValueError(f"'{folder}' is a folder of runs, not a run: name one, such as {some}")
    return opened(folder)


def read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / "run.json"
    if not path.is_file():
        raise ValueError(f"'{folder}' is not a run of saliometer (no run.json in it): choose another folder")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        form, version = manifest["format"], manifest["saliometer"]
    except (OSError, ValueError) as error:
        raise ValueError(f"cannot read '{path}' ({error}): choose another folder") from error
    except (KeyError, TypeError):
        raise ValueError(
            f"'{folder}' is not a run of saliometer (its run.json says nothing of one): choose another folder"
        ) from None
    if form != FORMAT:
        raise ValueError(
            f"'{folder}' was made by saliometer {version} (run format {form}); this is {saliometer.__version__} "
            f"(run format {FORMAT}). Install saliometer=={version} to read it, or choose another folder"
        )
    return manifest  # type: ignore[no-any-return]


def _beside(folder: Path) -> dict[str, Any]:
    """The methods that the manifest lists now: another process may be at work in the same folder."""
    if not (folder / "run.json").is_file():
        return {}
    manifest = read_manifest(folder)
    return {kind: manifest[kind] for kind in ("methods", "variants") if kind in manifest}


def _same(folder: Path, known: dict[str, Any], told: dict[str, Any]) -> None:
    if known["saliometer"] != saliometer.__version__:
        raise ValueError(
            f"'{folder}' was made by saliometer {known['saliometer']}, this is {saliometer.__version__}: numbers of "
            "two versions are not mixed. Choose another folder with --out"
        )
    there, asked = (manifest["request"].get("kind", "bench") for manifest in (known, told))
    if there != asked:
        raise ValueError(f"'{folder}' holds a run of kind {there}, this is {asked}: choose another folder with --out")
    for part in ("request", "fixed"):
        for name in {**known[part], **told[part]}:
            old, new = known[part].get(name), told[part].get(name)
            if old != new:
                raise ValueError(
                    f"'{folder}' holds a run with {name} {_short(old)}, you asked for {_short(new)}: "
                    "choose another folder with --out, or ask for the same"
                )


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 60 else text[:57] + "..."


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value))


def _occupied(folder: Path) -> bool:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"'{folder}' is a file: --out wants a folder")
    return folder.is_dir() and any(folder.iterdir())


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".write"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ValueError(f"cannot write to '{folder}' ({error.strerror}): choose another folder with --out") from error


def key(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def versions() -> dict[str, str]:
    """What the numbers were made with."""
    found = {"python": platform.python_version(), "machine": platform.platform()}
    for library in LIBRARIES:
        found[library] = metadata.version(library)
    if torch.cuda.is_available():
        found["gpu"] = torch.cuda.get_device_name()
    return found | {"threads": str(torch.get_num_threads())}
