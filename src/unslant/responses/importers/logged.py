"""The contents of a log: the pages that a model was shown, and its answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError, UnslantError, first_line, shown
from unslant.files import check_plain, parse_json, read_text
from unslant.questions.answer_forms import integer
from unslant.responses.checks import MOST_POSITIVE

Order = tuple[int, ...]
Result = TypeVar("Result")
_USUAL = ("acc", "exact_match", "em", "acc_norm")
"""Names of accuracies in samples, the one that tasks report first."""
FILE = ("file", "sha256")
"""Facts in :attr:`Log.about` that identify the file."""


class BadRow(InputError):
    """A row whose question cannot be read, which ``--skip-bad`` leaves out.

    A row whose answer cannot be read is always an error: without such rows, a score would be too high.
    """


@contextmanager
def placed(place: object) -> Iterator[None]:
    """Add the place to errors of our own that do not name it."""
    try:
        yield
    except UnslantError as error:
        if shown(place) in str(error):
            raise
        raise InputError.at(place, str(error)) from None


@contextmanager
def understood(place: object, what: str) -> Iterator[None]:
    """Report anything that does not have the shape of its format as an InputError that names the place."""
    # Importers index into records as if they were well formed, and this turns what that raises into one message:
    # checking each key by itself would be most of their code, and pydantic models would refuse harmless new keys.
    try:
        with placed(place):
            yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, StopIteration) as error:
        raise InputError.at(place, f"is not a {what}: {type(error).__name__}: {first_line(error)}") from None


def in_results(
    folders: Sequence[Path], time: str | None, harness: str, pick: Callable[[Any], Result | None]
) -> Result | None:
    """The first result that ``pick`` takes from a results file of a harness: from that of a time, or else from any in
    the folders."""
    for folder in folders:
        for path in sorted(folder.glob(f"results_{time}.json" if time else "results*.json")):
            with understood(path, f"results file of {harness}"):
                if (result := pick(parse_json(read_text(path)))) is not None:
                    return result
    return None


def is_mean(mean: object, hits: Sequence[object]) -> bool:
    """Whether a logged accuracy is that of these hits; identifies the run of files whose names give no time."""
    numbers = [hit for hit in hits if isinstance(hit, int | float)]
    return bool(numbers and isinstance(mean, int | float) and abs(np.mean(numbers) - mean) < 1e-9)


def unit_share(value: object) -> float | None:
    """A logged score as a number from 0 to 1; None for anything else."""
    if isinstance(value, bool | int | float) and 0 <= value <= 1:
        return float(value)
    return None


def as_score(value: Any) -> float:
    """A number of a log, also as a text; nan where it is missing. ValueError for anything else, such as false."""
    if isinstance(value, bool):  # Python counts with them as 0 and 1
        raise ValueError(f"{value!r} is not a number")
    return math.nan if value is None else float(value)


def as_count(name: str, value: object) -> int:
    """A number of a log that counts from 0; ValueError for anything else, such as 1.5."""
    number = integer(value)
    if number is None or number < 0:
        raise ValueError(f"{name} is {value!r}, not a whole number from 0")
    return number


def main_metric(values: Mapping[str, object], names: Iterable[str] = ()) -> str:
    """The metric that a task reports for each sample, among those from 0 to 1: a usual one, else the first of
    ``names``; else a usual one with another value; empty if there is none."""
    # Usual names go before the task's own order: ReCoRD lists f1 before em.
    shares = (name for name in (*_USUAL, *names) if unit_share(values.get(name)) is not None)
    return next(chain(shares, (name for name in _USUAL if values.get(name) is not None)), "")


def stated(facts: Mapping[str, object]) -> dict[str, str]:
    """The facts of a run that a log states, as texts; without those that are empty or marked as unknown."""
    return {key: str(value) for key, value in facts.items() if value not in (None, "", "N/A", "null", "?")}


@dataclass(frozen=True, slots=True)
class Logged:
    """One page that a model was shown, and its answer. Places count from the top of the page, from 0.

    Attributes:
        id: of the question, the same in every log of it.
        labels: labels of the options, by place; answers: places of the right ones.
        place: file and line, for messages.
        context: passage that the question is about, where the log shows which text that is.
        options: texts by place; empty where the log has none.
        order: index in the question file of the option at each place; ``None`` where the log gives it by texts only.
        pinned: indices in the question file of options that never move.
        logprobs: natural log, by place; ``None`` for an answer in words. Of a reply, those at the token of its answer.
        bounds: places for which ``logprobs`` has only an upper bound.
        first: as ``logprobs``, at the first token of a reply, where a label is among its most probable ones.
        chosen: places answered in words; empty for "none of them", ``None`` where there is no answer.
        status: see :data:`unslant.responses.STATUSES`.
        reply: in full, for answers in words.
        repeat: sample number, where the log has one; pages of one question are numbered in this order.
        conflict: of a reply whose label and text contradict each other, the place of the label, then those of the text.
        score: the harness's own score of this answer, from 0 to 1; None where the log has none.
        besides: the page shows the published order in addition to a random sample of orders, whose means leave it out.
        authors: who wrote the option at each place; empty where options are not answers of systems.
        placed: whether the log says which option was shown where; otherwise nothing is measured on places.
    """

    id: str
    labels: tuple[str, ...]
    answers: frozenset[int]
    place: str
    question: str = ""
    context: str = ""
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
    score: float | None = None
    conflict: tuple[int, ...] = ()
    besides: bool = False
    authors: tuple[str, ...] = ()
    placed: bool = True

    def __post_init__(self) -> None:
        """Raises InputError where the values from a file cannot be a page."""
        for kind, reason in self._problems():
            raise kind.at(self.place, f"has {reason}")
        try:
            texts = self.id, self.question, self.context, self.subject, self.reply
            check_plain([*texts, *self.labels, *self.options, *self.authors])
        except ValueError as error:
            raise InputError.at(self.place, f"not usable: {error}") from None

    def _problems(self) -> Iterator[tuple[type[InputError], str]]:
        n, places = len(self.labels), range(len(self.labels))
        if not (isinstance(self.id, str) and self.id):
            yield BadRow, "an id that is not a text of at least one character"
        if not 1 <= n <= 1000:
            yield BadRow, f"{n} options; from 1 to 1,000 can be read"
        if not all(self.labels) or len(set(self.labels)) < n:
            yield BadRow, "labels that are empty, or the same twice"
        for texts, what in ((self.options, "option texts"), (self.authors, "authors")):
            if len(texts) not in (0, n):
                yield BadRow, f"{len(texts)} {what} for {n} labels"
        if not self.answers.issubset(places):
            yield BadRow, f"an answer that is not one of its {n} options"
        if self.order is not None and sorted(self.order) != list(places):
            yield BadRow, f"an order that does not name each of its {n} options once"
        if self.chosen and not self.chosen.issubset(places):
            yield InputError, f"an answer that is not one of its {n} options"
        if self.logprobs is not None and self.logprobs.shape != (n,):
            yield InputError, f"scores that are not one for each of its {n} options"
        if self.logprobs is not None and (self.logprobs > MOST_POSITIVE).any():
            yield InputError, "log-probabilities above 0"

    def is_right(self, scored: bool = True) -> bool:
        """Whether the answer is a right one: with ``scored`` the option with the highest score, where there are scores,
        and else the one answered in words."""
        if scored and self.logprobs is not None:
            return int(np.argmax(self.logprobs)) in self.answers
        return self.named in self.answers

    @property
    def named(self) -> int | None:
        """The one place answered in words."""
        return next(iter(self.chosen)) if self.status == "ok" and self.chosen and len(self.chosen) == 1 else None

    @classmethod
    def of_scores(cls, scores: Sequence[Any] | Floats, **more: Any) -> Logged:
        """A page answered by log-probabilities, by place; an ``error`` where one is missing or not a number."""
        values = scores if isinstance(scores, np.ndarray) else np.array([as_score(score) for score in scores])
        best = values.max(initial=-math.inf)  # nan if any is
        # An option may have probability 0 (a score of -inf); if all have, the question was not scored.
        if not math.isfinite(best) and (math.isnan(best) or not np.isfinite(values).any()):
            return cls(status="error", **more)
        return cls(logprobs=np.minimum(values, 0.0) if best <= MOST_POSITIVE else values, **more)

    @classmethod
    def of_reply(
        cls,
        reply: object,
        *,
        labels: tuple[str, ...],
        options: tuple[str, ...] = (),
        finish_reason: object = None,
        **more: Any,
    ) -> Logged:
        """A page answered in words; an ``error`` without a reply. A reply that ended at the limit of tokens
        (``finish_reason``) is read without its last fragment; one that a content filter ended is a refusal."""
        if reply is None:
            return cls(labels=labels, options=options, status="error", **more)
        # compiles many patterns, and most tables have scores
        from unslant.replies.extraction import CUT, WITHHELD, conflicting_labels, extract_answer

        reply = str(reply)
        if finish_reason == WITHHELD:
            return cls(labels=labels, options=options, status="refused", reply=reply, **more)
        read = extract_answer(reply, labels, options, cut=finish_reason in CUT)
        more["conflict"] = tuple(map(labels.index, conflicting_labels(read)))
        answered = frozenset(labels.index(label) for label in read.labels) if read.status == "ok" else None
        return cls(labels=labels, options=options, chosen=answered, status=read.status, reply=reply, **more)


@dataclass(frozen=True)
class Log:
    """The pages of one model in one file.

    Attributes:
        harness: the program that wrote it.
        scores: what was scored: ``labels``, ``texts`` of options that no prompt lists, ``listed`` texts of options, or
            ``words``, or ``verdicts`` on answers, as the log reads them.
        metric: the harness's name for the scores of its pages.
        means: the harness's own scores of all pages, by name, where they are not the mean of those of its pages.
        of: number of pages that ``means`` are of, where those of the log are a part of them.
        study: the study that reads the pages, as in ``unslant study NAME``.
        dropped: number of rows that are not a page, or repeat one, by reason.
        about: facts of the run, by name: version of the harness, worked examples, chat template, ...
        notes: caveats, in sentences.
        caveats: what must be known before the first number: the part of the file that is read, another reading of it.
        checked: its pages were compared with each other as they were read (:class:`Consistency`).
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
    metric: str = ""
    means: Mapping[str, float] = field(default_factory=dict)
    of: int = 0
    caveats: tuple[str, ...] = ()
    study: str = "audit"

    def __post_init__(self) -> None:
        check_plain([self.model, self.task])
        # MMLU-Pro has questions with one option, which leave nothing to choose
        choices = tuple(page for page in self.pages if len(page.labels) > 1)
        if not choices:
            raise ValueError(f"it holds no page with {'two' if self.pages else 'its'} options")
        if left_out := len(self.pages) - len(choices):
            dropped = self.dropped + Counter({"questions with one option": left_out})
            vars(self).update(pages=choices, dropped=dropped, of=self.of or len(self.pages))


