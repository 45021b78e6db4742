"""Which questions of two audits are the same: by id, else by text."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import numpy as np

from unslant.arrays import Ints
from unslant.metrics import Metrics, OrderScores
from unslant.questions import Question
from unslant.responses import Responses

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


def same_questions(a: Audited, b: Audited) -> tuple[Ints, Ints]:
    """Rows of the same questions in the scores of both.

    Questions of one id are the same unless their texts say otherwise: harnesses number their documents, and number 3 of
    two data sets is not one question. The others are the same where stem and options are, in whatever order, if no
    other question of either has these.
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
