"""Questions about one passage are answered alike: every study draws passages, whatever it measures."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unslant
from tests.studies.boundary_rows import row
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.pairs import mcnemar, p_of_pairs
from unslant.questions import Question, load_questions
from unslant.responses import Responses, Run
from unslant.studies.instruction_boundary.metrics import boundary_metrics
from unslant.studies.unbiased.probe.result import ScoreTable, load_scores, result_of

SIZE, PASSAGES = 5, 12
QUESTIONS = [
    replace(question, context=f"Passage {i // SIZE}.", subject=f"subject {i * 2 // (SIZE * PASSAGES)}")
    for i, question in enumerate(
        [question for question in load_questions("embedded") if len(question.options) == 4][: SIZE * PASSAGES]
    )
]


def estimates(values: Any, path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(values, dict) and {"value", "method"} <= set(values):
        yield path, values
    for key, value in (
        values.items() if isinstance(values, dict) else enumerate(values if isinstance(values, list) else ())
    ):
        yield from estimates(value, f"{path}.{key}")


@pytest.mark.parametrize(
    "run",
    [
        lambda: unslant.audit("prefers-a", QUESTIONS),
        lambda: unslant.compare(unslant.audit("prefers-a", QUESTIONS), unslant.audit("memorised", QUESTIONS)),
        lambda: unslant.study.base_rate("prefers-a", QUESTIONS),
        lambda: unslant.study.unbiased("prefers-a", QUESTIONS, shots=0),
        lambda: unslant.study.debias("prefers-a", [QUESTIONS], methods=("vote",)),
    ],
    ids=["audit", "compare", "base-rate", "unbiased", "debias"],
)
@pytest.mark.thorough
def test_no_interval_is_over_questions_that_share_passages(run: Any) -> None:
    found = [*estimates(run().to_dict())]
    assert sum("over contexts" in one["method"] for _, one in found) >= 10
    alone = [path for path, one in found if "over questions" in one["method"]]
    assert alone == []


@pytest.mark.parametrize(
    "study", ["base_rate", *(pytest.param(one, marks=pytest.mark.thorough) for one in ("audit", "unbiased", "debias"))]
)
def test_pages_of_fewer_passages_than_an_interval_needs(study: str, tmp_path: Path) -> None:
    """Numbers have no interval there, and base-rate's chart could not be written."""
    few = [replace(question, context=f"Passage {i % 3}.") for i, question in enumerate(QUESTIONS[:12])]
    options: dict[str, Any] = {"debias": {"methods": ("vote",)}, "unbiased": {"shots": 0}}.get(study, {})
    run = unslant.audit if study == "audit" else getattr(unslant.study, study)
    result = run("prefers-a", [few] if study == "debias" else few, **options)
    result.to_html(tmp_path / "report.html")
    assert "fewer than 5 contexts" in str(result.to_dict())
    page = (tmp_path / "report.html").read_text("utf-8")
    assert ">nan<" not in page


def test_replies_to_instructions_are_drawn_by_passage() -> None:
    """Within a passage all is right or all wrong, so that sixty questions tell as much as twelve."""
    rng = np.random.default_rng(1)
    right = {setting: rng.random(PASSAGES) < share for setting, share in (("vanilla", 0.7), ("hint", 0.4))}
    rows = [
        row(i, {0} if i % 2 else {0, 1}, ({0} if i % 2 else {0, 1}) if hits[i // SIZE] else {3}, setting=setting)
        for setting, hits in right.items()
        for i in range(SIZE * PASSAGES)
    ]
    questions = tuple(
        Question(f"c{i}", "Which?", ("w", "x", "y", "z"), frozenset({0}), context=f"Passage {i // SIZE}.")
        for i in range(SIZE * PASSAGES)
    )
    plain = boundary_metrics(Responses.from_rows(rows))
    passages = boundary_metrics(replace(Responses.from_rows(rows), questions=questions))
    for before, after in zip(plain.settings, passages.settings, strict=True):
        accuracies = [one.numbers["settings.accuracy"] for one in (before, after)]
        assert accuracies[1].high - accuracies[1].low > 1.6 * (accuracies[0].high - accuracies[0].low)
    (before,), (after,) = plain.changes, passages.changes
    assert after.p_value > 5 * before.p_value
    assert after.difference.high - after.difference.low > 1.6 * (before.difference.high - before.difference.low)


def test_the_probe_keeps_and_uses_passages(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    q = SIZE * PASSAGES
    judged = np.repeat(rng.integers(1, 11, (2, PASSAGES)), SIZE, axis=1).astype(float)
    ids = tuple(f"q{i}" for i in range(q))
    nothing = np.full((2, q), np.nan)
    table = ScoreTable(
        ("a", "b"), ids, ("",) * q, judged, np.stack([judged, judged]), nothing,
        tuple(f"Passage {i // SIZE}." for i in range(q)),
    )  # fmt: skip
    table.to_parquet(tmp_path / "scores.parquet")
    read = load_scores(tmp_path / "scores.parquet")
    assert read.contexts == table.contexts
    widths = []
    for one in (read, replace(read, contexts=())):
        rates = result_of(one, {}, [0.0, 1.0], 0, Run(study="probe")).models["a"].rates[1.0]
        widths.append(rates["cer"].high - rates["cer"].low)
    assert widths[0] > 1.6 * widths[1]


def test_a_difference_within_passages_is_tested_over_passages() -> None:
    a = np.repeat([1.0, 1, 1, 1, 1, 1, 0, 0], SIZE)
    contexts = [f"Passage {i // SIZE}" for i in range(len(a))]
    assert mcnemar(30, 10) < 0.01
    assert p_of_pairs(Bootstrap(len(a)), a, 1 - a) == mcnemar(30, 10)
    assert p_of_pairs(Bootstrap(len(a), contexts=contexts), a, 1 - a) > 0.1


def test_the_test_over_passages_holds_its_level() -> None:
    """Two models are right on the same share of passages, each passage as a whole for one of them."""
    rng = np.random.default_rng(3)
    contexts = [f"Passage {i // SIZE}" for i in range(SIZE * PASSAGES)]
    p_values = []
    for _ in range(400):
        a, b = np.repeat(rng.random((2, PASSAGES)) < 0.6, SIZE, axis=1).astype(float)
        p_values.append(p_of_pairs(Bootstrap(len(a), contexts=contexts), a, b))
    assert np.mean(np.asarray(p_values) < 0.05) <= 0.075
    assert np.mean(np.asarray(p_values) < 0.05) >= 0.005


def test_one_long_passage_does_not_make_every_other_as_wide() -> None:
    n, length = 200, 200_000
    rows = [row(i, {0}, {i % 4}, setting=setting) for setting in ("vanilla", "hint") for i in range(n)]
    texts = ["x" * length, *(f"Passage {i // SIZE}." for i in range(1, n))]
    questions = tuple(
        Question(f"c{i}", "Which?", ("w", "x", "y", "z"), frozenset({0}), context=text) for i, text in enumerate(texts)
    )
    responses = replace(Responses.from_rows(rows), questions=questions)
    tracemalloc.start()
    boundary_metrics(responses)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * length * n / 10, "an array holds every passage at the width of the longest"
