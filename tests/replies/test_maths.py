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
    ("60% of the students dance hip-hop.", "60", ("ok", {0})),
    ("The answer is 60 %.", "60", ("ok", {0})),
    ("So 50% of it.", "0.5", ("ok", {0})),
    ("60%", "61", ("ok", {1})),
    ("It costs $.75", "0.75", ("ok", {0})),
    ("The answer is 1.5e3.", "1500", ("ok", {0})),
    ("Answer: 5 million people", "5000000", ("ok", {0})),
    ("Answer: 5 Million", "5", ("ok", {0})),
    ("He walks 3 1/2 miles.", "3.5", ("ok", {0})),
    ("He walks 3 1/2 miles.", "0.5", ("ok", {1})),
    ("2^3 = 8", "8", ("ok", {0})),
    ("They meet in June 2e", "2", ("ok", {0})),
    ("I do not know.", "18", ("unparsed", None)),
    ("", "18", ("unparsed", None)),
    ("I'm sorry, but I can't help with that.", "18", ("refused", None)),
    ("I cannot assist with this request.", "18", ("refused", None)),
    ("9" * 1_000_000, "9", ("unparsed", None)),
    ("1/0", "1", ("unparsed", None)),
    ("Answer: 2 × 10^3", "2000", ("ok", {0})),
    (r"Answer: $2 \times 10^{3}$", "2000", ("ok", {0})),
    ("Answer: 10^3", "1000", ("ok", {0})),
    ("5 × 10^2 = 500", "500", ("ok", {0})),
    (r"\boxed{1{,}234}", "1234", ("ok", {0})),
    (r"\boxed{1,\!234}", "1234", ("ok", {0})),
    ("Die Antwort ist 3,5.", "3.5", ("ok", {0})),
    ("Ответ: 1.234.567", "1234567", ("ok", {0})),
    ("1,00,000 rupees", "100000", ("ok", {0})),
    ("Answer: 1,234.5", "1234.5", ("ok", {0})),
    ("Answer: 1½", "1.5", ("ok", {0})),
    ("The answer is 41. Wait, no, it is 42.", "42", ("ok", {0})),
    ("The answer is 41. Wait, no: 40 + 2 = 42", "42", ("ok", {0})),
    ("Answer: 42. Sorry for the long way there!", "42", ("ok", {0})),
    ("<think>Answer: 40, perhaps?</think>42", "42", ("ok", {0})),
    ("<think>It is 42", "42", ("unparsed", None)),
]


def test_open_answers_are_read():
    readings = {(reply[:60], answer): read_open(reply, answer) for reply, answer, _ in OPEN}
    assert readings == {(reply[:60], answer): (status, chosen) for reply, answer, (status, chosen) in OPEN}
