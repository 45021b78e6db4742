"""Token ids: lines tokenized one by one equal the whole, and label boundaries are the tokenizer's own."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tests.models.zoo import ONE_OF_EACH_TOKENIZER, ZOO, ZooFolder, variant
from unslant.errors import ModelError
from unslant.models.hf.tokenization import Encoder
from unslant.prompts import Message, Prompt

SPECIAL = ("</s>", "<s>", "<unk>", "<|endoftext|>", "<|end|>", "<|assistant|>", "<0x0A>", "<｜end▁of▁sentence｜>", "ø")
LINE = st.one_of(
    st.text(max_size=12),
    st.text(alphabet=" \t\r\x0b\x0c\x1c\x85\xa0\u2003\u3000\n", max_size=4),
    st.text(alphabet="\u0301\u0327\u200d\u200bé中👩🏽’'/!?)1x", max_size=6),
    st.sampled_from(("A. oxygen", "B. 12.5 %", "(C) both", "Answer:", "'s", "//", "e\u0301", "#", "1234567", *SPECIAL)),
)
TEXT = st.lists(
    st.tuples(LINE, st.sampled_from(("\n", "\n", "\n", "\r\n", "\n\n", " \n", "", "\n\t", "\n "))), max_size=10
).map(lambda lines: "".join(line + end for line, end in lines))

_encoders: dict[str, Encoder] = {}
_tokenizer = cache(AutoTokenizer.from_pretrained)


QUICK = ("gpt2", "llama", "qwen2")
"""A tokenizer of bytes, one of sentences, and one that cuts by another pattern; the others are thorough."""


@pytest.fixture(
    params=[
        name if name in QUICK else pytest.param(name, marks=variant(name).marks or [pytest.mark.thorough])
        for name in ONE_OF_EACH_TOKENIZER
    ]
)
def encoder(request, zoo_model: ZooFolder) -> Encoder:
    if request.param not in _encoders:
        _encoders[request.param] = Encoder(_tokenizer(zoo_model(request.param)), as_text=False)
    return _encoders[request.param]


def whole_ids(tokenizer, text: str) -> list[int]:
    return tokenizer(text)["input_ids"]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=TEXT)
def test_lines_one_by_one_equal_the_whole_text(encoder: Encoder, text: str):
    assert encoder._by_line, "lines must be cached for this tokenizer, or the test shows nothing"
    text = "Question: " + text
    (encoded,) = encoder.encode([Prompt(text, (" A", " B"))])
    assert encoder._by_line, "the encoder's own check found lines that differ from the whole"
    for ids, continuation in zip(encoded.candidates, (" A", " B"), strict=True):
        assert [*encoded.context, *ids] == whole_ids(encoder.tokenizer, text + continuation)


def test_slash_after_a_line_end_is_cut_as_its_tokenizer_does():
    """GPT-4o's rules take ``!\\n/`` as one word, so the line ``/x`` begins otherwise behind ``!`` than behind ``a``."""
    words = {letter: i for i, letter in enumerate("a b c ! / Ċ x /x !Ċ".split())}
    raw = Tokenizer(models.BPE(words, [("/", "x"), ("!", "Ċ")]))
    pattern = r"[^\r\n\p{L}\p{N}]?\p{L}+| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+"
    raw.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    encoder = Encoder(PreTrainedTokenizerFast(tokenizer_object=raw))
    texts = ["a\n/x\nb", "!\n/x\nb", "a!\n/x\nb!\n/x"]
    for text in texts:
        (encoded,) = encoder.encode([Prompt(text, ("a", "b"))])
        assert [*encoded.context, *encoded.candidates[0]] == whole_ids(encoder.tokenizer, text + "a")
    assert encoder._by_line
    pieces = encoder._pieces
    assert pieces["a\n", "/x\n"].tolist() != pieces["!\n", "/x\n"].tolist()


@pytest.mark.parametrize("why", ["joined", "unigram", "strips"])
def test_tokenizers_that_may_join_lines_are_used_on_whole_texts(why):
    letters = {letter: i for i, letter in enumerate("a b \n".split(" "))} | {"<unk>": 3}
    if why == "joined":
        raw = Tokenizer(models.BPE(letters | {"\nb": 4}, [("\n", "b")]))
    elif why == "unigram":
        raw = Tokenizer(models.Unigram([("<unk>", 0.0), ("a", -1.0), ("\n", -1.0), ("b", -1.0)], 0))
    else:
        raw = Tokenizer(models.BPE(letters, []))
        raw.normalizer = normalizers.Strip()
    encoder = Encoder(PreTrainedTokenizerFast(tokenizer_object=raw))
    assert not encoder._by_line
    (encoded,) = encoder.encode([Prompt("a\nb\na", ("a", "b"))])
    assert [*encoded.context, *encoded.candidates[1]] == whole_ids(encoder.tokenizer, "a\nb\nab")


