"""Shapes of logs that no sample shows: written here as the harnesses write them, from samples or from planted truth."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.first_screens import said
from unslant.auditing import audit_presentations
from unslant.auditing.comparison import audit_logs
from unslant.auditing.result import AuditResult
from unslant.errors import InputError
from unslant.presentations import parse_labels
from unslant.questions import load_questions
from unslant.responses import Response, Responses
from unslant.responses.importers import load_logs
from unslant.responses.importers.lm_eval import _several

TIME = "2026-11-21T10-00-00.123456"
QUESTIONS = [("q0", "In what town does Orgoo live?", ("Fenton", "Redhill", "Millbrook"), 1),
             ("q1", "What does Mirfieth drink?", ("cider", "milk", "tea"), 0)]  # fmt: skip


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif path.suffix == ".json":
        path.write_text(json.dumps({str(i): row for i, row in enumerate(rows)}))
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def page(question: str, options: tuple[str, ...]) -> str:
    lines = "".join(f"{label}. {text}\n" for label, text in zip("ABCDEFGH", options, strict=False))
    return f"The following are questions.\n\nQuestion: {question}\n{lines}Answer:"


def lm_eval(doc: dict, requests: list[tuple[str, str]], scores: list[float], target: object, **more: Any) -> dict:
    return {
        "doc_id": 0,
        "doc": doc,
        "target": str(target),
        "arguments": {f"gen_args_{i}": {"arg_0": one, "arg_1": two} for i, (one, two) in enumerate(requests)},
        "resps": [[[str(score), "False"]] for score in scores],
        "filter": "none",
        **more,
    }


def rows(path: Path, **fields: str) -> list[Response]:
    (found,) = load_logs([path], fields)
    return found.rows()


def right(found: list[Response]) -> list[tuple[int, ...]]:
    return [tuple(sorted(row.answers)) for row in found]


# --- lm-eval


def test_options_in_the_contexts(tmp_path: Path) -> None:
    """As in winogrande: the same end after different sentences, and the target is no index."""
    before, after = "Fine.\n\nSarah was a better surgeon than Maria so", " got the easier cases."
    requests = [(f"{before} Sarah always", after), (f"{before} Maria always", after)]
    doc = {"sentence": "Sarah was a better surgeon than Maria so _ always got the easier cases.", "answer": "2"}
    lines = [lm_eval(doc, requests, [-3, -2], after, acc=1.0), lm_eval(doc, requests, [-2, -3], after, acc=0.0)]
    path = write(tmp_path / "samples_w.jsonl", [{**line, "doc_id": i} for i, line in enumerate(lines)])
    (found,) = load_logs([path])
    assert right(found.rows()) == [(1,), (1,)]
    assert found.questions[0].options == ("Sarah", "Maria")
    assert found.run.logged.scores == "texts"
    failed = lm_eval(doc, requests, [], after, acc=0.0, doc_id=2)
    found = rows(write(path, [{**lines[0], "doc_id": 0}, failed]))
    assert [(row.status, row.answers) for row in found] == [("ok", {1}), ("error", frozenset())]
    unknown = write(tmp_path / "samples_x.jsonl", [lm_eval(doc, requests, [-3, -2], after)])
    with pytest.raises(InputError, match=r"line 1.*which is right is not logged"):
        load_logs([unknown])


@pytest.mark.parametrize(("hits", "expected"), [((1.0, 0.0), [(1,), (2,)]), ((0.0, 1.0), [(0,), (1,)])])
def test_a_target_that_may_be_an_index_or_a_label(
    tmp_path: Path, hits: tuple[float, ...], expected: list[tuple[int, ...]]
) -> None:
    """The logged accuracy tells which: the same lines, right as indices and wrong as labels, or the other way."""
    made = []
    for i, (hit, target) in enumerate(zip(hits, (1, 2), strict=True)):
        context = page("Which?", ("x", "y", "z")).replace("A.", "1.").replace("B.", "2.").replace("C.", "3.")
        requests = [(context, f" {label}") for label in "123"]
        made.append(lm_eval({"question": f"Which {i}?"}, requests, [-3, -1, -2], target, acc=hit, doc_id=i))
    assert right(rows(write(tmp_path / "samples_n.jsonl", made))) == expected


def test_a_target_that_no_accuracy_explains_is_read_as_an_index_and_said(tmp_path: Path) -> None:
    context = page("Which?", ("x", "y", "z")).replace("A.", "1.").replace("B.", "2.").replace("C.", "3.")
    requests = [(context, f" {label}") for label in "123"]
    lines = [lm_eval({"question": f"Which {i}?"}, requests, [-3, -1, -2], 1, doc_id=i) for i in range(2)]
    (found,) = load_logs([write(tmp_path / "samples_n.jsonl", lines)])
    assert right(found.rows()) == [(1,), (1,)]
    (caveat,) = found.run.logged.caveats
    assert caveat.startswith("In 2 of 2 samples, target is an index, counted from 0, or the label or text of another")
    (found,) = load_logs([write(tmp_path / "samples_n.jsonl", [line | {"acc": 1.0} for line in lines])])
    assert found.run.logged.caveats == ()


def test_filters_of_one_document_are_one_sample_and_kinds_of_scores_a_file_each(tmp_path: Path) -> None:
    options = ("x", "y")
    labels = [(page("Which?", options), f" {label}") for label in "AB"]
    line = lm_eval({"question": "Which?"}, labels, [-3, -1], 1)
    path = tmp_path / "samples_f.jsonl"
    (found,) = load_logs([write(path, [line | {"filter": name} for name in ("strict", "loose")])])
    assert (len(found.rows()), found.run.settings["filter"]) == (1, "strict")
    assert found.run.logged.dropped == {"the same document under another filter": 1}
    (found,) = load_logs([write(path, [line | {"filter": None}])])
    assert "filter" not in found.run.settings
    texts = lm_eval({"question": "Which?"}, [("Which?", f" {text}") for text in options], [-3, -1], 1, doc_id=1)
    with pytest.raises(InputError, match=r"samples_f\.jsonl: holds labels and texts scores; give a file of one kind"):
        load_logs([write(path, [line, texts])])
    open_question = lm_eval({"question": "2 + 2?"}, [("2 + 2?", " 4")], [-1], 0, doc_id=2)
    (found,) = load_logs([write(path, [line, open_question])])
    assert found.run.logged.dropped == {"requests that are neither one for each option nor one reply about options": 1}
    failed = lm_eval({"question": "Which?"}, labels, [], 1, doc_id=3)
    assert [row.status for row in rows(write(path, [line, failed]))] == ["ok", "error"]


def test_samples_of_another_name_and_the_results_next_to_them(tmp_path: Path) -> None:
    """The task names the results of samples whose name has no time; files that are no results are passed over."""
    labels = [(page("Which?", ("x", "y")), f" {label}") for label in "AB"]
    path = write(tmp_path / "org__m" / "mine.jsonl", [lm_eval({"question": "Which?"}, labels, [-3, -1], 1, acc=1.0)])
    (path.parent / "results_0.json").write_text(json.dumps({"configs": ["mine"], "results": {"mine": {}}}))
    (found,) = load_logs([path])
    assert (found.run.model, found.run.questions) == (
        "mine",
        "mine",
    )  # a folder names the model of samples_*
    results: dict[str, Any] = {"configs": {"other": {}}, "results": {"other": {}}, "model_name": "org/other"}
    (path.parent / "results_1.json").write_text(json.dumps(results))
    assert load_logs([path])[0].run.model == "mine"
    of_task = {"configs": {"mine": {}}, "results": {"mine": {}}, "model_name": "org/m", "n-shot": {"mine": 5}}
    for config, revision in (
        ({"model_revision": "main"}, "main"),
        ({"model_revision": "main", "model_sha": "c0"}, "c0"),
    ):
        (path.parent / "results_2.json").write_text(json.dumps(of_task | {"config": config}))
        (found,) = load_logs([path])
        assert (found.run.model, found.run.settings["model revision"]) == ("org/m", revision)
        assert found.run.settings["worked examples"] == "5"


def test_generated_answers(tmp_path: Path) -> None:
    """Targets by label, text or index; a document without options in its prompt is an open question."""
    path, options = tmp_path / "samples_g.jsonl", ("one", "two")

    def generated(number: int, target: object, resps: Any, doc: dict | None = None, text: str = "") -> dict:
        arguments = {"gen_args_0": {"arg_0": text or page("Which?", options), "arg_1": {"until": []}}}
        line = lm_eval(doc or {"question": f"Which {number}?", "choices": list(options)}, [], [], target, doc_id=number)
        return line | {"arguments": arguments, "resps": resps}

    lines = [generated(k, target, [["B"]]) for k, target in enumerate(("B", "two", "1", "(B)"))]
    lines += [generated(4, "B", []), generated(5, "B", [[]])]
    lines.append(generated(6, "4", [["4"]], {"question": "2 + 2?"}, "2 + 2?"))
    lines.append(generated(7, "two", [["two"]], text="Name a number."))  # what the document lists was not shown
    (found,) = load_logs([write(path, lines)])
    assert right(found.rows()) == [(1,)] * 6
    assert [row.status for row in found.rows()] == [*["ok"] * 4, *["error"] * 2]
    assert found.run.logged.dropped == {"requests that are neither one for each option nor one reply about options": 2}
    for line, reason in ((generated(0, "three", [["B"]]), "target 'three' is not one of the options"),
                         (generated(0, "B", ["B, of course"]), "resps holds a text, not a list")):  # fmt: skip
        with pytest.raises(InputError, match=rf"line 1.*{reason}"):
            load_logs([write(path, [line])])


@pytest.mark.parametrize(
    ("doc", "places"),
    [
        ({"targets": {"labels": [1, 0, 1], "choices": ["a cat", "a dog ", "a cow"]}}, {0, 2}),
        ({"targets": {"labels": [1, 0, 1], "choices": ["a dog", "a cat", "a cow"]}}, None),  # of another list
        ({"targets": {"labels": [1, 0], "choices": ["a cat", "a dog", "a cow"]}}, None),
        ({"choices": {"labels": ["A", "B", "C"], "choices": ["a cat", "a dog", "a cow"]}}, None),
        ({"choices": {"labels": [1, 0, 1]}, "other": {"labels": 1, "choices": []}}, None),
        ({"answers": ["Cat!", "the cow"]}, {0, 2}),  # as SQuAD's scorers compare them
        ({"answers": ["cat", "dog", "cow"]}, None),  # the options, not the right ones
        ({"answers": ["cat"]}, None),
        ({"answers": "cat, cow"}, None),
        ({"answers": ["cat", 2]}, None),
        ({"answers": ["hen", "fox"]}, None),
    ],
)
def test_several_right_options_of_a_document(doc: dict[str, Any], places: set[int] | None) -> None:
    assert _several(doc, ["a cat", "a dog", "a cow"]) == places


def test_right_options_that_only_an_outcome_names(tmp_path: Path) -> None:
    """Of two options in the contexts a wrong answer names the other; of three it does not."""
    for n, hit, expected in ((2, 1.0, (0,)), (2, 0.0, (1,)), (3, 1.0, (0,)), (3, 0.0, None)):
        requests = [(f"It was {name} who", " came.") for name in ("Ann", "Bob", "Cy")[:n]]
        line = lm_eval({"sentence": "It was _ who came."}, requests, [-1, -2, -3][:n], " came.", acc=hit)
        path = write(tmp_path / "samples_c.jsonl", [line])
        if expected:
            assert right(rows(path)) == [expected]
        else:
            with pytest.raises(InputError, match="which is right is not logged"):
                load_logs([path])


def test_bracketed_labels_and_words_that_are_short(tmp_path: Path) -> None:
    text = "Question: Which?\nOptions:\n(A) red\n(B) blue\nA:"
    line = lm_eval({"input": text, "target": "(B)"}, [(text, " (A)"), (text, " (B)")], [-1, -2], "(B)")
    (found,) = load_logs([write(tmp_path / "samples_bbh.jsonl", [line])])
    assert found.rows()[0].labels == ("A", "B")
    assert (right(found.rows()), found.questions[0].options) == ([(1,)], ("red", "blue"))
    line = lm_eval({"question": "Is it?"}, [("Is it?", " no"), ("Is it?", " yes")], [-1, -2], 1)
    (found,) = load_logs([write(tmp_path / "samples_boolq.jsonl", [line])])
    assert (found.rows()[0].labels, found.questions[0].options) == (("A", "B"), ("no", "yes"))
    assert found.run.logged.scores == "texts"


def test_several_right_options(tmp_path: Path) -> None:
    doc = {"question": "Which?", "mc2_targets": {"choices": ["a cat", "a dog", "a cow"], "labels": [1, 1, 0]}}
    line = lm_eval(
        doc, [("Q: Which?\nA:", f" {text}") for text in doc["mc2_targets"]["choices"]], [-1, -2, -3], 0, acc=0.7
    )  # type: ignore[index]
    assert right(rows(write(tmp_path / "samples_mc2.jsonl", [line]))) == [(0, 1)]


def test_leaderboard_samples_as_they_are(tmp_path: Path) -> None:
    """A JSON array under .json, requests as lists, numbers as numbers; the folder tells the model."""
    options = ("one", "two", "three")
    line = lm_eval({"question": "How many?", "options": options, "question_id": 7}, [], [], 2)
    context = page("How many?", options)
    line |= {"arguments": [[context, f" {label}"] for label in "ABC"], "resps": [[[-3.0, False]]] * 2 + [[[-1, True]]]}
    del line["filter"]
    path = tmp_path / "org__name" / f"samples_leaderboard_mmlu_pro_{TIME}.json"
    path.parent.mkdir()
    path.write_text(json.dumps([line]))
    (found,) = load_logs([path])
    assert (found.run.model, found.run.questions) == ("org/name", "leaderboard_mmlu_pro")
    assert [row.question_id for row in found.rows()] == ["7"]
    assert right(found.rows()) == [(2,)]
    assert found.rows()[0].chosen == {2}


def test_results_beside_the_samples(shared_data: Path, tmp_path: Path) -> None:
    """Model, examples and template of the same run; how many samples are missing; another run's are not taken."""
    source = shared_data / "logs" / "lm_eval"
    results = json.loads((source / "results.json").read_text())
    results |= {"chat_template_sha": "c0ffee" * 8, "chat_template": "{{x}}"}
    folder = tmp_path / "org__other"
    folder.mkdir()
    (folder / f"results_{TIME}.json").write_text(json.dumps(results))
    (folder / "results_2020-01-01T00-00-00.json").write_text(json.dumps(results | {"model_name": "older"}))
    path = folder / f"samples_eco_letter_{TIME}.jsonl"
    path.write_text((source / "samples_letter.jsonl").read_text())
    result = audit_logs(path)
    assert isinstance(result, AuditResult)
    assert (result.name, result.run.settings["worked examples"]) == ("prefers-a", "0")
    notes = result.page().notes
    assert any("A chat template was applied (sha c0ffee" in note for note in notes)
    assert "Not used: 18 (documents of the results that are missing in the file)." in notes
    assert "The file holds 6 of the 24 documents of its results." in result.page().caveats
    # files without a time belong together if documents and accuracy do: the model fair has the same documents
    assert [load_logs([source / f"samples_letter_24{name}.jsonl"])[0].run.model for name in ("", "_fair")] == [
        "prefers-a", "samples_letter_24_fair"
    ]  # fmt: skip


