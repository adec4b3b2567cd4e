"""What becomes of an answer beside going to its caller: its cost, what its model thought, and its storage."""

import asyncio
import re
import secrets
import time
from dataclasses import dataclass

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.errors import UmgError
from umg_grpc.service.attempts import Asked, Attempt
from umg_grpc.service.call_ids import CallIds
from umg_grpc.service.conversations import Continued, Conversations, Place, new_response_id
from umg_grpc.service.threads import Thread, Threads
from umg_grpc.service.vault import Vault
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire import FORMATS
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.gather import AnswerGatherer, FrameGatherer, Gatherer, read_answer

ESTIMATED_BYTES = 128 * 2**10  # of the frames of a passed stream that only its usage is told from
MANY_BYTES = 32 * 2**10  # of frames to read or of an answer to count: a millisecond or so; more is done in a thread

NAME = re.compile(r"[\w.-]{1,64}", re.ASCII)

logger: FilteringBoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True)
class Memory:
    """What the gateway keeps between calls; None for what it does not."""

    conversations: Conversations | None = None
    threads: Threads | None = None
    reasoning: Vault | None = None


# Where chat says what was thought: an extension, which clients drop and some providers of the format want back.
CHAT_THOUGHTS = b'"reasoning_content"'


class Answer:
    """The answer of one channel."""

    def __init__(self, asked: Asked, attempt: Attempt, memory: Memory) -> None:
        self._asked = asked
        self._attempt = attempt
        self._memory = memory
        self._owner = asked.call.caller.key_id
        self._passed = False  # whether the provider's own words go to the caller
        request = asked.request
        store = request.store if request.HasField("store") else asked.format == "responses"
        self._stores = memory.conversations is not None and store
        self._thread = asked.continued if isinstance(asked.continued, Thread) else None
        self._remembers = memory.reasoning is not None and bool(asked.whole.tools)
        self._may_be_stripped = False  # whether the provider's own words have thoughts that clients do not bring back
        # What a caller of the provider's own format names later: items that the provider keeps, sound that it made, and
        # states, whose maker matters where there are several.
        names = not attempt.alone or "audio" in request.output_modalities
        self._owns = memory.reasoning is not None and (names or (self._stores and asked.format == "responses"))

    @property
    def _keeps(self) -> bool:
        """Whether the answer is kept, for a call that continues it."""
        return self._stores or self._thread is not None

    @property
    def _is_to_be_remembered(self) -> bool:
        return self._remembers and (not self._passed or self._may_be_stripped)

    def _look_for_thoughts(self, words: bytes) -> None:
        """In what is passed on."""
        if self._remembers and self._asked.format == "chat" and CHAT_THOUGHTS in words:
            self._may_be_stripped = True

    async def whole(self, response: pb.GenerateResponse) -> pb.GenerateResponse:
        """The answer, complete; what is to be kept of it is."""
        self._passed = response.HasField("source")
        self._complete(response)
        _note_end(response)
        if self._passed:
            self._look_for_thoughts(response.source.body)
        else:
            self._complete_calls(response)
            self._report_unsaid(response)
        call = self._asked.call
        if response.HasField("usage"):
            call.usage = response.usage
        if call.usage is None or self._retains:
            read = await self._read(response)
            if call.usage is None:
                call.usage = await self._estimate(read)
                if not self._passed:  # else its body stays what it is
                    response.usage.CopyFrom(call.usage)
            await self._retain(read, streamed=False)
        return response

    def _complete_calls(self, response: pb.GenerateResponse) -> None:
        if self._asked.request.legacy_functions:
            return  # whose calls have no ids
        for candidate in response.candidates:
            ids = CallIds()
            for part in candidate.message.parts:
                ids.complete(part)

    def _report_unsaid(self, response: pb.GenerateResponse) -> None:
        """Names in `x-umg-dropped` what of the answer the caller's format has no words for."""
        face, report = FORMATS.get(self._asked.format), self._attempt.call.report
        if face is None:
            return
        parts = [part for candidate in response.candidates for part in candidate.message.parts]
        if unsaid := [part for part in parts if not face.shows(part)]:
            for part in unsaid:
                report.drop(f"answer.{_name_of(part)}")
            self._asked.call.headers["x-umg-dropped"] = report.header()

    async def _read(self, response: pb.GenerateResponse) -> pb.GenerateResponse:
        """With its candidates, also where it is passed on; without where nobody but the caller can read it."""
        if not self._passed:
            return response
        text_format, request = FORMATS[response.source.format], self._attempt.request
        try:
            if len(response.source.body) < BIG_BYTES:
                return read_answer(text_format, request, response)
            return await asyncio.to_thread(read_answer, text_format, request, response)
        except UmgError as error:
            logger.warning("an answer that is passed on cannot be read", channel=self._attempt.channel, why=str(error))
            return response

    def _complete(self, head: pb.GenerateResponse | pb.GenerationStarted) -> None:
        """Fills in what the provider left out and every format needs, under the id that the caller knows the model by.

        A response that can be looked up has an id that nobody can guess: a provider's own is only good where its body
        shows it.
        """
        head.model = self._asked.request.model
        if self._asked.format == "responses" and not self._passed:
            head.response_id = new_response_id()
        elif self._thread is not None and not self._passed:
            head.response_id = f"msg_{secrets.token_hex(16)}"
        elif not head.response_id:
            head.response_id = f"gen-{secrets.token_hex(16)}"
        if not head.HasField("create_time"):
            head.create_time.seconds = int(time.time())

    async def _estimate(self, response: pb.GenerateResponse) -> pb.Usage:
        """What it cost, counted here: its provider did not say."""
        model, request = self._asked.model, self._attempt.request
        if request.thread.previous_response_id:
            request = self._asked.whole
        counter = TokenCounter(model.family, model.tokenizer)
        if counter.needs_thread(request) or response.ByteSize() > MANY_BYTES:
            return await asyncio.to_thread(counter.estimate_response, request, response)
        return counter.estimate_response(request, response)

    @property
    def _retains(self) -> bool:
        return self._keeps or self._is_to_be_remembered or (self._passed and self._owns)

    async def _retain(self, response: pb.GenerateResponse, *, streamed: bool) -> None:
        """Keeps what is to be kept of the answer, which has its candidates."""
        if self._passed and self._owns and self._memory.reasoning is not None:
            for candidate in response.candidates:
                self._memory.reasoning.own(self._owner, self._attempt.channel, candidate.message.parts)
        if self._is_to_be_remembered:
            await self._remember(response)
        if self._keeps:
            await self._keep(response, streamed=streamed)

    async def _remember(self, response: pb.GenerateResponse) -> None:
        """What was thought before tool calls, where every process finds it."""
        if self._memory.reasoning is not None:
            for candidate in response.candidates:
                self._memory.reasoning.remember(self._owner, self._attempt.channel, candidate.message.parts)
            await self._memory.reasoning.flushed()

    async def _keep(self, response: pb.GenerateResponse, *, streamed: bool) -> None:
        continued, channel = self._asked.continued, self._attempt.channel
        if self._memory.threads is not None and self._thread is not None:
            known = response.response_id if self._passed and self._attempt.request.HasField("thread") else ""
            await self._memory.threads.keep(self._owner, self._thread, response, Place(channel, known))
        if self._memory.conversations is not None and self._stores:
            await self._memory.conversations.keep(
                self._owner,
                self._asked.request,
                response,
                channel=channel,
                streamed=streamed,
                continued=continued if isinstance(continued, Continued) else None,
                upstream_response_id=response.response_id if self._passed else "",
            )


