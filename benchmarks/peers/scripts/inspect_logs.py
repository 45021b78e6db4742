"""Evaluations by inspect of rows.json, a folder of logs each, and their accuracies in NAME.json."""

import json
from pathlib import Path

from inspect_ai import Task, eval
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, choice, scorer
from inspect_ai.solver import multiple_choice

rows = json.loads(Path("rows.json").read_text())
several = [Sample(input="Which are even?", choices=["1", "2", "4"], target=["B", "C"], id="e")]


@scorer(metrics=[accuracy()])
def first_letter():
    """A scorer of one's own: the first letter of the reply."""

    async def score(state, target):
        said = next((letter for letter in state.output.completion.upper() if letter in "ABCD"), "")
        return Score(value=CORRECT if said == target.text else INCORRECT, answer=said)

    return score


def log(name, scored_by=choice, solver=None, samples=None, shuffle=False, **how):
    data = MemoryDataset(samples or [
        Sample(input=row["question"], choices=row["options"], target="ABCD"[row["answer"]], id=row["id"])
        for row in rows
    ], name="own")  # fmt: skip
    if shuffle:
        data.shuffle_choices(seed=7)
    task = Task(dataset=data, solver=solver or multiple_choice(), scorer=scored_by())
    (found,) = eval(
        task, model="openai-api/local/model", log_dir=name, max_tokens=40, temperature=0, display="none", **how
    )
    Path(f"{name}.json").write_text(json.dumps(found.results.scores[0].metrics["accuracy"].value))


log("given")
log("shuffled", shuffle=True)
log("epochs", epochs=2)
log("own_scorer", first_letter)
log("several", solver=multiple_choice(multiple_correct=True), samples=several)
