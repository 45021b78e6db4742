"""Whatever happens to the file, what comes out of it is what was put in, or an error that says how to go on."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.fakes import RuleModel
from unslant.errors import InputError, ModelError
from unslant.models.base import Scored
from unslant.models.stored import StoredModel
from unslant.prompts import Prompt
from unslant.store import Kept, Store, StoreError
from unslant.store.repair import Repaired, repair

PROMPTS = [Prompt(f"Question: {i}?\nA. x\nB. y\nAnswer:", (" A", " B"), group=str(i)) for i in range(30)]


def rule(stem: str, labels: list[str], options: list[str]) -> list[float]:
    return [1.0, 2.0 + int(stem.rstrip("?"))]


TRUTH = [scored.logprobs for scored in RuleModel(rule).score(PROMPTS)]


def fill(path: Path, folder: Path) -> str:
    """A store with one finished run."""
    with Store(path) as store:
        run = store.runs.start(["audit", "m", "--seed", "0"], folder, "m")
        store.runs.note(run, {"questions": "some", "questions_digest": "abc"})
        list(StoredModel(RuleModel(rule), store, run).score(PROMPTS))
        store.runs.keep_responses(run, b"PAR1 the responses PAR1")
        store.runs.end(run, "done")
        return run


def recall(path: Path) -> tuple[list[Scored], RuleModel]:
    model = RuleModel(rule)
    with Store(path) as store:
        return sorted(StoredModel(model, store).score(PROMPTS), key=lambda scored: scored.index), model


def assert_true(found: Sequence[Scored]) -> None:
    assert [scored.index for scored in found] == list(range(len(PROMPTS)))
    for scored, truth in zip(found, TRUTH, strict=True):
        assert scored.logprobs is not None
        assert truth is not None
        assert (scored.logprobs == truth).all()


@pytest.fixture
def filled(tmp_path: Path) -> tuple[Path, str]:
    path = tmp_path / "s.sqlite3"
    return path, fill(path, tmp_path)


def execute(path: Path, statement: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        assert connection.execute(statement, values).rowcount > 0


def test_a_damaged_score_is_named_dropped_and_scored_again_alone(filled: tuple[Path, str]) -> None:
    path, run = filled
    blobs = "(SELECT logprobs FROM scores WHERE position = 3)"
    execute(path, f"UPDATE scores SET logprobs = {blobs} WHERE position IN (7, 8)")
    execute(path, "UPDATE scores SET prompt = (SELECT prompt FROM scores WHERE position = 4) WHERE position = 9")
    with pytest.raises(StoreError, match=rf"3 of 30 stored scores are damaged.*unslant runs repair --store {path}"):
        recall(path)
    found = repair(path)
    assert (found.scores, found.calls, found.runs) == (3, 0, (run,))
    with Store(path) as store:
        assert store.runs.get(run).done == 27
    again, model = recall(path)
    assert_true(again)
    assert [prompt.group for prompt in model.seen] == ["7", "8", "9"]
    assert repair(path) == Repaired()


def test_a_damaged_score_that_another_call_would_take_over(filled: tuple[Path, str]) -> None:
    path, _ = filled
    execute(path, "UPDATE scores SET logprobs = zeroblob(16) WHERE position = 7")
    with (
        Store(path) as store,
        pytest.raises(StoreError, match=r"one of the stored scores is damaged.*runs repair"),
    ):
        list(StoredModel(RuleModel(rule), store).score(PROMPTS[:10]))


@pytest.mark.parametrize("column", ["identity", "total", "done", "planned", "cost", "key"])
def test_a_damaged_record_of_a_call(filled: tuple[Path, str], column: str) -> None:
    path, run = filled
    execute(path, f"UPDATE passes SET {column} = CASE '{column}' WHEN 'key' THEN zeroblob(16) ELSE '7' END")
    with Store(path) as store:
        assert store.runs.get(run).status == "damaged"
        if column == "key":
            with pytest.raises(InputError):
                store.runs.responses(store.runs.get(run))
    if column != "key":  # not found under another key, so begun again
        with pytest.raises(StoreError, match=r"the record of a call is damaged.*runs repair"):
            recall(path)
    assert repair(path).calls == 1
    with Store(path) as store:
        assert store.runs.get(run).status == "done"
    found, model = recall(path)
    assert_true(found)
    assert model.seen == []  # the scores were whole


def test_a_run_whose_record_is_damaged_is_started_anew(filled: tuple[Path, str]) -> None:
    path, run = filled
    execute(path, f"UPDATE runs SET questions = 'others' WHERE id = '{run}'")
    with Store(path) as store:
        assert store.runs.get(run).status == "damaged"
        assert store.runs.start(["audit", "m", "--seed", "0"], path.parent, "m") == run
        again = store.runs.get(run)
        assert (again.status, again.questions, again.total) == ("running", "", 0)
        with pytest.raises(InputError, match="has no responses yet"):
            store.runs.responses(again)
    assert not repair(path).damage


def test_a_damaged_note_of_what_a_run_asked_is_not_vouched_for(filled: tuple[Path, str]) -> None:
    """Its checksum was renewed, and the run then counted, or deleted, what another one had asked."""
    path, run = filled
    execute(path, "UPDATE run_passes SET pass = pass + 1")
    with Store(path) as store:
        store.runs.start(["audit", "m", "--seed", "0"], path.parent, "m")
        assert store.runs.remove(store.runs.get(run)) == 0
        assert recall(path)[1].cost.prompts == 0


def test_scores_of_a_call_whose_record_is_damaged_are_not_dropped(filled: tuple[Path, str]) -> None:
    """The record got a new checksum, which hid the damage."""
    path, _ = filled
    with Store(path) as store:
        (key,) = store._database.connection.execute("SELECT prompt FROM scores LIMIT 1").fetchone()
    execute(path, "UPDATE passes SET total = total + 1")
    with Store(path) as store:
        with pytest.raises(StoreError, match="the record of a call is damaged"):
            store.drop([key])
        with pytest.raises(StoreError, match="the record of a call is damaged"):
            store.forget(StoredModel(RuleModel(rule), store).info.identity)
        assert store.latest({}) is None  # nor does it say which models were asked
    assert repair(path).damage


def test_a_damaged_state_costs_only_time(tmp_path: Path) -> None:
    with Store(tmp_path / "s.sqlite3") as store:
        one = store.open_pass(Kept, {"model": "m"}, [bytes([1]), bytes([2])])
        one.write([], 0, {}, {"tree": (1, b"intact")})
        assert one.state("tree") == b"intact"
        execute(store.path, "UPDATE states SET state = CAST('intakt' AS BLOB)")
        assert one.state("tree") == b""


def test_damaged_responses_are_made_again_from_the_scores(filled: tuple[Path, str]) -> None:
    path, run = filled
    execute(path, "UPDATE responses SET parquet = CAST('PAR1 the r3sponses PAR1' AS BLOB)")
    with Store(path) as store, pytest.raises(StoreError, match=f"damaged.*unslant runs resume {run}"):
        store.runs.responses(store.runs.get(run))


def test_a_damaged_command_is_not_run_again(filled: tuple[Path, str]) -> None:
    path, run = filled
    execute(path, """UPDATE runs SET command = '["audit", "m", "--seed", "1"]'""")
    with Store(path) as store:
        found = store.runs.get(run)
    assert (found.status, found.command, found.message) == ("damaged", (), "unslant runs repair")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e-5])
def test_what_is_no_log_probability_is_not_stored(tmp_path: Path, value: float) -> None:
    class Wrong(RuleModel):
        def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
            for scored in super().score(prompts):
                yield scored if scored.index != 2 else Scored(2, np.array([-1.0, value]))

    with Store(tmp_path / "s.sqlite3") as store:
        found = {scored.index: scored for scored in StoredModel(Wrong(rule), store).score(PROMPTS)}
        assert found[2].logprobs is None
        assert "not log-probabilities" in found[2].error
        repaired = StoredModel(model := RuleModel(rule), store)
        assert_true(sorted(repaired.score(PROMPTS), key=lambda scored: scored.index))
        assert [prompt.group for prompt in model.seen] == ["2"]
        found_pass = store.open_pass(Kept, {"model": "m"}, [b"0" * 16])
        with pytest.raises(ModelError, match="not log-probabilities, so not stored"):
            found_pass.write([(0, Kept(np.array([value])))], 1, {}, {})
        assert found_pass.stored() == {}


class TestResponsesBelongToWhatTheyWereMadeOf:
    """A run's responses are given out for the model and the questions they were made of, and for no other."""

    def start(self, store: Store, folder: Path, model: RuleModel, digest: str = "abc", upto: int = 30) -> str:
        run = store.runs.start(["audit", "m", "--seed", "0"], folder, "m")
        store.runs.note(run, {"questions": "some", "questions_digest": digest})
        list(StoredModel(model, store, run).score(PROMPTS[:upto]))
        return run

    def test_not_after_the_model_was_changed_and_the_run_killed(self, filled: tuple[Path, str], tmp_path: Path) -> None:
        path, run = filled
        other = RuleModel(rule, name="other weights")
        with Store(path) as store:
            assert store.runs.responses(store.runs.get(run)) == b"PAR1 the responses PAR1"
            assert self.start(store, tmp_path, other) == run
            with pytest.raises(InputError, match=f"of another model or other questions.*unslant runs resume {run}"):
                store.runs.responses(store.runs.get(run))
            store.runs.keep_responses(run, b"PAR1 new PAR1")
            assert store.runs.responses(store.runs.get(run)) == b"PAR1 new PAR1"

    def test_not_after_the_questions_were_changed(self, filled: tuple[Path, str], tmp_path: Path) -> None:
        path, run = filled
        with Store(path) as store:
            self.start(store, tmp_path, RuleModel(rule), digest="other answers")
            with pytest.raises(InputError, match="of another model or other questions"):
                store.runs.responses(store.runs.get(run))

    def test_not_before_it_has_asked_as_much_again(self, filled: tuple[Path, str], tmp_path: Path) -> None:
        path, run = filled
        with Store(path) as store:
            store.runs.start(["audit", "m", "--seed", "0"], tmp_path, "m")
            with pytest.raises(InputError, match="was started again"):
                store.runs.responses(store.runs.get(run))
            self.start(store, tmp_path, RuleModel(rule))
            assert store.runs.responses(store.runs.get(run)) == b"PAR1 the responses PAR1"


def test_the_file_is_for_its_owner_alone(filled: tuple[Path, str]) -> None:
    path, _ = filled
    assert path.stat().st_mode & 0o777 == 0o600
