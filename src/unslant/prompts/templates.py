"""Prompt templates: named ones that ship with unslant, and the user's own in a TOML file.

A template gives the wording of a question (``question``), how each elicitation asks for the answer (``cue``) and what
is scored after the cue (``continuation``). All are Jinja2, rendered in a sandbox, so an untrusted template can do
nothing but word a question. Texts of questions are values, never template source.
"""

from __future__ import annotations

import tomllib
from dataclasses import fields
from functools import cached_property, lru_cache
from importlib import resources
from operator import attrgetter
from pathlib import Path
from typing import Any

from jinja2 import StrictUndefined, Template, TemplateSyntaxError, meta
from pydantic import PrivateAttr

from unslant.errors import InputError, one_of
from unslant.files import Checked, checked, read_text
from unslant.presentations import ALPHABETS, Presentation, ShownOption, alphabetical
from unslant.prompts.rendering import TemplateEnvironment

_OF_OPTIONS = frozenset(field.name for field in fields(ShownOption))


class _Environment(TemplateEnvironment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        if type(obj) is ShownOption and attribute in _OF_OPTIONS:  # most of what a question reads, and always safe
            return getattr(obj, attribute)
        return super().getattr(obj, attribute)


_ENVIRONMENT = _Environment(undefined=StrictUndefined, keep_trailing_newline=True)
_SUFFIX = ".toml"
_LARGEST = 1 << 20

VARIABLES: dict[str, frozenset[str]] = {
    "instruction": frozenset({"labels", "none_label"}),
    "question": frozenset({"stem", "context", "options", "labels", "none_label", "distractor", "hint"}),
    "cloze.cue": frozenset(),
    "cloze.continuation": frozenset({"label"}),
    "counterfactual.cue": frozenset({"label"}),
    "counterfactual.continuation": frozenset({"canary"}),
}
"""Variables each part of a template may use. Every item of ``options`` has ``label`` and ``text``."""
_REQUIRED: dict[str, frozenset[str]] = VARIABLES | {
    "instruction": frozenset(),
    "question": frozenset({"stem", "options"}),
}
_NEVER_DROPPED = ("context", "hint", "distractor")


class ClozeTexts(Checked):
    """Score the label after the cue; ``close`` follows it in worked examples (a closing bracket, say)."""

    cue: str = "Answer:"
    continuation: str = " {{ label }}"
    close: str = ""


class CounterfactualTexts(Checked):
    """Score one canary text after a cue that contains the label."""

    cue: str = "Of the answer choices above, answer choice {{ label }} is the"
    continuation: str = " {{ canary }}"


class PromptTemplate(Checked):
    """A template; :data:`VARIABLES` lists what each part may use.

    Attributes:
        shot_separator: between worked examples, and between them and the question.
        instruction: written once, before everything else (as the system message in a chat); may be empty.
    """

    name: str = ""
    description: str = ""
    instruction: str = ""
    question: str
    shot_separator: str = "\n\n"
    cloze: ClozeTexts = ClozeTexts()
    counterfactual: CounterfactualTexts = CounterfactualTexts()
    _path: str = PrivateAttr("")

    def __hash__(self) -> int:  # templates are keys of caches: hashing every field would cost more than it saves
        return hash((self.name, self.question))

    def __getstate__(self) -> dict[Any, Any]:
        """Without compiled code, which cannot be pickled."""
        state = super().__getstate__()
        return state | {"__dict__": {name: self.__dict__[name] for name in type(self).model_fields}}

    @cached_property
    def _sources(self) -> dict[str, str]:
        return {part: str(attrgetter(part)(self)) for part in VARIABLES}

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
        """Variables that each part uses."""
        return {
            part: meta.find_undeclared_variables(_ENVIRONMENT.parse(source)) - set(_ENVIRONMENT.globals)
            for part, source in self._sources.items()
        }

    def _error(self, part: str, reason: str) -> InputError:
        place = self._path or f"template {self.name!r}"
        return InputError.at(place, " ".join(reason.split()), field=part)

    def check(self) -> None:
        """Find mistakes before a run starts.

        Raises:
            InputError: naming the file and the field, on a syntax error, an unknown variable, a missing variable that
                is required, or any failure when a question of 26 options is rendered.
        """
        _ = self._compiled
        for part, used in self._used.items():
            if unknown := sorted(used - VARIABLES[part]):
                allowed = ", ".join(sorted(VARIABLES[part])) or "none"
                raise self._error(part, f"unknown variable {unknown[0]!r}; allowed here: {allowed}")
            if missing := sorted(_REQUIRED[part] - used):
                raise self._error(part, f"must use {{{{ {missing[0]} }}}}")
        for sample in (_SAMPLE, _BARE_SAMPLE):
            for part, names in VARIABLES.items():
                self.render(part, **{name: value for name, value in sample.items() if name in names})

    def render(self, part: str, **variables: object) -> str:
        """One part of the template as text.

        Raises:
            InputError: naming the template's file and the part, if it fails for any reason.
        """
        template = self._compiled[part]
        try:
            return template.render(**variables)
        except Exception as error:  # a template is a program: undefined names, types, arithmetic
            raise self._error(part, str(error) or type(error).__name__) from error

    def render_question(self, presentation: Presentation) -> str:
        """The question alone, without instruction, shots or cue.

        Raises:
            InputError: also if the presentation has a context, hint, second question or "none" label that the
                template does not use.
        """
        # A change that the prompt does not show must not be measured.
        for name in _NEVER_DROPPED:
            if getattr(presentation, name) and name not in self._used["question"]:
                raise self._error(
                    "question",
                    f"has no {{{{ {name} }}}}, but question {presentation.question_id!r} has one; add it, or write "
                    f"{{% set _ = {name} %}} to leave it out on purpose",
                )
        used = self._used["question"] | self._used["instruction"]
        offered = presentation.hint or presentation.instruction or used & {"none_label", "labels"}
        if presentation.none_label and not offered:
            raise self._error(
                "question",
                f"has no {{{{ none_label }}}}, and no hint or instruction offers {presentation.none_label!r} to "
                f"question {presentation.question_id!r}",
            )
        others = {name: getattr(presentation, name) for name in VARIABLES["question"] - {"options"}}
        return self.render("question", options=presentation.shown, **others)

    def render_instruction(self, presentation: Presentation) -> str:
        """The presentation's own instruction, or the template's, rendered with ``labels`` in alphabetical order."""
        if presentation.instruction:
            return presentation.instruction
        labels = alphabetical([option.label for option in presentation.shown])
        none = (presentation.none_label,) if presentation.none_label else ()
        return _instruction(self, (*labels, *none), presentation.none_label)


@lru_cache(maxsize=4096)
def _instruction(template: PromptTemplate, labels: tuple[str, ...], none_label: str) -> str:
    return template.render("instruction", labels=labels, none_label=none_label)


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


def usual_template(generate: bool, reasoning: bool = False, template: str | Path = "") -> str | Path:
    """The template in use: ``template``, else ``plain`` for scores, else one that asks for replies.

    Raises:
        InputError: if reasoning is combined with a template, or with scores of labels.
    """
    if reasoning and not generate:
        raise InputError("--reasoning applies only to generated replies; add --elicit=generate")
    if reasoning and template not in ("", "reasoning"):  # settings are resolved twice, by command and study
        raise InputError(
            "--reasoning has its own template: leave out --template, or have yours ask for reasoning and leave "
            "out --reasoning"
        )
    return template or ("reasoning" if reasoning else "label-alone" if generate else "plain")


def template_names() -> list[str]:
    """Names of the templates that ship with unslant, sorted."""
    folder = resources.files("unslant.prompts") / "templates"
    return sorted(entry.name.removesuffix(_SUFFIX) for entry in folder.iterdir() if entry.name.endswith(_SUFFIX))


def load_template(name_or_path: str | Path) -> PromptTemplate:
    """A shipped template by name, or the user's own by the path of its TOML file.

    Raises:
        InputError: if there is no such template, or its file is invalid.
    """
    name_or_path = str(name_or_path)
    if name_or_path.endswith(_SUFFIX):
        path = Path(name_or_path)
        return _parse(read_text(path, _LARGEST), name_or_path, path.stem)
    return _parse(template_text(name_or_path), name_or_path + _SUFFIX, name_or_path)


def template_text(name: str) -> str:
    """The TOML of a shipped template.

    Raises:
        InputError: if there is no such template.
    """
    if name not in template_names():
        raise InputError(f"unknown template {name!r}: {one_of(name, template_names())}, or the path of a .toml file")
    return (resources.files("unslant.prompts") / "templates" / (name + _SUFFIX)).read_text("utf-8")


@lru_cache(maxsize=64)  # a check renders every part with 26 options, and each run loads its template again
def _parse(text: str, path: str, default_name: str) -> PromptTemplate:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError.at(path, f"not valid TOML: {error}") from None
    except (ValueError, RecursionError):
        raise InputError.at(path, "not usable TOML: holds a number too long, or is nested too deeply") from None
    template = checked(PromptTemplate, {**data, "name": data.get("name") or default_name}, path)
    template._path = path
    template.check()
    return template
