"""What a file may not decide, and what no file may hold."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cyclopts import App
from cyclopts.argument import Argument

from benchmarks.reliability import Options, hostile
from benchmarks.reliability.hostile import Listening, write_result
from tests.command_line import Ran
from unslant import cli
from unslant.cli.commands import reach_of
from unslant.reach import Reach, reason_to_type, recorded, url_without_secrets, without_secrets
from unslant.studies.unbiased.contamination.study import ContaminationSettings

Run = Callable[..., Ran]
HARMLESS = frozenset(
    "--answer-kind --canary --device --device-map --dtype --elicit --fail-if --fields --labels --layout --left-out "
    "--older-than --only --orders --probabilities --revision --server --settings --shard --system-instruction "
    "--targets NAME RUN RUNS "
    "--dataset --subset --split --task --relationship --organization --source-url".split()  # of an export: written only
)
"""Options of texts that are neither sent, opened nor run."""


def every_argument(app: App = cli.app) -> Iterator[Argument]:
    for name in app:
        if not name.startswith("-"):
            command = app[name]
            if command.default_command is None:
                yield from every_argument(command)
            else:
                yield from (one for one in command.assemble_argument_collection() if not one.children)


def test_every_option_says_what_it_reaches() -> None:
    texts = {one.name for one in every_argument() if "str" in str(one.hint) and reach_of(one) is None}
    assert texts <= HARMLESS
    assert all(reach_of(one) for one in every_argument() if "Path" in str(one.hint))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    asked = [{"id": str(i), "question": f"Is it {i}?", "options": ["x", "y"], "answer": i % 2} for i in range(4)]
    Path("q.jsonl").write_text("".join(json.dumps(one) + "\n" for one in asked))
    return tmp_path


@pytest.mark.parametrize(
    "option",
    ["--trust_remote_code", "--trust-remote_code", "--trust-remote-code=true", "--trust_remote-code=1"],
)
@pytest.mark.parametrize("name", ["a.json", "a.html"])
def test_code_of_others_is_not_run_however_it_is_spelled(unslant: Run, option: str, name: str) -> None:
    write_result(Path(name), ["audit", "fair", "q.jsonl", option])
    ran = unslant("rerun", name)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)
    assert "runs code of others" in ran.err
    assert "--trust" in ran.err


def test_a_file_does_not_write_to_the_terminal(unslant: Run) -> None:
    write_result(Path("a.json"), ["audit", "fair", "none\x1b]0;mine\x07\u202e.jsonl"])
    ran = unslant("rerun", "a.json")
    assert ran.code == 2
    assert r"unslant audit fair 'none\x1b]0;mine\x07\u202e.jsonl'" in ran.err
    assert all(line.isprintable() for line in (ran.out + ran.err).splitlines())
    ran = unslant("questions", "check", "q.jsonl", "--json", "a\x1b\nb.json")
    assert (ran.code, r"Written: a\x1b\nb.json" in ran.out, "\x1b" in ran.out) == (0, True, False)


@pytest.mark.thorough
def test_a_file_sends_no_key_anywhere_and_a_typed_address_gets_it(unslant: Run, monkeypatch) -> None:
    monkeypatch.setenv("MY_SECRET", "theirs-to-take")
    monkeypatch.setenv("UNSLANT_API_KEY", "mine-to-keep")
    server = Listening()
    with server.running() as host:
        command = ["audit", "m", "q.jsonl", "--orders", "reverse", "--base-url", f"http://{host}/v1"]
        write_result(Path("a.json"), [*command, "--header", "X: $MY_SECRET"])
        refused = unslant("rerun", "a.json")
        assert (refused.code, server.heard) == (2, [])
        assert f"--base-url http://{host}/v1 (names an address)" in refused.err
        refused = unslant("rerun", "a.json", "--trust")
        assert (refused.code, server.heard) == (2, [])
        assert "is sent only to an address that you type" in refused.err

        write_result(Path("b.json"), command)
        trusted = unslant("rerun", "b.json", "--trust", "--anyway", "-q")
        assert trusted.code == 0, trusted.err
        assert server.heard
        assert not any("mine-to-keep" in request for request in server.heard)
        assert "UNSLANT_API_KEY is not sent to" in trusted.err

        server.heard.clear()
        again = ("--base-url", f"http://{host}/v1", "--header", "X: $MY_SECRET")
        typed = unslant("rerun", "a.json", *again, "--anyway", "-q")
        assert typed.code == 0, typed.err
    assert not server.heard or all("theirs-to-take" in one and "mine-to-keep" in one for one in server.heard)
    listed = json.loads(unslant("runs", "list", "--json").out)
    assert [run["command"][:2] for run in listed] == [["rerun", "a.json"], ["rerun", "b.json"]]


@pytest.mark.thorough
def test_headers_are_not_taken_along_to_another_host(unslant: Run) -> None:
    stranger = Listening()
    with stranger.running() as other:
        server = Listening(307, {"Location": f"http://{other}/v1/completions"})
        with server.running() as host:
            for ways in ((), ("--elicit", "generate")):
                ran = unslant("audit", "m", "q.jsonl", "--base-url", f"http://{host}/v1", "--header", "X: s3cret-value",
                              "--retries", 0, "--limit", 1, *ways)  # fmt: skip
                assert ran.code != 0
                assert "s3cret-value" not in ran.err
    assert server.heard
    assert stranger.heard == []


@pytest.mark.parametrize("option", ["--trust-remote", "--of-a-later-version=3"])
def test_a_command_with_an_unknown_option_is_not_run_without_it(unslant: Run, option: str) -> None:
    write_result(Path("a.json"), ["audit", "fair", "q.jsonl", option])
    ran = unslant("rerun", "a.json", "--trust")
    name = option.partition("=")[0]
    assert ran.code == 2
    assert ran.err == f"error: a.json: its command has {name}, which this version of unslant does not know\n"


@pytest.mark.parametrize(
    "line",
    [
        "trust-remote-code = true", "trust_remote_code = true", 'base-url = "http://127.0.0.1:9/v1"',
        'header = ["X: $HOME"]', "extra-body = '{}'", 'json = "../x.json"', 'template = "/etc/passwd"',
    ],
)  # fmt: skip
def test_settings_that_were_not_named_decide_nothing_of_the_kind(unslant: Run, line: str) -> None:
    Path("unslant.toml").write_text(f"[audit]\n{line}\n")
    refused = unslant("audit", "fair", "q.jsonl", "--dry-run")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert "--config unslant.toml" in refused.err
    assert 'field "audit.' in refused.err


def test_a_run_of_a_named_store_is_checked_as_a_result_is(unslant: Run) -> None:
    from unslant.store import Store

    with Store(Path("theirs.sqlite3")) as store:
        run = store.runs.start(["audit", "fair", "q.jsonl", "--trust_remote_code"], Path.cwd(), "fair")
        store.runs.end(run, "stopped")
    refused = unslant("runs", "resume", run, "--store", "theirs.sqlite3")
    assert refused.code == 2
    assert "runs code of others" in refused.err


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["commands in result files", "settings in the working folder"])
def test_the_attack_finds_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "FILES", 40)
    (row,) = hostile.rows(Options(seed=3, only=(f"hostile/{name}",)))
    assert (row.attempts, row.examples) == (40, [])


@pytest.mark.thorough
def test_secrets_are_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostile, "PLANTED", 4)
    (row,) = hostile.rows(Options(seed=3, only=("hostile/secrets in records and messages",)))
    assert (row.attempts, row.examples) == (4, [])


def test_a_record_of_an_option_never_holds_a_secret() -> None:
    rng = random.Random(1)
    for _ in range(500):
        words, hidden = hostile.planted(rng, "127.0.0.1:80")
        url, body = hostile._url(words), json.dumps({"a": {"b": [hidden[2]]}, "n": 10**9, "on": False})
        records = [url_without_secrets(url), recorded(Reach.BODY, body), recorded(Reach.HEADER, f"X: {hidden[1]}")]
        records += [recorded(Reach.HEADER, hidden[1]), recorded(Reach.SETTING, f"extra_body={body}")]
        records += [str(ContaminationSettings(against=url).recorded())]
        records += [without_secrets(f"no connection to {url}: refused")] if " " not in url else []  # never accepted
        assert not [secret for secret in hidden for record in records if secret in record], (words, records)
    assert recorded(Reach.HEADER, "X: $NAME") == "X: $NAME"
    assert recorded(Reach.BODY, '{"chat_template_kwargs": {"enable_thinking": false}}').endswith("false}}")
    assert recorded(Reach.SETTING, "reasoning_effort=low") == "reasoning_effort=low"
    assert url_without_secrets("http://127.0.0.1:80/v1#org/model") == "http://127.0.0.1:80/v1#org/model"


@pytest.mark.parametrize("text", ["q.jsonl", "a/b", "embedded", "", "org/name", "pride:0.05"])
def test_names_inside_the_folder_are_harmless(text: str) -> None:
    assert reason_to_type(Reach.PLACE, text) == ""


@pytest.mark.parametrize("text", ["/etc/passwd", "../x", "~/x", "a/../../x", "mmlu=/x", "lora-1:adapter=/x", "link"])
def test_names_that_leave_the_folder_are_not(text: str) -> None:
    Path("link").symlink_to("/etc")
    assert reason_to_type(Reach.PLACE, text)


@pytest.mark.parametrize("more", [("--adapter", "a"), ("--elicit", "generate", "--to-end"), ("--bits", "4"), ()])
def test_no_message_repeats_an_address_whole(unslant: Run, more: tuple[str, ...]) -> None:
    for url in (
        "http://ann:s3cret/word@127.0.0.1:9/v1",
        "http://127.0.0.1:9/v1?key=s3cret",
        "http://a:s3cret@127.0.0.1:9",
    ):
        for words in (("audit", f"{url}#m", "q.jsonl"), ("audit", "m", "q.jsonl", "--base-url", url), ("audit", url)):
            ran = unslant(*words, *more, "--retries", 0)
            assert (ran.code, "s3cret" in ran.err + ran.out) == (2, False), words


def test_a_word_too_many_may_be_a_part_of_a_secret(unslant: Run) -> None:
    ran = unslant("audit", "m", "q.jsonl", "--header", "X:y", "sk-123456")
    assert (ran.code, "sk-123456" in ran.err) == (2, False)
    ran = unslant("audit", "m", "q.jsonl", "--headr=X: sk-123456")
    assert (ran.code, "sk-123456" in ran.err) == (2, False)
