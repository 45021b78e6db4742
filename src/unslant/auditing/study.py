"""The audit: present every question in many orders and measure how much of the score is bias."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa

from unslant.asking import ask
from unslant.auditing import WHOLE, AuditOutputs, AuditSettings, OrderDesign
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.experiment.job import Asking, Given
from unslant.experiment.result import StudyResult
from unslant.experiment.study import Keywords, Study, function
from unslant.flags import check_unused
from unslant.metrics import Bootstrap, read_scores
from unslant.metrics.accuracy import expected_accuracy
from unslant.metrics.order_curve import balanced_names, next_part, noise_between_squares, set_names
from unslant.metrics.two_phase import TwoPhaseValues
from unslant.models import Cost, GenerateOptions, ScoringModel
from unslant.models.base import Encoded, TokenizingModel
from unslant.presentations import Asked, Presentation, orders_for
from unslant.prompts import Prompt
from unslant.questions import SKEWED, Question
from unslant.responses import SCHEMA, Responses, Run


class Audit(Study[AuditSettings]):
    """Measure how much of a score depends on the order and labels of options.

    Without arguments, audits the reference model prefers-a on embedded questions that often have A as the answer.

    Models that return only text (inspect:...) are audited by their replies, as are others with --elicit=generate:
    each question in its rotations, at most 6. --dry-run estimates the cost; --adaptive asks further orders only where
    the given and the reversed order get different answers.

    With --until=0.02, questions are asked in random order, some in a Latin square of option orders, until the score
    is known to +-0.02.

    With --log, reads answers logged by another harness (lm-eval, inspect, lighteval, OpenCompass, HELM, or a table of
    your own) instead of asking a model; files of one model with the same questions in several orders belong together.
    Several models, or logs of several, are compared side by side.

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
    of_logs = ("fields", "skip_bad")
    in_memory = True
    several = True
    compared = "audit-comparison"
    in_shards = True

    def ask(self, asking: Asking[AuditSettings]) -> Responses:
        if asking.settings.in_words:
            from unslant.auditing.words import audit_in_words

            return audit_in_words(asking)
        return _scored(asking)

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
        from unslant.auditing.cost import estimate

        self.check(given)
        settings = self.settings_of_each(given)
        self.check_replies(given, settings)
        for model, options, resolved in zip(given.models, given.options, settings, strict=True):
            print("\n".join(estimate(model, given.questions, resolved, options, given.generate, outputs)))
        return None

    def read(self, given: Given[AuditSettings]) -> StudyResult:
        from unslant.auditing.comparison import audit_logs

        return audit_logs(given.log, given.settings.fields, given.settings.skip_bad)

    def compare(self, results: Sequence[AuditResult], given: Given[AuditSettings]) -> StudyResult:
        from unslant.auditing.comparison import AuditComparison

        return AuditComparison.of(results)


@dataclass(frozen=True, kw_only=True)
class AuditKeywords(Keywords, GenerateOptions, AuditSettings):
    """Keywords of :func:`audit`.

    Examples:
        >>> result = unslant.audit("fair", "embedded", limit=20)
        >>> result.metrics.means["expected_accuracy"].n
        20
    """

    orders: str | int = "auto"  # type: ignore[assignment]


audit = function(Audit(), AuditKeywords, AuditResult)


def _scored(asking: Asking[AuditSettings]) -> Responses:
    """Every question in many orders, and with its labels reversed and shifted; then the pages without a question."""
    # before the model is opened, so that bad input fails first
    design = OrderDesign.of(asking.questions, asking.settings)
    model = asking.model
    if model.info.renders_prompts:  # a decision endpoint labels the options itself, so only their order can change
        design = OrderDesign.of(asking.questions, asking.settings, own_labels=False)
    _, example = next(design.asked())
    share = asking.share(design.asked, [design.elicitation])
    texts, until = share.own(asking.questions), None
    score = partial(ask, model, elicitations=[design.elicitation], progress=asking.progress)
    if asking.settings.until is not None:
        from unslant.auditing.until import ask_until

        responses, texts, until, two_phase = ask_until(model, design, progress=asking.progress)
    else:
        responses = score(share.cut(design.asked()), presentations=share.presentations or design.expected)
        # a shard cannot know how narrow the intervals of the whole run are
        if design.full is not None and not asking.shards.shard:
            design, responses = grown(design, responses, score)
        two_phase = design.recorded
    tokens, order_costs, cost_once = ordinary_cost(model, asking.cost, design, share.own(asking.questions))
    return asking.finished(
        responses,
        share,
        texts,
        example_prompt=design.elicitation.prompts(example)[0].as_text(),
        cost=replace(asking.cost, tokens_ordinary=tokens),
        order_costs=order_costs,
        cost_once=cost_once,
        until=until,
        two_phase=two_phase,
    )


_OF_ORDERS = ("order", "given", "reverse")
"""Kinds of presentation that differ in their order alone."""


