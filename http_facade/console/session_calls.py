"""Calls of the administrative services with the session of a person."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import grpc
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message

from http_facade.console.caller_rights import ResponseT
from http_facade.exchange.grpc_service_calls import administrative_metadata, attach
from http_facade.exchange.http_exchange import HttpExchange
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.operations import ADMINISTRATIVE_SERVICES
from umg_grpc.v1 import rpc

CONSOLE_FACE = "admin"
"""Face of the console's calls in records and logs."""
SESSION_SCHEME = "Session"
MODEL_SERVICE = "ModelService"

if TYPE_CHECKING:
    Methods: TypeAlias = Mapping[str, grpc.aio.UnaryUnaryMultiCallable[Any, Any]]


def session_methods(channel: grpc.aio.Channel) -> "Methods":
    """Return the methods that accept sessions, by the full names of their request types."""
    found = {}
    for service in (*ADMINISTRATIVE_SERVICES, MODEL_SERVICE):
        stub = getattr(rpc, f"{service}Stub")(channel)
        for method in Default().FindServiceByName(f"umg.v1.{service}").methods:
            found[method.input_type.full_name] = getattr(stub, method.name)
    return found


class SessionCalls:
    """Client of the services that accept sessions, for one request of a browser."""

    def __init__(self, methods: "Methods", exchange: HttpExchange, token: str, credential: object) -> None:
        """Create a client. `token`: of the session, which is the credential of the calls; `credential`: the session as
        it was checked for this request, so that not each call reads it again.
        """
        exchange.authorization = f"{SESSION_SCHEME} {token}"
        self._methods, self._exchange, self._credential = methods, exchange, credential

    async def call(self, request: Message, kind: type[ResponseT]) -> ResponseT:
        """Call the method with this type of request. Raise UmgError."""
        method = attach(self._methods[request.DESCRIPTOR.full_name], None, self._credential)
        try:
            response = await method(request, metadata=administrative_metadata(self._exchange, CONSOLE_FACE))
        except grpc.aio.AioRpcError as error:
            raise from_rpc(error) from None
        if not isinstance(response, kind):
            raise TypeError(f"expected a {kind.__name__}")
        return response
