"""The question: what is asked, before anyone decides how it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from unslant.files import check_text

MIN_OPTIONS = 2
MAX_OPTIONS = 100


@dataclass(frozen=True, slots=True)
class Question:
    """A multiple-choice question.

    Attributes:
        id: unique within a run; seeds of every random choice about the question derive from it.
        stem: the question proper, without options.
        options: 2 to 100 option texts (duplicates and empty texts occur in real files and are allowed).
        answers: 0-based indices of the right options. Empty means that no option is right;
            two or more, that several are.
        context: passage or facts shown before the stem; may be empty.
        subject: group within the set, used for per-subject tables and cluster bootstrap; may be empty.
        source: data set name; may be empty.
        pinned: indices of options that must keep their place ("all of the above", "both A and C" and
            the options those letters name).
        authors: who wrote each option, where options are answers of systems that are compared; empty elsewhere.

    Raises:
        ValueError: naming the field, on an option count, answer or pinned index out of range, or text that is none.
    """

    id: str
    stem: str
    options: tuple[str, ...]
    answers: frozenset[int]
    context: str = ""
    subject: str = ""
    source: str = ""
    pinned: tuple[int, ...] = field(default=())
    authors: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in ("id", "stem", "context", "subject", "source"):
            _check(name, getattr(self, name))
        _check("options", *self.options)
        _check("authors", *self.authors)
        n = len(self.options)
        if not MIN_OPTIONS <= n <= MAX_OPTIONS:
            raise ValueError(f"options: {n} given, {MIN_OPTIONS} to {MAX_OPTIONS} are allowed")
        if len(self.authors) not in (0, n):
            raise ValueError(f"authors: {len(self.authors)} given for {n} options")
        for name, indices in (("answers", self.answers), ("pinned", self.pinned)):
            wrong = sorted(i for i in indices if not 0 <= i < n)
            if wrong:
                raise ValueError(f"{name}: index {wrong[0]} is out of range, allowed are 0 to {n - 1}")

    @property
    def movable(self) -> tuple[int, ...]:
        """Indices of the options that may change place, ascending."""
        return tuple(i for i in range(len(self.options)) if i not in self.pinned)


def _check(field: str, *texts: str) -> None:
    for text in texts:
        try:
            check_text(text)
        except ValueError as error:
            raise ValueError(f"{field}: {error}") from None


@dataclass(frozen=True, slots=True)
class JudgingQuestion:
    """A statement to be judged from a context: ``True``, ``False`` or ``Unknown``."""

    id: str
    statement: str
    verdict: str
    context: str = ""
    subject: str = ""
    source: str = ""

    VERDICTS = ("True", "False", "Unknown")

    def __post_init__(self) -> None:
        if self.verdict not in self.VERDICTS:
            raise ValueError(f"verdict: {self.verdict!r} is not one of {', '.join(self.VERDICTS)}")


@dataclass(frozen=True, slots=True)
class MathQuestion:
    """An open question whose answer is a number, kept as written in the source (``"18"``, ``"3.5"``)."""

    id: str
    stem: str
    answer: str
    solution: str = ""
    subject: str = ""
    source: str = ""
