"""Services of the schema that this version does not implement: their methods fail with NOT_IMPLEMENTED."""

from collections.abc import AsyncGenerator
from typing import Any, Never

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message_factory import GetMessageClass

from umg_grpc.errors import UmgError
from umg_grpc.inprocess import NO_MESSAGES, Context, Handler
from umg_grpc.v1 import pb

UNSERVED: dict[str, str] = {}


def not_served(operation: str) -> UmgError:
    """Return the error of an operation that this version does not implement."""
    return UmgError(pb.ERROR_REASON_NOT_IMPLEMENTED, f"this version of the gateway does not serve {operation}")


def add_unserved(server: grpc.aio.Server) -> None:
    """Register every method of the services above, which fails with UNIMPLEMENTED and the reason NOT_IMPLEMENTED."""
    for name, operation in UNSERVED.items():
        service = Default().FindServiceByName(name)
        server.add_registered_method_handlers(
            name, {method.name: _handler(method, operation) for method in service.methods}
        )


def _handler(method: MethodDescriptor, operation: str) -> Handler:
    async def answer(request: object, context: Context) -> Never:
        raise not_served(operation)

    async def stream(request: object, context: Context) -> AsyncGenerator[object, None]:
        for message in NO_MESSAGES:  # makes this a generator
            yield message
        raise not_served(operation)

    # the types of grpc's stubs are those of the threaded server; see `inprocess`
    behavior: Any = stream if method.server_streaming else answer
    make: Any = grpc.unary_stream_rpc_method_handler if method.server_streaming else grpc.unary_unary_rpc_method_handler
    request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    handler: Handler = make(behavior, request.FromString, response.SerializeToString)
    return handler
