"""Servicer of text generation, token counting, and stored responses."""

from collections.abc import AsyncGenerator

from umg_grpc.base.inprocess_channel import Context
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.operations.generate.text_pipeline import GenerationPipeline
from umg_grpc.service.operations.generate.token_counting import TokenCounting
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.v1 import pb, rpc


class GenerationServicer(rpc.GenerationServiceServicer):
    """Servicer of `umg.v1.GenerationService`: text generation, token counts, stored responses."""

    def __init__(self, pipeline: GenerationPipeline, counting: TokenCounting, memory: ConversationStores) -> None:
        self._pipeline = pipeline
        self._counting = counting
        self._memory = memory

    async def Generate(self, request: pb.GenerateRequest, context: Context) -> pb.GenerateResponse:
        admitted = await self._pipeline.admit(current(), request, request, stream=False)
        try:
            return await self._pipeline.response_to(admitted)
        finally:
            if admitted.continued is not None:
                await self._pipeline.close(admitted.call, admitted.continued)

    def StreamGenerate(
        self, request: pb.StreamGenerateRequest, context: Context
    ) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        return self._pipeline.stream(current(), request, request.request)

    async def CountTokens(self, request: pb.CountTokensRequest, context: Context) -> pb.CountTokensResponse:
        return await self._counting.count(current(), request)

    async def GetStoredResponse(
        self, request: pb.GetStoredResponseRequest, context: Context
    ) -> pb.GetStoredResponseResponse:
        await validate(request)
        found = await self._memory.stored_responses.get(current().caller.key_id, request.response_id)
        return pb.GetStoredResponseResponse(response=found)

    async def DeleteStoredResponse(
        self, request: pb.DeleteStoredResponseRequest, context: Context
    ) -> pb.DeleteStoredResponseResponse:
        await validate(request)
        await self._memory.stored_responses.delete(current().caller.key_id, request.response_id)
        return pb.DeleteStoredResponseResponse()

    async def CancelStoredResponse(
        self, request: pb.CancelStoredResponseRequest, context: Context
    ) -> pb.CancelStoredResponseResponse:
        await validate(request)
        await self._memory.stored_responses.cancel(current().caller.key_id, request.response_id)

    async def ListInputItems(self, request: pb.ListInputItemsRequest, context: Context) -> pb.ListInputItemsResponse:
        await validate(request)
        return await self._memory.stored_responses.list_items(current().caller.key_id, request)
