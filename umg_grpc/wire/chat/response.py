"""The whole answer, both directions."""

from collections.abc import Iterable
from itertools import groupby

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.arguments import free_text
from umg_grpc.wire.chat.answer import (
    BETWEEN_THOUGHTS,
    THOUGHTS_BEGIN,
    THOUGHTS_END,
    Head,
    Index,
    ProviderCall,
    ProviderChoice,
    ProviderMessage,
    call_id,
    content_text,
    decode_annotation,
    decode_audio,
    decode_call,
    decode_finish,
    decode_head,
    decode_image,
    decode_logprob,
    decode_url,
    encode_audio,
    encode_citation,
    encode_image,
    encode_logprob,
    finish_name,
    settle,
    thoughts_of,
)
from umg_grpc.wire.chat.content import encode_call, signed, thought_signature
from umg_grpc.wire.chat.names import tool_names
from umg_grpc.wire.chat.usage import decode_usage, encode_usage
from umg_grpc.wire.json import JsonObject, under_model
from umg_grpc.wire.provider_errors import NO_ANSWER, as_error, from_provider, is_error, unreadable
from umg_grpc.wire.ragged import decode

# --- canonical -> caller


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    """The body; the provider's own where that is of this format."""
    if response.source.format == "chat":
        return response.source.body
    candidates = response.candidates or [
        pb.Candidate(finish_reason=pb.FINISH_REASON_CONTENT_FILTER)
    ]  # a blocked prompt
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


def shows(part: pb.Part) -> bool:
    """Whether an answer says the part: of what a provider's tools did, the sources that a search found."""
    match part.WhichOneof("kind"):
        case "media":
            return not part.thought and part.media.kind in (pb.MEDIA_KIND_AUDIO, pb.MEDIA_KIND_IMAGE)
        case "server_tool_call":
            return part.server_tool_call.name == "web_search"
        case "server_tool_result":
            return part.server_tool_result.name == "web_search"
        case kind:
            return kind != "opaque"


def _encode_choice(candidate: pb.Candidate, request: pb.GenerateRequest, response_id: str) -> JsonObject:
    parts = list(candidate.message.parts)
    refusals = [part.refusal.text for part in parts if part.HasField("refusal")]
    calls = [part for part in parts if part.HasField("tool_call")]
    thoughts = joined_thoughts(part.reasoning for part in parts if part.HasField("reasoning"))
    states = [part.state for part in parts if part.state.format == "native" and not part.HasField("tool_call")]
    content, annotations, logprobs = "", list[object](), list[JsonObject]()
    if request.thinking_to_content:
        parts, thoughts = _thoughts_as_text(parts), ""
    for part in parts:
        if part.HasField("text"):
            annotations += [
                encode_citation(citation, len(content), len(part.text.text)) for citation in part.text.citations
            ]
            logprobs += [encode_logprob(entry) for entry in part.text.logprobs]
            content += part.text.text
    refused = [encode_logprob(entry) for part in parts for entry in part.refusal.logprobs]
    spoken = any(part.HasField("text") for part in parts)
    message: JsonObject = {"role": "assistant", "content": content, "refusal": "".join(refusals) or None}
    message["annotations"] = [annotation for annotation in annotations if annotation is not None]
    if thoughts:
        message["reasoning_content"] = thoughts
    message |= _encode_media(parts)
    if calls:
        message |= _encode_calls(calls, request.legacy_functions, response_id)
    if not spoken and (calls or refusals or "audio" in message):
        message["content"] = None
    if states:
        message["extra_content"] = signed(states[-1])
    return {
        "index": candidate.index,
        "message": message,
        "logprobs": {"content": logprobs or None, "refusal": refused or None} if logprobs or refused else None,
        "finish_reason": finish_name(candidate.finish_reason, bool(calls), bool(refusals), request.legacy_functions),
    }


