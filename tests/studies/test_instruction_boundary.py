"""The study against a server that answers by a rule, and against one that misbehaves."""

from __future__ import annotations

import json
import socket
from collections import Counter
from dataclasses import replace

import pytest

from tests.command_line import unslant
from tests.serving import Fault, FaultServer, completion
from training.words import planted_reply
from unslant.asking import no_progress
from unslant.errors import InputError, ModelError
from unslant.experiment.running import Recording
from unslant.models import ModelOptions
from unslant.models.chat import StoredChat
from unslant.models.open import open_chat
from unslant.questions import load_questions
from unslant.replies import Extracted
from unslant.responses import Responses
from unslant.store import Store
from unslant.studies import read_result
from unslant.studies.instruction_boundary import study
from unslant.studies.instruction_boundary.instruction_settings import POLISH_REQUEST, SETTINGS, chat
from unslant.studies.instruction_boundary.metrics import boundary_metrics
from unslant.studies.instruction_boundary.question_sources import load_boundary
from unslant.studies.instruction_boundary.result import result_of
from unslant.studies.instruction_boundary.study import instruction_boundary, plan, setting_names

pytest.importorskip("inspect_ai", reason="asking in words needs inspect_ai: pip install 'unslant[inspect]'")

EMBEDDED = load_boundary("embedded")
KEY = "sk-never-to-be-written-down"


def asked_as(settings, limit, seed=42):
    return plan(EMBEDDED.balanced(limit, seed), settings, seed=seed, examples=EMBEDDED)


def key_of(messages):
    return json.dumps([[m["role"], m["content"]] for m in messages])


def by_rule(asked, reply=planted_reply):
    """Answers every prompt of ``asked`` with ``reply(presentation)``."""
    replies = {
        key_of([{"role": m.role, "content": m.content} for m in chat(presentation)]): reply(presentation)
        for _, presentation in asked
    }

    def answer(request):
        return Fault(body=completion(replies[key_of(request["messages"])]))

    return answer


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("UNSLANT_API_KEY", KEY)

    def run(server, settings, limit=8, temperature=0.0, retries=0, **more):
        options = ModelOptions(base_url=server.url, retries=retries)
        monkeypatch.setattr(study, "open_chat", lambda name, _, how: open_chat(name, ModelOptions(retries=0), how))
        asked = {"settings": settings, "temperature": temperature, "limit": limit, **more}
        with Store(tmp_path / "store.sqlite3") as store:
            model = StoredChat(open_chat("words", options), store)
            given = instruction_boundary.study.given((model,), EMBEDDED, (), asked)
            return instruction_boundary.study.call(given, Recording(no_progress, store))

    return run


def written(folder):
    """Everything in the files below ``folder``, logs unpacked."""
    import zipfile

    for path in folder.rglob("*"):
        if path.is_file():
            yield path.read_bytes()
            if zipfile.is_zipfile(path):
                with zipfile.ZipFile(path) as archive:
                    for name in archive.namelist():
                        yield archive.read(name)


