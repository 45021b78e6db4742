"""The study of judges where its data are few, unbalanced, tied or misleading: no number is wrong without a word."""

from __future__ import annotations

import json
import math
import re
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.chatting import RuleChat
from tests.first_screens import said
from tests.studies.planted_judges import HABITS, Habit, judged
from unslant.errors import InputError
from unslant.metrics.sampling import Sampling
from unslant.presentations import present
from unslant.questions import Question
from unslant.responses import Response, Responses, Run
from unslant.studies import compare
from unslant.studies.judge.measures import MAPPED, PRIOR, abstention
from unslant.studies.judge.result import JudgeComparison, JudgeResult
from unslant.studies.judge.strengths import _change, fitted
from unslant.studies.judge.study import judge
from unslant.studies.judge.verdicts import Verdicts

Page = tuple[Sequence[int], set[int] | None]
"""The order shown, and the answers preferred."""


def pair(name: str, n: int = 2, **fields: Any) -> Question:
    answers = frozenset(fields.pop("answers", {0}))
    return Question(name, fields.pop("stem", f"{name}?"), tuple(f"{name} {k}" for k in range(n)), answers, **fields)


def responses(pages: Sequence[tuple[Question, Sequence[Page]]]) -> Responses:
    """Pages in words; one shown again in the same order is another sample."""
    rows = []
    for question, shown in pages:
        seen: list[tuple[int, ...]] = []
        for order, chosen in shown:
            repeat = seen.count(tuple(order))
            seen.append(tuple(order))
            status = "unparsed" if chosen is None else "ok"
            rows.append(
                Response.of(question, present(question, tuple(order)), "generate", status=status, repeat=repeat,
                            chosen=None if chosen is None else frozenset(chosen))
            )  # fmt: skip
    return Responses(Responses.from_rows(rows).table, Run(study="judge", model="made"), tuple(q for q, _ in pages))


def scored(pages: Sequence[tuple[Question, tuple[float, float]]]) -> Responses:
    """Pairs in both orders, by P(answer shown first) in each."""
    rows = []
    for question, firsts in pages:
        for order, first in zip(((0, 1), (1, 0)), firsts, strict=True):
            logprobs = np.log([first, 1 - first])
            rows.append(Response.of(question, present(question, order), "cloze", logprobs=logprobs))
    return Responses(Responses.from_rows(rows).table, Run(study="judge", model="made"), tuple(q for q, _ in pages))


BOTH = ((0, 1), (1, 0))
ROTATIONS = ((0, 1, 2, 3), (1, 2, 3, 0), (2, 3, 0, 1), (3, 0, 1, 2))


def test_a_changed_winner_of_a_list_is_not_put_down_to_its_place() -> None:
    lists = [
        (pair("place", 4), [(order, {order[0]}) for order in ROTATIONS]),
        (pair("any", 4), [(order, {winner}) for order, winner in zip(ROTATIONS, (0, 0, 1, 1), strict=True)]),
        (pair("same", 4), [(order, {2}) for order in ROTATIONS]),
        (pair("tie", 4), [(order, {0, 1} if order[0] == 0 else {0}) for order in ROTATIONS]),
        (pair("none", 4), [(order, None if order[0] == 0 else {0}) for order in ROTATIONS]),
    ]
    assert dict(JudgeResult.of(responses(lists)).changes) == {
        "same verdict": 1, "winner follows the place": 1, "to or from a tie": 1, "another winner, not by its place": 1,
        "no decision in an order": 1,
    }  # fmt: skip


def test_orders_count_the_same_however_often_each_was_judged() -> None:
    """A judge that always prefers the first answer of the file, three times asked in its order and once swapped."""
    pages = [((0, 1), {0}), ((0, 1), {0}), ((0, 1), {0}), ((1, 0), {0})]
    result = JudgeResult.of(responses([(pair(f"q{k}"), pages) for k in range(30)]))
    assert result.places["moved"].value == 0
    assert result.places["stability"].value == 1
    split = [((0, 1), {0}), ((0, 1), {0}), ((1, 0), {1})]
    assert JudgeResult.of(responses([(pair("q"), split)])).verdicts.voted.sum() == 2


