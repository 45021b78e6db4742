"""``unslant audit --dry-run``: what asking would take, before anything is asked."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from statistics import fmean

from unslant.auditing.one_order import CHARACTERS_A_TOKEN, SAMPLED
from unslant.auditing.settings import AuditOutputs, AuditSettings
from unslant.models import Cost, GenerateOptions, ModelOptions, ScoringModel
from unslant.models.open import address_of, open_model
from unslant.presentations import parse_labels
from unslant.prompts import Cloze, Decision, Prompt
from unslant.reports.numbers import count, significant

MEASURED = 1.0
"""Seconds of scoring from which the time of all is estimated."""
AT_FIRST = 2
"""Questions in the first call that is measured; each next one has twice as many."""


def estimate(
    model: str,
    questions: str,
    settings: AuditSettings,
    models: ModelOptions,
    generate: GenerateOptions,
    outputs: AuditOutputs,
) -> list[str]:
    """Requests and tokens, a sentence a line; nothing is kept. No server is asked and no reply is generated.

    A local model whose labels are scored is loaded, and scores some questions for about a second, for the time.

    Args:
        settings: resolved (:meth:`AuditSettings.resolved`).
        outputs: with the prices.

    Raises:
        InputError: as the audit itself would.
    """
    in_words = settings.elicit == "generate"
    address = address_of(model, models, ("generate",) if in_words else ("score",))
    found = settings.sampled(settings.load(questions))
    alphabet, writer = parse_labels(settings.labels), settings.writer()
    chooser = settings.chooser(found, alphabet)
    length, how = _lengths(address.model if not address.scheme else "")
    if not in_words:
        from unslant.auditing.phases import phases_of
        from unslant.auditing.presented import audit_presentations

        own_labels = address.scheme != "decision"
        phases = phases_of(found, settings, own_labels=own_labels)
        elicitation = Cloze(writer) if own_labels else Decision.of(writer)
        by_question = [
            [
                prompt
                for shown in (
                    phases.shown(question)
                    if phases
                    else audit_presentations(question, settings.orders, alphabet, settings.seed, own_labels=own_labels)
                )
                for prompt in elicitation.prompts(shown.with_shots(chooser.of(question)))
            ]
            for question in found
        ]
        prompts = [prompt for own in by_question for prompt in own]
        money = outputs.money(total := _total(prompts, len(prompts), length))
        lines = [
            *found.report.caveats,
            *["With --until, at most:"] * (settings.until is not None),
            *([f"All orders of {len(phases.full)} questions; of more, if intervals need them."] if phases else []),
            f"{count(len(found), 'question')}, {count(len(prompts), 'prompt')} to score"
            f"{', and a few without content' * own_labels}.",
            f"Tokens in the prompts: about {total:,} ({how}), each prompt run alone{money}.",
        ]
        if address.scheme:
            return [*lines, "Time: not known before a server has been asked."]
        spent = measured(open_model(model, models), by_question)
        shared = spent.tokens / spent.tokens_plain if spent.tokens_plain else 1.0
        seconds = spent.seconds * len(prompts) / spent.prompts
        return [
            *lines,
            f"Tokens computed: about {total * shared:,.0f}, shared beginnings once: about "
            f"{significant(shared * len(prompts) / len(found), 2)} ordinary runs.",
            f"Time: about {duration(seconds)}, an estimate from {count(spent.prompts, 'prompt')} scored in "
            f"{spent.seconds:.1f} s.",
        ]
    from unslant.auditing.words import FEWEST_CHECKED, plan

    planned = plan(found.questions, settings, chooser)
    cue = writer.template.render("cloze.cue")
    asked = [shown for (_, shown), _ in planned.first]
    rest = [shown for some in planned.further.values() for _, shown in some]
    prompts = [writer.prompt(shown, cue, ()) for shown in (*asked, *rest)]
    least, most = len(asked), len(prompts)
    if rest:
        checked = max(settings.calibrate * len(planned.further), min(FEWEST_CHECKED, len(planned.further)))
        least += round(checked * len(rest) / len(planned.further))
    limit = generate.filled().max_tokens or 0
    requests = count(most, "request") if least == most else f"{least:,} to {count(most, 'request')}"
    counted = " to ".join(f"{n:,}" for n in dict.fromkeys(_total(prompts, size, length) for size in (least, most)))
    lines = [
        *found.report.caveats,
        f"{count(len(found), 'question')}: {requests}.",
        f"Tokens in: about {counted} ({how}).",
        f"Tokens out: at most {most * limit:,} ({limit:,} a reply, --max-tokens)"
        f"{outputs.money(_total(prompts, most, length), most * limit)}.",
    ]
    if settings.adaptive or planned.part is not None:
        whole = planned.full + sum(repeat > 0 for _, repeat in planned.first)
        money = outputs.money(_total(prompts, whole, length), whole * limit)
        option = "--adaptive" if settings.adaptive else "--in-all-orders"
        lines.append(f"Without {option}: {count(whole, 'request')}{money}.")
    return lines


def measured(model: ScoringModel, by_question: Sequence[Sequence[Prompt]]) -> Cost:
    """What scoring some questions costs, drawn at random until about a second is spent.

    The first call is not counted, and of the others only the largest: the larger, the nearer to the audit's own.

    Args:
        by_question: the prompts of each question; at least one.
    """
    drawn = random.Random(0).sample(range(len(by_question)), len(by_question))
    list(model.score(by_question[drawn[0]]))
    start, calls, at, size = model.cost.copy(), [], 0, AT_FIRST
    while at < len(drawn) and (model.cost - start).seconds < MEASURED:
        before = model.cost.copy()
        list(model.score([prompt for i in drawn[at : at + size] for prompt in by_question[i]]))
        calls.append(model.cost - before)
        at, size = at + size, 2 * size
    return max(calls, key=lambda cost: cost.prompts)


def duration(seconds: float) -> str:
    """``3.2 s``, ``12 minutes``."""
    if seconds < 90:
        return f"{max(seconds, 0.1):.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def _total(prompts: list[Prompt], n: int, length: Callable[[str], int]) -> int:
    """Tokens of n prompts, from the mean of an even sample."""
    some = prompts[:: max(1, len(prompts) // SAMPLED)]
    return round(n * fmean(length(prompt.as_text()) for prompt in some)) if some else 0


def _lengths(local: str) -> tuple[Callable[[str], int], str]:
    """A function that counts the tokens of a text, and how it counts, in words."""
    if not local:
        return lambda text: -(-len(text) // CHARACTERS_A_TOKEN), f"{CHARACTERS_A_TOKEN} characters a token"
    from transformers import AutoTokenizer

    from unslant.models.hf.loading import locate

    tokenizer = AutoTokenizer.from_pretrained(locate(local))
    return lambda text: len(tokenizer(text).input_ids), "by the model's tokenizer"
