"""Fixtures shared by all test packages."""

from __future__ import annotations

from pathlib import Path

import pytest

SHARED_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder of public question files and recorded answers, kept beside the repository; skips when absent."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no test data at {SHARED_DATA} (question files and recordings are not part of the repository)")
    return SHARED_DATA
