"""Decision endpoints: what is asked, how answers are read, and what an audit makes of them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import unslant
from tests.command_line import unslant as command
from tests.first_screens import said
from tests.models.decision_server import OPTIONS, ORGOO, answer_of, asked, options_in, prompt_of, reply_of, serving
from tests.serving import Fault, FaultServer
from unslant.errors import InputError, ModelError
from unslant.models.decisions import DecisionModel, read_answer
from unslant.models.open import open_model
from unslant.prompts import Prompt
from unslant.questions import Question

pytestmark = pytest.mark.thorough

SYSTEM_ONE_REQUEST = {
    "model": "words",
    "state": "Answer the question.",
    "questions": {
        "q": {
            "type": "choice",
            "instructions": "In what town does Orgoo live?",
            "criteria": {"Fenton": None, "Redhill": None, "Millbrook": None, "Langdale": None},
        }
    },
}
"""As ``transformers serve`` 5.23.0 was asked; :data:`SYSTEM_ONE_REPLY` is what it replied."""
SYSTEM_ONE_REPLY = {
    "model": "words",
    "answers": {
        "q": {
            "type": "choice",
            "choice": "Fenton",
            "confidence": 0.1183706521987915,
            "probabilities": {
                "Fenton": 0.33877798914909363,
                "Redhill": 0.14122366905212402,
                "Millbrook": 0.3120969235897064,
                "Langdale": 0.20790135860443115,
            },
        }
    },
    "usage": {"input_tokens": 80, "output_tokens": 0},
}
OPENAI_REQUEST = {
    "model": "gpt-6-luna",
    "input": "Answer the question.",
    "questions": [
        {
            "type": "choice",
            "name": "q",
            "instructions": "In what town does Orgoo live?",
            "choices": [{"value": "Fenton"}, {"value": "Redhill"}, {"value": "Millbrook"}, {"value": "Langdale"}],
        }
    ],
}
OPENAI_REPLY = {
    "model": "gpt-6-luna-2026-10-01",
    "answers": [
        {
            "type": "choice",
            "name": "q",
            "choice": "Millbrook",
            "confidence": 0.2,
            "probabilities": [
                {"value": "Millbrook", "probability": 0.4},
                {"value": "Fenton", "probability": 0.3},
                {"value": "Langdale", "probability": 0.2},
                {"value": "Redhill", "probability": 0.1},
            ],
        }
    ],
    "usage": {
        "input_tokens": 100,
        "input_tokens_details": {"cached_tokens": 64, "cache_write_tokens": 0},
        "output_tokens": 0,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": 100,
    },
}
"""By the types of openai 3.54; no server was at hand."""


@pytest.fixture(scope="module")
def questions() -> list[Question]:
    words = ["red", "green", "blue", "white"]
    return [
        Question(f"q{i}", f"What is the colour of {i}?", tuple(words[: 3 + (i % 4 == 0)]), frozenset({i % 3}))
        for i in range(24)
    ]


# What is asked


@pytest.mark.parametrize(
    ("format", "request_", "reply"),
    [("systemone", SYSTEM_ONE_REQUEST, SYSTEM_ONE_REPLY), ("decisions", OPENAI_REQUEST, OPENAI_REPLY)],
)
def test_both_formats(format, request_, reply):
    with serving(lambda _: reply) as server:
        model = DecisionModel(request_["model"], f"{server.url}/{format}")
        (scored,) = model.score([prompt_of(ORGOO)])
    assert server.requests == [request_]
    assert [list(q.get("criteria", q.get("choices"))) for q in _questions(server.requests[0])] == [
        list(q.get("criteria", q.get("choices"))) for q in _questions(request_)
    ]
    told = reply["answers"]["q"]["probabilities"] if format == "systemone" else {
        one["value"]: one["probability"] for one in reply["answers"][0]["probabilities"]
    }  # fmt: skip
    np.testing.assert_allclose(np.exp(scored.logprobs), [told[option] for option in OPTIONS])
    assert (model.cost.tokens, model.cost.tokens_plain) == ((80, 80) if format == "systemone" else (36, 100))


def _questions(request):
    found = request["questions"]
    return list(found.values()) if isinstance(found, dict) else found


def test_the_openai_fixtures_are_of_the_published_types():
    types = pytest.importorskip("openai.types", reason="the published types are in openai")
    pydantic = pytest.importorskip("pydantic")
    if not hasattr(types, "DecisionCreateParams"):
        pytest.skip("openai before 3.54 knows no decisions")
    pydantic.TypeAdapter(types.DecisionCreateParams).validate_python(OPENAI_REQUEST, strict=True)
    types.Decision.model_validate(OPENAI_REPLY, strict=True)
    types.Decision.model_validate(OPENAI_REPLY | {"answers": [{"type": "refusal", "name": "q"}]}, strict=True)


def test_the_recorded_exchange_is_the_shared_one(shared_data: Path):
    folder = shared_data / "logs" / "decisions"
    assert json.loads((folder / "request.json").read_text()) == SYSTEM_ONE_REQUEST
    recorded = (folder / "response_transformers_5.23.0.json").read_text().splitlines()[0]
    assert json.loads(recorded) == SYSTEM_ONE_REPLY


def test_a_passage_is_the_state_and_options_come_in_shown_order():
    with serving() as server:
        question = Question("p", "Who?", ("Ann", "Bo", "7", ""), frozenset({0}), context="Ann did it.")
        list(DecisionModel("m", f"{server.url}/systemone").score([prompt_of(question, (3, 2, 0, 1))]))
    (request,) = server.requests
    assert request["state"] == "Ann did it."
    assert list(request["questions"]["q"]["criteria"]) == ["", "7", "Ann", "Bo"]


@pytest.mark.parametrize(
    ("name", "base_url", "opened"),
    [
        ("http://h:1/v1/systemone#org/name", None, ("org/name", "http://h:1/v1/systemone")),
        ("http://h:1/v1/decisions/#name", None, ("name", "http://h:1/v1/decisions")),
        ("name", "https://h/v1/systemone/", ("name", "https://h/v1/systemone")),
    ],
)
def test_the_address_tells_the_format(name, base_url, opened):
    model = open_model(name, base_url=base_url) if base_url else open_model(name)
    assert (type(model).__name__, model.name, model.info.identity["base_url"]) == ("DecisionModel", *opened)


def test_an_address_without_a_model_is_refused():
    with pytest.raises(InputError, match="systemone#NAME"):
        open_model("http://h/v1/systemone")


def test_replies_cannot_be_had_from_it():
    ran = command("audit", "http://127.0.0.1:9/v1/systemone#m", "--elicit", "generate", "--no-store")
    assert ran.code == 2
    assert "is a decision endpoint, which can score only" in ran.err


# How answers are read


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (reply_of(dict.fromkeys(OPTIONS[:3], 1 / 3)), "other options"),
        (reply_of(dict.fromkeys((*OPTIONS[:3], "langdale"), 0.25)), "other options"),
        (reply_of(dict.fromkeys(OPTIONS, 0.4)), "do not sum to 1"),
        (reply_of(dict(zip(OPTIONS, (1.2, -0.2, 0, 0), strict=True))), "no probabilities"),
        (reply_of(dict(zip(OPTIONS, (math.nan, 1, 0, 0), strict=True))), "no probabilities"),
        (reply_of(dict(zip(OPTIONS, (0.7, 0.1, 0.1, 0.1), strict=True)), choice="Redhill"), "is not the most probable"),
        (reply_of(dict(zip(OPTIONS, (0.7, 0.1, 0.1, 0.1), strict=True)), choice="Paris"), "is not the most probable"),
    ],
)
def test_what_is_no_answer_is_an_error(reply, error):
    with serving(lambda _: Fault(body=json.dumps(reply))) as server:
        (scored,) = DecisionModel("m", f"{server.url}/systemone").score([prompt_of(ORGOO)])
    assert scored.logprobs is None
    assert not scored.declined
    assert "question 'orgoo'" in scored.error
    assert error in scored.error


@pytest.mark.parametrize("reply", [{"answers": {}}, {"answers": {"q": {"type": "score", "score": 1}}}, [], {}])
def test_a_reply_of_another_shape_ends_all(reply):
    with serving(lambda _: Fault(body=json.dumps(reply))) as server, pytest.raises(ModelError, match="the shape of"):
        list(DecisionModel("m", f"{server.url}/systemone").score([prompt_of(ORGOO)]))


def test_options_of_equal_text_are_not_asked():
    with serving() as server:
        twins = Question("twins", "Which?", ("a", "b", "a"), frozenset({0}))
        (scored,) = DecisionModel("m", f"{server.url}/systemone").score([prompt_of(twins)])
    assert scored.error == "question 'twins': two options read 'a'; a decision endpoint names them by text"
    assert not server.requests


@pytest.mark.parametrize("by", ["number", "text"])
def test_a_server_that_sorts_the_options_is_noticed(by):
    """JavaScript puts whole numbers first, by value, whatever the order in which they were sent."""

    def sorting(request):
        _, options, _ = options_in(request)
        own = sorted(
            options, key=(lambda o: (not o.isdecimal(), int(o) if o.isdecimal() else 0)) if by == "number" else str
        )
        return reply_of({option: (1 + k) / 6 for k, option in enumerate(own)})

    question = Question("years", "When?", ("1918", "905", "unknown"), frozenset({0}))
    with serving(sorting) as server:
        found = {
            order: scored
            for order in [(0, 1, 2), (1, 0, 2), (0, 2, 1)]
            for scored in DecisionModel("m", f"{server.url}/systemone").score([prompt_of(question, order)])
        }
    kept = (1, 0, 2) if by == "number" else (0, 1, 2)
    for order, scored in found.items():
        assert (scored.logprobs is not None) == (order == kept)
        assert order == kept or "sequence of its own" in scored.error


def test_rounding_leaves_the_choice_to_the_server():
    probs = dict(zip(OPTIONS, (0.38, 0.24, 0.38, 0.0), strict=True))
    scored = read_answer("systemone", reply_of(probs, choice="Millbrook"), OPTIONS)
    assert scored.logprobs is not None
    assert int(scored.logprobs.argmax()) == 2
    np.testing.assert_allclose(np.exp(scored.logprobs), [0.38, 0.24, 0.38, 0.0025], atol=1e-7)


def test_a_request_that_is_refused_is_an_error_and_a_key_that_is_refused_ends_all():
    with serving(lambda _: Fault(422, {"detail": "at most 3 options"})) as server:
        (scored,) = DecisionModel("m", f"{server.url}/systemone").score([prompt_of(ORGOO)])
    assert "HTTP 422" in scored.error
    assert "at most 3 options" in scored.error
    with serving(lambda _: Fault(401, "no")) as server, pytest.raises(ModelError, match="HTTP 401"):
        list(DecisionModel("m", f"{server.url}/systemone").score([prompt_of(ORGOO)]))


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Fault(500, {"detail": "no model 'm', only 'big'"}), "after 2 tries.*HTTP 500.*no model 'm', only 'big'"),
        (Fault(503, "loading 'm'", headers={"Retry-After": "60"}), "after 1 try.*HTTP 503.*loading 'm'"),
        (Fault(404, {"detail": "no model 'm'"}), "HTTP 404.*no model 'm'"),
        (Fault(body={"error": {"message": "no model 'm'"}}), "the server replied: no model 'm'"),
        (Fault(body={"detail": "no model 'm'"}), "the server replied: no model 'm'"),
    ],
)
def test_the_servers_own_message_reaches_the_user(fault, words):
    """As a wrong name gets it from one server or another."""
    with serving(lambda _: fault) as server:
        model = DecisionModel("m", f"{server.url}/systemone", retries=1, wait=0.01, deadline=0.5)
        for ask in (model.identify, lambda: list(model.score([prompt_of(ORGOO)]))):
            with pytest.raises(ModelError, match=words):
                ask()


def test_the_last_message_survives_a_server_that_then_hangs():
    faults = iter([Fault(500, {"detail": "no model 'm'"}), Fault(delay=30)])
    with serving(lambda _: next(faults)) as server, pytest.raises(ModelError, match=r"within 0.5 s.*no model 'm'"):
        DecisionModel("m", f"{server.url}/systemone", wait=0.01, deadline=0.5).identify()


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (Fault(404, "not here"), "HTTP 404"),
        (Fault(501), "HTTP 501"),
        (Fault(body={"choices": []}), "shape of /systemone"),
    ],
)
def test_a_server_that_does_not_decide_is_told_apart(fault, message):
    with serving(lambda _: fault) as server:
        with pytest.raises(ModelError, match="does not decide"):
            DecisionModel("m", f"{server.url}/systemone").identify()
        found = [command("audit", f"{server.url}/systemone#m", "--limit", 2, *store) for store in ([], ["--no-store"])]
    for ran in found:
        assert ran.code == 2
        assert message in ran.err


def test_a_prompt_worded_here_is_refused():
    with serving() as server, pytest.raises(ModelError, match="writes the prompts itself"):
        list(DecisionModel("m", f"{server.url}/systemone").score([Prompt("Question?", (" A", " B"))]))
    with serving() as server:
        ran = command("study", "base-rate", f"{server.url}/systemone#m", "--limit", 3)
    assert ran.code == 2
    assert "writes the prompts itself" in ran.err
    assert not asked(server)


@pytest.mark.parametrize("options", ["--chat", "--to-end", "--labels 1", "--shots 2", "--template letter"])
def test_what_cannot_apply_is_refused_in_one_line(options, tmp_path):
    (tmp_path / "letter.toml").write_text('question = "{{ stem }} {% for o in options %}{{ o.text }} {% endfor %}"')
    words = [str(tmp_path / "letter.toml") if word == "letter" else word for word in options.split()]
    with serving() as server:
        ran = command("audit", f"{server.url}/systemone#m", "--limit", 5, *words)
    assert ran.code == 2
    assert words[0] in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not asked(server)


# What an audit makes of it


@pytest.fixture(scope="module")
def exact(questions) -> unslant.AuditResult:
    with serving() as server:
        return unslant.audit(DecisionModel("m", f"{server.url}/systemone"), questions)


def test_an_audit_finds_the_first_place_and_says_what_cannot_be_known(questions):
    with serving() as server:
        model = DecisionModel("m", f"{server.url}/systemone")
        found = unslant.audit(model, questions)
        once = {json.dumps(request) for request in asked(server)}
    assert (
        len(once) == len(asked(server)) - 8 == 18 * 6 + 6 * 24
    )  # 8 are asked again at the end; no labels rearranged, nothing without content
    assert found.metrics.preference.takes == ("the first position",)
    named = "When unsure it falls back on the first position"
    assert f"{named} (or the label that the server puts there: cannot be distinguished)" in said(found)
    assert set(found.responses.table["elicitation"].to_pylist()) == {"decision"}
    assert not found.base_rates
    assert not found.metrics.means["label_mass"].defined
    assert not found.metrics.means["fr_labels"].defined
    assert found.metrics.means["fr"].defined
    assert {c.method for c in found.corrections if c.accuracy.defined} == {"vote", "pride", "gray-box"}
    notes = " ".join(found.page().notes)
    assert "label and position habits cannot be distinguished" in notes
    assert "rounds" not in notes
    assert "[options]\nred\ngreen\nblue" in found.run.example_prompt


def test_the_table_alone_says_the_same(questions, tmp_path):
    with serving() as server:
        found = unslant.audit(DecisionModel("m", f"{server.url}/decisions"), questions, orders="cyclic")
    found.to_parquet(tmp_path / "responses.parquet")
    again = unslant.AuditResult.from_parquet(tmp_path / "responses.parquet")
    assert again.headline == found.headline
    assert [*again.page().notes][:-1] == [*found.page().notes][:-1]  # the last has seconds


@pytest.mark.parametrize("digits", [1, 2])
def test_rounding_is_told_and_moves_no_choice(questions, exact, digits):
    with serving(lambda request: answer_of(request, digits)) as server:
        rounded = unslant.audit(DecisionModel("m", f"{server.url}/systemone"), questions)
    assert rounded.metrics.means["accuracy"].value == exact.metrics.means["accuracy"].value
    assert rounded.metrics.means["consistency"].value == exact.metrics.means["consistency"].value
    rows = [row for row in rounded.responses.rows() if row.logprobs is not None]
    ties = sum(len({round(p, digits) for p in np.sort(np.exp(row.logprobs))[-2:]}) == 1 for row in rows)
    (note,) = (note for note in rounded.page().notes if "rounds" in note)
    assert f"to {digits} decimal" in note
    assert f"in {ties:,} response" in note
    assert ties > 0


def refusing(request):
    stem, _, format = options_in(request)
    if stem.endswith(("of 3?", "of 4?")):
        refusal = {"type": "refusal", "name": "q"}
        return {**answer_of(request), "answers": [refusal] if format == "decisions" else {"q": refusal}}
    return Fault(422, {"detail": "no"}) if stem.endswith("of 5?") else answer_of(request)


def test_refusals_are_refusals_and_errors_are_errors(questions):
    with serving(refusing) as server:
        found = unslant.audit(DecisionModel("m", f"{server.url}/decisions"), questions)
    by_question = {row.question_id: row.status for row in found.responses.rows()}
    assert {name for name, status in by_question.items() if status == "refused"} == {"q3", "q4"}
    assert {name for name, status in by_question.items() if status == "error"} == {"q5"}
    counts = found.metrics.counts
    assert (counts.unanswered_rows, counts.failed_rows) == (6 + 24, 6)
    place = {name: q for q, name in enumerate(found.scores.ids)}
    per_question = found.metrics.questions
    assert per_question["accuracy"][place["q3"]] == per_question["vote_accuracy"][place["q3"]] == 0
    assert np.isnan(per_question["accuracy"][place["q5"]])
    assert np.isnan(per_question["pbm"][[place["q3"], place["q5"]]]).all()
    assert all(c.accuracy.n == 21 for c in found.corrections if c.method != "vote")


def test_one_refused_order_gives_no_answer_in_any_correction(questions):
    """PriDe and gray-box must not make an answer of a refusal."""

    def sometimes(request):
        stem, options, _ = options_in(request)
        if stem.endswith("of 3?") and options[0] == "red":
            return {**answer_of(request), "answers": {"q": {"type": "refusal"}}}
        return answer_of(request)

    with serving(sometimes) as server:
        found = unslant.audit(DecisionModel("m", f"{server.url}/systemone"), questions)
    assert {c.accuracy.n for c in found.corrections} == {23}
    assert np.isnan(found.metrics.questions["pbm"][found.scores.ids.index("q3")])


def test_the_store_keeps_answers_and_asks_refusals_again(questions, tmp_path):
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(json.dumps({"id": q.id, "question": q.stem, "options": q.options, "answer": min(q.answers)}) for q in questions))  # fmt: skip  # noqa: E501
    with serving(refusing) as server:
        words = "audit", f"{server.url}/systemone#m", file, "--orders", "cyclic"
        first = command(*words, "--json", tmp_path / "1.json")
        n = len(asked(server))
        second = command(*words, "--json", tmp_path / "2.json")
        again = len(asked(server)) - n
        dry = command(*words, "--dry-run")
    offline = command(*words, "--offline")
    assert (first.code, second.code) == (0, 0), first.err + second.err
    assert again == 8 + 4 + 5 + 4  # some known ones, to compare, and what had no answer
    assert f"{n - 8} prompts to score." in dry.out
    numbers = [json.loads((tmp_path / f"{i}.json").read_text()) for i in (1, 2)]
    assert numbers[0]["headline"] == numbers[1]["headline"]
    assert "offline, and 13 of" in offline.err


@pytest.mark.parametrize("method", ["vote", "pride", "gray-box"])
def test_debiasing_by_orders_works(questions, method):
    with serving() as server, unslant.Debiased(f"{server.url}/systemone#m", method, fit=questions[:12]) as model:
        outcomes = model.answers(questions)
        plain = unslant.Debiased(f"{server.url}/systemone#m", "none").answers(questions)
    assert all(outcome.choice >= 0 for outcome in outcomes)
    assert sum(a.choice != b.choice for a, b in zip(outcomes, plain, strict=True)) > 0


@pytest.mark.parametrize("listed", [{"data": 5}, {"data": [5]}, 5, {"data": {"id": "words"}}])
def test_a_list_of_models_in_another_form_says_nothing(listed: object) -> None:
    def about(path: str) -> Fault:
        return Fault(body=listed) if path.endswith("/models") else Fault(404)

    with FaultServer(lambda request: Fault(body=answer_of(request)), about).running() as server:
        model = open_model("words", base_url=f"{server.url}/systemone")
        (scored,) = model.score([prompt_of(ORGOO)])
    assert scored.logprobs is not None
