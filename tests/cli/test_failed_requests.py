"""What a user of a served model sees when it cannot be asked: one line, or a result that says what is missing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import unslant
from tests.serving import Fault, FaultServer, completion, free_port

pytest.importorskip("inspect_ai", reason="asking in words needs inspect_ai: pip install 'unslant[inspect]'")

pytestmark = pytest.mark.thorough

UNBIASED = ("study", "unbiased", "URL#m", "embedded", "--generate", "--limit", "3", "--runs", "1", "--shots", "0")
BOUNDARY = ("study", "instruction-boundary", "URL#m", "--settings", "vanilla", "--limit", "4")
AUDIT = ("audit", "URL#m", "embedded", "--elicit", "generate", "--limit", "4", "--orders", "cyclic")
PROBE = ("study", "probe", "URL#a,URL#b", "embedded", "--limit", "2", "--strengths", "1")
RESPONSES_OF_UNBIASED = 3 * (2 + 5) + 8 + 4 + 4
"""Of three questions of 8, 4 and 4 options. BOAT leaves one of them as it is, so one request brings two responses."""
COMMANDS = pytest.mark.parametrize("words", [UNBIASED, BOUNDARY, PROBE], ids=["unbiased", "boundary", "probe"])
WRONG = {
    "key": (Fault(401, '{"error": {"message": "Incorrect API key provided: sk-of-mine"}}'), "the key is not accepted"),
    "denied": (Fault(403, '{"error": {"message": "no"}}'), "the key is not accepted"),
    "model": (Fault(404, '{"error": {"message": "The model `m` does not exist"}}'), "no such model or address"),
    "page": (Fault(200, "<html>Sign in</html>", headers={"Content-Type": "text/html"}), "no such model or address"),
    "redirect": (Fault(307, headers={"Location": "/v2/chat"}), "HTTP 307: it redirects to http://127.0.0.1:"),
    "always": (Fault(400, '{"error": {"message": "this account is not supported"}}'), "no request is accepted"),
    "temperature": (
        Fault(400, '{"error": {"message": "temperature is not supported"}}'),
        "the server does not take a part of the request (Error code: 400 - temperature is not supported: for replies ",
    ),
}


def typed(words, url):
    return [word.replace("URL", url) for word in words]


@COMMANDS
@pytest.mark.parametrize("wrong", WRONG)
def test_what_cannot_succeed_ends_at_the_first_request(words, wrong, monkeypatch):
    monkeypatch.setenv("UNSLANT_API_KEY", "sk-of-mine")
    fault, said = WRONG[wrong]
    with FaultServer(lambda _: fault).running() as server:
        ran = unslant(*typed(words, server.url), "--quiet")
    assert (ran.code, ran.out) == (2, "")
    (line,) = ran.err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert "sk-of-mine" not in line
    assert len(server.requests) == (2 if wrong in ("always", "redirect") else 1)


@COMMANDS
@pytest.mark.parametrize("host", ["127.0.0.1", "nobody.invalid"])
def test_nobody_there_is_one_line(words, host):
    url = f"http://{host}:{free_port()}/v1"
    ran = unslant(*typed(words, url), "--quiet")
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert f"no connection to {url}" in line
    assert "attempts failed" not in line  # it says why


@pytest.mark.slow
@COMMANDS
def test_an_unreachable_server_is_reported_within_ten_seconds(words, tmp_path):
    command = [sys.executable, "-m", "unslant", *typed(words, f"http://127.0.0.1:{free_port()}/v1")]
    command[1:3] = ["-c", "from unslant.cli import main; main()"]
    ran = subprocess.run([*command, "--store", tmp_path / "s.db"], capture_output=True, text=True, timeout=10)
    assert ran.returncode == 2
    assert [line for line in ran.stderr.splitlines() if line.startswith("error: ")] == ran.stderr.splitlines()


@COMMANDS
def test_a_first_reply_that_fails_for_the_time_being_ends_nothing(words):
    seen = []

    def answer(request):
        seen.append(request)
        body = completion("5" if words is PROBE else "A")
        return Fault(503, "busy") if len(seen) == 1 else Fault(body=body, delay=0.5 if len(seen) == 2 else 0)

    with FaultServer(answer).running() as server:
        ran = unslant(*typed(words, server.url), "--quiet")
    assert ran.code == 0, ran.err


@COMMANDS
def test_requests_that_fail_later_are_in_the_headline_and_the_exit_code(words, tmp_path):
    seen = []

    def answer(request):
        seen.append(request)
        return Fault(body=completion("A")) if len(seen) == 1 else Fault(500, "on fire")

    with FaultServer(answer).running() as server:
        ran = unslant(*typed(words, server.url), "--retries", "0", "--json", tmp_path / "r.json")
    assert ran.code == 3
    assert "failed" in ran.err.splitlines()[-1]
    numbers = json.loads((tmp_path / "r.json").read_text())
    assert " failed (InternalServerError: Error code: 500" in numbers["headline"]
    costs = numbers["requests"].values()
    asked = len(seen) - (words is PROBE)  # whose second model was asked its first prompt again
    assert sum(cost["requests"] for cost in costs) == asked
    assert sum(cost["failed"] for cost in costs) == asked - 1
    assert "requests" in ran.out
    if words is not PROBE:
        statuses = numbers.get("statuses") or {"error": numbers["metrics"]["failed"]}
        responses = RESPONSES_OF_UNBIASED if words is UNBIASED else len(seen)
        assert asked == responses - (words is UNBIASED)
        assert statuses["error"] == responses - 1
    readable = completion("5" if words is PROBE else "A")
    with FaultServer(lambda _: Fault(body=readable)).running(server.port) as server:
        again = unslant(*typed(words, server.url), "--retries", "0", "--json", tmp_path / "r.json")
    assert again.code == 0, again.err
    assert " failed " not in json.loads((tmp_path / "r.json").read_text())["headline"]


def test_a_key_that_is_no_longer_accepted_keeps_what_had_come(tmp_path: Path):
    seen = []

    def answer(request):
        seen.append(request)
        return Fault(body=completion("A")) if len(seen) <= 5 else Fault(401, "no")

    with FaultServer(answer).running() as server:
        assert unslant(*typed(BOUNDARY, server.url), "--connections", "1").code == 0
        ran = unslant(*typed(BOUNDARY, server.url), "--connections", "1")
    assert ran.code == 2
    assert len(seen) == 8 + 1


EMPTY = ("", " \n", "")
"""Of 24 replies 22 of which say nothing; as many that say something else are a result, of which none is right."""


@pytest.mark.parametrize("words", [UNBIASED, BOUNDARY, AUDIT], ids=["unbiased", "boundary", "audit"])
@pytest.mark.parametrize(("others", "code"), [(EMPTY, 3), (("Well, that depends.",), 0)], ids=["empty", "unreadable"])
def test_empty_replies_are_no_answers(words, others, code, tmp_path):
    seen = []

    def answer(request):
        seen.append(request)
        return Fault(body=completion("A" if len(seen) <= 2 else others[len(seen) % len(others)]))

    with FaultServer(answer).running() as server:
        ran = unslant(*typed(words, server.url), "--json", tmp_path / "r.json")
    assert ran.code == code, ran.err
    headline = json.loads((tmp_path / "r.json").read_text())["headline"]
    assert ("an empty reply" in headline) == (code == 3)
    if code:
        responses = RESPONSES_OF_UNBIASED if words is UNBIASED else len(seen)
        assert len(seen) == responses - (words is UNBIASED)
        assert f"{responses - 2} of {responses} responses of m failed" in headline


def test_empty_replies_in_a_log_are_no_answers(tmp_path: Path):
    def log(said: str) -> Path:
        path = tmp_path / "log.jsonl"
        rows = [
            {
                "id": f"q{i}",
                "order": order,
                "options": [("oak", "elm")[one] for one in order],
                "answer": order.index(i % 2),
                "reply": "A" if i < 1 else said,
            }
            for i in range(12)
            for order in ([0, 1], [1, 0])
        ]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    empty = unslant("audit", "--log", log(""))
    assert (empty.code, empty.err.splitlines()[-1]) == (
        3, "error: 22 of 24 responses of log failed (an empty reply)",
    )  # fmt: skip
    answers = tmp_path / "answers.jsonl"
    assert unslant("debias", "--log", log(""), "--out", answers, "--quiet").code == 3
    assert unslant("audit", "--log", log("Hard to say."), "--quiet").code == 0
    assert unslant("debias", "--log", log("Hard to say."), "--out", answers, "--quiet").code == 0


@pytest.mark.parametrize(
    ("read", "rest"), [(2, "rest on the others"), (0, "a.jsonl has a reason for each question, and no answer")]
)
def test_empty_replies_give_no_corrected_answers(tmp_path: Path, read, rest):
    seen = []

    def answer(request):
        seen.append(request)
        return Fault(body=completion("A" if len(seen) <= read else ""))

    words = ("debias", "URL#m", "embedded", "--elicit", "generate", "--limit", "4", "--out", tmp_path / "a.jsonl")
    with FaultServer(answer).running() as server:
        ran = unslant(*typed(map(str, words), server.url), "--quiet")
    assert ran.code == 3
    why = f"{len(seen) - read} of {len(seen)} requests to m failed (an empty reply)" if read else "gives an answer"
    assert why in ran.err
    assert rest in ran.err


@pytest.mark.parametrize("others", ["", "I would rather not say."])
def test_few_confidences_give_no_verdict(others, tmp_path):
    seen = []

    def answer(request):
        seen.append(request)
        return Fault(body=completion("5" if len(seen) % 8 == 1 else others))

    with FaultServer(answer).running() as server:
        words = [*typed(PROBE, server.url), "--json", tmp_path / "r.json"]
        words[words.index("--limit") + 1] = "8"
        ran = unslant(*words)
    assert ran.code == 3
    assert "hold" in ran.err.splitlines()[-1]
    assert "too few answers are left" in json.loads((tmp_path / "r.json").read_text())["headline"]