def test_orders_that_favour_an_answer_say_nothing_of_places() -> None:
    """The best answer first in both of two orders out of four."""
    pages = [((0, 1, 2, 3), {0}), ((0, 3, 2, 1), {0})]
    result = JudgeResult.of(responses([(pair(f"q{k}", 4), pages) for k in range(30)]))
    assert not result.places["moved"].defined
    assert "first as often as last" in result.places["moved"].note


def test_equal_scores_are_a_tie() -> None:
    result = JudgeResult.of(scored([(pair(f"q{k}"), (0.5, 0.5)) for k in range(30)]))
    assert result.places["consistency"].value == 1
    assert result.places["ties"].value == 1
    assert result.rights["right_voted"].value == 0
    assert {one.way: one["right"].value for one in result.corrected_verdicts} == dict.fromkeys(
        ["one order, as published", "vote over both orders", PRIOR, MAPPED], 0.0
    )


def test_corrections_are_fitted_on_other_questions() -> None:
    (one,) = [
        {way.way: way["right"] for way in result.corrected_verdicts}
        for result in [JudgeResult.of(scored([(pair("q"), (0.9, 0.8))]))]
    ]
    assert math.isnan(one[PRIOR].value)
    assert math.isnan(one[MAPPED].value)
    # Two pairs about one question are never on both sides.
    rng = np.random.default_rng(0)
    pages = [(pair(f"q{k}", stem=f"{k // 2}?"), tuple(rng.uniform(0.1, 0.9, 2))) for k in range(40)]
    alone = JudgeResult.of(scored(pages[:2])).corrected_verdicts
    assert JudgeResult.of(scored(pages)).corrected_verdicts[2]["right"].n == 40
    assert len(alone) == 4


def test_a_prior_over_places_is_taken_away() -> None:
    """A judge whose odds for the first place are four times too high."""
    rng = np.random.default_rng(1)
    pages = []
    for k in range(200):
        lean = rng.normal(1.0 if k % 2 else -1.0, 0.5)
        question = pair(f"q{k}", answers={0} if lean > 0 else {1})
        pages.append((question, tuple(1 / (1 + np.exp(-np.array([lean + 1.4, 1.4 - lean]))))))
    ways = {one.way: one["right"].value for one in JudgeResult.of(scored(pages)).corrected_verdicts}
    assert ways["one order, as published"] < 0.85
    assert ways[PRIOR] > 0.95
    assert ways[MAPPED] > 0.95


def test_abstention_goes_by_probabilities_and_by_questions() -> None:
    """Probabilities name an answer where decisions are split, and copies of one question are one question."""
    split = [(pair(f"q{k}", answers={k % 2}), (0.95, 0.55) if k % 2 == 0 else (0.55, 0.95)) for k in range(200)]
    found = abstention(Verdicts.of(scored(split)), 0.1)
    assert found is not None
    assert found.margin == pytest.approx(0.4)
    assert found.wrong.value == 0
    copies = [(pair(f"q{k}", stem=f"{k % 10}?"), (0.9, 0.1)) for k in range(200)]
    few = abstention(Verdicts.of(scored(copies)), 0.1)
    assert few is not None
    assert few.margin is None


def test_labels_that_all_name_one_place_have_no_kappa() -> None:
    """As in files that list the chosen answer before the rejected one."""
    pages = [(pair(f"q{k}"), [(order, {int(k % 10 == 0)}) for order in BOTH]) for k in range(50)]
    result = JudgeResult.of(responses(pages))
    assert result.rights["right_voted"].value == 0.9
    assert not result.rights["kappa"].defined
    assert "different places" in result.rights["kappa"].note


