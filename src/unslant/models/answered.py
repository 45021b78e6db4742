"""Which model answers, and whether it stays the same from the first reply of a run to the last.

An address and a name say little about what is behind them, so two signs are checked. Every reply names a model and may
name a system (``system_fingerprint``); both are kept with its scores. And some prompts are asked again at the end.

- *Another model named* is an error. The name need not be the one that was asked for (``gpt-4o`` answers as
  ``gpt-4o-2024-08-06``), but it must stay the same; a reply that names none says nothing.
- *Another system named* is a caveat in the result. OpenAI serves one model from several systems at a time and changes
  them without changing weights, so an error would end most long runs for nothing. Asking again shows whether scores
  changed.
- *Other scores for the same prompt* are an error, unless they are noise: a prompt whose second answer differs from the
  first is asked a third time, and only if the last two agree has something changed. That alone proves nothing:
  llama.cpp gives one prompt in ten other scores once its prefix is in the cache, and the same ones from then on. So
  what counts is how far the scores moved, and of how many prompts (:func:`have_changed`).
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from unslant.arrays import Floats
from unslant.errors import ModelError, printable
from unslant.files import whole_text
from unslant.models.base import NOBODY, Malformed, Scored
from unslant.prompts import Prompt
from unslant.responses.provenance import AnsweredBy

ASKED_AGAIN = 8
"""Prompts that a server is asked again, at most; in small calls, a quarter of all."""
_FEWEST = 8  # answers before any is asked again: those of small calls are collected
_ANCHORS = 2  # of the first answers that stay in the sample of later calls
WHAT_TO_DO = (
    "What was answered before is kept. Run the same command again: if the server is as it was, it asks for the rest, "
    "else for everything"
)


class ModelChanged(ModelError):
    """A server has become another model during a run.

    Attributes:
        since: the prompts answered since then, whose scores are the other model's.
    """

    def __init__(self, problem: str, since: Sequence[Prompt] = ()) -> None:
        super().__init__(problem)
        self.since = tuple(since)

    def with_store(self) -> ModelChanged:
        """The same error of a run whose answers are in a store."""
        return ModelChanged(f"{self}. {WHAT_TO_DO}", self.since)


def named_in(reply: Mapping[str, Any]) -> tuple[str, str]:
    """The model and the system that a reply names; empty where it names none.

    Raises:
        Malformed: if a name is not a text.
    """
    model, system = (reply.get(key) for key in ("model", "system_fingerprint"))
    for name in (model, system):
        if name is not None and not isinstance(name, str):
            raise Malformed(f"the reply names {name!r} as its model or system")
    return whole_text(model or ""), whole_text(system or "")


_NOISE_PROBABILITY, _NOISE_SUM = 0.02, 0.3
_FAR = 5
"""Scores this many times as far apart as noise are certainly another model's."""


def weight_of_change(before: Floats, now: Floats) -> float:
    """How strongly the scores of one prompt, shape ``(labels,)``, indicate another model: 0 (not at all) to 1.

    Nothing counts while the probabilities over the labels differ by at most 0.02, and the log of their sum by at most
    0.3: servers that batch requests in half precision reach 0.01 and 0.05. Five times as much counts 1. In between is
    llama.cpp with four-bit weights, which computes a prompt in one batch or from its cache: of 152 prompts, 12 differed
    by more than 0.02, at most by 0.06 (and 0.5 in the sum).
    """
    sums = np.logaddexp.reduce(before), np.logaddexp.reduce(now)
    apart = np.abs(np.exp(before - sums[0]) - np.exp(now - sums[1])).max()
    times = max(float(apart) / _NOISE_PROBABILITY, abs(float(sums[0] - sums[1])) / _NOISE_SUM)
    return 0.0 if times <= 1 else min(1.0, times / _FAR)


