"""Folders of logs, other files of a run, open questions, and the kinds of files that OpenCompass writes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import unslant
from unslant import audit, read_result
from unslant.errors import InputError
from unslant.presentations import ALPHABETS
from unslant.responses import Responses
from unslant.responses.importers import load_logs
from unslant.responses.importers.logged import is_mean, placed
from unslant.responses.importers.page_text import PageText


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_folders_hold_their_logs_and_other_files_name_them(shared_data: Path, tmp_path: Path) -> None:
    logs = shared_data / "logs"
    for folder, pattern in (("lm_eval_more/race", "samples_*.jsonl"), ("helm", "scenario_state.json")):
        (path,) = (logs / folder).glob(pattern)
        ((of_folder,), (of_file,)) = load_logs([logs / folder]), load_logs([path])
        assert of_folder.table.equals(of_file.table)
    for name, words in (
        (
            "lm_eval_more/race/results_2026-11-22T17-10-43.770580.json",
            "give samples_p_race_2026-11-22T17-10-43.770580.js",
        ),
        ("helm/stats.json", "give the scenario_state.json"),
        ("helm/run_spec.json", "give the scenario_state.json"),
        ("helm/per_instance_stats.json", "give the scenario_state.json"),
        ("lighteval/results.json", "give its details_"),
    ):
        with pytest.raises(InputError, match=rf"{Path(name).name}: holds the scores of a run and no answers: {words}"):
            load_logs([logs / name])
    (alone,) = (logs / "lm_eval_more" / "race").glob("results_*.json")
    with pytest.raises(InputError, match="run lm_eval with log_samples"):
        load_logs([write(tmp_path / alone.name, [json.loads(alone.read_text())])])
    (tmp_path / alone.name).unlink()
    (tmp_path / "mine.csv").write_text("id,answer,chosen\nq,A,B\n")
    with pytest.raises(InputError, match="is a folder without a log of a known format"):
        load_logs([tmp_path])


def test_a_folder_of_results_is_read_like_the_table_in_it(tmp_path: Path) -> None:
    """The folder of --out was refused, as one without a log."""
    result = audit("fair", "embedded", limit=3)
    (tmp_path / "out").mkdir()
    result.to_parquet(tmp_path / "out" / "responses.parquet")
    result.to_json(tmp_path / "out" / "numbers.json")
    (responses,) = load_logs([tmp_path / "out"])
    assert responses.table.equals(result.responses.table)
    assert read_result(tmp_path / "out").headline == result.headline
    ran = unslant("plan", tmp_path / "out", "--half-width", 0.1)
    assert "out: is a folder; give the file in it (numbers.json, responses.parquet)" in ran.err


def test_base_rates_read_the_folder_of_their_results(tmp_path: Path) -> None:
    assert unslant("study", "base-rate", "fair", "embedded", "--limit", 4, "--out", tmp_path / "b", "-q").code == 0
    outputs = [tmp_path / "folder.json", tmp_path / "file.json"]
    for log, numbers in zip((tmp_path / "b", tmp_path / "b" / "responses.parquet"), outputs, strict=True):
        ran = unslant("study", "base-rate", "--log", log, "--json", numbers)
        assert ran.code == 0, ran.err
    one, other = ([json.loads(path.read_text())[key] for key in ("headline", "lines")] for path in outputs)
    assert one == other


def test_a_table_of_the_probe_is_not_of_an_unknown_format(tmp_path: Path) -> None:
    rows = [{"question_id": "q", "rephraser": "", "judge": judge, "score": 5} for judge in "ab"]
    with pytest.raises(InputError, match="no answers: unslant study probe --log reads it"):
        load_logs([write(tmp_path / "probe.jsonl", rows)])


def test_packed_logs_in_a_folder_are_read(shared_data: Path, tmp_path: Path) -> None:
    """They were passed over in silence."""
    for name in ("samples_letter.jsonl.gz", "samples_letter_24.JSONL"):
        content = (shared_data / "logs" / "lm_eval" / f"{name.partition('.')[0]}.jsonl").read_bytes()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert sorted(one.run.model for one in load_logs([tmp_path])) == ["samples_letter", "samples_letter_24"]


@pytest.mark.parametrize(
    ("gold", "problem"), [("q--C--AB", "gold 'C' is not one of its 2 options"), (None, "gold None")]
)
def test_a_right_option_of_a_circular_evaluation_that_is_not_there_is_named(
    tmp_path: Path, gold: str | None, problem: str
) -> None:
    row = {"origin_prompt": "Which?\nA. one\nB. two\nAnswer:", "prediction": "A", "gold": gold}
    (tmp_path / "set.json").write_text(json.dumps({"0": row}))
    with pytest.raises(InputError, match=f"set.json, entry 0: .*{problem}"):
        load_logs([tmp_path / "set.json"])


def test_an_entry_without_all_likelihoods_contradicts_nothing(tmp_path: Path) -> None:
    """The place of nan was taken for that of the highest, which the prediction then contradicted."""
    likelihoods = {"label: A": {"testing input": "one", "Loglikelihood": -1.0},
                   "label: B": {"testing input": "two", "Loglikelihood": float("nan")}}  # fmt: skip
    entry = {"origin_prompt": "Which?", **likelihoods, "prediction": "A", "gold": "A"}
    (tmp_path / "set.json").write_text(json.dumps({"0": entry}))
    (table,) = load_logs([tmp_path / "set.json"])
    assert [row.status for row in table.rows()] == ["error"]


@pytest.mark.parametrize("field", ["choices", "reference"])
def test_a_text_in_place_of_a_list_is_not_read_letter_by_letter(tmp_path: Path, field: str) -> None:
    page = {"raw": "Which?", "choices": ["a", "b"], "reference": ["a"]} | {field: "ab"}
    sample = {"sample_id": "s", "interaction_type": "single", "model_id": "m", "evaluation_name": "e", "input": page,
              "evaluation": {"score": 1.0}, "output": {"raw": "A"}, "answer_attribution": []}  # fmt: skip
    with pytest.raises(InputError, match=rf"line 1: .*input\.{field} is 'ab', not a list"):
        load_logs([write(tmp_path / "e_samples.jsonl", [sample])])


def test_open_questions_have_no_options(tmp_path: Path) -> None:
    """As SQuAD's, whose several answers are spellings and no options."""
    doc = {"id": "s", "context": "Denver won.", "question": "Who won?", "answers": {"text": ["Denver", "Denver won"]}}
    line = {
        "doc_id": 0, "doc": doc, "target": "Denver", "arguments": {"gen_args_0": {"arg_0": "Who won?", "arg_1": {}}},
        "resps": [["Denver"]], "filtered_resps": ["Denver"], "filter": "none", "metrics": ["exact_match"],
        "exact_match": 1.0,
    }  # fmt: skip
    with pytest.raises(InputError, match="none of its 1 documents has options in its prompt"):
        load_logs([write(tmp_path / "samples_squad.jsonl", [line])])


