"""The probe finds planted favouritism, in live models and in recorded tables, and none where there is none."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest

from tests.fakes import FakeChat
from tests.studies.small_models import random_model
from training.world import question_sets
from unslant.errors import InputError
from unslant.models import GenerateOptions
from unslant.models.chat import Reply
from unslant.presentations import given_order, present
from unslant.prompts import Writer, load_template
from unslant.questions import QuestionSet
from unslant.studies.unbiased.probe.result import ScoreTable, load_scores
from unslant.studies.unbiased.probe.study import (
    confidence_prompt,
    participant,
    probe,
    read_confidence,
    tidy,
)

WRITER = Writer(load_template("plain"))


@pytest.fixture(scope="module")
def questions():
    return QuestionSet.of([q for q in question_sets()[0] if len(q.options) == 4][:36], "world")


class Voice(FakeChat):
    """Rephrases by signing its work; judges by rules; answers "A"."""

    def __init__(self, name, confidence):
        super().__init__(name)
        self.confidence = confidence

    def replies_to(self, prompts):
        for index, prompt in enumerate(prompts):
            if "New question:" in prompt.text:
                stem = re.search(r"Question: (.*)\nNew question:", prompt.text)[1]
                yield Reply(index, f"New question: {stem} ({self.name} asks)")
            elif prompt.text.endswith("Confidence:"):
                yield Reply(index, f"{self.confidence(self.name, prompt.text)}/10")
            else:
                yield Reply(index, "A")


def vain(name, text):
    """Sure of the published and of one's own, not of what others wrote."""
    author = re.search(r"\((\w+) asks\)", text)
    return 9 if author is None or author[1] == name else 2


def fair(name, text):
    return 8


def take_part(confidence):
    return [participant(Voice(name, confidence), WRITER) for name in ("ann", "bob", "cid")]


@pytest.mark.thorough
def test_participants_may_be_named():
    assert list(probe(["fair", "prefers-a"], "embedded", limit=4, strengths=(0.0, 1.0)).models) == ["fair", "prefers-a"]


def test_favouritism_grows_with_strength(questions):
    found = probe(take_part(vain), questions, strengths=(0.0, 0.5, 1.0))
    for bias in found.models.values():
        assert [bias.rates[p]["ocr"].value for p in (0.0, 1.0)] == [0.0, 1.0]
        assert 0.2 < bias.rates[0.5]["ocr"].value < 0.8
        assert all(rates["ucr"].value == rates["cer"].value == 0.0 for rates in bias.rates.values())
        assert all(rates["ocr"].value == 0.0 for rates in bias.boat_rates.values())
    assert re.search(r"rewritten itself rises: ann by 1.00 \(.*\), bob by", found.headline)
    share = float(found.table.changed(0.5).mean())
    assert found.models["ann"].rates[0.5]["ocr"].value == pytest.approx(share)


def test_there_is_none_where_none_is_planted(questions):
    found = probe(take_part(fair), questions)
    assert all(r["ocr"].value == 0.0 for bias in found.models.values() for r in bias.rates.values())
    assert "cannot be determined on 36 questions; about 120 would settle it" in found.headline


def test_strengths_are_nested():
    ids = tuple(f"q{i}" for i in range(200))
    nothing = np.full((2, 200), np.nan)
    table = ScoreTable(("a", "b"), ids, ("",) * 200, nothing, np.full((2, 2, 200), np.nan), nothing)
    low, high = table.changed(0.3), table.changed(0.6)
    assert (low <= high).all()
    assert not table.changed(0.0).any()
    assert table.changed(1.0).all()
    assert abs(high.mean() - 0.6) < 0.1


@pytest.mark.thorough
def test_three_small_local_models_end_to_end(questions, tmp_path):
    models = [random_model(seed, f"random-{seed}") for seed in range(3)]
    found = probe([participant(m, WRITER, GenerateOptions(max_tokens=8)) for m in models], questions, limit=12)
    assert found.table.original.shape == (3, 12)
    assert found.table.rephrased.shape == (3, 3, 12)
    given = found.table.original[~np.isnan(found.table.original)]
    assert set(given) <= set(range(1, 11))
    assert found.table.has_boat
    assert set(found.models) == {"random-0", "random-1", "random-2"}
    assert all(0 <= a <= 1 for by in found.accuracy.values() for a in by.values())
    found.to_json(tmp_path / "probe.json")
    back = json.loads((tmp_path / "probe.json").read_text())
    assert back["models"]["random-0"]["rates"]["1.0"]["ocr"]["n"] > 0
    found.to_parquet(tmp_path / "scores.parquet")
    again = probe(log=tmp_path / "scores.parquet")
    for name, bias in found.models.items():
        assert {p: r.to_dict() for p, r in again.models[name].rates.items()} == {
            p: r.to_dict() for p, r in bias.rates.items()
        }
    assert "Consensus rates" in found.summary(details=True)


