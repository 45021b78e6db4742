"""Tables as spreadsheets, pandas and people write them: read the same, or refused in one line."""

from __future__ import annotations

import gzip
import io
import json
import math
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tests.command_line import unslant
from unslant import audit, debias
from unslant.errors import InputError
from unslant.responses import Response, Responses, above_one
from unslant.responses.importers import Head, Log, Logged, joined, joining, load_logs
from unslant.responses.importers.registry import read_log

TEXTS = ["Fenton", "Redhill", "Millbrook", "Langdale"]
ROWS: list[dict[str, Any]] = [
    {"id": f"q{i}", "question": f"Which is {i}?", "options": TEXTS[i % 3 :] + TEXTS[: i % 3], "answer": i % 4,
     "chosen": (i + i // 3) % 4} for i in range(8)
]  # fmt: skip
Row = dict[str, Any]


def load(path: Path, content: str | bytes, **fields: str) -> Responses:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    (found,) = load_logs([path], fields)
    return found


def answers(found: Responses) -> list[tuple[str, list[int], int | None]]:
    def place(row: Response) -> int | None:
        return None if row.choice is None else row.contents.index(row.choice)

    return [(row.question_id, [row.contents.index(k) for k in sorted(row.answers)], place(row)) for row in found.rows()]


RIGHT = [(row["id"], [row["answer"]], row["chosen"]) for row in ROWS]


def with_options(write: Callable[[list[str]], Any], answer: Callable[[Row, int], Any] | None = None) -> list[Row]:
    rows = [{**row, "options": write(row["options"])} for row in ROWS]
    if answer:
        rows = [
            {**row, **{key: answer(one, one[key]) for key in ("answer", "chosen")}}
            for row, one in zip(rows, ROWS, strict=True)
        ]
    return rows


def in_columns(names: list[str]) -> list[Row]:
    return [
        {key: value for key, value in row.items() if key != "options"}
        | dict(zip(names, row["options"], strict=True))
        | {"answer": "ABCD"[row["answer"]]}
        for row in ROWS
    ]


def csv(rows: list[Row], **more: Any) -> str:
    return str(pd.DataFrame(rows).to_csv(index=False, **more))


BARS = with_options("|".join)


@pytest.mark.parametrize(
    "content",
    [
        csv(BARS, sep=";"),
        csv(BARS, sep="\t"),
        csv(with_options(json.dumps), sep="|"),
        "sep=;\n" + csv(BARS, sep=";"),
        "\ufeff" + csv(BARS, sep=";"),
        pd.DataFrame(BARS).to_csv(),
        csv([{**row, "": "", " ": ""} for row in BARS]),
        csv([{f" {key.capitalize()} ": value for key, value in row.items()} for row in BARS]),
        csv(with_options("|".join, lambda _, place: float(place))),
        csv(with_options("|".join, lambda row, place: row["options"][place])),
        csv(with_options("|".join, lambda _, place: f"({'ABCD'[place]})")),
        csv(with_options("|".join, lambda _, place: f" {'abcd'[place]}")),
        csv(with_options("|".join, lambda row, place: f"{'ABCD'[place]}. {row['options'][place]}")),
        csv(in_columns(list("ABCD"))),
        csv(in_columns(["option_a", "option_b", "option_c", "option_d"])),
        csv(in_columns(["Option 1", "Option 2", "Option 3", "Option 4"])),
        csv(with_options(lambda texts: json.dumps(dict(zip("ABCD", texts, strict=True))))),
        csv(with_options(lambda texts: str({"text": texts, "label": list("ABCD")}))),
    ],
    ids=lambda content: content[:40],
)
def test_tables_of_every_origin_are_the_same(tmp_path: Path, content: str) -> None:
    assert answers(load(tmp_path / "mine.csv", content)) == RIGHT


def test_excel_and_json_by_column(tmp_path: Path) -> None:
    book = io.BytesIO()
    pd.DataFrame(BARS).to_excel(book)
    assert answers(load(tmp_path / "mine.xlsx", book.getvalue())) == RIGHT
    assert answers(load(tmp_path / "mine.json", pd.DataFrame(ROWS).to_json())) == RIGHT
    assert answers(load(tmp_path / "mine.json", json.dumps({"run": "x", "results": ROWS}))) == RIGHT
    objects = [{**row, "options": dict(zip("ABCD", row["options"], strict=True))} for row in ROWS]
    assert answers(load(tmp_path / "mine.jsonl", "\n".join(map(json.dumps, objects)))) == RIGHT


def test_a_table_without_ids(tmp_path: Path) -> None:
    """The same question in another order is the same question; another one with the same stem is not."""
    rows = [
        {"question": "Which?", "options": "x|y", "gold": "x", "pred": "x"},
        {"question": "Which?", "options": "y|x", "gold": "x", "pred": "y"},
        {"question": "Which?", "options": "v|w", "gold": "w", "pred": "v"},
    ]
    found = load(tmp_path / "mine.csv", csv(rows))
    assert [(row.question_id, row.contents, row.choice) for row in found.rows()] == [
        ("mine/0", (0, 1), 0), ("mine/0", (1, 0), 1), ("mine/2", (0, 1), 0)
    ]  # fmt: skip
    assert "no column of ids" in " ".join(found.run.logged.notes)


def test_scores_by_label_and_in_columns(tmp_path: Path) -> None:
    row = {"id": "q", "answer": "B", "options": ["x", "y"]}
    scored = load(tmp_path / "mine.jsonl", json.dumps({**row, "logprobs": {" B": -0.5, " A": -1.5}}))
    assert scored.rows()[0].logprobs.tolist() == [-1.5, -0.5]
    table = csv([{"id": "q", "answer": "B", "p1": 0.25, "p2": 0.75}])
    found = load(tmp_path / "mine.csv", table, probs="p1,p2").rows()[0]
    assert found.logprobs == pytest.approx([-1.386, -0.288], abs=1e-3)
    with pytest.raises(InputError, match='"logprobs": has no number for the label B, only for A, C'):
        load(tmp_path / "mine.jsonl", json.dumps({**row, "labels": ["A", "B"], "logprobs": {"A": -0.5, "C": -1.5}}))


def test_decimals_with_a_comma_and_packed_tables(tmp_path: Path) -> None:
    scored = csv([{"id": 1, "answer": "A", "probs": "0,7|0,3"}, {"id": 2, "answer": "A", "probs": "0,5|0,5"}], sep=";")
    wide = csv([{"id": 1, "answer": "A", "LP_A": "-0,7", "LP_B": "-0,9"}], sep=";")
    for table in (scored, wide):
        with pytest.raises(InputError, match=r"mine\.csv, line 2, .* write decimals with a point"):
            load(tmp_path / "mine.csv", table)
    packed = load(tmp_path / "mine.csv.gz", gzip.compress(csv(BARS, sep=";").encode()))
    assert (answers(packed), packed.run.model) == (RIGHT, "mine")


def test_texts_that_are_labels_or_places_too(tmp_path: Path) -> None:
    """An answer 3 is a place, or the option 3: what other rows say decides, and where they cannot, nothing is read."""

    def read(*golds: str) -> list[list[int]]:
        rows = [{"id": i, "options": "3|5|1|17", "answer": gold, "chosen": "A"} for i, gold in enumerate(golds)]
        return [right for _, right, _ in answers(load(tmp_path / "mine.csv", csv(rows)))]

    assert read("0", "1", "2") == [[0], [1], [2]]
    assert read("17", "5") == [[3], [1]]
    for golds in (("3", "17"), ("3", "1")):
        with pytest.raises(InputError, match=r"line 2, .* '3' is D by label or place, and A by its text"):
            read(*golds)


@pytest.mark.parametrize("gold", ["standard_answer", "gold_letter", "groundtruth_answer", "expected_answer"])
@pytest.mark.parametrize("chosen", ["model_answer", "predicted_letter", "extracted_answer"])
@pytest.mark.parametrize("top", [{}, {"model": {"name": "m"}}, {"prompt": "Answer in one letter.", "model_name": "m"}])
def test_options_at_the_end_of_the_text_and_names_that_published_logs_use(
    tmp_path: Path, gold: str, chosen: str, top: dict[str, str]
) -> None:
    """As in GAOKAO-Bench's results: no column of options, letters in lists, and the prompt of the run at the top."""
    texts = ["Which is {}?\nA. {}  B. {} C. {}\nD. {}\n", "{}. It is（）\n（A）{}\n（B）{}\n（C）{}\n（D）{}"]
    rows = [
        {"question": texts[k % 2].format(k, *one["options"]), gold: ["ABCD"[one["answer"]]],
         chosen: ["ABCD"[one["chosen"]]], "raw_response": "...", "score": 1} for k, one in enumerate(ROWS)
    ]  # fmt: skip
    table = load(tmp_path / "model.json", json.dumps({**top, "example": rows}, ensure_ascii=False))
    assert table.run.model == top.get("model_name", "model")
    assert "Column score is not compared" in str(table.run)  # the points of a question, whatever was answered
    assert [(right, choice) for _, right, choice in answers(table)] == [(right, choice) for _, right, choice in RIGHT]
    rows[2]["question"] = "Which one?"
    with pytest.raises(InputError, match=r'item 3, field "labels": .* the text does not end with A\. \.\.\., B'):
        load(tmp_path / "model.json", json.dumps({**top, "example": rows}, ensure_ascii=False))


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (
            "question;answer;notes",
            r'"chosen": no column was found for it \(the model.s answer\) among answer, not',
        ),
        ("question;pred", r'"answer": no column was found for it \(the right option\) among pred, question'),
        ("answer;pred", r'"id": no column was found for it \(of questions\) among answer, pred'),
        ("id;answer;pred", r'line 2, field "labels": the number of options is not known'),
    ],
)
def test_what_a_table_lacks_is_named(tmp_path: Path, header: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load(tmp_path / "mine.csv", f"{header}\n" + ";".join(["A"] * len(header.split(";"))))


def test_a_mistyped_column_and_an_empty_file_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text(csv(BARS))
    ran = unslant("audit", "--log", path, "--fields", "answer=anwser")
    assert ran.code == 2
    assert "mine.csv, field \"answer\": column 'anwser' does not exist" in ran.err
    with pytest.raises(InputError, match=r"mine\.jsonl: the file is empty"):
        load(tmp_path / "mine.jsonl", " \n")


def test_an_index_column_does_not_make_judgements(tmp_path: Path) -> None:
    """A column without a name is no field of any format."""
    pair = {"question": "Which?", "response_A": "x", "response_B": "y", "decision": "A", "order": "AB"}
    pairs = [{**pair, "repeat": 1.0}]
    found = load(tmp_path / "pairs.csv", str(pd.DataFrame(pairs).to_csv()))
    assert found.run.study == "judge"
    capitals = csv([{key.upper(): value for key, value in pairs[0].items()}], sep=";")
    assert load(tmp_path / "capitals.csv", capitals).run.study == "judge"


def scores_of(path: Path, *scores: object) -> list[tuple[float, int, int | None]]:
    rows = [{**row, "score": score} for row, score in zip(BARS, scores, strict=False)]
    return [(one.value, one.n, one.parted) for one in load(path, csv(rows)).run.logged.reported]


def test_scores_that_are_parts_of_points_or_percentages(tmp_path: Path) -> None:
    """Parts are compared as a mean; of percentages, 0 would be read and 100 not, so that none is."""
    assert scores_of(tmp_path / "mine.csv", 0.5, 1, 0, 0.5) == [(0.5, 4, None)]
    assert scores_of(tmp_path / "mine.csv", 100, 0, 0, 100) == []
    assert scores_of(tmp_path / "mine.csv", "yes", "no") == [(0.5, 2, 1)]
    assert scores_of(tmp_path / "mine.csv", 1, "n/a!", 0) == []
    facts = load(tmp_path / "mine.csv", (tmp_path / "mine.csv").read_text("utf-8")).run.logged
    (note,) = (note for note in facts.notes if "not compared" in note)
    assert all(part in note for part in ("Column score", "mine.csv, line 3", "'n/a!'"))


def test_probabilities_that_are_all_0_are_not_an_answer(tmp_path: Path) -> None:
    """The first option counted as the answer where the table's own score was compared with the answers."""
    found = load(tmp_path / "mine.csv", "id,options,answer,probs,score\na,x|y,A,0|0,0\nb,x|y,B,0.2|0.8,1\n")
    assert [row.status for row in found.rows()] == ["error", "ok"]
    (reported,) = found.run.logged.reported
    assert (reported.ours, reported.parted, reported.failed) == (1, 0, 1)


@pytest.mark.parametrize("order", [[1, 0.5], [True, False]])
def test_a_place_is_a_whole_number(tmp_path: Path, order: list[object]) -> None:
    row = {"id": "a", "options": ["x", "y"], "answer": "A", "chosen": "B", "order": order}
    with pytest.raises(InputError, match=r'mine\.jsonl, line 1, field "order": .* does not name every option'):
        load(tmp_path / "mine.jsonl", json.dumps(row))


@pytest.mark.parametrize(
    "scores", [{"logprobs": [False, -2]}, {"logprobs": {"A": False, "B": -2}}, {"probs": [True, 0]}]
)
def test_true_and_false_are_not_scores(tmp_path: Path, scores: dict[str, Any]) -> None:
    """As log-probability, false was 0, and its option certain."""
    row = {"id": "a", "options": ["x", "y"], "answer": "A", **scores}
    with pytest.raises(InputError, match=r"mine\.jsonl, line 1, field \"\w+\": .* is not a list of numbers"):
        load(tmp_path / "mine.jsonl", json.dumps(row))


def test_more_equal_rows_than_a_table_can_number_are_refused_in_one_line() -> None:
    """They ended in "too large to fit in C integer type"."""
    row = {"id": "a", "question": "Which?", "options": ["x", "y"], "answer": "A", "chosen": "B"}
    with pytest.raises(InputError, match="item 32769: question 'a' is on more than 32,767 equal pages"):
        load_logs([[row] * 32_769])


def test_the_order_of_a_page_is_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a log of 300,000 pages it is a tenth of the time."""
    find, found = joining._Question.order, list[str]()
    monkeypatch.setattr(joining._Question, "order", lambda self, page: found.append(page.place) or find(self, page))
    row = {"id": "a", "question": "Which?", "options": ["x", "y"], "answer": "A", "chosen": "B"}
    rows = [row, row | {"options": ["y", "x"], "answer": "B"}, row | {"chosen": "A"}]
    (responses,) = load_logs([rows])
    assert len(found) == len(set(found)) == len(rows) == len(responses)


def test_forty_options(tmp_path: Path) -> None:
    """Labels after Z are numbers; a number that is not a text is a place."""
    options = [f"option {k}" for k in range(40)]
    labels = [*map(chr, range(ord("A"), ord("Z") + 1)), *map(str, range(1, 15))]
    for names in (labels, list(range(40)), options):
        rows = [{"id": i, "options": options, "answer": names[i], "chosen": names[39 - i]} for i in range(40)]
        found = load(tmp_path / "mine.jsonl", "\n".join(map(json.dumps, rows)))
        assert answers(found) == [(str(i), [i], 39 - i) for i in range(40)]


def test_replies_and_scores_of_other_shapes(tmp_path: Path) -> None:
    row = {"id": 0, "answer": "B", "options": ["x", "y"]}
    message = load(tmp_path / "mine.jsonl", json.dumps({**row, "response": {"role": "assistant", "content": "(B)"}}))
    assert [(one.raw, one.choice) for one in message.rows()] == [("(B)", 1)]
    assert message.rows()[0].question_id == "0"
    with pytest.raises(InputError, match='"response": is list, and not a text'):
        load(tmp_path / "mine.jsonl", json.dumps({**row, "response": [{"content": "(B)"}]}))
    top = load(tmp_path / "mine.jsonl", json.dumps({**row, "logprobs": {" B": -0.5, "The": -1.0, " A": -1.5}}))
    assert top.rows()[0].logprobs.tolist() == [-1.5, -0.5]
    for content in ("[]", "{}", "null"):
        with pytest.raises(InputError, match=r"mine\.json: holds no records"):
            load(tmp_path / "mine.json", content)


def test_of_two_options_with_one_text_the_right_one_is_found_in_every_order(tmp_path: Path) -> None:
    texts = ["687", "687", "1493", "1695"]
    orders = list(permutations(range(4)))
    rows = [
        {"question": "2396 - 1709?", "options": [texts[i] for i in order], "answer": order.index(1), "chosen": 0}
        for order in orders
    ]
    responses = load(tmp_path / "repeated.json", json.dumps(rows))
    assert len({row.answers for row in responses.rows()}) == 1
    assert [row[1] for row in answers(responses)] == [[order.index(1)] for order in orders]


def test_a_verdict_on_a_row_with_every_order_is_of_none_of_its_pages(tmp_path: Path) -> None:
    # right on average over the orders, and in one of the two
    row = {"id": "q", "options": ["x", "y"], "probs": [[0.9, 0.1], [0.6, 0.4]], "answer": 0, "correct": True}
    found = load(tmp_path / "log.jsonl", json.dumps(row), answer="answer")
    assert [row.choice in row.answers for row in found.rows()] == [True, False]
    assert found.run.logged is not None
    assert found.run.logged.reported == ()


def test_places_that_fit_counted_from_0_and_from_1(tmp_path: Path) -> None:
    # Where the last option is never right, nothing refuses places counted from 1, and every answer is another option.
    path = tmp_path / "pages.jsonl"

    def caveats(answer: list[Any], chosen: list[Any]) -> str:
        rows = [
            {**ROWS[i], "answer": one, "chosen": two} for i, (one, two) in enumerate(zip(answer, chosen, strict=True))
        ]
        facts = load(path, "".join(json.dumps(row) + "\n" for row in rows)).run.logged
        assert facts is not None
        return " ".join(facts.caveats)

    assert "Answers 1, 2, 3 of the table are read as places counted from 0" in caveats([1, 2, 3], [2, 2, 1])
    assert caveats([1, 2, 3], [0, 2, 1]) == caveats([1, 0, 3], [2, 2, 1]) == ""  # a 0 in one column shows it for both
    assert caveats(["B", "C", "D"], ["B", "B", "C"]) == ""
    rows = [{**ROWS[i], "answer": i + 1, "chosen": 1} for i in range(4)]
    with pytest.raises(
        InputError, match=r"line 4.*4 is neither.*where places count from 1, subtract 1, or write letters"
    ):
        load(path, "".join(json.dumps(row) + "\n" for row in rows))


def test_scores_that_are_no_probabilities_of_one_answer() -> None:
    # Logarithms to base 10 give the same answers, but a much flatter distribution: the margin was 0.25 for 0.60.
    def caveats(**scores: Callable[[float], float]) -> list[str]:
        ((key, score),) = scores.items()
        shares = [[0.7 if k == i % 4 else 0.1 for k in range(4)] for i in range(8)]
        rows = [{**row, key: [score(share) for share in of]} for row, of in zip(ROWS, shares, strict=True)]
        return audit(log=[{name: row[name] for name in row if name != "chosen"} for row in rows]).to_dict()["caveats"]

    assert caveats(logprobs=math.log) == caveats(probs=float) == caveats(probs=lambda share: share + 0.001) == []
    (caveat,) = caveats(logprobs=math.log10)
    assert caveat.startswith("In 8 of 8 responses the probabilities of the labels sum to more than 1 (up to 1.96)")
    assert "sum to more than 1 (up to 3)" in " ".join(caveats(probs=lambda share: 0.75))


@pytest.mark.parametrize(("empty", "scored"), [("", 8), ("  ", 8), (None, 4)])
def test_an_empty_choice_is_not_right_and_null_is_no_answer(empty: str | None, scored: int) -> None:
    # A harness that could not read a reply leaves the choice empty: without these, its score would be of the others.
    rows = [{**row, "chosen": empty if i >= 4 else row["chosen"]} for i, row in enumerate(ROWS)]
    metrics = audit(log=rows).to_dict()["metrics"]
    assert metrics["means"]["accuracy"]["n"] == scored
    assert metrics["means"]["accuracy"]["value"] == 3 / scored
    assert metrics["counts"]["failed_rows"] == 8 - scored


@pytest.mark.parametrize(("more", "scored"), [({}, 8), ({"error": "timeout"}, 4), ({"reply": None}, 4)])
def test_a_choice_that_the_table_counts_as_wrong_is_wrong_without_a_name(more: dict[str, Any], scored: int) -> None:
    rows = [{**row, "is_correct": row["chosen"] == row["answer"]} for row in ROWS]
    rows = [{**row, **({"chosen": None, "is_correct": False, **more} if i >= 4 else {})} for i, row in enumerate(rows)]
    metrics = audit(log=rows).to_dict()["metrics"]
    assert metrics["means"]["accuracy"]["n"] == scored
    assert metrics["counts"]["failed_rows"] == 8 - scored


@pytest.mark.parametrize("chosen", [["A", "B", "A"], [0, 1, 0], "A, B, A", ["w", "x", "w"], '["B", "B"]'])
def test_several_samples_in_one_list_are_refused(chosen: Any) -> None:
    rows = [{**row, "options": ["w", "x", "y", "z"], "chosen": chosen if i == 2 else "B"} for i, row in enumerate(ROWS)]
    with pytest.raises(InputError, match=r"names . twice.*write a row for each.*repeat"):
        audit(log=rows)


def test_an_empty_cell_of_csv_is_an_empty_text(tmp_path: Path) -> None:
    rows = [{**BARS[0], "chosen": 1.0}, {**BARS[1], "chosen": None}]
    assert [row.status for row in load(tmp_path / "mine.csv", csv(rows)).rows()] == ["ok", "unparsed"]
    three = [*rows, {**rows[1], "id": "q9"}]
    scored = [{**row, "score": score} for row, score in zip(three, (1, None, 0), strict=True)]
    assert [row.status for row in load(tmp_path / "own.csv", csv(scored)).rows()] == ["ok", "error", "unparsed"]
    parquet = io.BytesIO()
    pd.DataFrame(rows).to_parquet(parquet)
    assert [row.status for row in load(tmp_path / "mine.parquet", parquet.getvalue()).rows()] == ["ok", "error"]


@pytest.mark.parametrize(("error", "status"), [("timeout", "error"), ("", "unparsed"), ("False", "unparsed")])
@pytest.mark.parametrize("column", ["reply", "chosen"])
def test_an_empty_answer_next_to_an_error_is_no_answer(tmp_path: Path, column: str, error: str, status: str) -> None:
    # CSV cannot tell null from an empty text: a request that failed is not a wrong answer of the model.
    rows = [{"id": 1, "question": "?", "options": "x|y", "answer": "A", column: "A", "error": ""}]
    rows += [{**rows[0], "id": 2, column: "", "error": error}]
    found = load(tmp_path / "mine.csv", csv(rows)).rows()
    assert [row.status for row in found] == ["ok", status]
    assert found[1].raw == (error if status == "error" else found[1].raw)


def test_a_choice_of_both_of_two_options_is_one_that_names_several() -> None:
    rows = [
        {"id": f"q{i}", "question": f"{i}?", "options": ["x", "y"], "answer": i % 2, "chosen": i % 2} for i in range(9)
    ]
    metrics = audit(log=[*rows[:8], rows[8] | {"chosen": [1, 0]}]).to_dict()["metrics"]
    assert metrics["means"]["accuracy"]["value"] == 8 / 9
    with pytest.raises(InputError, match="is not a list of places"):
        audit(log=[*rows[:8], rows[8] | {"answer": [1, 0]}])


def test_an_empty_choice_beside_other_columns_is_no_answer() -> None:
    rows = [{**row, "chosen": "", "reply": "ABCD"[row["chosen"]]} for row in ROWS]
    assert audit(log=[rows[0] | {"reply": None}, *rows[1:]]).to_dict()["metrics"]["counts"]["failed_rows"] == 1
    scored = [{**row, "chosen": "", "probs": [0.4, 0.3, 0.2, 0.1]} for row in ROWS]
    assert audit(log=[scored[0] | {"probs": None}, *scored[1:]]).to_dict()["metrics"]["counts"]["failed_rows"] == 1


def test_upper_bounds_are_not_summed() -> None:
    labels = tuple("ABCDEFGHI")
    pages = [
        Logged(f"q{i}", labels, frozenset({i}), "here", question=f"{i}?", bounds=(5, 6, 7, 8),
               logprobs=np.log([0.3, 0.14, 0.13, 0.12, 0.11, 0.11, 0.11, 0.11, 0.11]))
        for i in range(9)
    ]  # fmt: skip
    table = joined([Log("m", "test", "labels", tuple(pages))]).table
    assert above_one(table).size == 0


def test_a_score_that_is_left_out_does_not_decide_what_an_empty_choice_is(tmp_path: Path) -> None:
    table = "id,answer,options,chosen,score\nq,B,x|y,A,0\nr,B,x|y,,\n"
    for fields, status in (({}, "error"), ({"score": ""}, "unparsed")):
        assert [row.status for row in load(tmp_path / "mine.csv", table, **fields).rows()] == ["ok", status]


def test_a_key_without_a_name_is_no_field() -> None:
    row = {"": "7", "id": "q", "answer": "B", "options": ["x", "y"], "chosen": "A"}
    (found,) = load_logs([[row]])
    assert [(one.subject, one.repeat, one.raw, one.status) for one in found.rows()] == [("", 0, None, "ok")]
    (found,) = load_logs([[row | {"chosen": None, "reply": None}]])
    assert [(one.raw, one.status) for one in found.rows()] == [(None, "error")]


def test_options_by_one_column_or_by_several(tmp_path: Path) -> None:
    """Columns A, B, ... are the options only where no other column is, or is named."""
    row = {"id": "q", "answer": "B", "chosen": "A", "A": "one", "B": "two"}

    def texts(row: Row, **fields: str) -> tuple[str, ...]:
        return load(tmp_path / "mine.csv", csv([row]), **fields).questions[0].options

    assert texts(row) == ("one", "two")
    assert texts(row | {"options": "x|y"}) == ("x", "y")
    assert not load(tmp_path / "mine.csv", csv([row | {"labels": "A|B"}]), options="").questions
    whole = load(tmp_path / "mine.csv", csv([row | {"of A, B": "0.5|0.5"}]), probs="of A, B", chosen="")
    assert whole.rows()[0].logprobs == pytest.approx(np.log([0.5, 0.5]))  # the name of one column
    found = load(tmp_path / "mine.csv", csv([row | {"p1": 0.5, "p2": 0.5, "p3": None}]), probs="p1,p2,p3", chosen="")
    assert found.rows()[0].logprobs == pytest.approx(np.log([0.5, 0.5]))


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"options": "[x, y"}, "is one text, .*; write a list in JSON, texts with . between them"),
        ({"labels": "[A, B"}, r"'\[A, B' is not a list: write JSON, or values with \| between them"),
        ({"order": 5}, 'field "order": 5 is not a list'),
        (
            {"order": [0, 2]},
            "does not name every option, 0 to 1, once; where options are listed as shown",
        ),
        ({"labels": ["A", "B", "C"]}, "3 labels for 2 options"),
        ({"logprobs": [-1.0, -2.0, -3.0]}, "holds 3 numbers for 2 options"),
        ({"logprobs": [-1.0, 0.5]}, "above 0, or not a number"),
        ({"probs": [0.5, 1.5]}, "holds a value that is not a probability, 0 to 1"),
        ({"probs": [[0.5, 0.5]]}, "holds 1 lists; 2, one for each order, can be read"),
        ({"chosen": None, "reply": ["A"]}, "is list, and not a text; name the column with the text"),
        (
            {"chosen": "C"},
            "'C' is neither one of the labels A, B, nor a place, counted from 0 to 1, nor an",
        ),
        (
            {"labels": ["1", "2"], "answer": 0},
            "neither one of the labels 1, 2, nor read as a place, since some of these are n",
        ),
        ({"answer": None}, 'field "answer": is missing'),
        ({"id": None}, 'field "id": is missing'),
        ({"answer": 2}, "where places count from 1, subtract 1, or write letters"),
        ({"repeat": "first"}, "'first' is not a sample number: 0, 1, ..."),
    ],
)
def test_a_value_of_another_shape_is_named(more: Row, reason: str) -> None:
    row = {"id": "q", "answer": "B", "options": ["x", "y"], "chosen": "A"}
    with pytest.raises(InputError, match=reason):
        load_logs([[row | more]])


FREE = {"question": "Name a metal.", "answer": "A", "chosen": "A"}
LISTED = {"question": "Which?", "options": ["Fenton", "Redhill"], "answer": 0, "chosen": 0}


@pytest.mark.parametrize("line", [b'{"id": "q1", "question": "Wha', b'{"id": "\xe9"}', b'{"id": "\\ud800"}', b"[]"])
def test_a_line_that_cannot_be_parsed_is_not_skipped_and_the_error_says_so(tmp_path: Path, line: bytes) -> None:
    """It may hold an answer, and leaving out answers changes the score."""
    (tmp_path / "log.jsonl").write_bytes(json.dumps({**LISTED, "id": 1}).encode() + b"\n" + line + b"\n")
    with pytest.raises(InputError, match="line 2") as plain:
        load_logs([tmp_path / "log.jsonl"])
    with pytest.raises(InputError) as skipping:
        load_logs([tmp_path / "log.jsonl"], skip_bad=True)
    assert str(skipping.value) == f"{plain.value}; skip_bad leaves out only rows whose question cannot be read"


@pytest.mark.parametrize(
    "row", [{"a": 1}, {"id": "1", "options": ["p", "q"], "answer": 0}, {**LISTED, "id": 1, "x": "A"}]
)
def test_what_is_no_fault_of_a_row_says_nothing_of_skipping(row: Row) -> None:
    """A format that is not known, and columns that are missing."""
    with pytest.raises(InputError) as error:
        load_logs([[row]], {"chosen": "none"} if "x" in row else {}, skip_bad=True)
    assert "skip" not in str(error.value)


def test_rows_whose_question_cannot_be_read_are_left_out_on_request(tmp_path: Path) -> None:
    """Some tables of texts also hold questions to be answered freely."""
    free = {"id": "free", "question": "Name a metal.", "answer": "A", "chosen": "A"}
    listed = [
        {
            "id": f"q{i}",
            "question": f"Which is {i}?\nA. Fenton\nB. Redhill\nC. Langdale",
            "answer": "B",
            "chosen": "AB"[i % 2],
        }
        for i in range(4)
    ]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in (*listed, free, free)), encoding="utf-8")
    with pytest.raises(InputError, match=r"line 5, field \"labels\": .*; fix it, or skip such rows with skip_bad=True"):
        load_logs([path])
    (table,) = load_logs([path], skip_bad=True)
    assert {row.question_id for row in table.rows()} == {"q0", "q1", "q2", "q3"}
    (caveat,) = (one for one in table.run.logged.caveats if "left out" in one)
    assert caveat.startswith("Rows left out because their question cannot be read: 2; the first: ")
    assert "line 5" in caveat
    result = unslant("audit", "--log", path, "--skip-bad", "--json", tmp_path / "out.json")
    assert result.out.startswith("Rows left out because their question cannot be read: 2; the first:")
    assert json.loads((tmp_path / "out.json").read_text())["metrics"]["means"]["accuracy"]["n"] == 4


def test_rows_whose_answer_cannot_be_read_are_never_left_out(tmp_path: Path) -> None:
    """Without them the score would be too high."""
    rows = [{"id": f"q{i}", "options": ["Fenton", "Redhill"], "answer": "B", "chosen": "B"} for i in range(4)]
    with pytest.raises(InputError, match="'N/A' is neither one of the labels"):
        load_logs([[*rows, {**rows[0], "id": "q4", "chosen": "N/A"}]], skip_bad=True)
    with pytest.raises(InputError, match=r"log: no question of its rows \(4\) can be read; the first: list, item 1, "):
        load_logs([[{**row, "answer": "Langdale"} for row in rows]], skip_bad=True)


def test_rows_left_out_are_counted_for_each_model_and_none_vanishes(tmp_path: Path) -> None:
    rows = [{**LISTED, "id": 1, "model": model} for model in ("one", "two")] + [{**FREE, "id": 2, "model": "one"}]
    one, two = load_logs([rows], skip_bad=True)
    assert "left out because their question cannot be read: 1; the first: list, item 3" in one.run.logged.caveats[0]
    assert two.run.logged.caveats == ()
    with pytest.raises(InputError, match=r"three: no question of its rows \(1\) can be read; the first: list, item 4"):
        load_logs([[*rows, {**FREE, "id": 3, "model": "three"}]], skip_bad=True)


@pytest.mark.parametrize(
    "wrong",
    [{"labels": ["A", "A"]}, {"order": [0, 0]}, {"id": None}, {"answer": 5}],
)
def test_every_fault_of_a_question_can_be_skipped(wrong: Row) -> None:
    rows = [{**LISTED, "id": i} for i in range(3)]
    rows[1] |= wrong
    with pytest.raises(InputError, match=r"item 2.*; fix it, or skip such rows with skip_bad=True"):
        load_logs([rows])
    (table,) = load_logs([rows], skip_bad=True)
    assert {row.question_id for row in table.rows()} == {"0", "2"}


@pytest.mark.parametrize("wrong", [{"chosen": 5}, {"logprobs": [0.5, -1.0]}])
def test_no_fault_of_an_answer_can_be_skipped(wrong: Row) -> None:
    rows = [{**LISTED, "id": i} for i in range(3)]
    rows[1] |= wrong
    with pytest.raises(InputError) as error:
        load_logs([rows], skip_bad=True)
    assert "item 2" in str(error.value)
    assert str(error.value).endswith("skip_bad leaves out only rows whose question cannot be read")


def test_debiased_answers_say_what_was_left_out_of_a_log_and_how_it_was_read() -> None:
    rows = [{**LISTED, "id": i, "options": ["p", "q", "r"], "answer": 1, "chosen": i % 2 + 1} for i in range(4)]
    notes = debias(log=[*rows, {**FREE, "id": 4}], method="none", skip_bad=True).notes
    assert [note for note in notes if note.startswith("Rows left out because their question cannot be read: 1;")]
    assert [note for note in notes if note.startswith("Answers 1, 2 of the table are read as places counted from 0")]


def test_pages_with_the_same_labels_share_them() -> None:
    """Of 100 labels on every page, their texts take most of the memory."""
    rows = [{"id": f"q{i}", "labels": ["10", "11"], "answer": "10", "logprobs": [-0.1, -2.5]} for i in range(3)]
    (log,) = read_log(Head.of_table([json.loads(json.dumps(row)) for row in rows], "log"))
    assert isinstance(log, Log)
    assert [page.labels for page in log.pages] == [("10", "11")] * 3
    assert all(page.labels is log.pages[0].labels for page in log.pages)