def have_changed(weights: Collection[float], asked: int) -> bool:
    """Whether another model answered the prompts that were asked again: a quarter of them would change, and a lot.

    Args:
        weights: :func:`weight_of_change` of those with other scores.
        asked: number of all that were asked again.
    """
    return sum(weights) >= max(1, asked // 4)


class Answerers:
    """The models and systems named by the replies of a run, including those from the store."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.replies: Counter[tuple[str, str]] = Counter()
        self._first: dict[tuple[str, str], str] = {}

    def note(self, by: tuple[str, str], group: str = "", stored: bool = False) -> None:
        """Count a reply.

        Raises:
            ModelChanged: if it names another model than those before.
        """
        before, total = next((model for model, _ in tuple(self.replies) if model), ""), self.replies.total()
        if by[0] and before and by[0] != before:
            where = f", at question {group!r}" if group else ""
            raise ModelChanged(
                f"{self.name}: after {total:,} {'reply' if total == 1 else 'replies'}{where} ({clock(time.time())}), "
                + ("a stored reply is of" if stored else "the server answers as")
                + f" {printable(by[0])!r}; before, {printable(before)!r} answered; ask for one of them by that name"
            )
        self.replies[by] += 1
        self._first.setdefault(by, group)

    @property
    def facts(self) -> dict[str, object]:
        """``answered_by``: how many replies each gave, and the question where each but the first appeared."""
        answered_by = tuple(
            AnsweredBy(model=by[0], system_fingerprint=by[1], replies=self.replies[by], first=self._first[by] * (i > 0))
            for i, by in enumerate(by for by in self.replies if by != NOBODY)
        )
        return {"answered_by": answered_by} if answered_by else {}


_rng = np.random.default_rng()
"""Without a seed: each run asks other prompts again, so that several runs cover more of them. Tests set one."""


def some_of(places: Sequence[int], number: int) -> list[int]:
    """At most this many of the places, drawn at random, in increasing order."""
    return sorted(_rng.choice(places, min(number, len(places)), replace=False).tolist())


class _Answer(NamedTuple):
    number: int
    when: float
    prompt: Prompt
    scores: Floats


_Ask = Callable[[Sequence[Prompt]], Sequence[Scored]]


def _again(log: Sequence[_Answer], places: Sequence[int], ask: _Ask) -> dict[int, Floats]:
    """Place -> its scores now; ModelError if no prompt got any."""
    results = ask([log[place].prompt for place in places]) if places else ()
    answers = {places[one.index]: one.logprobs for one in results if one.logprobs is not None}
    if results and not answers:
        raise ModelError(results[0].error)
    return answers


class Watch(Answerers):
    """:class:`Answerers` of a server that scores: it also asks some prompts again."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.unsteady = self.asked_again = 0
        self._log: list[_Answer] = []
        self._anchors = 0

    def scored(self, prompt: Prompt, result: Scored) -> None:
        """Record the scores of a prompt.

        Raises:
            ModelChanged: if another model answers.
        """
        if result.logprobs is not None:
            self.note(result.by, prompt.group)
            self._log.append(_Answer(self.replies.total(), time.time(), prompt, result.logprobs))

    def confirm(self, ask: _Ask) -> None:
        """Ask some of the prompts answered since the last time again: the first few, and others at random.

        Raises:
            ModelChanged: if the server gives other scores now, with the prompts answered since it changed.
        """
        if len(self._log) - self._anchors < _FEWEST:
            return
        # Taken away: other threads may ask the same model, and record and confirm their own answers meanwhile.
        log, anchors, self._log, self._anchors = self._log, self._anchors, [], 0
        number = min(ASKED_AGAIN, len(log) // 4)
        # The first answers show a change whenever it came; the others find changes that did not last.
        first = -(-number // 2)
        places = [*range(first), *some_of(range(first, len(log)), number - first)]
        try:
            changed = self._changed(log, places, ask)
            if have_changed(changed.values(), number):
                # The latest of the strongest changes: slight noise after the change must not hide where it was.
                self._raise(log, anchors, max(changed, key=lambda place: (changed[place], place)), ask)
            self.unsteady += len(changed)
            self.asked_again += number
        except ModelError as error:
            self._log, self._anchors = [*log, *self._log], anchors  # unconfirmed, so the next call asks some of them
            if isinstance(error, ModelChanged):
                raise
            warnings.warn(f"{self.name}: could not be asked again to check that it is unchanged: {error}", stacklevel=2)
            return
        now = time.time()
        kept = [one._replace(number=self.replies.total(), when=now) for one in log[:_ANCHORS]]
        # In front of the others, since a server may change between two calls.
        self._log, self._anchors = [*kept, *self._log], self._anchors + len(kept)

    def _changed(self, log: Sequence[_Answer], places: Sequence[int], ask: _Ask) -> dict[int, float]:
        """Place -> weight of the prompts that get other scores now, and the same other ones when asked once more."""
        again = _again(log, places, ask)
        weights = {place: weight_of_change(log[place].scores, scores) for place, scores in again.items()}
        differ = [place for place in places if weights.get(place)]
        third = _again(log, differ, ask)
        changed = {
            place: weights[place]
            for place in differ
            if place in third and not weight_of_change(again[place], third[place])
        }
        self.unsteady += len(differ) - len(changed)
        return changed

    def _raise(self, log: Sequence[_Answer], anchors: int, last: int, ask: _Ask) -> None:
        """Find the last prompt that the previous model answered, by bisection; ``last`` is a place known to be its."""
        until = len(log)
        while until - last > 1:
            middle = (last + until) // 2
            # Five at a time: a single prompt may get nearly the same scores from both models, or noise from one.
            changed = self._changed(log, range(middle, min(middle + 5, until)), ask)
            last, until = (max(changed), until) if sum(changed.values()) > 0.5 else (last, middle)
        before, rest = log[last], log[max(last + 1, anchors) :]
        end = f", before question {rest[0].prompt.group!r} ({clock(rest[0].when)})" if rest else ", before the end"
        raise ModelChanged(
            f"{self.name}: the server has become another model: it gives other scores now for prompts that it answered "
            f"up to question {before.prompt.group!r} ({clock(before.when)}, reply {before.number:,} of "
            f"{self.replies.total():,}){end}",
            [one.prompt for one in rest],
        )

    @property
    def facts(self) -> dict[str, object]:
        """Also ``unsteady``: prompts that got other scores, if any, of those ``asked_again``."""
        counts = {"unsteady": self.unsteady, "asked_again": self.asked_again}
        return super().facts | (counts if self.unsteady else {})


def clock(when: float) -> str:
    """The time of day, in a message."""
    return time.strftime("%H:%M:%S UTC", time.gmtime(when))
