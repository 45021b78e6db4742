"""Pages that a log tells of, and how those of one question, from one file or several, become a table of responses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

from unslant.arrays import Floats
from unslant.errors import InputError, UnslantError, first_line, shown
from unslant.files import check_plain
from unslant.presentations.labels import alphabetical
from unslant.presentations.presentation import NONE
from unslant.questions.question import Question
from unslant.responses.read_choice import extract_labels
from unslant.responses.table import GENERATE, Response, Responses, text_ranks

Order = tuple[int, ...]
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


@dataclass(frozen=True)
class Logged:
    """One page that a model was shown, and what came back. Places count from the top of the page, from 0.

    Attributes:
        id: of the question, the same in every log of it.
        labels: under which the options stood; answers: places of the right ones.
        place: file and line, for messages.
        options: texts by place; empty where the log has none.
        order: index in the question file of the option at each place; ``None`` where the log tells it by texts only.
        pinned: indices in the question file of options that never move.
        logprobs: natural log, by place; ``None`` for an answer in words.
        chosen: places answered in words; empty for "none of them", ``None`` where there is no answer.
        status: see :data:`unslant.responses.STATUSES`.
        reply: in full, for answers in words.
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
    """

    model: str
    harness: str
    scores: str
    pages: tuple[Logged, ...]
    task: str = ""
    dropped: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        check_plain([self.model, self.task])
        if not self.pages:
            raise ValueError("it holds no page with its options")


def joined(logs: Sequence[Log], name: str = "") -> Responses:
    """One table of the logs of one model.

    A question's options are numbered as in the order given, else as on its first page; the others are told by their
    texts. A page that comes again is a repeat. Labels in reversed or shifted sequence are presentations of their own.

    Raises:
        InputError: if pages of one id show other options, or disagree about the right one.
    """
    by_id: dict[str, list[Logged]] = {}
    for log in logs:
        for page in log.pages:
            by_id.setdefault(page.id, []).append(page)
    rows: list[Response] = []
    elicitation = GENERATE if all(log.scores == "words" for log in logs) else "cloze"
    questions = []
    orders = Counter[int]()
    for pages in by_id.values():
        known = _Question(pages, elicitation)
        seen: Counter[tuple[str, Order]] = Counter()
        for page in pages:
            rows.append(known.row(page, seen, logs[0].task))
        orders[len({order for kind, order in seen if kind == "order"})] += 1
        if known.options:
            questions.append(
                Question(
                    known.id,
                    pages[0].question,
                    known.options,
                    known.answers,
                    subject=pages[0].subject,
                    pinned=pages[0].pinned,
                )
            )
    dropped = sum((log.dropped for log in logs), Counter[str]())
    meta = {
        "study": "audit",
        "model": logs[0].model,
        "questions": name or logs[0].task,
        "source": logs[0].harness,
        "engine": f"logged by {logs[0].harness}",
        "logged": {
            "scores": logs[0].scores,
            "orders": {str(k): n for k, n in sorted(orders.items())},
            "dropped": dict(dropped),
        },
    }
    made = Responses.from_rows(rows, meta)
    return Responses(made.table, made.meta, tuple(questions) if len(questions) == len(by_id) else ())


class _Question:
    """What is known of a question from its pages."""

    def __init__(self, pages: Sequence[Logged], elicitation: str) -> None:
        self.elicitation = elicitation
        first = next((page for page in pages if page.order is not None and _is_given(page.order)), pages[0])
        self.id = first.id
        self.n = len(first.labels)
        numbered = first.order or tuple(range(self.n))
        place = {content: k for k, content in enumerate(numbered)}
        self.options = tuple(first.options[place[i]] for i in range(self.n)) if first.options else ()
        self.labels = alphabetical(first.labels)
        self.ranks = text_ranks(self.options) if self.options else ()
        self.answers = frozenset(self.order(first)[k] for k in first.answers)

    def order(self, page: Logged) -> Order:
        """The option at each place."""
        if len(page.labels) != self.n:
            raise InputError.at(
                page.place, f"question {self.id!r} has {len(page.labels)} options here, {self.n} elsewhere"
            )
        if page.order is not None:
            return page.order
        if not (page.options and self.options):
            return tuple(range(self.n))
        left = list(range(self.n))
        found = []
        for text in page.options:
            same = next((i for i in left if self.options[i].strip() == text.strip()), None)
            if same is None:
                raise InputError.at(
                    page.place, f"question {self.id!r} shows {text!r} here, which it does not elsewhere"
                )
            left.remove(same)
            found.append(same)
        return tuple(found)

    def row(self, page: Logged, seen: Counter[tuple[str, Order]], source: str) -> Response:
        order = self.order(page)
        answers = frozenset(order[k] for k in page.answers)
        if answers != self.answers:
            raise InputError.at(page.place, f"question {self.id!r} has another right option than elsewhere")
        kind = self.kind(page, order)
        repeat = seen[kind, order]
        seen[kind, order] += 1
        chosen = None if page.chosen is None else frozenset(order[k] for k in page.chosen) or frozenset({NONE})
        return Response(
            question_id=self.id,
            kind=kind,
            elicitation=self.elicitation,
            labels=page.labels,
            contents=order,
            answers=answers,
            n_options=self.n,
            logprobs=page.logprobs,
            chosen=chosen,
            status=page.status,
            raw=page.reply,
            pinned=page.pinned,
            subject=page.subject,
            source=source,
            repeat=repeat,
            text_ranks=self.ranks,
        )

    def kind(self, page: Logged, order: Order) -> str:
        """What the sequence of its labels makes of a page."""
        standard, given, turned = self.labels, tuple(range(self.n)), tuple(range(self.n))[::-1]
        kinds = {
            (standard[::-1], given): "labels-reversed",
            (standard[::-1], turned): "both-reversed",
            ((*standard[1:], standard[0]), given): "labels-shifted",
        }
        if page.labels == standard:
            return "order"
        if found := kinds.get((page.labels, order)):
            return found
        raise InputError.at(
            page.place,
            f"labels {', '.join(page.labels)} with options in order {order}: understood are labels in their usual "
            "sequence; reversed, with options as given or reversed; or shifted by one, with options as given",
        )


def _is_given(order: Order) -> bool:
    return order == tuple(range(len(order)))
