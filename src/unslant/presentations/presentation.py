"""A presentation: one way of showing one question, with everything needed to decode the answer back to content."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from unslant.presentations.labels import ALPHABETS, labels_for
from unslant.questions.pinned import label_references, rename
from unslant.questions.question import Question

NONE = -1
"""Content code: "no option is right"."""
AUXILIARY = -2
"""Content code: an option that was added and is never right, such as "I don't know"."""
FOREIGN = -3
"""Content code: an option text taken from elsewhere in place of one of the question's own."""


@dataclass(frozen=True, slots=True)
class ShownOption:
    """One line of the option list: its label, its text, and whose content it is.

    ``content`` is an index into the question's options, or ``NONE``, ``AUXILIARY`` or ``FOREIGN``.
    """

    label: str
    text: str
    content: int


@dataclass(frozen=True, slots=True)
class Presentation:
    """One question as it is shown once.

    Attributes:
        question_id: the question's id.
        kind: ``given``, ``order``, ``reverse``, ``labels-reversed``, ``both-reversed``, ``labels-shifted``, ``nvr``,
            ``control``, ``vanilla``, ``boat``, ``only``, ``setting``, ... One question has any number of each.
        stem: the question as worded here.
        context: passage shown before the stem; may be empty.
        shown: the option lines from top to bottom.
        answers: content codes that are right here. ``NONE`` is among them where "no option is right" is a right answer
            that can be given; empty when no shown option is right and that cannot be said.
        instruction: instruction of this presentation; empty leaves the template's own.
        hint: a sentence added before the options are asked about; may be empty.
        distractor: a second stem; only one of the two fits the options; may be empty.
        none_label: a label for "no option is right", without a line of its own: the hint or the instruction has to
            offer it in words; may be empty.
        interventions: names of the atomic changes applied, in order of application.
        shots: worked examples shown before, each a presentation of another question.
        run: which of several random draws, from 0 (``boat``).
        item: which one of its kind: the label that is never right (``nvr``), the name of the setting (``setting``), the
            option that is judged (true/false items); usually empty.
        suggested: content codes of the answer that the hint suggests (``NONE`` for "none"); ``None`` if it does not.
        open_answer: right answer of an open question, which has no options; for worked examples.

    Raises:
        ValueError: if two options, or an option and ``none_label``, carry the same label.
    """

    question_id: str
    kind: str
    stem: str
    shown: tuple[ShownOption, ...]
    answers: frozenset[int]
    context: str = ""
    instruction: str = ""
    hint: str = ""
    distractor: str = ""
    none_label: str = ""
    interventions: tuple[str, ...] = ()
    shots: tuple[Presentation, ...] = ()
    run: int = 0
    item: str = ""
    suggested: frozenset[int] | None = None
    open_answer: str = ""

    def __post_init__(self) -> None:
        if len(set(self.labels)) != len(self.labels):
            twice = next(label for label in self.labels if self.labels.count(label) > 1)
            raise ValueError(f"question {self.question_id!r}: label {twice!r} means two answers")

    @property
    def labels(self) -> tuple[str, ...]:
        """All labels that are an answer here: the shown ones from top to bottom, then ``none_label`` if offered."""
        own = tuple(option.label for option in self.shown)
        return (*own, self.none_label) if self.none_label else own

    @property
    def contents(self) -> tuple[int, ...]:
        """Content code of every label, aligned with :attr:`labels`."""
        own = tuple(option.content for option in self.shown)
        return (*own, NONE) if self.none_label else own

    @property
    def right_labels(self) -> tuple[str, ...]:
        """The labels whose content is right, in shown order."""
        return tuple(
            label for label, content in zip(self.labels, self.contents, strict=True) if content in self.answers
        )

    def content_of(self, label: str) -> int:
        """Content code shown under ``label``.

        Raises:
            KeyError: if no option carries that label.
        """
        try:
            return self.contents[self.labels.index(label)]
        except ValueError:
            raise KeyError(label) from None

    def with_shots(self, shots: Sequence[Presentation]) -> Presentation:
        """The same presentation after worked examples."""
        return replace(self, shots=tuple(shots))


Asked = tuple[Question, Presentation]
"""A question and how it is shown: what a model is asked."""


def present(
    question: Question,
    order: Sequence[int] | None = None,
    alphabet: tuple[str, ...] = ALPHABETS["A"],
    kind: str = "order",
    labels: Sequence[str] | None = None,
) -> Presentation:
    """Show ``question`` with its options in ``order`` (option index at each position; default as given).

    A pinned option that names others by their published letters is shown with the labels these carry here ("both A and
    C" as "both 1 and 3").

    Args:
        alphabet: labels are its first ``n``, in order, unless ``labels`` gives the label of each position outright.

    Raises:
        ValueError: if ``order`` is not a permutation of the option indices, or ``labels`` has not one label for each.
        InputError: if the alphabet has too few labels.
    """
    n = len(question.options)
    order = range(n) if order is None else order
    if sorted(order) != list(range(n)):
        raise ValueError(f"order {tuple(order)} is not a permutation of the {n} options of question {question.id!r}")
    given = labels_for(alphabet, n) if labels is None else tuple(labels)
    if len(given) != n:
        raise ValueError(f"{len(given)} labels for the {n} options of question {question.id!r}")
    texts = texts_under(question, dict(zip(order, given, strict=True)))
    shown = tuple(ShownOption(label, texts[content], content) for label, content in zip(given, order, strict=True))
    return Presentation(question.id, kind, question.stem, shown, question.answers, context=question.context)


@lru_cache(maxsize=65536)
def references(question: Question) -> dict[int, dict[str, int]]:
    """Which pinned options name others by label: index -> name in lower case -> index of what it names."""
    found = label_references(question.options, f"{question.context}\n{question.stem}")
    return {i: names for i, names in found.items() if i in question.pinned}


def texts_under(question: Question, labels: Mapping[int, str]) -> tuple[str, ...]:
    """The options with the names of others as ``labels`` (content -> label) has them; as published where it can be."""
    texts = list(question.options)
    for i, names in references(question).items() if question.pinned else ():
        if any(labels[content] != ALPHABETS["A"][content] for content in names.values()):
            texts[i] = rename(texts[i], {name: labels[content] for name, content in names.items()})
    return tuple(texts)
