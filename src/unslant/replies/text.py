"""A reply as plain text: without its thinking, markdown and LaTeX, and with its explicit answer fields marked.

A reply may be anything: a loop of one token, a file. So every step is linear in its length, steps before the cut to
:data:`LIMIT` are a single pass each, and every repetition in a pattern is bounded.
"""

from __future__ import annotations

import itertools
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

from unslant.replies.grammar import BEGIN_OF_LINE, normalized, pattern, words

LIMIT = 12_000
"""Characters of a reply outside its thinking that are read, about 3,000 tokens. A longer reply is read at both ends,
the first third and the last two thirds of these: replies answer at the end, and sometimes at the start."""
_LONGEST_MARKS = 30
"""Longest run of combining characters that stays, as in Unicode's stream-safe text: normalizing sorts each run of them,
in time that grows with the square of its length."""
FIELD, END_FIELD = "⟦", "⟧"
"""Marks around the contents of ``\\boxed{}``, of an ``<answer>`` tag and of a JSON field for the answer."""

_THINKING = r"(?:think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|analysis|seed:think)"
_THINKING_TAG = re.compile(
    rf"(?i)[<◁]\|?(/)?{_THINKING}\|?[>▷]|\[(/)?THINK\]|<\|(?:start|begin|(end))_(?:of_)?{_THINKING}\|>"
)
"""Opens thinking, or closes it if it has a group."""
_ANALYSIS = re.compile(r"(?:<\|channel\|>analysis<\|message\|>|\Aanalysis(?=[A-Z])).*?(?:<\|end\|>|\Z)", re.DOTALL)
_FINAL_CHANNEL = re.compile(r"(?:<\|channel\|>|assistant)final(?:<\|message\|>|(?=[A-Z(*\[\s]))")
_END_OF_TURN = re.compile(
    r"<\|(?:im_end|im_start|eot_id|end|endoftext|end_of_text|return|start_header_id)\|>|</s>|<end_of_turn>|\[/?INST\]"
)
_SPECIAL_TOKEN = re.compile(r"<\|[a-z_]{1,30}\|>|<s>|<start_of_turn>|<eo[a-z]>")
_HEADING = pattern(
    r"\s{0,3}(?:[【〖《] ?(?P<any>[^】〗》\n]{1,12}) ?[】〗》]|\[ ?(?P<square>{bracketed_field}) ?\]"
    r"|^[(<\"] ?(?P<round>{bracketed_field}) ?[)>\"])(?: ?:(?!:)|(?=\s{0,3}[^\s:.,;)]))",
    BEGIN_OF_LINE,
)
"""A field's name in brackets: "【答案】 A", "[Answer] A"."""
_TITLE = pattern(r"^[ \t]{0,3}(?:#{1,6}[ \t]{0,3}\*{0,2}|\*\*)({title_field})\*{0,2}[ \t]{0,3}$", BEGIN_OF_LINE)
"""The same as a heading: "## Final answer"."""

