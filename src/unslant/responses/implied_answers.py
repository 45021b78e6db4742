"""Rules for replies that name an option without calling it the answer; see :mod:`read_choice` for their order."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unslant.responses.answer_patterns import JOINED, SUBJECT
from unslant.responses.label_words import BOTH_TEXT
from unslant.responses.masks import CONCEDED
from unslant.responses.mentions import (
    AMBIGUOUS,
    ANY,
    BARE,
    BOTH,
    CONFLICT,
    LABEL,
    MASKED,
    ONE,
    TEXT,
    WORD,
    WRONG,
    characters,
    kind_of,
    mentions,
    options_of,
)
from unslant.responses.reading import Reading, Unreadable

Found = tuple[frozenset[int], str] | None
"""The options chosen and the name of the rule; None if the rule does not apply."""

_I = re.IGNORECASE
SHORT = 200
"""Characters up to which a lone mention is trusted."""
_LONG = 700
"""Characters up to which an option's text in a sentence is trusted."""
SENTENCE_END = re.compile(r"(?<=[.!?])\s|\n")
_UNSURE = re.compile(
    r"\b(?:not (?:\w{1,12} )?sure|unsure|don't know|do not know|no idea|uncertain|hard to say|unclear|can't decide"
    r"|cannot decide"
    r"|confused|it depends|cannot (?:determine|say|tell)|depends on)\b",
    _I,
)
_REASONING = re.compile(r"\b(?:let's|let us|step \d|step by step|break(?:ing)? down|analy[sz]e|examine)\b", _I)
_NEGATED = re.compile(r"\b(?:not|never|no|neither|nor|without|unlike|cannot)\b|n't\b", _I)
_DENIED_MENTION = re.compile(rf"\bnot [^.,]*?{characters(MASKED)}", _I)
_CONTRAST = re.compile(
    rf"(?<={ONE})(?P<rest>[^\n]*?)[,;]? (?:while|whereas|although|though|unlike|as opposed to|in contrast to|but"
    rf"|because|since"
    r"|than|compared|(?:and )?not)\b.*|^unlike\b[^,\n]{0,200},",
    _I,
)
_WHY_WRONG = re.compile(rf"({characters(WRONG)}[^\n]*?),? (?:because|since|as)\b.*")
_TAKEN_BACK = re.compile(r"[.!?] (?:actually|wait|correction|hold on|oops|sorry)\b|\bon second thoughts?\b", _I)
_NUMBERS = re.compile(
    rf"(?:only |both |(?:just "
    rf"|about )?(?:the )?(?:numbers? )?){{0,2}}(?P<said>{characters(WORD)}(?:{JOINED}{characters(WORD)}){{0,9}})"
    r"(?: (?:is|are)(?: (?!wrong|incorrect|false)\w{1,20}){1,4}| \w{1,12}){0,1}[.!]?\Z",
    _I,
)
_IN_SERIES = re.compile(rf"\w,? (?:and|or) {ONE}|{ONE},? (?:and|or) (?:the )?\w|\bboth\b", _I)
_ASIDE = re.compile(r"\b(?:about|between|like|such as|than|of|from|to|with) (?:both )?(?:the |an? )?\Z", _I)


def option_text(reading: Reading) -> Found:
    """The option (or the options joined by "and") whose text the first sentence to name one asserts."""
    if len(reading.text) > _LONG or _UNSURE.search(reading.text):
        return None
    if reading.asserted(CONFLICT) or len(reading.listed()) > 1:
        return None
    late = False
    if reading.asserted(TEXT, BOTH) and _TAKEN_BACK.search(reading.text):
        raise Unreadable("retracted")
    for whole in SENTENCE_END.split(reading.text):
        sentence = _CONTRAST.sub(lambda match: match["rest"] or "", _WHY_WRONG.sub(r"\1", whole))
        said = mentions(sentence, TEXT, BOTH, LABEL)
        if said and {kind_of(one) for one in said} != {LABEL}:
            chosen = options_of(said)
            elsewhere = reading.asserted(TEXT, BOTH, LABEL) != chosen or _REASONING.search(reading.text)
            if (late and elsewhere) or len(chosen) == reading.n > 1 or not _asserts(reading, sentence, said):
                return None
            return chosen, "option text"
        late = late or not re.search(ANY, sentence)
    return None


def _asserts(reading: Reading, sentence: str, said: Sequence[str]) -> bool:
    """Whether a sentence asserts the options it names: one, or several that are joined; not some of a longer series."""
    before = _DENIED_MENTION.sub("", sentence[: sentence.index(said[0])]).rpartition(", but ")[2]
    if _NEGATED.search(before):
        return False
    chosen = options_of(said)
    if len(chosen) > 1:
        together = re.search(SUBJECT, sentence)
        joined = together is not None and options_of(mentions(together.group())) == chosen
        return (joined and not _ASIDE.search(before)) or re.search(r"\b(?:too|as well|also)\W*\Z", sentence) is not None
    (option,) = chosen
    others = reading.options.containing(reading.options.texts[option]) - chosen
    part_of_other = any(not BOTH_TEXT.match(reading.options.texts[other]) for other in others)
    predicate = sentence.rstrip(" .!").endswith(said[-1])
    return (predicate or not part_of_other) and not _IN_SERIES.search(sentence)


def part_of_text(reading: Reading) -> Found:
    """The one option whose text a short reply is a part of, or begins with the yes or no that the reply is."""
    text, options = reading.text, reading.options
    if mentions(text) or len(text) > SHORT or "\n" in text or _UNSURE.search(text):
        return None
    found = options.containing(re.sub(r"\A\W*\w{1,3}[.)] ", "", text))
    word = re.match(r"\W*(yes|no)\b", text, _I)
    found = found or (options.beginning(word[1]) if word else frozenset())
    found = found or options.reordered(text)
    found = found or frozenset().union(*(options.containing(clause) for clause in re.split("[,;.] ", text.rstrip("."))))
    if not found and not (_NEGATED.search(text) or text.endswith("?")):
        found = options.told_apart(CONCEDED.sub("", text))
    return (found, "part of text") if len(found) == 1 else None


def numbers(reading: Reading) -> Found:
    """Numbers that are options, where a short reply is no more than these, with a unit, or says what they are."""
    match = _NUMBERS.match(reading.text)
    chosen = options_of(mentions(match["said"])) if match else frozenset()
    if not chosen or len(chosen) == reading.n or _NEGATED.search(reading.text):
        return None
    if options_of(re.findall(ANY, reading.text)) != chosen:
        return None
    return (chosen, "numbers") if all(reading.options.texts[o][:1].isdigit() for o in chosen) else None


def both(reading: Reading) -> Found:
    """The one option that begins with "both", where a short reply says that both are."""
    options = reading.options.beginning("both")
    said = re.search(r"\A\W*both\W*\Z|\bboth (?:of (?:them|these|those)|are|do|is)\b", reading.text, _I)
    return (options, "both") if said and len(options) == 1 and len(reading.text) <= SHORT else None


def only_mention(reading: Reading) -> Found:
    """The only label in a short reply."""
    if len(reading.text) > SHORT or _UNSURE.search(reading.text) or reading.asserted(CONFLICT, AMBIGUOUS):
        return None
    capitals = (i for i in reading.asserted(BARE) if reading.labels[i].isupper() and reading.labels[i] not in "AI")
    named = reading.asserted(LABEL, BOTH) or frozenset(capitals)
    every = options_of(one for one in re.findall(ANY, reading.text) if kind_of(one) != WORD)
    if reading.breaks_off_at_first(named) or not len(named) == 1 == len(every):
        return None
    return named, "only mention"
