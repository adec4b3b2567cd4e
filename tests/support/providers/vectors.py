"""The fakes' vectors and scores: made of the texts alone, so that a test knows them."""

import hashlib
import re
from collections.abc import Sequence

import numpy as np

LENGTH = 8
"""Of a vector, unless a shorter one is asked for."""
AWKWARD = (1e-45, -0.0, 0.1)
"""First elements of every vector: the least that a float32 can be, a zero with a sign, a number that is none in binary."""


def vector(text: str | Sequence[int], length: int = LENGTH, task: str = "", title: str = "") -> bytes:
    """Packed float32, all bits of their fractions in use."""
    said = text if isinstance(text, str) else ",".join(map(str, text))
    seed = int.from_bytes(hashlib.sha256(f"{said}\0{task}\0{title}".encode()).digest()[:8])
    numbers = np.random.default_rng(seed).standard_normal(LENGTH).astype("<f4")
    numbers[: len(AWKWARD)] = AWKWARD
    return numbers[:length].tobytes()


def numbers(packed: bytes) -> list[float]:
    """As a provider writes them: in all the digits of a double."""
    return [float(number) for number in np.frombuffer(packed, "<f4")]


def packed(numbers: Sequence[float]) -> bytes:
    """As a client reads them."""
    return np.asarray(numbers, "<f4").tobytes()


def tokens(text: str) -> int:
    """How many a provider counts of a text: its words; of tokens written as numbers, them."""
    return len(re.findall(r"[^\s,]+", text))


def score(query: str, document: str) -> float:
    """In [0, 1): the share of the query's words that the document has, and a little of its own so that no two are
    alike."""
    asked, said = set(re.findall(r"\w+", query.lower())), set(re.findall(r"\w+", document.lower()))
    own = int.from_bytes(hashlib.sha256(document.encode()).digest()[:4]) / 2**32
    return (len(asked & said) / len(asked) if asked else 0.0) * 0.9 + own * 0.09
