"""What stands in a whole answer and in the chunks of a streamed one alike, both directions.

The structs are what providers send, who differ: whatever is not needed may be absent or null.
"""

import base64
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.arguments import Arguments, arguments_text
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.content import thought_signature
from umg_grpc.wire.chat.usage import ProviderUsage, decode_usage
from umg_grpc.wire.counts import Count, count
from umg_grpc.wire.json import ABSENT, JsonObject
from umg_grpc.wire.media import data_url, decode_base64, is_data_url, parse_data_url
from umg_grpc.wire.provider_errors import unreadable

FINISH_REASONS = {
    "stop": pb.FINISH_REASON_STOP,
    "length": pb.FINISH_REASON_LENGTH,
    "tool_calls": pb.FINISH_REASON_TOOL_CALLS,
    "function_call": pb.FINISH_REASON_TOOL_CALLS,
    "content_filter": pb.FINISH_REASON_CONTENT_FILTER,
}
# What some providers say instead (seen at servers of open models, and at gateways that mix formats).
OTHER_WORDS = {
    "eos": pb.FINISH_REASON_STOP,
    "eos_token": pb.FINISH_REASON_STOP,
    "end_turn": pb.FINISH_REASON_STOP,
    "stop_sequence": pb.FINISH_REASON_STOP,
    "max_tokens": pb.FINISH_REASON_LENGTH,
    "model_length": pb.FINISH_REASON_LENGTH,
}
# Only these five are in the vocabulary: typed clients break on any other.
FINISH_NAMES = {
    pb.FINISH_REASON_STOP: "stop",
    pb.FINISH_REASON_STOP_SEQUENCE: "stop",
    pb.FINISH_REASON_LENGTH: "length",
    pb.FINISH_REASON_CONTEXT_FULL: "length",
    pb.FINISH_REASON_OTHER: "length",  # a reason without a word here: the answer may not look whole
    pb.FINISH_REASON_TOOL_CALLS: "tool_calls",
    pb.FINISH_REASON_CONTENT_FILTER: "content_filter",
    pb.FINISH_REASON_REFUSAL: "content_filter",
    pb.FINISH_REASON_RECITATION: "content_filter",
}
# What an upstream may say although it called a tool.
OVERRIDDEN = (pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP)


THOUGHTS_BEGIN, THOUGHTS_END = (
    "<think>",
    "</think>",
)  # around reasoning inside the text (not shown; what gateways write)
BETWEEN_THOUGHTS = "\n\n"


SPOKEN_TYPES = {
    "wav": "audio/wav",
    "aac": "audio/aac",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "opus": "audio/opus",
    "pcm16": "audio/pcm",
}


# --- provider's structs

Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # of a choice


class UrlCitation(Struct):
    """`url_citation` of an annotation."""

    url: str
    title: str | None = None
    start_index: Count = None
    end_index: Count = None


class Annotation(Struct):
    """An annotation of type `url_citation`."""

    url_citation: UrlCitation


class Logprob(Struct):
    """An entry of `logprobs.content`."""

    token: str
    logprob: float
    bytes: list[int] | None = None
    top_logprobs: "list[Logprob] | None" = None


class Logprobs(Struct):
    """`logprobs` of a choice."""

    content: list[Logprob] | None = None
    refusal: list[Logprob] | None = None


class ProviderFunction(Struct):
    """`function`."""

    name: str | None = None
    arguments: Arguments = None


class ProviderCustom(Struct):
    """`custom`."""

    name: str | None = None
    input: str | None = None


class ProviderCall(Struct):
    """A tool call, whole or a piece of one."""

    index: int | None = None
    id: str | None = None
    function: ProviderFunction | None = None
    custom: ProviderCustom | None = None
    extra_content: schema.ExtraContent | None = None


class ProviderAudio(Struct):
    """`audio`, whole or a piece of it."""

    id: str | None = None
    data: str | None = None
    expires_at: Count = None
    transcript: str | None = None


class ProviderImage(Struct):
    """An entry of the extension `images`."""

    image_url: schema.ImageUrl | None = None


class ProviderMessage(Struct):
    """`message` of a choice, and `delta`."""

    content: str | list[Raw] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | dict[str, Raw] | list[Raw] | None = None  # some providers' name for it
    annotations: list[Raw] | None = None
    tool_calls: list[ProviderCall] | None = None
    function_call: ProviderFunction | None = None
    audio: ProviderAudio | None = None
    images: list[ProviderImage] | None = None
    extra_content: schema.ExtraContent | None = None