def _opencompass(folder: Path, rows: list[dict[str, Any]]) -> Responses:
    folder.mkdir(exist_ok=True)
    path = folder / "set.json"
    path.write_text(json.dumps({str(i): row for i, row in enumerate(rows)}))
    (found,) = load_logs([path])
    return found


def test_opencompass_log_likelihoods(tmp_path: Path) -> None:
    """As ``LLInferencer`` of OpenCompass 0.5.4 writes them for Winogrande, whose labels are the numbers 1 and 2."""

    def row(scores: tuple[float, float], gold: object) -> dict[str, Any]:
        texts = ["Ann was kind to all.", "Bea was kind to all."]
        of_label = {
            f"label: {i + 1}": {"testing input": text, "prompt": text, "Loglikelihood": score}
            for i, (text, score) in enumerate(zip(texts, scores, strict=True))
        }
        return {"in-context examples": "", **of_label, "prediction": 1 + int(scores[1] > scores[0]), "gold": gold}

    found = _opencompass(tmp_path / "m", [row((-2.0, -3.0), "1"), row((-2.0, -1.0), 1), row((-5.0, -4.0), 2)])
    assert found.run.logged.scores == "texts"
    assert found.rows()[0].logprobs.tolist() == [-2.0, -3.0]
    assert [(one.choice, sorted(one.answers)) for one in found.rows()] == [(0, [0]), (1, [0]), (1, [1])]
    with pytest.raises(InputError, match="prediction is 2, but the highest log-likelihood is that of '1'"):
        _opencompass(tmp_path / "m", [row((-2.0, -3.0), "1") | {"prediction": 2}])


