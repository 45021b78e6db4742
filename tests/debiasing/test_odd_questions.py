"""Questions that a method has trouble with are answered, or counted with a reason; they never end a run."""

from __future__ import annotations

import json
import pickle
import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unslant
from benchmarks.reliability import Options
from benchmarks.reliability.methods import attack, odd_question, stale_in, stale_references
from tests.command_line import unslant as run
from tests.debiasing.conftest import make_questions
from tests.fakes import RuleModel
from unslant.debiasing import METHODS, method_named
from unslant.debiasing.aoi import AuxiliaryOption
from unslant.debiasing.asker import ModelAsker
from unslant.debiasing.base import debias
from unslant.errors import InputError, ModelError, QuestionError
from unslant.models.base import Scored
from unslant.models.hf.model import TransformersModel
from unslant.presentations import ALPHABETS, Presentation, present
from unslant.presentations.orders import given_order
from unslant.prompts import Cloze, Prompt, Writer, load_template
from unslant.questions import Question, QuestionSet
from unslant.studies.debias.study import debias as compare_methods

EQUAL = Question("equal", "Which?", ("oak", "ash", "oak", "elm"), frozenset({1}))
BEGINS = Question("begins", "Which?", ("oak", "oak and ash", "12", "12 km"), frozenset({1}))
BY_LETTER = Question("letters", "Which?", ("oak", "ash", "elm", "Both A and B"), frozenset({3}), pinned=(0, 1, 3))
ABOVE = Question("above", "Which?", ("oak", "ash", "elm", "All of the above"), frozenset({3}), pinned=(3,))
UNSURE = Question("unsure", "Which?", ("oak", "ash", "I don\u2019t know."), frozenset({0}))
LONG = Question("long", "Which? " + "very long " * 600, ("oak", "ash"), frozenset({0}))
QUESTIONS = make_questions([4] * 6)


def test_a_question_that_cannot_be_asked_does_not_shift_the_answers_of_the_others() -> None:
    rows: list[dict[str, Any]] = [{"question": f"{i}?", "options": ["oak", "ash"]} for i in range(3)]
    rows[1]["image"] = "tree.png"
    with unslant.Debiased("prefers-a", "vote") as model:
        for ask in (model.predict, model.predict_proba, model.answers):
            with pytest.raises(InputError, match=r"item 2: comes with an image.*leave it out"):
                ask(rows)
        assert len(model.predict(unslant.load_questions(rows, need_answers=False))) == 2  # as many as the set has


@pytest.mark.parametrize("method", ["set-based", "set-based-text"])
def test_equal_options_and_options_that_begin_others_are_answered(method: str, tiny: TransformersModel) -> None:
    answers = debias(method_named(method), ModelAsker(tiny), [EQUAL, BEGINS])
    assert [outcome.status for outcome in answers.outcomes] == ["ok", "ok"]
    if method == "set-based-text":  # nothing tells them apart
        assert answers.outcomes[0].probs[0] == pytest.approx(answers.outcomes[0].probs[2], abs=1e-6)


def test_branches_name_other_options_by_the_labels_they_carry(tiny: TransformersModel) -> None:
    seen: list[Prompt] = []
    encode = tiny.encode
    tiny.encode = lambda prompts, **how: (seen.extend(prompts), encode(prompts, **how))[1]  # type: ignore[method-assign]
    debias(method_named("set-based"), ModelAsker(tiny), [BY_LETTER])
    branches = next(prompt.continuations for prompt in seen if len(prompt.continuations) == 16)
    order = sorted(range(4), key=lambda i: BY_LETTER.options[i])
    for k, line in enumerate(branches):
        option, label = divmod(k, 4)
        turn = (label - option) % 4  # the assignment in which this option carries this label
        label_of = {content: "ABCD"[(place + turn) % 4] for place, content in enumerate(order)}
        text = BY_LETTER.options[order[option]]
        named = f"Both {label_of[0]} and {label_of[1]}" if text.startswith("Both") else text
        assert line == f"{'ABCD'[label]}. {named}\n"


