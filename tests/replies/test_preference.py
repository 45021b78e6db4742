"""Which of two answers a judge's reply prefers."""

from __future__ import annotations

import pytest

from unslant.replies import extract_preference

READ = [
    ("[[A>>B]]", "A"),
    ("[[B>A]]", "B"),
    ("My verdict: [[A=B]]", "AB"),
    ("[[C]]", "AB"),
    ("[[7, 5]]", "A"),
    ("[[A>B]] at first sight. My final verdict is: [[B>A]]", "B"),
    ("Output (b)", "B"),
    ("B\n\nIt gives the right date.", "B"),
    ("2\nReason: shorter.", "B"),
    ("Tie", "AB"),
    ("Feedback: both fine. [RESULT] B", "B"),
    ('{"reason": "it is right", "winner": "model_a"}', "A"),
    ('{"preference": 2}', "B"),
    ('{"score_a": 8, "score_b": 5}', "A"),
    ("Winner: Response 2", "B"),
    ("Verdict: tie", "AB"),
    ('{"better_response": "Response 1"}', "A"),
    ("output: (a)", "A"),
    ("Assistant A: [[8]]\nAssistant B: [[6]]", "A"),
    ("I think answer 2 better addresses the question.", "B"),
    ("**Winner: Assistant B**", "B"),
    ("Neither response is better; it's a tie.", "AB"),
    ("8 7", "A"),
    ("[-1.5, -3.25]", "A"),
    ("Score A: 7\nScore B: 7", "AB"),
    ("I would rate Assistant A 7/10 and Assistant B 9/10.", "B"),
    ("So the final decision is Response 1.", "A"),
    ("Assistant A is slightly better.", "A"),
    ("I prefer the second response.", "B"),
    ("Answer 1 is worse than Answer 2.", "B"),
    ("A is better organised, but overall B is better.", "B"),
    ("A is better in terms of style, B in terms of accuracy. Overall, B.", "B"),
    ("Response 1 is better written. Final: Response 2.", "B"),
    ("B is stronger on detail. In conclusion, A!", "A"),
    ("Accuracy: A\nClarity: B\nOverall: A", "A"),
    ("My preference: B", "B"),
    ("Users would probably prefer A.", "A"),
    ("Response B is less helpful.", "A"),
    ("Both responses are equally good.", "AB"),
    ("Assistant A is not better. Assistant B wins.", "B"),
    ("<think>A is better</think>Better answer: B", "B"),
    ('{"answer": "A", "winner": "B"}', "B"),
    ("助手A更好", "A"),
    ("我认为第二个回答更好。", "B"),
    ("助手A的回答明显更好，助手B的回答更差。", "A"),
    ("结论：B", "B"),
    ("两个回答一样好", "AB"),
    ("Antwort A ist besser", "A"),
    ("Antwort A ist schlechter als Antwort B.", "B"),
    ("Ich bevorzuge die zweite Antwort.", "B"),
    ("Gewinner: B", "B"),
    ("Beide Antworten sind gleich gut.", "AB"),
    ("La réponse A est nettement meilleure.", "A"),
    ("Je préfère la réponse B.", "B"),
    ("La segunda respuesta es mejor.", "B"),
    ("Veredicto: empate", "AB"),
    ("A gets 9/10, B gets 7/10.", "A"),
    ("Answer A deserves 3 points; answer B deserves 7 points.", "B"),
    ("The two are on par.", "AB"),
    ("回答Bの方が優れています。", "B"),
    ("引き分け", "AB"),
    ("답변 B가 더 좋습니다.", "B"),
    ("La risposta A è migliore.", "A"),
    ("A resposta B é melhor.", "B"),
    ("Ответ B немного лучше.", "B"),
    ("Ничья", "AB"),
    ("Initially I thought A is better. B is better.", "B"),
    ("A beats B.", "A"),
    ("Response A is clearly outperformed by Response B.", "B"),
    ("Response B should be preferred.", "B"),
    ("It's close, but I lean towards B.", "B"),
    ("They are tied.", "AB"),
    ("Both answers are of similar quality.", "AB"),
    ("Les deux réponses se valent.", "AB"),
    ("回答A优于回答B。", "A"),
    ("Bの勝ちです。", "B"),
    ("Yanıt A daha iyi.", "A"),
    ("الإجابة B أفضل.", "B"),
]
UNREAD = [
    ("", "empty"),
    ("[[A>B]] for the first, [[B>A]] for the second", "several verdicts"),
    ("Assistant A is better. Assistant B is better.", "several verdicts"),
    ("Both answers discuss a lamp.", "no verdict found"),
    ("If answer A is better, it is because of its length.", "no verdict found"),
    ("Neither A nor B is better", "no verdict found"),
    ("It's a tie between A and B, but I'd go with A", "several verdicts"),
    ("我不认为A更好。", "no verdict found"),
    ("助手B比助手A更好", "no verdict found"),
    ("A并不比B更好", "no verdict found"),
    ("如果A更好，那是因为长度。", "no verdict found"),
    ("Antwort A ist nicht besser.", "no verdict found"),
    ("Weder A noch B ist besser.", "no verdict found"),
    ("La réponse A n'est pas meilleure.", "no verdict found"),
    ("No creo que A es mejor.", "no verdict found"),
    ("回答Bの方が優れていない。", "no verdict found"),
    ("답변 B가 더 좋지 않습니다.", "no verdict found"),
    ("La risposta A non è migliore.", "no verdict found"),
    ("Ответ B не лучше.", "no verdict found"),
    ("At first B seems better, but on reflection A is.", "no verdict found"),
    ("Neither A beats B nor B beats A.", "no verdict found"),
    ("A does not beat B.", "no verdict found"),
    ("Overall, A is longer.", "no verdict found"),
    ("Response B is not less accurate.", "no verdict found"),
    ("回答A不优于回答B。", "no verdict found"),
    ("Bの勝ちではない。", "no verdict found"),
    ("Yanıt A daha iyi değil.", "no verdict found"),
    ("الإجابة A ليست أفضل.", "no verdict found"),
    ("It would be wrong to say A is better.", "no verdict found"),
    ("I'm not convinced that A is better.", "no verdict found"),
    ("<|channel|>analysis<|message|>I prefer A.<|end|>", "empty"),
]


def test_verdicts_are_read(subtests: pytest.Subtests) -> None:
    for reply, labels in READ:
        with subtests.test(reply):
            found = extract_preference(reply)
            assert (found.status, "".join(sorted(found.labels))) == ("ok", labels), found


def test_a_text_without_a_verdict_is_not_read(subtests: pytest.Subtests) -> None:
    for reply, rule in UNREAD:
        with subtests.test(reply):
            found = extract_preference(reply)
            assert found.status == "unparsed"
            assert found.rule.startswith(rule)


def test_other_labels_and_more_answers() -> None:
    assert extract_preference("Better answer: Y", ("X", "Y")).labels == {"Y"}
    assert extract_preference("Better answer: C", ("A", "B", "C")).labels == {"C"}
