"""Complete chat responses: encoded for a caller, and decoded from a provider's body."""

import re
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import assert_never

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.chat.passthrough_call_repair import TOOL_CALLS, body_with_calls
from umg_grpc.wire.chat.passthrough_response_repair import (
    JSON_NULL,
    body_with_choices,
    has_list,
    with_finish_reasons,
    with_totals,
)
from umg_grpc.wire.chat.provider_reasoning_members import (
    REASONING_SEPARATOR,
    from_canonical,
    joined,
    place_state,
    put,
    read_message,
    text_of,
)
from umg_grpc.wire.chat.provider_tool_names import tool_names
from umg_grpc.wire.chat.shared_response_fields import (
    FINISH_REASONS,
    REASONING_BEGIN,
    REASONING_END,
    Head,
    Index,
    ProviderChoice,
    ProviderMessage,
    choices_error,
    content_text,
    correct_finish_reason,
    decode_annotation,
    decode_audio,
    decode_filtered,
    decode_finish,
    decode_head,
    decode_image,
    decode_url,
    encode_audio,
    encode_citation,
    encode_image,
    encode_logprob,
    finish_name,
    provider_calls,
    reasoning_text,
)
from umg_grpc.wire.chat.split_choice_joining import joined_body, joint_reason, wants_one
from umg_grpc.wire.chat.thought_signatures import encode_signature, thought_signature
from umg_grpc.wire.chat.tool_calls import ProviderCall, decode_call, encode_calls
from umg_grpc.wire.chat.usage import decode_usage, encode_usage, find_usage, missing_totals
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject, replace_model_id
from umg_grpc.wire.core.logprobs import decode_logprob
from umg_grpc.wire.core.split_character_repair import decode, replace_halves
from umg_grpc.wire.core.tool_argument_objects import free_text
from umg_grpc.wire.errors.provider_errors import as_error, from_provider, is_error, no_response, unreadable

# --- canonical -> caller


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """Return the response for a caller; the provider's own body if it has this format."""
    if response.source.format == "chat":
        return response.source.body
    # without candidates, the prompt was blocked
    candidates = response.candidates or [pb.Candidate(finish_reason=pb.FINISH_REASON_CONTENT_FILTER)]
    body: JsonObject = {
        "id": response.response_id,
        "object": "chat.completion",
        "created": response.create_time.seconds,
        "model": response.model,
        "choices": [_encode_choice(candidate, request, response.response_id) for candidate in candidates],
    }
    if response.HasField("usage"):
        body["usage"] = encode_usage(response.usage)
    body |= {"service_tier": response.service_tier or None, "system_fingerprint": response.system_fingerprint or None}
    return msgspec.json.encode(body)


def can_express(part: pb.Part) -> bool:
    """Return whether a chat response can contain a part. True for a provider's web search, whose sources are sent."""
    match part.WhichOneof("kind"):
        case "media":
            return not part.thought and part.media.kind in (pb.MEDIA_KIND_AUDIO, pb.MEDIA_KIND_IMAGE)
        case "server_tool_call":
            return part.server_tool_call.name == "web_search"
        case "server_tool_result":
            return part.server_tool_result.name == "web_search"
        case "text" | "refusal" | "reasoning" | "tool_call" | "tool_result" | None:
            return True
        case "opaque" | "compaction":
            return False
        case unhandled:
            assert_never(unhandled)


def _encode_choice(candidate: pb.Candidate, request: pb.GenerateRequest, response_id: str) -> JsonObject:
    parts = list(candidate.message.parts)
    refusals = [part.refusal.text for part in parts if part.HasField("refusal")]
    calls = [part for part in parts if part.HasField("tool_call")]
    thoughts = join_reasoning(part.reasoning for part in parts if part.HasField("reasoning"))
    states = [part.state for part in parts if part.state.format == "native" and not part.HasField("tool_call")]
    content, annotations, logprobs = "", list[object](), list[JsonObject]()
    legacy = request.face_hints.legacy_functions
    if request.face_hints.thinking_to_content:
        parts, thoughts = _reasoning_as_text(parts), ""
    for part in parts:
        if part.HasField("text"):
            text = part.text.text
            annotations += [encode_citation(citation, len(content), len(text)) for citation in part.text.citations]
            logprobs += [encode_logprob(entry) for entry in part.text.logprobs]
            content += text
    refused = [encode_logprob(entry) for part in parts for entry in part.refusal.logprobs]
    has_text = any(part.HasField("text") for part in parts)
    message: JsonObject = {"role": "assistant", "content": content, "refusal": "".join(refusals) or None}
    message["annotations"] = [annotation for annotation in annotations if annotation is not None]
    if thoughts:
        message["reasoning_content"] = thoughts
    message |= _encode_media(parts)
    if calls:
        message |= encode_calls(calls, legacy, response_id)
    if not has_text and (calls or refusals or "audio" in message):
        message["content"] = None
    if states:
        message["extra_content"] = encode_signature(states[-1])
    if carried := [part.state for part in candidate.message.parts if part.HasField("state")]:
        put(joined(map(from_canonical, carried)), message, "message")
    return {
        "index": candidate.index,
        "message": message,
        "logprobs": {"content": logprobs or None, "refusal": refused or None} if logprobs or refused else None,
        "finish_reason": finish_name(candidate.finish_reason, bool(calls), bool(refusals), legacy),
    }


