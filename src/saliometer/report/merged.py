"""Several runs that measured the same, read as one: the methods of all, each once."""

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from saliometer.engine.run import Run
from saliometer.report.book import Book

FREE = ("pictures",)  # what may differ between runs: it changes no number


class Merged(Run):
    """Reads from several folders; what belongs to no method is the first one's."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.runs = list(runs)
        self.folder = runs[0].folder
        self.owners = _owners(runs)
        self.manifest = _manifest(runs, self.owners)

    def parts(self) -> Iterator[Path]:
        for setting in self.manifest["request"]["settings"]:
            for method, owner in self.owners.items():
                yield from sorted((owner.folder / "rows" / setting / self.slug(method)).glob("*.parquet"))

    def failures(self) -> dict[str, list[str]]:
        every = {id(run): run.failures() for run in self.runs}
        return {m: every[id(owner)][m] for m, owner in self.owners.items() if m in every[id(owner)]}

    def thumbnails(self, setting: str, method: str) -> Path:
        return self.owners[method].thumbnails(setting, method)

    def sprites_of(self, setting: str, method: str = "") -> Path:
        if method:
            return self.owners[method].sprites_of(setting, method)
        return max((run.sprites_of(setting) for run in self.runs), key=_pictured)


def _pictured(folder: Path) -> int:
    """About how many pictures a run kept: the size of their files."""
    return sum(path.stat().st_size for path in folder.glob("*.npz"))


def merged(runs: Sequence[Run]) -> Run:
    """One run as it is; several as one, where they measured the same."""
    first, *others = runs
    for other in others:
        kinds = [run.manifest["request"].get("kind", "bench") for run in (first, other)]
        if kinds[0] != kinds[1]:
            raise ValueError(
                f"'{first.folder}' is of kind {kinds[0]} and '{other.folder}' of kind {kinds[1]}: they share no "
                "scoreboard. Write a report of each"
            )
        if said := differences(first, other):
            raise ValueError(
                f"'{first.folder}' and '{other.folder}' did not measure the same, so their methods cannot share a "
                f"scoreboard: {'; '.join(said)}. Put them side by side with "
                f"`saliometer report {first.folder} --compare {other.folder}`"
            )
    return Merged(runs) if others else first


def named(book: Book, runs: Sequence[Run]) -> Book:
    """A merged run's book with the names of all folders."""
    folders = [str(run.folder) for run in runs]
    provenance = [(name, folders if name == "Folder" else lines) for name, lines in book.provenance]
    return replace(book, name=" + ".join(run.folder.resolve().name for run in runs), provenance=provenance)


def differences(one: Run, other: Run) -> list[str]:
    """What two runs measured differently, in words."""
    said = []
    for name, (old, new) in _both(_measured(one.manifest), _measured(other.manifest)).items():
        if old != new and name not in FREE:
            said.append(f"{name} {_short(old)} and {_short(new)}")
    if settings := retrained(one, other):
        said.append(f"the models of {', '.join(settings)} were trained for the runs, with other weights")
    return said


def retrained(one: Run, other: Run) -> list[str]:
    """Settings whose models a run trained for itself, so that its request does not tell their weights."""
    here, there = (run.manifest.get("models", {}) for run in (one, other))
    asked = one.manifest["fixed"]["weights"], other.manifest["fixed"]["weights"]
    both = [setting for setting in here if setting in there] if asked[0] == asked[1] else []
    return [setting for setting in both if here[setting].get("sha256") != there[setting].get("sha256")]


def _measured(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """All that a number depends on, besides the method."""
    request, fixed = dict(manifest["request"]), dict(manifest["fixed"])
    kind = request.pop("kind", "bench")
    pixels = {"images' contents": fixed.pop("images")} if "images" in fixed else {}
    return {"kind": kind, **request, **fixed, **pixels, "saliometer": manifest["saliometer"]}


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    return {name: (one.get(name), other.get(name)) for name in {**one, **other}}


def _short(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) < 60 else text[:57] + "..."


def _owners(runs: Sequence[Run]) -> dict[str, Run]:
    """method, or method under a condition -> the first run that holds it, or the one that got further with it."""
    found: dict[str, Run] = {}
    for run in runs:
        done = _done(run)
        for method, facts in run.counted.items():
            before = found.setdefault(method, run)
            if before.counted[method]["key"] != facts["key"]:
                raise ValueError(
                    f"the method '{method}' is not the same in '{before.folder}' and '{run.folder}': its code or "
                    "parameters differ, and one name can stand for one of them only. Run one under another name, or "
                    f"see both with `saliometer report {before.folder} --compare {run.folder}`"
                )
            if before is not run and done.get(method, 0) > _done(before).get(method, 0):
                found[method] = run
    return found


def _done(run: Run) -> dict[str, int]:
    """method -> its finished parts."""
    settings = run.manifest["request"]["settings"]
    return {
        method: sum(
            len(list((run.folder / "rows" / setting / run.slug(method)).glob("*.parquet"))) for setting in settings
        )
        for method in run.counted
    }


def _manifest(runs: Sequence[Run], owners: Mapping[str, Run]) -> dict[str, Any]:
    found: dict[str, Any] = copy.deepcopy(runs[0].manifest)
    for part in ("methods", "variants", "costs"):
        held = {
            name: facts for run in runs for name, facts in run.manifest.get(part, {}).items() if owners.get(name) is run
        }
        if held:
            found[part] = held
    found["passes"] = sum(run.manifest["passes"] for run in runs)
    found["created"] = max(run.manifest["created"] for run in runs)
    for part in ("versions", "batches"):
        found[part] = _joined([run.manifest.get(part, {}) for run in runs])
    found["commands"] = [command for run in runs for command in run.manifest["commands"]]
    return found


def _joined(every: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """name -> value, or all that there are."""
    names = dict.fromkeys(name for some in every for name in some)
    return {name: " and ".join(dict.fromkeys(str(some[name]) for some in every if name in some)) for name in names}
