"""``--fail-if``, ``--baseline``, ``--dry-run``, ``unslant.toml``, ``unslant models`` and ``templates``."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.command_line import Ran
from tests.command_line import unslant as run
from unslant import compare
from unslant.auditing.comparison import AuditComparison
from unslant.auditing.result import AuditResult
from unslant.auditing.study import Audit
from unslant.errors import InputError
from unslant.experiment.comparison import unpaired_difference
from unslant.experiment.gates import Baseline
from unslant.experiment.study import Study
from unslant.metrics import Estimate
from unslant.metrics.estimate import wilson
from unslant.plugins.lm_eval.study import LmEval
from unslant.prompts.templates import template_names
from unslant.reference import WORDS, reference_names
from unslant.studies.instruction_boundary.comparison import BoundaryComparison
from unslant.studies.instruction_boundary.study import InstructionBoundary
from unslant.studies.unbiased.comparison import UnbiasedComparison
from unslant.studies.unbiased.study import Unbiased

pytestmark = pytest.mark.thorough

Run = Callable[..., Ran]
QUICK = ("--orders", "reverse", "--no-store", "-q")
READ = ("audit", "--log", "old.parquet", "-q")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one audit, as Parquet and as JSON."""
    folder = tmp_path_factory.mktemp("recorded")
    files = ("--responses", folder / "old.parquet", "--json", folder / "old.json")
    assert run("audit", "fair", "embedded", "--limit", 12, *QUICK, *files).code == 0
    return folder


@pytest.fixture(autouse=True)
def folder(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for file in recorded.iterdir():
        shutil.copy(file, tmp_path)
    return tmp_path


def written(path: str) -> Any:
    return json.loads(Path(path).read_text("utf-8"))


def test_conditions_are_about_the_numbers_of_the_json(unslant: Run) -> None:
    means = written("old.json")["metrics"]["means"]
    value, low = means["expected_accuracy"]["value"], means["expected_accuracy"]["low"]
    named = {
        "metrics.means.expected_accuracy": value,
        "expected_accuracy": value,
        "means.expected_accuracy.value": value,
        "mean_over_orders.accuracy": value,
        "expected_accuracy.low": low,
        "accuracy": means["accuracy"]["value"],
        "questions": 12,
        "variance_components.accuracy": means["expected_accuracy"]["value"],
    }
    holds, fails = [], []
    for name, number in named.items():
        above, below = number + 0.01, number - 0.01
        holds += [f"{name}<{above}", f"{name} <= {above}", f"{name}>{below}", f"{name}>={below:.6f}"]
        fails += [f"{name}<{below}", f"{name}<={below}", f"{name}>{above}", f"{name} >= {above}"]
    ran = unslant(*READ, *(f"--fail-if={text}" for text in (*fails, *holds)))
    assert ran.code == 4
    assert [line.split("'")[1] for line in ran.err.splitlines()] == holds


def test_when_a_condition_holds_everything_is_written_and_the_code_is_4(unslant: Run) -> None:
    ran = unslant(*READ, "--out", "all", "--fail-if", "accuracy>=0", "--fail-if", "consistency<0")
    assert ran.code == 4
    assert {path.name for path in Path("all").iterdir()} == {"numbers.json", "report.html", "responses.parquet"}
    (line,) = ran.err.splitlines()
    assert "metrics.means.accuracy is" in line
    assert unslant(*READ, "--fail-if", "accuracy<0").code == 0


def test_an_undefined_number_fails_with_its_note(unslant: Run) -> None:
    ran = unslant(*READ, "--fail-if", "answered<0")
    assert ran.code == 4
    assert written("old.json")["metrics"]["means"]["answered"]["note"] in ran.err


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("expected_acuracy<0.6", "did you mean 'expected_accuracy'?"),
        ("metrics.means.expected_acuracy<0.6", "did you mean 'expected_accuracy'?"),
        ("accuracy", "write it as NAME<NUMBER"),
        ("accuracy=0.6", "write it as NAME<NUMBER"),
        ("accuracy<high", "write it as NAME<NUMBER"),
        ("accuracy<nan", "write it as NAME<NUMBER"),
        (" " * 20_000 + "accuracy", "write it as NAME<NUMBER"),  # took hours once
    ],
)
def test_a_mistyped_condition_is_refused_before_any_work(unslant: Run, condition: str, words: str) -> None:
    ran = unslant("audit", "no/such/model", "nosuch.jsonl", "--fail-if", condition)
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert words in line


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("metrics.accuracy<1", "did you mean 'metrics.means.accuracy'?"),
        ("nvr.accuracy.99<1", "no such number"),
        ("zzzzzz.means.fr<1", "use one of metrics.means.accuracy, "),
        ("cost.prompts.low<1", "has no interval"),
        ("label_p<1", "numbers match: "),
    ],
)
def test_a_name_missing_in_the_result_is_an_error_after_writing(unslant: Run, condition: str, words: str) -> None:
    ran = unslant(*READ, "--fail-if", condition, "--json", "new.json")
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert words in line
    assert "use one of" not in line or line.endswith(", ...; see docs/metrics.md"), "cut within a name"
    assert written("new.json")["study"] == "audit"


