"""Every file says how it was made, in the same words, and can be made again from them."""

from __future__ import annotations

import json
import re
import shutil
import struct
import zlib
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran
from tests.command_line import unslant as run
from tests.serving import Fault, FaultServer
from unslant import cli
from unslant.auditing.result import AuditResult
from unslant.cli.commands import Seen
from unslant.reference import reference_path
from unslant.reports import Report
from unslant.reports.export import save_figures
from unslant.responses import Responses
from unslant.responses.provenance import AskedModel, AskedQuestions, Provenance

pytestmark = pytest.mark.thorough

Run = Callable[..., Ran]
DOCS = Path(__file__).parents[2] / "docs" / "results.md"
QUICK = ("audit", "fair", "q.jsonl", "--orders", "reverse", "--limit", "4")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A question file, and the folder ``all`` of an audit of it."""
    folder = tmp_path_factory.mktemp("made")
    questions = [{"id": str(i), "question": f"Is it {i}?", "options": ["x", "y"], "answer": i % 2} for i in range(6)]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("SOURCE_DATE_EPOCH", "86400")
        Path("q.jsonl").write_text("".join(json.dumps(question) + "\n" for question in questions))
        ran = run(*QUICK, "--out", "all", "--no-store", "-q")
    assert ran.code == 0, ran.err
    return folder


@pytest.fixture(autouse=True)
def here(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with copies of them, on the day they were made."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")


def of_json(path: str) -> Any:
    return json.loads(Path(path).read_text("utf-8"))["provenance"]


def of_html(path: str) -> Any:
    found = re.search('<meta name="unslant-provenance" content="(.*?)">', Path(path).read_text("utf-8"))
    assert found
    return json.loads(unescape(found[1]))


def of_png(path: Path) -> Any:
    content, at, texts = path.read_bytes(), 8, []
    while at < len(content):
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        data = content[at + 8 : at + 8 + length]
        assert struct.unpack(">I", content[at + 8 + length : at + 12 + length])[0] == zlib.crc32(kind + data)
        texts += [data.split(b"\0", 5)[5]] if kind == b"iTXt" else []
        at += 12 + length
    (text,) = texts
    return json.loads(text)


def test_every_file_of_a_run_carries_the_same_block(unslant: Run) -> None:
    block = of_json("all/numbers.json")
    assert set(block) == set(Provenance.model_fields)
    assert {"python", "unslant", "torch", "transformers", "tokenizers", "numpy"} <= set(block["versions"])
    assert block["command"] == list(QUICK)
    assert block["date"] == "1970-01-02"
    (model,), (asked,) = block["models"], block["questions"]
    assert set(model) == set(AskedModel.model_fields)
    assert set(asked) == set(AskedQuestions.model_fields)
    assert (model["name"], model["dtype"], model["device"]) == ("fair", "float32", "cpu")
    assert (asked["name"], asked["n"], asked["limit"], asked["seed"]) == ("q", 4, 4, 0)
    assert len(model["digest"]) == len(asked["digest"]) == 64
    assert (block["settings"]["limit"], block["settings"]["template"]) == (4, "plain")
    assert of_html("all/report.html") == [block]
    assert Responses.from_parquet("all/responses.parquet").run.provenance.model_dump() == block
    assert "unslant audit fair q.jsonl" in Path("all/report.html").read_text("utf-8")

    ran = unslant("report", "all/responses.parquet", "--tables", "tables", "-q")
    assert ran.code == 0, ran.err
    report = Report.of([AuditResult.from_parquet("all/responses.parquet")])
    save_figures([report.panels[0].charts[0]], Path("figures"), report.provenance)
    assert of_html("report.html") == [block]
    assert json.loads(Path("tables/provenance.json").read_text("utf-8")) == [block]
    tex = next(Path("tables").glob("*.tex")).read_text("utf-8").splitlines()[0]
    assert tex.startswith("% unslant ")
    assert tex.endswith("provenance.json")
    assert of_png(next(Path("figures").glob("*.png"))) == [block]
    svg = next(Path("figures").glob("*.svg")).read_text("utf-8")
    assert json.loads(unescape(re.findall("<metadata>(.*?)</metadata>", svg)[0])) == [block]


def test_an_adapter_says_how_it_was_made(unslant: Run) -> None:
    ran = unslant("train", "fair", "embedded", "--limit", 10, "--epochs", 1, "--questions-per-epoch", 1, "--out", "a")
    assert ran.code == 0, ran.err
    block = json.loads(Path("a/provenance.json").read_text("utf-8"))
    assert block["command"][:3] == ["train", "fair", "embedded"]
    assert "a" not in block["command"]
    assert block["settings"]["epochs"] == 1
    assert unslant("report", "a", "--out", "r.html", "-q").code == 0
    assert of_html("r.html") == [block]


def test_equal_commands_on_one_day_give_equal_files(unslant: Run) -> None:
    assert unslant(*QUICK, "--responses", "again.parquet", "--store", "s.sqlite3").code == 0
    assert Path("again.parquet").read_bytes() == Path("all/responses.parquet").read_bytes()


@pytest.mark.parametrize("kind", ["numbers.json", "report.html", "responses.parquet"])
def test_a_result_is_made_again_from_any_file_of_it(unslant: Run, kind: str) -> None:
    ran = unslant("rerun", f"all/{kind}", "--json", "again.json")
    assert ran.code == 0, ran.err
    assert f"unslant {' '.join(QUICK)} --json again.json" in ran.err
    first, again = (json.loads(Path(path).read_text("utf-8")) for path in ("all/numbers.json", "again.json"))
    for numbers_of_run in (first, again):
        del numbers_of_run["cost"]["seconds"]
        numbers_of_run["lines"] = [re.sub(r" in [\d.]+ s\b", "", line) for line in numbers_of_run["lines"]]
    assert again == first
    assert first["headline"] in " ".join(ran.out.split())


def test_other_questions_or_another_model_are_refused(unslant: Run) -> None:
    shutil.copytree(reference_path("fair"), "model")
    command = ("audit", "model", "q.jsonl", "--orders", "reverse", "--json", "a.json", "-q")
    assert unslant(*command).code == 0
    text = Path("q.jsonl").read_text()
    Path("q.jsonl").write_text(text.replace("Is it 3?", "Is it 4, or not?"))
    refused = unslant("rerun", "a.json", "--json", "b.json")
    assert refused.code == 2
    assert "error: questions q: differs from what the file was made from" in refused.err
    assert unslant("rerun", "a.json", "--anyway", "-q").code == 0
    Path("q.jsonl").write_text(text)
    assert unslant("rerun", "a.json", "-q").code == 0

    shutil.copy(reference_path("prefers-a") / "model.safetensors", "model")
    refused = unslant("rerun", "a.json", "--json", "b.json")
    assert refused.code == 2
    assert "error: model model: differs from what the file was made from" in refused.err
    assert "--anyway" in refused.err
    assert not Path("b.json").exists()
    assert unslant("rerun", "a.json", "--anyway", "-q").code == 0


def test_a_model_is_the_one_that_was_opened_after_a_method_changed_it(unslant: Run) -> None:
    """The digest was that of the model with pruned units, so that ``rerun`` refused the model as another one."""
    for method in ("vote", "bnp"):
        ran = unslant("study", "debias", "fair", "embedded", "--limit", 20, "--methods", method, "--json", method)
        assert ran.code == 0, ran.err
    assert of_json("bnp")["models"] == of_json("vote")["models"]


def test_passwords_are_in_no_file(unslant: Run) -> None:
    def model(request: object) -> Fault:
        return Fault(body={"choices": [{"logprobs": {"top_logprobs": [{" A": -0.7, " B": -1.2, "x": -9.0}]}}]})

    shutil.rmtree("all")
    with FaultServer(model).running() as server:
        url = server.url.replace("http://", "http://ann:hunter2@")
        ran = unslant("audit", "m", "q.jsonl", "--base-url", url, "--retries", 0, "--out", "all")
    assert ran.code == 0, ran.err
    assert not [path for path in Path("all").iterdir() if b"hunter2" in path.read_bytes()]
    assert "hunter2" not in Responses.from_parquet("all/responses.parquet").run.dump().decode()
    assert any("***@" in word for word in of_json("all/numbers.json")["command"])
    refused = unslant("rerun", "all/numbers.json")
    assert (refused.code, "what may be a secret was left out" in refused.err) == (2, True)


def block(**changes: object) -> dict[str, object]:
    return Provenance().model_dump() | {"command": ["audit", "fair", "q.jsonl"]} | changes


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is not JSON, Parquet or HTML that unslant wrote"),
        ("[1", "is not JSON"),
        ("{}", "is not a result of ours"),
        ("3", "is not a result of ours"),
        (json.dumps({"provenance": block(command=[])}), "was made from Python"),
        (json.dumps({"provenance": block(command=["runs", "remove", "--all"])}), "was made by 'unslant runs'"),
        (json.dumps({"provenance": block(command=["audit", "m", "--trust-remote-code"])}), "runs code of others"),
        (json.dumps({"provenance": block(command="audit")}), 'field "provenance.command": '),
        (json.dumps({"provenance": block(versions=[])}), 'field "provenance.versions": '),
        (json.dumps([block(), block()]), "holds several results"),
    ],
)
def test_files_that_cannot_be_made_again_are_one_line(unslant: Run, content: str, words: str) -> None:
    Path("a.json").write_text(content)
    ran = unslant("rerun", "a.json")
    assert ran.code == 2
    assert words in ran.err
    assert len(ran.err.splitlines()) == 1


def test_a_file_of_others_cannot_make_a_command_write(unslant: Run) -> None:
    Path("a.json").write_text(json.dumps({"provenance": block(command=[*QUICK, "--json", "planted.json", "--out=x"])}))
    ran = unslant("rerun", "a.json", "--anyway", "-q")
    assert ran.code == 0, ran.err
    assert {path.name for path in Path().iterdir()} == {"a.json", "q.jsonl", "all"}
    over = unslant("rerun", "a.json", "--json", "a.json")
    assert (over.code, "is also FILE" in over.err) == (2, True)


@pytest.mark.parametrize("more", ["-q --no-store", "--details --store s"])
def test_what_does_not_change_the_result_is_left_out_of_the_command(more: str) -> None:
    typed = f"audit m q --json a --html=b --limit 3 --out c {more} --fields id=x".split()
    seen = Seen(typed)
    cli.app.config = (seen,)
    cli.app.parse_args(typed, exit_on_error=False)
    assert seen.command.repeatable == tuple("audit m q --limit 3 --fields id=x".split())


def test_the_docs_have_the_keys_as_they_are() -> None:
    parts = (("", Provenance), ("models[].", AskedModel), ("questions[].", AskedQuestions))
    keys = [(f"{of}{key}", field.description) for of, kind in parts for key, field in kind.model_fields.items()]
    rows = ["| key | |", "|---|---|", *(f"| `{key}` | {meaning} |" for key, meaning in keys)]
    assert "\n".join(rows) in DOCS.read_text("utf-8")
