"""Files of predictions as OpenCompass's own handlers write them, for rows.json, and the accuracy of its evaluator."""

import json
from pathlib import Path

from opencompass.openicl.icl_evaluator import AccEvaluator
from opencompass.openicl.icl_inferencer.icl_base_inferencer import (
    GenInferencerOutputHandler,
    PPLInferencerOutputHandler,
)
from opencompass.openicl.icl_inferencer.icl_ll_inferencer import LLInferencerOutputHandler

rows = json.loads(Path("rows.json").read_text())
golds = ["ABCD"[row["answer"]] for row in rows]
answers = ["ABCD"[(row["answer"] + (i % 3 == 0)) % 4] for i, row in enumerate(rows)]
letters, numbers, stopped = (GenInferencerOutputHandler() for _ in range(3))
ppl, ll = PPLInferencerOutputHandler(), LLInferencerOutputHandler()
for i, (row, gold, answer) in enumerate(zip(rows, golds, answers, strict=True)):
    lines = "".join(f"{label}. {text}\n" for label, text in zip("ABCD", row["options"], strict=True))
    page = f"Question: {row['question']}\n{lines}Answer:"
    letters.save_results(page, answer, i, gold=gold)
    numbers.save_results(page, answer, i, gold=row["answer"])
    stopped.save_results(page, answer, i, gold=gold)
    for k, (label, text) in enumerate(zip("ABCD", row["options"], strict=True)):
        ppl.save_prompt_and_ppl(label, f"{page} {label}", f"{page} {label}", 1.0 - 0.3 * (label == answer), i)
        whole = f"{row['question']} {text}"
        ll.save_prompt_and_loglikelihood(k, whole, whole, -5.0 + (label == answer), i)
ppl.save_predictions(answers)
ppl.save_golds(golds)
ll.save_predictions(["ABCD".index(answer) for answer in answers])
ll.save_golds([row["answer"] for row in rows])
letters.write_to_json(".", "letters.json")
numbers.write_to_json(".", "numbers.json")
stopped.write_to_jsonl(".", "tmp_letters.jsonl")
ppl.write_to_json(".", "ppl.json")
ll.write_to_json(".", "ll.json")
print("accuracy", AccEvaluator().score(answers, golds)["accuracy"] / 100)
