"""What an audit costs: estimated before anything is asked (``--dry-run``), and afterwards in ordinary runs.

An ordinary run asks the published order of every question alone, each prompt run whole.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from statistics import fmean
from typing import TYPE_CHECKING

from unslant.auditing import AuditOutputs, AuditSettings
from unslant.auditing.orders import (
    MOST_WHOLE,
    PART,
    WHOLE,
    OrderDesign,
    audit_presentations,
    orders_in_words,
    square_presentations,
)
from unslant.metrics.order_curve import set_names
from unslant.models import Cost, GenerateOptions, ModelOptions, ScoringModel
from unslant.models.base import Encoded, TokenizingModel
from unslant.models.open import address_of, open_model
from unslant.presentations import (
    Presentation,
    auto_square,
    given_order,
    orders_for,
    parse_labels,
    present,
)
from unslant.prompts import Cloze, Prompt
from unslant.questions import Question
from unslant.reports.numbers import about, count, significant

if TYPE_CHECKING:
    from unslant.auditing.words import Plan
    from unslant.prompts import Writer

CHARACTERS_A_TOKEN = 4
"""Approximate, for English, where no tokenizer is available."""
SAMPLED = 500
"""Prompts whose tokens are counted, at most; the others are taken to be as long on average."""
COUNTED = 20
"""Questions, at most, whose tokens are counted for the cost of other sets of orders."""
_SHARE = 6
"""Of more questions than that one in six, down to half as many: counting is to cost little compared with asking."""
_AT_ONCE = 1_000
MEASURED = 1.0
"""Seconds of scoring from which the time of all is estimated."""
AT_FIRST = 2
"""Questions in the first call that is measured; each next one has twice as many."""


def ordinary_cost(
    model: ScoringModel, spent: Cost, design: OrderDesign, questions: Iterable[Question]
) -> tuple[int, dict[str, float]]:
    """What an ordinary run costs, and in such runs an audit in other sets of orders; nothing is run.

    Args:
        spent: the cost of the run so far.
        design: what was asked.
        questions: those asked here; fewer than the design's in a shard.

    Returns:
        ``tokens_ordinary`` (see :class:`unslant.models.base.Cost`): counted exactly for a local model; for any other
        model, the published order is taken to have as many tokens as the mean prompt. And the ordinary runs of an audit
        in the orders asked and in every smaller set, from :data:`COUNTED` questions or fewer of the commonest number of
        options; empty where tokens cannot be counted.
    """
    local, asked, everyone = model.unwrapped, list(questions), design.questions.questions
    if not isinstance(local, TokenizingModel):
        mean = spent.tokens_plain / spent.prompts if spent.prompts else 0
        return round(mean * len(asked)), {}
    counter = TokenCounter(local, design)
    ordinary = sum(counter.whole(asked[at : at + _AT_ONCE]) for at in range(0, len(asked), _AT_ONCE))
    kinds = Counter((len(question.options), question.pinned) for question in everyone if question.movable)
    if not kinds:
        return ordinary, {}
    kind = kinds.most_common(1)[0][0]
    alike = [question for question in everyone if (len(question.options), question.pinned) == kind]
    most = COUNTED if len(alike) <= COUNTED else min(COUNTED, max(COUNTED // 2, len(alike) // _SHARE))
    sample = alike[:: -(-len(alike) // most)]
    once = counter.added(sample, [page for _, page in design.controls])
    orders = design.settings.orders
    every = orders if design.full is None else WHOLE
    n, each = len(everyone), counter.whole(sample) / len(sample)
    runs = {}
    # the largest set first: its prompts are tokenized in one call, and most of the others' are among them
    for name in (every, *set_names(len(alike[0].movable), len(orders_for(alike[0], every)))):
        computed, shared = counter.tree(sample, name)
        total = (computed - shared) * n / len(sample) + shared + once
        runs[name] = round(total / (each * n), 4)
    if design.full is not None:
        part = len(design.full) / n
        runs[orders] = round(part * runs[every] + (1 - part) * runs.get("latin", runs[every]), 4)
    return ordinary, runs


class TokenCounter:
    """Counts the tokens of questions under sets of orders, as an audit would compute them; runs nothing."""

    def __init__(self, model: TokenizingModel, design: OrderDesign) -> None:
        self.model, self.design = model, design
        # sets of orders have many presentations in common
        self._known: dict[tuple[str, tuple[int, ...], tuple[str, ...]], list[Encoded]] = {}

    def whole(self, questions: Iterable[Question]) -> int:
        """Tokens of the published order, each prompt whole."""
        from unslant.models.hf import other_costs

        encoded = self.model.encode(self._prompts(self._published(questions)))
        return other_costs(encoded, [""] * len(encoded))[0]

    def tree(self, questions: Iterable[Question], orders: str) -> tuple[int, int]:
        """Distinct tokens of an audit's prompts, and how many of them begin every prompt."""
        from unslant.models.hf import common_prefix, node_count

        encoded = self._encoded(page for question in questions for _, page in self.design.in_orders(question, orders))
        first = encoded[0].context
        return node_count(encoded), min(common_prefix(first, item.context) for item in encoded)

    def added(self, questions: Iterable[Question], presentations: Iterable[Presentation]) -> int:
        """Distinct tokens that presentations add to those of questions."""
        from unslant.models.hf import node_count

        encoded = self._encoded(self._published(questions))
        return node_count([*encoded, *self._encoded(presentations)]) - node_count(encoded)

    def _published(self, questions: Iterable[Question]) -> list[Presentation]:
        return [page for question in questions for _, page in self.design.published(question)]

    def _prompts(self, presentations: Iterable[Presentation]) -> list[Prompt]:
        return [prompt for one in presentations for prompt in self.design.elicitation.prompts(one)]

    def _encoded(self, presentations: Iterable[Presentation]) -> list[Encoded]:
        """Each presentation is written and tokenized once, and kept: for a sample of questions only."""
        by_key = {(one.question_id, one.contents, one.labels): one for one in presentations}
        new = {key: self._prompts([one]) for key, one in by_key.items() if key not in self._known}
        encoded = iter(self.model.encode([prompt for prompts in new.values() for prompt in prompts]))
        self._known |= {key: list(islice(encoded, len(prompts))) for key, prompts in new.items()}
        return [one for key in by_key for one in self._known[key]]


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
    length = _Length(address.model if not address.scheme else "")
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
    prompts = [prompt for several in by_question for prompt in several]
    total = length.total(prompts, len(prompts))
    lines = [
        *questions.report.caveats,
        *["With --until, at most:"] * (settings.until is not None),
        *([f"All orders of {len(design.full)} questions; of more, if intervals need them."] if design.full else []),
        f"{count(len(questions), 'question')}, {count(len(prompts), 'prompt')} to score"
        f"{', and a few without content' * renders_labels}.",
        f"Tokens in the prompts: about {total:,} ({length.how}), each prompt run alone{outputs.money(total)}.",
    ]
    if address.scheme:
        return [*lines, "Time: not known before a server has been asked."]
    spent = _measured(open_model(model, models), by_question)
    shared = spent.tokens / spent.tokens_plain if spent.tokens_plain else 1.0
    return [
        *lines,
        f"Tokens computed: about {total * shared:,.0f}, shared beginnings once: about "
        f"{significant(shared * len(prompts) / len(questions), 2)} ordinary runs.",
        f"Time: about {duration(spent.seconds * len(prompts) / spent.prompts)}, an estimate from "
        f"{count(spent.prompts, 'prompt')} scored in {spent.seconds:.1f} s.",
    ]


