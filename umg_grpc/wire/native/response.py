"""Complete (not streamed) responses of Gemini's format: encoded for a caller, and decoded from a provider's body."""

from collections.abc import Iterator
from typing import assert_never

import msgspec
from msgspec import Raw

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.finish_reason_conversion import failed_response
from umg_grpc.wire.core.json_decoding import JsonObject, is_present, replace_model_id
from umg_grpc.wire.core.raw_json_edits import EACH_ELEMENT, edit_values
from umg_grpc.wire.core.split_character_repair import decode, replace_invalid_utf8
from umg_grpc.wire.core.tool_name_conversion import ToolNames
from umg_grpc.wire.errors.provider_errors import is_error, no_response, unreadable
from umg_grpc.wire.native.content_parts import encode_media
from umg_grpc.wire.native.errors import ERROR_TABLE, stated_error
from umg_grpc.wire.native.grounding_citations import SEARCH_TOOL, Cited, Text, decode_grounding
from umg_grpc.wire.native.provider_tool_names import tool_names
from umg_grpc.wire.native.schema import ProviderPart
from umg_grpc.wire.native.shared_response_fields import (
    FINISH_NAMES,
    PassedResponse,
    ProviderCandidate,
    ProviderResponse,
    UnknownParts,
    blocked_name,
    correct_finish,
    decode_finish,
    decode_head,
    decode_logprobs,
    decode_ratings,
    decode_response_part,
    encode_feedback,
    encode_logprobs,
    encode_ratings,
    encode_response_part,
    encode_sources,
    encode_time,
    end_of,
    finish_name,
    has_content,
    is_known,
    queries_of,
)
from umg_grpc.wire.native.usage import decode_usage, encode_usage

# --- canonical -> caller


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """Return the response for a caller; the provider's own body if it has this format. A blocked prompt gives
    `promptFeedback` and a candidate without parts, because callers read the first candidate.
    """
    if response.source.format == "native":
        return response.source.body
    body: JsonObject = {"candidates": [_encode_candidate(candidate) for candidate in response.candidates]}
    if response.block_reason:
        body["promptFeedback"] = encode_feedback(response.block_reason, response.prompt_safety_ratings)
    if not response.candidates:
        reason = blocked_name(response.block_reason) if response.block_reason else FINISH_NAMES[pb.FINISH_REASON_OTHER]
        body["candidates"] = [_candidate([], reason, pb.Candidate())]
    body["usageMetadata"] = encode_usage(response.usage)
    body["modelVersion"] = response.model
    if response.HasField("create_time"):
        body["createTime"] = encode_time(response.create_time)
    if response.response_id:
        body["responseId"] = response.response_id
    return msgspec.json.encode(body)


def can_express(part: pb.Part) -> bool:
    """Return whether a response can contain a part. A provider's web search counts, since its sources are contained."""
    match part.WhichOneof("kind"):
        case "media":
            return encode_media(part.media) is not None
        case "server_tool_call":
            return part.server_tool_call.format == "native" or part.server_tool_call.name == SEARCH_TOOL
        case "server_tool_result":
            return part.server_tool_result.format == "native" or part.server_tool_result.name == SEARCH_TOOL
        case "opaque":
            return part.opaque.format == "native"
        case "text" | "reasoning" | "tool_call" | "tool_result" | "refusal" | None:
            return True
        case "compaction":
            return False
        case unhandled:
            assert_never(unhandled)


def _encode_candidate(candidate: pb.Candidate) -> JsonObject:
    parts, cited, queries = list[object](), list[Cited](), list[str]()
    logprobs = list[pb.TokenLogprob]()
    for part in candidate.message.parts:
        queries.extend(queries_of(part))
        if part.HasField("text"):
            cited.append(Cited(part.text.text, part.text.citations, len(parts) if cited else None))
            logprobs.extend(part.text.logprobs)
        if (encoded := encode_response_part(part)) is not None:
            parts.append(encoded)
    fields = _candidate(parts, finish_name(candidate.finish_reason, candidate.provider_reason), candidate)
    return fields | encode_sources(cited, queries, candidate.grounding_json) | encode_logprobs(logprobs)


def _candidate(parts: list[object], reason: str, candidate: pb.Candidate) -> JsonObject:
    fields: JsonObject = {
        "content": {"parts": parts, "role": "model"},
        "finishReason": reason,
        "index": candidate.index,
        "safetyRatings": encode_ratings(candidate.safety_ratings),
    }
    if candidate.finish_message:
        fields["finishMessage"] = candidate.finish_message
    return fields


# --- provider -> canonical

