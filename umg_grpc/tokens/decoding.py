"""Token ids back into text, for models whose providers take text only."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from umg_grpc.tokens.loading import load

if TYPE_CHECKING:
    from splintr import AnyTokenizer

OWN_TOKENS = {"cl100k_base": 100_277, "o200k_base": 200_019}
"""How many the vocabularies have as their vendor made them: the library adds marks of its own."""

EMBEDDING_TOKENIZER = "cl100k_base"
"""Of embedding models without one of their own: that of the vendor's, which clients take for any id unknown to them."""


def decode(ids: Sequence[int], tokenizer: str | None) -> str:
    """The text; half a character at either end, where a client cut a long text, becomes U+FFFD. Marks that stand for no
    text are left out. Raises ValueError for an id that the vocabulary does not have, with its position, and for ids
    that are marks alone.
    """
    name = tokenizer or EMBEDDING_TOKENIZER
    vocabulary = load(name)
    try:
        text = vocabulary.decode(ids)
    except ValueError:  # half a character, or an unknown id
        text = _lossy(ids, vocabulary, name)
    else:
        # some vocabularies leave out what they do not know
        if max(ids, default=0) >= OWN_TOKENS.get(name, vocabulary.vocab_size):
            _lossy(ids, vocabulary, name)
    if not text:
        raise ValueError("they stand for no text")
    return text


def _lossy(ids: Sequence[int], vocabulary: "AnyTokenizer", name: str) -> str:
    """One after the other; the library's own way of this is not there for every kind of vocabulary."""
    pieces, end = bytearray(), OWN_TOKENS.get(name, 2**32)
    for position, token in enumerate(ids):
        try:
            if token >= end:
                raise ValueError(token)
            pieces += vocabulary.decode_token_bytes(token)
        except ValueError:
            raise ValueError(f"{token}, at position {position}, is no token of {name}") from None
    return pieces.decode(errors="replace")
