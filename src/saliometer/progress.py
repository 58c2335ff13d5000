"""What runs and how long it still takes: a bar on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from saliometer.types import Watch

LINE_EVERY = 10.0  # seconds, where there is no terminal


class Clock:
    """The time left in words, by the pace since the first share that it was told: what an earlier run did cost none."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now, self._last = now, 2.0  # a share is at most 1
        self._first = self._started = 0.0

    def left(self, share: float) -> str:
        if share < self._last:  # the first one, or another try
            self._first, self._started = share, self._now()
        self._last = share
        elapsed, done = self._now() - self._started, share - self._first
        if share >= 1:
            return "0 s left"
        if done < 0.01 or elapsed < 1:
            return "time left: ..."
        return f"{duration(elapsed / done * (1 - share))} left"


def duration(seconds: float) -> str:
    """In words: 8 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


@contextmanager
def progress() -> Iterator[Watch]:
    """A function to be told the share done and what is running; shows it on the error stream."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    console, clock = Console(stderr=True), Clock()
    if not console.is_terminal:
        yield _lines(console.print, clock)
        return
    columns = (BarColumn(16), TaskProgressColumn(), TextColumn("{task.fields[left]}, {task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        shown = bar.add_task("starting", total=1.0, left="")

        def tell(share: float, text: str) -> None:
            bar.update(shown, completed=share, description=text, left=clock.left(share))

        yield tell


def _lines(say: Callable[[str], None], clock: Clock) -> Watch:
    last = time.monotonic()

    def tell(share: float, text: str) -> None:
        nonlocal last
        left = clock.left(share)
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            say(f"{share:4.0%}  {left}  {text}")

    return tell
