"""The number that a reply to an open maths question gives."""

from __future__ import annotations

from unslant.replies import read_open

OPEN = [
    ("They eat 25 * 6 kilos. Answer: 150", "150", ("ok", {0})),
    ("Answer: **$1,080**.", "1080", ("ok", {0})),
    ("So the answer is 3.50 dollars, not 4.", "3.5", ("ok", {0})),
    (r"Thus \boxed{18}", "18", ("ok", {0})),
    ("First 12, then 18", "18", ("ok", {0})),
    ("#### 17", "18", ("ok", {1})),
    ("-3", "-3", ("ok", {0})),
    ("I do not know.", "18", ("unparsed", None)),
    ("", "18", ("unparsed", None)),
    ("I'm sorry, but I can't help with that.", "18", ("refused", None)),
    ("I cannot assist with this request.", "18", ("refused", None)),
    ("9" * 1_000_000, "9", ("unparsed", None)),
    ("1/0", "1", ("unparsed", None)),
]


def test_open_answers_are_read():
    readings = {reply[:60]: read_open(reply, answer) for reply, answer, _ in OPEN}
    assert readings == {reply[:60]: (status, chosen) for reply, _, (status, chosen) in OPEN}
