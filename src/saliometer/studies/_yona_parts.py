"""Parts of the study as runs that go on where they were: one method on one scene is there in full or not at all."""

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from saliometer import results
from saliometer.engine.bench import enlist
from saliometer.engine.memory import free
from saliometer.engine.resolve import one_method
from saliometer.engine.run import Run, Unit, key
from saliometer.engine.score import Failure, Method
from saliometer.files import put
from saliometer.registry import methods as known
from saliometer.sanity import focus
from saliometer.studies._yona_cast import targets
from saliometer.studies._yona_evidence import CONTROLS
from saliometer.studies._yona_maps import Maps, controlled, explained, predicted
from saliometer.studies._yona_measure import MASK, measured
from saliometer.studies._yona_pictures import keep_maps, keep_scene
from saliometer.studies._yona_rows import Rows
from saliometer.studies._yona_scenes import Scene
from saliometer.types import Watch

CHEAP = 6  # passes an image, up to which methods are explained together
ROOM = 0.25  # of the free memory, that the maps of one pack may take


class Timings:
    """Seconds by part, written as they come; a run that goes on adds to them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.seconds: dict[str, float] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        started = time.perf_counter()
        try:
            yield
        finally:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            self.seconds[part] = round(self.seconds.get(part, 0.0) + time.perf_counter() - started, 3)
            put(self.path, (json.dumps(self.seconds, indent=1) + "\n").encode())


def begun(folder: Path, kind: str, scenes: Mapping[str, int], asked: Mapping[str, Any], labels: Sequence[str]) -> Run:
    """A run whose settings are scenes; `scenes` says how many images each has, `asked` what decides its numbers."""
    request = {"kind": kind, "settings": list(scenes), "seed": asked["seed"]}
    run = Run(folder, request, {"unit": max(scenes.values()), "weights": {}, **asked})
    run.manifest["counts"] = dict(scenes)
    enlist(run, [listed(label) for label in labels])
    return run


def listed(label: str) -> Method:
    """A method, or a control that only this study has."""
    name = label.partition("(")[0]
    if name not in known:
        return Method(label, known["random"], known_spec(label), key(label))
    return one_method(label)


def known_spec(label: str) -> Any:
    from saliometer.registry import Spec

    return Spec(label)


def unit_of(scene: Scene) -> Unit:
    return Unit(scene.name, 0, len(scene.images))


def pending(run: Run, unit: Unit, labels: Sequence[str]) -> list[str]:
    return [label for label in labels if not run.part(unit, label).exists()]


def measure_scene(
    run: Run, scene: Scene, labels: Sequence[str], classes: Mapping[str, tuple[str, ...]], how: Mapping[str, int],
    device: torch.device, timed: Callable[[str], Any], watch: Watch,
) -> None:  # fmt: skip
    """Explain and measure what is not there yet; `how` are beside, draws and seed."""
    unit = unit_of(scene)
    todo = pending(run, unit, labels)
    if not todo:
        return
    with timed(f"{scene.name} predictions"):
        answers = predicted(scene, device)
        right = {name: _right(scene, name, some) for name, some in answers.items()}
        keep_scene(run, scene, answers, classes)
    wanted, done = targets(scene, answers), 0
    for pack in packs(todo, scene, device):
        watch(done / len(todo), f"{scene.name}: {', '.join(pack)}")
        with timed(f"{scene.name} maps: {', '.join(pack)}"):
            found = mapped(pack, scene, wanted, device)
        for label, maps in found.items():
            if isinstance(maps, Failure):
                put(run.failure(unit, label), maps.traceback.encode())
                continue
            with timed(f"{scene.name} numbers: {label}"):
                rows = measured(label, scene, maps, right, **how).table()
            keep_maps(run, scene, label, maps)
            run.failure(unit, label).unlink(missing_ok=True)
            results.write(run.part(unit, label), [rows])
            done += 1
            watch(done / len(todo), f"{scene.name}: {label}")
        del found


def _right(scene: Scene, name: str, answers: Tensor) -> Tensor:
    places, labels = scene.groups[name].places, scene.labels(name)
    return answers == (labels if places is None else labels[places])


def mapped(
    labels: Sequence[str], scene: Scene, wanted: Mapping[str, Tensor], device: torch.device
) -> dict[str, Maps | Failure]:
    if labels[0] in CONTROLS:
        return {label: controlled(label, scene, device) for label in labels}
    return explained([one_method(label) for label in labels], scene, wanted, device)


def packs(labels: Sequence[str], scene: Scene, device: torch.device) -> Iterator[list[str]]:
    """Methods whose maps are held together: those of few passes share them; controls come alone."""
    held = sum(len(group.models) for group in scene.groups.values()) * scene.images.numel() * 4
    most = max(1, int(ROOM * free(device) // held))
    cheap = [label for label in labels if label not in CONTROLS and passes(label) <= CHEAP]
    for start in range(0, len(cheap), most):
        yield cheap[start : start + most]
    yield from ([label] for label in labels if label not in cheap)


def passes(label: str) -> float:
    """What a method costs for one image: more or fewer draws and steps than its own count in proportion."""
    method = one_method(label)
    found = float(method.entry.facts.passes)
    for name, value in method.spec.params:
        usual = method.entry.parameters[name]
        if name in ("draws", "steps") and isinstance(value, int) and isinstance(usual, int):
            found *= value / usual
    return found


def areas(scenes: Sequence[Scene]) -> Rows:
    """What belongs to images alone: the share of what decides, and how many lack it or what distracts."""
    rows = Rows("")
    for scene in scenes:
        for task in scene.focus:
            shares = focus.area_share(*scene.regions(task))
            rows.add(task, "", "area_share", float(shares.nanmean()), **MASK)
            rows.add(task, "", "left_out", float(shares.isnan().sum()), **MASK)
    return rows
