"""The task ``unslant/instruction_boundary``."""

from __future__ import annotations

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset
from inspect_ai.model import GenerateConfig

from unslant.experiment.options import LoadOptions
from unslant.plugins.inspect_ai.boundary_records import to_sample
from unslant.plugins.inspect_ai.boundary_scorer import boundary_answer
from unslant.plugins.inspect_ai.boundary_solver import generate_reply
from unslant.plugins.inspect_ai.samples import one_line_errors
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, SEED
from unslant.studies.instruction_boundary.plan import plan
from unslant.studies.instruction_boundary.settings import TEMPERATURE


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
        judge: model that reads replies without a recognized answer.
        polisher: model that rewrites the instruction under ``prompt-polishing``.
    """
    from unslant.studies.instruction_boundary.question_sources import load_boundary

    names = settings.split(",") if isinstance(settings, str) else settings
    checked = LoadOptions(limit=limit, seed=seed)
    whole = load_boundary(questions)
    asked = plan(whole.balanced(checked.limit, checked.seed), names, seed=seed, left_out=left_out, examples=whole)
    return Task(
        name="instruction_boundary",
        dataset=MemoryDataset([to_sample(*one) for one in asked], name="instruction_boundary"),
        solver=generate_reply(polisher),
        scorer=boundary_answer(judge),
        config=GenerateConfig(temperature=temperature),
        metadata={"unslant": {"task": "instruction_boundary", "seed": seed, "settings": ",".join(names)}},
    )
