"""What people get wrong: each mistake is one line that says what to type, before any scoring, with nothing written."""

from __future__ import annotations

import gzip
import hashlib
import json
import shlex
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pytest

from tests.command_line import unslant
from unslant.cli import app
from unslant.models.hf.model import TransformersModel
from unslant.models.open import Backend
from unslant.presentations import present
from unslant.questions import Question
from unslant.responses import Response, Responses, Run

GOOD = [
    {"id": f"q{i}", "question": f"What is {i}?", "options": ["x", "y", "z"], "answer": "ABC"[i % 3]} for i in range(6)
]


def lines(*rows: Any) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def but(**changes: Any) -> str:
    """Good questions of which the fourth differs."""
    return lines(*GOOD[:3], GOOD[3] | changes, *GOOD[4:])


FROM_1 = lines(*({**row, "answer": i % 3 + 1} for i, row in enumerate(GOOD)))
FROM_0 = lines(*({**row, "answer": i % 3} for i, row in enumerate(GOOD)))
FILES: dict[str, str | bytes] = {
    "good.jsonl": lines(*GOOD),
    "pool.jsonl": lines(*({**row, "id": f"p{i}"} for i, row in enumerate(GOOD))),
    "empty.jsonl": "",
    "blank.csv": "question,A,B,answer\n",
    "comma.json": '[{"question": "a?", "options": ["x", "y"], "answer": 0},]',
    "single.json": "[{'question': 'a?'}]",
    "splits.json": json.dumps({"train": GOOD, "test": GOOD}),
    "number.json": "3",
    "result.json": json.dumps({"unslant": "0.1.0", "study": "audit", "headline": "m scores", "metrics": {}}),
    "broken.jsonl": lines(*GOOD[:2]) + '{"id": "q9", "question":\n',
    "text.jsonl": "Which is it?\n",
    "headless.csv": "Frage,a,b,Antwort\nWas?,x,y,x\n",
    "ragged.csv": "question,A,B,answer\nWhat, pray?,x,y,A\n",
    "curly.csv": "question,A,B,answer\n“What, pray?”,x,y,A\n",
    "open.csv": 'question,A,B,answer\n"What?,x,y,A\n',
    "twice.csv": "question,A,A,answer\nWhat?,x,y,A\n",
    "latin.csv": "question,A,B,answer\nWhät?,x,y,A\n".encode("latin-1"),
    "wide.csv": "question,A,B,answer\nWhat?,x,y,A\n".encode("utf-16"),
    "packed.zip": b"PK\x03\x04....",
    "renamed.csv": b"PK\x03\x04....",
    "renamed.jsonl": gzip.compress(b"{}"),
    "cut.jsonl.gz": gzip.compress(lines(*GOOD).encode())[:-9],
    "damaged.parquet": b"PAR1....PAR1",
    "word.docx": "x",
    "damaged.xlsx": b"PK\x03\x04....",
    "same_id.jsonl": lines(*GOOD, GOOD[0]),
    "letter.jsonl": but(answer="E"),
    "nowhere.jsonl": but(answer="the sea"),
    "index.jsonl": lines(
        *({**row, "answer": i % 3} for i, row in enumerate(GOOD)), {**GOOD[0], "id": "x", "answer": 9}
    ),
    "hidden.jsonl": lines(*({**row, "answer": -1} for row in GOOD)),
    "from1.jsonl": FROM_1,
    "from1_worse.jsonl": FROM_1 + lines({**GOOD[0], "id": "x", "answer": 7}),
    "from0.jsonl": FROM_0,
    "missing.jsonl": but(answer=None),
    "unanswered.jsonl": lines(*({k: v for k, v in row.items() if k != "answer"} for row in GOOD)),
    "one_option.jsonl": but(options=["x"]),
    "too_many.jsonl": but(options=[str(i) for i in range(101)]),
    "one_text.jsonl": but(options="x or y"),
    "null_option.jsonl": but(options=["x", None]),
    "no_stem.jsonl": but(question=" "),
    "columns.jsonl": lines({"Frage": "Was?", "Wahl": ["x", "y"], "richtig": "x"}),
    "two_ways.jsonl": lines({**GOOD[0], "options": ["B", "A", "O"], "answer": "A"}),
    "all_bad.jsonl": lines(*({**row, "options": ["x"]} for row in GOOD)),
    "eight.jsonl": lines({**GOOD[0], "options": list("stuvwxyz")}),
    "winner.jsonl": lines({"prompt": "Hi", "response_a": "x", "response_b": "y", "winner": "model_c"}),
    "broken.toml": "question = ",
    "wrong.toml": 'question = "{{ stm }}"\n[cloze]\ncue = "Answer:"\n',
    "notes.txt": "just text",
    "folder/inside.jsonl": lines(*GOOD),
    "model/config.json": "{}",
}

