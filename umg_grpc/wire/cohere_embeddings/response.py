"""Responses of Cohere's `POST /v2/embed`, encoded for a caller."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec
import pybase64

from umg_grpc.v1 import pb
from umg_grpc.wire.cohere_embeddings.schema import EmbeddingType, Types
from umg_grpc.wire.core.embedding_vectors import elements, json_pieces, json_with_numbers
from umg_grpc.wire.unary_format_interface import ClientShape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_TYPES: tuple[EmbeddingType, ...] = ("float",)
SIGNED_OFFSET = 128
_TYPES = msgspec.json.Decoder(Types)


def encode_response(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """Return the JSON body for a caller. It has the types of vectors that the request selects."""
    return b"".join(encode_pieces(response, request, shape))


def encode_pieces(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> Iterator[bytes]:
    """Yield the JSON body in pieces, encoded on demand. The id is a digest of the request: the response has none."""
    digest = hashlib.blake2b(request.source.body or request.SerializeToString(deterministic=True), digest_size=16)
    head = b'{"id":"%b","response_type":"embeddings_by_type","embeddings":{' % digest.hexdigest().encode()
    vectors = [embedding.values for embedding in response.embeddings]
    for kind in _types(request):
        yield from json_pieces(
            b'%b"%b":[' % (head, kind.encode()), vectors, ITEM_ENCODERS[kind], json_with_numbers, b"]"
        )
        head = b","
    tokens = {"input_tokens": response.usage.input_tokens}
    rest = {
        "texts": [item.text for item in request.inputs],
        "meta": {"api_version": {"version": "2"}, "billed_units": tokens, "tokens": tokens},
    }
    yield b"}," + msgspec.json.encode(rest)[1:]


def _types(request: pb.EmbedRequest) -> Sequence[EmbeddingType]:
    types: Sequence[EmbeddingType] | None = None
    with suppress(ValueError, RecursionError):  # a caller without this face sends no body of it
        types = _TYPES.decode(request.source.body).embedding_types
    return tuple(dict.fromkeys(types or DEFAULT_TYPES))


def _bits(vector: bytes) -> "NDArray[np.uint8]":
    import numpy as np  # not at the top: it costs 15 MB, and not every process embeds

    # a bit for each number, set if it is positive, eight to a byte, the first one highest
    # (txt.cohere.com/int8-binary-embeddings; vLLM, `entrypoints/pooling/embed/protocol.py`)
    return np.packbits(elements(vector) > 0)


ITEM_ENCODERS: Mapping[EmbeddingType, Callable[[int, bytes], object]] = {
    "float": lambda _, vector: elements(vector),
    "base64": lambda _, vector: pybase64.b64encode_as_string(vector),
    "ubinary": lambda _, vector: _bits(vector),
    "binary": lambda _, vector: _bits(vector).astype("int16") - SIGNED_OFFSET,
}
"""Type of vectors -> function that returns the JSON value of an element from its index and its packed vector."""