def test_opencompass_numbers_as_right_options_and_files_of_a_run_that_stopped(tmp_path: Path) -> None:
    prompt = "Which?\nA. one\nB. two\nC. three\nAnswer:"
    rows = [{"origin_prompt": prompt, "prediction": label} for label in "ABC"]
    golds: list[dict[str, Any]] = [{}, {"gold": 1}, {"gold": 0}]  # a gold of 0 is not written
    found = _opencompass(tmp_path / "m", [row | gold for row, gold in zip(rows, golds, strict=True)])
    assert [sorted(one.answers) for one in found.rows()] == [[0], [1], [0]]
    assert "In 1 entries OpenCompass logged no right option" in " ".join(found.run.logged.notes)
    letters = _opencompass(tmp_path / "n", [row | {"gold": "C"} for row in rows])
    path = write(tmp_path / "tmp_set.jsonl", [{"idx": str(i), **row, "gold": "C"} for i, row in enumerate(rows)])
    (temporary,) = load_logs([path])
    assert [one.chosen for one in temporary.rows()] == [one.chosen for one in letters.rows()]
    assert "a run that did not end" in " ".join(temporary.run.logged.notes)
    with pytest.raises(InputError, match="gold 3 is not one of its 3 options"):
        _opencompass(tmp_path / "m", [rows[0] | {"gold": 3}])
    with pytest.raises(InputError, match="its prompt lists no options"):
        _opencompass(tmp_path / "m", [{"origin_prompt": "2 + 2 =", "prediction": "4", "gold": "4"}])


def test_opencompass_results_are_compared(tmp_path: Path) -> None:
    """In ``results/MODEL``, where OpenCompass writes its verdicts, with or without details for each entry."""
    prompt = "Which?\nA. one\nB. two\nC. three\nAnswer:"
    rows = [{"origin_prompt": prompt, "prediction": f"It is {label}.", "gold": "A"} for label in "ABC"]
    predictions, results = tmp_path / "predictions", tmp_path / "results" / "m" / "set.json"
    predictions.mkdir()
    results.parent.mkdir(parents=True)

    def reported(written: dict[str, Any]) -> tuple[str, float, int | None]:
        results.write_text(json.dumps(written))
        (found,) = _opencompass(predictions / "m", rows).run.logged.reported
        return found.metric, found.value, found.parted

    details = {str(i): {"predictions": label, "references": "A"} for i, label in enumerate("ABC")}
    name = "OpenCompass's accuracy"
    assert reported({"accuracy": 100 / 3, "details": details}) == (name, pytest.approx(1 / 3), 0)
    unread = {number: one | {"predictions": ""} for number, one in details.items()}
    assert reported({"accuracy": 0.0, "details": unread}) == (name, 0.0, 1)
    assert reported({"accuracy": 0.0}) == (name, 0.0, None)
    with pytest.raises(InputError, match=r"give set\.json in .*predictions/m"):
        load_logs([results])
    circular = []
    for row, pattern in zip(rows, ("ABC", "BCA", "CAB"), strict=True):
        options = [("one", "two", "three")[pattern.index(label)] for label in "ABC"]
        page = (
            "Which?\n" + "".join(f"{label}. {text}\n" for label, text in zip("ABC", options, strict=True)) + "Answer:"
        )
        circular.append(row | {"origin_prompt": page, "gold": f"q--{pattern[0]}--{pattern}"})
    results.write_text(json.dumps({"acc_1": 33.0, "acc_3": 200 / 3}))
    (found,) = _opencompass(predictions / "m", circular).run.logged.reported
    assert (found.metric, found.value, found.ours) == ("OpenCompass's acc_3", pytest.approx(2 / 3), 3)
    assert found.caveat


def test_results_of_shards_are_compared(tmp_path: Path) -> None:
    """OpenCompass evaluates the entries of all shards, one after the other, and writes one file of results."""
    prompt = "Which?\nA. one\nB. two\nC. three\nAnswer:"
    rows = [{"origin_prompt": prompt, "prediction": label, "gold": "A"} for label in "ABCAB"]
    shards = []
    results = tmp_path / "results" / "m" / "set.json"
    results.parent.mkdir(parents=True)
    (tmp_path / "predictions" / "m").mkdir(parents=True)
    for k, part in enumerate((rows[:2], rows[2:])):
        shards.append(tmp_path / "predictions" / "m" / f"set_{k}.json")
        shards[-1].write_text(json.dumps({str(i): row for i, row in enumerate(part)}))

    def reported(*paths: Path) -> list[tuple[float, int, int, int | None]]:
        (found,) = load_logs(paths)
        return [(one.value, one.n, one.ours, one.parted) for one in found.run.logged.reported]

    details = {str(i): {"predictions": row["prediction"], "references": "A"} for i, row in enumerate(rows)}
    results.write_text(json.dumps({"accuracy": 40.0, "details": details}))
    assert reported(*shards) == [(0.4, 5, 2, 0)]
    assert reported(shards[1]) == [(pytest.approx(1 / 3), 3, 1, 0)]
    results.write_text(json.dumps({"accuracy": 60.0}))
    assert reported(*shards) == [(0.6, 5, 2, None)]
    assert reported(shards[1]) == []  # the accuracy is not that of a part


