"""Where questions, presentations and a model meet: present, ask, collect."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from operator import length_hint

import numpy as np
import pyarrow as pa
from scipy.special import softmax

from unslant.arrays import Floats, are_logprobs, release_memory
from unslant.errors import InputError, ModelError
from unslant.metrics import OrderScores, read_scores
from unslant.models import ChatModel, Cost, Reply, Scored, ScoringModel
from unslant.models.base import renders_prompts
from unslant.presentations import ALPHABETS, Asked, Order, Presentation, present
from unslant.prompts import Cloze, Decision, Elicitation, Prompt, Writer, load_template
from unslant.questions import Question
from unslant.responses import SCHEMA, Response, Responses, chosen_contents, extract
from unslant.responses.checks import NO_ANSWER
from unslant.responses.table import GENERATE

__all__ = [
    "AT_ONCE", "GENERATE", "Asked", "Asker", "ModelAsker", "Progress", "Reader", "RecordedAsker", "ask",
    "ask_for_replies", "ask_orders", "by_content", "elicitation_of", "generate_all", "no_progress", "read_labels",
    "reply_row", "score_all",
]  # fmt: skip

Progress = Callable[[str, int, int], None]
"""Progress callback: name of the phase, prompts done, prompts in all."""
Reader = Callable[[str, Question, Presentation], tuple[str, frozenset[int] | None]]
"""From a reply to its status and the content codes it chooses (None if it is no answer)."""
AT_ONCE = 1 << 14
"""Prompts that are written, scored and turned into rows before the next ones are."""
_FIRST_LOOK = 50
"""Prompts after which a model is given up most of whose label scores are bounds; and once more at the end."""


def no_progress(phase: str, done: int, total: int) -> None:
    """The no-op progress callback."""


def elicitation_of(model: ScoringModel, writer: Writer) -> Elicitation:
    """How the labels of a model are scored: by cloze, or, where it words its prompts itself, by option.

    Raises:
        InputError: if the model words its prompts itself, and the writer would word them in a way of its own.
    """
    return Decision.of(writer) if renders_prompts(model) else Cloze(writer)


def ask(
    model: ScoringModel,
    asked: Iterable[Asked],
    elicitations: Sequence[Elicitation],
    *,
    progress: Progress = no_progress,
    presentations: int = 0,
) -> Responses:
    """Score every presentation under every elicitation.

    Presentations are read, scored and turned into rows in portions of about :data:`AT_ONCE` prompts, whole questions
    each, so that what is held beside the table does not grow with it. Within a portion, equal prompts are scored once.

    Args:
        presentations: how many there are, about, where ``asked`` has no length; for the progress only.

    Returns:
        One row per presentation and elicitation, elicitation by elicitation, presentations in the order given.
    """
    expected = presentations or length_hint(asked)
    tables: list[list[pa.Table]] = [[] for _ in elicitations]
    seen = done = total = 0
    for portion in _portions(asked, elicitations):
        distinct = list(dict.fromkeys(prompt for *_, ways in portion for prompts in ways for prompt in prompts))
        seen += len(portion)
        ahead = done + len(distinct)
        total = ahead if seen >= expected else max(ahead, round(ahead * expected / seen))
        scored = _try_all(model, distinct, partial(_shifted, progress, "scoring", done, total))
        done = ahead
        found = dict(zip(distinct, scored, strict=True))
        for k, (elicitation, made) in enumerate(zip(elicitations, tables, strict=True)):
            rows = (
                _scored_row(question, presentation, elicitation, [found[prompt] for prompt in ways[k]])
                for question, presentation, ways in portion
            )
            made.append(Responses.from_rows(rows).table)
        del portion, distinct, scored, found, rows  # before the next portion is made
        release_memory()
    if done < total:
        progress("scoring", done, done)
    return Responses(pa.concat_tables([SCHEMA.empty_table(), *chain.from_iterable(tables)]))


_Written = tuple[Question, Presentation, list[list[Prompt]]]
"""A presentation, and its prompts under every elicitation."""


def _portions(asked: Iterable[Asked], elicitations: Sequence[Elicitation]) -> Iterator[list[_Written]]:
    portion: list[_Written] = []
    prompts = 0
    for question, presentation in asked:
        if prompts >= AT_ONCE and question.id != portion[-1][0].id:
            yield portion
            portion, prompts = [], 0
        ways = [elicitation.prompts(presentation) for elicitation in elicitations]
        portion.append((question, presentation, ways))
        prompts += sum(map(len, ways))
    if portion:
        yield portion


def _shifted(progress: Progress, phase: str, before: int, total: int, done: int) -> None:
    """Progress of a call that is a part of the phase."""
    if done or not before:
        progress(phase, before + done, total)


def score_all(
    model: ScoringModel, prompts: Sequence[Prompt], *, progress: Progress = no_progress, phase: str = "scoring"
) -> list[Floats]:
    """Scores of all prompts, in their order.

    Raises:
        ModelError: if a prompt got none.
    """
    scored = _try_all(model, prompts, lambda done: progress(phase, done, len(prompts)))
    failed = [result for result in scored if result.logprobs is None]
    if failed:
        raise ModelError(
            f"{model.name}: {len(failed):,} of {len(prompts):,} prompts got no scores; the first, of question "
            f"{prompts[failed[0].index].group!r}: {failed[0].error}"
        )
    return [result.logprobs for result in scored if result.logprobs is not None]


def _try_all(model: ScoringModel, prompts: Sequence[Prompt], report: Callable[[int], None]) -> list[Scored]:
    """What came of every prompt, in their order; what is no log-probability is a failure.

    Raises:
        ModelError: if most scores are only upper bounds.
    """
    scored = [Scored(i, None, "no score came") for i in range(len(prompts))]
    bounded = labels = 0
    report(0)
    for done, result in enumerate(model.score(prompts), start=1):
        if result.logprobs is not None and not are_logprobs(result.logprobs):
            result = Scored(result.index, None, f"not log-probabilities: {result.logprobs.tolist()}")
        scored[result.index] = result
        report(done)
        bounded, labels = bounded + len(result.bounds), labels + len(prompts[result.index].continuations)
        if done in (_FIRST_LOOK, len(prompts)) and 2 * bounded > labels:
            raise ModelError(
                f"{model.name}: {bounded:,} of the first {labels:,} label scores are only upper bounds: the labels are "
                "not among the tokens that the server returns, so the model is about to say something else (to think, "
                "for example); try --chat, another --template or --labels, or a server that returns more tokens"
            )
    return scored


def _scored_row(
    question: Question, presentation: Presentation, elicitation: Elicitation, scored: Sequence[Scored]
) -> Response:
    """The row of one presentation: the log-probability of every label, or the status ``error`` or ``refused``."""
    failed = [result for result in scored if result.logprobs is None]
    if failed:
        status = "refused" if failed[0].declined else "error"
        return Response.of(question, presentation, elicitation.name, status=status, raw=failed[0].error)
    logprobs = [result.logprobs for result in scored if result.logprobs is not None]
    bounds: tuple[int, ...] = ()
    if any(result.bounds for result in scored):
        marks = [
            np.isin(np.arange(len(found)), one.bounds).astype(np.float64)
            for found, one in zip(logprobs, scored, strict=True)
        ]
        bounds = tuple(np.flatnonzero(elicitation.read(presentation, marks)).tolist())
    found = elicitation.read(presentation, logprobs)
    return Response.scored(question, presentation, elicitation.name, found, bounds)


def ask_for_replies(
    model: ChatModel,
    asked: Sequence[Asked],
    writer: Writer,
    *,
    read: Reader | None = None,
    repeats: Sequence[int] = (),
    progress: Progress = no_progress,
    phase: str = "asking",
) -> Responses:
    """Get a reply to every presentation and read the answer in it; equal prompts are asked once.

    Args:
        read: how replies are read; by default :func:`read_labels`.
        repeats: which sample of its presentation each is, from 0; equal prompts of different samples are asked anew.

    Returns:
        One row per presentation, in their order, with the reply in full.
    """
    cue = writer.template.render("cloze.cue")
    samples = repeats or [0] * len(asked)
    prompts = [
        (writer.prompt(presentation, cue, ()), sample) for (_, presentation), sample in zip(asked, samples, strict=True)
    ]
    distinct = list(dict.fromkeys(prompts))
    found = generate_all(model, [prompt for prompt, _ in distinct], progress=progress, phase=phase)
    replies = dict(zip(distinct, found, strict=True))
    return Responses.from_rows(
        replace(reply_row(question, presentation, replies[prompt], read), repeat=prompt[1])
        for (question, presentation), prompt in zip(asked, prompts, strict=True)
    )


def generate_all(
    model: ChatModel, prompts: Sequence[Prompt], *, progress: Progress = no_progress, phase: str = "asking"
) -> list[Reply]:
    """Replies to all prompts, in their order."""
    replies = [Reply(i, None, "no reply came") for i in range(len(prompts))]
    progress(phase, 0, len(prompts))
    for done, reply in enumerate(model.generate(prompts), start=1):
        replies[reply.index] = reply
        progress(phase, done, len(prompts))
    return replies


def read_labels(reply: str, question: Question, presentation: Presentation) -> tuple[str, frozenset[int] | None]:
    """The labels that a reply chooses, as contents."""
    extracted = extract(reply, presentation)
    return extracted.status, chosen_contents(extracted, presentation)


def reply_row(question: Question, presentation: Presentation, reply: Reply, read: Reader | None = None) -> Response:
    """The row of one reply: its status, and what it chooses if it is an answer."""
    if reply.text is None:
        return Response.of(question, presentation, GENERATE, status="error", raw=reply.error)
    if reply.declined:
        return Response.of(question, presentation, GENERATE, status="refused", raw=reply.text)
    status, chosen = (read or read_labels)(reply.text, question, presentation)
    return Response.of(question, presentation, GENERATE, status=status, chosen=chosen, raw=reply.text)


class Asker(ABC):
    """Asks presentations for the probabilities of their labels, and counts what that costs.

    Attributes:
        alphabet: the labels questions are shown with.
        model, elicitation: the live model and how it is asked, if there is one.
        in_words: answers are read from replies: probabilities are 1 for the option named, all 0 for no answer.
        notes: what a reader of the answers should know.
        mostly_failed: why most requests for replies failed, if they did.
    """

    alphabet: tuple[str, ...]
    model: ScoringModel | None = None
    elicitation: Elicitation | None = None
    in_words = False
    notes: tuple[str, ...] = ()
    mostly_failed: str = ""

    @property
    @abstractmethod
    def cost(self) -> Cost:
        """Running total; subtract a copy taken before."""

    @abstractmethod
    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """(n,) probability of every label of each presentation, from top to bottom, over those labels only."""

    def forget(self) -> None:  # noqa: B027  # records do not change
        """Drop all remembered scores: the model's weights are about to change."""


