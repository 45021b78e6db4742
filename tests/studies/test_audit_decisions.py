"""Audits through a real decision endpoint, ``transformers serve``, say what the audit of the weights says."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

import unslant
from tests.first_screens import said
from tests.models.scoring import score
from tests.serving import transformers_server
from unslant.errors import ModelError
from unslant.models.decisions import DecisionModel
from unslant.presentations import orders_for, present
from unslant.prompts import Decision, Message, Prompt
from unslant.questions import Question
from unslant.reference import reference_path

pytest.importorskip("transformers.decision", reason="transformers before 5.23 has no decision endpoint")
pytest.importorskip("uvicorn", reason="needs transformers serve: pip install 'transformers[serving]'")
pytest.importorskip("fastapi", reason="needs transformers serve: pip install 'transformers[serving]'")

PLAIN = (
    "{% if state != 'Answer the question.' %}{{ state }}\n\n{% endif %}Question: {{ question.instructions }}\n"
    "{% for option in question.options %}{{ question.labels[loop.index0] | trim }}. {{ option }}\n{% endfor %}Answer:"
)
"""Our template ``plain``, as a decision template."""


@contextmanager
def endpoint(model: Path, folder: Path, template: str = PLAIN) -> Iterator[str]:
    """The name of a model behind a server that words prompts as our default template does."""
    config = folder / "decision.json"
    config.write_text(json.dumps({"labels": {"choice": [f" {c}" for c in "ABCDEFGH"]}, "chat_template": template}))
    with transformers_server(model, folder / "log", "--decision-config", str(config)) as url:
        yield f"{url}/systemone#{model}"


def by_page(result: unslant.AuditResult) -> dict[tuple, np.ndarray]:
    """Probability of each option from the top, by question and order."""
    return {
        (row.question_id, row.contents): softmax(row.logprobs) for row in result.responses.rows() if row.kind == "order"
    }


@pytest.mark.slow
@pytest.mark.parametrize(("name", "taken"), [("prefers-a", ("the first position",)), ("fair", ())])
def test_the_same_prompt_gives_the_same_audit(name: str, taken: tuple[str, ...], tmp_path: Path) -> None:
    options = {"limit": 80, "orders": "cyclic"}
    with endpoint(reference_path(name), tmp_path) as address:
        served = unslant.audit(address, **options)
    local = unslant.audit(name, **options)
    theirs, ours = by_page(served), by_page(local)
    assert theirs.keys() == ours.keys()
    assert max(np.abs(theirs[page] - ours[page]).max() for page in ours) < 1e-4
    for key in ("accuracy", "expected_accuracy", "robust_accuracy", "vote_accuracy", "consistency"):
        assert served.metrics.means[key].value == local.metrics.means[key].value
    assert served.metrics.preference.takes == taken
    assert ("the label that the server puts there: cannot be distinguished" in said(served)) == bool(taken)
    answers = {c.method: c.accuracy.value for c in local.corrections}
    assert {c.method: c.accuracy.value for c in served.corrections} == pytest.approx(answers, nan_ok=True)


@pytest.mark.slow
def test_its_own_prompt_is_scored_as_the_local_engine_does(tmp_path: Path) -> None:
    """Also where options are numbers, or empty: their order is kept."""
    folder, local = reference_path("prefers-a"), unslant.open_model("prefers-a")
    questions = [
        Question("town", "In what town does Orgoo live?", ("Fenton", "Redhill", "Millbrook"), frozenset({0})),
        Question("year", "When?", ("1918", "7", "", "later"), frozenset({0}), context="It was late."),
    ]
    asked, ours = [], []
    for question in questions:
        for order in orders_for(question, "all"):
            asked += Decision().prompts(present(question, order))
            lines = [f"{label}. {question.options[i]}" for label, i in zip("ABCD", order, strict=False)]
            lines.append(f"Answer with the letter of the option that fits best (A to {'ABCD'[len(order) - 1]}) only.")
            content = "\n".join([f"{question.context or 'Answer the question.'}\n\n{question.stem}", *lines])
            ours.append(Prompt("", tuple("ABCD"[: len(order)]), (Message("user", content),)))
    with transformers_server(folder, tmp_path / "log") as url:
        model = DecisionModel(str(folder), f"{url}/systemone")
        model.identify()
        theirs = {scored.index: softmax(scored.logprobs) for scored in model.score(asked)}
        with pytest.raises(ModelError, match="without log-probabilities"):
            unslant.audit(f"{url}#{folder}", limit=2)
        with pytest.raises(ModelError, match=r"HTTP 400.*pinned"):
            DecisionModel("other", f"{url}/systemone").identify()
    apart = [np.abs(theirs[i] - softmax(scores)).max() for i, scores in enumerate(score(local, ours))]
    assert max(apart) < 1e-4
    assert model.cost.tokens > 0


@pytest.mark.slow
def test_its_chat_is_audited_in_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("inspect_ai", reason="needs inspect_ai: pip install 'unslant[inspect]'")
    monkeypatch.setenv("UNSLANT_API_KEY", "none")
    folder = reference_path("words")
    with transformers_server(folder, tmp_path / "log") as url:
        model = unslant.models.open.open_chat(f"{url}#{folder}")
        found = unslant.audit(model, limit=10, elicit="generate")
    assert "in words on" in found.headline
    assert found.metrics.counts.failed_rows == 0
    assert found.metrics.counts.unanswered_rows < found.metrics.counts.rows


@pytest.mark.real
def test_a_real_model_is_audited_like_its_weights(real_model: str, shared_data: Path, tmp_path: Path) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    source, folder = Path(real_model), tmp_path / "model"
    where = {"gguf_file": source.name}
    packed = AutoModelForCausalLM.from_pretrained(source.parent, dtype=torch.float32, **where)
    config = copy.deepcopy(packed.config)
    del config.quantization_config  # of the file; the weights are unpacked
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.load_state_dict(packed.state_dict())
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source.parent, **where).save_pretrained(folder)
    del packed, model
    questions = unslant.load_questions(shared_data / "arc_challenge_test.jsonl", limit=8)
    local = unslant.audit(str(folder), questions, orders="reverse")
    with endpoint(folder, tmp_path) as address:
        served = unslant.audit(address, questions, orders="reverse")
    theirs, ours = by_page(served), by_page(local)
    assert theirs.keys() == ours.keys()
    assert max(np.abs(theirs[page] - ours[page]).max() for page in ours) < 1e-3
    assert served.metrics.means["accuracy"].value == local.metrics.means["accuracy"].value
