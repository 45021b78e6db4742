"""The cut: shards have every question once, in stretches of about the same length."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.scale.conftest import QUESTIONS, rule_model
from unslant import InputError, audit
from unslant.auditing import AuditSettings
from unslant.experiment import ShardOptions
from unslant.presentations import CONTROL
from unslant.scale.plan import Shard, stretch


@pytest.mark.parametrize(
    "text", ["0/16", "17/16", "3-16", "3/0", "-1/4", "1/2/3", "a/b", "/", "3/", "1.5/2", "³/4", "1/ 2"]
)
def test_no_such_shard(text: str) -> None:
    with pytest.raises(InputError, match=r"shard.*: give I/N with I from 1 to N, such as 3/16"):
        ShardOptions(shard=text)


def test_a_plan_without_a_shard_is_refused() -> None:
    with pytest.raises(InputError, match="plan applies only to shards: add shard"):
        ShardOptions(plan="plan.json")  # type: ignore[arg-type]


@given(
    st.lists(st.tuples(st.integers(0, 500), st.sampled_from(["", "", "a passage", "another"])), max_size=60),
    st.integers(1, 20),
)
def test_every_question_is_in_one_shard(questions: list[tuple[int, str]], of: int) -> None:
    lengths = [length for length, _ in questions]
    characters = [*lengths, 7]
    cut = [stretch(Shard(i, of), [context for _, context in questions], characters) for i in range(1, of + 1)]
    assert [place for part in cut for place in part] == list(range(len(lengths)))


def test_shards_are_about_as_long() -> None:
    lengths = [10 + i % 7 for i in range(1000)]
    characters = [*lengths, 0]
    for of in (2, 3, 16, 100):
        cut = [stretch(Shard(i, of), [""] * 1000, characters) for i in range(1, of + 1)]
        own = [sum(lengths[place] for place in part) for part in cut]
        assert max(own) - min(own) <= 2 * max(lengths)


def test_a_passage_is_not_cut_unless_it_is_longer_than_a_shard() -> None:
    contexts = [f"passage {i // 4}" for i in range(40)]
    characters = [10] * 40 + [0]
    for i in range(1, 4):
        part = stretch(Shard(i, 3), contexts, characters)
        assert part.start % 4 == part.stop % 4 == 0
        assert len(part) in (12, 16)
    assert [len(stretch(Shard(i, 4), ["one"] * 40, characters)) for i in range(1, 5)] == [10] * 4


def test_shards_ask_everything_once_and_the_last_one_the_controls() -> None:
    whole = audit(rule_model(), QUESTIONS)
    prompts, controls = [], []
    for i in range(1, 6):
        model = rule_model()
        found = audit.study.responses(model, QUESTIONS, shards=ShardOptions(shard=f"{i}/5"))
        prompts += [prompt.text for prompt in model.seen]
        controls.append(CONTROL in found.table["kind"].to_pylist())
        assert found.table["question_id"].to_pylist()
    assert len(prompts) == whole.cost.prompts
    assert controls == [False] * 4 + [True]


def test_more_shards_than_questions_leave_some_empty() -> None:
    found = [
        audit.study.responses(rule_model(), QUESTIONS[:2], shards=ShardOptions(shard=f"{i}/5")) for i in range(1, 6)
    ]
    assert sorted(name for one in found for name in one.table["question_id"].unique().to_pylist()) == [
        "control/2", "control/3", "q0", "q1",
    ]  # fmt: skip
    assert min(map(len, found)) == 0


def test_the_adaptive_audit_cannot_be_cut() -> None:
    with pytest.raises(InputError, match="adaptive looks at all answers before it asks further: leave out shard"):
        audit.study.responses(
            rule_model, QUESTIONS, AuditSettings(elicit="generate", adaptive=True), shards=ShardOptions(shard="1/2")
        )


def test_a_shard_says_that_it_is_one() -> None:
    from unslant.auditing.result import AuditResult

    found = audit.study.responses(rule_model(), QUESTIONS, shards=ShardOptions(shard="2/3"))
    assert AuditResult.of(found).page().caveats == ("Shard 2 of 3 only.",)
    assert {question.id for question in found.questions} == set(found.table["question_id"].to_pylist())
    assert replace(found).run.questions_digest == audit(rule_model(), QUESTIONS).run.questions_digest
