"""How a result came about, in the words of every study: its settings, what loading left out, and what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from unslant.models import Cost
from unslant.reports.numbers import count

FEW = 0.05
"""Headlines tell any larger share of replies that are missing or are no answer."""


def settings_rows(meta: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and values of what a run's meta data tell of model, questions and settings."""
    named = {"models": "models", "model": "model", "recorded": "recorded in", "questions": "questions"}
    rows = [(words, meta[key]) for key, words in named.items() if meta.get(key)]
    rows += [("digest of the questions", str(meta["questions_digest"])[:16])] if meta.get("questions_digest") else []
    settings = meta.get("settings")
    rows += sorted(settings.items()) if isinstance(settings, Mapping) else []
    rows += [("engine", meta["engine"])] if meta.get("engine") else []
    return tuple((str(name), _words(value)) for name, value in rows)


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in sorted(value.items()))
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def asked_about(meta: Mapping[str, Any], *more: str) -> str:
    """Which model on which questions, and what else there is to say of them: ``fair on embedded: 400 questions``."""
    about = f"{meta.get('model', 'model')} on {meta.get('questions') or meta.get('recorded') or 'responses'}"
    return ": ".join(filter(None, (about, ", ".join(filter(None, more)))))


def skipped_lines(meta: Mapping[str, Any]) -> list[str]:
    """What loading the questions left out."""
    loading = meta.get("loading")
    skipped = loading.get("skipped", {}) if isinstance(loading, Mapping) else {}
    return [f"{count(n, 'line')} skipped: {reason}." for reason, n in skipped.items()]


def cost_lines(cost: Cost) -> list[str]:
    """Prompts, time and tokens in one line; none where nothing was scored."""
    if not cost.prompts:
        return []
    line = count(cost.prompts, "prompt") + (f" in {cost.seconds:.1f} s" if cost.seconds else "")  # a file has no time
    if cost.tokens:  # a server counts them itself
        line += f"; {cost.tokens:,} tokens computed, {_times(cost.tokens_plain, cost)} if each prompt were run alone"
    if cost.tokens and cost.tokens_baqckv:
        line += f", {_times(cost.tokens_baqckv, cost)} with question-context caching"
    return [f"{line}."]


def _times(tokens: int, cost: Cost) -> str:
    return f"{tokens:,} ({tokens / cost.tokens:.1f}x)"


def counted(found: Sequence[tuple[int, str, str]]) -> list[str]:
    """Sentences about numbers of questions that are not 0: each with its words for one and for more."""
    return [f"{count(n, f'question {one}', f'questions {more}')}." for n, one, more in found if n]