def test_what_set_based_cannot_take_is_counted(tiny: TransformersModel) -> None:
    asked = [*QUESTIONS, BY_LETTER, LONG]
    answers = debias(method_named("set-based-text"), ModelAsker(tiny), asked)
    assert [o.status for o in answers.outcomes] == ["ok"] * 6 + ["unsupported"] * 2
    (note,) = answers.notes
    assert note.startswith("no answer to 2 of 8 questions: ")
    assert "names others by letter" in note
    assert "longer than the 512 tokens" in note
    alone = debias(method_named("set-based-text"), ModelAsker(tiny), QUESTIONS)
    for outcome, other in zip(answers.outcomes, alone.outcomes, strict=False):
        np.testing.assert_allclose(outcome.probs, other.probs, atol=1e-6)


@pytest.mark.parametrize("position", ["first", "1", "2", "last"])
def test_aoi_renames_references(position: str) -> None:
    shown = AuxiliaryOption(position=position).present(BY_LETTER, ALPHABETS["A"])
    assert list(stale_in(BY_LETTER, shown)) == []
    expected = {"first": "Both B and C", "1": "Both A and C"}.get(position, "Both A and B")
    assert expected in [option.text for option in shown.shown]
    assert sorted(shown.contents) == [-2, 0, 1, 2, 3]


@pytest.mark.parametrize(
    ("question", "settings", "alphabet", "reason"),
    [
        (QUESTIONS[0], {"position": "99"}, "ABCDEFGH", "position=99, but it has fewer options"),
        (QUESTIONS[0], {}, "ABCD", "no label is left"),
        (ABOVE, {"position": "first"}, "ABCDEFGH", "refers to those above it"),
    ],
)
def test_what_aoi_cannot_take(question: Question, settings: dict[str, str], alphabet: str, reason: str) -> None:
    with pytest.raises(QuestionError, match=reason) as raised:
        AuxiliaryOption(**settings).present(question, tuple(alphabet))
    assert raised.value.reasons.keys() == {question.id}


def test_aoi_adds_no_second_way_out() -> None:
    asker = ModelAsker(RuleModel(lambda stem, labels, texts: [1.0] * len(texts)))
    answers = debias(method_named("aoi"), asker, [*QUESTIONS, UNSURE])
    assert '1 of 7 questions had "I don\'t know" among their options; none was added' in answers.notes
    assert len(answers.outcomes[-1].probs) == 3
    shown = AuxiliaryOption().present(UNSURE, ALPHABETS["A"])
    assert [option.text for option in shown.shown] == list(UNSURE.options)


class Refusing(RuleModel):
    """Gives no score to prompts that hold a word, and counts what it was asked."""

    def __init__(self, word: str) -> None:
        super().__init__(lambda stem, labels, texts: [1.0 + (text > "k") for text in texts], "refusing")
        self.word = word

    def score(self, prompts: Sequence[Prompt]) -> Iterator[Scored]:
        for one in super().score(prompts):
            refused = self.word in prompts[one.index].text
            yield Scored(one.index, None, "refused") if refused else one


@pytest.mark.parametrize("method", [name for name in METHODS if not method_named(name).needs_model])
@pytest.mark.parametrize("remember", [True, False])
def test_a_prompt_without_score_costs_one_question(method: str, remember: bool) -> None:
    model = Refusing("number 3?")
    asker = ModelAsker(model, remember=remember)
    answers = debias(method_named(method), asker, QUESTIONS)
    assert [o.status for o in answers.outcomes] == ["ok"] * 3 + ["error"] + ["ok"] * 2
    assert answers.outcomes[3].reason == "a prompt got no score"
    assert answers.mostly_failed == ""
    alone = debias(method_named(method), ModelAsker(RuleModel(model.rule)), [q for q in QUESTIONS if q.id != "q003"])
    for outcome, other in zip([*answers.outcomes[:3], *answers.outcomes[4:]], alone.outcomes, strict=True):
        assert outcome.choice == other.choice
    with pytest.raises(ModelError, match="prompts got no scores"):
        debias(method_named(method), ModelAsker(Refusing("number")), QUESTIONS)


