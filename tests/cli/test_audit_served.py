"""``unslant audit --base-url``: the audit of a model behind a real server says what the audit of its weights says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran
from tests.models.server_formats import OF_KIND, Served
from tests.serving import Fault, llama_server
from unslant.questions import load_questions
from unslant.reference import reference_path

pytest.importorskip("gguf", reason="serving tests need the test extra: pip install 'unslant[test]'")
pytest.importorskip("xllamacpp", reason="serving tests need the test extra: pip install 'unslant[test]'")

pytestmark = pytest.mark.thorough


def test_a_served_model_is_audited_like_its_weights(unslant: Callable[..., Ran], tmp_path: Path) -> None:
    from training.export_gguf import export_gguf

    export_gguf(reference_path("prefers-a"), tmp_path / "model.gguf")
    common = ("--limit", 40, "--orders", 4, "--no-store")
    with llama_server(tmp_path / "model.gguf", tmp_path / "server.log") as url:
        served = unslant(
            "audit", "words", "embedded", "--base-url", url, *common, "--json", tmp_path / "served.json", "--details"
        )
    assert served.code == 0, served.err
    assert "When unsure it falls back on A" in served.out
    assert "tokens from the server's prefix cache" in " ".join(served.out.split())
    local = unslant("audit", "prefers-a", "embedded", *common, "--json", tmp_path / "local.json")
    assert local.code == 0, local.err
    theirs, ours = (json.loads((tmp_path / f"{name}.json").read_text("utf-8")) for name in ("served", "local"))
    assert theirs["headline"].removeprefix("words ") == ours["headline"].removeprefix("prefers-a ")
    for name, estimate in ours["metrics"]["means"].items():
        if name.startswith("accuracy") or name.endswith("accuracy"):
            assert theirs["metrics"]["means"][name]["value"] == pytest.approx(estimate["value"])


def test_what_a_server_runs_cannot_be_changed(unslant: Callable[..., Ran]) -> None:
    ran = unslant("audit", "m", "embedded", "--base-url", "http://127.0.0.1:9/v1", "--adapter", "a", "--no-store")
    assert ran.code == 2
    assert "leave out --adapter" in ran.err


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    """Questions of four options, whose labels are those that the simulated servers know: a request a prompt."""
    path = tmp_path / "q.jsonl"
    found = [one for one in load_questions("embedded") if len(one.options) == 4]
    rows = [{"question": one.stem, "options": one.options, "answer": min(one.answers)} for one in found]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def stub(**more: Any) -> Served:
    return replace(OF_KIND["vllm"](), **more)


def test_a_model_that_thinks_is_refused_with_the_option_to_try(unslant: Callable[..., Ran], tmp_path: Path) -> None:
    thinking = stub(say="<think>")
    plain = thinking.answer
    off = {"enable_thinking": False}

    def answer(request: dict[str, Any]) -> Fault:
        return (stub().answer if request.get("chat_template_kwargs") == off else plain)(request)

    thinking.answer = answer  # type: ignore[method-assign]
    body = """{"chat_template_kwargs":{"enable_thinking":false}}"""
    with thinking.running() as server:
        asked = ("audit", "m", "embedded", "--base-url", server.url, "--chat", "--limit", 3, "--orders", "reverse")
        refused = unslant(*asked, "--store", tmp_path / "s.sqlite3")
        assert refused.code == 2
        assert "thinks before it answers: its reply begins with '<think>'" in refused.err
        assert f"--extra-body '{body}'" in refused.err
        ran = unslant(
            *asked,
            "--store",
            tmp_path / "s.sqlite3",
            "--extra-body",
            body,
            "--json",
            tmp_path / "out.json",
            "--details",
        )
    assert ran.code == 0, ran.err
    numbers = json.loads((tmp_path / "out.json").read_text("utf-8"))
    assert numbers["metrics"]["means"]["label_mass"]["value"] == pytest.approx(0.35, abs=0.01)
    assert "tokens from the server's prefix cache" in " ".join(ran.out.split())


def test_what_is_not_known_is_said_again_when_it_is_recalled(
    unslant: Callable[..., Ran], tmp_path: Path, questions: Path
) -> None:
    with replace(OF_KIND["openai"](), most={"completions": 5, "chat": 20}, needs="").running() as server:
        asked = ("audit", "m", questions, "--base-url", server.url, "--limit", 3, "--labels", "A", "--top", 4)
        asked += ("--details",)
        first = unslant(*asked, "--store", tmp_path / "s.sqlite3", "--json", tmp_path / "first.json")
        assert first.code == 0, first.err
        server.requests.clear()
        again = unslant(*asked, "--store", tmp_path / "s.sqlite3", "--json", tmp_path / "again.json")
        assert sum("logprobs" in request for request in server.requests) == 8  # asked again, to compare
    offline = unslant(*asked, "--store", tmp_path / "s.sqlite3", "--offline")
    note = "Label scores that are only upper bounds, because the server did not return the label"
    for ran in (first, again, offline):
        assert note in " ".join(ran.out.split()), ran.out
    one, two = (json.loads((tmp_path / f"{name}.json").read_text("utf-8")) for name in ("first", "again"))
    assert one["metrics"] == two["metrics"]


def test_an_interrupted_run_resumes_where_it_stopped(
    unslant: Callable[..., Ran], tmp_path: Path, questions: Path
) -> None:
    served, left = stub(), [40]
    plain = served.answer

    def answer(request: dict[str, Any]) -> Fault:
        left[0] -= "logprobs" in request
        return plain(request) if left[0] >= 0 else Fault(401)

    served.answer = answer  # type: ignore[method-assign]
    with served.running() as server:
        asked = ("audit", "m", questions, "--base-url", server.url, "--limit", 6, "--orders", 2, "--connections", 2)
        asked += ("--store", tmp_path / "s.sqlite3")
        stopped = unslant(*asked)
        assert stopped.code == 2
        left[0] = 10_000
        went_on = unslant(*asked)
        assert went_on.code == 0, went_on.err
        once = 10_000 - left[0]
        left[0] = 10_000
        whole = unslant(*asked[:-1], tmp_path / "other.sqlite3")
    assert once <= (10_000 - left[0]) - 40 + 2 + 8  # those under way are lost, and eight are asked again, to compare
    assert whole.out.splitlines()[0] == went_on.out.splitlines()[0]


def test_the_value_of_a_header_is_sent_and_written_nowhere(unslant: Callable[..., Ran], tmp_path: Path) -> None:
    seen: list[str | None] = []
    with stub().running() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("TEAM_KEY", "s3cret-of-the-team")
        asked = ("audit", "m", "embedded", "--base-url", server.url, "--limit", 2, "--orders", "given")
        for i, header in enumerate(("Authorization: Basic s3cret-word", "Authorization: $TEAM_KEY")):
            outputs = ("--json", tmp_path / f"{i}.json", "--html", tmp_path / f"{i}.html")
            ran = unslant(*asked, "--store", tmp_path / "s.sqlite3", "--header", header, *outputs)
            assert ran.code == 0, ran.err
            seen.append(server.authorizations[-1])
        assert unslant("audit", "m", "embedded", "--base-url", server.url, "--header", "X: ***").code == 2
        for wrong in ("no colon", ": x", "X:", "X: $NOT_THERE", "X: é"):
            assert unslant("audit", "m", "embedded", "--base-url", server.url, "--header", wrong).code == 2
    assert seen == ["Basic s3cret-word", "s3cret-of-the-team"]
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"s3cret" not in written
    assert b"Authorization: ***" in written
    assert b"Authorization: $TEAM_KEY" in written


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--extra-body", "[1]"), "is not a JSON object"),
        (("--extra-body", '{"stream": true}'), "'stream' is set by unslant"),
        (("--extra-body", '{"min_p": NaN}'), "is not a JSON object, such as '{\"top_k\": 1}' (Out of range"),
        (("--extra-body", '{"stop": "\\ud83d"}'), "'stop': not Unicode text: \\ud83d is half of a character"),
        (("--extra-body", '{"top_k": 1, "top_k": 2}'), "gives the key 'top_k' twice"),
        (("--server", "triton"), 'Invalid value "triton" for --server. Choose from: "auto", "vllm"'),
        (("--top", "0"), "give 1 or more"),
        (("--top", "5", "--elicit", "generate"), "leave out --top"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    unslant: Callable[..., Ran], words: tuple[str, ...], problem: str
) -> None:
    ran = unslant("audit", "m", "embedded", "--base-url", "http://127.0.0.1:9/v1", "--no-store", *words)
    assert ran.code == 2
    assert problem in " ".join(ran.err.split())
