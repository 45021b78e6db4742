"""Read which labels a reply chooses, or that no option is right.

The reply is cleaned (:mod:`reply_text`), every mention of an option becomes one character (:mod:`collapse`), and the
mentions that are denied, hedged, supposed or asked about are masked. Then the first rule that applies reads it:

1. An explicit answer; the last one counts: ``answer field`` ("Answer: A", ``\\boxed{A}``, JSON), ``cue`` ("the correct
   options are A and C"), ``choice`` ("I chose B"), ``called the answer`` ("which makes D the answer"), ``conclusion``
   ("so B."), ``correction`` ("Actually, B covers all three"), ``last line``.
2. ``called right``: options called right one by one ("A: correct", "C is right"), or marked so.
3. ``line``: lines that are nothing but an answer.
4. ``opening``: the answer a reply opens with ("B. Paris, because ...").
5. ``statement verdicts``: "Statement 1: True ...", where the options are such verdicts.
6. ``option text``: the one option whose text the reply asserts at once.
7. ``none stated``: no option is right; or every one is called wrong.
8. ``only mention``: the only label in a short reply.

What is ambiguous, contradictory, hedged or only listed is ``unparsed``, whatever else might be made of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from unslant.responses import answer_patterns as words
from unslant.responses.collapse import Collapser, collapser
from unslant.responses.extracted import Extracted
from unslant.responses.mentions import (
    AMBIGUOUS,
    BARE,
    BOTH,
    CONFLICT,
    LABEL,
    MASKED,
    TEXT,
    WORD,
    WRONG,
    characters,
    kind_of,
    mention,
    option_of,
)
from unslant.responses.reply_text import before_next_question, clean

_ONE = re.compile(words.ONE)
_ANY = re.compile(words.ANY)
_SAID = tuple(
    (rule, re.compile(f"(?:{cue.pattern}){words.SLOT}", cue.flags))
    for rule, cue in (("answer field", words.FIELD_CUE), ("cue", words.CUE), ("choice", words.CHOOSING))
)
_NONE = re.compile(words.NONE, re.IGNORECASE)
_LEAD = (
    r"(?:(?:both|only|just|so|thus|therefore|hence|it's|it is|this is|probably|i think|i believe|i'd say|yes|ok|okay|sure|clearly|my answer|options?|statements?|the|answer|(?:that|it|this) (?:would|must|has to|should) be|that's|that is|certainly|definitely|most likely)\b[ ,:!.]{0,3}){0,3}"
)
_TAIL = (
    rf"(?: ?,? ?(?:and not|but not|not|rather than|instead of|over) (?:option )?{words.ANY}| ?\([^()\n]{{0,40}}\)|,? (?:confidence|probability|certainty)[ \t:]{{0,3}}[\d.]{{1,5}} ?%?| it is|(?: and)? only(?: {words.ONE})?| alone)?"
    r"[ \t.!;:,)\]}>⟧\"'-]{0,6}$"
)
_BARE_LINE = re.compile(rf"^ ?{_LEAD}{words.SLOT}{_TAIL}", re.IGNORECASE)
_LAST_SENTENCE = re.compile(rf"(?:[.!?;-]|\b(?:answers?|elimination|choose|correct|pick|guess|conclusion|therefore|so|thus):) (?:{_LEAD}){words.SLOT}{_TAIL}", re.IGNORECASE)
_OPENING = re.compile(
    rf" ?(?:{_LEAD})[\"'(\[]{{0,2}}(?P<said>{words.SUBJECT})"
    rf"(?:(?<={words.ONE}{words.ONE}) (?:are|were|have)\b| ?[.:,;()\]!\n-]| ?\Z| (?:because|since|as|for|due|given|but|although|though|while)\b|(?<={words.BOTH_ONLY}) )",
    re.IGNORECASE,
)
_OPENED_LINE = re.compile(rf"^[ \t\"'(]{{0,4}}(?P<said>{words.ONE})", re.MULTILINE)
_UNSURE = re.compile(
    r"\b(?:not (?:\w{1,12} )?sure|unsure|don't know|do not know|no idea|uncertain|hard to say|unclear|can't decide|cannot decide|confused|cannot (?:determine|say|tell)|depends on)\b",
    re.IGNORECASE,
)
_SHORT, _LONG = 200, 700
"""Characters up to which a lone mention is trusted, and up to which an option's text in the first sentence is."""
_CUT_OFF = re.compile(r"[\s\n]*(?:(?:so|thus|therefore|hence),? )?(?:the (?:correct |final )?answer is|answer)[ :]{0,2}[(\[*]{0,2}\Z", re.IGNORECASE)
_CONTRAST = re.compile(
    rf"^(?:while|whereas|although|though|unlike)\b[^,\n]{{0,200}},"
    rf"|(?<={words.ONE})(?P<rest>[^\n]*?)[,;]? (?:while|whereas|although|though|unlike|as opposed to|in contrast to|but|because|since|than|compared|(?:and )?not)\b.*",
    re.IGNORECASE,
)
_PAST = re.compile(r"\b(?:chose|picked|selected|went|answered)\b", re.IGNORECASE)
_PART_OF_LIST = re.compile(rf"\w,? (?:and|or) {words.ONE}|{words.ONE},? (?:and|or) (?:the )?\w", re.IGNORECASE)
_SUPPOSED = re.compile(r"\b(?:if|whether|unless|when|in case)\b[^.;,\n]*\Z", re.IGNORECASE)
_NEGATED = re.compile(r"\b(?:not|never|no|neither|nor|without|unlike|cannot)\b|n't\b", re.IGNORECASE)
_CONCLUDES = re.compile(r"(?:so|thus|therefore|hence|consequently|in conclusion|overall|in summary)\b", re.IGNORECASE)
_LAST_WORD = re.compile(rf"(?:\b(?:is|are|was|be|equals?|to|of|approximately|about|as|at)|=|≈) (?:the |an? |approximately |about |called |only )*(?P<said>{words.ONE}) ?(?:\w{{1,12}} ?){{0,2}}[.!]?\Z")