def _reasoning_as_text(parts: list[pb.Part]) -> list[pb.Part]:
    """Return the parts with each run of reasoning parts as one text between marks (`vendorn_thinking_to_content`)."""
    written = list[pb.Part]()
    for thinks, run in groupby(parts, key=lambda part: part.HasField("reasoning")):
        if not thinks:
            written.extend(run)
        elif thoughts := join_reasoning(part.reasoning for part in run):
            written.append(pb.Part(text=pb.TextPart(text=f"{REASONING_BEGIN}{thoughts}{REASONING_END}")))
    return written


def join_reasoning(parts: Iterable[pb.ReasoningPart]) -> str:
    """Return all reasoning as one text. A part without full texts contributes its summaries."""
    return REASONING_SEPARATOR.join(
        text for part in parts for text in (part.texts if any(part.texts) else part.summaries) if text
    )


def _encode_media(parts: Iterable[pb.Part]) -> JsonObject:
    """Return media as members of a message: `audio`, and the extension `images`, since chat has no field for these."""
    fields, images = JsonObject(), list[JsonObject]()
    for part in parts:
        if not part.HasField("media") or part.thought:
            continue
        if part.media.kind == pb.MEDIA_KIND_AUDIO:
            fields["audio"] = encode_audio(part.media)
        elif part.media.kind == pb.MEDIA_KIND_IMAGE:
            images.append(encode_image(part.media))
    if images:
        fields["images"] = images
    return fields


# --- provider -> canonical


class ProviderResponse(Head, kw_only=True):
    """Body of a provider's chat response, with the fields that are decoded."""

    choices: list[ProviderChoice] | None = None


class Ending(Struct):
    """Choice of a passed-through response. Of its message, only tool calls and a refusal are decoded."""

    index: Index | None = None
    finish_reason: str | None = None
    message: Raw = JSON_NULL
    error: Raw = ABSENT_MEMBER
    usage: Raw = ABSENT_MEMBER


class PassedResponse(Head, kw_only=True):
    """Body of a passed-through response. Of its choices, only the members of `Ending` are decoded."""

    choices: list[Ending] | None = None


class RefusingMessage(Struct):
    """Message of a passed-through choice, of which only the model's refusal text is decoded."""

    refusal: object = None


FINISH_REASON = attrgetter("finish_reason")
REFUSAL_TEXT = re.compile(rb'"refusal"\s*:\s*"(?!")')
"""Pattern of a model's refusal text in a body: a cheap check, since nearly no response has one."""
REFUSING_DECODER = msgspec.json.Decoder(RefusingMessage | None)
RESPONSE_DECODER = msgspec.json.Decoder(ProviderResponse)
PASSED_DECODER = msgspec.json.Decoder(PassedResponse)


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    """Decode a provider's complete response; for passthrough (`pass_`) without the content of its choices. Raise
    UmgError(UPSTREAM_FAILED) for a body without choices or that cannot be decoded, else the error that it states.
    """
    try:
        parsed = decode(PASSED_DECODER, body) if pass_ else decode(RESPONSE_DECODER, body)
        if parsed.error is not ABSENT_MEMBER and is_error(parsed.error):
            raise from_provider(200, as_error(msgspec.json.decode(parsed.error)))
        if not parsed.choices:
            raise no_response(body)
        response = pb.GenerateResponse()
        decode_head(parsed, request.model, response)
        if (usage := find_usage(parsed, parsed.choices)) is not None:
            decode_usage(usage, response.usage, parsed.service_tier)
        if (error := choices_error(parsed.choices)) is not None:
            raise error.with_usage(response.usage if response.HasField("usage") else None)
        if isinstance(parsed, PassedResponse):
            _pass(parsed, body, request, response)
        else:
            _decode_choices(parsed, request, response)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _pass(parsed: PassedResponse, body: bytes, request: pb.GenerateRequest, response: pb.GenerateResponse) -> None:
    choices = parsed.choices or []
    # nearly every one
    if len(choices) == 1 and not _is_odd(choices[0]) and TOOL_CALLS not in body and not has_list(body):
        candidate = response.candidates.add(index=choices[0].index or 0)
        decode_finish(choices[0].finish_reason, candidate)
        _note_refusal(choices[0], body, candidate)
    else:
        try:
            body, choices, reasons = _repaired(parsed, body, request)
        except ValueError:  # a character is split
            body, choices, reasons = _repaired(parsed, replace_halves(body), request)
        for position, (ending, reason) in enumerate(zip(choices, reasons, strict=True)):
            candidate = response.candidates.add(index=position if ending.index is None else ending.index)
            decode_finish(reason, candidate)
            _note_refusal(ending, body, candidate)
    usage = parsed.usage
    if usage and response.HasField("usage") and (totals := missing_totals(usage, response.usage)):
        body = with_totals(body, totals)
    response.source.format = "chat"
    response.source.body = replace_model_id(body, parsed.model, request.model)


