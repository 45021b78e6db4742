"""Fixtures of the model tests."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.models.zoo import ZooFolder, build


@pytest.fixture(scope="session")
def tokenizer_cache(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of built tokenizers, kept between runs (renewed when their code or source changes)."""
    cache = getattr(request.config, "cache", None)  # absent with -p no:cacheprovider
    return cache.mkdir("zoo-tokenizers") if cache else tmp_path_factory.mktemp("zoo-tokenizers")


@pytest.fixture(scope="session")
def zoo_model(tokenizer_cache: Path) -> Iterator[ZooFolder]:
    """``zoo_model(name)`` is the folder of a small model of that name, built once a session on first use.

    The folders are removed at the end.
    """
    with tempfile.TemporaryDirectory(prefix="unslant-zoo-") as root:

        def folder_of(name: str, small: bool = False) -> Path:
            folder = Path(root) / ("small" if small else "whole") / name
            return folder if folder.is_dir() else build(name, folder, tokenizer_cache, small)

        yield folder_of
