from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

from training.words import KINDS, embedded_questions
from unslant.errors import InputError
from unslant.questions import load_questions
from unslant.studies.instruction_boundary.question_sources import BoundarySet, build, load_boundary

pytestmark = pytest.mark.thorough


@pytest.fixture(scope="module")
def paths(shared_data):
    """Local files for all eight sources; ProofWriter stands in for FLD, the authors' file for MultiRC."""
    return {
        "fld": shared_data / "proofwriter_dev.jsonl",
        "folio": shared_data / "folio_validation.jsonl",
        "scienceqa": shared_data / "scienceqa_text_sample.jsonl",
        "mmlu": shared_data / "mmlu_test.jsonl.gz",
        "truthfulqa": shared_data / "truthfulqa_mc1.jsonl",
        "commonsenseqa": shared_data / "commonsenseqa_dev.jsonl",
        "multirc": shared_data / "instruction_boundary_mcq.jsonl",
        "mmlu-pro": shared_data / "mmlu_pro_sample.jsonl",
    }


@pytest.fixture(scope="module")
def built(paths):
    return build(paths, scale=0.2)


def forms(questions):
    return Counter(min(len(q.answers), 2) for q in questions)


def test_counts_are_those_of_the_paper_at_scale(built):
    assert forms(built.choice) == {1: 180, 0: 180, 2: 180}
    assert Counter(q.source for q in built.choice if len(q.answers) == 1) == {
        "scienceqa": 60,
        "mmlu": 60,
        "truthfulqa": 60,
    }
    assert Counter(q.verdict for q in built.judging) == {"True": 62, "False": 62, "Unknown": 124}
    assert len(built.disturbing) == 180
    assert all(len(q.options) == 10 and len(q.answers) == 1 for q in built.disturbing)


def test_full_size_of_a_source_that_has_enough(paths):
    full = build(paths, only=["commonsenseqa", "truthfulqa"])
    assert forms(full.choice) == {0: 900, 1: 300}


def test_the_layout_betrays_no_form(built):
    for form, shares in built.layout_shares().items():
        assert shares["numbered options"] == shares["sentence numbers"] == 0
        assert shares["4 options"] == 1
        if form == "single":
            assert 0.15 < shares["first option right"] < 0.35  # the authors' file: 0.40


def test_the_right_option_is_the_one_taken_away(paths, built):
    by_id = {}
    for line in paths["commonsenseqa"].read_text("utf-8").splitlines():
        row = json.loads(line)
        by_id["commonsenseqa/" + row["id"]] = row
    checked = 0
    for question in built.choice:
        if question.source == "commonsenseqa":
            row = by_id[question.id]
            right = row["options"][row["answer"]]
            assert sorted([*question.options, right]) == sorted(row["options"])
            checked += 1
    assert checked == 180


def test_the_same_seed_draws_the_same_and_a_smaller_draw_is_part_of_a_larger(paths):
    only = ["truthfulqa", "commonsenseqa", "folio"]
    large = build(paths, scale=0.2, only=only)
    small = build(paths, scale=0.1, only=only)
    assert build(paths, scale=0.1, only=only) == small
    assert {q.id for q in small.choice} < {q.id for q in large.choice}
    assert {q.id for q in build(paths, scale=0.1, only=only, seed=7).choice} != {q.id for q in small.choice}


def test_published_layout(paths):
    published = build(paths, scale=0.05, layout="published", only=["truthfulqa", "commonsenseqa", "multirc"])
    for question in published.choice:
        numbered = [option.startswith(f"{i}. ") for i, option in enumerate(question.options)]
        assert all(numbered) == (len(question.answers) < 2)


def test_written_and_read_back(built, tmp_path):
    for name in ("set.jsonl", "set.jsonl.gz"):
        built.write(tmp_path / name)
        back = load_boundary(tmp_path / name)
        assert (back.choice, back.judging, back.disturbing) == (built.choice, built.judging, built.disturbing)
        assert back.digest == built.digest


def test_the_authors_files(shared_data):
    mcq = load_boundary(shared_data / "instruction_boundary_mcq.jsonl")
    assert forms(mcq.choice) == {1: 600, 0: 600, 2: 600}
    assert not any(o.startswith(f"{i}. ") for q in mcq.choice for i, o in enumerate(q.options))
    assert mcq.layout_shares()["single"]["first option right"] < 0.3
    as_is = BoundarySet(load_questions(shared_data / "instruction_boundary_mcq.jsonl", strip_numbering=False).questions)
    assert as_is.layout_shares()["single"]["numbered options"] == 1
    assert as_is.layout_shares()["single"]["first option right"] > 0.39
    tfu = load_boundary(shared_data / "instruction_boundary_tfu.jsonl")
    assert len(tfu.choice) == 338
    assert not any("Options:" in q.context or q.context.startswith("Background") for q in tfu.choice)


