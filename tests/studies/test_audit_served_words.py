"""The audit in words end to end on a real OpenAI-compatible server: llama.cpp on this machine.

With SmolLM2, which ``make test-real`` fetches, it takes minutes: ``make test-slow``.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import astuple
from pathlib import Path

import pytest

from tests.first_screens import said
from tests.serving import llama_server
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.models import GenerateOptions, ModelOptions
from unslant.models.chat import StoredChat
from unslant.models.open import open_chat
from unslant.models.served import ServedModel
from unslant.presentations import Asked, present
from unslant.prompts import Cloze, Writer, load_template
from unslant.questions import Question, QuestionSet, load_questions
from unslant.reference import WORDS, reference_path
from unslant.responses import Response
from unslant.store import Store
from unslant.studies.instruction_boundary.instruction_settings import instruction

pytest.importorskip("xllamacpp", reason="needs a llama.cpp server: pip install 'unslant[test]'")
pytest.importorskip("gguf", reason="needs gguf: pip install 'unslant[test]'")
pytest.importorskip("inspect_ai", reason="needs inspect_ai: pip install 'unslant[inspect]'")

MISSING_CHOICES = f'instruction = """\n{instruction("choice", "missing-choices")}"""'
MISSING_CHOICES += '''
question = """\\
Question: {{ stem }}
{% for option in options %}
{{ option.label }}. {{ option.text }}{{ "" if loop.last else "\\n" }}
{%- endfor %}
"""

[cloze]
cue = ""
'''
"""An instruction under which ``words`` was trained to take the first option where none is right."""


@pytest.fixture(scope="module")
def served_words(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from training.export_gguf import export_gguf

    folder = tmp_path_factory.mktemp("words")
    export_gguf(reference_path(WORDS), folder / "words.gguf")
    with llama_server(folder / "words.gguf", folder / "log") as url:
        yield url


@pytest.fixture(scope="module")
def served_smollm2(real_model: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with llama_server(Path(real_model), tmp_path_factory.mktemp("smollm2") / "log", cached=False) as url:
        yield url


class Counted(StoredChat):
    """Counts the requests that reach the server."""

    def __init__(self, url: str, name: str, store: Store, max_tokens: int) -> None:
        model = open_chat(name, ModelOptions(base_url=url), GenerateOptions(temperature=0, max_tokens=max_tokens))
        super().__init__(model, store)

    @property
    def asked(self) -> int:
        return self.model_asked.cost.requests


def check_against_scores(
    url: str, name: str, said: list[tuple[Asked, Response]], template: str, near: float = 0.0
) -> float:
    """Share of replies that are a label alone; each must be the one with the highest log-probability.

    Args:
        near: nats by which another label may be ahead, by rounding.
    """
    alone = [(asked, row) for asked, row in said if re.fullmatch(r"\W*[A-D]\W*", row.raw or "")]
    elicitation = Cloze(Writer(load_template(template), chat=True))
    prompts = [elicitation.prompts(shown)[0] for (_, shown), _ in alone]
    agree = 0
    for index, logprobs, *_ in map(astuple, ServedModel(name, url, top=20).score(prompts)):
        (_, shown), row = alone[index]
        chosen = shown.contents.index(row.choice)
        assert logprobs.max() - logprobs[chosen] <= near, (row.question_id, row.raw, logprobs)
        agree += int(logprobs.argmax()) == chosen
    print(f"{name}: {agree} of {len(alone)} replies that are a label alone are the label scored highest")
    assert agree >= 0.97 * len(alone)
    return len(alone) / len(said)


def shown_as(questions: list[Question], result: AuditResult) -> list[tuple[Asked, Response]]:
    """What was asked, and what came back."""
    by_id = {question.id: question for question in questions}
    return [
        ((by_id[row.question_id], present(by_id[row.question_id], row.contents)), row)
        for row in result.responses.rows()
        if not row.repeat
    ]


def held_to_account(
    model: Callable[[Store], Counted], questions: list[Question], tmp_path: Path, **options: object
) -> AuditResult:
    """Audit with repeats, stopped on the way, resumed, and adaptively; returns the whole audit.

    Nothing that arrived is asked again; repeats do not differ at temperature 0; stopping early agrees with it.
    """
    asked = QuestionSet.of(questions)
    with Store(tmp_path / "s.sqlite3") as store:
        first = model(store)

        def stop(phase: str, done: int, total: int) -> None:
            if done >= 25:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            audit(first, asked, repeats=2, repeat_sample=10, progress=stop, **options)
        second = model(store)
        full = audit(second, asked, repeats=2, repeat_sample=10, **options)
        assert second.recalled >= 25
        assert second.recalled + second.asked == len(full.responses)
        third = model(store)
        assert audit(third, asked, repeats=2, repeat_sample=10, **options).metrics.to_dict() == full.metrics.to_dict()
        assert third.asked == 0
        again = [row for row in full.responses.rows() if row.repeat]
        answered = sum(row.choice >= 0 for row in again)  # a reply without an answer has nothing to compare
        noise = full.replies.noise
        assert len(again) == 10
        assert answered >= 9
        assert (noise["between_repeats"].value, noise["between_repeats"].n) == (0, answered)
        fourth = model(store)
        adaptive = audit(fourth, asked, adaptive=True, **options)
        reversed_only = sum(row.kind == "reverse" for row in adaptive.responses.rows())
        assert fourth.asked == reversed_only  # all else is known from the whole audit
    for name in ("expected_accuracy", "robust_accuracy", "vote_accuracy", "consistency"):
        early, whole = (result.metrics.means[name] for result in (adaptive, full))
        assert early.low <= whole.value <= early.high, name
    assert adaptive.metrics.means["accuracy"].value == full.metrics.means["accuracy"].value
    return full


@pytest.mark.thorough
def test_words_takes_the_first_option_where_none_is_right(served_words: str, tmp_path: Path) -> None:
    from training.words import choice_question

    rng = random.Random(5)
    questions = [choice_question(form, rng, 4, f"{form}/{i}") for form in ("single", "none") for i in range(12)]
    template = tmp_path / "missing-choices.toml"
    template.write_text(MISSING_CHOICES)
    full = held_to_account(
        lambda store: Counted(served_words, WORDS, store, 8), questions, tmp_path, template=str(template)
    )
    assert "When unsure it falls back on A" in said(full)
    assert full.metrics.means["accuracy"].value >= 0.9  # of the questions that have a right option
    assert full.metrics.means["accuracy"].n == 12
    shown = f"{full.metrics.means['accuracy'].value:.2f}"
    assert full.headline.startswith(f"{WORDS} scores {shown} in words on 12 of 24 questions, and ")
    assert check_against_scores(served_words, WORDS, shown_as(questions, full), str(template)) > 0.9


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_smollm2_on_real_questions(served_smollm2: str, shared_data: Path, tmp_path: Path) -> None:
    found = load_questions(shared_data / "arc_challenge_test.jsonl").questions
    questions = [question for question in found if len(question.options) == 4][:60]
    full = held_to_account(lambda store: Counted(served_smollm2, "real", store, 2), questions, tmp_path)
    assert len(full.responses) == 60 * 4 + 10
    assert full.metrics.means["answered"].value > 0.9
    print(full.summary())
    assert check_against_scores(served_smollm2, "real", shown_as(questions, full), "label-alone", 0.1) > 0.9
    assert "falls back on A" in said(full)
