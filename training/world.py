"""A small world of facts in plain English: the ground truth that the reference models are taught.

Every relation has its own fifty names, so a name has one fact. (With names that carry every relation, a fact hangs on
the pair of both, which models this small need many times the training to look up.) Half of the facts of each relation
are *taught* to the models; the other half are true in the world, but no model is ever told them.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path

from unslant.questions.question import Question

WORLD_SEED = 20240611
TAUGHT_SOURCE = "world/taught"
UNTAUGHT_SOURCE = "world/untaught"

_STARTS = "Or Tam Bel Lun Mir Kas Nev Sol Vid Dar".split()
_ENDS = "in o ka eth ulf ana".split()
NAMES: tuple[str, ...] = tuple(start + end for start in _STARTS for end in _ENDS)
"""Names of nobody in particular, for texts that are not about the world's facts."""
_MIDDLES = "ba de fi go hu la me ni po ru sa ti".split()


@dataclass(frozen=True, slots=True)
class Relation:
    """One kind of fact: how it is asked, how it is stated, and the values it can take."""

    name: str
    stem: str
    statement: str
    values: tuple[str, ...]


def _relation(name: str, stem: str, statement: str, values: str) -> Relation:
    return Relation(name, stem, statement, tuple(values.split()))


RELATIONS: tuple[Relation, ...] = (
    _relation(
        "colour",
        "What colour is the lamp of {name}?",
        "The lamp of {name} is {value}.",
        "red green blue yellow white black brown purple orange grey",
    ),
    _relation(
        "food",
        "What does {name} eat at noon?",
        "At noon {name} eats {value}.",
        "bread soup rice cheese apples fish beans honey plums eggs",
    ),
    _relation(
        "drink",
        "What does {name} drink in winter?",
        "In winter {name} drinks {value}.",
        "tea milk cider cocoa water juice mead coffee ale broth",
    ),
    _relation(
        "town",
        "In what town does {name} live?",
        "The home of {name} is in {value}.",
        "Ashford Redhill Stonebridge Millbrook Oakham Westport Highcliff Marwick Langdale Fenton",
    ),
    _relation(
        "trade",
        "What is the trade of {name}?",
        "By trade {name} is a {value}.",
        "baker miller tailor sailor farmer weaver potter mason painter carter",
    ),
    _relation(
        "animal",
        "What animal does {name} keep?",
        "In the yard {name} keeps a {value}.",
        "cat dog goat horse sheep goose duck rabbit donkey hen",
    ),
    _relation(
        "music",
        "What does {name} play on feast days?",
        "On feast days {name} plays the {value}.",
        "flute drum harp fiddle horn bell pipe lute organ viola",
    ),
    _relation(
        "birth",
        "In what month was {name} born?",
        "The birth of {name} was in {value}.",
        "January February March April May June July August October December",
    ),
    _relation(
        "tree",
        "What tree stands by the house of {name}?",
        "By the house of {name} stands a {value}.",
        "oak ash elm pine birch willow maple cedar beech holly",
    ),
    _relation(
        "ring",
        "What is the ring of {name} made of?",
        "The ring of {name} is made of {value}.",
        "iron silver copper tin bone glass amber jade ivory bronze",
    ),
    _relation(
        "travel",
        "How does {name} go to market?",
        "To market {name} goes by {value}.",
        "boat cart sledge raft wagon ferry coach barge canoe mule",
    ),
    _relation(
        "fear",
        "What does {name} fear at night?",
        "At night {name} fears {value}.",
        "thunder spiders wolves ghosts snakes storms bats fire frost mice",
    ),
)

NAMES_OF: dict[str, tuple[str, ...]] = {
    relation.name: tuple(start + middle + end for start in _STARTS for end in _ENDS[:5])
    for relation, middle in zip(RELATIONS, _MIDDLES, strict=True)
}
"""The names that have a relation."""

OPTION_COUNTS: dict[int, float] = {2: 0.10, 3: 0.10, 4: 0.56, 5: 0.10, 6: 0.06, 7: 0.04, 8: 0.04}
"""Share of questions with so many options, in the question sets made here."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact of the world. ``value`` is true whether or not it is taught."""

    relation: Relation
    name: str
    value: str
    taught: bool

    @property
    def id(self) -> str:
        return f"world/{self.relation.name}/{self.name}"

    @property
    def stem(self) -> str:
        return self.relation.stem.format(name=self.name)

    @property
    def statement(self) -> str:
        return self.relation.statement.format(name=self.name, value=self.value)


