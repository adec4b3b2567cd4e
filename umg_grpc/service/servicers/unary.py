"""Servicer of the operations with one request and one response, each described by a row of a table."""

from collections.abc import AsyncGenerator
from typing import Any

import grpc
from google.protobuf.message import Message

from umg_grpc.base.inprocess_channel import Context
from umg_grpc.operations import UnaryOperation
from umg_grpc.service.operations.unary.unary_pipeline import UnaryPipeline
from umg_grpc.service.pipeline.call_state import current

REQUEST_FIELD = "request"
"""Field of the request of a stream with the request of the operation."""


class UnaryServicer:
    """Servicer of one operation: calls the operation's pipeline for each request."""

    def __init__(self, operation: UnaryOperation[Any, Any], pipeline: UnaryPipeline[Any, Any]) -> None:
        self._operation = operation
        self._pipeline = pipeline

    def register(self, server: grpc.aio.Server) -> None:
        """Add the methods of the operation to a `grpc.aio` server, as the generated code does for a service."""
        row = self._operation
        handler = grpc.unary_unary_rpc_method_handler(
            self._respond, row.request.FromString, row.response.SerializeToString
        )
        handlers = dict.fromkeys(row.methods, handler)
        if (streamed := row.stream) is not None:
            handlers[streamed.name] = grpc.unary_stream_rpc_method_handler(
                self._stream, streamed.request.FromString, streamed.message.SerializeToString
            )
        server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(row.full_service, handlers),))
        server.add_registered_method_handlers(row.full_service, handlers)

    def _stream(self, request: Message, context: Context) -> AsyncGenerator[Message, None]:
        return self._pipeline.stream(current(), request, getattr(request, REQUEST_FIELD))

    async def _respond(self, request: Message, context: Context) -> Message:
        response: Message = await self._pipeline.respond(request)
        return response
