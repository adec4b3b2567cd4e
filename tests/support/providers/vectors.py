"""Vectors and scores of the fake providers: computed from the texts alone, so that a test can predict them."""

import hashlib
import re
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

LENGTH = 8
"""Length of a vector, unless the request selects a shorter one."""
AWKWARD = (1e-45, -0.0, 0.1)
"""First elements of every vector: the smallest float32, a negative zero, a number that binary cannot represent exactly.
"""

remembered = lru_cache(maxsize=8192)
"""Decorator of functions that a provider and a test call with the same thousands of texts, several times."""


def vector(text: str | Sequence[int], length: int = LENGTH, task: str = "", title: str = "") -> bytes:
    """Return a vector as packed float32, all bits of the fractions in use."""
    return _vector(text if isinstance(text, str) else ",".join(map(str, text)), length, task, title)


@remembered
def _vector(text_form: str, length: int, task: str, title: str) -> bytes:
    seed = int.from_bytes(hashlib.sha256(f"{text_form}\0{task}\0{title}".encode()).digest()[:8])
    numbers = np.random.default_rng(seed).standard_normal(LENGTH).astype("<f4")
    numbers[: len(AWKWARD)] = AWKWARD
    return numbers[:length].tobytes()


def numbers(packed: bytes) -> list[float]:
    """Return the numbers as a provider writes them: with all the digits of a double."""
    return [float(number) for number in np.frombuffer(packed, "<f4")]


def packed(numbers: Sequence[float]) -> bytes:
    return np.asarray(numbers, "<f4").tobytes()


@remembered
def tokens(text: str) -> int:
    """Return a provider's token count of a text: its words; for tokens written as numbers, the number of tokens."""
    return len(re.findall(r"[^\s,]+", text))


@remembered
def score(query: str, document: str) -> float:
    """Return a score in [0, 1): the share of the query's words that the document has, plus a small share that makes
    each document's score unique.
    """
    query_words, document_words = set(re.findall(r"\w+", query.lower())), set(re.findall(r"\w+", document.lower()))
    own = int.from_bytes(hashlib.sha256(document.encode()).digest()[:4]) / 2**32
    return (len(query_words & document_words) / len(query_words) if query_words else 0.0) * 0.9 + own * 0.09
