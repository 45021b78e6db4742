"""``unslant audit``."""

from __future__ import annotations

from typing import Annotated

from unslant.studies import options as o
from unslant.studies.audit.settings import AuditSettings


def audit(
    model: o.Model = o.DEFAULT_MODEL,
    questions: o.Questions = o.EMBEDDED,
    /,
    *,
    log: o.Logs = (),
    settings: Annotated[AuditSettings, o.SETTINGS] = AuditSettings(),
    models: o.Models = o.ModelOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
) -> None:
    """Ask every question in many orders and measure how much of the score is bias.

    Without arguments, audits the reference model prefers-a on the embedded questions.

    With --log, reads answers that another harness logged (lm-eval, inspect, lighteval, OpenCompass, HELM, or a table of
    your own) in place of asking a model; files of one model and the same questions in several orders belong together.

    Examples:
      unslant audit --log samples_mmlu_2026-11-21.jsonl
      unslant audit org/name questions.jsonl --html report.html
    """
    if log:
        from unslant.studies.audit.logs import audit_logs
        from unslant.studies.outputs import check_outputs, write_outputs

        check_outputs(outputs)
        write_outputs(audit_logs(log, settings.fields), outputs)
    else:
        from unslant.studies.audit.study import audit as run
        from unslant.studies.recording import run_study

        run_study(run, [model], questions, settings, models, outputs, store)
