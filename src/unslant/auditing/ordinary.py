"""The cost of an audit in ordinary runs: the published order of every question alone, each prompt run whole."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import islice

from unslant.auditing.phases import WHOLE
from unslant.metrics.order_curve import set_names
from unslant.models import Cost, ScoringModel
from unslant.models.base import Encoded, TokenizingModel
from unslant.presentations import Asked, Presentation, ShotChooser, orders_for
from unslant.prompts import Elicitation, Prompt
from unslant.questions import Question

SAMPLED = 20
"""Questions, at most, whose tokens are counted for the cost of other sets of orders."""
_SHARE = 6
"""Of more questions than that one in six, down to half as many: counting is to cost little compared with asking."""
_AT_ONCE = 1_000

Shown = Callable[..., Sequence[Presentation]]
"""Every presentation of a question; ``orders`` for others than those of the audit."""


def ordinary_cost(
    model: ScoringModel,
    spent: Cost,
    questions: Iterable[Question],
    elicitation: Elicitation,
    shown: Shown,
    chooser: ShotChooser,
    orders: str,
    controls: Iterable[Asked] = (),
    whole: Iterable[Question] | None = None,
    part: float | None = None,
) -> tuple[int, dict[str, float]]:
    """What an ordinary run costs, and in such runs an audit in other sets of orders; nothing is run.

    Args:
        spent: its cost so far.
        orders: the orders it asked, as ``--orders`` names them.
        controls: what it asked once, independently of the orders.
        whole: all questions of the run, where ``questions`` are those of a shard.
        part: share of the questions asked in all orders, where the others were asked in a square of them.

    Returns:
        ``tokens_ordinary`` (see :class:`unslant.models.base.Cost`): counted exactly for a local model; for any other
        model, the published order is taken to have as many tokens as the mean prompt. And the ordinary runs of an audit
        in ``orders`` and in every smaller set, from :data:`SAMPLED` questions or fewer of the commonest number of
        options; empty where tokens cannot be counted.
    """
    local, questions = model.unwrapped, list(questions)
    everyone = questions if whole is None else list(whole)
    n = len(everyone)
    if not isinstance(local, TokenizingModel):
        mean = spent.tokens_plain / spent.prompts if spent.prompts else 0
        return round(mean * len(questions)), {}
    counter = TokenCounter(local, elicitation, shown, chooser)
    ordinary, rest = 0, iter(questions)
    while portion := list(islice(rest, _AT_ONCE)):
        ordinary += counter.whole(portion)
    kinds = Counter((len(question.options), question.pinned) for question in everyone if question.movable)
    if not kinds:
        return ordinary, {}
    kind = kinds.most_common(1)[0][0]
    alike = [question for question in everyone if (len(question.options), question.pinned) == kind]
    most = SAMPLED if len(alike) <= SAMPLED else min(SAMPLED, max(SAMPLED // 2, len(alike) // _SHARE))
    sample = alike[:: -(-len(alike) // most)]
    once = counter.beside(sample, [presentation for _, presentation in controls])
    every = orders if part is None else WHOLE
    names = [*set_names(len(alike[0].movable), len(orders_for(alike[0], every))), every]
    each, runs = counter.whole(sample) / len(sample), {}
    for name in names:
        computed, shared = counter.tree(sample, name)
        total = (computed - shared) * n / len(sample) + shared + once
        runs[name] = round(total / (each * n), 4)
    if part is not None:
        runs[orders] = round(part * runs[every] + (1 - part) * runs.get("latin", runs[every]), 4)
    return ordinary, runs


class TokenCounter:
    """Counts the tokens of questions under sets of orders, as an audit would compute them; runs nothing."""

    def __init__(self, model: TokenizingModel, elicitation: Elicitation, shown: Shown, chooser: ShotChooser) -> None:
        self.model, self.elicitation, self.shown, self.chooser = model, elicitation, shown, chooser
        # sets of orders have many presentations in common
        self._known: dict[tuple[str, tuple[int, ...], tuple[str, ...]], list[Encoded]] = {}

    def whole(self, questions: Sequence[Question]) -> int:
        """Tokens of the published order, each prompt whole."""
        from unslant.models.hf.tree import other_costs

        encoded = self.model.encode(self._prompts([self._presented(question, "given")[0] for question in questions]))
        return other_costs(encoded, [""] * len(encoded))[0]

    def tree(self, questions: Sequence[Question], orders: str) -> tuple[int, int]:
        """Distinct tokens of an audit's prompts, and how many of them begin every prompt."""
        from unslant.models.hf.tokenization import common_prefix
        from unslant.models.hf.tree import node_count

        encoded = self._encoded([one for question in questions for one in self._presented(question, orders)])
        first = encoded[0].context
        return node_count(encoded), min(common_prefix(first, item.context) for item in encoded)

    def beside(self, questions: Sequence[Question], presentations: Sequence[Presentation]) -> int:
        """Distinct tokens that presentations, taken as they are, add to those of questions."""
        from unslant.models.hf.tree import node_count

        encoded = self._encoded([self._presented(question, "given")[0] for question in questions])
        return node_count([*encoded, *self._encoded(presentations)]) - node_count(encoded)

    def _presented(self, question: Question, orders: str) -> list[Presentation]:
        examples = self.chooser.of(question)
        return [one.with_shots(examples) for one in self.shown(question, orders=orders)]

    def _prompts(self, presentations: Iterable[Presentation]) -> list[Prompt]:
        return [prompt for one in presentations for prompt in self.elicitation.prompts(one)]

    def _encoded(self, presentations: Iterable[Presentation]) -> list[Encoded]:
        """Each presentation is written and tokenized once, and kept: for a sample of questions only."""
        by_key = {(one.question_id, one.contents, one.labels): one for one in presentations}
        new = {key: self._prompts([one]) for key, one in by_key.items() if key not in self._known}
        encoded = iter(self.model.encode([prompt for prompts in new.values() for prompt in prompts]))
        self._known |= {key: list(islice(encoded, len(prompts))) for key, prompts in new.items()}
        return [one for key in by_key for one in self._known[key]]
