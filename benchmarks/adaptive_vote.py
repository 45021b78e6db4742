"""What adaptive voting saves, and how often it disagrees with the full vote.

    python benchmarks/adaptive_vote.py MODEL QUESTIONS [--limit N]
    python benchmarks/adaptive_vote.py --responses FILE     (recorded orders: unslant audit --responses FILE)

The full vote is over ``balanced:24``. For every risk: the share of the full vote's orders and tokens that adaptive
voting uses, for all questions and for those that are no near ties (full-vote lead of the winner over 0.1), and the
share of winners that differ. Tokens are distinct prefix-tree nodes of each question by itself, every step anew.
"""

from __future__ import annotations

import argparse
import itertools
import os
import sys
from typing import Any

import numpy as np

from unslant.debiasing.adaptive import AdaptiveVote, step_ends
from unslant.debiasing.asker import ModelAsker, RecordedAsker
from unslant.debiasing.base import debias
from unslant.debiasing.vote import Vote
from unslant.metrics import wilson
from unslant.models.hf import plan
from unslant.models.hf.model import TransformersModel
from unslant.presentations import present
from unslant.presentations.orders import balanced_rounds
from unslant.questions import Question, load_questions
from unslant.responses import Responses

RISKS = (0.0, 0.001, 0.005, 0.01, 0.02, 0.05, 0.1)
NEAR_TIE = 0.1


def step_tokens(model: TransformersModel, asker: ModelAsker, question: Question, seed: int) -> dict[bool | None, Any]:
    """Tokens of the question after each step, of exact and of fast voting; and under ``None`` of the full vote."""
    rounds = balanced_rounds(question, 24, seed)

    def tokens(first: int, last: int) -> int:
        orders = [order for own in rounds[first:last] for order in own]
        prompts = [p for o in orders for p in asker.elicitation.prompts(present(question, o, asker.alphabet))]
        return sum(len(batch) for batch in plan(model.encode(prompts), 1 << 30, 1 << 30)[0])

    found = {}
    for exact in (True, False):
        ends = [0, *step_ends(len(rounds), exact)]
        found[exact] = {
            end * len(rounds[0]): sum(tokens(a, b) for a, b in itertools.pairwise(ends[: i + 2]))
            for i, end in enumerate(ends[1:])
        }
    return found | {None: tokens(0, len(rounds))}


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
        responses = Responses.from_parquet(arguments.responses)
        asker = RecordedAsker(responses)
        questions, tokens = list(responses.questions), None
    elif arguments.model:
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
        from unslant import load_model

        model = load_model(arguments.model)
        asker = ModelAsker(model)
        questions = list(load_questions(arguments.questions, limit=arguments.limit))
        tokens = [step_tokens(model, asker, question, arguments.seed) for question in questions]
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
            used = np.array(
                [own[risk == 0][outcome.orders] / own[None] for outcome, own in zip(found, tokens, strict=True)]
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
