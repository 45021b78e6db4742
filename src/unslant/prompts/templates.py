"""Prompt templates: named ones that ship with unslant, and the user's own in a TOML file.

A template says how a question is worded (``question``), how each elicitation asks for the answer (``cue``) and what is
scored after the cue (``continuation``). All of them are Jinja2, rendered in a sandbox.

Variables in ``question``: ``stem``, ``context``, ``options`` (each with ``label`` and ``text``), ``labels``,
``none_label``, ``distractor``, ``hint``. In ``instruction``: ``labels``, ``none_label``.
In ``cue`` and ``continuation``: ``label`` (and ``canary`` in the counterfactual's continuation).
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from unslant.errors import InputError
from unslant.presentations.presentation import Presentation

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
)
_SUFFIX = ".toml"


@dataclass(frozen=True)
class Cue:
    """How one elicitation asks: the words that lead up to the answer and the text that is scored.

    ``close`` follows the answer in worked examples only (a closing bracket, say).
    """

    cue: str
    continuation: str
    close: str = ""


@dataclass(frozen=True)
class PromptTemplate:
    """A compiled-on-use template; see the module for its variables.

    Attributes:
        cloze: the label is scored after the cue.
        counterfactual: the label stands in the cue and one canary word is scored.
        shot_separator: stands between worked examples, and between them and the question.
        instruction: stands once, before everything else (as the system message in a chat); may be empty.
    """

    name: str
    question: str
    cloze: Cue
    counterfactual: Cue
    description: str = ""
    instruction: str = ""
    shot_separator: str = "\n\n"
    extra: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def _compiled(self) -> dict[str, Template]:
        sources = {
            "instruction": self.instruction,
            "question": self.question,
            "cloze.cue": self.cloze.cue,
            "cloze.continuation": self.cloze.continuation,
            "counterfactual.cue": self.counterfactual.cue,
            "counterfactual.continuation": self.counterfactual.continuation,
        }
        compiled = {}
        for part, source in sources.items():
            try:
                compiled[part] = _ENVIRONMENT.from_string(source)
            except TemplateError as error:
                raise InputError(f"template {self.name!r}, {part}: {error}") from None
        return compiled

    def render(self, part: str, **variables: object) -> str:
        """One part of the template as text.

        Raises:
            InputError: naming the template and the part, if it uses a variable that does not exist.
        """
        try:
            return self._compiled[part].render(**variables)
        except TemplateError as error:
            raise InputError(f"template {self.name!r}, {part}: {error}") from None

    def render_question(self, presentation: Presentation) -> str:
        """The question as it stands on the page, without instruction, shots or cue."""
        return self.render(
            "question",
            stem=presentation.stem,
            context=presentation.context,
            options=presentation.shown,
            labels=presentation.labels,
            none_label=presentation.none_label,
            distractor=presentation.distractor,
            hint=presentation.hint,
        )

    def render_instruction(self, presentation: Presentation) -> str:
        """The presentation's own instruction, or the template's."""
        if presentation.instruction:
            return presentation.instruction
        return self.render("instruction", labels=presentation.labels, none_label=presentation.none_label)


def template_names() -> list[str]:
    """Names of the templates that ship with unslant, sorted."""
    folder = resources.files("unslant.prompts") / "templates"
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in folder.iterdir() if entry.name.endswith(_SUFFIX))


def load_template(name_or_path: str) -> PromptTemplate:
    """A shipped template by name, or the user's own by the path of its TOML file.

    Raises:
        InputError: if there is no such template, or its file is not valid.
    """
    if name_or_path.endswith(_SUFFIX):
        path = Path(name_or_path)
        if not path.is_file():
            raise InputError.at(path, "no such template file")
        return _parse(path.read_text("utf-8"), path, path.stem)
    if name_or_path not in template_names():
        raise InputError(
            f"unknown template {name_or_path!r}: use one of {', '.join(template_names())}, or the path of a .toml file"
        )
    entry = resources.files("unslant.prompts") / "templates" / (name_or_path + _SUFFIX)
    return _parse(entry.read_text("utf-8"), name_or_path + _SUFFIX, name_or_path)


def _parse(text: str, path: object, default_name: str) -> PromptTemplate:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError.at(path, f"not valid TOML: {error}") from None
    if not isinstance(data.get("question"), str):
        raise InputError.at(path, "missing: a Jinja2 text with the question and its options", field="question")
    known = {"name", "description", "instruction", "question", "shot_separator", "cloze", "counterfactual"}
    unknown = sorted(set(data) - known)
    if unknown:
        raise InputError.at(path, f"unknown; allowed are {', '.join(sorted(known))}", field=unknown[0])
    template = PromptTemplate(
        name=str(data.get("name", default_name)),
        description=str(data.get("description", "")),
        instruction=str(data.get("instruction", "")),
        question=data["question"],
        shot_separator=str(data.get("shot_separator", "\n\n")),
        cloze=_cue(data.get("cloze", {}), path, "cloze", Cue("Answer:", " {{ label }}")),
        counterfactual=_cue(
            data.get("counterfactual", {}),
            path,
            "counterfactual",
            Cue("Of the answer choices above, answer choice {{ label }} is the", " {{ canary }}"),
        ),
    )
    template._compiled  # noqa: B018  -- a syntax error must surface at load, with the file's name
    return template


def _cue(table: object, path: object, name: str, default: Cue) -> Cue:
    if not isinstance(table, dict):
        raise InputError.at(path, "must be a table with cue and continuation", field=name)
    unknown = sorted(set(table) - {"cue", "continuation", "close"})
    if unknown:
        raise InputError.at(path, "unknown; allowed are cue, continuation, close", field=f"{name}.{unknown[0]}")
    return Cue(
        str(table.get("cue", default.cue)),
        str(table.get("continuation", default.continuation)),
        str(table.get("close", "")),
    )
