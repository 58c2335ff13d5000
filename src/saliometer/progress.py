"""What runs and how long it still takes: a bar on a terminal, a line now and then elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from saliometer.types import Watch

LINE_EVERY = 10.0  # seconds, where there is no terminal


def left(started: float, share: float) -> str:
    """The time left in words, from the share done so far."""
    elapsed = time.monotonic() - started
    if share < 0.01 or elapsed < 1:
        return "time left: ..."
    return f"{duration(elapsed / share * (1 - share))} left"


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

    console, started = Console(stderr=True), time.monotonic()
    if not console.is_terminal:
        yield _lines(console.print, started)
        return
    columns = (BarColumn(16), TaskProgressColumn(), TextColumn("{task.fields[left]}, {task.description}"))
    with Progress(*columns, console=console, transient=True) as bar:
        shown = bar.add_task("starting", total=1.0, left="")

        def tell(share: float, text: str) -> None:
            bar.update(shown, completed=share, description=text, left=left(started, share))

        yield tell


def _lines(say: Callable[[str], None], started: float) -> Watch:
    last = started

    def tell(share: float, text: str) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_EVERY:
            last = time.monotonic()
            say(f"{share:4.0%}  {left(started, share)}  {text}")

    return tell
