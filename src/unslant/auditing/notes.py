"""The notes of an audit: what was left out or needs care, what was saved, and what the run cannot detect."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from unslant.auditing.cost import CHARACTERS_A_TOKEN
from unslant.auditing.until_rule import ANYTIME
from unslant.experiment.page_parts import cost_lines, in_one_line, logged_lines, why_unread
from unslant.metrics.decision_study import QUESTION
from unslant.metrics.order_curve import SAME
from unslant.metrics.registry import METRICS
from unslant.metrics.scores import is_tie
from unslant.questions.question import SHARED_START, with_shared_start
from unslant.reports.numbers import count, number, percent, significant, with_interval
from unslant.responses import DECISION, Responses
from unslant.responses.run import UntilRun

if TYPE_CHECKING:
    from unslant.auditing.replies import Adaptive
    from unslant.auditing.result import AuditResult

BEYOND = 0.1
"""Share of PBM beyond places above which orders are said to matter beyond places."""
_FEWEST = 10
"""Fewest responses from which rounding is reported: fewer may be round by chance."""
_EVERY_DIFFERENCE = 0.995
"""Least detectable difference that prints as 1.00: none can be detected."""
_MOST_PLACES = 4
_MANY_SHARED = 0.05
"""Share of questions with a shared beginning from which an audit notes that its intervals treat them as independent."""


def notes(result: AuditResult, known: Sequence[str]) -> list[str]:
    """What was left out or needs care, and the cost, one sentence each, without those that are ``known`` as caveats."""
    counts = result.metrics.counts
    have = {
        "no right option; excluded from accuracies": counts.no_right_option,
        "several right options; choosing any of them counts as right": counts.several_right,
        "options that keep their place (all of the above, both A and C)": counts.with_pinned,
    }
    sentences = [(n, f"has {what}", f"have {what}") for what, n in have.items()]
    if not result.one_order:
        missing = "excluded from the order metrics because an order is missing or failed"
        sentences.insert(0, (counts.incomplete, missing, missing))
        sentences.append((counts.immovable, "has nothing to reorder", "have nothing to reorder"))
        if not result.run.two_phase:
            sampled = "was shown in a sample of its orders", "were shown in a sample of their orders"
            sentences.append((counts.sampled_orders, *sampled))
    lines = [line for line in failure_lines(result) if line not in known]
    if counts.bounded_scores:
        lines.append(
            "Label scores that are only upper bounds, because the server did not return the label: "
            f"{counts.bounded_scores:,}; responses without an answer because their best label may be one of them: "
            f"{counts.censored_rows:,}."
        )
    lines += [f"{count(n, f'question {one}', f'questions {more}')}." for n, one, more in sentences if n]
    if "tokens" in result.left_open:
        lines.append(
            f"Tokens are estimated from unslant's own prompts, {CHARACTERS_A_TOKEN} characters a token, each run "
            "alone; a local model computes shared beginnings once."
        )
    return [
        *lines,
        *_decision_lines(result.responses),
        *logged_lines(result.run),
        *_target_lines(result),
        *_passage_lines(result),
        *_until_lines(result),
        *phase_lines(result),
        *adaptive_lines(result.replies.adaptive if result.replies else None),
        *_advice(result),
        *cost_lines(result.cost),
    ]


def failure_lines(result: AuditResult) -> list[str]:
    """How many responses failed or contain no answer, the first reason, and what they count as."""
    lines, counts, table = [], result.metrics.counts, result.responses.table
    if counts.failed_rows:
        reasons = table["raw"].filter(pc.equal(table["status"], "error")).to_pylist()
        reason = next((f" ({in_one_line(raw)})" for raw in reasons if raw), "")
        failed = f"failed: no reply, or no usable scores{reason}. Their questions are excluded from the order metrics."
        lines.append(f"{count(counts.failed_rows, 'response')} {failed}")
    if counts.unanswered_rows:
        replies = count(counts.rows - counts.failed_rows, "reply", "replies")
        lines.append(
            f"No answer in {counts.unanswered_rows:,} of {replies} (unparsed, "
            "conflicting, cut, refused, or naming none or several options): these count as wrong, and their questions "
            f"as inconsistent{why_unread(result.run, counts.unanswered_rows / counts.rows)}."
        )
    return lines


def asked_until(until: UntilRun) -> str:
    """What was asked, in words."""
    if until.ended == "all":
        return f"all {count(until.questions, 'question')} in all orders"
    every = until.questions == until.of_questions
    questions = f"all {until.questions:,}" if every else f"{until.questions:,} of {until.of_questions:,}"
    return f"{questions} questions, {until.squares:,} in a square of orders, {until.whole:,} in all"


def _passage_lines(result: AuditResult) -> list[str]:
    questions = result.responses.questions
    n = len(with_shared_start(questions))
    if n < _MANY_SHARED * len(questions) or not n:
        return []
    return [
        f"{n:,} of {count(len(questions), 'question')} begin with the same {SHARED_START} characters as another: if "
        "these are passages, put them in a field named context. Questions on one passage then count together; the "
        "intervals here treat them as independent."
    ]


def _target_lines(result: AuditResult) -> list[str]:
    """Which questions the intervals are for, if there are subjects."""
    subjects = len(result.metrics.by_subject)
    if result.run.settings.get("across_subjects"):
        return [f"Intervals are for other subjects; they treat these {subjects} as a random sample."]
    further = (
        f"Intervals are for further questions of these {subjects} subjects; for others, add --across-subjects=True."
    )
    return [further] * (subjects > 1)


def _decision_lines(responses: Responses) -> list[str]:
    """Who labelled the options, and whether the server rounds, a sentence each; empty unless a server decided."""
    rows = responses.where(elicitation=DECISION)
    if not len(rows):
        return []
    lines = [
        "The server writes the prompt and labels the options: A, B, ... are positions from the top here, so label and "
        "position habits cannot be distinguished."
    ]
    probs = [np.exp(row) for row in rows.table["logprobs"].to_pylist() if row is not None]
    if len(probs) < _FEWEST:
        return lines
    values = np.concatenate(probs)
    for places in range(1, _MOST_PLACES + 1):
        scaled = values[values > 0.3 * 0.1**places] * 10**places  # less is a 0 (see models.decisions)
        if (np.abs(scaled - scaled.round()) < 1e-4).all():
            equal = sum(bool(is_tie(of_row.round(places))) for of_row in probs)
            lines.append(
                f"The server rounds probabilities to {count(places, 'decimal')}: in {count(equal, 'response')} of "
                f"{len(probs):,} the best options are equal, and the one that the server chose counts. PBM and other "
                "numbers from probabilities are equally coarse."
            )
            break
    return lines


def _until_lines(result: AuditResult) -> list[str]:
    """What was asked, what that saved, what is left open, and what the intervals mean."""
    until = result.run.until
    if not until:
        return []
    everything = until.ended == "all"
    line = f"Asked {asked_until(until)}: {until.prompts:,} of {until.of_prompts:,} prompts"
    if until.tokens and not everything:
        line += f", {until.tokens:,} of about {until.of_tokens:,} tokens of all questions in all orders"
    saved = "" if everything else f" ({percent(1 - until.share)} saved)"
    lines = [f"{line}{saved}."]
    step = until.path[-1]
    if not until.reached and step.half_width:
        needed = until.questions * (step.half_width / until.half_width) ** 2
        why = "everything was asked" if everything else "more orders of these questions would not narrow it by much"
        lines.append(
            f"The interval is ±{number(step.half_width, 4)}, wider than the ±{until.half_width:g} requested: {why}. "
            f"About {needed:,.0f} questions like these would be needed."
        )
    names = [METRICS[name].name for name, one in step.numbers.items() if one["method"].startswith(ANYTIME)]
    if names and not everything:
        lines.append(
            f"Intervals of {', '.join(names)} are anytime-valid: stopping when they are narrow does not invalidate "
            "them. All other intervals assume that the number of questions was fixed beforehand."
        )
    return lines


def phase_lines(result: AuditResult) -> list[str]:
    """Which orders each question was shown in, what each number rests on, and whether a square is enough."""
    phases = result.run.two_phase
    if phases is None:
        return []
    prompts, until = count(result.metrics.counts.rows, "prompt"), result.run.until
    square = "a random Latin square of its orders (every option in every place once)"
    presented, drawn = f"{square} and in the published order", "drawn at random by subject"
    means = "The mean over orders and the shares of labels come from the squares of all questions."
    predicted, alone = "PBM, consistency", "Flips"
    if until:
        square = square.replace("its orders", "their orders")
        presented, drawn = f"the published order, {until.squares:,} of them also in {square}", "drawn at random"
        means = "The mean over orders is of all questions; the shares of labels come from the squares."
        predicted, alone = "Consistency", "PBM, flips"
    sizes = [(int((~block.pinned).sum(axis=1).max()), block.k) for block in result.whole.blocks]
    every, sampled = "all orders", [(m, k) for m, k in sizes if k < math.factorial(m)]
    if sampled:
        every += f" (at most {max(k for _, k in sampled)} with {min(sampled)[0]} options or more)"
    lines = [
        f"Every question was shown in {presented}; {len(phases.full):,} of {count(len(result.scores), 'question')}, "
        f"{drawn}, in {every}, reversed, and with rearranged labels: {prompts} instead of "
        f"{phases.of_prompts:,} (--orders=cyclic:24).",
        f"{means} {predicted}, the vote and right in every order are predicted from the squares and corrected by the "
        f"questions shown in all orders. {alone}, label or position, corrections, AccStd and variance components come "
        f"from these {len(phases.full):,} alone.",
    ]
    if result.beyond_places is not None:
        share, pbm = result.beyond_places["beyond_places"], METRICS["pbm"]
        if share.low > BEYOND and round(result.metrics.means[pbm].value, pbm.digits) > 0:
            lines.append(
                f"Orders matter beyond places: {with_interval(share, 2)} of PBM comes from which "
                "options are next to each other or from the order as a whole. A square alone would miss it."
            )
    return lines


def adaptive_lines(adaptive: Adaptive | None) -> list[str]:
    """What stopping early has saved, and what it can have cost."""
    if adaptive is None:
        return []
    saved = adaptive.requests_of_all - adaptive.requests
    tokens = adaptive.tokens_saved
    of_tokens = f" and about {abs(tokens):,.0f} tokens" if tokens == tokens else ""
    share = percent(abs(saved) / adaptive.requests_of_all) if adaptive.requests_of_all else "0 %"
    requests = f"{adaptive.requests:,} requests instead of {adaptive.requests_of_all:,}: {share}{of_tokens}"
    drawn, left = f"{adaptive.checked:,} of", adaptive.agreeing - adaptive.checked
    if adaptive.at_random and left:
        lines = [
            f"{requests} saved. {drawn} {adaptive.agreeing:,} questions, drawn at random, were asked "
            "in all orders; in every number over orders they represent the others, asked in the published order only."
        ]
    elif adaptive.at_random:
        lines = [f"{requests} saved. With so few questions, all were asked in all orders."]
    else:
        outcome = "saved" if saved >= 0 else "more, as answers mostly differ between orders"
        same = "had the same answer in the given and the reversed order"
        if not adaptive.agreeing:
            what = f"none {same}, so all were asked in all orders"
        elif left:
            what = (
                f"{adaptive.agreeing:,} {same}; {drawn} them, drawn at random, were asked in all orders and represent "
            )
            what += "the others in every number over orders"
        else:
            what = f"{adaptive.agreeing:,} {same}; all of them were asked in all orders too, so none represents another"
        lines = [f"Asked adaptively: {requests} {outcome}. Of the questions with further orders, {what}."]
    if adaptive.other_vote.defined:
        lines.append(
            "The vote over all orders differs from the answer in the published order in "
            f"{with_interval(adaptive.other_vote)} of those drawn. "
            "Numbers of single orders (worst, best, whether orders differ) need all questions in all orders."
        )
    return lines


def _advice(result: AuditResult) -> list[str]:
    """What the run cannot detect, what limits it, and the orders that would have been enough, a sentence each."""
    least, unpaired = result.metrics.minimum_difference, result.metrics.minimum_difference_unpaired
    same, other = (f"under {number(one, 2)}" if one < _EVERY_DIFFERENCE else "of any size" for one in (least, unpaired))
    lines = []
    if least >= _EVERY_DIFFERENCE:
        few = count(result.metrics.counts.questions, "question is", "questions are")
        lines.append(f"{few} too few to detect any difference in accuracy (power 80 %).")
    elif least == least:
        where = f"{same} (to a model on the same questions) or {other} (on other questions)"
        lines.append(f"Differences in accuracy {where} cannot be detected (power 80 %).")
    variance = result.variance_components
    questions = variance.components.get(QUESTION) if variance else None
    if questions and questions["of_score"].defined:
        lines.append(
            f"{percent(questions['of_score'].value)} of the score's uncertainty comes from the choice of questions, "
            "the rest from the orders; `unslant plan` shows what more of either would gain."
        )
    curve = result.order_curve
    if curve is None:
        return lines
    every, point = curve.points[-1], curve.enough
    group = f"{count(curve.n_questions, 'question')} with {curve.n_options} options"
    if point is None:
        return [*lines, f"No cheaper set of orders matches all {every.k} to within {SAME} ({group})."]
    few, all_orders = significant(point.ordinary_runs), significant(curve.ordinary_runs)
    cost = f", at {few} instead of {all_orders} times the cost of an ordinary run"
    return [
        *lines,
        f"{count(point.k, 'order')} instead of {every.k} would have given the same to within "
        f"{point.within:.3f}{cost if point.ordinary_runs >= 0 else ''}: --orders={point.orders} ({group}).",
    ]
