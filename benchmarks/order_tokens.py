"""What an audit's orders cost in tokens: ``auto`` against ``balanced:24``, which was the default before.

    python -m benchmarks.order_tokens TOKENIZER.json QUESTIONS... [--limit 100]

Counted are the nodes of the prefix tree of each question's prompts (template ``plain``): the tokens that are computed.
``balanced:24`` is shown as it is, and with the rotations that PriDe needs added to it.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from tokenizers import Tokenizer

from unslant.presentations import Order, cyclic_orders, orders_for, present
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import Question, load_questions

KINDS = ("auto", "balanced:24", "balanced:24 and rotations")


def shown(question: Question, kind: str) -> list[Order]:
    """The orders of one kind."""
    spec, _, more = kind.partition(" and ")
    return list(dict.fromkeys([*orders_for(question, spec), *(cyclic_orders(question) if more else [])]))


def nodes(prompts: Iterable[Sequence[int]]) -> int:
    """Distinct beginnings of token sequences."""
    ordered = sorted(map(tuple, prompts))
    total, before = 0, ()
    for ids in ordered:
        shared = next(
            (i for i, (a, b) in enumerate(zip(before, ids, strict=False)) if a != b), min(len(before), len(ids))
        )
        total += len(ids) - shared
        before = ids
    return total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tokenizer", help="a tokenizers JSON file")
    parser.add_argument("questions", nargs="+")
    parser.add_argument("--limit", type=int, default=100)
    arguments = parser.parse_args()
    tokenizer = Tokenizer.from_file(arguments.tokenizer)
    cloze = Cloze(Writer(load_template("plain")))
    print("| questions | n | " + " | ".join(f"{kind}: tokens (orders)" for kind in KINDS) + " | auto costs |")
    print("|---" * (len(KINDS) + 3) + "|")
    for path in arguments.questions:
        loaded = load_questions(path, limit=arguments.limit, seed=0, skip_bad=True)
        for n in sorted({len(q.options) for q in loaded}):
            questions = [q for q in loaded if len(q.options) == n and not q.pinned]
            if n < 5 or len(questions) < 10:
                continue
            cost = {}
            for kind in KINDS:
                own = [shown(q, kind) for q in questions]
                prompts = [
                    [tokenizer.encode(cloze.prompts(present(q, order))[0].as_text()).ids for order in orders]
                    for q, orders in zip(questions, own, strict=True)
                ]
                cost[kind] = sum(map(nodes, prompts)) / len(questions), sum(map(len, own)) / len(questions)
            cells = [f"{tokens:,.0f} ({orders:.0f})" for tokens, orders in cost.values()]
            change = cost["auto"][0] / cost["balanced:24"][0] - 1
            name = path.split("/")[-1].split(".")[0]
            print(f"| {name} | {n} | " + " | ".join(cells) + f" | {change:+.0%} |", flush=True)


if __name__ == "__main__":
    main()
