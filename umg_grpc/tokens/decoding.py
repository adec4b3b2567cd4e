"""Decoding of token ids to text, for providers that take only text."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from umg_grpc.tokens.vocabulary_cache import load

if TYPE_CHECKING:
    from splintr import AnyTokenizer

VENDOR_TOKENS = {"cl100k_base": 100_277, "o200k_base": 200_019}
"""Sizes of the vendors' vocabularies, to which the library adds marks of its own."""

EMBEDDING_TOKENIZER = "cl100k_base"
"""Tokenizer of embedding models without a configured one: that of the vendor, which SDKs use for unknown model ids."""


def decode(ids: Sequence[int], tokenizer: str | None) -> str:
    """Return the text of token ids. A partial character at either end, where a client cut a long text, becomes U+FFFD,
    and marks without text are left out.

    Raises ValueError for an id that is not in the vocabulary, with its position, and for ids that are all marks.
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
    """Decode the token ids one by one, with U+FFFD for invalid bytes: the library's own lossy decoder does not support
    every kind of vocabulary.
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
