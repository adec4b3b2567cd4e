"""Streams with the summary of a conversation: responses to a conversation that the same call has compacted, whose first
part is the summary, and the summary alone.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.service.operations.generate.streamed_text_responses import MAX_HELD_BYTES, SAMPLE_CHARACTERS, StreamedText
from umg_grpc.service.operations.generate.text_request_encoder import GenerationAttempt
from umg_grpc.service.operations.generate.text_response_finishing import ResponseCompletion, with_reported
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.v1 import pb
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.stream_aggregator import StreamAggregator

WITHOUT_PART = frozenset({"started", "usage", "finished"})
"""Events of a stream that belong to no part of the message."""


class CompactedStream(msgspec.Struct, eq=False):
    """Streamed response to a conversation that the same call has compacted. Its first part is the summary."""

    _response: StreamedText
    _block: Sequence[pb.GenerateEvent]
    _usage: pb.Usage  # of the summary

    def feed(self, message: pb.StreamGenerateResponse) -> bool:
        events = list[pb.GenerateEvent]()
        for event in message.events:
            kind = event.WhichOneof("kind")
            if kind == "usage":
                event.usage.compaction.CopyFrom(self._usage)
            elif not event.candidate_index and kind not in WITHOUT_PART:
                event.part_index += 1
            events.append(event)
            if kind == "started":
                events += self._block
        if len(events) != len(message.events):
            sent = pb.StreamGenerateResponse(events=events)
            message.ClearField("events")
            message.MergeFrom(sent)
        return self._response.feed(message)

    async def close(self) -> Sequence[pb.StreamGenerateResponse]:
        held = await self._response.close()
        for message in held:
            for event in message.events:
                if event.HasField("usage"):  # it may have been estimated
                    event.usage.compaction.CopyFrom(self._usage)
        return held

    async def break_off(self, messages: AsyncGenerator[pb.StreamGenerateResponse, None], error: BaseException) -> None:
        await self._response.break_off(messages, error)


class StreamedSummary(msgspec.Struct, eq=False):
    """State of a streamed summary. The caller gets all of it at the end; until then another channel can be tried."""

    _completion: ResponseCompletion  # of the current attempt
    _attempts: FailoverLoop[GenerationAttempt]
    _complete: Callable[[GenerationAttempt, ResponseCompletion, pb.GenerateResponse], Awaitable[None]]
    _aggregator: StreamAggregator = msgspec.field(default_factory=lambda: StreamAggregator(MAX_HELD_BYTES))

    def feed(self, message: pb.StreamGenerateResponse) -> bool:
        if (span := self._attempts.attempt.span) is not None:
            span.read_message(message)
        self._aggregator.feed(message)
        return False

    async def close(self) -> Sequence[pb.StreamGenerateResponse]:
        completion, response, attempt = self._completion, self._aggregator.response(), self._attempts.attempt
        await self._complete(attempt, completion, response)
        if attempt.is_followed:
            return []
        if completion.stores_any:
            await completion.retain(response, streamed=True)
        return [response_to_events(response)]

    async def break_off(self, messages: AsyncGenerator[pb.StreamGenerateResponse, None], error: BaseException) -> None:
        await messages.aclose()
        if not isinstance(error, UmgError) and self._aggregator.retained_bytes:
            facts = self._completion.admitted.call.facts
            usage = await self._completion.estimate(self._aggregator.response(), SAMPLE_CHARACTERS)
            facts.usage = with_reported(usage, facts.usage)
