"""Pages of the site that are made when it is built, from the code they describe (a hook of mkdocs)."""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/RESULTS.md",
    "benchmarks-how.md": "benchmarks/README.md",
    "benchmarks-store.md": "benchmarks/STORE.md",
    "benchmarks-ray.md": "benchmarks/RAY.md",
}
"""Page -> file outside ``docs/``."""
PAPERS = """
*[P1]: Quantifying and Mitigating Selection Bias in LLMs (PBM, BaQCKV, LoRA-1)
*[P2]: Rethinking Selection Bias in LLMs (efficient majority voting)
*[P3]: Quantifying LLM Biases Across Instruction Boundary (BiasDetector)
*[P4]: Unbiased Evaluation of LLMs from a Causal Perspective (BOAT)
*[P5]: The Base-Rate Effect on LLM Benchmark Performance (Nvr-X)
"""
"""Shown where the pointer rests on a paper's key."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = {"reference/cli.md": cli(), "reference/json.md": json_keys()}
    for page, source in ELSEWHERE.items():
        made[page] = re.sub(r"\]\((?:\.\./)?docs/", "](", (ROOT / source).read_text("utf-8"))
    for path, content in made.items():
        files.append(File.generated(config, path, content=content))
    for image in (ROOT / "benchmarks").glob("*.svg"):
        files.append(File.generated(config, image.name, abs_src_path=str(image)))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Links to files outside ``docs/`` lead to their pages, papers are explained, long lists are not searched."""
    if page.file.src_uri == "intervention-examples.md":
        page.meta["search"] = {"exclude": True}
    for made, source in ELSEWHERE.items():
        markdown = re.sub(rf"\]\(((?:\.\./)*)\.\./{source}", rf"](\1{made}", markdown)
    markdown = markdown.replace("](README.md", "](benchmarks-how.md").replace("](RESULTS.md", "](benchmarks.md")
    return f"{markdown}\n\n{PAPERS}"


def on_page_content(html: str, **_: object) -> str:
    """Sphinx roles in docstrings become plain code."""
    return re.sub(r":\w+:<code>~?\.?", "<code>", html)


def cli() -> str:
    """Every command with its options, from the command line itself."""
    from unslant.cli import app

    text = app.generate_docs(heading_level=1)
    text = re.sub(r"^# unslant$", "# Command line", text, count=1, flags=re.M)
    return re.sub(r"\n## Table of Contents\n.*?(?=\n\*\*Commands)", "", text, count=1, flags=re.S)


JSON = """# JSON, key by key

Every key that `--json FILE` and `to_json` write, study by study; what all files share is described in
[files of results](../results.md). `{...}` stands for names: subjects, labels, methods, numbers of options. `[]` is a
list. A *number* is an object `{"value", "low", "high", "n", "method", "confidence", "note"}`: the value, its 95 %
interval, how many questions it rests on, how the interval was made, and why it or the value is missing. This page is
made from results of the reference models when the site is built.
"""
META = {
    "study": "the study's name",
    "headline": "the outcome in a sentence, as printed",
    "unslant": "version that measured",
    "provenance": "how the result was made: versions, models, questions, settings, command",
    "questions_digest": "SHA-256 of the questions asked, in order",
    "settings": "settings of the study",
    "loading": "what loading the questions met: records read, skipped and changed, by reason",
    "identity": "digests of all that can change a score of the model",
    "engine": "how prompts were scored: `tree` or `plain`",
    "example_prompt": "one prompt as it was sent",
    "questions": "name of the question set",
    "model": "name of the model",
    "requests": "what the replies have cost",
    "phrase": "the preference in words",
}
"""Keys that no dataclass has as a field."""
PLAIN = {
    "labels": "label symbols, in their usual sequence",
    "n_options": "options of a question",
    "n_orders": "orders that were shown",
    "elicitation": "how it was asked: `cloze`, `counterfactual`, `generate`",
    "method": "name of the method",
    "note": "why a value is missing, or what to keep in mind",
    "notes": "what to keep in mind",
    "left_out": "what is left out, and why",
    "presentation": "how it was shown",
    "subject": "name of the subject",
    "label": "label symbol",
    "n": "how many questions",
    "n_failed": "prompts without a score",
    "measure": "key of the number",
    "run": "name of the run",
    "kind": "multiple choice or judging",
    "setting": "name of the instruction setting",
    "models": "names of the models",
    "seed": "of all random choices",
    "holds": "whether the hypothesis holds",
    "trusted": "whether ties leave the number reliable",
    "doubt": "why it is not trusted; empty if it is",
    "uneven": "whether base rates differ significantly, and by enough to matter",
    "gained": "questions right only under the setting",
    "lost": "questions right only under vanilla",
    "temperature": "sampling temperature",
    "max_tokens": "longest reply",
    "judge": "model that reads replies which the patterns cannot",
    "polisher": "model that rewrote the instruction",
}
"""Keys that mean the same wherever they stand, and need no more."""
KINDS: dict[type, str] = {dict: "object", list: "list", str: "text", bool: "true or false"}


