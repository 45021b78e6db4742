"""The task ``unslant/unbiased``: questions as published and under composed interventions (P4), answered in words."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, EvalSample, list_eval_logs, read_eval_log
from inspect_ai.model import ChatMessageAssistant, ChatMessageSystem, ChatMessageUser, GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, accuracy, grouped, scorer, stderr
from inspect_ai.solver import TaskState, generate

from unslant.models.chat import MAX_TOKENS, Reply
from unslant.plugins.inspect_ai.records import from_metadata
from unslant.presentations.presentation import Presentation
from unslant.prompts import Writer, load_template
from unslant.questions import Question, load_math, load_questions
from unslant.responses.table import Response, Responses
from unslant.studies.replies import row_of
from unslant.studies.unbiased.metrics import correct
from unslant.studies.unbiased.plan import UnbiasedSettings, plan
from unslant.studies.unbiased.result import UnbiasedResult, result_of
from unslant.studies.unbiased.study import about, cut, read_reply

SCORER = "unbiased_answer"
_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


@task
def unbiased(
    questions: str = "embedded",
    maths: bool = False,
    runs: int = 5,
    shots: int = 5,
    shots_from: str | None = None,
    alone: bool = True,
    template: str = "plain",
    limit: int | None = None,
    seed: int = 0,
    max_tokens: int = MAX_TOKENS,
) -> Task:
    """Every question as published and in ``runs`` random compositions of interventions (P4).

    The log's accuracy is over single presentations. For vanilla, ours and drop, question by question, read the logs
    with :func:`read_unbiased`.

    Args:
        questions: file or recipe; ``maths`` says that the questions are open and their answers numbers.
        shots, shots_from: worked examples that carry the same interventions; by default from the set itself.
        alone: ask every intervention by itself too.
    """
    load = load_math if maths else load_questions
    whole = load(questions)
    found = cut(whole, limit, seed)
    settings = UnbiasedSettings(runs, shots, {}, alone, True, template, True, seed)
    planned = plan(found, settings, pool_from=whole, shots_from=load(shots_from) if shots_from else None, in_words=True)
    writer = Writer(load_template(template), chat=True)
    samples = [_sample(question, presentation, writer) for question, presentation in planned.asked]
    return Task(
        name="unbiased",
        dataset=MemoryDataset(samples, name="unbiased"),
        solver=generate(),
        scorer=unbiased_answer(),
        config=GenerateConfig(temperature=0.0, max_tokens=max_tokens),
        metadata={"unslant_unbiased": about(found, settings, planned, "")},
    )


def _sample(question: Question, presentation: Presentation, writer: Writer) -> Sample:
    prompt = writer.prompt(presentation, writer.template.render("cloze.cue"), ())
    right = presentation.right_labels or (question.options[0],)
    return Sample(
        id=f"{presentation.name}|{question.id}",
        input=[_ROLES[message.role](content=message.content) for message in prompt.messages],
        target=list(right),
        metadata={
            "block": presentation.name.split(":")[0],
            "setting": presentation.name,
            "question_id": question.id,
            "labels": list(presentation.labels),
            "contents": list(presentation.contents),
            "options": [*(line.text for line in presentation.shown), *([""] if presentation.none_label else [])],
            "answers": sorted(presentation.answers),
            "interventions": list(presentation.interventions),
            "own_options": list(question.options),
            "own_answers": sorted(question.answers),
            "pinned": list(question.pinned),
            "subject": question.subject,
            "source": question.source,
        },
    )


@scorer(name=SCORER, metrics=[accuracy(), stderr(), grouped(accuracy(), "block", all=False)])
def unbiased_answer() -> Scorer:
    """Right where the contents chosen are exactly the right ones; an answer that cannot be read is not right."""

    async def score(state: TaskState, target: Target) -> Score:
        row = _row(state.metadata, Reply(0, state.output.completion))
        right = correct(row) == 1.0
        return Score(
            value="C" if right else "I",
            answer=", ".join(map(str, sorted(row.chosen))) if row.chosen is not None else row.status,
            explanation=state.output.completion,
            metadata={"status": row.status},
        )

    return score


def _row(metadata: dict[str, Any], reply: Reply) -> Response:
    question = Question(
        metadata["question_id"],
        "",
        tuple(metadata["own_options"]),
        frozenset(metadata["own_answers"]),
        subject=metadata["subject"],
        source=metadata["source"],
        pinned=tuple(metadata["pinned"]),
    )
    return row_of(question, from_metadata(metadata), reply, read_reply)


def read_unbiased(logs: str | Path | Iterable[EvalLog]) -> list[UnbiasedResult]:
    """One result for every log of the task, from a folder of logs or from logs already read (with samples).

    Replies are read anew, so that logs profit from a better reading. A sample that failed is a row of status ``error``.
    """
    found: Iterable[Any] = _read(logs) if isinstance(logs, str | Path) else logs
    results = []
    for log in found:
        told = (log.eval.metadata or {}).get("unslant_unbiased")
        if told is not None and log.samples:
            rows = Responses.from_rows(_row(sample.metadata, _reply(sample)) for sample in log.samples)
            results.append(result_of(Responses(rows.table, {**told, "model": log.eval.model})))
    return results


def _read(folder: str | Path) -> list[EvalLog]:
    return [read_eval_log(info, resolve_attachments=True) for info in list_eval_logs(str(folder), descending=False)]


def _reply(sample: EvalSample) -> Reply:
    if sample.error:
        return Reply(0, None, sample.error.message)
    return Reply(0, sample.output.completion)
