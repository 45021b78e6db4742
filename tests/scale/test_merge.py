"""Merged shards are the run that one machine would have made, and nothing else is merged."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from tests.fakes import FakeChat
from tests.scale.conftest import QUESTIONS, rule_model
from unslant import InputError
from unslant.auditing import AuditSettings
from unslant.auditing.study import audit
from unslant.experiment import ShardOptions
from unslant.experiment.study import Study
from unslant.models.base import ModelInfo, Scored, ScoringModel
from unslant.models.chat import Reply
from unslant.prompts import Prompt
from unslant.responses import Responses, Run
from unslant.responses.provenance import Agreement, ChatCost, SpecialTokens
from unslant.scale import merge as merging
from unslant.scale.merge import merge
from unslant.studies import read_result
from unslant.studies.base_rate.study import base_rate
from unslant.studies.unbiased.study import unbiased

Score = Callable[..., Path]


class ByText(ScoringModel):
    """Scores every continuation by its prompt's text alone."""

    def __init__(self) -> None:
        super().__init__(ModelInfo(name="by-text", identity={"model": "by-text"}))

    def score(self, prompts: Sequence[Prompt]) -> Any:
        for i, prompt in enumerate(prompts):
            self.cost.prompts += 1
            found = [
                -1.0 - (len(prompt.text) * 7 + sum(map(ord, prompt.text[-40:] + c))) % 13 for c in prompt.continuations
            ]
            yield Scored(i, np.array(found))


class Answers(FakeChat):
    """Answers with the label of the longest line, and sometimes with none."""

    def replies_to(self, prompts: Sequence[Prompt]) -> Any:
        for i, prompt in enumerate(prompts):
            text = prompt.messages[-1].content if prompt.messages else prompt.text
            number = sum(map(ord, text))
            yield Reply(i, "I cannot say." if number % 9 == 0 else f"Answer: {'AB'[number % 2]}")


STUDIES: dict[str, tuple[Study[Any], Callable[[], Any], dict[str, Any]]] = {
    "audit": (audit.study, rule_model, {}),
    "audit with worked examples": (audit.study, ByText, {"shots": 2, "orders": "cyclic"}),
    "audit in words": (audit.study, lambda: Answers("words"), {"elicit": "generate", "repeats": 3}),
    "base-rate": (base_rate.study, ByText, {"seed": 3}),
    "unbiased": (unbiased.study, ByText, {"runs": 2}),
    "unbiased in words": (
        unbiased.study,
        lambda: Answers("words"),
        {"runs": 2, "generate": True, "shots": 0},
    ),
}


@pytest.mark.parametrize(
    "study", [one if one == "audit" else pytest.param(one, marks=pytest.mark.thorough) for one in STUDIES]
)
def test_merged_is_whole(tmp_path: Path, study: str) -> None:
    asked, model, given = STUDIES[study]
    settings = asked.settings(**given)
    asked.responses(model(), QUESTIONS, settings).to_parquet(tmp_path / "whole.parquet")
    paths = []
    for i in range(1, 6):
        paths.append(tmp_path / f"s{i}.parquet")
        asked.responses(model(), QUESTIONS, settings, shards=ShardOptions(shard=f"{i}/5")).to_parquet(paths[-1])
    random.Random(0).shuffle(paths)
    rows = merge(tmp_path / "merged.parquet", paths)
    whole, merged = (Responses.from_parquet(tmp_path / f"{name}.parquet") for name in ("whole", "merged"))
    assert rows == len(whole)
    assert merged.table.equals(whole.table)
    assert merged.questions == whole.questions
    one, other = (read_result(tmp_path / f"{name}.parquet").to_dict() for name in ("whole", "merged"))
    assert other == one