_UNKNOWN_LABEL = re.compile(r" ?(?:,|and\b|&|/) ?(?:and )?[(\[]?(?:[A-Z]|\d{1,2}|[ivxIVX]{1,4})(?=[)\].,;:\s]|\Z)")


class _Claim(NamedTuple):
    start: int
    end: int
    rule: str
    said: str


class _Unreadable(Exception):
    """A reply in which an answer is given, but not one."""


def extract_labels(reply: str, labels: Sequence[str], options: Sequence[str] = ()) -> Extracted:
    """The set of ``labels`` that a reply chooses.

    Args:
        labels: every label that is an answer, as shown; letters may come back in either case.
        options: text under each of the first labels, so that an answer given as an option's text is understood.
    """
    text = clean(reply)
    if not text:
        return Extracted("unparsed", rule="empty")
    shown = collapser(tuple(labels), tuple(options))
    reading = _Reading(shown, shown.collapse(before_next_question(text)))
    try:
        found = reading.answer()
    except _Unreadable as why:
        return Extracted("unparsed", rule=str(why))
    if found is not None:
        chosen, rule = found
        return Extracted("ok", frozenset(shown.labels[option] for option in chosen), rule)
    if words.REFUSAL.search(text):
        return Extracted("refused", rule="refusal")
    return Extracted("unparsed", rule="no answer found")


