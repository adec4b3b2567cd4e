"""Rerank responses: encoded for a caller, and decoded from a provider's body."""

import math

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, decode_or_none
from umg_grpc.wire.core.lenient_number_reading import Count, count
from umg_grpc.wire.errors.provider_errors import is_error, no_response, read_response, stated_in, unreadable
from umg_grpc.wire.rerank.errors import TOO_LONG
from umg_grpc.wire.rerank.score_normalization import in_unit
from umg_grpc.wire.unary_format_interface import ClientShape

# --- canonical -> caller


def encode_response(response: pb.RerankResponse, request: pb.RerankRequest, shape: ClientShape) -> bytes:
    """Return the body of `POST /v1/rerank`, with `id` and `meta` for Cohere clients. `shape`: documents sent as strings
    are returned as strings if it is DOCUMENTED, as objects if it is SDK.
    """
    return _encode(response, "1", shape)


def encode_response_v2(response: pb.RerankResponse, request: pb.RerankRequest, shape: ClientShape) -> bytes:
    """Return the JSON body of `POST /v2/rerank` in the form that SDKs expect, since no specification describes one."""
    return _encode(response, "2", ClientShape.SDK)


def _encode(response: pb.RerankResponse, version: str, shape: ClientShape) -> bytes:
    body: JsonObject = {
        "id": response.response_id,
        "model": response.model,
        "results": [_encode_result(result, shape) for result in response.results],
        "usage": {"prompt_tokens": response.usage.total_tokens, "total_tokens": response.usage.total_tokens},
        "meta": _encode_meta(response.usage, version),
    }
    return msgspec.json.encode(body)


def _encode_result(result: pb.RerankResult, shape: ClientShape) -> JsonObject:
    encoded: JsonObject = {"index": result.index, "relevance_score": result.relevance_score}
    if result.HasField("document"):
        encoded["document"] = _encode_document(result.document, shape)
    return encoded


def _encode_document(document: pb.RerankDocument, shape: ClientShape) -> object:
    if document.object_json:
        return Raw(document.object_json)
    return {"text": document.text} if shape is ClientShape.SDK else document.text


def _encode_meta(usage: pb.RerankUsage, version: str) -> JsonObject:
    """Return the member `meta`, with search units if they are known. `version`: API version to state in it."""
    billed: JsonObject = {"input_tokens": usage.total_tokens}
    if usage.HasField("search_units"):
        billed = {"search_units": usage.search_units}
    return {"api_version": {"version": version}, "billed_units": billed, "tokens": {"input_tokens": usage.total_tokens}}


# --- provider -> canonical


class ProviderResult(Struct):
    """Element of `results`: one document with its score."""

    index: int | float
    relevance_score: float | None = None
    score: float | None = None  # name of the score at some providers


class ProviderUsage(Struct):
    """Member `usage` of a provider's response."""

    total_tokens: Count = None
    prompt_tokens: Count = None
    input_tokens: Count = None


class Units(Struct):
    """Members `meta.billed_units` and `meta.tokens`."""

    input_tokens: Count = None
    search_units: Count = None


class ProviderMeta(Struct):
    """Member `meta` of a provider's response."""

    tokens: Units | None = None
    billed_units: Units | None = None


class ProviderResponse(Struct):
    """Body of a provider's response, with the fields that are decoded."""

    id: Raw = ABSENT_MEMBER
    results: list[ProviderResult] | None = None
    data: list[ProviderResult] | None = None  # name of the results at some providers
    usage: Raw = ABSENT_MEMBER
    meta: Raw = ABSENT_MEMBER
    error: Raw = ABSENT_MEMBER


_RESPONSE = msgspec.json.Decoder(ProviderResponse)
_ID = msgspec.json.Decoder(str)
_USAGE = msgspec.json.Decoder(ProviderUsage)
_META = msgspec.json.Decoder(ProviderMeta)


def decode_response(body: bytes, request: pb.RerankRequest, pass_: bool) -> pb.RerankResponse:
    """Decode a response: results in the provider's order, without documents. Scores outside [0, 1] are converted to it.
    `pass_` has no effect, since no provider's body has the caller's form. Raise UmgError(UPSTREAM_FAILED) for a body
    that cannot be decoded or contains an error, a document that is unknown or ranked twice, and too few results.
    """
    parsed = read_response(_RESPONSE, body)
    if is_error(parsed.error):
        raise stated_in(parsed.error, too_long=TOO_LONG)
    results = parsed.data if parsed.results is None else parsed.results
    if results is None:
        raise no_response(body, too_long=TOO_LONG)
    response = pb.RerankResponse(response_id=decode_or_none(_ID, parsed.id) or "", model=request.model)
    places = _places(results, len(request.documents))
    wanted = min(request.top_n or len(request.documents), len(request.documents))
    if len(places) < wanted:
        raise unreadable(f": it has {len(places)} of the {wanted} results that were requested")
    for index, score in zip(places, in_unit([_score(result) for result in results]), strict=True):
        decoded = response.results.add()
        decoded.index, decoded.relevance_score = index, score
    _decode_usage(decode_or_none(_USAGE, parsed.usage), decode_or_none(_META, parsed.meta), response)
    return response


def _places(results: list[ProviderResult], documents: int) -> list[int]:
    sent, places = range(documents), set[int]()
    for result in results:
        if result.index not in sent:  # neither is a fraction
            raise unreadable(": it ranks a document that was not sent")
        places.add(int(result.index))
    if len(places) < len(results):
        raise unreadable(": it ranks a document twice")
    return [int(result.index) for result in results]


def _score(result: ProviderResult) -> float:
    score = result.score if result.relevance_score is None else result.relevance_score
    if score is None or not math.isfinite(score):
        raise unreadable(": it has a result without a score")
    return score


def _decode_usage(usage: ProviderUsage | None, meta: ProviderMeta | None, response: pb.RerankResponse) -> None:
    """Set the usage from the first token count that the provider states; billed tokens count as used tokens."""
    sent = usage or ProviderUsage()
    tokens, billed = (meta and meta.tokens) or Units(), (meta and meta.billed_units) or Units()
    counts = (sent.total_tokens, sent.prompt_tokens, sent.input_tokens, tokens.input_tokens, billed.input_tokens)
    if total := next((number for counted in counts if (number := count(counted))), 0):
        response.usage.total_tokens = total
    if units := count(billed.search_units):
        response.usage.search_units = units
