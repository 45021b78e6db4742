"""The page of a plan."""

from __future__ import annotations

from typing import Any

from unslant.auditing import MOST_WHOLE
from unslant.auditing.cost import duration
from unslant.reports import Column, Figure, Page
from unslant.reports.numbers import about, count, number, significant
from unslant.studies.plan.planning import Design, Pilot, PlanResult

_SAVES = 0.95
"""More orders help if they need at most this share of the questions."""


def page(result: PlanResult) -> Page:
    """The best design, what it rests on, and all designs."""
    pilot, goal = result.pilot, result.goal
    source = "assumed: no pilot" if not pilot.source else f"from {pilot.source}, {count(pilot.questions, 'question')}"
    rows: list[dict[str, Any]] = [vars(design) | {"fits": "" if design.reached else "no"} for design in result.designs]
    limited = goal.available is not None and any(not design.reached for design in result.designs)
    columns = [
        Column("score"),
        Column("questions", 0),
        *[Column("at least", 0, "given the pilot's uncertainty", "least"), Column("at most", 0, key="most")]
        * any(row["least"] == row["least"] for row in rows),
        *[Column("available", key="fits")] * limited,
        Column("half-width", 4, "of the 95 % interval", "half_width"),
        Column("difference", 3, f"detected with power 80 %, same questions, correlation {goal.correlation:g}"),
        Column("other questions", 3, "difference detected on different questions", "difference_unpaired"),
        *[Column("prompts", 0), Column("tokens", 0)],
        *[Column("in replies", 0, "tokens", "output_tokens")] * any(row["output_tokens"] for row in rows),
        *[Column(name, 2) for name in ("seconds", "price") if any(row[name] == row[name] for row in rows)],
    ]
    names = [Column("set of orders", key="orders"), Column("orders", 0, key="k")]
    return Page(
        about=f"plan, {source}",
        headline=_headline(result),
        lines=(_basis(result), _limit(result), _cost(result.best, pilot)),
        panels=(
            Figure("designs", "Designs", names, columns, rows).panel(
                "Sets of orders, cheapest first",
                "Each with the questions that it needs. The published order alone measures another score, which "
                "depends on where the right options happen to be.",
            ),
        ),
        name="plan",
    )


def _headline(result: PlanResult) -> str:
    best = result.best
    digits = 3 if best.half_width > 0.005 else 4  # as the table: ±0.001 for 0.0014 would promise too much
    width = number(best.half_width, digits)
    # of fewer than six questions, not even the results of opposite models differ significantly
    differences = f"differences of {number(best.difference, digits)}" if best.difference < 1 else "no differences"
    often = " in four of five runs" * (best.difference < 1)
    in_phases = best.orders == "auto" and best.questions > MOST_WHOLE and not result.pilot.in_words
    about_k = "about " * (in_phases or len(result.pilot.by_options) > 1)
    if best.reached:
        return (
            f"{count(best.questions, 'question')} in {about_k}{count(best.k, 'order')} each: the score will be known "
            f"to ±{width}, and {differences} between models will be detected{often}."
        )
    return (
        f"{result.goal.available:,} questions are too few; about {about(best.questions)} are needed. "
        f"{result.goal.available:,} give ±{width}, and detect {differences} between models."
    )


def _basis(result: PlanResult) -> str:
    best, pilot = result.best, result.pilot
    if not pilot.source:
        return (
            f"Assumed, without a pilot: a score of {pilot.accuracy:g}, the same answer in every order, "
            f"{round(pilot.positions)} options, {result.goal.tokens or pilot.prompt_tokens:,.0f} tokens a prompt, and "
            f"a correlation of {result.goal.correlation:g} between models."
        )
    if best.least != best.least:
        return f"From {pilot.source}, {count(pilot.questions, 'question')}."
    return (
        f"Between {best.least:,} and {best.most:,}, given the pilot's uncertainty ({pilot.source}, "
        f"{count(pilot.questions, 'question')})."
    )


def _limit(result: PlanResult) -> str:
    """What more orders would save."""
    best = result.best
    more = [one for one in result.designs if one.k > best.k and one.questions < best.questions]
    if result.pilot.orders < 2:
        return "A pilot in several orders would say how much orders matter." if result.pilot.source else ""
    if not more:
        return f"More than {count(best.k, 'order')} would hardly make the score more precise."
    one = min(more, key=lambda one: one.questions)
    helps = "More orders barely help" if one.questions > _SAVES * best.questions else "More orders help"
    times = significant(one.tokens / best.tokens, 2)
    tokens = "about as many tokens" if times == "1" else f"{times} times the tokens"
    return f"{helps}: {one.k} would need {count(one.questions, 'question')} and {tokens}."


def _cost(best: Design, pilot: Pilot) -> str:
    prompts = f"{count(best.prompts, 'prompt')}{' (some under other labels)' * (not pilot.in_words)}"
    tokens = f"about {about(best.tokens)} tokens{' computed' * bool(pilot.computed)}"
    replies = f" and {about(best.output_tokens)} in replies" if best.output_tokens else ""
    time = f", {duration(best.seconds)}" if best.seconds == best.seconds else ""
    price = f", at a price of {number(best.price, 2)}" if best.price == best.price else ""
    return f"{prompts}, {tokens}{replies}{time}{price}."
