"""The study's networks trained side by side, in processes of their own: alone, small ones leave a GPU mostly idle."""

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch

from saliometer.engine.causal import Causal
from saliometer.engine.causal_models import Training, at_a_time, lacking, trained
from saliometer.studies._yona_cast import Casting, Sizes
from saliometer.types import Watch


@dataclass(frozen=True)
class Job:
    """Networks that are trained in one process."""

    group: str
    causal: Causal
    seeds: tuple[int, ...]
    training: Training
    folder: Path
    device: str

    @property
    def images(self) -> int:
        """That its networks are shown in all."""
        return len(self.seeds) * self.training.recipe.epochs * self.training.images


def jobs_of(casting: Casting, asked: Mapping[str, tuple[str, Sizes, int]]) -> list[Job]:
    """What the folder lacks of each group, the longest first; `asked` are the source, sizes and side by group."""
    return sorted(_jobs(casting, asked), key=lambda job: -job.images)


def _jobs(casting: Casting, asked: Mapping[str, tuple[str, Sizes, int]]) -> Iterator[Job]:
    for group, (source, sizes, side) in asked.items():
        causal, training = casting.learned(group, source, side), casting.training(group, sizes)
        todo = lacking(causal, casting.seeds(group, sizes), casting.folder, training)
        together = at_a_time(training, casting.device, len(todo))
        for start in range(0, len(todo), together):
            seeds = tuple(todo[start : start + together])
            yield Job(group, causal, seeds, training, casting.folder, casting.device)


def train(jobs: Sequence[Job], processes: int, watch: Watch) -> None:
    """All of them; the first that fails is raised, and what others have finished stays."""
    if not jobs:
        return
    threads = max(1, (os.cpu_count() or 1) // processes)
    with _pool(min(processes, len(jobs))) as pool:
        waiting = {pool.submit(_trained, job, threads): job for job in jobs}
        watch(0.0, f"training {len(jobs)} groups of networks side by side")
        try:
            for done, future in enumerate(as_completed(waiting), 1):
                future.result()
                watch(done / len(jobs), f"training side by side, {waiting[future].group} is done")
        finally:
            pool.shutdown(cancel_futures=True)


def _pool(processes: int) -> Executor:
    return ProcessPoolExecutor(processes, mp_context=get_context("spawn"))  # a GPU cannot be used in a fork


def _trained(job: Job, threads: int) -> None:
    torch.set_num_threads(threads)
    trained(job.causal, job.seeds, job.folder, job.training, device=job.device)
