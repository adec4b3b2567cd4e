"""Handler of the operations with one request and one response."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import grpc
from aiohttp import hdrs, web
from google.protobuf.message import Message

from http_facade.exchange.form_bodies import parse_form
from http_facade.exchange.grpc_calls import call_unary, check_model
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.json_response import WholeResponse
from http_facade.exchange.large_json_response import response_in_pieces
from http_facade.exchange.request_bodies import JSON, BodyReader
from http_facade.exchange.settings import Settings
from http_facade.routes import Route
from umg_grpc.operations import UnaryOperation
from umg_grpc.v1 import rpc
from umg_grpc.wire.core.response_shape import client_shape
from umg_grpc.wire.request_notes import DecodedRequest
from umg_grpc.wire.text_format import BIG_BYTES
from umg_grpc.wire.unary_format import UnaryFace

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class UnaryHandler(Generic[Request, Response]):
    """Handler of one path of an operation in one wire format."""

    def __init__(
        self,
        route: Route,
        operation: UnaryOperation[Request, Response],
        channel: grpc.aio.Channel,
        settings: Settings,
    ) -> None:
        self._face = route.format
        self._codec = codec = operation.faces[route.format]
        self._method: grpc.aio.UnaryUnaryMultiCallable[Request, Response] = channel.unary_unary(
            f"/{operation.full_service}/{operation.methods[0]}",
            operation.request.SerializeToString,
            operation.response.FromString,
        )
        self._models = rpc.ModelServiceStub(channel)
        self._settings = settings
        self._decode_form = _form_decoder(codec)
        self._bodies = BodyReader(route.format, codec.source_headers, channel, settings)

    async def respond(self, exchange: HttpExchange) -> web.StreamResponse | WholeResponse:
        """Decode the body, call the service, and return the encoded response.

        Its form depends on the caller's SDK, which is recognized by the request's headers. Large responses are sent in
        pieces.
        """
        codec = self._codec
        canonical, notes = await self._bodies.read(exchange, codec.decode_request, self._decode_form, codec.media_types)
        if codec.encode_empty is not None and (empty := codec.encode_empty(canonical)) is not None:
            model, body = empty
            await check_model(self._models, model, exchange, self._face)
            return web.Response(headers={hdrs.CONTENT_TYPE: JSON}, body=body)
        if codec.timed is not None:
            codec = codec.timed(exchange.elapsed_nanoseconds)
        shape = client_shape(exchange.request.headers)
        response, headers = await call_unary(self._method, canonical, exchange, self._face, notes)
        if codec.content_type is not None:
            headers[hdrs.CONTENT_TYPE] = codec.content_type(response)
        if codec.encode_pieces is not None:
            pieces = codec.encode_pieces(response, canonical, shape)
            return await response_in_pieces(exchange, headers, pieces, self._settings.turns)
        if response.ByteSize() < BIG_BYTES:
            body = codec.encode_response(response, canonical, shape)
        else:
            body = await asyncio.to_thread(codec.encode_response, response, canonical, shape)
        return WholeResponse(headers, body)


def _form_decoder(codec: UnaryFace[Request, Response]) -> Callable[[bytes, str], DecodedRequest[Request]] | None:
    if (decode := codec.decode_form) is None:
        return None
    return lambda body, content_type: decode(parse_form(body, content_type))