@pytest.mark.thorough
def test_planted_bias_is_measured(run, tmp_path):
    settings = ["vanilla", "conformity-sparse", "missing-choices", "vagueness", "few-shot-dense"]
    with FaultServer(by_rule(asked_as(settings, 8))).running() as server:
        study = run(server, settings, 8)
    metrics = study.metrics
    assert study.statuses == {"ok": 5 * 16}
    for kind in ("choice", "judging"):
        assert metrics.of("vanilla", kind)["accuracy"].value == 1
        assert metrics.of("few-shot-dense", kind)["robustness"].value == 1
        assert metrics.of("missing-choices", kind)["stability"].value == 1
    assert metrics.of("missing-choices", "choice")["generalization_none"].value == 0
    assert metrics.of("missing-choices", "choice")["generalization_several"].value == 1
    assert metrics.of("missing-choices", "judging")["generalization"].value == 0
    assert metrics.of("vagueness", "choice")["generalization_several"].value == 0
    assert metrics.of("conformity-sparse", "judging").outputs["Unknown"].value == 1
    assert metrics.of("conformity-sparse", "choice")["stability"].value == 0
    change = next(c for c in metrics.changes if (c.setting, c.kind) == ("missing-choices", "judging"))
    assert (change.gained, change.lost) == (0, 4)
    assert change.difference.value == -0.5
    assert "cannot be determined on 8 questions; about 24 would settle it" in study.headline
    text = study.summary(details=True)
    assert "vagueness" in text
    study.to_parquet(tmp_path / "r.parquet")
    again = result_of(Responses.from_parquet(tmp_path / "r.parquet"))
    assert repr(again.metrics) == repr(metrics)  # nan is not equal to itself
    study.to_json(tmp_path / "r.json")
    assert json.loads((tmp_path / "r.json").read_text())["settings"][0]["accuracy"]["n"] == 8
    study.to_html(tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text("utf-8")
    assert "Usual and unusual answers" in page
    assert "conformity-sparse" in page


def faults(asked):
    """A server that does one thing to each question; which, by the question."""
    good = by_rule(asked)
    kinds = {
        "answer": lambda request: good(request),
        "429": lambda _: Fault(429, '{"error": {"message": "slow down"}}'),
        "500": lambda _: Fault(500, "oh"),
        "cut": lambda request: Fault(body=good(request).body, cut=True),
        "malformed": lambda _: Fault(body='{"choices": [{"mess'),
        "no choices": lambda _: Fault(body={"id": "x", "object": "chat.completion", "choices": []}),
        "empty": lambda _: Fault(body=completion("")),
        "refusal": lambda _: Fault(body=completion(None, refusal="I cannot help with that.")),
        "refusal in words": lambda _: Fault(body=completion("I'm sorry, but I can't help with that.")),
        "babble": lambda _: Fault(body=completion("Lamps are lovely.")),
        "slow": lambda request: Fault(body=good(request).body, delay=0.5),
    }
    names = list(kinds)
    fates = {
        key_of([{"role": m.role, "content": m.content} for m in chat(presentation)]): names[i % len(names)]
        for i, (_, presentation) in enumerate(asked)
    }
    return fates, lambda request: kinds[fates[key_of(request["messages"])]](request)


EXPECTED = {
    "answer": "ok",
    "slow": "ok",
    "429": "error",
    "500": "error",
    "cut": "error",
    "malformed": "error",
    "no choices": "error",
    "empty": "unparsed",
    "babble": "unparsed",
    "refusal": "refused",
    "refusal in words": "refused",
}


@pytest.mark.thorough
def test_every_fault_ends_as_a_status_and_a_second_run_asks_only_for_the_rest(run, tmp_path):
    asked = asked_as(["vanilla"], 12)
    fates, misbehave = faults(asked)
    fate = {presentation.question_id: list(fates.values())[i] for i, (_, presentation) in enumerate(asked)}
    with FaultServer(misbehave).running() as server:
        study = run(server, ["vanilla"], 12)
    assert set(fate.values()) == set(EXPECTED)
    assert len(study.responses) == len(server.requests) == 24
    for row in study.responses.rows():
        assert row.status == EXPECTED[fate[row.question_id]], fate[row.question_id]
        assert (row.chosen is None) == (row.status != "ok")
        assert row.raw is not None
    n_errors = sum(EXPECTED[one] == "error" for one in fate.values())
    assert study.statuses["error"] == n_errors > 0
    assert any("got no reply" in note for note in study.notes)
    assert study.metrics.of("vanilla", "choice")["errors"].value > 0

    with FaultServer(by_rule(asked)).running(server.port) as server:
        second = run(server, ["vanilla"], 12)
    missing = {i for i, one in fate.items() if EXPECTED[one] == "error"}
    assert len(server.requests) == n_errors
    assert "error" not in second.statuses
    rows = {row.question_id: row for row in second.responses.rows()}
    assert all(rows[i].status == "ok" for i in missing)
    before = {row.question_id: row for row in study.responses.rows()}
    assert all(rows[i] == before[i] for i in rows if i not in missing)

    with FaultServer(by_rule(asked)).running(server.port) as server:
        third = run(server, ["vanilla"], 12)
    assert third.to_dict() == second.to_dict()
    assert len(server.requests) == 0

    second.to_json(tmp_path / "r.json")
    second.to_parquet(tmp_path / "r.parquet")
    second.to_html(tmp_path / "r.html")
    assert set(server.authorizations) <= {f"Bearer {KEY}"}
    contents = list(written(tmp_path))
    assert len(contents) == 4  # three outputs and the store
    assert not any(KEY.encode() in content for content in contents)


def test_transient_faults_are_repeated(run):
    asked = asked_as(["vanilla"], 4)
    good, seen = by_rule(asked), Counter()

    def answer(request):
        key = key_of(request["messages"])
        seen[key] += 1
        return Fault(429, "{}") if seen[key] == 1 and len(seen) == 1 else good(request)

    with FaultServer(answer).running() as server:
        study = run(server, ["vanilla"], 4, retries=2)
    assert study.statuses == {"ok": 8}
    assert len(server.requests) == 9


def test_another_temperature_is_another_run(run):
    asked = asked_as(["vanilla"], 4)
    with FaultServer(by_rule(asked)).running() as server:
        run(server, ["vanilla"], 4)
        run(server, ["vanilla"], 4, temperature=0.7)
        assert len(server.requests) == 16
        assert {request["temperature"] for request in server.requests} == {0.0, 0.7}
        more = run(server, ["vanilla"], 4, temperature=0.7, repeats=3)
        assert len(server.requests) == 32
    assert Counter(row.repeat for row in more.responses.rows()) == {0: 8, 1: 8, 2: 8}


def test_several_temperatures_are_several_runs(run, tmp_path):
    asked = asked_as(["vanilla", "conformity-sparse"], 4)
    good = by_rule(asked)

    def answer(request):  # at 1 nothing can be read
        return good(request) if request["temperature"] < 1 else Fault(body=completion("Lamps are lovely."))

    with FaultServer(answer).running() as server:
        study = run(server, ["vanilla", "conformity-sparse"], 4, temperature=(0, 1))
        assert len(study.responses) == len(server.requests) == 32
        assert Counter(request["temperature"] for request in server.requests) == {0: 16, 1: 16}
        one = run(server, ["vanilla"], 4, temperature=(1,))
        assert one.by_temperature == {}
        assert len(server.requests) == 32
        rows = [row for row in study.responses.rows() if row.run == 1][:8]
        assert repr(one.metrics) == repr(boundary_metrics(Responses.from_rows(rows), seed=study.run.settings["seed"]))
    assert list(study.by_temperature) == [0, 1]
    assert repr(study.metrics) == repr(study.by_temperature[0])
    cold, hot = (found.of("vanilla", "judging") for found in study.by_temperature.values())
    assert (cold["accuracy"].value, hot["accuracy"].value, hot["unreadable"].value) == (1, 0, 1)
    assert study.statuses == {"ok": 16, "unparsed": 16}
    (panel,) = (panel for panel in study.page().sections if panel.id == "boundary-temperatures")
    assert len(panel.tables[0].rows) == 8
    study.to_parquet(tmp_path / "r.parquet")
    again = result_of(Responses.from_parquet(tmp_path / "r.parquet"))
    assert repr(again.by_temperature) == repr(study.by_temperature)
    study.to_json(tmp_path / "r.json")
    written = json.loads((tmp_path / "r.json").read_text())
    assert [found["settings"][0]["accuracy"]["value"] for found in written["by_temperature"].values()] == [1, 0]
    study.to_html(tmp_path / "r.html")
    assert "Output rate of unusual forms, by temperature" in (tmp_path / "r.html").read_text("utf-8")


def test_labels_and_columns_are_the_users(run, tmp_path):
    path = tmp_path / "fragen.jsonl"
    rows = [
        {"Frage": f"{right}?", "Wahl": ["w", "x", "y", "z"], "richtig": right}
        for right in ([0], [3], [], [1, 2], [2], [0, 1])
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    seen = []

    def answer(request):
        seen.append(request["messages"][-1]["content"])
        return Fault(body=completion("Answer: 0"))

    with FaultServer(answer).running() as server:
        study = instruction_boundary(
            open_chat("words", ModelOptions(base_url=server.url)),
            path,
            settings=["vanilla", "conformity-dense"],
            labels="0",
            fields={"question": "Frage", "options": "Wahl", "answer": "richtig"},
        )
    assert all("\n0. " in text and "\n3. " in text and "A. " not in text for text in seen)
    assert {row.labels for row in study.responses.rows()} == {("0", "1", "2", "3")}
    assert study.statuses == {"ok": len(seen)}
    assert study.metrics.of("vanilla", "choice").outputs["single"].value == 1
    with pytest.raises(InputError, match="has 2 labels"):
        instruction_boundary("words", EMBEDDED, labels="x,y")


def test_reflection_feeds_the_first_answer_back_and_the_second_counts(run):
    def answer(request):
        first = request["messages"][-1]["content"] != SETTINGS["reasoning-reflection"].follow_up
        return Fault(body=completion("Step one.\nAnswer: A" if first else "Answer: none"))

    with FaultServer(answer).running() as server:
        study = run(server, ["reasoning-reflection"], 4)
    assert len(server.requests) == 16
    second = [r for r in server.requests if len(r["messages"]) == 4]
    assert len(second) == 8
    assert second[0]["messages"][2] == {"role": "assistant", "content": "Step one.\nAnswer: A"}
    assert study.metrics.of("reasoning-reflection", "choice").outputs["none"].value == 1


POLISHED = "Kindly say of the statement True, False or Unknown, or which options are right; if no option is, say none."


def test_the_instruction_is_polished_once_for_each_kind(run):
    def answer(request):
        if request["messages"][0]["content"].startswith(POLISH_REQUEST):
            return Fault(body=completion(POLISHED))
        assert request["messages"][0]["content"] == POLISHED
        return Fault(body=completion("True"))

    with FaultServer(answer).running() as server:
        study = run(server, ["prompt-polishing"], 4)
    assert len(server.requests) == 8 + 2
    assert study.metrics.of("prompt-polishing", "judging")["accuracy"].value == 0.25
    assert list(study.run.polished.values()) == [POLISHED, POLISHED]


@pytest.mark.parametrize(
    "polished",
    [
        "A",
        None,
        *(
            pytest.param(text, marks=pytest.mark.thorough)
            for text in ("none", "", "Unknown.", "I'm sorry, I can't help with that.", "True, False or Unknown? " * 9)
        ),
    ],
)
def test_a_reply_that_is_not_an_instruction_is_not_used_as_one(run, polished):
    asked = []

    def answer(request):
        if request["messages"][0]["content"].startswith(POLISH_REQUEST):
            return Fault(500, "oh") if polished is None else Fault(body=completion(polished))
        asked.append(request["messages"][0]["content"])
        return Fault(body=completion("True"))

    with FaultServer(answer).running() as server:
        study = run(server, ["prompt-polishing"], 4)
    choice = [text for text in asked if "Which options answer" in text]
    assert len(choice) == 4
    kept = [note for note in study.notes if "was asked as it is" in note]
    judging_changes = bool(polished) and polished.startswith("True, False")
    assert len(set(asked)) == 2
    assert len(kept) == 2 - judging_changes
    assert len(study.run.polished) == judging_changes


def test_a_judge_that_fails_its_validation_is_not_used_and_one_that_passes_is_counted(run, monkeypatch):
    from unslant.replies.judge import VALIDATION

    right = {
        case.prompt: (", ".join(sorted(case.expected)) or "NONE") if case.expected is not None else "UNCLEAR"
        for case in VALIDATION
    }

    def judge(good):
        def answer(request):
            prompt = request["messages"][-1]["content"]
            if prompt in right:
                return Fault(body=completion(right[prompt] if good else "A"))
            if prompt.startswith("Below is somebody's reply"):
                return Fault(body=completion("NONE" if "A, B" in prompt else "Unknown"))
            return Fault(body=completion("It is a riddle wrapped in a mystery."))

        return answer

    for good in (True, False):
        with FaultServer(judge(good)).running() as server:
            monkeypatch.setenv("UNSLANT_BASE_URL", server.url)
            study = run(server, ["vanilla"], 4, judge=f"inspect:openai-api/unslant/judge-{good}")
        row = study.metrics.of("vanilla", "choice")
        assert row["judged"].value == (1 if good else 0)
        assert row["unparsed"].value == (0 if good else 1)
        assert row["accuracy"].value == (0.25 if good else 0)


RIDDLE = "It is a riddle wrapped in a mystery."


def pass_every_judge(monkeypatch):
    from unslant.experiment import reply_judge
    from unslant.replies.judge import JudgeReport

    monkeypatch.setattr(reply_judge, "validate", lambda _: JudgeReport(1, 1, ()))


def test_a_judge_added_later_reads_the_logged_replies_and_the_model_is_not_asked_again(run, monkeypatch):
    judged = []

    def answer(request):
        about = request["messages"][-1]["content"]
        if not about.startswith("Below is somebody"):
            return Fault(body=completion(RIDDLE))
        judged.append(about)
        return Fault(body=completion("Unknown" if "Unknown" in about else "NONE"))

    pass_every_judge(monkeypatch)
    judge = "inspect:openai-api/unslant/judge-later"
    with FaultServer(answer).running() as server:
        monkeypatch.setenv("UNSLANT_BASE_URL", server.url)
        assert run(server, ["vanilla"], 4).statuses == {"unparsed": 8}
        asked = len(server.requests)
        later = run(server, ["vanilla"], 4, judge=judge)
        assert len(server.requests) - asked == len(judged)
        assert sum(RIDDLE in about for about in judged) == 8
        assert later.statuses == {"ok": 8}
        assert later.metrics.of("vanilla", "judging")["judged"].value == 1
        asked = len(server.requests)
        assert run(server, ["vanilla"], 4, judge=judge).statuses == {"ok": 8}
        assert run(server, ["vanilla"], 4).statuses == {"unparsed": 8}
        assert len(server.requests) == asked


def read_nothing(old):
    """As with a reader of replies that knows no pattern."""
    for module in ("unslant.replies", "unslant.studies.instruction_boundary.result"):
        old.setattr(f"{module}.extract", lambda *_, **__: Extracted("unparsed"))


def test_a_table_is_read_again_with_todays_reader(run, tmp_path, monkeypatch):
    asked = asked_as(["vanilla"], 4)
    with FaultServer(by_rule(asked)).running() as server, monkeypatch.context() as old:
        read_nothing(old)
        before = run(server, ["vanilla"], 4)
    assert before.statuses == {"unparsed": 8}
    before.to_parquet(tmp_path / "table.parquet")
    again = read_result(tmp_path / "table.parquet")
    assert again.statuses == {"ok": 8}
    assert again.metrics.of("vanilla", "choice")["accuracy"].value == 1
    bare = replace(before.responses, questions=())
    bare.to_parquet(tmp_path / "bare.parquet")
    told = read_result(tmp_path / "bare.parquet")
    assert told.statuses == {"ok": 4, "unparsed": 4}
    assert any("4 replies keep their first reading" in note and "repeat the run" in note for note in told.notes)


def test_a_judges_reading_gives_way_to_the_patterns(run, tmp_path, monkeypatch):
    def answer(request):
        about = request["messages"][-1]["content"]
        judging = about.startswith("Below is somebody")
        return Fault(body=completion(("Unknown" if "True" in about else "NONE") if judging else "Answer: A, True"))

    pass_every_judge(monkeypatch)
    with FaultServer(answer).running() as server, monkeypatch.context() as old:
        monkeypatch.setenv("UNSLANT_BASE_URL", server.url)
        read_nothing(old)
        study = run(server, ["vanilla"], 4, judge="inspect:openai-api/unslant/judge-once")
    assert study.metrics.of("vanilla", "judging")["judged"].value == 1
    study.to_parquet(tmp_path / "r.parquet")
    judging = read_result(tmp_path / "r.parquet").metrics.of("vanilla", "judging")
    assert (judging["judged"].value, judging.outputs["True"].value) == (0, 1)


@pytest.mark.thorough
def test_a_judge_that_goes_down_loses_no_reply(run, monkeypatch):
    down = []

    def answer(request):
        about = request["messages"][-1]["content"]
        if not about.startswith("Below is somebody"):
            return Fault(body=completion(RIDDLE))
        if RIDDLE in about and down:
            return Fault(500, "oh")
        return Fault(body=completion("Unknown" if "Unknown" in about else "NONE"))

    pass_every_judge(monkeypatch)
    judge = "inspect:openai-api/unslant/judge-down"
    with FaultServer(answer).running() as server:
        monkeypatch.setenv("UNSLANT_BASE_URL", server.url)
        down.append(True)
        with_judge_down = run(server, ["vanilla"], 4, judge=judge)
        assert with_judge_down.statuses == {"unparsed": 8}
        assert any("the judge gave no reply to 8 requests" in note for note in with_judge_down.notes)
        down.clear()
        asked = len(server.requests)
        assert run(server, ["vanilla"], 4, judge=judge).statuses == {"ok": 8}
        assert len(server.requests) - asked == 8


def test_disturbing_options(run):
    settings = ["disturbing-1", "disturbing-9"]
    with FaultServer(by_rule(asked_as(settings, 10))).running() as server:
        study = run(server, settings, 10)
    assert {k: e.value for k, e in study.metrics.disturbing().items()} == {1: 1, 9: 1}
    assert [panel.id for panel in study.page().sections] == ["boundary-disturbing", "boundary-statuses"]


def test_questions_in_memory_keep_the_name_of_their_set():
    forms = ([0], [1], [], [0, 1])
    records = [{"question": f"Is it {i}?", "options": list("wxyz"), "answer": forms[i % 4]} for i in range(4)]
    for questions, name in ((records, "questions"), (load_questions(records, name="mine"), "mine")):
        run = instruction_boundary("words", questions, settings="vanilla").run
        assert (run.questions, run.provenance.questions[0].name) == (name, name)


def test_setting_names():
    assert len(setting_names(["all"])) == 10
    assert setting_names(["disturbing"]) == [f"disturbing-{k}" for k in range(1, 10)]
    assert setting_names(["vagueness", " vanilla", "vagueness"]) == ["vagueness", "vanilla"]
    with pytest.raises(InputError, match="unknown setting"):
        setting_names(["al"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 3}, "give 0 to 2"),
        ({"temperature": (0, 3)}, "give 0 to 2"),
        ({"temperature": (0, 0)}, "give each once"),
        ({"repeats": 0}, "give 1 or more"),
    ],
)
def test_bad_options_are_refused_before_anything_is_asked(tmp_path, options, message):
    def ask(temperature=0.0, **options):
        instruction_boundary("words", EMBEDDED, temperature=temperature, **options)

    with pytest.raises(InputError, match=message):
        ask(**options)