class Consistency:
    """Check that the pages of one log agree with each other.

    An id names one question with the same options. By order, an option of the question file has one text on every page,
    and the right one is always the same. (Another log may number the options differently: its file was shuffled again.)
    """

    def __init__(self) -> None:
        self._first: dict[str, Logged] = {}
        self._texts: dict[tuple[str, int], tuple[str, Logged]] = {}
        self._right: dict[str, tuple[frozenset[int], Logged]] = {}

    def check(self, page: Logged) -> None:
        """Raises InputError, naming both places, and how each of two columns that contradict each other is read."""
        first = self._first.setdefault(page.id, page)
        for index, text in zip(page.order or (), page.options, strict=False):
            before, other = self._texts.setdefault((page.id, index), (text.strip(), page))
            if before != text.strip():
                raise InputError.at(page.place, _contradiction(page, other, index, text, before))
        question, earlier = page.question.strip(), first.question.strip()
        if question and earlier and question != earlier:
            asks = f"question {page.id!r} asks {question[:60]!r} here, and {earlier[:60]!r} before ({first.place})"
            raise InputError.at(page.place, f"{asks}; give each question an id of its own")
        if page.options and first.options:
            new = {text.strip() for text in page.options} - {text.strip() for text in first.options}
            if new:
                shows = f"question {page.id!r} shows {min(new)!r} here, which it does not before ({first.place})"
                raise InputError.at(page.place, f"{shows}; give each question an id of its own")
        if page.order is None:
            return
        right = frozenset(page.order[k] for k in page.answers)
        expected, other = self._right.setdefault(page.id, (right, page))
        if right != expected:
            raise InputError.at(
                page.place,
                f"the right option of question {page.id!r} is, by order, {_listed(right)} here and {_listed(expected)} "
                f"in {other.place} (counted from 0 in the question file). An answer is the label or place as shown; if "
                "it is that of the question file, turn it by order, or leave order out (--fields order=)",
            )


def _contradiction(page: Logged, other: Logged, index: int, text: str, before: str) -> str:
    by_order, by_options = "another option there", "the options as listed"
    if other.options == page.options:
        by_order, by_options = "the same options in another order", "one order"
    return (
        f"order {_listed(page.order)} and options contradict those of {other.place}, order {_listed(other.order)}: "
        f"option {index} of question {page.id!r} would be {text!r} here and {before!r} there. By order, these rows "
        f"show {by_order}; by options, they show {by_options}. Options are listed as shown, from the top, and order "
        "has the index in the question file of each. If order is wrong, leave it out (--fields order=); if options are "
        "not as shown, leave those out (--fields options=)"
    )


def _listed(numbers: Iterable[int] | None) -> str:
    return ", ".join(map(str, numbers if isinstance(numbers, tuple) else sorted(numbers or ()))) or "none"
