"""Whether scores of option texts, each by itself, depend on how long the texts are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unslant.arrays import Bools, Floats, Jsonable
from unslant.metrics.bootstrap import Bootstrap
from unslant.metrics.estimate import Estimate
from unslant.metrics.pairs import mcnemar
from unslant.metrics.scores import Places


@dataclass(frozen=True)
class LengthBias(Jsonable):
    """The answer by the sum of an option's log-probabilities against that by the sum over its number of characters.

    A sum falls with every token, so the sum favours short options, and the mean those whose later tokens can be
    guessed. Per character is what lm-eval calls ``acc_norm``; a log has no number of tokens.

    Attributes:
        accuracy: by the sum (lm-eval: ``acc``).
        normalised: by the sum over the number of characters.
        change: normalised less accuracy, paired.
        p: exact McNemar test of that.
        shortest_excess, longest_excess: share of answers that are a shortest (longest) option less the share of right
            options that are, by the sum, on the questions whose options differ in length; above 0, length decides.
        normalised_shortest_excess, normalised_longest_excess: the same, normalised.
    """

    accuracy: Estimate
    normalised: Estimate
    change: Estimate
    p: float
    shortest_excess: Estimate
    longest_excess: Estimate
    normalised_shortest_excess: Estimate
    normalised_longest_excess: Estimate


def length_bias(logprobs: Floats, lengths: Floats, answers: Bools, bootstrap: Bootstrap) -> LengthBias | None:
    """Length bias over Q questions of up to N options; None if none has a score and a length for each option.

    Args:
        logprobs: (Q, N) sum for each option, natural log; nan in the padding.
        lengths: (Q, N) characters of each option; nan likewise.
        answers: (Q, N) which options are right; questions without a right one are left out.
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

    return LengthBias(
        mean(plain),
        mean(normalised),
        mean(normalised - plain, share=False),
        mcnemar(int((normalised > plain).sum()), int((plain > normalised).sum())),
        *(excess(pick, end) for pick in (by_sum, by_mean) for end in ends),
    )
