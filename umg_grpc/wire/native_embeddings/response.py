"""The answer, both directions: canonical -> a caller's body, a provider's body -> canonical."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.counts import Count
from umg_grpc.wire.embed import (
    ProviderUsage,
    are_well,
    check_count,
    fill_usage,
    fill_vectors,
    is_sane,
    refuse_error,
)
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.json import JsonObject, loosely
from umg_grpc.wire.native_embeddings.request import BATCH, SINGLE
from umg_grpc.wire.native_embeddings.schema import Head, Metadata, ProviderAnswer, UsageMetadata, Vector
from umg_grpc.wire.provider_errors import NO_ANSWER, unreadable
from umg_grpc.wire.ragged import decode
from umg_grpc.wire.unary import ClientShape
from umg_grpc.wire.vectors import count_numbers, elements, from_numbers, json_pieces, json_with_numbers, slices

T = TypeVar("T")

# --- canonical -> caller


def encode_single(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """The body of `:embedContent`; the provider's own where that is of this format."""
    if response.source.format == SINGLE:
        return response.source.body
    vector: JsonObject = {"values": elements(response.embeddings[0].values)}
    return json_with_numbers({"embedding": vector, **_encode_usage(response.usage)})


def encode_batch(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """The body of `:batchEmbedContents`; the provider's own where that is of this format."""
    return b"".join(encode_pieces_of_batch(response, request, shape))


def encode_pieces_of_batch(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> Iterator[bytes]:
    """The same, piece by piece."""
    if response.source.format == BATCH:
        return slices(response.source.body)
    vectors = (embedding.values for embedding in response.embeddings)
    tail = b"]," + msgspec.json.encode(_encode_usage(response.usage))[1:]
    return json_pieces(b'{"embeddings":[', vectors, _item, json_with_numbers, tail)


def _item(_: int, vector: bytes) -> JsonObject:
    return {"values": elements(vector)}


def _encode_usage(usage: pb.EmbeddingUsage) -> JsonObject:
    """As the text document has it, and as SDKs read it."""
    told = {"prompt_tokens": usage.input_tokens, "total_tokens": usage.total_tokens}
    return {"usageMetadata": {"promptTokenCount": usage.input_tokens}, "metadata": {"usage": told}}


# --- provider -> canonical

_READ = msgspec.json.Decoder(ProviderAnswer[list[float]])
_UNREAD = msgspec.json.Decoder(ProviderAnswer[Raw])
_METADATA = msgspec.json.Decoder(Metadata)
_USAGE = msgspec.json.Decoder(ProviderUsage)
_USAGE_METADATA = msgspec.json.Decoder(UsageMetadata)


def decode_response(body: bytes, request: pb.EmbedRequest, pass_: bool) -> pb.EmbedResponse:
    """The answer, of one content or of a batch. One that callers could not read as it is goes to none of them so, but
    decoded.

    Raises UmgError(UPSTREAM_FAILED) for a body that cannot be read, that is an error in spite of its status, or that
    has not one vector an input, of the length that was asked for.
    """
    try:
        if pass_ and (passed := _decode_passed(body, request)) is not None:
            return passed
        # a large one vector by vector: in the midst of one call nothing else has its turn
        answer = decode(_READ, body) if len(body) < BIG_BYTES else decode(_UNREAD, body)
        refuse_error(answer.error)
        response = pb.EmbedResponse(model=request.model)
        _decode_usage(answer, response)
        vectors: Sequence[Vector[list[float]] | Vector[Raw]] = _either(answer.embedding, answer.embeddings)
        fill_vectors(response, [from_numbers(vector.values) for vector in vectors], request)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _decode_passed(body: bytes, request: pb.EmbedRequest) -> pb.EmbedResponse | None:
    """The answer with its body, as far as one sees without reading the vectors; None where callers would stumble over
    it: it is to be of the face's form, each vector one and as long as was asked for, and the usage told.
    """
    answer, face = decode(_UNREAD, body), request.source.format
    refuse_error(answer.error)
    response, vectors = pb.EmbedResponse(model=request.model), _either(answer.embedding, answer.embeddings)
    check_count(len(vectors), request)
    if not _decode_usage(answer, response) or (answer.embedding is None) != (face == BATCH):
        return None
    if not are_well([count_numbers(bytes(vector.values)) for vector in vectors], request):
        return None
    response.source.format, response.source.body = face, body
    return response


def _either(one: T | None, several: Sequence[T] | None) -> Sequence[T]:
    """The vectors of an answer. Raises UmgError(UPSTREAM_FAILED) where it has none."""
    if one is not None:
        return [one]
    if several is None:
        raise unreadable(NO_ANSWER)
    return several


def _decode_usage(answer: Head, response: pb.EmbedResponse) -> bool:
    """Fills in the usage, from where the text document has it too (another gateway may answer). Returns whether callers
    can read it as it is told.
    """
    told = list[tuple[Count, Count]]()
    if answer.usage_metadata and (counted := loosely(_USAGE_METADATA, answer.usage_metadata)) is not None:
        prompt, total = counted.prompt_token_count, counted.total_token_count
        told.append((prompt, prompt if total is None else total))
    metadata = loosely(_METADATA, answer.metadata)
    if metadata is not None and metadata.usage:
        usage = loosely(_USAGE, metadata.usage) or ProviderUsage()
        told.append((usage.prompt_tokens, usage.total_tokens))
    for prompt, total in told:
        fill_usage(response, prompt, total)
    return bool(told) and all(is_sane(prompt) and is_sane(total) for prompt, total in told)