class _Reading:
    """One collapsed reply, and the rules."""

    def __init__(self, shown: Collapser, collapsed: str) -> None:
        self.n = len(shown.labels)
        self.shown = shown
        collapsed = re.sub(r"⟧ ?(?:,|and|&) ?⟦", ", ", collapsed)
        self.plain = re.sub(rf'"[^"\n{words.ANY[1:-1]}]{{12,200}}"', '"…"', collapsed)
        self.text = masked(self.plain)

    def answer(self) -> tuple[frozenset[int], str] | None:
        """The options chosen and the rule they were read by.

        Raises:
            _Unreadable: where an answer is given, but contradicted or ambiguous.
        """
        for rule in (
            self.explicit,
            self.all_but,
            self.called_right,
            self.line,
            self.opening,
            self.statement_verdicts,
            self.none_stated,
            self.concluded,
            self.option_text,
            self.part_of_text,
            self.both,
            self.only_mention,
        ):
            found = rule()
            if found is not None:
                return found
        return None

    # ---------------------------------------------------------------------------------------------- what is said

    def options(self, said: str, *, as_label: bool = True) -> frozenset[int]:
        """The options that a slot names: several, all or none.

        Raises:
            _Unreadable: if it names them in ways that contradict each other.
        """
        mentions = _ONE.findall(said)
        if not mentions or _NONE.match(said):
            nothing = self.shown.options.beginning(said)
            return nothing or self._none() if _NONE.match(said) else self._all()
        kinds = {kind_of(m) for m in mentions}
        chosen = frozenset(option_of(m) for m in mentions)
        by_label = {option_of(m) for m in mentions if kind_of(m) in (LABEL, BARE, BOTH, AMBIGUOUS)}
        if CONFLICT in kinds:
            raise _Unreadable("label and text of different options")
        if (AMBIGUOUS in kinds and not as_label) or (by_label and by_label != chosen):
            raise _Unreadable("label or text")
        return chosen

    def _none(self) -> frozenset[int]:
        return frozenset(i for i, text in enumerate(self.shown.options.texts) if words.NONE_TEXT.fullmatch(text.rstrip(" .")))

    def _all(self) -> frozenset[int]:
        said = frozenset(i for i, text in enumerate(self.shown.options.texts) if words.ALL_TEXT.fullmatch(text.rstrip(" .")))
        return said or frozenset(range(self.n))

    # ------------------------------------------------------------------------------------------ 1. explicit answers

    def explicit(self) -> tuple[frozenset[int], str] | None:
        """The last answer that is said to be one."""
        claims = sorted(self._claims())
        claims += self._last_line(claims)
        retracted = self._retracted()
        if claims and all(claim.start < retracted for claim in claims):
            raise _Unreadable("retracted")
        claims = [claim for claim in claims if claim.start >= retracted]
        if not claims:
            return None
        last = claims[-1]
        if re.search(r"\b(?:another|second|additional|other) (?:correct|right|valid|possible)", self.text[max(0, last.start - 12) : last.start + 24], re.IGNORECASE):
            raise _Unreadable("one of several")
        if self._conditional(last) and len({claim.said for claim in claims}) > 1:
            raise _Unreadable("contradiction")
        chosen = self.options(last.said, as_label=last.rule in ("answer field", "last line"))
        fields = {self.options(claim.said) for claim in claims if self.text[claim.start] == "⟦"}
        if len(fields) > 1:
            raise _Unreadable("contradiction")
        said = [frozenset(map(option_of, _ONE.findall(claim.said))) for claim in claims if claim.rule in ("answer field", "cue", "choice")]
        if len(set(said)) > 2:
            raise _Unreadable("contradiction")
        if re.match(rf"[.)]? {words.LABELLED}[.)]?(?:\n|\Z)", self.text[last.end :]):
            raise _Unreadable("contradiction")
        if _UNKNOWN_LABEL.match(self.text, last.end):
            raise _Unreadable("label that was not shown")
        if last.rule == "choice" and len(set(said)) > 1 and _PAST.search(self.text, last.start, last.end):
            raise _Unreadable("contradiction")
        final = last.rule in ("answer field", "last line") or kind_of(_ONE.findall(last.said + mention(0, BOTH))[0]) == BOTH
        if not final and any(kind_of(m) == CONFLICT for claim in claims for m in _ONE.findall(claim.said)):
            raise _Unreadable("label and text of different options")
        in_conflict = frozenset(map(option_of, re.findall(characters(CONFLICT), self.text)))
        if in_conflict & chosen and last.rule not in ("answer field", "last line"):
            raise _Unreadable("label and text of different options")
        if self.text[last.start] == "⟦":
            return chosen, last.rule
        for match in words.CALLED_RIGHT.finditer(self.text, last.end):
            more = self.options(match["said"])
            if not more <= chosen and re.search(r"\b(?:correct|right)\b", match.group()):
                if not re.search(r"\b(?:also|too|as well)\b", self.text[match.start() - 12 : match.end()], re.IGNORECASE):
                    raise _Unreadable("contradiction")
                chosen |= more
        return chosen, last.rule

    def _conditional(self, claim: _Claim) -> bool:
        return re.match(r"\W{0,3}(?:if|provided|unless|assuming)\b", self.text[claim.end :], re.IGNORECASE) is not None

    def _retracted(self) -> int:
        """Up to where the reply is taken back."""
        return max((match.end() for match in words.RETRACTED.finditer(self.text)), default=0)

    def _claims(self) -> Iterator[_Claim]:
        for rule, pattern in _SAID:
            for match in pattern.finditer(self.text):
                yield self._claimed(rule, match)
        for rule, pattern in (
            ("called the answer", words.CALLED_ANSWER),
            ("conclusion", words.CONCLUDED),
            ("correction", words.CORRECTED),
        ):
            for match in pattern.finditer(self.text):
                group = match.lastgroup
                assert group is not None
                yield _Claim(match.start(group), match.end(), rule, match[group])

    def _last_line(self, claims: list[_Claim]) -> Iterator[_Claim]:
        """The last line, or the last sentence in it, if it is nothing but an answer."""
        lines = self.text.rstrip().split("\n")
        match = _BARE_LINE.match(lines[-1])
        before = next((line for line in reversed(lines[:-1]) if line.strip()), "")
        texts = match is not None and any(kind_of(m) in (BOTH, TEXT, WORD) for m in _ONE.findall(match["slot"]))
        listed = texts and len(self._opened()) > 1
        continued = len(lines) > 1 and (above := _OPENED_LINE.match(lines[-2])) and kind_of(above["said"]) != BARE
        if match is not None and before and not (listed or continued) and not _BARE_LINE.match(before):
            yield _Claim(len(self.text) - len(lines[-1]), len(self.text), "last line", match["slot"])
        elif match is None and (match := _LAST_SENTENCE.search(lines[-1])) is not None:
            start = len(self.text) - len(lines[-1]) + match.start("slot")
            if not any("\n" not in self.text[claim.start : start] for claim in claims):
                yield _Claim(start, len(self.text), "last line", match["slot"])

    def _claimed(self, rule: str, slot: re.Match[str]) -> _Claim:
        """A slot; where it starts a line, all the lines that open with an option."""
        start = slot.start()
        below = "\n" in self.text[start + 1 : slot.start("slot")]
        if not below or not _ONE.match(slot["slot"]):
            return _Claim(start, slot.end(), rule, slot["slot"])
        said, end = "", slot.start("slot")
        for line in self.text[end:].split("\n"):
            opened = _OPENED_LINE.match(line)
            if opened is None and line.strip():
                break
            said += opened["said"] if opened else ""
            end += len(line) + 1
        inline = "".join(_ONE.findall(slot["slot"]))
        said, end = (said, end) if len(said) > len(inline) else (inline, slot.end())
        if len(set(said)) == self.n > 1 and all(kind_of(m) == BOTH for m in said):
            raise _Unreadable("all options listed")
        return _Claim(start, end, rule, said)

    # ------------------------------------------------------------------------------------------- 2. judged one by one

    def all_but(self) -> tuple[frozenset[int], str] | None:
        """Every option but some: "all except B", "everything but B is wrong"."""
        match = words.ALL_BUT.search(self.plain)
        if match is None:
            return None
        named = frozenset(option_of(m) for m in _ANY.findall(match["said"]))
        wrong = re.search("wrong|incorrect|false|not", f"{match['before']}{match['after']}", re.IGNORECASE)
        if match["alone"] is not None and not match["before"] and match.start():
            return None
        return named if wrong else frozenset(range(self.n)) - named, "all but"

    def called_right(self) -> tuple[frozenset[int], str] | None:
        """Options that are called right and not later called wrong."""
        right: frozenset[int] = frozenset()
        for pattern in (words.CALLED_RIGHT, words.FITS, words.MARKED_RIGHT):
            for match in pattern.finditer(self.text, self._retracted()):
                right |= self.options(match[match.lastgroup or 0])
        if right & self._asserted(WRONG):
            raise _Unreadable("contradiction")
        return (right, "called right") if right else None

    # -------------------------------------------------------------------------------------------------- 3. bare lines

    def line(self) -> tuple[frozenset[int], str] | None:
        """Lines that are nothing but an answer, where they agree."""
        runs: list[list[tuple[int, str]]] = []
        apart = True
        for number, line in enumerate(self.text.split("\n")):
            match = _BARE_LINE.match(line)
            if match is not None:
                runs += [[]] if apart else []
                runs[-1].append((number, match["slot"]))
            apart = match is None and (apart or bool(line.strip()))
        if not runs:
            return None
        answers = {frozenset().union(*(self.options(said) for _, said in run)) for run in runs}
        if any(map(self._is_listing, runs)):
            raise _Unreadable("options listed")
        if len(answers) > 1:
            raise _Unreadable("contradiction")
        (chosen,) = answers
        if not self._opened() <= chosen and (len(runs) > 1 or len(runs[0]) > 1 or not self._set_apart(chosen)):
            raise _Unreadable("options listed")
        if len(runs) == 1 and self._cut_off_at_first(chosen):
            raise _Unreadable("cut off")
        return chosen, "line"

    def _cut_off_at_first(self, chosen: frozenset[int]) -> bool:
        """Whether the reply names the first option, goes on about it and breaks off: perhaps going through them all."""
        return chosen == {0} and len(self.text) > 100 and not self._complete()

    def _complete(self) -> bool:
        return self.text[-1] in ".!?)]\"'⟧:;" or _ANY.match(self.text[-1]) is not None

    def _is_listing(self, run: list[tuple[int, str]]) -> bool:
        """Whether lines repeat the options as shown: all of them, or one below the other from the first on."""
        said = [m for _, line in run for m in _ONE.findall(line)]
        shown = [option_of(m) for m in said]
        if len(shown) < 2 or any(kind_of(m) not in (BOTH, TEXT) for m in said):
            return False
        in_order = shown == list(range(shown[0], shown[0] + len(shown))) and (shown[0] == 0 or len(shown) > 2)
        return len(set(shown)) == self.n or (in_order and len(run) > 1 and run[-1][0] - run[0][0] == len(run) - 1)

    def _set_apart(self, chosen: frozenset[int]) -> bool:
        """Whether a line of text that names no option stands between the answer at the top and the options below."""
        lines = [line for line in self.text.split("\n") if line.strip()]
        opened = [_OPENED_LINE.match(line) for line in lines]
        others = [k for k, m in enumerate(opened) if m and kind_of(m["said"]) != WRONG and option_of(m["said"]) not in chosen]
        if not opened[0] or option_of(opened[0]["said"]) not in chosen:
            return False
        apart = not all(opened[: others[0]])
        return apart or option_of(opened[others[0]]["said"]) < max(chosen)  # type: ignore[index]

    def _opened(self) -> frozenset[int]:
        """Options that open a line under their label."""
        return frozenset(
            option_of(m["said"]) for m in _OPENED_LINE.finditer(self.text) if kind_of(m["said"]) in (LABEL, BOTH, CONFLICT)
        )

    # ---------------------------------------------------------------------------------------------------- 4. opening

    def opening(self) -> tuple[frozenset[int], str] | None:
        """The answer a reply opens with."""
        match = _OPENING.match(self.text)
        if match is None:
            return None
        said = match["said"]
        kinds = {kind_of(m) for m in _ONE.findall(said)}
        if not kinds & {LABEL, BOTH, CONFLICT, BARE, AMBIGUOUS}:
            return None
        chosen = self.options(said)
        if not self._opened() <= chosen and not self._set_apart(chosen):
            raise _Unreadable("options listed")
        line = self.text[match.end("said") :].split("\n")[0]
        if not frozenset(map(option_of, re.findall(characters(LABEL, BOTH), line))) <= chosen:
            raise _Unreadable("options listed")
        if len(chosen) == self.n > 1 and kinds == {BOTH}:
            raise _Unreadable("all options listed")
        if self._cut_off_at_first(chosen):
            raise _Unreadable("cut off")
        if kinds <= {BARE, AMBIGUOUS} and not self._asserted(LABEL, BOTH, TEXT) <= chosen:
            return None
        return chosen, "opening"

    def _asserted(self, *kinds: int) -> frozenset[int]:
        return frozenset(option_of(m) for m in re.findall(characters(*kinds), self.text))

    # ------------------------------------------------------------------------------------- 5. verdicts on statements

    def statement_verdicts(self) -> tuple[frozenset[int], str] | None:
        """The option that lists the verdicts which a reply gives on numbered statements."""
        verdicts = {i: re.findall(r"true|false", text.casefold()) for i, text in enumerate(self.shown.options.texts)}
        said = re.findall(r"\bstatement (?:\d|[ivIV]{1,3})\W{1,4}(?:is )?(true|false)\b", self.plain.casefold())
        chosen = frozenset(i for i, listed in verdicts.items() if len(listed) > 1 and listed == said)
        return (chosen, "statement verdicts") if len(chosen) == 1 else None

    # --------------------------------------------------------------------------------------------- 6. an option's text

    def option_text(self) -> tuple[frozenset[int], str] | None:
        """The one option (or the options joined by "and") whose text the first sentence to name one asserts."""
        if self._asserted(CONFLICT) or len(self._opened()) > 1 or _UNSURE.search(self.text) or len(self.text) > _LONG:
            return None
        elsewhere = False
        for sentence in re.split(r"(?<=[.!?])\s|\n", self.text):
            sentence = _CONTRAST.sub(lambda m: m["rest"] or "", sentence)
            asserted = re.findall(characters(TEXT, BOTH, LABEL), sentence)
            if asserted and set(map(kind_of, asserted)) != {LABEL}:
                chosen = frozenset(option_of(m) for m in asserted)
                together = re.search(words.SUBJECT, sentence)
                if len(chosen) == 1 and self._part_of_other(*chosen):
                    return None
                if elsewhere and self._asserted(TEXT, BOTH, LABEL) != chosen:
                    return None
                if re.search(r"\b(?:too|as well|also)\W*\Z", sentence) or len(chosen) == 1 or (together and chosen == frozenset(map(option_of, _ONE.findall(together.group())))):
                    before = re.sub(rf"(?i)\bnot [^.,]*?{characters(MASKED)}", "", sentence[: sentence.index(asserted[0])])
                    if _NEGATED.search(before) or (len(chosen) == 1 and _PART_OF_LIST.search(sentence)) or (len(chosen) == 1 and re.search(r"\bboth\b", sentence, re.IGNORECASE)):
                        return None
                    return (chosen, "option text") if len(chosen) < self.n or self.n == 1 else None
                return None
            elsewhere = elsewhere or not _ANY.search(sentence)
        return None

    def part_of_text(self) -> tuple[frozenset[int], str] | None:
        """The one option whose text a short reply is a part of, or begins with the yes or no that the reply is."""
        if _ONE.search(self.text) or len(self.text) > _SHORT or "\n" in self.text:
            return None
        word = re.match(r"\W*(yes|no)\b", self.text, re.IGNORECASE)
        said = re.sub(r"\A\W*\w{1,3}[.)] ", "", self.text)
        parts = self.shown.options.containing(said) or (self.shown.options.beginning(word[1]) if word else frozenset())
        clauses = re.split(r"[,;.] ", self.text.rstrip("."))
        parts = parts or frozenset().union(*map(self.shown.options.containing, clauses))
        if not parts and not _NEGATED.search(self.text) and not _UNSURE.search(self.text) and not self.text.endswith("?"):
            parts = self.shown.options.told_apart(words.CONCEDED.sub("", self.text))
        return (parts, "part of text") if len(parts) == 1 else None

    def concluded(self) -> tuple[frozenset[int], str] | None:
        """The one option in a last sentence that draws a conclusion, or that leads up to an answer cut off."""
        cue = _CUT_OFF.search(self.text)
        sentences = re.split(r"(?<=[.!?])\s|\n", (self.text[: cue.start()] if cue else self.text).rstrip())
        sentence = sentences[-1]
        alone = len(sentences) == 1 == len(_ANY.findall(sentence)) and sentence.endswith(".") and len(sentence) <= _SHORT
        if not (cue or alone or _CONCLUDES.match(sentence)):
            return None
        for kinds in () if alone and not _CONCLUDES.match(sentence) else ((LABEL, BOTH), (TEXT,)):
            said = re.findall(characters(*kinds), sentence)
            if len(set(map(option_of, said))) == 1:
                return self.options(said[0]), "conclusion"
        match = _LAST_WORD.search(sentence)
        return (self.options(match["said"]), "conclusion") if match else None

    def both(self) -> tuple[frozenset[int], str] | None:
        """The one option that begins with "both", where a short reply says that both are."""
        both = [i for i, text in enumerate(self.shown.options.texts) if text[:4].casefold() == "both"]
        said = re.search(r"\A\W*both\W*\Z|\bboth (?:of (?:them|these|those)|are|do|is)\b", self.text, re.IGNORECASE)
        return (frozenset(both), "both") if said and len(both) == 1 and len(self.text) <= _SHORT else None

    def _part_of_other(self, option: int) -> bool:
        """Whether the text is a part of another option's that does not just join the two."""
        others = self.shown.options.containing(self.shown.options.texts[option]) - {option}
        return any(not words.BOTH_TEXT.match(self.shown.options.texts[other]) for other in others)

    # --------------------------------------------------------------------------------------------- 7. no option is right

    def none_stated(self) -> tuple[frozenset[int], str] | None:
        """A sentence that no option is right, or every option called wrong."""
        wrong = frozenset(option_of(m) for m in re.findall(characters(WRONG), self.text))
        stated = (m.start() for m in words.NONE_STATED.finditer(self.plain))
        if any(not _SUPPOSED.search(self.plain[max(0, at - 80) : at]) for at in stated) or (len(wrong) == self.n > 1 and self._complete()):
            return self._none(), "none stated"
        return None

    # -------------------------------------------------------------------------------------------------- 8. only mention

    def only_mention(self) -> tuple[frozenset[int], str] | None:
        """The only label in a short reply."""
        if len(self.text) > _SHORT or _UNSURE.search(self.text) or self._asserted(CONFLICT, AMBIGUOUS):
            return None
        named = self._asserted(LABEL, BOTH) or frozenset(
            i for i in self._asserted(BARE) if self.shown.labels[i].isupper() and self.shown.labels[i] not in "AI"
        )
        every = frozenset(option_of(m) for m in _ANY.findall(self.text) if kind_of(m) != WORD)
        return (named, "only mention") if len(named) == 1 == len(every) else None