def test_opencompass_entries_without_an_answer_and_other_shapes(tmp_path: Path) -> None:
    prompt = "Which?\nA. one\nB. two\nAnswer:"
    row = {"origin_prompt": prompt, "prediction": "B", "gold": ["B"]}
    assert [sorted(one.answers) for one in _opencompass(tmp_path / "m", [row]).rows()] == [[1]]
    (missing,) = _opencompass(tmp_path / "m", [row | {"prediction": None}]).rows()
    assert (missing.status, missing.chosen, missing.raw) == ("error", None, None)  # and not the text "None"
    with pytest.raises(InputError, match="prediction is a list of replies to one prompt"):
        _opencompass(tmp_path / "m", [row | {"prediction": ["A", "B"]}])
    of_label = {f"label: {label}": {"testing input": prompt, "prompt": prompt, "PPL": float("nan")} for label in "AB"}
    (failed,) = _opencompass(tmp_path / "m", [{**of_label, "prediction": "A", "gold": "A"}]).rows()
    assert (failed.status, failed.chosen) == ("error", None)


def test_a_table_says_what_it_counts_as_right(tmp_path: Path) -> None:
    def table(header: str, *lines: str) -> Responses:
        path = tmp_path / "mine.csv"
        path.write_text("\n".join((header, *lines)))
        (found,) = load_logs([path])
        return found

    for name in ("is_correct", "correct", "score"):
        lines = [
            f"{i},A,{chosen},one|two|three,{right}" for i, (chosen, right) in enumerate((("A", 1), ("B", 0), ("A", 0)))
        ]
        (reported,) = table(f"id,answer,chosen,options,{name}", *lines).run.logged.reported
        assert (reported.metric, reported.parted, reported.first) == (name, 1, "mine.csv, line 4")
    with pytest.raises(InputError, match='"correct": holds only 0 and 1: this says whether an answer was right'):
        table("id,chosen,options,correct", "1,A,one|two|three,1", "2,B,one|two|three,0")
    places = table("id,chosen,options,correct", "1,A,one|two|three,1", "2,B,one|two|three,2")
    assert [sorted(one.answers) for one in places.rows()] == [[1], [2]]


def test_lists_of_options_go_on_after_z() -> None:
    labels = ALPHABETS["A"][:40]
    page = "Which?\n" + "".join(f"{label}. option {i}\n" for i, label in enumerate(labels)) + "Answer:"
    assert PageText(page).options(labels) == tuple(f"option {i}" for i in range(40))


@pytest.mark.parametrize("line", ["01. Of a list", "99: a line", "００) a line"])
def test_lines_that_begin_with_a_number_are_not_labels_after_z(line: str) -> None:
    """They ended in "tuple.index(x): x not in tuple", and the whole log was refused."""
    page = PageText(f"Which?\nA. one\nB. two\n{line}\n\nWhich of these?\nA. three\nB. four\nAnswer:")
    assert page.options() == ("three", "four")


def test_pages_with_long_stretches_of_blanks_are_read_in_linear_time() -> None:
    blank = " " * 20_000
    page = PageText(f"Question: Which{blank}a{blank}one?" + "\n \n" * 20_000 + f"A. x{blank}y\nB. z\nAnswer:")
    assert page.options() == (f"x{blank}y", "z")
    assert PageText(f"Which{blank}a{blank}one?{blank}Answer: ").question == f"Which{blank}a{blank}one?"


def test_names_and_folders_that_cannot_be_read_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="file name too long"):
        load_logs([tmp_path / ("x" * 300)])
    monkeypatch.setattr("unslant.files.files_within.__defaults__", (3,))
    for k in range(4):
        (tmp_path / f"{k}.json").write_text("{}")
    with pytest.raises(InputError, match="holds more than 3 files; give the folder"):
        load_logs([tmp_path])


