"""The comparison of readers of replies."""

from __future__ import annotations

from collections import Counter

from benchmarks.extraction import OUTCOMES, compared, main, outcome, readers

ROW = {"file": "made", "kind": "choice", "labels_shown": list("ABCD"), "options": ["ant", "bee", "cat", "dog"]}
REPLIES = [
    {**ROW, "reply": "Answer: B", "status": "ok", "labels": ["B"]},
    {**ROW, "reply": "The answer is (C).", "status": "ok", "labels": ["C"]},
    {**ROW, "reply": "It cannot be known.", "status": "unparsed", "labels": []},
    {**ROW, "reply": "No option is right.", "status": "none", "labels": []},
    {**ROW, "reply": "A or B", "status": "unparsed", "labels": [], "doubtful": True},
]


def test_every_reader_reads_every_clear_reply_once():
    counts = compared(REPLIES)
    assert {name for _, name in counts} == set(readers())
    assert all(one.total() == 4 for one in counts.values())
    assert counts["made, choice", "unslant"] == Counter(equal=4)
    simple = counts["made, choice", "simple-evals (pattern)"]
    assert (simple["equal"], simple["another"], simple["unread"]) == (2, 0, 2)


def test_outcomes_tell_wrong_answers_from_invented_and_missing_ones():
    one, none = REPLIES[0], REPLIES[2]
    reads = [(one, frozenset("B")), (one, frozenset("A")), (none, frozenset("A")), (one, None)]
    assert tuple(outcome(row, read) for row, read in reads) == OUTCOMES


def test_the_table_is_printed_and_written(tmp_path, capsys):
    import json

    (tmp_path / "made.jsonl").write_text("".join(json.dumps(row) + "\n" for row in REPLIES))
    main([str(tmp_path / "made.jsonl"), "--out", str(tmp_path / "table.md")])
    assert "| all | unslant | 4 | 4 | 0 | 0 | 0 |" in capsys.readouterr().out
    assert "| all | unslant | 4 | 4 |" in (tmp_path / "table.md").read_text("utf-8")
