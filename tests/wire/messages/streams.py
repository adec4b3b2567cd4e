"""Streams through the codec."""

from collections.abc import Iterable

from tests.wire.accumulate import accumulate
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES

ANSWERED = pb.GenerateRequest(model="m")


def decoded(
    frames: Iterable[bytes], request: pb.GenerateRequest = ANSWERED, *, pass_: bool = False
) -> list[pb.StreamGenerateResponse]:
    decoder = MESSAGES.stream_decoder(request, pass_)
    messages = [message for data in frames if (message := decoder.feed(data)) is not None]
    last = decoder.close()
    return [*messages, last] if last is not None else messages


def encoded(messages: Iterable[pb.StreamGenerateResponse], request: pb.GenerateRequest = ANSWERED) -> bytes:
    encoder = MESSAGES.stream_encoder(request)
    return b"".join([*(encoder.feed(message) for message in messages), encoder.close()])


def events_of(messages: Iterable[pb.StreamGenerateResponse]) -> list[pb.GenerateEvent]:
    return [event for message in messages for event in message.events]


def kinds(messages: Iterable[pb.StreamGenerateResponse]) -> list[str | None]:
    return [event.WhichOneof("kind") for event in events_of(messages)]


def whole(messages: Iterable[pb.StreamGenerateResponse]) -> pb.GenerateResponse:
    """The answer that a stream makes, with all that its last event says."""
    events, kept = events_of(messages), list[pb.GenerateEvent]()
    for event in events:
        if event.WhichOneof("kind") == "part_updated":  # the provider's own call, whose start knew less
            started = next(
                begun for begun in kept if begun.HasField("part_started") and begun.part_index == event.part_index
            )
            started.part_started.CopyFrom(event.part_updated)
        else:
            copy = pb.GenerateEvent()
            copy.CopyFrom(event)
            kept.append(copy)
    response = accumulate([pb.StreamGenerateResponse(events=kept)])
    for event in events:
        if event.HasField("finished"):
            candidate = response.candidates[event.candidate_index]
            candidate.stop_sequence = event.finished.stop_sequence
            candidate.finish_message = event.finished.finish_message
            candidate.refusal_category = event.finished.refusal_category
    return response
