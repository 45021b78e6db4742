"""A run that is interrupted ends as if it had not been; nothing is scored twice, and nothing stale is used."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.fakes import RuleModel
from tests.models.samples import QUESTIONS, sample_prompts
from tests.models.scoring import distinct_nodes
from tests.models.stored_run import kill_and_resume, load, progress, start, study
from tests.models.zoo import ZooFolder
from unslant.models import stored
from unslant.models.base import Cost, Scored, ScoringModel
from unslant.models.hf.model import TransformersModel
from unslant.models.stored import StoredModel
from unslant.presentations import present
from unslant.prompts import Cloze, Prompt, Writer, load_template
from unslant.reference import reference_names, reference_path
from unslant.responses import Responses
from unslant.store import Store, StoreError
from unslant.store.repair import repair

COUNTS = ("tokens", "tokens_plain", "tokens_baqckv", "prompts", "forwards")


@pytest.fixture
def prompts() -> list[Prompt]:
    return list(sample_prompts()[::3])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "store.sqlite3") as opened:
        yield opened


@pytest.fixture
def written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "_SECONDS_BETWEEN_WRITES", 0.0)
    monkeypatch.setattr(stored, "_MOST_SECONDS_BETWEEN_WRITES", 0.0)


def score(model: ScoringModel, prompts: Sequence[Prompt]) -> list[bytes]:
    """The bits of every score; each prompt must be yielded once."""
    found = [(scored.index, scored.logprobs.tobytes()) for scored in model.score(prompts)]
    assert sorted(index for index, _ in found) == list(range(len(prompts)))
    return [bits for _, bits in sorted(found)]


def counts(cost: Cost) -> dict[str, int]:
    return {name: getattr(cost, name) for name in COUNTS}


def stop_after(model: ScoringModel, prompts: Sequence[Prompt], results: int) -> None:
    """Look at so many results and no more, as a process that is interrupted."""
    scores = model.score(prompts)
    for _ in range(results):
        next(scores)
    scores.close()  # type: ignore[attr-defined]


@pytest.mark.thorough
@pytest.mark.parametrize("kills", [1, 2])
def test_a_few_kills(zoo_model: ZooFolder, tmp_path: Path, kills: int) -> None:
    kill_and_resume(zoo_model("llama", small=True), tmp_path, kills, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "engine", "kills"), [("fair", "tree", 50), ("llama", "tree", 20), ("llama", "plain", 10)]
)
def test_killed_at_random_moments(zoo_model: ZooFolder, tmp_path: Path, name: str, engine: str, kills: int) -> None:
    folder = reference_path(name) if name in reference_names() else zoo_model(name, small=True)
    shares = kill_and_resume(folder, tmp_path, kills, seed=7, engine=engine)
    assert sum(0 < share < 1 for share in shares) > kills / 4, f"kills were not spread over the scoring: {shares}"


@pytest.mark.thorough
def test_two_processes_share_a_store(zoo_model: ZooFolder, tmp_path: Path) -> None:
    folder, store = zoo_model("llama", small=True), tmp_path / "store.sqlite3"
    start(folder, tmp_path / "own.sqlite3", tmp_path / "alone.parquet").finish()
    started = [start(folder, store, tmp_path / f"{i}.parquet", pause=0.01 * i) for i in range(3)]
    other = start(folder, store, tmp_path / "plain.parquet", engine="plain")
    for run in [*started, other]:
        run.finish()
    alone = (tmp_path / "alone.parquet").read_bytes()
    for i in range(3):
        shared = Responses.from_parquet(tmp_path / f"{i}.parquet")
        assert shared.run == Responses.from_parquet(tmp_path / "alone.parquet").run
        assert (tmp_path / f"{i}.parquet").read_bytes() == alone
    kept, total = progress(store)
    assert kept == total
    with closing(sqlite3.connect(store)) as connection:
        assert connection.execute("SELECT count(*) FROM passes").fetchone() == (2,)
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.parametrize("engine", ["tree", "plain"])
def test_scores_and_costs_are_those_without_a_store(zoo_model: ZooFolder, store: Store, prompts, engine) -> None:
    bare = load(zoo_model("llama", small=True), engine)
    kept = StoredModel(load(zoo_model("llama", small=True), engine), store)
    assert score(kept, prompts) == score(bare, prompts)
    assert counts(kept.cost) == counts(bare.cost)
    assert kept.recalled == 0
    if engine == "tree":
        assert kept.cost.tokens == distinct_nodes(bare.encode(prompts))
        assert kept.cost.forwards > 10  # or the checkpoints would not be tried


@pytest.mark.thorough
def test_what_is_stored_is_not_asked_again(zoo_model: ZooFolder, store: Store, prompts) -> None:
    first = StoredModel(load(zoo_model("llama", small=True)), store)
    expected = score(first, prompts)
    model = load(zoo_model("llama", small=True))
    again = StoredModel(model, store)
    assert score(again, prompts) == expected
    assert model.cost.forwards == 0
    assert again.recalled == len(prompts)
    assert counts(again.cost) == counts(first.cost)


@pytest.mark.usefixtures("written_at_once")
@pytest.mark.parametrize("ahead", [pytest.param(25, marks=pytest.mark.thorough), 35, None])
def test_another_process_comes_further_meanwhile(zoo_model: ZooFolder, store: Store, prompts, ahead) -> None:
    whole = load(zoo_model("llama", small=True))
    expected = score(whole, prompts)
    stop_after(StoredModel(load(zoo_model("llama", small=True)), store), prompts, 15)
    behind = StoredModel(load(zoo_model("llama", small=True)), store)
    scores = behind.score(prompts)
    found = [next(scores)]  # it has looked at what is there
    with Store(store.path) as opened:
        other = StoredModel(load(zoo_model("llama", small=True)), opened)
        stop_after(other, prompts, len(prompts) if ahead is None else ahead)
    found += scores
    assert sorted(scored.index for scored in found) == list(range(len(prompts)))
    assert [scored.logprobs.tobytes() for scored in sorted(found, key=lambda scored: scored.index)] == expected
    assert counts(behind.cost) == counts(whole.cost)
    if ahead is None:  # the states of a call are dropped with its last score: it must not begin again
        assert behind.model_asked.cost.forwards == 0
    last = StoredModel(load(zoo_model("llama", small=True)), store)
    assert score(last, prompts) == expected
    assert last.recalled == len(prompts)
    with closing(sqlite3.connect(store.path)) as connection:
        assert connection.execute("SELECT done = total, (SELECT count(*) FROM states) FROM passes").fetchall() == [
            (1, 0)
        ]


@pytest.mark.usefixtures("written_at_once")
@pytest.mark.thorough
def test_costs_are_whole_when_the_one_ahead_and_the_one_that_overtook_it_are_stopped(
    zoo_model: ZooFolder, store: Store, prompts
) -> None:
    whole = load(zoo_model("llama", small=True))
    expected = score(whole, prompts)
    stop_after(StoredModel(load(zoo_model("llama", small=True)), store), prompts, 15)
    overtaking = StoredModel(load(zoo_model("llama", small=True)), store)
    scores = overtaking.score(prompts)
    found = [next(scores)]
    with Store(store.path) as opened:
        stop_after(StoredModel(load(zoo_model("llama", small=True)), opened), prompts, 30)
    while overtaking.model_asked.cost.forwards < 2:
        found.append(next(scores))
    scores.close()  # type: ignore[attr-defined]
    assert progress(store.path)[0] < len(prompts)
    last = StoredModel(load(zoo_model("llama", small=True)), store)
    assert score(last, prompts) == expected
    assert counts(last.cost) == counts(whole.cost)


@pytest.mark.thorough
@pytest.mark.usefixtures("written_at_once")
@pytest.mark.parametrize("engine", ["tree", "plain"])
@pytest.mark.parametrize("name", ["llama", "gemma2"])
def test_an_interrupted_call_resumes_bit_for_bit(zoo_model: ZooFolder, store: Store, prompts, name, engine) -> None:
    whole = load(zoo_model(name, small=True), engine)
    expected = score(whole, prompts)
    forwards = 0
    for stop in (1, 15, 25, 35):
        model = load(zoo_model(name, small=True), engine)
        part = StoredModel(model, store)
        stop_after(part, prompts, stop)
        forwards += model.cost.forwards
        assert part.cost.forwards == forwards  # of all processes so far
    model = load(zoo_model(name, small=True), engine)
    last = StoredModel(model, store)
    assert score(last, prompts) == expected
    assert counts(last.cost) == counts(whole.cost)
    assert forwards + model.cost.forwards == whole.cost.forwards  # no batch was run twice


@pytest.mark.usefixtures("written_at_once")
@pytest.mark.thorough
def test_a_call_that_ran_out_of_memory_resumes_bit_for_bit(
    zoo_model: ZooFolder, tmp_path: Path, prompts, monkeypatch
) -> None:
    def small_memory() -> TransformersModel:
        model = load(zoo_model("llama", small=True), token_budget=200)
        forward = model._engine.forward  # the model's own would be foreign code, of which nothing is stored

        def limited(batch, spine):
            if len(batch.ids) > 150 and batch.ids[0] != model.encode(prompts)[0].context[0]:
                raise torch.OutOfMemoryError("CUDA out of memory.")
            return forward(batch, spine)

        monkeypatch.setattr(model._engine, "forward", limited)
        return model

    with Store(tmp_path / "whole.sqlite3") as store:
        model = small_memory()
        expected = score(StoredModel(model, store), prompts)
        assert model._engine.token_budget < 200
    with Store(tmp_path / "parts.sqlite3") as store:
        for stop in (1, 20, 35):
            stop_after(StoredModel(small_memory(), store), prompts, stop)
        assert score(StoredModel(small_memory(), store), prompts) == expected


@pytest.mark.usefixtures("written_at_once")
@pytest.mark.thorough
def test_a_lost_state_only_costs_time(zoo_model: ZooFolder, store: Store, prompts) -> None:
    expected = score(load(zoo_model("llama", small=True)), prompts)
    stop_after(StoredModel(load(zoo_model("llama", small=True)), store), prompts, 30)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        assert connection.execute("DELETE FROM states").rowcount == 1
    assert score(StoredModel(load(zoo_model("llama", small=True)), store), prompts) == expected


@pytest.mark.thorough
def test_a_changed_model_is_asked_again(zoo_model: ZooFolder, store: Store, prompts) -> None:
    model = load(zoo_model("llama", small=True))
    kept = StoredModel(model, store)
    prompts = prompts[:20]
    before = score(kept, prompts)
    with torch.no_grad():
        model.model.model.layers[0].self_attn.k_proj.weight.mul_(1.5)
    after = score(kept, prompts)
    assert kept.recalled == 0
    assert after != before
    assert after == score(load_changed(zoo_model("llama", small=True)), prompts)

    for other in (
        load(zoo_model("llama", small=True), "plain"),
        load(zoo_model("gemma2", small=True)),
        half(zoo_model("llama", small=True)),
    ):
        found = StoredModel(other, store)
        score(found, prompts)
        assert found.recalled == 0
    unchanged = StoredModel(load(zoo_model("llama", small=True)), store)
    assert score(unchanged, prompts) == before
    assert unchanged.recalled == len(prompts)


def load_changed(folder: Path) -> TransformersModel:
    model = load(folder)
    with torch.no_grad():
        model.model.model.layers[0].self_attn.k_proj.weight.mul_(1.5)
    return model


def half(folder: Path) -> TransformersModel:
    model = load(folder)
    return TransformersModel(model.model.to(torch.bfloat16), model.tokenizer, "zoo")


def test_an_adapter_switched_off_and_on_is_noticed(zoo_model: ZooFolder, store: Store, prompts) -> None:
    from peft import LoraConfig, get_peft_model

    plain = load(zoo_model("llama", small=True))
    config = LoraConfig(r=1, init_lora_weights=False, target_modules=["q_proj", "v_proj"])
    adapted = TransformersModel(get_peft_model(plain.model, config), plain.tokenizer, "zoo", engine="tree")
    kept = StoredModel(adapted, store)
    prompts = prompts[:10]
    on = score(kept, prompts)
    with adapted.model.disable_adapter():
        off = score(kept, prompts)
        assert kept.recalled == 0
    assert off != on
    assert score(kept, prompts) == on
    assert kept.recalled == len(prompts)


@pytest.mark.thorough
def test_another_template_or_tokenizer_is_asked_again(zoo_model: ZooFolder, store: Store) -> None:
    question = present(QUESTIONS[2])
    kept = StoredModel(load(zoo_model("llama", small=True)), store)
    for name in ("plain", "base-rate"):
        score(kept, Cloze(Writer(load_template(name))).prompts(question))
    assert kept.recalled == 0
    tokenizer = kept.model_asked.tokenizer  # type: ignore[attr-defined]
    tokenizer.chat_template = "{{ messages[0].content }}"
    renewed = StoredModel(TransformersModel(kept.model_asked.model, tokenizer, "zoo", engine="tree"), store)
    score(renewed, Cloze(Writer(load_template("plain"))).prompts(question))
    assert renewed.recalled == 0


@pytest.mark.thorough
def test_prompts_of_another_call_are_taken_over(zoo_model: ZooFolder, store: Store, prompts) -> None:
    first = StoredModel(load(zoo_model("llama", small=True)), store)
    some = score(first, prompts[::2])
    model = load(zoo_model("llama", small=True))
    more = StoredModel(model, store)
    found = score(more, prompts)
    assert found[::2] == some
    assert more.recalled == more.taken_over == len(prompts[::2])
    assert model.cost.prompts == more.cost.prompts == len(prompts) - len(prompts[::2])
    exact = score(load(zoo_model("llama", small=True)), prompts)
    for one, other in zip(found, exact, strict=True):
        np.testing.assert_allclose(np.frombuffer(one), np.frombuffer(other), rtol=0, atol=1e-4)
    assert score(StoredModel(load(zoo_model("llama", small=True)), store), prompts) == found


@pytest.mark.thorough
def test_a_disk_quota_stops_the_run_with_a_clear_error_and_loses_nothing(zoo_model: ZooFolder, tmp_path: Path) -> None:
    folder, store, out = zoo_model("llama", small=True), tmp_path / "store.sqlite3", tmp_path / "out.parquet"
    start(folder, tmp_path / "whole.sqlite3", tmp_path / "whole.parquet").finish()
    message = start(folder, store, out, largest_file=180_000).failure()
    assert message.startswith(f"{store}: cannot be written, the disk or a quota is full")
    assert "what was scored so far is kept" in message
    assert 'store="PATH"' in message
    assert not out.exists()
    kept, total = progress(store)
    assert 0 < kept < total
    start(folder, store, out).finish()
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()


@pytest.mark.parametrize("engine", ["tree", "plain"])
def test_what_was_damaged_is_scored_again_and_nothing_else(zoo_model: ZooFolder, store: Store, prompts, engine) -> None:
    model = load(zoo_model("llama", small=True), engine)
    before = score(StoredModel(model, store), prompts)
    with closing(sqlite3.connect(store.path)) as connection, connection:
        connection.execute("UPDATE scores SET checksum = checksum + 1 WHERE position IN (5, 6)")
    with pytest.raises(StoreError, match=r"2 of \d+ stored scores are damaged"):
        score(StoredModel(model, store), prompts)
    store.close()
    assert repair(store.path).scores == 2
    asked = model.cost.prompts
    with Store(store.path) as repaired:
        after = score(StoredModel(model, repaired), prompts)
    assert model.cost.prompts == asked + 2
    for i, (one, other) in enumerate(zip(before, after, strict=True)):
        if i in (5, 6):
            np.testing.assert_allclose(np.frombuffer(one), np.frombuffer(other), rtol=0, atol=1e-4)
        else:
            assert one == other


@contextmanager
def nobody() -> Iterator[None]:
    """Not root, whom no permission stops."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


