"""The instruction-boundary study (P3): how much of an answer is the instruction.

Load, present under every setting, ask in words through inspect_ai, read its logs back, measure. The logs are the
store: a run that is started again asks only for what got no reply.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.errors import InputError, ModelError
from unslant.responses.table import Responses
from unslant.studies.instruction_boundary.instruction_settings import BASELINE, SEED
from unslant.studies.instruction_boundary.metrics import boundary_metrics
from unslant.studies.instruction_boundary.plan import TEMPERATURE, plan, setting_names
from unslant.studies.instruction_boundary.question_sources import BoundarySet
from unslant.studies.instruction_boundary.result import BoundaryStudy

if TYPE_CHECKING:
    pass

MAX_TOKENS = 2048
SERVICE = "unslant"
"""Name under which inspect looks for an OpenAI-compatible server's key: ``UNSLANT_API_KEY``."""
_KEY = "UNSLANT_API_KEY"


@dataclass(frozen=True)
class AskOptions:
    """How a model is asked.

    Attributes:
        temperature: of sampling (P3: 0.5).
        max_tokens: most tokens of a reply.
        repeats: replies sampled for each question and setting.
        connections: requests at a time.
        retries: how often a request is repeated after a transient failure.
        timeout: seconds to wait for one reply; None leaves it to the provider.
        judge: inspect's name of the model that reads replies in which no answer is found; None: no judge.
        polisher: inspect's name of the model that rewrites instructions; None: the model that is asked.
    """

    temperature: float = TEMPERATURE
    max_tokens: int = MAX_TOKENS
    repeats: int = 1
    connections: int = 8
    retries: int = 5
    timeout: int | None = None
    judge: str | None = None
    polisher: str | None = None


def run_instruction_boundary(
    model: str,
    questions: BoundarySet,
    settings: Sequence[str] = (BASELINE,),
    *,
    log_dir: str | Path,
    options: AskOptions = AskOptions(),
    base_url: str | None = None,
    limit: int | None = None,
    seed: int = SEED,
    left_out: str = "",
    show: bool = False,
) -> BoundaryStudy:
    """Ask ``model`` and measure.

    Args:
        model: inspect's name of a model (``openai/gpt-4o``, ``anthropic/...``, ``hf/...``), the folder or the name of a
            local one, or, with ``base_url``, the name that an OpenAI-compatible server knows it by. The key of such a
            server is taken from the environment variable ``UNSLANT_API_KEY`` (any text where the server wants none).
        settings: names of settings; ``all`` for all but the disturbing options, ``disturbing`` for these.
        log_dir: folder of inspect's logs. What was asked before in the same way, with a reply, is not asked again.
        limit: at most so many questions of each kind, half with a usual answer.
        left_out: form of answer that ``missing-choices`` leaves out.
        show: draw inspect's progress display.

    Raises:
        InputError: on a bad setting or option.
        ModelError: if the model cannot be had, or inspect_ai is not installed.
    """
    _check(options)
    chosen = questions.balanced(limit, seed)
    asked = plan(chosen, settings, seed=seed, left_out=left_out)
    inspect = _inspect()
    identity: dict[str, Any] = {
        "task": "instruction_boundary",
        "model": model,
        "base_url": base_url,
        "temperature": options.temperature,
        "max_tokens": options.max_tokens,
        "judge": options.judge,
        "polisher": options.polisher,
    }
    Path(log_dir).mkdir(parents=True, exist_ok=True)
    done = {key for key, row in inspect.read_keyed(log_dir, identity).items() if row.status != "error"}
    wanted = {
        (question.id, presentation.name, inspect.prompt_digest(presentation), repeat): (question, presentation)
        for question, presentation in asked
        for repeat in range(options.repeats)
    }
    missing = [inspect.to_sample(*wanted[key], repeat=key[3]) for key in wanted if key not in done]
    if missing:
        _ask(inspect, model, base_url, missing, options, identity, Path(log_dir), show)
    found = inspect.read_keyed(log_dir, identity)
    rows = [found[key] for key in wanted if key in found]
    meta = {
        **identity,
        "study": "instruction-boundary",
        "log_dir": str(log_dir),
        "seed": seed,
        "settings": setting_names(settings),
        "questions": chosen.digest,
    }
    responses = Responses.from_rows(rows, meta)
    statuses = Counter(row.status for row in rows)
    notes = [*chosen.notes]
    if len(rows) < len(wanted):
        notes.append(f"{len(wanted) - len(rows):,} of {len(wanted):,} requests were not made; start again to make them")
    if statuses["error"]:
        notes.append(f"{statuses['error']:,} requests got no reply and are left out; start again to repeat them")
    return BoundaryStudy(
        model, boundary_metrics(responses, seed=seed), responses, len(missing), str(log_dir), statuses, tuple(notes)
    )


def _check(options: AskOptions) -> None:
    if not 0 <= options.temperature <= 2:
        raise InputError(f"temperature {options.temperature}: give 0 to 2")
    for name in ("repeats", "connections", "max_tokens"):
        if getattr(options, name) < 1:
            raise InputError(f"{name} {getattr(options, name)}: give 1 or more")


def _inspect() -> Any:
    """Our inspect adapter, loaded only here.

    Raises:
        ModelError: naming the extra to install.
    """
    try:
        from unslant.plugins.inspect_ai import records
    except ImportError as error:
        raise ModelError(f"asking in words needs inspect_ai ({error}): pip install 'unslant[inspect]'") from None
    return records


def _ask(
    inspect: Any,
    model: str,
    base_url: str | None,
    samples: Sequence[Any],
    options: AskOptions,
    identity: Mapping[str, object],
    log_dir: Path,
    show: bool,
) -> None:
    from inspect_ai import eval as evaluate

    from unslant.plugins.inspect_ai.task import build_task

    task = build_task(
        samples,
        temperature=options.temperature,
        max_tokens=options.max_tokens,
        judge=options.judge,
        polisher=options.polisher,
        identity=identity,
    )
    try:
        logs = evaluate(
            task,
            model=_model(model, base_url, options),
            log_dir=str(log_dir),
            log_format="eval",
            display="full" if show else "none",
            fail_on_error=False,
            max_connections=options.connections,
            max_retries=options.retries,
            attempt_timeout=options.timeout,
        )
    except Exception as error:  # providers raise what they like when a package or key is missing
        raise ModelError(f"{model}: {' '.join(str(error).split())[:500]}") from error
    for log in logs:
        if log.error and not log.samples:
            raise ModelError(f"{model}: {log.error.message}")


def _model(model: str, base_url: str | None, options: AskOptions) -> Any:
    """The model as inspect knows it."""
    from inspect_ai.model import get_model

    if base_url:
        # Inspect repeats failed requests itself; the client underneath should not do so too.
        return get_model(
            f"openai-api/{SERVICE}/{model}", base_url=base_url, api_key=os.environ.get(_KEY, "none"), max_retries=0
        )
    folder = _local_folder(model)
    if folder:
        return get_model("hf/local", model_path=folder, tokenizer_path=folder)
    return get_model(model)


def _local_folder(model: str) -> str | None:
    if Path(model).is_dir():
        return model
    if "/" in model:
        return None
    from unslant.reference import WORDS, reference_names, reference_path

    return str(reference_path(model)) if model in (WORDS, *reference_names()) else None