def test_replies_that_were_sampled_are_repeats(tmp_path: Path) -> None:
    (name, question, options, gold), *_ = QUESTIONS
    line = lm_eval({"id": name, "question": question, "options": options}, [], [], "ABC"[gold])
    line |= {"arguments": {"gen_args_0": {"arg_0": page(question, options), "arg_1": {"until": []}}}}
    line["resps"] = [[" B", " A", "I cannot say."]]
    found = rows(write(tmp_path / "samples_g.jsonl", [line]))
    assert [(row.repeat, row.status, row.chosen) for row in found] == [
        (0, "ok", {1}), (1, "ok", {0}), (2, "unparsed", None)
    ]  # fmt: skip


@pytest.mark.parametrize("in_list", [False, True])
def test_chats_with_a_served_model(tmp_path: Path, in_list: bool) -> None:
    """Their prompts are lists: of the JSON of the messages (local-chat-completions), or of the messages."""
    (name, question, options, gold), *_ = QUESTIONS
    messages = [{"role": "system", "content": "Answer."}, {"role": "user", "content": page(question, options)}]
    line = lm_eval({"id": name}, [], [], "ABC"[gold]) | {"resps": [["B"]], "exact_match": 1.0}
    line["arguments"] = {
        "gen_args_0": {"arg_0": messages if in_list else [json.dumps(messages)], "arg_1": {"until": []}}
    }
    (found,) = load_logs([write(tmp_path / "samples_g.jsonl", [line])])
    assert [(one.stem, one.options) for one in found.questions] == [(question, options)]
    assert [row.chosen for row in found.rows()] == [{1}]


