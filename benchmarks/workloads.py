"""Six workloads of multiple-choice prompts, written from a fixed seed with the lengths of public question sets.

The text is made up (so that a fresh clone needs no data), its lengths are not: medians of stems and means of options
were taken from ARC-Challenge, MedMCQA, QASC and AR-LSAT. Scores do not depend on meaning, and neither does time.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from unslant.presentations import orders_for, present
from unslant.prompts import Cloze, Counterfactual, Prompt, Writer, load_template
from unslant.questions import Question

_NOUNS = """water light heat plant animal cell energy rock soil wind ocean planet moon star metal magnet battery circuit
leaf root seed flower insect bird fish mammal reptile bone muscle blood heart lung nerve brain enzyme protein hormone
antibody bacterium virus vaccine fever artery vein kidney liver tumor drug dose symptom patient surgeon tissue glucose
insulin oxygen carbon nitrogen hydrogen acid base salt crystal pressure volume temperature density speed force mass
gravity friction wave sound frequency color shadow mirror lens telescope microscope thermometer experiment sample
result hypothesis season climate storm cloud rain river lake glacier mountain volcano earthquake fossil layer forest
desert food chain predator prey population habitat species gene trait parent offspring engine machine lever pulley
signal antenna channel network packet protocol carrier station receiver bandwidth contract witness clerk manager
teacher student office meeting schedule project building floor window market price profit""".split()
_VERBS = """causes prevents increases reduces absorbs reflects carries releases produces contains protects separates
attracts repels measures moves changes supports destroys replaces follows controls inhibits stimulates transports
converts stores detects filters transmits connects requires allows limits describes explains""".split()
_ADJECTIVES = """large small warm cold bright dark heavy light strong weak solid liquid chronic acute rare common local
global early late deep shallow steady sudden normal abnormal visible hidden simple complex natural artificial fresh
dry wet upper lower inner outer green red blue white main minor active passive positive negative""".split()
_OPENERS = ("Which of the following", "A student observes that", "Which statement about", "In most cases", "What")
_LINKS = ("because", "when", "after", "before", "while", "so that", "although", "if")


@dataclass(frozen=True)
class Workload:
    """Prompts of one kind.

    Attributes:
        name: what tables call it.
        make: prompts of ``n`` questions.
    """

    name: str
    make: Callable[[int], list[Prompt]]


def _phrase(rng: random.Random, words: int) -> str:
    """About ``words`` words of something like English."""
    out: list[str] = []
    while len(out) < words:
        out += ["the", rng.choice(_ADJECTIVES), rng.choice(_NOUNS)] if rng.random() < 0.5 else [rng.choice(_NOUNS)]
        out.append(rng.choice(_VERBS) if len(out) % 3 else rng.choice(_LINKS))
    return " ".join(out[:words])


def made_question(rng: random.Random, name: str, stem: int, option: float, n: int, context: int = 0) -> Question:
    """A question of about ``stem`` words with ``n`` options of about ``option`` words after ``context`` words."""
    texts: dict[str, None] = {}
    while len(texts) < n:
        words = max(1, round(rng.gauss(option, option / 3)))
        texts[_phrase(rng, words).capitalize()] = None
    passage = ""
    while len(passage.split()) < context:
        passage += _phrase(rng, 16).capitalize() + ". "
    opener = rng.choice(_OPENERS)
    question = f"{opener} {_phrase(rng, max(1, stem - len(opener.split())))}?"
    return Question(name, question, tuple(texts), frozenset({rng.randrange(n)}), context=passage.strip())


def _questions(count: int, seed: str, shape: dict[str, float]) -> Iterator[Question]:
    for i in range(count):
        yield made_question(random.Random(f"{seed} {i}"), f"{seed}-{i}", **shape)  # type: ignore[arg-type]


_FOUR = {"stem": 19, "option": 5, "n": 4}
_MEDICAL = {"stem": 10, "option": 4.3, "n": 4}
_EIGHT = {"stem": 8, "option": 2, "n": 8}
_CONTEXT = {"stem": 18, "option": 8, "n": 4, "context": 225}


def _prompts(n: int, seed: str, shape: dict[str, float], shots: int = 0, counterfactual: bool = False) -> list[Prompt]:
    writer = Writer(load_template("plain"))
    cloze, both = Cloze(writer), Counterfactual(writer)
    examples = [present(question, kind="shot") for question in _questions(shots, "shot", {**_FOUR, "stem": 50})]
    prompts: list[Prompt] = []
    for question in _questions(n, seed, shape):
        for order in orders_for(question, "24"):
            shown = present(question, order).with_shots(examples)
            prompts += cloze.prompts(shown)
            if counterfactual:
                prompts += both.prompts(shown)
    return prompts


WORKLOADS = (
    Workload("four options, 24 orders", lambda n: _prompts(n, "four", _FOUR)),
    Workload("medical, 24 orders", lambda n: _prompts(n, "medical", _MEDICAL)),
    Workload("eight options, 24 sampled", lambda n: _prompts(n, "eight", _EIGHT)),
    Workload("300-token context", lambda n: _prompts(n, "context", _CONTEXT)),
    Workload("five-shot preamble", lambda n: _prompts(n, "shots", _FOUR, shots=5)),
    Workload("cloze and counterfactual", lambda n: _prompts(n, "both", _FOUR, counterfactual=True)),
)


def corpus() -> Iterator[str]:
    """Text to learn a tokenizer from."""
    rng = random.Random("corpus")
    for _ in range(2000):
        yield _phrase(rng, 40).capitalize() + "."
    for workload in WORKLOADS:
        yield workload.make(1)[0].text
    yield " ".join(letter + "." for letter in "ABCDEFGHIJ") + "\nQuestion:\nAnswer: A\nanswer choice is the best"
