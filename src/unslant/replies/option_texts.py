"""Find the texts of options in a reply, as long as possible, tolerating inflection and small words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from unslant.replies.grammar import pattern, words

COMMON = frozenset(words("common"))
"""Words that do not point to an option outside an answer."""
_SKIPPED = frozenset(words("skipped"))
_ARTICLES = frozenset(words("article_word"))
_LONGEST = 100
"""Words of an option's text that are compared with a reply: at every word of it the text might begin."""
_CJK = r"\u3040-\u30ff\u4e00-\u9fff"
_HANGUL = r"\uac00-\ud7a3"
_TOKEN = pattern(
    rf"(?<![\d.])\.\d+|(?<![\d.] )(?<![\d.])\d{{1,3}}(?: \d{{3}}(?![\d ]))+(?:\.\d+)?"
    rf"|\d+(?:,\d{{3}}(?!\d))*(?:\.\d+)?|[{_CJK}]|[{_HANGUL}]+?(?={{copula_written_on}}(?![{_HANGUL}]))"
    rf"|[^\W\d_{_CJK}]+(?:'[^\W\d_]+)*"
    r"|[^\w\s.,;:?'\"(){}\[\]$\\⟦⟧]",
    0,
)
_SUFFIX = pattern("{inflection}$", 0)
_SAME = {"&": words("plain_and")[0], "×": "*", "·": "*"}
_LETTERS = pattern(r"[aA]\W{0,3}(?:{and_or}|\w)?\W{0,3}(?:\w\b|\Z)", 0)
_CLOSING = pattern(
    r"(?:[.!?;]{0,3}(?:[\"']|\s?[)\]}>])[\"')\]}>]{0,2})?"
    r"(?:[.!?;]{1,3}(?=[,;]| {plain_and}\b)|\s{1,2}(?=[,;])|\n ?(?={plain_and}\b))?",
    0,
)
_WHY_OR_NOT = pattern(r"\b(?:{why}|{not_word})\b[^.!?\n]{0,200}")
_PHRASE_GOES_ON = pattern(r" (?:{and_or} [a-z]|{article_word} |{this} )", 0)
_NEXT = pattern(r"{one}(?:,|,? {plain_and}) (\w+)")
_GOES_ON = pattern(r"[\"')\]}]{0,2} ?(?:[,;]| {plain_and}\b|[)\]}])", 0)


class Token(NamedTuple):
    """A word, number or sign: its place, its exact form and its stem, without case."""

    start: int
    end: int
    exact: str
    stem: str
    article: bool
    after_stop: bool


def tokens(text: str) -> list[Token]:
    """The words, numbers and signs of a text, without punctuation."""
    sequence: list[Token] = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        exact = match.group().casefold()
        if exact == "-" and _joins_words(text, start):
            continue
        if exact[-1].isdigit():
            exact = exact.replace(",", "").replace(" ", "") if exact[0] != "." else "0" + exact
            stem = re.sub(r"(\.\d*?)0+\Z", r"\1", exact).rstrip(".")
        else:
            stem = _SAME.get(exact) or _stem(exact)
        # "A" is a label or a vitamin, unless it comes first; "a and b" are letters.
        article = exact in _ARTICLES and (match.group() != "A" or not sequence) and not _LETTERS.match(text, start)
        stop = sequence and re.search(r"[.:;)\n]", text[sequence[-1].end : start])
        sequence.append(Token(start, end, exact, stem, article, bool(stop)))
    return sequence


def _stem(word: str) -> str:
    """A word without its inflection, so that "shedding its skin" is read as "shed its skin"."""
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
    """Whether words can only be an option's text, wherever in a reply they occur."""
    telling = [token.exact for token in sequence if token.exact[0].isalpha() and token.exact not in COMMON]
    # A Korean word of two syllables has the letters of a longer one.
    return len(telling) > 1 or any(len(word) > 2 or (len(word) == 2 and word >= "\uac00") for word in telling)


def end_of(text: str, end: int) -> int:
    """``end``, or the end of the brackets, quotes and stops that follow it."""
    closing = _CLOSING.match(text, end)
    return closing.end() if closing else end


