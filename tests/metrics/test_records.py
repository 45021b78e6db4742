"""Every number that a study writes has a record, and every record is of a number that a study writes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.generated import metric_tables, with_metric_tables
from tests.reports.results import RESULTS
from unslant.experiment.result import StudyResult
from unslant.metrics import METRICS
from unslant.studies.debias.training_log import TrainingLog

DOCS = Path(__file__).parents[2] / "docs" / "metrics.md"


def leaves(value: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], bool]]:
    """Path of every number and every estimate, without places in lists; whether it is an estimate."""
    if isinstance(value, dict) and {"value", "low", "high", "n"} <= set(value):
        yield path, True
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item, path)
    elif value is None or (isinstance(value, int | float | str) and not isinstance(value, bool)):
        yield path, False


@pytest.fixture(scope="module")
def paths() -> dict[tuple[str, ...], bool]:
    found: dict[tuple[str, ...], bool] = {}
    for make in RESULTS.values():
        result = make()
        if isinstance(result, StudyResult):
            found |= dict(leaves(result.to_dict()))
        elif isinstance(result, TrainingLog):
            found |= dict(leaves(result.epochs[-1].to_dict()))
    return found


def fits(key: str, path: tuple[str, ...]) -> bool:
    """Whether a path has the key's parts in order, the last of them last, or followed by names alone (by subject)."""
    *before, last = key.split(".")
    for at in range(len(path)):
        if path[at] == last:
            rest = iter(path[:at])
            if all(part in rest for part in before):
                return True
    return False


def test_every_estimate_has_a_record(paths: dict[tuple[str, ...], bool]) -> None:
    without = {
        ".".join(path) for path, estimate in paths.items() if estimate and not any(fits(k, path) for k in METRICS)
    }
    assert len(paths) > 500
    assert not without


def test_every_key_is_one_of_json(paths: dict[tuple[str, ...], bool]) -> None:
    having = defaultdict(list)
    for path in paths:
        for part in set(path):
            having[part].append(path)
    assert not [key for key in METRICS if not any(fits(key, path) for path in having[key.split(".")[-1]])]


def test_records_are_complete_and_unlike() -> None:
    for metric in METRICS.values():
        assert metric.name
        assert metric.meaning
        assert not metric.meaning.endswith(".")
        assert "|" not in metric.name + metric.meaning


def test_the_docs_have_the_table_as_it_is() -> None:
    page = DOCS.read_text("utf-8")
    assert metric_tables() in page
    assert with_metric_tables(page) == page
