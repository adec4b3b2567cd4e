"""Structs for the events of a provider's responses stream, with the fields that are decoded."""

from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct

from umg_grpc.base.errors import UmgError
from umg_grpc.wire.core.json_decoding import ABSENT_MEMBER
from umg_grpc.wire.core.lenient_number_reading import Count
from umg_grpc.wire.core.logprobs import Logprob
from umg_grpc.wire.core.tool_argument_objects import Arguments
from umg_grpc.wire.errors.error_classification import ProviderError
from umg_grpc.wire.errors.provider_errors import as_error, is_error
from umg_grpc.wire.responses.decode_output import ContentPart, Head, ProviderResponse
from umg_grpc.wire.responses.errors import failure

RENAMED_ENDS = {"response.done": "response.completed", "response.canceled": "response.cancelled"}
"""Name that relays give to a last event -> this format's name, unless the response's status implies another."""
END_EVENTS = ("response.completed", "response.incomplete", "response.failed", "response.cancelled", *RENAMED_ENDS)
BEGIN_EVENTS = ("response.created", "response.queued", "response.in_progress")


class AnyEvent(Struct, kw_only=True):
    """Members that every event has, and the members of an `error` event."""

    type: str | None = None
    response: Raw = ABSENT_MEMBER
    error: Raw = ABSENT_MEMBER
    code: str | int | float | None = None
    message: str | None = None
    param: str | None = None


class Event(AnyEvent, kw_only=True):
    """Event of a responses stream, of any type; which members it has depends on the type."""

    item: Raw = ABSENT_MEMBER
    output_index: Count = None
    content_index: Count = None
    summary_index: Count = None
    delta: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: Arguments = None
    input: str | None = None
    logprobs: list[Logprob] | None = None
    annotation: Raw = ABSENT_MEMBER
    part: ContentPart | None = None


class StreamedItem(Struct):
    """Output item in an event, with the fields that the stream decoder needs."""

    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    namespace: str | None = None
    phase: str | None = None


class PlainDelta(Struct):
    """Delta of a text, of arguments or of a summary: most events are one of these."""

    delta: str
    output_index: int
    content_index: int = 0
    summary_index: Annotated[int, Meta(ge=0, lt=2**31)] = 0
    logprobs: list[Logprob] | None = None


TEXT_DELTA, ARGUMENTS_DELTA, SUMMARY_DELTA = PLAIN_HEADS = (
    b"event: response.output_text.delta\ndata: ",
    b"event: response.function_call_arguments.delta\ndata: ",
    b"event: response.reasoning_summary_text.delta\ndata: ",
)
PLAIN_DECODER = msgspec.json.Decoder(PlainDelta)
EVENT_DECODER = msgspec.json.Decoder(Event)
ITEM_DECODER = msgspec.json.Decoder(StreamedItem)
HEAD_DECODER = msgspec.json.Decoder(Head)
RESPONSE_DECODER = msgspec.json.Decoder(ProviderResponse)


def stated_error(name: bytes, event: AnyEvent) -> UmgError | None:
    """Return the error of an `error` event, with members at the top level or in `error`; None for any other event."""
    if event.type == "error" or (event.type is None and (name == b"error" or is_error(event.error))):
        if is_error(event.error):
            return failure(as_error(msgspec.json.decode(event.error)))
        return failure(ProviderError(message=event.message or "", param=event.param or "", code=event.code))
    return None


IGNORED_EVENTS = frozenset(
    {
        *("keepalive", "response.audio.done", "response.audio.transcript.done"),
        *("response.reasoning_summary_part.added", "response.reasoning_summary_part.done"),
        *("response.web_search_call.in_progress", "response.web_search_call.completed"),
        *("response.file_search_call.in_progress", "response.file_search_call.completed"),
        *("response.code_interpreter_call.in_progress", "response.code_interpreter_call.completed"),
        *("response.code_interpreter_call_code.delta", "response.code_interpreter_call_code.done"),
        *("response.image_generation_call.in_progress", "response.image_generation_call.generating"),
        "response.image_generation_call.completed",
    }
)
"""Events without content, and end events of content that was already sent in deltas."""
