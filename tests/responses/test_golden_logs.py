"""Every sample log, alone and together, against what was read of it when it was last looked at by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.responses.golden_logs import GOLDEN, samples, summary

KEPT = json.loads(GOLDEN.read_text("utf-8"))


def test_every_sample_has_a_summary(shared_data: Path) -> None:
    assert set(samples(shared_data)) == set(KEPT)


@pytest.mark.parametrize("name", KEPT)
def test_summary(name: str, shared_data: Path) -> None:
    if "inspect" in name:
        pytest.importorskip("inspect_ai")
    assert summary(shared_data, samples(shared_data)[name]) == KEPT[name]
