"""The answer, both directions: canonical -> a caller's body, a provider's body -> canonical."""

from collections.abc import Sequence

import msgspec

from umg_grpc.v1 import pb
from umg_grpc.wire.embed import check_count, fill_usage, fill_vectors, refuse_error
from umg_grpc.wire.embeddings.request import NAME
from umg_grpc.wire.embeddings.schema import Head, PassedAnswer, ProviderAnswer, ProviderEmbedding
from umg_grpc.wire.json import JsonObject, under_model
from umg_grpc.wire.provider_errors import NO_ANSWER, unreadable
from umg_grpc.wire.ragged import decode
from umg_grpc.wire.unary import ClientShape
from umg_grpc.wire.vectors import elements, json_with_numbers, pack

# --- canonical -> caller


def encode_response(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """The body; the provider's own where that is of this format. Numbers, unless base64 was asked for."""
    if response.source.format == NAME:
        return response.source.body
    packed = request.encoding == pb.EMBEDDING_ENCODING_BASE64
    data: list[JsonObject] = [
        {"object": "embedding", "index": index, "embedding": vector.values if packed else elements(vector.values)}
        for index, vector in enumerate(response.embeddings)
    ]
    usage = {"prompt_tokens": response.usage.input_tokens, "total_tokens": response.usage.total_tokens}
    body: JsonObject = {"object": "list", "data": data, "model": response.model, "usage": usage}
    return msgspec.json.encode(body) if packed else json_with_numbers(body)


# --- provider -> canonical

_ANSWER = msgspec.json.Decoder(ProviderAnswer)
_PASSED = msgspec.json.Decoder(PassedAnswer)
_HEAD = msgspec.json.Decoder(Head)


def decode_response(body: bytes, request: pb.EmbedRequest, pass_: bool) -> pb.EmbedResponse:
    """The answer. Raises UmgError(UPSTREAM_FAILED) for a body that cannot be read, that is an error in spite of its
    status, or that has not one vector an input.
    """
    try:
        answer = decode(_PASSED, body) if pass_ else decode(_ANSWER, body)
        refuse_error(answer.error)
        if answer.data is None:
            raise unreadable(NO_ANSWER)
        response = pb.EmbedResponse(model=request.model or answer.model or "")
        if answer.usage is not None:
            fill_usage(response, answer.usage.prompt_tokens, answer.usage.total_tokens)
        if isinstance(answer, PassedAnswer):
            check_count(len(answer.data), request)
            response.source.format, response.source.body = NAME, _renamed(body, answer.model, request.model)
        else:
            fill_vectors(response, _in_order(answer.data), request)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _in_order(data: Sequence[ProviderEmbedding]) -> list[bytes]:
    """The vectors by their `index`, which is their place where it is not told."""
    vectors = [item.embedding if isinstance(item.embedding, bytes) else pack(item.embedding) for item in data]
    told = [place if item.index is None else item.index for place, item in enumerate(data)]
    places = list(range(len(data)))
    if told == places:
        return vectors
    if sorted(told) != places:
        raise unreadable(": its vectors are not numbered from 0 on, each once")
    return [vector for _, vector in sorted(zip(told, vectors, strict=True))]


def _renamed(body: bytes, theirs: str | None, ours: str) -> bytes:
    """The JSON under the caller's model id, all else byte for byte.

    Nearly all of it are the vectors, so the place is looked for in what is left without them: without what stands from
    the first bracket to the last.
    """
    if theirs == ours or not ours:
        return body
    begin, end = body.find(b"[") + 1, body.rfind(b"]")
    rest = body[:begin] + body[end:]
    if rest.count(b"[]") == 1 and _names(rest, theirs):
        renamed = under_model(rest, theirs, ours)
        if renamed.count(b"[]") == 1:
            return renamed.replace(b"[]", body[begin - 1 : end + 1])
    return under_model(body, theirs, ours)


def _names(document: bytes, model: str | None) -> bool:
    """Whether it is an answer under that model id."""
    try:
        return _HEAD.decode(document).model == model
    except (ValueError, RecursionError):
        return False