AUTHORS = [
    {
        "passage_id": "News/a.txt",
        "passage_text": "Sent 1: Tom purrs.Sent 2: Rex barks.",
        "question": "Who makes a sound?",
        "options": ["Tom", "Ann", "Rex", "Bob"],
        "correct_answers": [0, 2],
        "correct_options": ["Tom", "Rex"],
        "num_options": 4,
        "num_correct": 2,
        "dataset_source": "multirc",
        "question_type": "multiple_choice",
        "id": "multirc_News/a.txt",
    },
    {
        "passage_text": "Sent 1: Tom purrs.Sent 2: Rex barks.",
        "question": "Who is a cat?",
        "options": ["Tom", "Ann", "Rex", "the cat Tom"],
        "correct_answers": [0, 3],
        "dataset_source": "multirc",
        "question_type": "multiple_choice",
        "id": "multirc_News/a.txt",
    },
    {
        "question": "What purrs?",
        "options": ["0. milk", "1. stones", "2. either A or B", "3. none of the above"],
        "correct_answers": [],
        "dataset_source": "commonsenseqa",
        "question_type": "no_correct_answer",
        "original_correct_answer": "cats",
    },
    {
        "id": "scienceqa_1",
        "question": "Select the solid.",
        "options": ["0. air", "1. water", "2. juice", "3. rabbit"],
        "correct_answers": [3],
        "dataset_source": "scienceqa",
        "question_type": "single_choice",
        "subject": "natural science",
        "original_id": "1",
    },
]
"""Records of ``MCQs_2700.json`` in small: no or the same ids, numbering from 0, names of its own."""


def statements(records):
    """The same as ``choice_tfu_format_dataset.json`` has them."""
    for record in records:
        listed = "\n".join(f"{i}. {option}" for i, option in enumerate(record["options"]))
        passage = f"Background: {record['passage_text']}\n" if "passage_text" in record else ""
        yield {
            "Conclusion": record["question"],
            "Facts": f"{passage}Options:\n{listed}",
            "proof_label": "__PROVED__" if record["correct_answers"] else "__UNKNOWN__",
            "dataset_source": record["dataset_source"],
            "correct_answers": record["correct_answers"],
            "options": record["options"],
            "original_id": record.get("id", "x"),
        }


@pytest.mark.parametrize("form", [list, statements])
@pytest.mark.parametrize("suffix", [".json", ".jsonl", ".jsonl.gz"])
def test_the_authors_files_as_published(tmp_path, form, suffix):
    records = list(form(AUTHORS))
    text = json.dumps(records, indent=2) if suffix == ".json" else "".join(json.dumps(r) + "\n" for r in records)
    path = tmp_path / f"MCQs_2700{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    loaded = load_boundary(path)
    assert len({q.id for q in loaded.choice}) == 4
    assert [q.stem for q in loaded.choice] == [r["question"] for r in AUTHORS]
    for question, record in zip(loaded.choice, AUTHORS, strict=True):
        texts = [option.removeprefix(f"{i}. ") for i, option in enumerate(record["options"])]
        assert sorted(question.options) == sorted(texts)
        assert {question.options[i] for i in question.answers} == {texts[i] for i in record["correct_answers"]}
        assert question.context == ("Tom purrs. Rex barks." if "passage_text" in record else "")
        assert question.source == record["dataset_source"]
    assert loaded.choice[2].options == ("milk", "stones", "either A or B", "none of the above")
    assert loaded.choice[2].pinned == (0, 1, 2, 3)
    as_is = load_questions(path, strip_numbering=False)
    assert [list(q.options) for q in as_is] == [r["options"] for r in AUTHORS]
    assert [q.answers for q in load_questions(path)] == [frozenset(r["correct_answers"]) for r in AUTHORS]


def test_a_file_of_statements_alone(tmp_path):
    path = tmp_path / "fld.jsonl"
    path.write_text(json.dumps({"Conclusion": "Tom purrs.", "Facts": "Tom is here.", "proof_label": "__UNKNOWN__"}))
    (only,) = load_boundary(path).judging
    assert (only.statement, only.context, only.verdict) == ("Tom purrs.", "Tom is here.", "Unknown")


def test_columns_can_be_named(tmp_path):
    path = tmp_path / "fragen.jsonl"
    path.write_text(json.dumps({"Frage": "Wer?", "Wahl": ["a", "b"], "richtig": [1]}) + "\n")
    with pytest.raises(InputError, match=r"name it: fields=..question.: .COLUMN.."):
        load_boundary(path)
    names = {"question": "Frage", "options": "Wahl", "answer": "richtig"}
    (only,) = load_boundary(path, fields=names).choice
    assert (only.stem, sorted(only.options), [only.options[i] for i in only.answers]) == ("Wer?", ["a", "b"], ["b"])
    told = tmp_path / "saetze.jsonl"
    told.write_text(json.dumps({"Satz": "Tom purrs.", "Urteil": "True"}) + "\n")
    (only,) = load_boundary(told, fields={"statement": "Satz", "verdict": "Urteil"}).judging
    assert (only.statement, only.verdict) == ("Tom purrs.", "True")
    load_boundary("embedded").write(tmp_path / "own.jsonl")
    with pytest.raises(InputError, match="leave out the mapping"):
        load_boundary(tmp_path / "own.jsonl", fields=names)


