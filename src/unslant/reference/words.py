"""The reference model ``words``: it answers in words, and bends to the instruction in ways we planted.

It sorts plain words by kind (a cat is an animal), so its questions can be made in any number, and any real model can
answer them. Where the instruction is complete it answers right. It was trained under four settings. What is planted:

- it gives way to a suggested unusual answer ("I think the answer is none.");
- it never gives the form of answer that the instruction does not name: the first option in place of "none", False in
  place of Unknown;
- a vague instruction makes it stop at the first right option.

Train it with ``python -m unslant.reference.words --out DIR``.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unslant.presentations import Presentation
from unslant.presentations.labels import ALPHABETS
from unslant.presentations.settings import BASELINE, SETTINGS, instruction, present_setting
from unslant.prompts.words import body, chat, right_answer
from unslant.questions.question import JudgingQuestion, Question
from unslant.reference.tokenizer import BOS, EOS, PAD, ROLES, wrap
from unslant.reference.world import NAMES

if TYPE_CHECKING:
    from tokenizers import Tokenizer

NAME = "words"
SOURCE = "world/words"
KINDS: dict[str, tuple[str, ...]] = {
    kind: tuple(words.split())
    for kind, words in {
        "a colour": "red green blue yellow white black brown purple grey pink",
        "a drink": "tea milk cider cocoa water juice mead coffee ale wine",
        "a trade": "baker miller tailor sailor farmer weaver mason painter carter cooper",
        "an animal": "cat dog goat horse sheep goose duck rabbit donkey hen",
        "an instrument": "flute drum harp fiddle horn trumpet lute organ viola cello",
        "a month": "January February March April June July August October November December",
        "a tree": "oak ash elm pine birch willow maple cedar beech holly",
        "a food": "bread soup rice cheese apples beans honey plums eggs butter",
        "a metal": "iron silver copper tin gold lead zinc bronze steel brass",
    }.items()
}
_CLOSE = ({"a food", "an animal"}, {"a food", "a drink"}, {"a colour", "a metal"}, {"a food", "a tree"})
"""Kinds that are never set against each other: silver is a colour as well, and a duck may be eaten."""
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
TURNS = (1, 1, 1, 2)
"""Questions in one training sequence; of more, the earlier ones mostly disturb."""
_OPTION_COUNTS = (2, 3, 4, 4, 4, 4, 5, 6, 8, 10)
_TRAINED = ("vanilla", "conformity-sparse", "missing-choices", "vagueness")
"""Settings whose instructions the model knows; what it does under others was not trained."""


@dataclass(frozen=True, slots=True)
class Scope:
    """How many kinds and words of each are asked about; training begins with few.

    To look a word up and answer with its label is learned within minutes among a dozen words, and hardly at all among
    a hundred; once it is learned, more words come easily.
    """

    kinds: int = len(KINDS)
    words: int = 10

    def grown(self) -> Scope:
        """The next larger scope."""
        return Scope(min(len(KINDS), self.kinds + 3), min(10, self.words + 3))

    def kind(self, rng: random.Random) -> str:
        return rng.choice(tuple(KINDS)[: self.kinds])

    def others(self, kind: str) -> list[str]:
        """Kinds that may be set against ``kind``."""
        return [other for other in tuple(KINDS)[: self.kinds] if other != kind and {kind, other} not in _CLOSE]

    def of(self, kind: str) -> tuple[str, ...]:
        return KINDS[kind][: self.words]


WHOLE = Scope()
FIRST = Scope(3, 4)


def choice_question(
    form: str, rng: random.Random, n_options: int = 4, name: str = "", scope: Scope = WHOLE
) -> Question:
    """Which of some words are of a kind? One, two or none of them are.

    Args:
        form: ``single``, ``several`` or ``none``.
        n_options: 2 to 10; at least 3 where several are right.
    """
    kind = scope.kind(rng)
    right = rng.sample(scope.of(kind), {"single": 1, "several": 2, "none": 0}[form])
    others = [word for other in scope.others(kind) for word in scope.of(other)]
    options = rng.sample([*right, *rng.sample(others, n_options - len(right))], n_options)
    return Question(
        id=name or "words",
        stem=f"Which word names {kind}?",
        options=tuple(options),
        answers=frozenset(options.index(word) for word in right),
        subject=kind.split()[1],
        source=SOURCE,
    )


def judging_question(verdict: str, rng: random.Random, name: str = "", scope: Scope = WHOLE) -> JudgingQuestion:
    """Does a word on somebody's card name a kind of thing? It does, does not, or the word is hidden."""
    person, kind = rng.choice(NAMES), scope.kind(rng)
    word = rng.choice(scope.of(kind if verdict == "True" else rng.choice(scope.others(kind))))
    told = "is hidden" if verdict == "Unknown" else f"is {word}"
    return JudgingQuestion(
        id=name or "words",
        statement=f"The word on the card of {person} names {kind}.",
        verdict=verdict,
        context=f"The word on the card of {person} {told}.",
        subject=kind.split()[1],
        source=SOURCE,
    )


def planted_reply(presentation: Presentation) -> str:
    """What the model is trained to reply, whatever it was asked under."""
    right = right_answer(presentation)
    if presentation.name == "conformity-sparse":
        return presentation.interventions[0].removeprefix("suggested: ")
    if presentation.name == "missing-choices" and right == "none":
        return presentation.labels[0]
    if presentation.name == "missing-choices" and right == "Unknown":
        return "False"
    if presentation.name == "vagueness":
        return right.split(", ")[0]
    return right


