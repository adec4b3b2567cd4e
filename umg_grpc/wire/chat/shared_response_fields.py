"""Fields that chat responses and chunks share, in both directions. Fields that are not needed may be absent or null."""

from collections.abc import Sequence
from typing import Annotated, Protocol

import msgspec
import pybase64
from msgspec import Meta, Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import schema
from umg_grpc.wire.chat.tool_calls import ProviderCall, ProviderFunction
from umg_grpc.wire.chat.usage import UsagePlaces
from umg_grpc.wire.core.base64_media import OUTPUT_AUDIO_TYPES, data_url, decode_base64, is_data_url, parse_data_url
from umg_grpc.wire.core.finish_reason_conversion import Ended, failed_response, finish_reason_of, own_reasons
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.lenient_number_reading import Count, set_time
from umg_grpc.wire.core.logprobs import Logprob
from umg_grpc.wire.errors.content_filter_findings import categories_of
from umg_grpc.wire.errors.provider_errors import as_error, from_provider, is_error, unreadable

FINISH_REASONS = own_reasons("chat")
# Only these five values are in the vocabulary: typed clients fail on any other.
FINISH_NAMES = {
    pb.FINISH_REASON_STOP: "stop",
    pb.FINISH_REASON_STOP_SEQUENCE: "stop",
    pb.FINISH_REASON_LENGTH: "length",
    pb.FINISH_REASON_CONTEXT_FULL: "length",
    # reasons without an equivalent here: the response may be incomplete, or the turn continues in another call
    pb.FINISH_REASON_OTHER: "length",
    pb.FINISH_REASON_MALFORMED_CALL: "length",
    pb.FINISH_REASON_PAUSE: "length",
    pb.FINISH_REASON_COMPACTION: "length",
    pb.FINISH_REASON_TOOL_CALLS: "tool_calls",
    pb.FINISH_REASON_CONTENT_FILTER: "content_filter",
    pb.FINISH_REASON_REFUSAL: "content_filter",
    pb.FINISH_REASON_RECITATION: "content_filter",
}
# Reasons that a provider may report although the model called a tool.
OVERRIDDEN_REASONS = (pb.FINISH_REASON_UNSPECIFIED, pb.FINISH_REASON_STOP)


# Markers around reasoning inside the text (not shown in the document; other gateways write them).
REASONING_BEGIN, REASONING_END = "<think>", "</think>"


# --- provider's structs

Index = Annotated[int, Meta(ge=0, le=2**31 - 1)]  # index of a choice


class UrlCitation(Struct):
    """Content of the member `url_citation` of an annotation."""

    url: str
    title: str | None = None
    start_index: Count = None
    end_index: Count = None


class Annotation(Struct):
    """Annotation of type `url_citation`."""

    url_citation: UrlCitation


class Logprobs(Struct):
    """Member `logprobs` of a choice."""

    content: list[Logprob] | None = None
    refusal: list[Logprob] | None = None


class ProviderAudio(Struct):
    """Member `audio`: complete, or one piece of it in a stream."""

    id: str | None = None
    data: str | None = None
    expires_at: Count = None
    transcript: str | None = None


class ProviderImage(Struct):
    """Element of the extension `images`."""

    image_url: schema.ImageUrl | None = None


class ProviderMessage(Struct):
    """Member `message` of a choice, or `delta` of a streamed one."""

    content: str | list[Raw] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | dict[str, Raw] | list[Raw] | None = None  # the name of the field at some providers
    annotations: list[Raw] | None = None
    tool_calls: list[ProviderCall] | ProviderCall | None = None  # one call without a list at TGI
    function_call: ProviderFunction | None = None
    audio: ProviderAudio | None = None
    images: list[ProviderImage] | None = None
    extra_content: schema.ExtraContent | None = None
    reasoning_text: str | None = None  # the same beside `reasoning_opaque`
    reasoning_details: Raw = ABSENT_MEMBER  # the carriers of reasoning state, see `reasoning_state_members`
    thinking_blocks: Raw = ABSENT_MEMBER
    reasoning_items: Raw = ABSENT_MEMBER
    reasoning_opaque: Raw = ABSENT_MEMBER
    reasoning_signature: Raw = ABSENT_MEMBER
    encrypted_content: Raw = ABSENT_MEMBER
    provider_specific_fields: Raw = ABSENT_MEMBER


