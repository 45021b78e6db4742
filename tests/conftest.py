"""Fixtures shared by all test packages."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # a run in the background, whose children could not be stopped
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("unslant", deadline=None, max_examples=25, derandomize=True)  # no test asserts a time
settings.register_profile("thorough", deadline=None, max_examples=200)
settings.load_profile("unslant")


def pytest_collection() -> None:
    """Collect no garbage while all tests are imported: nearly everything that they import stays."""
    gc.disable()


def pytest_collection_finish() -> None:
    """Collect garbage from now on, without looking at what was imported."""
    gc.freeze()
    gc.enable()


SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of public question files and recorded answers, kept beside the repository; skips when absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no test data at {SHARED_DATA} (question files and recordings are not part of the repository)")
    return SHARED_DATA


REAL_MODEL = Path(__file__).resolve().parents[1] / ".real" / "SmolLM2-135M-Instruct.Q4_1.gguf"


@pytest.fixture(scope="session")
def real_model() -> str:
    """A real model as a GGUF file; skips where it was not fetched."""
    path = Path(os.environ.get("UNSLANT_REAL_MODEL", REAL_MODEL))
    if not path.is_file():
        pytest.skip(f"no real model at {path}: make test-real fetches it (UNSLANT_REAL_MODEL names another place)")
    return str(path)


@pytest.fixture(scope="session", autouse=True)
def shared_results(tmp_path_factory: pytest.TempPathFactory) -> None:
    """With several workers, results that many tests look at are made by one of them."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        os.environ["UNSLANT_TEST_SHARED"] = str(tmp_path_factory.getbasetemp().parent)


@pytest.fixture(autouse=True)
def unslant_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own for what unslant keeps, so that the user's real one is never touched."""
    home = tmp_path_factory.mktemp("unslant-home")
    monkeypatch.setenv("UNSLANT_HOME", str(home))
    return home