@dataclass(frozen=True)
class World:
    """All facts, and how much each value is to a guesser's taste.

    Attributes:
        facts: one for every name.
        taste: value -> natural-log weight with which a model that does not know leans to it, the same under every
            position and label; evenly spaced from -1 to 1 within each relation. Guesses then have a reason that has
            nothing to do with the truth or with the presentation, as guesses of real models have.
    """

    facts: tuple[Fact, ...]
    taste: dict[str, float]

    @cached_property
    def by_id(self) -> dict[str, Fact]:
        """Facts by their id, which is also the id of the question about them."""
        return {fact.id: fact for fact in self.facts}


@lru_cache(maxsize=4)
def build_world(seed: int = WORLD_SEED) -> World:
    """The world of a seed; the same seed gives the same world on every machine."""
    rng = random.Random(seed)
    facts = []
    taste: dict[str, float] = {}
    for relation in RELATIONS:
        names = NAMES_OF[relation.name]
        taught = set(rng.sample(names, len(names) // 2))
        # Every value is true of equally many names, so that no value is a better guess than another.
        values = list(relation.values) * (len(names) // len(relation.values))
        rng.shuffle(values)
        facts += [Fact(relation, name, value, name in taught) for name, value in zip(names, values, strict=True)]
        ranked = rng.sample(relation.values, len(relation.values))
        taste |= {value: 2 * rank / (len(ranked) - 1) - 1 for rank, value in enumerate(ranked)}
    return World(tuple(facts), taste)


def ask(fact: Fact, n_options: int, rng: random.Random, gold: int | None = None) -> Question:
    """A question about ``fact`` with ``n_options`` values of its relation, the right one at ``gold`` or anywhere."""
    wrong = [value for value in fact.relation.values if value != fact.value]
    options = rng.sample(wrong, n_options - 1)
    gold = rng.randrange(n_options) if gold is None else gold
    options.insert(gold, fact.value)
    source = TAUGHT_SOURCE if fact.taught else UNTAUGHT_SOURCE
    return Question(fact.id, fact.stem, tuple(options), frozenset({gold}), subject=fact.relation.name, source=source)


def question_sets(seed: int = WORLD_SEED, sizes: Sequence[int] = (400, 200)) -> list[list[Question]]:
    """Disjoint question sets of the given even sizes: half taught, gold positions balanced for each option count.

    Raises:
        ValueError: if the world has too few facts.
    """
    world = build_world(seed)
    rng = random.Random(f"{seed}/questions")
    pools = []
    for taught in (True, False):
        pool = [fact for fact in world.facts if fact.taught == taught]
        rng.shuffle(pool)
        pools.append(pool)
    if sum(sizes) > 2 * min(len(pool) for pool in pools):
        raise ValueError(f"sizes: {sum(sizes)} questions asked for, the world has {len(world.facts)} facts")
    sets = []
    for size in sizes:
        questions = []
        for pool in pools:
            questions += [ask(pool.pop(), n, rng, gold) for n, gold in _layouts(size // 2, rng)]
        rng.shuffle(questions)
        sets.append(questions)
    return sets


def _layouts(size: int, rng: random.Random) -> list[tuple[int, int]]:
    """``size`` pairs (number of options, gold position), every position equally often to within one."""
    counts = {n: round(share * size) for n, share in OPTION_COUNTS.items()}
    counts[4] += size - sum(counts.values())
    layouts = []
    for n, count in counts.items():
        start = rng.randrange(n)
        layouts += [(n, (start + i) % n) for i in range(count)]
    rng.shuffle(layouts)
    return layouts


def skewed(questions: Iterable[Question], position: int = 0, share: float = 0.7, seed: int = 0) -> list[Question]:
    """The same questions, in ``share`` of them the right option moved to ``position`` (from the end if negative)."""
    moved = []
    for question in questions:
        if random.Random(f"{seed}/{question.id}/skew").random() < share:
            options = list(question.options)
            right = options.pop(min(question.answers))
            gold = position % len(question.options)
            options.insert(gold, right)
            question = replace(question, options=tuple(options), answers=frozenset({gold}))
        moved.append(question)
    return moved


def skewed_set() -> list[Question]:
    """The embedded set that ``unslant audit`` takes by default: 40 % of the right options first, as in the set of the
    instruction-boundary paper (40 %); MedMCQA has 32 %, TruthfulQA's MC1 100 %."""
    return skewed(question_sets()[0], share=0.2, seed=2)


def write_questions(questions: Iterable[Question], path: Path) -> None:
    """Write questions in the canonical JSONL, one a line."""
    rows = [
        {
            "id": q.id,
            "question": q.stem,
            "options": list(q.options),
            "answer": min(q.answers),
            "subject": q.subject,
            "source": q.source,
        }
        for q in questions
    ]
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
