"""``unslant audit``."""

from __future__ import annotations

from functools import partial
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

    Examples:
      unslant audit org/name questions.jsonl --html report.html
      unslant audit my-model mmlu --base-url http://127.0.0.1:8080/v1 --limit 500
    """
    from unslant.studies.audit.comparison import AuditComparison
    from unslant.studies.audit.result import AuditResult
    from unslant.studies.recording import report_logs, run_study

    if log:
        report_logs(log, AuditResult, outputs, partial(AuditComparison.of, files=[path.stem for path in log]))
    else:
        from unslant.studies.audit.study import audit as run

        run_study(run, model, questions, settings, models, outputs, store)
