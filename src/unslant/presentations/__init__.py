"""How a question is shown: orders, labels, and the map from a shown label back to content.

First the label alphabets, the symbols shown before the options; last the presentations that P5 adds to the questions as
given. *Control presentations* (section 3.1) are a question without content under every order of its labels. A model can
only answer it by habit. Each label appears at each position equally often, which separates the pull of a label from the
pull of a position. *Nvr-X* (section 3.2, algorithm 1) are variants of a question in which the right option never has
label X. A model that answers X when it does not know scores nothing there; one that knows scores the same as always.
"""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from unslant.errors import InputError, shortened
from unslant.presentations.orders import (
    DEFAULT_CAP,
    Order,
    all_orders,
    auto_square,
    balanced_rounds,
    canonical,
    cyclic_orders,
    given_order,
    orders_for,
    place,
    question_rng,
    reversed_order,
    rotations,
    sampled_orders,
)
from unslant.questions.question import MAX_OPTIONS, ROMAN, Question

__all__ = [
    "ALPHABETS", "AUXILIARY", "CONTROL", "FOREIGN", "NONE", "NVR", "Asked", "Chooser", "Order", "Presentation",
    "ShownOption", "all_orders", "alphabetical", "auto_square", "balanced_rounds", "canonical", "control_presentations",
    "cyclic_orders", "given_order", "labels_for", "nvr_presentations", "orders_for", "parse_labels", "present",
    "question_rng", "references", "reversed_order", "rotations", "sampled_orders", "texts_under",
]  # fmt: skip

_NUMBERS = tuple(map(str, range(1, MAX_OPTIONS + 1)))
ALPHABETS: dict[str, tuple[str, ...]] = {
    "A": (*string.ascii_uppercase, *_NUMBERS)[:MAX_OPTIONS],
    "a": (*string.ascii_lowercase, *_NUMBERS)[:MAX_OPTIONS],
    "1": _NUMBERS,
    "I": tuple(map(str.upper, ROMAN)),
    "i": tuple(ROMAN),
    "0": ("0", *_NUMBERS)[:MAX_OPTIONS],
}
"""Named alphabets, keyed by their first label: as many labels as a question may have options, but 26 Roman numerals.
Numbers follow the last letter, as in inspect."""
LETTERS = 26
"""Labels of the alphabets A and a that are letters."""


def parse_labels(spec: str | Sequence[str]) -> tuple[str, ...]:
    """The alphabet that ``--labels`` names: one of :data:`ALPHABETS`, or your own, a list or separated by commas.

    Raises:
        InputError: on an unknown name, an empty label, a label given twice, or one of a list with a comma.
    """
    if not isinstance(spec, str):
        # settings, commands and stored runs write a list with commas between the labels
        if split := [label for label in spec if "," in label]:
            raise InputError(f"label {split[0]!r} has a comma, which separates labels: use another symbol")
        spec = ",".join(spec)
    if spec in ALPHABETS:
        return ALPHABETS[spec]
    if "," not in spec:
        raise InputError(
            f"unknown label set {spec!r}: use one of {', '.join(ALPHABETS)}, or your own labels separated by commas, "
            "for example --labels=W,X,Y,Z"
        )
    labels = tuple(part.strip() for part in spec.split(","))
    if "" in labels:
        raise InputError(f"label set {spec!r}: label {labels.index('') + 1} is empty")
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise InputError(f"label set {spec!r}: label {twice[0]!r} is given twice")
    return labels


def labels_for(alphabet: tuple[str, ...], n: int) -> tuple[str, ...]:
    """The first ``n`` labels of an alphabet.

    Raises:
        InputError: if the alphabet has fewer than ``n`` labels.
    """
    if n > len(alphabet):
        raise InputError(
            f"label set {shortened(','.join(alphabet), 60)} has {len(alphabet)} labels, but a question has {n} "
            "options: give more labels or use --labels=A"
        )
    return alphabet[:n]


def check_labels(alphabet: tuple[str, ...], questions: Iterable[Question]) -> None:
    """Raise InputError, before any work, if a question has more options than the alphabet has labels."""
    labels_for(alphabet, max((len(question.options) for question in questions), default=0))


def alphabetical(labels: Sequence[str]) -> tuple[str, ...]:
    """``labels`` in the order of the named alphabet that contains them all; unchanged if none does.

    An instruction that lists them reads the same for any order in which they precede the options.
    """
    for alphabet in ALPHABETS.values():
        if set(labels) <= set(alphabet):
            return tuple(sorted(labels, key=alphabet.index))
    return tuple(labels)


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
        run: number of the random draw, from 0 (``boat``).
        item: identifies it within its kind: the label that is never right (``nvr``), the name of the setting
            (``setting``), the option that is judged (true/false items); usually empty.
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
        labels = tuple(option.label for option in self.shown)
        return (*labels, self.none_label) if self.none_label else labels

    @property
    def contents(self) -> tuple[int, ...]:
        """Content code of every label, aligned with :attr:`labels`."""
        contents = tuple(option.content for option in self.shown)
        return (*contents, NONE) if self.none_label else contents

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
        return replace(self, shots=tuple(shots)) if shots or self.shots else self


