"""gRPC client of the kit, which makes unary and server-streaming calls to the server under test."""

from collections.abc import Iterable, Sequence

import grpc
from google.protobuf import json_format, message_factory
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.rpc import status_pb2

from umg_conformance.call_responses import CallResponse
from umg_conformance.check_files import Request
from umg_conformance.grpc_messages import encoded
from umg_conformance.grpc_schema import DESCRIPTOR_POOL
from umg_conformance.http_client import WRONG_KEY, UnreachableError

CHANNEL_OPTIONS = (("grpc.max_receive_message_length", -1), ("grpc.enable_http_proxy", 0))
"""Options of channels: messages of any size, and no proxy, as for the calls over HTTP."""
DETAILS_KEY = "grpc-status-details-bin"
Metadata = Sequence[tuple[str, str | bytes]]


def channel_to(address: str, *, tls: bool) -> grpc.aio.Channel:
    """Return a gRPC channel to an address."""
    if tls:
        return grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(), options=CHANNEL_OPTIONS)
    return grpc.aio.insecure_channel(address, options=CHANNEL_OPTIONS)


class GrpcCaller:
    """gRPC client of one server with one API key."""

    def __init__(self, channel: grpc.aio.Channel, key: str, seconds: float) -> None:
        self._channel = channel
        self._key = key
        self._seconds = seconds

    async def call(self, request: Request) -> CallResponse:
        """Make the gRPC call of a request. Return its response, also one with an error. Raise UnreachableError if no
        server listens, and CheckFileError for an unknown method or field.
        """
        found, message = encoded(request)
        metadata = [(name.lower(), value) for name, value in request.headers.items()]
        if request.auth not in {"none", "query"}:
            key = WRONG_KEY if request.auth == "wrong" else self._key
            metadata.append(("authorization", f"Bearer {key}"))
        return await self._answer(found, message, metadata, request.deadline or self._seconds)

    async def _answer(
        self, found: MethodDescriptor, message: Message, metadata: list[tuple[str, str]], seconds: float
    ) -> CallResponse:
        reply = message_factory.GetMessageClass(found.output_type)
        path = f"/{found.containing_service.full_name}/{found.name}"
        send, receive = type(message).SerializeToString, reply.FromString
        messages: list[object] = []
        call: grpc.aio.UnaryStreamCall[Message, Message] | grpc.aio.UnaryUnaryCall[Message, Message]
        try:
            if found.server_streaming:
                call = stream = self._channel.unary_stream(path, send, receive)(
                    message, timeout=seconds, metadata=metadata
                )
                async for event in stream:
                    messages += [_plain(event)]  # those before a failure, too
            else:
                call = unary = self._channel.unary_unary(path, send, receive)(
                    message, timeout=seconds, metadata=metadata
                )
                messages.append(_plain(await unary))
        except grpc.aio.AioRpcError as error:
            refused = _headers([*_pairs(error.initial_metadata()), *_pairs(error.trailing_metadata())])
            if error.code() is grpc.StatusCode.UNAVAILABLE and not refused:
                raise UnreachableError(f"{path}: {error.details()}") from None
            return CallResponse(error.code().name, refused, _failure(error), _events(found, messages))
        headers = _headers([*_pairs(await call.initial_metadata()), *_pairs(await call.trailing_metadata())])
        body = None if found.server_streaming else messages[0]
        return CallResponse("OK", headers, body, _events(found, messages))


def _plain(message: Message) -> object:
    plain: object = json_format.MessageToDict(
        message,
        preserving_proto_field_name=True,
        always_print_fields_with_no_presence=False,
        descriptor_pool=DESCRIPTOR_POOL,
    )
    return plain


def _events(found: MethodDescriptor, messages: Iterable[object]) -> list[dict[str, object]]:
    if not found.server_streaming:
        return []
    return [{"event": "message", "data": data, "name": "message"} for data in messages]


def _pairs(metadata: object) -> Metadata:
    return [(str(name), value) for name, value in metadata] if isinstance(metadata, Iterable) else []


def _headers(pairs: Metadata) -> dict[str, str]:
    return {name.lower(): value for name, value in pairs if isinstance(value, str)}


def _failure(error: grpc.aio.AioRpcError) -> dict[str, object]:
    """Return a call's error as a JSON body: `error.message`, and each detail by its type (`error.ErrorInfo`)."""
    body: dict[str, object] = {"message": error.details() or ""}
    for name, value in _pairs(error.trailing_metadata()):
        if name != DETAILS_KEY or not isinstance(value, bytes):
            continue
        for detail in status_pb2.Status.FromString(value).details:
            kind = detail.type_url.rpartition("/")[2]
            try:
                unpacked = message_factory.GetMessageClass(DESCRIPTOR_POOL.FindMessageTypeByName(kind))()
            except KeyError:
                continue
            detail.Unpack(unpacked)
            body[kind.rpartition(".")[2]] = _plain(unpacked)
    return {"error": body}