def grown(
    design: OrderDesign, responses: Responses, ask: Callable[[list[Asked]], Responses]
) -> tuple[OrderDesign, Responses]:
    """Ask more questions in all orders, until the intervals that need them are narrow enough.

    Args:
        responses: of the design.
        ask: asks further presentations.

    Returns:
        The design and responses in the end, question by question.
    """
    texts = design.questions.questions
    while design.full is not None:
        scores = read_scores(replace(responses, run=Run(two_phase=design.recorded), questions=tuple(texts)))
        values = TwoPhaseValues.of(scores)
        if values is None or scores.full is None or scores.full.all():
            break
        means, noise = expected_accuracy(scores), noise_between_squares(scores)
        size = next_part(values, scores.full, means, noise, Bootstrap.of(scores))
        if size <= len(design.full):
            break
        larger = design.with_part(size)
        new = (larger.full or frozenset()) - design.full
        further: list[Asked] = []
        for question in (question for question in texts if question.id in new):
            known = {page.contents for _, page in design.square(question)}
            pages = design.whole(question)
            further += [page for page in pages if page[1].kind not in _OF_ORDERS or page[1].contents not in known]
        responses, design = _joined(responses, ask(further), texts, new), larger
    return design, responses


def _joined(responses: Responses, more: Responses, questions: Sequence[Question], new: frozenset[str]) -> Responses:
    """Two tables, question by question; the published order of a question now asked in all orders is one of them."""
    table = pa.concat_tables([responses.table, more.table])
    ids, kinds = table["question_id"].to_pylist(), table["kind"].to_pylist()
    kinds = ["order" if kind == "given" and name in new else kind for kind, name in zip(kinds, ids, strict=True)]
    place = {question.id: i for i, question in enumerate(questions)}
    sequence = np.argsort([place.get(name, len(place)) for name in ids], kind="stable")
    at = SCHEMA.get_field_index("kind")
    table = table.set_column(at, SCHEMA.field(at), pa.array(kinds, pa.string())).take(pa.array(sequence))
    return Responses(table, responses.run, responses.questions)


# What an ordinary run costs, which asks the published order of every question alone, each prompt run whole

COUNTED = 20
"""Questions, at most, whose tokens are counted for the cost of other sets of orders."""
_SHARE = 6
"""Of more questions than that one in six, down to half as many: counting is to cost little compared with asking."""
_SCORED = 0.95
"""Share of the prompts scored here, not taken from the store, with which the cost of the run is known well enough."""
_AT_ONCE = 1_000


def ordinary_cost(
    model: ScoringModel, spent: Cost, design: OrderDesign, questions: Iterable[Question]
) -> tuple[int, dict[str, float], float]:
    """What an ordinary run costs, and in such runs an audit in other sets of orders; nothing is run.

    Args:
        spent: the cost of the run so far.
        design: what was asked.
        questions: those asked here; fewer than the design's in a shard.

    Returns:
        ``tokens_ordinary`` (see :class:`unslant.models.base.Cost`): counted exactly for a local model; for any other
        model, the published order is taken to have as many tokens as the mean prompt. And the ordinary runs of an audit
        in the orders asked, in every smaller set and in those that a plan compares, from :data:`COUNTED` questions or
        fewer and, where nearly all was scored here, the cost of the run; empty where tokens cannot be counted. And what
        does not grow with the questions: the beginning of all prompts, and the prompts without a question.
    """
    local, asked, everyone = model.unwrapped, list(questions), design.questions.questions
    if not isinstance(local, TokenizingModel):
        mean = spent.tokens_plain / spent.prompts if spent.prompts else 0
        return round(mean * len(asked)), {}, 0.0
    counter = TokenCounter(local, design)
    ordinary = sum(counter.whole(asked[at : at + _AT_ONCE]) for at in range(0, len(asked), _AT_ONCE))
    # sorted, so that each number of options has its share of the sample
    several = sorted((question for question in everyone if question.movable), key=lambda one: len(one.options))
    if not several:
        return ordinary, {}, 0.0
    size = len(several)
    most = size if size <= COUNTED else min(COUNTED, max(COUNTED // 2, size // _SHARE))
    # the middle of each of as many equal parts: the first of each has the fewest options, and costs least
    sample = [several[(2 * part + 1) * size // (2 * most)] for part in range(most)]
    movable = Counter(len(question.movable) for question in several).most_common(1)[0][0]
    usual = next(question for question in several if len(question.movable) == movable)
    once = counter.added(sample, [page for _, page in design.controls])
    orders = design.settings.orders
    every = orders if design.full is None else WHOLE
    n, each = len(everyone), counter.whole(sample) / len(sample)
    runs, constant = {}, 0.0
    whole = WHOLE if every != "auto" else every
    planned = whole, "latin", *balanced_names(movable, len(orders_for(usual, whole)))  # see `unslant plan`
    # the largest set first: its prompts are tokenized in one call, and most of the others' are among them
    for name in dict.fromkeys((every, *set_names(movable, len(orders_for(usual, every))), *planned)):
        computed, shared = counter.tree(sample, name)
        constant = (shared + once) / (each * n)
        runs[name] = round((computed - shared) / (each * len(sample)) + constant, 4)
    if design.full is not None:
        part = len(design.full) / n
        runs[orders] = round(part * runs[every] + (1 - part) * runs["latin"], 4)
    scored = spent.prompts / max(1, spent.prompts + spent.reused)
    if spent.tokens and scored > _SCORED and len(asked) == n and design.settings.until is None:
        # A sample's questions share fewer beginnings than all do. What the orders asked did cost corrects all sets.
        exact = spent.tokens / scored / ordinary / runs[orders]
        runs, constant = {name: round(number * exact, 4) for name, number in runs.items()}, constant * exact
    return ordinary, runs, round(constant, 4)


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
