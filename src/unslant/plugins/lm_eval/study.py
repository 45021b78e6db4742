"""Tasks of lm-eval, asked in many orders: the recipe."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any, Unpack

import numpy as np

from unslant.arrays import Floats
from unslant.asking import Progress, ask, no_progress, score_all
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.experiment.options import with_options
from unslant.experiment.run_record import run_of, with_run
from unslant.models import ModelOptions, ScoringModel
from unslant.models.hf.tree import other_costs
from unslant.models.open import address_of, opened
from unslant.plugins.lm_eval.documents import TaskSet, load
from unslant.plugins.lm_eval.examine import Request
from unslant.plugins.lm_eval.published import Published, published, sample
from unslant.plugins.lm_eval.settings import LmEvalKeywords, LmEvalSettings
from unslant.plugins.lm_eval.tasks import quiet
from unslant.presentations import Asked, Presentation
from unslant.prompts import Prompt
from unslant.responses.run import Harness, LogFacts


def audit_tasks(
    model: str | ScoringModel | Callable[[], ScoringModel],
    tasks: str | Sequence[str] | TaskSet,
    settings: LmEvalSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Unpack[LmEvalKeywords],
) -> AuditResult:
    """Run multiple-choice tasks of lm-eval in many orders of their options.

    The published order is asked with lm-eval's own requests and tokens, and the result's ``run.lm_eval`` holds
    lm-eval's own metrics of it. The other orders are the task's templates on documents with their options in another
    order; worked examples stay as lm-eval draws them.

    Args:
        model: a name, a loaded local model, or a function that loads one, called after the tasks have been read.
        tasks: names, or what :func:`unslant.plugins.lm_eval.documents.load` returned.
        settings, options: an :class:`~unslant.plugins.lm_eval.settings.LmEvalSettings`, its fields as keywords, or
            both.

    Raises:
        InputError: if lm-eval is missing, a task cannot be loaded or its options cannot be found, or the model is
            not a local one.
        ModelError: if the model cannot be loaded or cannot take a prompt.
    """
    chosen = with_options(LmEvalSettings, settings, options)
    if isinstance(model, str):
        check_local(model)
    found = tasks if isinstance(tasks, TaskSet) else load(tasks, chosen)
    return TaskRun(model, found, chosen, progress).result


def check_local(model: str, options: ModelOptions | None = None) -> None:
    """Raise InputError unless this names a local model: of others, tokens cannot be those of lm-eval."""
    if address_of(model, options).scheme:
        raise InputError(f"{model}: unslant lm-eval runs local models only; give a folder or Hub id")


@dataclass(frozen=True)
class _Requests:
    """Writes the requests of a presentation, and reads their scores; takes the place of a template.

    Args:
        pieces: makes several prompts of one whose continuations must be scored apart.
    """

    found: TaskSet
    pieces: Callable[[Prompt], list[Prompt]]
    name: str = "cloze"

    def prompts(self, presentation: Presentation) -> list[Prompt]:
        document = self.found.by_id[presentation.question_id]
        return self.of(document.requests(presentation.contents), presentation.question_id)

    def of(self, requests: Sequence[Request], group: str) -> list[Prompt]:
        """One prompt for each context in a row."""
        apart: list[tuple[str, list[str]]] = []
        for context, continuation in requests:
            if not apart or apart[-1][0] != context:
                apart.append((context, []))
            apart[-1][1].append(continuation)
        made = [Prompt(context, tuple(own), group=group) for context, own in apart]
        return [piece for prompt in made for piece in self.pieces(prompt)]

    def read(self, presentation: Presentation, scores: Sequence[Floats]) -> Floats:
        return np.concatenate(scores)


class TaskRun:
    """One model on a set of tasks.

    Attributes:
        result: the audit.
        published: the published order, as lm-eval reports it, by task name.
    """

    def __init__(self, model: Any, found: TaskSet, chosen: LmEvalSettings, progress: Progress = no_progress) -> None:
        self.found = found
        from unslant.models.hf.model import TransformersModel

        asker = opened(model)
        local: Any = asker.unwrapped
        if not isinstance(asker.unwrapped, TransformersModel):
            raise InputError(f"{asker.name}: unslant lm-eval runs local models only, and not on a cluster")
        with quiet():
            from unslant.plugins.lm_eval.tokenization import HarnessEncoder

            before, local.encoder = local.encoder, HarnessEncoder(local)
            try:
                self._run(asker, local.encoder, chosen, progress)
            finally:
                local.encoder = before

    def _run(self, asker: Any, encoder: Any, chosen: LmEvalSettings, progress: Progress) -> None:
        found, requests = self.found, _Requests(self.found, encoder.pieces)
        for task in found.tasks:
            task.chat = encoder.backend.apply_chat_template if chosen.apply_chat_template else None
        for document in found.by_id.values():
            document.forget()
        shown = {question.id: found.presentations(question, chosen) for question in found.questions}

        def asked() -> Iterator[Asked]:
            return ((question, one) for question in found.questions for one in shown[question.id])

        cost = asker.cost.copy()
        total = sum(map(len, shown.values()))
        responses = ask(asker, asked(), [requests], progress=progress, presentations=total)
        scores = {
            row.question_id: row.logprobs
            for row in responses.rows()
            if row.logprobs is not None and row.contents == tuple(range(len(row.contents)))
        }
        self.published = published(found, scores, lambda prompts: score_all(asker, prompts))
        run = run_of("audit", found.questions, chosen.recorded("include_path"), asker, cost, chosen)
        alone = [
            prompt
            for document, answer in (one for task in self.published.values() for one in task.documents)
            for prompt in requests.of([one.args for one in answer.instances], str(document.number))
        ]
        tokens, _ = other_costs(encoder.encode(alone), [prompt.group for prompt in alone])
        movable = any(document.movable for document in found.by_id.values())
        run = replace(
            run,
            cost=replace(run.cost, tokens_ordinary=tokens),
            lm_eval=Harness(
                version=metadata.version("lm_eval"),
                orders=max(map(len, shown.values())),
                notes=(*found.notes, *_cut(encoder.cut)),
                tasks={name: one.recorded() for name, one in self.published.items()},
            ),
            example_prompt=alone[0].text if alone else "",
            logged=None if movable else LogFacts(scores="texts"),
        )
        self.result = AuditResult.of(with_run(responses, run, found.questions))

    def samples(self) -> Iterator[dict[str, Any]]:
        """The published order, a record for each document, as lm-eval's ``--log_samples`` writes it."""
        for name, one in self.published.items():
            for document, result in one.documents:
                yield {"task": name, **sample(document, result)}

    def sample_lines(self) -> Iterator[str]:
        """:meth:`samples` as JSON lines."""
        from lm_eval.utils import handle_non_serializable

        for record in self.samples():
            yield json.dumps(record, ensure_ascii=False, default=handle_non_serializable)


def _cut(groups: set[str]) -> list[str]:
    some = f"question {sorted(groups)[0]!r} and {len(groups) - 1:,} more" if len(groups) > 1 else "".join(groups)
    return [f"Prompts longer than the model takes were cut on the left, as by lm-eval: {some}."] if groups else []


__all__ = ["Published", "TaskRun", "audit_tasks", "check_local"]
