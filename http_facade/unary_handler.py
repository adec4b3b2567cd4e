"""The handler of operations with one request and one answer: embedding, reranking."""

import asyncio
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Generic, TypeVar

import grpc
from aiohttp import hdrs, web
from google.protobuf.message import Message

from http_facade.answers import Whole
from http_facade.bodies import JSON, Bodies
from http_facade.calls import metadata, model_of, shown
from http_facade.routes import Route
from http_facade.settings import Settings
from umg_grpc.wire.client_shape import client_shape
from umg_grpc.wire.format import BIG_BYTES
from umg_grpc.wire.unary import ClientShape, UnaryFormat

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)


class Unary(Generic[Request, Response]):
    """One row of the table: body of the format in, body of the format out."""

    def __init__(
        self,
        route: Route,
        codec: UnaryFormat[Request, Response],
        method: "grpc.aio.UnaryUnaryMultiCallable[Request, Response]",
        channel: grpc.aio.Channel,
        settings: Settings,
    ) -> None:
        self._face = route.format
        self._codec = codec
        self._method = method
        self._stalled_seconds = settings.stalled_seconds
        self._bodies = Bodies(route.format, codec.source_headers, channel, settings)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """The answer in the form that the caller's client expects."""

        def decode(body: bytes, headers: Mapping[str, str]) -> tuple[Request, ClientShape]:
            decoded = self._codec.decode_request(body, headers)
            if self._codec.name_model is not None:
                self._codec.name_model(decoded, model_of(request))
            return decoded, client_shape(request.headers)

        canonical, shape = await self._bodies.decoded(request, decode)
        call = self._method(canonical, metadata=metadata(request, self._face))
        answer = await call
        headers = {hdrs.CONTENT_TYPE: JSON, **shown(await call.initial_metadata())}
        if self._codec.encode_pieces is not None:
            pieces = self._codec.encode_pieces(answer, canonical, shape)
            body, more = next(pieces), next(pieces, None)
            if more is not None:
                return await self._written(request, headers, chain([body, more], pieces))
        elif answer.ByteSize() < BIG_BYTES:
            body = self._codec.encode_response(answer, canonical, shape)
        else:
            body = await asyncio.to_thread(self._codec.encode_response, answer, canonical, shape)
        return Whole(headers=headers, body=body)

    async def _written(
        self, request: web.Request, headers: Mapping[str, str], pieces: Iterator[bytes]
    ) -> web.StreamResponse:
        """The answer, each piece made when the client has read those before it."""
        response = web.StreamResponse(headers=headers)
        await response.prepare(request)
        for piece in pieces:
            try:
                async with asyncio.timeout(self._stalled_seconds):
                    await response.write(piece)
            except TimeoutError:
                if request.transport is not None:
                    request.transport.abort()
                raise ConnectionError("the client does not read its answer") from None
            await asyncio.sleep(0)  # a write to a client that reads waits for nothing: others have their turn
        await response.write_eof()
        return response