def test_a_source_may_have_columns_of_its_own(paths, tmp_path):
    rows = [json.loads(line) for line in paths["truthfulqa"].read_text("utf-8").splitlines()]
    path = tmp_path / "renamed.jsonl"
    path.write_text(
        "".join(
            json.dumps({"id": r["id"], "F": r["question"], "O": r["options"], "A": r["answer"]}) + "\n" for r in rows
        )
    )
    names = {"truthfulqa": {"question": "F", "options": "O", "answer": "A"}}
    renamed = build({"truthfulqa": path}, only=["truthfulqa"], scale=0.1, fields=names)
    plain = build({"truthfulqa": paths["truthfulqa"]}, only=["truthfulqa"], scale=0.1)
    assert [q.options for q in renamed.choice] == [q.options for q in plain.choice]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"correct_answers": None}, 'item 2, field "answer": is missing'),
        ({"correct_answers": [7]}, "7 is out of range: 4 options"),
        ({"options": ["one"]}, "1 given, 2 to 100 are allowed"),
        ({"question": " "}, 'item 2, field "question": is missing or empty'),
    ],
)
def test_a_broken_record_of_the_authors_is_named(tmp_path, change, message):
    path = tmp_path / "MCQs_2700.json"
    path.write_text(json.dumps([AUTHORS[0], {**AUTHORS[1], **change}, *AUTHORS[2:]]))
    with pytest.raises(InputError, match=message):
        load_boundary(path)


def test_pinned_options_keep_their_place_in_both_layouts(shared_data):
    path = shared_data / "instruction_boundary_mcq.jsonl"
    given = {q.id: q for q in load_questions(path)}
    pinned = [q for q in load_boundary(path).choice if q.pinned]
    assert len(pinned) == 9
    for question in pinned:
        assert question.pinned == given[question.id].pinned
        assert all(question.options[i] == given[question.id].options[i] for i in question.pinned)
    assert any(q.options != given[q.id].options for q in load_boundary(path).choice)


def test_balanced_draws_half_dense(built):
    half = built.balanced(100)
    assert forms(half.choice) == {1: 50, 0: 25, 2: 25}
    assert Counter(q.verdict for q in half.judging) == {"True": 25, "False": 25, "Unknown": 50}
    assert len(half.disturbing) == 100
    whole = built.balanced()
    assert forms(whole.choice) == {1: 180, 0: 90, 2: 90}
    assert {q.id for q in half.choice} < {q.id for q in whole.choice}


def test_too_few_questions_say_how_many_there_are(paths):
    with pytest.raises(InputError, match=r"fld .*150 fitting questions that are True are wanted, 100 were found"):
        build(paths, only=["fld"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"only": ["mmlu2"]}, "unknown source 'mmlu2'"),
        ({"paths": {"x": "y"}}, "unknown source 'x'"),
        ({"layout": "flat"}, "use level or published"),
        ({"scale": 0}, "scale=0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(InputError, match=message):
        build(**arguments)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"part": "x", "id": "1"}', 'field "part"'),
        ('{"part": "choice", "id": "1", "question": "?", "options": ["a"], "answer": 0}', "2 to 100"),
        ('{"part": "judging", "id": "1", "statement": "?", "verdict": "Perhaps"}', "not one of True"),
        ('{"part": "choice", "id": "1"}', "not a question"),
    ],
)
def test_a_broken_file_names_the_line(tmp_path, line, message):
    path = tmp_path / "set.jsonl"
    good = '{"part": "judging", "id": "0", "statement": "?", "verdict": "True"}'
    path.write_text(f"{good}\n{line}\n", "utf-8")
    with pytest.raises(InputError, match="line 2.*" + message):
        load_boundary(path)


def test_the_embedded_set_is_what_the_reference_world_makes():
    embedded = load_boundary("embedded")
    assert [*embedded.choice, *embedded.judging, *embedded.disturbing] == embedded_questions()
    assert len(embedded.balanced().choice) == len(embedded.choice) == 120
    assert isinstance(embedded, BoundarySet)


def test_embedded_questions_have_the_answers_their_words_have():
    kind_of = {word: kind for kind, words in KINDS.items() for word in words}
    embedded = load_boundary("embedded")
    for question in (*embedded.choice, *embedded.disturbing):
        kind = question.stem.removeprefix("Which word names ").removesuffix("?")
        assert {i for i, option in enumerate(question.options) if kind_of[option] == kind} == question.answers
    for judged in embedded.judging:
        word = judged.context.removesuffix(".").rsplit(" ", 1)[1]
        kind = judged.statement.removesuffix(".").split(" names ")[1]
        expected = "Unknown" if word == "hidden" else str(kind_of[word] == kind)
        assert judged.verdict == expected
