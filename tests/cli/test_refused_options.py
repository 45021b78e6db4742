"""Options that would have no effect, or contradict each other, are refused in one line that names them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.command_line import unslant
from unslant.auditing import AuditSettings
from unslant.errors import InputError
from unslant.prompts import usual_template
from unslant.questions import JudgingQuestion
from unslant.studies.instruction_boundary.question_sources import BoundarySet
from unslant.studies.instruction_boundary.study import BoundarySettings, plan


@pytest.mark.parametrize(
    ("words", "named"),
    [
        ("audit fair --shots-by-subject", "--shots-by-subject"),
        ("audit fair --shots-from x.jsonl", "--shots-from"),
        ("audit fair --repeat-sample 3", "--repeat-sample 3"),
        ("audit fair --calibrate 0.5", "--calibrate 0.5"),
        ("audit fair --temperature 0", "--temperature 0"),
        ("audit fair --max-tokens 5", "--max-tokens 5"),
        ("audit fair --connections 4", "--connections"),
        ("audit fair --quiet --details", "--details"),
        ("audit fair --store x.sqlite3 --no-store", "--store"),
        ("audit fair --offline --no-store", "--no-store"),
        ("audit words --elicit generate --to-end", "--to-end"),
        ("audit words --elicit generate --adaptive --calibrate 1.5", "--calibrate 1.5: give 0 to 1"),
        ("audit words --elicit generate --in-all-orders 0", "--in-all-orders 0: give a share above 0, up to 1"),
        ("audit words --elicit generate --adaptive --in-all-orders 0.5", "--adaptive chooses the questions itself"),
        ("audit fair --ask-again", "--ask-again applies only to generated replies; add --elicit generate"),
        ("audit fair --in-all-orders 0.5", "--in-all-orders applies only to generated replies"),
        ("audit fair --price 2", "--price 2"),
        ("audit fair --dry-run --output-price 2", "--output-price needs --price, that of the prompts"),
        ("audit fair --dry-run --price -1", "--price -1"),
        ("audit fair --dry-run --json x.json", "--json x.json"),
        ("audit --log x.parquet --orders cyclic", "--orders cyclic"),
        ("audit --log x.parquet --limit 3 --labels 1", "--limit 3 and --labels 1"),
        ("audit --log x.parquet --device cpu", "--device cpu"),
        ("audit --log x.parquet --dry-run", "--dry-run"),
        ("leaderboard --log x.parquet --shots 3", "--shots 3"),
        ("leaderboard --log x.parquet --sets y.jsonl", "--log reads recorded audits: leave out --sets"),
        ("leaderboard -m fair --temperature 0.5", "--temperature 0.5"),
        ("study judge fair --error 0", "--error 0.0: give a share above 0 and below 1"),
        ("study judge fair --repeats 2", "--repeats applies only to generated replies; add --elicit generate"),
        ("debias fair embedded --out o.jsonl --temperature 0.5", "--temperature 0.5"),
        ("debias fair embedded --out o.jsonl --method vote --train x.jsonl", "--train x.jsonl"),
        ("debias --log x.parquet --out o.jsonl --limit 3", "--limit 3"),
        ("study debias fair embedded --methods vote --train embedded-skewed --limit 4", "--train"),
        ("study base-rate --log x.parquet --no-nvr", "--no-nvr"),
        ("study base-rate --log x.parquet --seed 5", "--seed"),
        ("audit --log x.parquet --seed 0", "--seed 0"),  # also where the default was typed
        ("study unbiased --log x.parquet --seed=0", "--seed 0"),
        ("study unbiased --log x.parquet --runs 2", "--runs 2"),
        ("study unbiased fair --log x.parquet", "fair"),
        ("study unbiased fair --ranking x.csv", "--ranking"),
        ("study unbiased fair --maths --answer-base 1", "--answer-base"),
        ("study unbiased fair --maths --answer-kind text", "--answer-kind"),
        ("study unbiased fair --max-tokens 4", "--max-tokens 4"),
        ("study contamination fair --against prefers-a --epochs 3 --save-model f", "--epochs 3"),
        ("study contamination --log x.parquet y.parquet --runs 2", "--runs 2"),
        ("study probe fair,prefers-a --accuracy x.csv", "--accuracy"),
        ("study instruction-boundary words --left-out maybe", "maybe"),
        ("study instruction-boundary words --settings vanilla --left-out single", "--left-out single"),
        ("study instruction-boundary words --settings vanilla --polisher inspect:a/b", "--polisher"),
        ("study instruction-boundary --log x.parquet --limit 8", "--limit 8"),
        ("replies r.jsonl --out o.jsonl --device cpu", "--device cpu"),
        ("lm-eval task --model fair --no-fewshot-as-multiturn", "--no-fewshot-as-multiturn"),
    ],
)
def test_no_option_is_ignored(words: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = unslant(*words.split())
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert named in line
    assert not (tmp_path / "o.jsonl").exists()


def test_a_form_that_no_question_can_have_is_refused() -> None:
    asked = BoundarySet(judging=(JudgingQuestion("j", "Four is even.", "True"),))
    with pytest.raises(InputError, match="'single': the questions have the forms True, False, Unknown"):
        plan(asked, ["missing-choices"], left_out="single")
    assert plan(asked, ["missing-choices"], left_out="False")


def test_settings_of_python_are_checked_too() -> None:
    with pytest.raises(InputError, match="left_out 'maybe': use one of single, several"):
        BoundarySettings(left_out="maybe")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="calibrate=0"):
        AuditSettings(calibrate=0)
    assert AuditSettings(adaptive=True, calibrate=0).calibrate == 0


def test_settings_can_be_filled_in_twice() -> None:
    """The command fills them in, and the study again: ``--reasoning`` was refused for its own template."""
    once = AuditSettings(reasoning=True).resolved(True)
    assert once.resolved(True) == once
    with pytest.raises(InputError, match="its own template"):
        usual_template(True, True, "plain")