def _note_refusal(choice: Ending, body: bytes, candidate: pb.Candidate) -> None:
    if candidate.finish_reason == pb.FINISH_REASON_STOP and REFUSAL_TEXT.search(body) is not None:
        message = decode(REFUSING_DECODER, bytes(choice.message))
        if message is not None and message.refusal:
            candidate.finish_reason = pb.FINISH_REASON_REFUSAL


def _is_odd(choice: Ending) -> bool:
    return choice.index is None or len(choice.message) <= len(JSON_NULL) or choice.finish_reason not in FINISH_REASONS


def _repaired(
    response: PassedResponse, body: bytes, request: pb.GenerateRequest
) -> tuple[bytes, list[Ending], list[str | None]]:
    """Return (body repaired for typed clients, choices, their finish reasons). Raise ValueError for broken UTF-8."""
    choices = response.choices or []
    if len(choices) > 1 and wants_one(request):
        body = joined_body(body)
        choices = decode(PASSED_DECODER, body).choices or []
    if not all(map(FINISH_REASON, choices)):
        body = with_finish_reasons(body)
        choices = decode(PASSED_DECODER, body).choices or []
    reasons = list(map(FINISH_REASON, choices))
    if any(map(_is_odd, choices)) or has_list(body):
        body = body_with_choices(body)
        choices = decode(PASSED_DECODER, body).choices or []
    if TOOL_CALLS in body:
        body = body_with_calls(body, [ending.message for ending in choices], response.id or "")
    return body, choices, reasons


def _decode_choices(parsed: ProviderResponse, request: pb.GenerateRequest, response: pb.GenerateResponse) -> None:
    """Decode the choices into candidates. If the request wants one candidate, several choices become one."""
    choices = parsed.choices or []
    is_split = len(choices) > 1 and wants_one(request)
    for position, choice in enumerate(choices):
        if position and is_split:
            candidate = response.candidates[0]
        else:
            candidate = response.candidates.add(index=position if choice.index is None else choice.index)
        _decode_message(choice, candidate, parsed.citations or [], request)
    if is_split:
        _join_ends(choices, response.candidates[0])
    response.candidates.sort(key=lambda candidate: candidate.index)


def _join_ends(choices: list[ProviderChoice], candidate: pb.Candidate) -> None:
    parts = candidate.message.parts
    candidate.index, candidate.provider_reason = 0, ""
    candidate.finish_reason = pb.FINISH_REASON_UNSPECIFIED
    decode_finish(joint_reason(choice.finish_reason for choice in choices), candidate)
    called, refused = (any(part.HasField(kind) for part in parts) for kind in ("tool_call", "refusal"))
    correct_finish_reason(candidate, called, refused)


def _decode_message(
    choice: ProviderChoice, candidate: pb.Candidate, citations: list[Raw], request: pb.GenerateRequest
) -> None:
    message, target = choice.message or ProviderMessage(), candidate.message
    target.role = pb.ROLE_ASSISTANT
    state = read_message(message)
    if thoughts := reasoning_text(message) or (text_of(state) if state else ""):
        target.parts.add().reasoning.texts.append(thoughts)
    if content := content_text(message.content):
        text = target.parts.add().text
        text.text = content
        text.citations.extend(map(decode_annotation, message.annotations or ()))
        if not text.citations:
            text.citations.extend(map(decode_url, citations))
        text.logprobs.extend(decode_logprob(entry) for entry in (choice.logprobs and choice.logprobs.content) or ())
    if message.refusal:
        refusal = target.parts.add().refusal
        refusal.text = message.refusal
        refusal.logprobs.extend(decode_logprob(entry) for entry in (choice.logprobs and choice.logprobs.refusal) or ())
    for image in message.images or ():
        if image.image_url:
            decode_image(image.image_url.url, target.parts.add().media)
    if message.audio:
        decode_audio(message.audio, target.parts.add().media, request)
    count = len(target.parts)
    calls = provider_calls(message) or ([ProviderCall(function=message.function_call)] if message.function_call else [])
    if calls:
        names = tool_names(request)
        for call in calls:
            part = target.parts.add()
            decode_call(call, part)
            custom = names.resolve(part.tool_call)
            if custom and part.tool_call.HasField("arguments_json"):  # sent as a function with one text
                part.tool_call.text = free_text(part.tool_call.arguments_json)
    if (signature := thought_signature(message.extra_content)) and target.parts:
        target.parts[max(count - 1, 0)].state.MergeFrom(signature)
    place_state(state, target)
    decode_finish(choice.finish_reason, candidate)
    decode_filtered(choice.content_filter_results, candidate)
    correct_finish_reason(candidate, bool(calls), bool(message.refusal))