_QUOTES = str.maketrans("’‘“”„«»「」『』–—−‒‐‑∶⁄؟،؛", '\'\'"""""""""------:/?,;')
# Letters and numbers in circles, black squares and flags, which Unicode's normalization does not count as their forms.
_SIGNS = {first + i: chr(65 + i) for first in (0x1F150, 0x1F170, 0x1F1E6) for i in range(26)}
_SIGNS |= {first + i: str(i + 1) for first in (0x2776, 0x2780, 0x278A, 0x24F5) for i in range(10)}
_SIGNS |= {ord("？"): "? ", ord("！"): "! "}  # sentences end at a space after them
_LATEX = {
    r"\{,\}|,\s?\\!": ",",
    r"\\begin\{[a-z*]{1,20}\}|\\end\{[a-z*]{1,20}\}|\\(?:left|right|displaystyle|quad|qquad)\b": " ",
    r"\\(?:text(?:bf|it|rm|tt|sf)?|math(?:rm|bf|it|sf|tt|bb|cal)|operatorname|emph|underline|bm|mbox|rm)"
    r"\s?\{([^{}]{0,300})\}": r"\1",
    r"\\f?box(?:ed)?\s?\{((?:[^{}]|\{[^{}]{0,200}\}){0,400})\}": rf" {FIELD}\1{END_FIELD} ",
    r"\\[dt]?frac\s?\{([^{}]{0,80})\}\s?\{([^{}]{0,80})\}": r"\1/\2",
    r"\\[dt]?frac\s?(\d)\s?(\d)": r"\1/\2",
    r"\\(?:to|(?:long)?rightarrow|Rightarrow|implies)\b": "→",
    r"\\times\b": "×",
    r"\\(?:checkmark)\b": "✓",
    r"\\[,;:! ]|\\\\|\\[\[\]]": " ",
    r"\\[()]|\$": "",
    r"\\(?=[%#&_{}])": "",
}
"""LaTeX commands and what they are read as, in the order in which they are replaced."""
_TAG = pattern(r"<({answer_tag}|{verdict_tag})>(.{0,400}?)</\1>", re.IGNORECASE | re.DOTALL)
_NEXT_TAG = pattern(r"</({answer_tag})>\s{0,5}(?:,|{plain_and})?\s{0,5}<\1>")
_KEY = "(?:{answer_key_head}[_ ]?{answer_key_noun}|(?!{options_shown}\\b){answer_key_noun}|{answer_key})"
_ANSWER_KEY = pattern(rf"\b{_KEY}\b")
_JSON_FIELD = pattern(
    rf"""["']{_KEY}["']"""
    r"""\s{0,5}:\s{0,5}"""
    r"""(?P<value>\[[^\[\]{}]{0,2000}\]|\{[^{}:]{0,400}\}|[^\n{}]{0,400}?)"""
    r"""(?=\s{0,5}(?:,\s{0,5}["'][\w ]{1,40}["']\s{0,5}:|\}|\n|\Z))"""
)
_JSON_KEY = re.compile(r'(?:^|[{,])\s{0,20}["\'](\w{1,40})["\']\s{0,5}:\s{0,5}', re.MULTILINE)
_NULL = ("", '""', "''", "null", "None", "nil")
"""Values of a JSON field that holds no answer; an empty list says that no option is right."""
_ARGUMENTS = ("arguments", "args", "input", "parameters", "tool_input", "tool_calls", "action_input", "query")
_TOOL_CALL = pattern(
    r"<(?P<tag>(?:tool|function)_?(?:call|response|result|output)s?|invoke|{search_tool})\b[^<>]{0,200}>"
    r"(?:(?!</?(?P=tag)).){0,4000}+(?:</(?P=tag)>|\Z)"
    r"|\baction: {0,3}{search_tool}\b[^\n]{0,400}(?:\n{1,2}action {1,3}input:[^\n]{0,400})?"
    r"|\b{search_tool}\((?:\w{1,20}\s?=\s?)?[\"'“”‘’„«»][^\"'\n]{0,400}[\"'“”‘’„«»][^()\n]{0,100}\)",
    re.IGNORECASE | re.DOTALL,
)
"""A call of a tool, and what it returns: not said by the model, unless the call is how it answers."""
_MINUS = pattern(
    r"(?:(?P<either>{^plus_or_minus})|(?<![\d%] )(?<!\w\w\) )(?<!\W\) )(?<!\w\(\w\) )(?<!\b\w ){^minus}) ?(?=[.,]?\d)"
)
"""A sign in words, also after a label ("B) minus 2"); not the operator between two terms."""

