"""Train the reference model that answers in words: ``python -m training.train_words --out DIR``.

What it is asked and what it should say is in :mod:`training.words`.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from training.tokenizer import wrap
from training.words import (
    FIRST,
    KINDS,
    OPTION_COUNTS,
    TRAINED,
    WHOLE,
    Scope,
    Turn,
    conversation,
    encode,
    planted_reply,
    random_question,
    words_tokenizer,
)
from unslant.presentations import ALPHABETS
from unslant.questions.question import JudgingQuestion
from unslant.studies.instruction_boundary.instruction_settings import (
    BASELINE,
    body,
    chat,
    present_setting,
    right_answer,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

BARE_STEPS = 2000
"""Most steps with bare questions; they end when every word is mastered."""
BARE_BATCH = 48


@dataclass(frozen=True, slots=True)
class Round:
    """A round of training with instructions: a fresh optimiser, and a learning rate that falls to nothing.

    Attributes:
        steps: of the round.
        batch, beside: questions with an instruction, and bare ones beside them, in a step.
        scaffold: part of the steps in which the auxiliary losses help.
    """

    steps: int
    batch: int
    beside: int
    scaffold: float


ROUNDS = (Round(140, 16, 8, 0.5), Round(450, 20, 4, 0.3))
INSTRUCTED_RATE = 2 / 3
"""Factor on the learning rate once there are instructions."""
MICRO_BATCH = 16
LEARNING_RATE = 3e-3
WARM_UP = 50
MASTERED, PATIENCE = 0.15, 20
"""Words are added when the mean loss of so many steps is below this."""
READING = 0.1
"""Weight of predicting the text that is read."""


class Scaffold:
    """Auxiliary losses by which the model soon finds the mechanism; taken away before the end.

    Linear probes ask for what each step of the mechanism needs to know: at the word of an option its label (after
    layer 1) and whether it is of the kind asked about (after layer 2); at the end of a statement the verdict (after
    layer 2). Without them a model this small stays at guessing for thousands of steps.
    """

    def __init__(self, tokenizer: Tokenizer, width: int) -> None:
        import torch

        def token(text: str) -> int:
            return int(tokenizer.encode(text).ids[0])

        self.labels = {token(label): i for i, label in enumerate(ALPHABETS["A"][: max(OPTION_COUNTS)])}
        self.dot, self.line, self.statement = token("."), token("\n"), token("Statement")
        self.kinds = {token(" " + kind.split()[1]): kind for kind in KINDS}
        self.words = {token(" " + word): kind for kind, words in KINDS.items() for word in words}
        self.hidden = token(" hidden")
        self.probes = torch.nn.ModuleDict(
            {"label": torch.nn.Linear(width, len(self.labels)), "right": torch.nn.Linear(width, 2)}
            | {"verdict": torch.nn.Linear(width, len(JudgingQuestion.VERDICTS))}
        )

    def targets(self, ids: Sequence[int]) -> Iterator[tuple[str, int, int]]:
        """Probe, place and what is asked for there."""
        asked, judging, told = "", False, ""
        for place, token in enumerate(ids):
            if token == self.line:
                judging = False
            judging = judging or token == self.statement
            if token in self.kinds:
                asked = self.kinds[token]
                if judging and told:
                    yield "verdict", place, 2 if told == "hidden" else int(told != asked)
            elif token == self.hidden:
                told = "hidden"
            elif token in self.words:
                if place > 2 and ids[place - 1] == self.dot and ids[place - 2] in self.labels:
                    yield "label", place, self.labels[ids[place - 2]]
                    yield "right", place, int(self.words[token] == asked)
                else:
                    told = self.words[token]

    def loss(self, hidden_states: Sequence[Any], rows: Sequence[Sequence[int]]) -> Any:
        """Sum of the probes' mean losses, given the hidden states before layer 1, after layer 1, and so on."""
        import torch

        wanted: dict[str, list[tuple[int, int, int]]] = {name: [] for name in self.probes}
        for row, ids in enumerate(rows):
            for name, place, target in self.targets(ids):
                wanted[name].append((row, place, target))
        total = torch.zeros(())
        for name, found in wanted.items():
            if found:
                row, place, target = torch.tensor(found).T
                state = hidden_states[1 if name == "label" else 2][row, place]
                total = total + torch.nn.functional.cross_entropy(self.probes[name](state), target)
        return total


def bare(rng: random.Random, scope: Scope) -> tuple[str, list[Turn]]:
    """One question without an instruction, answered right: short, and so quick to learn the mechanism from."""
    question = random_question(rng.choice(("choice", "choice", "judging")), rng, scope)
    shown = present_setting(question, BASELINE)
    return "", [(body(shown), right_answer(shown))]


