"""Ways to damage a file: its bytes, and the values inside it."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import zipfile
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Rng = random.Random


class Raw(str):
    """A piece of JSON that no value stands for: huge numbers, deep nesting."""


def text_damage(rng: Rng) -> str:
    """A text that has broken something before, or might."""
    if rng.random() < 0.2:
        return rng.choice(("\ud800", "x\udfffy", "9" * 5000, "A) " * 5000, "\0"))
    return rng.choice(
        (
            "", " ", "\n", "\0", "a\0b", "\ufeff", "\ud800", "x\udfffy", "\u2028", "\u202e", "\x1b[31m", "é" * 300,
            "A) " * 5000, "(a) " * 3000, "1. " * 4000, "both a and " * 900, "a and b, " * 900, "all of the above " * 99,
            "[" * 5000, "(" * 3000, "[[[[1,2],", "[1, 2", "-" * 4000, "[" + "-" * 3000 + "1]", "{" * 999, "[1e999]",
            "9" * 5000, "-" + "9" * 5000, "option " + "9" * 5000, "0" * 5000, "1e400", "NaN", "-inf", "٣", "²", "Ⅷ",
            "[" + "9" * 5000 + "]", '["\\ud800", "b"]', "(1, {2})", "b'x'", "1_000", "0x10", "True", "null", "None",
            "=1+1", "=HYPERLINK(1)", "+cmd", "@x", "\t=1", "\\input{x}", "</script>", "<|im_end|>", "</s>", "{{ 1 }}",
            "####", "#### ", "####\ud800", "a" * 70_000, "\n" * 5000, "x\r\ny", '"', '""', '"a', ",", ";", "A,B;C|D",
            "A" * 30, "z", "Z)", "(B", "E", "-1", "4", "26", "0.0", "1.0", "1.5", "1e0", "+1", "'", "%s", "{0}",
        )
    )  # fmt: skip


def value_damage(rng: Rng, depth: int = 0) -> Any:
    """A value of any JSON type, often one that nobody expects."""
    kind = rng.randrange(12)
    if kind < 4:
        return text_damage(rng)
    if kind == 4:
        return rng.choice((0, 1, -1, 3, 4, 26, 27, 2**31, 2**63, -(2**63), 2**64, 10**39, 10**41, 10**400))
    if kind == 5:
        return rng.choice((0.0, 1.0, -0.0, 0.5, 1e300, -1e300, 5e-324, float("nan"), float("inf"), float("-inf")))
    if kind == 6:
        return rng.choice((True, False, None))
    if kind == 7:
        return Raw(rng.choice(("9" * 5000, "-" + "9" * 4301, "[" * 2000 + "]" * 2000, '{"a":' * 900 + "1" + "}" * 900)))
    if kind == 8:
        return Raw("[" * 60_000 + "]" * 60_000)
    if depth > 2 or kind == 9:
        return rng.choice(([], {}, [None], [[]], {"": None}, [{}, {}], {"text": []}, {"text": ["a"], "label": [[]]}))
    if kind == 10:
        return [value_damage(rng, depth + 1) for _ in range(rng.choice((1, 2, 3, 4, 30)))]
    keys = (
        "text",
        "label",
        "labels",
        "choices",
        "id",
        "idx",
        "questions",
        "question",
        "answers",
        "isAnswer",
        "a",
        "\ud800",
    )
    return {rng.choice(keys): value_damage(rng, depth + 1) for _ in range(rng.randrange(1, 4))}


def damage_records(rng: Rng, records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Copies of the records with one to four things wrong: values, keys, records."""
    made: list[Any] = json.loads(json.dumps(records))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        number = rng.randrange(len(made))
        record = made[number]
        if not isinstance(record, dict) or not record:
            continue
        key = rng.choice(list(record))
        kind = rng.randrange(9)
        if kind < 4:
            record[key] = value_damage(rng)
        elif kind == 4:
            _inside(rng, record, key)
        elif kind == 5:
            del record[key]
        elif kind == 6:
            record[rng.choice((*record, "image", "pinned", "labels", "", "\ud800", "a.b", "A", "part"))] = record.pop(
                key
            )
        elif kind == 7:
            made[number] = value_damage(rng)
        else:  # the same thing wrong everywhere
            value = value_damage(rng)
            for other in made:
                if isinstance(other, dict):
                    other[key] = value
    if rng.random() < 0.05:
        made = made * rng.choice((2, 30))
    return made


