"""Questions travel with their responses, and nothing needs them to."""

from __future__ import annotations

import base64
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.fakes import RuleModel
from unslant import Question
from unslant.auditing.result import AuditResult
from unslant.auditing.study import audit
from unslant.responses import SCHEMA, Responses, pack
from unslant.responses.checks import unpack

texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=20)


@st.composite
def questions(draw: st.DrawFn) -> Question:
    options = tuple(draw(st.lists(texts, min_size=2, max_size=6)))
    indices = st.integers(0, len(options) - 1)
    answers = draw(st.frozensets(indices, max_size=3))
    pinned = tuple(sorted(draw(st.frozensets(indices, max_size=2))))
    return Question(draw(texts), draw(texts), options, answers, draw(texts), draw(texts), draw(texts), pinned)


@given(st.lists(questions(), max_size=4))
def test_packed_questions_come_back_as_they_were(found: list[Question]) -> None:
    packed = pack(found)
    assert unpack(packed) == tuple(found)
    assert packed.isascii()
    assert pack(found) == packed


def test_packed_questions_that_are_cut_short_or_too_long_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = pack([Question("q", "Which?", ("x", "y"), frozenset({0}))] * 50)
    short = base64.b64encode(base64.b64decode(packed)[:-8])
    with pytest.raises(ValueError, match="cut short, or too long"):
        unpack(short)
    monkeypatch.setattr("unslant.responses.checks.MAX_BYTES", 100)
    with pytest.raises(ValueError, match="cut short, or too long"):
        unpack(packed)


def test_an_audit_keeps_its_questions_in_the_file_and_is_read_without_them(tmp_path: Path) -> None:
    asked = [Question(f"q{i}", "Which?\n<b>line</b>", ("x", "y", "z"), frozenset({i % 3})) for i in range(4)]
    result = audit(RuleModel(lambda stem, labels, texts: [3.0, 2.0, 1.0]), asked)
    path = tmp_path / "r.parquet"
    result.to_parquet(path)
    assert AuditResult.from_parquet(path).responses.questions == tuple(asked)
    table = pq.read_table(path)
    assert table.column_names == SCHEMA.names
    bare = {
        key: value
        for key, value in table.schema.metadata.items()
        if key not in (b"unslant.questions", b"unslant.digest")
    }
    pq.write_table(table.replace_schema_metadata(bare), path)
    assert Responses.from_parquet(path).questions == ()
    without, whole = AuditResult.from_parquet(path).to_dict(), result.to_dict()
    assert (without.pop("shortcuts"), bool(whole.pop("shortcuts"))) == ([], True)  # these are seen in the texts
    assert without == whole
