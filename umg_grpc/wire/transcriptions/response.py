"""Responses of transcriptions: decoded from a provider's body, and encoded in the form that a caller selects."""

import math
from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Raw, Struct

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.base64_media import normal_mime
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER, JsonObject
from umg_grpc.wire.core.lenient_number_reading import Count, count
from umg_grpc.wire.core.split_character_repair import decode
from umg_grpc.wire.errors.provider_errors import as_error, from_provider, is_error, no_response, unreadable
from umg_grpc.wire.transcriptions.request import (
    FORMAT_NAME,
    JSON_FORMAT,
    JSON_FORMATS,
    SUBTITLE_FORMATS,
    TEXT_FORMAT,
    VERBOSE_FORMAT,
    format_of,
)
from umg_grpc.wire.unary_format_interface import ClientShape

TOO_LONG = "audio"
"""Canonical field that an error names if the provider rejects the request as too long."""
MEDIA_TYPES = {
    TEXT_FORMAT: "text/plain; charset=utf-8",
    "srt": "text/plain; charset=utf-8",
    "vtt": "text/vtt; charset=utf-8",
}
PAGE_TYPE = "text/html"


class Logprob(Struct):
    """Element of `logprobs`."""

    token: str | None = None
    logprob: float | None = None
    bytes: list[int] | None = None


class Word(Struct):
    """Element of `words`."""

    word: str = ""
    start: float = 0
    end: float = 0


class Segment(Struct):
    """Element of `segments`."""

    id: int | str | None = None
    start: float | None = None
    end: float | None = None
    text: str = ""
    speaker: str | None = None
    speaker_id: str | int | None = None
    """Speaker by Mistral (mistralai, `TranscriptionSegmentChunk`)."""
    seek: Count = None
    tokens: list[int] | None = None
    temperature: float | None = None
    avg_logprob: float | None = None
    compression_ratio: float | None = None
    no_speech_prob: float | None = None


class TokenDetails(Struct):
    """Member `input_token_details` of a usage."""

    audio_tokens: Count = None


class ProviderUsage(Struct):
    """Member `usage`: tokens or seconds."""

    input_tokens: Count = None
    output_tokens: Count = None
    input_token_details: TokenDetails | None = None
    seconds: float | None = None
    prompt_audio_seconds: float | None = None
    """Seconds by Mistral."""


class ProviderBody(Struct):
    """JSON body of a provider, of any form."""

    text: str | None = None
    language: str | None = None
    duration: float | str | None = None
    segments: list[Segment] | None = None
    words: list[Word] | None = None
    logprobs: list[Logprob] | None = None
    usage: ProviderUsage | None = None
    error: Raw = ABSENT_MEMBER


_BODY = msgspec.json.Decoder(ProviderBody, strict=False)


# --- provider -> canonical


def decode_response(body: bytes, request: pb.TranscribeRequest, pass_: bool) -> pb.TranscribeResponse:
    """Decode a provider's response. `pass_`: keep its body for the caller, if it has the form that the caller selects.
    Texts and subtitles of silence are empty. Raise UmgError(UPSTREAM_FAILED) for a body without a text, and for
    subtitles without times.
    """
    wanted, response = format_of(request), pb.TranscribeResponse(model=request.model)
    sent = _json(body, wanted)
    if sent is None:
        response.text = body.decode(errors="replace")
        if wanted == TEXT_FORMAT:
            response.text = response.text.removesuffix("\n")
        is_wanted = True
    else:
        fill(response, sent)
        is_wanted = wanted in JSON_FORMATS and _has_form(sent, wanted)
        if wanted in SUBTITLE_FORMATS and not response.segments and response.text.strip():
            raise unreadable(": it has no times for subtitles")
    if pass_ and is_wanted:
        response.source.format, response.source.body = FORMAT_NAME, body
    return response


def read_headers(response: pb.TranscribeResponse, headers: Mapping[str, str]) -> None:
    """Raise UmgError(UPSTREAM_FAILED) for an HTML page, which failed proxies and servers send with status 200."""
    if normal_mime(headers.get("content-type", "")) == PAGE_TYPE:
        raise unreadable(f": it is {PAGE_TYPE}")


