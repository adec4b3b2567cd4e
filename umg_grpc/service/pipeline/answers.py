"""Accounting and storage of an answer: its usage, its reasoning, and the response or thread that it belongs to."""

import asyncio
import re
import secrets
import time
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.errors import Failure, UmgError
from umg_grpc.service.conversations.call_ids import CallIds
from umg_grpc.service.conversations.reasoning_store import ReasoningStore
from umg_grpc.service.conversations.stored_responses import Continued, Conversations, ResponseOrigin, new_response_id
from umg_grpc.service.conversations.threads import Thread, Threads
from umg_grpc.service.pipeline.generation_encoder import GenerationAttempt, GenerationCall
from umg_grpc.tokens import TokenCounter
from umg_grpc.upstream.http.decoding import guarded
from umg_grpc.upstream.round_budget import RoundBudget
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS, stores_by_default
from umg_grpc.wire.core.aggregate import AnswerAggregator, FrameAggregator, StreamAggregator, read_answer
from umg_grpc.wire.core.numbers import count
from umg_grpc.wire.core.stream_memory import Budget
from umg_grpc.wire.request_notes import RequestNotes
from umg_grpc.wire.text_format import BIG_BYTES

ESTIMATED_BYTES = 128 * 2**10  # of the frames or events of a stream that are kept only to estimate its usage
SAMPLE_BYTES, SAMPLE_CHARACTERS = 16 * 2**10, 2048
"""Maximum sample of an interrupted answer and of its prompt: its usage is estimated in less than a millisecond."""
BYTES_A_TOKEN = 256  # estimated bytes of frames for a token: each delta has one token or a few
MAX_HELD_BYTES = 2**20
"""Maximum size of the messages after the end of an answer: normally only its usage follows."""
MANY_BYTES = 32 * 2**10
"""Maximum size of frames or of an answer to process in the event loop (about 1 ms); more is processed in a thread."""

HEADER_NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)

logger: FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Memory:
    """Stores of the gateway that live longer than a call; None for a disabled one."""

    conversations: Conversations | None = None
    threads: Threads | None = None
    reasoning: ReasoningStore | None = None
    budget: Budget = field(default_factory=Budget)
    """Memory of the streamed answers in flight that are stored at their end."""
    abandoned: RoundBudget = field(default_factory=partial(RoundBudget, 1))
    """Limit of usage estimates in one round of the event loop, for when many callers cancel at once."""

    @property
    def stored_responses(self) -> Conversations:
        """Stored responses. Raises UmgError(OBJECT_NOT_FOUND) if the operator disabled them."""
        if self.conversations is None:
            message = "this gateway stores no responses; send the whole conversation"
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message)
        return self.conversations


def _compares_requests(request: pb.GenerateRequest, notes: RequestNotes) -> bool:
    """Return whether the provider compares the request with earlier ones, which the caller names by the ids of their
    answers.
    """
    return bool(request.prompt_cache_options_json) or "diagnostics" in notes.uncarried


def _has_container(request: pb.GenerateRequest, notes: RequestNotes) -> bool:
    """Return whether the provider may run its own tools in a container, which the caller names later."""
    return "container" in notes.indispensable or any(tool.HasField("opaque") for tool in request.tools)


