"""Debiasing of models that answer in words: a vote over replies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

import unslant
from tests.chatting import RuleChat
from tests.studies.talkers import QUESTIONS, takes_a
from unslant import Debiased, InputError, ModelError
from unslant.debiasing import METHODS, method_named
from unslant.models.chat import Reply
from unslant.prompts import Prompt

KNOWN, UNKNOWN = QUESTIONS[2], QUESTIONS[3]


def test_the_vote_asks_every_option_once_in_every_place() -> None:
    talker = RuleChat(takes_a)
    with Debiased(talker, "vote") as model:
        known, unknown = model.answers([KNOWN, UNKNOWN])
    assert (known.choice, known.confidence, known.orders) == (2, 1.0, 4)
    assert (unknown.confidence, unknown.probs.tolist()) == (0.25, [0.25] * 4)
    assert unknown.choice == 0  # a tie goes to the text that sorts first
    assert (model.cost.prompts, model.cost.tokens) == (8, 96)


class Cut(RuleChat):
    """Ends every reply at the limit of tokens."""

    def replies_to(self, prompts: Sequence[Prompt]) -> Iterator[Reply]:
        return (replace(reply, cut=True) for reply in super().replies_to(prompts))


def test_replies_cut_before_an_answer_have_no_vote() -> None:
    def rule(stem: str, labels: list[str], texts: list[str]) -> str:
        return f"It is {texts[0]} that I would"

    with Debiased(RuleChat(rule), "vote", orders="cyclic") as model:
        assert model.answer(KNOWN).confidence > 0
    with Debiased(Cut(rule), "vote", orders="cyclic") as model:
        assert (model.answer(KNOWN).choice, model.answer(KNOWN).confidence) == (-1, 0.0)
        assert "give no answer" in model.asker.notes[0]


def test_settings_of_the_method_are_keywords() -> None:
    talker = RuleChat(takes_a)
    with Debiased(talker, "vote", orders=2) as model:
        assert model.answer(KNOWN).orders == 2
    assert len(talker.asked) == 2
    with pytest.raises(InputError, match="no setting 'order'"):
        Debiased(talker, "vote", order=2)


def test_the_adaptive_vote_stops_once_the_winner_is_settled() -> None:
    talker = RuleChat(takes_a)
    with Debiased(talker, "adaptive", orders=8) as model:
        known = model.answer(KNOWN)
    assert (known.choice, known.orders) == (2, 8)  # half of two rounds is not beyond half
    with Debiased(RuleChat(takes_a), "adaptive", orders=24) as model:
        assert model.answer(KNOWN).orders == 16


def test_replies_without_an_answer_have_no_vote() -> None:
    def rule(stem: str, labels: list[str], texts: list[str]) -> str | None:
        return {"item 0": "Hmm.", "item 1": None}.get(texts[0], takes_a(stem, labels, texts))

    with Debiased(RuleChat(rule), "vote", orders="cyclic") as model:
        found = model.answer(KNOWN)
        assert (found.choice, found.confidence) == (2, 0.5)
        assert model.asker.notes == (
            "1 of 4 replies give no answer; they have no vote", "1 of 4 requests got no reply; they have no vote"
        )  # fmt: skip
    with Debiased(RuleChat(lambda *_: "Hmm."), "vote") as model:
        silent = model.answer(KNOWN)
    assert (silent.choice, silent.confidence) == (-1, 0.0)
    with Debiased(RuleChat(lambda *_: None), "vote") as model, pytest.raises(ModelError, match="no luck"):
        model.answer(KNOWN)


@pytest.mark.parametrize("name", [name for name in METHODS if method_named(name).needs_scores])
def test_methods_that_need_scores_are_refused_before_any_work(name: str) -> None:
    talker = RuleChat(takes_a)
    with pytest.raises(InputError, match=r"needs log-probabilities of labels|needs questions to fit on"):
        Debiased(talker, name)
    with pytest.raises(InputError, match="needs log-probabilities of labels"):
        Debiased("inspect:none/such", name, fit=QUESTIONS)
    assert not talker.asked


def test_those_that_do_not_are_the_orders_alone() -> None:
    assert [name for name in METHODS if not method_named(name).needs_scores] == [
        "none", "vote", "vote-hard", "adaptive"
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("method", "words"),
    [
        ("pride:alpha=7", "alpha 7 is not a share"),
        ("pride:alpha=nan", "alpha nan is not a share"),
        ("gray-box-calibrated:share=9", "share 9 is not a share"),
        ("vote:orders=cyclc", "unknown orders 'cyclc': did you mean 'cyclic'"),
        ("vote:orders=0", "unknown orders '0'"),
        ("vote:orders=shared:0", "unknown orders 'shared:0'"),
        ("vote:rule=median", "unknown rule 'median': use soft or hard"),
        ("adaptive:risk=4", "risk 4.0 is not between"),
        ("adaptive:orders=0", "orders=0: give 1 or more"),
        ("aoi:position=middle", "unknown position 'middle'"),
        ("bnp:nodes=0", "nodes=0: give 1 or more"),
        ("bnp:questions=0", "questions=0: give 1 or more"),
        ("bnp:orders=many", "unknown orders 'many'"),
        ("set-based:answer=word", "unknown answer 'word': use label or text"),
    ],
)
def test_a_setting_that_cannot_be_used_is_refused_before_a_model_is_opened(method: str, words: str) -> None:
    with pytest.raises(InputError, match=f"^method '{method}': {re.escape(words)}"):
        unslant.debias("no-such-model", "embedded", method=method)
    with pytest.raises(InputError, match=f"^method '{method}': {re.escape(words)}"):
        unslant.study.debias("no-such-model", "embedded", methods=f"none,{method}", train="embedded-skewed")
