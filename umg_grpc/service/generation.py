"""Text generation: one request from admission to its answer."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import replace

from umg_grpc.errors import UmgError
from umg_grpc.inprocess import Context
from umg_grpc.service.admission import Admission, Admitted
from umg_grpc.service.answers import Answer, Asked, Memory, StreamedAnswer
from umg_grpc.service.attempts import Attempts
from umg_grpc.service.call import Call, current
from umg_grpc.service.channels import Channels
from umg_grpc.service.choice import is_safe_to_move_on, moving_on, no_channel, seconds_left, under_public_name
from umg_grpc.service.conversations import Continued, Conversations
from umg_grpc.service.validation import check
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb, rpc

RESPONSES = "responses"
"""The format whose providers keep what they answer."""


class GenerationServicer(rpc.GenerationServiceServicer):
    """`umg.v1.GenerationService`."""

    def __init__(self, channels: Channels, admission: Admission, memory: Memory) -> None:
        self._channels = channels
        self._admission = admission
        self._memory = memory

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        """The answer of the first channel that can give one."""
        asked, attempts = await self._begin(request, request, stream=False)
        failure: UmgError | None = None
        while (attempt := await attempts.next()) is not None:
            try:
                response = await attempt.call.generate(seconds_left(context))
            except UmgError as error:
                told = under_public_name(error, attempt.target, asked.request.model)
                if not is_safe_to_move_on(error) and not attempts.again(attempt, error):
                    raise told from None
                failure = moving_on(asked.call, told)
                continue
            return await Answer(asked, attempt, self._memory).whole(response)
        raise failure or no_channel(asked.request.model)

    async def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Moves on to the next channel only while nothing was sent: half an answer cannot be taken back."""
        asked, attempts = await self._begin(request, request.request, stream=True)
        failure: UmgError | None = None
        while (attempt := await attempts.next()) is not None:
            sent = False
            answer = StreamedAnswer(asked, attempt, self._memory)
            try:
                async with aclosing(attempt.call.stream(seconds_left(context))) as messages:
                    async for message in messages:
                        if answer.feed(message):
                            sent = True
                            yield message
                for message in await answer.close():
                    sent = True
                    yield message
            except UmgError as error:
                told = under_public_name(error, attempt.target, asked.request.model)
                if sent or (not is_safe_to_move_on(error) and not attempts.again(attempt, error)):
                    await answer.break_off()
                    raise told from None
                failure = moving_on(asked.call, told)
                continue
            except (asyncio.CancelledError, GeneratorExit):
                await answer.break_off()
                raise
            return
        raise failure or no_channel(asked.request.model)

    async def CountTokens(self, request: pb.CountTokensRequest, context: Context) -> pb.CountTokensResponse:
        """Counts here: no model is called, and no limit of the key is touched."""
        call = current()
        admitted = await self._admission.look(call, request, request.request, counted=True)
        counted, model = admitted.request, admitted.resolved.model
        call.model = model.id
        if counted.previous_response_id:
            counted = (await self._conversations.continue_(call.caller.key_id, counted)).request
        counter = TokenCounter(model.family, model.tokenizer)
        if counter.needs_thread(counted):
            return pb.CountTokensResponse(input_tokens=await asyncio.to_thread(counter.count_request, counted))
        return pb.CountTokensResponse(input_tokens=counter.count_request(counted))

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

    async def _begin(
        self, message: pb.GenerateRequest | pb.StreamGenerateRequest, request: pb.GenerateRequest, *, stream: bool
    ) -> tuple[Asked, Attempts]:
        """The call as it is served, and the channels to try. Raises UmgError for one that is not."""
        call = current()
        admitted = await self._admission.admit(call, message, request, stream=stream)
        if admitted.request.source.format == RESPONSES and self._memory.conversations is not None:
            named = await self._memory.conversations.resolve(call.caller.key_id, admitted.request)
            admitted = replace(admitted, request=named)
        elif self._memory.conversations is None:
            _leave_unstored(admitted.request)
        continued = await self._continued(call, admitted) if admitted.request.previous_response_id else None
        attempts = Attempts(call, admitted, self._channels, self._memory.reasoning, continued=continued, stream=stream)
        return Asked(call, admitted, continued), attempts

    async def _continued(self, call: Call, admitted: Admitted) -> Continued | None:
        """None for a response that only a provider may know, whose account the operator opened to all callers."""
        try:
            return await self._conversations.continue_(call.caller.key_id, admitted.request)
        except UmgError as error:
            shared = self._channels.router.shares(admitted.resolved.model.id, RESPONSES)
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


def _leave_unstored(request: pb.GenerateRequest) -> None:
    """Where the operator keeps nothing, no answer says that it is kept; who asked for it is told."""
    if request.store:
        request.source.uncarried_fields.append("store")
    if request.store or request.source.format == "responses":
        request.store = False