def test_nothing_is_asked_twice_because_another_question_failed() -> None:
    model = Refusing("number 3?")
    debias(method_named("vote"), ModelAsker(model, remember=False), QUESTIONS)
    texts = [prompt.text for prompt in model.seen]
    assert len(texts) == len(set(texts)) == 6 * 24


@pytest.mark.parametrize("remember", [True, False])
def test_a_thread_that_has_its_answers_takes_nothing_from_another(remember: bool) -> None:
    """A thread forgets all scores once it has its own answers, also while another still reads."""
    rule = RuleModel(lambda stem, labels, texts: [float(len(stem) + k) for k in range(len(texts))])
    mine, others = ([present(question, given_order(question)) for question in QUESTIONS[i : i + 2]] for i in (0, 2))
    interruptions = iter([others])

    class Interrupted(Cloze):
        def read(self, presentation: Presentation, scores: Any) -> Any:
            for asked in interruptions:
                with ThreadPoolExecutor(1) as pool:
                    pool.submit(asker.ask, asked).result()
            return super().read(presentation, scores)

    asker = ModelAsker(rule, Interrupted(Writer(load_template("plain"))), remember=remember)
    answers = asker.ask(mine)
    assert not [*interruptions]
    for probs, alone in zip(answers, ModelAsker(rule).ask(mine), strict=True):
        assert probs.tolist() == alone.tolist()


def test_most_questions_without_score() -> None:
    asked = [*QUESTIONS[:1], *(Question(f"x{i}", "bad?", ("a", "b"), frozenset({0})) for i in range(4))]
    answers = debias(method_named("none"), ModelAsker(Refusing("bad")), asked)
    assert answers.mostly_failed == "4 of 5 questions got no scores (a prompt got no score)"


def test_all_questions_unsupported_is_an_error_that_says_why() -> None:
    asker = ModelAsker(RuleModel(lambda stem, labels, texts: [1.0] * len(texts)))
    with pytest.raises(InputError, match="aoi: no answer to 6 of 6 questions: position=99"):
        debias(method_named("aoi:position=99"), asker, QUESTIONS)


def test_a_question_error_crosses_processes() -> None:
    error = QuestionError({"q": "too long"}, "question 'q': its prompt has 9 tokens", "error")
    again = pickle.loads(pickle.dumps(error))
    assert (again.reasons, again.status, str(again)) == (error.reasons, "error", str(error))


def test_one_answer_at_a_time_says_why_there_is_none() -> None:
    with unslant.Debiased("prefers-a", "aoi:position=3") as model:
        outcome = model.answer({"question": "Which is a fruit?", "options": ["hammer", "apple"]})
        assert (outcome.status, outcome.choice, outcome.text) == ("unsupported", -1, "")
        assert "position=3" in outcome.reason
        assert model.answer({"question": "Which is a fruit?", "options": ["hammer", "apple", "chair"]}).status == "ok"


def test_the_command_counts_and_writes_them(tmp_path: Path) -> None:
    rows = [{"question": q.stem, "options": q.options, "answer": 0} for q in (*QUESTIONS, UNSURE)]
    (tmp_path / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = tmp_path / "out.jsonl"
    ran = run("debias", "fair", tmp_path / "q.jsonl", "--method", "aoi:text=X:position=4", "--out", out, "--no-store")
    assert ran.code == 0, ran.err
    assert "note: no answer to 1 of 7 questions: position=4, but it has fewer options than that (1)" in ran.out
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["status"] for line in lines] == ["ok"] * 6 + ["unsupported"]
    assert lines[-1]["answer"] is None
    assert lines[-1]["reason"] == "position=4, but it has fewer options than that"


KNOWN = make_questions([4] * 12)


def leaning(stem: str, labels: list[str], texts: list[str]) -> list[float]:
    return [(3.0 if text > "h" else 1.0) * (4.0 if i == 0 else 1.0) for i, text in enumerate(texts)]