class Answer:
    """Answer of one channel to a call: completes it for the caller, and stores it."""

    def __init__(self, admitted: GenerationCall, attempt: GenerationAttempt, memory: Memory) -> None:
        self._admitted = admitted
        self._attempt = attempt
        self._memory = memory
        self._too_large = False  # to be stored
        self._owner = admitted.call.caller.key_id
        self._face = FORMATS.get(admitted.format)
        self._passthrough = False  # whether the provider's own body goes to the caller
        request, notes = admitted.request, admitted.notes
        store = request.store if request.HasField("store") else stores_by_default(admitted.format)
        self._stores_response = memory.conversations is not None and store
        self._thread = admitted.continued if isinstance(admitted.continued, Thread) else None
        self._may_store_reasoning = memory.reasoning is not None and bool(admitted.full_request.tools)
        # Mark of reasoning that clients do not send back; b"" where the reasoning is not stored.
        self._reasoning_mark = self._face.unreturned_reasoning if self._may_store_reasoning and self._face else b""
        self._may_be_stripped = False  # whether the provider's own body has reasoning that clients do not send back
        # Objects that a caller of the provider's own format may name later: stored items, generated audio and reasoning
        # states, whose channel matters if several channels serve the model.
        names_objects = admitted.several or "audio" in request.output_modalities
        names_objects = names_objects or _compares_requests(request, notes) or _has_container(request, notes)
        self._records_ids = memory.reasoning is not None and (
            names_objects or (self._stores_response and stores_by_default(admitted.format))
        )

    @property
    def _stores_answer(self) -> bool:
        """Whether the answer is stored for a call that continues it."""
        return not self._too_large and (self._stores_response or self._thread is not None)

    @property
    def _stores_reasoning(self) -> bool:
        """Whether the reasoning of the answer is stored for the call that returns its tool results."""
        return not self._too_large and self._may_store_reasoning and (not self._passthrough or self._may_be_stripped)

    def _detect_reasoning(self, frames: bytes) -> None:
        """Note whether a body or frames passed through have reasoning that clients drop."""
        if self._reasoning_mark and self._reasoning_mark in frames:
            self._may_be_stripped = True

    async def whole(self, response: pb.GenerateResponse) -> pb.GenerateResponse:
        """Complete the answer and store it as required. Return it."""
        self._passthrough = response.HasField("source")
        self._complete(response)
        _set_complete_time(response)
        if self._passthrough:
            self._detect_reasoning(response.source.body)
        else:
            self._complete_calls(response)
            self._report_unsupported(response)
        call = self._admitted.call
        call.list_dropped(response)
        if response.HasField("usage"):
            call.usage = response.usage
        if call.usage is None or self._retains:
            read = await self._read(response)
            if call.usage is None:
                call.usage = await self._estimate(read)
                if not self._passthrough:  # the body of a passthrough stays unchanged
                    response.usage.CopyFrom(call.usage)
            await self._retain(read, streamed=False)
        return response

    def _complete_calls(self, response: pb.GenerateResponse) -> None:
        """Set the ids that are missing in the tool calls of the response."""
        if self._admitted.request.face_hints.legacy_functions:
            return  # legacy function calls have no ids
        for candidate in response.candidates:
            ids = CallIds()
            for part in candidate.message.parts:
                ids.complete(part)

    def _report_unsupported(self, response: pb.GenerateResponse) -> None:
        """List in `x-umg-dropped` the parts of the answer that the caller's format does not support."""
        face, report = self._face, self._attempt.call.report
        if face is None:
            return
        parts = [part for candidate in response.candidates for part in candidate.message.parts]
        if unsupported := [part for part in parts if not face.can_express(part)]:
            for part in unsupported:
                report.drop(f"answer.{_header_name(part)}")
            self._admitted.call.headers["x-umg-dropped"] = report.header()

    async def _read(self, response: pb.GenerateResponse) -> pb.GenerateResponse:
        """Return the response with its candidates, which after passthrough are decoded from the provider's body;
        without candidates if that fails.
        """
        if not self._passthrough:
            return response
        text_format, request = FORMATS[response.source.format], self._attempt.request
        try:
            if len(response.source.body) < BIG_BYTES:
                return guarded(read_answer, text_format, request, response)
            return await asyncio.to_thread(guarded, read_answer, text_format, request, response)
        except UmgError as error:
            logger.warning("an answer that is passed on cannot be read", channel=self._attempt.channel, why=str(error))
            return response

    def _complete(self, head: pb.GenerateResponse | pb.GenerationStarted) -> None:
        """Set the model id of the caller and the missing fields that every format needs.

        The id of a response that can be retrieved is random, so that it cannot be guessed. A provider's id is kept only
        where the passed-through body shows it.
        """
        head.model = self._admitted.request.model
        if stores_by_default(self._admitted.format) and not self._passthrough:
            head.response_id = new_response_id()
        elif self._thread is not None and not self._passthrough:
            head.response_id = f"msg_{secrets.token_hex(16)}"
        elif not head.response_id:
            head.response_id = f"gen-{secrets.token_hex(16)}"
        if not head.HasField("create_time"):
            head.create_time.seconds = int(time.time())
        if self._memory.conversations is None:
            head.stored = False

    async def _estimate(self, response: pb.GenerateResponse, sample: int | None = None) -> pb.Usage:
        """Count the usage of the answer, for a provider that did not report it. `sample`: characters of each text from
        which the usage is estimated: hundreds of callers may cancel at once.
        """
        model, request = self._admitted.model, self._attempt.request
        if request.thread.previous_response_id:
            request = self._admitted.full_request
        counter = TokenCounter(model.family, model.tokenizer)
        is_large = sample is None and (counter.needs_thread(request) or response.ByteSize() > MANY_BYTES)
        if is_large or counter.is_slow:
            return await asyncio.to_thread(counter.estimate_response, request, response, sample)
        return counter.estimate_response(request, response, sample)

    @property
    def _retains(self) -> bool:
        """Whether the gateway stores anything of the answer: the answer itself, its reasoning or its ids."""
        return self._stores_answer or self._stores_reasoning or (not self._too_large and self._has_provider_ids)

    @property
    def _has_provider_ids(self) -> bool:
        """Whether the answer contains ids of the provider that the caller may send back later."""
        return self._records_ids and (self._passthrough or stores_by_default(self._admitted.format))

    async def _retain(self, response: pb.GenerateResponse, *, streamed: bool) -> None:
        """Store the ids, the reasoning and the answer as required. `response` is decoded, also after passthrough (see
        `_read`).
        """
        if self._has_provider_ids and self._memory.reasoning is not None:
            for candidate in response.candidates:
                self._memory.reasoning.own(self._owner, self._attempt.channel, candidate, response.response_id)
        if self._stores_reasoning:
            await self._store_reasoning(response)
        if self._stores_answer:
            await self._store(response, streamed=streamed)

    async def _store_reasoning(self, response: pb.GenerateResponse) -> None:
        """Store the reasoning before tool calls where every process finds it."""
        if self._memory.reasoning is not None:
            for candidate in response.candidates:
                self._memory.reasoning.remember(self._owner, self._attempt.channel, candidate.message.parts)
            await self._memory.reasoning.flushed()

    async def _store(self, response: pb.GenerateResponse, *, streamed: bool) -> None:
        """Store the answer as a response or in its thread."""
        continued, channel = self._admitted.continued, self._attempt.channel
        if self._memory.threads is not None and self._thread is not None:
            known = response.response_id if self._passthrough and self._attempt.request.HasField("thread") else ""
            await self._memory.threads.keep(self._owner, self._thread, response, ResponseOrigin(channel, known))
        if self._memory.conversations is not None and self._stores_response:
            await self._memory.conversations.keep(
                self._owner,
                self._admitted.request,
                response,
                channel=channel,
                streamed=streamed,
                continued=continued if isinstance(continued, Continued) else None,
                upstream_response_id=response.response_id if self._passthrough else "",
            )


