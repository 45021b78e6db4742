"""What was understood of a question file, and its oddities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import unslant
from tests.command_line import unslant as command_line
from unslant.questions import Question
from unslant.studies.question_check import gold_positions


def rows() -> list[dict[str, Any]]:
    """Forty questions whose right option stands first and is the longest, then one of each oddity."""
    plain = [
        {"id": f"q{i}", "question": f"What is {i}?", "options": ["the longest text", "short", f"{i}"], "answer": "A"}
        | {"topic": "sums", "note": f"note {i}"}
        for i in range(40)
    ]
    odd: list[dict[str, Any]] = [
        {"id": "same", "options": ["x", "x", "y"]},
        {"id": "empty", "options": ["x", "", "y"]},
        {"id": "none", "answer": []},
        {"id": "two", "answer": ["A", "B"]},
        {"id": "pinned", "options": ["x", "y", "none of the above"]},
        {"id": "again", "question": "What is  0?", "options": ["0", "the longest text", "short"], "answer": "B"},
        {"id": "denied", "question": "What is 1?", "options": ["the longest text", "short", "1"], "answer": "B"},
        {"id": "token", "question": "What is <|im_end|>?"},
        {"id": "markup", "options": ["x &amp; y", "z", "&#39;w&#39;"]},
        {"id": "encoding", "question": "Whatâ€™s a cafÃ©?"},
        {"id": "fine", "question": "AT&T and R&D: qu'est-ce que la naïveté? NÃO, Âge?"},
        {"id": "spreadsheet", "options": ["20-Oct", "40-50", "70-120"]},
        {"id": "dates", "options": ["2026-01-02", "2025-04-03", "1919-06-28"]},
        {"id": "numbered", "options": ["A) x", "B) y", "C) z"]},
        {"id": "q0"},
        {"id": "unanswered", "answer": None},
        {"id": "one", "options": ["x"]},
    ]
    return plain + [plain[0] | {"question": f"What is {row['id']}?"} | row for row in odd]


def test_every_oddity_is_counted() -> None:
    found = unslant.check_questions(rows())
    counts = {oddity.name: (oddity.count, oddity.first) for oddity in found.oddities}
    assert counts == {
        "left out: answer missing": (1, 'list, item 56, field "answer": is missing; give the right option, or [] when '
                                        "none is right"),
        "left out: fewer than 2 options": (1, 'list, item 57, field "options": 1 given, 2 to 100 are allowed'),
        "left out: id used twice": (1, counts["left out: id used twice"][1]),
        "numbering in option texts": (1, ""),
        "identical options": (1, "same"),
        "an empty option": (1, "empty"),
        "no right option": (1, "none"),
        "several right options": (1, "two"),
        "pinned options": (1, "pinned"),
        "the wording of an earlier question": (2, "again"),
        "another right answer under the same wording": (2, "q1"),
        "special tokens spelled": (1, "token"),
        "HTML entities or tags": (1, "markup"),
        "damaged characters": (1, "encoding"),
        "a date among other options": (1, "spreadsheet"),
    }  # fmt: skip
    assert found.longest.value > 0.8
    assert found.longest_excess.low > 0.4
    assert "more often than by chance" in found.summary(width=200)
    assert found.positions.counts[0] > 40
    assert found.positions.p < 1e-6


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"question": "What is<br>this?"}, "HTML entities or tags"),
        ({"options": ["<b>x</b>", "y"]}, "HTML entities or tags"),
        ({"options": ["img/cat.png", "img/dog.png"]}, "names of pictures"),
        ({"question": "What is it? ![](fig/1.JPG)"}, "names of pictures"),
        ({"question": 'What is it? <img src="paste-1">'}, "names of pictures"),
    ],
)
def test_what_a_page_shows_and_a_text_does_not_is_counted(changed: dict[str, Any], name: str) -> None:
    plain = {"question": "Is 3 < 4, and what is b > 3 in a.py or in webp?", "options": ["x", "y"], "answer": 0}
    assert name not in {oddity.name for oddity in unslant.check_questions([plain]).oddities}
    assert name in {oddity.name for oddity in unslant.check_questions([plain | changed]).oddities}


def test_every_column_is_shown_with_three_values() -> None:
    columns = {use.column: use for use in unslant.check_questions(rows()).columns}
    fields = {name: use.field for name, use in columns.items()}
    assert fields == {"id": "id", "question": "question", "options": "options", "answer": "answer"} | {
        "topic": "subject",
        "note": "",
    }
    assert columns["note"].examples == ("note 0", "note 1", "note 2")
    assert columns["options"].examples[0] == "the longest text | short | 0"
    other = [{"frage": "Was?", "a": "x", "b": "y", "gut": "y"}] * 2
    one_each = unslant.check_questions(other, fields={"question": "frage", "answer": "gut"})
    assert {use.column: use.field for use in one_each.columns} == {
        "frage": "question",
        "a": "options",
        "b": "options",
        "gut": "answer",
    }


def test_a_column_may_hold_two_fields() -> None:
    (first, _) = unslant.check_questions([{"question": "Was? A. x B. y C. z", "answer": "B"}] * 2).columns
    assert (first.column, first.field) == ("question", "question, options")


def test_nothing_odd_in_level_questions() -> None:
    level = [
        {"question": f"{i}?", "options": [f"{i}a", f"{i}b", f"{i}c", f"{i}d"], "answer": "ABCD"[i % 4]}
        for i in range(80)
    ]
    found = unslant.check_questions(level)
    assert found.headline == "No irregularities found"
    assert found.positions.p == 1.0
    assert not found.longest.defined
    ready = unslant.check_questions(unslant.load_questions(level))
    assert [use.field for use in ready.columns][:4] == ["id", "question", "options", "answer"]


def test_positions_are_tested_by_number_of_options() -> None:
    def asked(n: int, right: int, count: int) -> list[Question]:
        return [Question(f"{n}/{right}/{i}", "?", tuple(map(str, range(n))), frozenset({right})) for i in range(count)]

    found = gold_positions([*asked(2, 0, 10), *asked(2, 1, 10), *asked(4, 0, 20), *asked(4, 3, 20), *asked(3, 0, 6)])
    assert found.counts == (36, 10, 0, 20)
    assert found.expected == (22.0, 22.0, 12.0, 10.0)
    assert (found.tested, found.degrees, found.statistic) == (60, 4, 40.0)  # of four options: 2 * 10^2 / 10 + 2 * 10
    assert gold_positions(asked(4, 0, 3)).p != gold_positions(asked(4, 0, 3)).p  # too few: not a number
    assert gold_positions([]).counts == ()


def test_the_command_shows_writes_and_ends_with_0(tmp_path: Path) -> None:
    path, out = tmp_path / "set.jsonl", tmp_path / "check.json"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    ran = command_line("questions", "check", path, "--json", out, "--html", tmp_path / "check.html")
    assert (ran.code, ran.err) == (0, "")
    for words in ("54 questions understood of", "not used", "note 0", "pinned options", "p < 0.001"):
        assert words in ran.out
    written = json.loads(out.read_text())
    assert written["study"] == "questions check"
    assert written["columns"][0] == {"column": "id", "field": "id", "examples": ["q0", "q1", "q2"]}
    assert {"name": "pinned options", "count": 1, "first": "pinned"}.items() <= {
        key: value
        for oddity in written["oddities"]
        if oddity["name"] == "pinned options"
        for key, value in oddity.items()
    }.items()
    assert written["questions_digest"] == unslant.load_questions(path, skip_bad=True).digest
    assert written["loading"]["skipped"]["id used twice"] == 1
    assert "What was understood" in (tmp_path / "check.html").read_text()


@pytest.mark.parametrize("name", ["qasc_dev.jsonl", "medmcqa_dev_sample.jsonl", "truthfulqa_mc1.jsonl"])
def test_public_files(shared_data: Path, name: str) -> None:
    found = unslant.check_questions(shared_data / name)
    became = {use.field for use in found.columns}
    assert ("context" in became) == (name == "qasc_dev.jsonl")
    if name == "truthfulqa_mc1.jsonl":  # the right one is first in the file
        assert found.positions.p < 1e-6
    assert found.summary()


@pytest.mark.parametrize(("passages", "shared"), [(2, 12), (1, 0), (12, 0)])
def test_passages_written_into_the_questions_are_noticed(passages: int, shared: int) -> None:
    questions = [
        {
            "question": f"{'Once more, ' * 16}the people of town {i % passages} built a mill. What of sentence {i}?",
            "options": ["yes", "no", "maybe"],
            "answer": i % 3,
        }
        for i in range(12)
    ]
    counts = {one.name: one.count for one in unslant.check_questions(questions).oddities}
    assert counts.get("a long beginning that another has", 0) == shared
    (note,) = [one for one in unslant.audit("fair", questions).page().notes if "the same 200 characters" in one] or [""]
    assert note.startswith("12 of 12 questions begin") if shared else not note
    for one in questions:
        one["context"], one["question"] = one["question"].split("What")[0], "What?"
    assert "a long beginning that another has" not in {o.name for o in unslant.check_questions(questions).oddities}