def test_a_study_counts_them_and_compares_over_what_both_answered() -> None:
    three = make_questions([3] * 8, seed=3)
    short = [Question(f"s{q.id}", q.stem, q.options, q.answers) for q in three]
    both = QuestionSet.of([*KNOWN, *short], "both")
    model = RuleModel(leaning, "leaning")
    methods = ("aoi:position=4", "vote", "aoi:position=99")
    result = compare_methods([model], [both], methods=methods, orders="cyclic")
    entry = result.entry("aoi:position=4")
    assert (entry.asked, entry.left_out) == (20, {"position=4, but it has fewer options than that": 8})
    assert {entry.measures[key].n for key in ("pbm", "accuracy")} == {12}
    assert {entry.change[key].difference.n for key in ("pbm", "accuracy")} == {12}
    alone = compare_methods([model], [QuestionSet.of(KNOWN, "known")], methods=methods[:1], orders="cyclic")
    for key, change in alone.entry("aoi:position=4").change.items():  # nothing of the other questions is in it
        assert entry.change[key].difference.value == pytest.approx(change.difference.value)
    assert result.entry("vote").measures["pbm"].n == 20
    (missing,) = result.missing
    assert (missing.method, missing.questions) == ("aoi:position=99", "both")
    text = " ".join(result.summary(details=True).split())
    assert "12 of 20" in text
    assert "aoi:position=4: no answer to 8 of 20 questions" in text
    assert "Each method is compared over the questions that both it and the undebiased model answered" in text
    assert "aoi:position=99: no results on both (leaning): position=99, but it has fewer options than that (20)" in text


