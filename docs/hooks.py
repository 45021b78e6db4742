"""Pages of the site that are made when it is built, from code and executed notebooks (a hook of mkdocs)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from executed import notebook_page
from generated import cli, json_keys
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
ELSEWHERE = {
    "changelog.md": "CHANGELOG.md",
    "benchmarks.md": "benchmarks/RESULTS.md",
    "benchmarks-how.md": "benchmarks/README.md",
}
for path in sorted((ROOT / "benchmarks").glob("*.md")):
    if f"benchmarks/{path.name}" not in ELSEWHERE.values():
        ELSEWHERE[f"benchmarks-{path.stem.lower()}.md"] = f"benchmarks/{path.name}"
"""Page -> file outside ``docs/``."""
PAPERS = """
*[P1]: Quantifying and Mitigating Selection Bias in LLMs (PBM, BaQCKV, LoRA-1)
*[P2]: Rethinking Selection Bias in LLMs (efficient majority voting)
*[P3]: Quantifying LLM Biases Across Instruction Boundary (BiasDetector)
*[P4]: Unbiased Evaluation of LLMs from a Causal Perspective (BOAT)
*[P5]: The Base-Rate Effect on LLM Benchmark Performance (Nvr-X)
"""
"""Shown where the pointer rests on a paper's key."""


def on_config(config: MkDocsConfig) -> None:
    """The address of the project, where it has one, is the one of the package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    config.repo_url = project["tool"]["hatch"]["metadata"]["hooks"]["custom"]["repository"] or None


def on_files(files: Files, config: MkDocsConfig) -> Files:
    made = {"reference/cli.md": cli(), "reference/json.md": json_keys()}
    for page, source in ELSEWHERE.items():
        made[page] = re.sub(r"\]\((?:\.\./)?docs/", "](", (ROOT / source).read_text("utf-8"))
    for notebook in sorted((ROOT / "docs").glob("*.ipynb")):
        made[f"{notebook.stem}.md"] = notebook_page(notebook)
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
        if page.file.src_uri.startswith("benchmarks"):  # next to it
            markdown = markdown.replace(f"]({source.removeprefix('benchmarks/')}", f"]({made}")
    return f"{markdown}\n\n{PAPERS}"


def on_page_content(html: str, **_: object) -> str:
    """Sphinx roles in docstrings become plain code."""
    return re.sub(r":\w+:<code>~?\.?", "<code>", html)