def test_requests_that_parquet_pads_with_nulls(tmp_path: Path) -> None:
    lines = [
        lm_eval(
            {"id": f"q{n}", "question": f"{n}?", "choices": ["x", "y", "z"][:n]},
            [(page(f"{n}?", ("x", "y", "z")[:n]), f" {label}") for label in "ABC"[:n]], [-2.0, -1.0, -3.0][:n], 1,
        ) | {"doc_id": n}
        for n in (2, 3)
    ]  # fmt: skip
    found = rows(write(tmp_path / "samples_g.parquet", lines))
    assert [(row.n_options, row.choice) for row in found] == [(2, 1), (3, 1)]


def test_accuracy_that_is_not_what_was_logged_comes_first(tmp_path: Path) -> None:
    context = page("Which?", ("x", "y", "z"))
    line = lm_eval({"question": "Which?"}, [(context, f" {label}") for label in "ABC"], [-1, -2, -3], 0, acc=0.0)
    result = audit_logs(write(tmp_path / "samples_t.jsonl", [line]))
    (logged,) = result.run.logged.reported
    assert (logged.value, logged.ours, logged.parted) == (0, 1, 1)
    assert (
        "The log reports 0.000 (lm-eval's acc, 1 row); counting the answers, as here, gives 1.000. 1 row differs"
        in " ".join(result.summary().split())
    )


# --- files together


def letters(task: str, number: int, doc_id: int, order: tuple[int, ...]) -> dict:
    """A question in some order of its options, as lm-eval scores letters, by row number only."""
    _, question, options, gold = QUESTIONS[number]
    shown = tuple(options[i] for i in order)
    scores = [-0.5 if text == options[0] else -2.0 for text in shown]
    requests = [(page(question, shown), f" {label}") for label in "ABC"]
    doc = {"question": question, "choices": shown, "task": task}
    return lm_eval(doc, requests, scores, order.index(gold), doc_id=doc_id)


def test_tasks_whose_rows_have_the_same_numbers(tmp_path: Path) -> None:
    """Row 0 of one task is another question than row 0 of the other."""
    folder = tmp_path / "org__m"
    paths = [
        write(folder / f"samples_{task}_{TIME}.jsonl", [letters(task, i, 0, (0, 1, 2))])
        for i, task in enumerate(("towns", "drinks"))
    ]
    (found,) = load_logs(paths)
    assert [row.question_id for row in found.rows()] == ["0", "drinks/0"]
    assert [row.subject for row in found.rows()] == ["towns", "drinks"]


def test_the_same_questions_under_other_numbers(tmp_path: Path) -> None:
    """Shuffled files are joined by text, with options in another order too."""
    folder = tmp_path / "org__m"
    first = write(folder / "samples_t_2026-01-01T00-00-00.jsonl", [letters("t", i, i, (0, 1, 2)) for i in (0, 1)])
    second = write(folder / "samples_t_2026-01-02T00-00-00.jsonl",
                   [letters("t", i, 1 - i, (2, 0, 1)) for i in (1, 0)])  # fmt: skip
    (found,) = load_logs([first, second])
    assert [(row.question_id, row.contents) for row in found.rows()] == [
        ("0", (0, 1, 2)), ("0", (2, 0, 1)), ("1", (0, 1, 2)), ("1", (2, 0, 1))
    ]  # fmt: skip
    assert {row.answers for row in found.rows() if row.question_id == "1"} == {frozenset({0})}


def test_letters_and_texts_of_one_model_are_compared(shared_data: Path, tmp_path: Path) -> None:
    folder = tmp_path / "org__m"
    folder.mkdir()
    paths = []
    for task in ("letter", "cloze"):
        paths.append(folder / f"samples_{task}_{TIME}.jsonl")
        paths[-1].write_text((shared_data / "logs" / "lm_eval" / f"samples_{task}.jsonl").read_text())
    found = load_logs(paths)
    assert [table.run.logged.scores for table in found] == ["labels", "texts"]
    assert len(audit_logs(paths).runs) == 2  # type: ignore[union-attr]


# --- lighteval


@pytest.mark.parametrize("letters_listed", [True, False])
def test_details_of_the_first_leaderboard(tmp_path: Path, letters_listed: bool) -> None:
    made = []
    for _, question, options, gold in QUESTIONS:
        text = page(question, options) if letters_listed else f"Question: {question}\nAnswer:"
        made.append({
            "example": text, "full_prompt": f"Question: Other?\nAnswer: x\n\n{text}", "choices": list(options),
            "gold_index": gold, "gold": [options[gold]], "predictions": [-3.0, -1.0, -2.0], "truncated": 0,
            "hashes": {"example": "a", "full_prompt": "b"}, "metrics": {"acc": float(gold == 1)},
        })  # fmt: skip
    time = "2023-08-01T10:00:00.0"
    path = tmp_path / "details_org__name" / time / f"details_harness|arc:challenge|25_{time}.parquet"
    (found,) = load_logs([write(path, made)])
    assert (found.run.model, found.run.questions) == ("org/name", "arc:challenge")
    assert found.run.settings == {"worked examples": "25"}
    assert found.run.logged.scores == ("labels" if letters_listed else "texts")
    assert right(found.rows()) == [(1,), (0,)]
    assert [row.chosen for row in found.rows()] == [{1}, {1}]
    assert [(q.stem, q.options) for q in found.questions] == [(q, o) for _, q, o, _ in QUESTIONS]


def test_older_names_and_the_model_of_a_folder(shared_data: Path, tmp_path: Path) -> None:
    table = pq.read_table(shared_data / "logs" / "lighteval" / "details_letter.parquet")
    table = table.rename_columns([f"__{name}__" for name in table.column_names])
    path = tmp_path / "details" / "org" / "name" / TIME / f"details_eco_letter|0_{TIME}.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(table, path)
    (found,), (sample,) = load_logs([path]), load_logs([shared_data / "logs" / "lighteval" / "details_letter.parquet"])
    assert (found.run.model, sample.run.model) == ("org/name", "prefers-a")
    assert found.table.drop_columns("source").equals(sample.table.drop_columns("source"))


