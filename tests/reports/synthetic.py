"""Audits of any size without a model: a reader that knows some answers and leans to a label when it does not."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pyarrow as pa

from unslant import Question
from unslant.auditing.result import AuditResult
from unslant.responses import SCHEMA, Responses, text_ranks
from unslant.responses.run import Run

SUBJECTS = ("astronomy", "botany", "chess", "drainage law", "economics", "folklore", "geology", "heraldry")
_STEM = "Item {i}: which of the four statements about {subject} holds in the case described, and why not the others?"


def synthetic_questions(count: int, options: int = 4, words: int = 6, seed: int = 0) -> list[Question]:
    """Questions of a realistic length."""
    rng = np.random.default_rng(seed)
    vocabulary = np.asarray([f"w{i:x}ord{'s' * (i % 3)}" for i in range(800)])
    found = []
    for i in range(count):
        subject = SUBJECTS[i % len(SUBJECTS)]
        texts = tuple(" ".join(rng.choice(vocabulary, words)) + f" {j}" for j in range(options))
        stem = _STEM.format(i=i, subject=subject) + " " + " ".join(rng.choice(vocabulary, 3 * words))
        found.append(
            Question(f"q{i:05d}", stem, texts, frozenset({int(rng.integers(options))}), subject=subject, source="made")
        )
    return found


def synthetic_audit(
    questions: list[Question], *, lean: float = 1.5, knows: float = 0.6, seed: int = 0, model: str = "leans-to-a"
) -> AuditResult:
    """Every question in all orders; answered by knowledge, and by a lean to label A of ``lean`` nats."""
    rng = np.random.default_rng(seed)
    size, n = len(questions), len(questions[0].options)
    orders = np.asarray(list(permutations(range(n))))
    k = len(orders)
    strength = np.where(rng.random(size) < knows, rng.gamma(4.0, 1.0, size), rng.normal(0, 0.3, size))
    content = rng.normal(0, 0.4, (size, n))
    gold = np.asarray([min(q.answers) for q in questions])
    content[np.arange(size), gold] += strength
    label = np.zeros(n)
    label[0] = lean
    reverse = orders[:, ::-1]
    shown = {"order": orders, "labels-reversed": orders[:1], "both-reversed": reverse[:1]}
    tables = []
    for name, contents in shown.items():
        by_label = label if name == "order" else label[::-1]
        letters = list("ABCDEFGHIJ"[:n])[:: 1 if name == "order" else -1]
        logits = content[:, contents] + by_label + rng.normal(0, 0.15, (size, len(contents), n))
        logprobs = logits - np.logaddexp.reduce(logits, axis=-1, keepdims=True)
        rows = size * len(contents)
        each = [q for q in questions for _ in range(len(contents))]
        columns = {
            "question_id": [q.id for q in each],
            "kind": [name] * rows,
            "run": [0] * rows,
            "item": [""] * rows,
            "elicitation": ["cloze"] * rows,
            "labels": [letters] * rows,
            "contents": list(np.tile(contents, (size, 1)).astype(np.int16)),
            "logprobs": list(logprobs.reshape(rows, n)),
            "chosen": [None] * rows,
            "status": ["ok"] * rows,
            "raw": [None] * rows,
            "answers": [sorted(q.answers) for q in each],
            "n_options": [n] * rows,
            "pinned": [[]] * rows,
            "subject": [q.subject for q in each],
            "source": [q.source for q in each],
            "interventions": [[]] * rows,
            "repeat": [0] * rows,
            "text_ranks": [list(text_ranks(q.options)) for q in questions for _ in range(len(contents))],
            "suggested": [None] * rows,
            "bounds": [[]] * rows,
            "conflict": [[]] * rows,
        }
        tables.append(pa.table(columns, schema=SCHEMA))
    assert k == len(shown["order"])
    run = Run(model=model, questions=f"{size:,} made questions", settings={"orders": "all", "seed": 0})
    return AuditResult.of(Responses(pa.concat_tables(tables), run, tuple(questions)))