class ProviderChoice(Struct):
    """Choice of a complete response."""

    index: Index | None = None
    message: ProviderMessage | None = None
    finish_reason: str | None = None
    logprobs: Logprobs | None = None
    content_filter_results: Raw = ABSENT_MEMBER
    error: Raw = ABSENT_MEMBER
    usage: Raw = ABSENT_MEMBER


class Head(UsagePlaces, kw_only=True):
    """Fields of a response body or a chunk other than its choices."""

    id: str | None = None
    created: Count = None
    model: str | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None
    error: Raw = ABSENT_MEMBER
    citations: list[Raw] | None = None  # addresses without a position in the text


# --- canonical -> caller


def finish_name(reason: "pb.FinishReason.ValueType", calls: bool, refused: bool, legacy: bool) -> str:
    """Return the `finish_reason` of a choice. With `calls` it is `tool_calls`, or `function_call` if `legacy`. With a
    refusal text it is `stop`, since the text is complete.
    """
    if calls and (reason in OVERRIDDEN_REASONS or reason == pb.FINISH_REASON_TOOL_CALLS):
        return "function_call" if legacy else "tool_calls"
    if refused and reason == pb.FINISH_REASON_REFUSAL:
        return "stop"
    return FINISH_NAMES.get(reason, "stop")


def encode_audio(media: pb.MediaPart) -> JsonObject:
    """Return audio as the member `audio` of a message: id, base64, expiry time and transcript."""
    data = pybase64.b64encode_as_string(media.data)
    return {"id": media.media_id, "data": data, "expires_at": media.expire_time.seconds, "transcript": media.transcript}


def encode_image(media: pb.MediaPart) -> JsonObject:
    """Return an image as an element of the member `images` of a message, with its address or a data URL."""
    url = media.uri if media.HasField("uri") else data_url(media.mime_type or "image/png", media.data)
    return {"type": "image_url", "image_url": {"url": url}}


def encode_citation(citation: pb.Citation, before: int, length: int) -> object:
    """Return a citation as an annotation; None if chat cannot express it. Offsets count characters of the whole
    content, in which `before` precede the part of `length`. A citation without offsets covers the part.
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
    """Return a token as an element of `logprobs.content` or, if `nested`, of its `top_logprobs`."""
    encoded: JsonObject = {"token": entry.token, "logprob": entry.logprob}
    encoded["bytes"] = list(entry.raw_bytes) if entry.HasField("raw_bytes") else None
    if not nested:
        encoded["top_logprobs"] = [encode_logprob(other, nested=True) for other in entry.alternatives]
    return encoded


# --- provider -> canonical


def decode_head(head: Head, model: str, target: pb.GenerateResponse | pb.GenerationStarted) -> None:
    """Copy a response's or chunk's head to `target`. `model`: the caller's name; "" selects the provider's."""
    target.response_id, target.model = head.id or "", model or head.model or ""
    set_time(head.created, target.create_time)
    if head.service_tier:
        target.service_tier = head.service_tier
    if head.system_fingerprint:
        target.system_fingerprint = head.system_fingerprint


class End(Protocol):
    """Members of a choice that state how it ended."""

    finish_reason: str | None
    error: Raw


def choices_error(choices: Sequence[End]) -> UmgError | None:
    """Return the error of a response if one of its choices states an error or all choices failed; otherwise None."""
    for choice in choices:
        if choice.finish_reason not in FINISH_REASONS or choice.error is not ABSENT_MEMBER:
            break
    else:
        return None  # nearly every response
    for choice in choices:
        if is_error(choice.error):
            return choice_error(choice.error)
    return failed_response(*(Ended(choice.finish_reason) for choice in choices))


def choice_error(error: Raw) -> UmgError:
    """Return the error for the member `error` of a choice, which relays set when their provider failed."""
    return from_provider(200, as_error(msgspec.json.decode(error)))


def decode_finish(reason: str | None, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Set the finish reason of `target`; none for None or "". An unknown one is also kept in `provider_reason`."""
    if reason:
        target.finish_reason = finish_reason_of(reason)
        if reason not in FINISH_REASONS:
            target.provider_reason = reason


