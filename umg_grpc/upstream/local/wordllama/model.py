"""Wordllama model: tokens and token vectors of texts. It imports numpy, so only the engine's thread imports it."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.local import WORDLLAMA_ENGINE, wordllama_unavailable
from umg_grpc.upstream.local.wordllama.text_length_limits import VECTOR_DIMENSIONS
from umg_grpc.v1 import pb

TOKENS_TOGETHER = 8192
"""Maximum tokens whose vectors are looked up at once, which takes 8 MiB."""

Vectors: TypeAlias = NDArray[np.float32]
"""Matrix with one vector in each row."""


class _Library(Protocol):
    """Interface of `wordllama.WordLlamaInference`, limited to the parts that are used."""

    embedding: Vectors
    tokenizer: Tokenizer


class WordLlamaModel:
    """Tokenizer and token vectors of wordllama, for use in one thread at a time. The library's own `embed` returns no
    token counts and pads all texts to the longest.
    """

    def __init__(self, library: _Library) -> None:
        self._vectors = library.embedding
        self._tokenizer = library.tokenizer
        self._tokenizer.no_padding()  # padding would make all texts of a batch as long as the longest

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text, empty for an empty text, at about 2 million tokens a second."""
        return [read.ids for read in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def embed(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        """Return a row for each list of token ids: the sum of the tokens' vectors; zeros for an empty list. The sum has
        the direction of the mean. Processes about 10 million tokens a second.
        """
        sums = np.zeros((len(tokens), VECTOR_DIMENSIONS), np.float32)
        for place, ids in enumerate(tokens):
            for start in range(0, len(ids), TOKENS_TOGETHER):
                sums[place] += self._vectors.take(ids[start : start + TOKENS_TOGETHER], axis=0).sum(axis=0)
        return sums


def unit(vectors: Vectors) -> Vectors:
    """Return the vectors (rows) scaled to the length 1; a row of zeros stays unchanged."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    scaled: Vectors = vectors / lengths
    return scaled


def load() -> WordLlamaModel:
    """Load the model from its installed package, which takes about 0.4 s and 110 MB. Raise UmgError(UNAVAILABLE) if
    it is not installed, OSError and other exceptions if it is damaged.
    """
    if (why := wordllama_unavailable()) is not None:
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, why).with_failure(Failure.DOWN)
    with _preserve_logging():
        from wordllama import WordLlama  # imported here: it takes 35 MB and configures logging

    (folder,) = getattr(find_spec(WORDLLAMA_ENGINE), "submodule_search_locations", None) or ("",)
    # the library's own search does not find the tokenizer next to its weights and would download it
    return WordLlamaModel(WordLlama.load(cache_dir=Path(folder), disable_download=True))


@contextmanager
def _preserve_logging() -> Iterator[None]:
    """Return a context manager in whose block imported libraries cannot configure the root logger."""
    root, configured = logging.getLogger(), logging.NullHandler()
    root.addHandler(configured)
    try:
        yield
    finally:
        root.removeHandler(configured)
