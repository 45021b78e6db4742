"""What adaptive voting saves, and how often it disagrees with the full vote.

    python benchmarks/adaptive_vote.py MODEL QUESTIONS [--limit N]
    python benchmarks/adaptive_vote.py --responses FILE     (recorded orders: unslant audit --responses FILE)

The full vote is over ``balanced:24``. For every risk: the share of the full vote's orders and tokens that adaptive
voting uses, for all questions and for those that are no near ties (full-vote lead of the winner over 0.1), and the
share of winners that differ. Tokens are distinct prefix-tree nodes of each question by itself, every round anew.
"""

from __future__ import annotations

import argparse
import os
import sys

import numpy as np

from unslant.debias import ModelAsker, RecordedAsker, debias
from unslant.debias.adaptive import AdaptiveVote
from unslant.debias.vote import Vote
from unslant.metrics import OrderScores, wilson
from unslant.models.transformers_model import TransformersModel
from unslant.models.tree import plan
from unslant.presentations import present
from unslant.presentations.sharing import balanced_rounds
from unslant.questions import Question, load_questions
from unslant.responses import Responses

RISKS = (0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1)
NEAR_TIE = 0.1


def round_tokens(model: TransformersModel, asker: ModelAsker, question: Question, seed: int) -> tuple[int, list[int]]:
    """Tokens of the full vote in one go, and of each round by itself."""
    rounds = [
        [prompt for order in orders for prompt in asker.elicitation.prompts(present(question, order, asker.alphabet))]
        for orders in balanced_rounds(question, 24, seed)
    ]
    sizes = []
    for prompts in ([prompt for own in rounds for prompt in own], *rounds):
        sizes.append(sum(len(batch) for batch in plan(model.encode(prompts), 1 << 30, 1 << 30).batches))
    return sizes[0], sizes[1:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?")
    parser.add_argument("questions", nargs="?", default="embedded")
    parser.add_argument("--responses")
    parser.add_argument("--limit", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    asker: ModelAsker | RecordedAsker
    if arguments.responses:
        asker = RecordedAsker(OrderScores.from_responses(Responses.from_parquet(arguments.responses)))
        questions, tokens = list(asker.questions), None
    elif arguments.model:
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        from unslant import load_model

        model = load_model(arguments.model)
        asker = ModelAsker(model)
        questions = list(load_questions(arguments.questions, limit=arguments.limit))
        tokens = [round_tokens(model, asker, question, arguments.seed) for question in questions]
    else:
        parser.print_usage()
        sys.exit(2)
    full = debias(Vote("balanced:24", seed=arguments.seed), asker, questions).outcomes
    lead = np.array([np.diff(np.sort(outcome.probs)[-2:])[0] for outcome in full])
    clear = lead > NEAR_TIE
    sizes = np.array([len(question.options) for question in questions])
    print(f"{len(questions)} questions, {int(clear.sum())} of them no near ties")
    print("| risk | orders | tokens | tokens, no near ties | ... with 4 or more options | winners that differ | 95 % |")
    print("|---|---|---|---|---|---|---|")
    for risk in RISKS:
        found = debias(AdaptiveVote(risk=risk, seed=arguments.seed), asker, questions).outcomes
        orders = np.array([a.orders / b.orders for a, b in zip(found, full, strict=True)])
        used = orders
        if tokens:
            per_round = [len(balanced_rounds(question, 24, arguments.seed)[0]) for question in questions]
            used = np.array(
                [
                    sum(own[: outcome.orders // size]) / whole
                    for outcome, size, (whole, own) in zip(found, per_round, tokens, strict=True)
                ]
            )
        differs = [a.choice != b.choice for a, b in zip(found, full, strict=True)]
        interval = wilson(float(np.mean(differs)), len(differs))

        def mean(mask: np.ndarray, used: np.ndarray = used) -> str:
            return f"{used[mask].mean():.2f}" if mask.any() else "–"

        print(
            f"| {risk or 'exact'} | {orders.mean():.2f} | {used.mean():.2f} | {mean(clear)} "
            f"| {mean(clear & (sizes > 3))} "
            f"| {interval.value:.4f} | {interval.low:.4f} – {interval.high:.4f} |"
        )


if __name__ == "__main__":
    main()
