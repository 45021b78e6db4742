"""What every form of the audit's report says: its rows with their meaning, and its notes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from unslant.metrics import Estimate, Metrics

if TYPE_CHECKING:
    from unslant.studies.audit import AuditResult


class Row(NamedTuple):
    """One number of the whole set; ``digits`` after the point."""

    name: str
    estimate: Estimate
    meaning: str
    digits: int = 3


def percent(share: float) -> str:
    """A share in running text: ``53 %``."""
    return f"{100 * share:.0f}\N{NO-BREAK SPACE}%"


def minus(value: float) -> str:
    """A number that may be negative, in running text."""
    return f"{value:.2f}".replace("-", "−")


def score_rows(metrics: Metrics) -> tuple[Row, ...]:
    """The numbers of the audit, without those that are undefined here."""
    means, bias, over = metrics.means, metrics.label_bias, metrics.over_orders
    rows = (
        Row("accuracy, as reported", means.accuracy, "options in the order of the file"),
        Row("accuracy, mean over orders", means.expected_accuracy, "the score without luck of the order"),
        Row("accuracy, right in every order", means.robust_accuracy, "what the order cannot change"),
        Row("accuracy, voted", means.vote_accuracy, "mean probability over the orders: the corrected answer"),
        Row("accuracy, worst order", over.worst, "whole set under one order"),
        Row("accuracy, best order", over.best, "whole set under one order"),
        Row("chance", means.chance, "share of options that are right"),
        Row("consistency", means.consistency, "questions with the same answer in every order"),
        Row("flips when reversed (FR)", means.fr, "answer changes when the order is reversed"),
        Row("flips, labels reversed", means.fr_labels, "answer changes when only the labels are reversed"),
        Row("flips, both reversed", means.fr_both, "answer changes when order and labels are reversed"),
        Row("PBM", means.pbm, "variance of an option's probability over the orders", 4),
        Row("PBM, normalised", means.normalised_pbm, "share of its maximum"),
        Row("AccStd", over.std, "spread of accuracy over the orders"),
        Row("RStd", bias.rstd, "spread of recall over the labels"),
        Row("RSD", bias.rsd, "the same, relative to the mean"),
        Row("CKLD", bias.ckld_smoothed, "predicted against gold label shares, 1 added to every count"),
        Row("ties", means.tie_rate, "several options equally probable, given order"),
    )
    return tuple(row for row in rows if row.estimate.defined)


def notes(result: AuditResult) -> list[str]:
    """What was left out or needs care, one sentence each."""
    counts = result.metrics.counts
    found = [
        (counts.failed_rows, "responses failed; they count as no answer, and their questions are left out of orders"),
        (counts.incomplete, "questions left out of the order metrics because an order is missing or failed"),
        (counts.no_right_option, "questions have no right option and are left out of accuracies"),
        (counts.several_right, "questions have several right options; naming one of them counts as right"),
        (counts.with_pinned, "questions have options that keep their place (all of the above, both A and C)"),
        (counts.immovable, "questions have nothing to reorder"),
        (counts.sampled_orders, "questions were shown in a sample of their orders"),
    ]
    lines = [f"{count:,} {words}" for count, words in found if count]
    loading = result.meta.get("loading")
    if isinstance(loading, dict):
        lines += [f"{count:,} lines skipped: {reason}" for reason, count in loading.get("skipped", {}).items()]
    return lines


def cost_line(result: AuditResult) -> str:
    """Prompts, time and tokens; empty where nothing was scored."""
    cost = result.cost
    if not cost.prompts:
        return ""
    each = cost.tokens
    seconds = f" in {cost.seconds:.1f} s" if cost.seconds else ""  # a file does not tell
    if not each:  # a served model: the server counts
        return f"{cost.prompts:,} prompts{seconds}"
    return (
        f"{cost.prompts:,} prompts{seconds}; {cost.tokens:,} tokens computed, "
        f"{cost.tokens_plain:,} if each prompt were run alone ({cost.tokens_plain / each:.1f}x), "
        f"{cost.tokens_baqckv:,} with question-context caching ({cost.tokens_baqckv / each:.1f}x)"
    )
