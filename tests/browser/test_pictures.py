"""The pictures of the README and the docs: `make pictures` keeps them, other runs only look that they can be made."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from saliometer.pages import written

VIEWS = {
    "report": {"width": 1200, "height": 1000},
    "report-dark": {"width": 1200, "height": 1000, "color_scheme": "dark"},
    "report-phone": {"width": 390, "height": 844, "is_mobile": True, "device_scale_factor": 2},
}
PARTS = {"report-gallery": "#look", "report-compare": "#compare", "report-figure": "#smerf_7"}


@pytest.fixture(scope="module")
def shown(request) -> Path:
    """A run's report, by default that of a small benchmark."""
    given = request.config.getoption("--pictures-of")
    return written([Path(given)]) if given else request.getfixturevalue("benchmark")


@pytest.fixture
def folder(request, tmp_path) -> Path:
    return Path(request.config.getoption("--pictures") or tmp_path)


@pytest.mark.parametrize("name", VIEWS)
def test_the_first_screen(open_page, shown, folder, name):
    found = open_page(shown, **VIEWS[name])
    found.page.screenshot(path=folder / f"{name}.png")
    looked_at(folder / f"{name}.png")


@pytest.mark.parametrize("name", PARTS)
def test_a_part(open_page, shown, folder, name):
    found = open_page(shown, width=1200, height=2400)
    part = found.page.locator(PARTS[name])
    part.scroll_into_view_if_needed()
    found.page.wait_for_timeout(600)  # maps are unpacked and charts drawn when they come near
    part.screenshot(path=folder / f"{name}.png")
    looked_at(folder / f"{name}.png")


def looked_at(path: Path) -> None:
    """Smaller, with a palette, which pages of flat colours bear well; and it does show something."""
    with Image.open(path) as picture:
        small = picture.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    pixels = np.asarray(small.convert("L"))
    assert len(np.unique(pixels)) > 20
    assert 0.01 < (np.abs(pixels.astype(int) - int(np.median(pixels))) > 40).mean() < 0.7
    small.save(path, optimize=True)
