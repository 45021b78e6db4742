"""Finds the texts of options in a reply, as long as possible and forgiving about inflection and small words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from unslant.replies.cues import words
from unslant.replies.grammar import pattern

COMMON = frozenset(words("common"))
"""Words that say nothing of an option when met outside an answer."""
_SKIPPED = frozenset(words("skipped"))
_LONGEST = 100
"""Words of an option's text that are compared with a reply: at every word of it the text might begin."""
_CJK = r"\u3040-\u30ff\u4e00-\u9fff"
_TOKEN = re.compile(
    rf"(?<![\d.])\.\d+|(?<![\d.] )(?<![\d.])\d{{1,3}}(?: \d{{3}}(?![\d ]))+(?:\.\d+)?"
    rf"|\d+(?:,\d{{3}}(?!\d))*(?:\.\d+)?|[{_CJK}]|[^\W\d_{_CJK}]+(?:'[^\W\d_]+)*"
    r"|[^\w\s.,;:?'\"(){}\[\]$\\⟦⟧]"
)
_SUFFIX = pattern("{inflection}$", 0)
_SAME = {"&": words("plain_and")[0], "×": "*", "·": "*"}
_LETTERS = pattern(r"[aA]\W{0,3}(?:{and_or}|\w)?\W{0,3}(?:\w\b|\Z)", 0)
_CLOSING = pattern(
    r"(?:[.!?;]{0,3}(?:[\"']|\s?[)\]}>])[\"')\]}>]{0,2})?"
    r"(?:[.!?;]{1,3}(?=[,;]| {plain_and}\b)|\s{1,2}(?=[,;])|\n ?(?={plain_and}\b))?",
    0,
)
_EMPTY = pattern(r"[.):]{0,2} ?(?:\( ?\))?(?= ?(?:[,;\n]|{plain_and}\b|\Z))", 0)
_GOES_ON = pattern(r"[\"')\]}]{0,2} ?(?:[,;]| {plain_and}\b|[)\]}])", 0)


class Token(NamedTuple):
    """A word, number or sign: its place, and how it compares exactly and by its stem."""

    start: int
    end: int
    exact: str
    stem: str
    article: bool
    after_stop: bool


def tokens(text: str) -> list[Token]:
    """The words, numbers and signs of a text; punctuation is none."""
    sequence: list[Token] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        exact = match.group().casefold()
        if exact == "-" and _joins_words(text, start):
            continue
        if exact[-1].isdigit():
            exact = exact.replace(",", "").replace(" ", "") if exact[0] != "." else "0" + exact
            stem = re.sub(r"\.0+\Z|(?<=\.\d)0+\Z", "", exact)
        else:
            stem = _SAME.get(exact) or _stem(exact)
        # "A" is a label or a vitamin, unless it comes first; "a and b" are letters.
        article = (
            exact in words("article_word")
            and (match.group() != "A" or not sequence)
            and not _LETTERS.match(text, start)
        )
        stop = sequence and re.search(r"[.:;)\n]", text[sequence[-1].end : start])
        sequence.append(Token(start, end, exact, stem, article, bool(stop)))
    return sequence


def _stem(word: str) -> str:
    """What inflection leaves of a word, so that "shedding its skin" is read as "shed its skin"."""
    if len(word) <= 3 or word.endswith("ss"):
        return word
    stem = _SUFFIX.sub("", word)
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "sl":
        stem = stem[:-1]
    stem = stem.rstrip("e")
    return stem if len(stem) >= 3 else word


def _joins_words(text: str, position: int) -> bool:
    """Whether a dash is between words; elsewhere it is a sign."""
    before, after = text[max(0, position - 2) : position], text[position + 1 : position + 3].strip()
    return before.rstrip()[-1:].isalpha() and (before[-1:].isalpha() or not after[:1].isdigit())


def is_telling(sequence: Sequence[Token]) -> bool:
    """Whether words, met anywhere in a reply, can only be an option's text."""
    telling = [token.exact for token in sequence if token.exact[0].isalpha() and token.exact not in COMMON]
    return len(telling) > 1 or any(len(word) > 2 for word in telling)


def end_of(text: str, end: int) -> int:
    """``end`` moved behind the brackets, quotes and stops that close what ends there."""
    closing = _CLOSING.match(text, end)
    return closing.end() if closing else end


