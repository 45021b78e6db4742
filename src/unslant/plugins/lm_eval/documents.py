"""Documents of lm-eval's tasks as questions, and the requests for them in any order of their options."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from unslant.auditing import order_presentations
from unslant.errors import InputError, first_line, shortened
from unslant.plugins.lm_eval import option_fields
from unslant.plugins.lm_eval.option_fields import CLOZE, LABELS, TEXTS, Frame, OptionField, Request
from unslant.plugins.lm_eval.tasks import HarnessTask, LmEvalSettings, load_tasks, quiet
from unslant.presentations import ALPHABETS, Order, Presentation, labels_for
from unslant.questions import Question, QuestionSet
from unslant.questions.fields import passage_of
from unslant.questions.pinned import find_pinned
from unslant.questions.question import MAX_OPTIONS, MIN_OPTIONS
from unslant.responses.importers.lm_eval import document_id, document_subject, document_text


@dataclass
class Document:
    """One document of a task.

    Attributes:
        number: its place in the split, lm-eval's ``doc_id``.
        examples: the worked examples that lm-eval draws for it.
        kind: what is scored, see :mod:`~unslant.plugins.lm_eval.option_fields`; empty where no field holds the options.
        record: what holds the options: the document, or the record that ``process_docs`` made it from.
        remake: makes the document from such a record.
        options: where they are in the record.
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
        """The scored texts, as published."""
        return self.task.choices(self.doc)

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The option texts, as published; empty where a label has none."""
        texts = [str(value) for value in self.options.values] if self.options and self.movable else self.choices
        return (*texts, *([""] * len(self.choices) if self.kind == LABELS else self.choices)[len(texts) :])

    def examined(self, record: Mapping[str, Any], remake: Callable[[Mapping[str, Any]], Any]) -> tuple[Document, str]:
        """The document with its options located in a record, and, in words, the fields that were tried in vain."""
        n = len(self.choices)
        rejected: list[str] = []
        cloze: Document | None = None
        for candidate in option_fields.candidates(record, self.choices):
            m = min(n, len(candidate.values))
            field = candidate.at(range(m))
            try:
                requests = self.task.requests(remake(field.filled(record, option_fields.markers(m))), self.examples)
            except Exception as error:  # a template is a program, and may not expect such texts
                rejected.append(f"{field.name} (with other texts: {first_line(error)})")
                continue
            if len(requests) != n:
                rejected.append(f"{field.name} (changes the number of choices)")
                continue
            role = option_fields.examine(requests, m)
            if role.kind in (LABELS, TEXTS):
                places = role.places or range(m)
                return replace(self, kind=role.kind, record=record, remake=remake, options=field.at(places)), ""
            if role.kind == CLOZE and not self._written_out:
                cloze = cloze or replace(self, kind=CLOZE)
            why_not = "scored, but the prompt takes its options from elsewhere" if self._written_out else "not shown"
            rejected.append(f"{field.name} ({role.why_not or why_not})")
        return cloze or self, "; ".join(rejected)

    @property
    def _written_out(self) -> bool:
        """Whether the prompt shows all scored texts."""
        context = self.published[0][0]
        return all(context == other and text.strip() in context for other, text in self.published)

    @cached_property
    def published(self) -> list[Request]:
        """Context and continuation of each option, as published."""
        return self.task.requests(self.doc, self.examples)

    def forget(self) -> None:
        """Drop rendered prompts, before prompts are written in another way (with or without a chat template)."""
        for name in ("published", "_frame"):
            self.__dict__.pop(name, None)

    def requests(self, order: Order) -> list[Request]:
        """Context and continuation of each place, with option ``order[p]`` at place ``p``."""
        if order == tuple(range(len(order))):
            return self.published
        if self._frame is not None:
            return self._frame.filled([self.texts[i] for i in order])
        return self._rendered(order)

    def _rendered(self, order: Order) -> list[Request]:
        assert self.options is not None, "a document without movable options has one order"
        values = [self.options.values[i] for i in order[: len(self.options.values)]]
        return self.task.requests(self.remake(self.options.filled(self.record, values)), self.examples)

    @cached_property
    def _frame(self) -> Frame | None:
        """The requests with places for the options; None where filling these differs from rendering the templates."""
        assert self.options is not None, "a document without movable options has one order"
        m = len(self.options.values)
        marked = self.task.requests(
            self.remake(self.options.filled(self.record, option_fields.markers(m))), self.examples
        )
        frame = Frame.of(marked)
        # Two orders are compared with the templates' own output: a template may treat an option by its content.
        turned = (*range(m)[::-1], *range(m, len(self.texts)))
        same = frame.filled(self.texts) == self.published
        same = same and frame.filled([self.texts[i] for i in turned]) == self._rendered(turned)
        return frame if same else None


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
        presentations = order_presentations(question, settings.orders, self.labels, settings.seed)
        return presentations[:1] if settings.orders == "given" else presentations


def load(names: str | Sequence[str], settings: LmEvalSettings) -> TaskSet:
    """Load tasks, and locate the options of their documents.

    Raises:
        InputError: see :func:`~unslant.plugins.lm_eval.tasks.load_tasks`; or if no field of a task's documents holds
            options that can change place, unless ``orders`` is ``given``.
    """
    tasks = load_tasks(names, settings)
    with quiet():
        documents = [document for task in tasks for document in _documents(task, settings)]
    labels, notes = _labels(documents)
    questions, by_id = _questions(documents, len(tasks) > 1)
    title = ", ".join(task.name for task in tasks[:3]) + (f" and {len(tasks) - 3} more" if len(tasks) > 3 else "")
    question_set = QuestionSet.of(questions, f"lm-eval: {title}")
    return TaskSet(tuple(tasks), question_set, by_id, labels, (*notes, *_notes(documents)))


def _documents(task: HarnessTask, settings: LmEvalSettings) -> list[Document]:
    bare = [Document(task, *parts) for parts in task.documents()]
    if not bare:
        raise InputError(f"{task.name}: has no documents")
    n = len(bare[0].choices)
    if not MIN_OPTIONS <= n <= MAX_OPTIONS:
        raise InputError(f"{task.name}: {n} choices a document; {MIN_OPTIONS} to {MAX_OPTIONS} can be reordered")
    documents, rejected = _examined(bare, [(one.doc, dict) for one in bare])
    if not any(one.movable for one in documents) and (remade := task.remade()):
        from_sources, further = _examined(bare, remade)
        if any(one.movable for one in from_sources):
            return from_sources
        rejected += f"; before process_docs: {further}" if further else ""
    if any(one.kind for one in documents) or settings.orders == "given":
        return documents
    raise InputError(
        f"{task.name}: no field of its documents holds options that could be put in another order; tried "
        f"{shortened(rejected) or 'none: no field holds several texts'} (--orders given scores the published order)"
    )


def _examined(bare: Sequence[Document], sources: Sequence[tuple[Any, Any]]) -> tuple[list[Document], str]:
    """Documents with their options located in records, each given with what makes the document of it; and the fields
    tried in the first one without movable options."""
    pairs = [one.examined(*source) for one, source in zip(bare, sources, strict=True)]
    return [one for one, _ in pairs], next((rejected for one, rejected in pairs if not one.movable and rejected), "")


def _labels(documents: Sequence[Document]) -> tuple[tuple[str, ...], list[str]]:
    """The scored labels, if they are the same in all documents; else A, B, C, ..."""
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
    if len({(one.task.name, name) for one, name in zip(documents, names, strict=True)}) < len(documents):
        names = [str(one.number) for one in documents]  # some tasks give several documents one id
    by_id = {f"{one.task.name}/{n}" if several else n: one for one, n in zip(documents, names, strict=True)}
    questions = []
    for name, one in by_id.items():
        n, subject = len(one.texts), one.task.name if several else document_subject(one.doc)
        stem = document_text(one.doc) or one.published[0][0]
        m = len(one.options.values) if one.options and one.movable else 0
        pinned = {*find_pinned(one.texts[:m], stem), *range(m, n)} if m else range(n)
        try:
            questions.append(
                Question(
                    name, stem, one.texts, one.task.answers(one.doc),
                    context=passage_of(one.doc), subject=subject, source=one.task.name, pinned=tuple(sorted(pinned)),
                )
            )  # fmt: skip
        except ValueError as error:
            raise InputError(f"{one.task.name}, document {one.number}: {error}") from None
    return questions, by_id


def _notes(documents: Sequence[Document]) -> list[str]:
    """What a reader should know of the documents."""
    notes = []
    for task in dict.fromkeys(one.task for one in documents):
        kinds = Counter(one.kind for one in documents if one.task is task)
        own_score = callable(task.task.config.process_results)
        for holds, note in (
            (kinds[CLOZE], "options are not in the prompt (cloze), so that their order cannot matter; scored once."),
            (kinds[TEXTS], "texts of options are scored; labels here are only their places."),
            (kinds[""], f"{kinds['']:,} of {kinds.total():,} documents in the published order only."),
            (own_score, "has a score of its own; accuracies here count the target of each document."),
        ):
            notes += [f"{task.name}: {note}"] if holds else []
    return notes
