"""Worked examples (few-shot): which questions, in which order of their options."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Sequence

from unslant.errors import InputError
from unslant.presentations.labels import ALPHABETS
from unslant.presentations.presentation import Presentation, present
from unslant.presentations.seeds import question_rng
from unslant.questions.question import Question


class ShotChooser:
    """Chooses ``k`` worked examples for every question of a run.

    By default the whole run has the same examples, so that the beginning of the prompt is shared; a question that is
    one of them, or is worded like one, gets the next in line in its place. The right answers of the examples are
    spread evenly over the positions, so that the examples teach no position.

    Usable are questions with exactly one right option and no pinned ones. The choice depends on the seed and on the
    ids in the pool, not on the order of the pool.
    """

    def __init__(
        self,
        pool: Sequence[Question],
        k: int,
        seed: int = 0,
        *,
        alphabet: tuple[str, ...] = ALPHABETS["A"],
        per_question: bool = False,
    ) -> None:
        """
        Args:
            pool: questions to choose from, all with ids of their own; may hold the questions of the run themselves.
            k: examples for each question, 0 or more.
            per_question: draw other examples for every question, seeded by its id.

        Raises:
            InputError: if the pool has too few usable questions.
        """
        self.k, self.seed, self.alphabet, self.per_question = k, seed, alphabet, per_question
        usable = [q for q in pool if len(q.answers) == 1 and not q.pinned]
        self._usable = sorted(usable, key=lambda question: question.id)
        if len(self._usable) < k:
            raise InputError(
                f"{k} worked examples wanted, but only {len(usable)} of {len(pool)} questions to choose from have "
                "exactly one right option and no pinned ones: use fewer shots or another file"
            )
        self._line = [] if per_question else list(self._draw(question_rng("", seed, "shots")))

    def _draw(self, rng: random.Random) -> Iterator[Question]:
        """All usable questions in random order, drawn one by one: few of them are ever needed."""
        drawn: set[int] = set()
        while len(drawn) < len(self._usable):
            i = rng.randrange(len(self._usable))
            if i not in drawn:
                drawn.add(i)
                yield self._usable[i]

    def of(self, question: Question) -> tuple[Presentation, ...]:
        """The examples to stand before ``question``, from first to last.

        Raises:
            InputError: if too few are left without the question itself.
        """
        line = self._draw(question_rng(question.id, self.seed, "shots")) if self.per_question else iter(self._line)
        chosen = list(itertools.islice(line, self.k))
        spare = (shot for shot in line if not _same(shot, question))
        for place, shot in enumerate(chosen):
            if _same(shot, question):
                substitute = next(spare, None)
                if substitute is None:
                    raise InputError(
                        f"{self.k} worked examples wanted, but too few are left without question {question.id!r} "
                        "itself: use fewer shots or another file"
                    )
                chosen[place] = substitute
        return self._present(chosen)

    def _present(self, chosen: Sequence[Question]) -> tuple[Presentation, ...]:
        """Show each with its right option where the fewest of those before it have theirs."""
        used: Counter[int] = Counter()
        shots = []
        for place, shot in enumerate(chosen):
            n = len(shot.options)
            ties = question_rng("", self.seed, f"shot-position-{place}").sample(range(n), n)
            position = min(ties, key=lambda p: used[p])
            used[position] += 1
            shots.append(self._with_gold_at(shot, position))
        return tuple(shots)

    def _with_gold_at(self, shot: Question, position: int) -> Presentation:
        (gold,) = shot.answers
        order = [i for i in range(len(shot.options)) if i != gold]
        question_rng(shot.id, self.seed, "shot-order").shuffle(order)
        order.insert(position, gold)
        return present(shot, order, self.alphabet, kind="shot")


def _same(a: Question, b: Question) -> bool:
    """Whether two questions are one and the same: by id, or by wording whatever the order of the options."""
    return a.id == b.id or (a.stem == b.stem and a.context == b.context and sorted(a.options) == sorted(b.options))
