"""The inspect task ``unslant/in_orders``."""

from __future__ import annotations

from typing import Any

from inspect_ai import Task, task
from inspect_ai._eval.loader import load_tasks  # no public function loads a task by name or from a file
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.solver import multiple_choice

from unslant.errors import InputError
from unslant.plugins.inspect_ai.orders import in_orders
from unslant.plugins.inspect_ai.samples import one_line_errors
from unslant.presentations import present
from unslant.questions import Question, load_questions
from unslant.responses.importers.inspect_log import SHOWN


@task(name="in_orders")
@one_line_errors
def in_orders_task(
    task: str | None = None,
    questions: str = "embedded",
    orders: str | int = "auto",
    limit: int | None = None,
    seed: int = 0,
    cot: bool = False,
    **task_args: Any,
) -> Task:
    """Every multiple-choice question in several orders of its options.

    Args:
        task: a registered task, or ``FILE.py@NAME``; further ``-T`` arguments are handed to it.
        questions: file or recipe, where no task is given.
        orders: as ``--orders`` of ``unslant audit``.
        limit: most questions, sampled by ``seed`` and their ids; each is asked in all its orders.
        cot: let the model reason before it answers; a task given has its own solver.
    """
    if task is not None:
        if questions != "embedded" or cot:
            raise InputError("questions and cot are for a file of questions; a task has its own")
        found = load_tasks([task], task_args)
        if len(found) != 1:
            raise InputError(f"task {task!r}: {len(found)} tasks are found there; name one, as FILE.py@NAME")
        (whole,) = found
    else:
        if task_args:
            raise InputError(f"{', '.join(task_args)}: not an argument of unslant/in_orders, and no task is given")
        loaded = load_questions(questions)
        whole = Task(
            name=loaded.name,
            dataset=MemoryDataset([_sample(question) for question in loaded], name=loaded.name),
            solver=multiple_choice(cot=cot, multiple_correct=any(len(q.answers) > 1 for q in loaded)),
        )
    made = in_orders(whole, orders, limit=limit, seed=seed)
    made._name = f"{whole.name.rpartition('/')[2]}_in_orders"
    return made


def _sample(question: Question) -> Sample:
    return Sample(
        id=question.id,
        input="\n\n".join(filter(None, (question.context, question.stem))),
        choices=list(question.options),
        target=list(present(question).right_labels),
        metadata={"subject": question.subject, SHOWN: {"pinned": list(question.pinned)}},
    )