# command line -> words of the error, in this order
MISTAKES: dict[str, tuple[str, ...]] = {
    # the file of questions
    "audit fair nosuch.jsonl": ("nosuch.jsonl", "no such file"),
    "audit fair empty.jsonl": ("empty.jsonl", "the file is empty", "one question per line"),
    "audit fair blank.csv": ("blank.csv", "holds no questions"),
    "audit fair folder": ("folder", "is a folder; give the file in it"),
    "audit fair packed.zip": ("packed.zip", "unpack it first"),
    "audit fair word.docx": ("word.docx", "unknown file type '.docx'", ".jsonl", ".csv", ".xlsx"),
    "audit fair renamed.csv": ("renamed.csv", "a zip or Excel file with the suffix of another type"),
    "audit fair renamed.jsonl": ("renamed.jsonl", "a gzip file with the suffix of another type"),
    "audit fair cut.jsonl.gz": ("cut.jsonl.gz", "not a whole gzip file"),
    "audit fair damaged.parquet": ("damaged.parquet", "not a Parquet file that can be read"),
    "audit fair damaged.xlsx": ("damaged.xlsx", "not an Excel workbook that can be read"),
    "audit fair notes.txt": ("notes.txt", "line 1", "without options"),
    "audit fair comma.json": ("comma.json", "line 1", "not valid JSON", "remove the comma before the bracket"),
    "audit fair single.json": ("single.json", "line 1", "not valid JSON", "JSON needs double quotes"),
    "audit fair splits.json": ("splits.json", "several lists", "'train', 'test'", "give only one"),
    "audit fair number.json": ("number.json", "is a number; expected a list of questions"),
    "audit fair broken.jsonl": ("broken.jsonl", "line 3", "not valid JSON", "--skip-bad"),
    "audit fair text.jsonl": ("text.jsonl", "line 1", "not valid JSON"),
    "audit fair headless.csv": ("headless.csv, line 1", "none of Frage, a, b, Antwort", "--fields question=COLUMN"),
    "audit fair ragged.csv": ("ragged.csv, line 2", "5 columns, where the file has 4", "quotation marks"),
    "audit fair curly.csv": ("curly.csv, line 2", "straight quotation marks"),
    "audit fair open.csv": ("open.csv, line 2", "quotation mark left open"),
    "audit fair twice.csv": ("twice.csv, line 1", "same name, 'A'"),
    "audit fair latin.csv": ("latin.csv, line 2", "save the file as UTF-8 (CSV UTF-8 in Excel"),
    "audit fair wide.csv": ("wide.csv, line 1", "UTF-16", "save the file as UTF-8"),
    "audit fair same_id.jsonl": ('same_id.jsonl, line 7, field "id"', "'q0' was used before", "line 1", "--fields id="),
    "audit fair letter.jsonl": ('letter.jsonl, line 4, field "answer"', "'E'", "A to C", "--skip-bad"),
    "audit fair nowhere.jsonl": ('nowhere.jsonl, line 4, field "answer"', "'the sea'", "an option's text"),
    "audit fair index.jsonl": ('index.jsonl, line 7, field "answer"', "9 is out of range", "0 to 2", "--skip-bad"),
    "audit fair hidden.jsonl": ("hidden.jsonl, line 1", "answers that are not public", "another split"),
    "audit fair from1.jsonl": ('from1.jsonl, line 3, field "answer"', "3 is out of range", "--answer-base 1"),
    "audit fair from1.jsonl --skip-bad": ("from1.jsonl, line 3", "--answer-base 1"),
    "audit fair from1_worse.jsonl --skip-bad": ("from1_worse.jsonl, line 3", "--answer-base 1"),
    "audit fair from0.jsonl --answer-base 1 --skip-bad": ("from0.jsonl, line 1", "--answer-base 0"),
    "debias fair from1.jsonl --skip-bad --out new.jsonl": ("from1.jsonl, line 3", "--answer-base 1"),
    "study base-rate fair from1.jsonl": ("from1.jsonl, line 3", "--answer-base 1"),
    "study instruction-boundary words from1.jsonl": ("from1.jsonl, line 3", "--answer-base 1"),
    "audit fair good.jsonl --answer-base 2": ("--answer-base 2", "use 0 or 1"),
    "audit fair good.jsonl --answer-kind leter": ("--answer-kind 'leter'", "did you mean 'letter'?"),
    "audit fair two_ways.jsonl": ("two_ways.jsonl", "letter", "text", "--answer-kind"),
    "audit fair missing.jsonl": ('missing.jsonl, line 4, field "answer"', "is missing", "[]"),
    "audit fair unanswered.jsonl": ('unanswered.jsonl, field "answer"', "id, question, options", "--fields answer="),
    "audit fair one_option.jsonl": ('one_option.jsonl, line 4, field "options"', "1 given, 2 to 100 are allowed"),
    "audit fair too_many.jsonl": ('too_many.jsonl, line 4, field "options"', "101 given"),
    "audit fair one_text.jsonl": ('one_text.jsonl, line 4, field "options"', "write a list in JSON"),
    "audit fair null_option.jsonl": ('null_option.jsonl, line 4, field "options"', "option 2 is null"),
    "audit fair no_stem.jsonl": ('no_stem.jsonl, line 4, field "question"', "is missing or empty"),
    "audit fair columns.jsonl": ("columns.jsonl", "Frage, Wahl, richtig", "--fields question=COLUMN"),
    "audit fair columns.jsonl --fields question=Frge": ('field "question"', "'Frge'", "did you mean 'Frage'?"),
    "audit fair good.jsonl --fields quetsion=x": ("unknown field 'quetsion'", "did you mean 'question'?", "options"),
    "audit fair good.jsonl --fields question": ("--fields 'question'", "NAME=VALUE", "question=prompt"),
    "audit fair all_bad.jsonl --skip-bad": ("all_bad.jsonl", "no usable question", "6 fewer than 2 options"),
    "audit fair winner.jsonl": ('winner.jsonl, line 1, field "answer"', "'model_c'", "A to B"),
    "audit fair mmul": ("'mmul'", "did you mean 'mmlu'?", "embedded"),
    "audit fair gsm8k": ("'gsm8k' holds open maths questions", "multiple-choice questions are needed", "--maths"),
    "audit fair hub:": ("hub:ID:CONFIG:SPLIT",),
    "questions check nosuch.csv": ("nosuch.csv", "no such file"),
    "questions check from1.jsonl": ("from1.jsonl, line 3", "--answer-base 1"),
    "questions check": ("questions check needs QUESTIONS; unslant questions check --help",),
    # options
    "audit fair good.jsonl --limit 0": ("limit 0", "1 or more"),
    "audit fair good.jsonl --limit ten": ("--limit 'ten': give a whole number",),
    "audit fair good.jsonl --seed today": ("--seed 'today': give a whole number",),
    "audit fair good.jsonl --until soon": ("--until 'soon': give a number",),
    "audit fair good.jsonl --limit": ("--limit: give a value after it",),
    "debias fair": ("debias needs --out; unslant debias --help shows what it is",),
    "audit fair good.jsonl --order all": ("--order",),
    "audit fair good.jsonl --labels W,X": ("W,X has 2 labels", "3 options", "--labels A"),
    "debias fair good.jsonl --labels W,X --out new.jsonl": ("W,X has 2 labels", "3 options"),
    "study debias fair good.jsonl --labels W,X": ("W,X has 2 labels", "3 options"),
    "train fair good.jsonl --labels W,X --out new": ("W,X has 2 labels", "3 options"),
    "audit fair good.jsonl --labels Z": ("label set 'Z'", "A, a, 1, 0, I, i".split(", ")[0]),
    "audit fair good.jsonl --labels X,X,Y": ("'X' is given twice",),
    "audit fair good.jsonl --orders 25x": ("orders '25x'", "auto", "cyclic"),
    "audit fair good.jsonl --orders cylic": ("orders 'cylic'", "did you mean 'cyclic'?"),
    "audit fair good.jsonl --orders 0": ("orders '0'",),
    "audit fair eight.jsonl --orders all": ("40,320 orders", "--orders 24"),
    "audit fair good.jsonl --shots 6": ("6 worked examples", "fewer shots or another file"),
    "audit fair good.jsonl --shots 7": ("7 worked examples", "6", "fewer shots or another file"),
    "audit fair good.jsonl --shots -1": ("shots -1", "0 or more"),
    "audit fair good.jsonl --shots 1 --shots-from nosuch.jsonl": ("nosuch.jsonl", "no such file"),
    "audit fair good.jsonl --template plian": ("template 'plian'", "did you mean 'plain'?", ".toml"),
    "audit fair good.jsonl --template nosuch.toml": ("nosuch.toml", "no such file"),
    "audit fair good.jsonl --template broken.toml": ("broken.toml", "not valid TOML"),
    "audit fair good.jsonl --template wrong.toml": ("wrong.toml", "stm", "stem"),
    "audit fair good.jsonl --dtype flaot32": ('"flaot32" for --dtype', 'Did you mean "float32"?'),
    "audit fair good.jsonl --device gpu": ("device 'gpu'", "cuda"),
    "audit fair good.jsonl --connections 0": ("connections 0", "1 or more"),
    "audit fair good.jsonl --offline --no-store": ("--offline", "leave out --no-store"),
    "audit fair my questions.jsonl": ("questions.jsonl", "one argument too many", "quotation marks"),
    "study unbiased fair good.jsonl --generate --temperature 3": ("temperature 3", "0 to 2"),
    "study unbiased fair good.jsonl --runs 0": ("runs 0", "1 or more"),
    "study unbiased fair good.jsonl --probabilities OS=2": ("OS", "2"),
    "study unbiased fair good.jsonl --probabilities XX=0.5": ("'XX'", "OS"),
    "study instruction-boundary words embedded --settings vanila": ("'vanila'", "did you mean 'vanilla'?"),
    "study instruction-boundary words embedded --limit 2": ("limit 2", "4 or more"),
    "study contamination fair good.jsonl --epochs 0": ("epochs 0", "1 or more"),
    "study contamination fair good.jsonl --last-layers -1": ("--last-layers -1", "0 or more"),
    "study contamination fair good.jsonl --stop-at 2": ("--stop-at 2", "at most 1"),
    "leaderboard fair prefers-a": ("prefers-a: a model, not questions", "--model prefers-a"),
    "audit good.jsonl fair": ("fair: a model, not questions", "give it first"),
    "audit fair https://host/q.csv": ("https://host/q.csv: download it", "hub:ORG/NAME"),
    "audit table.parquet": ("table.parquet: questions or responses (--log), not a model",),
    "audit fair result.json": ("result.json", "is a result of unslant (audit), not questions"),
    "questions check table.parquet": ("responses that unslant recorded", "unslant report table.parquet"),
    "study probe fair good.jsonl": ("two models or more",),
    "study debias fair good.jsonl,good.jsonl": ("same name",),
    "debias fair good.jsonl --method voet --out new.jsonl": ("method 'voet'", "did you mean 'vote'?"),
    "debias fair good.jsonl --method pride:alfa=1 --out new.jsonl": ("'alfa'", "did you mean 'alpha'?"),
    "debias fair good.jsonl --method bnp --out new.jsonl": ("bnp", "--train"),
    "debias fair good.jsonl": ("--out",),
    "audti fair": ("audti",),
    "study unbaised fair": ("unbaised",),
    "questions build instruction-boundary --only mmul --out new.jsonl": ("'mmul'", "did you mean 'mmlu'?"),
    # models
    "audit prefer-a good.jsonl": ("'prefer-a'", "did you mean 'prefers-a'?"),
    "audit good.jsonl": ("good.jsonl", "questions, not a model", "MODEL good.jsonl"),
    "audit embedded-skewed": ("embedded-skewed", "questions, not a model", "MODEL embedded-skewed"),
    "leaderboard good.jsonl good.jsonl": ("good.jsonl", "questions, not a model"),
    "audit org/name/more good.jsonl": ("org/name/more", "no such model", "org/model"),
    "audit model good.jsonl": ("model", "no tokenizer", "save_pretrained"),
    "audit folder good.jsonl": ("folder", "config.json is missing"),
    "audit fair good.jsonl --adapter folder": ("folder", "adapter cannot be loaded"),
    "audit http://127.0.0.1:1/v1 good.jsonl": ("name the model", "#NAME"),
    "audit m good.jsonl --base-url 127.0.0.1:8080/v1": ("--base-url 127.0.0.1:8080/v1", "http://127.0.0.1:8080/v1"),
    "audit m good.jsonl --base-url http://": ("--base-url http://", "host"),
    "audit m good.jsonl --base-url http://127.0.0.1:1/v1 --device cuda": ("leave out --device",),
    # outputs
    "audit fair good.jsonl --json good.jsonl": ("--json good.jsonl", "is also QUESTIONS", "another name"),
    "audit fair good.jsonl --html ./good.jsonl": ("is also QUESTIONS",),
    "audit fair good.jsonl --json new.json --html new.json": ("--html new.json", "is also where --json is written"),
    "audit fair good.jsonl --shots 1 --shots-from pool.jsonl --json pool.jsonl": ("is also --shots-from",),
    "audit fair good.jsonl --json no/new.json": ("there is no folder no",),
    "audit fair good.jsonl --json folder": ("folder", "give the name of a file"),
    "audit fair good.jsonl --out good.jsonl": ("good.jsonl",),
    "debias fair good.jsonl --out good.jsonl": ("is also QUESTIONS",),
    "questions check good.jsonl --json good.jsonl": ("is also QUESTIONS",),
    # recorded responses
    "audit --log nosuch.parquet": ("nosuch.parquet", "no such file"),
    "audit --log good.jsonl": ("good.jsonl",),
    "audit --log other.parquet": ("other.parquet", "study"),
    "study unbiased --log table.parquet": ("table.parquet", "the study audit", "unbiased"),
    "study contamination --log table.parquet": ("--log", "two files"),
    "report good.jsonl": ("good.jsonl",),
    "report result.json": ("result.json", "--responses", "unslant runs export"),
    "report nosuch.parquet": ("nosuch.parquet", "no such file"),
    "runs show nosuch": ("nothing has been recorded",),
    "replies nosuch.jsonl --out new.jsonl": ("nosuch.jsonl", "no such file"),
}
OPENS = (
    "audit prefer-a",
    "audit good.jsonl",
    "audit table.parquet",
    "leaderboard good.jsonl",
    "audit embedded-skewed",
    "audit org/",
    "audit model",
    "audit folder",
    "--adapter",
    "--dtype",
    "--device gpu",
    "replies",
)
"""Commands whose mistake is found only when a model's files are looked at."""


