"""The first screen of an audit: one sentence and three lines, each claim tied to its interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from unslant.auditing.panels_labels import one_order, shown_once, stands_out
from unslant.auditing.panels_orders import asked_until
from unslant.experiment.provenance import in_ordinary_runs, spent
from unslant.metrics import Estimate, Verdict, verdict
from unslant.metrics.order_curve import OrderPoint
from unslant.metrics.preference.sentence import MATTERS, Preference
from unslant.reports.numbers import count, has_interval, interval, number, percent, significant, unsettled

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

SAME = 0.02
"""Scores of one model whose difference lies within this bound are called the same, and the bound is stated."""
_MOST_WORDS = 3
"""Names of question sets up to this long are in the headline; of longer ones, their number is."""
_DIGITS = 2


def score(estimate: Estimate, digits: int = _DIGITS) -> str:
    """``0.63 (0.59 to 0.67)``, for sentences."""
    shown = interval(estimate, digits).replace(" – ", " to ")
    return number(estimate, digits) + f" ({shown})" * has_interval(estimate)


def asked_name(result: AuditResult) -> str:
    """What was asked, short enough for a headline: ``embedded-skewed (400 questions)``, ``400 questions``; where some
    have no right option, and so no part in the score, ``12 of 24 questions``."""
    name, asked = result.run.questions or result.run.recorded, count(len(result.scores), "question")
    scored = int(result.scores.has_answer.sum())
    if 0 < scored < len(result.scores):
        asked = f"{scored:,} of {asked}"
    return f"{name} ({asked})" if name and "questions" not in name and len(name.split()) <= _MOST_WORDS else asked


def headline(result: AuditResult) -> str:
    """The score as published, averaged over orders, and by guessing."""
    means, name = result.metrics.means, result.name or "The model"
    published, averaged = means["accuracy"], means["expected_accuracy"]
    way = " in words" if result.replies else ""
    if not (published.defined or averaged.defined):
        counts = result.metrics.counts
        if lost := counts.failed_rows + counts.unanswered_rows:
            return f"Nothing could be measured: no answer in {lost:,} of {count(counts.rows, 'response')}"
        return f"{name} has no score on {asked_name(result)}: no question has a right option"
    guess = _guessing(result)
    if guess is not None and guess.too_few:
        found = published if published.defined else averaged
        return f"{name} scores {number(found, _DIGITS)}{way} on {count(found.n, 'question')}: too few for a verdict"
    gap = verdict(means["order_advantage"], bound=SAME) if published.defined and averaged.defined else None
    digits = _digits(result, guess, gap)
    said = f"{name} scores"
    if shown_once(result) and published.defined:
        said += f" {score(published, digits)}{way} on {asked_name(result)}, in one order of options"
    elif not averaged.defined:
        said += (
            f" {score(published, digits)}{way} on {asked_name(result)} as published; none has an answer in every order"
        )
    elif gap is None:
        said += f" {score(averaged, digits)}{way} on {asked_name(result)}, averaged over option orders"
    else:
        joined = "but" if gap.differs else "and"
        said += (
            f" {number(published, digits)}{way} on {asked_name(result)}, {joined} {score(averaged, digits)} averaged"
        )
        said += " over option orders"
        if not gap.differs:
            said += f", the same to within {SAME}" if gap.kind == "equal" else ": no difference shown"
    return said + _against_guessing(result, guess, digits)


def _digits(result: AuditResult, guess: Verdict | None, gap: Verdict | None) -> int:
    """Two, or three where rounding to two would hide what is claimed: 0.24 (0.24 to 0.25) is not less than 0.25."""
    means = result.metrics.means
    published, averaged = means["accuracy"], means["expected_accuracy"]
    scored = averaged if averaged.defined else published
    if guess is not None and guess.differs and has_interval(scored):
        low, chance, high = (round(value, _DIGITS) for value in (scored.low, means["chance"].value, scored.high))
        if low <= chance <= high:
            return _DIGITS + 1
    same = gap is not None and gap.differs and round(published.value, _DIGITS) == round(averaged.value, _DIGITS)
    return _DIGITS + same


def _guessing(result: AuditResult) -> Verdict | None:
    """The score against chance; None where chance is not known."""
    means, test, until = result.metrics.means, result.metrics.above_chance, result.run.until
    if not means["chance"].defined:
        return None
    if until and until.questions < until.of_questions:  # only these intervals allow for stopping early
        return verdict(means["expected_accuracy"], null=means["chance"].value)
    return verdict(test.excess, p=test.p if test.excess.value > 0 else None)


def _against_guessing(result: AuditResult, guess: Verdict | None, digits: int) -> str:
    if guess is None:
        return ""
    chance = number(result.metrics.means["chance"], digits)
    if guess.kind == "above":
        return f"; guessing gives {chance}"
    if guess.kind == "below":
        return f"; guessing gives more, {chance}"
    return f"; this cannot be distinguished from guessing ({chance})"


def lines(result: AuditResult) -> tuple[str, ...]:
    """How much depends on the order; what the model falls back on, and the corrected score; the cost."""
    guess = _guessing(result)
    if one_order(result):
        found = "" if guess and guess.too_few else stands_out(result)
        return (f"{found}." if found else "", result.left_open, cost(result))
    if guess and guess.too_few:
        return (cost(result),)
    second = (fallback(result.metrics.preference), _vote(result), _until(result), _unsettled(result, guess))
    return (_order(result), " ".join(filter(None, second)), cost(result))


def _order(result: AuditResult) -> str:
    """How many answers depend on the order, and whether that is more than noise."""
    means, noise = result.metrics.means, result.replies.noise if result.replies else None
    consistency = means["consistency"]
    if not consistency.defined:
        return ""
    if noise and noise["beyond_noise"].defined:
        return _beyond_noise(noise["between_orders"], noise["between_repeats"], verdict(noise["beyond_noise"]))
    missing = " or are missing" if result.metrics.counts.unanswered_rows else ""
    changed = f"{_share(1 - consistency.value)} of its answers change{missing} when the options are reordered"
    if result.replies and _temperature(result):
        return f"{changed}; sampled once each, so noise and order cannot be distinguished (--repeats 3 separates them)."
    if not means["robust_accuracy"].defined:
        return f"{changed}."
    return f"{changed}: it is right in every order on {number(means['robust_accuracy'], _DIGITS)} of the questions."


def _beyond_noise(orders: Estimate, repeats: Estimate, beyond: Verdict) -> str:
    both = (
        f"Two orders of a question get different answers in {number(orders, _DIGITS)} of pairs, the same prompt "
        f"asked twice in {number(repeats, _DIGITS)}"
    )
    if beyond.differs:
        return f"{both}: {score(beyond.estimate)} {'beyond' if beyond.kind == 'above' else 'below'} noise."
    return f"{both}: an effect of order cannot be distinguished from noise {unsettled(beyond)}."


def _temperature(result: AuditResult) -> float:
    """At which replies were sampled; 0 where the answers of a model do not vary, or nothing is recorded."""
    return float(result.run.identity.get("temperature", 0) or 0)


def _share(share: float) -> str:
    words = {0.0: "None", 0.5: "Half", 1.0: "All"}
    return words.get(share) or percent(share, 0 if share < 0.995 else 1)


def fallback(preference: Preference) -> str:
    """The preference as a sentence of its own."""
    if not preference.unsure.defined:
        return ""
    if preference.finding == "none":
        return f"When unsure it has no preference of {100 * MATTERS:.0f} points or more for a label or position."
    phrase = preference.phrase
    if preference.finding == "open":
        return f"{phrase[:1].upper()}{phrase[1:]}."
    plain = phrase.replace(", when unsure", "").replace(" when unsure", "")
    return f"It {phrase}." if plain == phrase else f"When unsure it {plain}."


def _vote(result: AuditResult) -> str:
    vote = result.metrics.means["vote_accuracy"]
    return f"Voting over orders gives {number(vote, _DIGITS)}." if vote.defined else ""


def _unsettled(result: AuditResult, guess: Verdict | None) -> str:
    """What the headline leaves open, and how many questions would settle it."""
    gap = verdict(result.metrics.means["order_advantage"], bound=SAME)
    for what, open_one in (("Score and guessing", guess), ("The two scores", gap)):
        if open_one and open_one.kind == "unclear" and open_one.needed:
            return f"{what} cannot be distinguished {unsettled(open_one)}."
    return ""


def _until(result: AuditResult) -> str:
    """Where the search ended; empty for an audit of everything from the start."""
    until = result.run.until
    if not until:
        return ""
    asked, width = asked_until(until), f"±{until.half_width:g}"
    if until.reached:
        return f"Known to {width} after asking {asked}."
    left = until.path[-1].half_width
    return f"Known to ±{number(left)}, not {width}, after asking {asked}." if left else f"Asked {asked}."


def cost(result: AuditResult) -> str:
    """What was spent, and how many orders would have been enough, in one line."""
    line = spent(result.run).removesuffix(".")
    if result.run.replies.requests or not line:
        return f"{line}." if line else ""
    curve = result.order_curve
    runs = curve.ordinary_runs if curve else math.nan  # with what was reused from the store, unlike the cost
    if (runs := runs if runs >= 0 else result.cost.ordinary_runs) >= 0:
        line += f", {in_ordinary_runs(runs)}"
    if curve is None:
        return f"{line}."
    return f"{line}; {_enough(curve.enough)}."


def _enough(point: OrderPoint | None) -> str:
    if point is None:
        return "no cheaper set of orders matches"
    at = f" at {significant(point.ordinary_runs, 2)} times" if point.ordinary_runs >= 0 else ""
    return f"--orders {point.orders} is within {max(point.apart, 0.0005):.3f}{at}"
