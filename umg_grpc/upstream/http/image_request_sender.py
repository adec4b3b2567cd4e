"""HTTP exchanges of image calls, whose large responses are read only as fast as memory becomes free."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple, Self, TypeVar

from msgspec import structs

from umg_grpc.errors import UmgError
from umg_grpc.upstream.answer_memory_budget import AnswerBudget
from umg_grpc.upstream.http.large_body_reader import read_rest
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.response_decoding import decoded_body, decoded_parts, refusal
from umg_grpc.upstream.http1.connection import Exchange
from umg_grpc.upstream.http1.connection_errors import too_large
from umg_grpc.upstream.http1.request import Outgoing
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES, NO_HEADERS
from umg_grpc.v1 import pb
from umg_grpc.wire.core.base64_files import CutBody, EncodedFiles
from umg_grpc.wire.images.provider_protocol import ImageProtocol
from umg_grpc.wire.text_format import UpstreamRequest

Decoded = TypeVar("Decoded")

STEP_BYTES = 1 << 20
"""Further bytes of a response of unknown size for which memory is held at once."""


class CallEnd(NamedTuple):
    """End of a call for all its exchanges together: the caller's deadline and the channel's, on the event loop's
    clock.
    """

    callers: float
    channels: float

    @classmethod
    def of(cls, seconds: float, channel: HttpChannel) -> Self:
        """Return the end of a call that begins now and whose caller allows `seconds`."""
        now = asyncio.get_running_loop().time()
        return cls(now + seconds, now + channel.total_seconds)

    @property
    def left(self) -> float:
        """Seconds until the earlier deadline, at least 0."""
        return max(0.0, min(self) - asyncio.get_running_loop().time())

    def limit(self, outgoing: Outgoing) -> Outgoing:
        """Return the request with its time limits reduced to the channel's deadline. Raise UmgError if that has
        passed.
        """
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
    """Memory that one response holds in the memory budget, which grows with the received bytes."""

    def __init__(self, budget: AnswerBudget, end: CallEnd) -> None:
        self._budget = budget
        self._end = end
        self._bytes = 0

    async def cover(self, size: int, *, ahead: int = 0) -> None:
        """Wait until the response holds at least `size` bytes; if it needs more, `ahead` further bytes are taken too.

        Raise UmgError(UNAVAILABLE) at the end of the call's time.
        """
        if size > self._bytes:
            step = size - self._bytes + ahead
            await self._budget.hold(step, self._end.left)
            self._bytes += step


@dataclass(frozen=True)
class ImageExchanges:
    """Sender of image requests to one provider. Raises the errors of the HTTP client and the codec."""

    channel: HttpChannel
    protocol: ImageProtocol
    budget: AnswerBudget

    async def fetch(
        self,
        encoded: UpstreamRequest,
        decode: Callable[[bytes], Decoded],
        end: CallEnd,
        *,
        key_id: str = "",
        is_expected: Callable[[UmgError], bool] | None = None,
    ) -> tuple[Decoded, str]:
        """Send a request. Return the decoded body of the successful response, and the fingerprint of the used key.

        `is_expected`: whether an error of the provider is normal, so that it is not recorded as a failure.
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
        """Send a request, and return the images of the successful response.

        If `files` is given, base64 images are stored there unchanged, and the response refers to them. `is_expected`:
        see `fetch`.
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
        self, exchange: Exchange, held: Held, decode: Callable[[bytes], Decoded], beginning: bytes = b""
    ) -> Decoded:
        """Read the body of a response, and return it decoded; `beginning` was read before. Raise
        UmgError(UPSTREAM_FAILED) if it is too large.
        """
        parts = await self._read(exchange, held, beginning)
        return await decoded_parts(parts, decode, self.channel.client.decodes)

    async def _read(
        self, exchange: Exchange, held: Held, beginning: bytes, feed: Callable[[bytes], None] | None = None
    ) -> list[bytes]:
        """Read a body in parts, see `read_rest`, as fast as memory becomes free."""
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
    ) -> AsyncGenerator[tuple[Exchange, str], None]:
        """Send a request. Yield the exchange with the successful response, and the fingerprint of the key.

        The block reads the body, and its outcome is recorded. Unless it is a query, a new connection is used: a pooled
        one may be closed by the provider, and a repeated request could make, and cost, the images twice.
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
            channel.record_success(endpoint, headers)
        finally:
            if exchange is not None:
                exchange.close()
