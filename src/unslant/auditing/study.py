"""The audit: present every question in many orders and measure how much of the score is bias."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from unslant.asking import Asked, ask, elicitation_of
from unslant.auditing.ordinary import ordinary_cost
from unslant.auditing.phases import grown, phases_of
from unslant.auditing.presented import audit_presentations
from unslant.auditing.result import AuditResult
from unslant.auditing.settings import AuditOutputs, AuditSettings
from unslant.errors import InputError
from unslant.experiment.job import Asking, Given
from unslant.experiment.options import check_unused
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.models import GenerateOptions
from unslant.models.open import gives_replies
from unslant.presentations import Presentation, ShotChooser, control_presentations, parse_labels
from unslant.questions import SKEWED, Question, QuestionSet
from unslant.responses import Responses


class Audit(Study[AuditSettings]):
    """Measure how much of a score depends on the order and labels of options.

    Without arguments, audits the reference model prefers-a on embedded questions that often have A as the answer.

    Models that give only text (inspect:...) are audited by their replies, and any other with --elicit generate: each
    question in its rotations, at most 6. --dry-run estimates the cost; --adaptive asks most questions only twice.

    With --until 0.02, questions come in random order, some in a Latin square of their orders, until the score is known
    to +-0.02.

    With --log, reads answers that another harness logged (lm-eval, inspect, lighteval, OpenCompass, HELM, or a table of
    your own) in place of asking a model; files of one model and the same questions in several orders belong together.
    Several models, or logs of several, are set side by side.

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
    several = True
    in_shards = True

    def ask(self, asking: Asking[AuditSettings]) -> Responses:
        if asking.settings.in_words:
            from unslant.auditing.words import audit_in_words

            return audit_in_words(asking)
        return _scored(asking)

    def settings_of_each(self, given: Given[AuditSettings]) -> list[AuditSettings]:
        return [
            given.settings.resolved(in_words(model, given.settings, options))
            for model, options in zip(given.models, given.options, strict=True)
        ]

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
        from unslant.auditing.dry_run import estimate

        self.check(given)
        settings = self.settings_of_each(given)
        self.check_replies(given, settings)
        for model, options, one in zip(given.models, given.options, settings, strict=True):
            print("\n".join(estimate(model, given.questions, one, options, given.generate, outputs)))
        return None

    def read(self, given: Given[AuditSettings]) -> StudyResult:
        from unslant.auditing.logs import audit_logs

        return audit_logs(given.log, given.settings.fields)

    def compare(self, results: Sequence[AuditResult], given: Given[AuditSettings]) -> StudyResult:
        from unslant.auditing.comparison import AuditComparison

        return AuditComparison.of(results)


@dataclass(frozen=True, kw_only=True)
class AuditKeywords(Keywords, GenerateOptions, AuditSettings):
    """Keywords of :func:`audit`."""


audit = function(Audit(), AuditKeywords, AuditResult)


def in_words(model: Any, settings: AuditSettings, options: Any = None) -> bool:
    """Whether replies of a model are read; its labels are scored otherwise."""
    return gives_replies(model, options) if settings.elicit == "auto" else settings.elicit == "generate"


def _scored(asking: Asking[AuditSettings]) -> Responses:
    """Every question in many orders, and with its labels reversed and shifted; then the pages without a question."""
    settings, questions, progress = asking.settings, asking.questions, asking.progress
    alphabet, seed, writer = parse_labels(settings.labels), settings.seed, settings.writer()
    chooser, shown, about_all = prepared(questions, settings)
    model = asking.model
    elicitation, own_labels = elicitation_of(model, writer), not model.info.renders_prompts
    if not own_labels:  # a decision endpoint labels the options itself: only their order changes
        chooser, shown, about_all = prepared(questions, settings, own_labels=False)
    phases = phases_of(questions, settings, own_labels=own_labels)

    def asked() -> Iterator[Asked]:
        for question in questions:
            yield from with_shots(question, phases.shown(question) if phases else shown(question))
        yield from controls

    def with_shots(question: Question, presentations: Iterable[Presentation]) -> Iterator[Asked]:
        examples = chooser.of(question)
        return ((question, one.with_shots(examples)) for one in presentations)

    sizes = sorted({len(question.options) for question in questions} if own_labels else ())
    controls = [control for n in sizes for control in control_presentations(n, alphabet, seed=seed)]
    share = asking.share(asked, [elicitation])
    texts, until, two_phase = share.own(questions), None, None
    if settings.until is None:
        about = share.presentations or (sum(len(phases.shown(q)) for q in questions) if phases else about_all)
        responses = ask(model, share.cut(asked()), [elicitation], progress=progress, presentations=about)
        if phases and not asking.shards.shard:  # a shard cannot know what the others show
            more = partial(ask, model, elicitations=[elicitation], progress=progress)
            phases, responses = grown(
                phases, responses, lambda further: more([one for q, p in further for one in with_shots(q, [p])])
            )
        two_phase = phases.run(about_all + len(controls)) if phases else None
    else:
        from unslant.auditing.until import ask_until

        responses, texts, until, two_phase = ask_until(
            model, questions, settings, elicitation, chooser, controls, own_labels=own_labels, progress=progress
        )
    first = next(asked(), None)
    cost = asking.cost
    tokens, order_costs = ordinary_cost(
        model,
        cost,
        share.own(questions),
        elicitation,
        shown,
        chooser,
        settings.orders,
        controls,
        questions,
        len(phases.full) / len(questions) if phases else None,
    )
    return asking.finished(
        responses,
        share,
        texts,
        example_prompt=elicitation.prompts(first[1])[0].as_text() if first else "",
        cost=replace(cost, tokens_ordinary=tokens),
        order_costs=order_costs,
        until=until,
        two_phase=two_phase,
    )


def prepared(
    found: QuestionSet[Question], chosen: AuditSettings, *, own_labels: bool = True
) -> tuple[ShotChooser, Callable[[Question], list[Presentation]], int]:
    """Worked examples, presentations of a question, and how many there are of all, where labels are scored.

    Args:
        own_labels: see :func:`~unslant.auditing.presented.audit_presentations`.

    Raises:
        InputError: if questions, labels, orders or worked examples do not go together: here, not on the way.
    """
    alphabet, seed = parse_labels(chosen.labels), chosen.seed
    chooser = chosen.chooser(found, alphabet)
    shown = partial(audit_presentations, orders=chosen.orders, alphabet=alphabet, seed=seed, own_labels=own_labels)
    shapes: dict[tuple[int, tuple[int, ...]], int] = {}
    for question in found:
        shape = len(question.options), question.pinned
        shapes[shape] = shapes.get(shape) or len(shown(question))
        chooser.of(question)
    return chooser, shown, sum(shapes[len(question.options), question.pinned] for question in found)
