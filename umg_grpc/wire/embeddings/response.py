"""The answer, both directions: canonical -> a caller's body, a provider's body -> canonical."""

from collections.abc import Iterator, Sequence, Sized

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.embed import (
    ProviderUsage,
    are_well,
    check_count,
    fill_usage,
    fill_vectors,
    is_sane,
    refuse_error,
)
from umg_grpc.wire.embeddings.request import NAME
from umg_grpc.wire.embeddings.schema import Head, Numbers, ProviderAnswer, ProviderEmbedding
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.json import JsonObject, loosely, under_model
from umg_grpc.wire.provider_errors import NO_ANSWER, unreadable
from umg_grpc.wire.ragged import decode
from umg_grpc.wire.unary import ClientShape
from umg_grpc.wire.vectors import count_either, elements, from_either, json_pieces, json_with_numbers, slices

# --- canonical -> caller


def encode_response(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """The body; the provider's own where that is of this format. Numbers, unless base64 was asked for."""
    return b"".join(encode_pieces(response, request, shape))


def encode_pieces(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> Iterator[bytes]:
    """The body, piece by piece."""
    if response.source.format == NAME:
        return slices(response.source.body)
    packed = request.encoding == pb.EMBEDDING_ENCODING_BASE64

    def item(index: int, vector: bytes) -> JsonObject:
        return {"object": "embedding", "index": index, "embedding": vector if packed else elements(vector)}

    usage = {"prompt_tokens": response.usage.input_tokens, "total_tokens": response.usage.total_tokens}
    tail = b"]," + msgspec.json.encode({"model": response.model, "usage": usage})[1:]
    vectors = (embedding.values for embedding in response.embeddings)
    encode = msgspec.json.encode if packed else json_with_numbers
    return json_pieces(b'{"object":"list","data":[', vectors, item, encode, tail)


# --- provider -> canonical

_READ = msgspec.json.Decoder(ProviderAnswer[Numbers])
_UNREAD = msgspec.json.Decoder(ProviderAnswer[Raw])
_USAGE = msgspec.json.Decoder(ProviderUsage)
_HEAD = msgspec.json.Decoder(Head)


def decode_response(body: bytes, request: pb.EmbedRequest, pass_: bool) -> pb.EmbedResponse:
    """The answer. One that callers could not read as it is goes to none of them so, but decoded.

    Raises UmgError(UPSTREAM_FAILED) for a body that cannot be read, that is an error in spite of its status, or that
    has not one vector an input, of the length that was asked for.
    """
    try:
        if pass_ and (passed := _decode_passed(body, request)) is not None:
            return passed
        # a large one vector by vector: in the midst of one call nothing else has its turn
        answer = decode(_READ, body) if len(body) < BIG_BYTES else decode(_UNREAD, body)
        response = _decode_head(answer, _usage(answer), answer.data, request)
        fill_vectors(response, _in_order(answer.data or ()), request)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _decode_passed(body: bytes, request: pb.EmbedRequest) -> pb.EmbedResponse | None:
    """The answer with its body, as far as one sees without reading the vectors; None where callers would stumble over
    it: each vector is to be one, at its place and as long as was asked for, and the usage to be told.
    """
    answer = decode(_UNREAD, body)
    usage, data = _usage(answer), answer.data or ()
    response = _decode_head(answer, usage, answer.data, request)
    if not (is_sane(usage.prompt_tokens) and is_sane(usage.total_tokens)):
        return None
    if any(item.index != place for place, item in enumerate(data)):
        return None
    if not are_well([count_either(bytes(item.embedding)) for item in data], request):
        return None
    response.source.format, response.source.body = NAME, _renamed(body, answer.model, request.model)
    return response


def _decode_head(answer: Head, usage: ProviderUsage, data: Sized | None, request: pb.EmbedRequest) -> pb.EmbedResponse:
    """The answer without its vectors. Raises UmgError(UPSTREAM_FAILED) for one that has not one an input."""
    refuse_error(answer.error)
    if data is None:
        raise unreadable(NO_ANSWER)
    check_count(len(data), request)
    response = pb.EmbedResponse(model=request.model or answer.model or "")
    fill_usage(response, usage.prompt_tokens, usage.total_tokens)
    return response


def _usage(answer: Head) -> ProviderUsage:
    return loosely(_USAGE, answer.usage) or ProviderUsage()


def _in_order(data: Sequence[ProviderEmbedding[Numbers]] | Sequence[ProviderEmbedding[Raw]]) -> list[bytes]:
    """The vectors by their `index`, which is their place where it is not told."""
    vectors = [from_either(item.embedding) for item in data]
    told = [place if index is None else index for place, index in enumerate([item.index for item in data])]
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
