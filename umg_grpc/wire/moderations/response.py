"""Moderation responses: encoded for a caller, and decoded from a provider's body."""

import hashlib

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, replace_model_id
from umg_grpc.wire.core.lenient_number_reading import Count, count
from umg_grpc.wire.errors.provider_errors import is_error, no_response, read_response, stated_in, unreadable
from umg_grpc.wire.moderations.request import FORMAT_NAME
from umg_grpc.wire.unary_format_interface import ClientShape

TOO_LONG = "inputs"
"""Canonical field that an error names if the provider rejects the request as too long."""


class Judgement(Struct, kw_only=True):
    """Element of `results`: one content by category."""

    flagged: bool | None = None
    categories: dict[str, bool | None]
    category_scores: dict[str, float | None] = {}
    category_applied_input_types: dict[str, list[str] | None] | None = None


class ProviderUsage(Struct):
    """Member `usage`, which some providers send."""

    prompt_tokens: Count = None
    total_tokens: Count = None


class ProviderResponse(Struct):
    """Body of a provider's response."""

    id: str = ""
    model: str = ""
    results: list[Judgement] | None = None
    usage: ProviderUsage | None = None
    error: Raw = ABSENT_MEMBER


_RESPONSE = msgspec.json.Decoder(ProviderResponse)


def encode_response(response: pb.ModerateResponse, request: pb.ModerateRequest, shape: ClientShape) -> bytes:
    """Return the JSON body for a caller: the provider's own body if it was kept, otherwise an encoding."""
    if response.source.format == FORMAT_NAME:
        return response.source.body
    body: JsonObject = {
        "id": response.response_id or _id_of(response),
        "model": response.model,
        "results": [_encode_result(result) for result in response.results],
    }
    if response.HasField("usage"):
        tokens = response.usage.input_tokens
        body["usage"] = {"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}
    return msgspec.json.encode(body)


def _id_of(response: pb.ModerateResponse) -> str:
    return f"modr-{hashlib.sha256(response.SerializeToString()).hexdigest()[:32]}"


def _encode_result(result: pb.ModerationResult) -> JsonObject:
    categories = result.categories
    return {
        "flagged": result.flagged,
        "categories": {category.name: category.flagged for category in categories},
        "category_scores": {category.name: category.score for category in categories},
        "category_applied_input_types": {category.name: list(category.input_types) for category in categories},
    }


def decode_response(body: bytes, request: pb.ModerateRequest, pass_: bool) -> pb.ModerateResponse:
    """Decode a response. `pass_`: keep the provider's body for the caller, if it has all members that SDKs read. Raise
    UmgError(UPSTREAM_FAILED) for a body that cannot be decoded, contains an error, or lacks a result for a content.
    """
    sent = read_response(_RESPONSE, body)
    if is_error(sent.error):
        raise stated_in(sent.error, too_long=TOO_LONG)
    if sent.results is None:
        raise no_response(body, too_long=TOO_LONG)
    if len(sent.results) != len(request.inputs):
        raise unreadable(f": it has {len(sent.results)} results for {len(request.inputs)} contents")
    response = pb.ModerateResponse(response_id=sent.id, model=request.model or sent.model)
    for judgement in sent.results:
        _decode_result(judgement, response.results.add())
    if sent.usage is not None and (tokens := count(sent.usage.prompt_tokens) or count(sent.usage.total_tokens)):
        response.usage.input_tokens = tokens
    if pass_ and sent.id and all(_is_whole(judgement) for judgement in sent.results):
        response.source.format, response.source.body = FORMAT_NAME, replace_model_id(body, sent.model, response.model)
    return response


def _decode_result(judgement: Judgement, result: pb.ModerationResult) -> None:
    kinds = judgement.category_applied_input_types or {}
    for name, flagged in judgement.categories.items():
        category = result.categories.add(name=name, flagged=bool(flagged))
        category.score = judgement.category_scores.get(name) or 0
        category.input_types.extend(kinds.get(name) or ())
    is_flagged = any(judgement.categories.values())
    result.flagged = is_flagged if judgement.flagged is None else judgement.flagged


def _is_whole(judgement: Judgement) -> bool:
    return judgement.flagged is not None and bool(judgement.category_scores and judgement.category_applied_input_types)