def _requests(
    schedule: Plan,
    settings: AuditSettings,
    writer: Writer,
    generate: GenerateOptions,
    outputs: AuditOutputs,
    length: _Length,
) -> list[str]:
    """The estimate of an audit that reads replies."""
    from unslant.auditing.words import FEWEST_CHECKED

    cue = writer.template.render("cloze.cue")
    at_once = [shown for (_, shown), _ in schedule.first]
    further = [shown for several in schedule.further.values() for _, shown in several]
    prompts = [writer.prompt(shown, cue, ()) for shown in (*at_once, *further)]
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
    if settings.adaptive or schedule.part is not None:
        whole = schedule.full + sum(repeat > 0 for _, repeat in schedule.first)
        money = outputs.money(length.total(prompts, whole), whole * limit)
        option = "--adaptive" if settings.adaptive else "--in-all-orders"
        lines.append(f"Without {option}: {count(whole, 'request')}{money}.")
    return lines


def _measured(model: ScoringModel, by_question: Sequence[Sequence[Prompt]]) -> Cost:
    """What scoring some questions costs, drawn at random until about a second is spent.

    The first call is not counted, and of the others only the largest: the larger, the nearer to the audit's own.

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
    """Counts tokens: with the tokenizer of a local model, else by characters."""

    def __init__(self, local: str) -> None:
        if local:
            from transformers import AutoTokenizer

            from unslant.models.hf.sanity import locate

            tokenizer = AutoTokenizer.from_pretrained(locate(local))
            self.of: Callable[[str], int] = lambda text: len(tokenizer(text).input_ids)
            self.how = "by the model's tokenizer"
        else:
            self.of = lambda text: -(-len(text) // CHARACTERS_A_TOKEN)
            self.how = f"{CHARACTERS_A_TOKEN} characters a token"

    def total(self, prompts: Sequence[Prompt], n: int) -> int:
        """Tokens of n prompts, from the mean of an even sample."""
        sample = prompts[:: max(1, len(prompts) // SAMPLED)]
        return round(n * fmean(self.of(prompt.as_text()) for prompt in sample)) if sample else 0


def left_open(questions: Iterable[Question], *, in_words: bool) -> str:
    """What an audit of one order leaves open, and the command that would settle it.

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
    sentence = "One order cannot show whether the order matters; `unslant audit MODEL FILE` would settle it"
    if not tokens:
        return f"{sentence}."
    orders = sorted({n for n, _ in sizes.values()})
    span = f"{orders[0]} to " if len(orders) > 1 else ""
    needed = about(fmean(tokens) * len(movable))
    return f"{sentence}, in {span}{count(orders[-1], 'order')}, about {needed} tokens."