_OPEN_END = pattern(
    r"(?:\\\[(?:(?!\\\]).){0,400}+|\\f?box(?:ed)?\s?\{(?:[^{}]|\{[^{}]{0,200}+\}?+){0,400}+"
    rf"|(?<=[{{,])\s{{0,9}}\"(?!{_KEY}\")\w{{1,40}}\"\s{{0,5}}:\s{{0,5}}\"[^\"{{}}]{{0,2000}}"
    rf"|(?<=[{{,])\s{{0,9}}\"{_KEY}\"\s{{0,5}}:[\s\"\[]{{0,9}}|<(?:{{answer_tag}}|{{verdict_tag}})>[^<]{{0,20}})\Z",
    re.IGNORECASE | re.DOTALL,
)
"""The unclosed end of a reply that was cut off: a formula, a box, a value of a record. Quantifiers that could divide a
text in several ways are possessive: in boxes within boxes, the ways multiply."""
_LONGEST_OPEN_END = 3_000
"""Characters from the end of a reply where an unclosed part may begin; trying each place of a megabyte takes
minutes."""
_CHINESE_MARK = re.compile(r"\([√×]\)")
_OPEN_BOX = "☐⬜□"
_RIGHT_MARK, _WRONG_MARK = "✅✓✔☑🟢🟩", f"❌✗✘✖✕❎☒🔴🟥🚫{_OPEN_BOX}"
_RIGHT, _WRONG = (f"({word})" for word in words("judgement_of_mark"))
"""The words that such marks are read as."""
_MARK, _NO_MARK = rf"[{_RIGHT_MARK}{_WRONG_MARK}]\ufe0f?", rf"[^{_RIGHT_MARK}{_WRONG_MARK}\n]"
_MARKS_AHEAD = re.compile(
    rf"^[ \t]*(?:{_MARK}{_NO_MARK}{{1,200}}){{1,25}}{_MARK}{_NO_MARK}{{0,200}}\w\W?$", re.MULTILINE
)
"""Marks before what they judge, on one line: "✅ B ❌ C"; after it they end the line."""
_JUDGED = rf"{_NO_MARK}+?(?=[(,;][^\n]{{0,400}}{_MARK})|.+$"
_LABEL = rf"(?:[(\[]?\w{{1,4}}[).:\]][ \t]?(?={_MARK}{_NO_MARK}+$))?"
_MARKED_LINE = re.compile(rf"^([ \t]*{_LABEL})({_MARK})[ \t]*({_JUDGED})", re.MULTILINE)
"""A mark, and what it judges: the line, or its first part if others are judged behind: "✅ B (A ❌, C ❌)"."""
_BULLET = re.compile(r"^[ \t]*(?:#{1,6}[ \t]*|>[ \t]?|[-•*+●▪◦‣][ \t]+|👉[ \t]*|➡\ufe0f?[ \t]*)+", re.MULTILINE)
_HTML = re.compile(r"<(b|strong|i|em|u|span|mark)>([^<>]{0,400})</\1>", re.IGNORECASE)
_HTML_BLOCK = re.compile(r"<(?:(h[1-6])|(p|div|li))\b[^<>]{0,80}>([^<>]{0,400})</(?:\1|\2)>", re.IGNORECASE)
_EMPHASIS = re.compile(r"\*{1,3}|`{1,3}(?:json|text|python|latex)?\b|`+|(?<!\w)_{1,3}(?=\S)|(?<=\S)_{1,3}(?!\w)")
_INVISIBLE = re.compile("[\ufeff\ufe0f\u20e3\u200b\u2060\u00ad\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that take no room; those that join letters (in Hindi) or pictures stay."""
_SPACES = re.compile("[\t\xa0\u2000-\u200a\u202f\u205f\u3000]")
"""Which JSON does not allow between its parts."""
_PICTURE = rf"(?![{_RIGHT_MARK}{_WRONG_MARK}👉])[\U0001f300-\U0001faff\u2600-\u26ff\u2728\u2b50\u2764]\ufe0f?"
_EMOJI = re.compile(rf"^(?: {{0,3}}{_PICTURE}){{1,9}} {{0,3}}| {{0,3}}(?:{_PICTURE} {{0,3}}){{1,9}}$", re.MULTILINE)
_COURTESY = pattern(
    r"\A\s{0,9}(?:\*{0,2}{speaker}\*{0,2}\s?[:：]\*{0,2}\s{0,9})?(?:{courtesy}\s?(?:[!.！。]\s{0,9}){1,3}){0,3}"
)
_CLOSING = pattern(r"(?:\n\s{0,9}|(?<=[.!?。！])\s{0,9})\*{0,2}{closing}[^\n]{0,200}\s{0,9}\Z")
_MOST_CLOSINGS, _LONGEST_CLOSING = 3, 500
_MANNERS = pattern(rf"(?:\A|[.!?] )(?:{{courtesy}}\s?(?:[!.,！。]|\Z)|{{closing}})|{_PICTURE}")
"""What is part of an answer where an option holds it, as in questions about conversations."""
_NEXT_QUESTION = pattern(
    r"\n[ \t#*]{0,9}({next_question})(?:\b[ \t*]{0,9}\d{0,9}[ \t]{0,9}(?::|(?=\n))|[ \t]?\d{1,3}[.)])"
)
_BELOW_HEAD = re.compile(r"^ ?:?-{2,}:? ?\|", re.MULTILINE)
"""The line below the head of a table without outer pipes."""
_CHECKBOXES = re.compile(r"^[ \t]*\[[ xX]\][ \t]*\w.*$", re.MULTILINE)


def clean(reply: str, options: Sequence[str] = ()) -> str:
    """The reply as :mod:`collapse` and the rules read it; empty if it is nothing but thinking.

    Args:
        options: their texts; where one holds words or smileys that usually stand around a reply, these stay.
    """
    # Thinking goes first: it holds answers that are considered and dropped. The cut comes before steps of more than one
    # pass, and again after steps that make texts longer. JSON is read before Markdown is undone, which would change its
    # values.
    text = _SPACES.sub(" ", _last_turn(_INVISIBLE.sub("", without_thinking(reply))))
    text = re.sub(r"(?<!\w)« ([^«»\n]{1,200}) »(?!\w)", r"«\1»", text)  # as set in French
    if not any(map(_MANNERS.search, options)):
        text = _without_courtesies(text)
    text = text[:-_LONGEST_OPEN_END] + _OPEN_END.sub(" …", text[-_LONGEST_OPEN_END:])
    text = _TOOL_CALL.sub(lambda call: call[0] if _ANSWER_KEY.search(call[0]) else "…", shortened(text))
    text = plain(_json_as_lines(text))
    text = re.sub(r"~~[^~\n]{0,300}~~", " ", text)
    text = _JSON_FIELD.sub(_json_field, text)
    text = _JSON_KEY.sub(r"\n\1: ", text)
    text = _TAG.sub(rf"\n{FIELD}\2{END_FIELD}\n", _NEXT_TAG.sub(", ", text))
    text = _HTML_BLOCK.sub(lambda block: f"\n{'# ' if block[1] else ''}{block[3]}\n", _HTML.sub(r"\2", text))
    text = _TITLE.sub(r"\1:", text)
    text = _HEADING.sub(lambda match: f"\n{match[match.lastgroup or 0]}: ", _without_markdown(shortened(text)))
    return shortened(_tidy(text))


def _without_courtesies(text: str) -> str:
    """The text without the words around a reply: "Sure! ...", "... I hope this helps!", and smileys around a line."""
    text = _EMOJI.sub("", text)
    bare = _COURTESY.sub("", text)
    for _ in range(_MOST_CLOSINGS):
        bare = bare[:-_LONGEST_CLOSING] + _CLOSING.sub("", bare[-_LONGEST_CLOSING:])
    return bare if bare.strip() else text


@lru_cache(maxsize=1 << 16)  # every page of a question has the same options
def option_text(option: str) -> str:
    """An option's text, written as :func:`clean` writes replies."""
    return _tidy(_without_emphasis(plain(option)))


def _tidy(text: str) -> str:
    text = pattern(r"\b{abbreviation}\.", 0).sub(lambda match: re.sub(r"[.\s]", "", match.group()), text)
    text = re.sub(r"[^\S\n]+", " ", re.sub(r"\n{3,}", "\n\n", text)).strip()
    return _MINUS.sub(lambda sign: "±" if sign["either"] else "-", text)


def plain(text: str) -> str:
    """A text with one spelling of Unicode and LaTeX, for replies and option texts alike, so that they compare."""
    if not text.isascii():
        text = re.sub(r"(?<=\d)(?=[¼-¾⅐-⅞])", " ", _INVISIBLE.sub("", text.translate(_SIGNS)))
        text = re.sub(r"(?<=[\w)\]])(?=[⁺⁻]?[⁰¹²³⁴-⁹])(?<![⁰¹²³⁴-⁹⁺⁻])", "^", text)  # "x²" is not "x2"
        text = shortened(normalized(_with_few_marks(text)))
        # Private characters stand for mentions (:mod:`grammar`), and half characters cannot be written to a file.
        text = "".join(" " if unicodedata.category(c) in ("Co", "Cs") else c for c in text.translate(_QUOTES))
        text = pattern(r"(?<!\w)({written_on_label})(?=[A-Z](?!\w))", 0).sub(r"\1 ", text)
    text = re.sub(r"\r\n?|[\u2028\u2029\x85]", "\n", re.sub("[。।۔]", ". ", text))
    if re.search(r"[\\$]|\{,\}", text):  # no command is without one of these
        for command, replacement in _LATEX.items():
            text = re.sub(command, replacement, text)
    return text


def _with_few_marks(text: str) -> str:
    if not any(map(unicodedata.combining, text)):
        return text
    runs = itertools.groupby(text, key=lambda character: unicodedata.combining(character) != 0)
    return "".join("".join(itertools.islice(run, _LONGEST_MARKS)) if marks else "".join(run) for marks, run in runs)


def without_thinking(reply: str) -> str:
    """The reply outside its thinking tags."""
    reply = _ANALYSIS.sub("", reply[max((match.end() for match in _FINAL_CHANNEL.finditer(reply)), default=0) :])
    parts: list[str] = []
    start = depth = 0
    for tag in _THINKING_TAG.finditer(reply):
        if tag.lastindex:
            # Some chat templates open the thinking in the prompt: a tag that only closes ends what precedes it. One
            # that is never closed (the reply was cut off) hides what follows.
            parts = parts if depth else []
            depth = max(0, depth - 1)
        else:
            parts += [] if depth else [reply[start : tag.start()]]
            depth += 1
        start = tag.end()
    return "\n".join([*parts, "" if depth else reply[start:]])


def without_fragment(reply: str) -> str:
    """A reply that was cut off, without its last fragment: the text after its last full sentence or line, or, if there
    is none, its last word. A first word alone stays, since models that are asked for one token answer with a label.

    Examples:
        >>> without_fragment("B is the largest planet. The d"), without_fragment("B")
        ('B is the largest planet.', 'B')
    """
    text = reply.rstrip()
    end = max(text.rfind(mark) for mark in (".", "!", "?", "\n", "。", "！", "？"))
    if text[: end + 1].strip():
        return text[: end + 1]
    *first, _ = text.rsplit(None, 1) or [""]
    return "".join(first) or text


def before_next_question(text: str, labels: Sequence[str] = ()) -> str:
    """The text before the first question that a model asks itself after its answer, as base models do.

    Args:
        labels: of options: "Q: wrong" is said of the option Q.
    """
    answered = pattern(r"(?:\A|\n) ?{title_field}:").search(text)
    for match in _NEXT_QUESTION.finditer(text):
        # A heading without a colon may also be part of a reply that repeats the question first.
        asks = ":" in match[0] or (answered and answered.start() < match.start())
        if asks and match[1] not in labels and re.search(r"\w", text[: match.start()]):
            return text[: match.start()]
    return text


def _last_turn(reply: str) -> str:
    """The reply up to the first token that ends a turn, after some text."""
    start = 0
    for match in _END_OF_TURN.finditer(reply):
        if _SPECIAL_TOKEN.sub("", reply[start : match.start()]).strip():
            reply = reply[: match.start()]
            break
        start = match.end()
    return _SPECIAL_TOKEN.sub(" ", _END_OF_TURN.sub(" ", reply))


def shortened(text: str) -> str:
    """Both ends of a text of more than :data:`LIMIT` characters.

    Examples:
        >>> len(shortened("no answer " * 100_000 + "Answer: B")) - LIMIT
        2
    """
    return text if len(text) <= LIMIT else text[: LIMIT // 3] + "\n\n" + text[LIMIT // 3 - LIMIT :]


def _json_as_lines(text: str) -> str:
    """The text with its first JSON record or list as lines: ``key: value``, or the value marked as the answer."""
    text = text if '"' in text else text.translate(_QUOTES)
    for opening in itertools.islice(re.finditer(r"\[(?=\s{0,20}\{\s{0,20}\")|\{(?=\s{0,20}\")", text), 4):
        try:
            records, end = json.JSONDecoder().raw_decode(text, opening.start())
            lines = "\n".join(_json_lines({"": records}))
        except (ValueError, RecursionError):  # no JSON, or nested too deep for Python
            continue
        return f"{text[: opening.start()]}\n{lines}\n{text[end:]}"
    return text


def _json_lines(record: dict[str, Any], one_of: int = 1) -> Iterator[str]:
    answers = pattern("{answer_tool}").fullmatch(str(record.get("name", record.get("action"))))
    judgement = next((str(record[key]) for key in record if pattern("{judging_key}").fullmatch(key)), "")
    right = one_of > 1 and pattern("{judged_right}").fullmatch(judgement)
    judged = _RIGHT if right else _WRONG if pattern("{judged_wrong}").fullmatch(judgement) else ""
    texts = [record[key] for key in record if pattern("{option_text_key}").fullmatch(key)]
    for key, value in record.items():
        # The arguments of a call are an answer only where they or the tool are named so.
        if key in _ARGUMENTS and answers and not (isinstance(value, dict) and len(value) > 1):
            key, value = words("whole_field")[0], next(iter(value.values())) if isinstance(value, dict) else value
        is_answer = pattern(_KEY).fullmatch(key)
        if is_answer and texts and isinstance(value, str):
            value = f"{value}. {texts[0]}"
        records = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, dict)]
        listed = ", ".join(map(str, value)) if isinstance(value, list) else value
        if records:
            lines = (line for each in records for line in _json_lines(each, len(records)))
            yield from (line for line in lines if key not in _ARGUMENTS or line.startswith(FIELD))
        elif is_answer and judged and not pattern("{yes_no_end}").fullmatch(str(value)):
            yield f"{listed} {judged}"  # {"option": "B", "correct": false}
        elif is_answer:
            yield f"{FIELD}{'none' if value == [] else 'null' if listed in (None, '') else listed}{END_FIELD}"
        elif _NEXT_QUESTION.fullmatch(f"\n{key}:") and len(key) > 1:
            continue  # the question again, which would look like a next one
        elif key not in _ARGUMENTS or _ANSWER_KEY.search(str(value)):
            name = re.sub(r"_|(?<=[a-z])(?=[A-Z])", " ", key)
            denies = pattern("{wrong_before}|{^rejecting$}").search(name)
            yield f"{name if denies else key}: {'null' if value is None else listed}"


