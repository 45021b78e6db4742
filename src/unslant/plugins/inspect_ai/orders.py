"""Multiple-choice samples in several option orders: data set, scorer, metrics and the task ``unslant/in_orders``."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import fields
from itertools import chain
from typing import Any, overload

import numpy as np
from inspect_ai import Task, task, task_with
from inspect_ai._eval.loader import load_tasks  # no public function loads a task by name or from a file
from inspect_ai.dataset import Dataset, MemoryDataset, Sample
from inspect_ai.log import EvalSample
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, Value, metric, scorer
from inspect_ai.solver import TaskState, multiple_choice
from inspect_ai.util import registry_info

from unslant.arrays import Floats, grouped, mean_defined
from unslant.errors import InputError
from unslant.metrics import QuestionValues, measure, preference, read_scores
from unslant.plugins.inspect_ai.samples import one_line_errors
from unslant.presentations import ALPHABETS, Presentation, given_order, present
from unslant.presentations.orders import orders_for
from unslant.questions import Question, load_questions
from unslant.questions.pinned import find_pinned
from unslant.responses import GENERATE
from unslant.responses.importers import Log, Logged, joined
from unslant.responses.importers.inspect_log import SHOWN, read_page, target_places


@overload
def in_orders(dataset: Task, orders: str | int = ..., *, limit: int | None = ..., seed: int = ...) -> Task: ...


@overload
def in_orders(  # type: ignore[overload-cannot-match]  # inspect's types are not known here
    dataset: Dataset | Sequence[Sample], orders: str | int = ..., *, limit: int | None = ..., seed: int = ...
) -> MemoryDataset: ...


def in_orders(
    dataset: Task | Dataset | Sequence[Sample], orders: str | int = "auto", *, limit: int | None = None, seed: int = 0
) -> Task | MemoryDataset:
    """Present every sample of a multiple-choice data set in several orders of its choices.

    The samples of one question follow one another. Each has its own id, ``QUESTION|2-0-1-3``, so that epochs repeat an
    order and do not mix with others. Its metadata has ``unslant``: ``id`` of the question, ``order`` (the data set's
    index of the choice at each place, from the top), ``labels``, ``pinned`` (indices of choices that never move), and
    ``besides`` where the published order is asked in addition to a random sample of orders. Choices that refer to
    others, such as "all of the above", are pinned, unless the sample's metadata already has
    ``{"unslant": {"pinned": [...]}}``.

    Args:
        dataset: samples with choices, and targets as ``choice()`` takes them; or a task: a copy of it is returned
            that has these samples, and :func:`choice_in_orders` in place of ``choice()``. Its solver must show the
            choices as given in the sample, as ``multiple_choice()`` does.
        orders: as ``--orders`` of ``unslant audit``: ``auto``, ``all``, ``cyclic``, ``reverse``, a number, ...
        limit: most questions, sampled by ``seed`` and their ids.

    Raises:
        InputError: naming the sample without choices, with a target outside them, or with another sample's id; or if
            the data set is empty.
    """
    if isinstance(dataset, Task):
        return _task_in_orders(dataset, orders, limit, seed)
    samples: dict[str, Sample] = {}
    questions: list[Question] = []
    for number, sample in enumerate(dataset, 1):
        question = _question(sample, str(number if sample.id is None else sample.id))
        if question.id in samples:
            raise InputError(f"sample {question.id!r}: two samples have this id")
        samples[question.id] = sample
        questions.append(question)
    if not questions:
        raise InputError("the data set holds no samples")
    reordered = [
        _sample(samples[question.id], question, present(question, order), besides)
        for question in load_questions(questions, limit=limit, seed=seed)
        for order, besides in _orders(question, str(orders), seed)
    ]
    name, location = getattr(dataset, "name", None), getattr(dataset, "location", None)
    return MemoryDataset(reordered, name=name, location=location)


def _orders(question: Question, orders: str, seed: int) -> list[tuple[tuple[int, ...], bool]]:
    """The orders of a question, the published one first, and whether that one is in addition to the set."""
    # A random sample of orders leaves the published one out for most questions; without it, the score of the data set
    # as published would be unknown.
    order_set, published = orders_for(question, orders, seed), given_order(question)
    return [(published, published not in order_set), *((order, False) for order in order_set if order != published)]


def _task_in_orders(task: Task, orders: str | int, limit: int | None, seed: int) -> Task:
    if task.sample_source is not None:
        raise InputError(f"task {task.name}: its samples are made while it runs; in_orders needs a data set")
    replaced = {"choice", "choice_in_orders"}
    others = [one for one in task.scorer or () if registry_info(one).name.rpartition("/")[2] not in replaced]
    dataset = in_orders(task.dataset, orders, limit=limit, seed=seed)
    return task_with(copy(task), dataset=dataset, scorer=[choice_in_orders(), *others], metrics=None)


def _question(sample: Sample, name: str) -> Question:
    if not sample.choices:
        raise InputError(f"sample {name!r}: has no choices; in_orders is for multiple-choice samples")
    metadata = (sample.metadata or {}).get(SHOWN) or {}
    if "order" in metadata:
        raise InputError(f"sample {name!r}: is already one of several orders; give the original data set")
    options = tuple(sample.choices)
    text = sample.input if isinstance(sample.input, str) else "\n".join(message.text for message in sample.input)
    try:
        answers = target_places(sample.target, ALPHABETS["A"][: len(options)])
        pinned = metadata["pinned"] if "pinned" in metadata else find_pinned(options, text)
        return Question(name, text, options, answers, pinned=tuple(pinned))
    except ValueError as error:
        raise InputError(f"sample {name!r}: {error}") from None


def _sample(sample: Sample, question: Question, presentation: Presentation, besides: bool) -> Sample:
    order = list(presentation.contents)
    metadata: dict[str, object] = {
        "id": question.id,
        "order": order,
        "labels": list(presentation.labels),
        "pinned": list(question.pinned),
    }
    metadata |= {"besides": True} if besides else {}
    return sample.model_copy(
        deep=True,
        update={
            "id": f"{question.id}|{'-'.join(map(str, order))}",
            "choices": [option.text for option in presentation.shown],
            "target": list(presentation.right_labels),
            "metadata": {**(sample.metadata or {}), SHOWN: metadata},
        },
    )


@metric(scores="unreduced")
def over_orders() -> Metric:
    """Results over the orders of each question; needs the scores of :func:`choice_in_orders`.

    - ``mean_over_orders``: accuracy, mean over the orders of each question, then over questions; a reply without an
      answer is not right. ``stderr`` treats questions as independent, not their orders.
    - ``consistency``: share of questions that get the same answer in every order.
    - ``pbm``: permutation bias (P1), where every answer has top log-probabilities.
    - ``unanswered``: share of replies without an answer: unparsed, refused, or naming several options.
    - the fallback preference in words ("falls back on A when unsure"), with the share of questions whose answer
      changes with the order.

    Numbers are averaged over epochs; the words come from the first. Questions with a missing order count only in
    ``unanswered``.
    """

    def compute(scores: list[SampleScore]) -> Value:
        return _numbers([(score.score.metadata or {})["page"] for score in scores])

    return compute


@scorer(metrics=[over_orders()])
def choice_in_orders() -> Scorer:
    """Right if exactly the right choices are named; for samples of :func:`in_orders`.

    Replies are read as ``unslant audit --log`` reads them from the log. The score's metadata has the ``page``: the
    presentation and the answer, with the log-probabilities of the labels where the reply has them.
    """

    async def score(state: TaskState, target: Target) -> Score:
        place = f"sample {state.sample_id}"
        if SHOWN not in state.metadata:
            raise InputError.at(place, "has no order in its metadata; make the data set with unslant.inspect.in_orders")
        if any(choice.original_position != k for k, choice in enumerate(state.choices)):
            raise InputError.at(place, "is shuffled by its solver; remove shuffle from multiple_choice()")
        sample = EvalSample(
            id=state.sample_id,
            epoch=state.epoch,
            input=state.input,
            choices=[choice.value for choice in state.choices],
            target=list(target),
            messages=state.messages,
            output=state.output,
            metadata=state.metadata,
        )
        page, _ = read_page(sample, place)
        reply = state.output.completion
        reasons = {"unparsed": "invalid_response_format" if reply.strip() else "no_response", "refused": "refusal"}
        return Score(
            value="C" if page.status == "ok" and page.chosen == page.answers else "I" if reply.strip() else "N",
            answer=", ".join(page.labels[k] for k in sorted(page.chosen or ())),
            explanation=reply,
            reason=reasons.get(page.status),
            metadata={"page": {**_plain(page), "epoch": state.epoch}},
        )

    return score


_TEXTS = {"place", "question", "options", "reply"}
"""Fields of a page that the sample already has."""
_LISTS = (tuple, frozenset, np.ndarray)
_FROM_LIST: Mapping[str, Callable[[Any], Any]] = {"frozenset": frozenset, "Floats": np.asarray}
"""Type of a field of a page -> how to make it from a list; others are tuples."""


def _plain(page: Logged) -> dict[str, Any]:
    """A page without its texts, for JSON; :func:`_page` inverts it."""
    values = {f.name: getattr(page, f.name) for f in fields(page) if f.name not in _TEXTS}
    return {name: list(value) if isinstance(value, _LISTS) else value for name, value in values.items()}


def _page(plain: Mapping[str, Any]) -> Logged:
    kinds = {f.name: str(f.type).partition("[")[0].partition(" ")[0] for f in fields(Logged)}
    values = {
        name: _FROM_LIST.get(kinds[name], tuple)(value) if isinstance(value, list) else value
        for name, value in plain.items()
        if name in kinds
    }
    return Logged(place=f"question {plain['id']}", **values)


def _numbers(pages: Sequence[Mapping[str, Any]]) -> dict[str, float | None]:
    epochs = grouped((page["epoch"], _page(page)) for page in pages)
    tables = [joined([Log("", "inspect", "words", tuple(epochs[epoch]))]) for epoch in sorted(epochs)]
    scores = [read_scores(table) for table in tables]
    measures = [measure(one) for one in scores]
    pairs = list(zip(scores, measures, strict=True))
    every = chain(*(zip(one.ids, _right(values), strict=True) for one, values in pairs))
    rights = grouped((name, value) for name, value in every if not math.isnan(value))
    right = np.array([np.mean(values) for values in rights.values()])
    unsure = preference(scores[0])
    numbers = {
        "mean_over_orders": mean_defined(right),
        "stderr": float(right.std(ddof=1)) / math.sqrt(len(right)) if len(right) > 1 else math.nan,
        "consistency": mean_defined(chain(*(values["consistency"] for values in measures))),
        "pbm": mean_defined(chain(*(m["pbm"] for one, m in pairs if one.elicitation != GENERATE))),
        "unanswered": sum(one.n_unanswered + one.n_failed for one in scores) / len(pages),
        unsure.phrase: unsure.unsure.value,
    }
    return {name: None if math.isnan(value) else value for name, value in numbers.items()}


def _right(values: QuestionValues) -> Floats:
    """Share of orders in which each question is answered correctly; 0 or 1 where it has only the published order."""
    expected = values["expected_accuracy"]
    return expected if np.isfinite(expected).any() else values["accuracy"]


@task(name="in_orders")
@one_line_errors
def in_orders_task(
    task: str | None = None,
    questions: str = "embedded",
    orders: str | int = "auto",
    limit: int | None = None,
    seed: int = 0,
    cot: bool = False,
    **task_args: Any,  # what inspect gets with -T for the task
) -> Task:
    """Every multiple-choice question in several orders of its options.

    Args:
        task: a registered task, or ``FILE.py@NAME``; other ``-T`` arguments are passed on to it.
        questions: file or recipe, if there is no task.
        orders: as ``--orders`` of ``unslant audit``.
        limit: most questions, sampled by ``seed`` and their ids; each is asked in all its orders.
        cot: let the model reason before it answers; a task has its own solver.
    """
    if task is not None:
        if questions != "embedded" or cot:
            raise InputError("questions and cot are for a file of questions; a task has its own")
        tasks = load_tasks([task], task_args)
        if len(tasks) != 1:
            raise InputError(f"task {task!r}: {len(tasks)} tasks match; name one, as FILE.py@NAME")
        (whole,) = tasks
    else:
        if task_args:
            raise InputError(f"{', '.join(task_args)}: not an argument of unslant/in_orders, and there is no task")
        loaded = load_questions(questions)
        whole = Task(
            name=loaded.name,
            dataset=MemoryDataset([_choice_sample(question) for question in loaded], name=loaded.name),
            solver=multiple_choice(cot=cot, multiple_correct=any(len(q.answers) > 1 for q in loaded)),
        )
    task_in_orders = in_orders(whole, orders, limit=limit, seed=seed)
    task_in_orders._name = f"{whole.name.rpartition('/')[2]}_in_orders"
    return task_in_orders


def _choice_sample(question: Question) -> Sample:
    return Sample(
        id=question.id,
        input="\n\n".join(filter(None, (question.context, question.stem))),
        choices=list(question.options),
        target=list(present(question).right_labels),
        metadata={"subject": question.subject, SHOWN: {"pinned": list(question.pinned)}},
    )