def test_differences_are_paired_where_the_responses_are_at_hand(unslant: Run) -> None:
    new = ("audit", "prefers-a", "embedded", "--limit", 12, *QUICK)
    paired = unslant(*new, "--baseline", "old.parquet", "--json", "p.json", "--responses", "p.parquet")
    assert paired.code == 0, paired.err
    of_numbers = unslant(
        *new, "--baseline", "old.json", "--json", "u.json", "--fail-if", "baseline.accuracy.difference<1"
    )
    assert of_numbers.code == 4
    by_pairs, by_numbers = written("p.json")["baseline"], written("u.json")["baseline"]
    now, before = (written(file)["metrics"]["means"]["accuracy"]["value"] for file in ("p.json", "old.json"))
    for found, is_paired in ((by_pairs, True), (by_numbers, False)):
        accuracy = found["accuracy"]
        assert accuracy["paired"] is is_paired
        assert accuracy["difference"]["value"] == pytest.approx(now - before)
        assert accuracy["difference"]["low"] < now - before < accuracy["difference"]["high"]
    (own,) = [
        pair for pair in compare("old.parquet", "p.parquet").to_dict()["differences"] if pair["measure"] == "accuracy"
    ]
    assert by_pairs["accuracy"]["difference"] == own["difference"]
    assert by_pairs["accuracy"]["p_value"] == own["p_value"]
    assert "approximate" in by_numbers["accuracy"]["difference"]["method"]


def test_an_unpaired_interval_is_that_of_the_literature() -> None:
    """Newcombe (1998), method 10: 56 of 70 less 48 of 80 is 0.2 (0.0524 to 0.3339)."""
    found = unpaired_difference(wilson(56 / 70, 70), wilson(48 / 80, 80))
    assert (found.value, found.low, found.high) == pytest.approx((0.2, 0.0524, 0.3339), abs=5e-5)
    assert "no interval" in unpaired_difference(Estimate.bare(0.5, 3, ""), wilson(0.5, 3)).note
    assert unpaired_difference(Estimate.undefined("why"), wilson(0.5, 3)).note == "why"


def test_the_difference_is_printed_and_in_the_report(unslant: Run) -> None:
    ran = unslant("audit", "--log", "old.parquet", "--baseline", "old.json", "--html", "p.html")
    assert "Differences from old.json" in Path("p.html").read_text("utf-8")
    assert "Against old.json: no change shown in 6 numbers." in ran.out


@pytest.mark.parametrize(("limit", "seed", "file", "code"), [(9, 0, "old.json", 2), (20, 0, "old.parquet", 0)])
def test_other_questions_are_refused_unless_some_are_shared(
    unslant: Run, limit: int, seed: int, file: str, code: int
) -> None:
    ran = unslant("audit", "fair", "embedded", "--limit", limit, *QUICK, "--baseline", file, "--json", "new.json")
    assert ran.code == code
    assert Path("new.json").exists() == (not code), "asked before the refusal"
    if code:
        (line,) = ran.err.splitlines()
        assert "was made on other questions" in line