Asked = tuple[Question, Presentation]
"""A question and how it is shown: what a model is asked."""
Chooser = Callable[[Question], tuple[Presentation, ...]]
"""Chooses the worked examples that are shown before a question."""


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

    Examples:
        >>> present(Question("q", "2 + 2?", ("3", "4"), frozenset({1})), order=(1, 0)).right_labels
        ('A',)

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
    labels = labels_for(alphabet, n) if labels is None else tuple(labels)
    if len(labels) != n:
        raise ValueError(f"{len(labels)} labels for the {n} options of question {question.id!r}")
    texts = texts_under(question, dict(zip(order, labels, strict=True)))
    lines = tuple(ShownOption(label, texts[content], content) for label, content in zip(labels, order, strict=True))
    return Presentation(question.id, kind, question.stem, lines, question.answers, context=question.context)


@lru_cache(maxsize=65536)
def references(question: Question) -> dict[int, dict[str, int]]:
    """Which pinned options name others by label: index -> name in lower case -> index of what it names."""
    from unslant.questions.pinned import label_references  # most questions have no such option

    named = label_references(question.options, f"{question.context}\n{question.stem}")
    return {i: names for i, names in named.items() if i in question.pinned}


def texts_under(question: Question, labels: Mapping[int, str]) -> tuple[str, ...]:
    """The options, with labels that they mention replaced by ``labels`` (content -> label) where these differ."""
    texts = list(question.options)
    for i, names in references(question).items() if question.pinned else ():
        if any(labels[content] != ALPHABETS["A"][content] for content in names.values()):
            from unslant.questions.pinned import rename

            texts[i] = rename(texts[i], {name: labels[content] for name, content in names.items()})
    return tuple(texts)


CONTROL = "control"
"""Kind of control presentations, and prefix of the ids of control questions."""
STEM, OPTION = "Select an answer choice", "choice"


def label_orders(n: int, seed: int = 0) -> list[tuple[int, ...]]:
    """Index of the label at each position, balanced: every label appears at every position equally often.

    All ``n!`` orders where there are at most 24 (lexicographic, so the usual order is first); otherwise
    ``ceil(24 / n)`` random Latin squares of ``n`` orders each, the first beginning with the usual order.
    """
    if math.factorial(n) <= DEFAULT_CAP:
        return list(itertools.permutations(range(n)))
    rng = question_rng(f"{CONTROL}/{n}", seed, "label orders")
    orders: dict[tuple[int, ...], None] = {}
    base = list(range(n))
    while len(orders) < DEFAULT_CAP:
        orders |= dict.fromkeys(tuple(base[k:] + base[:k]) for k in range(n))  # two squares share all orders, or none
        rng.shuffle(base)
    return list(orders)


def control_presentations(n: int, alphabet: tuple[str, ...] = ALPHABETS["A"], *, seed: int = 0) -> list[Asked]:
    """The control question of ``n`` equal options under :func:`label_orders`; no option is right.

    Raises:
        InputError: if the alphabet has fewer than ``n`` labels.
    """
    question = Question(f"{CONTROL}/{n}", STEM, (OPTION,) * n, frozenset(), subject=CONTROL)
    labels = labels_for(alphabet, n)
    return [
        (question, present(question, kind=CONTROL, labels=[labels[i] for i in order]))
        for order in label_orders(n, seed)
    ]


NVR = "nvr"
"""Kind of these presentations; their item is the label X."""


def nvr_order(question: Question, position: int, seed: int = 0) -> Order | None:
    """A random order in which no right option is at ``position`` (0 = top), all such orders being equally likely.

    A single right option thus goes to each of the other positions with the same probability, and the wrong ones fill
    the rest in random order. Pinned options keep their place. Drawn from the options sorted by content, so that what
    is shown does not depend on the order in the file.

    Returns:
        ``None`` where there is no such order: no such position, no right option, a right option pinned there, or
        every option that may be there is right.
    """
    if not 0 <= position < len(question.options) or not question.answers:
        return None
    rng = question_rng(question.id, seed, f"nvr {position}")
    base = list(canonical(question))
    if position in question.pinned:
        if position in question.answers:
            return None
        rng.shuffle(base)
        return place(question, base)
    wrong = [i for i in base if i not in question.answers]
    if not wrong:
        return None
    first = rng.choice(wrong)
    base.remove(first)
    rng.shuffle(base)
    base.insert(question.movable.index(position), first)
    return place(question, base)


def nvr_presentations(
    question: Question, alphabet: tuple[str, ...] = ALPHABETS["A"], seed: int = 0
) -> list[Presentation]:
    """The Nvr-X presentations of a question, one for each of its labels; X is their ``item``.

    Returns:
        An empty list where one of them does not exist, so that all variants are about the same questions.
    """
    labels = labels_for(alphabet, len(question.options))
    orders = [nvr_order(question, position, seed) for position in range(len(labels))]
    if None in orders:
        return []
    return [
        replace(present(question, order, alphabet, NVR), item=label)
        for label, order in zip(labels, orders, strict=True)
    ]
