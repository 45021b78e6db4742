"""Provenance of a result as text: settings, skipped questions and cost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from unslant.models import ChatCost, Cost
from unslant.reports import Page
from unslant.reports.numbers import count, percent

if TYPE_CHECKING:
    from unslant.responses import Responses

FEW = 0.05
"""Headlines tell any larger share of replies that are missing or are no answer."""


def settings_rows(meta: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Names and values of model, questions and settings in a run's metadata."""
    named = {"models": "models", "model": "model", "recorded": "recorded in", "questions": "questions"}
    rows = [(words, meta[key]) for key, words in named.items() if meta.get(key)]
    rows += [("digest of the questions", str(meta["questions_digest"])[:16])] if meta.get("questions_digest") else []
    settings = meta.get("settings")
    rows += sorted(settings.items()) if isinstance(settings, Mapping) else []
    rows += [("engine", meta["engine"])] if meta.get("engine") else []
    told = _identity(meta)
    rows += [(name, told[name][:16]) for name in ("weights", "dtype", "device") if told.get(name)]
    block = meta.get("provenance", {})
    made = [
        ("made with", ", ".join(f"{name} {version}" for name, version in block.get("versions", {}).items())),
        ("on", block.get("platform")),
        ("command", shlex.join(["unslant", *block["command"]]) if block.get("command") else ""),
        ("day (UTC)", block.get("date")),
    ]
    return tuple((str(name), _words(value)) for name, value in (*rows, *(row for row in made if row[1])))


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in sorted(value.items()))
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def mostly_failed(meta: Mapping[str, Any]) -> str:
    """Of which models most requests failed, and why; empty if of none."""
    told = [
        f"{cost['failed']:,} of {count(cost['requests'], 'request')} to {name} failed ({cost['error']})"
        for name, cost in meta.get("requests", {}).items()
        if 2 * cost["failed"] > cost["requests"]
    ]
    return "; ".join(told)


def unanswered(responses: Responses) -> str:
    """That more than half of the responses have no score, or none is an answer, and why; empty if neither is so.

    Every study gives a verdict only on at least half of what was asked. A score that was refused counts as failed; an
    unreadable reply does not (it is not right), unless there is nothing else.
    """
    from unslant.responses.table import GENERATE

    table, name = responses.table, responses.meta.get("model", "the model")
    counts = table.group_by(["status", "elicitation"]).aggregate([([], "count_all")]).to_pylist()
    lost = {"error", "refused"}
    failed = sum(
        one["count_all"] for one in counts if one["status"] in ({"error"} if one["elicitation"] == GENERATE else lost)
    )
    if 2 * failed > len(table):
        row = next(row for row in table.select(["status", "raw"]).to_pylist() if row["status"] in lost)
        return f"{failed:,} of {count(len(table), 'response')} of {name} failed ({row['raw']})"
    if counts and not any(one["status"] == "ok" for one in counts):
        return f"none of {count(len(table), 'response')} of {name} is an answer"
    return ""


def request_lines(meta: Mapping[str, Any]) -> list[str]:
    """What the replies of each model have cost, a line each."""
    lines = []
    for name, values in meta.get("requests", {}).items():
        cost = ChatCost.of(values)
        more = [f"{n:,} {word}" for n, word in ((cost.recalled, "from the store"), (cost.failed, "failed")) if n]
        line = f"{name}: {count(cost.requests, 'request')}" + (f" ({', '.join(more)})" if more else "")
        if cost.input_tokens or cost.output_tokens:
            line += f"; {cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
            line += f", {cost.reasoning_tokens:,} of them reasoning" if cost.reasoning_tokens else ""
        line += (
            f"; the tokens of {count(cost.uncounted, 'reply', 'replies')} were not counted" if cost.uncounted else ""
        )
        lines.append(f"{line}.")
    return lines


def with_admissions(page: Page, meta: Mapping[str, Any]) -> Page:
    """A page that says what the reader must know of how the model was asked (:func:`unslant.models.facts_of`)."""
    beside, notes = [], request_lines(meta)
    if meta.get("offline"):
        beside.append("offline: scores are from the store, the server was not asked")
    if (shard := meta.get("shard")) and shard["of"] > 1:
        beside.append(f"shard {shard['index']} of {shard['of']} only")
    if meta.get("incomplete"):
        beside.append("the model lacks weights")
        notes.append(f"Random numbers stand in place of missing weights: {meta['incomplete']}.")
    notes += _systems(meta)
    if meta.get("apart"):
        notes.append(f"Nothing was stored or recalled: {meta['apart']}.")
    if "half_precision" in meta:
        notes.append(_half_precision(meta))
    if found := meta.get("special_tokens"):
        became = "read as text" if found["read_as"] == "text" else "read as those tokens, not as text"
        notes.append(f"Special tokens are spelled in {count(len(found['questions']), 'question')}; {became}.")
    headline = f"{page.headline} ({'; '.join(beside)})" if beside else page.headline
    return replace(page, headline=headline, notes=(*page.notes, *notes))


def _systems(meta: Mapping[str, Any]) -> list[str]:
    """That a server named several systems, or gave a prompt another answer each time."""
    again = (
        "prompts asked again got the same scores" if "answered_by" in meta else "whether replies changed is not known"
    )
    asked = {meta.get("model", "the server"): meta, **meta.get("requests", {})}
    found = []
    for name, told in asked.items():
        systems = [one for one in told.get("answered_by", ()) if one["system_fingerprint"]]
        if len(systems) > 1:
            words = [
                f"{one['system_fingerprint']} ({count(one['replies'], 'reply', 'replies')}"
                + (f", the first to question {one['first']!r})" if one.get("first") else ")")
                for one in systems
            ]
            found.append(f"The server of {name} named {len(systems)} systems: {', '.join(words)}; {again}.")
    if meta.get("unsteady"):
        found.append(
            f"{count(meta['unsteady'], 'prompt')} asked again got other scores each time: the server adds noise."
        )
    return found


