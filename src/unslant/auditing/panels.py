"""The page of an audit.

The first screen is built eagerly: caveats, one sentence and three lines, each claim tied to its interval, and three
tiles. Panels, questions and notes are built when they are drawn.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from unslant.experiment.page_parts import asked_about, in_ordinary_runs, shortcut_panel, spent
from unslant.metrics import Estimate, Verdict, verdict, verdicts
from unslant.metrics.order_curve import OrderPoint
from unslant.metrics.preference import Preference
from unslant.reports import Later, Page, Tile
from unslant.reports.numbers import count, has_interval, number, percent, significant, unsettled, with_interval
from unslant.responses import above_one

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult
    from unslant.metrics import Numbers
    from unslant.reports import Panel, QuestionBrowser

SAME = 0.02
"""Scores of one model whose difference lies within this bound are called the same, and the bound is stated."""
MOST_TILES = 3
_MOST_WORDS = 3
"""Most words in the name of a question set that a headline uses; for longer names it has the number of questions."""
_DIGITS = 2
LEAST_LABEL_MASS = 0.5
"""Below this, a warning: less than half of the probability of the next token is on labels."""
MANY_TIED = 0.05
"""Share of answers, or of votes, with several best options above which ties are mentioned."""
MANY_FAILED = 0.05
"""Share of responses without an answer above which the failures are reported before the score."""


def page(result: AuditResult) -> Page:
    """Every panel this audit has data for."""
    return Page(
        about=asked_about(result.run, count(len(result.scores), "question"), _presented(result)),
        headline=_headline(result),
        lines=_lines(result),
        tiles=_tiles(result),
        panels=Later(partial(_panels, result)),
        notes=Later(partial(_notes, result)),
        caveats=tuple(caveats(result)),
        example=result.run.example_prompt,
        questions=partial(_questions, result),
        name=result.name,
    )


def _panels(result: AuditResult) -> Iterator[Panel]:
    # only here: text needs no panels unless all details are wanted
    from unslant.auditing import panels_labels, panels_scores

    yield panels_scores.score_panel({result.name: result})
    yield panels_scores.until_panel(result)
    yield panels_scores.phases_panel(result)
    yield panels_labels.harness_panel(result)
    yield panels_labels.published_panel(result)
    yield panels_labels.length_panel(result)
    yield panels_scores.orders_panel(result)
    yield panels_scores.variance_panel(result)
    yield panels_scores.order_curve_panel(result)
    if not result.one_order:
        yield panels_labels.labels_panel({result.name: result})
    yield panels_labels.priors_panel(result)
    yield panels_labels.replies_panel(result)
    yield panels_scores.corrections_panel(result)
    yield panels_scores.subjects_panel(result)
    yield shortcut_panel(result.shortcuts, "shortcuts")
    yield panels_scores.numbers_panel({result.name: result})


def _notes(result: AuditResult) -> Iterable[str]:
    from unslant.auditing.notes import notes

    return notes(result, caveats(result))


def _questions(result: AuditResult) -> QuestionBrowser:
    from unslant.auditing.browser import browser

    return browser({result.name: result})


def _presented(result: AuditResult) -> str:
    """In how many orders the questions were shown."""
    phases, until = result.run.two_phase, result.run.until
    orders = sorted({block.k for block in result.whole.blocks})
    if not orders:
        return ""
    span = f"{f'{orders[0]} to ' if len(orders) > 1 else ''}{count(orders[-1], 'order')}"
    if phases:
        square = f"{until.squares:,} of them" if until else "each"
        return f"{square} in a square of orders, {len(phases.full):,} in {span}"
    whole = sum(len(block.index) for block in result.whole.blocks)  # others stopped early, failed, or were shown once
    return f"{'each' if whole == len(result.scores) else f'{whole:,}'} in {span}"


def caveats(result: AuditResult) -> list[str]:
    """What a reader must know before the score: little label mass, many failures, replies that conflict or were cut."""
    from unslant.auditing.result import scored_texts

    counts, mass = result.metrics.counts, result.metrics.means["label_mass"].value
    sentences = []
    if mass < LEAST_LABEL_MASS:
        chat, how = ("its chat template", "") if result.run.logged else ("--chat=True", " (--labels, --template)")
        if result.run.lm_eval:  # its tasks write the prompts
            chat, how = "--apply-chat-template=True", ""
        asked = result.run.settings.get("apply_chat_template" if result.run.lm_eval else "chat")
        chat = "" if asked else f"a chat model asked without {chat}, "
        share = f"only {percent(mass, 1)}".replace("only <", "less than ")
        sentences.append(
            f"The labels receive {share} of the probability: the model would probably say something other than a "
            f"label. Likely causes: {chat}labels or a template it does not expect{how}, or a model that thinks before "
            "it answers."
        )
    sums = above_one(result.responses.table)
    if sums.size and not scored_texts(result.responses):  # texts' probabilities may be per token
        sentences.append(
            f"In {len(sums):,} of {count(len(result.responses), 'response')} the probabilities of the labels sum to "
            f"more than 1 (up to {sums.max():.3g}): the scores are not natural logarithms of probabilities of one "
            "answer. The answer in each order does not depend on this; the vote, PBM, margin and confidence do."
        )
    lost = counts.failed_rows + counts.unanswered_rows
    if lost > MANY_FAILED * counts.rows:
        from unslant.auditing.notes import failure_lines

        sentences += failure_lines(result)
    if result.replies:
        from unslant.auditing.replies import reply_lines

        sentences += reply_lines(result.replies)
    return sentences


def _asked_name(result: AuditResult) -> str:
    """The questions, short enough for a headline: ``embedded-skewed (400 questions)``, ``400 questions``; where some
    have no right option or no answer as published, and so do not count in the score, ``12 of 24 questions``."""
    name, size = result.run.questions or result.run.recorded, count(len(result.scores), "question")
    published = result.metrics.means["accuracy"]
    scored = published.n if published.defined else int(result.scores.has_answer.sum())
    if 0 < scored < len(result.scores):
        size = f"{scored:,} of {size}"
    return f"{name} ({size})" if name and "questions" not in name and len(name.split()) <= _MOST_WORDS else size


def _headline(result: AuditResult) -> str:
    """The score as published, averaged over orders, and by guessing."""
    means, name = result.metrics.means, result.name or "The model"
    published, averaged = means["accuracy"], means["expected_accuracy"]
    way = " in words" * result.in_words
    on = f"{way} on {_asked_name(result)}"
    if not (published.defined or averaged.defined):
        counts = result.metrics.counts
        if lost := counts.failed_rows + counts.unanswered_rows:
            return f"Nothing could be measured: no answer in {lost:,} of {count(counts.rows, 'response')}"
        return f"{name} has no score on {_asked_name(result)}: no question has a right option"
    guess = _guessing(result)
    if guess is not None and guess.too_few:
        mean = published if published.defined else averaged
        return f"{name} scores {number(mean, _DIGITS)}{way} on {count(mean.n, 'question')}: too few for a verdict"
    gap = verdict(means["order_advantage"], bound=SAME) if published.defined and averaged.defined else None
    digits = _digits(result, guess, gap)
    if result.shown_once and published.defined:
        scores = f"{with_interval(published, digits)}{on}, in one order of options"
    elif not averaged.defined:
        scores = f"{with_interval(published, digits)}{on} as published; no question has an answer in every order"
    elif gap is None:
        scores = f"{with_interval(averaged, digits)}{on}, averaged over {_orders(result)}"
    else:
        joint = "but" if gap.differs else "and"
        over_orders = f"{with_interval(averaged, digits)} averaged over {_orders(result)}"
        scores = f"{number(published, digits)}{on}, {joint} {over_orders}"
        if not gap.differs:
            scores += f", the same to within {SAME}" if gap.kind == "equal" else ": no difference shown"
    return f"{name} scores {scores}{_against_guessing(result, guess, digits)}"


def _orders(result: AuditResult) -> str:
    """What the score is averaged over, and on how many questions, if some have missing or failed orders."""
    averaged, incomplete = result.metrics.means["expected_accuracy"], result.metrics.counts.incomplete
    return f"option orders in the {averaged.n:,} answered in every order" if incomplete else "option orders"


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
    averaged = result.metrics.means["expected_accuracy"].defined and not result.shown_once
    return f"; {'the average' if averaged else 'this'} cannot be distinguished from guessing ({chance})"


def _lines(result: AuditResult) -> tuple[str, ...]:
    """Three lines: how much depends on the order; what the model falls back on, and the corrected score; the cost."""
    guess = _guessing(result)
    if result.one_order:
        outlier = _lengths(result.length_bias) if result.length_bias else _surplus(result)
        if guess and guess.too_few:
            outlier = ""
        return (f"{outlier}." if outlier else "", result.left_open, cost(result))
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
    words = {0.0: "None", 0.5: "Half", 1.0: "All"}
    changes = 1 - consistency.value
    share = words.get(round(changes, 9)) or percent(changes)  # of two phases, a half is one but for rounding
    line = f"{share} of its answers change{missing} when the options are reordered"
    if result.replies and float(result.run.identity.get("temperature", 0) or 0):
        return f"{line}; sampled once each, so noise and order cannot be distinguished (--repeats=3 separates them)."
    if not means["robust_accuracy"].defined:
        return f"{line}."
    return f"{line}: it is right in every order on {number(means['robust_accuracy'], _DIGITS)} of the questions."


def _vote(result: AuditResult) -> str:
    """The corrected score, and how many of its votes are ties: a model that always answers A ties everywhere."""
    vote, ties = (result.metrics.means[key] for key in ("vote_accuracy", "vote_tie_rate"))
    if not vote.defined:
        return ""
    line = f"Voting over orders gives {number(vote, _DIGITS)}"
    if ties.value > MANY_TIED:
        line += f"; {percent(ties.value)} of the votes are ties, which a fixed rule decides"
    return f"{line}."


def _beyond_noise(orders: Estimate, repeats: Estimate, beyond: Verdict) -> str:
    both = (
        f"Two orders of a question get different answers in {number(orders, _DIGITS)} of pairs, the same prompt "
        f"asked twice in {number(repeats, _DIGITS)}"
    )
    if beyond.differs:
        side = "beyond" if beyond.kind == "above" else "below"
        distance = beyond.estimate if beyond.kind == "above" else beyond.estimate.taken_from(0.0)
        asked = f" on the {count(distance.n, 'question')} of both" * (distance.n < max(orders.n, repeats.n))
        return f"{both}: {with_interval(distance, _DIGITS)} {side} noise{asked}."
    return f"{both}: an effect of order cannot be distinguished from noise {unsettled(beyond)}."


def fallback(preference: Preference) -> str:
    """The preference as a sentence of its own."""
    if not preference.unsure.defined:
        return ""
    phrase = preference.phrase
    if preference.finding == "none":
        return f"It has {phrase}."
    if preference.finding == "open":
        return f"{phrase[:1].upper()}{phrase[1:]}."
    plain = phrase.replace(", when unsure", "").replace(" when unsure", "")
    return f"It {phrase}." if plain == phrase else f"When unsure it {plain}."


def _unsettled(result: AuditResult, guess: Verdict | None) -> str:
    """What the headline leaves open, and how many questions would settle it."""
    means = result.metrics.means
    score = "average" if means["expected_accuracy"].defined else "score"
    gap = verdict(means["order_advantage"], bound=SAME)
    for what, claim in ((f"The {score} and guessing", guess), ("The published score and the average over orders", gap)):
        if claim and claim.kind == "unclear" and claim.needed:
            return f"{what} cannot be distinguished {unsettled(claim)}."
    return ""


def _until(result: AuditResult) -> str:
    """Where the search of ``--until`` ended; empty for any other audit."""
    until = result.run.until
    if not until:
        return ""
    from unslant.auditing.notes import asked_until

    questions, width = asked_until(until), f"±{until.half_width:g}"
    if until.reached:
        return f"Known to {width} after asking {questions}."
    left = until.path[-1].half_width
    return f"Known to ±{number(left)}, not {width}, after asking {questions}." if left else f"Asked {questions}."


def cost(result: AuditResult) -> str:
    """What was spent, and how many orders would have been enough, in one line."""
    line = spent(result.run).removesuffix(".")
    if result.run.replies.requests or not line:
        return f"{line}." if line else ""
    curve = result.order_curve
    runs = curve.ordinary_runs if curve else math.nan  # with what was reused from the store, unlike the cost
    if (runs := runs if runs >= 0 else result.cost.ordinary_runs) >= 0:
        about = "about " * bool(result.cost.reused)  # of what another call computed, only an estimate is known
        line += f", {about}{in_ordinary_runs(runs)}"
    if curve is None:
        return f"{line}."
    return f"{line}; {_enough(curve.enough)}."


def _enough(point: OrderPoint | None) -> str:
    if point is None:
        return "no cheaper set of orders matches"
    at = f" at {significant(point.ordinary_runs, 2)} times" if point.ordinary_runs >= 0 else ""
    return f"--orders={point.orders} is within {point.within:.3f}{at}"


def _surplus(result: AuditResult) -> str:
    """The label answered most beyond its share of right options, if that cannot be chance."""
    rows = result.metrics.given_labels[: result.scores.width]
    tests = verdicts([row["predicted_excess"] for row in rows])
    more = [row for row, test in zip(rows, tests, strict=True) if test.kind == "above"]
    if not more:
        return ""
    top = max(more, key=lambda row: row["predicted_excess"].value)
    excess, right = top["predicted_excess"], top["gold"].value
    # the answers to the questions of ``right``, unlike "predicted"
    line = f"{top.label} is {percent(right + excess.value)} of the answers but {percent(right)} of the right options"
    if excess.n < len(result.scores):
        line += f" in the {count(excess.n, 'question')} that have it and one right option"
    ties = result.metrics.means["tie_rate"].value
    if not ties > MANY_TIED or top.label != result.scores.labels[0]:  # nan for replies
        return line
    return f"{line}; {percent(ties)} of the answers are ties, which the first label wins"


def _lengths(numbers: Numbers) -> str:
    """The accuracy per character, and which length is answered too often by the sum."""
    names = ("shortest", "longest")
    tests = zip(names, verdicts([numbers[f"{name}_excess"] for name in names]), strict=True)
    too_often = [f"the {name} option is answered too often" for name, test in tests if test.kind == "above"]
    per_character = f"Normalised by length (per character), it scores {number(numbers['normalised'], 2)}"
    return f"{per_character}; by the sum, {' and '.join(too_often)}" if too_often else per_character


def _tiles(result: AuditResult) -> tuple[Tile, ...]:
    """Three numbers that explain the headline."""
    metrics, means = result.metrics, result.metrics.means
    if result.one_order:
        length = result.length_bias
        key, numbers = ("length_bias.normalised", length) if length else ("cramers_v", metrics.label_bias.numbers)
        ece = [("calibration.ece", metrics.calibration["ece"])] if metrics.calibration else []
        accuracy, mass = (("accuracy", means["accuracy"]), ("label_mass", means["label_mass"]))
        return Tile.row(accuracy, (key, numbers[key]), *ece, mass)[:MOST_TILES]
    last = ("robust_accuracy", means["robust_accuracy"])
    if result.replies and (beyond := result.replies.noise["beyond_noise"]).defined:
        last = ("noise.beyond_noise", beyond)
    return Tile.row(*((key, means[key]) for key in ("accuracy", "expected_accuracy")), last)
