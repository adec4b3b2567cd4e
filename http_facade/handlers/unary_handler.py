"""Handler of the operations with one request, whose response may be streamed."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Generic, Never, TypeAlias, TypeVar

import grpc
from aiohttp import hdrs, web
from google.protobuf.message import Message

from http_facade.exchange.direct_json_response import WholeResponse
from http_facade.exchange.grpc_service_calls import call_unary, check_model, open_stream
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.large_json_response import response_in_pieces
from http_facade.exchange.message_stream_response import stream_messages
from http_facade.exchange.multipart_form_parser import parse_form
from http_facade.exchange.request_bodies import JSON_TYPE, BodyReader
from http_facade.exchange.server_settings import Settings
from http_facade.routes import Route
from umg_grpc.base.errors import UmgError
from umg_grpc.operations import StreamedMethod, UnaryOperation
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.model_in_path import form_of_model
from umg_grpc.wire.core.multipart_forms import FORM_TYPE
from umg_grpc.wire.core.response_shape_selection import client_shape
from umg_grpc.wire.facts_beside_request import DecodedRequest
from umg_grpc.wire.text_format_interface import BIG_BYTES
from umg_grpc.wire.unary_format_interface import UnaryFace

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
StreamCall: TypeAlias = "tuple[grpc.aio.UnaryStreamMultiCallable[Any, Message], type[Message]] | None"
SOURCE_FIELD = "source"


class UnaryHandler(Generic[Request, Response]):
    """Handler of one path of an operation in one wire format."""

    def __init__(
        self, route: Route, operation: UnaryOperation[Request, Response], channel: grpc.aio.Channel, settings: Settings
    ) -> None:
        self._face = route.format
        self._codec = codec = operation.faces[route.format]
        self._method: grpc.aio.UnaryUnaryMultiCallable[Request, Response] = channel.unary_unary(
            f"/{operation.full_service}/{operation.methods[0]}",
            operation.request.SerializeToString,
            operation.response.FromString,
        )
        self._models = rpc.ModelServiceStub(channel)
        self._stream = _streamed_method(operation.full_service, operation.stream, channel)
        self._settings = settings
        self._decode = _refuse_json if codec.media_types == (FORM_TYPE,) else codec.decode_request
        self._bodies = BodyReader(route.format, codec.source_headers, channel, settings)

    async def respond(self, exchange: HttpExchange) -> web.StreamResponse | WholeResponse:
        """Return the service's response in the form that the caller's SDK expects; a large one is sent in pieces."""
        codec = self._codec
        decode_form = _form_decoder(codec, exchange)
        canonical, notes = await self._bodies.read(exchange, self._decode, decode_form, codec.media_types)
        if codec.encode_empty is not None and (empty := codec.encode_empty(canonical)) is not None:
            model, body = empty
            await check_model(self._models, model, exchange, self._face)
            return web.Response(headers={hdrs.CONTENT_TYPE: JSON_TYPE}, body=body)
        wants_stream, encoder = codec.wants_stream, codec.stream_encoder
        if self._stream is not None and encoder is not None and wants_stream is not None:
            source: pb.SourceDocument = getattr(canonical, SOURCE_FIELD)
            if wants_stream(source.body):
                method, request = self._stream
                opened = open_stream(method, request(request=canonical), exchange, self._face, notes)
                return await stream_messages(exchange, opened, encoder(canonical), self._face, self._settings)
        if codec.timed is not None:
            codec = codec.timed(exchange.elapsed_nanoseconds)
        shape = client_shape(exchange.request.headers)
        response, headers = await call_unary(self._method, canonical, exchange, self._face, notes)
        if codec.content_type is not None:
            headers[hdrs.CONTENT_TYPE] = codec.content_type(response, canonical)
        if codec.encode_pieces is not None:
            pieces = codec.encode_pieces(response, canonical, shape)
            return await response_in_pieces(exchange, headers, pieces, self._settings.turns)
        if response.ByteSize() < BIG_BYTES:
            body = codec.encode_response(response, canonical, shape)
        else:
            body = await asyncio.to_thread(codec.encode_response, response, canonical, shape)
        return WholeResponse(headers, body)


def _form_decoder(
    codec: UnaryFace[Request, Response], exchange: HttpExchange
) -> Callable[[bytes, str], DecodedRequest[Request]] | None:
    if (decode := codec.decode_form) is None:
        return None
    return lambda body, content_type: decode(form_of_model(parse_form(body, content_type), exchange.deployment))


def _refuse_json(body: bytes, headers: Mapping[str, str], model: str = "") -> Never:
    raise UmgError(pb.ERROR_REASON_UNSUPPORTED_MEDIA_TYPE, f"send the body with content-type: {FORM_TYPE}")


def _streamed_method(service: str, method: StreamedMethod[Any] | None, channel: grpc.aio.Channel) -> StreamCall:
    if method is None:
        return None
    path, encode, decode = f"/{service}/{method.name}", method.request.SerializeToString, method.message.FromString
    return channel.unary_stream(path, encode, decode), method.request
