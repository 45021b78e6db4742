"""A sheet goes out, comes back filled in, and is read; what cannot be read is named."""

from __future__ import annotations

import csv
import re

import pytest

from training.world import question_sets
from unslant.errors import InputError
from unslant.questions import QuestionSet
from unslant.studies.unbiased.annotation import read_sheets, sheet, write_sheet


@pytest.fixture(scope="module")
def questions():
    return QuestionSet.of(question_sets()[0][:60], "world")


def fill(source, target, answer):
    with source.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    for i, row in enumerate(rows):
        row["right"] = answer(i)
    with target.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)


def test_a_sheet_goes_out_and_comes_back(questions, tmp_path):
    rows = sheet(questions, 40)
    assert len(rows) == len({row["item"] for row in rows}) == 40
    assert all(row["expected"] and row["right"] == "" and "Question: " in row["shown"] for row in rows)
    assert len({row["interventions"] for row in rows}) > 5
    write_sheet(rows, tmp_path / "sheet.csv")
    fill(tmp_path / "sheet.csv", tmp_path / "ann.csv", lambda i: "yes")
    fill(tmp_path / "sheet.csv", tmp_path / "bob.csv", lambda i: "No" if i == 3 else "" if i > 29 else "YES")
    found = read_sheets([tmp_path / "ann.csv", tmp_path / "bob.csv"])
    assert found.by_annotator["ann"].value == 1.0
    assert (found.by_annotator["bob"].n, found.agreement.n) == (30, 30)
    assert found.by_annotator["bob"].value == pytest.approx(29 / 30)
    assert found.disputed == (rows[3]["item"],)
    assert rows[3]["item"] in found.summary(details=True)
    assert re.fullmatch(r"People confirm 0\.99 \(.*\) of the expected answers to 40 items", found.headline)
    assert found.to_dict()["confirmed"]["n"] == 40


def test_sheets_depend_on_the_seed_alone(questions):
    assert sheet(questions, 10) == sheet(questions, 10)
    assert sheet(questions, 10) != sheet(questions, 10, seed=1)
    assert [row["item"] for row in sheet(questions, 10)] == [
        row["item"] for row in sheet(questions, 20) if row in sheet(questions, 10)
    ]


def test_a_cell_is_never_a_formula(tmp_path):
    write_sheet(
        [dict.fromkeys(("item", "question_id", "interventions", "shown", "expected", "right"), "=1+1")],
        tmp_path / "s.csv",
    )
    assert "'=1+1" in (tmp_path / "s.csv").read_text("utf-8-sig")


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("item,right\na,yes\nb,perhaps\n", "line 3.*must be yes or no, not 'perhaps'"),
        ("item,right\na,yes\na,no\n", "line 3.*given twice"),
        ("item,right\na,\n", "no verdicts"),
        ("question,right\na,yes\n", 'field "item": missing; needed are item, right'),
    ],
)
def test_bad_sheets_are_named(tmp_path, content, words):
    (tmp_path / "sheet.csv").write_text(content)
    with pytest.raises(InputError, match=words):
        read_sheets([tmp_path / "sheet.csv"])


def test_one_sheet_given_twice_is_not_two_people(tmp_path):
    (tmp_path / "ann.csv").write_text("item,right\na,yes\nb,no\n")
    with pytest.raises(InputError, match="is given twice; give one sheet"):
        read_sheets([tmp_path / "ann.csv", tmp_path / "." / "x" / ".." / "ann.csv"])


def test_a_sheet_without_its_other_columns_does_not_take_them_from_the_others(tmp_path):
    (tmp_path / "ann.csv").write_text("item,question_id,interventions,right\na,q,DH+AR,yes\nb,q,none,no\n")
    (tmp_path / "bob.csv").write_text("item,right\na,yes\nb,yes\n")
    for names in (("ann", "bob"), ("bob", "ann")):
        shares = read_sheets([tmp_path / f"{name}.csv" for name in names])
        assert {name: share.value for name, share in shares.by_intervention.items()} == {"DH+AR": 1.0, "none": 0.5}
        assert "contexts" in shares.confirmed.note, "both items are of one question"
    assert not read_sheets(tmp_path / "bob.csv").by_intervention, "which ones were applied is not known"
