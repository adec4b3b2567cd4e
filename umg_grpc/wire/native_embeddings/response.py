"""Native embedding responses: encoded for a caller, and decoded from a provider's body."""

from collections.abc import Iterator, Sequence
from typing import TypeVar

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.embedding_vectors import (
    count_numbers,
    elements,
    from_numbers,
    json_pieces,
    json_with_numbers,
    slices,
)
from umg_grpc.wire.core.json_decoding import JsonObject, decode_or_none
from umg_grpc.wire.core.lenient_number_reading import Count
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.errors.provider_errors import NO_RESPONSE, unreadable
from umg_grpc.wire.native_embeddings.request import BATCH_FORMAT, SINGLE_FORMAT
from umg_grpc.wire.native_embeddings.schema import Head, Metadata, ProviderResponse, UsageMetadata, Vector
from umg_grpc.wire.shared_embedding_checks import (
    ProviderUsage,
    check_count,
    fill_usage,
    fill_vectors,
    have_requested_length,
    is_valid_count,
    raise_error,
    read_vectors,
)
from umg_grpc.wire.unary_format_interface import ClientShape

Listed = TypeVar("Listed")

# --- canonical -> caller


def encode_single(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """Return the caller's `:embedContent` body: the provider's own body if it was kept, else a new encoding."""
    if response.source.format == SINGLE_FORMAT:
        return response.source.body
    vector: JsonObject = {"values": elements(response.embeddings[0].values)}
    return json_with_numbers({"embedding": vector, **_encode_usage(response.usage)})


def encode_batch(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """Return the caller's `:batchEmbedContents` body: the provider's own body if it was kept, else a new encoding."""
    return b"".join(encode_pieces_of_batch(response, request, shape))


def encode_pieces_of_batch(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> Iterator[bytes]:
    """Yield the JSON body of `:batchEmbedContents` in pieces; each piece is encoded only when it is requested."""
    if response.source.format == BATCH_FORMAT:
        return slices(response.source.body)
    vectors = (embedding.values for embedding in response.embeddings)
    tail = b"]," + msgspec.json.encode(_encode_usage(response.usage))[1:]
    return json_pieces(b'{"embeddings":[', vectors, _item, json_with_numbers, tail)


def _item(_: int, vector: bytes) -> JsonObject:
    return {"values": elements(vector)}


def _encode_usage(usage: pb.EmbeddingUsage) -> JsonObject:
    counts = {"prompt_tokens": usage.input_tokens, "total_tokens": usage.total_tokens}
    return {"usageMetadata": {"promptTokenCount": usage.input_tokens}, "metadata": {"usage": counts}}


# --- provider -> canonical

_DECODED = msgspec.json.Decoder(ProviderResponse[list[float]])
_RAW = msgspec.json.Decoder(ProviderResponse[Raw])
_METADATA = msgspec.json.Decoder(Metadata)
_USAGE = msgspec.json.Decoder(ProviderUsage)
_USAGE_METADATA = msgspec.json.Decoder(UsageMetadata)


def decode_response(body: bytes, request: pb.EmbedRequest, pass_: bool) -> pb.EmbedResponse:
    """Decode a provider's response, for one content or a batch. `pass_`: keep the provider's body, without decoding the
    vectors, if the caller can read it unchanged. Raise UmgError(UPSTREAM_FAILED) for a body that cannot be decoded,
    contains an error, or does not have one vector of the requested length for each input.
    """
    try:
        if pass_ and (passed := _decode_passed(body, request)) is not None:
            return passed
        parsed = read_vectors(body, _DECODED, _RAW)
        raise_error(parsed.error)
        response = pb.EmbedResponse(model=request.model)
        _decode_usage(parsed, response)
        vectors: Sequence[Vector[list[float]] | Vector[Raw]] = _vectors(parsed.embedding, parsed.embeddings)
        fill_vectors(response, [from_numbers(vector.values) for vector in vectors], request)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _decode_passed(body: bytes, request: pb.EmbedRequest) -> pb.EmbedResponse | None:
    """Return the response with the provider's body and undecoded vectors. None if the body does not fit the caller's
    path, has vectors of another length than requested, or lacks the usage.
    """
    parsed, face = decode(_RAW, body), request.source.format
    raise_error(parsed.error)
    response, vectors = pb.EmbedResponse(model=request.model), _vectors(parsed.embedding, parsed.embeddings)
    check_count(len(vectors), request)
    if not _decode_usage(parsed, response) or (parsed.embedding is None) != (face == BATCH_FORMAT):
        return None
    if not have_requested_length([count_numbers(bytes(vector.values)) for vector in vectors], request):
        return None
    response.source.format, response.source.body = face, body
    return response


def _vectors(one: Listed | None, several: Sequence[Listed] | None) -> Sequence[Listed]:
    if one is not None:
        return [one]
    if several is None:
        raise unreadable(NO_RESPONSE)
    return several


def _decode_usage(parsed: Head, response: pb.EmbedResponse) -> bool:
    """Set the usage of `response` from the member `usageMetadata` or `metadata`, whichever has it."""
    counts = list[tuple[Count, Count]]()
    if parsed.usage_metadata and (counted := decode_or_none(_USAGE_METADATA, parsed.usage_metadata)) is not None:
        prompt, total = counted.prompt_token_count, counted.total_token_count
        counts.append((prompt, prompt if total is None else total))
    metadata = decode_or_none(_METADATA, parsed.metadata)
    if metadata is not None and metadata.usage:
        usage = decode_or_none(_USAGE, metadata.usage) or ProviderUsage()
        counts.append((usage.prompt_tokens, usage.total_tokens))
    for prompt, total in counts:
        fill_usage(response, prompt, total)
    return bool(counts) and all(is_valid_count(prompt) and is_valid_count(total) for prompt, total in counts)