@pytest.mark.thorough
@pytest.mark.usefixtures("written_at_once")
def test_a_store_made_read_only_stops_the_run_with_a_clear_error(zoo_model: ZooFolder, prompts) -> None:
    model = load(zoo_model("llama", small=True))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite3"
        with Store(path) as store:
            stop_after(StoredModel(load(zoo_model("llama", small=True)), store), prompts, 30)
        kept, _ = progress(path)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        with nobody(), pytest.raises(StoreError) as refused:
            score(StoredModel(model, Store(path)), prompts)
        assert str(refused.value).startswith(f"{path}: cannot be written")
        assert "no_store" in str(refused.value)
        with nobody(), Store(path, read_only=True) as store:
            assert store.runs.all() == []
        path.parent.chmod(0o755)
        path.chmod(0o644)
        assert progress(path)[0] == kept
        with Store(path) as store:
            again = StoredModel(model, store)
            assert score(again, prompts) == score(load(zoo_model("llama", small=True)), prompts)
            assert again.recalled == kept


@pytest.mark.usefixtures("written_at_once")
def test_a_model_that_does_not_tokenize_is_asked_only_for_what_is_missing(store: Store) -> None:
    texts = [
        Prompt(f"Question: {i}?\nA. x\nB. y\nAnswer:", (" A", " B"), group=str(i)) for i in range(10)
    ]  # read by the rule below

    def rule(stem: str, labels: list[str], options: list[str]) -> list[float]:
        return [1.0, 2.0 + int(stem.rstrip("?"))]

    first = RuleModel(rule)
    stop_after(StoredModel(first, store), texts, 4)
    second = RuleModel(rule)
    kept = StoredModel(second, store)
    assert score(kept, texts) == score(RuleModel(rule), texts)
    assert len(first.seen) == 4
    assert second.seen == texts[4:]
    assert kept.cost.prompts == 10
    score(StoredModel(RuleModel(rule, name="other"), store), texts)
    third = RuleModel(rule)
    score(StoredModel(third, store), texts[::-1])  # another call, known prompts
    assert third.seen == []


def test_an_error_of_the_model_loses_nothing_that_came_before(store: Store) -> None:
    class Failing(RuleModel):
        def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
            for number, scored in enumerate(super().score(prompts)):
                if number == 3:
                    raise ConnectionError("gone")
                yield scored

    texts = [Prompt(f"Question: {i}?\nA. x\nB. y\nAnswer:", (" A", " B")) for i in range(10)]
    with pytest.raises(ConnectionError):
        score(StoredModel(Failing(lambda *_: [1, 2]), store), texts)
    assert progress(store.path)[0] == 3


def test_the_study_of_the_kill_test_is_one_that_could_go_wrong(zoo_model: ZooFolder) -> None:
    """Its scores differ with the batches they were computed in; a resumed run that cut them otherwise would show."""
    one, other = (study(load(zoo_model("llama", small=True), token_budget=budget), questions=4) for budget in (80, 300))
    assert one.table["logprobs"] != other.table["logprobs"]
