"""Fixtures that several tests share; models and samples are made once and never changed."""

import os

import pytest
import torch
from hypothesis import settings

from saliometer.engine import shipped
from saliometer.tasks.textbox import textbox
from saliometer.types import Batch, Model, Samples
from toys import model_of, noise_batch, small_cnn

settings.register_profile("saliometer", deadline=None, database=None, derandomize=True, max_examples=50)
settings.load_profile("saliometer")
os.environ["OMP_NUM_THREADS"] = "1"  # of processes that tests start
torch.set_num_threads(1)  # small tensors: on a busy machine a second thread costs up to twenty times what it gives
if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"  # read when Triton is imported: our kernels run without a GPU


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--pictures", default="", help="Keep the docs' pictures of the report in this folder.")
    parser.addoption("--pictures-of", default="", help="The run whose report they show.")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless `-m` names them."""
    if "slow" not in config.getoption("markexpr"):
        for item in items:
            if item.get_closest_marker("slow"):
                item.add_marker(pytest.mark.skip(reason="slow: run with -m slow"))


@pytest.fixture(autouse=True)
def _the_same_weights_whatever_ran_before() -> None:
    torch.manual_seed(0)


@pytest.fixture
def toy_model() -> Model:
    return model_of(small_cnn())


@pytest.fixture
def toy_batch() -> Batch:
    return noise_batch()


@pytest.fixture(scope="session")
def simple_model() -> Model:
    """A shipped network with three convolutions."""
    return shipped.load("simple-fr")


@pytest.fixture(scope="session")
def complex_model() -> Model:
    """A shipped network with four convolutions."""
    return shipped.load("complex-cr2")


@pytest.fixture(scope="session")
def simple_samples() -> Samples:
    """One image of each of the twelve buckets."""
    return textbox("simple-fr", count=12)


@pytest.fixture(scope="session")
def complex_samples() -> Samples:
    """One image of each of the ten buckets."""
    return textbox("complex-cr2", count=10)


@pytest.fixture
def rng() -> torch.Generator:
    return torch.Generator().manual_seed(0)
