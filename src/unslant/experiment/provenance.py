"""Provenance of a result as text: settings, skipped questions and cost."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from unslant.models import ChatCost, Cost
from unslant.reports import Page
from unslant.reports.numbers import count, percent, significant
from unslant.responses import Run
from unslant.responses.provenance import Provenance
from unslant.responses.run import Agreement

if TYPE_CHECKING:
    from unslant.responses import Responses

FEW = 0.05
"""Headlines mention any larger share of replies that are missing or contain no answer."""


def settings_rows(run: Run) -> tuple[tuple[str, str], ...]:
    """Names and values of model, questions and settings of a run; the two columns of a table."""
    block = run.provenance
    rows: list[tuple[str, object]] = [
        ("models", run.models),
        ("model", run.model),
        ("recorded in", run.recorded),
        ("questions", run.questions),
        ("digest of the questions", run.questions_digest[:16]),
    ]
    rows = [(name, value) for name, value in rows if value]
    rows += sorted(run.settings.items())
    known = [("engine", run.engine), *((name, run.identity.get(name, "")[:16]) for name in _OF_THE_MODEL)]
    made = [
        ("made with", ", ".join(f"{name} {version}" for name, version in block.versions.items())),
        ("on", block.platform),
        ("command", shlex.join(["unslant", *block.command]) if block.command else ""),
        ("day (UTC)", block.date),
    ]
    rows += [(name, value) for name, value in (*known, *made) if value]
    return tuple((name, _words(value)) for name, value in rows)


_OF_THE_MODEL = ("weights", "dtype", "device")
"""Entries of an identity that readers of a report look for."""


def _words(value: object) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in sorted(value.items()))
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def mostly_failed(requests: Mapping[str, ChatCost]) -> str:
    """The models most of whose requests failed, and why; empty if there are none."""
    return "; ".join(
        f"{cost.failed:,} of {count(cost.requests, 'request')} to {name} failed ({cost.error})"
        for name, cost in requests.items()
        if 2 * cost.failed > cost.requests
    )


def unanswered(responses: Responses) -> str:
    """That more than half of the responses have no score, or none is an answer, and why; empty if neither is so.

    Every study gives a verdict only on at least half of what was asked. A score that was refused counts as failed, and
    so does a reply without any text; an unreadable reply does not (it is not right), unless there is nothing else.
    """
    import pyarrow.compute as pc

    from unslant.responses.table import GENERATE

    table, name = responses.table, responses.run.model or "the model"
    status, raw = table["status"], pc.coalesce(table["raw"], "")
    refused = pc.and_(pc.equal(status, "refused"), pc.not_equal(table["elicitation"], GENERATE))
    empty = pc.and_(pc.equal(status, "unparsed"), pc.equal(pc.utf8_trim_whitespace(raw), ""))
    failed = pc.or_(pc.or_(pc.equal(status, "error"), refused), empty)
    n_failed = pc.sum(failed).as_py() or 0
    if 2 * n_failed > len(table):
        replied = pc.filter(table["elicitation"], failed)[0].as_py() == GENERATE
        why = pc.filter(raw, failed)[0].as_py().strip() or ("an empty reply" if replied else "without a score")
        return f"{n_failed:,} of {count(len(table), 'response')} of {name} failed ({why})"
    if len(table) and not pc.any(pc.equal(status, "ok")).as_py():
        return f"none of {count(len(table), 'response')} of {name} is an answer"
    return ""


def request_lines(requests: Mapping[str, ChatCost]) -> list[str]:
    """What the replies of each model have cost, a line each."""
    lines = []
    for name, cost in requests.items():
        line = f"{name}: {count(cost.requests, 'request')}" + (f" ({cost.failed:,} failed)" if cost.failed else "")
        if cost.input_tokens or cost.output_tokens:
            line += f"; {cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
            line += f", {cost.reasoning_tokens:,} of them reasoning" if cost.reasoning_tokens else ""
        line += (
            f"; the tokens of {count(cost.uncounted, 'reply', 'replies')} were not counted" if cost.uncounted else ""
        )
        lines.append(f"{line}.")
    return lines


def with_caveats(page: Page, run: Run) -> Page:
    """A page that says what the reader must know of how the model was asked."""
    caveats, notes = [], request_lines(run.requests)
    if run.offline:
        caveats.append("Offline: scores are from the store; the server was not asked.")
    if run.shard and run.shard.of > 1:
        caveats.append(f"Shard {run.shard.index} of {run.shard.of} only.")
    if run.incomplete:
        caveats.append("The model has missing weights.")
        notes.append(f"Random numbers replace missing weights: {run.incomplete}.")
    notes += _systems(run)
    if run.apart:
        notes.append(f"Nothing was stored or recalled: {run.apart}.")
    if run.half_precision:
        notes.append(_half_precision(run, run.half_precision))
    if spelled := run.special_tokens:
        became = "read as text" if spelled.read_as == "text" else "read as those tokens, not as text"
        notes.append(f"Special tokens are spelled in {count(len(spelled.questions), 'question')}; {became}.")
    return replace(page, caveats=(*page.caveats, *caveats), notes=(*page.notes, *notes))


def _systems(run: Run) -> list[str]:
    """That a server named several systems, or gave a prompt another answer each time."""
    found = []
    systems = [one for one in run.answered_by if one.system_fingerprint]
    if len(systems) > 1:
        words = [
            f"{one.system_fingerprint} ({count(one.replies, 'reply', 'replies')}"
            + (f", the first to question {one.first!r})" if one.first else ")")
            for one in systems
        ]
        again = "whether replies changed is not known" if run.requests else "prompts asked again got the same scores"
        found.append(f"The server of {run.name} named {len(systems)} systems: {', '.join(words)}; {again}.")
    if run.unsteady:
        found.append(f"{count(run.unsteady, 'prompt')} got other scores when asked again: the server adds noise.")
    return found


def with_settings(page: Page, block: Provenance) -> Page:
    """A page that names every setting, among them the seed, and versions, platform, command and day."""
    known = {name for name, _ in page.settings}
    settings = {name: value for name, value in block.settings.items() if value not in (None, "", [], {})}
    rows = settings_rows(Run(settings=settings, provenance=block))
    return replace(page, settings=(*page.settings, *(row for row in rows if row[0] not in known)))


def worst_first(found: Sequence[tuple[float, str]]) -> tuple[str, str]:
    """Of shares with their words, the largest for a headline, beginning with a semicolon, and the others for a lead."""
    sentences = [words for _, words in sorted(found, key=lambda one: -one[0])]
    more = f", and {count(len(sentences) - 1, 'other case')}" * (len(sentences) > 1)
    return f"; {sentences[0]}{more}" if sentences else "", "; ".join(sentences[1:])


def _half_precision(run: Run, found: Agreement) -> str:
    dtype = run.identity.get("dtype", "half precision")
    if not found.prompts:
        why = "there was no memory for that"
        if run.quantization:
            why = "its weights are quantised"
        elif parts := run.identity.get("tensor parallel"):
            why = f"it is cut into {parts} parts"
        return f"Scored in {dtype}; not compared with float32, for {why}."
    same = "" if found.argmax is None else f"the same answer to {percent(found.argmax)}, "
    return (
        f"Scored in {dtype}; compared with float32 on {count(found.prompts, 'prompt')}: {same}log-probabilities "
        f"{found.mean:.3f} apart on average, {found.largest:.3f} at most."
    )


def asked_about(run: Run, *more: str) -> str:
    """Model, questions and further facts: ``fair on embedded: 400 questions``."""
    about = f"{run.model or 'model'} on {run.questions or run.recorded or 'responses'}"
    return ": ".join(filter(None, (about, ", ".join(filter(None, more)))))


_LOGGED_SCORES = {
    "texts": "Scored were the texts of options, which were not shown together: labels here are only their numbers.",
    "listed": "Scored were the texts of options, which the prompt lists: labels here are only their places there.",
    "words": "Answers were read from the logged replies by unslant's own reader.",
    "replies": "Scores are those of the labels at the token of each answer, which unslant's own reader found.",
}


def logged_lines(run: Run) -> list[str]:
    """What is to be known of answers that another harness logged."""
    logged = run.logged
    if logged is None:
        return []
    lines = [_LOGGED_SCORES[logged.scores]] if logged.scores in _LOGGED_SCORES else []
    right = {
        "the replies' words": logged.right_by_replies,
        "those scores": logged.right_by_labels,
        "their first tokens": logged.right_by_first_tokens,
    }
    counts = [f"{hits[0]:,} of {hits[1]:,} by {words}" for words, hits in right.items() if hits]
    lines += [f"Right: {', '.join(counts)}."] if len(counts) > 1 else []
    lines += logged.notes
    return lines + [f"Not used: {n:,} ({reason})." for reason, n in logged.dropped.items()]


def caveats_of(runs: Sequence[Run]) -> tuple[str, ...]:
    """What must be known before the first number, each once: what loading the questions of these runs met, and where
    a harness's own score of logged answers is another one than ours."""
    loaded = [caveat for run in runs if run.loading for caveat in run.loading.caveats]
    logged = [score.caveat for run in runs if run.logged for score in run.logged.reported]
    return tuple(dict.fromkeys(filter(None, (*loaded, *logged))))


