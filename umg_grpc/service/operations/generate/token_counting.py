"""Token counts of text requests, made locally: no channel is called, and no limit of the key applies."""

import asyncio
from collections.abc import Sequence

from umg_grpc.base.errors import UmgError
from umg_grpc.routing import Router
from umg_grpc.service.conversations.conversation_edits import edited_conversation
from umg_grpc.service.operations.generate.text_pipeline import GenerationPipeline
from umg_grpc.service.operations.generate.text_request_encoder import GenerationCall
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.tokens import TokenCounter
from umg_grpc.v1 import pb
from umg_grpc.wire.core.context_management_edits import ContextEdit
from umg_grpc.wire.dropped_fields_report import foreign


class TokenCounting:
    """Counter of the tokens of text requests."""

    def __init__(self, pipeline: GenerationPipeline, channels: Channels) -> None:
        self._pipeline = pipeline
        self._channels = channels

    async def count(self, call: Call, request: pb.CountTokensRequest) -> pb.CountTokensResponse:
        """Return the number of tokens of a request together with the stored conversation that it continues. If the
        request has edits of the conversation, also return the number without them. Raise UmgError.
        """
        counted = await self._pipeline.read(call, request, request.request)
        whole, model = counted.full_request, counted.model
        if whole.thread.previous_response_id:
            message = "`thread`: a thread cannot be counted; send the whole conversation without one"
            raise UmgError(pb.ERROR_REASON_UNSUPPORTED_FIELD, message, field="thread")
        _reject_unsupported_items(counted, self._channels.router)
        counter = TokenCounter(model.family, model.tokenizer)
        edits = counted.notes.context_edits
        if counter.needs_thread(whole):
            return await asyncio.to_thread(_count, whole, edits, counter)
        return _count(whole, edits, counter)


def _count(
    request: pb.GenerateRequest, edits: Sequence[ContextEdit] | None, counter: TokenCounter
) -> pb.CountTokensResponse:
    original = counter.count_request(request)
    if edits is None:
        return pb.CountTokensResponse(input_tokens=original)
    edited, _ = edited_conversation(request, edits, counter)
    tokens = original if edited is request else counter.count_request(edited)
    return pb.CountTokensResponse(input_tokens=tokens, original_input_tokens=original)


def _reject_unsupported_items(counted: GenerationCall, router: Router) -> None:
    """Raise UmgError(UNSUPPORTED_FIELD) if the request has a message or item that no channel of the model supports."""
    targets = router.targets(counted.model.id)
    formats = {protocol for target in targets for protocol in target.channel.protocols}
    for index, message in enumerate(counted.full_request.messages):
        if message.role or not message.parts or not message.parts[0].HasField("opaque"):
            continue
        opaque = message.parts[0].opaque
        if opaque.format not in formats and not opaque.handling:
            at = f"messages[{index}].parts[0]"
            raise foreign(opaque, counted.notes.opaque_paths.get(at, at))
