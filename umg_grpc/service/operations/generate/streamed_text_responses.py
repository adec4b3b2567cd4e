"""Streamed text responses: completes each message for the caller, and stores the response at the end of the stream."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial

import msgspec
import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.conversations.tool_call_ids import NewCallIds, PassedCallIds
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.operations.generate.text_request_encoder import GenerationAttempt
from umg_grpc.service.operations.generate.text_response_finishing import MANY_BYTES, ResponseCompletion, with_reported
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.upstream.http.response_decoding import guarded
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.finish_reason_conversion import unknown_word
from umg_grpc.wire.core.lenient_number_reading import count
from umg_grpc.wire.core.stream_aggregator import FrameAggregator, ResponseAggregator, StreamAggregator
from umg_grpc.wire.core.stream_memory_limits import FREE_BYTES, MemoryReservation

ESTIMATED_BYTES = 128 * 2**10  # of the frames or events of a stream that are kept only to estimate its usage
SAMPLE_BYTES, SAMPLE_CHARACTERS = 16 * 2**10, 2048
"""Maximum bytes of a response, and characters of a text, counted for an estimate, in less than a millisecond."""
STREAM_BREAKS = (UmgError, asyncio.CancelledError, GeneratorExit)
"""Errors after which the usage of an incomplete stream is estimated."""
BYTES_A_TOKEN = 256  # estimated bytes of frames for a token: each delta has one token or a few
MAX_HELD_BYTES = 2**20
"""Maximum bytes of the messages after the end of a response, normally its usage alone; a stream with more fails."""

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class StreamedText(msgspec.Struct, eq=False):
    """State of one streamed response: completes its messages for the caller, and stores the response at the end. The
    usage of a stream that breaks off is estimated. The last message is held back until the response is stored: a caller
    that continues it immediately, on any process, finds it.
    """

    _completion: ResponseCompletion  # of the current attempt
    _attempts: FailoverLoop[GenerationAttempt]
    _memory: ConversationStores
    _unfinished: int  # number of candidates that have not ended
    relay: Callable[[bytes], bool] | None = None
    """Function that sends the caller passed-through frames without a message; None if each needs one."""
    _reservation: MemoryReservation | None = None  # memory of a large response that is kept
    _aggregator: ResponseAggregator | None = None  # set by the first message
    _is_ended: bool = False  # whether the provider's stream has ended completely
    _call_ids: NewCallIds | None = None  # set by the first call
    _passed_call_ids: PassedCallIds | None = None
    _held: list[pb.StreamGenerateResponse] = []
    _held_bytes: int = 0

    def feed(self, message: pb.StreamGenerateResponse) -> bool:
        completion, aggregator = self._completion, self._aggregator or self._begin(message)
        if self._passed_call_ids is not None:
            self._passed_call_ids.replace_in(message)
        if (span := self._attempts.attempt.span) is not None:
            span.read_message(message)
        called = False
        for event in message.events or ():  # cheaper than a loop over no events
            if not event.text_delta:  # by far the most frequent, with nothing to complete
                called = self._complete(event) or called
        aggregator.feed(message)
        if aggregator.retained_bytes > FREE_BYTES:
            self._reserve(aggregator)
        if called:  # reasoning is stored by the ids of calls
            completion.find_reasoning(aggregator.frames)
        is_end = self._unfinished <= 0 and (  # after it the response is stored, or its usage estimated
            completion.stores_response
            or completion.thread is not None
            or completion.stores_reasoning
            or (not completion.passthrough and _is_incomplete(completion.admitted.call.facts.usage))
        )
        if not is_end and not self._held:
            return True
        self._hold_back(message)
        return False

    def _complete(self, event: pb.GenerateEvent) -> bool:
        """Complete an event for the caller, and record its facts. Return whether a candidate ended by calling tools."""
        completion = self._completion
        admitted, kind = completion.admitted, event.WhichOneof("kind")
        if kind == "usage":
            completion.note_usage(event.usage)
        elif kind == "finished":
            self._unfinished -= 1
            if word := event.finished.provider_reason:
                admitted.call.facts.finish_reason = unknown_word(word)
            if not event.finished.HasField("complete_time"):
                event.finished.complete_time.seconds = int(time.time())
            return event.finished.finish_reason == pb.FINISH_REASON_TOOL_CALLS
        elif kind == "started":
            completion.complete(event.started)
            admitted.call.list_dropped(event.started)
        elif kind == "part_started" and not admitted.request.face_hints.legacy_functions:
            ids = self._call_ids = self._call_ids or NewCallIds(admitted.full_request)
            ids.complete(event.part_started, event.candidate_index)
        return False

    def _begin(self, first: pb.StreamGenerateResponse) -> ResponseAggregator:
        """Decide by the first message which parts of the response are kept. Return the aggregator for them."""
        completion, attempt = self._completion, self._attempts.attempt
        request = attempt.request
        max_bytes = None if completion.begin(passthrough=bool(first.source_frames)) else ESTIMATED_BYTES
        if completion.passthrough:
            self._passed_call_ids = completion.passed_call_ids
            self._aggregator = frames = FrameAggregator(TEXT_FORMATS[request.source.format], request, max_bytes)
            if self.relay is not None and self._passed_call_ids is None and attempt.span is None:
                attempt.call.relay_to(partial(self._is_relayed, self.relay, frames))
        else:
            self._aggregator = StreamAggregator(max_bytes)
        return self._aggregator

    def _is_relayed(self, relay: Callable[[bytes], bool], aggregator: FrameAggregator, frames: bytes) -> bool:
        """Send frames that only continue the response. Return False, and send none, if they need a message."""
        if self._unfinished <= 0 or not relay(frames):
            return False
        aggregator.feed_frames(frames)
        if aggregator.retained_bytes > FREE_BYTES:
            self._reserve(aggregator)
        return True

    async def close(self) -> list[pb.StreamGenerateResponse]:
        self._is_ended = True
        completion, admitted = self._completion, self._completion.admitted
        call = admitted.call
        if self._aggregator is None:
            return []
        if (is_incomplete := _is_incomplete(call.facts.usage)) or completion.stores_any:
            response = await _aggregate(self._aggregator)
            if is_incomplete:
                estimated = _scale(await completion.estimate(response), self._aggregator)
                call.facts.usage = with_reported(estimated, call.facts.usage)
                if self._held and not completion.passthrough:
                    self._insert_usage(call.facts.usage)
            await completion.retain(response, streamed=True)
        if self._reservation is not None:
            self._reservation.release()
        return self._held

    async def break_off(self, messages: AsyncGenerator[pb.StreamGenerateResponse, None], error: BaseException) -> None:
        try:
            await messages.aclose()
            if isinstance(error, STREAM_BREAKS) and self._attempts.output_sent and not self._is_ended:
                await self._estimate_usage()
        finally:
            if self._reservation is not None:
                self._reservation.release()

    def _hold_back(self, message: pb.StreamGenerateResponse) -> None:
        self._held.append(message)
        self._held_bytes += message.ByteSize()
        if self._held_bytes > MAX_HELD_BYTES:
            text = "the provider goes on after the end of its response"
            raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, text).with_failure(Failure.AMBIGUOUS)

    def _reserve(self, aggregator: ResponseAggregator) -> None:
        """Reserve memory for a large response that is being collected."""
        self._reservation = self._reservation or MemoryReservation(self._memory.budget)
        if self._reservation.hold(aggregator.retained_bytes):
            return
        self._completion.stop_storing()
        aggregator.limit(ESTIMATED_BYTES)
        channel = self._attempts.attempt.channel
        logger.warning("a large response is not stored", channel=channel, bytes=self._memory.budget.reserved)

    async def _estimate_usage(self) -> None:
        """Estimate the usage of a stream that broke off; a usage reported before the end counts too little."""
        call, aggregator = self._completion.admitted.call, self._aggregator
        if aggregator is None or (call.facts.usage is not None and self._unfinished <= 0):
            return
        # lets the connections of all responses cancelled in this round be closed before the second estimate
        await self._memory.abandoned.take(1)
        aggregator.limit(SAMPLE_BYTES)
        usage = _scale(await self._completion.estimate(aggregator.response(), SAMPLE_CHARACTERS), aggregator)
        call.facts.usage = with_reported(usage, call.facts.usage)

    def _insert_usage(self, usage: pb.Usage) -> None:
        first = self._held[0]
        events = list(first.events)
        place = next((at for at, event in enumerate(events) if event.HasField("finished")), len(events))
        first = pb.StreamGenerateResponse(events=[*events[:place], pb.GenerateEvent(usage=usage), *events[place:]])
        self._held[0] = first


async def estimate_seen(completion: ResponseCompletion, seen: ResponseAggregator) -> None:
    """Record the usage of a response that ends before the provider's stream, from the part that was received."""
    response = seen.response()
    reported = response.usage if response.HasField("usage") else None
    completion.note_usage(with_reported(_scale(await completion.estimate(response), seen), reported))


def _is_incomplete(usage: pb.Usage | None) -> bool:
    return usage is None or usage.estimated


def _scale(usage: pb.Usage, aggregator: ResponseAggregator) -> pb.Usage:
    """Return the usage of the whole response: that of the collected part, scaled by the sizes of whole and part."""
    if (share := aggregator.share) > 1:
        usage.output_tokens = count(round(usage.output_tokens * share))
        usage.reasoning_tokens = count(round(usage.reasoning_tokens * share))
        if not usage.output_tokens:  # only the head of the response was kept
            usage.output_tokens = count(round(aggregator.retained_bytes * share / BYTES_A_TOKEN))
    return usage


async def _aggregate(aggregator: ResponseAggregator) -> pb.GenerateResponse:
    """Return the response that was collected from its stream. It is empty if its frames cannot be decoded, which is no
    error of the call, since the caller has received them.
    """
    try:
        if aggregator.retained_bytes > MANY_BYTES:
            return await asyncio.to_thread(guarded, aggregator.response)
        return guarded(aggregator.response)
    except UmgError:
        return pb.GenerateResponse()
