"""Contracts of plugins, as functions for their tests: each raises AssertionError, naming the part that fails.

Our own methods, backends and studies pass the same checks. An example, in a package's test::

    from unslant.plugins.contracts import check_model

    def test_the_contract():
        check_model(load("coin:fair", ModelOptions()))
"""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from contextlib import closing
from dataclasses import is_dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ParamSpec

import numpy as np

from unslant.arrays import Floats
from unslant.asking import elicitation_of
from unslant.debiasing.asker import Asker, ModelAsker
from unslant.debiasing.base import Method, debias
from unslant.errors import InputError
from unslant.experiment.result import RecordedResult, StudyResult
from unslant.experiment.study import StudyFunction
from unslant.models.base import Cost, ModelInfo, ScoringModel
from unslant.models.chat import ChatModel
from unslant.models.open import opened
from unslant.presentations import Presentation, orders_for, present
from unslant.prompts import Cloze, Prompt, Writer, load_template
from unslant.questions import Question
from unslant.responses import Responses
from unslant.responses.importers import Importer, importers
from unslant.responses.importers.joining import joined
from unslant.responses.importers.registry import Head

P = ParamSpec("P")
_TOLERANCE = 1e-6
_MOST_WORDS, _MOST_LINES = 30, 3


def sample_questions(counts: Sequence[int] = (2, 3, 4, 4, 4, 4, 4, 4, 5, 6), seed: int = 0) -> list[Question]:
    """Questions with these numbers of options and random right answers, which no model can know."""
    rng = random.Random(seed)
    return [
        Question(
            f"contract-{seed}-{i}",
            f"Which word is number {rng.randrange(100)} of list {i}?",
            tuple(rng.sample(_WORDS, n)),
            frozenset({rng.randrange(n)}),
        )
        for i, n in enumerate(counts)
    ]


_WORDS = "stone river lamp cloud bread wheel garden paper silver winter letter bridge".split()


def check_model(model: ScoringModel | ChatModel, questions: Sequence[Question] | None = None) -> None:
    """The contract of a backend's model: its identity, and one result a prompt, the same in every order of prompts.

    Args:
        model: as its loader returns it.
        questions: what to ask, for a model that takes only some; by default :func:`sample_questions`.

    Raises:
        AssertionError: naming the part of the contract that does not hold.
    """
    info = model.identify()
    _holds(isinstance(info, ModelInfo) and bool(info.name), "identify() returns a ModelInfo with a name")
    _holds(
        bool(info.identity) and all(isinstance(v, str) for v in info.identity.values()),
        "ModelInfo.identity holds, as texts, everything that may change a score; the store looks scores up by it",
    )
    _holds(dict(model.identify().identity) == dict(info.identity), "the identity of an unchanged model stays the same")
    prompts = _prompts(model, questions or sample_questions())
    if isinstance(model, ChatModel):
        _holds("generate" in info.can, "a ChatModel can generate")
        replies = list(model.generate(prompts))
        _once("generate", [reply.index for reply in replies], len(prompts))
        _holds(
            all(reply.text is not None or reply.error for reply in replies), "a reply without a text says why: error"
        )
        return
    _holds("score" in info.can, "a ScoringModel can score")
    _holds(not list(model.score([])), "without prompts there are no results")
    before = model.cost.copy()
    forwards = _scores(model, prompts)
    _holds(model.cost.prompts - before.prompts == len(prompts), "cost.prompts counts every prompt scored once")
    backwards = _scores(model, prompts[::-1])[::-1]
    for prompt, scores, repeated in zip(prompts, forwards, backwards, strict=True):
        _holds(scores.shape == (len(prompt.continuations),), "logprobs has a number for each continuation")
        _holds(
            bool(np.isfinite(scores).all() and (scores <= _TOLERANCE).all()),
            "log-probabilities are finite and at most 0",
        )
        _holds(
            np.allclose(scores, repeated, atol=1e-4),
            "a prompt's scores do not depend on the other prompts, or on their order, and asking again gives the same",
        )


