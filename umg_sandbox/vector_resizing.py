"""Vectors of any length for simulated models, made of the local model's. Imports numpy: for the engine's thread."""

from functools import cache, lru_cache
from hashlib import shake_256

import numpy as np

from umg_grpc.upstream.local.wordllama.model import Vectors
from umg_grpc.upstream.local.wordllama.text_length_limits import VECTOR_DIMENSIONS

VECTOR_PARTS = ((0, 64), (64, 128), (128, 256))
"""(start, end) of parts of a vector that are rotated separately, so that vectors cut to 64 or 128 stay meaningful."""


def transform(vectors: Vectors, model: str, length: int) -> Vectors:
    """Return a row of `length` numbers for each of the local model's vectors, not scaled to the length 1. The row
    consists of rotations of the vector, which depend on the model id. They preserve the angles between vectors: exactly
    for multiples of 256 numbers, approximately for other lengths.
    """
    turns = -(-length // VECTOR_DIMENSIONS)
    turned = vectors[:, None, :] * _signs(model, turns)
    made = np.empty_like(turned)
    for start, end in VECTOR_PARTS:
        made[:, :, start:end] = turned[:, :, start:end] @ _hadamard(end - start)
    return made.reshape(len(vectors), turns * VECTOR_DIMENSIONS)[:, :length]


@lru_cache(64)
def _signs(model: str, turns: int) -> Vectors:
    bits = np.unpackbits(np.frombuffer(shake_256(model.encode()).digest(turns * VECTOR_DIMENSIONS // 8), np.uint8))
    return (1 - 2 * bits.astype(np.float32)).reshape(turns, VECTOR_DIMENSIONS)


@cache
def _hadamard(size: int) -> Vectors:
    made = np.ones((1, 1), np.float32)
    while len(made) < size:
        made = np.block([[made, made], [made, -made]])
    return made / np.float32(size**0.5)
