"""The command lets the C library keep freed memory, and never in a way that would make it map every block anew."""

import ctypes
import sys
from types import SimpleNamespace

import pytest

from saliometer.allocator import KEPT, LEAST, MMAP, TRIM, keep_memory


@pytest.mark.parametrize(
    ("most", "asked"),
    [
        (KEPT, [(MMAP, KEPT), (TRIM, KEPT)]),
        (LEAST, [(MMAP, KEPT), (MMAP, LEAST), (TRIM, KEPT)]),  # an older glibc
        (0, [(MMAP, KEPT), (MMAP, LEAST)]),  # refused: trimming is left as it was
    ],
)
def test_blocks_are_kept_as_far_as_the_library_allows(monkeypatch, most, asked):
    called = []

    def mallopt(which, size):
        called.append((which, size))
        return int(which == TRIM or size <= most)

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=mallopt))
    keep_memory()
    assert called == asked


def test_another_system_or_library_is_left_alone(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: pytest.fail("asked"))
    keep_memory()
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())  # musl has none
    keep_memory()