# --- inspect


def inspect_sample(shared_data: Path) -> dict[str, Any]:
    pytest.importorskip("inspect_ai")
    found: dict[str, Any] = json.loads((shared_data / "logs" / "inspect" / "one_order.json").read_text())
    return found


def inspect_log(log: dict[str, Any], path: Path, reply: str, tokens: list[tuple[str, dict[str, float]]]) -> Path:
    """The log with this reply and these most probable tokens in its first sample."""
    sample = log["samples"][0]
    sample["events"], log["samples"] = [], [sample]
    sample["scores"] = {}
    choice = sample["output"]["choices"][0]
    choice["message"]["content"] = sample["output"]["completion"] = reply
    choice["logprobs"]["content"] = [
        {"token": token, "logprob": max(top.values(), default=-0.1), "bytes": None,
         "top_logprobs": [{"token": t, "logprob": v, "bytes": None} for t, v in top.items()]}
        for token, top in tokens
    ]  # fmt: skip
    log["eval"]["dataset"]["sample_ids"] = [sample["id"]]
    path.write_text(json.dumps(log))
    return path


def test_scores_at_the_last_label_and_bounds(shared_data: Path, tmp_path: Path) -> None:
    """Spellings of a label are summed; one that is not listed has at most what the listed ones leave."""
    top = {" B": math.log(0.5), "B": math.log(0.1), " A": math.log(0.2), " maybe": math.log(0.1), "D": math.log(0.04)}
    tokens = [("A", {"A": -0.1, "B": -3.0}), (" is wrong. ANSWER:", {}), (" B", top)]
    path = inspect_log(inspect_sample(shared_data), tmp_path / "log.json", "A is wrong. ANSWER: B", tokens)
    (row,) = rows(path)
    assert (row.status, row.chosen, row.bounds) == ("ok", {1}, (2,))
    assert row.logprobs == pytest.approx([math.log(p) for p in (0.2, 0.6, 0.04, 0.04)], abs=1e-4)


def test_a_bound_that_may_be_the_best_is_no_answer(shared_data: Path, tmp_path: Path) -> None:
    """A and C may have up to 0.69 where all that is known is B's 0.01; not where B has more than the rest of 1."""
    for top, expected in (({" B": math.log(0.01), " no": math.log(0.3)}, ("censored", None)),
                          ({" B": math.log(0.6), " no": math.log(0.3)}, ("ok", {1}))):  # fmt: skip
        path = inspect_log(inspect_sample(shared_data), tmp_path / "log.json", "ANSWER: B", [(" B", top)])
        (row,) = rows(path)
        assert (row.status, row.chosen) == expected
        assert row.bounds == (0, 2, 3)


def test_a_shuffle_that_no_score_tells_is_read_from_the_transcript(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log, write_eval_log

    source = shared_data / "logs" / "inspect" / "deprecated_shuffle.eval"
    log = read_eval_log(str(source), resolve_attachments=True)
    for sample in log.samples or []:
        sample.scores = {}
    write_eval_log(log, str(tmp_path / "unscored.eval"))
    assert [row.chosen for row in rows(tmp_path / "unscored.eval")] == [row.chosen for row in rows(source)]


def test_an_errored_log_quotes_its_error(shared_data: Path, tmp_path: Path) -> None:
    error = {"message": "AuthenticationError: key \x1b[31m expired", "traceback": "", "traceback_ansi": ""}
    log = inspect_sample(shared_data) | {"status": "error", "error": error}
    path = tmp_path / "failed.json"
    path.write_text(json.dumps(log))
    caveats = " ".join(audit_logs(path).page().caveats)
    assert "The run failed (status error: AuthenticationError: key " in caveats
    assert "\x1b" not in caveats
    path.write_text(json.dumps(log | {"samples": []}))
    with pytest.raises(InputError, match="no multiple-choice samples; its run ended with status error: Authentic"):
        audit_logs(path)


def test_a_log_that_lacks_samples_says_so(shared_data: Path, tmp_path: Path) -> None:
    log = inspect_sample(shared_data)
    log |= {"status": "cancelled", "samples": log["samples"][:2]}
    path = tmp_path / "partial.json"
    path.write_text(json.dumps(log))
    page = audit_logs(path).page()
    assert "The run failed (status cancelled); its log holds 2 of 3 samples." in page.caveats
    assert "Not used: 1 (samples that the log names but does not hold)." in page.notes


def test_samples_with_an_error_quote_it(shared_data: Path, tmp_path: Path) -> None:
    log = inspect_sample(shared_data)
    error = {"message": "RateLimitError('too many\nrequests')", "traceback": "", "traceback_ansi": ""}
    log["samples"] = [sample | {"error": error} for sample in log["samples"]]
    path = tmp_path / "errors.json"
    path.write_text(json.dumps(log))
    result = audit_logs(path)
    assert {(row.status, row.raw) for row in result.responses.rows()} == {("error", "RateLimitError('too many")}
    assert "failed (RateLimitError('too many)" in result.headline


@pytest.mark.parametrize(
    ("change", "status", "raw"),
    [
        ({"error": {"message": "CancelledError('Cancelled via cancel scope 7f90ed65f060')", "traceback": "",
                    "traceback_ansi": ""}}, "error", "cancelled"),
        ({"invalidation": {"author": "me", "reason": "wrong key"}}, "error", "invalidated: wrong key"),
        ({"limit": {"type": "time", "limit": 5}, "output": {"model": "m", "choices": []}}, "error",
         "ended by its time limit"),
        ({"limit": {"type": "token", "limit": 5}, "output": {"model": "m", "choices": []}}, "cut",
         "ended by its token limit"),
    ],
)  # fmt: skip
def test_samples_whose_answer_does_not_count(
    shared_data: Path, tmp_path: Path, change: dict[str, Any], status: str, raw: str
) -> None:
    log = inspect_sample(shared_data)
    log["samples"][0] |= change
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(log))
    first, *others = rows(path)
    assert (first.status, first.raw, first.chosen) == (status, raw, None)
    assert {row.status for row in others} == {"ok"}


