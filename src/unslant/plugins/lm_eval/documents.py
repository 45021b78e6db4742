"""Documents of lm-eval's tasks as questions, and the requests for them in any order of their options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from unslant.auditing.presented import order_presentations
from unslant.errors import InputError, first_line, shortened
from unslant.plugins.lm_eval.candidates import OptionField, candidates
from unslant.plugins.lm_eval.examine import CLOZE, LABELS, TEXTS, Frame, Request, examine, flat, markers, unflat
from unslant.plugins.lm_eval.settings import LmEvalSettings
from unslant.plugins.lm_eval.tasks import HarnessTask, load_tasks, quiet
from unslant.presentations import ALPHABETS, Order, Presentation, labels_for
from unslant.questions import Question, QuestionSet
from unslant.questions.pinned import find_pinned
from unslant.questions.question import MAX_OPTIONS, MIN_OPTIONS
from unslant.responses.importers.lm_eval import document_id, document_subject, document_text


@dataclass
class Document:
    """One document of a task.

    Attributes:
        number: its place in the split, lm-eval's ``doc_id``.
        examples: the worked examples that lm-eval draws for it.
        kind: what is scored, see :mod:`~unslant.plugins.lm_eval.examine`; empty where no field holds the options.
        record: what holds the options: the document, or what it was made from.
        remake: from such a record to the document.
        options: where they are in it.
    """

    task: HarnessTask
    number: int
    doc: Mapping[str, Any]
    examples: Sequence[Any]
    kind: str = ""
    record: Mapping[str, Any] = field(default_factory=dict)
    remake: Callable[[Mapping[str, Any]], Mapping[str, Any]] = dict
    options: OptionField | None = None

    @property
    def movable(self) -> bool:
        """Whether its options can be shown in other orders."""
        return self.kind in (LABELS, TEXTS)

    @cached_property
    def choices(self) -> list[str]:
        """What is scored, as published."""
        return self.task.choices(self.doc)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The option texts, as published; empty where a label has none."""
        found = [str(value) for value in self.options.values] if self.options and self.movable else self.choices
        return (*found, *([""] * len(self.choices) if self.kind == LABELS else self.choices)[len(found) :])

    def examined(self, record: Mapping[str, Any], remake: Callable[[Mapping[str, Any]], Any]) -> tuple[Document, str]:
        """The document with its options found in a record, and what was looked at without success, in words."""
        n = len(self.choices)
        seen: list[str] = []
        cloze: Document | None = None
        for one in candidates(record, self.choices):
            option = one.first(n)
            m = len(option.values)
            marked = option.filled(record, markers(m))
            try:
                requests = self.task.requests(remake(marked), self.examples)
            except Exception as error:  # a template is a program, and the texts are none that it expects
                seen.append(f"{one.name} (with other texts: {first_line(error)})")
                continue
            if len(requests) != n:
                seen.append(f"{one.name} (changes the number of choices)")
                continue
            found = examine(requests, m)
            if found.kind in (LABELS, TEXTS):
                option = option.sorted_by(found.places) if found.places else option
                return replace(self, kind=found.kind, record=record, remake=remake, options=option), ""
            if found.kind == CLOZE and not self._written_out:
                cloze = cloze or replace(self, kind=CLOZE)
            why_not = "scored, but the prompt has its options from elsewhere" if self._written_out else "not shown"
            seen.append(f"{one.name} ({found.why_not or why_not})")
        return cloze or self, "; ".join(seen)

    @property
    def _written_out(self) -> bool:
        """Whether the prompt shows all that is scored."""
        context = self.published[0][0]
        return all(context == other and text.strip() in context for other, text in self.published)

    def instances(self) -> list[Any]:
        """lm-eval's own requests, as published."""
        return self.task.instances(self.doc, self.examples)

    @cached_property
    def published(self) -> list[Request]:
        """Context and continuation of each option, as published."""
        return self.task.requests(self.doc, self.examples)

    def forget(self) -> None:
        """Drop rendered prompts: prompts are now written in another way."""
        for name in ("published", "_frame"):
            self.__dict__.pop(name, None)

    def requests(self, order: Order) -> list[Request]:
        """Context and continuation of each place, with option ``order[p]`` at place ``p``."""
        if order == tuple(range(len(order))):
            return self.published
        if self._frame is not None:
            return unflat(self._frame.filled([self.texts[i] for i in order]))
        return self._rendered(order)

    def _rendered(self, order: Order) -> list[Request]:
        assert self.options is not None, "a document without movable options has one order"
        moved = [self.options.values[i] for i in order[: len(self.options.values)]]
        return self.task.requests(self.remake(self.options.filled(self.record, moved)), self.examples)

    @cached_property
    def _frame(self) -> Frame | None:
        """The requests with places for the options, where filling them gives what the templates give."""
        assert self.options is not None, "a document without movable options has one order"
        m = len(self.options.values)
        marked = self.task.requests(self.remake(self.options.filled(self.record, markers(m))), self.examples)
        frame = Frame.of(flat(marked))
        turned = (*range(m)[::-1], *range(m, len(self.texts)))
        for order in (tuple(range(len(self.texts))), turned):
            written = self.published if order != turned else self._rendered(order)
            if frame.filled([self.texts[i] for i in order]) != flat(written):
                return None
        return frame


