"""Events of a provider's stream, as far as they are decoded."""

import msgspec
from msgspec import Raw, Struct

from umg_grpc.errors import UmgError
from umg_grpc.wire.arguments import Arguments
from umg_grpc.wire.counts import Count
from umg_grpc.wire.json import ABSENT
from umg_grpc.wire.provider_errors import as_error, is_error
from umg_grpc.wire.refusals import ProviderError
from umg_grpc.wire.responses.answer import ContentPart, Head, Logprob, ProviderResponse
from umg_grpc.wire.responses.errors import failure

ENDS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled")
BEGINNINGS = ("response.created", "response.queued", "response.in_progress")
AUDIO_TYPES = {
    "wav": "audio/wav",
    "aac": "audio/aac",
    "mp3": "audio/mpeg",
    "flac": "audio/flac",
    "opus": "audio/opus",
    "pcm16": "audio/pcm",
}


class Event(Struct):
    """Any event: what it has beside its type depends on that."""

    type: str | None = None
    response: Raw = ABSENT
    item: Raw = ABSENT
    output_index: Count = None
    content_index: Count = None
    summary_index: Count = None
    delta: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: Arguments = None
    input: str | None = None
    logprobs: list[Logprob] | None = None
    annotation: Raw = ABSENT
    part: ContentPart | None = None
    error: Raw = ABSENT
    code: str | int | float | None = None
    message: str | None = None
    param: str | None = None


class StreamedItem(Struct):
    """An item of an event, as far as a stream needs it."""

    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    phase: str | None = None


class PlainDelta(Struct):
    """A delta of a text, of arguments or of a summary, of which most events are."""

    delta: str
    output_index: int
    content_index: int = 0
    summary_index: int = 0
    logprobs: list[Logprob] | None = None


TEXT_DELTA, ARGUMENTS_DELTA, SUMMARY_DELTA = PLAIN_HEADS = (
    b"event: response.output_text.delta\ndata: ",
    b"event: response.function_call_arguments.delta\ndata: ",
    b"event: response.reasoning_summary_text.delta\ndata: ",
)
PLAIN = msgspec.json.Decoder(PlainDelta)
EVENT = msgspec.json.Decoder(Event)
ITEM = msgspec.json.Decoder(StreamedItem)
HEAD = msgspec.json.Decoder(Head)
RESPONSE = msgspec.json.Decoder(ProviderResponse)


def stated_error(name: bytes, event: Event) -> UmgError | None:
    """The error that an event states, if it does: flat, or below `error`."""
    if event.type == "error" or (event.type is None and (name == b"error" or is_error(event.error))):
        if is_error(event.error):
            return failure(as_error(msgspec.json.decode(event.error)))
        return failure(ProviderError(message=event.message or "", param=event.param or "", code=event.code))
    return None
