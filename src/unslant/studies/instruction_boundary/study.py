"""The instruction-boundary study (P3): the effect of instructions on generated answers.

Replies are generated through inspect_ai. Its logs are the store: repeating a run asks only for missing replies.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import ModelError, without_user_info
from unslant.extras import needed
from unslant.files import make_folder
from unslant.models.chat import inspect_model
from unslant.models.open import address_of
from unslant.models.options import Address, GenerateOptions, ModelOptions
from unslant.presentations import parse_labels
from unslant.questions import EMBEDDED, Question
from unslant.responses import Response, Responses
from unslant.studies.instruction_boundary.plan import plan, setting_names
from unslant.studies.instruction_boundary.question_sources import BoundarySet, load_boundary
from unslant.studies.instruction_boundary.result import BoundaryStudy, result_of
from unslant.studies.instruction_boundary.settings import MAX_TOKENS, TEMPERATURE, BoundarySettings
from unslant.studies.options import with_options
from unslant.studies.provenance_block import check_same, model_block, provenance

if TYPE_CHECKING:
    from inspect_ai.dataset import Sample


def instruction_boundary(
    model: str,
    questions: str | Path | BoundarySet = EMBEDDED,
    settings: BoundarySettings | None = None,
    *,
    models: ModelOptions | None = None,
    generate: GenerateOptions | None = None,
    show: bool = False,
    **options: Any,
) -> BoundaryStudy:
    """Ask every question under every setting, and measure the effect of the settings.

    Args:
        model: see :mod:`unslant.models.open`: a local model, a served one, or ``inspect:openai/gpt-4o``. The key of a
            served one is taken from the environment (any text where the server wants none).
        questions: a set, or the file of one.
        settings, options: what is asked: a
            :class:`~unslant.studies.instruction_boundary.settings.BoundarySettings`, its fields as keywords
            (``names=["vanilla"]``, ``log_dir="logs"``, ``limit=60``, ...), or both. What was asked before in the same
            way, with a reply in ``log_dir``, is not asked again; a judge that is added reads the replies there.
        models: how the model is run.
        generate: how its replies are generated; temperature 0.5 and 2048 tokens unless given. ``temperatures`` among
            the settings goes before its temperature: every request is made at each of them (P3, section 4.4).
        show: draw inspect's progress display.

    Raises:
        InputError: on an invalid setting or option.
        ModelError: if the model cannot be loaded, or inspect_ai is not installed.
    """
    chosen = with_options(BoundarySettings, settings, options)
    asked_by = (generate or GenerateOptions()).filled(TEMPERATURE, MAX_TOKENS)
    assert asked_by.temperature is not None
    temperatures = tuple(chosen.temperatures) or (asked_by.temperature,)
    address, judge, polisher = (
        address_of(name, run_with, ("generate",)) if name else None
        for name, run_with in ((model, models), (chosen.judge, None), (chosen.polisher, None))
    )
    assert address is not None
    name = "questions" if isinstance(questions, BoundarySet) else questions
    whole = questions if isinstance(questions, BoundarySet) else load_boundary(questions, fields=dict(chosen.fields))
    found = whole.balanced(chosen.limit, chosen.seed)
    check_same(found)
    alphabet = parse_labels(chosen.labels)
    asked = plan(found, chosen.names, seed=chosen.seed, left_out=chosen.left_out, alphabet=alphabet, examples=whole)
    inspect = _inspect()
    log_dir = Path(chosen.log_dir)
    make_folder(log_dir)
    wanted = {
        (question.id, presentation.item, inspect.prompt_digest(presentation), repeat): (question, presentation)
        for question, presentation in asked
        for repeat in range(chosen.repeats)
    }
    identity: dict[str, Any] = {
        "task": "instruction_boundary",
        "model": address.model,
        "base_url": address.options.base_url and without_user_info(address.options.base_url),
        "temperature": temperatures[0],
        "max_tokens": asked_by.max_tokens,
        "judge": judge and judge.model,
        "polisher": polisher and polisher.model,
    }
    rows: list[Response] = []
    asked_now = 0
    for run, temperature in enumerate(temperatures):
        of_run = identity | {"temperature": temperature}
        done = {key: row for key, row in inspect.read_keyed(log_dir, of_run).items() if row.status != "error"}
        left = [key for key in wanted if key not in done or (judge and inspect.open_reply(done[key]))]
        samples = {key: inspect.to_sample(*wanted[key], repeat=key[3]) for key in left}
        recorded = {str(samples[key].id): str(done[key].raw) for key in left if key in done}
        missing = len(left) - len(recorded)
        if left:
            asked_model = (
                address if missing or judge is None else judge
            )  # nothing is asked of a model that is not needed
            at = replace(asked_by, temperature=temperature)
            _ask(asked_model, list(samples.values()), at, judge, polisher, of_run, log_dir, show, recorded)
        asked_now += missing
        kept = inspect.read_keyed(log_dir, of_run)
        rows += [replace(kept[key], run=run) for key in wanted if key in kept]
    meta = {
        **identity,
        "temperatures": list(temperatures),
        "study": "instruction-boundary",
        "log_dir": str(log_dir),
        "seed": chosen.seed,
        "settings": setting_names(chosen.names),
        "labels": chosen.labels,
        "questions": found.digest,
        "provenance": provenance([model_block(address.model)], [(name, found)], chosen),
    }
    notes = [*found.notes]
    every = len(wanted) * len(temperatures)
    if len(rows) < every:
        notes.append(f"{every - len(rows):,} of {every:,} requests were not made; start again to make them")
    errors = sum(row.status == "error" for row in rows)
    if errors:
        notes.append(f"{errors:,} requests got no reply and are left out; start again to repeat them")
    texts = {question.id: question for question, _ in asked if isinstance(question, Question)}
    measured = result_of(replace(Responses.from_rows(rows, meta), questions=tuple(texts.values())))
    return replace(measured, asked_now=asked_now, notes=tuple(notes))


def _inspect() -> Any:
    """Our inspect adapter; ModelError, naming the extra to install, without inspect_ai."""
    needed("inspect_ai", "a model that generates replies")
    from unslant.studies.instruction_boundary import inspect_records

    return inspect_records


def _ask(
    address: Address,
    samples: Sequence[Sample],
    generate: GenerateOptions,
    judge: Address | None,
    polisher: Address | None,
    identity: Mapping[str, object],
    log_dir: Path,
    show: bool,
    recorded: Mapping[str, str],
) -> None:
    from inspect_ai import eval as evaluate

    from unslant.studies.instruction_boundary.inspect_task import build_task

    name, options = address.model, address.options
    task = build_task(
        samples,
        temperature=generate.temperature,
        max_tokens=generate.max_tokens,
        judge=judge and inspect_model(judge),
        polisher=polisher and inspect_model(polisher),
        identity=identity,
        recorded=recorded,
    )
    try:
        logs = evaluate(
            task,
            model=inspect_model(address),
            log_dir=str(log_dir),
            log_format="eval",
            display="full" if show else "none",
            fail_on_error=False,
            max_connections=options.connections,
            max_retries=options.retries,
            attempt_timeout=options.timeout,
        )
    except ModelError:
        raise
    except Exception as error:  # providers raise various errors for a missing package or key
        raise ModelError(f"{name}: {' '.join(str(error).split())[:500]}") from error
    for log in logs:
        if log.error and not log.samples:
            raise ModelError(f"{name}: {log.error.message}")