class StreamedAnswer(Answer):
    """Context manager of one stream, whose messages it completes and stores on their way to the caller.

    The message that ends the answer is held back until the stream has ended and the answer is stored: a caller that
    continues it immediately, on any process, finds it.
    """

    def __init__(self, admitted: GenerationCall, attempt: GenerationAttempt, memory: Memory) -> None:
        super().__init__(admitted, attempt, memory)
        self._aggregator: AnswerAggregator | None = None
        self._unfinished = max(1, admitted.request.candidate_count)
        self._call_ids: dict[int, CallIds] = {}  # by candidate
        self._held: list[pb.StreamGenerateResponse] = []
        self._held_bytes = 0
        self._reservation = memory.budget.reservation()

    def feed(self, message: pb.StreamGenerateResponse) -> bool:
        """Complete the message. Return whether to send it now; otherwise it is held back. Raise
        UmgError(UPSTREAM_FAILED) for a stream with too much data after its end.
        """
        if self._aggregator is None:
            self._passthrough = bool(message.source_frames)
            request = self._attempt.request
            limit = None if self._stores_answer or self._may_store_reasoning or self._records_ids else ESTIMATED_BYTES
            self._aggregator = (
                FrameAggregator(FORMATS[request.source.format], request, limit)
                if self._passthrough
                else StreamAggregator(limit)
            )
        if message.events:  # cheaper than a loop over no events
            for event in message.events:
                self._observe(event)
        self._aggregator.feed(message)
        if not self._reservation.hold(self._aggregator.retained_bytes):
            self._stop_keeping(self._aggregator)
        if self._passthrough and not self._may_be_stripped:
            self._detect_reasoning(message.source_frames)
        if self._held or (self._unfinished <= 0 and self._delays_end):
            self._held.append(message)
            self._held_bytes += message.ByteSize()
            if self._held_bytes > MAX_HELD_BYTES:
                text = "the provider goes on after the end of its answer"
                raise UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, text).with_failure(Failure.AMBIGUOUS)
            return False
        return True

    def _stop_keeping(self, aggregator: AnswerAggregator) -> None:
        """Stop keeping the answer: it is too large, alone or together with the other answers in flight."""
        self._too_large = True
        aggregator.limit(ESTIMATED_BYTES)
        logger.warning(
            "a large answer is not stored", channel=self._attempt.channel, bytes=self._memory.budget.reserved
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Release the memory reserved for the answer."""
        self._reservation.release()

    async def close(self) -> list[pb.StreamGenerateResponse]:
        """Store the answer and return the messages held back; called when the stream has ended completely."""
        call = self._admitted.call
        if self._aggregator is None:
            return []
        if call.usage is None or self._retains:
            response = await _aggregate(self._aggregator)
            if call.usage is None:
                call.usage = _scale(await self._estimate(response), self._aggregator)
                if self._held and not self._passthrough:
                    self._insert_usage(call.usage)
            await self._retain(response, streamed=True)
        return self._held

    async def break_off(self) -> None:
        """Estimate the usage of a stream that ended early, by an error or a cancellation. The usage that a provider
        reports before the end of a stream is only that of its start.
        """
        call = self._admitted.call
        if self._aggregator is None or (call.usage is not None and self._unfinished <= 0):
            return
        # lets the connections of all answers cancelled in this round be closed before the second estimate
        await self._memory.abandoned.take(1)
        self._aggregator.limit(SAMPLE_BYTES)
        usage = _scale(await self._estimate(self._aggregator.response(), SAMPLE_CHARACTERS), self._aggregator)
        if (reported := call.usage) is not None:
            output = max(reported.output_tokens, usage.output_tokens)
            reasoning = max(reported.reasoning_tokens, usage.reasoning_tokens)
            usage.CopyFrom(reported)
            usage.MergeFrom(pb.Usage(output_tokens=output, reasoning_tokens=reasoning, estimated=True))
        call.usage = usage

    @property
    def _delays_end(self) -> bool:
        """Whether the last message of the answer is held back until the answer is stored or its usage estimated."""
        return (
            self._stores_answer
            or self._stores_reasoning
            or (not self._passthrough and self._admitted.call.usage is None)
        )

    def _observe(self, event: pb.GenerateEvent) -> None:
        """Record the usage, the end, the head and the tool call ids that an event contains."""
        if event.HasField("usage"):
            self._admitted.call.usage = event.usage
        elif event.HasField("finished"):
            self._unfinished -= 1
            _set_complete_time(event.finished)
        elif event.HasField("started"):
            self._complete(event.started)
            self._admitted.call.list_dropped(event.started)
        elif event.HasField("part_started") and not self._admitted.request.face_hints.legacy_functions:
            self._call_ids.setdefault(event.candidate_index, CallIds()).complete(event.part_started)

    def _insert_usage(self, usage: pb.Usage) -> None:
        """Insert the usage before the end of the answer, as providers do."""
        first = self._held[0]
        events = list(first.events)
        place = next((at for at, event in enumerate(events) if event.HasField("finished")), len(events))
        first = pb.StreamGenerateResponse(events=[*events[:place], pb.GenerateEvent(usage=usage), *events[place:]])
        self._held[0] = first


def _set_complete_time(ended: pb.GenerateResponse | pb.CandidateFinished) -> None:
    """Set the completion time if the provider did not."""
    if not ended.HasField("complete_time"):
        ended.complete_time.seconds = int(time.time())


def _header_name(part: pb.Part) -> str:
    """Return the kind of the part as a word for a header; the provider's name for it if there is one."""
    kind = part.WhichOneof("kind") or "part"
    match kind:
        case "opaque":
            name = part.opaque.type
        case "server_tool_call":
            name = part.server_tool_call.name
        case "server_tool_result":
            name = part.server_tool_result.name
        case "media":
            name = pb.MediaKind.Name(part.media.kind).removeprefix("MEDIA_KIND_").lower()
        case _:  # the other kinds have no name of the provider
            name = kind
    return name if HEADER_NAME.fullmatch(name) else kind


def _scale(usage: pb.Usage, aggregator: AnswerAggregator) -> pb.Usage:
    """Scale the usage estimated from the kept share of an answer to the whole answer."""
    if (share := aggregator.share) > 1:
        usage.output_tokens = count(round(usage.output_tokens * share))
        usage.reasoning_tokens = count(round(usage.reasoning_tokens * share))
        if not usage.output_tokens:  # only the head of the answer was kept
            usage.output_tokens = count(round(aggregator.retained_bytes * share / BYTES_A_TOKEN))
    return usage


async def _aggregate(aggregator: AnswerAggregator) -> pb.GenerateResponse:
    """Return the whole answer of a stream; an empty one if its frames cannot be decoded, since the caller has already
    received the answer.
    """
    try:
        if aggregator.retained_bytes > MANY_BYTES:
            return await asyncio.to_thread(guarded, aggregator.response)
        return guarded(aggregator.response)
    except UmgError:
        return pb.GenerateResponse()
