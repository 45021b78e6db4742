"""Cues are data: every class of every language is used, and a new phrase or language is read by the rules."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from unslant.replies import grammar
from unslant.replies.grammar import pattern

ROOM = Path(grammar.__file__).parent
RULES = "choice collapse every_option explicit extraction grammar option_texts reading verdict".split()
CODE = "".join(path.read_text("utf-8") for path in ROOM.glob("*.py"))


def test_every_class_is_used():
    data = [str(phrases) for language in grammar.languages().values() for phrases in language.values()]
    used = set(re.findall(r"\{\^?([a-z_]+)\$?\}", "".join([CODE, *data]))) | set(re.findall(r'words\("(\w+)"\)', CODE))
    used |= {"ordinal", "ordinal_figure", "simplified", "spaces_between_words"}
    defined = {name for language in grammar.languages().values() for name in language}
    assert defined - used == set()


def test_an_unknown_class_is_an_error():
    with pytest.raises(KeyError, match="no_such_class"):
        pattern("{no_such_class}")


def test_words_begin_and_end_where_a_language_writes_spaces():
    negation = pattern("{^denied$}")
    assert negation.search("it is never so")
    assert not negation.search("it is nevertheless so")
    assert negation.search("答案不是甲")


def test_a_new_language_is_a_file(monkeypatch):
    more = {**grammar.languages(), "it.toml": {"cue": "risposta_corretta_è", "and": "e_anche"}}
    monkeypatch.setattr(grammar, "languages", lambda: more)
    grammar._phrases.cache_clear()
    try:
        assert pattern("{sentence_cue}").search("la risposta corretta è")
        assert "e anche" in grammar.words("and")
    finally:
        grammar._phrases.cache_clear()


NO_WORD = re.compile(
    r"\\u[0-9a-f]{4}|A-Za-z|\{\^?[a-z_]+\$?\}|\(\?P[<=]\w+[>)]|\\\\[a-z]+|\\[a-zA-Z]|\[[^]]*\]|\(\?-?[a-z]:"
)
"""Parts of a regular expression in which letters are no word: names, LaTeX commands, classes, flags."""


def test_no_rule_holds_a_word_of_a_language():
    """Rules are skeletons: what their regular expressions spell out by letters is in the files of cues."""
    spelled = []
    for path in (ROOM / f"{name}.py" for name in RULES):
        tree = ast.parse(path.read_text("utf-8"))
        docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        expressions = [text for text in texts if id(text) not in docstrings and re.search(r"[\\{}|]|\(\?", text.value)]
        assert expressions, path
        spelled += [
            f"{path.name}:{text.lineno}: {text.value}"
            for text in expressions
            if re.search("[A-Za-z]{2}", NO_WORD.sub(" ", text.value))
        ]
    assert spelled == []
