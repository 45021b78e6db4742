"""Presentations as inspect samples, and inspect logs as responses."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ModelOutput

from unslant.models import Reply
from unslant.models.inspect_chat import inspect_messages, reply_of
from unslant.plugins.inspect_ai.samples import from_metadata, metadata_of, read_logs
from unslant.presentations import Presentation
from unslant.questions import JudgingQuestion
from unslant.replies import Extracted
from unslant.replies.judge import needs_judge
from unslant.responses import Response
from unslant.studies.instruction_boundary.instruction_settings import AnyForm, form_of, is_dense
from unslant.studies.instruction_boundary.metrics import JUDGED
from unslant.studies.instruction_boundary.prompts import chat, right_answer
from unslant.studies.instruction_boundary.result import facts_of, read, row

SCORER = "boundary_answer"


def to_sample(question: AnyForm, presentation: Presentation) -> Sample:
    """A sample with all metadata needed to read the answer."""
    facts = facts_of(question)
    return Sample(
        id=f"{presentation.item}|{question.id}",
        input=inspect_messages(chat(presentation)),
        target=right_answer(presentation),
        metadata={
            **metadata_of(question, presentation),
            **facts,
            "text_ranks": list(facts["text_ranks"]),
            "setting": presentation.item,
            "kind": "judging" if isinstance(question, JudgingQuestion) else "choice",
            "form": form_of(question),
            "label_form": "dense" if is_dense(question) else "sparse",
        },
    )


def read_rows(logs: str | Path | Iterable[EvalLog]) -> list[Response]:
    """Answers in a folder of inspect logs, or in logs read with samples; failed requests have status ``error``.

    Of several logs of one request the last reply counts; any reply outweighs a failure.
    """
    rows: dict[tuple[str, str, int], Response] = {}
    for log in read_logs(logs):
        if (log.eval.metadata or {}).get("unslant") is not None:
            for sample in log.samples or []:
                found = _row(sample)
                key = (found.question_id, found.item, found.repeat)
                if key not in rows or _weight(found) >= _weight(rows[key]):
                    rows[key] = found
    return list(rows.values())


def _weight(row: Response) -> tuple[bool, bool]:
    return row.status != "error", row.elicitation == JUDGED


def read_output(output: ModelOutput, presentation: Presentation) -> Extracted:
    """What today's patterns read in a reply; of status ``error`` where there is none."""
    return read(reply_of(output), presentation)


def _row(sample: EvalSample) -> Response:
    """The reply is read again, so that old logs profit from a newer reader; a judge's reading in the log is kept where
    the patterns still find nothing."""
    metadata = sample.metadata
    score = (sample.scores or {}).get(SCORER)
    presentation = from_metadata(metadata)
    reply, judged = Reply(0, None, sample.error.message if sample.error else "the sample did not end"), False
    if score and not sample.error:  # without a score the sample did not come to its end
        reply = reply_of(sample.output)
    found = read(reply, presentation)
    logged = score.metadata or {} if score else {}
    if logged.get("judged") and needs_judge(found):
        found, judged = Extracted(str(logged["status"]), frozenset(logged["labels"]), "judge"), True
    facts = {key: metadata[key] for key in ("n_options", "subject", "source")}
    facts["text_ranks"] = tuple(metadata["text_ranks"])
    repeat = int(metadata.get("repeat", sample.epoch - 1))
    return row(presentation, facts, reply, found, judged=judged, repeat=repeat)
