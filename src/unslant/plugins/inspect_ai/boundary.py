"""The task ``unslant/instruction_boundary`` (P3): its samples, solver and scorer, and the reader of its logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from logging import getLogger
from pathlib import Path

import anyio
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, EvalSample
from inspect_ai.model import ChatMessageSystem, ChatMessageUser, GenerateConfig, Model, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, grouped, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver

from unslant.experiment import LoadOptions
from unslant.models import GenerateOptions, Reply
from unslant.models.inspect_chat import inspect_messages, reply_of
from unslant.plugins.inspect_ai.samples import from_metadata, metadata_of, one_line_errors, read_logs, reply_in, row_of
from unslant.presentations import Presentation
from unslant.questions import JudgingQuestion
from unslant.replies import Extracted, chosen_contents, extract
from unslant.replies.judge import (
    MAX_TOKENS,
    VALIDATION,
    JudgeReport,
    judge_prompt,
    needs_judge,
    read_judgement,
    validate,
)
from unslant.responses import Response, is_right, text_ranks
from unslant.studies.instruction_boundary.instruction_settings import (
    BASELINE,
    POLISH_REQUEST,
    SEED,
    AnyForm,
    chat,
    form_of,
    is_dense,
    is_instruction,
    right_answer,
    setting,
)
from unslant.studies.instruction_boundary.metrics import JUDGED
from unslant.studies.instruction_boundary.question_sources import load_boundary
from unslant.studies.instruction_boundary.result import as_judged, needs_reading
from unslant.studies.instruction_boundary.study import TEMPERATURE, plan

SCORER = "boundary_answer"


def to_sample(question: AnyForm, presentation: Presentation) -> Sample:
    """A sample with all metadata needed to read the answer."""
    return Sample(
        id=f"{presentation.item}|{question.id}",
        input=inspect_messages(chat(presentation)),
        target=right_answer(presentation),
        metadata={
            **metadata_of(question, presentation),
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
                response = _row(sample)
                key = (response.question_id, response.item, response.repeat)
                if key not in rows or _weight(response) >= _weight(rows[key]):
                    rows[key] = response
    return list(rows.values())


def _weight(row: Response) -> tuple[bool, bool]:
    return row.status != "error", row.elicitation == JUDGED


def _row(sample: EvalSample) -> Response:
    score = (sample.scores or {}).get(SCORER)  # a sample without a score was interrupted
    row = row_of(sample.metadata, reply_in(sample, ended=score is not None))
    row = replace(row, repeat=int(sample.metadata.get("repeat", sample.epoch - 1)))
    # Replies are read again, so that old logs profit from a newer reader. What a judge read stays in the log only, and
    # counts where the patterns still find nothing.
    recorded = score.metadata or {} if score else {}
    presentation = from_metadata(sample.metadata)
    if not recorded.get("judged") or not needs_reading(row, presentation):
        return row
    return as_judged(row, presentation, Extracted(str(recorded["status"]), frozenset(recorded["labels"]), "judge"))


logger = getLogger(__name__)
_CERTAIN = GenerateConfig(temperature=0.0, max_tokens=MAX_TOKENS)


@scorer(name=SCORER, metrics=[accuracy(), stderr(), grouped(accuracy(), "label_form", all=False)])
def boundary_answer(judge: str | Model | None = None) -> Scorer:
    """Correct if the answer is exactly the set of right options (those of one text count as one), or the verdict.

    Args:
        judge: model that reads replies in which the patterns find no answer. If it misreads any of a fixed set of
            validation replies, it is not used, and the log has a warning.
    """
    report: JudgeReport | None = None
    lock = anyio.Lock()

    async def validated(model: Model) -> JudgeReport:
        nonlocal report
        async with lock:
            if report is None:
                prompts = [case.prompt for case in VALIDATION]
                report = validate([(await model.generate(prompt, config=_CERTAIN)).completion for prompt in prompts])
                if not report.passed:
                    logger.warning(
                        f"judge {model.name} is not used: it read {report.right} of {report.n} replies right"
                    )
        return report

    async def score(state: TaskState, target: Target) -> Score:
        presentation = from_metadata(state.metadata)
        reply = state.output.completion
        extracted = _read(reply_of(state.output), presentation)
        judged, validation = False, None
        if judge is not None and needs_judge(extracted):
            model = get_model(judge)
            validation = await validated(model)
            if validation.passed:
                texts = [option.text for option in presentation.shown]
                judgement = await model.generate(judge_prompt(reply, presentation.labels, texts), config=_CERTAIN)
                extracted = read_judgement(judgement.completion, presentation.labels)
                judged = True
        contents, ranks = chosen_contents(extracted, presentation), text_ranks(state.metadata["own_options"])
        right = contents is not None and is_right(contents, presentation.answers, ranks, scored=False)
        return Score(
            value="C" if right else "I",
            answer=(", ".join(sorted(extracted.labels)) or "none") if extracted.status == "ok" else extracted.status,
            explanation=reply,
            metadata={
                "status": extracted.status,
                "labels": sorted(extracted.labels),
                "rule": extracted.rule,
                "judged": judged,
                "judge_validation": f"{validation.right}/{validation.n}" if validation else None,
            },
        )

    return score


def _read(reply: Reply, presentation: Presentation) -> Extracted:
    if reply.declined:
        return Extracted("refused", rule="refusal")
    return extract(reply.text or "", presentation, cut=reply.cut)


@solver
def generate_reply(polisher: str | Model | None = None) -> Solver:
    """Ask each sample under its setting.

    Args:
        polisher: model that rewrites the instruction under ``prompt-polishing``, once per run; by default the evaluated
            model. The text is stored in the sample's metadata; if it is not an instruction, the original is used.
    """
    polished: dict[str, str] = {}
    lock = anyio.Lock()

    async def polish(instruction: str) -> str:
        async with lock:
            if instruction not in polished:
                model = get_model(polisher)
                reply = await model.generate(POLISH_REQUEST + instruction, config=GenerateConfig(temperature=0.0))
                text = reply.completion.strip()
                polished[instruction] = text if is_instruction(text, instruction) else instruction
        return polished[instruction]

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        instructions = setting(state.metadata["setting"])
        if instructions.polish:
            instruction = await polish(state.messages[0].text)
            state.messages[0] = ChatMessageSystem(content=instruction)
            state.metadata["polished"] = instruction
        state = await generate(state)
        if instructions.follow_up:
            state.messages.append(ChatMessageUser(content=instructions.follow_up))
            state = await generate(state)
        return state

    return solve


@task
@one_line_errors
def instruction_boundary(
    questions: str = "embedded",
    settings: str | list[str] = BASELINE,
    limit: int | None = None,
    seed: int = SEED,
    left_out: str = "",
    judge: str | None = None,
    polisher: str | None = None,
    temperature: float = TEMPERATURE,
) -> Task:
    """Questions of mixed form under one or more instruction settings (P3).

    Args:
        questions: file from ``unslant questions build instruction-boundary``, or ``embedded``.
        settings: names, separated by commas; ``all`` for all but the disturbing options.
        limit: most questions of each kind, half with a usual answer; by default all, balanced.
        seed: for sampling questions, suggestions and examples.
        left_out: answer form that ``missing-choices`` omits.
        judge: model that reads replies in which the patterns find no answer.
        polisher: model that rewrites the instruction under ``prompt-polishing``.
    """
    names = settings.split(",") if isinstance(settings, str) else settings
    options = LoadOptions(limit=limit, seed=seed)  # checks the limit
    whole = load_boundary(questions)
    pairs = plan(whole.balanced(options.limit, options.seed), names, seed=seed, left_out=left_out, examples=whole)
    return Task(
        name="instruction_boundary",
        dataset=MemoryDataset([to_sample(*pair) for pair in pairs], name="instruction_boundary"),
        solver=generate_reply(polisher),
        scorer=boundary_answer(judge),
        config=GenerateConfig(temperature=GenerateOptions(temperature=temperature).temperature),
        metadata={"unslant": {"task": "instruction_boundary", "seed": seed, "settings": ",".join(names)}},
    )
