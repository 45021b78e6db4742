"""The audit, on models whose rule is known."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tests.first_screens import said
from tests.studies.label_guessers import QUESTIONS, when_unsure
from unslant import InputError, Question
from unslant.auditing import audit_presentations
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit


def test_presentations_of_a_question_cover_what_the_metrics_need() -> None:
    four = audit_presentations(QUESTIONS[2], "auto", tuple("ABCD"))
    assert [p.kind for p in four].count("order") == 24
    assert [p.kind for p in four][24:] == ["labels-reversed", "both-reversed", "labels-shifted"]
    assert four[-1].labels == ("B", "C", "D", "A")
    assert [p.kind for p in audit_presentations(QUESTIONS[0], "auto", tuple("AB"))][2:] == [
        "labels-reversed",
        "both-reversed",
    ]
    six = audit_presentations(QUESTIONS[5], "auto", tuple("ABCDEF"))
    assert [p.kind for p in six].count("order") == 24
    shown = {p.contents for p in six}
    assert {tuple(range(6)), tuple(range(5, -1, -1))} <= shown
    pinned = Question("p", "?", ("x", "y", "All of the above"), frozenset({2}), pinned=(2,))
    assert [p.contents for p in audit_presentations(pinned, "auto", tuple("ABC"))][:2] == [(0, 1, 2), (1, 0, 2)]


def test_preference_for_a_label_is_named_and_measured() -> None:
    result = audit(when_unsure({"A": 6.0}), QUESTIONS)
    assert "When unsure it falls back on A." in said(result)
    assert result.metrics.means["robust_accuracy"].value == pytest.approx(0.5)
    assert result.metrics.preference.takes == ("A",)
    assert result.metrics.means["consistency"].value == pytest.approx(0.5)


def test_preference_for_the_last_position_is_named() -> None:
    result = audit(when_unsure({"last": 6.0}), QUESTIONS)
    assert "When unsure it falls back on the last position." in said(result)


def test_intervals_say_for_which_subjects_they_are() -> None:
    questions = [replace(question, subject=f"s{i % 6}") for i, question in enumerate(QUESTIONS)]
    these = audit(when_unsure({"A": 6.0}), questions)
    others = audit(when_unsure({"A": 6.0}), questions, across_subjects=True)
    assert any("further questions of these 6 subjects" in note for note in these.page().notes)
    assert any("for other subjects" in note for note in others.page().notes)
    assert others.metrics.means["accuracy"].value == these.metrics.means["accuracy"].value
    assert others.metrics.means["accuracy"].method.endswith("over subjects")


def test_a_model_without_preference_gets_none() -> None:
    result = audit(when_unsure({}), QUESTIONS)
    assert result.metrics.preference.named is None
    assert "falls back" not in said(result)
    assert "avoids" not in said(result)


def test_nvr_base_rates_and_corrections_are_read_off_the_same_table() -> None:
    model = when_unsure({"A": 6.0})
    result = audit(model, QUESTIONS)
    asked = len(model.seen)
    assert dict(zip(result.nvr.labels, (e.value for e in result.nvr.accuracy), strict=True))["A"] == pytest.approx(0.5)
    assert [reading.phrase for reading in result.nvr.readings] == ["prefers A when unsure"]
    assert result.base_rates[4].uneven
    assert result.base_rates[4].top == "A"
    assert {c.method for c in result.corrections} == {"vote", "pride", "gray-box"}
    assert len(model.seen) == asked
    # the rotations of every question are among its orders, so all corrections are on the same questions
    assert {c.accuracy.n for c in result.corrections} == {len(QUESTIONS)}


def test_no_prompt_is_scored_twice() -> None:
    model = when_unsure({"A": 6.0})
    audit(model, QUESTIONS)
    assert len(model.seen) == len(set(model.seen))


def test_leaving_a_question_out_changes_no_other() -> None:
    def rows(questions: list[Question]) -> dict[str, list[tuple[int, ...]]]:
        found: dict[str, list[tuple[int, ...]]] = {}
        for row in audit(when_unsure({"A": 6.0}), questions, seed=3).responses.rows():
            found.setdefault(row.question_id, []).append(row.contents)
        return {key: value for key, value in found.items() if not key.startswith("control")}

    whole, part = rows(QUESTIONS), rows(QUESTIONS[7:])
    assert part == {key: value for key, value in whole.items() if key in part}


def test_results_can_be_read_back_without_the_model(tmp_path: Path) -> None:
    result = audit(when_unsure({"A": 6.0}), QUESTIONS, seed=1)
    result.to_parquet(tmp_path / "r.parquet")
    again = AuditResult.from_parquet(tmp_path / "r.parquet")
    assert again.summary() == result.summary()
    assert again.to_dict() == result.to_dict()


def test_json_has_every_number_with_its_n_and_interval(tmp_path: Path) -> None:
    result = audit(when_unsure({"A": 6.0}), QUESTIONS)
    result.to_json(tmp_path / "out.json")
    data = json.loads((tmp_path / "out.json").read_text("utf-8"))

    def estimates(value: object) -> list[dict[str, object]]:
        if isinstance(value, dict):
            own = [value] if "value" in value and "n" in value else []
            return own + [e for item in value.values() for e in estimates(item)]
        return [e for item in value for e in estimates(item)] if isinstance(value, list) else []

    found = estimates(data["metrics"])
    assert len(found) > 40
    for estimate in found:
        assert {"value", "low", "high", "n"} <= set(estimate)
        if isinstance(estimate["value"], float) and isinstance(estimate["low"], float):
            assert estimate["low"] <= estimate["value"] + 1e-9
            assert math.isfinite(estimate["value"])
    assert data["headline"] == result.headline


def test_worked_examples_never_show_the_question_itself() -> None:
    model = when_unsure({"A": 6.0})
    audit(model, QUESTIONS, shots=3)
    for prompt in model.seen:
        stems = [line for line in prompt.text.splitlines() if line.startswith("Question: ")]
        assert len(stems) == len(set(stems)) == (1 if "Select an answer choice" in prompt.text else 4)


def test_worked_examples_are_of_the_subject_where_that_is_asked_for() -> None:
    model = when_unsure({"A": 6.0})
    found = audit(model, QUESTIONS, shots=2, shots_by_subject=True)
    subject_of = {question.stem: question.subject for question in QUESTIONS}
    stems = [
        [line.removeprefix("Question: ") for line in prompt.text.splitlines() if line.startswith("Question: ")]
        for prompt in model.seen
    ]
    assert all(len({subject_of[stem] for stem in shown if stem in subject_of}) <= 1 for shown in stems)
    assert {len(shown) for shown in stems} >= {3}
    assert found.run.settings["shots_by_subject"] is True
    assert "shots_by_subject" not in audit(model, QUESTIONS, shots=2).run.settings
    with pytest.raises(InputError, match=r"17 worked examples of subject 's[012]' wanted"):
        audit(model, QUESTIONS, shots=17, shots_by_subject=True)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("orders", "many", "auto, all, latin, cyclic"),
        ("labels", "Z", "use one of A, a, 1, I, i"),
        ("labels", "W,X", "has 2 labels"),
        ("template", "nosuch", "plain"),
    ],
)
def test_bad_options_say_what_is_allowed(option: str, value: str, words: str) -> None:
    with pytest.raises(InputError, match=words):
        audit(when_unsure({}), QUESTIONS, **{option: value})


@pytest.mark.parametrize(
    ("n", "sentence"),
    [
        (4, "4 questions are too few to detect any difference in accuracy (power 80 %)."),
        (30, "Differences in accuracy under "),
    ],
)
def test_few_questions_are_said_to_be_too_few_rather_than_to_show_differences_above_1(n: int, sentence: str) -> None:
    notes = list(audit("fair", "embedded", limit=n).page().notes)
    assert [note.startswith(sentence) for note in notes if "(power 80 %)" in note] == [True]
