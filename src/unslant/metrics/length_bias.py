"""Whether scores of option texts, each by itself, depend on how long the texts are."""

from __future__ import annotations

import numpy as np

from unslant.arrays import Bools, Floats
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.pairs import mcnemar
from unslant.metrics.registry import Numbers, metric
from unslant.metrics.scores import Places

_EXCESS = "answers that are {}, less right ones"


@metric("length_bias.accuracy", "accuracy, sum", "the option of the highest sum of log-probabilities", unit="share")
@metric(
    "length_bias.normalised",
    "accuracy, per character",
    "of the highest sum over its characters (acc_norm)",
    unit="share",
    source="lm-eval",
)
@metric("length_bias.change", "change", "per character less sum, same questions", unit="difference")
@metric("length_bias.p", "p", "exact McNemar test: per character is no better and no worse", unit="p")
@metric("length_bias.shortest_excess", "shortest, sum", _EXCESS.format("shortest"), unit="difference")
@metric("length_bias.longest_excess", "longest, sum", _EXCESS.format("longest"), unit="difference")
@metric(
    "length_bias.normalised_shortest_excess", "shortest, per character", _EXCESS.format("shortest"), unit="difference"
)
@metric("length_bias.normalised_longest_excess", "longest, per character", _EXCESS.format("longest"), unit="difference")
def length_bias(logprobs: Floats, lengths: Floats, answers: Bools, bootstrap: Bootstrap) -> Numbers | None:
    """The answer by the sum of an option's log-probabilities against that by the sum over its number of characters.

    A sum falls with every token, so the sum favours short options, and the mean those whose later tokens can be
    guessed. Per character is what lm-eval calls ``acc_norm``; a log has no number of tokens. The excess of the shortest
    (longest) option is on the questions whose options differ in length; above 0, length decides.

    Args:
        logprobs: (Q, N) sum for each option, natural log; nan in the padding.
        lengths: (Q, N) characters of each option; nan likewise.
        answers: (Q, N) which options are right; questions without a right one are left out.

    Returns:
        None if no question has a score and a length for each option.
    """
    exists = np.isfinite(lengths)
    known = (exists == np.isfinite(logprobs)).all(axis=1) & ((lengths > 0) | ~exists).all(axis=1) & answers.any(axis=1)
    if not known.any():
        return None
    logprobs, lengths, answers = logprobs[known], lengths[known], answers[known]

    def mean(values: Floats, *, share: bool = True, note: str = "") -> Estimate:
        every = np.full(len(known), np.nan)
        every[known] = values
        return bootstrap.mean(every, share=share, note=note)

    rows = np.arange(len(lengths))
    by_sum, by_mean = (np.nanargmax(values, axis=1) for values in (logprobs, logprobs / lengths))
    plain, normalised = (answers[rows, pick].astype(np.float64) for pick in (by_sum, by_mean))
    ends = [function(lengths, axis=1, keepdims=True) for function in (np.nanmin, np.nanmax)]
    differ = (ends[0] < ends[1])[:, 0]
    note = "" if differ.any() else "options of one length only"

    def excess(pick: Places, end: Floats) -> Estimate:
        of_right = (answers & (lengths == end)).sum(axis=1) / answers.sum(axis=1)
        share = (lengths == end)[rows, pick] - of_right
        return mean(np.where(differ, share, np.nan), share=False, note=note)

    names = ("shortest_excess", "longest_excess", "normalised_shortest_excess", "normalised_longest_excess")
    values = [excess(pick, end) for pick in (by_sum, by_mean) for end in ends]
    return Numbers(
        {
            "length_bias.accuracy": mean(plain),
            "length_bias.normalised": mean(normalised),
            "length_bias.change": mean(normalised - plain, share=False),
            "length_bias.p": mcnemar(int((normalised > plain).sum()), int((plain > normalised).sum())),
            **{f"length_bias.{name}": value for name, value in zip(names, values, strict=True)},
        }
    )
