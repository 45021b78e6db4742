"""The study tells a model that knows from one that remembers the file."""

from __future__ import annotations

import json
import re
import zlib

import pytest

from tests.fakes import FakeChat
from tests.first_screens import said
from tests.studies.fakes import RuleModel, knows, read, remembers
from training.world import question_sets
from unslant.errors import InputError
from unslant.models.chat import Reply
from unslant.prompts import Prompt
from unslant.questions import MathQuestion, Question, QuestionSet
from unslant.reports.numbers import percent
from unslant.studies.unbiased.comparison import UnbiasedComparison
from unslant.studies.unbiased.contamination.study import compare
from unslant.studies.unbiased.metrics import UnbiasedResult
from unslant.studies.unbiased.study import UnbiasedSettings, alone_of, plan, unbiased

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def questions():
    return QuestionSet.of(question_sets()[0][:80], "world")


@pytest.fixture(scope="module")
def knowing(questions):
    return unbiased(RuleModel(knows(questions)), questions, runs=2, shots=2)


@pytest.fixture(scope="module")
def remembering(questions):
    return unbiased(RuleModel(remembers(questions)), questions, runs=2, shots=2)


def test_who_knows_loses_nothing(knowing):
    metrics = knowing.metrics
    assert metrics.vanilla.value == metrics.ours.value == 1.0
    assert metrics.drop.value == 0.0
    assert metrics.none_found.value == metrics.items.value == 1.0
    assert metrics.none_invented.value == 0.0
    assert metrics.confusion["both"].value == 1.0
    assert all(alone["accuracy"].value == 1.0 for alone in metrics.alone.values())
    assert knowing.headline.endswith("when the questions are presented differently, the same to within 0.05")


def test_who_remembers_falls_towards_chance(remembering):
    metrics = remembering.metrics
    assert metrics.vanilla.value == 1.0
    # what is left besides chance are presentations without any change to order, labels or right option
    assert metrics.ours.value < 0.62
    assert metrics.drop.low > 0.3
    assert metrics.confusion["lost"].value == pytest.approx(1 - metrics.ours.value)
    assert metrics.alone["OS"]["accuracy"].value < 0.35
    assert metrics.alone["DH"]["accuracy"].value == 1.0
    assert metrics.alone["BT"]["accuracy"].value < 0.1
    assert metrics.none_found.value == 0.0
    assert re.search(r"scores 1.00 as published, but 0\.\d\d \(.*\) less when", remembering.headline)
    assert "luck" not in said(remembering)  # a score of 1 has no guesses to lose


def test_everything_asked_is_accounted_for(knowing, questions):
    drawn = knowing.run.counts.drawn
    assert sum(drawn.values()) == 2 * len(questions)
    assert knowing.metrics.vanilla.n == knowing.metrics.ours.n == len(questions)
    assert set(knowing.metrics.alone) == {"BT", "DQ", "DH", "DH+AR", "OS", "LR"}
    assert knowing.metrics.failed == 0


def test_the_result_survives_its_file(knowing, tmp_path):
    knowing.to_parquet(tmp_path / "run.parquet")
    back = UnbiasedResult.from_parquet(tmp_path / "run.parquet")
    assert back.to_dict() == knowing.to_dict()
    assert back.page() == knowing.page()
    knowing.to_json(tmp_path / "run.json")
    found = json.loads((tmp_path / "run.json").read_text())
    assert found["metrics"]["drop"]["n"] == 80
    assert found["settings"]["probabilities"]["BT"] == 0.1


def test_the_summary_names_what_was_done(remembering):
    text = remembering.summary(details=True)
    for words in (
        "as published",
        "option shuffling",
        "distractor hint + answer removal",
        "standard deviation",
    ):
        assert words in text


def test_the_same_seed_gives_the_same_numbers(questions, knowing):
    again = unbiased(RuleModel(knows(questions)), questions, runs=2, shots=2)
    assert again.responses.table.equals(knowing.responses.table)
    other = unbiased(RuleModel(knows(questions)), questions, runs=2, shots=2, seed=1)
    assert not other.responses.table.equals(knowing.responses.table)