@pytest.mark.parametrize("left_out", [None, "single"])
def test_questions_of_one_form_are_refused_by_what_they_lack(left_out):
    """The refusal asked for "a limit of 4 or more", and with ``left_out`` named no forms at all."""
    questions = [{"question": f"{i}?", "options": list("wxyz"), "answer": i % 4} for i in range(12)]
    with pytest.raises(InputError, match=r"one with several and one with none, .*; the set has single 12"):
        instruction_boundary("words", questions, left_out=left_out or "")


def test_an_unknown_model_is_one_line(tmp_path):
    with pytest.raises(ModelError, match="nonesuch/model"):
        instruction_boundary("inspect:nonesuch/model", EMBEDDED, limit=4)


@pytest.mark.thorough
def test_the_authors_file_runs_end_to_end(tmp_path, shared_data, monkeypatch):
    """As published: a JSON list, numbered options, the answers under ``correct_answers``; asked of ``words``."""
    looked_up = []

    def refuse(host, *_, **__):
        looked_up.append(host)
        raise socket.gaierror("no network")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    lines = (shared_data / "instruction_boundary_mcq.jsonl").read_text("utf-8").splitlines()
    by_form = {1: [], 0: [], 2: []}
    for one in map(json.loads, lines):
        by_form[len(one["answer"])].append(
            ({"passage_text": one["context"]} if one.get("context") else {})
            | {
                "question": one["question"],
                "options": one["options"],
                "correct_answers": one["answer"],
                "correct_options": [one["options"][i] for i in one["answer"]],
                "num_options": len(one["options"]),
                "num_correct": len(one["answer"]),
                "dataset_source": one["source"].rpartition("/")[2],
                "question_type": one["question_type"],
                "id": one["id"].rpartition("/")[2],
            }
        )
    shortest = [sorted(group, key=lambda one: len(json.dumps(one)))[:8] for group in by_form.values()]
    path = tmp_path / "MCQs_2700.json"
    path.write_text(json.dumps([one for group in shortest for one in group], indent=2))
    command = ["study", "instruction-boundary", "words", path, "--settings", "vanilla,conformity-dense,few-shot:none=1"]
    more = ["--limit", "4", "--temperature", "0", "--max-tokens", "12", "--store", tmp_path / "s.db", "--out", tmp_path]
    ran = unslant(*command, *more)
    assert ran.code == 0, ran.err
    assert looked_up == []  # a local model needs no network
    written = json.loads((tmp_path / "numbers.json").read_text())
    assert [(row["setting"], row["kind"]) for row in written["settings"]] == [
        ("vanilla", "choice"), ("conformity-dense", "choice"), ("few-shot:none=1", "choice"),
    ]  # fmt: skip
    assert written["statuses"].get("error", 0) == 0
    for row in written["settings"]:
        assert row["accuracy"]["n"] == 4
        assert sum(share["value"] for share in row["outputs"].values()) + row["unreadable"]["value"] == pytest.approx(1)
    first = (tmp_path / "numbers.json").read_bytes()
    again = unslant(*command, *more)
    assert again.code == 0, again.err
    assert "reused from the store" in again.err
    assert (tmp_path / "numbers.json").read_bytes() == first
    table = tmp_path / "numbered.parquet"
    labelled = unslant(
        *command[:4], "--settings", "vanilla", "--labels", "0", "--responses", table, *more[:-1], tmp_path / "other"
    )
    numbered = list(Responses.from_parquet(table).rows())
    assert {row.labels[:2] for row in numbered} == {("0", "1")}
    answered = [row.raw in (*row.labels, "none") for row in numbered]  # it knows letters, which are no labels here
    assert [row.status for row in numbered] == ["ok" if one else "unparsed" for one in answered]
    assert labelled.code == (0 if any(answered) else 3), labelled.err
    refused = unslant(*command[:4], "--fields", "question=nosuch", *more[:-1], tmp_path / "third")
    assert (refused.code, len(refused.err.splitlines())) == (2, 1)
    assert "nosuch" in refused.err