@pytest.mark.parametrize("words", [("--log",), ("--log", "--limit", "3")])
def test_no_log_at_all_is_not_an_audit_of_the_embedded_model(words: tuple[str, ...]) -> None:
    """As where a pattern of the shell matches nothing."""
    ran = unslant("audit", *words)
    assert ran.code == 2
    assert "--log: give a value after it" in ran.err


def test_the_options_of_a_page_and_of_its_record() -> None:
    listed = PageText("Which?\nA. x\nB. y\nC. z")
    assert listed.shown(("z", "x ", "y")) == ("x", "y", "z")  # the page shows them in another order
    assert listed.shown(("one", "two", "three")) == ("one", "two", "three")
    assert listed.shown(()) == ("x", "y", "z")
    assert PageText("Which?").shown(("z", "x", "y")) == ("z", "x", "y")
    assert listed.options("AB") == ()
    assert PageText("D. w\nC. x\nB. y\nA. z").options("DCBA") == ("w", "x", "y", "z")
    assert PageText("B. x\nA. y\nB. z").options("BA") == ("x", "y")
    assert PageText("Which?\nA. x\nC. y").options() == PageText("A. A sentence.").options() == ()
    worked = PageText("One?\nA. a\nB. b\nAnswer: A\n\nTwo?\nA. c\nB. d\n")
    assert (worked.options(), worked.question) == (("c", "d"), "Two?")


def test_the_order_of_a_list_in_a_page() -> None:
    order = PageText("Is it a cat, a dog or a cow? Say a dog, a cow or a cat.").order
    assert order(("a cat", "a dog", "a cow")) == (1, 2, 0)  # the last list
    assert order(("a cat", "a dog", "a bee")) == ()
    assert order(("a cat", "A CAT")) == order(("a cat", "")) == ()
    assert PageText("cats and dogs").order(("cat", "dog")) == ()  # parts of words
    assert PageText("A cat sat here for a long time, then a dog.").order(("a cat", "a dog")) == ()


def test_a_place_is_named_once() -> None:
    for error in (InputError("bad"), InputError.at("x.csv", "bad")):
        with pytest.raises(InputError, match=r"^x\.csv: bad$"), placed("x.csv"):
            raise error


@pytest.mark.parametrize(
    ("mean", "hits", "same"),
    [
        (0.5, [1.0, 0.0], True),
        (0.5, [1, None, 0, "n/a"], True),  # a request that failed has no accuracy
        (0.4, [1.0, 0.0], False),
        (None, [1.0, 0.0], False),
        (0.5, [None], False),
    ],
)
def test_a_run_is_known_by_its_accuracy(mean: object, hits: list[object], same: bool) -> None:
    assert is_mean(mean, hits) == same


def test_opencompass_probabilities_and_kinds_that_contradict(tmp_path: Path) -> None:
    prompt = "Which?\nA. x\nB. y\nAnswer:"
    scored = {"prompt": prompt, "prediction": [0.2, 0.8], "gold": 1, "choices": ["A", "B"]}
    (row,) = _opencompass(tmp_path, [scored | {"pred_label": "B"}]).rows()
    assert (row.labels, row.answers, row.choice) == (("A", "B"), {1}, 1)
    for rows, reason in (
        ([scored | {"pred_label": "A"}], "entry 0: .*pred_label is 'A', but the highest probability is that of 'B'"),
        (
            [scored, {"origin_prompt": prompt, "prediction": "B", "gold": "B"}],
            "holds labels and replies; give a file of",
        ),
        ([scored | {"gold": 2}], "gold 2 is not one of its 2 options"),
        ([scored | {"prediction": ["A", "B"]}], "prediction is a list of replies to one prompt"),
        ([{"origin_prompt": "2 + 2?", "prediction": "4", "gold": "4"}], "its prompt lists no options"),
    ):
        with pytest.raises(InputError, match=reason):
            _opencompass(tmp_path, rows)


def test_tables_of_the_same_questions_share_their_texts(tmp_path: Path) -> None:
    for model in ("fair", "prefers-a"):
        audit(model, "embedded", limit=3, orders="reverse").to_parquet(tmp_path / f"{model}.parquet")
    audit("fair", "embedded", limit=2, orders="reverse").to_parquet(tmp_path / "other.parquet")
    tables = load_logs([tmp_path / f"{name}.parquet" for name in ("fair", "prefers-a", "other")])
    assert [table.run.model for table in tables] == ["fair", "prefers-a", "fair"]
    assert tables[0].questions is tables[1].questions
    assert len(tables[2].questions) == 2
