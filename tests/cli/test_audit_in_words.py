"""``unslant audit`` and ``unslant debias`` of models that answer in words, as typed."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran
from tests.serving import Fault, FaultServer, completion, free_port

pytest.importorskip("inspect_ai", reason="asking in words needs inspect_ai: pip install 'unslant[inspect]'")

pytestmark = pytest.mark.thorough

ASK = ("embedded", "--limit", 6, "--elicit", "generate")


def first_label(request: dict[str, Any]) -> Fault:
    """Takes the first option shown."""
    page = request["messages"][-1]["content"]
    return Fault(body=completion(re.findall(r"^(\S+)\. ", page, flags=re.M)[0]))


def test_an_audit_in_words_from_start_to_end(unslant: Callable[..., Ran], tmp_path: Path) -> None:
    kept = ("--json", tmp_path / "numbers.json", "--responses", tmp_path / "r.parquet")
    with FaultServer(first_label).running() as server:
        model = f"{server.url}#talker"
        estimate = unslant("audit", model, *ASK, "--dry-run")
        assert estimate.code == 0, estimate.err
        assert not server.requests
        ran = unslant("audit", model, *ASK, "--repeats", 2, "--repeat-sample", 3, *kept)
        assert ran.code == 0, ran.err
        asked = len(server.requests)
        again = unslant("audit", model, *ASK, "--repeats", 2, "--repeat-sample", 3, "--quiet")
        assert (again.code, len(server.requests)) == (0, asked)
    found = json.loads((tmp_path / "numbers.json").read_text())
    assert f"{asked - 3} requests" in estimate.out
    assert "4 characters a token" in estimate.out
    assert found["headline"].startswith("talker scores 0.17 in words on embedded (6 questions), and ")
    assert found["settings"]["elicit"] == "generate"
    assert found["settings"]["template"] == "label-alone"
    assert found["requests"]["talker"]["requests"] == asked
    assert found["replies"]["noise"]["between_repeats"]["value"] == 0
    assert found["metrics"]["means"]["consistency"]["value"] == 0
    assert "talker" in ran.out
    shown = unslant("audit", "--log", tmp_path / "r.parquet")
    assert found["headline"].split(":")[0] in " ".join(shown.out.split())


def test_requests_that_failed_are_asked_again_and_no_others(unslant: Callable[..., Ran]) -> None:
    down = [True]

    def answer(request: dict[str, Any]) -> Fault:
        on_top = re.findall(r"^A\. (.*)$", request["messages"][-1]["content"], flags=re.M)[0]
        if down[0] and on_top < "M":
            return Fault(400, '{"error": {"message": "too long"}}')
        return first_label(request)

    with FaultServer(answer).running() as server:
        words = ("audit", f"{server.url}#talker", *ASK, "--retries", 0, "--connections", 1)
        ran = unslant(*words)
        assert ran.code in (0, 3), ran.err
        failed = int(re.findall(r"(\d+) responses failed: no reply", ran.out)[0])
        assert 0 < failed < len(server.requests)
        down[0], before = False, len(server.requests)
        assert unslant(*words).code == 0
        assert len(server.requests) == before + failed


def test_when_all_later_requests_fail_the_headline_and_the_exit_code_say_so(unslant: Callable[..., Ran]) -> None:
    seen: list[Any] = []

    def answer(request: dict[str, Any]) -> Fault:
        seen.append(request)
        return first_label(request) if len(seen) == 1 else Fault(400, '{"error": {"message": "no more"}}')

    with FaultServer(answer).running() as server:
        ran = unslant("audit", f"{server.url}#talker", *ASK, "--retries", 0)
    assert ran.code == 3
    assert "requests to talker failed" in ran.err
    assert "requests to talker failed" in " ".join(ran.out.split())


@pytest.mark.parametrize("command", ["audit", "debias"])
def test_nobody_there_is_one_line(unslant: Callable[..., Ran], command: str, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "a.jsonl") if command == "debias" else ()
    ran = unslant(command, f"http://127.0.0.1:{free_port()}/v1#m", *ASK, *out, "--quiet")
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert "no connection" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("audit", "inspect:openai/m", "embedded", "--elicit", "labels"), "log-probabilities of labels"),
        (
            ("audit", "prefers-a", "embedded", "--adaptive"),
            "--adaptive applies only to generated replies; add --elicit generate",
        ),
        (("audit", "prefers-a", "embedded", "--max-tokens", 5), "add --elicit generate"),
        (("audit", "inspect:openai/m", "embedded", "--reasoning", "--template", "plain"), "leave out --template"),
        (("debias", "inspect:openai/m", "embedded", "--method", "pride", "--out", "x"), "pride needs log-prob"),
        (
            ("debias", "prefers-a", "embedded", "--reasoning", "--out", "x"),
            "--reasoning applies only to generated replies; add --elicit generate",
        ),
    ],
)
def test_what_does_not_go_together_is_one_line(unslant: Callable[..., Ran], words: tuple[Any, ...], said: str) -> None:
    ran = unslant(*words)
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert said in line


@pytest.mark.parametrize("orders", ["latin", pytest.param("given", marks=pytest.mark.thorough)])
def test_a_dry_run_counts_every_prompt_that_is_scored(unslant: Callable[..., Ran], tmp_path: Path, orders: str) -> None:
    words = ("audit", "prefers-a", "embedded", "--limit", 6, "--orders", orders)
    dry, ran = unslant(*words, "--dry-run"), unslant(*words, "--json", tmp_path / "n.json", "--no-store")
    assert (dry.code, ran.code) == (0, 0), dry.err + ran.err
    prompts = json.loads((tmp_path / "n.json").read_text())["cost"]["prompts"]
    assert f"6 questions, {prompts} prompts to score, " in dry.out
    assert "by the model's tokenizer" in dry.out


def test_a_chat_model_without_its_template_is_the_likely_cause_of_replies_without_an_answer(
    unslant: Callable[..., Ran], tmp_path: Path
) -> None:
    rows = [{"question": f"Is {i} even?", "options": ["yes", "no"], "answer": "AB"[i % 2]} for i in range(4)]
    (tmp_path / "even.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    words = ("audit", "words", tmp_path / "even.jsonl", "--elicit", "generate", "--no-store")
    plain, chat = unslant(*words), unslant(*words, "--chat")
    assert (plain.code, chat.code) == (3, 0)
    assert "contains an answer; a chat model may have been asked without --chat\n" in plain.err
    assert "asked without" not in chat.out


def test_a_dry_run_counts_the_replies_that_may_be_asked_for_again(unslant: Callable[..., Ran]) -> None:
    ran = unslant("audit", "words", *ASK, "--ask-again", "--repeats", 3, "--dry-run", "--price", 1, "--max-tokens", 9)
    assert ran.code == 0, ran.err
    requests = int(re.findall(r": ([\d,]+) requests", ran.out)[0])
    assert f"up to {requests - 6 * 2} more requests" in ran.out


def test_an_adaptive_dry_run_names_least_and_most(unslant: Callable[..., Ran]) -> None:
    ran = unslant("audit", "inspect:openai/m", "embedded", "--limit", 40, "--adaptive", "--dry-run")
    assert ran.code == 0, ran.err
    least, most = re.findall(r": ([\d,]+) to ([\d,]+) requests", ran.out)[0]
    assert int(least) < int(most)
    assert "Without --adaptive: " in ran.out


def test_votes_on_replies_are_written(unslant: Callable[..., Ran], tmp_path: Path) -> None:
    out = tmp_path / "answers.jsonl"
    with FaultServer(first_label).running() as server:
        words = ("debias", f"{server.url}#talker", *ASK, "--method", "vote:orders=2", "--out", out)
        ran = unslant(*words)
        assert ran.code == 0, ran.err
        asked = len(server.requests)
        assert unslant(*words, "--quiet").code == 0
        assert len(server.requests) == asked == 12
    answers = [json.loads(line) for line in out.read_text().splitlines()]
    assert {answer["confidence"] for answer in answers} <= {0.5, 1.0}
    assert "2.00 presentations" in ran.out


def test_votes_that_rest_on_few_replies_are_written_and_the_exit_code_says_so(
    unslant: Callable[..., Ran], tmp_path: Path
) -> None:
    seen: list[Any] = []

    def answer(request: dict[str, Any]) -> Fault:
        seen.append(request)
        return first_label(request) if len(seen) == 1 else Fault(400, '{"error": {"message": "no more"}}')

    out = tmp_path / "answers.jsonl"
    with FaultServer(answer).running() as server:
        ran = unslant("debias", f"{server.url}#talker", *ASK, "--out", out, "--retries", 0, "--no-store")
    assert ran.code == 3
    assert "requests to talker failed" in ran.err
    answers = [json.loads(line)["answer"] for line in out.read_text().splitlines()]
    assert len(answers) == 6
    assert answers.count(None) == 5