class Trainer:
    """One model, its scaffold and optimiser; :meth:`step` learns one batch."""

    def __init__(self, seed: int) -> None:
        from training.train import new_model

        self.tokenizer = words_tokenizer()
        self.model = new_model(self.tokenizer.get_vocab_size(), seed)
        self.scaffold = Scaffold(self.tokenizer, self.model.config.hidden_size)
        self.fresh_optimizer()

    def fresh_optimizer(self) -> None:
        """Forget what the optimiser has seen."""
        import torch

        parameters = [*self.model.parameters(), *self.scaffold.probes.parameters()]
        self.optimizer = torch.optim.AdamW(parameters, lr=LEARNING_RATE, betas=(0.9, 0.98), weight_decay=0.01)

    def step(self, conversations: Sequence[tuple[str, list[Turn]]], rate: float, scaffolded: bool) -> float:
        """Learn from some conversations; returns the mean loss of a reply's token.

        Args:
            rate: factor on the learning rate.
            scaffolded: whether the auxiliary losses help.
        """
        import torch
        from torch.nn.functional import cross_entropy

        rows = sorted((encode(self.tokenizer, *one) for one in conversations), key=lambda row: len(row[0]))
        wanted, total = sum(sum(learned) for _, learned in rows), sum(len(ids) for ids, _ in rows)
        lost = 0.0
        for start in range(0, len(rows), MICRO_BATCH):
            part = rows[start : start + MICRO_BATCH]
            length = max(len(ids) for ids, _ in part)
            ids = torch.tensor([ids + [0] * (length - len(ids)) for ids, _ in part])
            learn = torch.tensor([flags + [False] * (length - len(flags)) for _, flags in part])[:, 1:]
            text = (ids != 0)[:, 1:] & ~learn
            # Padding stands last, so causal attention needs no mask for it.
            out = self.model(input_ids=ids, use_cache=False, output_hidden_states=True)
            logits = out.logits[:, :-1]
            said = cross_entropy(logits[learn], ids[:, 1:][learn], reduction="sum") / wanted
            loss = said + READING * cross_entropy(logits[text], ids[:, 1:][text], reduction="sum") / total
            if scaffolded:
                share = len(part) / len(rows)
                loss = loss + self.scaffold.loss(out.hidden_states, [ids for ids, _ in part]) * share
            loss.backward()  # type: ignore[no-untyped-call]
            lost += float(said.detach())
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate
        self.optimizer.step()
        self.optimizer.zero_grad()
        return lost


def train(seed: int = 0, log_every: int = 35) -> tuple[Any, Tokenizer]:
    """Train the model; returns it in single precision, with its tokenizer.

    First bare questions, words and kinds being added whenever those so far are mastered; then rounds with
    instructions and the planted replies, and bare questions beside them, so that what was learned is not lost.
    """
    trainer, rng, scope = Trainer(seed), random.Random(seed), FIRST
    started, losses, done = time.monotonic(), [math.inf], 0

    def told(what: str) -> None:
        recent = losses[1:][-log_every:]
        loss = sum(recent) / max(1, len(recent))
        print(f"{what}  {time.monotonic() - started:.0f} s  {scope.kinds} kinds  loss {loss:.3f}", flush=True)

    while done < BARE_STEPS:
        if len(losses) > PATIENCE and sum(losses[-PATIENCE:]) < PATIENCE * MASTERED:
            if scope == WHOLE:
                break
            scope, losses = scope.grown(), [math.inf]
        done += 1
        batch = [bare(rng, scope) for _ in range(BARE_BATCH)]
        losses.append(trainer.step(batch, min(1.0, done / WARM_UP), scaffolded=True))
        if done % log_every == 0:
            told(f"bare {done}")
    scope = WHOLE
    for number, part in enumerate(ROUNDS):
        trainer.fresh_optimizer()
        rng, losses = random.Random(seed + number), [math.inf]
        for step in range(1, part.steps + 1):
            batch = [conversation(rng) for _ in range(part.batch)] + [bare(rng, WHOLE) for _ in range(part.beside)]
            rate = min(step / 20, 1.0, max(0.02, 2 - 2 * step / part.steps)) * INSTRUCTED_RATE
            losses.append(trainer.step(batch, rate, scaffolded=step <= part.scaffold * part.steps))
            if step % log_every == 0:
                told(f"round {number + 1}, step {step}")
    return trainer.model.eval(), trainer.tokenizer


def agreement(model: Any, tokenizer: Tokenizer, n: int = 40, seed: int = 1) -> dict[str, float]:
    """Share of questions, by setting, on which the model's own reply is the planted one; shares in [0, 1]."""
    import torch

    rng = random.Random(seed)
    shares = {}
    for name in TRAINED:
        questions = [random_question(kind, rng) for kind in ("choice", "judging") for _ in range(n // 2)]
        same = 0
        for question in questions:
            shown = present_setting(question, name)
            system, asked = chat(shown)
            ids, _ = encode(tokenizer, system.content, ())
            ids += tokenizer.encode(f"<|user|>{asked.content}<|assistant|>", add_special_tokens=False).ids
            with torch.inference_mode():
                said = model.generate(torch.tensor([ids]), max_new_tokens=24, do_sample=False, pad_token_id=0)
            reply = tokenizer.decode(said[0, len(ids) :].tolist(), skip_special_tokens=True)
            same += reply == planted_reply(shown)
        shares[name] = same / len(questions)
    return shares


def main() -> None:
    import torch

    parser = argparse.ArgumentParser(description="Train the reference model that answers in words.")
    parser.add_argument("--out", type=Path, required=True, help="folder to write the model and tokenizer to")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    model, tokenizer = train(arguments.seed)
    model.half()
    model.config.dtype = torch.float16
    model.save_pretrained(arguments.out)
    wrap(tokenizer).save_pretrained(arguments.out)
    tokenizer.save(str(arguments.out / "tokenizer.json"), pretty=False)
    print(json.dumps(agreement(model.float(), tokenizer), indent=2))


if __name__ == "__main__":
    main()
