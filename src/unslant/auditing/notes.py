"""What a reader of an audit must know to read its numbers, one sentence each."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from unslant.auditing.one_order import CHARACTERS_A_TOKEN
from unslant.auditing.panels_labels import one_order
from unslant.auditing.panels_orders import until_lines
from unslant.auditing.panels_phases import phase_lines
from unslant.auditing.panels_replies import adaptive_lines, reply_lines, unanswered_lines
from unslant.auditing.panels_variance import advice
from unslant.experiment.provenance import cost_lines, counted, logged_lines
from unslant.metrics.summary import Counts
from unslant.metrics.ties import is_tie
from unslant.reports.numbers import count, percent
from unslant.responses import Responses
from unslant.responses.table import DECISION

if TYPE_CHECKING:
    from unslant.auditing.result import AuditResult

_FEWEST = 10
"""Fewest responses from which rounding is reported: fewer may be round by chance."""
_MOST_PLACES = 4
LEAST_LABEL_MASS = 0.5
"""Below, a warning: less than half of the probability of the next token is on labels."""
MANY_FAILED = 0.05
"""Share of responses without an answer above which that comes before the score."""


def caveats(result: AuditResult) -> list[str]:
    """What must be known before the score: few labels, many failures, replies that conflict or were cut."""
    counts, mass = result.metrics.counts, result.metrics.means["label_mass"].value
    found = []
    if mass < LEAST_LABEL_MASS:
        chat, how = ("its chat template", "") if result.run.logged else ("--chat", " (--labels, --template)")
        found.append(
            f"The labels receive only {percent(mass, 1)} of the probability: the model would probably say something "
            f"else. Likely causes: a chat model asked without {chat}, labels or a template it does not expect{how}, or "
            "a model that thinks before it answers."
        )
    lost = counts.failed_rows + counts.unanswered_rows
    return [*found, *(_failures(counts) if lost > MANY_FAILED * counts.rows else []), *reply_lines(result.replies)]


def _failures(counts: Counts) -> list[str]:
    failed = "failed: no reply, or no usable scores. Their questions are excluded from the order metrics."
    lines = [f"{count(counts.failed_rows, 'response')} {failed}"] if counts.failed_rows else []
    return lines + unanswered_lines(counts)


def notes(result: AuditResult) -> list[str]:
    """What was left out or needs care, and the cost, one sentence each."""
    counts, known = result.metrics.counts, caveats(result)
    missing = "excluded from the order metrics because an order is missing or failed"
    several = "several right options; choosing any of them counts as right"
    pinned = "options that keep their place (all of the above, both A and C)"
    sentences = [
        (counts.incomplete, missing, missing),
        (
            counts.no_right_option,
            "has no right option; excluded from accuracies",
            "have no right option; excluded from accuracies",
        ),
        (counts.several_right, f"has {several}", f"have {several}"),
        (counts.with_pinned, f"has {pinned}", f"have {pinned}"),
        (counts.immovable, "has nothing to reorder", "have nothing to reorder"),
        (
            counts.sampled_orders * (not result.run.two_phase),
            "was shown in a sample of its orders",
            "were shown in a sample of their orders",
        ),
    ]
    if one_order(result):
        sentences = sentences[1:4]
    return [
        *(line for line in _failures(counts) if line not in known),
        *(
            [
                f"Label scores that are only upper bounds, because the server did not return the label: "
                f"{counts.bounded_scores:,}; responses whose best label may be one of them, hence no answers: "
                f"{counts.censored_rows:,}."
            ]
            if counts.bounded_scores
            else []
        ),
        *counted(sentences),
        *(
            [
                f"Tokens are estimated from unslant's own prompts, {CHARACTERS_A_TOKEN} characters a token, each run "
                "alone; a local model computes shared beginnings once."
            ]
            if "tokens" in result.left_open
            else []
        ),
        *decision_lines(result.responses),
        *logged_lines(result.run),
        *target_lines(result),
        *until_lines(result),
        *phase_lines(result),
        *adaptive_lines(result.replies.adaptive if result.replies else None),
        *advice(result),
        *cost_lines(result.cost),
    ]


def target_lines(result: AuditResult) -> list[str]:
    """Which questions the intervals are about, where there are subjects."""
    subjects = len(result.metrics.by_subject)
    if result.run.settings.get("across_subjects"):
        return [f"Intervals are for other subjects, of which these {subjects} are taken to be a random sample."]
    further = f"Intervals are for further questions of these {subjects} subjects; for others, add --across-subjects."
    return [further] * (subjects > 1)


def decision_lines(responses: Responses) -> list[str]:
    """That labels are the server's, and whether it rounds, a sentence each; none of other audits."""
    rows = responses.where(elicitation=DECISION)
    if not len(rows):
        return []
    lines = [
        "The server words the prompt and labels the options: A, B, ... are places from the top here, and whether "
        "a habit is about labels or places cannot be known."
    ]
    found = [np.exp(row) for row in rows.table["logprobs"].to_pylist() if row is not None]
    if len(found) < _FEWEST:
        return lines
    values = np.concatenate(found)
    for places in range(1, _MOST_PLACES + 1):
        scaled = values[values > 0.3 * 0.1**places] * 10**places  # less is a 0 (see models.decisions)
        if (np.abs(scaled - scaled.round()) < 1e-4).all():
            equal = sum(bool(is_tie(own.round(places))) for own in found)
            lines.append(
                f"The server rounds probabilities to {count(places, 'decimal')}: in {count(equal, 'response')} of "
                f"{len(found):,} the best options are equal, and the one that the server chose counts. PBM and other "
                "numbers from probabilities are as coarse."
            )
            break
    return lines
