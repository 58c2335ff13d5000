"""Photographs from installed packages, without a network and without importing the packages."""

import socket
import subprocess
import sys

import numpy as np
import pytest

from saliometer import photos
from saliometer.photos import photographs


def test_they_are_coloured_and_different():
    found = photographs()
    assert {"astronaut", "cat", "coffee", "rocket", "temple", "flower"} <= set(found)
    for pixels in found.values():
        assert pixels.dtype == np.uint8
        assert pixels.ndim == 3
        assert pixels.shape[2] == 3
        assert min(pixels.shape[:2]) >= 300
        assert (pixels[..., 0] != pixels[..., 2]).mean() > 0.3  # not grey
    assert len({pixels.tobytes() for pixels in found.values()}) == len(found)


def test_they_are_the_packages_own():
    data, datasets = pytest.importorskip("skimage.data"), pytest.importorskip("sklearn.datasets")
    found = photographs()
    assert np.array_equal(found["astronaut"], data.astronaut())
    assert np.array_equal(found["cat"], data.chelsea())
    assert np.array_equal(found["temple"], datasets.load_sample_image("china.jpg"))


def test_no_network_is_asked(monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    assert photographs()


def test_the_packages_are_not_imported():
    code = "import sys; from saliometer.photos import photographs; photographs(); "
    code += "sys.exit('skimage' in sys.modules or 'sklearn' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_any_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setattr(photos, "find_spec", lambda _: None)
    with pytest.raises(ValueError, match="give images of your own"):
        photographs()
