"""Layouts of public data sets and of files that teachers export: question, options, right answer, passage, subject."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from datasets import ClassLabel, Dataset, Features, Sequence, Value

from unslant.errors import InputError
from unslant.questions import Question, load_questions

ASKED: list[tuple[str, list[str], int]] = [
    ("Which of these is a fruit?", ["hammer", "apple", "chair", "cloud"], 1),
    ("Which of these is a metal?", ["iron", "wool", "milk", "paper"], 0),
    ("Which of these is a drink?", ["stone", "sand", "tea", "brick"], 2),
    ("Which of these can fly?", ["spoon", "table", "lamp", "sparrow"], 3),
]
EXPECTED = [(stem, tuple(options), {right}) for stem, options, right in ASKED]


def read(questions: Any) -> list[tuple[str, tuple[str, ...], frozenset[int]]]:
    return [(question.stem, question.options, question.answers) for question in load_questions(questions)]


def only(record: dict[str, Any]) -> Question:
    (question,) = load_questions([record])
    return question


def lettered(options: list[str], form: str = "({}){}", between: str = " ") -> str:
    return between.join(form.format(letter, option) for letter, option in zip("ABCD", options, strict=True))


@pytest.mark.parametrize("asking", ["A: Among A through D, the answer is", "答案：从A到D, 我们应选择", "Answer:"])
def test_options_before_the_words_that_ask_for_the_answer_are_cut_too(asking: str) -> None:
    """AGIEval repeats its options so in every query; there they would keep their order and letters."""
    rows = [
        {"query": f"{stem} Answer Choices: {lettered(options)}\n{asking}", "choices": options, "gold": [right]}
        for stem, options, right in ASKED
    ]
    assert read(rows) == EXPECTED


@pytest.mark.parametrize("form", ["{}. {}", "{}) {}", "({}) {}", "- {1}", "* {1}"])
@pytest.mark.parametrize("after", ["", "Think before you answer.", "Which of the four is it?"])
def test_options_repeated_anywhere_in_the_question_are_cut_and_the_rest_stays(form: str, after: str) -> None:
    names = {letter: str(number) for number, letter in enumerate("ABCD", 1)}
    for rename in ({}, names):
        rows = []
        for stem, options, right in ASKED:
            listed = [
                form.format(rename.get(letter, letter), option) for letter, option in zip("ABCD", options, strict=True)
            ]
            text = "\n".join([f"{stem}\n", *listed, f"\n{after}"])
            rows.append({"question": text, "options": options, "answer": right})
        assert read(rows) == [(f"{stem}\n{after}".strip(), options, right) for stem, options, right in EXPECTED]


@pytest.mark.parametrize(
    "text",
    [
        "Is it an apple, a chair, a cloud or a hammer?",  # in no order, without marks
        "A) hammer B) apple C) chair",  # not all
        "A) hammer B) apple C) chair D) cloudy skies",  # others
        "What is a hammer - apple - chair - cloud",  # bullets that are not on lines
    ],
)
def test_options_that_are_part_of_the_question_stay(text: str) -> None:
    assert only({"question": text, "options": ASKED[0][1], "answer": 1}).stem == text


def test_a_question_of_a_million_spaces_is_searched_at_once() -> None:
    gap = " " * 1_000_000
    for text in (
        f"Which? A.{gap}hammer B.{gap}apple chair cloud",
        f"Which?\n{gap}\n-{gap}hammer{gap}apple chair cloud",
    ):
        assert only({"question": text, "options": ASKED[0][1], "answer": 1}).stem == text


def test_two_numbers_after_signs_or_letters_are_not_options() -> None:
    for text in ("What is 5 - 3 - 2", "What is a + b where a: 3, b: 2"):
        assert only({"question": text, "options": ["3", "2"], "answer": 1}).stem == text


def test_two_options_labelled_0_and_1_are_not_marked_so() -> None:
    """The answer 0 was overruled by the label 1 of the other option."""
    options = [{"label": 0, "text": "blood"}, {"label": 1, "text": "sky"}]
    assert only({"question": "Which is red?", "options": options, "answer": 0}).answers == {0}
    asked = {"question": "Which is red?"}
    assert only(asked | {"options": {"text": ["blood", "sky"], "label": [0, 1]}, "answerKey": "0"}).answers == {0}
    assert only(asked | {"options": options[::-1], "answer": "blood"}).answers == {1}
    assert only(asked | {"options": options}).answers == {1}
    marked = [{"correct": False, "text": "sky"}, {"correct": True, "text": "blood"}]
    assert only(asked | {"options": marked}).answers == {1}
    assert only(asked | {"options": marked, "answer": "Since it has iron."}).answers == {1}


def test_letters_in_objects_are_labels_and_not_texts() -> None:
    rows = [
        {"question": stem, "options": [{"value": v, "label": o} for v, o in zip("ABCD", options, strict=True)]}
        | {"answer": "ABCD"[right]}
        for stem, options, right in ASKED
    ]
    assert read(rows) == EXPECTED
    numbers = [{"label": letter, "text": str(number)} for number, letter in enumerate("ABC", 1)]
    assert only({"question": "What is 1 + 1?", "options": numbers, "answer": "B"}).options == ("1", "2", "3")


@pytest.mark.parametrize("right", ["answer", "correct_answer", "Best Answer"])
@pytest.mark.parametrize("wrong", ["distractors", "Incorrect Answers", "distractor{}"])
def test_wrong_options_apart_from_the_right_one(right: str, wrong: str) -> None:
    rows: list[dict[str, Any]] = []
    for stem, options, place in ASKED:
        others = [option for i, option in enumerate(options) if i != place]
        texts = {wrong.format(i): option for i, option in enumerate(others, 1)}
        listed = "; ".join(others) if "Best" in right else others
        rows.append({"question": stem, right: options[place]} | (texts if "{}" in wrong else {wrong: listed}))
    for (stem, options, place), question in zip(ASKED, load_questions(rows), strict=True):
        assert (question.stem, {*question.options}) == (stem, {*options})
        assert [question.options[i] for i in question.answers] == [options[place]]


@pytest.mark.parametrize("marks", [(1, 0), (1.0, 0.0), (True, False), (1, -1), (100, 0), (0.5, 0)])
def test_scores_of_options_are_marks_where_all_right_ones_have_the_same(marks: tuple[float, float]) -> None:
    scored = [[marks[i != right] for i in range(4)] for _, _, right in ASKED]
    rows = [
        {"input": stem, "target_scores": dict(zip(options, values, strict=True))}
        for (stem, options, _), values in zip(ASKED, scored, strict=True)
    ]
    assert read(rows) == EXPECTED
    rows = [
        {"question": stem, "answers": [{"text": o, "points": v} for o, v in zip(options, values, strict=True)]}
        for (stem, options, _), values in zip(ASKED, scored, strict=True)
    ]
    assert read(rows) == EXPECTED


def test_scores_of_several_sizes_are_refused() -> None:
    """Read as texts of options, they would be asked."""
    record = {"input": "Which is red?", "target_scores": {"blood": 0.7, "rust": 0.2, "sky": 0.1}, "target": "blood"}
    for column in ("target_scores", "options"):
        with pytest.raises(InputError, match=r'field "options": scores options 0\.7, 0\.2, 0\.1; give right ones 1'):
            load_questions([record | {"target_scores": None, column: record["target_scores"]}])


def test_numbers_under_letters_are_options() -> None:
    question = only({"question": "What is 2 - 2?", "options": {"A": 1, "B": 0}, "answer": "B"})
    assert (question.options, question.answers) == (("1", "0"), {1})
    question = only({"question": "What is 2 + 2?", "options": {"option_a": 5, "option_b": 4}, "answer": "option_b"})
    assert (question.options, question.answers) == (("5", "4"), {1})


def test_options_of_the_hubs_big_bench() -> None:
    rows = [
        {"idx": i, "inputs": stem, "targets": [options[right]], "multiple_choice_targets": options}
        for i, (stem, options, right) in enumerate(ASKED)
    ]
    assert read(rows) == EXPECTED


def test_padding_is_not_an_option() -> None:
    rows = [{"question": stem, "options": [*options, *["N/A"] * 6], "answer": right} for stem, options, right in ASKED]
    assert read(rows) == EXPECTED
    assert load_questions(rows).report.notes == ("'N/A' in the place of missing options is left out: 4",)
    for options in (["a", "b", "N/A"], ["N/A", "b", "N/A"]):
        assert only({"question": "Which?", "options": options, "answer": 1}).options == tuple(options)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("hint", "The table lists four things."),
        ("support", "The table lists four things."),
        ("CONTEXTS", ["The table lists", "four things."]),
        ("context", {"contexts": ["The table lists", "four things."], "labels": ["AIM", "RESULTS"]}),
        ("dialogue", [{"speaker": "Ann", "text": "What is here?"}, {"speaker": "Bob", "text": "Four things."}]),
    ],
)
def test_a_passage_is_read_from_its_column(column: str, value: object) -> None:
    (stem, options, right) = ASKED[0]
    context = only({"question": stem, "options": options, "answer": right, column: value}).context
    assert context.replace("\n", " ") in (
        "The table lists four things.",
        "Ann: What is here? Bob: Four things.",
    )


def test_percentages_of_a_workbook_are_read_as_it_shows_them(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    for row in (["question", "A", "B", "C", "answer"], ["What is a tenth?", 0.1, 0.055, 5, 0.1]):
        sheet.append(row)
    for column, form in ((2, "0%"), (3, "0.00%"), (5, "0%")):
        sheet.cell(2, column).number_format = form
    book.save(tmp_path / "set.xlsx")
    assert read(tmp_path / "set.xlsx") == [("What is a tenth?", ("10%", "5.50%", "5"), {0})]


HEAD = ["question", "A", "B", "C", "answer"]


def workbook(path: Path, *rows: list[Any]) -> Path:
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(path)
    return path


def test_raised_and_lowered_signs_of_a_workbook_are_read_as_it_shows_them(tmp_path: Path) -> None:
    """In silence, 10 to the power of 23 was 1023, and log2 8 was log28."""
    plain = workbook(tmp_path / "plain.xlsx", HEAD, ["How many?", "1st", "2nd", "3rd", "A"])
    parts = {"1st": ("10", "super", "-", "3"), "2nd": ("log", "sub", "2", " "), "3rd": ("x", "super", "ab", "")}
    parts["How many?"] = "Which is the 5", "super", "t", "h"
    one = '<r><rPr>{}<vertAlign val="{}script"/></rPr><t xml:space="preserve">{}</t></r>'
    runs = f"<si><r><t>{{0}}</t></r>{one.format('', '{1}', '{2}')}{one.format('<b/>', '{1}', '{3}')}</si>"
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    shared = f'<sst xmlns="{main}">{"".join(runs.format(*part) for part in parts.values())}</sst>'
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sharedStrings+xml"
    override = f'<Override PartName="/xl/sharedStrings.xml" ContentType="{kind}"/></Types>'
    with zipfile.ZipFile(plain) as source, zipfile.ZipFile(tmp_path / "fonts.xlsx", "w") as target:
        for name in source.namelist():  # Excel keeps texts in a part of their own, unlike openpyxl
            content = source.read(name).decode().replace("</Types>", override)
            for i, cell in enumerate(parts):
                content = content.replace(f't="inlineStr"><is><t>{cell}</t></is>', f't="s"><v>{i}</v>')
            target.writestr(name, content)
        target.writestr("xl/sharedStrings.xml", shared)
    assert read(tmp_path / "fonts.xlsx") == [("Which is the 5th", ("10^-3", "log_2 ", "x^ab"), {0})]


def test_a_large_number_of_a_workbook_has_no_digits_that_the_sheet_has_not(tmp_path: Path) -> None:
    rows = [HEAD, ["Avogadro's number?", 6.022e23, 3e8, 1.5, "A"]]
    assert load_questions(workbook(tmp_path / "q.xlsx", *rows))[0].options == ("6.022e+23", "300000000", "1.5")


@pytest.mark.parametrize(
    "head",
    [
        [["question", "options", None, None, "answer"]],
        [["question", "options", None, None, "answer"], [None, "A", "B", "C", None]],
        [["question", "A", "B", None, "answer"]],
        [["question", "answer", "A", "B", None]],
        [["question", "A", "B", "answer", None]],
        [["question", "answer", "options", None, None]],
    ],
)
def test_values_under_no_name_of_a_column_are_not_dropped(head: list[list[Any]], tmp_path: Path) -> None:
    """In silence, the option in a column without a name was left out."""
    book = workbook(tmp_path / "q.xlsx", *head, ["Fruit?", "A", "apple", "pear", "A"])
    text = "\n".join(",".join(cell or "" for cell in row) for row in [*head, ["Fruit?", "A", "apple", "pear", "A"]])
    (tmp_path / "q.csv").write_text(text + "\n")
    for path in (book, tmp_path / "q.csv"):
        with pytest.raises(InputError, match=r"(row|line) 2: '.*' is in a column without a name; write the names"):
            load_questions(path)


def test_remarks_after_the_last_column_are_not_read(tmp_path: Path) -> None:
    """Files with such remarks, for which no column has a name, were refused."""
    rows = [HEAD, ["Fruit?", "stone", "apple", "pear", "B", None, "ask Kim"], ["Sum?", "1", "2", "3", "A", "too easy?"]]
    assert read(workbook(tmp_path / "q.xlsx", *rows)) == [
        ("Fruit?", ("stone", "apple", "pear"), {1}),
        ("Sum?", ("1", "2", "3"), {0}),
    ]
    with pytest.raises(InputError, match="'apple' is in a column without a name"):
        read(workbook(tmp_path / "q.xlsx", HEAD, ["Fruit?", "stone", "apple", "pear", "pear", "apple"]))


@pytest.mark.parametrize("number", ["1", "1.", "Q1", "#1", "(1)"])
def test_the_numbers_of_questions_without_a_header_are_not_the_questions(number: str, tmp_path: Path) -> None:
    """In silence, "1" was the question, and its text the first option."""
    (tmp_path / "q.csv").write_text(f"{number},Fruit?,stone,apple,pear,B\n")
    with pytest.raises(InputError, match="no header was found"):
        load_questions(tmp_path / "q.csv")


@pytest.mark.parametrize("name", ["set.jsonl.zst", "set.csv.bz2"])
def test_other_packed_files_are_to_be_unpacked(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"packed")
    with pytest.raises(InputError, match="unpack it first"):
        load_questions(tmp_path / name)


def test_names_of_id_and_subject() -> None:
    (stem, options, right) = ASKED[0]
    made = only({"Record ID": "r1", "Question": stem, "options": options, "answer": right, "Subdomain": "Food"})
    assert (made.id, made.subject) == ("r1", "Food")


def test_lists_by_subject() -> None:
    rows = [{"id": i % 2, "question": q, "options": o, "answer": right} for i, (q, o, right) in enumerate(ASKED)]
    questions = load_questions({"food": rows[:2], "things that fly": rows[2:]})
    assert [(one.stem, one.options, one.answers) for one in questions] == EXPECTED
    assert [one.subject for one in questions] == ["food"] * 2 + ["things that fly"] * 2
    assert [one.id for one in questions] == ["food/0", "food/1", "things that fly/0", "things that fly/1"]
    for part in ("test", "validation", "dev_set", "few_shot", "examples", "Train"):
        with pytest.raises(InputError, match=r"holds several lists of records, 'food', .*: give only one of them"):
            load_questions({"food": rows[:2], part: rows[2:]})
    with pytest.raises(InputError, match="several lists of records"):
        load_questions({"food": rows[:2], "passages": [{"name": "Ann", "text": "Ann lives in Rome."}]})


@pytest.mark.parametrize(
    ("answers", "options"),
    [
        ([True, False, True], ("Yes", "No")),
        (["yes", "no", "no"], ("yes", "no")),
        (["Maybe", "Yes", "No"], ("Yes", "No", "Maybe")),
        (["TRUE", "TRUE", "TRUE"], ("TRUE", "FALSE")),
        (["valid", "invalid", "valid"], ("valid", "invalid")),
        (["False", "Uncertain", "True"], ("True", "False", "Uncertain")),
    ],
)
def test_answers_yes_and_no_are_the_options_where_there_are_none(answers: list[Any], options: tuple[str, ...]) -> None:
    rows = [{"question": f"is the sky blue {i}", "passage": "Of skies.", "answer": a} for i, a in enumerate(answers)]
    questions = load_questions(rows)
    assert {one.options for one in questions} == {options}
    said = [{True: "Yes", False: "No"}.get(answer, answer) for answer in answers]
    assert [[one.options[i] for i in one.answers] for one in questions] == [[text] for text in said]
    assert {one.context for one in questions} == {"Of skies."}
    assert questions.report.notes == (f"The file has no options; its answers are taken for them: {', '.join(options)}",)


@pytest.mark.parametrize("row", [{"answer": "perhaps"}, {"answer": 1}, {"response": "Rome", "correct": True}])
def test_other_answers_without_options_are_refused(row: dict[str, Any]) -> None:
    with pytest.raises(InputError, match='field "options": no column was found'):
        load_questions([{"question": "Is it?"} | row])


def test_questions_about_one_passage_may_have_its_id() -> None:
    """As in RACE on the Hub; the same question twice, or one id for two passages, is a mistake."""
    rows = [
        {"example_id": f"high{i // 2}.txt", "article": f"Article {i // 2}.", "question": stem, "options": options}
        | {"answer": "ABCD"[right]}
        for i, (stem, options, right) in enumerate(ASKED)
    ]
    assert read(rows) == EXPECTED
    assert [one.id for one in load_questions(rows)] == ["high0.txt", "high0.txt#2", "high1.txt", "high1.txt#2"]
    for wrong in ([*rows, rows[0]], [*rows, rows[0] | {"article": "Another."}], [rows[0] | {"article": ""}] * 2):
        with pytest.raises(InputError, match=r"field \"id\": 'high0.txt' was used before"):
            load_questions(wrong)


def test_options_true_and_false() -> None:
    assert only({"question": "Is it?", "options": [True, False], "answer": False}).answers == {1}


@pytest.mark.parametrize("names", [["wrong", "right"], ["correct", "incorrect"], ["True", "False"]])
def test_classes_within_lists_are_read_by_their_names(names: list[str], tmp_path: Path) -> None:
    """By their numbers, names in another order turned every right option into a wrong one."""
    kind = ClassLabel(names=names)
    yes, no = (
        next(i for i, name in enumerate(names) if (name in ("right", "correct", "True")) is it) for it in (True, False)
    )
    rows = [
        {"question": stem, "choices": {"text": options, "label": [yes if i == right else no for i in range(4)]}}
        for stem, options, right in ASKED
    ]
    texts = Sequence(Value("string"))
    columns = Features({"question": Value("string"), "choices": {"text": texts, "label": Sequence(kind)}})
    table = Dataset.from_list(rows, features=columns)
    table.to_parquet(str(tmp_path / "set.parquet"))
    for source in (table, tmp_path / "set.parquet"):
        assert read(source) == EXPECTED
    nested = Features({"question": Value("string"), "options": [{"text": Value("string"), "label": kind}]})
    rows = [
        {"question": stem, "options": [{"text": o, "label": yes if i == right else no} for i, o in enumerate(options)]}
        for stem, options, right in ASKED
    ]
    assert read(Dataset.from_list(rows, features=nested)) == EXPECTED
    letters = Features({"question": Value("string"), "choices": texts, "answer": Sequence(ClassLabel(names=[*"DCBA"]))})
    rows = [{"question": stem, "choices": options, "answer": ["ABCD"[right]]} for stem, options, right in ASKED]
    assert read(Dataset.from_list(rows, features=letters)) == EXPECTED


def test_columns_that_are_said_to_be_optional_are_options_too() -> None:
    names = ["Answer 1", "Answer 2", "Answer 3 (Optional)", "Answer 4 (optional)"]
    rows = [{"Question": stem, **dict(zip(names, o, strict=True)), "Correct": o[right]} for stem, o, right in ASKED]
    assert read(rows) == EXPECTED
    row = {"Question": "Which is red?", "Correct Answer": "blood", "Incorrect Answer 1": "sky"}
    assert {*only(row | {"Incorrect Answer 2 (Optional)": "grass"}).options} == {"blood", "sky", "grass"}


def test_empty_texts_under_the_last_letters_are_no_options() -> None:
    row = {"question": "Which is red?", "answer": "C"}
    for option, texts in (
        ({"A": "sky", "B": "", "C": "blood", "D": "", "E": ""}, ("sky", "", "blood")),
        ({"A": "sky", "B": "grass", "C": "blood", "D": None}, ("sky", "grass", "blood")),
    ):
        question = only(row | {"option": option})
        assert question.options == texts
        assert question.answers == {2}


@pytest.mark.parametrize("answers", ["B", ["B"], [1], ["4"]])
def test_answers_are_the_right_ones_where_another_column_has_the_options(answers: Any) -> None:
    (question,) = load_questions([{"question": "2 + 2?", "options": ["3", "4"], "answers": answers}])
    assert question.answers == {1}
    (other,) = load_questions([{"question": "2 + 2?", "answers": ["3", "4"], "answer": "B"}])
    assert (other.options, other.answers) == (("3", "4"), {1})


@pytest.mark.parametrize(
    ("named", "key"),
    [("option_{}", str), ("Option {}", str), ("Choice{}", lambda number: chr(64 + number))],
)
def test_columns_of_more_than_nine_options_are_in_order(named: str, key: Any) -> None:
    columns = {named.format(key(number)): f"answer {number}" for number in (*range(10, 13), *range(1, 10))}
    columns = {name.lower() if text == "answer 2" else name: text for name, text in columns.items()}
    question = only({"question": "Which?", **columns, "answer": "answer 11"})
    assert question.options == tuple(f"answer {number}" for number in range(1, 13))
    assert question.answers == {10}
