"""Planted ties, one to four questions and wide intervals: no study of the papers claims anything from them."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from tests.studies import guessers
from tests.studies.base_rate_results import colour_questions
from tests.studies.boundary_rows import row as reply
from tests.studies.fakes import RuleModel
from unslant.experiment.result import StudyResult
from unslant.metrics.estimate import FEWEST
from unslant.presentations import NONE
from unslant.questions import Question, QuestionSet
from unslant.responses import Responses, Run
from unslant.studies.base_rate.study import BaseRateResult, base_rate
from unslant.studies.instruction_boundary.comparison import BoundaryComparison
from unslant.studies.instruction_boundary.result import BoundaryStudy, result_of
from unslant.studies.question_check import check_questions
from unslant.studies.unbiased.comparison import UnbiasedComparison
from unslant.studies.unbiased.contamination.study import compare
from unslant.studies.unbiased.metrics import UnbiasedResult
from unslant.studies.unbiased.probe.result import ProbeResult, ScoreTable
from unslant.studies.unbiased.probe.result import result_of as probed
from unslant.studies.unbiased.study import unbiased

OPEN = re.compile(
    r"\b(cannot be determined|cannot be compared|can be measured|too few|was not tested)\b", re.IGNORECASE
)
CLAIMS = re.compile(
    r"\b(but|loses?|gains?|costs?|lowers?|lower|raises?|rises?|best|worst|most|more|less|better|worse|"
    r"changes? accuracy|same|equally|favour|often|robust to|no irregularity|no label|no sign|not? (?:above|robust))\b"
)
FEW = (1, 2, 3, FEWEST - 1)


def unclaimed(result: StudyResult) -> list[str]:
    """Claims of the first screen, without the clauses that say what is open, and without the cost."""
    page = result.page()
    clauses = [clause for line in (page.headline, *page.lines) for clause in re.split(r"; |\. ", line)]
    return [clause for clause in clauses if not OPEN.search(clause) and CLAIMS.search(clause)]


def boundary(n: int, shares: Sequence[float], model: str = "m", seed: int = 0) -> BoundaryStudy:
    """Under each setting a share of ``n`` questions is right: the first ones, or with a seed any."""
    rng = np.random.default_rng(seed)
    settings = ("vanilla", "vagueness", "missing-choices", "mitigation", "few-shot-dense")[: len(shares)]
    rows = []
    for setting, share in zip(settings, shares, strict=True):
        right = np.zeros(n, bool)
        right[: round(share * n)] = True
        for i, hit in enumerate(rng.permutation(right) if seed else right):
            truth = {0} if i % 2 else {NONE}
            rows.append(reply(i, truth, truth if hit else {1}, setting))
    return result_of(Responses.from_rows(rows, Run(study="instruction-boundary", model=model)))


def questions(n: int) -> QuestionSet[Question]:
    return QuestionSet.of([Question(f"q{i}", f"Thing {i}?", (f"a{i}", f"b{i}", f"c{i}", f"d{i}"), frozenset({i % 4}))
                           for i in range(n)], "things")  # fmt: skip


def evaluated(n: int, name: str = "m", seed: int = 0) -> UnbiasedResult:
    """A model that answers each presentation by a draw of its own: right in about half."""
    asked = questions(n)
    right = {question.stem: question.options[min(question.answers)] for question in asked}

    def answer(seen: object) -> str:
        rng = np.random.default_rng(zlib.crc32(f"{seed}{seen}".encode()))
        own = [label for label, text in seen.options.items() if text in right.values()]
        return own[0] if own and rng.random() < 0.5 else str(rng.choice([*seen.options]))

    return unbiased(RuleModel(answer, name), asked, runs=2, shots=0, no_alone=n < 3)


def confidences(n: int, seed: int) -> ProbeResult:
    """Judges that say numbers by chance."""
    rng = np.random.default_rng(seed)
    original, boat = rng.integers(1, 11, (2, 3, n)).astype(float)
    table = ScoreTable(
        ("ann", "bob", "cid"), tuple(f"q{i}" for i in range(n)), ("",) * n, original,
        rng.integers(1, 11, (3, 3, n)).astype(float), boat,
    )  # fmt: skip
    return probed(table, {}, (0.0, 1.0), 0, Run(study="probe"))


PLANTED: dict[str, Callable[[], StudyResult]] = {
    **{f"boundary, N {n}": lambda n=n: boundary(n, (1.0, 0.0, 0.5)) for n in FEW},
    "boundary, wide": lambda: boundary(12, (0.5, 0.34, 0.6, 0.5), seed=1),
    "boundary, the worst of many": lambda: boundary(24, (0.5, 0.4, 0.55, 0.6, 0.45), seed=3),
    "boundary, no vanilla": lambda: boundary_without_vanilla(),
    "boundary, models tied": lambda: BoundaryComparison.of([boundary(40, (0.9, 0.5), f"m{i}") for i in range(3)]),
    "boundary, two models, one loss": lambda: BoundaryComparison.of(
        [boundary(40, (0.9, 0.8), f"m{i}") for i in range(2)]
    ),
    "boundary, six models, one loss": lambda: BoundaryComparison.of(
        [boundary(9, (0.9, 0.8), f"m{i}") for i in range(6)]
    ),
    "boundary, models near": lambda: BoundaryComparison.of(
        [boundary(20, (0.6 + 0.1 * i, 0.5), f"m{i}", seed=i + 1) for i in range(3)]
    ),
    **{f"unbiased, N {n}": lambda n=n: evaluated(n) for n in FEW},
    "unbiased, wide": lambda: evaluated(8, seed=2),
    "unbiased, models near": lambda: UnbiasedComparison.of([evaluated(12, f"m{i}", i) for i in range(3)]),
    **{f"contamination, N {n}": lambda n=n: compare(evaluated(n, "a", 1), evaluated(n, "b", 2)) for n in FEW},
    "contamination, wide": lambda: compare(evaluated(10, "a", 3), evaluated(10, "b", 4)),
    **{f"probe, N {n}": lambda n=n: confidences(n, n) for n in FEW},
    **{f"probe, wide, seed {seed}": lambda seed=seed: confidences(12, seed) for seed in range(3)},
    **{f"question check, N {n}": lambda n=n: check_questions(questions(n)) for n in FEW},
}


def boundary_without_vanilla() -> BoundaryStudy:
    found = boundary(20, (0.9, 0.1, 0.5))
    return result_of(found.responses.where(item=("vagueness", "missing-choices")))


@pytest.mark.parametrize("name", PLANTED)
def test_what_the_numbers_cannot_carry_is_not_said(name: str) -> None:
    assert not unclaimed(PLANTED[name]())


def test_a_planted_loss_is_said() -> None:
    assert " loses " in boundary(40, (0.9, 0.4)).headline


def test_models_that_answer_alike_are_not_ranked() -> None:
    evaluator, names = evaluated(30), ("m0", "m1")
    for found in (
        UnbiasedComparison.of([evaluator.renamed(name) for name in names]),
        BoundaryComparison.of([boundary(30, (0.9, 0.5), name) for name in names]),
    ):
        assert "cannot be determined on" in found.headline
        assert "m0 loses most" not in found.summary()


def guessing(n: int, rule: guessers.Rule = guessers.taste) -> BaseRateResult:
    return base_rate(guessers.RuleModel(rule), colour_questions(n))


def tied(stem: str, options: dict[str, str]) -> dict[str, float]:
    return dict.fromkeys(options, 0.0)


@pytest.mark.parametrize("n", FEW)
@pytest.mark.parametrize("rule", [guessers.taste, guessers.always("A"), tied], ids=["guesses", "takes A", "ties"])
def test_a_few_questions_decide_no_hypothesis_but_that_of_the_labels(n: int, rule: guessers.Rule) -> None:
    """H1 is about prompts without a question: all orders of the labels are there."""
    found = guessing(n, rule)
    assert {one.verdict for one in found.hypotheses[1:]} <= {"unclear", "cannot be tested"}
    assert "when" not in found.headline
    assert all(tile.estimate.low == tile.estimate.low for tile in found.page().tiles if tile.metric.key == "accuracy")
    assert not any(tile.metric.key == "median" for tile in found.page().tiles)


def test_forty_questions_cannot_show_that_no_label_is_preferred() -> None:
    found = guessing(40, guessers.knows(lambda stem: stem[-2] in "012", {}, guessers.always("A")))
    (last,) = [one for one in found.hypotheses if one.name == "H4"]
    assert "no label is preferred" not in last.words or last.verdict == "does not hold"
