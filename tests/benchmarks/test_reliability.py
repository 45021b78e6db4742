"""The attack itself: a few damaged files for every reader, in this process; the benchmark tries thousands."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.reliability import Options, Row, numbers
from benchmarks.reliability.__main__ import main, write
from benchmarks.reliability.fuzz import Reader, attack, one
from benchmarks.reliability.readers import READERS
from unslant.models.stored import StoredModel


@pytest.mark.thorough
@pytest.mark.parametrize("name", READERS)
def test_damaged_files_are_read_or_refused(tmp_path: Path, name: str):
    outcomes = [one(READERS[name], seed=20, case=case, folder=tmp_path) for case in range(25)]
    assert [where for outcome, where in outcomes if outcome == "failed"] == []
    assert any(outcome == "refused" for outcome, _ in outcomes)


def test_a_foreign_exception_and_a_message_without_place_are_failures(tmp_path: Path):
    def fails(path: Path) -> None:
        raise KeyError(path.name)

    reader = Reader("fails", lambda rng: ("x.jsonl", b"{}"), fails)
    assert one(reader, 0, 0, tmp_path) == ("failed", "KeyError at nowhere: \"'x.jsonl'\"")


def test_every_case_is_drawn_from_seed_and_number():
    import random

    case = READERS["questions jsonl"].case
    assert case(random.Random("1/a")) == case(random.Random("1/a"))


@pytest.mark.thorough
def test_the_attack_counts_what_it_tried():
    row = attack("readers", READERS["rankings"], Options(cases=3, seed=1))
    assert (row.attempts, row.failures, row.examples) == (3, 0, [])


def test_the_table_stands_between_its_marks(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- reliability: begin -->\nold\n<!-- reliability: end -->\nafter\n")
    write(page, [Row("readers", "x", 1000, 2, "note")], "About.")
    text = page.read_text()
    assert "| readers | x | 1,000 | 2 | note |" in text
    assert "old" not in text
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    with pytest.raises(SystemExit):
        main(["--cases", "many"])


QUICK = ("stored scores damaged", "another model at a served address", "no log-probabilities from a server")


@pytest.mark.parametrize("name", [*QUICK, "labels that begin one another", "model changed in memory"])
def test_no_number_is_wrong_in_silence(name: str):
    (row,) = numbers.rows(Options(cases=100, seed=7, only=(f"numbers/{name}",)))
    assert row.attempts >= 1
    assert row.examples == []


def test_a_store_that_did_not_look_would_be_found_out(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(StoredModel, "_still_right", lambda *_: True)
    (row,) = numbers.rows(Options(cases=1000, seed=7, only=("numbers/another model at a served address",)))
    assert 0 < row.failures < row.attempts
    assert "scores of the model that was there before" in row.examples[0]
