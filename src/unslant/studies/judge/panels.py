"""Pages of the study of judges, with the pairs themselves, those whose verdict changes with the order first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from unslant.arrays import Ints, grouped
from unslant.experiment.page_parts import asked_about, cost_lines, in_ordinary_runs, logged_lines, spent
from unslant.metrics import METRICS, Estimate, verdicts
from unslant.metrics.estimate import FEWEST
from unslant.presentations import ALPHABETS
from unslant.reports import Column, Figure, Page, Panel, Plot, Tile, charts
from unslant.reports.numbers import count, listed, magnitude, number, percent, unsettled, with_interval
from unslant.reports.page import QuestionBrowser, packed_bytes, packed_probs
from unslant.studies.judge.result import NONE_IN_ODDS, NONE_WITHIN, JudgeComparison, JudgeHabit, JudgeResult
from unslant.studies.judge.strengths import SEPARATED
from unslant.studies.judge.verdicts import Verdicts

MOST_BYTES = 5_000_000
"""Size of the pairs that a page holds, at most."""
EXPLANATION = "Every pair in every order, with the verdict or its probabilities; a tie gives each answer its part."
FILTERS = {
    "verdict changes with the order": (("consistency", "=", 0),),
    "all pairs": (),
    "same verdict in every order": (("consistency", "=", 1),),
}
SORTS = {"moved by the place, most first": "-places.moved", "file order": ""}


def browser(results: Mapping[str, JudgeResult]) -> QuestionBrowser | None:
    """The pairs of one or more judges; None where no text is known."""
    texts = {question.id: question for one in results.values() for question in one.responses.questions}
    ids = list(texts)

    def data(places: Sequence[int]) -> dict[str, Any]:
        at = {ids[place]: i for i, place in enumerate(places)}
        questions = [
            {"id": q.id, "s": q.stem, "o": list(q.options), "a": sorted(q.answers), "u": q.subject, "p": []}
            for q in (texts[name] for name in at)
        ]
        return {"questions": questions, "runs": [_run(name, one.verdicts, at) for name, one in results.items()]}

    metric = METRICS["places.moved"]
    return QuestionBrowser(EXPLANATION, metric, FILTERS, SORTS, data, len(ids), MOST_BYTES) if ids else None


def _run(name: str, v: Verdicts, at: Mapping[str, int]) -> dict[str, Any]:
    rows = np.flatnonzero([members in at for members in v.ids])
    voted = np.where(v.voted.sum(axis=1) == 1, v.voted.argmax(axis=1), -1)
    right = (np.nan_to_num(v.credit) * v.right[v.pair]).sum(axis=1)
    measures = {
        "consistency": np.where(v.in_orders, v.same, np.nan),
        "expected_accuracy": np.where(v.labelled, v.per_pair(right), np.nan),
        "vote_accuracy": v.right[np.arange(len(v)), voted] & (voted >= 0),
        "places.moved": v.moved,
    }
    pages = [np.flatnonzero((v.pair == q) & (v.repeat == 0)) for q in rows]
    blocks = grouped(((int(v.exists[q].sum()), len(pages[i])), i) for i, q in enumerate(rows))
    return {
        "name": name,
        "labels": list(ALPHABETS["A"][: v.exists.shape[1]]),
        "at": [at[v.ids[q]] for q in rows],
        "measures": {
            key: [None if np.isnan(x) else round(float(x), 6) for x in np.asarray(values, float)[rows]]
            for key, values in measures.items()
        }
        | {"vote": voted[rows].tolist()},
        "blocks": [
            _block(v, np.stack([pages[i] for i in members]), members, n) for (n, k), members in blocks.items() if k
        ],
        "views": [],
    }


def _block(v: Verdicts, pages: Ints, members: Sequence[int], n: int) -> dict[str, Any]:
    probs = np.where(np.isfinite(v.probs[pages]), v.probs[pages], np.nan_to_num(v.credit[pages]))[..., :n]
    clear = probs.max(axis=2) > probs.min(axis=2)
    return {
        "index": list(members),
        "n": n,
        "k": pages.shape[1],
        "shared": False,
        "contents": packed_bytes(v.order[pages][..., :n]),
        "probs": packed_probs(probs),
        "chosen": packed_bytes(np.where(clear, probs.argmax(axis=2), 255)),
    }


_HABITS = {
    "place": ("a preference for a place", f"preference for a place that moves verdicts by {NONE_WITHIN} or more"),
    "length": ("a preference for longer or shorter answers", f"preference for length above {NONE_IN_ODDS} in log-odds"),
    "ties": ("more ties in one order", f"difference in ties of {NONE_WITHIN} or more"),
}
"""Habit -> what is asked, and what is excluded where it is shown to be small."""
_INTERVALS = partial(Plot, charts.intervals, of="pairs")


def page(result: JudgeResult | JudgeComparison) -> Page:
    """One judge, or several side by side."""
    return _several(result) if isinstance(result, JudgeComparison) else _one(result)


def _one(result: JudgeResult) -> Page:
    run = result.run
    lines = (_habits_line(result), _corrected_line(result), _last_line(result))
    keys = {"places.consistency": result.places, "places.first": result.places, "rights.right_both": result.rights}
    return Page(
        about=asked_about(run, count(len(result.verdicts), "pair")),
        headline=headline(result),
        lines=lines if len(result.verdicts) >= FEWEST else (),
        tiles=Tile.row(*((key, numbers[key]) for key, numbers in keys.items())),
        panels=(_order_panel(result), _right_panel(result), _systems_panel(result)),
        notes=(*_notes(result), *logged_lines(run), *cost_lines(run.cost)),
        example=run.example_prompt,
        questions=partial(browser, {run.name: result}),
    )


def headline(result: JudgeResult) -> str:
    """How often the verdict changes with the order, and how often it is right in both."""
    name, pairs = result.run.name, count(len(result.verdicts), "pair")
    if len(result.verdicts) < FEWEST:
        return f"{name} judged {pairs}: too few for a verdict"
    same, right = result.places["consistency"], result.rights["right_both"]
    if not same.defined:
        score = result.rights["right_given"]
        scored = f": right on {with_interval(score, 2)}" if score.defined else ""
        return f"{name} judged {pairs} in one order each{scored}; whether the order matters is not known"
    swapped = "reordered" if result.verdicts.exists.shape[1] > 2 else "swapped"
    flips = with_interval(same.taken_from(1.0), 2)
    sentence = f"{name} changes {flips} of its verdicts on {same.n:,} pairs when answers are {swapped}"
    if undecided := result.changes["no decision in an order"]:
        sentence += f", counting {count(undecided, 'pair')} without a decision in an order"
    return sentence + (f"; it is right in both orders on {number(right, 2)}" if right.defined else "")


def _habits_line(result: JudgeResult) -> str:
    """Each habit that is shown; those excluded to within a bound; those that stay open."""
    by_kind = grouped(("shown" if one.verdict.differs else one.verdict.kind, one) for one in result.habits)
    parts = [f"It {listed([_named(result, one) for one in by_kind['shown']])}"] if "shown" in by_kind else []
    if none := by_kind.get("equal"):
        parts.append("no " + " or ".join(_HABITS[one.name][1] for one in none))
    if unclear := by_kind.get("unclear"):
        settled = f" ({unsettled(unclear[0].verdict, 'pair')})" if len(unclear) == 1 else ""
        parts.append(f"not shown: {' or '.join(_HABITS[one.name][0] for one in unclear)}{settled}")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _named(result: JudgeResult, one: JudgeHabit) -> str:
    above, estimate, v = one.verdict.kind == "above", one.verdict.estimate, result.verdicts
    if one.name == "place":
        first = with_interval(result.places["first"], 2)
        return f"prefers the answer shown {'first' if above else 'last'} (the first gets {first} of clear verdicts)"
    if one.name == "length" and abs(estimate.value) > SEPARATED:  # nearly a rule: odds of 10^14 say nothing
        share = with_interval(result.lengths["longer"], 2)
        return f"prefers {'longer' if above else 'shorter'} answers (the longer one gets {share} of clear verdicts)"
    if one.name == "length":
        value, low, high = (float(np.exp(x)) for x in (estimate.value, estimate.low, estimate.high))
        digits = 2 + (round(low, 2) <= 1 <= round(high, 2))  # 0.998 is not "to 1.00", which claims nothing
        odds = with_interval(Estimate(value, low, high, estimate.n, estimate.method), digits)
        condition = " given which is right" if v.labelled.any() else " given who wrote them" if v.systems else ""
        return f"prefers {'longer' if above else 'shorter'} answers{condition} (odds times {odds} for twice the length)"
    return f"ties more often in the {'swapped' if above else 'file'} order (by {magnitude(estimate)})"


def _corrected_line(result: JudgeResult) -> str:
    """The ranking before and after correction; without systems, what is right in one order, averaged and voted."""
    if result.systems:
        best, first = result.systems[0], next(one for one in result.systems if one.rank_published == 1)
        place = "ranks first" if best.ranks[1] == 1 else "comes out first, though not beyond chance"
        rate = verdicts([one["corrected"] for one in result.systems], null=0.5)[0].joint
        rates = f"{best.system} {place}, its corrected win rate {with_interval(rate, 2)}"
        if first.system != best.system:
            rates += f"; as published, {first.system} is first ({number(first['published'], 2)})"
        changed = sum(bool(one.change) for one in result.matches)
        pairs = f"{changed} of {count(len(result.matches), 'pair')} of systems" if changed else "no pair of systems"
        return f"{rates}; correction changes the verdict on {pairs}."
    one, half, voted = (result.rights[key] for key in ("right_given", "right_mean", "right_voted"))
    if not (one.defined and result.rights["right_both"].defined):
        return ""
    return (
        f"It is right on {with_interval(one, 2)} in one order, {number(half, 2)} averaged over orders with ties as "
        f"half, {number(voted, 2)} voted over orders."
    )


def _last_line(result: JudgeResult) -> str:
    """Ties, missing decisions, and the cost."""
    v, cost = result.verdicts, result.run.cost
    undecided, ties = int((~v.decided).sum()), int(v.tied.sum())
    parts = [
        f"{ties:,} of {count(int(v.decided.sum()), 'verdict')} {'is a tie' if ties == 1 else 'are ties'}" * bool(ties),
        f"{count(undecided, 'page')} without a decision" * bool(undecided),
        spent(result.run).rstrip("."),
        # The tokens of prompts from the store are not in the cost: the ratio would depend on what was run before.
        in_ordinary_runs(cost.ordinary_runs) if cost.ordinary_runs >= 0 and not cost.reused else "",
    ]
    return ", ".join(filter(None, parts)) + "." if any(parts) else ""


def _notes(result: JudgeResult) -> list[str]:
    lines = []
    for counts, which in ((result.undecided, "no"), (result.misread, "another")):
        if counts:
            rules = ", ".join(f"{n} by {rule}" for rule, n in counts.items())
            pages = count(sum(counts.values()), "page has", "pages have")
            lines.append(f"{pages} {which} decision in the log; unslant's own reader: {rules}.")
    missing = sorted(set(result.verdicts.systems) - {one.system for one in result.systems})
    if not result.systems:
        lines.append(
            "No win rates: no systems are named in pairs, too few verdicts are clear, or they cannot separate "
            "strengths from the place or from each other."
        )
    elif missing:
        lines.append(f"Not ranked, without a verdict against another system in the file's order: {listed(missing)}.")
    return lines


def _order_panel(result: JudgeResult) -> Panel:
    turned = [{"change": name, "pairs": n} for name, n in result.changes.items() if any(result.changes.values())]
    numbers = {"value": result.places.cells() | result.odds.cells()}
    subjects = {"all": result.lengths, **result.subjects}
    longer = [{"subject": name, **numbers.cells()} for name, numbers in subjects.items() if numbers["longer"].defined]
    return Panel(
        "judge-order",
        "Does the verdict depend on order or length?",
        "Every pair is shown in both orders; a judge without a preference for a place gives the same verdict in both. "
        "Of longer answers: how often they get the verdicts for one answer, and how often they are right.",
        figures=(
            Figure.of_metrics("judge-places", "Numbers over pairs", numbers, methods=True),
            Figure("judge-changes", "When the order changes", ["change"], [Column("pairs", 0)], turned),
            Figure("judge-lengths", "Longer answers, by source", ["subject"], ["longer", "longer_right"], longer),
        ),
        short="Order",
    )


def _right_panel(result: JudgeResult) -> Panel:
    abstention, right, note = result.abstention, "corrected_verdicts.right", ""
    if abstention:
        at = f"shown for no margin on {count(abstention.kept.n, 'pair')}"
        if abstention.margin is not None:
            kept, wrong = (with_interval(one, 2) for one in (abstention.kept, abstention.wrong))
            at = f"a margin of {number(abstention.margin, 2)} or more, on {kept} of pairs, {wrong} of them wrong"
        note = f"At most {percent(abstention.error)} of verdicts wrong, with 95 % confidence: {at}."
    columns: list[str | Column] = [right, "corrected_verdicts.change", Column("orders asked", 0, key="orders")]
    ways = [{"way": one.way, "orders": one.orders, **one.numbers.cells()} for one in result.corrected_verdicts]
    return Panel(
        "judge-right",
        "Is the verdict right?",
        "Against the labels. A prior over places and a map of probabilities need log-probabilities, and are fitted on "
        "both orders of the other half of the questions. Abstention gives no verdict where the margin between the "
        "answers, averaged over orders, is small.",
        figures=(
            Figure.of_metrics("judge-labels", "Agreement with the labels", {"value": result.rights.cells()}),
            Figure("judge-corrections", "Corrected verdicts", ["way"], columns, ways,
                   [_INTERVALS("With 95 % intervals.", [right])]),
        ),
        notes=(note,) if note else (),
        short="Right",
    )  # fmt: skip


def _systems_panel(result: JudgeResult) -> Panel:
    rows = [
        {"system": one.system, "rank before": one.rank_published, "rank": one.rank, **one.numbers.cells(),
         "before, 95 %": "{} to {}".format(*one.ranks_published), "95 %": "{} to {}".format(*one.ranks)}
        for one in result.systems
    ]  # fmt: skip
    rates = ["systems.published", "systems.averaged", "systems.corrected"]
    explained = "Win rates in the order of the file, over both orders, and without the judge's habits; 95 % intervals."
    before, after = (Column("rank before", 0), Column("before, 95 %")), (Column("rank", 0), Column("95 %"))
    columns: list[str | Column] = [rates[0], *before, *rates[1:], *after]
    matches = [{**vars(one), **one.numbers.cells(), "change": one.change or "none"} for one in result.matches]
    apart: list[str | Column] = ["matches.before", "matches.after", Column("change")]
    return Panel(
        "judge-systems",
        "Which system wins?",
        "Corrected by the model of Rao and Kupper (Bradley-Terry with ties), with place and length of the answers as "
        "covariates. Sets of ranks hold all true ranks together; differences are simultaneous.",
        figures=(
            Figure("judge-systems", "Systems, best first", ["system"], columns, rows,
                   [_INTERVALS(explained, rates)]),
            Figure("judge-matches", "Every two systems", ["higher", "lower"], apart, matches),
        ),
        short="Systems",
    )  # fmt: skip


def _several(result: JudgeComparison) -> Page:
    results = sorted((one for one in result.results if one.places["consistency"].defined), key=_consistency)[::-1]
    same = {one.model: one.places["consistency"] for one in results}
    ends = [f"{name} {with_interval(same[name], 2)}" for name in dict.fromkeys([*same][:1] + [*same][-1:])]
    consistency = (
        f": the same verdict in both orders, from {' to '.join(ends)} of pairs" if ends else " in one order each"
    )
    alpha, n = result.alpha["alpha"], count(len(result.results), "judge")
    biased = [one.model for one in result.results if any(h.name == "place" and h.verdict.differs for h in one.habits)]
    keys = ("places.consistency", "places.first", "places.moved", "places.ties", "places.undecided", "places.reading")
    rights = ("rights.right_given", "rights.right_both", "rights.right_voted", "rights.kappa")
    rows = [{"judge": one.model, **one.places.cells(*keys), **one.rights.cells(*rights)} for one in result.results]
    pairs = [{**vars(one), **one.numbers.cells()} for one in result.agreement]
    plot = Plot(partial(charts.intervals, axis="share of pairs"), "With 95 % intervals.", [keys[0]], of="pairs")
    return Page(
        about=n,
        headline=n + consistency,
        lines=(
            f"A preference for a place is shown of {listed(biased) or 'none'}." if results else "",
            f"Judges agree with alpha {with_interval(alpha, 2)} (1 is perfect, 0 chance)." if alpha.defined else "",
            spent(*(one.run for one in result.results)),
        ),
        tiles=Tile.row(*((keys[0], estimate, f"Consistency, {name}") for name, estimate in same.items())),
        panels=(
            Panel(
                "judges",
                "How consistent is each judge, and do they agree?",
                "Pairs with the same verdict in both orders, and right ones; agreement is of verdicts voted over "
                "orders, on the pairs that both judges decide.",
                figures=(
                    Figure("judges", "Judges", ["judge"], [*keys, *rights], rows, [plot]),
                    Figure("judges-agreement", "Every two judges", ["one", "other"],
                           ["agreement.share", "agreement.kappa"], pairs),
                ),
                short="Judges",
            ),
        ),
        notes=tuple(f"{one.model}: {note}" for one in result.results for note in _notes(one)),
        questions=partial(browser, {one.model: one for one in sorted(result.results, key=_consistency)}),
        name="judges",
        compared=tuple(one.model for one in result.results),
    )  # fmt: skip


def _consistency(result: JudgeResult) -> float:
    """For sorting: judges whose verdicts change most come first, those without orders last."""
    same = result.places["consistency"]
    return same.value if same.defined else 2.0