def table(study: str) -> Responses:
    question = Question("q", "Which?", ("x", "y"), frozenset({0}))
    row = Response.of(question, present(question, kind="given"), "cloze", logprobs=np.log([0.7, 0.3]))
    return Responses.from_rows([row], Run(study=study, model="m"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, content in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return tmp_path


def hashes(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def refused(folder: Path, command: str, words: tuple[str, ...]) -> None:
    before = hashes(folder)
    ran = unslant(*shlex.split(command))
    assert ran.code == 2, ran
    assert ran.err.startswith("error: "), ran.err
    assert ran.err.count("\n") == 1, ran.err
    assert ran.out == ""
    place = 0
    for word in words:
        place = ran.err.find(word, place)
        assert place >= 0, (word, ran.err)
    assert hashes(folder) == before


@pytest.mark.parametrize("command", MISTAKES)
def test_a_mistake_is_one_line_before_any_scoring(folder: Path, monkeypatch: pytest.MonkeyPatch, command: str) -> None:
    def never(*_: object, **__: object) -> None:
        pytest.fail("a model was opened or asked")

    monkeypatch.setattr(TransformersModel, "score", never)
    if not any(word in command for word in OPENS):
        monkeypatch.setattr(Backend, "loader", never)
    for name in ("other", "table"):
        if f"{name}.parquet" in command:
            table("probe" if name == "other" else "audit").to_parquet(folder / f"{name}.parquet")
    refused(folder, command, MISTAKES[command])


def test_an_excel_file_without_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    book = openpyxl.Workbook()
    book.active.append(["question", "A", "B", "answer"])
    book.save(folder / "set.xlsx")
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    refused(folder, "audit fair set.xlsx", ("set.xlsx", "pip install 'unslant[excel]'"))


def test_a_server_that_is_not_there_is_not_waited_for(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    refused(folder, f"audit m good.jsonl --no-store --base-url {url}", (url, "no connection (Connection refused)"))
    refused(folder, f"audit m good.jsonl --base-url {url}", (url, "no connection"))


@pytest.mark.parametrize("words", [("", "q.jsonl"), ("fair", "")])
def test_an_empty_name_is_not_taken_for_the_default(words: tuple[str, ...]) -> None:
    ran = unslant("audit", *words)
    assert (ran.code, ran.err) == (
        2, "error: the name of a model or of questions is empty; give one, or leave it out\n"
    )  # fmt: skip


def test_a_broken_command_does_not_hide_that_another_is_unknown() -> None:
    """The parser's own message imports every command, and ended in a traceback."""
    app.command("package_that_is_not_there:command", name="broken")
    try:
        ran = unslant("nosuch")
    finally:
        del app["broken"]
    assert ran.code == 2
    assert ran.err.startswith('error: Unknown command "nosuch". Available commands: ')
