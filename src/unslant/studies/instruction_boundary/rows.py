"""Replies to instruction settings as rows of the table of responses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from unslant.asking import GENERATE
from unslant.models import Reply
from unslant.presentations import Presentation
from unslant.questions import JudgingQuestion, Question
from unslant.replies import Extracted, chosen_contents, extract
from unslant.responses import Response, text_ranks
from unslant.studies.instruction_boundary.instruction_settings import AnyForm
from unslant.studies.instruction_boundary.metrics import JUDGED


def read(reply: Reply, presentation: Presentation) -> Extracted:
    """What today's patterns read in a reply; of status ``error`` where none came."""
    if reply.text is None:
        return Extracted("error", rule=reply.error)
    return Extracted("refused", rule="refusal") if reply.declined else extract(reply.text, presentation)


def facts_of(question: AnyForm) -> dict[str, Any]:
    """The columns that depend on the question alone."""
    options = question.options if isinstance(question, Question) else ()
    return {
        "n_options": len(options) or len(JudgingQuestion.VERDICTS),
        "subject": question.subject,
        "source": question.source,
        "text_ranks": text_ranks(options),
    }


def row(
    presentation: Presentation,
    facts: Mapping[str, Any],
    reply: Reply,
    found: Extracted,
    *,
    judged: bool = False,
    run: int = 0,
    repeat: int = 0,
) -> Response:
    """The row of one reply, in which the patterns, or a judge, found ``found``."""
    return Response(
        question_id=presentation.question_id,
        kind=presentation.kind,
        item=presentation.item,
        suggested=presentation.suggested,
        elicitation=JUDGED if judged else GENERATE,
        labels=presentation.labels,
        contents=presentation.contents,
        answers=presentation.answers,
        chosen=chosen_contents(found, presentation),
        status=found.status,
        raw=reply.error or None if reply.text is None else reply.text,
        interventions=presentation.interventions,
        repeat=repeat,
        run=run,
        **facts,
    )