def test_probabilities_are_honoured(questions):
    only_labels = {"OS": 0.0, "DQ": 0.0, "DH": 0.0, "BT": 0.0, "LR": 1.0}
    result = unbiased(RuleModel(knows(questions)), questions, runs=1, shots=0, probabilities=only_labels, no_alone=True)
    assert set(result.run.counts.drawn) == {"LR"}
    assert result.metrics.alone == {}


def test_a_limit_still_borrows_from_all(questions):
    few = unbiased(RuleModel(knows(questions)), questions, runs=3, shots=0, limit=5, no_alone=True)
    assert few.metrics.ours.n == 5
    assert not few.run.counts.left_out


def test_maths_without_labels_is_asked_through_its_answer_jitter():
    stories = (
        "Bert has {a} hens and {b} geese in the barn. How many birds has he?",
        "A train carries {a} children, then {b} adults step on. How many travel?",
        "Cora reads {a} pages at dawn plus {b} after supper. What is her total?",
    )
    made = [MathQuestion(f"m/{i}", stories[i % 3].format(a=i, b=7 * i), str(8 * i)) for i in range(2, 40)]
    made.append(MathQuestion("m/words", "How much is much?", "plenty"))
    answers = {question.stem: question.answer for question in made}

    def calculates(seen):
        own = {answers[stem] for stem in seen.stems if stem in answers}
        if seen.proposed:
            return next(label for label, text in seen.options.items() if text == str(seen.proposed in own))
        return next((label for label, text in seen.options.items() if text in own), seen.none)

    result = unbiased(RuleModel(calculates), QuestionSet.of(made, "sums"), runs=2, shots=2)
    assert result.metrics.vanilla.value == result.metrics.ours.value == 1.0
    assert result.metrics.vanilla.n == 38
    assert result.run.counts.not_applicable == {"the answer is not a number": 1}
    assert {"QJ", "AJ+OS", "AJ+DH+AR"} <= set(result.metrics.alone)
    assert alone_of(made[0])[0] == ("QJ",)


def test_settings_that_cannot_work_are_refused(questions):
    with pytest.raises(InputError, match="runs=0"):
        plan(questions, UnbiasedSettings(runs=0))
    with pytest.raises(InputError, match="worked examples requested"):
        plan(QuestionSet.of(list(questions)[:3]), UnbiasedSettings(shots=5))
    none_right = QuestionSet.of([Question("q", "What is it?", ("a", "b"), frozenset())])
    with pytest.raises(InputError, match=r"no option is right \(1\)"):
        plan(none_right, UnbiasedSettings(shots=0))


class Talker(FakeChat):
    """Says in words what a rule would choose."""

    def __init__(self, answer, open_answers=None):
        super().__init__("talker")
        self.answer, self.open_answers = answer, open_answers or {}

    def replies_to(self, prompts):
        for index, prompt in enumerate(prompts):
            last = prompt.messages[-1].content
            seen = read(Prompt(last, ()))
            if not seen.options:
                yield Reply(index, f"Answer: {self.open_answers[seen.stems[0]]}")
            elif "lute" in last:
                yield Reply(index, None, "timed out")
            else:
                yield Reply(index, f"The answer is {self.answer(seen)}.")


def test_replies_in_words_are_read_and_failures_counted(questions):
    result = unbiased(Talker(knows(questions)), questions, generate=True, runs=2, shots=1)
    assert result.metrics.vanilla.value == result.metrics.ours.value == 1.0
    assert result.metrics.failed > 0
    assert result.metrics.vanilla.n < len(questions)
    statuses = set(result.responses.table["status"].to_pylist())
    assert statuses == {"ok", "error"}
    assert result.metrics.no_answer == result.metrics.replies["ours"]["unreadable"].value == 0
    assert result.metrics.replies["ours"]["errors"].value > 0
    assert f"{result.metrics.failed} presentations got no reply and are left out" in result.summary(details=True)