def test_rows_are_streamed_where_they_belong(tmp_path: Path, score: Score, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(merging, "ROWS_AT_ONCE", 50)
    monkeypatch.setattr("unslant.responses.checks._ROWS_AT_ONCE", 7)
    merge(tmp_path / "m.parquet", [score(f"{i}/4") for i in (3, 1, 4, 2)])
    assert pq.ParquetFile(tmp_path / "m.parquet").num_row_groups > 5
    whole = audit.study.responses(rule_model(), QUESTIONS)
    assert Responses.from_parquet(tmp_path / "m.parquet").table.equals(whole.table)


def test_questions_with_passages_and_pinned_options(tmp_path: Path, score: Score) -> None:
    questions = [
        replace(question, context=f"Passage {i // 3}.", subject=f"s{i % 2}", pinned=(len(question.options) - 1,))
        for i, question in enumerate(QUESTIONS)
    ]
    merge(tmp_path / "m.parquet", [score(f"{i}/6", questions) for i in range(1, 7)])
    assert Responses.from_parquet(tmp_path / "m.parquet").table.equals(
        audit.study.responses(rule_model(), questions).table
    )


def test_one_shard_and_more_shards_than_questions(tmp_path: Path, score: Score) -> None:
    whole = audit.study.responses(rule_model(), QUESTIONS[:3])
    for n in (1, 7):
        merge(tmp_path / "m.parquet", [score(f"{i}/{n}", QUESTIONS[:3]) for i in range(1, n + 1)])
        assert Responses.from_parquet(tmp_path / "m.parquet").table.equals(whole.table)


def refused(tmp_path: Path, *paths: Path) -> str:
    with pytest.raises(InputError) as error:
        merge(tmp_path / "m.parquet", paths)
    assert not (tmp_path / "m.parquet").exists()
    assert "\n" not in str(error.value)
    return str(error.value).replace(f"{tmp_path}/", "")


def test_a_shard_is_missing(tmp_path: Path, score: Score) -> None:
    told = refused(tmp_path, score("4/5"), score("2/5"))
    assert told == "3 of 5 shards missing: 1, 3, 5; score each like this: the same call with shard='1/5'"


def test_a_shard_is_there_twice(tmp_path: Path, score: Score) -> None:
    first = score("1/2")
    shutil.copy(first, again := tmp_path / "again.parquet")
    assert (
        refused(tmp_path, first, score("2/2"), again) == "s1of2.parquet and again.parquet are both shard 1/2: give one"
    )


def test_shards_of_two_cuts(tmp_path: Path, score: Score) -> None:
    told = refused(tmp_path, score("1/2"), score("2/3"))
    assert told == "s1of2.parquet and s2of3.parquet are shard 1/2 and shard 2/3: give shards of the same number"


@pytest.mark.parametrize(
    ("changed", "unlike"),
    [
        ({"orders": "cyclic"}, "settings (orders 'auto' and 'cyclic') differ"),
        ({"seed": 5, "labels": "a"}, "settings (labels 'A' and 'a', seed 0 and 5) differ"),
        ({"questions": QUESTIONS[::-1]}, "questions differ"),
        ({"questions": QUESTIONS[1:]}, "questions differ"),
    ],
)
def test_two_plans_are_mixed(tmp_path: Path, score: Score, changed: dict[str, Any], unlike: str) -> None:
    told = refused(tmp_path, score("1/2"), score("2/2", **changed))
    assert told == f"s1of2.parquet and s2of2.parquet do not belong together: their {unlike}"


def test_another_model(tmp_path: Path, score: Score) -> None:
    told = refused(tmp_path, score("1/2"), score("2/2", model="other"))
    assert told == (
        "s1of2.parquet and s2of2.parquet do not belong together: they come from different models (model rule and other)"
    )


IDENTITY = {"model": "/one/m", "weights": "a" * 64, "dtype": "float32", "fingerprint": "2e-05: -1.5 -2.5"}


@pytest.mark.parametrize(
    ("changed", "unlike"),
    [
        ({"model": "/two/m", "fingerprint": "2e-05: -1.50001 -2.5"}, ""),
        ({"weights": "b" * 64}, "weights aaaaaaaaaaaa and bbbbbbbbbbbb"),
        ({"dtype": "bfloat16"}, "dtype float32 and bfloat16"),
        ({"fingerprint": "2e-05: -1.6 -2.5"}, "their scores of fixed prompts"),
        ({"torch": "2.9"}, "torch none and 2.9"),
        (
            {"weights": "", "base_url": "http://10.0.0.2/v1"},
            "base_url none and http://10.0.0.2/v1, weights aaaaaaaaaaaa and none",
        ),
    ],
)
def test_identities(tmp_path: Path, score: Score, changed: dict[str, str], unlike: str) -> None:
    paths = [score("1/2"), score("2/2")]
    for path, own in zip(paths, ({}, changed), strict=True):
        found = Responses.from_parquet(path)
        replace(found, run=replace(found.run, identity=IDENTITY | own)).to_parquet(path)
    if unlike:
        assert refused(tmp_path, *paths).endswith(f"they come from different models ({unlike})")
    else:
        assert merge(tmp_path / "m.parquet", paths) > 0


def test_a_table_that_is_not_a_shard(tmp_path: Path, score: Score) -> None:
    audit.study.responses(rule_model(), QUESTIONS).to_parquet(tmp_path / "whole.parquet")
    told = refused(tmp_path, score("1/1"), tmp_path / "whole.parquet")
    assert told == "whole.parquet: is not a shard: it was not made with shard"


def test_foreign_and_damaged_files(tmp_path: Path, score: Score) -> None:
    import pyarrow as pa

    first = score("1/2")
    foreign, cut, text = (tmp_path / name for name in ("foreign.parquet", "cut.parquet", "text.parquet"))
    pq.write_table(pa.table({"a": [1]}), foreign)
    cut.write_bytes(first.read_bytes()[:-200])
    text.write_text("question_id,answer\n")
    assert refused(tmp_path, first, foreign) == "foreign.parquet: is not a shard: it was not made with shard"
    assert refused(tmp_path, first, cut).startswith("cut.parquet: not a Parquet file that can be read")
    assert refused(tmp_path, first, text).startswith("text.parquet: not a Parquet file that can be read")
    assert refused(tmp_path, first, tmp_path / "none.parquet") == "none.parquet: no such file"
    reason = "is a folder; give the file in it (cut.parquet, foreign.parquet, s1of2.parquet, text.parquet)"
    assert refused(tmp_path, first, tmp_path) == f"{tmp_path}: {reason}"
    assert refused(tmp_path).startswith("no shards: name the table to be written first")


def test_damage_in_the_rows_is_noticed_and_nothing_written(tmp_path: Path, score: Score) -> None:
    paths = [score("1/2"), score("2/2")]
    content = bytearray(paths[1].read_bytes())
    for i in range(40, 400, 8):
        content[i] ^= 0x5A
    paths[1].write_bytes(content)
    assert refused(tmp_path, *paths).startswith("s2of2.parquet: ")


def test_a_shard_with_missing_rows(tmp_path: Path, score: Score) -> None:
    paths = [score("1/2"), score("2/2")]
    found = Responses.from_parquet(paths[0])
    replace(found, table=found.table.slice(5)).to_parquet(paths[0])
    assert refused(tmp_path, *paths) == "s1of2.parquet: is incomplete: rows are missing; rerun this shard"


@pytest.mark.parametrize("cut", [0, 5])
def test_rows_that_two_shards_have_or_none(tmp_path: Path, score: Score, cut: int) -> None:
    paths = [score("1/2"), score("2/2")]
    found = Responses.from_parquet(paths[1])
    header = found.run.shard
    assert header is not None
    (start, n), *rest = header.runs  # the first rows missing, or all of them a row too early
    runs = ((start + cut, n - cut) if cut else (start - 1, n), *rest)
    run = replace(found.run, shard=replace(header, runs=runs))
    replace(found, run=run, table=found.table.slice(cut)).to_parquet(paths[1])
    why = r"s[12]of2\.parquet: does not fit the others: its rows begin at \d+, not \d+"
    assert re.fullmatch(why, refused(tmp_path, *paths))


def test_no_shard_is_written_over(tmp_path: Path, score: Score) -> None:
    paths = [score("1/2"), score("2/2")]
    with pytest.raises(InputError, match=r"s1of2\.parquet: is a shard and would be overwritten"):
        merge(paths[0], [paths[1]])


def test_costs_are_summed_and_facts_joined(tmp_path: Path, score: Score) -> None:
    facts: list[dict[str, Any]] = [
        {
            "special_tokens": SpecialTokens(read_as="text", questions=("q1",)),
            "half_precision": Agreement(prompts=16, argmax=1.0, mean=0.01, largest=0.1),
            "requests": {"judge": ChatCost(requests=3, failed=1, error="busy")},
        },
        {"half_precision": Agreement(prompts=8, argmax=0.25, mean=0.04, largest=0.3), "offline": True},
        {
            "special_tokens": SpecialTokens(read_as="text", questions=("q0", "q1")),
            "requests": {"judge": ChatCost(requests=4)},
        },
    ]
    paths = [score(f"{i}/3") for i in (1, 2, 3)]
    prompts = 0
    for path, more in zip(paths, facts, strict=True):
        found = Responses.from_parquet(path)
        made = {"platform": f"on {path.stem}", "date": f"2026-01-0{path.stem[1]}"}
        more["provenance"] = found.run.provenance.model_copy(update=made)
        replace(found, run=replace(found.run, **more)).to_parquet(path)
        prompts += found.run.cost.prompts
    merge(tmp_path / "m.parquet", paths)
    run = Responses.from_parquet(tmp_path / "m.parquet").run
    assert run.cost.prompts == prompts
    assert run.special_tokens == SpecialTokens(read_as="text", questions=("q0", "q1"))
    assert run.half_precision is not None
    assert run.half_precision.mean == pytest.approx(0.02)
    assert replace(run.half_precision, mean=0.0) == Agreement(prompts=24, argmax=0.75, largest=0.3)
    assert run.requests == {"judge": ChatCost(requests=7, failed=1, error="busy")}
    assert run.offline
    assert run.provenance.platform == "on s1of3; on s2of3; on s3of3"
    assert run.provenance.date == "2026-01-03"
    assert run.shard is None


@pytest.mark.thorough
def test_64_shards_in_any_order_with_every_kind_of_wrong_one(tmp_path: Path) -> None:
    """As one run; and one wrong file among 64 is named, with nothing written."""
    questions = [replace(q, id=f"{q.id}-{i}") for i in range(6) for q in QUESTIONS]

    def part(index: int, name: str = "", model: str = "rule", of: Sequence[Any] = questions, **settings: Any) -> Path:
        path = tmp_path / f"{name or index}.parquet"
        shards = ShardOptions(shard=f"{index}/64")
        audit.study.responses(
            rule_model(model), of, AuditSettings(**{"orders": "2"} | settings), shards=shards
        ).to_parquet(path)
        return path

    paths = [part(i) for i in range(1, 65)]
    random.Random(1).shuffle(paths)
    merge(tmp_path / "merged.parquet", paths)
    audit.study.responses(rule_model(), questions, AuditSettings(orders="2")).to_parquet(tmp_path / "whole.parquet")
    merged, whole = (Responses.from_parquet(tmp_path / f"{name}.parquet") for name in ("merged", "whole"))
    assert merged.table.equals(whole.table)
    own = int(paths[5].stem)
    turned = [replace(q, answers=frozenset({(min(q.answers) + 1) % len(q.options)})) for q in questions]
    shutil.copy(paths[0], tmp_path / "copy.parquet")
    wrong = {
        "do not belong together: their settings": part(own, "seed", seed=7),
        "do not belong together: their questions": part(own, "answers", of=turned),
        "different models": part(own, "model", model="foreign"),
        "are both shard": tmp_path / "copy.parquet",
        "is not a shard": tmp_path / "whole.parquet",
    }
    for reason, file in wrong.items():
        with pytest.raises(InputError, match=reason) as error:
            merge(tmp_path / "wrong.parquet", [*paths[:5], file, *paths[6:]])
        assert file.name in str(error.value)
    with pytest.raises(InputError, match=rf"1 of 64 shards missing: {own};"):
        merge(tmp_path / "wrong.parquet", [*paths[:5], *paths[6:]])
    assert not (tmp_path / "wrong.parquet").exists()


def test_what_each_machine_noticed_is_said_of_the_whole_run() -> None:
    runs = [Run(unsteady=2, asked_again=10), Run(unsteady=1, asked_again=5, apart="no identity"), Run()]
    whole = Run.merge(runs, runs[0])
    assert (whole.unsteady, whole.asked_again, whole.apart) == (3, 15, "no identity")


def test_an_empty_shard_asked_no_model_and_gives_the_whole_none(tmp_path: Path, score: Score) -> None:
    paths = [score(f"{i}/5", QUESTIONS[:2]) for i in range(1, 6)]
    empty = [i for i, path in enumerate(paths, 1) if not len(Responses.from_parquet(path))]
    assert empty
    for i in empty:
        score(f"{i}/5", QUESTIONS[:2], model="other")
    merge(tmp_path / "merged.parquet", sorted(paths, key=lambda path: paths.index(path) + 1 not in empty))
    assert Responses.from_parquet(tmp_path / "merged.parquet").run.model == "rule"


def test_of_many_missing_shards_the_first_twenty_are_listed(tmp_path: Path, score: Score) -> None:
    with pytest.raises(InputError, match=r"29 of 30 shards missing: 2, 3, .*, 21, \.\.\.; score each like this"):
        merge(tmp_path / "merged.parquet", [score("1/30")])
