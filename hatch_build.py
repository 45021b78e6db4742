"""Package metadata that follows from one setting: ``repository`` in ``pyproject.toml``.

With an address, the package page gets its links to the project, and relative links and pictures of the README become
absolute. Without one, links become plain text and pictures are left out, so that nothing on the page is broken.
``RELEASE=1`` refuses to build what should not be published.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<picture>!?)\[(?P<text>[^\]]*)\]\((?!https?://|#|mailto:)(?P<target>[^)\s]+)\)")
PAGES = {
    "Homepage": "",
    "Documentation": "/blob/v{version}/docs/index.md",
    "Changelog": "/blob/v{version}/CHANGELOG.md",
    "Issues": "/issues",
}


def package_readme(readme: str, repository: str, version: str) -> str:
    """The README without relative links, which lead nowhere on a package page."""

    def absolute(found: re.Match[str]) -> str:
        picture, text, target = found["picture"], found["text"], found["target"]
        if not repository:
            return "" if picture else text
        return f"{picture}[{text}]({repository}/{'raw' if picture else 'blob'}/v{version}/{target})"

    return LINK.sub(absolute, readme)


def not_ready(root: Path, repository: str, version: str) -> list[str]:
    """What is missing for a release of ``version``."""
    citation = (root / "CITATION.cff").read_text("utf-8")
    found = []
    if not repository.startswith("https://"):
        found.append("pyproject.toml: repository of the metadata hook is not set to the project's https:// address")
    if f"\nversion: {version}\n" not in citation or "\ndate-released:" not in citation:
        found.append(f"CITATION.cff: version is not {version}, or date-released is missing")
    if f"\nrepository-code: {repository}\n" not in citation:
        found.append("CITATION.cff: repository-code is not the address in pyproject.toml")
    dated = re.compile(rf"^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", re.MULTILINE)
    if not dated.search((root / "CHANGELOG.md").read_text("utf-8")):
        found.append(f"CHANGELOG.md: no section for {version} with the day of its release")
    return found


class Metadata(MetadataHookInterface):
    """``readme`` and ``urls`` of the project."""

    def update(self, metadata: dict[str, Any]) -> None:
        root, repository, version = Path(self.root), self.config["repository"].rstrip("/"), metadata["version"]
        if os.environ.get("RELEASE") and (missing := not_ready(root, repository, version)):
            raise ValueError("not ready to be released (RELEASING.md)\n" + "\n".join(missing))
        text = package_readme((root / "README.md").read_text("utf-8"), repository, version)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if repository:
            metadata["urls"] = {name: repository + page.format(version=version) for name, page in PAGES.items()}
