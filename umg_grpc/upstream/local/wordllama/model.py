"""The model itself: texts into tokens, tokens into vectors. Imports numpy, so only the engine's thread imports it."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from umg_grpc.errors import Failure, UmgError
from umg_grpc.upstream.local import WORDLLAMA, embedding_unavailable
from umg_grpc.upstream.local.wordllama.lengths import DIMENSIONS
from umg_grpc.v1 import pb

TOKENS_TOGETHER = 8192
"""Whose vectors are gathered at once: 8 MiB."""

Vectors: TypeAlias = NDArray[np.float32]
"""One a row."""


class _Library(Protocol):
    """`wordllama.WordLlamaInference`, as far as it is used."""

    embedding: Vectors
    tokenizer: Tokenizer


class WordLlamaModel:
    """Texts into tokens and these into vectors; for one thread at a time.

    The library's own `embed` does the same, but tokenises without telling how many tokens there were, and pads every
    text of a batch to the longest.
    """

    def __init__(self, library: _Library) -> None:
        self._vectors = library.embedding
        self._tokenizer = library.tokenizer
        self._tokenizer.no_padding()  # one long text would make all others of its batch as long

    def tokenize(self, texts: Sequence[str]) -> list[list[int]]:
        """The token ids of each text; none for an empty one. About 2 million tokens a second."""
        return [read.ids for read in self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)]

    def embed(self, tokens: Sequence[Sequence[int]]) -> Vectors:
        """The sum of its tokens' vectors for each text, so the direction of their mean; zeros for one without tokens.
        About 10 million tokens a second.
        """
        sums = np.zeros((len(tokens), DIMENSIONS), np.float32)
        for place, ids in enumerate(tokens):
            for start in range(0, len(ids), TOKENS_TOGETHER):
                sums[place] += self._vectors.take(ids[start : start + TOKENS_TOGETHER], axis=0).sum(axis=0)
        return sums


def unit(vectors: Vectors) -> Vectors:
    """The vectors with length 1; one of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    lengths[lengths == 0] = 1
    made: Vectors = vectors / lengths
    return made


def load() -> WordLlamaModel:
    """The model from its package's folder: some 0.4 s and 110 MB with all that it imports. Raises
    UmgError(UNAVAILABLE) where it is not installed, OSError and others where the package is broken.
    """
    if (why := embedding_unavailable()) is not None:
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, why).of(Failure.DOWN)
    with _log_left_alone():
        from wordllama import WordLlama  # here: it takes 35 MB, and configures the log when it is imported

    (folder,) = getattr(find_spec(WORDLLAMA), "submodule_search_locations", None) or ("",)
    # its own search misses the tokenizer beside its weights, and would download it
    return WordLlamaModel(WordLlama.load(cache_dir=Path(folder), disable_download=True))


@contextmanager
def _log_left_alone() -> Iterator[None]:
    """Whatever is imported meanwhile finds a log that is configured, and leaves it so."""
    root, configured = logging.getLogger(), logging.NullHandler()
    root.addHandler(configured)
    try:
        yield
    finally:
        root.removeHandler(configured)