def masked(text: str) -> str:
    """``text`` with the mentions in it that are not asserted turned into ``WRONG`` or ``MASKED`` ones."""
    for pattern, kind in (
        (words.NONE_STATED, MASKED),
        (words.MARKED_WRONG, WRONG),
        (words.CONDITION, MASKED),
        (words.QUESTION, MASKED),
        (words.REPORTED, MASKED),
        (words.CONCEDED, MASKED),
        (words.WRONG_BEFORE, WRONG),
        (words.WRONG_AFTER, WRONG),
        (words.DENIED_BEFORE, MASKED),
        (words.HEDGED_BEFORE, MASKED),
        (words.HEDGED_AFTER, MASKED),
        (words.ALTERNATIVES, MASKED),
    ):
        text = _mask(text, pattern, kind)
    return _mask(text, words.NOT_ASSERTED_AFTER, MASKED, characters(TEXT, WORD))


def _mask(text: str, pattern: re.Pattern[str], kind: int, which: str = words.ONE) -> str:
    def mask(match: re.Match[str]) -> str:
        group = match.lastgroup or 0
        start, end = match.start(group) - match.start(), match.end(group) - match.start()
        whole = match.group()
        said = re.sub(which, lambda m: mention(option_of(m.group()), kind), whole[start:end])
        return whole[:start] + said + whole[end:]

    return pattern.sub(mask, text)