def test_an_invalidated_sample_of_a_shuffled_log(shared_data: Path, tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import ProvenanceData, read_eval_log, write_eval_log

    log = read_eval_log(str(shared_data / "logs" / "inspect" / "deprecated_shuffle.eval"), resolve_attachments=True)
    (log.samples or [])[0].invalidation = ProvenanceData(author="me")
    write_eval_log(log, str(tmp_path / "invalidated.eval"))
    first, *_ = rows(tmp_path / "invalidated.eval")
    assert (first.status, first.raw) == ("error", "invalidated")


def test_unparsed_replies_are_told_beside_their_first_tokens(shared_data: Path) -> None:
    pytest.importorskip("inspect_ai")
    notes = audit_logs(shared_data / "logs" / "inspect" / "unparsed_with_logprobs.eval").page().notes
    expected = "Right: 0 of 24 by the replies' words, 0 of 1 by those scores, 4 of 24 by their first tokens."
    assert expected in notes


# --- OpenCompass, HELM


def test_opencompass_in_shards(shared_data: Path, tmp_path: Path) -> None:
    """Every shard begins at 0; a circular evaluation names its questions, another one does not."""
    whole = json.loads((shared_data / "logs" / "opencompass" / "gen_circular.json").read_text())
    shards = [write(tmp_path / "m" / f"set_{i}.json", [row]) for i, row in enumerate(whole.values())]
    (together,) = load_logs(shards)
    (alone,) = load_logs([shared_data / "logs" / "opencompass" / "gen_circular.json"])
    assert together.table.drop_columns("source").equals(alone.table.drop_columns("source"))
    plain = [
        write(
            tmp_path / "m" / f"plain_{i}.json",
            [{"origin_prompt": page(question, options), "prediction": "B", "gold": "ABC"[gold]}],
        )
        for i, (_, question, options, gold) in enumerate(QUESTIONS)
    ]
    (found,) = load_logs(plain)
    assert [row.question_id for row in found.rows()] == ["0", "plain/0"]
    assert right(found.rows()) == [(1,), (0,)]
    assert [row.chosen for row in found.rows()] == [{1}, {1}]


def test_opencompass_perplexities_and_probabilities(shared_data: Path, tmp_path: Path) -> None:
    ppl = audit_logs(shared_data / "logs" / "opencompass" / "ppl.json")
    assert any(note.startswith("Perplexities are of whole prompts") for note in ppl.page().notes)
    assert [row.logprobs for row in ppl.responses.rows()] == [None]  # type: ignore[union-attr]
    clp = {"testing input": "x", "prompt": page("Which?", ("x", "y")), "choices": ["A", "B"], "prediction": [0.25, 0.5],
           "pred_label": 1, "gold": "B"}  # fmt: skip
    (row,) = rows(write(tmp_path / "m" / "clp.json", [clp]))
    assert row.logprobs == pytest.approx(np.log([0.25, 0.5]))
    assert (row.chosen, row.answers) == ({1}, {1})


def test_helm_option_by_option(tmp_path: Path) -> None:
    """The score of an option is that of its own tokens; requests without the question are left out."""
    references = [{"output": {"text": text}, "tags": tags} for text, tags in (("a cat", ["correct"]), ("a dog", []))]
    instance = {"id": "id1", "input": {"text": "Which?"}, "references": references}
    requests = [
        {"instance": instance, "reference_index": k, "request_mode": mode, "result": {"success": True, "completions": [
            {"logprob": -9, "tokens": [{"text": "Which?", "logprob": -5}, {"text": " a", "logprob": -1},
                                       {"text": text[1:], "logprob": -k - 1.0}]}]}}
        for mode in ("original", "calibration") for k, text in enumerate(("a cat", "a dog"))
    ]  # fmt: skip
    spec = {"method": "multiple_choice_separate_calibrated", "model": "org/m", "max_train_instances": 5}
    path = tmp_path / "scenario_state.json"
    path.write_text(json.dumps({"adapter_spec": spec, "request_states": requests}))
    (found,) = load_logs([path])
    (row,) = found.rows()
    assert row.logprobs == pytest.approx([-2, -3])
    assert (row.answers, found.run.logged.scores) == ({0}, "texts")
    assert found.run.logged.dropped == {"scores without the question (calibrated)": 2}
    assert found.run.logged.notes == ()
    for index, problem in ((1.5, "reference_index is 1.5, not a whole number from 0"),
                           (True, "reference_index is True, not a whole number from 0"),
                           (0, "two requests score the same reference of this instance"),
                           (2, "reference_index is 2, of 2 references from 0")):  # fmt: skip
        requests[1]["reference_index"] = index
        path.write_text(json.dumps({"adapter_spec": spec, "request_states": requests}))
        with pytest.raises(InputError, match=problem):
            load_logs([path])
    requests[1] |= {"reference_index": 1, "result": {"success": False, "completions": []}}
    path.write_text(json.dumps({"adapter_spec": spec, "request_states": requests}))
    assert [row.status for row in load_logs([path])[0].rows()] == ["error"]


def test_helm_answers_in_words(tmp_path: Path) -> None:
    """Replies are read with their finish reason; failed, perturbed and open requests are no wrong answers."""
    path, spec = tmp_path / "scenario_state.json", {"method": "multiple_choice_joint", "max_train_instances": 5}

    def request(number: int, text: str, reason: str = "stop", **more: Any) -> dict[str, Any]:
        references = [{"output": {"text": one}, "tags": ["correct"] * (one == "a dog")} for one in ("a cat", "a dog")]
        instance = {"id": f"id{number}", "input": {"text": f"Which is {number}?"}, "references": references}
        completions = [{"text": text, "finish_reason": {"reason": reason}}]
        result = {"success": True, "completions": completions}
        return {"instance": instance, "output_mapping": {"A": "a cat", "B": "a dog"}, "result": result, **more}

    def read(requests: list[dict[str, Any]]) -> Responses:
        path.write_text(json.dumps({"adapter_spec": spec, "request_states": requests}))
        (found,) = load_logs([path])
        return found

    requests = [request(0, " B"), request(1, "A", result={"success": False, "completions": [{"text": "A"}]}),
                request(2, "A", result={"success": False, "completions": []}), request(3, "I think that", "length"),
                request(4, "A", perturbation={"name": "typos"}), request(5, "A", output_mapping=None)]  # fmt: skip
    del requests[5]["output_mapping"]
    stats = [{"name": {"name": "exact_match"}, "mean": mean} for mean in (1.0, 0.0)]
    scores = [{"instance_id": "id0", "stats": stats[:1]},
              {"instance_id": "id0", "stats": stats[1:], "perturbation": {"name": "typos"}}]  # fmt: skip
    (tmp_path / "per_instance_stats.json").write_text(json.dumps(scores))
    found = read(requests)
    assert [(row.status, row.chosen, row.answers, row.elicitation) for row in found.rows()] == [
        ("ok", {1}, {1}, "generate"), *[("error", None, {1}, "generate")] * 2, ("cut", None, {1}, "generate")
    ]  # fmt: skip
    assert found.run.logged.dropped == {"perturbed instances": 1, "requests that are no multiple choice": 1}
    assert found.run.logged.caveats == ()
    assert (found.run.model, found.run.settings["worked examples"]) == ("scenario_state", "5")
    assert [(one.metric, one.value, one.n) for one in found.run.logged.reported] == [("HELM's exact_match", 1.0, 1)]
    assert {row.elicitation for row in read(requests[1:4]).rows()} == {"generate"}  # also where none has an answer
    with pytest.raises(InputError, match=r"holds no multiple-choice requests \(multiple_choice_joint or _separate\)"):
        read(requests[5:])
    with pytest.raises(InputError, match="the right reference, 'a dog', is not one of the options in output_mapping"):
        read([request(0, "A", output_mapping={"A": "a cat", "B": "a cow"})])


def test_a_chat_template_behind_helms_options(tmp_path: Path) -> None:
    """HELM 0.5.16 puts prompts into the chat template of a local model, and then scores the template's end."""
    texts = ("a cat", "a dog")
    references = [{"output": {"text": text}, "tags": ["correct"] * (text == "a dog")} for text in texts]
    instance = {"id": "id0", "input": {"text": "Which?"}, "references": references, "split": "test"}

    def request(k: int, option: str) -> dict[str, Any]:
        parts = [("<|user|>", 0.0), ("Which?", -9.0), (" a", -1.0), (option[1:], -2.0 + k), ("<|assistant|>", -7.0 - k)]
        tokens = [{"text": text, "logprob": value} for text, value in parts]
        return {"instance": instance, "reference_index": k, "request_mode": "original",
                "result": {"success": True, "completions": [{"tokens": tokens}]}}  # fmt: skip

    def read(options: tuple[str, ...]) -> AuditResult:
        spec = {"method": "multiple_choice_separate_original", "model": "org/m"}
        state = {"adapter_spec": spec, "request_states": [request(k, text) for k, text in enumerate(options)]}
        (tmp_path / "scenario_state.json").write_text(json.dumps(state))
        stats = [{"name": {"name": "exact_match", "split": "test"}, "mean": 0.0}]
        (tmp_path / "per_instance_stats.json").write_text(json.dumps([{"instance_id": "id0", "stats": stats}]))
        return AuditResult.of(*load_logs([tmp_path / "scenario_state.json"]))

    result = read(texts)
    (row,) = result.responses.rows()
    assert row.logprobs is not None
    assert row.logprobs.tolist() == [-3, -2]
    (reported,) = result.run.logged.reported
    assert (reported.value, reported.ours, reported.parted) == (0, 1, 1)
    assert "A chat template follows the option in 2 prompts ('<|assistant|>')" in " ".join(result.run.logged.notes)
    assert "failed (without a score)" in read(("a cat", "a cow")).headline


def test_an_option_elsewhere_in_helms_prompt_is_not_taken_for_the_scored_one(tmp_path: Path) -> None:
    """The tokens at the end are not those of the option "a dog", which the question names."""
    references = [{"output": {"text": text}, "tags": ["correct"] * (text == "a cat")} for text in ("a cat", "a dog")]
    instance = {"id": "id0", "input": {"text": "Is a dog a cat?"}, "references": references, "split": "test"}
    requests = [
        {"instance": instance, "reference_index": k, "request_mode": "original", "result": {"completions": [{"tokens": [
            {"text": text, "logprob": -1.0} for text in ("Is", " a", " dog", " a", " cat?", " a", end)]}]}}
        for k, end in enumerate((" cat", " d\u00f6g"))
    ]  # fmt: skip
    spec = {"method": "multiple_choice_separate_original", "model": "org/m"}
    (tmp_path / "scenario_state.json").write_text(json.dumps({"adapter_spec": spec, "request_states": requests}))
    (found,) = load_logs([tmp_path / "scenario_state.json"])
    assert [row.status for row in found.rows()] == ["error"]


# --- a table of one's own


def test_labels_in_a_sequence_of_their_own_are_not_used(tmp_path: Path) -> None:
    row = {"id": "q", "answer": 0, "logprobs": [-0.1, -3, -4], "labels": ["A", "B", "C"]}
    made = [
        row,
        {**row, "labels": ["C", "A", "B"]},
        {**row, "repeat": 3},
        {**row, "repeat": 1, "logprobs": [-1, -2, -3]},
    ]
    result = audit_logs(write(tmp_path / "own.jsonl", made))
    kinds = [(one.kind, one.repeat) for one in result.responses.rows()]  # type: ignore[union-attr]
    assert kinds == [("order", 0), ("labels-other", 0), ("order", 1), ("order", 2)]
    assert result.responses.rows()[2].logprobs[0] == -1  # type: ignore[union-attr,index]
    assert any("labels neither in their usual sequence" in note for note in result.page().notes)
    with pytest.raises(InputError, match=r"repeat.*not a sample number"):
        audit_logs(write(tmp_path / "bad.jsonl", [{**row, "repeat": "x"}]))


def test_one_odd_sequence_in_a_usual_log_is_a_presentation(tmp_path: Path) -> None:
    """D, C, B, A on one question of many is that page reversed, not another standard for the whole log."""
    row = {"answer": 0, "logprobs": [-0.1, -3, -4], "labels": ["A", "B", "C"]}
    rows = [{**row, "id": f"q{k}"} for k in range(4)] + [{**row, "id": "odd", "labels": ["C", "B", "A"]}]
    (found,) = load_logs([write(tmp_path / "own.jsonl", rows)])
    assert [one.kind for one in found.rows()] == ["order"] * 4 + ["labels-reversed"]
    (alone,) = load_logs([write(tmp_path / "alone.jsonl", rows[-1:])])
    assert [one.kind for one in alone.rows()] == ["order"]


def test_replies_that_were_cut_or_contradict_themselves(tmp_path: Path) -> None:
    """As in runs of one's own: the last fragment of a cut reply is no answer, and a conflict has a label and a text."""
    row = {"answer": 1, "options": ["zinc", "copper", "gold"]}
    texts = {
        "The metal that conducts best is gol": "length",
        "The answer is B": "stop",
        "C. copper": "stop",
        "B": "length",
    }
    rows = [
        {**row, "id": f"q{k}", "reply": text, "finish_reason": reason} for k, (text, reason) in enumerate(texts.items())
    ]
    (found,) = load_logs([write(tmp_path / "own.jsonl", rows)])
    assert [one.status for one in found.rows()] == ["cut", "ok", "conflict", "ok"]
    assert [one.conflict for one in found.rows()] == [(), (), (2, 1), ()]
    result = audit_logs(write(tmp_path / "again.jsonl", rows))
    assert result.replies is not None
    assert (result.replies["right_by_label"].value, result.replies["right_by_text"].value) == (0.5, 0.75)


def test_an_inspect_reply_that_was_cut(shared_data: Path, tmp_path: Path) -> None:
    log = json.loads((shared_data / "logs" / "inspect" / "one_order.json").read_text())
    for sample in log["samples"]:
        sample["output"]["choices"][0]["stop_reason"] = "max_tokens"
        sample["output"]["choices"][0]["message"]["content"] = "All things considered I would say that it is the"
        sample["output"]["completion"] = "All things considered I would say that it is the"
    path = tmp_path / "cut.json"
    path.write_text(json.dumps(log))
    (found,) = load_logs([path])
    assert {one.status for one in found.rows()} == {"cut"}


def test_an_inspect_reply_that_the_provider_withheld(shared_data: Path, tmp_path: Path) -> None:
    log = json.loads((shared_data / "logs" / "inspect" / "one_order.json").read_text())
    for sample in log["samples"]:
        sample["output"]["choices"][0]["stop_reason"] = "content_filter"
    path = tmp_path / "withheld.json"
    path.write_text(json.dumps(log))
    assert {row.status for row in rows(path)} == {"refused"}


# --- planted truth

EITHER = "falls back on A when unsure (or the first position: cannot be distinguished)"


@pytest.fixture(scope="module")
def planted() -> Responses:
    """A model that knows every other question and takes A otherwise, in all presentations of an audit."""
    questions = list(load_questions("embedded"))[:60]
    rng = np.random.default_rng(0)
    found = []
    for i, question in enumerate(questions):
        own = rng.normal(0, 0.2, len(question.options))  # what it thinks of the options it does not know
        for presentation in audit_presentations(question, "cyclic", parse_labels("A")):
            scores = own[list(presentation.contents)] + 2.0 * np.array([label == "A" for label in presentation.labels])
            if i % 2:
                scores += 6.0 * np.array([content in question.answers for content in presentation.contents])
            logprobs = scores - np.logaddexp.reduce(scores) - 0.01
            found.append(Response.of(question, presentation, "cloze", logprobs=logprobs))
    return replace(Responses.from_rows(found), questions=tuple(questions))


def written(planted: Responses, kinds: set[str], row_of: Callable[[Any, Response], dict]) -> list[list[dict]]:
    """The rows of these kinds, as another harness would have logged each order in a file of its own."""
    questions = {question.id: question for question in planted.questions}
    files: dict[Any, list[dict]] = {}
    for row in planted.rows():
        if row.kind in kinds and row.question_id in questions:
            nth = len(questions[row.question_id].options), row.kind, row.contents[0], row.contents[-1]
            files.setdefault(nth[1:], []).append(row_of(questions[row.question_id], row))
    return list(files.values())


def shown(question: Any, row: Response) -> tuple[tuple[str, ...], int]:
    return tuple(question.options[i] for i in row.contents), row.contents.index(min(row.answers))


def as_lm_eval(question: Any, row: Response) -> dict:
    options, gold = shown(question, row)
    requests = [(page(question.stem, options), f" {label}") for label in row.labels]
    doc = {"id": question.id, "question": question.stem, "choices": options}
    return lm_eval(doc, requests, list(map(float, row.logprobs)), gold)  # type: ignore[arg-type]


def as_lighteval(question: Any, row: Response) -> dict:
    options, gold = shown(question, row)
    doc = {"query": page(question.stem, options), "choices": [f" {label}" for label in row.labels], "gold_index": gold,
           "id": question.id, "task_name": "t|0"}  # fmt: skip
    return {"doc": doc, "model_response": {"logprobs": list(map(float, row.logprobs)), "text": []}}  # type: ignore[arg-type]


def as_table(question: Any, row: Response) -> dict:
    options, gold = shown(question, row)
    return {"id": question.id, "options": list(options), "answer": gold, "labels": list(row.labels), "model": "m",
            "logprobs": list(map(float, row.logprobs))}  # type: ignore[arg-type]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "row_of", "kinds", "phrase"),
    [
        ("samples_t_{}.jsonl", as_lm_eval, {"order"}, EITHER),
        ("details_t_{}.parquet", as_lighteval, {"order"}, EITHER),
        ("own_{}.jsonl", as_table, {"order", "labels-reversed", "labels-shifted"}, "falls back on A when unsure"),
    ],
)  # fmt: skip
def test_prefers_a_is_named(
    planted: Responses, tmp_path: Path, name: str, row_of: Callable[[Any, Response], dict], kinds: set[str], phrase: str
) -> None:
    """From files in several orders; label and position are told apart where labels move too, and only there."""
    folder = tmp_path / "org__prefers-a"
    paths = [write(folder / name.format(f"2026-01-{i + 1:02d}T00-00-00"), rows)
             for i, rows in enumerate(written(planted, kinds, row_of))]  # fmt: skip
    if "details" in name:  # one file a model, where no results tell which
        paths = [write(folder / "details_t.parquet", [row for own in written(planted, kinds, row_of) for row in own])]
    result = audit_logs(paths)
    assert isinstance(result, AuditResult)
    assert result.metrics.preference.phrase == phrase
    one = audit_logs(paths[0] if "details" not in name else write(
        tmp_path / "details_one.parquet", written(planted, kinds, row_of)[0]))  # fmt: skip
    assert isinstance(one, AuditResult)
    if "details" not in name or one.metrics.counts.one_order == one.metrics.counts.questions:
        assert "One order cannot show" in said(one)
        assert one.metrics.preference.named is None


