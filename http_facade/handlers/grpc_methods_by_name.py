"""RPCs of a gRPC service by name: how their messages are parsed and encoded, and how they are called."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessageClass

from http_facade.thread_offload import run_large
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import check_surrogates
from umg_grpc.wire.core.request_body_decoding import decode_body

MAX_ERROR_CHARACTERS = 300


@dataclass(frozen=True)
class RpcMethod:
    """RPC of a service, with the types of its messages and a callable that calls it. The callable returns message
    objects from a service in this process, and encoded messages from a service over a socket.
    """

    request: type[Message]
    response: type[Message]
    is_stream: bool
    call: Any  # generic in its messages, which are not typed here

    async def parse(self, body: bytes, *, in_json: bool) -> Message:
        """Return the request message decoded from a body of JSON or protobuf. Raise UmgError(MALFORMED_BODY)."""
        if in_json:
            return await run_large(lambda: decode_body(lambda text, _: self._from_json(text), body, {}), len(body))
        return await run_large(lambda: self._from_bytes(body), len(body))

    def _from_bytes(self, body: bytes) -> Message:
        try:
            return self.request.FromString(body)
        except DecodeError:
            message = f"the body is not a {self.request.DESCRIPTOR.full_name} in protobuf"
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, message)

    def _from_json(self, body: bytes) -> Message:
        check_surrogates(body)
        try:
            return json_format.Parse(body, self.request())
        except (json_format.ParseError, UnicodeDecodeError) as error:
            why = str(error)[:MAX_ERROR_CHARACTERS]
        name = self.request.DESCRIPTOR.full_name
        raise UmgError(pb.ERROR_REASON_MALFORMED_BODY, f"the body is not the JSON of a {name}: {why}")

    async def encode(self, response: Message | bytes, *, in_json: bool) -> bytes:
        """Encode a response (a message, or its bytes) as JSON or protobuf; a large one in a thread."""
        if isinstance(response, bytes):
            if not in_json:
                return response
            response = self.response.FromString(response)
        encode: Callable[[Message], bytes] = _to_json if in_json else _to_bytes
        return await run_large(lambda: encode(response), response.ByteSize())


def methods_of(service: str, channel: grpc.aio.Channel) -> Mapping[str, RpcMethod]:
    """Return the RPCs of a service by name, except client-streaming ones. Raise KeyError for an unknown service."""
    found = Default().FindServiceByName(service).methods
    return {method.name: _method(service, method, channel) for method in found if not method.client_streaming}


def _method(service: str, method: MethodDescriptor, channel: grpc.aio.Channel) -> RpcMethod:
    make = channel.unary_stream if method.server_streaming else channel.unary_unary
    request, response = GetMessageClass(method.input_type), GetMessageClass(method.output_type)
    return RpcMethod(request, response, method.server_streaming, make(f"/{service}/{method.name}", _to_bytes))


def _to_json(message: Message) -> bytes:
    return json_format.MessageToJson(message, indent=None, ensure_ascii=False).encode()


def _to_bytes(message: Message) -> bytes:
    return message.SerializeToString()
