"""Presentations in inspect samples and logs, shared by the tasks of several studies. Needs ``unslant[inspect]``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from inspect_ai._util.error import PrerequisiteError
from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log
from rich.markup import escape

from unslant.asking import Reader, reply_row
from unslant.errors import InputError, UnslantError
from unslant.models import Reply
from unslant.models.inspect_chat import reply_of
from unslant.presentations import Presentation, ShownOption
from unslant.questions import JudgingQuestion, Question
from unslant.responses import Response

P = ParamSpec("P")
T = TypeVar("T")


class TaskError(InputError, PrerequisiteError):  # type: ignore[misc]
    """Bad arguments of a task; ``inspect eval`` prints the message without a traceback."""

    def __init__(self, message: str) -> None:
        InputError.__init__(self, message)
        self.message = escape(str(self))


def one_line_errors(task: Callable[P, T]) -> Callable[P, T]:
    """Turn our own errors in a function that makes a task into :class:`TaskError`."""

    @wraps(task)
    def wrapper(*args: P.args, **keywords: P.kwargs) -> T:
        try:
            return task(*args, **keywords)
        except UnslantError as error:
            raise TaskError(str(error)) from None

    return wrapper


def metadata_of(question: Question | JudgingQuestion, presentation: Presentation) -> dict[str, Any]:
    """Sample metadata: the parts of a question and its presentation needed to read an answer."""
    return {
        "presentation": [presentation.kind, presentation.run, presentation.item],
        "question_id": question.id,
        "labels": list(presentation.labels),
        "contents": list(presentation.contents),
        "options": [*(line.text for line in presentation.shown), *([""] if presentation.none_label else [])],
        "answers": sorted(presentation.answers),
        "interventions": list(presentation.interventions),
        "suggested": None if presentation.suggested is None else sorted(presentation.suggested),
        "own_options": list(question.options),
        "pinned": list(question.pinned),
        "subject": question.subject,
        "source": question.source,
    }


def from_metadata(metadata: Mapping[str, Any]) -> Presentation:
    """Invert :func:`metadata_of`."""
    lines = zip(metadata["labels"], metadata["options"], metadata["contents"], strict=True)
    suggested = metadata.get("suggested")
    kind, run, item = metadata["presentation"]
    return Presentation(
        question_id=metadata["question_id"],
        kind=kind,
        run=run,
        item=item,
        stem="",
        shown=tuple(ShownOption(*line) for line in lines),
        answers=frozenset(metadata["answers"]),
        interventions=tuple(metadata["interventions"]),
        suggested=None if suggested is None else frozenset(suggested),
    )


def row_of(metadata: Mapping[str, Any], reply: Reply, read: Reader | None = None) -> Response:
    """The row of a reply to the sample with this metadata."""
    options, pinned = tuple(metadata["own_options"]), tuple(metadata["pinned"])
    facts = {name: metadata[name] for name in ("subject", "source")}
    question = Question(metadata["question_id"], "", options, frozenset(), pinned=pinned, **facts)
    return reply_row(question, from_metadata(metadata), reply, read)


def reply_in(sample: EvalSample, ended: bool = True) -> Reply:
    """The reply in a logged sample; without a text where it failed or was interrupted."""
    if sample.error or not ended:
        return Reply(0, None, sample.error.message if sample.error else "the sample did not end")
    return reply_of(sample.output)


def read_logs(logs: str | Path | Iterable[EvalLog]) -> list[EvalLog]:
    """The logs of a folder, oldest first; logs already read are returned unchanged."""
    if not isinstance(logs, str | Path):
        return list(logs)
    return [read_eval_log(info, resolve_attachments=True) for info in list_eval_logs(str(logs), descending=False)]