def test_a_tokenizer_found_to_join_lines_is_used_on_whole_texts(zoo_model):
    encoder = Encoder(_tokenizer(zoo_model("llama")))
    encoder._pieces["", "One line.\n"] = np.array([5, 6, 7], dtype=np.int32)
    (encoded,) = encoder.encode([Prompt("One line.\nAnswer:", (" A", " B"))])
    assert not encoder._by_line
    assert [*encoded.context, *encoded.candidates[0]] == whole_ids(encoder.tokenizer, "One line.\nAnswer: A")


@pytest.mark.parametrize("name", ["gpt2", "llama", "phi3"])
@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("Answer:", [" A", " B", " C"]),
        ("Answer: (", ["A", "B"]),  # the bracket may melt with the label
        ("Answer:", [" 1", " 2", " 10", " 26"]),
        ("Answer:", [" I", " II", " III", " IV"]),
        ("Answer:", [" it cannot be known", " it is not true that it can be", " yes"]),
        ("The answer is ", ["Apple", "apple", " Apple"]),  # a space at the end melts with the next word
        ("Antwort:\n", ["ä", "中", "👩🏽"]),
    ],
)
def test_context_and_candidates_are_the_whole_tokenization(zoo_model, name, text, labels):
    encoder = Encoder(_tokenizer(zoo_model(name)))
    text = "Question: which?\nA. one\nB. two\n" + text
    encoded = encoder._encode_one(Prompt(text, tuple(labels)), text)  # as it is before any set of labels is refused
    for ids, label in zip(encoded.candidates, labels, strict=True):
        assert len(ids) >= 1
        assert [*encoded.context, *ids] == whole_ids(encoder.tokenizer, text + label)
    # Nothing of the context belongs to one label only: it is a beginning of the prompt by itself.
    alone = whole_ids(encoder.tokenizer, text)
    assert encoded.context.tolist() == alone[: len(encoded.context)]


def test_a_label_that_begins_another_keeps_a_token_of_its_own(zoo_model):
    encoder = Encoder(_tokenizer(zoo_model("llama")))
    encoded = encoder._encode_one(Prompt("Answer: ", ("1", "10")), "Answer: ")
    one, ten = encoded.candidates
    assert len(one) == 1
    assert len(ten) == 2
    assert ten[0] == one[0]


def test_chat_template_writes_its_own_special_tokens(zoo_model):
    tokenizer = _tokenizer(zoo_model("phi3"))
    encoder = Encoder(tokenizer)
    messages = (Message("user", "Which gas?\nA. one\nB. two"), Message("assistant", "A"), Message("user", "And?\nA. x"))
    (encoded,) = encoder.encode([Prompt("The answer is", (" A", " B"), messages)])
    plain = [{"role": m.role, "content": m.content} for m in messages]
    text = tokenizer.apply_chat_template(plain, tokenize=False, add_generation_prompt=True) + "The answer is A"
    assert [*encoded.context, *encoded.candidates[0]] == tokenizer(text, add_special_tokens=False)["input_ids"]
    assert encoder._by_line


def test_special_tokens_in_a_question_are_read_as_transformers_reads_them_where_allowed(zoo_model):
    tokenizer = _tokenizer(zoo_model("llama"))
    (encoded,) = Encoder(tokenizer, as_text=False).encode(
        [Prompt("Which tag ends it?\nA. </s>\nB. <s>\nAnswer:", (" A", " B"))]
    )
    assert encoded.context.tolist().count(tokenizer.eos_token_id) == 1
    assert encoded.context.tolist().count(tokenizer.bos_token_id) == 2


@pytest.mark.parametrize("text", ["Answer:", ""])
def test_an_empty_answer_is_refused_with_its_question(zoo_model, text):
    encoder = Encoder(_tokenizer(zoo_model("gpt2")))
    continuations = ("", "A") if text else ("A", "B")
    with pytest.raises(ModelError, match="'q17'"):
        encoder.encode([Prompt(text, continuations, group="q17")])


def test_chat_without_a_template_is_refused(zoo_model):
    encoder = Encoder(_tokenizer(zoo_model("gpt2")))
    with pytest.raises(ModelError, match="no chat template"):
        encoder.encode([Prompt("", ("A", "B"), (Message("user", "Which?"),))])


def test_a_chat_the_template_refuses_is_an_error_with_its_words(zoo_model):
    tokenizer = _tokenizer(zoo_model("gpt2"))
    tokenizer.chat_template = "{{ raise_exception('system messages are not for me') }}"
    with pytest.raises(ModelError, match="system messages are not for me"):
        Encoder(tokenizer).encode([Prompt("", ("A", "B"), (Message("user", "Which?"),))])


def test_every_tokenizer_of_the_zoo_is_tried():
    assert {ZOO[name].tokenizer for name in ONE_OF_EACH_TOKENIZER} == {entry.tokenizer for entry in ZOO.values()}
