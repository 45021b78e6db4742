"""The audit: present every question in many orders and measure how much of the score is bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unslant.asking import ask
from unslant.auditing import AuditOutputs, AuditSettings
from unslant.auditing.cost import estimate, ordinary_cost
from unslant.auditing.orders import OrderDesign, grown
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.experiment.job import Asking, Given
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.flags import check_unused
from unslant.models import GenerateOptions
from unslant.questions import SKEWED
from unslant.responses import Responses


class Audit(Study[AuditSettings]):
    """Measure how much of a score depends on the order and labels of options.

    Without arguments, audits the reference model prefers-a on embedded questions that often have A as the answer.

    Models that return only text (inspect:...) are audited by their replies, as are others with --elicit=generate:
    each question in its rotations, at most 6. --dry-run estimates the cost; --adaptive asks most questions only twice.

    With --until=0.02, questions are asked in random order, some in a Latin square of option orders, until the score
    is known to +-0.02.

    With --log, reads answers logged by another harness (lm-eval, inspect, lighteval, OpenCompass, HELM, or a table of
    your own) instead of asking a model; files of one model with the same questions in several orders belong together.
    Several models, or logs of several, are compared side by side.

    Examples:
      unslant audit org/name questions.jsonl --html report.html
      unslant audit inspect:openai/gpt-4o-mini questions.jsonl --reasoning --dry-run
    """

    name = "audit"
    settings = AuditSettings
    result = AuditResult
    questions = SKEWED
    outputs = AuditOutputs
    generate = GenerateOptions
    of_logs = ("fields",)
    in_memory = True
    several = True
    in_shards = True

    def ask(self, asking: Asking[AuditSettings]) -> Responses:
        if asking.settings.in_words:
            from unslant.auditing.words import audit_in_words

            return audit_in_words(asking)
        return _scored(asking)

    def check(self, given: Given[AuditSettings]) -> None:
        if given.settings.until is not None and given.shards.shard:
            raise InputError("--until chooses questions as it goes and cannot be combined with --shard")
        if given.outputs and given.outputs.dry_run:
            if given.log:
                raise InputError("--dry-run estimates what asking takes, and --log asks nothing: leave out one of them")
            given.shards.check_none("--dry-run")
            check_unused("--dry-run asks nothing", given.outputs, but=("quiet", "dry_run", "price", "output_price"))

    def run(self, given: Given[AuditSettings], outputs: Any, store: Any) -> None:
        if not outputs.dry_run:
            return super().run(given, outputs, store)
        self.check(given)
        settings = self.settings_of_each(given)
        self.check_replies(given, settings)
        for model, options, resolved in zip(given.models, given.options, settings, strict=True):
            print("\n".join(estimate(model, given.questions, resolved, options, given.generate, outputs)))
        return None

    def read(self, given: Given[AuditSettings]) -> StudyResult:
        from unslant.auditing.comparison import audit_logs

        return audit_logs(given.log, given.settings.fields)

    def compare(self, results: Sequence[AuditResult], given: Given[AuditSettings]) -> StudyResult:
        from unslant.auditing.comparison import AuditComparison

        return AuditComparison.of(results)


@dataclass(frozen=True, kw_only=True)
class AuditKeywords(Keywords, GenerateOptions, AuditSettings):
    """Keywords of :func:`audit`."""


audit = function(
    Audit(),
    AuditKeywords,
    AuditResult,
    """
    >>> result = unslant.audit("fair", "embedded", limit=20)
    >>> result.metrics.means["expected_accuracy"].n
    20
    """,
)


def _scored(asking: Asking[AuditSettings]) -> Responses:
    """Every question in many orders, and with its labels reversed and shifted; then the pages without a question."""
    design = OrderDesign.of(
        asking.questions, asking.settings
    )  # before the model is opened, so that bad input fails first
    model = asking.model
    if model.info.renders_prompts:  # a decision endpoint labels the options itself, so only their order can change
        design = OrderDesign.of(asking.questions, asking.settings, own_labels=False)
    example = next(design.asked(), None)
    share = asking.share(design.asked, [design.elicitation])
    texts, until = share.own(asking.questions), None
    score = partial(ask, model, elicitations=[design.elicitation], progress=asking.progress)
    if asking.settings.until is not None:
        from unslant.auditing.until import ask_until

        responses, texts, until, two_phase = ask_until(model, design, progress=asking.progress)
    else:
        responses = score(share.cut(design.asked()), presentations=share.presentations or design.expected)
        if not asking.shards.shard:  # a shard cannot know how narrow the intervals of the whole run are
            design, responses = grown(design, responses, score)
        two_phase = design.recorded
    tokens, order_costs = ordinary_cost(model, asking.cost, design, share.own(asking.questions))
    return asking.finished(
        responses,
        share,
        texts,
        example_prompt=design.elicitation.prompts(example[1])[0].as_text() if example else "",
        cost=replace(asking.cost, tokens_ordinary=tokens),
        order_costs=order_costs,
        until=until,
        two_phase=two_phase,
    )
