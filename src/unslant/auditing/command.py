"""``unslant audit``."""

from __future__ import annotations

from typing import Annotated

from unslant.auditing.settings import AuditSettings
from unslant.experiment import options as o
from unslant.flags import Flag


def audit(
    model: o.Model = o.DEFAULT_MODEL,
    questions: o.Questions = o.SKEWED,
    /,
    *,
    log: o.Logs = (),
    dry_run: Annotated[bool, Flag(help="Print what asking would take (prompts, tokens, time) and stop.")] = False,
    settings: AuditSettings = AuditSettings(),
    models: o.Models = o.ModelOptions(),
    generate: o.Generate = o.GenerateOptions(),
    outputs: o.Outputs = o.OutputOptions(),
    store: o.Stores = o.StoreOptions(),
    shards: o.Shards = o.ShardOptions(),
) -> None:
    """Ask every question in many orders and measure how much of the score is bias.

    Without arguments, audits the reference model prefers-a on embedded questions, of which many have A as the answer.

    Models that give only text (inspect:...) are audited by their replies, and any other with --elicit generate: each
    question in its rotations, at most 6. --dry-run estimates the cost; --adaptive asks most questions only twice.

    With --until 0.02, questions come in random order, in some of their orders, until the score is known to +-0.02.

    With --log, reads answers that another harness logged (lm-eval, inspect, lighteval, OpenCompass, HELM, or a table of
    your own) in place of asking a model; files of one model and the same questions in several orders belong together.

    Examples:
      unslant audit org/name questions.jsonl --html report.html
      unslant audit inspect:openai/gpt-4o-mini questions.jsonl --reasoning --dry-run
    """
    from unslant.errors import InputError
    from unslant.models.open import gives_replies

    if log:
        if dry_run:
            raise InputError("--dry-run estimates what asking takes, and --log asks nothing: leave out one of them")
        o.check_unused(o.WITH_LOG, settings, models, generate, but=("fields",))
        shards.check_none("--log")
        from unslant.auditing.logs import audit_logs
        from unslant.experiment.outputs import check_outputs, write_outputs

        check_outputs(outputs)
        write_outputs(audit_logs(log, settings.fields), outputs)
        return
    in_words = gives_replies(model, models) if settings.elicit == "auto" else settings.elicit == "generate"
    chosen = settings.resolved(in_words)
    o.check_generate(generate, in_words)
    if dry_run:
        shards.check_none("--dry-run")
        o.check_unused("--dry-run asks nothing", outputs, but=("quiet",))
        from unslant.auditing.dry_run import estimate

        print("\n".join(estimate(model, questions, chosen, models, generate)))
        return
    from unslant.auditing.study import audit as run
    from unslant.auditing.study import audit_responses
    from unslant.experiment.recording import run_study

    replies = generate if in_words else None
    run_study(run, [model], questions, chosen, models, outputs, store, replies, part=(audit_responses, shards))
