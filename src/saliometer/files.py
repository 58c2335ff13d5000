"""Files that are there in full or not at all, and what they are called."""

import os
from pathlib import Path


def put(path: Path, data: bytes) -> None:
    """Write beside the path, then move into place; a kill leaves the old file or the new one.

    Two processes that write the same file do not meet: each has a place of its own, and the last one stays.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def printable(name: str) -> str:
    """A file's name, where bytes that are no UTF-8, which no table or page can hold, stand as `\\xe9`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