def _json(body: bytes, wanted: str) -> ProviderBody | None:
    """Return the JSON of a body; None for plain text, which may begin like JSON if a text is `wanted`."""
    if wanted not in JSON_FORMATS and not body.lstrip().startswith(b"{"):
        return None
    try:
        sent = decode(_BODY, body)
        if is_error(sent.error):
            raise from_provider(200, as_error(msgspec.json.decode(sent.error)), too_long=TOO_LONG)
    except (ValueError, RecursionError):
        if wanted not in JSON_FORMATS:
            return None
        raise unreadable() from None
    if sent.text is None:
        raise no_response(body, too_long=TOO_LONG)
    return sent


def _has_form(sent: ProviderBody, wanted: str) -> bool:
    if wanted == JSON_FORMAT:
        return True
    return sent.duration is not None and (
        sent.language is not None if wanted == VERBOSE_FORMAT else sent.segments is not None
    )


def fill(response: pb.TranscribeResponse, sent: ProviderBody) -> None:
    """Set the fields of a response, in place, from a provider's JSON."""
    response.text, response.language = sent.text or "", sent.language or ""
    duration = _seconds(sent.duration)
    if duration is not None:
        response.duration = duration
    for position, segment in enumerate(sent.segments or ()):
        fill_segment(response.segments.add(), segment, position)
    for word in sent.words or ():
        response.words.add(word=word.word, start=word.start, end=word.end)
    add_logprobs(response, sent.logprobs)
    if (usage := sent.usage) is not None:
        seconds = usage.seconds if usage.seconds is not None else usage.prompt_audio_seconds
        if seconds is not None:
            response.usage.seconds = seconds
        elif usage.input_tokens is not None or usage.output_tokens is not None:
            details = usage.input_token_details
            response.usage.input_tokens = count(usage.input_tokens)
            response.usage.output_tokens = count(usage.output_tokens)
            response.usage.audio_tokens = count(details.audio_tokens if details is not None else usage.input_tokens)


def _seconds(written: float | str | None) -> float | None:
    try:
        seconds = float(written) if written is not None else None
    except ValueError:
        return None
    return seconds if seconds is not None and math.isfinite(seconds) and seconds >= 0 else None


def fill_segment(target: pb.TranscriptionSegment, segment: Segment, position: int) -> None:
    """Set the fields of a segment in place. `position`: its index, which becomes the id of a segment without one."""
    target.segment_id = str(position if segment.id is None else segment.id)
    target.start, target.end, target.text = segment.start or 0, segment.end or 0, segment.text
    target.speaker = segment.speaker or ("" if segment.speaker_id is None else str(segment.speaker_id))
    target.seek = count(segment.seek)
    target.tokens.extend(_counts(segment.tokens))
    for name in ("temperature", "avg_logprob", "compression_ratio", "no_speech_prob"):
        if (value := getattr(segment, name)) is not None:
            setattr(target, name, value)


def _counts(numbers: list[int] | None) -> list[int]:
    return [number for number in numbers or () if 0 <= number <= MAX_COUNT]


def add_logprobs(target: pb.TranscribeResponse | pb.TranscriptionDelta, sent: list[Logprob] | None) -> None:
    """Add the log probabilities of tokens to `target`, in place."""
    for each in sent or ():
        target.logprobs.add(token=each.token or "", logprob=each.logprob or 0, bytes=_counts(each.bytes))


# --- canonical -> caller


def content_type(response: pb.TranscribeResponse, request: pb.TranscribeRequest) -> str:
    """Return the media type of the form that a request selects."""
    return MEDIA_TYPES.get(format_of(request), "application/json")


def encode_response(response: pb.TranscribeResponse, request: pb.TranscribeRequest, shape: ClientShape) -> bytes:
    """Return the body in the form that the request selects: the provider's if it was kept. `shape` has no effect."""
    if response.source.format == FORMAT_NAME:
        return response.source.body
    match format_of(request):
        case "text":
            return f"{response.text}\n".encode()
        case "srt" | "vtt" if not response.segments and response.text:  # the provider's own, which a guard has changed
            return response.text.encode()
        case "srt":
            return _cues(response.segments, ",", "")
        case "vtt":
            return _cues(response.segments, ".", "WEBVTT\n\n")
        case "verbose_json":
            return msgspec.json.encode(_verbose(response, request))
        case "diarized_json":
            return msgspec.json.encode(_diarized(response))
        case _:  # an unknown form, which the provider took
            return msgspec.json.encode(plain(response))