def _thoughts_as_text(parts: list[pb.Part]) -> list[pb.Part]:
    """The parts with each run of reasoning as one text part (`vendorn_thinking_to_content`)."""
    written = list[pb.Part]()
    for thinks, run in groupby(parts, key=lambda part: part.HasField("reasoning")):
        if not thinks:
            written.extend(run)
        elif thoughts := joined_thoughts(part.reasoning for part in run):
            written.append(pb.Part(text=pb.TextPart(text=f"{THOUGHTS_BEGIN}{thoughts}{THOUGHTS_END}")))
    return written


def joined_thoughts(parts: Iterable[pb.ReasoningPart]) -> str:
    """All thoughts as one text: the thoughts themselves, or their summaries where those are all there is."""
    return BETWEEN_THOUGHTS.join(
        text for part in parts for text in (part.texts if any(part.texts) else part.summaries) if text
    )


def _encode_calls(calls: list[pb.Part], legacy: bool, response_id: str) -> JsonObject:
    if legacy:
        call = calls[0].tool_call
        return {"function_call": {"name": call.name, "arguments": call.arguments_json or call.text or "{}"}}
    return {
        "tool_calls": [
            encode_call(part, call_id(part.tool_call, response_id, index), part.tool_call.name)
            for index, part in enumerate(calls)
        ]
    }


def _encode_media(parts: Iterable[pb.Part]) -> JsonObject:
    """Sound as `audio`; images as the extension `images`, since chat has no place for them."""
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
    """A body, as far as it is decoded."""

    choices: list[ProviderChoice] | None = None


class Ending(Struct):
    """What a passed-on choice is looked at for."""

    index: Index | None = None
    finish_reason: str | None = None


class PassedResponse(Head, kw_only=True):
    """A body that is passed on."""

    choices: list[Ending] | None = None


RESPONSE = msgspec.json.Decoder(ProviderResponse)
PASSED = msgspec.json.Decoder(PassedResponse)


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    """The answer. Raises UmgError(UPSTREAM_FAILED) for a body that cannot be read or that is an error in spite of its
    status.
    """
    try:
        answer = decode(PASSED, body) if pass_ else decode(RESPONSE, body)
        if is_error(answer.error):
            raise from_provider(200, as_error(msgspec.json.decode(answer.error)))
        if not answer.choices:
            raise unreadable(NO_ANSWER)
        response = pb.GenerateResponse(model=request.model or answer.model or "")
        decode_head(answer, response)
        if answer.usage is not None and answer.usage.is_whole:
            decode_usage(answer.usage, response.usage)
        if isinstance(answer, PassedResponse):
            _decode_endings(answer, response)
            response.source.format, response.source.body = "chat", under_model(body, answer.model, request.model)
        else:
            for place, choice in enumerate(answer.choices or ()):
                candidate = response.candidates.add(index=place if choice.index is None else choice.index)
                _decode_message(choice, candidate, answer.citations or [], request)
            response.candidates.sort(key=lambda candidate: candidate.index)
    except (ValueError, RecursionError):
        raise unreadable() from None
    return response


def _decode_endings(answer: PassedResponse, response: pb.GenerateResponse) -> None:
    for place, ending in enumerate(answer.choices or ()):
        candidate = response.candidates.add(index=place if ending.index is None else ending.index)
        decode_finish(ending.finish_reason, candidate)


def _decode_message(
    choice: ProviderChoice, candidate: pb.Candidate, citations: list[Raw], request: pb.GenerateRequest
) -> None:
    message, target = choice.message or ProviderMessage(), candidate.message
    target.role = pb.ROLE_ASSISTANT
    if thoughts := thoughts_of(message):
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
    spoken = len(target.parts)
    calls = message.tool_calls or ([ProviderCall(function=message.function_call)] if message.function_call else [])
    if calls:
        names = tool_names(request)
        for call in calls:
            part = target.parts.add()
            decode_call(call, part)
            custom = names.resolve(part.tool_call)
            if custom and part.tool_call.HasField("arguments_json"):  # sent as a function with one text
                part.tool_call.text = free_text(part.tool_call.arguments_json)
    if (signature := thought_signature(message.extra_content)) and target.parts:
        target.parts[max(spoken - 1, 0)].state.MergeFrom(signature)
    decode_finish(choice.finish_reason, candidate)
    settle(candidate, bool(calls), bool(message.refusal))