def test_a_system_without_a_verdict_is_not_ranked() -> None:
    """One of which only lists of three were judged, and two that meet only each other."""
    found = judged(HABITS["neither"], seed=0, pairs=120)
    three = pair("list", 3, authors=("amber", "birch", "zeta"))
    others = responses([(three, [((0, 1, 2), {2})])])
    both = Responses(Responses.from_rows([*found.rows(), *others.rows()]).table, found.run, (*found.questions, three))
    result = JudgeResult.of(both)
    assert {one.system for one in result.systems} == {"amber", "birch", "cedar", "dune"}
    assert [one.rank for one in result.systems] == [1, 2, 3, 4]
    assert {name for one in result.matches for name in (one.higher, one.lower)}.isdisjoint({"zeta"})
    assert "zeta" in " ".join(result.page().notes)
    apart = [replace(one, authors=("zeta", "yarrow")) for one in (pair(f"z{k}") for k in range(40))]
    strangers = responses([(one, [(order, {k % 2}) for order in BOTH]) for k, one in enumerate(apart)])
    rows = [*found.rows(), *strangers.rows()]
    result = JudgeResult.of(Responses(Responses.from_rows(rows).table, found.run, (*found.questions, *apart)))
    assert result.systems == ()
    assert "from each other" in " ".join(result.page().notes)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "pages"),
    [
        ("one pair", [(pair("q"), [((0, 1), {0}), ((1, 0), {1})])]),
        ("one page", [(pair("q"), [((0, 1), {0})])]),
        ("all ties", [(pair(f"q{k}", answers={0, 1}), [(order, {0, 1}) for order in BOTH]) for k in range(30)]),
        ("no decision", [(pair(f"q{k}"), [(order, None) for order in BOTH]) for k in range(30)]),
        ("no label", [(pair(f"q{k}", answers=()), [(order, {0}) for order in BOTH]) for k in range(30)]),
        ("lists with ties", [(pair(f"q{k}", 4, answers={0, 1}), [(o, {0, 1}) for o in ROTATIONS]) for k in range(30)]),
        ("equal", [(replace(pair(f"q{k}"), options=("x", "x")), [(o, {o[0]}) for o in BOTH]) for k in range(30)]),
    ],
)  # fmt: skip
def test_every_number_has_an_n_or_says_why_not(name: str, pages: list[Any], tmp_path: Path) -> None:
    result = JudgeResult.of(responses(pages))
    for numbers in (result.places, result.rights, result.lengths, result.odds, *result.corrected_verdicts):
        for key in numbers.numbers if hasattr(numbers, "numbers") else numbers:
            value = numbers[key.key]
            assert value.defined or value.note, key
            assert value.defined <= (value.n > 0), key
    result.to_html(tmp_path / "o.html")
    assert json.dumps(result.to_dict(), allow_nan=False)
    if name in ("all ties", "lists with ties"):
        assert result.places["ties"].value == 1
        assert result.rights["right_both"].value == 1
    if name == "no decision":
        assert result.places["consistency"].value == 0
        assert not result.places["moved"].defined


def test_what_is_no_verdict_has_no_share_of_one() -> None:
    """A reply that prefers none of several; scores whose best may be a label that the server did not return."""
    lists = [(pair("q", 4), [(ROTATIONS[0], {-1}), (ROTATIONS[1], {1, 2})])]
    none, tie = Verdicts.of(responses(lists)).credit
    assert np.isnan(none).all()
    assert tie.tolist() == [0, 0.5, 0.5, 0]
    page = present(pair("q"), (1, 0))
    rows = [Response.of(pair("q"), page, "cloze", logprobs=np.log([0.8, 0.2]), status=s) for s in ("censored", "ok")]
    verdicts = Verdicts.of(Responses.from_rows([rows[0], replace(rows[1], repeat=1)]))
    assert np.isnan([verdicts.credit[0], verdicts.probs[0]]).all()
    assert (verdicts.credit[1].tolist(), verdicts.order[1].tolist()) == ([0, 1], [1, 0])
    assert verdicts.probs[1] == pytest.approx([0.2, 0.8])
    assert (verdicts.stems, verdicts.systems) == (("q",), ())  # texts and systems are not known
    with pytest.raises(InputError, match="no judgements: nothing to measure"):
        Verdicts.of(Responses.from_rows([]))