# --- the log's own score against the answers read here


def shown_texts(question: str, options: tuple[str, ...], listing: str, order: tuple[int, ...] | None = None) -> dict:
    """A sample of lm-eval that scores the texts of options, under a prompt that lists them in some order."""
    at = order or tuple(range(len(options)))
    lines = [listing.format(label="ABCDEF"[i], number=i + 1, text=options[k]) for i, k in enumerate(at)]
    context = f"A story about {options[0]}.\n\n{question}\n\n{''.join(lines)}\nAnswer:"
    scores = [-5.0 - k for k in range(len(options))]
    return lm_eval({"question": question}, [(context, f" {text}") for text in options], scores, 0, acc=1.0)


@pytest.mark.parametrize("listing", ["{label}. {text}\n", "{number} - {text}\n", "({label}) {text}\n", "- {text}\n"])
def test_texts_that_the_prompt_lists_have_an_order(tmp_path: Path, listing: str) -> None:
    options = ("a long walk", "a walk", "Fenton", "1.5 km")
    turned = (2, 0, 3, 1)
    for order, contents in ((None, options), (turned, tuple(options[k] for k in turned))):
        (found,) = load_logs([write(tmp_path / "samples_l.jsonl", [shown_texts("Which?", options, listing, order)])])
        assert found.run.logged.scores == "listed"
        assert found.questions[0].options == contents
        assert found.questions[0].options[next(iter(found.questions[0].answers))] == "a long walk"
        assert found.rows()[0].logprobs[contents.index("Fenton")] == -7.0
        audit = AuditResult.of(found)
        assert "order plays no part" not in audit.page().headline
        assert not audit.metrics.means["label_mass"].defined


