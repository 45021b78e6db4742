"""The tokenizer that all reference models share: byte-level BPE in the manner of GPT-2, trained on the world's text.

Every word of the world and every label is one token; any other text falls back to bytes, so all of Unicode survives.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from training.wording import WORDS
from training.world import NAMES_OF, RELATIONS, Fact
from unslant.presentations import ALPHABETS

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

PAD, BOS, EOS = "<|pad|>", "<|bos|>", "<|eos|>"
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")
CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}"
    "{% if message['role'] == 'assistant' %}<|eos|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
LABELS_PER_ALPHABET = {"A": 26, "a": 26, "1": 26, "I": 12, "i": 12}
"""How many labels of each alphabet are single tokens."""


def _texts() -> Iterator[str]:
    """Text in which every word to be one token occurs, the way the prompts write it."""
    yield from WORDS
    for relation in RELATIONS:
        for value in relation.values:
            fact = Fact(relation, NAMES_OF[relation.name][0], value, taught=True)
            yield from (fact.stem, f" {fact.stem}", fact.statement, f" {fact.statement}")
    yield from (f" {name}" for names in NAMES_OF.values() for name in names)
    for alphabet, count in LABELS_PER_ALPHABET.items():
        for label in ALPHABETS[alphabet][:count]:
            yield from (label, f" {label}")


def train_tokenizer() -> Tokenizer:
    """Train the shared tokenizer; no random choice is involved."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=100_000,  # more than can be reached: merging goes on until every word is whole
        min_frequency=1,
        special_tokens=[PAD, BOS, EOS, *ROLES],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    # Each distinct text once: counts of words must not depend on how often a template repeats them.
    tokenizer.train_from_iterator(sorted(set(_texts())), trainer)
    return tokenizer


def wrap(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """The tokenizer as ``transformers`` uses and saves it."""
    from transformers import PreTrainedTokenizerFast

    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        bos_token=BOS,
        eos_token=EOS,
        additional_special_tokens=list(ROLES),
        chat_template=CHAT_TEMPLATE,
        clean_up_tokenization_spaces=False,
        model_max_length=2048,
    )


def save_tokenizer(folder: Path) -> None:
    """Write tokenizer.json, tokenizer_config.json and the chat template to ``folder``."""
    tokenizer = train_tokenizer()
    wrap(tokenizer).save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
