"""What an audit costs, estimated before anything is asked (``--dry-run``)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from unslant.auditing import (
    MOST_WHOLE,
    PART,
    AuditOutputs,
    AuditSettings,
    OrderDesign,
    audit_presentations,
    orders_in_words,
    square_presentations,
)
from unslant.models import Cost, GenerateOptions, ModelOptions, ScoringModel
from unslant.models.hf.loading import tokenizer_of
from unslant.models.hf.tokenization import Encoder
from unslant.models.open import address_of, open_model
from unslant.presentations import auto_square, given_order, parse_labels, present
from unslant.prompts import Cloze, Prompt
from unslant.questions import Question
from unslant.reports.numbers import about, count, significant

if TYPE_CHECKING:
    from unslant.auditing.words import Schedule
    from unslant.prompts import Writer

CHARACTERS_A_TOKEN = 4
"""Approximate, for English, where no tokenizer is available."""
SAMPLED = 500
"""Prompts whose tokens are counted, at most; the others are assumed to be as long on average."""
MEASURED = 1.0
"""Seconds of scoring from which the time of the whole run is estimated."""
AT_FIRST = 2
"""Questions in the first call that is measured; each next one has twice as many."""


def estimate(
    model: str,
    name: str,
    settings: AuditSettings,
    models: ModelOptions,
    generate: GenerateOptions,
    outputs: AuditOutputs,
) -> list[str]:
    """Requests and tokens, a sentence a line; nothing is kept. No server is asked and no reply is generated.

    A local model whose labels are scored is loaded, and scores some questions for about a second, for the time.

    Args:
        name: of the questions, as for the audit.
        settings: resolved (:meth:`AuditSettings.resolved`).
        outputs: with the prices.

    Raises:
        InputError: as the audit itself would.
    """
    from unslant.auditing.words import plan

    in_words = settings.elicit == "generate"
    address = address_of(model, models, ("generate",) if in_words else ("score",))
    questions = settings.sampled(settings.load(name))
    length = _Length(None if address.scheme else tokenizer_of(address.model, models))
    if in_words:
        schedule = plan(questions.questions, settings, settings.chooser(questions, parse_labels(settings.labels)))
        lines = _requests(schedule, settings, settings.writer(), generate, outputs, length)
        return [*questions.report.caveats, f"{count(len(questions), 'question')}: {lines[0]}.", *lines[1:]]
    renders_labels = address.scheme != "decision"
    design = OrderDesign.of(questions, settings, own_labels=renders_labels)
    by_question = [
        [prompt for _, page in design.shown(question) for prompt in design.elicitation.prompts(page)]
        for question in questions
    ]
    controls = [prompt for _, page in design.controls for prompt in design.elicitation.prompts(page)]
    prompts = [prompt for several in (*by_question, controls) for prompt in several]
    total = length.total(prompts, len(prompts))
    lines = [
        *questions.report.caveats,
        *["With --until, at most:"] * (settings.until is not None),
        *([f"{len(design.full):,} questions in all orders; more if the intervals need it."] if design.full else []),
        f"{count(len(questions), 'question')}, {count(len(prompts), 'prompt')} to score"
        f"{f', {len(controls):,} of them without content' if controls else ''}.",
        f"Tokens in the prompts: about {total:,} ({length.how}), each prompt run alone{outputs.money(total)}.",
    ]
    if address.scheme:
        return [*lines, "Time: unknown until a server has been asked."]
    spent = _measured(open_model(model, models), by_question)
    shared = spent.tokens / spent.tokens_plain if spent.tokens_plain else 1.0
    return [
        *lines,
        f"Tokens computed: about {total * shared:,.0f}, counting shared beginnings once, which is about "
        f"{significant(shared * (len(prompts) - len(controls)) / len(questions), 2)} ordinary runs.",
        f"Time: about {duration(spent.seconds * len(prompts) / spent.prompts)}, an estimate from "
        f"{count(spent.prompts, 'prompt')} scored in {spent.seconds:.1f} s.",
    ]


def _requests(
    schedule: Schedule,
    settings: AuditSettings,
    writer: Writer,
    generate: GenerateOptions,
    outputs: AuditOutputs,
    length: _Length,
) -> list[str]:
    """The estimate of an audit that reads replies."""
    from unslant.auditing.words import FEWEST_CHECKED

    cue = writer.template.render("cloze.cue")
    at_once = [page for (_, page), _ in schedule.first]
    further = [page for pages in schedule.further.values() for _, page in pages]
    prompts = [writer.prompt(page, cue, ()) for page in (*at_once, *further)]
    least, most = len(at_once), len(prompts)
    if further:
        n_checked = max(settings.calibrate * len(schedule.further), min(FEWEST_CHECKED, len(schedule.further)))
        least += round(n_checked * len(further) / len(schedule.further))
    limit = generate.filled().max_tokens or 0
    requests = count(most, "request") if least == most else f"{least:,} to {count(most, 'request')}"
    tokens = " to ".join(f"{n:,}" for n in dict.fromkeys(length.total(prompts, size) for size in (least, most)))
    lines = [
        requests,
        f"Tokens in: about {tokens} ({length.how}).",
        f"Tokens out: at most {most * limit:,} ({limit:,} a reply, --max-tokens)"
        f"{outputs.money(length.total(prompts, most), most * limit)}.",
    ]
    if settings.ask_again:
        more = most - sum(repeat > 0 for _, repeat in schedule.first)
        money = outputs.money(length.total(prompts, more) + more * limit, more * limit)
        lines.append(f"--ask-again: up to {count(more, 'more request')}, each with the reply before it{money}.")
    if settings.adaptive or schedule.part is not None:
        whole = schedule.full + sum(repeat > 0 for _, repeat in schedule.first)
        money = outputs.money(length.total(prompts, whole), whole * limit)
        option = "--adaptive" if settings.adaptive else "--in-all-orders"
        lines.append(f"Without {option}: {count(whole, 'request')}{money}.")
    return lines


def _measured(model: ScoringModel, by_question: Sequence[Sequence[Prompt]]) -> Cost:
    """The cost of scoring some questions, drawn at random until about a second is spent.

    The first call warms up and is not counted; of the others only the largest is, being most like the audit's own.

    Args:
        by_question: the prompts of each question; at least one.
    """
    sequence = random.Random(0).sample(range(len(by_question)), len(by_question))
    list(model.score(by_question[sequence[0]]))
    start, calls, at, size = model.cost.copy(), [], 0, AT_FIRST
    while at < len(sequence) and (model.cost - start).seconds < MEASURED:
        before = model.cost.copy()
        list(model.score([prompt for i in sequence[at : at + size] for prompt in by_question[i]]))
        calls.append(model.cost - before)
        at, size = at + size, 2 * size
    return max(calls, key=lambda cost: cost.prompts)


def duration(seconds: float) -> str:
    """``3.2 s``, ``12 minutes``."""
    if seconds < 90:
        return f"{max(seconds, 0.1):.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


class _Length:
    """Counts tokens: with the tokenizer and the chat template of a local model, else by characters."""

    def __init__(self, tokenizer: Any | None) -> None:
        if tokenizer:
            encoder = Encoder(tokenizer)
            self.of: Callable[[Prompt], int] = lambda prompt: len(encoder.ids(prompt))
            self.how = "by the model's tokenizer"
        else:
            self.of = lambda prompt: -(-len(prompt.as_text()) // CHARACTERS_A_TOKEN)
            self.how = f"{CHARACTERS_A_TOKEN} characters a token"

    def total(self, prompts: Sequence[Prompt], n: int) -> int:
        """Tokens of n prompts, from the mean of an even sample."""
        sample = prompts[:: max(1, len(prompts) // SAMPLED)]
        return round(n * fmean(map(self.of, sample))) if sample else 0


def left_open(questions: Iterable[Question], *, in_words: bool) -> str:
    """What an audit of one order leaves open, and the command that asks more.

    Args:
        in_words: whether replies are read.
    """
    settings = AuditSettings().resolved(in_words)
    alphabet, cloze = parse_labels(settings.labels), Cloze(settings.writer())
    movable = [question for question in questions if question.movable]
    part = PART / len(movable) if len(movable) > MOST_WHOLE else 1.0
    sizes: dict[tuple[int, tuple[int, ...]], tuple[int, float]] = {}  # orders and prompts of a kind of question
    tokens = []
    for question in movable[:: max(1, len(movable) // SAMPLED)]:
        kind = len(question.options), question.pinned
        if kind not in sizes and in_words:
            sizes[kind] = (len(orders_in_words(question, settings.orders)),) * 2
        elif kind not in sizes:
            pages = audit_presentations(question, settings.orders, alphabet)
            square = len(square_presentations(question, auto_square(question), alphabet))
            n_orders = sum(page.kind == "order" for page in pages)
            sizes[kind] = n_orders, part * len(pages) + (1 - part) * square
        (prompt,) = cloze.prompts(present(question, given_order(question), alphabet))
        tokens.append(sizes[kind][1] * len(prompt.as_text()) / CHARACTERS_A_TOKEN)
    sentence = "One order cannot show whether the order matters"
    if not tokens:
        return f"{sentence}."
    orders = sorted({n for n, _ in sizes.values()})
    span = f"{orders[0]} to " if len(orders) > 1 else ""
    needed = about(fmean(tokens) * len(movable))
    return f"{sentence}; `unslant audit MODEL FILE` asks in {span}{count(orders[-1], 'order')}, about {needed} tokens."