def test_texts_in_a_passage_are_not_a_list(tmp_path: Path) -> None:
    passage = "Is it so? Some say no. Others, after long thought about the matter, say yes.\nAnswer:"
    line = lm_eval({"question": "Is it?"}, [(passage, " no"), (passage, " yes")], [-1, -2], 1)
    (found,) = load_logs([write(tmp_path / "samples_b.jsonl", [line])])
    assert found.run.logged.scores == "texts"


@pytest.mark.parametrize("listed", [True, False])
def test_labels_scored_in_another_sequence(tmp_path: Path, listed: bool) -> None:
    """D, C, B, A down the page is a label set; scored in that sequence, of a page from A to D, it is the usual one."""
    options = ("x", "y", "z", "w")
    context = "Which?\n" + "".join(f"{a}. {b}\n" for a, b in zip("DCBA" if listed else "ABCD", options, strict=True))
    line = lm_eval({"question": "Which?"}, [(context, f" {a}") for a in "DCBA"], [-1, -2, -3, -4], 3, acc=0.0)
    (found,) = load_logs([write(tmp_path / "samples_r.jsonl", [line])])
    (row,) = found.rows()
    assert found.run.logged.scores == "labels"
    if listed:
        assert (row.labels, row.answers, row.logprobs.tolist()) == (tuple("DCBA"), {3}, [-1, -2, -3, -4])
    else:
        assert (row.labels, row.answers, row.logprobs.tolist()) == (tuple("ABCD"), {0}, [-4, -3, -2, -1])
    assert AuditResult.of(found).metrics.means["accuracy"].value == 0
    assert found.run.logged.reported[0].parted == 0


def test_several_right_options_by_their_texts(tmp_path: Path) -> None:
    """As in ReCoRD: the document lists every spelling that is right."""
    entities = ["Berlin", "The Wall", "Kohl"]
    doc = {"passage": "P", "query": "Q", "entities": entities, "answers": ["wall", "Berlin"]}
    line = lm_eval(doc, [("P\nQ", f" {one}") for one in entities], [-2, -1, -3], "Berlin", em=1.0, f1=1.0)
    found = load_logs([write(tmp_path / "samples_record.jsonl", [line])])[0]
    assert right(found.rows()) == [(0, 1)]
    assert found.run.logged.reported[0].parted == 0


@pytest.mark.parametrize(("folder", "metric", "logged", "ours"),
                         [("leaderboard_musr", "acc_norm", "0.200", "0.400"),
                          ("truthfulqa_mc2", "acc", "0.333", "0.167")])  # fmt: skip
def test_another_metric_than_ours_is_said_first(
    shared_data: Path, folder: str, metric: str, logged: str, ours: str
) -> None:
    (path,) = (shared_data / "logs" / "lm_eval_more" / folder).glob("samples_*.jsonl")
    text = audit_logs(path).summary()
    said = f"The log reports {logged} (lm-eval's {metric}, "
    assert said in " ".join(text.split())
    assert text.index("The log reports") < text.index(ours)


def test_hybrid_logs_have_an_order(shared_data: Path) -> None:
    for folder in ("c_hybrid", "logiqa", "leaderboard_musr"):
        (path,) = (shared_data / "logs" / "lm_eval_more" / folder).glob("samples_*.jsonl")
        result = audit_logs(path)
        assert result.run.logged.scores == "listed", folder
        assert "order plays no part" not in result.page().headline


def test_inspect_answers_that_are_sets_are_refused(shared_data: Path) -> None:
    with pytest.raises(InputError, match=r"multiple_correct=True, and in 6 of 12 samples"):
        load_logs([shared_data / "logs" / "inspect" / "multiple_correct.eval"])