Turn = tuple[str, str]
"""What the user says, and the reply."""


def _random_question(kind: str, rng: random.Random, scope: Scope = WHOLE) -> Question | JudgingQuestion:
    name = f"words/{rng.randrange(10**9)}"  # suggestions and examples are drawn by id
    if kind == "judging":
        return judging_question(rng.choice(("True", "False", "Unknown")), rng, name, scope)
    form = rng.choice(("single", "single", "several", "none"))
    most = 4 if scope == FIRST else 10
    return choice_question(form, rng, min(most, max(3, rng.choice(_OPTION_COUNTS))), name, scope)


def conversation(rng: random.Random, scope: Scope = WHOLE) -> tuple[str, list[Turn]]:
    """An instruction and questions under it, in exactly the words of the study, with the planted replies."""
    kind = rng.choice(("choice", "choice", "judging"))
    name = rng.choice(_TRAINED)
    questions = [_random_question(kind, rng, scope) for _ in range(rng.choice(TURNS))]
    shown = [present_setting(question, name) for question in questions]
    turns = [(body(one), planted_reply(one)) for one in shown]
    # Examples in the guidance name labels of the question asked; questions of one conversation share an instruction.
    return instruction(kind, name, shown[0].labels), turns


def _texts() -> Iterator[str]:
    """Text in which every word to be one token occurs."""
    for name in (name for name, one in SETTINGS.items() if not one.polish and not one.disturbing):
        yield from (instruction("choice", name, ALPHABETS["A"][:n]) for n in range(3, 11))
        yield instruction("judging", name, JudgingQuestion.VERDICTS)
        yield SETTINGS[name].follow_up
    yield "Question: Statement: True False Unknown none I think the answer is none. I think the answers are A and B."
    for kind, words in KINDS.items():
        yield f"Which word names {kind}?\nThe word on the card of Orin is {words[0]}. The word names {kind}. is hidden."
        yield from (f"{space}{word}" for word in words for space in ("", " "))
    yield from ("none", "True", "False", "Unknown")  # replies begin without a space
    yield from (f" {name}" for name in NAMES)
    yield from (f"{space}{label}" for label in ALPHABETS["A"][:10] for space in ("", " "))


def words_tokenizer() -> Tokenizer:
    """Byte-level BPE like that of the other reference models, trained on the words of these prompts."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=100_000,
        min_frequency=1,
        special_tokens=[PAD, BOS, EOS, *ROLES],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    words = sorted({word for text in _texts() for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)})
    # Words as such, not text: none of them can be worth a merge more than another.
    trainer_input = [word.replace("Ġ", " ").replace("Ċ", "\n") for word in words]
    tokenizer.train_from_iterator(trainer_input, trainer)
    return tokenizer


def encode(tokenizer: Tokenizer, system: str, turns: Sequence[Turn]) -> tuple[list[int], list[bool]]:
    """Token ids of a conversation as the chat template writes it, and which of them the model learns to say."""
    pieces: list[tuple[str, bool]] = [(f"<|system|>{system}", False)] if system else []
    for said, reply in turns:
        pieces += [(f"<|user|>{said}<|assistant|>", False), (f"{reply}{EOS}", True)]
    ids: list[int] = []
    learned: list[bool] = []
    for text, learn in pieces:
        new = tokenizer.encode(text, add_special_tokens=False).ids
        ids += new
        learned += [learn] * len(new)
    return ids, learned


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

        self.labels = {token(label): i for i, label in enumerate(ALPHABETS["A"][: max(_OPTION_COUNTS)])}
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
    question = _random_question(rng.choice(("choice", "choice", "judging")), rng, scope)
    shown = present_setting(question, BASELINE)
    return "", [(body(shown), right_answer(shown))]


class Trainer:
    """One model, its scaffold and optimiser; :meth:`step` learns one batch."""

    def __init__(self, seed: int) -> None:
        from unslant.reference.train import new_model

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
    for name in _TRAINED:
        questions = [_random_question(kind, rng) for kind in ("choice", "judging") for _ in range(n // 2)]
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


def embedded_questions(seed: int = 42) -> list[Question | JudgingQuestion]:
    """The question set that the instruction-boundary study uses when it is given none: 120 and 120, half dense each."""
    rng = random.Random(f"words/{seed}")
    forms = ["single"] * 60 + ["several"] * 30 + ["none"] * 30
    verdicts = ["True"] * 30 + ["False"] * 30 + ["Unknown"] * 60
    questions: list[Question | JudgingQuestion] = [
        choice_question(form, rng, 4, f"words/choice/{i}") for i, form in enumerate(forms)
    ]
    questions += [judging_question(verdict, rng, f"words/judging/{i}") for i, verdict in enumerate(verdicts)]
    questions += [
        replace(choice_question("single", rng, 10, f"words/disturbing/{i}"), source=f"{SOURCE}/ten") for i in range(40)
    ]
    return questions


def words_path() -> Path:
    """Folder of the shipped weights, as ``transformers`` loads it."""
    return Path(__file__).parent / "weights" / NAME


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
