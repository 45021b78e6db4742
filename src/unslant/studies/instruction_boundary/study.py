"""The instruction-boundary study (P3): the effect of instructions on generated answers.

Replies are generated through inspect_ai. Its logs are the store: repeating a run asks only for missing replies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import ModelError, without_user_info
from unslant.files import make_folder
from unslant.models.chat import inspect_model
from unslant.models.open import address_of
from unslant.models.options import Address, GenerateOptions, ModelOptions
from unslant.questions import EMBEDDED
from unslant.responses import Responses
from unslant.studies.instruction_boundary.metrics import boundary_metrics
from unslant.studies.instruction_boundary.plan import plan, setting_names
from unslant.studies.instruction_boundary.question_sources import BoundarySet, load_boundary
from unslant.studies.instruction_boundary.result import BoundaryStudy
from unslant.studies.instruction_boundary.settings import MAX_TOKENS, TEMPERATURE, BoundarySettings
from unslant.studies.options import with_options

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
        model: a local or served model (see :mod:`unslant.models.open`), or ``inspect:openai/gpt-4o``.
        questions: a set or its file.
        settings, options: a :class:`~unslant.studies.instruction_boundary.settings.BoundarySettings`, its fields as
            keywords (``names=["vanilla"]``, ``limit=60``, ...), or both. Requests with a reply in ``log_dir`` are not
            repeated.
        generate: by default temperature 0.5 and 2048 tokens.
        show: draw inspect's progress display.

    Raises:
        InputError: on an invalid setting or option.
        ModelError: if the model cannot be loaded, or inspect_ai is not installed.
    """
    chosen = with_options(BoundarySettings, settings, options)
    asked_by = (generate or GenerateOptions()).filled(TEMPERATURE, MAX_TOKENS)
    address, judge, polisher = (
        address_of(name, run_with, ("generate",)) if name else None
        for name, run_with in ((model, models), (chosen.judge, None), (chosen.polisher, None))
    )
    assert address is not None
    whole = questions if isinstance(questions, BoundarySet) else load_boundary(questions)
    found = whole.balanced(chosen.limit, chosen.seed)
    asked = plan(found, chosen.names, seed=chosen.seed, left_out=chosen.left_out)
    inspect = _inspect()
    identity: dict[str, Any] = {
        "task": "instruction_boundary",
        "model": address.model,
        "base_url": address.options.base_url and without_user_info(address.options.base_url),
        "temperature": asked_by.temperature,
        "max_tokens": asked_by.max_tokens,
        "judge": judge and judge.model,
        "polisher": polisher and polisher.model,
    }
    log_dir = Path(chosen.log_dir)
    make_folder(log_dir)
    done = {key for key, row in inspect.read_keyed(log_dir, identity).items() if row.status != "error"}
    wanted = {
        (question.id, presentation.item, inspect.prompt_digest(presentation), repeat): (question, presentation)
        for question, presentation in asked
        for repeat in range(chosen.repeats)
    }
    missing = [inspect.to_sample(*wanted[key], repeat=key[3]) for key in wanted if key not in done]
    if missing:
        _ask(address, missing, asked_by, judge, polisher, identity, log_dir, show)
    kept = inspect.read_keyed(log_dir, identity)
    rows = [kept[key] for key in wanted if key in kept]
    meta = {
        **identity,
        "study": "instruction-boundary",
        "log_dir": str(log_dir),
        "seed": chosen.seed,
        "settings": setting_names(chosen.names),
        "questions": found.digest,
    }
    responses = Responses.from_rows(rows, meta)
    statuses = Counter(row.status for row in rows)
    notes = [*found.notes]
    if len(rows) < len(wanted):
        notes.append(
            f"{len(wanted) - len(rows):,} of {len(wanted):,} requests were not made; repeat the command to make them"
        )
    if statuses["error"]:
        notes.append(f"{statuses['error']:,} requests got no reply and are excluded; repeat the command to retry them")
    metrics = boundary_metrics(responses, seed=chosen.seed)
    return BoundaryStudy(address.model, metrics, responses, len(missing), str(log_dir), statuses, tuple(notes))


def _inspect() -> Any:
    """Our inspect adapter; ModelError, naming the extra to install, without inspect_ai."""
    try:
        from unslant.studies.instruction_boundary import inspect_records
    except ImportError as error:
        raise ModelError(f"replies are generated through inspect ({error}): pip install 'unslant[inspect]'") from None
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