class ModelAsker(Asker):
    """Asks a live model.

    Args:
        elicitation: by default :func:`elicitation_of` the model and the ``plain`` template.
        remember: keep every score until :meth:`forget`, so that no prompt is scored twice.
        progress: called as scores come in.
    """

    def __init__(
        self,
        model: ScoringModel,
        elicitation: Elicitation | None = None,
        alphabet: tuple[str, ...] = ALPHABETS["A"],
        *,
        remember: bool = True,
        progress: Progress = no_progress,
    ) -> None:
        self.model: ScoringModel = model
        self.elicitation: Elicitation = elicitation or elicitation_of(model, Writer(load_template("plain")))
        self.alphabet, self.remember = alphabet, remember
        self._known: dict[Prompt, Floats] = {}
        self._written: dict[tuple[Presentation, tuple[tuple[str, str], ...]], list[Prompt]] = {}
        self._progress = progress

    @property
    def cost(self) -> Cost:
        return self.model.cost

    def forget(self) -> None:
        self._known.clear()

    def _prompts(self, presentation: Presentation) -> list[Prompt]:
        """The prompts, written once for all listings of a question that look the same."""
        shown = tuple((option.label, option.text) for option in presentation.shown)
        key = (replace(presentation, shown=(), answers=frozenset(), kind="", run=0, item=""), shown)
        if key not in self._written:
            self._written[key] = self.elicitation.prompts(presentation)
        return self._written[key]

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`. Equal prompts are scored once.

        Raises:
            ModelError: if the model cannot score a prompt.
        """
        wanted = [self._prompts(presentation) for presentation in presentations]
        new = list(dict.fromkeys(prompt for prompts in wanted for prompt in prompts if prompt not in self._known))
        if new:
            self._known.update(zip(new, score_all(self.model, new, progress=self._progress), strict=True))
        probs: list[Floats] = [
            softmax(self.elicitation.read(presentation, [self._known[prompt] for prompt in prompts]))
            for presentation, prompts in zip(presentations, wanted, strict=True)
        ]
        if not self.remember:
            self._known.clear()
            self._written.clear()
        return probs


class RecordedAsker(Asker):
    """Answers from recorded scores; its cost counts presentations (``prompts``) only."""

    def __init__(self, scores: OrderScores) -> None:
        self.alphabet, self._cost = scores.labels, Cost()
        self._known: dict[tuple[str, Order], Floats] = {}
        self._orders: dict[str, list[Order]] = {}
        for block in scores.blocks:
            for name, contents, probs in zip(block.ids, block.contents, block.by_position(block.probs), strict=True):
                self._orders[name] = [tuple(order) for order in contents.tolist()]
                self._known |= {(name, order): p for order, p in zip(self._orders[name], probs, strict=True)}

    @classmethod
    def of(cls, responses: Responses, *, answered: bool = False) -> RecordedAsker:
        """Everything that a table has, also of questions that lack an order or a reply; of repeats, the first.

        Args:
            answered: leave out what is no answer, which otherwise has probability 0 for every label.
        """
        scores = read_scores(responses)
        made = cls(replace(scores, blocks=()))
        made.in_words = scores.elicitation == GENERATE
        kinds, unanswered = ("order", "given", "reverse"), 0
        for row in responses.where(elicitation=scores.elicitation, kind=kinds, status=("ok", *NO_ANSWER)).rows():
            if (row.question_id, row.contents) in made._known:
                continue
            unanswered += row.choice < 0
            if answered and row.choice < 0:
                continue
            named = np.array([float(content == row.choice) for content in row.contents])
            probs = named if row.logprobs is None or row.choice < 0 else softmax(row.logprobs)
            made._known[row.question_id, row.contents] = probs
            made._orders.setdefault(row.question_id, []).append(row.contents)
        if unanswered and not answered:
            made.notes = (f"{unanswered:,} replies are no answer; they have no vote",)
        return made

    def has(self, question: Question, orders: Sequence[Order]) -> bool:
        """Whether a question was recorded in all of some orders."""
        return all((question.id, order) in self._known for order in orders)

    def recorded(self, question: Question) -> bool:
        """Whether a question was recorded in any order."""
        return question.id in self._orders

    def orders(self, question: Question) -> list[Order]:
        """The orders of a question that were recorded.

        Raises:
            InputError: if none was.
        """
        if question.id not in self._orders:
            raise InputError(f"question {question.id!r}: no orders were recorded")
        return self._orders[question.id]

    @property
    def cost(self) -> Cost:
        return self._cost

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        """See :meth:`Asker.ask`.

        Raises:
            InputError: if a presentation was not recorded.
        """
        keys = [(presentation.question_id, presentation.contents) for presentation in presentations]
        for name, contents in keys:
            if (name, contents) not in self._known:
                raise InputError(
                    f"question {name!r}: options in order {contents} were not recorded; record more orders (unslant "
                    "audit --orders ... --responses FILE), or use a live model"
                )
        self._cost.prompts += len(set(keys))
        return [self._known[key] for key in keys]


def by_content(presentation: Presentation, probs: Floats, n: int) -> Floats:
    """(n,) probability of each of the question's own options; that of other options is left out."""
    own = np.zeros(n)
    for content, p in zip(presentation.contents, probs, strict=True):
        if content >= 0:
            own[content] = p
    return own


def ask_orders(asker: Asker, questions: Sequence[Question], orders: Sequence[Sequence[Order]]) -> list[Floats]:
    """For each question, (K, n) probabilities of its options under each of its K orders; all asked in one call."""
    shown = [
        [present(question, order, asker.alphabet) for order in own]
        for question, own in zip(questions, orders, strict=True)
    ]
    answers = iter(asker.ask([presentation for own in shown for presentation in own]))
    return [
        np.stack([by_content(presentation, next(answers), len(question.options)) for presentation in own])
        for question, own in zip(questions, shown, strict=True)
    ]
