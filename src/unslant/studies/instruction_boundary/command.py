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
) -> None:
    """Ask the same questions under complete, excessive and incomplete instructions.

    One, several or no options may be right; a statement may be true, false or unknown. To resume, repeat the command
    with the same --log-dir; view the conversations with 'inspect view --log-dir DIR'.

    Examples:
      unslant study instruction-boundary inspect:openai/gpt-4o-mini --limit 60 --html report.html
      unslant study instruction-boundary my-model --base-url http://127.0.0.1:8080/v1 --settings all,disturbing
    """
    from unslant.studies.instruction_boundary.result import BoundaryStudy
    from unslant.studies.instruction_boundary.study import instruction_boundary as run
    from unslant.studies.outputs import check_outputs, write_outputs
    from unslant.studies.recording import report_logs

    if log:
        return report_logs(log, BoundaryStudy, outputs)
    check_outputs(outputs)
    replies = o.GenerateOptions(max_tokens=generate.max_tokens)
    result = run(model, questions, settings, models=models, generate=replies, show=not outputs.quiet)
    return write_outputs(result, outputs)