def _scores(model: ScoringModel, prompts: Sequence[Prompt]) -> list[Any]:
    results = sorted(model.score(prompts), key=lambda scored: scored.index)
    _once("score", [scored.index for scored in results], len(prompts))
    _holds(all(scored.logprobs is not None or scored.error for scored in results), "a result without scores says why")
    _holds(all(scored.logprobs is not None for scored in results), "the sample questions can be scored")
    return [scored.logprobs for scored in results]


def _prompts(model: ScoringModel | ChatModel, questions: Sequence[Question]) -> list[Prompt]:
    """Every question in two orders, worded as the model takes them."""
    writer = Writer(load_template("plain"))
    elicitation = elicitation_of(model, writer) if isinstance(model, ScoringModel) else Cloze(writer)
    presentations = [present(question, order) for question in questions for order in orders_for(question, "reverse")]
    return [prompt for presentation in presentations for prompt in elicitation.prompts(presentation)]


class Places(Asker):
    """An asker whose answers depend on places and on how texts sort, for methods that need no real model."""

    alphabet = tuple("ABCDEFGHIJ")

    @cached_property
    def cost(self) -> Cost:
        return Cost()

    def ask(self, presentations: Sequence[Presentation]) -> list[Floats]:
        self.cost.prompts += len(presentations)
        rows = []
        for presentation in presentations:
            # Content codes below 0 are options that a method added; they must not shift the ranks of the question's.
            texts = sorted(option.text for option in presentation.shown if option.content >= 0)
            ranks = np.asarray([texts.index(o.text) if o.content >= 0 else 0 for o in presentation.shown])
            row = np.exp(-0.4 * np.arange(len(ranks)) + 0.3 * ranks)
            rows.append(row / row.sum())
        return rows


def check_method(method: Method, model: Any = None, questions: Sequence[Question] | None = None) -> None:
    """The contract of a debiasing method: probabilities, costs, its own claims, and a model left as it was.

    Args:
        method: with the settings to be checked.
        model: a loaded model or the name of a local one, for methods that work inside a model.
        questions: to answer and to fit on, by default :func:`sample_questions`.

    Raises:
        AssertionError: naming the part of the contract that does not hold.
    """
    _holds(is_dataclass(method) and bool(method.name), "a method is a dataclass of its settings, with a name")
    _holds(
        type(method).__setattr__ is not object.__setattr__,
        "a method is frozen: a fit returns a debiaser and changes nothing in the method",
    )
    fit_on = questions or sample_questions([4] * 14 + [2, 3, 5, 6], seed=1)
    questions = questions or sample_questions()
    if method.needs_model:
        try:
            debias(method, Places(), questions)
        except InputError:
            pass
        else:
            raise AssertionError("a method with needs_model raises InputError for an asker without a loaded model")
        _holds(model is not None, "a method with needs_model is checked on a model: check_method(method, model)")
    asker = Places() if model is None else ModelAsker(opened(model), remember=False)
    weights = _weights(asker)
    answers = debias(method, asker, questions, fit_on=fit_on)
    _holds(len(answers.outcomes) == len(questions), "there is one outcome for each question")
    for question, outcome in zip(questions, answers.outcomes, strict=True):
        if outcome.status != "ok":
            _holds(outcome.choice == -1 and bool(outcome.reason), "an outcome without an answer says why: reason")
            continue
        probs = outcome.probs
        _holds(probs.shape == (len(question.options),) and bool((probs >= 0).all()), "each option has a probability")
        _holds(abs(probs.sum() + outcome.abstain - 1) < _TOLERANCE, "probabilities and abstain sum to 1")
        _holds(bool(probs[outcome.choice] >= probs.max() * (1 - _TOLERANCE)), "the most probable option is the answer")
        _holds(outcome.orders >= 1, "an answer rests on at least one presentation")
    _holds(answers.cost.prompts >= 1, "the cost of answering is counted")
    _holds((answers.fit_cost.prompts > 0) == method.needs_fit, "a fit asks the model if and only if needs_fit is True")
    after = _weights(asker)
    unchanged = weights.keys() == after.keys() and all(bool((after[key] == weights[key]).all()) for key in weights)
    _holds(unchanged, "closing a debiaser leaves the model as it was, bit for bit")
    if method.order_invariant:
        _check_invariance(method, asker, questions, fit_on)


