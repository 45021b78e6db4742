"""What the pages of all studies share: settings, caveats and cost as text, and the panel of shortcuts."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from unslant.errors import printable, shortened
from unslant.reports import Later
from unslant.reports.numbers import count, percent, significant
from unslant.responses import GENERATE, Responses, Run
from unslant.responses.provenance import Agreement, ChatCost, Cost, Provenance

if TYPE_CHECKING:
    from unslant.metrics.shortcuts import Shortcut
    from unslant.reports import Page, Panel

FEW = 0.05
"""Share of replies that are missing or contain no answer above which headlines mention it."""
_STEADY = 0.25
"""Share of the prompts asked again that may get other scores before the first screen says so: llama.cpp's cache moves
one in twelve."""


def settings_rows(run: Run) -> tuple[tuple[str, str], ...]:
    """Names and values of the model, questions and settings of a run, for a table of two columns."""
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
    origin = [
        ("engine", run.engine),
        *((name, run.identity.get(name, "")[:16]) for name in ("weights", "dtype", "device")),
        ("made with", ", ".join(f"{name} {version}" for name, version in block.versions.items())),
        ("on", block.platform),
        ("command", shlex.join(["unslant", *block.command]) if block.command else ""),
        ("day (UTC)", block.date),
    ]
    rows += [(name, value) for name, value in origin if value]
    return tuple((name, _words(value)) for name, value in rows)


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
    """Why a study may give no verdict: most responses have no score, or none is an answer; empty if it may.

    A refused score counts as failed, and so does a reply without text. An unreadable reply does not, since it is wrong
    rather than missing, unless all are unreadable.
    """
    import pyarrow.compute as pc

    table, name = responses.table, responses.run.model or "the model"
    status, raw = table["status"], pc.coalesce(table["raw"], "")
    refused = pc.and_(pc.equal(status, "refused"), pc.not_equal(table["elicitation"], GENERATE))
    empty = pc.and_(pc.equal(status, "unparsed"), pc.equal(pc.utf8_trim_whitespace(raw), ""))
    failed = pc.or_(pc.or_(pc.equal(status, "error"), refused), empty)
    n_failed = pc.sum(failed).as_py() or 0
    if 2 * n_failed > len(table):
        first = table.filter(failed).slice(0, 1).to_pylist()[0]
        missing = "no reply" if first["status"] == "error" else "an empty reply"
        why = in_one_line(first["raw"] or "") or (missing if first["elicitation"] == GENERATE else "without a score")
        return f"{n_failed:,} of {count(len(table), 'response')} of {name} failed ({why})"
    if len(table) and not pc.any(pc.equal(status, "ok")).as_py():
        return f"none of {count(len(table), 'response')} of {name} contains an answer{why_unread(responses.run)}"
    return ""


def why_unread(run: Run, share: float = 1.0) -> str:
    """The end of a sentence on a share of replies without an answer: a local model may need its chat template.

    Servers always use theirs. Empty where it was used, or for fewer than half of the replies.
    """
    local = any(model.digest for model in run.provenance.models)
    likely = share > 0.5 and local and run.settings.get("chat") is False
    return "; a chat model may have been asked without --chat=True" * likely


def in_one_line(reason: str) -> str:
    """What a log holds in place of a reply, such as a traceback of 2,000 characters, for a sentence."""
    return shortened(printable(reason.strip()), 300)


def request_lines(requests: Mapping[str, ChatCost]) -> list[str]:
    """A line on the cost of the replies of each model."""
    lines = []
    for name, cost in requests.items():
        line = f"{name}: {count(cost.requests, 'request')}" + (f" ({cost.failed:,} failed)" if cost.failed else "")
        if cost.input_tokens or cost.output_tokens:
            line += f"; {cost.input_tokens:,} tokens in, {cost.output_tokens:,} out"
            line += f", {cost.reasoning_tokens:,} of them reasoning" if cost.reasoning_tokens else ""
        if cost.uncounted:
            line += f"; the tokens of {count(cost.uncounted, 'reply', 'replies')} were not counted"
        lines.append(f"{line}.")
    return lines


def with_caveats(page: Page, run: Run) -> Page:
    """The page with caveats and notes on how the model was asked."""
    caveats, notes = [], [*request_lines(run.requests), *(run.loading.sentences if run.loading else ())]
    if run.offline:
        caveats.append("Offline: scores are from the store; the server was not asked.")
    if run.incomplete:
        caveats.append("The model has missing weights.")
        notes.append(f"Random numbers replace missing weights: {run.incomplete}.")
    notes += _systems(run)
    if run.unsteady:
        prompts = f"{run.unsteady:,} of {count(run.asked_again, 'prompt')} asked again"
        noise = f"The server adds noise: {prompts} got other scores."
        (caveats if run.unsteady > _STEADY * run.asked_again else notes).append(noise)
    if run.apart:
        notes.append(f"Nothing was stored or recalled: {run.apart}.")
    if run.half_precision:
        notes.append(_half_precision(run, run.half_precision))
    notes += run.chat_template
    if special := run.special_tokens:
        reading = "read as text" if special.read_as == "text" else "read as those tokens, not as text"
        notes.append(f"Texts of special tokens occur in {count(len(special.questions), 'question')}; {reading}.")
    return replace(page, caveats=(*page.caveats, *caveats), notes=Later(partial(chain, page.notes, notes)))


def _systems(run: Run) -> list[str]:
    """Notes on a server that named several systems (its fingerprints)."""
    notes = []
    systems = [one for one in run.answered_by if one.system_fingerprint]
    if len(systems) > 1:
        words = [
            f"{one.system_fingerprint} ({count(one.replies, 'reply', 'replies')}"
            + (f", the first to question {one.first!r})" if one.first else ")")
            for one in systems
        ]
        scores = f"prompts asked again got {'other' if run.unsteady else 'the same'} scores"
        again = "whether this changed replies is unknown" if run.requests else scores
        notes.append(f"The server of {run.name} named {len(systems)} systems: {', '.join(words)}; {again}.")
    return notes


def with_settings(page: Page, block: Provenance) -> Page:
    """The page with every setting, including the seed, and versions, platform, command and day."""
    names = {name for name, _ in page.settings}
    settings = {name: value for name, value in block.settings.items() if value not in (None, "", [], {})}
    rows = settings_rows(Run(settings=settings, provenance=block))
    return replace(page, settings=(*page.settings, *(row for row in rows if row[0] not in names)))


def _half_precision(run: Run, agreement: Agreement) -> str:
    dtype = run.identity.get("dtype", "half precision")
    if not agreement.prompts:
        why = "there was no memory for that"
        if run.quantization:
            why = "its weights are quantised"
        elif parts := run.identity.get("tensor parallel"):
            why = f"it is cut into {parts} parts"
        return f"Scored in {dtype}; not compared with float32, because {why}."
    same = "" if agreement.argmax is None else f"the same answer to {percent(agreement.argmax)}, "
    return (
        f"Scored in {dtype}; compared with float32 on {count(agreement.prompts, 'prompt')}: {same}log-probabilities "
        f"{agreement.mean:.3f} apart on average, {agreement.largest:.3f} at most."
    )


def asked_about(run: Run, *more: str) -> str:
    """Model, questions and further facts: ``fair on embedded: 400 questions``."""
    about = f"{run.model or 'model'} on {run.questions or run.recorded or 'responses'}"
    return ": ".join(filter(None, (about, ", ".join(filter(None, more)))))


_LOGGED_SCORES = {
    "texts": "The scores are of option texts, which were not shown together: labels here only number the options.",
    "listed": "The scores are of option texts, which the prompt lists: labels here are only their places in the list.",
    "words": "Answers were read from the logged replies by unslant's own reader.",
    "replies": "The scores are of the labels at the token of each answer, which unslant's own reader located.",
}


def logged_lines(run: Run) -> list[str]:
    """Notes on answers that another harness logged."""
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
    """Caveats before the first number, each once: problems of the question files of these runs, parts of logs that are
    not read, other readings of logs, scores of logged answers where the harness and unslant disagree, and shards."""
    loaded = [caveat for run in runs if run.loading for caveat in run.loading.caveats]
    logged = [caveat for run in runs if run.logged for caveat in run.logged.caveats]
    scores = [score.caveat for run in runs if run.logged for score in run.logged.reported]
    shards = [(run.name, run.shard) for run in runs if run.shard and run.shard.of > 1]
    only = [f"{f'{name}: s' if len(runs) > 1 else 'S'}hard {one.index} of {one.of} only." for name, one in shards]
    return tuple(dict.fromkeys(filter(None, (*loaded, *logged, *scores, *only))))


def spent(*runs: Run) -> str:
    """The joint cost of runs in one line: requests and tokens, or prompts and seconds; empty if nothing was asked."""
    replies = sum((run.replies for run in runs), ChatCost())
    if replies.requests:
        tokens = replies.input_tokens + replies.output_tokens
        return count(replies.requests, "request") + f", {tokens:,} tokens" * bool(tokens) + "."
    cost = sum((run.cost for run in runs), Cost())
    seconds = f" in {significant(cost.seconds)} s" if cost.prompts and cost.seconds else ""
    return f"{_prompts(cost)}{seconds}." if cost.prompts or cost.reused else ""


def _prompts(cost: Cost) -> str:
    """Prompts asked, with how many of them came from the store: the same total after any earlier runs."""
    if not cost.reused:
        return count(cost.prompts, "prompt")
    reused = f"{cost.reused:,}" if cost.prompts else "all"
    return f"{count(cost.prompts + cost.reused, 'prompt')} ({reused} from the store)"


def in_ordinary_runs(runs: float) -> str:
    """A cost in running text: ``5.1 times an ordinary run``."""
    times = significant(runs, 2)
    return "as much as an ordinary run" if times == "1" else f"{times} times an ordinary run"


def cost_lines(cost: Cost) -> list[str]:
    """Prompts, time and tokens in one line; empty if nothing was asked."""
    if not cost.prompts and not cost.reused:
        return []
    line = _prompts(cost) + f" in {cost.seconds:.1f} s" * bool(cost.seconds)  # recorded files have none
    cached, by_prefix = cost.tokens_plain - cost.tokens, cost.tokens_baqckv
    if cost.tokens and cached and not by_prefix:
        line += f"; {cached:,} of {cost.tokens_plain:,} tokens from the server's prefix cache, by its own count"
    elif cost.tokens:
        line += f"; {cost.tokens:,} tokens computed"
    if cost.tokens and cost.tokens_ordinary:
        line += f" ({significant(cost.ordinary_runs)} ordinary runs: the published order alone, whole prompts)"
    if cost.tokens and by_prefix:
        alone, caching = (f"{n:,} ({n / cost.tokens:.1f}x)" for n in (cost.tokens_plain, by_prefix))
        line += f", {alone} if each prompt were run alone, {caching} with question-context caching"
    return [f"{line}."]


def shortcut_panel(shortcuts: Sequence[Shortcut], id: str) -> Panel:
    """The scores of test-taking shortcuts, and whether wrong answers follow them."""
    from unslant.reports import Column, Figure

    columns = [
        *map(Column.of, ("shortcuts.score", "shortcuts.guess")),
        Column("earns", explanation="the shortcut alone scores above guessing"),
        *map(Column.of, ("follow", "follow_chance", "shortcuts.excess")),
        Column("is followed", explanation="more than by chance"),
        Column.of("applies"),
    ]
    rows = [
        {
            **vars(one),
            "shortcut": one.name,
            "earns": "yes" if one.earns else "not shown",
            "excess": one.excess,
            "is followed": "yes" if one.followed else "not shown",
        }
        for one in shortcuts
    ]
    return Figure(f"{id}-table", "Shortcuts", ["shortcut"], columns, rows).panel(
        "Test-taking shortcuts",
        "Score of each shortcut alone, and how often a wrong answer matches a wrong shortcut.",
        id=id,
    )
