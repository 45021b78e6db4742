"""Numbers of the unbiased evaluator against small tables worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from unslant.errors import InputError
from unslant.presentations import NONE
from unslant.responses import Response, Responses
from unslant.studies.unbiased.metrics import BoatMetrics, UnbiasedResult


def fields_of(name):
    """Kind, run and item of ``vanilla``, ``boat:RUN``, ``boat:RUN:ITEM`` and ``only:INTERVENTION``."""
    kind, *parts = name.split(":")
    run = int(parts.pop(0)) if kind == "boat" else 0
    return kind, run, ":".join(parts)


def row(question_id, presentation, right, *, none=None, n=4, interventions=(), subject="", status="ok"):
    """One scored row; ``none``: "right" (none is right), "wrong" (offered), or None (not offered)."""
    contents = [*range(n)] + ([NONE] if none else [])
    answers = frozenset({NONE if none == "right" else 0})
    target = contents.index(min(answers)) if right else 1
    logprobs = np.full(len(contents), -5.0)
    logprobs[target] = -0.1
    kind, run, item = fields_of(presentation)
    return Response(
        question_id,
        kind,
        "cloze",
        tuple("ABCDEFGH"[: len(contents)]),
        tuple(contents),
        answers,
        n,
        logprobs=logprobs if status == "ok" else np.full(len(contents), np.nan),
        status=status,
        interventions=interventions,
        subject=subject,
        text_ranks=tuple(range(n)),
        run=run,
        item=item,
    )


def boat_metrics(responses: Responses) -> BoatMetrics:
    return UnbiasedResult.of(responses).metrics


def table(*rows) -> Responses:
    return Responses.from_rows(rows)


def test_vanilla_ours_and_drop():
    rows = []
    for q in range(10):
        rows.append(row(f"q{q}", "vanilla", q < 8))
        rows.append(row(f"q{q}", "boat:0", q < 6))
        rows.append(row(f"q{q}", "boat:1", q < 4))
    found = boat_metrics(table(*rows))
    assert found.vanilla.value == pytest.approx(0.8)
    assert found.ours.value == pytest.approx(0.5)
    assert found.drop.value == pytest.approx(0.3)
    assert (found.vanilla.n, found.ours.n, found.drop.n) == (10, 10, 10)
    assert found.drop.low < 0.3 < found.drop.high
    assert found.runs == (0.6, 0.4)
    assert found.run_std == pytest.approx(math.sqrt(0.02))
    assert found.vanilla_chance.value == found.ours_chance.value == 0.25
    confusion = found.confusion
    assert (confusion["both"].value, confusion["lost"].value) == (pytest.approx(0.5), pytest.approx(0.3))
    assert (confusion["gained"].value, confusion["neither"].value) == (pytest.approx(0.0), pytest.approx(0.2))


def test_true_false_items_are_right_only_together():
    rows = [row("a", "vanilla", True), row("b", "vanilla", True)]
    rows += [row("a", f"boat:0:{i}", True, n=2, interventions=("BT",)) for i in range(4)]
    rows += [row("b", f"boat:0:{i}", i > 0, n=2, interventions=("BT",)) for i in range(4)]
    found = boat_metrics(table(*rows))
    assert found.ours.value == 0.5
    assert found.items.value == pytest.approx(7 / 8)
    assert found.ours_chance.value == pytest.approx(1 / 16)


def test_none_found_and_invented():
    rows = [row(f"q{i}", "boat:0", i < 3, none="right", interventions=("DH", "AR")) for i in range(4)]
    rows += [row(f"p{i}", "boat:0", True, none="wrong", interventions=("DH",)) for i in range(3)]
    invented = row("p3", "boat:0", True, none="wrong", interventions=("DH",))
    invented = replace(invented, logprobs=np.where(np.array(invented.contents) == NONE, 0.0, -5.0), chosen=None)
    found = boat_metrics(table(*rows, invented))
    assert (found.none_found.value, found.none_found.n) == (0.75, 4)
    assert (found.none_invented.value, found.none_invented.n) == (0.25, 4)
    assert found.ours_chance.value == pytest.approx(0.2)


def test_single_interventions_are_paired_with_the_same_questions():
    rows = [row(f"q{i}", "vanilla", i < 5) for i in range(10)]
    rows += [row(f"q{i}", "only:OS", i == 0, interventions=("OS",)) for i in range(4)]
    alone = boat_metrics(table(*rows)).alone["OS"]
    assert (alone["accuracy"].value, alone["vanilla"].value, alone["change"].value) == (0.25, 1.0, -0.75)
    assert alone["accuracy"].n == alone["change"].n == 4


def test_failures_are_left_out_and_counted():
    rows = [row("a", "vanilla", True), row("b", "vanilla", True), row("a", "boat:0", True)]
    rows += [row("b", "boat:0", False, status="error"), row("b", "boat:1", True), row("a", "boat:1", False)]
    found = boat_metrics(table(*rows))
    assert found.failed == 1
    assert found.ours.value == pytest.approx(0.75)
    assert found.runs == (1.0, 0.5)


def reply(question_id, presentation, status, chosen=None):
    kind, run, item = fields_of(presentation)
    return Response(
        question_id, kind, "generate", tuple("ABCD"), (0, 1, 2, 3), frozenset({0}), 4,
        chosen=chosen, status=status, text_ranks=(0, 1, 2, 3), run=run, item=item,
        interventions=("OS",) if kind == "only" else (),
    )  # fmt: skip


def test_one_denominator():
    """Replies that are no answer are not right; where none came, the presentation is left out and counted."""
    rows = [reply(q, "vanilla", "ok", frozenset({0})) for q in "abcd"]
    rows += [reply("a", "boat:0", "ok", frozenset({0})), reply("b", "boat:0", "ok", frozenset({1}))]
    rows += [reply("c", "boat:0", "unparsed"), reply("d", "boat:0", "refused")]
    rows += [reply("a", "boat:1", "unparsed"), reply("b", "boat:1", "error"), reply("c", "boat:1", "error")]
    rows += [reply("a", "only:OS", "refused"), reply("b", "only:OS", "ok", frozenset({0}))]
    found = boat_metrics(table(*rows))
    assert (found.ours.value, found.ours.n) == (pytest.approx((0.5 + 0 + 0 + 0) / 4), 4)
    assert (found.failed, found.no_answer) == (2, 4)
    ours = found.replies["ours"]
    assert ours["unparsed"].value == pytest.approx((0.5 + 0 + 1 + 0) / 4)
    assert ours["refused"].value == pytest.approx(0.25)
    assert ours["unreadable"].value == pytest.approx(ours["unparsed"].value + ours["refused"].value)
    assert ours["errors"].value == pytest.approx((0 + 0.5 + 0.5 + 0) / 4)
    assert (ours["readable"].value, ours["readable"].n) == (0.5, 2)
    assert found.alone["OS"]["accuracy"].value == found.alone["OS"]["unreadable"].value == 0.5
    assert found.confusion["lost"].value == pytest.approx((0.5 + 1 + 1 + 1) / 4)


def test_an_item_without_an_answer_spoils_the_question():
    rows = [
        reply("a", f"boat:0:{i}", "refused" if i == 1 else "ok", frozenset({0}) if i != 1 else None) for i in (0, 1)
    ]
    found = boat_metrics(table(*rows))
    assert found.ours.value == 0.0
    assert not found.replies["ours"]["readable"].defined


def test_by_subject():
    rows = [
        row(f"{s}{i}", p, i < k, subject=s)
        for s, k in (("law", 2), ("art", 4))
        for p in ("vanilla", "boat:0")
        for i in range(4)
    ]
    found = boat_metrics(table(*rows))
    assert {name: {key: e.value for key, e in by.items()} for name, by in found.by_subject.items()} == {
        "art": {"vanilla": 1, "ours": 1},
        "law": {"vanilla": 0.5, "ours": 0.5},
    }


def test_the_first_of_equal_labels_counts():
    tied = row("a", "vanilla", True)
    assert replace(tied, logprobs=np.full(4, -1.0), chosen=None).is_right
    tied = row("a", "vanilla", True, none="right")
    assert not replace(tied, logprobs=np.full(5, -1.0), chosen=None).is_right


@pytest.mark.parametrize(
    ("chosen", "right"),
    [({0}, 1.0), ({2}, 1.0), ({0, 2}, 1.0), ({0, 1}, 0.0), ({1}, 0.0), ({NONE}, 0.0), (set(), 0.0), (None, math.nan)],
)
def test_answers_in_words_must_be_the_right_set_of_texts(chosen, right):
    answer = Response(
        "q", "vanilla", "generate", ("A", "B", "C"), (0, 1, 2), frozenset({0, 2}), 3,
        chosen=None if chosen is None else frozenset(chosen), text_ranks=(1, 0, 1),
    )  # fmt: skip
    result = UnbiasedResult.of(table(answer))
    assert result.metrics.vanilla.value == pytest.approx(right, nan_ok=True)
    assert result.of_questions()["right"] == [int(right == 1.0)], "its row in to_pandas says the same as the score"


def test_other_responses_are_refused():
    with pytest.raises(InputError, match="no presentation of the unbiased evaluator"):
        boat_metrics(table(row("a", "given", True)))


def test_the_result_is_plain_json():
    import json

    found = boat_metrics(
        table(row("a", "vanilla", True), row("a", "boat:0", False), row("a", "only:LR", True, interventions=("LR",)))
    )
    text = json.dumps(found.to_dict(), allow_nan=False)
    assert json.loads(text)["drop"]["value"] == 1.0


def test_an_intervention_that_there_is_none_is_refused_with_its_question():
    odd = row("q7", "only:OS", True, interventions=("\u202e",))
    with pytest.raises(InputError, match=r"question 'q7': interventions: '\\u202e' is not one of "):
        boat_metrics(table(row("q7", "vanilla", True), odd))
    with pytest.raises(InputError, match=r"question 'q7': interventions: none is named"):
        boat_metrics(table(row("q7", "vanilla", True), row("q7", "only:OS", True)))


def test_guessing_accounts_for_no_more_than_the_whole_drop():
    """Of two options, guessing is right half the time, with "none of these" a third: 0.17 less, "of" a drop of 0.08."""
    known = {"vanilla": 50, "boat:0": 42}

    def page(n: int):
        none = {"vanilla": None, "boat:0": "wrong"}
        rows = [row(f"q{q}", name, q < known[name], n=n, none=none[name]) for name in known for q in range(100)]
        return UnbiasedResult.of(table(*rows)).page()

    assert "scores 0.50 as published, but 0.08 (" in page(2).headline
    assert page(2).lines[0].endswith(", so guessing alone could account for all of that.")
    assert page(4).lines[0].endswith(", so guessing alone accounts for about 0.03 of that.")