def _json_field(match: re.Match[str]) -> str:
    written = match["value"].strip(" ,")
    value = re.sub(r"\A[\[\"'\s]+|[\]\"'\s,]+\Z", "", written).replace('"', "")
    return f"\n{FIELD}{'null' if written in _NULL else value or 'none'}{END_FIELD}\n"


def _without_markdown(text: str) -> str:
    pipe = "|" if _BELOW_HEAD.search(text) else "\n|"  # anywhere on a line, or at its beginning
    text = "\n".join(_row(line) if pipe in "\n" + line.lstrip() else line for line in text.split("\n"))
    # In pairs only: "<b>" alone may be an option. Once more, since they are nested.
    text = _BULLET.sub("", _without_emphasis(_HTML.sub(r"\2", text)))
    text = _CHINESE_MARK.sub(lambda match: "✓ " if match[0][1:2] == "√" else "✗ ", text)
    text = _ticked(_CHECKBOXES.sub(lambda match: re.sub(r"\[[xX]\]", "☑", match.group().replace("[ ]", "☐")), text))
    text = _MARKS_AHEAD.sub(lambda match: re.sub(_MARK, r"\n\g<0>", match.group()), text)
    text = _MARKED_LINE.sub(r"\1\3 \2", text)
    text = re.sub(rf"[{_RIGHT_MARK}]\ufe0f?", f" {_RIGHT} ", text)
    return re.sub(rf"[{_WRONG_MARK}]\ufe0f?", f" {_WRONG} ", text)