_BODY_DECODER = msgspec.json.Decoder(ProviderResponse)
_PASSED = msgspec.json.Decoder(PassedResponse)


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    """Decode a provider's complete response; for passthrough (`pass_`) without parts. Raise UmgError(UPSTREAM_FAILED)
    for a body that cannot be decoded or has no output, or the error that it states.
    """
    try:
        parsed = decode(_PASSED, body) if pass_ else decode(_BODY_DECODER, body)
        if is_error(parsed.error):
            raise stated_error(parsed.error)
        feedback = parsed.prompt_feedback
        blocked = (feedback and feedback.block_reason) or ""
        if not parsed.candidates and not blocked:
            raise no_response(body, ERROR_TABLE)
        response = pb.GenerateResponse(model=request.model or parsed.model_version or "", block_reason=blocked)
        decode_head(parsed, response)
        if parsed.usage_metadata is not None and parsed.usage_metadata.is_stated:
            decode_usage(parsed.usage_metadata, response.usage)
        if feedback is not None and blocked:
            response.prompt_safety_ratings.extend(decode_ratings(feedback.safety_ratings))
        if not blocked and (error := _failure(parsed)) is not None:
            raise error.with_usage(response.usage if response.HasField("usage") else None)
        if isinstance(parsed, PassedResponse):
            if any(not ending.finish_reason and is_present(ending.content) for ending in parsed.candidates or ()):
                body = _with_finish_reasons(body)
            _decode_endings(parsed, response)
            response.source.format = "native"
            response.source.body = (
                replace_invalid_utf8(body)
                if parsed.model_version is None
                else replace_model_id(body, parsed.model_version, request.model, "modelVersion")
            )
        else:
            _decode_candidates(parsed, body, request, response)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _failure(response: ProviderResponse | PassedResponse) -> UmgError | None:
    """Return the error if all candidates failed; None for passed content, whose reason is a value of the format."""
    if all(each.finish_reason == "STOP" for each in response.candidates or ()):
        return None
    if isinstance(response, ProviderResponse):
        return failed_response(
            *(end_of(each, bool(each.content and each.content.parts)) for each in response.candidates or ())
        )
    ends = [
        end_of(each, has_content(each.content)) for each in response.candidates or () if each.finish_reason != "STOP"
    ]
    return None if any(end.has_content for end in ends) else failed_response(*ends)


def _with_finish_reasons(body: bytes) -> bytes:
    return bytes(edit_values(Raw(body), ("candidates", EACH_ELEMENT), _finished))


def _finished(candidate: Raw) -> Raw:
    members = msgspec.json.decode(candidate, type=dict[str, Raw])
    if "content" not in members or msgspec.json.decode(members.get("finishReason", Raw(b"null"))):
        return candidate
    members["finishReason"] = Raw(b'"STOP"')
    return Raw(msgspec.json.encode(members))


def _decode_endings(parsed: PassedResponse, response: pb.GenerateResponse) -> None:
    for candidate_position, ending in enumerate(parsed.candidates or ()):
        candidate = response.candidates.add(index=candidate_position if ending.index is None else ending.index)
        decode_finish(ending.finish_reason, candidate)
        correct_finish(candidate, called=ending.calls)


def _decode_candidates(
    parsed: ProviderResponse, body: bytes, request: pb.GenerateRequest, response: pb.GenerateResponse
) -> None:
    names, unknown = tool_names(request), UnknownParts(body)
    for candidate_position, provider_candidate in enumerate(parsed.candidates or ()):
        if response.block_reason and not (provider_candidate.content and provider_candidate.content.parts):
            continue  # the placeholder of a blocked prompt
        candidate = response.candidates.add(
            index=candidate_position if provider_candidate.index is None else provider_candidate.index
        )
        candidate.message.role = pb.ROLE_ASSISTANT
        texts = _decode_parts(provider_candidate, unknown, candidate_position, names, candidate.message)
        _decode_sources(provider_candidate, texts, candidate)
        decode_finish(provider_candidate.finish_reason, candidate)
        candidate.finish_message = provider_candidate.finish_message or ""
        candidate.safety_ratings.extend(decode_ratings(provider_candidate.safety_ratings))
        correct_finish(candidate, called=any(part.HasField("tool_call") for part in candidate.message.parts))
    response.candidates.sort(key=lambda candidate: candidate.index)


def _decode_parts(
    provider_candidate: ProviderCandidate,
    unknown: UnknownParts,
    candidate_position: int,
    names: ToolNames,
    message: pb.Message,
) -> list[Text]:
    texts = list[Text]()
    for position, (part, raw) in enumerate(_parts(provider_candidate, unknown, candidate_position)):
        decoded = decode_response_part(part, raw, names)
        if decoded.WhichOneof("kind") == "text" and not decoded.text.text:
            if not decoded.HasField("state"):
                continue  # an empty text
            if message.parts and _unsigned_text(message.parts[-1]):
                message.parts[-1].state.CopyFrom(decoded.state)  # state of the text before it
                continue
        if decoded.HasField("text"):
            texts.append(Text(len(message.parts), position, decoded.text.text))
        message.parts.append(decoded)
    return texts


def _unsigned_text(part: pb.Part) -> bool:
    return part.HasField("text") and not part.HasField("state")


def _parts(
    provider_candidate: ProviderCandidate, unknown: UnknownParts, candidate_position: int
) -> Iterator[tuple[ProviderPart, Raw | None]]:
    parts = (provider_candidate.content and provider_candidate.content.parts) or []
    for part, raw in zip(parts, unknown.of(parts, candidate_position), strict=True):
        if raw is not None or is_known(part) or part.thought_signature:
            yield part, raw


def _decode_sources(provider_candidate: ProviderCandidate, texts: list[Text], candidate: pb.Candidate) -> None:
    parts = candidate.message.parts
    if texts and (logprobs := decode_logprobs(provider_candidate.logprobs_result)):
        parts[texts[0].part].text.logprobs.extend(logprobs)
    if not is_present(provider_candidate.grounding_metadata):
        return
    sources = decode_grounding(provider_candidate.grounding_metadata, texts)
    for part, citation in sources.citations:
        parts[part].text.citations.append(citation)
    if sources.queries:
        parts.add().server_tool_call.MergeFrom(pb.ServerToolCall(name=SEARCH_TOOL, queries=sources.queries))
    candidate.grounding_json = sources.rest
