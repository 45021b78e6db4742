"""Real tokenizers for the models of the zoo, built from llama.cpp vocabulary files (GGUF) and one ``tokenizer.json``.

``transformers`` can read GGUF vocabularies itself, but not these three as they are published: its SentencePiece
conversion drops the space before a leading space, DeepSeek's comes out with GPT-2's pre-tokenizer, and GPT-NeoX is
refused. So the ``tokenizers`` objects are put together here, each with the normalizer and pre-tokenizer of its maker.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

from tests.conftest import SHARED_DATA
from training import tokenizer

TOKENIZER_DATA = SHARED_DATA / "tokenizers"
CONTROL, USER_DEFINED = 3, 4  # GGUF token types

_BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False)
# DeepSeek LLM: line breaks alone, words with their space, punctuation with its space, Chinese and Korean runs, digits
# one by one. The words are those of the bicameral scripts (Latin, Greek, Cyrillic, ...); anything else goes on whole.
_DEEPSEEK = pre_tokenizers.Sequence(
    [
        pre_tokenizers.Split(Regex("[\r\n]"), "isolated"),
        pre_tokenizers.Split(Regex(r"\s?[\p{Lu}\p{Ll}\p{Lt}]+"), "isolated"),
        pre_tokenizers.Split(Regex(r"\s?[!-/:-~！-／：-～‘-‟　-。]+"), "isolated"),
        pre_tokenizers.Split(Regex(r"\s+$"), "isolated"),
        pre_tokenizers.Split(Regex("[一-龥ࠀ-一가-퟿]+"), "isolated"),
        pre_tokenizers.Digits(individual_digits=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]
)


@dataclass(frozen=True)
class TokenizerSource:
    """Where a tokenizer comes from and how it cuts text.

    Attributes:
        file: name in the folder of tokenizer data.
        kind: ``spm`` (SentencePiece BPE with byte fallback), ``bytes`` (byte-level BPE), ``json`` (ready-made) or
            ``reference`` (that of the reference models, trained here: no file, and a vocabulary that loads at once).
        vocab_size: rows of the embedding that a model with this tokenizer has.
        bos_id, eos_id: the special tokens at the beginning and the end of a sequence.
        prefix_space: SentencePiece only: a text is read as if a space stood before it (Llama 2, not Gemma).
        bos: every text gets the beginning-of-sequence token.
        rstrip: special tokens swallow the white space after them (Phi-3).
        pre_tokenizer: byte-level only.
    """

    file: str
    kind: str
    vocab_size: int
    bos_id: int
    eos_id: int
    prefix_space: bool = True
    bos: bool = False
    rstrip: bool = False
    pre_tokenizer: Any = _BYTE_LEVEL

    @property
    def path(self) -> Path:
        return Path(tokenizer.__file__) if self.kind == "reference" else TOKENIZER_DATA / self.file


TOKENIZERS: dict[str, TokenizerSource] = {
    "gpt-2": TokenizerSource("ggml-vocab-gpt-2.gguf", "bytes", 50257, 50256, 50256),
    "gpt-neox": TokenizerSource("ggml-vocab-gpt-neox.gguf", "bytes", 50432, 0, 0),
    "deepseek-llm": TokenizerSource(
        "ggml-vocab-deepseek-llm.gguf", "bytes", 102400, 100000, 100001, bos=True, pre_tokenizer=_DEEPSEEK
    ),
    "llama-spm": TokenizerSource("ggml-vocab-llama-spm.gguf", "spm", 32000, 1, 2, bos=True),
    "llama-spm-no-prefix": TokenizerSource(
        "ggml-vocab-llama-spm.gguf", "spm", 32000, 1, 2, prefix_space=False, bos=True
    ),
    "phi-3": TokenizerSource("ggml-vocab-phi-3.gguf", "spm", 32064, 1, 32000, bos=True, rstrip=True),
    "phi-2": TokenizerSource("phi-2.tokenizer.json", "json", 50295, 50256, 50256),
    "reference": TokenizerSource("", "reference", 1620, 1, 2),
}


def save_tokenizer(name: str, folder: Path, cache: Path) -> None:
    """Save a tokenizer into ``folder``, by way of ``cache`` (reading a GGUF vocabulary takes seconds).

    Skips the test if the vocabulary file is not there.
    """
    source = TOKENIZERS[name]
    if not source.path.is_file():
        pytest.skip(f"no tokenizer vocabulary at {source.path} (it is not part of the repository)")
    key = hashlib.sha256(Path(__file__).read_bytes() + source.path.read_bytes()).hexdigest()[:16]
    kept = cache / f"{name}-{key}"
    if not kept.is_dir():
        cache.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache) as fresh:
            build_tokenizer(name).save_pretrained(fresh)
            shutil.copytree(fresh, f"{fresh}-done")
        with contextlib.suppress(OSError):  # another test run was first, with the same files
            Path(f"{fresh}-done").rename(kept)
    shutil.copytree(kept, folder, dirs_exist_ok=True)


def build_tokenizer(name: str) -> PreTrainedTokenizerFast:
    """One of :data:`TOKENIZERS` as a fast tokenizer, ready for ``save_pretrained``."""
    source = TOKENIZERS[name]
    if source.kind == "reference":
        return tokenizer.wrap(tokenizer.train_tokenizer())
    if source.kind == "json":
        raw = Tokenizer.from_file(str(source.path))
        raw.no_truncation()  # the file carries a limit of 2,048 that its maker did not set
        return PreTrainedTokenizerFast(
            tokenizer_object=raw, eos_token="<|endoftext|>", bos_token="<|endoftext|>", pad_token="<|endoftext|>"
        )
    return _from_gguf(source)


def _from_gguf(source: TokenizerSource) -> PreTrainedTokenizerFast:
    import gguf

    fields = gguf.GGUFReader(source.path).fields

    def read(key: str, under: str = "tokenizer.ggml.") -> Any:
        return fields[under + key].contents() if under + key in fields else None

    tokens: list[str] = read("tokens")
    vocab = {token: i for i, token in enumerate(tokens)}
    if source.kind == "spm":
        merges = _merges_from_scores(vocab, read("scores"))
        raw = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
        steps = [normalizers.Prepend("▁")] if source.prefix_space else []
        raw.normalizer = normalizers.Sequence([*steps, normalizers.Replace(" ", "▁")])
        pieces = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
        raw.decoder = decoders.Sequence([*pieces, *([decoders.Strip(" ", 1, 0)] if source.prefix_space else [])])
    else:
        merges = [tuple(merge.split(" ")) for merge in read("merges")]
        raw = Tokenizer(models.BPE(vocab, merges))
        raw.pre_tokenizer = source.pre_tokenizer
        raw.decoder = decoders.ByteLevel()
    for token, kind in zip(tokens, read("token_type"), strict=True):
        if kind in (CONTROL, USER_DEFINED) and not token.startswith("[PAD"):
            special = kind == CONTROL
            raw.add_tokens([AddedToken(token, special=special, normalized=False, rstrip=source.rstrip and special)])
    names = {role: read(f"{key}_token_id") for role, key in (("bos", "bos"), ("eos", "eos"), ("unk", "unknown"))}
    roles = {f"{role}_token": tokens[i] for role, i in names.items() if i is not None}
    if source.bos:
        bos = roles["bos_token"]
        raw.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", pair=f"{bos} $A {bos} $B", special_tokens=[(bos, vocab[bos])]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=raw,
        pad_token=roles["eos_token"],
        chat_template=read("chat_template", "tokenizer."),
        clean_up_tokenization_spaces=False,
        **roles,
    )


def _merges_from_scores(vocab: dict[str, int], scores: list[float]) -> list[tuple[str, str]]:
    """BPE merges that SentencePiece's scores stand for: a piece's rank is its score, ties by the halves' ids."""
    ranked = []
    for piece, i in vocab.items():
        halves = [(vocab[piece[:cut]], vocab[piece[cut:]]) for cut in range(1, len(piece)) if _both(vocab, piece, cut)]
        ranked += [(-scores[i], left, right) for left, right in halves]
    tokens = list(vocab)
    return [(tokens[left], tokens[right]) for _, left, right in sorted(ranked)]


def _both(vocab: dict[str, int], piece: str, cut: int) -> bool:
    return piece[:cut] in vocab and piece[cut:] in vocab
