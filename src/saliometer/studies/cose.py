"""COSE (Daroya, Sun and Maji, ICCV Workshops 2023), rerun: models trained, Table 1, Figures 1-8, 14 claims, ablations.

Which models score high, and whether that is more than smooth maps: every method beside noise of the same grain.
"""

import json
import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from threading import Thread
from typing import Any

import torch

from saliometer.engine import device as devices
from saliometer.files import put
from saliometer.registry import one_of
from saliometer.studies._cose_evidence import TABLE
from saliometer.studies._cose_run import Done, Job, data_for, jobs_of, run
from saliometer.studies._cose_scales import SCALES, Scale
from saliometer.studies._cose_study import Study, opened, read
from saliometer.types import Watch

__all__ = ["SCALES", "Study", "opened", "reproduce"]
Say = Callable[[str], None]
Told = tuple[Job, Done | Exception]


def reproduce(
    folder: Path,
    scale: str = "smoke",
    *,
    data: Sequence[str] = (),
    init: Sequence[str] = (),
    jobs: int = 0,
    device: str = "auto",
    seed: int = 0,
    say: Say = lambda text: None,
    watch: Watch = lambda share, text: None,
) -> Study:
    """Train and explain every model under one folder, each of which goes on where it was.

    `data` are data sets as `saliometer train images` takes them, `init` further first weights as `arch=FILE`; `jobs`
    models are worked on at once, in processes of their own.
    """
    chosen = SCALES[one_of("scale", scale, SCALES)]
    devices.find(device)
    if jobs < 0:
        raise ValueError(f"--jobs {jobs}: wanted 1 or more processes")
    if not data and not chosen.data:
        raise ValueError(f"scale '{scale}' wants data: give --data, such as --data cifar10:ROOT or --data folder/")
    inits = [_first_weights(text, chosen.archs) for text in init]
    places = _named(tuple(data) or chosen.data, chosen, seed)
    _begin(folder, scale)
    todo = jobs_of(folder, chosen, places, inits, seed, device)
    started, done = time.perf_counter(), dict[str, Done]()
    failed: dict[str, str] = {}
    notes: list[str] = []
    for job, found in _worked(todo, jobs, watch):
        if isinstance(found, Exception):
            failed[job.label] = f"{type(found).__name__}: {found}"
            say(f"Failed: {job.label}: {found}")
        else:
            done[job.label] = found
            failed |= found.failed
            notes += [note for note in found.notes if note not in notes]
        ordered = [done[one.label] for one in sorted(todo, key=_order(chosen.archs)) if one.label in done]
        _tell(folder, scale, ordered, notes, failed)
        _keep_times(folder, done, time.perf_counter() - started)
    if not done and failed:
        raise RuntimeError("no model could be trained and explained: " + "; ".join(failed.values()))
    study = replace(opened(folder), failed=failed)
    _keep_times(folder, done, time.perf_counter() - started, study.costs())
    return study


def _first_weights(text: str, archs: Sequence[str]) -> tuple[str, str]:
    arch, equals, file = text.partition("=")
    if not (arch and equals and file):
        raise ValueError(f"--init {text}: wanted ARCH=FILE, such as vit_b_16=dino.pth")
    return one_of("network", arch, archs), file


def _named(places: Sequence[str], scale: Scale, seed: int) -> dict[str, str]:
    """Data sets by name, each read, so that a wrong place is told before anything is trained."""
    found: dict[str, str] = {}
    for place in places:
        name = re.sub(r"[^A-Za-z0-9_-]+", "-", data_for(scale, place, scale.archs[-1], seed).name).strip("-") or "data"
        if name in found:
            raise ValueError(f"two data sets are called '{name}': '{found[name]}' and '{place}'; rename one")
        found[name] = place
    return found


def _order(archs: Sequence[str]) -> Callable[[Job], Any]:
    return lambda job: (job.name, job.role != TABLE, archs.index(job.arch), job.init)


# Jobs


def _worked(todo: Sequence[Job], jobs: int, watch: Watch) -> Iterator[Told]:
    shares = dict.fromkeys((job.label for job in todo), 0.0)

    def told(label: str, share: float, text: str) -> None:
        shares[label] = share
        watch(sum(shares.values()) / len(shares), text)

    if jobs < 2:
        for job in todo:
            yield job, _tried(job, lambda share, text, job=job: told(job.label, share, text))  # type: ignore[misc]
            told(job.label, 1.0, job.label)
        return
    yield from _in_processes(todo, jobs, told)


def _tried(job: Job, watch: Watch) -> Done | Exception:
    """One that fails is written down, and the others go on."""
    try:
        return run(job, watch)
    except Exception as error:
        return error


def _in_processes(todo: Sequence[Job], jobs: int, told: Callable[[str, float, str], None]) -> Iterator[Told]:
    context = get_context("spawn")  # a GPU cannot be used in a fork
    with context.Manager() as manager, ProcessPoolExecutor(jobs, mp_context=context) as pool:
        queue = manager.Queue()
        listener = Thread(target=_listen, args=(queue, told), daemon=True)
        listener.start()
        threads = max(1, (os.cpu_count() or 1) // jobs)
        waiting = {pool.submit(_in_process, job, queue, threads): job for job in todo}
        try:
            for future in as_completed(waiting):
                job, error = waiting[future], future.exception()
                yield job, error if isinstance(error, Exception) else future.result()
                queue.put((job.label, 1.0, job.label))
        finally:
            pool.shutdown(cancel_futures=True)
            queue.put(None)
            listener.join()


def _in_process(job: Job, queue: Any, threads: int) -> Done | Exception:
    torch.set_num_threads(threads)
    last = [0.0]

    def watch(share: float, text: str) -> None:
        if time.monotonic() - last[0] > 0.5:
            last[0] = time.monotonic()
            queue.put((job.label, share, f"{job.label}: {text}"))

    return _tried(job, watch)


def _listen(queue: Any, told: Callable[[str, float, str], None]) -> None:
    while (one := queue.get()) is not None:
        told(*one)


# The folder


def _begin(folder: Path, scale: str) -> None:
    """Refuse a folder that holds another study, or this one at another scale."""
    if not (folder / "study.json").exists():
        return
    told = read(folder)
    if (told.get("study"), told.get("scale")) != ("cose", scale):
        raise ValueError(
            f"'{folder}' holds the study {told.get('study')} at scale {told.get('scale')}, you asked for cose at "
            f"{scale}: choose another folder with --out"
        )


def _tell(folder: Path, scale: str, done: Sequence[Done], notes: Sequence[str], failed: Mapping[str, str]) -> None:
    told = {
        "study": "cose", "scale": scale, "models": [model for one in done for model in one.models], "notes": notes,
        "failed": failed,
    }  # fmt: skip
    put(folder / "study.json", (json.dumps(told, indent=1) + "\n").encode())


def _keep_times(folder: Path, done: Mapping[str, Done], whole: float, methods: Mapping[str, Any] | None = None) -> None:
    """Where the time went, this time and, of parts that were there already, before."""
    path = folder / "timings.json"
    before: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    parts: dict[str, dict[str, float]] = before.get("jobs", {})
    for label, one in done.items():
        known = parts.get(label, {})
        parts[label] = {what: max(seconds, known.get(what, 0.0)) for what, seconds in one.seconds.items()}
    told = {"seconds": round(whole, 1), "jobs": parts, "methods": methods or {}}
    put(path, (json.dumps(told, indent=1) + "\n").encode())