def test_answers_of_one_system_are_not_told_apart_by_it() -> None:
    pages = [(pair(f"q{k}", authors=authors), [(o, {0}) for o in BOTH])
             for k, authors in enumerate((("x", "y"), ("z", "z"), ()))]  # fmt: skip
    verdicts = Verdicts.of(responses(pages))
    assert [[verdicts.systems[i] if i >= 0 else "" for i in row] for row in verdicts.system] == [
        ["x", "y"], ["", ""], ["", ""]
    ]  # fmt: skip
    assert Verdicts.of(responses(pages[1:])).systems == ()


def test_judges_whose_files_list_answers_otherwise_are_compared_by_their_texts() -> None:
    rng = np.random.default_rng(0)
    best = rng.integers(2, size=60).tolist()
    one = responses([(pair(f"q{k}"), [(order, {best[k]}) for order in BOTH]) for k in range(60)])
    turned = [replace(pair(f"q{k}"), options=(f"q{k} 1", f"q{k} 0")) for k in range(60)]
    two = responses([(turned[k], [(order, {1 - best[k]}) for order in BOTH]) for k in range(60)])
    agreed = JudgeComparison.of([JudgeResult.of(one), JudgeResult.of(two)])
    assert agreed.agreement[0]["share"].value == 1
    assert agreed.agreement[0]["kappa"].value == pytest.approx(1)
    assert agreed.alpha["alpha"].value == pytest.approx(1)
    others = responses([(pair(f"q{k}", stem="other?"), [(order, {0}) for order in BOTH]) for k in range(60)])
    assert JudgeComparison.of([JudgeResult.of(one), JudgeResult.of(others)]).agreement[0]["share"].n == 0


def test_the_headline_does_not_take_a_missing_decision_for_another_verdict() -> None:
    pages = [(pair(f"q{k}"), [((0, 1), {0}), ((1, 0), None if k < 9 else {0})]) for k in range(30)]
    headline = JudgeResult.of(responses(pages)).page().headline
    assert "changes 0.30 (0.16 to 0.48) of its verdicts on 30 pairs" in headline
    assert "swapped, counting 9 pairs without a decision in an order; it is right" in headline


@pytest.mark.parametrize("pairs", [30, 200])
def test_a_judge_that_always_prefers_the_longer_answer_is_named(pairs: int) -> None:
    """Wald's interval of so strong a preference would include none."""
    rng = np.random.default_rng(0)
    sizes = rng.integers(1, 200, (pairs, 2)).tolist()
    questions = [
        replace(pair(f"q{k}", answers={k % 2}), options=("x" * a, "y" * (a + b))) for k, (a, b) in enumerate(sizes)
    ]
    for longer in (True, False):
        result = JudgeResult.of(responses([(one, [(order, {int(longer)}) for order in BOTH]) for one in questions]))
        length = next(one for one in result.habits if one.name == "length")
        assert length.verdict.kind == ("above" if longer else "below")
        assert f"prefers {'longer' if longer else 'shorter'} answers (the longer one gets {float(longer):.2f}" in str(
            result.page().lines
        )


def test_judges_of_pairs_with_equal_texts_are_compared_by_place() -> None:
    """As of logs without texts: two judges that never agree do not agree by having chosen the same text."""
    pairs = [replace(pair(f"q{k}"), options=("", "")) for k in range(60)]
    tables = [
        responses([(one, [(order, {(k + j) % 2}) for order in BOTH]) for k, one in enumerate(pairs)]) for j in (0, 1)
    ]
    agreed = JudgeComparison.of([JudgeResult.of(table) for table in tables])
    assert agreed.agreement[0]["share"].value == 0
    assert agreed.agreement[0]["kappa"].value == pytest.approx(-1)


def test_judges_are_compared_from_python_and_from_files(tmp_path: Path) -> None:
    pages = [(pair(f"q{k}"), [(order, {0}) for order in BOTH]) for k in range(30)]
    one = JudgeResult.of(responses(pages))
    one.to_parquet(tmp_path / "other.parquet")
    compared = compare(one, tmp_path / "other.parquet")
    assert isinstance(compared, JudgeComparison)
    assert compared.agreement[0]["share"].value == 1
    with pytest.raises(InputError, match=r"results of judge cannot be compared: give results of one of audit, .*judge"):
        compare(compared, one)  # a comparison is not a result of one judge
    with pytest.raises(InputError, match="nothing to compare"):
        compare(one)


