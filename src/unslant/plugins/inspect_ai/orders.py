"""inspect samples of multiple-choice questions in every order. Needs ``unslant[inspect]``."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import overload

from inspect_ai import Task, task_with
from inspect_ai.dataset import Dataset, MemoryDataset, Sample
from inspect_ai.util import registry_info

from unslant.errors import InputError
from unslant.plugins.inspect_ai.orders_scorer import choice_in_orders
from unslant.presentations import ALPHABETS, Presentation, given_order, present
from unslant.presentations.orders import orders_for
from unslant.questions import Question, load_questions
from unslant.questions.pinned import find_pinned
from unslant.responses.importers.inspect_log import SHOWN, target_places


@overload
def in_orders(dataset: Task, orders: str | int = ..., *, limit: int | None = ..., seed: int = ...) -> Task: ...


@overload
def in_orders(  # type: ignore[overload-cannot-match]  # inspect's types are not known here
    dataset: Dataset | Sequence[Sample], orders: str | int = ..., *, limit: int | None = ..., seed: int = ...
) -> MemoryDataset: ...


def in_orders(
    dataset: Task | Dataset | Sequence[Sample],
    orders: str | int = "auto",
    *,
    limit: int | None = None,
    seed: int = 0,
) -> Task | MemoryDataset:
    """Every sample of a multiple-choice data set once in each of several orders of its choices.

    The samples of one question follow one another. Each has an id of its own, ``QUESTION|2-0-1-3``, so that epochs
    repeat an order and do not mix with others. Its metadata has ``unslant``: ``id`` of the question, ``order`` (the
    index in the data set of the choice at each place, from the top), ``labels``, ``pinned`` (indices of choices that
    never move), and ``besides`` where the published order is asked in addition to a random sample of orders. Choices
    that speak about others, such as "all of the above", are pinned, unless the sample's metadata has
    ``{"unslant": {"pinned": [...]}}`` already.

    Args:
        dataset: samples with choices, and targets as ``choice()`` takes them; or a task: a copy of it is returned
            that has these samples, and :func:`choice_in_orders` in place of ``choice()``. Its solver must show the
            choices as given in the sample, as ``multiple_choice()`` does.
        orders: as ``--orders`` of ``unslant audit``: ``auto``, ``all``, ``cyclic``, ``reverse``, a number, ...
        limit: most questions, sampled by ``seed`` and their ids.

    Raises:
        InputError: naming the sample that has no choices, a target that is none of them, or another's id; or that
            there are no samples.
    """
    if isinstance(dataset, Task):
        return _task(dataset, in_orders(_samples(dataset), orders, limit=limit, seed=seed))
    samples = list(dataset)
    if not samples:
        raise InputError("the data set holds no samples")
    found: dict[str, tuple[Question, Sample]] = {}
    for number, sample in enumerate(samples, 1):
        question = _question(sample, str(number if sample.id is None else sample.id))
        if question.id in found:
            raise InputError(f"sample {question.id!r}: two samples have this id")
        found[question.id] = question, sample
    chosen = load_questions([question for question, _ in found.values()], limit=limit, seed=seed)
    shown = [
        _sample(found[question.id][1], question, present(question, order), besides)
        for question in chosen
        for order, besides in _orders(question, str(orders), seed)
    ]
    name, location = getattr(dataset, "name", None), getattr(dataset, "location", None)
    return MemoryDataset(shown, name=name, location=location)


def _orders(question: Question, orders: str, seed: int) -> list[tuple[tuple[int, ...], bool]]:
    """The orders of a question, the published one first, and whether that is asked besides the set: a random sample
    leaves it out for most questions, and without it nobody could say what the data set as published scores."""
    asked, given = orders_for(question, orders, seed), given_order(question)
    rest = [(order, False) for order in asked if order != given]
    return [(given, given not in asked), *rest]


def _samples(task: Task) -> Dataset:
    if task.sample_source is not None:
        raise InputError(f"task {task.name}: its samples are made while it runs; in_orders needs a data set")
    return task.dataset


_REPLACED = {"choice", "choice_in_orders"}


def _task(task: Task, dataset: MemoryDataset) -> Task:
    others = [one for one in task.scorer or () if registry_info(one).name.rpartition("/")[2] not in _REPLACED]
    return task_with(copy(task), dataset=dataset, scorer=[choice_in_orders(), *others], metrics=None)


def _question(sample: Sample, name: str) -> Question:
    if not sample.choices:
        raise InputError(f"sample {name!r}: has no choices; in_orders is for multiple-choice samples")
    recorded = (sample.metadata or {}).get(SHOWN) or {}
    if "order" in recorded:
        raise InputError(f"sample {name!r}: is one of several orders already; give the data set as it was before")
    options = tuple(sample.choices)
    text = sample.input if isinstance(sample.input, str) else "\n".join(message.text for message in sample.input)
    try:
        answers = target_places(sample.target, ALPHABETS["A"][: len(options)])
        pinned = recorded["pinned"] if "pinned" in recorded else find_pinned(options, text)
        return Question(name, text, options, answers, pinned=tuple(pinned))
    except ValueError as error:
        raise InputError(f"sample {name!r}: {error}") from None


def _sample(sample: Sample, question: Question, presentation: Presentation, besides: bool) -> Sample:
    order = list(presentation.contents)
    shown: dict[str, object] = {
        "id": question.id,
        "order": order,
        "labels": list(presentation.labels),
        "pinned": list(question.pinned),
    }
    shown |= {"besides": True} if besides else {}
    return sample.model_copy(
        deep=True,
        update={
            "id": f"{question.id}|{'-'.join(map(str, order))}",
            "choices": [option.text for option in presentation.shown],
            "target": list(presentation.right_labels),
            "metadata": {**(sample.metadata or {}), SHOWN: shown},
        },
    )
