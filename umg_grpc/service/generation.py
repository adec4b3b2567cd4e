"""Text generation: one request from admission to its answer."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing

from umg_grpc.errors import UmgError
from umg_grpc.inprocess import Context
from umg_grpc.routing import ANY, GENERATE, Wish
from umg_grpc.service import nearness
from umg_grpc.service.admission import Admission, Admitted
from umg_grpc.service.answers import Answer, Memory, StreamedAnswer
from umg_grpc.service.attempts import NOBODY, Asked, Attempt, Attempts, made
from umg_grpc.service.call import Call, current
from umg_grpc.service.channels import Channels
from umg_grpc.service.conversations import Continued, Conversations
from umg_grpc.service.course import Try
from umg_grpc.service.hedging import Opened, first_to_answer, open_stream, open_within
from umg_grpc.service.kept import Kept
from umg_grpc.service.nearness import Nearness
from umg_grpc.service.resilience import Resilience
from umg_grpc.service.threads import Thread, unsupported
from umg_grpc.service.validation import check
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import FORMATS
from umg_grpc.wire.report import foreign

HOLD_SECONDS = 2.0
"""How long the beginning of a stream waits for something that says more than that it begins."""
SILENT = frozenset({"started", "usage", "opaque", None})
"""Events in which nothing of the answer is."""
MESSAGES, RESPONSES = "messages", "responses"
"""The formats whose providers keep conversations."""


class GenerationServicer(rpc.GenerationServiceServicer):
    """`umg.v1.GenerationService`."""

    def __init__(
        self, channels: Channels, admission: Admission, memory: Memory, shared: Resilience, kept: Kept
    ) -> None:
        self._channels = channels
        self._admission = admission
        self._memory = memory
        self._shared = shared
        self._kept = kept
        self._nearness = Nearness()

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        """The answer that was kept, else that of the first channel that can give one."""
        asked = await self._asked(request, request, stream=False)
        try:
            place = await self._kept.place(asked.call, asked.model, "Generate", asked.request)
            if place is None:
                return await self._made(asked)
            return await place.whole(lambda: self._made(asked), pb.GenerateResponse)
        finally:
            await self._close(asked)

    async def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """The same, as it comes."""
        asked = await self._asked(request, request.request, stream=True)
        try:
            place = await self._kept.place(asked.call, asked.model, "StreamGenerate", asked.request)
            recording = await place.streamed() if place is not None else None
            if isinstance(recording, pb.StreamGenerateResponse):
                yield recording
                return
            async with aclosing(self._streamed(asked)) as messages:
                if recording is None:
                    async for message in messages:
                        yield message
                    return
                with recording:
                    async for message in messages:
                        recording.feed(message)
                        yield message
                    recording.close()
        finally:
            await self._close(asked)

    async def _close(self, asked: Asked) -> None:
        """Give back what a call of a thread has claimed, also when the call is cancelled."""
        if self._memory.threads is not None and isinstance(asked.continued, Thread):
            await asyncio.shield(self._memory.threads.close(asked.call.caller.key_id, asked.continued))

    async def _made(self, asked: Asked) -> pb.GenerateResponse:
        """The answer of the first channel that can give one."""
        attempts = await self._attempts(asked, stream=False)
        async for attempt in attempts:
            with attempts.trying(attempt) as tried:
                response = await self._first_answer(asked, attempts, tried)
                self._nearness.note(asked.beginning, tried.attempt.channel)
                return await Answer(asked, tried.attempt, self._memory).whole(response)
        raise AssertionError  # attempts end by a failure

    async def _streamed(self, asked: Asked) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Moves on to the next channel only while nothing was sent: half an answer cannot be taken back."""
        attempts = await self._attempts(asked, stream=True)
        async for attempt in attempts:
            with attempts.trying(attempt) as tried:
                early, messages = await self._first_stream(asked, attempts, tried)
                answer = StreamedAnswer(asked, tried.attempt, self._memory)
                try:
                    async with aclosing(messages):
                        for message in filter(answer.feed, early):
                            tried.begun = True
                            yield message
                        async for message in messages:
                            if answer.feed(message):
                                tried.begun = True
                                yield message
                except (UmgError, asyncio.CancelledError, GeneratorExit):
                    if tried.begun:
                        await answer.break_off()
                    raise
                self._nearness.note(asked.beginning, tried.attempt.channel)
                for message in await answer.close():
                    tried.begun = True
                    yield message
                return

    async def CountTokens(self, request: pb.CountTokensRequest, context: Context) -> pb.CountTokensResponse:
        """Counts here: no model is called, and no limit of the key is touched."""
        call = current()
        admitted = await self._admission.look(call, request, request.request, counted=True)
        counted, model = admitted.request, admitted.resolved.model
        call.model = model.id
        if counted.previous_response_id:
            counted = (await self._conversations.continue_(call.caller.key_id, counted)).request
        self._refuse_unknown_roles(counted, model.id)
        counter = TokenCounter(model.family, model.tokenizer)
        if counter.needs_thread(counted):
            return pb.CountTokensResponse(input_tokens=await asyncio.to_thread(counter.count_request, counted))
        return pb.CountTokensResponse(input_tokens=counter.count_request(counted))

    def _refuse_unknown_roles(self, counted: pb.GenerateRequest, model: str) -> None:
        """Raise UmgError(UNSUPPORTED_FIELD) for a turn that no channel of the model could be sent."""
        source, targets = counted.source, self._channels.router.targets(model)
        if any(source.format in target.channel.protocols for target in targets):
            return
        for index, message in enumerate(counted.messages):
            if not message.role and message.parts and message.parts[0].HasField("opaque"):
                at = f"messages[{index}].parts[0]"
                raise foreign(message.parts[0].opaque, source.opaque_paths.get(at, at))

    async def GetResponse(self, request: pb.GetResponseRequest, context: Context) -> pb.GetResponseResponse:
        check(request)
        found = await self._conversations.get(current().caller.key_id, request.response_id)
        return pb.GetResponseResponse(response=found)

    async def DeleteResponse(self, request: pb.DeleteResponseRequest, context: Context) -> pb.DeleteResponseResponse:
        check(request)
        await self._conversations.delete(current().caller.key_id, request.response_id)
        return pb.DeleteResponseResponse()

    async def CancelResponse(self, request: pb.CancelResponseRequest, context: Context) -> pb.CancelResponseResponse:
        check(request)
        await self._conversations.cancel(current().caller.key_id, request.response_id)

    async def ListInputItems(self, request: pb.ListInputItemsRequest, context: Context) -> pb.ListInputItemsResponse:
        check(request)
        return await self._conversations.list_items(current().caller.key_id, request)

    async def _asked(
        self, message: pb.GenerateRequest | pb.StreamGenerateRequest, request: pb.GenerateRequest, *, stream: bool
    ) -> Asked:
        """The call as it is served. Raises UmgError for one that is not."""
        call, conversations = current(), self._memory.conversations
        request, resolved = await self._admission.admit(call, message, request, stream=stream)
        spoken, model = request.source.format, resolved.model
        if conversations is None:
            _leave_unstored(request)
        elif spoken == RESPONSES:
            request = await conversations.resolve(call.caller.key_id, request)
        continued: Continued | Thread | None = None
        if request.HasField("thread"):
            continued = await self._thread(call, Admitted(request, resolved), stream=stream)
        elif request.previous_response_id:
            continued = await self._continued(call, request, model.id)
        several = self._channels.router.has_several(model.id)
        begins = continued.whole if isinstance(continued, Thread) and continued.whole is not None else request
        beginning = nearness.beginning(call.caller.key_id, begins) if several else None
        return Asked(call, request, model, spoken, continued, several, beginning)

    async def _attempts(self, asked: Asked, *, stream: bool) -> Attempts:
        """The channels to try, best first."""
        reasoning, maker, pins, wish = self._memory.reasoning, NOBODY, asked.call.caller.channels, ANY
        if asked.several or pins:
            maker = await made(asked, reasoning)
            wish = Wish(
                protocol=asked.format,
                pins=pins,
                maker=maker.channel,
                near=self._nearness.channel(asked.beginning),
                affinity=asked.request.prompt_cache_key,
                well=self._shared.is_well,
            )
        targets = self._channels.router.channels(asked.model.id, GENERATE, wish)
        return Attempts(asked, targets, self._channels.text, self._shared, reasoning, maker.makers, stream=stream)

    async def _first_answer(self, asked: Asked, attempts: Attempts, tried: Try[Attempt]) -> pb.GenerateResponse:
        """What the attempt answers, or, where it is slow to, another."""
        call, hedge = asked.call, asked.model.hedge
        if hedge is None or not attempts.has_others:
            return await tried.attempt.call.generate(call.seconds_left())
        return await first_to_answer(attempts, tried, hedge, lambda attempt: attempt.call.generate(call.seconds_left()))

    async def _first_stream(
        self, asked: Asked, attempts: Attempts, tried: Try[Attempt]
    ) -> Opened[pb.StreamGenerateResponse]:
        """The same for a stream, which answers with its first message that says something."""
        call, hedge, says_nothing = asked.call, asked.model.hedge, _silence(asked.format)
        if hedge is None or not attempts.has_others:
            return await open_within(tried.attempt.call.stream(call.seconds_left()), says_nothing, HOLD_SECONDS)

        async def close(opened: Opened[pb.StreamGenerateResponse]) -> None:
            await opened[1].aclose()

        def start(attempt: Attempt) -> Coroutine[None, None, Opened[pb.StreamGenerateResponse]]:
            return open_stream(attempt.call.stream(call.seconds_left()), says_nothing)

        return await first_to_answer(attempts, tried, hedge, start, close)

    async def _thread(self, call: Call, admitted: Admitted, *, stream: bool) -> Thread | None:
        """None where only a provider may know the thread, whose account the operator opened to all callers."""
        threads, request, owner = self._memory.threads, admitted.request, call.caller.key_id
        model = admitted.resolved.model.id
        shared = request.source.format == MESSAGES and self._channels.router.shares(model, MESSAGES)
        if threads is None:
            if shared:
                return None
            raise unsupported()
        try:
            thread = await threads.open(owner, request, call.seconds_left())
        except UmgError as error:
            if error.reason == pb.ERROR_REASON_THREAD_NOT_FOUND and shared:
                return None
            raise
        if thread.whole is not None:
            try:
                self._admission.rule(Admitted(thread.whole, admitted.resolved), stream=stream)
            except UmgError:
                await threads.close(owner, thread)
                raise
        return thread

    async def _continued(self, call: Call, request: pb.GenerateRequest, model: str) -> Continued | None:
        """None for a response that only a provider may know, whose account the operator opened to all callers."""
        try:
            return await self._conversations.continue_(call.caller.key_id, request)
        except UmgError as error:
            shared = self._channels.router.shares(model, RESPONSES)
            if error.reason == pb.ERROR_REASON_OBJECT_NOT_FOUND and shared:
                return None
            raise

    @property
    def _conversations(self) -> Conversations:
        """Raises UmgError(OBJECT_NOT_FOUND) where the operator switched their storage off."""
        if self._memory.conversations is None:
            message = "this gateway stores no responses; send the whole conversation"
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message)
        return self._memory.conversations


def _silence(face: str) -> Callable[[pb.StreamGenerateResponse], bool]:
    """Whether nothing of the answer itself is in a message for the face."""
    spoken = FORMATS.get(face)

    def says_nothing(message: pb.StreamGenerateResponse) -> bool:
        if message.source_frames:
            return spoken is not None and spoken.preamble(message.source_frames)
        return all(_is_silent(event) for event in message.events)

    return says_nothing


def _is_silent(event: pb.GenerateEvent) -> bool:
    """Whether it tells no more than that something begins."""
    kind = event.WhichOneof("kind")
    if kind != "part_started":
        return kind in SILENT
    part = event.part_started
    match part.WhichOneof("kind"):
        case "text":
            return not part.text.text
        case "reasoning":
            return not part.reasoning.texts and not part.reasoning.summaries
        case _:
            return False


def _leave_unstored(request: pb.GenerateRequest) -> None:
    """Where the operator keeps nothing, no answer says that it is kept; who asked for it is told."""
    if request.store:
        request.source.uncarried_fields.append("store")
    if request.store or request.source.format == "responses":
        request.store = False
