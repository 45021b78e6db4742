"""Planted ties, too few questions and wide intervals: no first screen claims a difference.

A study adds its own by a row of ``PLANTED``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from tests.chatting import RuleChat
from tests.fakes import RuleModel
from tests.first_screens import said
from tests.reports.synthetic import synthetic_audit, synthetic_questions
from tests.studies.planted_judges import HABITS, judged
from tests.studies.talkers import QUESTIONS
from unslant.arrays import Floats
from unslant.auditing.comparison import AuditComparison
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.experiment.result import StudyResult
from unslant.metrics import Bootstrap, Estimate
from unslant.metrics.estimate import verdict
from unslant.metrics.registry import question_metrics
from unslant.models.base import Scored
from unslant.prompts import Prompt
from unslant.questions import Question, QuestionSet
from unslant.responses import Run
from unslant.responses.importers import Log, Logged, joined
from unslant.studies.debias.measure_debiased import MEASURES, MeasureChange, PairedValues
from unslant.studies.debias.panels import _headline, _verdicts
from unslant.studies.debias.result import DebiasResult, MethodEntry, Spent, averages
from unslant.studies.debias.study import debias
from unslant.studies.judge.result import JudgeResult
from unslant.studies.leaderboard.study import Leaderboard

CLAIMS = re.compile(
    r"\b(but|leads?|best|worst|highest|lowest|higher|lower|better|worse|more than|less than|gives more|beats?|costs?|"
    r"above|below|always|prefers?|falls back|avoids|sticks|leans|robust|beyond noise|too often|same to within|"
    r"ranks first|gains|loses|changes \S+ by|raises|raised|lowers|lowered)\b"
)
"""What only an interval that excludes the null (or lies within a bound) may say."""


def audit_of(n: int, seed: int = 0, model: str = "planted") -> AuditResult:
    """Noise alone: no knowledge and no lean."""
    return synthetic_audit(synthetic_questions(n, seed=seed), lean=0.0, knows=0.0, seed=seed, model=model)


def all_tied(n: int) -> AuditResult:
    """Every option of every question gets the same probability in every order."""
    found = audit_of(n)
    table = found.responses.table
    even = [[-float(np.log(4))] * 4] * len(table)
    place = table.schema.get_field_index("logprobs")
    field = table.schema.field(place)
    return AuditResult.of(replace(found.responses, table=table.set_column(place, field, pa.array(even, field.type))))


def certain(n: int) -> AuditResult:
    """Right, or leaning, on all of a few questions."""
    return synthetic_audit(synthetic_questions(n), lean=9.0, knows=0.5, model="certain")


def compared(n: int, models: int) -> AuditComparison:
    """Models that differ by chance alone, on the same questions."""
    questions = synthetic_questions(n)
    made = [synthetic_audit(questions, lean=0.0, knows=0.0, seed=i, model=f"m{i}") for i in range(models)]
    return AuditComparison.of(made)


def debiased(n: int, unmoved: bool = False) -> DebiasResult:
    """Methods on a model that guesses, or on one whose answers no order moves."""

    def rule(stem: str, labels: list[str], texts: list[str]) -> list[float]:
        if unmoved:
            return [1.0 + len(stem + text) % 7 for text in texts]
        return (1.0 + np.random.default_rng(len(stem)).random(len(texts))).tolist()

    questions = QuestionSet.of(synthetic_questions(n), "set")
    return debias([RuleModel(rule, "planted")], [questions], methods=("gray-box", "pride:alpha=1"))


def noise_in_words(repeats: int = 3) -> AuditResult:
    """Replies that have nothing to do with the question, the order or each other."""
    rng = random.Random(4)
    return audit(RuleChat(lambda stem, labels, texts: f"Answer: {rng.choice(labels)}"), QUESTIONS, repeats=repeats)


PLANTED: dict[str, Callable[[], StudyResult]] = {
    **{f"audit, N {n}": lambda n=n: certain(n) for n in (1, 2, 3, 4)},
    **{f"audit, wide, N {n}": lambda n=n: audit_of(n) for n in (5, 8, 12, 20)},
    **{f"audit, ties, N {n}": lambda n=n: all_tied(n) for n in (1, 3, 12)},
    **{f"comparison, N {n}": lambda n=n: AuditComparison.of([certain(n), audit_of(n)]) for n in (1, 3)},
    **{f"comparison, wide, {m} models": lambda m=m: compared(16, m) for m in (2, 3, 8)},
    **{f"leaderboard, N {n}": lambda n=n: Leaderboard.of([certain(n), audit_of(n)]) for n in (1, 3)},
    **{f"leaderboard, wide, {m} models": lambda m=m: Leaderboard.of(compared(16, m).parts) for m in (1, 2, 3, 8)},
    "leaderboard, ties": lambda: Leaderboard.of([audit_of(40), audit_of(40, model="again")], rank_by="vote"),
    **{f"debias, N {n}": lambda n=n: debiased(n) for n in (1, 3)},
    "debias, nothing moves": lambda: debiased(40, unmoved=True),
    "words, noise": noise_in_words,
    **{f"judge, N {n}": lambda n=n: JudgeResult.of(judged(HABITS["neither"], 1, n)) for n in (1, 3, 4)},
    **{f"judge, noise, N {n}": lambda n=n: JudgeResult.of(judged(HABITS["neither"], 3, n)) for n in (6, 12, 24)},
    "comparison, ties": lambda: AuditComparison.of([audit_of(40), audit_of(40, model="again")]),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_the_numbers_cannot_carry_is_not_said(name: str) -> None:
    page = PLANTED[name]().page()
    said = " ".join((page.headline, *page.lines))
    assert not CLAIMS.findall(said), said


@pytest.mark.parametrize("seed", range(8))
def test_but_is_said_exactly_where_the_paired_difference_excludes_0(seed: int) -> None:
    found = synthetic_audit(synthetic_questions(60, seed=seed), lean=0.5 * seed, knows=0.4, seed=seed)
    assert (" but " in found.headline) == verdict(found.metrics.means["order_advantage"], bound=0.02).differs
    above = found.metrics.above_chance
    assert ("; guessing gives 0.25" in found.headline) == verdict(above.excess, p=above.p).differs


def test_noise_in_words_is_not_taken_for_an_effect_of_order() -> None:
    repeated = noise_in_words()
    assert "an effect of order cannot be distinguished from noise" in repeated.page().lines[0]
    once = noise_in_words(repeats=1)
    warm = replace(once.run, identity={**once.run.identity, "temperature": "1.0"})
    line = AuditResult.of(replace(once.responses, run=warm)).page().lines[0]
    assert "noise and order cannot be distinguished" in line
    assert "right in every order" not in line


def test_planted_effects_are_said() -> None:
    found = synthetic_audit(synthetic_questions(400), lean=4.0, knows=0.5)
    assert "falls back on A" in found.page().lines[1]
    assert "guessing gives 0.25" in found.headline
    questions = synthetic_questions(200)
    good, bad = synthetic_audit(questions, knows=0.9, model="good"), synthetic_audit(questions, knows=0.1, model="bad")
    headline = AuditComparison.of([bad, good]).headline
    assert re.match(r"good scores 0\.\d\d \(.*\) more than bad on the same 200 questions", headline)
    board = Leaderboard.of([bad, good])
    assert re.match(r"good ranks first of 2 models: 0\.\d\d \(.*\) averaged over option orders", board.headline)
    lean = Leaderboard.of([good, synthetic_audit(questions, lean=5.0, knows=0.9, model="leans")])
    assert any(re.search(r"changes .*leans by \+0\.\d+ \(0\.", line) for line in lean.page().lines)


def test_an_estimate_stays_in_the_range_of_its_metric() -> None:
    """An adaptive audit extends single questions beyond it; their mean and its interval may not go there."""

    def rule(stem: str, labels: list[str], texts: list[str]) -> str:
        ends = "item 0" in (texts[0], texts[-1])  # as given and reversed the same answer, not so in between
        return f"Answer: {labels[texts.index('item 0') if ends else 0]}"

    found = audit(RuleChat(rule), QUESTIONS, adaptive=True)
    outside = 0
    for metric in question_metrics():
        estimate, values = found.metrics.means[metric], found.metrics.questions[metric.key]
        if estimate.low == estimate.low:
            least, most = metric.bounds
            assert least <= estimate.low <= estimate.value <= estimate.high <= most, metric.key
            assert estimate.low < estimate.high
            outside += bool(np.nanmin(values) < least)
    assert outside
    unsure = found.metrics.preference.unsure
    assert 0 <= unsure.low <= unsure.value <= unsure.high <= 1


def test_rounding_hides_no_claim() -> None:
    """A score just below chance: with two digits the interval would hold the chance that it is said to exclude."""
    questions = [
        Question(f"q{i}", f"{'Hard' if i % 25 == 0 else 'Is'} {i}?", ("u", "v", "w", "x"), frozenset({i % 4}))
        for i in range(200)
    ]

    def taken(stem: str, labels: Sequence[str], texts: Sequence[str]) -> list[float]:
        """A, and another option than the right one where it is hard."""
        wrong = "uvwx"[(int("0" + "".join(filter(str.isdigit, stem))) + 1) % 4]
        return [9.0 if ("Hard" in stem and text == wrong) or ("Hard" not in stem and not i) else 0.1
                for i, text in enumerate(texts)]  # fmt: skip

    headline = audit(RuleModel(taken), questions).headline
    assert "guessing gives more" in headline
    low, high, chance = [float(one) for one in re.findall(r"\d\.\d+", headline)][-3:]
    assert low <= high < chance, headline


def test_ties_in_the_vote_are_not_knowledge() -> None:
    """Whichever option a tied vote goes to, the model has not named it."""
    assert "; 100 % of the votes are ties, which a fixed rule decides." in said(all_tied(12))
    assert "of the votes are ties" not in said(audit_of(12))


def test_only_the_average_is_compared_with_guessing() -> None:
    """A model that remembers where right options stood scores 1.00 as published, and guesses in other orders."""
    pages = [
        Logged(f"q{i}", tuple("ABCD"), frozenset({place}), "here", question=f"Which is {i}?",
               options=tuple(f"{i} {(shift - place) % 4}" for shift in range(4)),
               chosen=frozenset({place if i == 0 else i % 4}))
        for i in range(40)
        for place in [(i + turn) % 4 for turn in range(4)]
    ]  # fmt: skip
    screen = said(AuditResult.of(joined([Log("m", "test", "words", tuple(pages), "task")])))
    assert "m scores 1.00" in screen
    assert "the average cannot be distinguished from guessing" in screen
    assert "The average and guessing cannot be distinguished on 40 questions" in screen


def tried(values: Floats) -> DebiasResult:
    """Methods that change the accuracy of each of Q questions by (Q, M) values, and nothing else."""
    n = len(values)
    nothing = MeasureChange(*[Estimate.undefined("not planted")] * 2, np.nan)
    entries = []
    for k, column in enumerate(values.T):
        ids = tuple(f"q{q}" for q in range(n))
        paired = PairedValues(ids, ("",) * n, ("",) * n, {"accuracy": column}, np.zeros(n, bool))
        mean = Bootstrap(n).mean(column, bounds=(-1.0, 1.0), room="bounds, unsure")
        change = dict.fromkeys(MEASURES, nothing) | {"accuracy": MeasureChange(nothing.relative, mean, np.nan)}
        spent = Spent(0, 0, 0, 0, 0, 0)
        entries.append(MethodEntry("m", "planted", f"m{k}", "", False, {}, change, (), spent, paired=paired))
    return DebiasResult(tuple(entries), averages(entries), (), {"planted": n}, {}, Run(study="debias"))


def test_methods_that_all_lower_the_accuracy_are_said_to() -> None:
    """ "None is shown to raise it" was all that was said of three methods that cost 0.2 to 0.4."""
    columns = [np.r_[np.zeros(100 - lost), np.full(lost, -1.0)] for lost in (20, 30, 40)]
    three, two = tried(np.column_stack(columns)), tried(np.column_stack([*columns[:1], np.zeros(100)]))
    assert _headline(three, "m").startswith("m0 lowers the accuracy of m by 0.20 (0.")
    assert _headline(three, "m").endswith("; so do 2 of 2 other methods")
    assert _headline(tried(columns[0][:, None]), "m").startswith("m0 lowers the accuracy of m by 0.20 (0.")
    assert _headline(two, "m").startswith("None of 2 methods is shown to raise the accuracy of m; ")


def test_an_interval_without_0_is_not_taken_for_a_gain_where_six_methods_were_tried() -> None:
    """Of six methods that gain nothing, the luckiest has an interval above 0 more often than 5 % of the time."""

    def headline(gains: Sequence[int]) -> str:
        columns = [np.r_[np.ones(gain), np.zeros(99 - gain), -1.0] for gain in gains]
        return _headline(tried(np.column_stack(columns)), "planted")

    assert headline([8]).startswith("m0 raises the accuracy of planted by ")
    many = headline([8, 1, 1, 1, 1, 1])
    assert many.startswith("None of 6 methods is shown to raise the accuracy of planted; the largest estimate is ")
    low, high = (float(end.replace("−", "-")) for end in re.findall(r"\((\S+) to (\S+)\), m0", many)[0])
    assert low <= 0 <= high


def test_the_interval_of_the_best_method_counts_that_it_was_picked() -> None:
    """Six methods that change 40 % of the answers and gain nothing: that of the best alone holds 0 in 0.87."""
    rng = np.random.default_rng(3)
    held = []
    for _ in range(150):
        result = tried(rng.choice([-1.0, 0.0, 1.0], size=(200, 6), p=[0.2, 0.6, 0.2]))
        best = next(iter(_verdicts(result, "accuracy").values()))
        held.append([one.low <= 0 <= one.high for one in (best.joint, best.estimate)])
    joint, alone = np.mean(held, axis=0)
    assert joint >= 0.95 > 0.93 > alone


class Undecided(RuleModel):
    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for index, prompt in enumerate(prompts):
            yield Scored(index, np.log(np.full(n := len(prompt.continuations), 0.02 / n)))


@pytest.mark.parametrize("chat", [False, True])
def test_a_chat_is_not_advised_to_be_one(chat: bool) -> None:
    result = audit(Undecided(lambda *_: ()), synthetic_questions(6), chat=chat, orders="given")
    caveats = " ".join(result.page().caveats)
    assert "Likely causes: " in caveats
    assert ("a chat model asked without" in caveats) == (not chat)
