"""What every command does with a mistake, a stop and its side remarks."""

import functools
import os
import sys
from collections.abc import Callable
from typing import ParamSpec

import typer

P = ParamSpec("P")


def plainly(command: Callable[P, None]) -> Callable[P, None]:
    """One clear sentence for a user's mistake instead of a traceback (SALIOMETER_DEBUG=1 shows it); exit code 2."""

    @functools.wraps(command)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except typer.Exit:
            raise
        except BrokenPipeError:  # the reader of our output has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except KeyboardInterrupt:
            say("\nStopped. What a run has finished is kept: the same command goes on from there.")
            raise typer.Exit(130) from None
        except (ValueError, LookupError, OSError, MemoryError, RuntimeError) as error:
            if os.environ.get("SALIOMETER_DEBUG"):
                raise
            say(f"Error: {_told(error)}")
            raise typer.Exit(2) from None

    return guarded


def _told(error: Exception) -> str:
    """What the system says of a file in words, without its number."""
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"'{error.filename}': {error.strerror}"
    return str(error) or type(error).__name__


def say(text: str) -> None:
    """A remark beside the result: standard output holds the result alone."""
    print(text, file=sys.stderr)
