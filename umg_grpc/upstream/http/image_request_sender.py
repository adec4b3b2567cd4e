"""HTTP exchanges of image calls, whose large responses are read only as fast as memory becomes free."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self, TypeVar

from msgspec import structs

from umg_grpc.base.errors import UmgError
from umg_grpc.upstream.http.large_body_reader import read_rest
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.response_decoding import decoded_body, decoded_parts, refusal
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.http1.connection_errors import too_large
from umg_grpc.upstream.http1.request import OutgoingRequest
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES, NO_HEADERS
from umg_grpc.upstream.response_memory_budget import ResponseBudget
from umg_grpc.v1 import pb
from umg_grpc.wire.core.undecoded_base64_files import CutBody, EncodedFiles
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.text_format_interface import UpstreamRequest

Decoded = TypeVar("Decoded")

STEP_BYTES = 1 << 20
"""Bytes of memory that are reserved at once for the next part of a response of unknown size."""


class CallEnd(NamedTuple):
    """Deadlines of a call, which all its HTTP requests share, as times on the event loop's clock."""

    callers: float
    """Deadline of the caller."""
    channels: float
    """Deadline by the channel's total time limit."""

    @classmethod
    def of(cls, seconds: float, channel: HttpChannel) -> Self:
        """Return the deadlines of a call that begins now. `seconds`: time until the caller's deadline."""
        now = asyncio.get_running_loop().time()
        return cls(now + seconds, now + channel.total_seconds)

    @property
    def left(self) -> float:
        """Seconds until the earlier of the two deadlines, at least 0."""
        return max(0.0, min(self) - asyncio.get_running_loop().time())

    def limit(self, outgoing: OutgoingRequest) -> OutgoingRequest:
        """Return the request with limits up to the channel's deadline. Raise UmgError(UPSTREAM_TIMEOUT) after it."""
        deadlines, left = outgoing.deadlines, self.channels - asyncio.get_running_loop().time()
        if left <= 0:
            raise deadlines.late("total")
        limited = replace(
            deadlines,
            connect=min(deadlines.connect, left),
            first_byte=min(deadlines.first_byte, left),
            idle=min(deadlines.idle, left),
            total=min(deadlines.total, left),
        )
        return structs.replace(outgoing, deadlines=limited)


class Held:
    """Memory that is reserved for one response, and extended with the received bytes."""

    def __init__(self, budget: ResponseBudget, end: CallEnd) -> None:
        self._budget = budget
        self._end = end
        self._bytes = 0

    async def cover(self, size: int, *, ahead: int = 0) -> None:
        """Wait until at least `size` bytes are reserved. If more have to be reserved, reserve `ahead` bytes in
        addition, so that not each part of the response waits. Raise UmgError(UNAVAILABLE) at the deadline of the call.
        """
        if size > self._bytes:
            step = size - self._bytes + ahead
            await self._budget.hold(step, self._end.left)
            self._bytes += step


@dataclass(frozen=True)
class ImageExchanges:
    """Sender of the HTTP requests of image calls of one channel. Raises UmgError if connection or provider fails."""

    channel: HttpChannel
    protocol: ImageProtocol
    budget: ResponseBudget

    async def fetch(
        self,
        encoded: UpstreamRequest,
        decode: Callable[[bytes], Decoded],
        end: CallEnd,
        *,
        key_id: str = "",
        is_expected: Callable[[UmgError], bool] | None = None,
    ) -> tuple[Decoded, str]:
        """Send a request. Return the body of the successful response, decoded by `decode`, and the fingerprint of the
        used key. `key_id`: fingerprint of the key to use, "" for the next one. `is_expected`: whether an error is part
        of normal operation, and not recorded as a failure of the provider.
        """
        async with self.opened(encoded, end, key_id=key_id, is_expected=is_expected) as (exchange, used):
            return await self.decoded(exchange, Held(self.budget, end), decode), used

    async def fetch_images(
        self,
        encoded: UpstreamRequest,
        request: pb.GenerateImageRequest,
        end: CallEnd,
        files: EncodedFiles | None,
        *,
        is_expected: Callable[[UmgError], bool] | None = None,
    ) -> pb.GenerateImageResponse:
        """Send a request, and return the images of the successful response. `files`: store for images in base64, to
        which the response then refers; None to decode them. `is_expected`: as in `fetch`.
        """

        def decode(body: bytes) -> pb.GenerateImageResponse:
            return self.protocol.decode_response(body, request)

        async with self.opened(encoded, end, is_expected=is_expected) as (exchange, _):
            held, cut = Held(self.budget, end), CutBody(files) if files is not None else None
            parts = await self._read(exchange, held, b"", cut.feed if cut is not None else None)
            if files is not None and cut is not None and (text := cut.text) is not None:
                try:
                    response = decoded_body(text, decode)
                except UmgError:
                    response = None  # its message may have a reference
                if response is not None and files.describe(response):
                    return response
            return await decoded_parts(parts, decode, self.channel.client.decodes)

    async def decoded(
        self, exchange: ProviderExchange, held: Held, decode: Callable[[bytes], Decoded], beginning: bytes = b""
    ) -> Decoded:
        """Read the body of a response as fast as memory becomes free, and return it decoded. `beginning`: bytes of the
        body that were read before. Raise UmgError(UPSTREAM_FAILED) if the body is too large.
        """
        parts = await self._read(exchange, held, beginning)
        return await decoded_parts(parts, decode, self.channel.client.decodes)

    async def _read(
        self, exchange: ProviderExchange, held: Held, beginning: bytes, feed: Callable[[bytes], None] | None = None
    ) -> list[bytes]:
        """Return the parts of a body, read as fast as memory becomes free."""
        stated = exchange.response.content_length
        if stated > MAX_RESPONSE_BYTES:
            raise too_large(MAX_RESPONSE_BYTES)
        await held.cover(stated)
        exchange.deadline.has_begun = True
        hold = partial(held.cover, ahead=STEP_BYTES)
        return await read_rest(exchange, beginning, self.channel.client, hold, feed)

    @asynccontextmanager
    async def opened(
        self,
        encoded: UpstreamRequest,
        end: CallEnd,
        *,
        key_id: str = "",
        is_expected: Callable[[UmgError], bool] | None = None,
    ) -> AsyncGenerator[tuple[ProviderExchange, str], None]:
        """Return a context manager that sends a request and returns (successful response, fingerprint of the key). Its
        block reads the body, and the outcome is recorded for the key. `key_id`, `is_expected`: as in `fetch`. A POST
        uses a new connection: a pooled one may be closed while the request is sent, and a repeated request could make,
        and cost, the images twice.
        """
        is_query = encoded.method == "GET"
        channel, exchange, headers, status = self.channel, None, NO_HEADERS, 0
        endpoint, outgoing = await channel.outgoing(
            encoded,
            self.protocol.key_header,
            end.callers - asyncio.get_running_loop().time(),
            repeatable=is_query,
            key_id=key_id,
        )
        try:
            exchange = await channel.client.open(structs.replace(end.limit(outgoing), reuses=is_query))
            status, headers = exchange.response.status, exchange.response.headers
            if status != 200:
                body = await exchange.refusal()
                raise refusal(*(self.protocol.decode_error, status, headers, body), is_forwarded=outgoing.is_forwarded)
            yield exchange, endpoint.key_id
        except UmgError as error:
            if is_expected is None or not is_expected(error):
                channel.record_failure(error, endpoint, encoded.path, status, headers)
            raise
        else:
            channel.record_success(endpoint, headers, encoded.report)
        finally:
            if exchange is not None:
                exchange.close()
