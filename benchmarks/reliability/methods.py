"""Questions that debiasing methods have trouble with: equal options, options that name others by letter, long ones."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.reliability import Options, Row
from unslant.debiasing import METHODS, method_named
from unslant.debiasing.aoi import AuxiliaryOption
from unslant.debiasing.asker import Asker, ModelAsker
from unslant.debiasing.base import debias
from unslant.errors import InputError, ModelError, QuestionError
from unslant.models import Cost
from unslant.presentations import ALPHABETS, AUXILIARY, Presentation, references
from unslant.questions import Question
from unslant.questions.pinned import find_pinned

INSIDE = ("bnp", "set-based", "set-based-text", "lora-1")
SHORT = {"lora-1": "lora-1:epochs=1:questions_per_epoch=2:max_orders=2", "bnp": "bnp:nodes=4:questions=2"}
SETTINGS = ("aoi:position=first", "aoi:position=2", "aoi:position=99", "aoi:renormalise=false", "vote:orders=cyclic")
_WORDS = "red green blue white black oak ash elm pine birch cat dog goat horse stone river iron copper".split()
_REFERRING = ("Both A and B", "A and C only", "Neither A nor B", "All of the above", "None of the above", "B or C")


def rows(options: Options) -> Iterator[Row]:
    """One row a method, and one for references by letter; failures are exceptions and answers without a status."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    for name in (*METHODS, *SETTINGS):
        if options.wants("methods", name):
            yield attack(name, options)
    if options.wants("methods", "references by letter"):
        yield stale_references(options)


def attack(name: str, options: Options) -> Row:
    """Answer batches of odd questions by one method; every question needs an answer, or a status with a reason."""
    row = Row("methods", name)
    inside = name in INSIDE
    without = 0
    for batch in range(max(1, options.cases // (1000 if inside else 100))):
        rng = random.Random(f"{options.seed}/methods/{batch}")
        questions = [odd_question(rng, f"{batch}/{i}") for i in range(12)]
        row.attempts += len(questions)
        asker: Asker = ModelAsker(_model()) if inside else _Costless()
        try:
            answers = debias(method_named(SHORT.get(name, name)), asker, questions, fit_on=questions)
        except (
            InputError
        ) as error:  # a method may refuse all of them, or have nothing to fit on: in one line that says so
            if not re.search(rf"no answer to {len(questions)} of|^BNP: none of", str(error)):
                row.fail(f"batch {batch}: {error}")
            without += len(questions)
            continue
        except Exception as error:
            row.fail(f"batch {batch}: {type(error).__name__}: {error}")
            continue
        for question, outcome in zip(questions, answers.outcomes, strict=True):
            without += outcome.status != "ok"
            if wrong := _wrong(question, outcome):
                row.fail(f"{question}: {wrong}")
    row.note = f"{without:,} without an answer, each counted with a reason" if without else ""
    return row


def _wrong(question: Question, outcome: Any) -> str:
    if outcome.status != "ok":
        return "" if outcome.reason and outcome.choice == -1 and not outcome.probs.any() else "no reason"
    if len(outcome.probs) != len(question.options) or abs(outcome.probs.sum() + outcome.abstain - 1) > 1e-6:
        return f"probabilities {outcome.probs}"
    return ""


def stale_references(options: Options) -> Row:
    """Whether the letters in an option's text are those of the options it means, wherever "I don't know" is added."""
    row = Row("methods", "references by letter")
    rng = random.Random(f"{options.seed}/references")
    while row.attempts < max(20, options.cases // 10):
        question = odd_question(rng, str(row.attempts))
        if not references(question):
            continue
        position = rng.choice(("first", "last", "1", "2"))
        row.attempts += 1
        try:
            shown = AuxiliaryOption(position=position).present(question, ALPHABETS["A"])
        except ModelError:
            continue  # counted as unsupported
        if stale := list(stale_in(question, shown)):
            row.fail(f"{position}: {stale[0]}")
    return row


def stale_in(question: Question, shown: Presentation) -> Iterator[str]:
    """Options whose text names another option by a label that it does not carry in this presentation."""
    label_of = dict(zip(shown.contents, shown.labels, strict=True))
    for option in shown.shown:
        names = references(question).get(option.content, {}) if option.content != AUXILIARY else {}
        named = re.findall(r"(?<!\w)[A-Z](?!\w)", option.text)
        if names and sorted(set(named)) != sorted({label_of[content] for content in names.values()}):
            yield f"{option.text!r} in {[(one.label, one.text) for one in shown.shown]}"


def odd_question(rng: random.Random, name: str) -> Question:
    """A question of a kind that real files hold, and that methods may have trouble with."""
    n = rng.choice((2, 3, 4, 4, 4, 4, 5, 8, 10))
    texts = [" ".join(rng.sample(_WORDS, rng.randint(1, 3))) for _ in range(n)]
    kind = rng.randrange(10)
    if kind == 0:
        texts[-1] = texts[0]  # equal options
    elif kind == 1:
        texts[-1] = f"{texts[0]} and {rng.choice(_WORDS)}"  # one begins another
    elif kind == 2 and n > 3:
        texts[-1] = rng.choice(_REFERRING)
    elif kind == 3 and n > 3:
        texts[-2:] = rng.sample(_REFERRING, 2)
    elif kind == 4:
        texts[rng.randrange(n)] = rng.choice(("I don't know", "I don\u2019t know.", "i don't know"))
    elif kind == 5:
        texts[rng.randrange(n)] = rng.choice(("", " ", "\n", "two\nlines", "\ue000", "A", "B.", "1", "0.5\t"))
    elif kind == 6:
        texts[rng.randrange(n)] = "long " * rng.choice((50, 400))
    elif kind == 7:
        n = 26
        texts = [f"{rng.choice(_WORDS)} {i}" for i in range(n)]
    stem = rng.choice(("Which is it?", "Which \ue000 is it?", "What\n\nis it?", "long " * rng.choice((1, 400))))
    answers = frozenset(rng.sample(range(len(texts)), rng.choice((0, 1, 1, 1, 2))))
    return Question(name, stem, tuple(texts), answers, pinned=find_pinned(texts, stem))


class _Costless(Asker):
    """Answers by place and text; what holds the word iron gets no score."""

    alphabet = ALPHABETS["A"]

    def __init__(self) -> None:
        self._cost = Cost()

    @property
    def cost(self) -> Cost:
        return self._cost

    def ask(self, presentations: Any) -> Any:
        failed = {p.question_id for p in presentations if any("iron" in option.text for option in p.shown)}
        if failed:
            raise QuestionError(dict.fromkeys(sorted(failed), "a prompt got no score"), status="error")
        self._cost.prompts += len(presentations)
        weights = [
            np.array([1.0 + crc32(option.text.encode()) % 7 + 3.0 * (i == 0) for i, option in enumerate(p.shown)])
            for p in presentations
        ]
        return [row / row.sum() for row in weights]


@cache
def _model() -> Any:
    from unslant.models.open import open_model

    return open_model("prefers-a")