def spent(*runs: Run) -> str:
    """What runs cost together, in one line: requests and tokens, or prompts and seconds; empty if nothing was asked."""
    replies = sum((run.replies for run in runs), ChatCost())
    if replies.requests:
        tokens = replies.input_tokens + replies.output_tokens
        return count(replies.requests, "request") + f", {tokens:,} tokens" * bool(tokens) + "."
    prompts, seconds = sum(run.cost.prompts for run in runs), sum(run.cost.seconds for run in runs)
    return f"{count(prompts, 'prompt')}{f' in {significant(seconds)} s' if seconds else ''}." if prompts else ""


def in_ordinary_runs(runs: float) -> str:
    """A cost in running text: ``5.1 times an ordinary run``."""
    times = significant(runs, 2)
    return "as much as an ordinary run" if times == "1" else f"{times} times an ordinary run"


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
    return f" ({significant(cost.ordinary_runs)} ordinary runs: the published order alone, whole prompts)"


def _times(tokens: int, cost: Cost) -> str:
    return f"{tokens:,} ({tokens / cost.tokens:.1f}x)"


def counted(found: Sequence[tuple[int, str, str]]) -> list[str]:
    """Sentences about nonzero counts of questions, given as count, singular and plural wording."""
    return [f"{count(n, f'question {one}', f'questions {more}')}." for n, one, more in found if n]