def with_settings(page: Page, block: Mapping[str, Any]) -> Page:
    """A page that names every setting, among them the seed, and versions, platform, command and day."""
    known = {name for name, _ in page.settings}
    settings = {name: value for name, value in block.get("settings", {}).items() if value not in (None, "", [], {})}
    rows = settings_rows({"settings": settings, "provenance": block})
    return replace(page, settings=(*page.settings, *(row for row in rows if row[0] not in known)))


def worst_first(found: Sequence[tuple[float, str]]) -> tuple[str, str]:
    """Of shares with their words, the largest for a headline, beginning with a semicolon, and the others for a lead."""
    told = [words for _, words in sorted(found, key=lambda one: -one[0])]
    more = f", and {count(len(told) - 1, 'other case')}" * (len(told) > 1)
    return f"; {told[0]}{more}" if told else "", "; ".join(told[1:])


def _half_precision(meta: Mapping[str, Any]) -> str:
    found, dtype = meta["half_precision"], _identity(meta).get("dtype", "half precision")
    if not found:
        why = "there was no memory for that"
        if "quantization" in meta:
            why = "its weights are quantised"
        elif parts := _identity(meta).get("tensor parallel"):
            why = f"it is cut into {parts} parts"
        return f"Scored in {dtype}; not compared with float32, for {why}."
    same = "" if found["argmax"] is None else f"the same answer to {percent(found['argmax'])}, "
    return (
        f"Scored in {dtype}; compared with float32 on {count(found['prompts'], 'prompt')}: {same}log-probabilities "
        f"{found['mean']:.3f} apart on average, {found['largest']:.3f} at most."
    )


def _identity(meta: Mapping[str, Any]) -> Mapping[str, str]:
    identity = meta.get("identity")
    return identity if isinstance(identity, Mapping) else {}


def asked_about(meta: Mapping[str, Any], *more: str) -> str:
    """Model, questions and further facts: ``fair on embedded: 400 questions``."""
    about = f"{meta.get('model', 'model')} on {meta.get('questions') or meta.get('recorded') or 'responses'}"
    return ": ".join(filter(None, (about, ", ".join(filter(None, more)))))


def logged_lines(meta: Mapping[str, Any]) -> list[str]:
    """What is to be known of answers that another harness logged."""
    logged = meta.get("logged")
    if not isinstance(logged, Mapping):
        return []
    told = {
        "texts": "Scored were the texts of options, which were not shown together: labels here are only their numbers.",
        "words": "Answers were read from the logged replies by unslant's own reader.",
        "replies": "Scores are those of the labels at the token of each answer, which unslant's own reader found.",
    }
    found = [told[str(logged["scores"])]] if logged.get("scores") in told else []
    words = {"replies": "the replies' words", "labels": "those scores", "first_tokens": "their first tokens"}
    right = [(logged[f"right_by_{key}"], said) for key, said in words.items() if f"right_by_{key}" in logged]
    counts = [f"{hits:,} of {n:,} by {said}" for (hits, n), said in right]
    found += [f"Right: {', '.join(counts)}."] if len(counts) > 1 else []
    found += list(logged.get("notes", ()))
    return found + [f"Not used: {count:,} ({reason})." for reason, count in dict(logged.get("dropped", {})).items()]


def skipped_lines(meta: Mapping[str, Any]) -> list[str]:
    """Lines skipped when the questions were loaded."""
    loading = meta.get("loading")
    skipped = loading.get("skipped", {}) if isinstance(loading, Mapping) else {}
    return [f"{count(n, 'line')} skipped: {reason}." for reason, n in skipped.items()]


def cost_lines(cost: Cost) -> list[str]:
    """Prompts, time and tokens in one line; empty if nothing was scored."""
    if not cost.prompts:
        return []
    line = count(cost.prompts, "prompt") + (
        f" in {cost.seconds:.1f} s" if cost.seconds else ""
    )  # recorded files have no time
    cached = cost.tokens_plain - cost.tokens
    if cost.tokens and cost.tokens_baqckv:
        line += f"; {cost.tokens:,} tokens computed{_ordinary(cost)}, {_times(cost.tokens_plain, cost)} if each prompt "
        line += "were run alone"
        line += f", {_times(cost.tokens_baqckv, cost)} with question-context caching"
    elif cost.tokens and cached:
        line += f"; {cached:,} of {cost.tokens_plain:,} tokens from the server's prefix cache, by its own count"
        line += _ordinary(cost)
    elif cost.tokens:
        line += f"; {cost.tokens:,} tokens computed{_ordinary(cost)}"
    return [f"{line}."]


def _ordinary(cost: Cost) -> str:
    if not cost.tokens_ordinary:
        return ""
    return f" ({cost.ordinary_runs:.3g} ordinary runs: the published order alone, whole prompts)"


def _times(tokens: int, cost: Cost) -> str:
    return f"{tokens:,} ({tokens / cost.tokens:.1f}x)"


def counted(found: Sequence[tuple[int, str, str]]) -> list[str]:
    """Sentences about nonzero counts of questions, given as count, singular and plural wording."""
    return [f"{count(n, f'question {one}', f'questions {more}')}." for n, one, more in found if n]
