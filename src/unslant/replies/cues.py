"""Cues: the words by which replies are read, as data, a file a language in ``cues/``.

A file maps classes to phrases, which are regular expressions separated by white space, with ``_`` for a space. Adding
a cue is adding a phrase to a class; adding a language is adding a file with those classes that it has words for.
:func:`pattern` puts them into the skeletons of the rules:

``{name}``
    a part of the grammar (:data:`unslant.replies.grammar.PARTS`), or any phrase of a class, in any language;
``{^name}``, ``{name$}``, ``{^name$}``
    the same at the beginning or end of a word, or both, in languages that write spaces between words.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

_REFERENCE = re.compile(r"\{(\^?)([a-z_]+)(\$?)\}")
_SPACE = re.compile(r"_|\{\^?[a-z_]+\$?\}")


@cache
def languages() -> dict[str, Mapping[str, str | bool]]:
    """The cues of every language, English first: of two phrases that fit, the first is tried first."""
    folder = resources.files("unslant.replies") / "cues"
    names = sorted((file.name for file in folder.iterdir()), key=lambda name: (name != "en.toml", name))
    return {name: tomllib.loads((folder / name).read_text("utf-8")) for name in names if name.endswith(".toml")}


@cache
def _phrases(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Phrases of a class in languages that write spaces between words, and in those that do not.

    Raises:
        KeyError: if no language has it.
    """
    spaced: list[str] = []
    unspaced: list[str] = []
    for language in languages().values():
        phrases = unspaced if language.get("spaces_between_words") is False else spaced
        for phrase in str(language.get(name, "")).split():
            phrases.append(_SPACE.sub(lambda match: " " if match.group() == "_" else match.group(), phrase))
    if not spaced and not unspaced:
        raise KeyError(f"no language has cues of the class {name!r}")
    return tuple(spaced), tuple(unspaced)


def words(name: str) -> tuple[str, ...]:
    """The phrases of a class, in all languages.

    Example:
        >>> words("ordinal")[:3]
        ('first', 'second', 'third')
    """
    spaced, unspaced = _phrases(name)
    return spaced + unspaced


def expand(template: str, parts: Mapping[str, str]) -> str:
    """A regular expression with the cues and the ``parts`` that it names written out.

    Raises:
        KeyError: if a name is neither.
    """

    def written(match: re.Match[str]) -> str:
        begin, name, end = match.groups()
        if name in parts:
            return expand(parts[name], parts)
        spaced, unspaced = _phrases(name)
        together = "|".join(spaced)
        if spaced and (begin or end):
            together = (r"\b" if begin else "") + f"(?:{together})" + (r"\b" if end else "")
        return expand(f"(?:{'|'.join(filter(None, (together, *unspaced)))})", parts)

    return _REFERENCE.sub(written, template)