def results() -> Iterator[Any]:
    """A small result of every study."""
    import unslant

    asked: dict[str, Any] = {"limit": 8}
    audits = [unslant.audit(name, "embedded", **asked) for name in ("fair", "prefers-a")]
    yield audits[0]
    yield unslant.compare(*audits)
    yield unslant.Leaderboard.of(audits)
    yield unslant.study.base_rate("fair", "embedded", **asked)
    yield unslant.study.unbiased("fair", "embedded", **asked)
    yield unslant.study.debias("fair", "embedded", methods=["vote", "pride"], **asked)
    yield unslant.study.probe(["fair", "prefers-a"], "embedded", **asked)
    yield unslant.study.instruction_boundary("words", limit=4)


def json_keys() -> str:
    """The page on JSON; without its tables, which take a minute, where ``UNSLANT_DOCS=quick`` is set."""
    if os.environ.get("UNSLANT_DOCS") == "quick":
        return JSON
    sections = []
    for result in results():
        rows = dict(_keys(result.to_dict(), result))
        table = [f"| `{path}` | {kind} | {meaning} |" for path, (kind, meaning) in rows.items()]
        title = f"## `{type(result).__name__}` (study `{result.study}`)"
        sections += [title, "", "| key | holds | |", "|---|---|---|", *table, ""]
    return JSON + "\n" + "\n".join(sections)


def _keys(shown: Any, of: Any, path: str = "") -> Iterator[tuple[str, tuple[str, str]]]:
    """Path, kind and meaning of every key of an object in JSON, and of those within it.

    Args:
        of: what it was made of: a dataclass has fields, a mapping names, which are not told apart; None where that is
            not known. Objects with the same keys then have names.
    """
    alike = [value.keys() for value in shown.values() if isinstance(value, dict)]
    same = 1 < len(alike) == len(shown) and all(keys == alike[0] for keys in alike)
    named = isinstance(of, Mapping) or (of is None and (same or path.endswith(".by_subject")))
    for key, value in list(shown.items())[: 1 if named and path else None]:
        part = "{...}" if named and path else key
        here = f"{path}.{part}" if path else part
        inner = of.get(key) if isinstance(of, Mapping) else getattr(of, key, None)
        if isinstance(value, list) and value and isinstance(value[0], dict):
            here, value, inner = f"{here}[]", value[0], next(iter(inner), None) if isinstance(inner, Sequence) else None
        number = isinstance(value, dict) and {"value", "low", "high", "n"} <= set(value)
        kind = "number" if number else KINDS.get(type(value), "value")
        meaning = _meaning(path, key, of)
        if isinstance(value, dict) and not number and key not in META:
            if meaning:
                yield here, (kind, meaning)
            yield from _keys(value, inner, here)
        else:
            yield here, (kind, meaning)


def _meaning(path: str, key: str, of: Any) -> str:
    """What a key holds: from the record of the number, or from the docstring of the dataclass it is a field of."""
    from unslant.metrics.records import record_of

    if found := _attributes(of).get(key):
        return found
    if record := record_of([*path.replace("[]", "").split("."), key]) if path else None:
        return f"{record.name}: {record.meaning}" if record.key.endswith(key) else ""
    return META.get(key) or PLAIN.get(key, "")


def _attributes(of: Any) -> dict[str, str]:
    """Field -> its text in the docstrings of a dataclass and its bases."""
    found: dict[str, str] = {}
    for kind in type(of).__mro__[::-1] if dataclasses.is_dataclass(of) else ():
        _, _, text = (kind.__doc__ or "").partition("Attributes:\n")
        for names, meaning in re.findall(r"^ {8}([\w, ]+): (.*(?:\n {12}.*)*)", text, flags=re.M):
            plain = (
                re.sub(r":\w+:`~?\.?([^`]*)`", r"`\1`", " ".join(meaning.split()))
                .replace("``", "`")
                .replace("|", "\\|")
            )
            found |= dict.fromkeys(names.split(", "), plain)
    return found