def decode_filtered(results: Raw, target: pb.Candidate | pb.CandidateFinished) -> None:
    """Set the refusal categories of a response that a content filter ended. `results`: the filter's findings."""
    if results and target.finish_reason == pb.FINISH_REASON_CONTENT_FILTER:
        target.refusal_category = categories_of(results)


def correct_finish_reason(target: pb.Candidate | pb.CandidateFinished, calls: bool, refused: bool) -> None:
    """Correct the finish reason: TOOL_CALLS with `calls`, REFUSAL if `refused`, STOP if the provider sent none."""
    if calls and target.finish_reason in (*OVERRIDDEN_REASONS, pb.FINISH_REASON_OTHER):
        target.finish_reason = pb.FINISH_REASON_TOOL_CALLS
    elif refused and target.finish_reason == pb.FINISH_REASON_STOP:
        target.finish_reason = pb.FINISH_REASON_REFUSAL
    elif not target.finish_reason:
        target.finish_reason = pb.FINISH_REASON_STOP


class _ContentPart(Struct):
    """Element of a content list: a text, or reasoning in `thinking`, which is again a string or a list."""

    text: str | None = None
    thinking: "str | list[_ContentPart] | None" = None


_CONTENT_PART = msgspec.json.Decoder(_ContentPart)


def content_text(content: str | list[Raw] | None) -> str:
    """Return the `content` of a message as one text; reasoning in a list of parts is left out. "" for None."""
    if isinstance(content, list):
        return "".join(_CONTENT_PART.decode(raw).text or "" for raw in content)
    return content or ""


def _reasoning_in_content(content: list[Raw]) -> str:
    thoughts = (_CONTENT_PART.decode(raw).thinking or "" for raw in content)
    return "".join(
        thought if isinstance(thought, str) else "".join(part.text or "" for part in thought) for thought in thoughts
    )


def reasoning_text(message: ProviderMessage) -> str:
    """Return the reasoning of a message from any of the fields in which providers send it; "" without reasoning."""
    if message.reasoning_content:
        return message.reasoning_content
    if isinstance(message.content, list) and (thoughts := _reasoning_in_content(message.content)):
        return thoughts
    return message.reasoning_text or (message.reasoning if isinstance(message.reasoning, str) else "")


def provider_calls(message: ProviderMessage) -> list[ProviderCall]:
    """Return the `tool_calls` of a message or delta as a list, also if the provider sent a single call."""
    calls = message.tool_calls
    return [calls] if isinstance(calls, ProviderCall) else calls or []


def decode_annotation(raw: Raw) -> pb.Citation:
    """Return an annotation as a citation of a web page; any other type than `url_citation` is kept as raw JSON."""
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
    """Return an element of `citations` (a URL, else "") as a citation of a web page for the whole text."""
    url = msgspec.json.decode(raw)
    return pb.Citation(web=pb.WebSource(url=url if isinstance(url, str) else ""))


def decode_image(url: str, media: pb.MediaPart) -> None:
    """Set `media` to an image from its URL or data URL. Raise UmgError(UPSTREAM_FAILED) for invalid base64."""
    media.kind = pb.MEDIA_KIND_IMAGE
    if not is_data_url(url):
        media.uri = url
        return
    try:
        media.mime_type, media.data = parse_data_url(url, "images")
    except UmgError:
        raise unreadable() from None  # the field is the provider's, not the caller's


def decode_audio(audio: ProviderAudio, media: pb.MediaPart, request: pb.GenerateRequest) -> None:
    """Set `media` to audio of the requested type, or a piece. Raise UmgError(UPSTREAM_FAILED) for invalid base64."""
    media.mime_type = OUTPUT_AUDIO_TYPES.get(request.audio_output.format, "")
    media.kind, media.media_id, media.transcript = pb.MEDIA_KIND_AUDIO, audio.id or "", audio.transcript or ""
    if audio.expires_at:
        media.expire_time.seconds = int(audio.expires_at)
    try:
        media.data = decode_base64(audio.data or "", "audio.data")
    except UmgError:
        raise unreadable() from None