class ProviderChoice(Struct):
    """A choice of an answer."""

    index: Index | None = None
    message: ProviderMessage | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None


class Head(Struct, kw_only=True):
    """What every body and every chunk has beside its choices."""

    id: str | None = None
    created: Count = None
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    usage: ProviderUsage | None = None
    error: Raw = ABSENT
    citations: list[Raw] | None = None  # addresses without a place in the text


# --- canonical -> caller


def finish_name(reason: "pb.FinishReason.ValueType", calls: bool, refused: bool, legacy: bool) -> str:
    """The reason in chat's vocabulary. An answer with calls ends for them, a refusal in words is a whole answer."""
    if calls and (reason in OVERRIDDEN or reason == pb.FINISH_REASON_TOOL_CALLS):
        return "function_call" if legacy else "tool_calls"
    if refused and reason == pb.FINISH_REASON_REFUSAL:
        return "stop"
    return FINISH_NAMES.get(reason, "stop")


def call_id(call: pb.ToolCall, response_id: str, index: int) -> str:
    """The call's id, or one that is unique in a conversation for providers that give none."""
    return call.call_id or f"call_{''.join(filter(str.isalnum, response_id))[-24:]}_{index}"


def encode_audio(media: pb.MediaPart) -> JsonObject:
    """`message.audio`."""
    data = base64.b64encode(media.data).decode()
    return {"id": media.media_id, "data": data, "expires_at": media.expire_time.seconds, "transcript": media.transcript}


def encode_image(media: pb.MediaPart) -> JsonObject:
    """An entry of `message.images`."""
    url = media.uri if media.HasField("uri") else data_url(media.mime_type or "image/png", media.data)
    return {"type": "image_url", "image_url": {"url": url}}


def encode_citation(citation: pb.Citation, before: int, length: int) -> object:
    """`url_citation` with its offsets in the whole content, `before` characters of which precede the part; None for
    what chat cannot say.
    """
    if citation.opaque.format == "chat":
        return Raw(citation.opaque.json.encode())
    if not citation.HasField("web"):
        return None
    start = citation.start_index if citation.HasField("start_index") else 0
    end = citation.end_index if citation.HasField("end_index") else length
    cited = {"url": citation.web.url, "title": citation.title, "start_index": before + start, "end_index": before + end}
    return {"type": "url_citation", "url_citation": cited}


def encode_logprob(entry: pb.TokenLogprob, nested: bool = False) -> JsonObject:
    """An entry of `logprobs.content`."""
    encoded: JsonObject = {"token": entry.token, "logprob": entry.logprob}
    encoded["bytes"] = list(entry.token_bytes) if entry.HasField("token_bytes") else None
    if not nested:
        encoded["top_logprobs"] = [encode_logprob(other, nested=True) for other in entry.alternatives]
    return encoded


# --- provider -> canonical


def begun(head: Head, model: str) -> pb.GenerateEvent:
    """The event with which a stream starts; `model` is the caller's name of it."""
    event = pb.GenerateEvent()
    event.started.model = model or head.model or ""
    decode_head(head, event.started)
    return event


def used(usage: ProviderUsage) -> pb.GenerateEvent:
    """The event that tells the usage."""
    event = pb.GenerateEvent()
    decode_usage(usage, event.usage)
    return event


def decode_head(head: Head, target: pb.GenerateResponse | pb.GenerationStarted) -> None:
    """Id, time, service tier and fingerprint."""
    target.response_id = head.id or ""
    if head.created:
        target.create_time.seconds = count(head.created)
    target.service_tier, target.system_fingerprint = head.service_tier or "", head.system_fingerprint or ""