def test_agreement_beyond_chance_is_that_of_the_books() -> None:
    """Cohen's kappa and Krippendorff's alpha of a table worked by hand: 20 A A, 5 A B, 10 B A, 15 B B."""
    votes = [(0, 0)] * 20 + [(0, 1)] * 5 + [(1, 0)] * 10 + [(1, 1)] * 15
    tables = [responses([(pair(f"q{k}"), [((0, 1), {two[j]})]) for k, two in enumerate(votes)]) for j in range(2)]
    agreed = JudgeComparison.of([JudgeResult.of(table) for table in tables])
    assert agreed.agreement[0]["kappa"].value == pytest.approx(0.4)
    assert agreed.alpha["alpha"].value == pytest.approx(1 - (30 / 100) / (2 * 55 * 45 / (100 * 99)))


def test_options_of_judges_are_checked_from_python_too() -> None:
    with pytest.raises(InputError, match=r"repeats 2\.5: give a whole number"):
        judge("fair", "embedded-pairs", repeats=2.5)


def test_a_model_is_asked_again() -> None:
    records = [{"prompt": f"Is {k} even?", "chosen": "yes", "rejected": "no, it is not"} for k in range(0, 40, 2)]
    asked: dict[str, int] = {}

    def answer(stem: str, *_: Any) -> str:
        asked[stem] = asked.get(stem, 0) + 1
        return f"Assistant {'A' if asked[stem] <= 2 or '0' in stem else 'B'} is better."

    result = judge(RuleChat(answer), records, repeats=2)
    assert len(result.responses) == 80
    assert result.places["stability"].n == 20
    assert 0 < result.places["stability"].value < 1


def test_judges_of_one_name_in_two_folders_stay_two(tmp_path: Path) -> None:
    table = judged(HABITS["neither"], seed=0, pairs=30)
    results = [JudgeResult.of(replace(table, run=replace(table.run, model=name))) for name in ("a/critic", "b/critic")]
    compared = JudgeComparison.of(results)
    compared.to_parquet(tmp_path / "o.parquet")
    assert len(list(tmp_path.iterdir())) == 2
    assert [(one.one, one.other) for one in compared.agreement] == [("a/critic", "b/critic")]
    page = compared.page()
    assert len(page.tiles) == 2
    assert "from a/critic" in page.headline or "from b/critic" in page.headline


def test_files_of_one_name_in_two_folders_are_two_judges(tmp_path: Path) -> None:
    for folder, decisions in (("one", "AB"), ("two", "AA")):
        (tmp_path / folder).mkdir()
        rows = [
            {"question": f"Is {k} even?", "response_A": "yes", "response_B": "no", "order": order, "decision": decision}
            for k in range(20) for order, decision in zip(("AB", "BA"), decisions, strict=True)
        ]  # fmt: skip
        (tmp_path / folder / "judgements.jsonl").write_text("\n".join(map(json.dumps, rows)))
    compared = judge(log=[tmp_path / folder / "judgements.jsonl" for folder in ("one", "two")])
    assert isinstance(compared, JudgeComparison)
    consistency = {one.model: one.places["consistency"].value for one in compared.results}
    assert consistency == {"one/judgements": 1.0, "two/judgements": 0.0}


def test_a_judge_that_nearly_only_ties_says_nothing_about_length_or_systems() -> None:
    found = judged(HABITS["neither"], seed=0, pairs=120)
    rows = [
        row if i < 4 else replace(row, chosen=frozenset(row.contents), logprobs=None)
        for i, row in enumerate(found.rows())
    ]
    result = JudgeResult.of(Responses(Responses.from_rows(rows).table, found.run, found.questions))
    assert result.places["ties"].value > 0.9
    assert "length" not in {one.name for one in result.habits}
    assert result.systems == ()
    assert "too few verdicts are clear" in " ".join(result.page().notes)


