"""The audit in words, on talkers whose rule is known."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.chatting import RuleChat
from tests.first_screens import said
from tests.studies.talkers import QUESTIONS, knows, number, says, takes_a
from unslant import InputError, Question
from unslant.auditing import orders_in_words
from unslant.auditing.notes import adaptive_lines
from unslant.auditing.panels import _beyond_noise, caveats
from unslant.auditing.replies import Adaptive
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.metrics import Estimate, measure, read_scores, verdict
from unslant.metrics.measures import extended_measures
from unslant.metrics.permutation import flips
from unslant.models import GenerateOptions, Reply
from unslant.models.open import open_chat
from unslant.responses import Responses, Run
from unslant.responses.run import AdaptiveRun

pytestmark = pytest.mark.thorough


def wavers(rng: random.Random):
    """Draws its answer by chance where it does not know."""
    return lambda stem, labels, texts: knows(stem, labels, texts) or f"Answer: {rng.choice(labels)}"


@pytest.mark.parametrize(
    ("agreeing", "drawn", "at_random", "words"),
    [
        (40, 10, False, "40 had the same answer in the given and the reversed order; 10 of them, drawn at random"),
        (6, 6, False, "all of them were asked in all orders too, so none represents another."),
        (0, 0, False, "none had the same answer in the given and the reversed order, so all were asked in all orders."),
        (60, 30, True, "30 of 60 questions, drawn at random, were asked in all orders; in every number over orders"),
        (30, 30, True, "With so few questions, all were asked in all orders."),
    ],
)
def test_questions_are_said_to_represent_others_only_where_others_are_left(
    agreeing: int, drawn: int, at_random: bool, words: str
) -> None:
    (line,) = adaptive_lines(Adaptive(agreeing, drawn, Estimate.undefined("made"), 240, 400, math.nan, at_random))
    assert words in line
    assert ("represent the others" in line) == (agreeing > drawn)


def test_orders_are_rotations_and_at_most_six() -> None:
    assert orders_in_words(QUESTIONS[2], "auto") == [(0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2)]
    eight = orders_in_words(QUESTIONS[5], "auto")
    assert [order[0] for order in eight] == [0, 1, 2, 4, 5, 6]
    pinned = Question("p", "?", ("x", "y", "All of the above"), frozenset({2}), pinned=(2,))
    assert orders_in_words(pinned, "auto") == [(0, 1, 2), (1, 0, 2)]
    assert len(orders_in_words(QUESTIONS[2], "all")) == 24


def test_a_talker_that_takes_a_is_found_out() -> None:
    talker = RuleChat(takes_a)
    result = audit(talker, QUESTIONS)
    means = result.metrics.means
    assert result.headline.startswith("talker scores 0.50 in words on 48 questions, but ")
    assert "When unsure it falls back on A" in said(result)
    assert (means["robust_accuracy"].value, means["consistency"].value, means["answered"].value) == (0.5, 0.5, 1)
    on_top = [[order[0] in q.answers for order in orders_in_words(q, "auto")] for q in QUESTIONS[1::2]]
    assert means["expected_accuracy"].value == pytest.approx(0.5 + np.mean([np.mean(tops) for tops in on_top]) / 2)
    # all places of an unsure question are taken equally often: its vote is a tie, which goes to the first text
    assert means["vote_tie_rate"].value > 0.4
    assert means["fr"].n == 8  # two options: the one other rotation is the reversed order
    assert len(talker.asked) == len(result.responses) == sum(min(6, len(q.options)) for q in QUESTIONS)
    assert {row.elicitation for row in result.responses.rows()} == {"generate"}
    assert [c.method for c in result.corrections] == ["vote"]
    assert result.metrics.over_orders.tests
    assert result.run.requests["talker"].input_tokens == 10 * len(talker.asked)


def test_the_table_alone_gives_the_same(tmp_path: Path) -> None:
    result = audit(RuleChat(takes_a), QUESTIONS, repeats=2, repeat_sample=8, adaptive=True)
    result.to_parquet(tmp_path / "r.parquet")
    again = AuditResult.from_parquet(tmp_path / "r.parquet")
    assert again.to_dict() == result.to_dict()


def test_replies_without_an_answer_are_not_right_and_counted_by_order() -> None:
    def rule(stem: str, labels: list[str], texts: list[str]) -> str | None:
        silent = {"item 0": "Hard to say.", "item 1": "I'm sorry, but I can't help with that.", "item 2": None}
        if number(stem) == 2 and texts[0] in silent:
            return silent[texts[0]]
        return says(labels, texts, f"item {number(stem) % len(texts)}")

    result = audit(RuleChat(rule), QUESTIONS[2:4])
    means, counts = result.metrics.means, result.metrics.counts
    assert (counts.rows, counts.unanswered_rows, counts.failed_rows, counts.incomplete) == (8, 2, 1, 1)
    assert (means["accuracy"].value, means["accuracy"].n) == (0.5, 2)  # as given, question 2 got no answer
    assert (means["answered_accuracy"].value, means["answered_accuracy"].n) == (1, 1)
    assert means["robust_accuracy"].n == 1
    assert "No answer in 2 of 7 replies (unparsed" in said(result)  # one request got none
    rows = {row.order: row for row in result.replies.by_order}
    assert [(r.replies, r.answered, r.unparsed, r.refused, r.failed) for _, r in sorted(rows.items())] == [
        (2, 1, 1, 0, 0), (2, 1, 0, 1, 0), (1, 1, 0, 0, 1), (2, 2, 0, 0, 0)
    ]  # fmt: skip
    assert "count as wrong" in said(result)


def conflicting(stem: str, labels: list[str], texts: list[str]) -> str:
    """Names the right text under the label C, as small models do, where there is a C that is not its own."""
    right = f"item {number(stem) % len(texts)}"
    return f"{'C' if 'C' in labels else labels[texts.index(right)]}. {right}"


def test_a_label_with_another_text_is_a_conflict_and_not_a_habit_of_avoiding_the_others() -> None:
    result = audit(RuleChat(conflicting), [q for q in QUESTIONS if len(q.options) == 4])
    replies, rows = result.replies, result.responses.rows()
    conflicts = [row for row in rows if row.status == "conflict"]
    assert len(conflicts) == sum(row.conflict for row in replies.by_order) == 0.75 * len(rows)
    assert all(row.chosen is None and row.choice == -1 and set(row.conflict[1:]) == row.answers for row in conflicts)
    assert replies["right"].value == replies["right_by_label"].value == 0.25
    assert replies["right_by_text"].value == 1
    assert [(one.label, one.written) for one in replies.labels] == [("A", 0), ("B", 0), ("C", len(rows)), ("D", 0)]
    said = " ".join(caveats(result))
    assert f"{len(conflicts):,} of {len(rows):,} replies give a label with another option's text" in said
    assert "0.250 of replies are right, 0.250 if these count by label, 1.000 by text" in said
    assert "always answers C" in " ".join(result.page().lines)
    assert "avoids" not in result.headline


def test_replies_cut_at_the_limit_are_counted_with_the_option_that_helps() -> None:
    class Cut(RuleChat):
        def replies_to(self, prompts):
            for reply in super().replies_to(prompts):
                yield replace(reply, text="Let me think about the options first. The ite", cut=True)

    result = audit(Cut(conflicting), QUESTIONS[2:6])
    assert {row.status for row in result.responses.rows()} == {"cut"}
    assert "cut off before an answer: raise --max-tokens" in " ".join(caveats(result))


def test_asking_again_is_reported_apart() -> None:
    def rule(stem: str, labels: list[str], texts: list[str]) -> str:
        return conflicting(stem, labels, texts)

    class Again(RuleChat):
        def replies_to(self, prompts):
            told = [prompt for prompt in prompts if prompt.messages and "Which label" in prompt.messages[-1].content]
            if not told:
                yield from super().replies_to(prompts)
                return
            assert [message.role for message in told[0].messages[-2:]] == ["assistant", "user"]
            yield from (Reply(i, "C") for i in range(len(prompts)))

    some = [q for q in QUESTIONS if len(q.options) == 4]
    before, after = audit(Again(rule), some), audit(Again(rule), some, ask_again=True)
    assert before.replies.again is None
    assert after.metrics.to_dict() == before.metrics.to_dict()
    assert after.replies["right"] == before.replies["right"]
    asked = sum(row.conflict for row in before.replies.by_order)
    assert (after.replies.again.asked, after.replies.again.answered) == (asked, asked)
    assert after.replies.again.right.value == before.replies["right_by_label"].value
    assert len(after.responses) == len(before.responses) + asked
    assert "Asked again about" in " ".join(caveats(after))


def test_flips_are_of_pairs_of_answers() -> None:
    assert flips([1, 1, 1]) == 0
    assert flips([0, 1, 2, -1]) == 1
    assert flips([0, 0, 1]) == pytest.approx(2 / 3)
    assert np.isnan(flips([0, -1]))


def test_repeats_show_what_sampling_alone_does() -> None:
    steady = audit(RuleChat(takes_a), QUESTIONS, repeats=3, repeat_sample=30)
    assert sum(row.repeat > 0 for row in steady.responses.rows()) == 60
    noise = steady.replies.noise
    assert (noise["between_repeats"].value, noise["between_repeats"].n) == (0, 30)
    assert noise["between_orders"].value == noise["beyond_noise"].value + 0 or noise["beyond_noise"].low > 0.3
    once = audit(RuleChat(takes_a), QUESTIONS)
    assert once.metrics.to_dict() == steady.metrics.to_dict()  # repeats do not count
    assert once.replies.noise["between_repeats"].note.startswith("nothing was asked twice")

    shaky = audit(RuleChat(wavers(random.Random(1))), QUESTIONS, repeats=6, repeat_sample=48).replies.noise
    assert shaky["between_repeats"].value > 0.2
    assert shaky["beyond_noise"].low < 0 < shaky["beyond_noise"].high


def test_a_difference_below_noise_has_no_minus_sign() -> None:
    orders, repeats = (Estimate(value, value, value, 40, "") for value in (0.1, 0.25))
    beyond = verdict(Estimate(-0.15, -0.22, -0.08, 40, ""))
    assert _beyond_noise(orders, repeats, beyond).endswith("in 0.25: 0.15 (0.08 to 0.22) below noise.")


def test_flips_of_more_questions_than_their_difference_say_so() -> None:
    orders, repeats = Estimate(0.37, 0.3, 0.4, 400, ""), Estimate(0.36, 0.3, 0.4, 60, "")
    beyond = verdict(Estimate(0.1, 0.05, 0.15, 50, ""))
    assert _beyond_noise(orders, repeats, beyond).endswith("beyond noise on the 50 questions of both.")


def test_adaptive_asks_less_and_says_the_same() -> None:
    full, talker = audit(RuleChat(takes_a), QUESTIONS), RuleChat(takes_a)
    found = audit(talker, QUESTIONS, adaptive=True)
    # known answers agree in two orders: all those with more than two orders but ten are asked no further
    assert found.replies.adaptive.agreeing == 16
    assert found.replies.adaptive.checked == 10
    assert len(found.run.adaptive.stopped) == 6
    assert len(talker.asked) == len(found.responses) == found.replies.adaptive.requests
    assert found.replies.adaptive.requests_of_all == len(full.responses)
    assert found.replies.adaptive.other_vote.value == 0
    for name in ("accuracy", "expected_accuracy", "robust_accuracy", "vote_accuracy", "consistency"):
        assert found.metrics.means[name].value == pytest.approx(full.metrics.means[name].value), name
        assert found.metrics.means[name].n == 48
    assert found.metrics.counts.incomplete == 0
    assert found.metrics.preference.unsure.value == pytest.approx(full.metrics.preference.unsure.value)
    assert "falls back on A" in said(found)
    assert found.page().about.endswith("48 questions, 42 in 2 to 6 orders")
    assert full.page().about.endswith("48 questions, each in 2 to 6 orders")
    assert not found.metrics.over_orders.tests
    assert any("drawn at random" in line for line in adaptive_lines(found.replies.adaptive))


def test_a_random_part_in_all_orders_asks_less_and_represents_the_others() -> None:
    full, talker = audit(RuleChat(takes_a), QUESTIONS), RuleChat(takes_a)
    found = audit(talker, QUESTIONS, in_all_orders=0.5)
    counts = found.scores.order_counts
    assert len(found.run.adaptive.checked) == (counts > 0).sum() == 30
    assert len(talker.asked) == len(found.responses) == found.replies.adaptive.requests
    assert found.replies.adaptive.requests_of_all == len(full.responses)
    assert found.metrics.means["accuracy"].value == full.metrics.means["accuracy"].value
    for name in ("expected_accuracy", "robust_accuracy", "consistency"):
        own, every = found.metrics.means[name], full.metrics.means[name]
        assert own.low <= every.value <= own.high
        assert own.high - own.low > every.high - every.low
        assert own.n == 48
    assert found.metrics.counts.incomplete == 0
    assert found.variance_components is not None  # the part is random: its pages are, too
    assert any("30 of 48 questions, drawn at random" in note for note in found.page().notes)


@pytest.mark.slow
def test_adaptive_is_right_on_average_where_two_orders_agree_by_chance() -> None:
    """A talker without knowledge agrees with itself now and then, and is not consistent for that."""
    questions = [
        Question(f"q{i:03}", f"Which is number {2 * i + 1}?", tuple("wxyz"[:n]), frozenset({i % n}))
        for i, n in enumerate([4, 2, 3] * 40)
    ]

    def fickle(stem: str, labels: list[str], texts: list[str]) -> str:
        return f"Answer: {random.Random(stem + ' '.join(texts)).choice(labels)}"

    full = audit(RuleChat(fickle), questions, orders="all")
    truth, whole = full.metrics.means, measure(full.scores)
    given, back = full.scores.given, full.scores.reversed
    agree = (given.chosen == back.chosen) & (full.scores.n_options > 2)  # two options have no further orders
    agreeing_ids = np.asarray(full.scores.ids)[agree]
    assert 10 < len(agreeing_ids) < 60
    drawn: dict[str, list[float]] = {}
    for seed in range(200):
        stopped = np.random.default_rng(seed).choice(agreeing_ids, len(agreeing_ids) - 5, replace=False)
        checked = tuple(set(agreeing_ids) - set(stopped))
        adaptive = AdaptiveRun(stopped=tuple(stopped), checked=checked, requests_of_all=0)
        left_out = Responses(full.responses.table, Run(adaptive=adaptive))
        values = extended_measures(read_scores(left_out), None)
        for name in ("expected_accuracy", "robust_accuracy", "vote_accuracy", "consistency"):
            drawn.setdefault(name, []).append(float(np.mean(values[name])))
    for name, values in drawn.items():
        error = np.std(values, ddof=1) / np.sqrt(len(values))
        assert abs(np.mean(values) - truth[name].value) <= 4 * error + 1e-9, name
    # without the random few, two orders that agree would pass for all of them
    assert np.where(agree, 1.0, whole["consistency"]).mean() > truth["consistency"].value + 0.1


def test_confidence_is_read_where_it_is_stated() -> None:
    def rule(stem: str, labels: list[str], texts: list[str]) -> str:
        sure = "\nConfidence: 90%" if number(stem) % 3 else ""
        return takes_a(stem, labels, texts) + sure

    found = audit(RuleChat(rule), QUESTIONS).replies.calibration
    assert found["confidence"].value == pytest.approx(0.9)
    assert found["ece"].value == pytest.approx(abs(0.9 - found["right"].value))
    assert found["brier"].value == pytest.approx(found["right"].value * 0.01 + (1 - found["right"].value) * 0.81)
    assert audit(RuleChat(takes_a), QUESTIONS).replies.calibration is None


def test_the_template_asks_for_the_answer() -> None:
    alone, reasoning = RuleChat(takes_a), RuleChat(takes_a)
    audit(alone, QUESTIONS[2:3])
    audit(reasoning, QUESTIONS[2:3], reasoning=True)
    assert "label of the right option alone" in alone.asked[0]
    assert alone.asked[0].endswith("Answer:")
    assert "step by step" in reasoning.asked[0]
    assert 'says "Answer:" and the label of the right option: A, B, C or D.' in reasoning.asked[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"reasoning": True, "template": "plain"}, "reasoning has its own template"),
        ({"to_end": True}, "leave it out"),
        ({"orders": "many"}, "unknown orders"),
        ({"repeats": 0}, "give 1 or more"),
        ({"calibrate": 1.5}, "give 0 to 1"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anybody_is(options: dict[str, object], message: str) -> None:
    talker = RuleChat(takes_a)
    with pytest.raises(InputError, match=message):
        audit(talker, QUESTIONS, **options)
    assert not talker.asked


@pytest.mark.parametrize("name", ["adaptive", "reasoning"])
def test_what_is_about_replies_is_refused_where_labels_are_scored(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} applies only to generated replies"):
        audit("prefers-a", QUESTIONS, **{name: True})


def test_a_local_model_says_the_label_it_scores_highest() -> None:
    talker = open_chat("prefers-a", generate=GenerateOptions(max_tokens=1))
    words = audit(talker, limit=40, template="plain")
    assert words.metrics.counts.unanswered_rows == 0
    scored = audit("prefers-a", limit=40)
    best = {
        (row.question_id, row.contents): row.contents[int(np.argmax(row.logprobs))]
        for row in scored.responses.where(kind=("order", "given")).rows()
    }
    shared = [row for row in words.responses.rows() if (row.question_id, row.contents) in best]
    assert len(shared) > 100
    assert all(row.choice == best[row.question_id, row.contents] for row in shared)
    assert "falls back on A" in said(words)