def decode_finish(reason: str | None, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Fills in the reason, and the provider's own word where the format has none for it."""
    if reason:
        target.finish_reason = FINISH_REASONS.get(reason) or OTHER_WORDS.get(reason, pb.FINISH_REASON_OTHER)
        if reason not in FINISH_REASONS:
            target.provider_reason = reason


def settle(target: pb.Candidate | pb.CandidateFinished, calls: bool, refused: bool) -> None:
    """Corrects the reason where what was said tells better: a call, a refusal in words, an answer that ends without
    one.
    """
    if calls and target.finish_reason in (*OVERRIDDEN, pb.FINISH_REASON_OTHER):
        target.finish_reason = pb.FINISH_REASON_TOOL_CALLS
    elif refused and target.finish_reason == pb.FINISH_REASON_STOP:
        target.finish_reason = pb.FINISH_REASON_REFUSAL
    elif not target.finish_reason:
        target.finish_reason = pb.FINISH_REASON_STOP


class _ContentPart(Struct):
    """A part of a content that comes in parts. `thinking`: some providers put the thoughts there, in parts again."""

    text: str | None = None
    thinking: "str | list[_ContentPart] | None" = None


_CONTENT_PART = msgspec.json.Decoder(_ContentPart)


def content_text(content: str | list[Raw] | None) -> str:
    """Content as one text, also where it comes in parts; less the thoughts among these."""
    if isinstance(content, list):
        return "".join(_CONTENT_PART.decode(raw).text or "" for raw in content)
    return content or ""


def _thoughts_in(content: list[Raw]) -> str:
    thoughts = (_CONTENT_PART.decode(raw).thinking or "" for raw in content)
    return "".join(
        thought if isinstance(thought, str) else "".join(part.text or "" for part in thought) for thought in thoughts
    )


def thoughts_of(message: ProviderMessage) -> str:
    """The reasoning, under whichever name."""
    if message.reasoning_content:
        return message.reasoning_content
    if isinstance(message.content, list) and (thoughts := _thoughts_in(message.content)):
        return thoughts
    return message.reasoning if isinstance(message.reasoning, str) else ""


def decode_call(call: ProviderCall, target: pb.Part) -> None:
    """A whole call."""
    target.tool_call.call_id = call.id or ""
    if call.custom:
        target.tool_call.name, target.tool_call.text = call.custom.name or "", call.custom.input or ""
    else:
        function = call.function or ProviderFunction()
        target.tool_call.name, target.tool_call.arguments_json = (
            function.name or "",
            arguments_text(function.arguments) or "{}",
        )
    if signature := thought_signature(call.extra_content):
        target.state.MergeFrom(signature)


def decode_annotation(raw: Raw) -> pb.Citation:
    """A citation; what is no `url_citation` is kept as it is."""
    try:
        cited = msgspec.json.decode(raw, type=Annotation).url_citation
    except msgspec.ValidationError:
        kind = msgspec.json.decode(raw, type=schema.Kind).type or ""
        return pb.Citation(opaque=pb.OpaquePart(format="chat", type=kind, json=str(raw, "utf-8")))
    citation = pb.Citation(title=cited.title or "", web=pb.WebSource(url=cited.url))
    if cited.start_index is not None and cited.end_index is not None:
        citation.start_index, citation.end_index = int(cited.start_index), int(cited.end_index)
    return citation


def decode_url(raw: Raw) -> pb.Citation:
    """An entry of the extension `citations`: an address that the whole text rests on."""
    url = msgspec.json.decode(raw)
    return pb.Citation(web=pb.WebSource(url=url if isinstance(url, str) else ""))


def decode_logprob(entry: Logprob) -> pb.TokenLogprob:
    """The likelihood of one token."""
    decoded = pb.TokenLogprob(token=entry.token, logprob=entry.logprob)
    if entry.bytes is not None:
        decoded.token_bytes = bytes(entry.bytes)
    decoded.alternatives.extend(decode_logprob(other) for other in entry.top_logprobs or ())
    return decoded


def decode_image(url: str, media: pb.MediaPart) -> None:
    """An image that the model made. Raises UmgError(UPSTREAM_FAILED) for broken base64."""
    media.kind = pb.MEDIA_KIND_IMAGE
    if not is_data_url(url):
        media.uri = url
        return
    try:
        media.mime_type, media.data = parse_data_url(url, "images")
    except UmgError:
        raise unreadable() from None  # the provider's field, not the caller's


def decode_audio(audio: ProviderAudio, media: pb.MediaPart, request: pb.GenerateRequest) -> None:
    """Sound that the model made, in the format that the request asked for: the answer does not tell.

    Raises UmgError(UPSTREAM_FAILED) for broken base64.
    """
    media.mime_type = SPOKEN_TYPES.get(request.audio_output.format, "")
    media.kind, media.media_id, media.transcript = pb.MEDIA_KIND_AUDIO, audio.id or "", audio.transcript or ""
    if audio.expires_at:
        media.expire_time.seconds = int(audio.expires_at)
    try:
        media.data = decode_base64(audio.data or "", "audio.data")
    except UmgError:
        raise unreadable() from None
