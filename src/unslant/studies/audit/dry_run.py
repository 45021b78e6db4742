"""``unslant audit --dry-run``: what asking would take, before anything is asked."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean

from unslant.models import GenerateOptions, ModelOptions
from unslant.models.open import address_of
from unslant.presentations import ShotChooser, parse_labels
from unslant.prompts import Cloze, Prompt
from unslant.reports.numbers import count
from unslant.studies.audit.settings import AuditSettings

CHARACTERS_A_TOKEN = 4
"""Of English text, about, where the model's tokenizer is not at hand."""
SAMPLED = 500
"""Prompts whose tokens are counted, at most; the others are taken to be as long on average."""


def estimate(
    model: str, questions: str, settings: AuditSettings, models: ModelOptions, generate: GenerateOptions
) -> list[str]:
    """Requests and tokens, a sentence a line. No weights are loaded and nobody is asked.

    Args:
        settings: resolved (:meth:`AuditSettings.resolved`).

    Raises:
        InputError: as the audit itself would.
    """
    in_words = settings.elicit == "generate"
    address = address_of(model, models, ("generate",) if in_words else ("score",))
    found = settings.sampled(settings.load(questions))
    pool = (settings.pool(settings.shots_from) or found).questions
    alphabet, writer = parse_labels(settings.labels), settings.writer()
    chooser = ShotChooser(pool, settings.shots, settings.seed, alphabet=alphabet)
    length, how = _lengths(address.model if not address.scheme else "")
    if not in_words:
        from unslant.studies.audit.study import audit_presentations

        cloze = Cloze(writer)
        prompts = [
            prompt
            for question in found
            for shown in audit_presentations(question, settings.orders, alphabet, settings.seed)
            for prompt in cloze.prompts(shown.with_shots(chooser.of(question)))
        ]
        tokens = _total(prompts, len(prompts), length)
        return [
            f"{count(len(found), 'question')}, {count(len(prompts), 'prompt')} to score, and a few without content.",
            f"Tokens in the prompts: about {tokens:,} ({how}); a local model computes shared beginnings once.",
        ]
    from unslant.studies.audit.words import FEWEST_CHECKED, plan

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
        f"{count(len(found), 'question')}: {requests}.",
        f"Tokens in: about {counted} ({how}).",
        f"Tokens out: at most {most * limit:,} ({limit:,} a reply, --max-tokens).",
    ]
    if settings.adaptive:
        again = sum(repeat > 0 for _, repeat in planned.first)
        lines.append(f"Without --adaptive: {count(planned.full + again, 'request')}.")
    return lines


def _total(prompts: list[Prompt], n: int, length: Callable[[str], int]) -> int:
    """Tokens of n prompts, from the mean of an even sample."""
    some = prompts[:: max(1, len(prompts) // SAMPLED)]
    return round(n * fmean(length(prompt.as_text()) for prompt in some)) if some else 0


def _lengths(local: str) -> tuple[Callable[[str], int], str]:
    """How long a text is in tokens, and how that is told."""
    if not local:
        return lambda text: -(-len(text) // CHARACTERS_A_TOKEN), f"{CHARACTERS_A_TOKEN} characters a token"
    from transformers import AutoTokenizer

    from unslant.models.hf.loading import locate

    tokenizer = AutoTokenizer.from_pretrained(locate(local))
    return lambda text: len(tokenizer(text).input_ids), "by the model's tokenizer"