def plain(response: pb.TranscribeResponse) -> JsonObject:
    """Return the members of the form `json`."""
    body: JsonObject = {"text": response.text}
    if response.logprobs:
        body["logprobs"] = logprobs_of(response.logprobs)
    return body | usage_of(response)


def usage_of(response: pb.TranscribeResponse) -> JsonObject:
    """Return the member `usage`; {} if the usage is unknown."""
    if not response.HasField("usage"):
        return {}
    usage = response.usage
    if usage.HasField("seconds"):
        return {"usage": {"type": "duration", "seconds": usage.seconds}}
    details = {"audio_tokens": usage.audio_tokens, "text_tokens": max(0, usage.input_tokens - usage.audio_tokens)}
    tokens = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    total = usage.input_tokens + usage.output_tokens
    return {"usage": {"type": "tokens", **tokens, "input_token_details": details, "total_tokens": total}}


def logprobs_of(logprobs: Iterable[pb.TranscriptionLogprob]) -> list[JsonObject]:
    """Return the elements of `logprobs`."""
    return [{"token": each.token, "logprob": each.logprob, "bytes": list(each.bytes)} for each in logprobs]


def _verbose(response: pb.TranscribeResponse, request: pb.TranscribeRequest) -> JsonObject:
    body: JsonObject = {
        "task": "translate" if request.translate else "transcribe",
        "language": response.language,
        "duration": _duration(response),
        "text": response.text,
        "segments": [
            {
                "id": int(segment.segment_id) if segment.segment_id.isdecimal() else position,
                "seek": segment.seek,
                "start": segment.start,
                "end": segment.end,
                "text": segment.text,
                "tokens": list(segment.tokens),
                "temperature": segment.temperature,
                "avg_logprob": segment.avg_logprob,
                "compression_ratio": segment.compression_ratio,
                "no_speech_prob": segment.no_speech_prob,
            }
            for position, segment in enumerate(response.segments)
        ],
    }
    if response.words:
        body["words"] = [{"word": word.word, "start": word.start, "end": word.end} for word in response.words]
    return body | usage_of(response)


def _diarized(response: pb.TranscribeResponse) -> JsonObject:
    segments = [segment_event(segment) for segment in response.segments]
    body = {"task": "transcribe", "duration": _duration(response), "text": response.text, "segments": segments}
    return body | usage_of(response)


def segment_event(segment: pb.TranscriptionSegment) -> JsonObject:
    """Return a segment as in the form `diarized_json`, which is also the form of a stream's segment event."""
    times = {"start": segment.start, "end": segment.end}
    return {
        "type": "transcript.text.segment",
        "id": segment.segment_id,
        **times,
        "text": segment.text,
        "speaker": segment.speaker,
    }


def _duration(response: pb.TranscribeResponse) -> float:
    if response.HasField("duration"):
        return response.duration
    return max([response.usage.seconds, *(segment.end for segment in response.segments)])


def _cues(segments: Iterable[pb.TranscriptionSegment], point: str, head: str) -> bytes:
    """Return segments as subtitles: WebVTT if there is a `head`, else SRT. `point`: decimal point of the times."""
    cues = [head]
    for number, segment in enumerate(segments, 1):
        times = f"{_time(segment.start, point)} --> {_time(segment.end, point)}"
        text = f"{segment.speaker}: {segment.text.strip()}" if segment.speaker else segment.text.strip()
        cues.append(f"{times}\n{text}\n\n" if head else f"{number}\n{times}\n{text}\n\n")
    return "".join(cues).encode()


def _time(seconds: float, point: str) -> str:
    milliseconds = round(seconds * 1000)
    hours, rest = divmod(milliseconds, 3_600_000)
    minutes, rest = divmod(rest, 60_000)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{point}{rest % 1000:03}"