def _check_invariance(method: Method, asker: Asker, questions: Sequence[Question], fit_on: Sequence[Question]) -> None:
    rng = random.Random(5)
    orders = [tuple(rng.sample(range(len(question.options)), len(question.options))) for question in questions]
    turned = [question.relisted(order) for question, order in zip(questions, orders, strict=True)]
    with closing(method.fit(asker, fit_on)) as debiaser:
        plain, other = debiaser.answer(questions), debiaser.answer(turned)
    change = max(np.abs(b.probs - a.probs[[*order]]).max() for a, b, order in zip(plain, other, orders, strict=True))
    _holds(change < _TOLERANCE, "order_invariant is claimed, so a question listed in another order has the same answer")


def _weights(asker: Asker) -> dict[str, Any]:
    """Copies of the weights of a model that can be trained; empty for others."""
    if not isinstance(asker, ModelAsker) or "train" not in asker.model.info.can:
        return {}
    from unslant.models.hf.model import TransformersModel

    model = asker.model.unwrapped
    assert isinstance(model, TransformersModel)
    return {key: value.clone() for key, value in model.model.state_dict().items()}


def check_importer(importer: Importer, path: str | Path) -> list[Responses]:
    """The contract of a log format, on one of its files: it is recognised, by no other format, and read.

    Returns:
        The responses of each log, for checks of their content.

    Raises:
        AssertionError: naming the part of the contract that does not hold.
    """
    head = Head.of(Path(path))
    _holds(importer.recognises(head), f"{importer.what} recognises {path}")
    others = [one.what for one in importers(tables=False) if one.what != importer.what and one.recognises(head)]
    _holds(not others, f"no other format recognises {path}: {', '.join(others)}")
    _holds(not importer.recognises(Head(Path("x.jsonl"), frozenset(), {})), "a file without names is not recognised")
    logs = importer.read(head)
    tables = [logs] if isinstance(logs, Responses) else [joined([log], log.task) for log in logs]
    _holds(bool(tables) and all(len(responses) for responses in tables), "a log holds at least one answer")
    _holds(all(responses.run.name for responses in tables), "every log names its model")
    return tables


def check_study(
    function: StudyFunction[P, StudyResult], model: Any, questions: Any, /, *log: P.args, **options: P.kwargs
) -> None:
    """The contract of a study: a result that can be rebuilt from its file, and a readable first page.

    Args:
        function: the study's Python function, such as ``unslant.study.base_rate``.
        model, questions, options: its arguments.

    Raises:
        AssertionError: naming the part of the contract that does not hold.
    """
    study = function.study
    _holds(bool(study.name and (study.__doc__ or "").strip()), "a study has a name, and a docstring that is its help")
    result = function(model, questions, *log, **options)
    page = result.page()
    _holds(len(page.headline.split()) <= _MOST_WORDS, f"the headline has at most {_MOST_WORDS} words: {page.headline}")
    _holds(len(page.lines) <= _MOST_LINES, f"the first screen has at most {_MOST_LINES} lines")
    written = result.to_dict()
    json.dumps(written, allow_nan=False)
    if isinstance(result, RecordedResult):
        with TemporaryDirectory() as folder:
            path = Path(folder) / "run.parquet"
            result.to_parquet(path)
            again = type(result).from_parquet(path)
        _holds(
            _timeless(again.to_dict()) == _timeless(written),
            "the result rebuilt from its file equals the one that was written",
        )


def _timeless(written: dict[str, Any]) -> dict[str, Any]:
    """Without times and durations: files leave them out, so that equal runs give equal bytes."""
    return {
        key: _timeless(value) if isinstance(value, dict) else value
        for key, value in written.items()
        if key not in ("seconds", "lines", "provenance")
    }


def _once(name: str, indices: Sequence[int], number: int) -> None:
    _holds(sorted(indices) == [*range(number)], f"{name} yields one result for each prompt, with its index")


def _holds(condition: bool, requirement: str) -> None:
    if not condition:
        raise AssertionError(f"does not hold: {requirement}")
