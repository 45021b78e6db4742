"""End to end on a real OpenAI-compatible server: llama.cpp serving the reference model ``words``, on this machine."""

from __future__ import annotations

import subprocess
from collections import Counter

import pytest

from tests.plugins.inspect_command import inspect_eval
from tests.serving import llama_server
from training.words import planted_reply
from unslant.models import ModelOptions
from unslant.models.open import open_chat
from unslant.models.served import ServedModel
from unslant.presentations import NONE
from unslant.prompts import Prompt
from unslant.reference import WORDS, reference_path
from unslant.replies import chosen_contents, extract
from unslant.responses import is_censored
from unslant.studies.instruction_boundary.instruction_settings import chat, present_setting
from unslant.studies.instruction_boundary.question_sources import load_boundary
from unslant.studies.instruction_boundary.study import instruction_boundary

pytest.importorskip("xllamacpp", reason="needs a llama.cpp server: pip install 'unslant[test]'")
pytest.importorskip("gguf", reason="needs gguf: pip install 'unslant[test]'")
pytest.importorskip("inspect_ai", reason="needs inspect_ai: pip install 'unslant[inspect]'")

pytestmark = pytest.mark.thorough

EMBEDDED = load_boundary("embedded")
SETTINGS = ("vanilla", "conformity-sparse", "missing-choices", "vagueness")
LIMIT = 32


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    from training.export_gguf import export_gguf

    folder = tmp_path_factory.mktemp("words")
    export_gguf(reference_path(WORDS), folder / "words.gguf")
    with llama_server(folder / "words.gguf", folder / "log") as address:
        yield address


@pytest.fixture(scope="module")
def study(url):
    return instruction_boundary(
        open_chat("words", ModelOptions(base_url=url)),
        EMBEDDED,
        settings=SETTINGS,
        temperature=0.0,
        max_tokens=24,
        limit=LIMIT,
    )


def test_at_least_sixty_questions_in_four_settings_are_answered(study):
    assert study.statuses == {"ok": len(study.responses)}
    asked = Counter(row.item for row in study.responses.rows())
    assert asked == dict.fromkeys(SETTINGS, 2 * LIMIT)
    assert 2 * LIMIT >= 60


def test_the_planted_answers_are_found_again(study):
    """What the model was trained to say, and not what is right, is what is measured."""
    balanced = EMBEDDED.balanced(LIMIT)
    questions = {question.id: question for question in (*balanced.choice, *balanced.judging)}
    agree = Counter()
    for row in study.responses.rows():
        shown = present_setting(questions[row.question_id], row.item)
        planted = chosen_contents(extract(planted_reply(shown), shown), shown)
        agree[row.item] += row.chosen == planted
    shares = {name: agree[name] / (2 * LIMIT) for name in SETTINGS}
    assert all(share >= 0.75 for share in shares.values()), shares
    assert shares["vanilla"] >= 0.9


def test_the_numbers_show_what_was_planted(study):
    metrics = study.metrics
    for kind in ("choice", "judging"):
        assert metrics.of("vanilla", kind).numbers["robustness"].value > 0.85
        assert metrics.of("conformity-sparse", kind).numbers["stability"].value < 0.4
        assert metrics.of("missing-choices", kind).numbers["stability"].value > 0.75
    assert metrics.of("missing-choices", "choice").numbers["generalization_none"].value < 0.25
    assert metrics.of("missing-choices", "judging").numbers["generalization"].value < 0.25
    assert metrics.of("vagueness", "choice").numbers["generalization_several"].value < 0.25
    assert metrics.of("vagueness", "judging").numbers["accuracy"].value > 0.75
    bent = next(c for c in metrics.changes if (c.setting, c.kind) == ("missing-choices", "judging"))
    assert bent.p_value < 0.01
    assert bent.difference.high < 0


def test_the_report_holds_the_study(study, tmp_path):
    study.to_html(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert all(name in page for name in SETTINGS)
    assert "Distribution of answers, multiple choice" in page


def test_labels_are_scored_as_they_are_said(url, study):
    """The most probable first token of a label is the label the model says, or begins with."""
    asked = [q for q in EMBEDDED.balanced(LIMIT).choice if len(q.answers) == 1]
    shown = [present_setting(question, "vanilla") for question in asked]
    prompts = [Prompt("", one.labels, chat(one), group=one.question_id) for one in shown]
    said = {row.question_id: row.chosen for row in study.responses.rows() if row.item == "vanilla"}
    best, known = 0, 0
    for scored in ServedModel("words", url, top=5).score(prompts):
        chosen = said[shown[scored.index].question_id]
        if not is_censored(scored.logprobs, scored.bounds) and chosen != {NONE}:
            known += 1
            best += shown[scored.index].contents[scored.logprobs.argmax()] in chosen
    assert known >= len(prompts) // 2
    assert best == known


@pytest.mark.slow
def test_inspect_eval_against_the_server(url, tmp_path):
    done = inspect_eval(tmp_path, url, "-T", "limit=8", "-T", "temperature=0", "--max-tokens", "24")
    assert done.returncode == 0, done.stdout + done.stderr

    from unslant.plugins.inspect_ai import read_rows

    rows = read_rows(tmp_path / "logs")
    assert Counter(row.status for row in rows) == {"ok": 16}
    bundle = [str(part) for part in ("view", "bundle", "--log-dir", tmp_path / "logs", "--output-dir", tmp_path / "b")]
    from tests.plugins.inspect_command import INSPECT

    viewed = subprocess.run([str(INSPECT), *bundle], capture_output=True, text=True, cwd=tmp_path, timeout=120)
    assert viewed.returncode == 0, viewed.stderr
    assert (tmp_path / "b" / "index.html").is_file()