class StreamedAnswer(Answer):
    """The messages of one stream on their way to the caller.

    The one that ends the answer is held back until the stream is over and what is to be kept is: a caller who goes on
    from it at once, on whichever process, finds it.
    """

    def __init__(self, asked: Asked, attempt: Attempt, memory: Memory) -> None:
        super().__init__(asked, attempt, memory)
        self._gatherer: AnswerGatherer | None = None
        self._unfinished = max(1, asked.request.candidate_count)
        self._call_ids: dict[int, CallIds] = {}  # by candidate
        self._held: list[pb.StreamGenerateResponse] = []

    def feed(self, message: pb.StreamGenerateResponse) -> bool:
        """Whether the message, completed, goes on now; else it is held back."""
        if self._gatherer is None:
            self._passed = bool(message.source_frames)
            request = self._attempt.request
            most = None if self._keeps or self._remembers or self._owns else ESTIMATED_BYTES
            self._gatherer = (
                FrameGatherer(FORMATS[request.source.format], request, most) if self._passed else Gatherer()
            )
        if message.events:  # a loop over none costs twice as much
            for event in message.events:
                self._note(event)
        self._gatherer.feed(message)
        if self._passed and not self._may_be_stripped:
            self._look_for_thoughts(message.source_frames)
        if self._held or (self._unfinished <= 0 and self._waits):
            self._held.append(message)
            return False
        return True

    async def close(self) -> list[pb.StreamGenerateResponse]:
        """What was held back, complete; to be called when the stream is over and whole."""
        call = self._asked.call
        if self._gatherer is None:
            return []
        if call.usage is None or self._retains:
            response = await _gathered(self._gatherer)
            if call.usage is None:
                call.usage = _scaled(await self._estimate(response), self._gatherer)
                if self._held and not self._passed:
                    self._tell_usage(call.usage)
            await self._retain(response, streamed=True)
        return self._held

    async def break_off(self) -> None:
        """Settles what was generated until now; to be called when the stream ends in the middle, whoever ended it. What
        a provider says of the usage before its end is what it began with.
        """
        call = self._asked.call
        if self._gatherer is None or (call.usage is not None and self._unfinished <= 0):
            return
        usage = _scaled(await self._estimate(await _gathered(self._gatherer)), self._gatherer)
        if (told := call.usage) is not None:
            output = max(told.output_tokens, usage.output_tokens)
            reasoning = max(told.reasoning_tokens, usage.reasoning_tokens)
            usage.CopyFrom(told)
            usage.MergeFrom(pb.Usage(output_tokens=output, reasoning_tokens=reasoning, estimated=True))
        call.usage = usage

    @property
    def _waits(self) -> bool:
        """Whether the end of the answer does, for what the next call may need."""
        return self._keeps or self._is_to_be_remembered or (not self._passed and self._asked.call.usage is None)

    def _note(self, event: pb.GenerateEvent) -> None:
        """What the service itself needs of a stream."""
        if event.HasField("usage"):
            self._asked.call.usage = event.usage
        elif event.HasField("finished"):
            self._unfinished -= 1
            _note_end(event.finished)
        elif event.HasField("started"):
            self._complete(event.started)
        elif event.HasField("part_started") and not self._asked.request.legacy_functions:
            self._call_ids.setdefault(event.candidate_index, CallIds()).complete(event.part_started)

    def _tell_usage(self, usage: pb.Usage) -> None:
        """Before the end of the answer, as providers tell it."""
        first = self._held[0]
        events = list(first.events)
        place = next((at for at, event in enumerate(events) if event.HasField("finished")), len(events))
        first = pb.StreamGenerateResponse(events=[*events[:place], pb.GenerateEvent(usage=usage), *events[place:]])
        self._held[0] = first


def _note_end(ended: pb.GenerateResponse | pb.CandidateFinished) -> None:
    """Notes when the answer was complete, where its provider did not."""
    if not ended.HasField("complete_time"):
        ended.complete_time.seconds = int(time.time())


def _name_of(part: pb.Part) -> str:
    """What the part is, in a word that a header can hold; the provider's own where it has one."""
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
        case _:
            name = kind
    return name if NAME.fullmatch(name) else kind


def _scaled(usage: pb.Usage, gatherer: AnswerGatherer) -> pb.Usage:
    """The estimate of an answer, from what was kept of it."""
    if isinstance(gatherer, FrameGatherer) and (share := gatherer.share) > 1:
        usage.output_tokens = round(usage.output_tokens * share)
        usage.reasoning_tokens = round(usage.reasoning_tokens * share)
    return usage


async def _gathered(gatherer: AnswerGatherer) -> pb.GenerateResponse:
    if isinstance(gatherer, FrameGatherer) and gatherer.kept_bytes > MANY_BYTES:
        return await asyncio.to_thread(gatherer.response)
    return gatherer.response()
