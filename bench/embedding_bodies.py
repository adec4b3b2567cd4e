"""Embeddings of the benchmark: requests and answers, which the load and the fake provider build and check here."""

import random
import struct
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import msgspec

from bench.chat_bodies import Fault

PATH = "/v1/embeddings"
MODEL = "bench-embed"
"""Embedding model of the fake upstream."""


class VectorRequest(NamedTuple):
    """Request for vectors, which the fake provider answers, also one that a gateway answers itself."""

    name: str
    model: str
    encoding: str
    texts: int
    numbers: int
    """Length of each vector."""
    local: bool = False
    """Whether a gateway with local models answers without the upstream."""


FLOAT = VectorRequest("embed-float", MODEL, "float", 1, 1536)
BASE64 = VectorRequest("embed-base64", MODEL, "base64", 1, 1536)
LOCAL_FLOAT = VectorRequest("embed-local-float", "text-embedding-3-small", "float", 1, 1536, local=True)
LOCAL_BASE64 = VectorRequest("embed-local-base64", "text-embedding-3-small", "base64", 1, 1536, local=True)
BATCH_FLOAT = VectorRequest("embed-batch-float", "wordllama-256", "float", 2048, 256, local=True)
BATCH_BASE64 = VectorRequest("embed-batch-base64", "wordllama-256", "base64", 2048, 256, local=True)
REQUESTS = (FLOAT, BASE64, LOCAL_FLOAT, LOCAL_BASE64, BATCH_FLOAT, BATCH_BASE64)

LENGTH_TOLERANCE = 0.01

_TEXT = "A gateway in front of several model providers gives applications one address, one key and one format."
_SUBJECTS = ("the ferry", "a bakery", "this bridge", "the orchestra", "her garden", "an engine", "the library")
_DOINGS = ("opens early in the morning", "was painted in a dark blue", "needs more water than last year", "runs late")


class _Item(msgspec.Struct):
    embedding: bytes | list[float]
    """Vector; msgspec decodes base64 to bytes."""
    index: int


class _Usage(msgspec.Struct):
    prompt_tokens: int


class _Answer(msgspec.Struct):
    data: list[_Item]
    model: str
    usage: _Usage


def request_body(request: VectorRequest) -> bytes:
    """Return the body of a client's request for vectors."""
    texts = _TEXT if request.texts == 1 else [_sentence(position) for position in range(request.texts)]
    return msgspec.json.encode({"model": request.model, "input": texts, "encoding_format": request.encoding})


def answer(request: VectorRequest) -> bytes:
    """Return the fake upstream's answer."""
    vectors = [vector(request.numbers, position) for position in range(request.texts)]
    shown = [pack(each) for each in vectors] if request.encoding == "base64" else vectors
    data = [{"object": "embedding", "index": index, "embedding": each} for index, each in enumerate(shown)]
    usage = {"prompt_tokens": 19 * request.texts, "total_tokens": 19 * request.texts}
    return msgspec.json.encode({"object": "list", "data": data, "model": request.model, "usage": usage})


def fault(request: VectorRequest, body: bytes) -> Fault | None:
    """Return why the body of a response is wrong; None if it is right. A right answer has the fake provider's own
    vectors or, for a request that the gateway may answer itself, the requested number of vectors, in order, distinct
    and of norm 1.
    """
    read = msgspec.json.decode(body, type=_Answer)
    if read.model != request.model or read.usage.prompt_tokens < request.texts:
        return Fault("another model, or no usage", body[-200:])
    if [item.index for item in read.data] != [*range(request.texts)]:
        return Fault(f"other vectors than were asked for ({len(read.data)})", body[-200:])
    if {isinstance(item.embedding, bytes) for item in read.data} != {request.encoding == "base64"}:
        return Fault(f"vectors that are no {request.encoding}", body)
    vectors = [each.embedding if isinstance(each.embedding, bytes) else pack(each.embedding) for each in read.data]
    if {len(packed) for packed in vectors} != {4 * request.numbers}:
        return Fault(f"vectors that have not {request.numbers} numbers", body)
    if not request.local and vectors != [pack(vector(request.numbers, position)) for position in range(request.texts)]:
        return Fault("other vectors than the upstream's", body)
    if any(first == second for first, second in pairwise(vectors)):
        return Fault("one vector for different texts", body)
    if not all(abs(1 - _length(packed)) < LENGTH_TOLERANCE for packed in vectors):
        return Fault("a vector whose length is not 1", body)
    return None


def vector(numbers: int, position: int) -> list[float]:
    """Return the fake provider's vector, of norm 1, for the text at this position, different from the previous one."""
    first, turn = _first(numbers), position % numbers
    return first[turn:] + first[:turn]


def pack(numbers: Sequence[float]) -> bytes:
    """Return the numbers as float32, little-endian."""
    return struct.pack(f"<{len(numbers)}f", *numbers)


@lru_cache
def _first(numbers: int) -> list[float]:
    source = random.Random(numbers)
    drawn = [source.gauss() for _ in range(numbers)]
    length = sum(number * number for number in drawn) ** 0.5
    return [float(f"{number / length:.8g}") for number in drawn]


def _length(packed: bytes) -> float:
    return float(sum(number * number for (number,) in struct.iter_unpack("<f", packed)) ** 0.5)


def _sentence(position: int) -> str:
    subject, doing = _SUBJECTS[position % len(_SUBJECTS)], _DOINGS[position % len(_DOINGS)]
    return f"Note {position}: in the town where we lived {subject} {doing}, as everybody there knew well."