def test_a_method_that_cannot_be_fitted_becomes_a_note(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def unfitted(self: Any, asker: Any, questions: Any = ()) -> Any:
        raise InputError("nothing to fit on")

    monkeypatch.setattr("unslant.debiasing.pride.Pride.fit", unfitted)
    both = QuestionSet.of(KNOWN, "known")
    result = compare_methods([RuleModel(leaning, "leaning")], [both], methods=("pride", "bnp", "vote"), orders="cyclic")
    assert [entry.method for entry in result.entries] == ["none", "vote"]
    assert [(one.method, one.reason.partition(":")[0]) for one in result.missing] == [
        ("pride", "nothing to fit on"),
        ("bnp", "BNP works inside the model"),
    ]
    result.to_json(tmp_path / "found.json")
    assert [one["method"] for one in json.loads((tmp_path / "found.json").read_text())["missing"]] == ["pride", "bnp"]
    page = " ".join(result.page().notes)
    assert "pride: no results on known (leaning): nothing to fit on" in page
    alone = compare_methods([RuleModel(leaning, "leaning")], [both], methods=("pride",), orders="cyclic")
    assert "No method gave a result" in alone.headline
    assert [(one.method, one.reason) for one in alone.missing] == [("pride", "nothing to fit on")]


def test_a_missing_package_is_noticed_before_anything_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    import unslant.debiasing.lora1.training as lora1

    def absent(module: str, what: str) -> None:
        raise ModelError(f"{what} needs {module}: pip install 'unslant[local]'")

    monkeypatch.setattr(lora1, "needed", absent)
    model = RuleModel(leaning, "leaning")
    asked_first: list[int] = []
    with pytest.warns(UserWarning, match="lora-1 is left out: LoRA-1 needs peft") as caught:
        result = compare_methods(
            [model],
            [QuestionSet.of(KNOWN, "known")],
            methods=("vote", "lora-1"),
            orders="cyclic",
            progress=lambda *_: asked_first.append(len(caught)),
        )
    assert asked_first[0] == 1
    assert [one.method for one in result.missing] == ["lora-1"]
    assert "vote" in {entry.method for entry in result.entries}


@pytest.mark.parametrize("method", ["none", "vote", "pride", "aoi", "aoi:position=first"])
def test_the_attack(method: str) -> None:
    row = attack(method, Options(cases=500, seed=3))
    assert (row.attempts, row.failures, row.examples) == (60, 0, [])


def test_the_attack_on_references() -> None:
    row = stale_references(Options(cases=300, seed=3))
    assert (row.attempts, row.failures, row.examples) == (30, 0, [])


@pytest.mark.thorough
@pytest.mark.parametrize("method", ["set-based", "set-based-text"])
def test_the_attack_inside_a_model(method: str) -> None:
    assert attack(method, Options(cases=4000, seed=3)).examples == []


def test_odd_questions_are_of_many_kinds() -> None:
    questions = [odd_question(random.Random(i), str(i)) for i in range(100)]
    assert any(len(set(q.options)) < len(q.options) for q in questions)
    assert any(len(q.pinned) > 1 for q in questions)


@pytest.mark.parametrize("name", ["pride:alpha=1", "gray-box-calibrated:share=1"])
def test_questions_that_were_not_fitted_on_are_counted_by_every_method(tiny: TransformersModel, name: str) -> None:
    found = debias(method_named(name), ModelAsker(tiny), QUESTIONS, fit_on=[*QUESTIONS, LONG])
    assert found.notes[0].startswith(f"not fitted on 1 of {len(QUESTIONS) + 1} questions")


def test_a_prior_is_carried_over_to_questions_that_only_share_their_numbers() -> None:
    def rows(word: str) -> list[dict[str, Any]]:
        return [
            {"question": f"{word} {i}?", "options": ["oak", "ash", "elm", "fir"], "answer": i % 4} for i in range(6)
        ]

    first = RuleModel(lambda stem, labels, texts: [5.0, 1.0, 1.0, 1.0])
    with unslant.Debiased(first, "pride:alpha=0.5", fit=rows("Tree")) as model:
        assert [one.orders for one in model.answers(rows("Bush"))] == [1] * 6
        fitted = model.answers(rows("Tree"))
        assert sorted(one.orders for one in fitted) == [1, 1, 1, 4, 4, 4]
        alone = [model.answer(row) for row in rows("Tree")]  # every one of them is the first of its set
        assert [one.orders for one in alone] == [one.orders for one in fitted]
        np.testing.assert_allclose([one.probs for one in alone], [one.probs for one in fitted], atol=1e-6)


def test_questions_measured_are_not_fitted_on(tiny: TransformersModel, tmp_path: Path) -> None:
    renamed = [replace(q.relisted((3, 1, 0, 2)), id=f"other-{i}") for i, q in enumerate(QUESTIONS)]
    with pytest.raises(InputError, match="bnp is fitted on 2 of the 6 measured questions"):
        unslant.debias(tiny, QUESTIONS, method="bnp", train=renamed[4:])
    with pytest.raises(InputError, match="the adapter is fitted on 1 of the 6"):
        unslant.train(tiny, renamed[:1], tmp_path, held_out=QUESTIONS)


@pytest.mark.thorough
def test_a_fit_is_carried_over_only_to_sets_that_share_nothing_with_it(tiny: TransformersModel) -> None:
    more = make_questions([4] * 4, seed=5)
    sets = [QuestionSet.of(one, name) for one, name in ((QUESTIONS, "a"), (more, "b"))]
    train = [QuestionSet.of(one, name) for one, name in ((more, "to b"), (make_questions([4] * 4, seed=6), "to c"))]
    method = "lora-1:epochs=1:questions_per_epoch=2:max_orders=2"
    study = compare_methods([tiny], sets, methods=[method], train=train)
    assert [(one.questions, one.fitted_on) for one in study.entries if one.method == method] == [
        ("a", "a"), ("a", "b"), ("b", "b"),
    ]  # fmt: skip
    assert [one.questions for one in study.missing] == ["b"]


@pytest.mark.thorough
def test_halves_to_train_on_share_nothing_with_what_is_measured(tiny: TransformersModel) -> None:
    twice = QuestionSet.of([*QUESTIONS, *(replace(q, id=f"again-{q.id}") for q in QUESTIONS)], "twice")
    study = compare_methods([tiny], [twice], methods=["lora-1:epochs=1:questions_per_epoch=2:max_orders=2"])
    assert not study.missing
    assert study.measured_on == {"twice": 6}
    assert study.trained_on["twice"] < 6