def test_a_reply_without_an_answer_is_not_right(questions):
    """Right as published; under interventions right on a tenth of the presentations and unreadable on the rest."""
    four = QuestionSet.of([question for question in questions if len(question.options) == 4])
    listed = {question.stem: question.options for question in four}
    known = knows(four)

    def mumbles(seen):
        published = (
            len(seen.stems) == 1
            and not seen.none
            and list(seen.options) == list("ABCD")
            and tuple(seen.options.values()) == listed[seen.stems[0]]
        )
        lucky = zlib.crc32(repr(seen).encode()) % 10 == 0
        return known(seen) if published or lucky else "hard to tell"

    result = unbiased(Talker(mumbles), four, generate=True, shots=0, probabilities={"OS": 1.0, "BT": 0.0})
    metrics, replies = result.metrics, result.metrics.replies
    assert metrics.vanilla.value == 1.0
    assert metrics.ours.value == pytest.approx(0.1, abs=0.05)
    assert metrics.drop.value == pytest.approx(0.9, abs=0.05)
    assert replies["ours"]["unparsed"].value == replies["ours"]["unreadable"].value == pytest.approx(0.9, abs=0.05)
    assert replies["ours"]["readable"].value == replies["vanilla"]["readable"].value == 1.0
    assert replies["vanilla"]["unreadable"].value == replies["ours"]["refused"].value == 0.0
    assert metrics.confusion["lost"].value == pytest.approx(1 - metrics.ours.value)
    share = percent(replies["ours"]["unreadable"].value)
    wanted = f"{share} of the replies under interventions hold no answer (right among readable replies: 1.000)"
    assert wanted in result.page().lines[-2]
    assert f"{metrics.no_answer:,} replies hold no answer and count as not right" in result.summary(details=True)
    text = result.summary(details=True)
    assert all(words in text for words in ("unparsed", "refused", "no reply", "right among readable replies"))
    for page in (UnbiasedComparison.of([result]).page(), compare(result, result.renamed("suspect")).page()):
        assert wanted in " ".join(page.lines)
        assert "no answer" in [column.name for column in page.panels[0].tables[0].columns]


def test_open_maths_is_asked_with_as_many_examples_as_the_rest_and_under_answer_jitter_alone():
    made = [MathQuestion(f"m/{i}", f"Ada has {i} figs and buys {3 * i}. How many?", str(4 * i)) for i in range(5, 25)]
    planned, _ = plan(QuestionSet.of(made), UnbiasedSettings(maths=True, generate=True, runs=1, shots=5))
    assert {len(shown.shots) for _, shown in planned} == {5}
    alone = {shown.interventions for _, shown in planned if shown.kind == "only"}
    assert {("QJ",), ("AJ",), ("AJ", "OS"), ("AJ", "DH")} <= alone
    published = [shown for _, shown in planned if shown.kind == "vanilla"]
    assert all(not shown.shown and all(shot.open_answer for shot in shown.shots) for shown in published)


def test_open_maths_is_asked_as_published_in_words():
    made = [
        MathQuestion(f"m/{i}", f"A man with {i} hats buys {3 * i} more. How many now?", str(4 * i))
        for i in range(5, 25)
    ]
    right = {question.stem: question.answer for question in made}
    wrong = {stem: str(int(answer) + (int(answer) % 8 == 0)) for stem, answer in right.items()}

    def calculates(seen):
        own = {right[stem] for stem in seen.stems if stem in right}
        if seen.proposed:
            return next(label for label, text in seen.options.items() if text == str(seen.proposed in own))
        return next((label for label, text in seen.options.items() if text in own), seen.none)

    result = unbiased(
        Talker(calculates, wrong), QuestionSet.of(made), generate=True, runs=1, shots=0, probabilities={"DQ": 0}
    )
    assert result.metrics.ours.value == 1.0
    assert result.metrics.vanilla.value == 0.5
    assert result.metrics.vanilla_chance.value == 0.0
