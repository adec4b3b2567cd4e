"""The answer, both directions: canonical -> a caller's body, a provider's body -> canonical."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.embed import check_count, fill_usage, fill_vectors, refuse_error
from umg_grpc.wire.json import JsonObject
from umg_grpc.wire.native_embeddings.request import BATCH, SINGLE
from umg_grpc.wire.native_embeddings.schema import Head, PassedAnswer, ProviderAnswer
from umg_grpc.wire.provider_errors import NO_ANSWER, unreadable
from umg_grpc.wire.ragged import decode
from umg_grpc.wire.unary import ClientShape
from umg_grpc.wire.vectors import elements, json_with_numbers, pack

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
    if response.source.format == BATCH:
        return response.source.body
    vectors: list[JsonObject] = [{"values": elements(vector.values)} for vector in response.embeddings]
    return json_with_numbers({"embeddings": vectors, **_encode_usage(response.usage)})


def _encode_usage(usage: pb.EmbeddingUsage) -> JsonObject:
    """As the text document has it, and as SDKs read it."""
    told = {"prompt_tokens": usage.input_tokens, "total_tokens": usage.total_tokens}
    return {"usageMetadata": {"promptTokenCount": usage.input_tokens}, "metadata": {"usage": told}}


# --- provider -> canonical

_ANSWER = msgspec.json.Decoder(ProviderAnswer)
_PASSED = msgspec.json.Decoder(PassedAnswer)


def decode_response(body: bytes, request: pb.EmbedRequest, pass_: bool) -> pb.EmbedResponse:
    """The answer, of one content or of a batch. Raises UmgError(UPSTREAM_FAILED) for a body that cannot be read, that
    is an error in spite of its status, or that has not one vector an input.
    """
    try:
        answer = decode(_PASSED, body) if pass_ else decode(_ANSWER, body)
        refuse_error(answer.error)
        response = pb.EmbedResponse(model=request.model)
        _decode_usage(answer, response)
        if isinstance(answer, PassedAnswer):
            check_count(len(_either(answer.embedding, answer.embeddings)), request)
            response.source.format, response.source.body = request.source.format, body
        else:
            vectors = _either(answer.embedding, answer.embeddings)
            fill_vectors(response, [pack(vector.values) for vector in vectors], request)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _either(one: T | None, several: Sequence[T] | None) -> Sequence[T]:
    """The vectors of an answer. Raises UmgError(UPSTREAM_FAILED) where it has none."""
    if one is not None:
        return [one]
    if several is None:
        raise unreadable(NO_ANSWER)
    return several


def _decode_usage(answer: Head, response: pb.EmbedResponse) -> None:
    """The usage, from where the text document has it too: another gateway may answer."""
    if answer.metadata is not None and answer.metadata.usage is not None:
        fill_usage(response, answer.metadata.usage.prompt_tokens, answer.metadata.usage.total_tokens)
    elif answer.usage_metadata is not None:
        fill_usage(response, answer.usage_metadata.prompt_token_count, answer.usage_metadata.total_token_count)
