"""Every mention of an option in a reply, in whatever form, collapsed to one character.

"B. Paris", "option B", "(b)", "Paris (B)" and "the city of *Paris*" all speak of the option labelled B. In the
collapsed text each is a single private character that says which option is meant and how it was written, so that the
rules of :mod:`read_choice` are grammar alone: no label is mistaken for a word, no option's text for a negation.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from unslant.responses.answer_patterns import (
    AFTER_ANY_LABEL,
    AFTER_LABEL,
    BEFORE_NO_LABEL,
    COMMON_WORDS,
    LABEL_KEYWORD,
    NONE_GOES_ON,
    NONE_TEXT,
    NUMBER_GOES_ON,
    ORDINAL,
    ORDINALS,
    SKIPPED,
)
from unslant.responses.mentions import AMBIGUOUS, BARE, BOTH, CONFLICT, LABEL, TEXT, WORD, mention
from unslant.responses.reply_text import plain

class _Token(NamedTuple):
    start: int
    end: int
    exact: str
    stem: str
    article: bool


class _Label(NamedTuple):
    end: int
    options: tuple[int, ...]
    """More than one where labels are written together, as in "AC"."""
    as_shown: bool


_TOKEN = re.compile(
    r"(?<![\d.])\.\d+|\d+(?:,\d{3}(?!\d))*(?:\.\d+)?|[\u3040-\u30ff\u4e00-\u9fff]|[^\W\d_\u3040-\u30ff\u4e00-\u9fff]+(?:'[^\W\d_]+)*"
    r"|[^\w\s.,;:?'\"(){}\[\]$\\⟦⟧]"
)
_SUFFIX = re.compile(r"(?:'s|ings?|ed|es|s|e)$")
_SAME = {"&": "and", "×": "*", "·": "*"}
_LETTER = r"0-9A-Za-z_\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff"
_GAP = re.compile(r"[ \t]*[)\]}>\"']{0,3}[ \t]*(?:[.:=,→-]|->|ie,?|which is|that is,?)?[ \t]*\n{0,2}[ \t]*[\"'(\[{]{0,2}")
_COMPLETE = re.compile(r"[\"')\]}]*(?:[.,;:!?](?!\w)|[ \t]*(?:\n|\Z|- )|⟧)")
_OPENED = re.compile(r"[\"'(\[{<]{0,3}\Z")
_CLOSED = re.compile(r"[\"')\]}>]{0,3}")
_LABEL_BEHIND = re.compile(r"[\"')]?[ \t]?[,:-]?[ \t]?(?:ie,? )?[(\[][ \t]?(?:(?:option|choice|answer|label)[ \t]?)?")
_BULLET_NUMBER = re.compile(r"(?:^|\n)[ \t]*\d{1,2}[.)][ \t]+[\"'(\[]{0,2}\Z")
_OTHER_LABEL = re.compile(r"(?<![\w.])(?:[A-Za-z]|[IVXivx]{1,4}|\d{1,2})[.)][ \t]*[\"'(]?\Z")
_WORDY = re.compile(r"[aAiI]|\d+|[a-z]\w*|\w{2,}")


def _stem(word: str) -> str:
    """As much of a word as inflection leaves, so that "shedding its skin" is read as "shed its skin"."""
    if len(word) <= 3 or word.endswith("ss"):
        return word
    stem = _SUFFIX.sub("", word)
    if len(stem) > 3 and stem[-1] == stem[-2] and stem[-1] not in "sl":
        stem = stem[:-1]
    stem = stem.rstrip("e")
    return stem if len(stem) >= 3 else word


def _tokens(text: str) -> list[_Token]:
    tokens = []
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        exact = match.group().casefold()
        if exact == "-" and _joins_words(text, start):
            continue
        if exact[0] in ".0123456789" and exact[-1].isdigit():
            exact = stem = exact.replace(",", "") if exact[0] != "." else "0" + exact
        else:
            stem = _SAME.get(exact) or _stem(exact)
        article = exact in ("the", "an") or match.group() == "a" or (match.group() == "A" and not tokens)
        tokens.append(_Token(start, end, exact, stem, article))
    return tokens


def _joins_words(text: str, position: int) -> bool:
    """Whether a dash stands between words; elsewhere it is a sign."""
    before, after = text[max(0, position - 2) : position], text[position + 1 : position + 3].strip()
    return before.rstrip()[-1:].isalpha() and (before[-1:].isalpha() or not after[:1].isdigit())


@lru_cache(maxsize=512)
def collapser(labels: tuple[str, ...], options: tuple[str, ...]) -> Collapser:
    return Collapser(labels, options)


class Collapser:
    """Collapses replies to one presentation.

    Args:
        labels: every label that is an answer, as shown.
        options: the text under each of the first labels.
    """

    def __init__(self, labels: Sequence[str], options: Sequence[str] = ()) -> None:
        self.labels = tuple(labels)
        self.texts = tuple(plain(option).strip() for option in options[: len(labels)])
        shown = [plain(label).strip() for label in labels]
        self._shown = set(shown)
        folded = {label.casefold(): i for i, label in enumerate(shown)}
        # Two labels that differ by case alone are told apart by it.
        self._fold = len(folded) == len(shown)
        self._index = folded if self._fold else {label: i for i, label in enumerate(shown)}
        alternatives = "|".join(re.escape(label) for label in sorted(self._shown, key=len, reverse=True) if label)
        single = "".join(label for label in self._shown if len(label) == 1 and label.isascii() and label.isupper())
        compact = f"(?P<compact>(?-i:[{single}]{{2,}}))" if single else "(?P<compact>(?!))"
        # Inside a word, a number ("1.5", "2-butanol") or a formula a letter is no label.
        self._label = re.compile(
            rf"(?<![{_LETTER}\\^.-])(?<![{_LETTER}]')(?:{alternatives or '(?!)'}|{compact})"
            rf"(?![{_LETTER}\\^%]|\.\d|,\d{{3}}(?!\d)|[-'][{_LETTER}]|\.[{_LETTER}]|[ ]?=)",
            re.IGNORECASE if self._fold else 0,
        )
        self._numbered = any(label.isdigit() for label in shown)
        self._tokens = [_tokens(text) for text in self.texts]
        self._telling = [_is_telling(tokens) for tokens in self._tokens]
        self._trie: dict[str, Any] = {}
        for option, tokens in enumerate(self._tokens):
            node = self._trie
            for stem in _stems(tokens):
                node = node.setdefault(stem, {})
            if node is not self._trie:
                node[""] = (*node.get("", ()), option)

    def collapse(self, text: str) -> str:
        """``text`` with one character in place of every mention."""
        tokens = _tokens(text)
        starts = [token.start for token in tokens]
        labels = dict(self._labels(text))
        pieces, done = [], 0
        for i, token in enumerate(tokens):
            if token.start < done:
                continue
            end, options = self._text_at(tokens, i)
            label = labels.get(token.start)
            spaced = end - 1 > i and not text[token.end : tokens[i + 1].start].strip()
            if label is not None and not (options and spaced):
                found = self._labelled(text, tokens, starts, token.start, label)
            else:
                found = self._told(text, tokens, i, end, options, labels)
            if found is None:
                continue
            start, stop, written = found
            pieces += [text[done : max(done, start)], written]
            done = stop
        return "".join([*pieces, text[done:]])

    def containing(self, text: str, only: tuple[str, ...] = ()) -> frozenset[int]:
        """Options of whose text ``text`` is a part; with ``only``, those that begin with one of these words."""
        tokens = _tokens(text)
        said = " ".join(_stems(tokens))
        if only:
            begun = said in only
            return frozenset(o for o, own in enumerate(self._tokens) if begun and own and own[0].exact == said)
        if not _is_telling(tokens):
            return frozenset()
        return frozenset(o for o, own in enumerate(self._tokens) if f" {said} " in f" {' '.join(_stems(own))} ")

    def _labels(self, text: str) -> Iterator[tuple[int, _Label]]:
        for match in self._label.finditer(text):
            written = match.group()
            option = self._index.get(written.casefold() if self._fold else written)
            if option is not None:
                yield match.start(), _Label(match.end(), (option,), written in self._shown)
            elif len(written) > 1 and list(written) == sorted(set(written)):
                together = tuple(self._index[letter.casefold() if self._fold else letter] for letter in written)
                yield match.start(), _Label(match.end(), together, True)
        for match in ORDINAL.finditer(text):
            option = len(self.labels) - 1 if match[1].casefold() == "last" else ORDINALS[match[1].casefold()]
            if option < len(self.labels):
                yield match.start(), _Label(match.end(), (option,), True)

    def _text_at(self, tokens: list[_Token], i: int, own: int | None = None) -> tuple[int, tuple[int, ...]]:
        """The longest option text (or the longest that is option ``own``'s) from token ``i`` on: where it ends, and
        whose it is; several where texts are alike."""
        node, found, k = self._trie, (i, ()), i
        while k < len(tokens):
            k += 1
            if tokens[k - 1].stem not in node:
                if tokens[k - 1].article or (k > i + 1 and tokens[k - 1].exact in SKIPPED):
                    continue
                break
            node = node[tokens[k - 1].stem]
            options = node.get("", ())
            if options and (own is None or own in options):
                found = (k, options)
        end, options = found
        if len(options) > 1 and own is None:
            said = [token.exact for token in tokens[i:end] if not token.article]
            exact = tuple(o for o in options if [t.exact for t in self._tokens[o] if not t.article] == said)
            options = exact or options
        return end, options

    def _labelled(
        self, text: str, tokens: list[_Token], starts: list[int], start: int, label: _Label
    ) -> tuple[int, int, str] | None:
        """A label, with the option's text where that follows."""
        before = text[max(0, start - 30) : start]
        keyword = LABEL_KEYWORD.search(before)
        opened = _OPENED.search(before)
        left = start - len(before) + (keyword or opened).start()  # type: ignore[union-attr]
        if not self._numbered and (number := _BULLET_NUMBER.search(before)):
            left = start - len(before) + number.start() + before[number.start() :].startswith("\n")
        if len(label.options) > 1:
            return left, label.end, "".join(mention(option, BARE) for option in label.options)
        (option,) = label.options
        gap = _GAP.match(text, label.end)
        assert gap is not None
        i = bisect_left(starts, gap.end())
        if i < len(tokens) and starts[i] == gap.end():
            own_end, own = self._text_at(tokens, i, option)
            end, others = self._text_at(tokens, i)
            complete = bool(others) and _COMPLETE.match(text, tokens[end - 1].end) is not None
            if own and (end <= own_end or not complete):
                return left, _CLOSED.match(text, tokens[own_end - 1].end).end(), mention(option, BOTH)  # type: ignore[union-attr]
            punctuated = gap.group().strip() and "\n" not in gap.group()
            if complete and (punctuated or not _WORDY.fullmatch(text[start : label.end])):
                return left, _CLOSED.match(text, tokens[end - 1].end).end(), mention(option, CONFLICT)  # type: ignore[union-attr]
        elif option < len(self.texts) and not self._tokens[option] and self.texts[option]:
            if text.startswith(self.texts[option], gap.end()):
                return left, gap.end() + len(self.texts[option]), mention(option, BOTH)
        closed = _CLOSED.match(text, label.end)
        assert closed is not None
        kind = self._label_kind(text, before, start, label, bool(keyword))
        return None if kind is None else (left, closed.end(), mention(option, kind))

    def _label_kind(self, text: str, before: str, start: int, label: _Label, keyword: bool) -> int | None:
        written, after = text[start : label.end], text[label.end : label.end + 24]
        bracketed = before[-1:] in ("(", "[", "{", "<") and after[:1] in (")", "]", "}", ">") and after[:1] != ""
        if not keyword and not bracketed and after[:1] not in (")", "]", '"', "'"):
            if _WORDY.fullmatch(written) and (word := re.match(r"[ \t]+([^\W\d_]{2,})", after)):
                key = word[1].casefold()
                if key not in AFTER_LABEL.get(written, AFTER_ANY_LABEL) and key not in self._index:
                    return None
            if BEFORE_NO_LABEL.search(before):
                return None
        if keyword:
            return LABEL
        first = not before.rstrip(" \t\"'([{<") or before.rstrip(" \t\"'([{<")[-1] == "\n"
        if label.as_shown and (
            (first and after[:1] in (".", ")", ":", "]", "}", ">"))
            or (bracketed and (len(written) > 1 or written.isupper()) and not written.isdigit())
            or (after[:1] == ")" and written.isupper() and before[-1:] in (" ", "\n", ""))
        ):
            return LABEL
        owners = [o for o, tokens in enumerate(self._tokens) if len(tokens) == 1 and tokens[0].exact == written.casefold()]
        return AMBIGUOUS if owners and label.options[0] not in owners and written.isdigit() else BARE

    def _told(
        self, text: str, tokens: list[_Token], i: int, end: int, options: tuple[int, ...], labels: dict[int, _Label]
    ) -> tuple[int, int, str] | None:
        """An option's text, with its label where that follows in brackets or stands before as another list's."""
        if len(options) != 1:
            return None
        (option,) = options
        start, stop = tokens[i].start, tokens[end - 1].end
        before = text[max(0, start - 12) : start]
        if not self._telling[option] and NUMBER_GOES_ON.match(text, stop):
            return None
        if not self._telling[option] and re.search(r"[\d/^*+.-]\Z", before):
            return None
        opened = _OTHER_LABEL.search(before) or _OPENED.search(before)
        left = start - len(before) + opened.start()  # type: ignore[union-attr]
        behind = _LABEL_BEHIND.match(text, stop)
        label = labels.get(behind.end()) if behind else None
        if label is not None and text[label.end : label.end + 1] in (")", "]"):
            kind = BOTH if label.options == (option,) else CONFLICT
            return left, label.end + 1, mention(label.options[0], kind)
        if NONE_TEXT.fullmatch(self.texts[option].rstrip(" .")) and (more := NONE_GOES_ON.match(text, stop)):
            stop = more.end()
        closed = _CLOSED.match(text, stop)
        assert closed is not None
        return left, closed.end(), mention(option, TEXT if self._telling[option] else WORD)


def _stems(tokens: list[_Token]) -> list[str]:
    return [token.stem for token in tokens if not token.article] or [token.stem for token in tokens]


def _is_telling(tokens: list[_Token]) -> bool:
    """Whether a text, met anywhere in a reply, can only be the option's."""
    words = [token.exact for token in tokens if token.exact[0].isalpha() and token.exact not in COMMON_WORDS]
    return len(words) > 1 or any(len(word) > 2 for word in words)
