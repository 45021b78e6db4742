"""Every number that a study writes has a record, and every record is of a number that a study writes."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.generated import metric_tables, with_metric_tables
from tests.reports.results import RESULTS
from unslant.experiment.result import StudyResult
from unslant.metrics import METRICS
from unslant.metrics.catalogue import metric_at
from unslant.reports.export import metrics_frame
from unslant.studies import STUDIES, study_named
from unslant.studies.debias.training import TrainingLog

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


def test_every_metric_of_the_room_is_known_once_it_is_imported() -> None:
    """A study may show any of them; none may depend on what else happens to have been imported."""
    code = (
        "import pkgutil, sys, unslant.metrics as m\n"
        "known = set(m.METRICS)\n"
        "for one in pkgutil.walk_packages(m.__path__, 'unslant.metrics.'): __import__(one.name)\n"
        "print(sorted(set(m.METRICS) - known))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


@pytest.mark.thorough
@pytest.mark.parametrize("name", STUDIES)
def test_a_study_knows_the_metrics_that_it_shows(name: str) -> None:
    """In a process that has imported nothing else: as the command does."""
    module = STUDIES[name].partition(":")[0]
    folder = Path(importlib.import_module(module).__file__ or "").parent
    keys = {
        key
        for path in folder.glob("*.py")
        for key in re.findall(r'(?:Column\.of\(|METRICS\[)"([\w.]+)"', path.read_text("utf-8"))
    }
    beside = [f"{module.rpartition('.')[0]}.{path.stem}" for path in folder.glob("*.py") if path.stem != "__init__"]
    code = (
        f"import importlib\nfor one in {beside}: importlib.import_module(one)\n"
        f"from unslant.metrics import METRICS\nprint(sorted(set({sorted(keys)!r}) - set(METRICS)))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (ran.returncode, ran.stdout) == (0, "[]\n"), ran.stderr


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ("metrics.means.accuracy", "accuracy"),
        ("corrections.vote.accuracy", "corrections.accuracy"),
        ("shortcuts.longest option.excess", "shortcuts.excess"),
        ("systems.careful.published", "systems.published"),  # a metric of base rates is called published, too
        ("average.vote.change.pbm.difference", "change.difference"),
        ("settings.vanilla / choice.accuracy", "settings.accuracy"),
        ("metrics.alone.BT.vanilla", "alone.vanilla"),
        ("recall.A", "recall"),
        ("robustness.vanilla", "robustness"),  # a metric of the unbiased evaluator is called vanilla, too
        ("models.words.robustness.vanilla", "robustness"),
        ("average.vote.pbm.difference", "difference"),
        ("published.cyclic.published", "published.published"),
        ("pilot.published", None),
    ],
)
def test_the_object_around_a_number_says_which_metric_it_is(path: str, key: str | None) -> None:
    """Studies use the same words, and a name must not depend on which of them are imported."""
    for name in STUDIES:
        study_named(name)
    assert metric_at(tuple(path.split("."))) is (METRICS[key] if key else None)


def test_what_a_log_reports_is_not_a_metric_of_another_study() -> None:
    for name in STUDIES:
        study_named(name)
    rows = metrics_frame({"logged": {"reported": [{"name": "acc", "ours": 2, "n": 3}]}, "metrics": {"pbm": 0.5}})
    assert list(rows["key"]) == ["metrics.pbm"]