@lru_cache(maxsize=1 << 13)  # every page of a question has the same options
def _read(text: str) -> tuple[list[Token], str, frozenset[str]]:
    """The words of an option's text, the same on one line, and the stems of its telling ones."""
    sequence = tokens(text)
    return sequence, _line(sequence), frozenset(token.stem for token in sequence if is_telling([token]))


def unnumbered(texts: list[str]) -> list[str]:
    """The texts without the numbers before them, if they are numbered from 0 or 1."""
    parts = [re.match(r"(\d{1,2})[.)] (.*\S.*)", text, re.DOTALL) for text in texts]
    numbers = [int(part[1]) for part in parts if part]
    in_order = len(texts) > 1 and numbers in (list(range(len(texts))), list(range(1, len(texts) + 1)))
    return [part[2] for part in parts if part] if in_order else texts


class OptionTexts:
    """The texts of one presentation's options, for search."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = tuple(texts)
        read = [_read(text) for text in texts]
        self.tokens = [sequence for sequence, _, _ in read]
        self.telling = [is_telling(sequence) for sequence in self.tokens]
        self._stems = [_stems(sequence) for sequence in self.tokens]
        self._lines = [line for _, line, _ in read]
        self._telling_stems = [stems for _, _, stems in read]
        self.containing = lru_cache(maxsize=1000)(self._containing)  # replies repeat themselves
        # "Not Sydney" next to "Sydney" and others may be that option, or deny the other one.
        named = {text.casefold() for text in texts} if len(texts) > 2 else set()
        negations = (pattern(r"{not_word} (.+)").fullmatch(text.casefold()) for text in texts)
        self.negating = [negation is not None and negation[1] in named for negation in negations]
        # A trie finds the longest text at a token in one walk, however many options there are.
        self._trie: dict[str, Any] = {}
        for option, stems in enumerate(self._stems):
            node = self._trie
            for stem in stems[:_LONGEST]:
                node = node.setdefault(stem, {})
            if stems:
                node[""] = (*node.get("", ()), option)

    def at(self, sequence: Sequence[Token], i: int, only: int | None = None) -> tuple[int, tuple[int, ...]]:
        """The longest option text from token ``i`` on, or with ``only`` the longest text of that option.

        Returns:
            The token after it (``i`` if there is none), and its options; several if their texts are alike.
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
                    and (k != i + 2 or token.exact not in _SKIPPED or sequence[i].exact != "a")  # "A is Lyon": a label
                ):
                    continue
                break
            node, skipped = node[token.stem], 0
            here = node.get("", ())
            if here and (only is None or only in here):
                end, options = k, here
        if len(options) > 1 and only is None:
            # Texts that differ by inflection alone: the one in these exact words is meant.
            words = [token.exact for token in sequence[i:end] if not token.article]
            same = [o for o in options if [t.exact for t in self.tokens[o] if not t.article] == words]
            options = tuple(same) or options
        return end, options

    def written_out(self, text: str, earliest: int, latest: int, option: int) -> int | None:
        """The end of an option's text that starts verbatim between ``earliest`` and ``latest``, with its own brackets
        and stops, except a stop that ends the sentence; None if there is none."""
        if option >= len(self.texts):
            return None
        option_text = self.texts[option]
        if not option_text:
            nothing = pattern(r"[.):]{0,2} ?(?:\( ?\))?(?= ?(?:[,;\n]|{plain_and}\b|\Z))", 0).match(text, earliest)
            return nothing.end() if nothing else None
        start = next((s for s in range(max(0, earliest), latest + 1) if text.startswith(option_text, s)), None)
        if start is None:
            return None
        end = start + len(option_text)
        if option_text[-1].isalnum() and text[end : end + 1].isalnum():
            return None
        return end - 1 if option_text[-1] in ".!" and not _GOES_ON.match(text, end) else end

    def _containing(self, text: str) -> frozenset[int]:
        """Options of whose text ``text`` is a part, if it is telling."""
        sequence = tokens(text)
        words = _line(sequence)
        return frozenset(o for o, line in enumerate(self._lines) if words in line and is_telling(sequence))

    def nearer(self, text: str, option: int) -> list[int]:
        """Other options whose texts hold all of a few words, at least two, while ``option``'s holds none."""
        if option >= len(self._stems):  # labels may be known without the options' texts
            return []
        words = {token.stem for token in tokens(text) if is_telling([token])}
        owners = [o for o, stems in enumerate(self._stems) if words <= set(stems)]
        return owners if len(words) > 1 and not words & set(self._stems[option]) else []

    def fuller(self, chosen: frozenset[int], text: str) -> bool:
        """Whether ``text`` says what another option says, too: all that it has more than the chosen ones ("safe, but
        only for adults"), or a word of it next to theirs ("light, strong and cheap")."""
        known = frozenset().union(*(self._telling_stems[o] for o in chosen))
        text = _WHY_OR_NOT.sub("", text)
        said, next_ones = ({token.stem for token in tokens(part)} for part in (text, " ".join(_NEXT.findall(text))))
        more = ((known < stems, stems - known) for o, stems in enumerate(self._telling_stems) if o not in chosen)
        return any(words & next_ones or (longer and words <= said) for longer, words in more)

    def is_common_word(self, text: str, start: int, stop: int, option: int) -> bool:
        """Whether a name is used as a word ("How nice! It is Paris."), in a reply that writes another one as a name."""
        name, opens = self.texts[option], text[:start].rstrip(" \"'(")[-1:] in ("", ".", "!", "?", "\n")
        as_word = name.lower() in text[start:stop] or (opens and _PHRASE_GOES_ON.match(text, stop))
        others = "|".join(re.escape(other) for other in self.texts if other[:1].isupper() and other != name)
        is_name = name.isalpha() and name[0].isupper()
        # A capital at the beginning of a sentence says nothing, unless the sentence is only that.
        named = rf"(?:(?<=[\w,:;] )(?:{others})(?!\w)|(?<!\w)(?:{others})[.!]{{0,3}}\Z)"
        return bool(as_word and others and is_name and re.search(named, text))

    def together(self, options: frozenset[int]) -> frozenset[int]:
        """The option that says all that several say, "red and blue" of "blue" and "red"; else these."""
        words = frozenset().union(*(self._telling_stems[o] for o in options))
        whole = frozenset(o for o, stems in enumerate(self._telling_stems) if stems == words)
        return whole if words and len(whole) == 1 < len(options) else options

    def reordered(self, text: str) -> frozenset[int]:
        """Options made of the words of ``text``, in any order; numbers and signs say another thing in another order."""
        words = sorted(_stems(tokens(text)))
        return frozenset(o for o, stems in enumerate(self._stems) if self.telling[o] and sorted(stems) == words)

    def distinguished(self, text: str) -> frozenset[int]:
        """The only option with words of its own in ``text``, if ``text`` has all or several of these, and its signs."""
        said = {token.stem for token in tokens(text)}
        words = self._telling_stems
        shared = frozenset.intersection(*words) if words else frozenset()
        owners = [option for option, stems in enumerate(words) if (stems - shared) & said]
        if len(owners) != 1:
            return frozenset()
        distinctive = words[owners[0]] - shared
        signs = {token.stem for token in self.tokens[owners[0]] if not token.exact.isalpha()}
        enough = signs <= said and (distinctive <= said or len(distinctive & said) > 1)
        return frozenset(owners) if enough else frozenset()

    def beginning(self, word: str) -> frozenset[int]:
        """Options whose text begins with ``word``."""
        first = word.strip().casefold()
        return frozenset(o for o, sequence in enumerate(self.tokens) if sequence and sequence[0].exact == first)


def _line(sequence: Sequence[Token]) -> str:
    """The stems of a text as one line, in which a number stays with the letters that it follows: "b12"."""
    kept = [token for token in sequence if not token.article] or sequence
    ends = {token.end for token in kept if token.exact[-1].isalpha()}
    parts = (f"{'' if t.start in ends and t.exact[0].isdigit() else ' '}{t.stem}" for t in kept)
    return "".join(parts) + " "


def _stems(sequence: Sequence[Token]) -> list[str]:
    """The stems of a text, without its articles unless it has nothing else."""
    return [token.stem for token in sequence if not token.article] or [token.stem for token in sequence]
