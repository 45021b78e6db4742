"""An audit paired with another, question by question: which questions are the same, and how the answers differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

from unslant.arrays import Ints
from unslant.experiment.result import Paired
from unslant.metrics import Metrics, OrderScores, paired_difference
from unslant.questions import Question
from unslant.reports.numbers import count
from unslant.responses import Responses

SCORES = ("accuracy", "expected_accuracy", "vote_accuracy", "robust_accuracy")
MEASURES = (*SCORES, "consistency", "pbm")

_Texts = tuple[str, tuple[str, ...]]


class Audited(Protocol):
    """What of an audit is compared.

    The result of an audit imports this, to pair itself with an earlier one, so its class cannot be named here.
    """

    @property
    def name(self) -> str: ...
    @property
    def responses(self) -> Responses: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def scores(self) -> OrderScores: ...


T = TypeVar("T", bound=Audited)


def named(results: Sequence[T], files: Sequence[str] = ()) -> dict[str, T]:
    """Audits by model, with the file name (or a number) added where models share a name."""
    often = Counter(result.name for result in results)
    extra = files if len(set(files)) == len(results) else [str(i + 1) for i in range(len(results))]
    return {r.name if often[r.name] == 1 else f"{r.name} ({more})": r for r, more in zip(results, extra, strict=True)}


def paired(run: tuple[str, Audited], other: tuple[str, Audited]) -> Paired:
    """How one audit differs from another on the questions of both; nothing where they have none in common.

    Args:
        run, other: name and audit of each.
    """
    (name, now), (base, first) = run, other
    at, of_first = rows = same_questions(now, first)
    if not at.size:
        return Paired((), ())
    values = now.metrics.questions, first.metrics.questions
    pairs = [paired_difference(now.scores, first.scores, key, measures=values, rows=rows) for key in MEASURES]
    ways, remarks = (_way(first), _way(now)), list[str]()
    if len(set(ways)) > 1:
        remarks.append(f"Answers are read in different ways: {base} by {ways[0]}; {name} by {ways[1]}.")
    if by_text := int((np.asarray(now.scores.ids)[at] != np.asarray(first.scores.ids)[of_first]).sum()):
        remarks.append(f"{name}: {by_text:,} of {count(len(at), 'question')} matched by text, not by id.")
    return Paired([pair for pair in pairs if pair.difference.defined], remarks)


def _way(run: Audited) -> str:
    """How an answer is read: letters on a page and option texts on their own are two questions."""
    logged = run.responses.run.logged
    if logged and logged.scores in ("texts", "listed"):
        return "scores of option texts"
    return "scores of labels" if run.scores.is_scored else "words"


def same_questions(a: Audited, b: Audited) -> tuple[Ints, Ints]:
    """Rows of the same questions in the scores of both.

    Questions of one id are the same unless their texts say otherwise: harnesses number their documents, and number 3 of
    two data sets is not one question. The others are the same where they have the same stem and the same options in
    any order, if no other question of either has these.
    """
    of_a, of_b = _texts(a), _texts(b)
    place = {name: i for i, name in enumerate(b.scores.ids)}
    pairs = [
        (i, place[name])
        for i, name in enumerate(a.scores.ids)
        if name in place and _agree(of_a.get(name), of_b.get(name))
    ]
    left_a, left_b = (
        _unique({name: texts for name, texts in of.items() if name in ids})
        for of, ids in (
            (of_a, set(a.scores.ids) - {a.scores.ids[i] for i, _ in pairs}),
            (of_b, set(b.scores.ids) - {b.scores.ids[i] for _, i in pairs}),
        )
    )
    at = {name: i for i, name in enumerate(a.scores.ids)}
    by_text = [(at[left_a[texts]], place[left_b[texts]]) for texts in left_a if texts in left_b]
    rows = np.asarray(sorted([*pairs, *by_text]), np.int64).reshape(-1, 2)
    return rows[:, 0], rows[:, 1]


def _texts(result: Audited) -> dict[str, _Texts]:
    return {question.id: _folded(question) for question in result.responses.questions}


def _folded(question: Question) -> _Texts:
    stem, *options = (" ".join(text.split()).casefold() for text in (question.stem, *question.options))
    return stem.removeprefix("question:").strip(), tuple(sorted(options))


def _agree(a: _Texts | None, b: _Texts | None) -> bool:
    """Whether two texts can be of one question; one harness may show a stem with more around it than another."""
    return a is None or b is None or (a[1] == b[1] and (a[0] in b[0] or b[0] in a[0]))


def _unique(texts: dict[str, _Texts]) -> dict[_Texts, str]:
    """Id by texts, of texts that only one question has."""
    often = Counter(texts.values())
    return {found: name for name, found in texts.items() if often[found] == 1}
