"""Prompt templates: named ones that ship with unslant, and the user's own in a TOML file.

A template says how a question is worded (``question``), how each elicitation asks for the answer (``cue``) and what is
scored after the cue (``continuation``). All of them are Jinja2, rendered in a sandbox: a template from elsewhere can
word a question and nothing more. Texts of questions are values, never template source.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, meta
from jinja2.sandbox import ImmutableSandboxedEnvironment

from unslant.checked import Checked, checked
from unslant.errors import InputError
from unslant.presentations import ALPHABETS, Presentation, ShownOption, alphabetical

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
)
_SUFFIX = ".toml"

VARIABLES: dict[str, frozenset[str]] = {
    "instruction": frozenset({"labels", "none_label"}),
    "question": frozenset({"stem", "context", "options", "labels", "none_label", "distractor", "hint"}),
    "cloze.cue": frozenset(),
    "cloze.continuation": frozenset({"label"}),
    "counterfactual.cue": frozenset({"label"}),
    "counterfactual.continuation": frozenset({"canary"}),
}
"""What each part of a template may use. Every item of ``options`` has ``label`` and ``text``."""
_REQUIRED: dict[str, frozenset[str]] = VARIABLES | {
    "instruction": frozenset(),
    "question": frozenset({"stem", "options"}),
}
_NEVER_DROPPED = ("context", "hint", "distractor")


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
    """A template; :data:`VARIABLES` says what each part may use.

    Attributes:
        cloze: the label is scored after the cue.
        counterfactual: the label stands in the cue and one canary text is scored.
        shot_separator: stands between worked examples, and between them and the question.
        instruction: stands once, before everything else (as the system message in a chat); may be empty.
        path: file it was read from; empty if it was made in Python.
    """

    name: str
    question: str
    cloze: Cue
    counterfactual: Cue
    description: str = ""
    instruction: str = ""
    shot_separator: str = "\n\n"
    path: str = ""

    @cached_property
    def _sources(self) -> dict[str, str]:
        return {
            "instruction": self.instruction,
            "question": self.question,
            "cloze.cue": self.cloze.cue,
            "cloze.continuation": self.cloze.continuation,
            "counterfactual.cue": self.counterfactual.cue,
            "counterfactual.continuation": self.counterfactual.continuation,
        }

    @cached_property
    def _compiled(self) -> dict[str, Template]:
        compiled = {}
        for part, source in self._sources.items():
            try:
                compiled[part] = _ENVIRONMENT.from_string(source)
            except TemplateSyntaxError as error:
                raise self._error(part, f"line {error.lineno} of the text: {error.message}") from None
        return compiled

    @cached_property
    def _used(self) -> dict[str, set[str]]:
        """Variables that each part mentions."""
        return {
            part: meta.find_undeclared_variables(_ENVIRONMENT.parse(source)) - set(_ENVIRONMENT.globals)
            for part, source in self._sources.items()
        }

    def _error(self, part: str, reason: str) -> InputError:
        place = self.path or f"template {self.name!r}"
        return InputError.at(place, " ".join(reason.split()), field=part)

    def check(self) -> None:
        """Find mistakes before a run does.

        Raises:
            InputError: naming the file and the field, on a syntax error, a variable that does not exist, one that is
                missing though the answer hangs on it, or anything that fails when a question of 26 options is written.
        """
        _ = self._compiled
        for part, used in self._used.items():
            unknown = sorted(used - VARIABLES[part])
            if unknown:
                allowed = ", ".join(sorted(VARIABLES[part])) or "none"
                raise self._error(part, f"unknown variable {unknown[0]!r}; allowed here: {allowed}")
            missing = sorted(_REQUIRED[part] - used)
            if missing:
                raise self._error(part, f"must use {{{{ {missing[0]} }}}}")
        for sample in (_SAMPLE, _BARE_SAMPLE):
            for part, names in VARIABLES.items():
                self.render(part, **{name: value for name, value in sample.items() if name in names})

    def render(self, part: str, **variables: object) -> str:
        """One part of the template as text.

        Raises:
            InputError: naming the template's file and the part, if it fails for whatever reason.
        """
        template = self._compiled[part]
        try:
            return template.render(**variables)
        except Exception as error:  # a template is a program and raises what it likes: undefined, type, arithmetic
            raise self._error(part, str(error) or type(error).__name__) from error

    def render_question(self, presentation: Presentation) -> str:
        """The question as it stands on the page, without instruction, shots or cue.

        Raises:
            InputError: also if the presentation has a context, hint, second question or "none" label that the
                template has no place for; a change that is not shown must not be measured.
        """
        for name in _NEVER_DROPPED:
            if getattr(presentation, name) and name not in self._used["question"]:
                raise self._error(
                    "question",
                    f"has no {{{{ {name} }}}}, but question {presentation.question_id!r} has one; add it, or write "
                    f"{{% set _ = {name} %}} to leave it out on purpose",
                )
        if presentation.none_label and not self._offers_none(presentation):
            raise self._error(
                "question",
                f"has no {{{{ none_label }}}}, and no hint or instruction offers {presentation.none_label!r} to "
                f"question {presentation.question_id!r}",
            )
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

    def _offers_none(self, presentation: Presentation) -> bool:
        used = self._used["question"] | self._used["instruction"]
        return bool(presentation.hint or presentation.instruction or used & {"none_label", "labels"})

    def render_instruction(self, presentation: Presentation) -> str:
        """The presentation's own instruction, or the template's.

        The template's sees ``labels`` in alphabetical order, whatever the order on the page.
        """
        if presentation.instruction:
            return presentation.instruction
        own = alphabetical([option.label for option in presentation.shown])
        none = (presentation.none_label,) if presentation.none_label else ()
        return self.render("instruction", labels=(*own, *none), none_label=presentation.none_label)


_BARE_SAMPLE: dict[str, object] = {
    "stem": "Which?",
    "context": "",
    "options": tuple(ShownOption(label, f"option {label}", i) for i, label in enumerate(ALPHABETS["A"])),
    "labels": ALPHABETS["A"],
    "none_label": "",
    "distractor": "",
    "hint": "",
    "label": "A",
    "canary": "best",
}
_SAMPLE = _BARE_SAMPLE | {"context": "Facts.", "none_label": "none", "distractor": "Who?", "hint": "Or none."}


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
        try:
            text = path.read_text("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InputError.at(path, f"not UTF-8 text: {error.reason} at byte {error.start}") from None
        return _parse(text, path, path.stem)
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
    found = checked(_File, data, path)
    template = PromptTemplate(
        name=found.name or default_name,
        description=found.description,
        instruction=found.instruction,
        question=found.question,
        shot_separator=found.shot_separator,
        cloze=Cue(**found.cloze.model_dump()),
        counterfactual=Cue(**found.counterfactual.model_dump()),
        path=str(path),
    )
    template.check()
    return template


class _Cloze(Checked):
    cue: str = "Answer:"
    continuation: str = " {{ label }}"
    close: str = ""


class _Counterfactual(Checked):
    cue: str = "Of the answer choices above, answer choice {{ label }} is the"
    continuation: str = " {{ canary }}"


class _File(Checked):
    """A template as its file has it."""

    name: str = ""
    description: str = ""
    instruction: str = ""
    question: str
    shot_separator: str = "\n\n"
    cloze: _Cloze = _Cloze()
    counterfactual: _Counterfactual = _Counterfactual()
