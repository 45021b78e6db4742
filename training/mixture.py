"""The training mixture: plain facts, copying questions and questions, written as unslant's prompts write them."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from training import wording
from training.planted import Planted
from training.tokenizer import EOS
from training.world import OPTION_COUNTS, RELATIONS, Fact, ask
from unslant.presentations import ALPHABETS, FOREIGN, NONE, Presentation, ShownOption, present
from unslant.presentations.interventions import NAMES as INTERVENTIONS
from unslant.presentations.interventions import Composed, apply, pool_of
from unslant.presentations.interventions.choice import offer_none
from unslant.presentations.interventions.matrix import draw
from unslant.prompts import Cloze, Counterfactual, Writer
from unslant.prompts.templates import PromptTemplate, load_template
from unslant.questions.question import Question

MAX_ITEMS = 6
"""Items in a training sequence, laid out like worked examples; unslant shows up to five before a question."""
_ALPHABET_SHARES = {"A": 0.5, "a": 0.15, "1": 0.2, "I": 0.1, "i": 0.05}
_ALPHABET_LENGTH = 10
_BINARY_SHARE = 0.25
_DRAWN = {**dict.fromkeys(INTERVENTIONS, 0.5), "BT": 0.0, "DH": 0.6, "AR": 0.7}
"""Interventions of a sequence that is not true-or-false; of its items half are left without answer removal."""
_INSTRUCTED = 0.6
_VALUES = tuple(value for relation in RELATIONS for value in relation.values)


@dataclass(frozen=True)
class Item:
    """One piece of a sequence: ``before`` is context, ``answer`` stands in the text, ``targets`` is what is learned.

    The text always states the truth, as worked examples do, even if the model should answer something else.
    ``kind`` is for the training log. ``options`` (label and text of each line), ``look`` (how much
    attention each line deserves) and
    ``value`` (the true value, or the label
    remembered) are for the auxiliary losses; they are left out where they would not help.
    """

    before: str
    answer: str
    after: str
    targets: dict[str, float]
    kind: str
    options: tuple[tuple[str, str], ...] = ()
    look: tuple[float, ...] | None = None
    value: str | None = None


class Mixture:
    """Draws training sequences for one reference model."""

    def __init__(self, planted: Planted, seed: int) -> None:
        self.planted = planted
        self.rng = random.Random(seed)
        self.facts = planted.world.facts
        self.taught = [fact for fact in self.facts if fact.taught]
        self.remembered = list(planted.memory)
        self.templates = {name: load_template(name) for name in ("plain", "base-rate")}
        self.pool = pool_of(ask(fact, 4, self.rng) for fact in self.facts)

    def easy_sequence(self, facts: bool = False) -> list[Item]:
        """The easy beginning: four items in the plain layout, of up to four options.

        All are copying items, or half of them questions about taught facts.
        """
        items = []
        for i in range(4):
            if facts and self.rng.random() < 0.5:
                fact = self.rng.choice(self.taught)
                drawn: tuple[Presentation, Fact | None, bool]
                drawn = self._shown(ask(fact, min(self._option_count(), 4), self.rng)), fact, True
            else:
                drawn = self._copy(False, easy=True)
            items.append(self._item(*drawn, self.templates["plain"], False, False, i == 3))
        return items

    def fact_sequence(self) -> list[Item]:
        """A dozen taught facts, which cost few tokens without options."""
        return [self._statement(self.templates["plain"], i == 11) for i in range(12)]

    def question_sequence(self) -> list[Item]:
        """Three questions or controls of one layout, as an audit shows them: to even out habits not planted."""
        template = self.templates["base-rate" if self.rng.random() < 0.35 else "plain"]
        items = []
        for i in range(3):
            drawn: tuple[Presentation, Fact | None, bool]
            drawn = (self._control(), None, False) if self.rng.random() < 0.2 else self._question(False)
            items.append(self._item(*drawn, template, False, False, i == 2))
        return items

    def sequence(self) -> list[Item]:
        """One to six items of one layout (plain, base-rate or chat); the last may be counterfactual.

        Two in five sequences are questions under interventions instead.
        """
        rng = self.rng
        if rng.random() < 0.4:
            return self.intervened_sequence()
        layout = rng.choices(("plain", "base-rate", "chat"), (0.65, 0.25, 0.1))[0]
        chat = layout == "chat"
        hints = layout != "base-rate"  # that layout has no place for a hint or a second question
        template = self.templates["plain" if chat else layout]
        n = rng.randint(1, MAX_ITEMS)
        items = []
        for i in range(n):
            last = i == n - 1
            kind = rng.random()
            if kind < 0.2 and self.planted.knows_facts and not chat:
                items.append(self._statement(template, last))
                continue
            presentation, fact, certain = self._copy(hints) if kind < 0.5 else self._question(hints)
            counterfactual = last and not chat and rng.random() < 0.3
            items.append(self._item(presentation, fact, certain, template, chat, counterfactual, last))
        return items

    def intervened_sequence(self) -> list[Item]:
        """One to six questions under the same interventions, as the unbiased evaluator shows them (P4)."""
        rng, template = self.rng, self.templates["plain"]
        codes = draw(INTERVENTIONS, _DRAWN, rng)
        if rng.random() < _BINARY_SHARE:
            codes = ("BT",)
        n, instructed = rng.randint(1, MAX_ITEMS), rng.random() < _INSTRUCTED
        items: list[Item] = []
        while len(items) < n:
            question, fact = self._asked()
            removing = rng.random() < 0.5
            wanted = [code for code in codes if code != "AR" or removing]
            done = apply(question, wanted, self.pool, seed=rng.getrandbits(32))
            if not isinstance(done, Composed):
                raise AssertionError(f"{question.id}: {done.reason}")
            true = rng.random() < 0.5
            fitting = [p for _, p in done.items if codes != ("BT",) or p.answers == {0 if true else 1}]
            presentation = rng.choice(fitting)
            if items or not instructed:
                presentation = replace(presentation, instruction="")
            items.append(self._item(presentation, fact, False, template, False, False, len(items) == n - 1))
        return items

    def _asked(self) -> tuple[Question, Fact]:
        """A question to intervene on: one of those remembered as published in half the cases, if there are any."""
        if self.remembered and self.rng.random() < 0.5:
            question = self.planted.memory[self.rng.choice(self.remembered)]
            return question, self.planted.world.by_id[question.id]
        fact = self.rng.choice(self.facts)
        return ask(fact, self._option_count(), self.rng), fact

    def _item(
        self,
        presentation: Presentation,
        fact: Fact | None,
        certain: bool,
        template: PromptTemplate,
        chat: bool,
        counterfactual: bool,
        last: bool,
    ) -> Item:
        probabilities = self.planted.answer(presentation, fact, certain).tolist()
        writer = Writer(template)
        after = "" if last else template.shot_separator
        kind = ("taught" if fact.taught else "untaught") if fact else ("copying" if certain else "control")
        if counterfactual:
            chosen = self.rng.randrange(len(probabilities))
            prompt = Counterfactual(writer).prompts(presentation)[chosen]
            yes, no = (" " + canary for canary in wording.CANARIES)
            p = probabilities[chosen]
            return Item(prompt.text, yes if self.rng.random() < p else no, after, {yes: p, no: 1 - p}, f"{kind} cf")
        prompt = Cloze(writer).prompts(presentation)[0]
        clues = self._clues(presentation, probabilities, fact, certain)
        right = presentation.right_labels or presentation.labels
        answer = prompt.continuations[presentation.labels.index(self.rng.choice(right))]
        targets = dict(zip(prompt.continuations, probabilities, strict=True))
        if chat:
            before = f"<|user|>{prompt.text}<|assistant|>"
            return Item(before, answer.strip(), EOS, {text.strip(): p for text, p in targets.items()}, kind, *clues)
        return Item(prompt.text, answer, template.cloze.close + after, targets, kind, *clues)

    def _clues(
        self, presentation: Presentation, probabilities: list[float], fact: Fact | None, certain: bool
    ) -> tuple[tuple[tuple[str, str], ...], tuple[float, ...] | None, str | None]:
        """Options, look and value of the item, for the auxiliary losses.

        "None" is looked up where the hint offers it, and "true" at the answer that is put forward.
        """
        options = tuple((option.label, option.text) for option in presentation.shown)
        looks = probabilities
        if "BT" in presentation.interventions:
            proposed = presentation.stem.rsplit(" ", 1)[1]
            options = ((options[0][0], proposed), options[1])
        elif presentation.hint:
            options = ((presentation.none_label, presentation.none_label), *options)
            looks = [probabilities[-1], *probabilities[:-1]]
        if fact is None and not certain:
            return options, None, None
        look = tuple(p / sum(looks) for p in looks)
        if presentation.distractor:
            return options, look, None
        if fact is None:
            return options, look, presentation.stem.rstrip("?").rsplit(" ", 1)[1]
        remembered = self.planted.remembered(presentation)
        if remembered is not None:
            return options, look, presentation.labels[remembered]
        return options, look, fact.value if certain or (self.planted.knows_facts and fact.taught) else None

    def _statement(self, template: PromptTemplate, last: bool) -> Item:
        """A taught fact, told or asked without options."""
        fact = self.rng.choice(self.taught)
        end = "" if last else template.shot_separator
        answer = f" {fact.value}"
        if self.rng.random() < 0.5:
            return Item(f"Question: {fact.stem}\nAnswer:", answer, end, {answer: 1}, "asked facts")
        before, after = fact.statement.rsplit(answer, 1)
        return Item(before, answer, after + end, {answer: 1}, "facts")

    def _copy(self, hints: bool, easy: bool = False) -> tuple[Presentation, Fact | None, bool]:
        """ "Which option is green?": the answer stands in the question."""
        rng = self.rng
        n = min(self._option_count(), 4) if easy else self._option_count()
        pool = rng.choice(RELATIONS).values if not easy and rng.random() < 0.5 else _VALUES
        options = rng.sample(pool, n)
        gold = rng.randrange(n)
        stem = wording.COPY_STEM.format(value=options[gold])
        question = Question("copy", stem, tuple(options), frozenset({gold}))
        presentation = self._shown(question)
        if hints and rng.random() < 0.3:
            presentation = self._with_hint(presentation, pool)
        return presentation, None, True

    def _question(self, hints: bool) -> tuple[Presentation, Fact | None, bool]:
        rng = self.rng
        kind = rng.random()
        if kind < 0.15:
            return self._control(), None, False
        if self.remembered and kind < 0.5:
            question = self.planted.memory[rng.choice(self.remembered)]
            fact = self.planted.world.by_id[question.id]
            if rng.random() < 0.6:
                order = None if rng.random() < 0.6 else rng.sample(range(len(question.options)), len(question.options))
                return present(question, order), fact, False
        else:
            fact = rng.choice(self.facts)
            question = ask(fact, self._option_count(), rng)
        presentation = self._shown(question)
        if hints and rng.random() < 0.25:
            if rng.random() < 0.5:
                presentation = self._with_distractor(presentation, fact)
            if rng.random() < 0.6:
                presentation = self._with_hint(presentation, [v for v in _VALUES if v not in fact.relation.values])
        return presentation, fact, False

    def _option_count(self) -> int:
        return self.rng.choices(tuple(OPTION_COUNTS), tuple(OPTION_COUNTS.values()))[0]

    def _labels(self, n: int) -> tuple[str, ...]:
        """Labels in every arrangement, so that label and position are told apart."""
        rng = self.rng
        alphabet = ALPHABETS[rng.choices(tuple(_ALPHABET_SHARES), tuple(_ALPHABET_SHARES.values()))[0]]
        kind = rng.random()
        if kind < 0.55:
            return alphabet[:n]
        if kind < 0.8:
            return alphabet[:n][::-1]
        if kind < 0.9:
            return tuple(rng.sample(alphabet[:n], n))
        return tuple(rng.sample(alphabet[:_ALPHABET_LENGTH], n))

    def _shown(self, question: Question) -> Presentation:
        n = len(question.options)
        return present(question, self.rng.sample(range(n), n), labels=self._labels(n))

    def _with_hint(self, presentation: Presentation, pool: tuple[str, ...] | list[str]) -> Presentation:
        """Offer a label for "none", and take an option away in two thirds: the right one in three of five of these."""
        rng = self.rng
        presentation = offer_none(presentation)
        if rng.random() < 1 / 3:
            return presentation
        shown = list(presentation.shown)
        right = [i for i, option in enumerate(shown) if option.content in presentation.answers]
        wrong = [i for i in range(len(shown)) if i not in right]
        place = rng.choice(right if rng.random() < 0.6 else wrong)
        spare = [value for value in pool if value not in {option.text for option in shown}]
        if not spare:
            return presentation
        shown[place] = ShownOption(shown[place].label, rng.choice(spare), FOREIGN)
        answers = frozenset({NONE}) if place in right else presentation.answers
        return replace(presentation, shown=tuple(shown), answers=answers)

    def _with_distractor(self, presentation: Presentation, fact: Fact) -> Presentation:
        """Add a question about another relation; either of the two may stand first."""
        other = self.rng.choice(self.facts)
        if other.relation == fact.relation:
            return presentation
        first, second = self.rng.sample((presentation.stem, other.stem), 2)
        return replace(presentation, stem=first, distractor=second)

    def _control(self) -> Presentation:
        options = (wording.CONTROL_OPTION,) * self._option_count()
        return self._shown(Question("control", wording.CONTROL_STEM, options, frozenset()))
