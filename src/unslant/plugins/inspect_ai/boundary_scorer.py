"""Scoring answers: by patterns, then by a validated judge where they find nothing."""

from __future__ import annotations

from logging import getLogger

import anyio
from inspect_ai.model import GenerateConfig, Model, get_model
from inspect_ai.scorer import Score, Scorer, Target, accuracy, grouped, scorer, stderr
from inspect_ai.solver import TaskState

from unslant.plugins.inspect_ai.boundary_records import SCORER, read_output
from unslant.plugins.inspect_ai.samples import from_metadata
from unslant.replies import Extracted
from unslant.replies.judge import (
    MAX_TOKENS,
    VALIDATION,
    JudgeReport,
    judge_prompt,
    needs_judge,
    read_judgement,
    validate,
)

logger = getLogger(__name__)
_CERTAIN = GenerateConfig(temperature=0.0, max_tokens=MAX_TOKENS)


@scorer(name=SCORER, metrics=[accuracy(), stderr(), grouped(accuracy(), "label_form", all=False)])
def boundary_answer(judge: str | Model | None = None) -> Scorer:
    """Correct if the answer is exactly the set of right options, or the verdict.

    Args:
        judge: model that reads replies where the patterns find no answer. It is not used, with a warning in the log, if
            it misreads any of a fixed set of validation replies.
    """
    report: JudgeReport | None = None
    lock: anyio.Lock | None = None

    async def validated(model: Model) -> JudgeReport:
        nonlocal report, lock
        lock = lock or anyio.Lock()
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
        extracted = read_output(state.output, presentation)
        judged, validation = False, None
        if judge is not None and needs_judge(extracted):
            model = get_model(judge)
            validation = await validated(model)
            if validation.passed:
                texts = [option.text for option in presentation.shown]
                asked = await model.generate(judge_prompt(reply, presentation.labels, texts), config=_CERTAIN)
                extracted = read_judgement(asked.completion, presentation.labels)
                judged = True
        right = extracted.status == "ok" and extracted.labels == frozenset(presentation.right_labels)
        return Score(
            value="C" if right else "I",
            answer=_said(extracted),
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


def _said(extracted: Extracted) -> str:
    if extracted.status != "ok":
        return extracted.status
    return ", ".join(sorted(extracted.labels)) or "none"
