"""Workbooks and packed files that stand for far more than they hold are refused before the work."""

from __future__ import annotations

import gzip
import zipfile
from pathlib import Path

import pytest

pytest.importorskip("openpyxl")
from unslant import InputError, load_questions

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
HEADER = ("question", "A", "B", "answer")


def row(number: int, *texts: str) -> str:
    cells = (f'<c r="{"ABCD"[i]}{number}" t="inlineStr"><is><t>{text}</t></is></c>' for i, text in enumerate(texts))
    return f'<row r="{number}">{"".join(cells)}</row>'


def workbook(path: Path, rows: str, *, strings: str = "", sheets: int = 1, before: str = "") -> Path:
    kind = "application/vnd.openxmlformats-officedocument.spreadsheetml."
    parts = {"workbook": "sheet.main", "worksheets/sheet1": "worksheet", "sharedStrings": "sharedStrings"}
    types = "".join(f'<Override PartName="/xl/{name}.xml" ContentType="{kind}{t}+xml"/>' for name, t in parts.items())
    names = "".join(f'<sheet name="S{i}" sheetId="{i}" r:id="rId1"/>' for i in range(1, sheets + 1))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" '
            f'ContentType="application/vnd.openxmlformats-package.relationships+xml"/>{types}</Types>',
        )
        archive.writestr("_rels/.rels", _relations(("officeDocument", "xl/workbook.xml")))
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{MAIN}" xmlns:r="{RELATION}"><sheets>{names}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            _relations(("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml")),
        )
        archive.writestr("xl/sharedStrings.xml", f'<sst xmlns="{MAIN}">{strings}</sst>')
        archive.writestr(
            "xl/worksheets/sheet1.xml",
            f'{before}<worksheet xmlns="{MAIN}"><sheetData>{row(1, *HEADER)}{rows}</sheetData></worksheet>',
        )
    return path


def _relations(*targets: tuple[str, str]) -> str:
    found = (
        f'<Relationship Id="rId{i}" Type="{RELATION}/{kind}" Target="{target}"/>'
        for i, (kind, target) in enumerate(targets, 1)
    )
    return f'<Relationships xmlns="{PACKAGE}/relationships">{"".join(found)}</Relationships>'


def test_a_workbook_made_by_hand_is_read(tmp_path: Path) -> None:
    assert load_questions(workbook(tmp_path / "q.xlsx", row(2, "q", "x", "y", "B")))[0].answers == {1}


SHARED = "".join(f'<row r="{i}"><c r="A{i}" t="s"><v>0</v></c></row>' for i in range(2, 3000))
ENTITIES = "<!DOCTYPE x [" + '<!ENTITY a "aaaaaaaaaa">' + "".join(
    f'<!ENTITY {chr(98 + i)} "{f"&{chr(97 + i)};" * 10}">' for i in range(9)) + "]>"  # fmt: skip


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        ({"rows": row(10**9, "x")}, "a sheet has 1,048,576 at most"),
        ({"rows": "<row/>" * 1_000_000}, "unpacks to more"),
        ({"rows": "<row>" + "<c/>" * 1_200_000 + "</row>"}, "unpacks to more"),
        ({"rows": "", "strings": "<si><t/></si>" * 400_000}, "unpacks to more"),
        ({"rows": SHARED, "strings": f"<si><t>{'a' * 1_000_000}</t></si>"}, "its cells hold more"),
        ({"rows": "<row/>" * 300_000, "sheets": 1000}, "too many sheets"),
        ({"rows": row(2, "&j;"), "before": ENTITIES}, "not an Excel workbook"),
    ],
    ids=["a far row", "rows", "cells", "strings", "one long string in many cells", "one sheet many times", "entities"],
)
@pytest.mark.timeout(120)
def test_workbooks_that_stand_for_too_much(tmp_path: Path, made: dict[str, object], reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        load_questions(workbook(tmp_path / "q.xlsx", **made))  # type: ignore[arg-type]


def test_a_packed_file_of_blanks(tmp_path: Path) -> None:
    path = tmp_path / "q.jsonl.gz"
    path.write_bytes(gzip.compress(b" " * (64 << 20)))
    with pytest.raises(InputError, match="unpacks to more than"):
        load_questions(path)


@pytest.mark.parametrize("tag", ['<c r="A1" ', "<mergeCell "])
def test_a_sheet_of_tags_without_an_end(tmp_path: Path, tag: str) -> None:
    """Each tag was searched to the end of the file: 8,000 took seconds, and these would take hours."""
    with pytest.raises(InputError, match=r"not an Excel workbook that can be read"):
        load_questions(workbook(tmp_path / "set.xlsx", row(1, *HEADER) + tag * 250_000))
