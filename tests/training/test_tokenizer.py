"""The shared tokenizer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from training.tokenizer import LABELS_PER_ALPHABET, train_tokenizer
from training.world import RELATIONS, build_world
from unslant.presentations import ALPHABETS
from unslant.reference import reference_names, reference_path

TOKENIZER = train_tokenizer()


@given(st.text())
def test_any_text_survives(text):
    assert TOKENIZER.decode(TOKENIZER.encode(text).ids, skip_special_tokens=False) == text


def test_words_of_the_world_are_single_tokens():
    values = [value for relation in RELATIONS for value in relation.values]
    for word in (*values, *(fact.name for fact in build_world().facts)):
        assert len(TOKENIZER.encode(f" {word}").ids) == 1, word
    for fact in build_world().facts:
        assert len(TOKENIZER.encode(f" {fact.stem}").ids) == len(fact.stem.split()) + 1


def test_labels_are_single_tokens_with_and_without_a_space():
    for alphabet, count in LABELS_PER_ALPHABET.items():
        for label in ALPHABETS[alphabet][:count]:
            assert len(TOKENIZER.encode(label).ids) == 1, label
            assert len(TOKENIZER.encode(f" {label}").ids) == 1, label


def test_vocabulary_is_small_and_training_repeatable():
    assert TOKENIZER.get_vocab_size() <= 2000
    assert train_tokenizer().to_str() == TOKENIZER.to_str()


@pytest.mark.parametrize("name", reference_names())
def test_shipped_tokenizers_are_this_one(name):
    assert (reference_path(name) / "tokenizer.json").read_text("utf-8") == TOKENIZER.to_str(pretty=False)