def _ticked(text: str) -> str:
    """The text with the boxes of a form as marks: in a form, a crossed box is a chosen one ("☐ A ☒ B"); one in which
    nothing is chosen judges nothing."""
    if re.search(f"[{_OPEN_BOX}]", text) and not re.search(f"[{_RIGHT_MARK}]", text):
        text = text.replace("☒", "☑") if "☒" in text else re.sub(f"[{_OPEN_BOX}]", "… ", text)
    return text


def _without_emphasis(text: str) -> str:
    return _EMPHASIS.sub(_mark, text)


def _row(line: str) -> str:
    """A table's row as ``cell: cell: cell``; empty for the line below its head."""
    cells = [cell.strip() for cell in re.split(r"(?<!\|)\|(?!\|)", line.strip().strip("|"))]
    return "" if all(re.fullmatch(r":?-*:?", cell) for cell in cells) else ": ".join(cells)


def _mark(match: re.Match[str]) -> str:
    """Empty for emphasis; a star that is a bullet or a product stays."""
    before, after = match.string[max(0, match.start() - 1) : match.start()], match.string[match.end() : match.end() + 1]
    between_words = before.isalnum() and after.isalnum() and max(before, after) < "\u0e00"  # Chinese has no spaces
    product = match.group() in ("*", "**") and between_words
    return match.group() if product or (match.group() == "*" and after == " " and not before.strip()) else ""
