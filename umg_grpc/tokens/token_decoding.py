"""Decoding of token ids to text, for providers that accept only text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from umg_grpc.tokens.vocabulary_cache import load

if TYPE_CHECKING:
    from splintr import AnyTokenizer

VENDOR_TOKENS = {"cl100k_base": 100_277, "o200k_base": 200_019}
"""Vocabulary -> number of its tokens at the vendor; the library adds further special tokens, which are not decoded."""

EMBEDDING_TOKENIZER = "cl100k_base"
"""Vocabulary for embedding models without a configured tokenizer: the one that SDKs use for unknown model ids."""


def decode(ids: Sequence[int], tokenizer: str | None) -> str:
    """Return the text of token ids. `tokenizer`: name of the vocabulary, None for that of OpenAI's embedding models.

    A partial character at either end becomes U+FFFD; special tokens (markup without text) are left out. Raise
    ValueError for an id that the vocabulary lacks, with its position, and if all ids are special tokens.
    """
    name = tokenizer or EMBEDDING_TOKENIZER
    vocabulary = load(name)
    try:
        text = vocabulary.decode(ids)
    except ValueError:  # a partial character, or an unknown id
        text = _lossy(ids, vocabulary, name)
    else:
        # some vocabularies skip unknown ids
        if max(ids, default=0) >= VENDOR_TOKENS.get(name, vocabulary.vocab_size):
            _lossy(ids, vocabulary, name)
    if not text:
        raise ValueError("they stand for no text")
    return text


def _lossy(ids: Sequence[int], vocabulary: "AnyTokenizer", name: str) -> str:
    """Return the text of token ids, decoded one by one with U+FFFD for invalid bytes: the library's own lossy decoder
    does not support every kind of vocabulary. `name`: name of the vocabulary.
    """
    pieces, end = bytearray(), VENDOR_TOKENS.get(name, 2**32)
    for position, token in enumerate(ids):
        try:
            if token >= end:
                raise ValueError(token)
            pieces += vocabulary.decode_token_bytes(token)
        except ValueError:
            raise ValueError(f"{token}, at position {position}, is no token of {name}") from None
    return pieces.decode(errors="replace")
