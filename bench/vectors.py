"""Vectors as they are asked for and answered: both ends of the load build and check their bytes here."""

import random
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from bench.exchange import Fault

PATH = "/v1/embeddings"
MODEL = "bench-embed"
"""The fake upstream's."""


class Asked(NamedTuple):
    """A question for vectors. The fake upstream answers each of them, also those that a gateway answers itself."""

    name: str
    model: str
    encoding: str
    texts: int
    numbers: int
    """Of each vector."""
    local: bool = False
    """Whether a gateway with models of its own asks nobody."""


FLOAT = Asked("embed-float", MODEL, "float", 1, 1536)
BASE64 = Asked("embed-base64", MODEL, "base64", 1, 1536)
LOCAL_FLOAT = Asked("embed-local-float", "text-embedding-3-small", "float", 1, 1536, local=True)
LOCAL_BASE64 = Asked("embed-local-base64", "text-embedding-3-small", "base64", 1, 1536, local=True)
BATCH_FLOAT = Asked("embed-batch-float", "wordllama-256", "float", 2048, 256, local=True)
BATCH_BASE64 = Asked("embed-batch-base64", "wordllama-256", "base64", 2048, 256, local=True)
ASKED = (FLOAT, BASE64, LOCAL_FLOAT, LOCAL_BASE64, BATCH_FLOAT, BATCH_BASE64)

LENGTH_TOLERANCE = 0.01

_TEXT = "A gateway in front of several model providers gives applications one address, one key and one format."
_SUBJECTS = ("the ferry", "a bakery", "this bridge", "the orchestra", "her garden", "an engine", "the library")
_DOINGS = ("opens early in the morning", "was painted in a dark blue", "needs more water than last year", "runs late")


class _Item(msgspec.Struct):
    embedding: bytes | list[float]
    """msgspec reads base64 as bytes."""
    index: int


class _Usage(msgspec.Struct):
    prompt_tokens: int


class _Answer(msgspec.Struct):
    data: list[_Item]
    model: str
    usage: _Usage


def ask(asked: Asked) -> bytes:
    """Body of the request that a client sends."""
    texts = _TEXT if asked.texts == 1 else [_sentence(position) for position in range(asked.texts)]
    return msgspec.json.encode({"model": asked.model, "input": texts, "encoding_format": asked.encoding})


def answer(asked: Asked) -> bytes:
    """The fake upstream's."""
    vectors = [vector(asked.numbers, position) for position in range(asked.texts)]
    shown = [pack(each) for each in vectors] if asked.encoding == "base64" else vectors
    data = [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(shown)]
    usage = {"prompt_tokens": 19 * asked.texts, "total_tokens": 19 * asked.texts}
    return msgspec.json.encode({"object": "list", "data": data, "model": asked.model, "usage": usage})


def fault(asked: Asked, body: bytes) -> Fault | None:
    """What is wrong with the body of an answer, None if it is right: the fake upstream's own vectors, or, where others
    may make them, as many as were asked for, in order, each of its own and of length 1.
    """
    read = msgspec.json.decode(body, type=_Answer)
    if read.model != asked.model or read.usage.prompt_tokens < asked.texts:
        return Fault("another model, or no usage", body[-200:])
    if [item.index for item in read.data] != [*range(asked.texts)]:
        return Fault(f"other vectors than were asked for ({len(read.data)})", body[-200:])
    if {isinstance(item.embedding, bytes) for item in read.data} != {asked.encoding == "base64"}:
        return Fault(f"vectors that are no {asked.encoding}", body)
    vectors = [each.embedding if isinstance(each.embedding, bytes) else pack(each.embedding) for each in read.data]
    if {len(packed) for packed in vectors} != {4 * asked.numbers}:
        return Fault(f"vectors that have not {asked.numbers} numbers", body)
    if not asked.local and vectors != [pack(vector(asked.numbers, position)) for position in range(asked.texts)]:
        return Fault("other vectors than the upstream's", body)
    if any(first == second for first, second in pairwise(vectors)):
        return Fault("one vector for different texts", body)
    if not all(abs(1 - _length(packed)) < LENGTH_TOLERANCE for packed in vectors):
        return Fault("a vector whose length is not 1", body)
    return None


def vector(numbers: int, position: int) -> list[float]:
    """The fake upstream's, of length 1, for the text at this position: another than for the one before."""
    first, turn = _first(numbers), position % numbers
    return first[turn:] + first[:turn]


def pack(numbers: Sequence[float]) -> bytes:
    """As float32, little-endian."""
    return struct.pack(f"<{len(numbers)}f", *numbers)


@lru_cache
def _first(numbers: int) -> list[float]:
    """In the eight or nine digits that providers write."""
    source = random.Random(numbers)
    drawn = [source.gauss() for _ in range(numbers)]
    length = sum(number * number for number in drawn) ** 0.5
    return [float(f"{number / length:.8g}") for number in drawn]


def _length(packed: bytes) -> float:
    return float(sum(number * number for (number,) in struct.iter_unpack("<f", packed)) ** 0.5)


def _sentence(position: int) -> str:
    """Each another, of some 15 words."""
    subject, doing = _SUBJECTS[position % len(_SUBJECTS)], _DOINGS[position % len(_DOINGS)]
    return f"Note {position}: in the town where we lived {subject} {doing}, as everybody there knew well."
