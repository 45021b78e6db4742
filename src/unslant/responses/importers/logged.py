"""What a log tells: the pages that a model was shown, and what came back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError, UnslantError, first_line, shown
from unslant.files import check_plain
from unslant.replies import extract_labels

Order = tuple[int, ...]
FILE = ("file", "sha256")
"""Facts in :attr:`Log.about` that tell which file it was."""
ROUNDING = 1e-4
"""How far above 0 a log-probability may be that a harness has summed in single precision."""


@contextmanager
def placed(place: object) -> Iterator[None]:
    """An error of our own that does not name the place gets it."""
    try:
        yield
    except UnslantError as error:
        if shown(place) in str(error):
            raise
        raise InputError.at(place, str(error)) from None


@contextmanager
def understood(place: object, what: str) -> Iterator[None]:
    """Whatever does not have the shape that a format gives it is an error that names the place.

    Raises:
        InputError: instead of what looking for a key, an item or a number raised.
    """
    try:
        with placed(place):
            yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration) as error:
        raise InputError.at(place, f"is no {what}: {type(error).__name__}: {first_line(error)}") from None


@dataclass(frozen=True, slots=True)
class Logged:
    """One page that a model was shown, and what came back. Places count from the top of the page, from 0.

    Attributes:
        id: of the question, the same in every log of it.
        labels: under which the options stood; answers: places of the right ones.
        place: file and line, for messages.
        options: texts by place; empty where the log has none.
        order: index in the question file of the option at each place; ``None`` where the log tells it by texts only.
        pinned: indices in the question file of options that never move.
        logprobs: natural log, by place; ``None`` for an answer in words. Of a reply, those at the token of its answer.
        bounds: places of which ``logprobs`` has only an upper bound.
        first: as ``logprobs``, at the first token of a reply, where a label is among its most probable ones.
        chosen: places answered in words; empty for "none of them", ``None`` where there is no answer.
        status: see :data:`unslant.responses.STATUSES`.
        reply: in full, for answers in words.
        repeat: sample number, where the log has one; pages of one question are numbered in this order.
    """

    id: str
    labels: tuple[str, ...]
    answers: frozenset[int]
    place: str
    question: str = ""
    options: tuple[str, ...] = ()
    order: Order | None = None
    pinned: tuple[int, ...] = ()
    logprobs: Floats | None = None
    chosen: frozenset[int] | None = None
    status: str = "ok"
    reply: str | None = None
    subject: str = ""
    bounds: tuple[int, ...] = ()
    first: Floats | None = None
    repeat: int = 0

    def __post_init__(self) -> None:
        """Raises InputError where what a file holds cannot be a page."""
        n = len(self.labels)
        places = self.answers | (self.chosen or frozenset())
        wrong = {
            "an id that is not a text of at least one character": not (isinstance(self.id, str) and self.id),
            f"{n} options; from 2 to 1,000 can be read": not 2 <= n <= 1000,
            "labels that are empty, or the same twice": not all(self.labels) or len(set(self.labels)) < n,
            f"{len(self.options)} option texts for {n} labels": len(self.options) not in (0, n),
            f"an answer that is none of its {n} options": not places <= frozenset(range(n)),
            f"an order that does not name each of its {n} options once": self.order is not None
            and sorted(self.order) != list(range(n)),
            f"scores that are not one for each of its {n} options": self.logprobs is not None
            and self.logprobs.shape != (n,),
            "log-probabilities above 0": self.logprobs is not None and bool((self.logprobs > ROUNDING).any()),
        }
        if reason := next((text for text, found in wrong.items() if found), None):
            raise InputError.at(self.place, f"has {reason}")
        try:
            check_plain([self.id, *self.labels, *self.options, self.question, self.subject, self.reply])
        except ValueError as error:
            raise InputError.at(self.place, f"not usable: {error}") from None

    @property
    def named(self) -> int | None:
        """The one place answered in words."""
        return next(iter(self.chosen)) if self.status == "ok" and self.chosen and len(self.chosen) == 1 else None

    @classmethod
    def of_scores(cls, scores: Sequence[object], **more: object) -> Logged:
        """A page answered by log-probabilities, by place; an ``error`` where one is no number."""
        values = np.array([float(score) for score in scores])  # type: ignore[arg-type]
        if np.isnan(values).any() or not np.isfinite(values).any():
            return cls(status="error", **more)  # type: ignore[arg-type]
        return cls(logprobs=np.minimum(values, 0.0) if (values <= ROUNDING).all() else values, **more)  # type: ignore[arg-type]

    @classmethod
    def of_reply(
        cls, reply: str | None, *, labels: tuple[str, ...], options: tuple[str, ...] = (), **more: object
    ) -> Logged:
        """A page answered in words, read by unslant's own reader."""
        if reply is None:
            return cls(labels=labels, options=options, status="error", **more)  # type: ignore[arg-type]
        read = extract_labels(reply, labels, options)
        chosen = frozenset(labels.index(label) for label in read.labels) if read.status == "ok" else None
        return cls(labels=labels, options=options, chosen=chosen, status=read.status, reply=reply, **more)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Log:
    """What one file holds.

    Attributes:
        harness: that wrote it.
        scores: what was scored: ``labels``, ``texts`` of options (which were not shown together) or ``words``.
        dropped: rows that are no page, or one that stands there twice, by reason.
        about: facts of the run, by name: version of the harness, worked examples, chat template, ...
        notes: what a reader should know, in sentences.
        checked: its pages were compared with each other as they were read (:class:`ToldOnce`).
    """

    model: str
    harness: str
    scores: str
    pages: tuple[Logged, ...]
    task: str = ""
    dropped: Counter[str] = field(default_factory=Counter)
    about: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    checked: bool = False

    def __post_init__(self) -> None:
        check_plain([self.model, self.task])
        if not self.pages:
            raise ValueError("it holds no page with its options")
