"""One record for every number that is reported: its name, what it means, how it is written, and where it comes from.

Tables, tiles, ``docs/metrics.md`` and JSON read these records. ``python -m unslant.metrics.records docs/metrics.md``
writes the table of the docs page anew.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

START, END = "<!-- metrics: generated -->", "<!-- end of metrics -->"


@dataclass(frozen=True)
class Metric:
    """What there is to say about one number, whatever its value.

    Attributes:
        key: the JSON key; where a key means different things in different objects, with that of the object before it
            (``nvr.score``).
        name: for people.
        meaning: one line.
        digits: after the point.
        unit: ``nats``, ``tokens``, ...; ``%`` for a relative change, which is written as a percentage.
        share: whether it is a share, 0 to 1.
        source: paper and equation, or other reference.
        signed: whether it is a difference, written with its sign.
        minute: whether it may be minute and yet not 0, as p-values; others are taken for rounding errors below 1e-12.
        short: name where the context says the rest, such as the head of a column.
    """

    key: str
    name: str
    meaning: str
    digits: int = 3
    unit: str = ""
    share: bool = False
    source: str = ""
    signed: bool = False
    short: str = ""
    minute: bool = False

    @property
    def label(self) -> str:
        """The short name, or the name where there is none."""
        return self.short or self.name

    @property
    def scale(self) -> str:
        """Its unit or range in words; empty where the meaning says enough."""
        return self.unit or ("0 to 1" if self.share else "")


def _share(key: str, name: str, meaning: str, source: str = "", short: str = "") -> Metric:
    return Metric(key, name, meaning, share=True, source=source, short=short)


def _difference(key: str, name: str, meaning: str, source: str = "", short: str = "") -> Metric:
    return Metric(key, name, meaning, source=source, short=short, signed=True)


def _p(key: str, meaning: str, source: str = "") -> Metric:
    return Metric(key, "p", meaning, share=True, source=source, minute=True)


GROUPS: Mapping[str, tuple[Metric, ...]] = {
    "Right answers": (
        _share("accuracy", "accuracy, as reported", "options in the order of the file", short="as reported"),
        _share("expected_accuracy", "accuracy, mean over orders", "the score without luck of the order",
               short="mean over orders"),
        _share("robust_accuracy", "accuracy, right in every order", "what the order cannot change",
               short="right in every order"),
        _share("vote_accuracy", "accuracy, voted", "mean probability over orders: the corrected answer", "P1 eq. 6",
               short="voted"),
        _share("hard_vote_accuracy", "accuracy, voted by counts", "the option chosen under most orders"),
        _share("over_orders.worst", "accuracy, worst order", "whole set under one order", short="worst order"),
        _share("over_orders.best", "accuracy, best order", "whole set under one order", short="best order"),
        Metric("acc_std", "AccStd", "spread of accuracy over the orders", 4, source="P1, \"Perm Acc Std\""),
        Metric("acc_std_by_chance", "AccStd by chance", "what AccStd would be if no order were better", 4),
        Metric("acc_std_corrected", "AccStd, chance taken out", "spread that the orders themselves make", 4),
        _p("over_orders.p", "Cochran's Q: no order is better than another", "Cochran 1950"),
        _difference("order_advantage", "order advantage", "as reported less the mean over orders"),
        _share("accuracy_last_tie", "accuracy, last label wins ties", "as reported, ties to the last label shown"),
        _share("accuracy_split_tie", "accuracy, ties share", "as reported, tied options share the credit"),
        _share("answered", "replies that answer", "share of replies, over all orders, that name one option"),
        _share("answered_accuracy", "accuracy, of answered", "as reported, without replies that are no answer",
               short="of answered"),
        _share("chance", "chance", "share of options that are right"),
        _difference("above_chance.excess", "above chance", "mean over orders less chance"),
        _p("above_chance.p", "one-sided: no better than guessing"),
        Metric("minimum_difference", "minimum detectable difference, paired",
               "in accuracy to another model on the same questions, power 80 %", 2, source="Connor 1987"),
        Metric("minimum_difference_unpaired", "minimum detectable difference, unpaired",
               "in accuracy to another model on as many other questions, power 80 %", 2),
    ),
    "How much the answer moves": (
        _share("consistency", "consistency", "questions with the same answer in every order"),
        _share("fr", "flips when reversed (FR)", "answer changes when the order is reversed", "P1 eq. 3", short="FR"),
        _share("fr_labels", "flips, labels reversed", "answer changes when only the labels are reversed", "P1 eq. 3"),
        _share("fr_both", "flips, both reversed", "answer changes when order and labels are reversed", "P1 eq. 3"),
        Metric("pbm", "PBM", "variance of an option's probability over the orders", 4, source="P1 eq. 1-2"),
        _share("normalised_pbm", "PBM, normalised", "share of its maximum"),
        _share("tie_rate", "ties", "several options equally probable, given order"),
        _share("order_tie_rate", "ties, all orders", "share of orders with several options equally probable"),
        _share("vote_tie_rate", "ties in the vote", "several options tied in the vote"),
        _share("margin", "margin", "probability of the label chosen less that of the next, given order"),
        _share("label_mass", "label mass", "probability of all labels together, of all that could be said next"),
        Metric("pbm_accuracy.pearson", "PBM against accuracy, r",
               "Pearson correlation across subjects, or sets and models", 2, source="P1 sec. 4", short="r"),
        _p("pbm_accuracy.pearson_p", "of the Pearson correlation, two-sided"),
        Metric("pbm_accuracy.spearman", "PBM against accuracy, Spearman",
               "rank correlation across subjects, or sets and models", 2, short="Spearman"),
        _p("pbm_accuracy.spearman_p", "of the rank correlation, two-sided"),
    ),
    "Replies": (
        _share("replies.none_or_several", "none or several", "replies naming none or several options; not right"),
        _share("noise.between_orders", "flips between orders", "pairs of orders with different answers"),
        _share("noise.between_repeats", "flips between repeats", "pairs of replies to the same page that differ"),
        _difference("noise.beyond_noise", "flips beyond noise", "between orders less between repeats, same questions"),
        _share("adaptive.other_vote", "other vote", "agreeing questions whose vote over all orders is another answer"),
    ),
    "Calibration": (
        _share("calibration.confidence", "confidence", "of the label chosen, given order, or as the reply states"),
        _share("calibration.right", "right, of these", "share right of the answers with a confidence"),
        _share("calibration.ece", "ECE", "distance of confidence from the share right, in ten equal bins",
               "Guo et al. 2017"),
        _share("calibration.ece_by_chance", "ECE by chance", "what ECE would be were the confidence right"),
        _p("calibration.p", "answers are right as often as the confidence says", "Bröcker and Smith 2007"),
        _share("calibration.brier", "Brier score", "squared distance of confidence from right (1) or wrong (0)",
               "Brier 1950"),
    ),
    "Length of option texts": (
        _share("length_bias.accuracy", "accuracy, sum", "the option of the highest sum of log-probabilities"),
        _share("length_bias.normalised", "accuracy, per character", "of the highest sum over its characters (acc_norm)",
               "lm-eval"),
        _difference("length_bias.change", "change", "per character less sum, same questions"),
        _p("length_bias.p", "exact McNemar test: per character is no better and no worse"),
        _difference("length_bias.shortest_excess", "shortest, sum", "answers that are shortest, less right ones"),
        _difference("length_bias.longest_excess", "longest, sum", "answers that are longest, less right ones"),
        _difference("length_bias.normalised_shortest_excess", "shortest, per character",
                    "answers that are shortest, less right ones"),
        _difference("length_bias.normalised_longest_excess", "longest, per character",
                    "answers that are longest, less right ones"),
    ),
    "Labels": (
        Metric("rstd", "RStd", "spread of recall over the labels", source="P1 eq. 4; Zheng et al. 2024"),
        Metric("rsd", "RSD", "spread of recall relative to its mean", source="Reif and Schwartz 2024"),
        Metric("ckld", "CKLD", "predicted against gold label shares", unit="nats",
               source="P1 eq. 5; Choi et al. 2024"),
        Metric("ckld_smoothed", "CKLD, smoothed", "CKLD with 1 added to every count", unit="nats", short="CKLD"),
        _share("predicted", "predicted", "share of answers, given order"),
        _share("gold", "gold", "share of right options, given order"),
        _share("recall", "recall", "accuracy when the right option stands there, given order"),
        _share("order_labels.recall", "recall, all orders", "accuracy when the right option is moved there"),
        Metric("rstd_corrected", "RStd, chance taken out", "by number of options, pooled by N"),
        Metric("rsd_corrected", "RSD, chance taken out", "by number of options, pooled by N"),
        _share("cramers_v", "Cramér's V", "of the right option's place with being right, chance taken out",
               "Bergsma 2013"),
        _p("label_bias.p", "recall is the same wherever the right option stands"),
        _difference("predicted_excess", "predicted less gold", "share of answers less share of right options"),
        _share("unsure", "unsure", "questions whose answer changes with the order or the labels"),
        _share("sticky", "keeps to one place", "unsure questions of which one place gets nearly all answers"),
        _share("chosen", "chosen when unsure", "share of orders, where unsure"),
        _share("expected", "expected", "chosen when unsure by a model going by content alone"),
        Metric("preference.effect", "effect", "added to an option's log-probability when unsure", 2, "nats",
               signed=True),
        _difference("preference.excess", "effect on choice", "added to the share of unsure answers"),
        _p("preference.labels.p", "it adds nothing; corrected for the number of rows", "Holm 1979"),
        _p("preference.subjects_p", "permutation test: subjects do not differ in their habit"),
    ),
    "Nvr-X": (
        _share("nvr.score", "Nvr-X score", "least accuracy when the right option never stands under a label",
               "P5 sec. 3.2"),
        _share("nvr.accuracy", "Nvr-X", "accuracy when the right option never stands there", "P5 sec. 3.2"),
        _share("nvr.plain", "as given", "accuracy as given, same questions"),
        _difference("nvr.drop", "drop to Nvr-X", "as given less the Nvr-X score, paired"),
        _share("nvr.guess", "guessing on Nvr-X", "expected score of guessing"),
        _share("nvr.never", "avoiding one label", "expected Nvr-X score of never answering one label"),
        _difference("readings.gap", "gap", "one Nvr-X less the median of the others"),
        _share("nvr_by_subject", "Nvr-X score, mean of subjects", "unweighted mean over subjects", "P5 table 3"),
    ),
    "Base rates": (
        Metric("base_rates.by_label", "base rate", "probability of a label where there is nothing to know", 4,
               share=True, source="P5 sec. 3.1"),
        Metric("base_rates.by_position", "rate by position", "probability of whatever stands at a place", 4,
               share=True),
        _share("base_rates.shares", "share", "base rate as a share of all labels'"),
        _share("base_rates.distance", "distance from even", "guesses that would go elsewhere were all labels alike"),
        _share("base_rates.position_distance", "distance by position", "the same for positions"),
        _share("base_rates.label_part", "variance by label", "part of the variance that the label explains"),
        _share("base_rates.position_part", "variance by position", "part of the variance that the position explains"),
        _p("base_rates.label_p", "permutation test: the label makes no difference"),
        _p("base_rates.position_p", "permutation test: the position makes no difference"),
        _share("accuracy.first", "ties to the first", "accuracy, the first tied label wins", "P5 table 3"),
        _share("accuracy.split", "ties shared", "accuracy, tied labels share the credit"),
        _share("accuracy.last", "ties to the last", "accuracy, the last tied label wins"),
        _share("by_subject.first", "mean of subjects", "unweighted mean over subjects, ties to the first",
               "P5 table 3"),
        _share("by_subject.split", "mean of subjects, ties shared", "unweighted mean over subjects, ties shared"),
        _share("by_subject.last", "mean of subjects, ties to the last", "unweighted mean over subjects, ties to last"),
        _share("all_tied", "all tied", "questions where all labels are equally probable"),
        _share("accuracy_by_gold_label.by_label", "accuracy by gold label",
               "accuracy where the right option stands under that label", "P5 fig. 1"),
        _share("by_subject.accuracy", "accuracy by gold label, one subject", "the same in one subject"),
        _share("accuracy_by_gold_label.gap", "gap between gold labels", "highest less lowest accuracy by gold label"),
        Metric("pooled_correlation_own_base_rates.r", "base rate against accuracy, pooled r",
               "over pairs of subject and label", 2),
        _p("pooled_correlation_own_base_rates.p", "of the pooled r, were all pairs independent"),
        Metric("assignment_p", "assignments with r as high", "share of all ways to assign the base rates to labels",
               share=True),
        Metric("median", "base rate against accuracy, median r", "over subjects, of r within each", 2,
               source="P5 fig. 1"),
        Metric("subject_correlation_cloze_base_rates.by_subject", "r within a subject", "over its labels", 2,
               source="P5 fig. 1"),
        _share("published", "paper", "as published", "P5 table 3"),
        _share("published.ours", "here", "from the scores at hand"),
        Metric("published.difference", "difference", "here less the paper", 4, signed=True),
        _share("shortcuts.score", "scores alone", "accuracy of the shortcut, where it applies"),
        _share("shortcuts.guess", "guessing", "accuracy of guessing on the same questions"),
        _share("follow", "followed when wrong", "the model's answer is the shortcut's, both being wrong"),
        _share("follow_chance", "by chance", "the same for wrong answers picked at random"),
        _difference("shortcuts.excess", "more than by chance", "followed when wrong, less by chance"),
        _share("applies", "applies", "questions on which the shortcut says anything"),
    ),
    "Corrections and debiasing": (
        _share("corrections.accuracy", "accuracy", "of the corrected answers"),
        _difference("corrections.change", "change", "accuracy less that of the order of the file, same questions"),
        Metric("corrections.orders", "orders", "orders a question that the method looks at", 1, "orders"),
        Metric("change.relative", "change", "of the undebiased model's", 0, "%", signed=True, source="P1 table 3"),
        _difference("change.difference", "difference", "to the undebiased model, same questions"),
        _p("change.p", "both answers to a question change places at random: the method changes nothing"),
        Metric("spent.tokens", "tokens", "computed for each question answered", 0, "tokens"),
        Metric("spent.forwards", "forwards", "presentations scored for each question answered", 2, "presentations"),
        Metric("spent.seconds", "seconds", "for each question answered", 4, "seconds"),
        Metric("debiasing_tokens", "tokens to fit", "once", 0, "tokens"),
        Metric("debiasing_forwards", "forwards to fit", "once", 0, "presentations"),
        Metric("debiasing_seconds", "seconds to fit", "once", 1, "seconds"),
    ),
    "Training of an adapter": (
        Metric("entropy", "entropy", "of one order's probabilities: 0 certain, 1 uniform", share=True),
        Metric("loss", "loss", "on held-out questions", source="P1 eq. 8"),
        Metric("train_loss", "loss in training", "mean over the epoch's training questions", source="P1 eq. 8"),
    ),
    "Runs side by side": (
        _difference("difference", "difference", "of the same questions, paired"),
        Metric("differences.a", "this run", "on the questions both have"),
        Metric("differences.b", "first run", "on the questions both have"),
        _p("p_value", "exact McNemar test: both are equally likely to be the only one"),
    ),
    "Leaderboard": (
        _p("neighbours.p", "paired: both models are equally good; corrected for the number of pairs", "Holm 1979"),
        Metric("ways.tokens", "tokens", "that go through the model", 0, "tokens", source="P1 table 2"),
        _share("ways.saved", "tokens saved", "of those of all orders, each prompt alone", "P1 table 2"),
        Metric("ways.seconds", "seconds", "for all questions", 1, "seconds", source="P1 table 2"),
    ),
    "Instruction boundary": (
        _share("settings.accuracy", "accuracy", "questions answered right", "P3 eq. 1"),
        _share("stability", "SR", "accuracy where one option is right, or True or False", "P3 eq. 2"),
        _share("generalization", "GR", "accuracy where none or several are right, or Unknown", "P3 eq. 3"),
        _share("generalization_none", "GR none", "accuracy where none is right", "P3 eq. 3"),
        _share("generalization_several", "GR several", "accuracy where several are right", "P3 eq. 3"),
        _share("robustness", "RS", "harmonic mean of SR and GR", "P3 eq. 6-7"),
        _share("outputs", "output rate", "share of a form among all replies that came", "P3 eq. 4-5"),
        _share("outputs_sparse", "output rate, unusual forms", "share of none, several or Unknown among all replies",
               "P3 eq. 5", short="OR sparse"),
        _share("outputs_readable", "output rate among readable replies", "without the replies that are no answer"),
        _share("truth", "truth", "share of a form among the right answers"),
        _difference("changes.difference", "against vanilla", "accuracy less that under vanilla, same questions"),
        _p("changes.p_value", "exact McNemar test against vanilla"),
        _share("judged", "read by a judge", "replies that a judge had to read"),
        _share("unparsed", "unparsed", "replies in which no answer is found; they count as not right"),
        _share("refused", "refused", "refusals; they count as not right"),
        _share("errors", "no reply", "requests without a reply; they are left out of the accuracy"),
    ),
    "Unbiased evaluator": (
        _share("vanilla", "as published (vanilla)", "accuracy", "P4 table 2", short="as published"),
        _share("ours", "under interventions (ours)", "mean over runs of each question", "P4 table 2",
               short="under interventions"),
        _difference("drop", "drop", "as published less under interventions, question by question", "P4 table 2"),
        _share("vanilla_chance", "chance, as published", "answering at random"),
        _share("ours_chance", "chance, under interventions", "answering at random"),
        _share("none_found", "none found", "where no option is right, that is answered"),
        _share("none_invented", "none invented", "where an option is right, none is answered"),
        _share("items", "true/false items", "each item by itself"),
        _share("run_mean", "mean over runs", "accuracy under interventions, run by run"),
        Metric("run_std", "std over runs", "sample standard deviation over runs"),
        _share("runs", "accuracy of a run", "under interventions"),
        _share("alone.accuracy", "accuracy", "under one intervention alone", "P4 fig. 6"),
        _share("alone.vanilla", "as published", "the same questions as published"),
        _difference("alone.change", "change", "accuracy less that of the same questions as published", "P4 fig. 6"),
        _share("unreadable", "no answer", "replies that are no answer, unparsed or refused; they count as not right"),
        _share("readable", "right among readable replies", "accuracy without the replies that are no answer"),
        _share("confusion.both", "right as published, right under interventions", "of pairs of question and run",
               "P4 fig. 4"),
        _share("confusion.lost", "right as published, wrong under interventions", "of pairs of question and run"),
        _share("confusion.gained", "wrong as published, right under interventions", "of pairs of question and run"),
        _share("confusion.neither", "wrong as published, wrong under interventions", "of pairs of question and run"),
        Metric("kendall", "Kendall", "rank correlation", 2, source="P4 tables 1, 4"),
        _p("kendall_p", "of Kendall's rank correlation"),
        Metric("pearson", "Pearson", "correlation", 2, source="P4 tables 1, 4"),
        _p("pearson_p", "of Pearson's correlation"),
    ),
    "Contamination": (
        _difference("vanilla_gain", "gain as published", "after minus before, same questions"),
        _difference("ours_gain", "gain under interventions", "after minus before, same questions"),
        _difference("excess", "excess", "gain as published beyond the gain under interventions", "P4 sec. 6.2"),
        _share("share_right", "right in the last epoch", "of the questions fine-tuned on"),
    ),
    "Evaluator probe": (
        _share("ocr", "OCR", "over-confidence: it accepts the kept answer, the others reject it", "P4 eq. 6"),
        _share("ucr", "UCR", "under-confidence: it rejects the kept answer, the others accept it", "P4 eq. 7"),
        _share("cer", "CER", "consensus error: all reject it, weighted by how surely", "P4 eq. 5"),
        _share("rejected", "rejected by all", "questions that both reject, unweighted"),
    ),
    "Annotation": (
        _share("confirmed", "expected answers confirmed", "verdicts that call the expected answer right",
               "P4 sec. 6.7"),
        _share("by_annotator", "confirmed by one person", "the same for one annotator"),
        _share("by_intervention", "confirmed under one combination", "the same for one combination of interventions"),
        _share("agreement", "pairs of people that agree", "over items with two verdicts or more"),
        Metric("kappa", "agreement beyond chance", "Krippendorff's alpha: 1 is perfect, 0 chance", 3),
    ),
}  # fmt: skip
"""Every number that is reported, by what it is about."""
METRICS: Mapping[str, Metric] = {metric.key: metric for group in GROUPS.values() for metric in group}
"""The same by key."""


def record_of(path: Sequence[str]) -> Metric | None:
    """The record of the number at a path in JSON (``metrics``, ``means``, ``accuracy``); None if it has none.

    Records whose key names the object before it go first.
    """
    for start in range(len(path)):
        if found := METRICS.get(".".join(path[start:])):
            return found
    qualified = (METRICS.get(f"{before}.{path[-1]}") for before in reversed(path[:-1]))
    return next(filter(None, qualified), METRICS.get(path[-1]) or METRICS.get(path[-2] if len(path) > 1 else ""))


def markdown() -> str:
    """All records as tables for the docs page."""
    lines = []
    for title, group in GROUPS.items():
        lines += [f"### {title}", "", "| key | name | meaning | scale | source |", "|---|---|---|---|---|"]
        lines += [f"| `{m.key}` | {m.name} | {m.meaning} | {m.scale} | {m.source} |" for m in group]
        lines.append("")
    return "\n".join(lines)


def written_into(page: str) -> str:
    """A docs page with the tables between its markers written anew."""
    before, rest = page.split(START)
    return f"{before}{START}\n\n{markdown()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    from unslant.writing import write_atomically

    path = Path(sys.argv[1])
    write_atomically(path, written_into(path.read_text("utf-8")))