def _inside(rng: Rng, record: dict[str, Any], key: str) -> None:
    """Damage an item of a list or an object, or its length."""
    value = record[key]
    if isinstance(value, list) and value:
        place = rng.randrange(len(value))
        if rng.random() < 0.5:
            value[place] = value_damage(rng)
        elif rng.random() < 0.5:
            del value[place]
        else:
            value.extend(value * rng.choice((1, 10)))
    elif isinstance(value, dict) and value:
        value[rng.choice(list(value))] = value_damage(rng)
    else:
        record[key] = [value, value_damage(rng)]


def to_json(value: Any) -> str:
    """JSON with what Python's writer refuses to write."""
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)}: {to_json(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(to_json, value)) + "]"
    return json.dumps(value)


def to_csv(records: list[Any], delimiter: str) -> str:
    """Cells as a careless program would write them."""
    columns = list(dict.fromkeys(key for record in records if isinstance(record, dict) for key in record))
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    for record in records:
        cells = [record.get(key, "") for key in columns] if isinstance(record, dict) else [record]
        writer.writerow([cell if isinstance(cell, str) else to_json(cell) for cell in cells])
    return stream.getvalue()


def to_xlsx(records: list[Any]) -> bytes:
    """A workbook with the cells of :func:`to_csv`, without the characters that none can hold."""
    from openpyxl import Workbook
    from openpyxl.cell.cell import ILLEGAL_CHARACTERS_RE

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Sheet")
    csv.field_size_limit(1 << 30)
    for row in csv.reader(io.StringIO(to_csv(records, ","), newline="")):
        sheet.append([ILLEGAL_CHARACTERS_RE.sub("", cell.encode("utf-8", "replace").decode())[:32_000] for cell in row])
    stream = io.BytesIO()
    book.save(stream)
    return stream.getvalue()


def damage_zip(rng: Rng, content: bytes) -> bytes:
    """The zip with one member damaged, or swollen to gigabytes."""
    stream, packed = io.BytesIO(), zipfile.ZIP_DEFLATED
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(stream, "w", packed, compresslevel=1) as new:
        chosen = rng.choice(old.namelist())
        for name in old.namelist():
            with new.open(name, "w") as member:
                if name == chosen and rng.random() < 0.005:
                    for _ in range(3 << 9):
                        member.write(_MEGABYTE)
                else:
                    member.write(damage_bytes(rng, old.read(name)) if name == chosen else old.read(name))
    return stream.getvalue()


_MEGABYTE = b" " * (1 << 20)


def to_parquet(rng: Rng, records: list[Any]) -> bytes:
    """A table of the records, in whatever types they go into, some columns of types that have no JSON."""
    rows = [record for record in records if isinstance(record, dict)] or [{}]
    columns = list(dict.fromkeys(key for row in rows for key in row))
    arrays = {}
    for name in columns:
        try:
            if rng.random() < 0.1:
                arrays[_clean(name)] = odd_array(rng, len(rows))
            else:
                arrays[_clean(name)] = pa.array([_arrow(row.get(name)) for row in rows])
        except (pa.ArrowException, OverflowError, TypeError, ValueError):
            arrays[_clean(name)] = odd_array(rng, len(rows))
    return parquet_bytes(rng, pa.table(arrays))


def parquet_bytes(rng: Rng, table: pa.Table) -> bytes:
    stream = io.BytesIO()
    try:
        pq.write_table(table, stream, compression=rng.choice(("none", "zstd", "snappy", "gzip")))
    except (pa.ArrowException, ValueError):  # a type that Parquet does not have
        return parquet_bytes(rng, table.select([]))
    return stream.getvalue()


def _clean(name: str) -> str:
    return name.encode("utf-8", "replace").decode()


def _arrow(value: Any) -> Any:
    if isinstance(value, Raw):
        return str(value)
    if isinstance(value, str):
        return _clean(value)
    if isinstance(value, list):
        return [_arrow(item) for item in value]
    return {_clean(key): _arrow(item) for key, item in value.items()} if isinstance(value, dict) else value


def odd_array(rng: Rng, n: int) -> pa.Array:
    """A column of a type that questions do not have, or of text that is no UTF-8."""
    days = [rng.choice((0, 10**6, -(10**6), 2**31 - 1, -(2**31))) for _ in range(n)]
    kinds: tuple[Callable[[], pa.Array], ...] = (
        lambda: pa.array(days, pa.int32()).cast(pa.date32()),
        lambda: pa.array([d * 10**9 for d in days], pa.int64()).cast(pa.timestamp(rng.choice(("s", "ms", "us", "ns")))),
        lambda: pa.array([d * 10**9 for d in days], pa.int64()).cast(pa.timestamp("s", "Nowhere/Else")),
        lambda: pa.array(days, pa.int64()).cast(pa.duration("s")),
        lambda: pa.array([10**9] * n, pa.int64()).cast(pa.time64("ns")),
        lambda: pa.array(days).cast(pa.decimal256(60, 20)),
        lambda: pa.array([b"\xff\xfe", b"abc", b""][: n % 3 + 1] * n, pa.binary())[:n],
        lambda: _bad_text(n),
        lambda: pa.array(["a", "b"] * n).dictionary_encode()[:n],
        lambda: pa.nulls(n),
        lambda: pa.array([[("k", 1)]] * n, pa.map_(pa.string(), pa.int64())),
        lambda: pa.array([[[[["a"]]]]] * n),
        lambda: pa.array([2**64 - 1] * n, pa.uint64()),
        lambda: pa.array([float("nan")] * n),
        lambda: pa.array([[0, 1]] * n),
        lambda: pa.array([True] * n),
        lambda: pa.array([{"bytes": b"\xff", "path": None}] * n),
    )
    return rng.choice(kinds)()


def _bad_text(n: int) -> pa.Array:
    text = b"ok\xff\xfe\xed\xa0\x80"
    offsets = pa.array([i * len(text) for i in range(n + 1)], pa.int32()).buffers()[1]
    return pa.Array.from_buffers(pa.string(), n, [None, offsets, pa.py_buffer(text * n)])


def damage_bytes(rng: Rng, content: bytes) -> bytes:
    """The bytes with one to three things wrong."""
    for _ in range(rng.choice((1, 1, 2, 3))):
        content = _damaged_once(rng, content)
    return content


def _damaged_once(rng: Rng, content: bytes) -> bytes:
    size = len(content)
    at, to = sorted((rng.randrange(size + 1), rng.randrange(size + 1)))
    to = min(to, at + rng.choice((1, 8, 64, 4096)))
    kind = rng.randrange(14)
    if kind < 5 and size:  # flipped bits
        flipped = bytearray(content)
        for _ in range(rng.choice((1, 1, 2, 8, 64))):
            flipped[rng.randrange(size)] ^= 1 << rng.randrange(8)
        return bytes(flipped)
    if kind == 5:
        return content[:at]
    if kind == 6:
        return content[:at] + content[to:]
    if kind == 7:
        return content[:at] + content[at:to] * rng.choice((2, 50)) + content[to:]
    if kind == 8:
        return content[:at] + rng.randbytes(to - at) + content[to:]
    if kind == 9:
        junk = (
            b"\0",
            b"\xff",
            b"\n",
            b"\r",
            b'"',
            b"[" * 9999,
            b"{" * 9999,
            b"\xed\xa0\x80",
            b"9" * 5000,
            b"\xef\xbb\xbf",
        )
        return content[:at] + rng.choice(junk) + content[at:]
    if kind == 10:
        return rng.choice(
            (b"", b"\n\n \n", b"\xef\xbb\xbf", b"\0" * 99, b"null", b"[]", b"{}", b'""', b"0", b"PAR1", b"PAR1PAR1")
        )
    if kind == 11:
        return content.decode("utf-8", "replace").encode(
            rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "utf-7"))
        )
    if kind == 12:
        return content.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\xe2\x80\xa8", b"")))
    return content + content[at:to]


def damage_gzip(rng: Rng, content: bytes) -> bytes:
    """The content packed, sometimes as a bomb, sometimes with damaged bytes."""
    if rng.random() < 0.005:
        content = rng.choice((b"{}\n", b"[{}]\n", b"{},", b"1,2\n", b" ", b"[", b"PAR1")) * 40_000_000
        return gzip.compress(content, 1)
    packed = gzip.compress(content, 1)
    return damage_bytes(rng, packed) if rng.random() < 0.3 else packed