def test_a_table_without_a_shared_question_is_refused_before_the_model_is_opened(unslant: Run) -> None:
    Path("mine.csv").write_text("id,question,A,B,answer\n1,2+2?,4,5,A\n2,Capital of Italy?,Oslo,Rome,B\n")
    ran = unslant("audit", "no/such/model", "mine.csv", "--baseline", "old.parquet")
    assert (ran.code, ran.err) == (
        2, "error: old.parquet: was made on other questions, so there is nothing to compare\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (
            ["audit", "fair", "-m", "prefers-a", "nosuch.jsonl", "--baseline", "old.parquet"],
            "old.parquet: holds responses; compare results of audit-comparison by their JSON files",
        ),
        (
            ["audit", "fair", "-m", "prefers-a", "nosuch.jsonl", "--baseline", "old.json"],
            "old.json: holds a result of the study audit, not of audit-comparison",
        ),
        (
            ["study", "base-rate", "no/such/model", "--baseline", "old.parquet"],
            "old.parquet: contains responses of the study audit; those of base-rate are needed",
        ),
        (
            ["leaderboard", "no/such/model", "other/model", "--baseline", "old.parquet"],
            "old.parquet: holds responses; compare results of leaderboard by their JSON files",
        ),
        (
            ["audit", "no/such/model", "--fail-if", "baseline.accuracy.difference<0"],
            "--fail-if 'baseline.accuracy.difference<0': needs a baseline; add --baseline FILE",
        ),
        (
            ["audit", "no/such/model", "--fail-if", "baseline.accuracy.p_value<0.05"],
            "--fail-if 'baseline.accuracy.p_value<0.05': needs a baseline; add --baseline FILE",
        ),
        (
            ["audit", "no/such/model", "--baseline", "old.parquet", "--fail-if", "baseline.acuracy.difference<0"],
            "--fail-if 'baseline.acuracy.difference<0': no number is called 'acuracy': did you mean 'accuracy'?",
        ),
    ],
)
def test_what_cannot_be_compared_is_refused_before_any_work(unslant: Run, command: list[str], reason: str) -> None:
    ran = unslant(*command, "-q")
    assert (ran.code, ran.err) == (2, f"error: {reason}\n")


@pytest.mark.parametrize(
    ("study", "comparison"),
    [
        (Audit, AuditComparison),
        (LmEval, AuditComparison),
        (InstructionBoundary, BoundaryComparison),
        (Unbiased, UnbiasedComparison),
    ],
)
def test_the_study_of_a_comparison_is_known_before_the_run(study: type[Study[Any]], comparison: type) -> None:
    assert study.compared == comparison.study


def test_a_comparison_of_unknown_name_may_have_a_name_that_begins_like_that_of_one() -> None:
    values = written("old.json") | {"study": "audit-of-two"}
    Path("two.json").write_text(json.dumps(values))
    Baseline.check(Path("two.json"), AuditResult)  # a study from elsewhere that does not say what it is called
    with pytest.raises(InputError, match=r"study audit-of-two, not of audit$"):
        Baseline.check(Path("two.json"), AuditResult, "audit")
    Path("other.json").write_text(json.dumps(values | {"study": "probe"}))
    with pytest.raises(InputError, match=r"study probe, not of audit$"):
        Baseline.check(Path("other.json"), AuditResult)


def test_a_part_of_a_name_brings_the_names_that_contain_it(unslant: Run) -> None:
    ran = unslant("audit", "no/such/model", "--fail-if", "vote<0.5")
    names = ran.err.partition("use one of ")[2].partition(";")[0].split(", ")
    assert "vote_accuracy" in names
    assert all("vote" in name for name in names)


def test_a_baseline_of_another_study_is_refused_before_any_work(unslant: Run) -> None:
    Path("other.json").write_text(json.dumps(written("old.json") | {"study": "probe"}))
    ran = unslant("audit", "no/such/model", "nosuch.jsonl", "--baseline", "other.json")
    assert ran.code == 2
    assert ran.err == "error: other.json: holds a result of the study probe, not of audit\n"


@pytest.mark.parametrize(
    "content", [None, "{}", "nonsense", "[1]", '{"unslant": 1, "study": "audit", "provenance": 3}']
)
def test_a_baseline_that_cannot_be_read_is_refused_before_any_work(unslant: Run, content: str | None) -> None:
    if content is not None:
        Path("bad.json").write_text(content)
    ran = unslant("audit", "no/such/model", "nosuch.jsonl", "--baseline", "bad.json")
    assert ran.code == 2
    (line,) = ran.err.splitlines()
    assert "bad.json" in line


def test_a_baseline_is_never_overwritten(unslant: Run) -> None:
    before = Path("old.json").read_bytes()
    ran = unslant(*READ, "--baseline", "old.json", "--json", "old.json")
    assert ran.code == 2
    assert Path("old.json").read_bytes() == before


