"""The real model, loaded as anybody would load it; its whole table is made by ``make real``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax

import unslant
from tests.first_screens import said
from tests.models.scoring import score
from tests.serving import llama_server
from unslant.models.stored import StoredModel
from unslant.presentations import orders_for, present
from unslant.prompts import Cloze, Prompt, Writer, load_template
from unslant.responses import Response
from unslant.store import Store

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def model(real_model: str):
    return unslant.load_model(real_model)


@pytest.fixture(scope="module")
def questions(shared_data: Path):
    return unslant.load_questions(shared_data / "arc_challenge_test.jsonl", limit=8)


@pytest.fixture(scope="module")
def prompts(questions) -> Sequence[Prompt]:
    cloze = Cloze(Writer(load_template("plain")))
    shown = [present(question, order) for question in questions for order in orders_for(question, "2")]
    return [prompt for presentation in shown for prompt in cloze.prompts(presentation)]


def test_tree_equals_plain(model, real_model: str, prompts) -> None:
    plain = score(unslant.load_model(real_model, engine="plain"), prompts)
    assert np.abs(np.concatenate(score(model, prompts)) - np.concatenate(plain)).max() < 1e-4


def test_bfloat16_is_as_near_by_the_tree_as_without_it(model, real_model: str, prompts) -> None:
    exact = np.concatenate(score(model, prompts))
    apart = {
        engine: np.abs(
            np.concatenate(score(unslant.load_model(real_model, dtype="bfloat16", engine=engine), prompts)) - exact
        )
        for engine in ("tree", "plain")
    }
    assert apart["tree"].mean() < 1.5 * apart["plain"].mean()
    assert apart["tree"].mean() < 0.2


def test_as_a_judge_it_prefers_the_answer_shown_first(model, questions) -> None:
    """Pairs of a right and a wrong option: pairs on one question share so much that both orders cost less than one."""
    pairs = [
        {"question": q.stem, "response_A": q.options[next(iter(q.answers))], "response_B": q.options[i], "label": "A"}
        for q in questions
        for i in range(len(q.options))
        if i not in q.answers
    ]
    result = unslant.study.judge(model, pairs, chat=True)
    assert result.places["moved"].low > 0
    assert 0 < result.cost.ordinary_runs < 1


def test_what_the_audit_says_of_it(model, questions) -> None:
    """Always A, and nothing right in every order."""
    result = unslant.audit(model, questions)
    assert "It always answers A." in said(result)
    assert "cannot be distinguished from guessing" in result.headline
    assert result.metrics.means["robust_accuracy"].value == 0


def test_the_prompt_of_a_chat_is_its_own_template(model, questions) -> None:
    plain, chat = (unslant.audit(model, questions, orders="given", chat=chat) for chat in (False, True))
    assert chat.metrics.means["label_mass"].value > plain.metrics.means["label_mass"].value
    assert chat.run.example_prompt.startswith("[user]")


def page(row: Response) -> tuple:
    return row.question_id, row.kind, row.labels, row.contents


def test_llama_cpp_scores_as_transformers_does(model, real_model: str, questions, tmp_path: Path) -> None:
    """Within the error of quantization: one computes with four bits, the other with the same weights unpacked."""
    with llama_server(Path(real_model), tmp_path / "log") as address:
        exact = unslant.audit(f"{address}#real", questions, orders="reverse")
        few = unslant.audit(unslant.open_model(f"{address}#real", top=5), questions, orders="reverse")
    ours = unslant.audit(model, questions, orders="reverse")
    local = {page(row): row for row in ours.responses.rows()}
    rows = exact.responses.rows()
    assert {(row.status, row.bounds) for row in rows} == {("ok", ())}
    apart = [np.abs(softmax(row.logprobs) - softmax(local[page(row)].logprobs)).max() for row in rows]
    same = [np.argmax(row.logprobs) == np.argmax(local[page(row)].logprobs) for row in rows]
    assert np.mean(apart) < 0.05
    assert np.mean(same) > 0.9
    assert exact.metrics.means["label_mass"].value == pytest.approx(ours.metrics.means["label_mass"].value, abs=0.05)
    assert exact.cost.tokens_plain == ours.cost.tokens_plain  # the same tokens, by the server's own count,
    assert exact.cost.tokens < 0.8 * exact.cost.tokens_plain  # and its prefix cache has some of them
    whole = {page(row): row for row in rows}
    assert few.metrics.counts.bounded_scores > 0
    # The server continues from what its cache holds, and with four-bit weights the place of the cut matters: the same
    # prompts asked twice differed by 0.57 at most, and by much less on average.
    differences = []
    for row in few.responses.rows():
        assert row.status in ("ok", "censored")
        for place, value in enumerate(row.logprobs):
            known = whole[page(row)].logprobs[place]
            if place in row.bounds:
                assert value > known - 0.8
            else:
                differences.append(abs(value - known))
    assert np.max(differences) < 0.8
    assert np.mean(differences) < 0.15


def test_llama_cpp_moves_scores_by_its_cache_and_the_store_is_kept(prompts, real_model: str, tmp_path: Path) -> None:
    """A cold cache and a warm one give different scores: neither a change of model nor a reason to ask everything."""
    with llama_server(Path(real_model), tmp_path / "log") as address, Store(tmp_path / "s.sqlite3") as store:
        for _ in range(3):  # the first call is asked again at its end, the others at their beginning
            asked = StoredModel(unslant.open_model(f"{address}#real"), store)
            list(asked.score(prompts))
        assert asked.recalled == len(prompts)
