"""The audit: present every question in many orders and measure how much of the score is bias."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

from unslant.asking import Asked, Progress, ask, elicitation_of, no_progress
from unslant.auditing.ordinary import ordinary_cost
from unslant.auditing.presented import audit_presentations
from unslant.auditing.result import AuditResult
from unslant.auditing.settings import AuditSettings
from unslant.errors import InputError
from unslant.experiment.options import with_options
from unslant.experiment.run_record import run_of, with_run
from unslant.models import ChatModel, ScoringModel
from unslant.models.base import renders_prompts
from unslant.models.open import gives_replies, opened
from unslant.presentations import (
    Presentation,
    ShotChooser,
    control_presentations,
    parse_labels,
)
from unslant.questions import SKEWED, Question, QuestionSet
from unslant.responses import Responses
from unslant.scale.options import WHOLE, ShardOptions


def audit(
    model: str | ScoringModel | ChatModel | Callable[[], ScoringModel | ChatModel],
    questions: Any = SKEWED,
    settings: AuditSettings | None = None,
    *,
    progress: Progress = no_progress,
    **options: Any,
) -> AuditResult:
    """Present every question in many orders and measure how much of the score is bias.

    Labels are scored where the model allows it: every question is also shown as given, reversed, with labels reversed,
    with both reversed, and with labels shifted by one; a question without content is shown once per label order and
    number of options. All results come from these scores. A model that gives only replies is audited by its replies
    (:mod:`unslant.auditing.words`), as is any other with ``elicit="generate"``. A decision endpoint labels the
    options itself, so only their order changes, and nothing is asked without content. With ``until``, no more is
    asked than it takes to know the score so well (:mod:`unslant.auditing.until`).

    Args:
        model: a name for :func:`unslant.open_model`, a loaded model, or a function that loads one, called after all
            other inputs have been checked.
        questions: whatever :func:`unslant.load_questions` takes: a file, recipe, list, data frame, loaded set, ...
        settings, options: an :class:`~unslant.auditing.settings.AuditSettings`, its fields as keywords
            (``orders="cyclic"``, ``limit=100``, ...), or both.

    Raises:
        InputError: if questions, labels, orders, template or a keyword are invalid.
        ModelError: if the model cannot be loaded or cannot take a prompt.
    """
    return AuditResult.of(audit_responses(model, questions, settings, progress=progress, **options))


def audit_responses(
    model: str | ScoringModel | ChatModel | Callable[[], ScoringModel | ChatModel],
    questions: Any = SKEWED,
    settings: AuditSettings | None = None,
    *,
    shards: ShardOptions = WHOLE,
    progress: Progress = no_progress,
    **options: Any,
) -> Responses:
    """What :func:`audit` measures: the answers to all questions, or to those of a shard."""
    chosen = with_options(AuditSettings, settings, options)
    chosen = chosen.resolved(gives_replies(model) if chosen.elicit == "auto" else chosen.elicit == "generate")
    if chosen.until is not None and shards.shard:
        raise InputError("--until decides on the way what to ask, which parts of a run cannot: leave out one of them")
    found = chosen.sampled(chosen.load(questions))
    if chosen.elicit == "generate":
        from unslant.auditing.words import audit_in_words

        return audit_in_words(model, found, chosen, shards=shards, progress=progress)
    alphabet, seed, writer = parse_labels(chosen.labels), chosen.seed, chosen.writer()
    chooser, shown, about_all = prepared(found, chosen)
    asker = opened(model)
    elicitation, own_labels = elicitation_of(asker, writer), not renders_prompts(asker)
    if not own_labels:
        chooser, shown, about_all = prepared(found, chosen, own_labels=False)

    def asked() -> Iterator[Asked]:
        for question in found:
            examples = chooser.of(question)
            for presentation in shown(question):
                yield question, presentation.with_shots(examples)
        yield from controls

    sizes = sorted({len(question.options) for question in found} if own_labels else ())
    controls = [control for n in sizes for control in control_presentations(n, alphabet, seed=seed)]
    share = shards.share("audit", found, chosen.recorded(), [elicitation], asked, progress)
    before, texts, until = asker.cost.copy(), share.own(found), None
    if chosen.until is None:
        about_all = share.presentations or about_all
        responses = ask(asker, share.cut(asked()), [elicitation], progress=progress, presentations=about_all)
    else:
        from unslant.auditing.until import ask_until

        responses, texts, until = ask_until(
            asker, found, chosen, elicitation, chooser, controls, own_labels=own_labels, progress=progress
        )
    first = next(asked(), None)
    run = run_of("audit", found, chosen.recorded(), asker, before, chosen)
    tokens, order_costs = ordinary_cost(
        asker, run.cost, share.own(found), elicitation, shown, chooser, chosen.orders, controls, found
    )
    run = replace(
        run,
        example_prompt=elicitation.prompts(first[1])[0].as_text() if first else "",
        cost=replace(run.cost, tokens_ordinary=tokens),
        order_costs=order_costs,
        until=until,
        shard=share.header,
    )
    return with_run(responses, run, texts)


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