@dataclass(frozen=True)
class TaskSet:
    """Tasks of lm-eval, their documents, and the questions made of these.

    Attributes:
        by_id: question id -> document.
        labels: under which the options are recorded.
    """

    tasks: tuple[HarnessTask, ...]
    questions: QuestionSet[Question]
    by_id: Mapping[str, Document]
    labels: tuple[str, ...]
    notes: tuple[str, ...]

    def presentations(self, question: Question, settings: LmEvalSettings) -> list[Presentation]:
        """A question in its orders; only as published with ``orders="given"``, and where the options cannot move."""
        found = order_presentations(question, settings.orders, self.labels, settings.seed)
        return found[:1] if settings.orders == "given" else found


def load(names: str | Sequence[str], settings: LmEvalSettings) -> TaskSet:
    """Load tasks, and find the options of their documents.

    Raises:
        InputError: see :func:`~unslant.plugins.lm_eval.tasks.load_tasks`; or if no field of a task's documents holds
            options that can change place, unless ``orders`` is ``given``.
    """
    tasks = load_tasks(names, settings)
    found: list[Document] = []
    with quiet():
        for task in tasks:
            found += _documents(task, settings)
    labels, notes = _labels(found)
    questions, by_id = _questions(found, len(tasks) > 1)
    title = ", ".join(task.name for task in tasks[:3]) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")
    return TaskSet(
        tuple(tasks), QuestionSet.of(questions, f"lm-eval: {title}"), by_id, labels, (*notes, *_notes(found))
    )


def _documents(task: HarnessTask, settings: LmEvalSettings) -> list[Document]:
    bare = [Document(task, *one) for one in task.documents()]
    if not bare:
        raise InputError(f"{task.name}: has no documents")
    n = len(bare[0].choices)
    if not MIN_OPTIONS <= n <= MAX_OPTIONS:
        raise InputError(f"{task.name}: {n} choices a document; {MIN_OPTIONS} to {MAX_OPTIONS} can be put in order")
    found, seen = _examined(bare, lambda one: (one.doc, dict))
    if not any(one.movable for one in found) and (remade := task.remade()):
        sources = dict(zip((one.number for one in bare), remade, strict=True))
        again, more = _examined(bare, lambda one: sources[one.number])
        if any(one.movable for one in again):
            return again
        seen += f"; before process_docs: {more}" if more else ""
    if any(one.kind for one in found) or settings.orders == "given":
        return found
    raise InputError(
        f"{task.name}: no field of its documents holds options that could be put in another order; looked at "
        f"{shortened(seen) or 'nothing: no field holds several texts'} (--orders given scores the published order only)"
    )


def _examined(bare: Sequence[Document], source: Callable[[Document], Any]) -> tuple[list[Document], str]:
    """Documents with their options found, and what was looked at in the first one without them."""
    found = [one.examined(*source(one)) for one in bare]
    return [one for one, _ in found], next((seen for one, seen in found if not one.movable and seen), "")


def _labels(documents: Sequence[Document]) -> tuple[tuple[str, ...], list[str]]:
    """The labels that are scored, where they are the same everywhere; else A, B, C, ..."""
    sets = [tuple(text.strip() for text in one.choices) for one in documents if one.kind == LABELS]
    longest = max(sets, key=len, default=())
    width = max(len(one.choices) for one in documents)
    if longest and all(one == longest[: len(one)] for one in sets) and len(longest) == width:
        return longest, []
    notes = ["Documents use different labels: they are recorded as A, B, C, ... by place."] if longest else []
    return labels_for(ALPHABETS["A"], width), notes


def _questions(documents: Sequence[Document], several: bool) -> tuple[list[Question], dict[str, Document]]:
    """Questions, and the document of each."""
    names = [document_id(one.doc, one.number) for one in documents]
    if any(
        often > 1 for often in Counter((one.task.name, n) for one, n in zip(documents, names, strict=True)).values()
    ):
        names = [str(one.number) for one in documents]
    by_id = {f"{one.task.name}/{n}" if several else n: one for one, n in zip(documents, names, strict=True)}
    made = []
    for name, one in by_id.items():
        n, subject = len(one.texts), one.task.name if several else document_subject(one.doc)
        stem = document_text(one.doc) or one.published[0][0]
        m = len(one.options.values) if one.options and one.movable else 0
        pinned = {*find_pinned(one.texts[:m], stem), *range(m, n)} if m else range(n)
        try:
            made.append(
                Question(
                    name, stem, one.texts, one.task.answers(one.doc),
                    subject=subject, source=one.task.name, pinned=tuple(sorted(pinned)),
                )
            )  # fmt: skip
        except ValueError as error:
            raise InputError(f"{one.task.name}, document {one.number}: {error}") from None
    return made, by_id


def _notes(documents: Sequence[Document]) -> list[str]:
    """What a reader should know of the documents."""
    notes = []
    for task in dict.fromkeys(one.task for one in documents):
        own = [one for one in documents if one.task is task]
        cloze, fixed = (sum(one.kind == kind for one in own) for kind in (CLOZE, ""))
        if cloze:
            notes.append(
                f"{task.name}: options are not in the prompt (cloze), so that their order cannot matter; scored once."
            )
        if any(one.kind == TEXTS for one in own):
            notes.append(f"{task.name}: texts of options are scored; labels here are only their places.")
        if fixed:
            notes.append(f"{task.name}: {fixed:,} of {len(own):,} documents in the published order only.")
        if callable(task.task.config.process_results):
            notes.append(f"{task.name}: has a score of its own; accuracies here count the target of each document.")
    return notes
