"""Presentations as inspect samples, and inspect logs as responses."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path

from inspect_ai.dataset import Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ModelOutput

from unslant.asking import GENERATE
from unslant.models.inspect_chat import inspect_messages
from unslant.presentations import Presentation
from unslant.questions import JudgingQuestion
from unslant.responses import Extracted, Response, chosen_contents, extract, text_ranks
from unslant.responses.judge import needs_judge
from unslant.studies.inspect_samples import from_metadata, metadata_of, read_logs
from unslant.studies.instruction_boundary.instruction_settings import AnyForm, form_of, is_dense, setting
from unslant.studies.instruction_boundary.metrics import JUDGED
from unslant.studies.instruction_boundary.prompts import chat, right_answer

SCORER = "boundary_answer"


def prompt_digest(presentation: Presentation) -> str:
    """Digest of a request: all messages, and the follow-up of its setting."""
    asked = [(message.role, message.content) for message in chat(presentation)]
    content = json.dumps([asked, setting(presentation.item).follow_up])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def to_sample(question: AnyForm, presentation: Presentation, repeat: int | None = None) -> Sample:
    """A sample with all metadata needed to read the answer; ``repeat`` numbers repeated requests (default: epoch)."""
    judging = isinstance(question, JudgingQuestion)
    options = () if isinstance(question, JudgingQuestion) else question.options
    return Sample(
        id=f"{presentation.item}|{question.id}" + (f"|{repeat}" if repeat else ""),
        input=inspect_messages(chat(presentation)),
        target=right_answer(presentation),
        metadata={
            **metadata_of(question, presentation),
            "setting": presentation.item,
            "kind": "judging" if judging else "choice",
            "form": form_of(question),
            "label_form": "dense" if is_dense(question) else "sparse",
            "n_options": len(options) or len(JudgingQuestion.VERDICTS),
            "text_ranks": list(text_ranks(options)),
            "digest": prompt_digest(presentation),
            **({} if repeat is None else {"repeat": repeat}),
        },
    )


Key = tuple[str, str, str, int]
"""Question, setting, prompt digest and repeat, which identify a request."""


def read_rows(logs: str | Path | Iterable[EvalLog]) -> list[Response]:
    """Answers in a folder of inspect logs, or in logs read with samples; failed requests have status ``error``."""
    return list(read_keyed(logs).values())


def read_keyed(
    logs: str | Path | Iterable[EvalLog], identity: Mapping[str, object] | None = None
) -> dict[Key, Response]:
    """As :func:`read_rows`, by request, from logs with this ``identity`` (see ``build_task``), whatever their judge.

    The last reply counts; any reply outweighs a failure. Only the readings of the judge in ``identity`` are taken over.
    """
    rows: dict[Key, Response] = {}
    for log in read_logs(logs):
        made_with = (log.eval.metadata or {}).get("unslant")
        if made_with is None or (identity is not None and {**made_with, "judge": None} != {**identity, "judge": None}):
            continue
        judged = identity is None or made_with.get("judge") == identity.get("judge")
        for sample in log.samples or []:
            row = _row(sample, judged)
            key = (row.question_id, row.item, str(sample.metadata["digest"]), row.repeat)
            if key not in rows or _weight(row) >= _weight(rows[key]):
                rows[key] = row
    return rows


def _weight(row: Response) -> tuple[bool, bool]:
    return row.status != "error", row.elicitation == JUDGED


def open_reply(row: Response) -> bool:
    """Whether a judge may still be asked about a reply."""
    return row.elicitation != JUDGED and needs_judge(Extracted(row.status)) and bool((row.raw or "").strip())


def read_output(output: ModelOutput, presentation: Presentation) -> Extracted:
    """What today's patterns read in a reply; of status ``error`` where there is none."""
    if not output.choices:  # a body without a reply, though the server said 200
        return Extracted("error", rule="no choices in the reply")
    return Extracted("refused", rule="refusal") if _declined(output) else extract(output.completion, presentation)


def _declined(output: ModelOutput) -> bool:
    """Whether the provider says that the model declined, whatever the text."""
    if output.stop_reason == "content_filter":
        return True
    if isinstance(output.message.content, str):
        return False
    return any(getattr(part, "refusal", None) for part in output.message.content)


def _row(sample: EvalSample, judge: bool) -> Response:
    """The reply is read again, so that old logs profit from a newer reader; a judge's reading in the log stands where
    the patterns still find nothing, if ``judge``."""
    metadata = sample.metadata
    score = (sample.scores or {}).get(SCORER)
    presentation = from_metadata(metadata)
    read, judged = Extracted("error"), False
    if score and not sample.error:  # without a score the sample did not come to its end
        told = score.metadata or {}
        read = read_output(sample.output, presentation)
        judged = judge and bool(told.get("judged")) and needs_judge(read)
        if judged:
            read = Extracted(str(told["status"]), frozenset(told["labels"]), "judge")
    return Response(
        question_id=metadata["question_id"],
        kind=presentation.kind,
        item=presentation.item,
        suggested=presentation.suggested,
        elicitation=JUDGED if judged else GENERATE,
        labels=presentation.labels,
        contents=presentation.contents,
        answers=presentation.answers,
        n_options=metadata["n_options"],
        chosen=chosen_contents(read, presentation),
        status=read.status,
        raw=sample.output.completion if read.status != "error" else None,
        subject=metadata["subject"],
        source=metadata["source"],
        interventions=presentation.interventions,
        repeat=int(metadata.get("repeat", sample.epoch - 1)),
        text_ranks=tuple(metadata["text_ranks"]),
    )
