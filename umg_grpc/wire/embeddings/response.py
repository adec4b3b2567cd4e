"""Embedding responses: encoded for a caller, and decoded from a provider's body."""

from collections.abc import Iterator, Sequence, Sized

import msgspec
from msgspec import Raw

from umg_grpc.v1 import pb
from umg_grpc.wire.core.embedding_vectors import (
    count_either,
    elements,
    from_either,
    json_pieces,
    json_with_numbers,
    slices,
)
from umg_grpc.wire.core.json_decoding import JsonObject, decode_or_none, replace_model_id
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.embeddings.request import FORMAT_NAME
from umg_grpc.wire.embeddings.schema import Head, Numbers, ProviderEmbedding, ProviderResponse
from umg_grpc.wire.errors.provider_errors import no_response, unreadable
from umg_grpc.wire.shared_embedding_checks import (
    TOO_LONG,
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

# --- canonical -> caller


def encode_response(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> bytes:
    """Return the body for a caller: the provider's own body if it was kept, else a new one. Vectors are numbers unless
    the caller requests base64. `shape` has no effect, since all clients read the same shape.
    """
    return b"".join(encode_pieces(response, request, shape))


def encode_pieces(response: pb.EmbedResponse, request: pb.EmbedRequest, shape: ClientShape) -> Iterator[bytes]:
    """Yield the JSON body for a caller in pieces. Each piece is encoded when it is requested."""
    if response.source.format == FORMAT_NAME:
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

TYPE_MEMBERS = ("output_dtype", "embedding_type", "embedding_types")
"""Members by which callers of Voyage and Mistral, Jina, and Cohere select the type of the numbers."""

_DECODED_VECTORS = msgspec.json.Decoder(ProviderResponse[Numbers])
_RAW_VECTORS = msgspec.json.Decoder(ProviderResponse[Raw])
_USAGE = msgspec.json.Decoder(ProviderUsage)
_HEAD = msgspec.json.Decoder(Head)


def decode_response(body: bytes, request: pb.EmbedRequest, pass_: bool) -> pb.EmbedResponse:
    """Decode a response. `pass_`: if the caller can read the body unchanged, keep it, with its vectors not decoded.
    Raise UmgError(UPSTREAM_FAILED) for a body that cannot be decoded, that states an error, or that does not have one
    vector of the requested length for each input.
    """
    try:
        if pass_ and (passed := _decode_passed(body, request)) is not None:
            return passed
        parsed = read_vectors(body, _DECODED_VECTORS, _RAW_VECTORS)
        response = _decode_head(parsed, _usage(parsed), parsed.data, request, body)
        fill_vectors(response, _in_order(parsed.data or ()), request, parsed.model)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _decode_passed(body: bytes, request: pb.EmbedRequest) -> pb.EmbedResponse | None:
    """Return the response with the provider's body, whose vectors are checked without decoding. None for a body that
    callers cannot read: it has no usage, or a vector is missing, misplaced, or of wrong length or form.
    """
    parsed = decode(_RAW_VECTORS, body)
    usage, data = _usage(parsed), parsed.data or ()
    response = _decode_head(parsed, usage, parsed.data, request, body)
    if not (is_valid_count(usage.prompt_tokens) and is_valid_count(usage.total_tokens)):
        return None
    if any(item.index != position for position, item in enumerate(data)):
        return None
    vectors = [bytes(item.embedding) for item in data]
    form = b'"' if request.encoding == pb.EMBEDDING_ENCODING_BASE64 else b"["
    is_right = all(vector.startswith(form) for vector in vectors)
    is_right = is_right and have_requested_length([count_either(vector) for vector in vectors], request)
    if not is_right and not _has_other_numbers(request.source.body):
        return None
    response.source.format, response.source.body = FORMAT_NAME, _renamed(body, parsed.model, request.model)
    return response


def _has_other_numbers(body: bytes) -> bool:
    if not any(b'"%b"' % name.encode() in body for name in TYPE_MEMBERS):
        return False
    members = msgspec.json.decode(body, type=dict[str, Raw])
    return any(b'"float"' not in bytes(members.get(name, b'"float"')) for name in TYPE_MEMBERS)


def _decode_head(
    parsed: Head, usage: ProviderUsage, data: Sized | None, request: pb.EmbedRequest, body: bytes
) -> pb.EmbedResponse:
    raise_error(parsed.error)
    if data is None:
        raise no_response(body, too_long=TOO_LONG)
    check_count(len(data), request)
    response = pb.EmbedResponse(model=request.model or parsed.model or "")
    fill_usage(response, usage.prompt_tokens, usage.total_tokens)
    return response


def _usage(response: Head) -> ProviderUsage:
    return decode_or_none(_USAGE, response.usage) or ProviderUsage()


def _in_order(data: Sequence[ProviderEmbedding[Numbers]] | Sequence[ProviderEmbedding[Raw]]) -> list[bytes]:
    """Return the vectors as bytes, ordered by their `index` or, without an index, as in the list."""
    vectors = [from_either(item.embedding) for item in data]
    indexes = [position if index is None else index for position, index in enumerate([item.index for item in data])]
    places = list(range(len(data)))
    if indexes == places:
        return vectors
    if sorted(indexes) != places:
        raise unreadable(": its vectors are not numbered from 0 on, each once")
    return [vector for _, vector in sorted(zip(indexes, vectors, strict=True))]


def _renamed(body: bytes, provider_id: str | None, public_id: str) -> bytes:
    """Return the JSON of a response with `provider_id` replaced by `public_id`, the caller's model id. All else is
    unchanged. Only the text outside of the outermost brackets is searched, since the vectors are inside.
    """
    if provider_id == public_id or not public_id:
        return body
    begin, end = body.find(b"[") + 1, body.rfind(b"]")
    rest = body[:begin] + body[end:]
    if rest.count(b"[]") == 1 and _has_model(rest, provider_id):
        renamed = replace_model_id(rest, provider_id, public_id)
        if renamed.count(b"[]") == 1:
            return renamed.replace(b"[]", body[begin - 1 : end + 1])
    return replace_model_id(body, provider_id, public_id)


def _has_model(document: bytes, model: str | None) -> bool:
    try:
        return _HEAD.decode(document).model == model
    except (ValueError, RecursionError):
        return False
