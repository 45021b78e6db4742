"""``unslant study instruction-boundary``: the effect of instructions on generated answers (P3)."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from unslant.studies import options as o
from unslant.studies.instruction_boundary.settings import BoundarySettings


def instruction_boundary(
    model: o.Model = "words",
    questions: Annotated[
        str, Parameter(help="File from 'unslant questions build instruction-boundary', or 'embedded'.")
    ] = o.EMBEDDED,
    /,
    *,
    log: o.Logs = (),
    settings: Annotated[BoundarySettings, o.SETTINGS] = BoundarySettings(),
    models: o.Models = o.ModelOptions(),
    generate: o.Length = o.LengthOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Ask the same questions under complete, excessive and incomplete instructions.

    One, several or no options may be right; a statement may be true, false or unknown. Replies are stored as they come:
    the same command goes on where it was stopped, and with --judge added asks only the judge.

    Examples:
      unslant study instruction-boundary inspect:openai/gpt-4o-mini --limit 60 --html report.html
      unslant study instruction-boundary my-model --base-url http://127.0.0.1:8080/v1 --settings all,disturbing
    """
    from functools import partial

    from unslant.models.open import address_of, open_chat
    from unslant.studies.instruction_boundary.question_sources import load_boundary
    from unslant.studies.instruction_boundary.result import BoundaryStudy
    from unslant.studies.instruction_boundary.study import instruction_boundary as run
    from unslant.studies.outputs import check_outputs, write_outputs
    from unslant.studies.recording import recording, report_logs

    if log:
        return report_logs(log, BoundaryStudy, outputs)
    check_outputs(outputs)
    address_of(model, models, ("generate",))
    found = load_boundary(questions, fields=dict(settings.fields))
    replies = o.GenerateOptions(max_tokens=generate.max_tokens)
    with recording(store, outputs.quiet) as record:
        result = run(
            record.loader(partial(open_chat, model, models)),
            found,
            settings,
            generate=replies,
            load=lambda name, how: record.stored(open_chat(name, None, how)),
            progress=record.progress,
        )
        record.keep(result.responses)
    return write_outputs(result, outputs)
