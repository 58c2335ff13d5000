"""Lets the C library keep the memory that a pass has freed: the next one wants it again."""

import ctypes
import sys
from contextlib import suppress

TRIM, MMAP = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of glibc's malloc.h
KEPT, LEAST = 512 << 20, 32 << 20  # bytes; older versions take no more than the latter for MMAP


def keep_memory() -> None:
    """On Linux; elsewhere, and with another C library, nothing.

    glibc hands large blocks back as soon as they are freed and gets them anew, page by page and zeroed: half of the
    time of some networks' passes on a CPU. The command does so by itself; in Python it has to be called, for how a
    caller's process uses memory is the caller's business. It lasts as long as the process.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        tune = ctypes.CDLL(None).mallopt
        if any(tune(MMAP, size) for size in (KEPT, LEAST)):  # without it TRIM alone would map every block anew
            tune(TRIM, KEPT)