def test_a_dry_run_estimates_the_time_of_a_local_model_and_writes_nothing(
    unslant: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNSLANT_HOME", str(folder / "home"))
    before = sorted(folder.iterdir())
    ran = unslant("audit", "fair", "embedded", "--limit", 6, "--orders", "reverse", "--dry-run")
    assert ran.code == 0, ran.err
    assert "Tokens computed: about" in ran.out
    assert "an estimate from" in ran.out
    assert sorted(folder.iterdir()) == before


def test_a_folder_with_the_name_of_the_settings_is_not_passed_over(unslant: Run) -> None:
    Path("unslant.toml").mkdir()
    ran = unslant("templates")
    assert (ran.code, ran.err) == (2, "error: unslant.toml: cannot be read: Is a directory\n")


def test_options_come_from_the_file_unless_they_are_typed(unslant: Run) -> None:
    table = '[audit]\nlimit = 5\norders = "reverse"\nno_store = true\nquiet = true\ndetails = false\njson = "a.json"\n'
    Path("unslant.toml").write_text(
        table + 'fields = {question = "stem"}\nfail-if = ["questions<1"]\n[debias]\nseed = 3\n'
    )
    Path("q.jsonl").write_text(
        "".join(json.dumps({"stem": f"Is it {i}?", "options": ["x", "y"], "answer": i % 2}) + "\n" for i in range(8))
    )
    ran = unslant("audit", "fair", "q.jsonl", "--limit", 4)
    assert (ran.code, ran.out) == (0, ""), ran.err
    block = written("a.json")["provenance"]
    assert (block["settings"]["limit"], block["settings"]["orders"]) == (4, "reverse")
    assert block["command"] == [
        "audit",
        "fair",
        "q.jsonl",
        "--limit",
        "4",
        "--orders=reverse",
        "--fields=question=stem",
    ]
    Path("unslant.toml").write_text("[audit]\nseed = 9\n")
    assert unslant("rerun", "a.json", "--json", "b.json", "-q").code == 0
    assert written("b.json")["provenance"]["settings"] == block["settings"]


def test_defaults_that_were_not_typed_are_not_refused(unslant: Run) -> None:
    """With ``seed = 0`` in a file of settings, --log was refused."""
    assert unslant("audit", "fair", "--limit", 4, "--responses", "a.parquet", "--seed", 0, "-q").code == 0
    Path("unslant.toml").write_text('[audit]\nseed = 0\norders = "auto"\n')
    assert unslant("audit", "--log", "a.parquet", "-q").code == 0
    ran = unslant("audit", "--log", "a.parquet", "--orders", "auto")
    assert ran.err == "error: --log reads recorded responses: leave out --orders auto, which has no effect here\n"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("[audit]\nlimits = 6\n", "\"audit.limits\": unslant audit has no such option: did you mean 'limit'?"),
        ("[audt]\nlimit = 6\n", "\"audt\": is not a command: did you mean 'audit'?"),
        ("[study.base-rat]\nlimit = 6\n", "\"study.base-rat\": is not a command: did you mean 'base-rate'?"),
        ("limit = 6\n", '"limit": is not a command'),
        ('[audit]\nlimit = "few"\n', "limit 'few' from mine.toml: give a whole number"),
        ('[audit]\norders = "frog"\n', "(mine.toml sets --orders frog)"),
        ('[audit]\nchat = "yes"\n', "is a switch: give true or false"),
        ("[audit\n", "is not valid TOML"),
    ],
)
def test_a_mistake_in_the_file_is_one_line_with_file_and_key(unslant: Run, table: str, words: str) -> None:
    Path("mine.toml").write_text(table)
    ran = unslant("audit", "fair", "--config", "mine.toml")
    assert ran.code == 2
    assert ran.err == unslant("audit", "fair", "--config=mine.toml").err
    (line,) = ran.err.splitlines()
    assert "mine.toml" in line
    assert words in line


def test_a_file_that_is_named_must_be_there(unslant: Run) -> None:
    assert "none.toml: cannot be read" in unslant("audit", "fair", "--config", "none.toml").err
    assert "give the name of a TOML file" in unslant("audit", "fair", "--config").err


def test_the_file_of_defaults_is_never_overwritten(unslant: Run) -> None:
    Path("unslant.toml").write_text("[audit]\nlimit = 5\n")
    ran = unslant(*READ, "--json", "unslant.toml")
    assert ran.code == 2
    assert Path("unslant.toml").read_text() == "[audit]\nlimit = 5\n"


def test_models_and_templates_are_listed(unslant: Run) -> None:
    listed = unslant("models").out
    assert all(f"  {name} " in listed for name in (*reference_names(), WORDS))
    assert re.search("inspect:PROVIDER/NAME +a model behind inspect: generate", listed)
    listed = unslant("templates").out
    assert [line.split()[0] for line in listed.splitlines() if line[2] != " "] == template_names()
    assert tomllib.loads(unslant("templates", "plain").out)["question"]
    assert "did you mean 'plain'?" in unslant("templates", "plane").err
