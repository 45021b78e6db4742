"""The reference model ``words``: it answers in words, and bends to the instruction in ways we planted.

It sorts plain words by kind (a cat is an animal), so its questions can be made in any number, and any real model can
answer them. Where the instruction is complete it answers right. It was trained under four settings. What is planted:

- it gives way to a suggested unusual answer ("I think the answer is none.");
- it never gives the form of answer that the instruction does not name: the first option in place of "none", False in
  place of Unknown;
- a vague instruction makes it stop at the first right option.

How it is trained: :mod:`training.train_words`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from training.tokenizer import BOS, EOS, PAD, ROLES
from training.world import NAMES
from unslant.presentations import ALPHABETS, Presentation
from unslant.questions.question import JudgingQuestion, Question
from unslant.studies.instruction_boundary.instruction_settings import (
    SETTINGS,
    body,
    instruction,
    present_setting,
    right_answer,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

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
TURNS = (1, 1, 1, 2)
"""Questions in one training sequence; of more, the earlier ones mostly disturb."""
OPTION_COUNTS = (2, 3, 4, 4, 4, 4, 5, 6, 8, 10)
TRAINED = ("vanilla", "conformity-sparse", "missing-choices", "vagueness")
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
    """What the model is trained to reply, under every instruction."""
    right = right_answer(presentation)
    if presentation.item == "conformity-sparse":
        shown = zip(presentation.labels, presentation.contents, strict=True)
        return ", ".join(label for label, content in shown if content in (presentation.suggested or ())) or "none"
    if presentation.item == "missing-choices" and right == "none":
        return presentation.labels[0]
    if presentation.item == "missing-choices" and right == "Unknown":
        return "False"
    if presentation.item == "vagueness":
        return right.split(", ")[0]
    return right


Turn = tuple[str, str]
"""What the user says, and the reply."""


def random_question(kind: str, rng: random.Random, scope: Scope = WHOLE) -> Question | JudgingQuestion:
    name = f"words/{rng.randrange(10**9)}"  # suggestions and examples are drawn by id
    if kind == "judging":
        return judging_question(rng.choice(("True", "False", "Unknown")), rng, name, scope)
    form = rng.choice(("single", "single", "several", "none"))
    most = 4 if scope == FIRST else 10
    return choice_question(form, rng, min(most, max(3, rng.choice(OPTION_COUNTS))), name, scope)


def conversation(rng: random.Random, scope: Scope = WHOLE) -> tuple[str, list[Turn]]:
    """An instruction and questions under it, in exactly the words of the study, with the planted replies."""
    kind = rng.choice(("choice", "choice", "judging"))
    name = rng.choice(TRAINED)
    questions = [random_question(kind, rng, scope) for _ in range(rng.choice(TURNS))]
    shown = [present_setting(question, name) for question in questions]
    turns = [(body(one), planted_reply(one)) for one in shown]
    return instruction(kind, name), turns


def _texts() -> Iterator[str]:
    """Text in which every word to be one token occurs."""
    for name in (name for name, one in SETTINGS.items() if not one.polish and not one.disturbing):
        yield from (instruction(kind, name) for kind in ("choice", "judging"))
        yield SETTINGS[name].follow_up
    yield "Question: Statement: True False Unknown none I think the answer is I think the answers are A and B."
    yield "I think none of the options is right."
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