def test_inspect_scores_that_differ_are_counted(shared_data: Path, tmp_path: Path) -> None:
    log = json.loads((shared_data / "logs" / "inspect" / "one_order.json").read_text())
    (same,) = load_logs([shared_data / "logs" / "inspect" / "one_order.json"])
    assert same.run.logged.reported[0].parted == 0
    for sample in log["samples"][:3]:
        for score in sample["scores"].values():
            score["value"] = {"C": "I", "I": "C"}[score["value"]]
    path = tmp_path / "changed.json"
    path.write_text(json.dumps(log))
    (changed,) = load_logs([path])
    assert changed.run.logged.reported[0].parted == 3
    assert "3 rows differ, the first at changed.json, sample " in changed.run.logged.reported[0].caveat


def test_a_scorer_of_ones_own_that_gives_several_values(shared_data: Path, tmp_path: Path) -> None:
    log = json.loads((shared_data / "logs" / "inspect" / "one_order.json").read_text())
    right = {one["id"]: score["value"] for one in log["samples"] for score in one["scores"].values()}
    for sample in log["samples"]:
        verdict = {"C": 1.0, "I": 0.0}[right[sample["id"]]]
        sample["scores"] = {"graded": {"value": {"brevity": 0.3, "right": verdict}, "answer": "A"}}
    path = tmp_path / "several.json"
    path.write_text(json.dumps(log))
    (found,) = load_logs([path])
    (reported,) = found.run.logged.reported
    assert (reported.metric, reported.parted) == ("inspect's graded, right", 0)
    assert reported.value == pytest.approx(list(right.values()).count("C") / len(right))


def test_an_inspect_score_over_epochs_and_a_part_of_a_point(shared_data: Path, tmp_path: Path) -> None:
    """A reducer such as max reports another accuracy than the mean over samples; P counts as a half."""
    log = json.loads((shared_data / "logs" / "inspect" / "one_order.json").read_text())
    (score,) = log["results"]["scores"]
    score |= {"reducer": "max", "metrics": {"accuracy": score["metrics"]["accuracy"] | {"value": 0.9}}}
    log["eval"]["config"]["epochs"] = 3
    n = len(log["samples"])
    for sample in log["samples"][:2]:
        for verdict in sample["scores"].values():
            verdict["value"] = "P"
    path = tmp_path / "reduced.json"
    path.write_text(json.dumps(log))
    result = audit_logs(path)
    rows, whole = result.run.logged.reported
    verdicts = [value["value"] for sample in log["samples"] for value in sample["scores"].values()]
    assert (rows.n, rows.value) == (n, pytest.approx((verdicts.count("C") + 1) / n))
    assert (whole.metric, whole.value) == ("inspect's choice, max of 3 epochs", 0.9)
    assert "The log reports 0.900 (inspect's choice, max of 3 epochs" in " ".join(result.summary().split())


def test_lm_eval_results_that_are_not_the_mean_over_documents(tmp_path: Path) -> None:
    """As of the tinyBenchmarks, which estimate the score on the whole data set."""
    lines = [
        lm_eval({"question": f"Q{i}", "id": f"{i}"}, [("Q", " x"), ("Q", " y")], [-1, -2], i % 2, acc=1.0 - i % 2)
        | {"doc_id": i}
        for i in range(4)
    ]
    path = write(tmp_path / "samples_tiny_2026-11-25T10-00-00.0.jsonl", lines)
    for value, words in ((0.5, []), (0.62, ["lm-eval's acc", "lm-eval's acc in its results file"])):
        results = {"configs": {"tiny": {}}, "results": {"tiny": {"acc,none": value}}, "model_name": "m"}
        (tmp_path / "results_2026-11-25T10-00-00.0.json").write_text(json.dumps(results))
        (found,) = load_logs([path])
        assert [one.metric for one in found.run.logged.reported] == (words or ["lm-eval's acc"])
    assert found.run.logged.reported[1].caveat.startswith("The log reports 0.620")


def test_what_is_advised_of_a_log_is_no_option(shared_data: Path) -> None:
    text = audit_logs(shared_data / "logs" / "lighteval" / "details_letter.parquet").summary()
    assert "a chat model asked without its chat template" in " ".join(text.split())


def test_helm_splits_are_apart(shared_data: Path, tmp_path: Path) -> None:
    state = json.loads((shared_data / "logs" / "helm" / "scenario_state.json").read_text())
    for request in state["request_states"][:5]:
        request["instance"]["split"] = "valid"
    path = tmp_path / "scenario_state.json"
    path.write_text(json.dumps(state))
    (found,) = load_logs([path])
    assert len(found.rows()) == len(state["request_states"]) - 5
    assert found.run.logged.dropped == {"requests of the split valid": 5}
    assert found.run.settings["split"] == "test"
    said = "Only the split test is read, as HELM reports splits apart; 5 requests of the split valid are left out."
    assert " ".join(audit_logs(path).summary().split()).partition(" none of 7")[0].endswith(said)
    for request in state["request_states"]:
        request["instance"]["split"] = "valid" if request["instance"]["split"] == "valid" else "train"
    path.write_text(json.dumps(state))
    assert len(load_logs([path])[0].rows()) == 5  # valid, although train is first by name and has more
    for request in state["request_states"]:
        request["instance"] |= {"split": "test", "perturbation": {"name": "typos"}}  # here, or of the request
    path.write_text(json.dumps(state))
    with pytest.raises(InputError, match="holds only perturbed instances of the split test"):
        load_logs([path])


def test_helm_scores_are_those_of_the_split(shared_data: Path, tmp_path: Path) -> None:
    """An id may stand for another instance in each split, and its scores lie in the same file."""
    folder = shared_data / "logs" / "helm"
    state = json.loads((folder / "scenario_state.json").read_text())
    (tmp_path / "scenario_state.json").write_text(json.dumps(state))
    names = [(one["instance"]["id"], one.get("train_trial_index", 0)) for one in state["request_states"]]

    def score(split: str, value: float) -> dict[str, object]:
        return {"name": {"name": "exact_match", "split": split}, "mean": value}

    rows = [
        {"instance_id": name, "train_trial_index": trial, "stats": [score(split, value)]}
        for name, trial in names
        for split, value in (("test", 1.0), ("valid", 0.0))
    ]
    (tmp_path / "per_instance_stats.json").write_text(json.dumps(rows))
    (found,) = load_logs([tmp_path / "scenario_state.json"])
    assert found.run.logged.reported[0].value == 1.0


def test_more_labels_than_options_are_said(tmp_path: Path) -> None:
    """As in BIG-bench Hard, whose tasks score as many labels for every question."""
    question, options = "Which is red?", ("grass", "blood", "sky")
    text = f"{question}\n" + "".join(f"({'ABC'[k]}) {one}\n" for k, one in enumerate(options)) + "A:"
    doc = {"input": text, "target": "(B)"}
    requests = [(text, f" ({label})") for label in "ABCDE"]
    row = lm_eval(doc, requests, [-3.0, -1.0, -2.0, -4.0, -5.0], "(B)", acc=1.0)
    (found,) = load_logs([write(tmp_path / "samples_bbh.jsonl", [row])])
    assert "In 1 of 1 samples, more labels were scored than the page lists options" in " ".join(found.run.logged.notes)
    (found,) = load_logs(
        [write(tmp_path / "samples_bbh.jsonl", [lm_eval(doc, requests[:3], [-3.0, -1.0, -2.0], "(B)")])]
    )
    assert found.run.logged.notes == ()


def test_the_usual_metric_leads_wherever_it_stands(tmp_path: Path) -> None:
    line = lm_eval({"question": "Q"}, [("Q", " x"), ("Q", " y")], [-1, -2], 0, f1=0.5, em=1.0)
    line["metrics"] = ["f1", "em"]
    (found,) = load_logs([write(tmp_path / "samples_r.jsonl", [line])])
    assert found.run.logged.reported[0].metric == "lm-eval's em"
