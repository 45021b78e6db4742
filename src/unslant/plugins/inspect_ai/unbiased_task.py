"""The inspect task ``unslant/unbiased``: questions as published and under composed interventions (P4)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Score, Scorer, Target, accuracy, grouped, scorer, stderr
from inspect_ai.solver import TaskState, generate

from unslant.experiment.job import run_of
from unslant.models import GenerateOptions
from unslant.models.inspect_chat import inspect_messages, reply_of
from unslant.plugins.inspect_ai.samples import metadata_of, one_line_errors, read_logs, reply_in, row_of
from unslant.presentations import Presentation
from unslant.prompts import Writer
from unslant.questions import Question
from unslant.responses import Responses, Run
from unslant.studies.unbiased.metrics import UnbiasedResult
from unslant.studies.unbiased.study import UnbiasedSettings, key_of, plan, read_reply

SCORER = "unbiased_answer"


@task
@one_line_errors
def unbiased(
    questions: str = "embedded",
    maths: bool = False,
    runs: int = 5,
    shots: int = 5,
    shots_from: str | None = None,
    no_alone: bool = False,
    template: str = "plain",
    limit: int | None = None,
    seed: int = 0,
    max_tokens: int | None = None,
) -> Task:
    """Every question as published and in ``runs`` random compositions of interventions (P4).

    The log's accuracy is over single presentations; :func:`read_unbiased` gives vanilla, ours and drop by question.

    Args:
        questions: file or recipe, of open questions with numbers as answers if ``maths``.
        shots, shots_from: worked examples under the same interventions; by default from the set itself.
        no_alone: skip asking under each intervention by itself.
    """
    settings = UnbiasedSettings(
        runs=runs, shots=shots, no_alone=no_alone, template=template, chat=True, limit=limit, seed=seed, generate=True
    )
    whole = settings.load(questions, maths)
    sample, writer = settings.sampled(whole), settings.writer()
    items, counts = plan(sample, settings, pool_from=whole, shots_from=settings.pool(shots_from, maths))
    generate_options = GenerateOptions(max_tokens=max_tokens).filled()
    run = replace(run_of("unbiased", sample, settings.recorded(), ""), counts=counts)
    return Task(
        name="unbiased",
        dataset=MemoryDataset([_sample(*pair, writer) for pair in items], name="unbiased"),
        solver=generate(),
        scorer=unbiased_answer(),
        config=GenerateConfig(temperature=generate_options.temperature, max_tokens=generate_options.max_tokens),
        metadata={"unslant_unbiased": json.loads(run.dump())},
    )


def _sample(question: Question, presentation: Presentation, writer: Writer) -> Sample:
    prompt = writer.prompt(presentation, writer.template.render("cloze.cue"), ())
    right = presentation.right_labels or (question.options[0],)
    return Sample(
        id=key_of(question, presentation),
        input=inspect_messages(prompt.messages),
        target=list(right),
        metadata={**metadata_of(question, presentation), "block": presentation.kind},
    )


@scorer(name=SCORER, metrics=[accuracy(), stderr(), grouped(accuracy(), "block", all=False)])
def unbiased_answer() -> Scorer:
    """Right if exactly the right options are chosen; an unreadable answer is not right."""

    async def score(state: TaskState, target: Target) -> Score:
        row = row_of(state.metadata, reply_of(state.output), read_reply)
        return Score(
            value="C" if row.is_right else "I",
            answer=", ".join(map(str, sorted(row.chosen))) if row.chosen is not None else row.status,
            explanation=state.output.completion,
            metadata={"status": row.status},
        )

    return score


def read_unbiased(logs: str | Path | Iterable[EvalLog]) -> list[UnbiasedResult]:
    """One result for every log of the task, from a folder of logs or from logs already read (with samples).

    Replies are read again, with today's reader. A failed sample is a row of status ``error``.
    """
    results = []
    for log in read_logs(logs):
        run = (log.eval.metadata or {}).get("unslant_unbiased")
        if run is not None and log.samples:
            rows = (row_of(sample.metadata, reply_in(sample), read_reply) for sample in log.samples)
            results.append(UnbiasedResult.of(Responses.from_rows(rows, replace(Run.of(run), model=log.eval.model))))
    return results
