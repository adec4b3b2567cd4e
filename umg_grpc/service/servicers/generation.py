"""Servicer of text generation, token counting, and stored responses."""

import asyncio
from collections.abc import AsyncGenerator

from umg_grpc.base.errors import UmgError
from umg_grpc.base.inprocess_channel import Context
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.operations.generate.text_generation import GenerationPipeline
from umg_grpc.service.pipeline.call import current
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.dropped_fields_report import foreign
from umg_grpc.wire.request_notes import DecodedRequest, RequestNotes


class GenerationServicer(rpc.GenerationServiceServicer):
    """Servicer of `umg.v1.GenerationService`: text generation, token counts, stored responses."""

    def __init__(self, pipeline: GenerationPipeline, channels: Channels, memory: ConversationStores) -> None:
        self._pipeline = pipeline
        self._channels = channels
        self._memory = memory

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        """Return the cached response, else the response of the first channel that answers."""
        admitted = await self._pipeline.admit(current(), request, request, stream=False)
        try:
            return await self._pipeline.answer(admitted)
        finally:
            if admitted.continued is not None:
                await self._pipeline.close(admitted.call, admitted.continued)

    def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """Yield the cached response in one message, else the stream of the first channel that answers."""
        return self._pipeline.stream(current(), request)

    async def CountTokens(self, request: pb.CountTokensRequest, context: Context) -> pb.CountTokensResponse:
        """Return the number of tokens of a request, counted locally: no channel is called, and no limit of the key
        applies.
        """
        call = current()
        read = await self._pipeline.read(call, request, request.request)
        counted, notes, model = read.request, read.notes, read.model
        call.facts.model = model.id
        if counted.previous_response_id:
            decoded = DecodedRequest(counted, notes)
            continued = await self._memory.stored_responses.continue_(call.caller.key_id, decoded)
            counted = continued.whole.canonical
        if counted.thread.previous_response_id:
            message = "`thread`: a thread cannot be counted; send the whole conversation without one"
            raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field="thread")
        self._reject_unsupported_items(counted, notes, model.id)
        counter = TokenCounter(model.family, model.tokenizer)
        if counter.needs_thread(counted):
            return pb.CountTokensResponse(input_tokens=await asyncio.to_thread(counter.count_request, counted))
        return pb.CountTokensResponse(input_tokens=counter.count_request(counted))

    def _reject_unsupported_items(self, counted: pb.GenerateRequest, notes: RequestNotes, model: str) -> None:
        """Raise UmgError(UNSUPPORTED_FIELD) for a message or item in the request that no channel of the model supports.
        `notes`: facts about the decoded body.
        """
        targets = self._channels.router.targets(model)
        formats = {protocol for target in targets for protocol in target.channel.protocols}
        for index, message in enumerate(counted.messages):
            if message.role or not message.parts or not message.parts[0].HasField("opaque"):
                continue
            opaque = message.parts[0].opaque
            if opaque.format not in formats and not opaque.handling:
                at = f"messages[{index}].parts[0]"
                raise foreign(opaque, notes.opaque_paths.get(at, at))

    async def GetStoredResponse(
        self, request: pb.GetStoredResponseRequest, context: Context
    ) -> pb.GetStoredResponseResponse:
        check(request)
        found = await self._memory.stored_responses.get(current().caller.key_id, request.response_id)
        return pb.GetStoredResponseResponse(response=found)

    async def DeleteStoredResponse(
        self, request: pb.DeleteStoredResponseRequest, context: Context
    ) -> pb.DeleteStoredResponseResponse:
        check(request)
        await self._memory.stored_responses.delete(current().caller.key_id, request.response_id)
        return pb.DeleteStoredResponseResponse()

    async def CancelStoredResponse(
        self, request: pb.CancelStoredResponseRequest, context: Context
    ) -> pb.CancelStoredResponseResponse:
        check(request)
        await self._memory.stored_responses.cancel(current().caller.key_id, request.response_id)

    async def ListInputItems(self, request: pb.ListInputItemsRequest, context: Context) -> pb.ListInputItemsResponse:
        check(request)
        return await self._memory.stored_responses.list_items(current().caller.key_id, request)
