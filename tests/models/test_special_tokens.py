"""Special tokens that a question spells stay text; those a chat template writes stay tokens."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from tests.models.zoo import ONE_OF_EACH_TOKENIZER, ZooFolder
from unslant import Question, audit, load_model
from unslant.errors import ModelError
from unslant.models.hf.tokenization import Encoder
from unslant.prompts import Message, Prompt
from unslant.questions import QuestionSet
from unslant.responses.provenance import SpecialTokens

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m['role'] }}\n{{ m['content'] | trim }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
QUICK = ("gpt2", "llama", "phi3")
SOME = ("gpt2", "llama")
_encoders: dict[str, Encoder] = {}


@pytest.fixture(
    params=[name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in ONE_OF_EACH_TOKENIZER]
)
def encoder(request, zoo_model: ZooFolder) -> Encoder:
    """For a tokenizer of the zoo with the tokens of ChatML, one that is not special but markup, and a mere word."""
    if request.param not in _encoders:
        loaded = AutoTokenizer.from_pretrained(zoo_model(request.param))
        loaded.add_special_tokens({"additional_special_tokens": ["<|im_start|>", "<|im_end|>"]})
        loaded.add_tokens([AddedToken("<think>", special=False, normalized=False), AddedToken("zzyzx", special=False)])
        loaded.chat_template = CHATML
        _encoders[request.param] = Encoder(loaded)
    return _encoders[request.param]


def control_ids(tokenizer: PreTrainedTokenizerFast) -> set[int]:
    return {*tokenizer.all_special_ids, *tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>", "<think>"])}


def encoded(encoder: Encoder, prompt: Prompt) -> list[list[int]]:
    (found,) = encoder.encode([prompt])
    return [[*found.context.tolist(), *ids.tolist()] for ids in found.candidates]


@pytest.mark.thorough
def test_a_question_cannot_end_its_turn(encoder):
    tokenizer = encoder.tokenizer
    encoder.spelling.clear()
    asked = f"Which?\nA. <|im_end|> is it\nB. {tokenizer.eos_token}<think>\nC. zzyzx"
    usual = Prompt("", ("A", "B"), (Message("user", "Which?\nA. x\nB. y\nC. zzyzx"),), "plain")
    spelled = Prompt("", ("A", "B"), (Message("user", asked),), "spelled")
    control = control_ids(tokenizer)
    count = [sum(i in control for i in encoded(encoder, prompt)[0]) for prompt in (usual, spelled)]
    assert count[0] == count[1] == 3
    assert encoder.spelling == {"spelled"}
    assert encoder.special_tokens == "text"
    ids = encoded(encoder, spelled)[0]
    assert tokenizer.decode(ids).replace(" ", "").count("<|im_end|>isit") == 1
    assert tokenizer.convert_tokens_to_ids("zzyzx") in ids
    assert encoder.ids(spelled) == ids[:-1]
    allowed = Encoder(tokenizer, as_text=False)
    written = allowed._written(spelled)[0] + "A"
    assert encoded(allowed, spelled)[0] == tokenizer(written, add_special_tokens=False)["input_ids"]
    assert allowed.special_tokens == "allow"


@pytest.mark.thorough
def test_text_without_a_chat_has_no_control_token_but_the_first(encoder):
    tokenizer = encoder.tokenizer
    text = "Which tag?\nA. </s> <s> <unk>\nB. <|im_end|>\nC. <|endoftext|>\nAnswer:"
    control = control_ids(tokenizer)
    for ids in encoded(encoder, Prompt(text, (" A", " <|im_end|>"), group="q")):
        assert not control & set(ids[len(encoder._prefix) :])
        assert text.replace(" ", "") in tokenizer.decode(ids).replace(" ", "")
    assert encoder.ids(Prompt(text, ()))[: len(encoder._prefix)] == encoder._prefix


PIECES = ("<|im_end|>", "<|im_start|>", "<", "|im_end|>", "<think>", "</s>", "a", " ", "\n", "é", "zzyzx", "\U000f0000")
pieces = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@pytest.mark.thorough
@pytest.mark.parametrize("encoder", SOME, indirect=True)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(contents=st.lists(pieces, min_size=1, max_size=3), begun=pieces)
def test_the_template_alone_decides_on_control_tokens(encoder, contents, begun):
    messages = tuple(Message("user", content) for content in contents)
    (ids,) = encoded(encoder, Prompt(begun, ("A",), messages))
    control = control_ids(encoder.tokenizer)
    assert sum(i in control for i in ids) == 2 * len(contents) + 1


@pytest.mark.parametrize("encoder", SOME, indirect=True)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(text=st.text(max_size=30))
def test_what_spells_nothing_is_what_transformers_makes_of_it(encoder, text):
    text, tokenizer = f"Q: {text}\nA:", encoder.tokenizer
    if encoder._literal.spelled([text]):
        return
    assert encoder._literal.ids(text + " A") == tokenizer(text + " A", add_special_tokens=False)["input_ids"]
    assert encoded(encoder, Prompt(text, (" A",)))[0] == tokenizer(text + " A")["input_ids"]


@pytest.mark.parametrize("kind", ["words", "unigram"])
def test_vocabularies_whose_words_are_control_tokens(kind):
    """The control token is a piece like any other there, which plain text would reach too."""
    if kind == "words":
        raw = Tokenizer(models.WordLevel({"<unk>": 0, "</s>": 1, "a": 2, "<": 3, "/": 4}, unk_token="<unk>"))
        raw.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    else:
        letters = [(letter, -3.0) for letter in "as<>/ "]
        raw = Tokenizer(models.Unigram([("<unk>", 0.0), ("</s>", -0.1), *letters], 0))
    raw.add_special_tokens(["</s>"])
    encoder = Encoder(PreTrainedTokenizerFast(tokenizer_object=raw, eos_token="</s>", unk_token="<unk>"))
    (ids,) = encoded(encoder, Prompt("a </s> a ", ("a",), group="q"))
    assert 1 not in ids
    assert encoder.special_tokens == "text"


def test_a_tokenizer_that_cannot_be_copied_says_so(zoo_model, monkeypatch):
    tokenizer = AutoTokenizer.from_pretrained(zoo_model("llama"))
    encoder = Encoder(tokenizer)
    monkeypatch.setattr(type(encoder._literal), "_copy", None)
    (ids,) = encoded(encoder, Prompt("Which? </s>\nAnswer:", (" A",), group="q"))
    assert ids.count(tokenizer.eos_token_id) == 1
    assert encoder.special_tokens == "allow"
    assert encoder.spelling == {"q"}


def test_a_result_says_which_questions_spell_special_tokens():
    model = load_model("fair")
    asked = [Question(f"q{i}", "Which?", ("a", ("b", "<|eos|> b")[i % 2]), frozenset({0})) for i in range(4)]
    result = audit(model, QuestionSet.of(asked), orders="given")
    assert result.run.special_tokens == SpecialTokens(read_as="text", questions=("q1", "q3"))
    assert "Texts of special tokens occur in 2 questions; read as text." in result.page().notes
    assert audit(model, QuestionSet.of(asked[::2]), orders="given").run.special_tokens is None


def test_a_tokenizer_larger_than_its_model_is_refused():
    model = load_model("fair")
    model.tokenizer.add_tokens(["zzyzx"])
    with pytest.raises(ModelError, match=r"question 'q7': the tokenizer gives token \d+, the model has [\d,]+"):
        list(model.score([Prompt("What is zzyzx?", (" A", " B"), group="q7")]))
