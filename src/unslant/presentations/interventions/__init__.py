"""Atomic changes to how a question is shown, and their composition, at random or asked for (P4, section 4.2)."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial

from unslant.errors import InputError
from unslant.presentations import ALPHABETS, Asked, Presentation
from unslant.presentations.interventions import choice, maths, wording
from unslant.presentations.interventions.choice import NotPossible, Pool, Scene
from unslant.presentations.interventions.language import equivalent
from unslant.presentations.interventions.matrix import (
    KINDS,
    MATRIX,
    NAMES,
    NEEDS,
    PROBABILITIES,
    Combination,
    Kind,
    check_probabilities,
    combinations,
    conflict,
    draw,
    in_order,
)
from unslant.presentations.orders import question_rng
from unslant.questions.question import MathQuestion, Question

__all__ = [
    "BOAT", "KINDS", "MATRIX", "NAMES", "NEEDS", "ONLY", "PROBABILITIES", "VANILLA", "Composed", "NotApplicable",
    "Pool", "apply", "combinations", "compose", "conflict", "equivalent", "in_order", "open_question", "pool_of",
    "possible",
]  # fmt: skip

VANILLA, BOAT, ONLY = "vanilla", "boat", "only"
"""Kinds of presentation: as published, a random composition, one intervention alone."""
POOL_RUN = -1
"""Run number of the near misses in a pool of maths questions."""
TRIES_FOR_SHOTS = 4000
"""Questions tried in search of worked examples."""


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """A question that cannot be presented this way, and why; such questions are counted, never silently dropped."""

    question_id: str
    reason: str
    interventions: Combination = ()


@dataclass(frozen=True, slots=True)
class Composed:
    """One question under a legal combination of interventions.

    Attributes:
        items: what is asked: one pair, or one for each option after the binary transformation. The question of a pair
            is the one whose options the contents of the presentation refer to: for a true/false item, that item.
        interventions: what was applied, in order of application.
        left_out: code -> why the question could not take it, for what was drawn or is impossible for it.
    """

    items: tuple[Asked, ...]
    interventions: Combination
    left_out: Mapping[str, str]


def pool_of(questions: Iterable[Question | MathQuestion]) -> Pool:
    """A pool for replaced options, second stems and worked examples.

    Maths questions whose answer is a number get near misses as their options; others are left out.

    Raises:
        ValueError: if no question can be used.
    """
    usable: list[Question] = []
    open_ones: dict[str, MathQuestion] = {}
    for question in questions:
        if isinstance(question, Question):
            usable.append(question)
        elif not maths.obstacle(question):
            open_ones[question.id] = question
            usable.append(maths.answer_jitter(question, question_rng(question.id, POOL_RUN, "AJ")))
    return Pool(usable, open_ones)


def possible(question: Question | MathQuestion) -> tuple[Combination, dict[str, str]]:
    """The interventions a question can take as far as its wording shows, and code -> reason for the others."""
    kind: Kind = "maths" if isinstance(question, MathQuestion) else "choice"
    obstacles = dict(_obstacles(question))
    for code, needed in NEEDS.items():
        if needed in obstacles:
            obstacles.setdefault(code, obstacles[needed])
    return tuple(code for code in KINDS[kind] if code not in obstacles), obstacles


def _obstacles(question: Question | MathQuestion) -> Mapping[str, str]:
    return maths.obstacles(question) if isinstance(question, MathQuestion) else choice.obstacles(question)


def compose(
    question: Question | MathQuestion,
    pool: Pool,
    probabilities: Mapping[str, float] | None = None,
    seed: int = 0,
    run: int = 0,
    *,
    shots: int = 0,
    shots_from: Pool | None = None,
    kind: str = BOAT,
) -> Composed | NotApplicable:
    """A random legal combination of interventions on one question (P4, 4.2 and C).

    Everything random derives from the question's id, ``seed`` and ``run``. An intervention that the question cannot
    take is left out of the draw, with the reason kept; one that finds nothing to work with (no unrelated option in
    the pool) is left out after it.

    Args:
        pool: questions of the same set, for replaced options and second stems.
        probabilities: code -> probability, over the defaults (0.5 each, binary transformation 0.1).
        shots, shots_from: worked examples, see :class:`ShotMaker`; from ``pool`` by default.
        kind: of the presentations; true/false items carry the index of the option as their ``item``.

    Raises:
        InputError: on an unknown intervention, a bad probability, or too few worked examples.
    """
    form: Kind = "maths" if isinstance(question, MathQuestion) else "choice"
    able, left_out = possible(question)
    chances = check_probabilities(probabilities or {})
    combination = draw(able, chances, question_rng(question.id, seed, f"boat/{run}/draw"), form)
    while True:
        result = apply(question, combination, pool, seed, run, shots=shots, shots_from=shots_from, kind=kind)
        if isinstance(result, Composed):
            return replace(result, left_out=left_out)
        if not result.interventions:
            return result
        left_out |= dict.fromkeys(result.interventions, result.reason)
        combination = tuple(code for code in combination if code not in left_out)


def apply(
    question: Question | MathQuestion,
    interventions: Iterable[str],
    pool: Pool,
    seed: int = 0,
    run: int = 0,
    *,
    shots: int = 0,
    shots_from: Pool | None = None,
    kind: str = BOAT,
) -> Composed | NotApplicable:
    """Exactly these interventions on one question; none of them gives the question as published.

    Returns:
        ``NotApplicable`` with the reason, and the interventions that were not possible (empty if it is the question).

    Raises:
        InputError: if the combination is not legal, or there are too few worked examples.
    """
    combination = in_order(interventions)
    if problem := conflict(combination, "maths" if isinstance(question, MathQuestion) else "choice"):
        raise InputError(f"interventions {', '.join(combination) or '(none)'}: {problem}")
    try:
        items = _items(question, combination, pool, partial(_rng, question.id, seed, run), kind)
    except NotPossible as refused:
        return NotApplicable(question.id, refused.reason, refused.interventions)
    examples = ShotMaker(shots_from or pool, pool, combination, seed, run).of(question, items[0][1], shots)
    items = [(item, replace(presentation, shots=examples, run=max(0, run))) for item, presentation in items]
    return Composed(tuple(items), combination, {})


def open_question(
    question: MathQuestion, pool: Pool, seed: int = 0, run: int = 0, *, shots: int = 0
) -> Composed | NotApplicable:
    """An open maths question as published: no options, the answer is a number in words.

    The question of the pair has the answer as option 0 and everything else as option 1; see
    ``unslant.replies.read_open``. Worked examples are open questions of ``pool``, answered by the number alone.

    Raises:
        InputError: if there are too few worked examples.
    """
    if problem := maths.no_number(question):
        return NotApplicable(question.id, problem)
    item, presentation = _open(question, VANILLA)
    examples = ShotMaker(pool, pool, (), seed, run).of(item, presentation, shots)
    return Composed(((item, presentation.with_shots(examples)),), (), {})


def _open(question: MathQuestion, kind: str) -> Asked:
    options = (question.answer, "another number")
    item = Question(question.id, question.stem, options, frozenset({0}), subject=question.subject)
    return item, Presentation(
        question.id, kind, question.stem, (), frozenset({0}), instruction=wording.OPEN, open_answer=question.answer
    )


def _rng(question_id: str, seed: int, run: int, purpose: str) -> random.Random:
    return question_rng(question_id, seed, f"boat/{run}/{purpose}")


def _items(
    question: Question | MathQuestion,
    combination: Combination,
    pool: Pool,
    rng: Callable[[str], random.Random],
    kind: str,
    true: bool | None = None,
) -> list[Asked]:
    problem = maths.obstacle(question) if isinstance(question, MathQuestion) else ""
    if problem or (isinstance(question, Question) and not question.answers):
        raise NotPossible(problem or "no option is right")
    for code in combination:
        if reason := _obstacles(question).get(code):
            raise NotPossible(reason, (code, *(c for c, needed in NEEDS.items() if needed == code)))
    if isinstance(question, MathQuestion):
        if not combination:
            return [_open(question, kind)]
        if "QJ" in combination:
            item = maths.question_jitter(question, rng("QJ"), true)
            return [(item, _changed(choice.judged(item, kind), item, combination, pool, rng, choice.APPLY_TO_JUDGED))]
        question = maths.answer_jitter(question, rng("AJ"))
    elif "BT" in combination:
        pairs = choice.binary_transformation(question, kind)
        return [(item, replace(presentation, interventions=combination)) for item, presentation in pairs]
    return [(question, _changed(choice.shown(question, kind), question, combination, pool, rng, choice.APPLY))]


def _changed(
    presentation: Presentation,
    question: Question,
    combination: Combination,
    pool: Pool,
    rng: Callable[[str], random.Random],
    changes: Mapping[str, choice.Change],
) -> Presentation:
    scene = Scene(pool, rng)
    for code in combination:
        if code in changes:
            try:
                presentation = changes[code](presentation, question, scene)
            except NotPossible as refused:
                raise NotPossible(refused.reason, (code,)) from None
    return replace(presentation, interventions=combination)


@dataclass(frozen=True)
class ShotMaker:
    """Worked examples that carry the same interventions as the question (P4, C.1).

    With answer removal half of them do (rounded down, chosen at random), so that "none is right" is not taught.
    Replaced labels are the question's. Of a question's true/false items one is shown, and of these examples half
    are true (rounded at random), as of those of question jitter. Only questions with one right option that can take the
    same interventions serve.
    """

    pool: Pool
    scenery: Pool
    combination: Combination
    seed: int
    run: int

    def of(self, question: Question | MathQuestion, presentation: Presentation, k: int) -> tuple[Presentation, ...]:
        """``k`` examples to show before a presentation of a question.

        Raises:
            InputError: if too few questions of the pool can serve.
        """
        if k > TRIES_FOR_SHOTS:
            raise InputError(f"{k:,} worked examples requested, of at most {TRIES_FOR_SHOTS:,}: use fewer shots")
        rng = _rng(question.id, self.seed, self.run, "shots")
        removed = set(rng.sample(range(k), k // 2))
        extra = rng.random() < 0.5
        truths = rng.sample([True] * ((k + extra) // 2) + [False] * (k - (k + extra) // 2), k)
        alphabet = tuple(option.label for option in presentation.shown)
        # A worked example that answers the distractor would give away which of the two stems fits the options.
        stems = {question.stem, presentation.stem, presentation.distractor}
        shots: list[Presentation] = []
        ids = set[str]()  # not the question's: a numbered file of examples has an unrelated question of this id
        for other in self.pool.drawn(rng, TRIES_FOR_SHOTS):
            if len(shots) == k:
                break
            if other.id in ids or other.stem in stems or len(other.answers) != 1:
                continue
            ids.add(other.id)
            codes = tuple(code for code in self.combination if code != "AR" or len(shots) in removed)
            if shot := self._shot(other, codes, question.id, truths[len(shots)], alphabet):
                shots.append(shot)
        if len(shots) < k:
            raise InputError(
                f"question {question.id!r}: {k} worked examples requested, but only {len(shots)} were found that can "
                f"take {', '.join(self.combination) or 'no intervention'}: use fewer shots, or draw from a larger file"
            )
        return tuple(shots)

    def _shot(
        self, other: Question, combination: Combination, before: str, true: bool, labels: tuple[str, ...]
    ) -> Presentation | None:
        rng = partial(_rng, f"{before}\x1f{other.id}", self.seed, self.run)
        try:
            items = _items(self.pool.original(other), combination, self.scenery, rng, "shot", true)
        except NotPossible:
            return None
        fitting = [p for _, p in items if "BT" not in combination or p.answers == {0 if true else 1}]
        shot = rng("item").choice(fitting) if fitting else None
        if shot is not None and "LR" in combination:
            key = next(key for key in (*choice.OTHER_ALPHABETS, "A") if labels[0] == ALPHABETS[key][0])
            shot = choice.relabel(shot, ALPHABETS[key])
        return shot
