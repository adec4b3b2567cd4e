"""Handler of image generation and editing: returns one response, or a stream if the body selects it."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import grpc
from aiohttp import hdrs, web
from msgspec.structs import replace

from http_facade.exchange.direct_json_response import WholeResponse
from http_facade.exchange.grpc_service_calls import call_unary, open_stream
from http_facade.exchange.handler_failures import with_body_paths
from http_facade.exchange.http_exchange import HttpExchange
from http_facade.exchange.large_json_response import response_in_pieces
from http_facade.exchange.message_stream_response import stream_messages
from http_facade.exchange.multipart_form_parser import parse_form
from http_facade.exchange.request_bodies import BodyReader
from http_facade.exchange.server_settings import Settings
from http_facade.routes import Route
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.core.model_in_path import form_of_model
from umg_grpc.wire.core.response_shape_selection import SHAPE_HEADER, client_shape
from umg_grpc.wire.core.sse import EVENT_STREAM
from umg_grpc.wire.core.undecoded_base64_files import NONCE_BYTES, EncodedFiles
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.image_format_interface import ImageStreamEncoder
from umg_grpc.wire.images import IMAGE_FORMATS
from umg_grpc.wire.unary_format_interface import ClientShape

VARY_HEADERS = f"{hdrs.USER_AGENT}, {SHAPE_HEADER}"
"""Request headers by which the shape of a response is selected."""


class ImageRequest(NamedTuple):
    """Decoded body of an image request: canonical request, the decoder's `notes`, form of the response."""

    canonical: pb.GenerateImageRequest
    notes: RequestNotes
    stream: bool
    shape: ClientShape


class GenerateImage:
    """Handler of one path for image generation or editing in one wire format."""

    def __init__(self, route: Route, channel: grpc.aio.Channel, settings: Settings) -> None:
        self._face = route.format
        self._codec = IMAGE_FORMATS[route.format]
        self._stub = rpc.ImageServiceStub(channel)
        self._bodies = BodyReader(route.format, self._codec.source_headers, channel, settings)
        self._settings = settings

    async def respond(self, exchange: HttpExchange) -> web.StreamResponse | WholeResponse:
        """Return the images in one body, or stream them as events."""
        request = await self._read(exchange)
        try:
            if request.stream:
                return await self._stream(exchange, request)
            return await self._respond_whole(exchange, request)
        except grpc.aio.AioRpcError as failure:
            raise with_body_paths(failure, request.notes.opaque_paths) from None

    async def _respond_whole(self, exchange: HttpExchange, request: ImageRequest) -> web.StreamResponse | WholeResponse:
        files = EncodedFiles(secrets.token_bytes(NONCE_BYTES))
        try:
            notes = replace(request.notes, files=files)
            response, headers = await call_unary(
                self._stub.GenerateImage, request.canonical, exchange, self._face, notes
            )
            if self._codec.shape is None:
                headers[hdrs.VARY] = VARY_HEADERS
            pieces = self._codec.encode_pieces(response, request.canonical, request.shape, files)
            return await response_in_pieces(exchange, headers, pieces, self._settings.turns)
        finally:
            files.clear()

    async def _read(self, exchange: HttpExchange) -> ImageRequest:
        codec, headers, deployment = self._codec, exchange.request.headers, exchange.deployment
        # all clients of Azure read the bodies of SDKs
        default = ClientShape.SDK if deployment and SHAPE_HEADER not in headers else None

        def shape() -> ClientShape:
            return codec.shape or default or client_shape(headers)

        def decode(body: bytes, source_headers: Mapping[str, str], _: str) -> ImageRequest:
            canonical, notes = codec.decode_request(body, source_headers)
            return ImageRequest(canonical, notes, codec.wants_stream(body), shape())

        def decode_form(body: bytes, content_type: str) -> ImageRequest:
            if codec.decode_form is None:
                raise ValueError(f"{codec.name} has no forms")
            (canonical, notes), stream = codec.decode_form(form_of_model(parse_form(body, content_type), deployment))
            return ImageRequest(canonical, notes, stream, shape())

        return await self._bodies.read(exchange, decode, None if codec.decode_form is None else decode_form)

    async def _stream(self, exchange: HttpExchange, request: ImageRequest) -> web.StreamResponse:
        encoder = ImageEvents(self._codec.stream_encoder(request.canonical), self._codec.heartbeat)
        message = pb.StreamGenerateImageRequest(request=request.canonical)
        opened = open_stream(self._stub.StreamGenerateImage, message, exchange, self._face, request.notes)
        return await stream_messages(exchange, opened, encoder, self._face, self._settings)


@dataclass(frozen=True)
class ImageEvents:
    """Encoder of one stream of images as server-sent events."""

    encoder: ImageStreamEncoder
    heartbeat: bytes

    def content_type(self, first: pb.StreamGenerateImageResponse) -> str:
        return EVENT_STREAM

    def feed(self, message: pb.StreamGenerateImageResponse) -> bytes:
        return self.encoder.feed(message)

    def close(self) -> bytes:
        return self.encoder.close()

    def error(self, error: UmgError) -> bytes:
        return self.encoder.error(error)
