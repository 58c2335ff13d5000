"""A real browser for the pages: the system's Chromium, driven by Playwright.

Where there is none the tests are skipped with a word on how to get one; under CI they fail instead.
"""

import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import saliometer
from audit_toys import network, noise
from browser_toys import NASTY
from run_toys import big_audit
from saliometer.pages import written

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update",
    "--disable-sync",
]  # fmt: skip


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    there = next(filter(None, (shutil.which(name) for name in BROWSERS)), None)
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        _missing("the package playwright is not installed: pip install 'saliometer[dev]'")
    with sync_playwright() as playwright:
        try:
            launched = playwright.chromium.launch(executable_path=there, args=FLAGS)
        except Error as error:
            _missing(
                f"no browser could be started ({error}); `apt-get install chromium`, or `playwright install chromium`"
            )
        yield launched
        launched.close()


def _missing(why: str) -> None:
    (pytest.fail if os.environ.get("CI") else pytest.skip)(f"the pages were NOT tested in a browser: {why}")


@dataclass
class Opened:
    """A page in the browser, with what it complained of and asked for."""

    page: object
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


Open = Callable[..., Opened]


@pytest.fixture
def open_page(browser) -> Iterator[Open]:
    contexts = []

    def opened(url: str | Path, *, width: int = 1280, height: int = 900, **given: object) -> Opened:
        context = browser.new_context(viewport={"width": width, "height": height}, accept_downloads=True, **given)
        contexts.append(context)
        found = Opened(context.new_page())
        found.page.on("console", lambda said: found.errors.append(said.text) if said.type != "log" else None)
        found.page.on("pageerror", lambda error: found.errors.append(str(error)))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(url.resolve().as_uri() if isinstance(url, Path) else url)
        return found

    yield opened
    for context in contexts:
        context.close()


def nasty(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    return images


def broken(model: nn.Module, images: Tensor, targets: Tensor) -> Tensor:
    raise ValueError(f"broken on purpose {NASTY}")


nasty.__name__ = NASTY


@pytest.fixture(scope="session")
def benchmark_run(tmp_path_factory):
    """All seven settings, a few methods, one that fails and one with a wicked name."""
    out = tmp_path_factory.mktemp("bench") / "tiny"
    methods = ["gradient", "input_x_gradient", "grad_cam", nasty, broken]
    return saliometer.bench(methods, per_bucket=2, definitions=["clean", "authors"], out=out).run


@pytest.fixture(scope="session")
def benchmark(benchmark_run) -> Path:
    return written([benchmark_run.folder])


@pytest.fixture(scope="session")
def audit(tmp_path_factory) -> Path:
    """Names of methods, images, data and errors that try to be more than text."""
    folder = tmp_path_factory.mktemp("audit")
    pictures = folder / 'a "b" <i>c'
    pictures.mkdir()
    for place, image in enumerate(noise()):
        _save(image, pictures / f"{place} <img src=x onerror=alert(1)>.png")
    found = saliometer.audit(
        network(), str(pictures), methods=["gradient", "input_x_gradient", nasty, broken],
        metrics=["average_drop", "insertion(steps=4)", "deletion(steps=4)", "sparseness"], out=folder / "run",
        size=8, mean=0.0, std=1.0,
    )  # fmt: skip
    return written([found.run.folder])


def _save(image: Tensor, path: Path) -> None:
    from torchvision.utils import save_image

    save_image(image, path)


@pytest.fixture(scope="session")
def big(tmp_path_factory) -> Path:
    """20 methods x 25 metrics x 500 images, with 100 pictures of noise, which nothing can compress."""
    return written([big_audit(tmp_path_factory.mktemp("big") / "run", methods=20, metrics=25, images=500).folder])


@pytest.fixture(scope="session", autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)
