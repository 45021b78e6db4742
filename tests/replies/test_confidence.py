"""The confidence that replies state."""

from __future__ import annotations

from unslant.replies import stated_confidence

STATED = [
    ("Answer: B\nConfidence: 80%", 0.8),
    ("Confidence: 0.8", 0.8),
    ("confidence: 8/10", 0.8),
    ("Confidence (0-100): 85", 0.85),
    ("**Confidence:** 85 %", 0.85),
    ('{"answer": "B", "confidence": 0.95}', 0.95),
    ("I am 90% sure that it is B.", 0.9),
    ("I'm about 70 percent certain.", 0.7),
    ("Confidence: 1", 1.0),
    ("Confidence: 100", 1.0),
    ("Confidence: 8 out of 10", 0.8),
    ("First I thought A, confidence 40%. No: B.\nConfidence: 75%", 0.75),
    ("Confidence [0-1]: 0.8", 0.8),
    ("Confidence: .8", 0.8),
    ("Confidence: 0,8", 0.8),
    ("答案：B\n置信度：80%", 0.8),
    ("Sicherheit: 80 %", 0.8),
    ("Confiance : 0,8", 0.8),
    ("確信度：80%", 0.8),
    ("My confidence is high.", None),
    ("Confidence: 250%", None),
    ("80% of the earth is water. Answer: B", None),
    ("Answer: B", None),
]


def test_stated_confidence() -> None:
    wrong = [
        (reply, stated_confidence(reply)) for reply, confidence in STATED if stated_confidence(reply) != confidence
    ]
    assert not wrong
