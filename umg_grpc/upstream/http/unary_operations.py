"""Operations with one request and one response by a provider over HTTP: combines codec and HTTP client."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Generic, TypeVar

from google.protobuf.message import Message

from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.vendor_member_dialects import MemberDialect, dialect_of
from umg_grpc.operations import StreamedMethod
from umg_grpc.upstream.http.large_body_reader import read_rest
from umg_grpc.upstream.http.provider_call import HasSource, HttpCall
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.response_decoding import guarded, joined
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES, NO_HEADERS
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.base64_media import normal_mime
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.text_format_interface import BIG_BYTES, UpstreamRequest
from umg_grpc.wire.unary_format_interface import MessageDecoder, UnaryProviderFormat
from umg_grpc.wire.vendor_dialect_adjustment import fit_members

Request = TypeVar("Request", bound=HasSource)
Response = TypeVar("Response")


SMALL_BYTES = 1 << 10
"""Size in bytes up to which a read is decoded without the limit of bytes per iteration of the event loop."""


class HttpUnaryCall(HttpCall[Request, Response]):
    """Call of an operation with one request and one response that is ready to be sent."""

    format: UnaryProviderFormat[Request, Response]
    method: StreamedMethod[Any] | None = None
    """Method with a streamed response; None for an operation without one."""

    def decode_guarded(self, body: bytes) -> Response:
        return guarded(self.decode, body) if self.format.is_binary else super().decode_guarded(body)

    async def stream(self, seconds: float) -> AsyncGenerator[Message, None]:
        """Send the request, and yield a message for each received part of the response; a single one if the provider
        does not stream. Closing the generator closes the connection, which stops the provider.
        """
        self.prepare_send()
        channel, codec = self.channel, self.format
        exchange: ProviderExchange | None = None
        endpoint, outgoing = await channel.outgoing(self.encoded, codec.key_header, seconds)
        try:
            exchange = await channel.client.open(outgoing)
            response = exchange.response
            if response.status != 200:
                body = await exchange.refusal()
                raise self._refusal(response.status, response.headers, body, is_forwarded=outgoing.is_forwarded)
            channel.record_success_status()
            kind = normal_mime(response.content_type)
            decoder = codec.stream_decoder(self.request, kind, self.passes) if codec.stream_decoder else None
            messages = self._whole(exchange) if decoder is None else self._decoded(exchange, decoder)
            has_begun = False
            async with aclosing(messages):
                async for message in messages:
                    if not has_begun:
                        has_begun = True
                        channel.record_success(endpoint, response.headers, self.report)
                    yield message
        except UmgError as error:
            status, headers = (0, NO_HEADERS) if exchange is None else (response.status, response.headers)
            channel.record_failure(error, endpoint, self.encoded.path, status, headers)
            raise
        finally:
            if exchange is not None:
                exchange.close()

    async def _whole(self, exchange: ProviderExchange) -> AsyncGenerator[Message, None]:
        client, chunk = self.channel.client, await exchange.read()
        exchange.deadline.has_begun = True
        response = await joined(await read_rest(exchange, chunk, client), self.decode_guarded, client.decodes)
        self.read_headers(response, exchange.response.headers)
        for message in self.method.messages(response) if self.method is not None else ():
            yield message

    async def _decoded(
        self, exchange: ProviderExchange, decoder: MessageDecoder[Message]
    ) -> AsyncGenerator[Message, None]:
        deadline = exchange.deadline
        while not decoder.done and (chunk := await exchange.read()):
            if len(chunk) > SMALL_BYTES:
                await self.channel.client.streams.take(len(chunk))
            if (message := guarded(decoder.feed, chunk)) is not None:
                deadline.has_begun = True
                yield message
            elif not deadline.has_begun and sse.is_keep_alive(chunk):
                deadline.extend_first(asyncio.get_running_loop().time())
        if (last := guarded(decoder.close)) is not None:
            yield last
        if not exchange.done:
            await exchange.finish()

    def read_headers(self, response: Response, headers: Mapping[str, str]) -> None:
        if self.format.read_headers is not None:
            self.format.read_headers(response, headers)


class HttpUnary(Generic[Request, Response]):
    """Operation with one request and one response by a channel's provider. Raises UmgError if the provider fails."""

    def __init__(
        self,
        channel: HttpChannel,
        formats: Sequence[UnaryProviderFormat[Request, Response]],
        max_bytes: int = MAX_RESPONSE_BYTES,
        dialects: tuple[MemberDialect, ...] = (),
        method: StreamedMethod[Any] | None = None,
    ) -> None:
        """Create the operation of a channel. `formats`: the preferred one first; `method`: None without a stream."""
        self._channel = channel
        self._dialects = dialects
        self._method = method
        self._max_bytes = max_bytes
        self._formats = {codec.name: codec for codec in formats}
        self._preferred = formats[0]

    def is_slow(self, size: int) -> bool:
        return size >= BIG_BYTES

    def codec_of(self, request: Request) -> UnaryProviderFormat[Request, Response]:
        """Return the wire format for a request: the caller's if the provider accepts it, else the preferred one."""
        return self._formats.get(request.source.format, self._preferred)

    def prepare(self, request: Request, model: str, notes: RequestNotes = NO_NOTES) -> HttpCall[Request, Response]:
        codec = self.codec_of(request)
        encoded = self.encode(codec, request, model, notes)
        passes = codec.name == request.source.format
        return HttpUnaryCall(self._channel, codec, request, encoded, passes, self._max_bytes, method=self._method)

    def encode(
        self, codec: UnaryProviderFormat[Request, Response], request: Request, model: str, notes: RequestNotes
    ) -> UpstreamRequest:
        """Encode the request in a wire format, limited to the members that the provider accepts."""
        encoded = codec.encode_request(request, model, notes)
        if (dialect := dialect_of(self._dialects, model, codec.protocol)) is None:
            return encoded
        return fit_members(encoded, request, dialect)
