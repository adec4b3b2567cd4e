"""Vectors of the local model as those of simulated ones, whatever their length. Imports numpy, so only the engine's
thread imports it.
"""

from functools import cache, lru_cache
from hashlib import shake_256

import numpy as np

from umg_grpc.upstream.local.wordllama.lengths import DIMENSIONS
from umg_grpc.upstream.local.wordllama.model import Vectors

PARTS = ((0, 64), (64, 128), (128, 256))
"""Of a vector, each turned within itself: the model's vectors keep their meaning when they are cut to 64 or 128
numbers, and so do those made of them.
"""


def carry(vectors: Vectors, model: str, length: int) -> Vectors:
    """The first `length` numbers of the vectors that the simulated model makes of these; not of length 1.

    They are the vector, turned, again and again: each time in another way, which follows from the id of the model. So
    angles stay as they were, after every 256 numbers exactly, and a prefix of any length keeps most of them.
    """
    turns = -(-length // DIMENSIONS)
    turned = vectors[:, None, :] * _signs(model, turns)
    made = np.empty_like(turned)
    for start, end in PARTS:
        made[:, :, start:end] = turned[:, :, start:end] @ _hadamard(end - start)
    return made.reshape(len(vectors), turns * DIMENSIONS)[:, :length]


@lru_cache(64)
def _signs(model: str, turns: int) -> Vectors:
    """1 or -1 for every number of every turn."""
    bits = np.unpackbits(np.frombuffer(shake_256(model.encode()).digest(turns * DIMENSIONS // 8), np.uint8))
    return (1 - 2 * bits.astype(np.float32)).reshape(turns, DIMENSIONS)


@cache
def _hadamard(size: int) -> Vectors:
    """An orthogonal matrix whose elements all have one magnitude. `size` is a power of two."""
    made = np.ones((1, 1), np.float32)
    while len(made) < size:
        made = np.block([[made, made], [made, -made]])
    return made / np.float32(size**0.5)