def test_data_bias_from_a_recorded_table(tmp_path):
    """Five subjects; the model errs with the others ever more often where its accuracy is lower."""
    lines = ["question_id,subject,rephraser,judge,score"]
    for s in range(5):
        for i in range(10):
            rejected = i < 2 * s
            for judge in ("m", "n"):
                lines.append(f"{s}-{i},s{s},m,{judge},{1 if rejected else 10}")
    (tmp_path / "scores.csv").write_text("\n".join(lines))
    accuracy = ["model,subject,accuracy"] + [f"m,s{s},{0.9 - 0.1 * s}" for s in range(5)]
    (tmp_path / "accuracy.csv").write_text("\n".join(accuracy))
    found = probe(log=tmp_path / "scores.csv", accuracy=tmp_path / "accuracy.csv", strengths=(1.0,))
    bias = found.models["m"]
    assert bias.rates[1.0].by_subject == pytest.approx({f"s{s}": 0.2 * s for s in range(5)})
    assert bias.data_bias["pearson"].value == pytest.approx(-1.0)
    assert bias.data_bias["kendall"].value == pytest.approx(-1.0)
    assert bias.boat_data_bias is None
    assert found.models["n"].data_bias["pearson"].n == 0
    assert "Data bias" in found.summary(details=True)
    assert "only the rewriting model accepts: m 0.000." in " ".join(found.summary().split()), "one strength"
    (tmp_path / "accuracy.csv").write_text("\n".join([*accuracy, "m,s4,0.9"]))
    with pytest.raises(InputError, match=r"line 7.*a second accuracy of 'm'"):
        probe(log=tmp_path / "scores.csv", accuracy=tmp_path / "accuracy.csv")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("q1,s,,m,11", "must be a number from 1 to 10, not '11'"),
        ("q1,s,,m,high", "must be a number from 1 to 10, not 'high'"),
        ("q1,s,,m,5\nq1,s,,m,6", "a second score by 'm'"),
    ],
)
def test_bad_recordings_are_refused_with_their_place(tmp_path, line, words):
    path = tmp_path / "scores.csv"
    path.write_text(f"question_id,subject,rephraser,judge,score\nq0,s,,n,5\n{line}\n")
    with pytest.raises(InputError, match=f"line [34].*{words}"):
        load_scores(path)


def test_missing_confidences_are_counted(tmp_path):
    path = tmp_path / "scores.csv"
    path.write_text("question_id,rephraser,judge,score\nq,,m,\nq,,n,5\nq,m,m,3\nq,m,n,2\nq,n,m,7\nq,n,n,7\n")
    table = load_scores(path)
    assert table.missing == 1
    assert math.isnan(table.original[0, 0])


def test_unusable_input_is_refused(questions):
    one = take_part(fair)[:1]
    with pytest.raises(InputError, match="two models or more"):
        probe(one, questions)
    with pytest.raises(InputError, match="from 0 to 1"):
        probe(take_part(fair), questions, strengths=(1.5,))


@pytest.mark.parametrize(
    ("reply", "confidence"),
    [
        ("8", 8),
        ("Confidence: 10", 10),
        ("8/10", 8),
        ("I'd say 7.", 7),
        ("Confidence (1-10): 9", 9),
        ("On a scale from 1 to 10, I would say 8.", 8),
        ("Between 1 and 10: 10", 10),
        ("1 to 10", None),
        ("1/10", 1),
        ("11", None),
        ("0.5", None),
        ("", None),
        (None, None),
    ],
)
def test_confidences_are_read(reply, confidence):
    found = read_confidence(reply)
    assert math.isnan(found) if confidence is None else found == confidence


def test_rephrased_questions_are_tidied():
    assert tidy('New question: "Where does Orin live?"\n\nQuestion: What else?') == "Where does Orin live?"
    assert tidy(None) == tidy("  \n ") == ""


def test_the_judge_sees_question_options_and_kept_answer(questions):
    from unslant.presentations.interventions import apply, pool_of

    ((_, composed),) = apply(questions[0], ("DH", "AR", "LR"), pool_of(questions)).items
    text = confidence_prompt(composed, WRITER).text
    assert f"Answer taken to be right: {composed.right_labels[0]}\nConfidence:" in text
    assert "If no option is right" in text
    chat = confidence_prompt(composed, Writer(load_template("plain"), chat=True))
    assert chat.messages[0].role == "system"
    assert chat.continuations[9] == "10"


def test_a_model_whose_rephrasing_fails_is_left_out_of_it_alone(questions):
    class Silent(Voice):
        def replies_to(self, prompts):
            replies = super().replies_to(prompts)
            yield from (
                Reply(i, "") if "New question:" in prompts[i].text else reply for i, reply in enumerate(replies)
            )

    silent = participant(Silent("dumb", fair), WRITER)
    found = probe([silent, *take_part(fair)[:2]], questions, limit=6)
    assert not found.models["dumb"].rates[1.0]["ocr"].defined
    assert found.models["ann"].rates[1.0]["ocr"].n == 6


def test_tokenizers_that_split_digits_give_every_confidence(questions):
    """There "10" begins with the token of "1": such models, as SmolLM2, were refused."""
    prompt = confidence_prompt(present(questions[0], given_order(questions[0])), WRITER)
    for name in ("words", "fair"):  # digits, and numbers as one token
        one = participant(name, WRITER)
        assert one.separable(prompt) == (name == "fair")
        assert 1 <= one.judge([prompt])[0] <= 10
