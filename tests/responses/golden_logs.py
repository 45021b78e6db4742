"""What is read of every sample log, in few numbers; ``python -m tests.responses.golden_logs`` writes it anew."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from unslant.auditing.comparison import audit_logs
from unslant.auditing.result import AuditResult
from unslant.errors import InputError

GOLDEN = Path(__file__).parent / "data" / "golden_logs.json"
INSPECT = ("order_as_listed.eval", "shuffle_choices_1.eval", "shuffle_choices_2.eval")
TOGETHER = {
    "inspect, three orders": [f"logs/inspect/{name}" for name in INSPECT],
    "inspect, four logs": [f"logs/inspect/{name}" for name in (*INSPECT, "deprecated_shuffle.eval")],
    "lm-eval, two models": [f"logs/lm_eval/samples_letter_24{name}.jsonl" for name in ("", "_fair")],
}


NOT_SUMMARISED = ("lm_eval_more", "multiple_correct.eval")
"""Logs of tasks whose own metric is not accuracy as we count it: what is read of them is not yet what they report."""


def samples(data: Path) -> dict[str, list[str]]:
    """Name -> files below the folder of test data, of everything that may be given as a log."""
    files = [path for path in sorted(data.glob("logs/*/*")) if path.suffix not in (".yaml", ".md")]
    files = [path for path in files if not any(name in path.parts for name in NOT_SUMMARISED)]
    alone = [str(path.relative_to(data)) for path in files] + ["recorded/llama-7b_arc_24perm_sample.jsonl"]
    return {name: [name] for name in alone} | TOGETHER


def summary(data: Path, files: list[str]) -> dict[str, Any]:
    try:
        found = audit_logs([data / name for name in files])
    except InputError as error:
        return {"refused": str(error).replace(f"{data}/", "").partition(";")[0]}
    if not isinstance(found, AuditResult):
        return {"runs": {name: one(result) for name, result in found.runs.items()}, "headline": found.headline}
    return one(found)


def one(result: AuditResult) -> dict[str, Any]:
    rows = result.responses.rows()
    logged = result.responses.run.logged
    assert logged is not None
    accuracy = result.metrics.means["accuracy"]
    return {
        "model": result.responses.run.model,
        "rows": len(rows),
        "questions": len({row.question_id for row in rows}),
        "orders": logged.orders,
        "kinds": dict(sorted(Counter(row.kind for row in rows).items())),
        "statuses": dict(sorted(Counter(row.status for row in rows).items())),
        "labels": sorted({"".join(row.labels) for row in rows}),
        "repeats": max(row.repeat for row in rows),
        "scored": sum(row.logprobs is not None for row in rows),
        "bounds": sum(len(row.bounds) for row in rows),
        "scores": logged.scores,
        "dropped": logged.dropped,
        "accuracy": round(accuracy.value, 6) if accuracy.defined else None,
        "headline": result.headline,
    }


if __name__ == "__main__":
    folder = Path(__file__).resolve().parents[3] / "shared" / "data"
    made = {name: summary(folder, files) for name, files in samples(folder).items()}
    GOLDEN.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", "utf-8")