def test_ties_are_counted_of_the_verdicts() -> None:
    result = JudgeResult.of(judged(HABITS["even ties"], 1, 60))
    ties = int(result.verdicts.tied.sum())
    assert f"{ties} of 120 verdicts are ties." in said(result)


def test_ties_are_the_share_of_the_verdicts_that_the_first_screen_counts() -> None:
    """Of pairs with one decision a tie was counted twice: 0.367 in the table of 192 in 527 verdicts."""
    half: list[Page] = [((0, 1), {0, 1}), ((1, 0), None)]
    whole: list[Page] = [((0, 1), {0}), ((1, 0), {0})]
    result = JudgeResult.of(responses([(pair(f"q{k}"), half if k < 10 else whole) for k in range(30)]))
    assert result.places["ties"].value == pytest.approx(10 / 50)
    assert result.page().lines[2].startswith("10 of 50 verdicts are ties, 10 pages without a decision")


def test_more_ties_in_the_order_of_the_file_are_a_number_without_a_sign() -> None:
    """`ties more often in the file order (by −1.00 ...)`: the sentence has the sign."""
    pages: list[Page] = [((0, 1), {0, 1}), ((1, 0), {0})]
    result = JudgeResult.of(responses([(pair(f"q{k}"), pages) for k in range(40)]))
    assert result.places["tie_orders"].value == -1
    assert "ties more often in the file order (by 1.00 (0.8" in result.page().lines[0]


def test_a_margin_of_nearly_1_is_not_1() -> None:
    """No pair has a margin of 1.00 or more; these have 0.9988."""
    result = JudgeResult.of(scored([(pair(f"q{k}"), (0.9994, 0.0006)) for k in range(40)]))
    assert result.abstention is not None
    assert result.abstention.margin == pytest.approx(0.9988)
    assert "a margin of 0.999 or more" in result.summary(details=True)


def test_one_long_question_does_not_make_every_verdict_as_wide() -> None:
    table = judged(HABITS["place"], 1, 120)
    first, *others = table.questions
    long = Responses(table.table, table.run, (replace(first, stem="long " * 100_000), *others))
    v = Verdicts.of(long)
    tracemalloc.start()
    fit = fitted(v, v.systems)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    before = fitted(Verdicts.of(table), v.systems)
    assert fit
    assert before
    np.testing.assert_allclose(fit.coefficients, before.coefficients)
    assert peak < 20_000_000  # 240 verdicts of 500,000 characters are 480 MB


def test_abstention_counts_questions_once_and_not_at_every_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    firsts = [(0.9 - k / 1000, 0.1 + k / 2000) for k in range(300)]
    pages = [(pair(f"q{k}", stem=f"{k // 2}?"), one) for k, one in enumerate(firsts)]
    groups: list[int] = []
    group = Sampling._group

    def counted(sampling: Sampling, mask: Any) -> Any:
        groups.append(int(mask.sum()))
        return group(sampling, mask)

    monkeypatch.setattr(Sampling, "_group", counted)
    result = abstention(Verdicts.of(scored(pages)), 0.1)
    assert result
    assert result.kept.value == 1.0
    assert len(groups) < 10


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        (None, None, ""),
        (("x", "y"), ("x", "y"), ""),
        (("x", "y"), ("y", "x"), "turned round"),
        (("x", "y"), None, "no longer shown"),
        (None, ("x", "y"), "now shown"),
    ],
)
def test_what_correction_changes_about_two_systems(before: Any, after: Any, change: str) -> None:
    assert _change(before, after) == change


def test_odds_that_are_said_to_differ_from_1_are_not_rounded_to_1() -> None:
    """An interval of 0.51 to 0.997 was printed as "0.51 to 1.00", which holds the 1 that it excludes."""
    both = judged(Habit(place=0.8), 3, 120)
    first = [contents == [0, 1] for contents in both.table["contents"].to_pylist()]
    result = JudgeResult.of(replace(both, table=both.table.filter(first)))
    assert "prefers shorter answers" in said(result)
    high = re.search(r"odds times \S+ \(\S+ to (\S+)\)", said(result))
    assert high is not None
    assert 0.99 < float(high[1]) < 1