class OptionTexts:
    """The texts of one presentation's options, for search."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        self.tokens = [tokens(text) for text in texts]
        self.telling = [is_telling(sequence) for sequence in self.tokens]
        self._stems = [_kept(sequence) for sequence in self.tokens]
        self._joined = [f" {' '.join(stems)} " for stems in self._stems]
        self.containing = lru_cache(maxsize=1000)(self._containing)  # replies repeat themselves
        # A trie finds the longest text at a token in one walk, however many options there are.
        self._trie: dict[str, Any] = {}
        for option, stems in enumerate(self._stems):
            node = self._trie
            for stem in stems[:_LONGEST]:
                node = node.setdefault(stem, {})
            if stems:
                node[""] = (*node.get("", ()), option)

    def at(self, sequence: Sequence[Token], i: int, own: int | None = None) -> tuple[int, tuple[int, ...]]:
        """The longest text from token ``i`` on (with ``own``, the longest that is this option's).

        Returns:
            The token after it (``i`` if there is none), and whose text it is: several options' where texts are alike.
        """
        node, end, options, k, skipped = self._trie, i, (), i, 0
        while k < len(sequence):
            token, k = sequence[k], k + 1
            if token.stem not in node:
                skipped += 1
                if (
                    skipped < 4
                    and (k == i + 1 or not token.after_stop)
                    and (token.article or (token.exact == "a" if k == i + 1 else token.exact in _SKIPPED))
                ):
                    continue
                break
            node, skipped = node[token.stem], 0
            here = node.get("", ())
            if here and (own is None or own in here):
                end, options = k, here
        if len(options) > 1 and own is None:
            said = [token.exact for token in sequence[i:end] if not token.article]
            options = tuple(o for o in options if [t.exact for t in self.tokens[o] if not t.article] == said) or options
        return end, options

    def written_out(self, text: str, earliest: int, latest: int, option: int) -> int | None:
        """Where an option's text ends, if it appears verbatim between ``earliest`` and ``latest``, with its own
        brackets and stops but for a stop that ends the sentence; None if it does not."""
        if option >= len(self.texts):
            return None
        own = self.texts[option]
        if not own:
            nothing = _EMPTY.match(text, earliest)
            return nothing.end() if nothing else None
        start = next((s for s in range(max(0, earliest), latest + 1) if text.startswith(own, s)), None)
        if start is None:
            return None
        end = start + len(own)
        if own[-1].isalnum() and text[end : end + 1].isalnum():
            return None
        return end - 1 if own[-1] in ".!" and not _GOES_ON.match(text, end) else end

    def _containing(self, text: str) -> frozenset[int]:
        """Options of whose text ``text`` is a part, if it is telling."""
        words = tokens(text)
        part = f" {' '.join(_kept(words))} "
        return frozenset(o for o, own in enumerate(self._joined) if is_telling(words) and part in own)

    def nearer(self, text: str, option: int) -> list[int]:
        """Other options whose texts hold all of a few words, at least two, while ``option``'s holds none."""
        if option >= len(self._stems):  # labels may be known without the options' texts
            return []
        said = {token.stem for token in tokens(text) if is_telling([token])}
        owners = [o for o, stems in enumerate(self._stems) if said <= set(stems)]
        return owners if len(said) > 1 and not said & set(self._stems[option]) else []

    def reordered(self, text: str) -> frozenset[int]:
        """Options made of the words of ``text``, in any order."""
        said = sorted(_kept(tokens(text)))
        return frozenset(o for o, own in enumerate(self._stems) if said and sorted(own) == said)

    def distinguished(self, text: str) -> frozenset[int]:
        """The option all of whose own words ``text`` has, where it has no word that only other options have."""
        said = {token.stem for token in tokens(text)}
        words = [{token.stem for token in sequence if is_telling([token])} for sequence in self.tokens]
        others = [{token.stem for token in sequence if not token.exact.isalpha()} for sequence in self.tokens]
        shared = set.intersection(*words) if words else set()
        met = [o for o, own in enumerate(words) if (own - shared) & said]
        return frozenset(
            o
            for o in met
            if len(met) == 1
            and others[o] <= said
            and (words[o] - shared <= said or len((words[o] - shared) & said) > 1)
        )

    def beginning(self, word: str) -> frozenset[int]:
        """Options whose text begins with ``word``."""
        return frozenset(o for o, own in enumerate(self.tokens) if own and own[0].exact == word.strip().casefold())


def _kept(sequence: Sequence[Token]) -> list[str]:
    return [token.stem for token in sequence if not token.article] or [token.stem for token in sequence]
