"""A channel to a provider that speaks a wire format over HTTP: codec and transport put together."""

import itertools
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from ssl import SSLContext
from typing import NamedTuple, Protocol

from umg_grpc.errors import UmgError
from umg_grpc.upstream.transport import Deadlines, Outgoing, Transport
from umg_grpc.v1 import pb
from umg_grpc.wire.format import TextFormat, UpstreamRequest
from umg_grpc.wire.replay import replay

MAX_ERROR_BYTES = 64 << 10


@dataclass(frozen=True)
class Endpoint:
    """Where a channel leads and what opens it."""

    base_url: str
    headers: Mapping[str, str]  # credentials, and what the operator adds to every request


class TextCall(NamedTuple):
    """A text request as it goes to one channel."""

    request: pb.GenerateRequest
    format: TextFormat
    encoded: UpstreamRequest
    passes: bool  # whether the answer goes back as it comes


class EndpointSource(Protocol):
    """Where a channel leads at this call."""

    async def __call__(self, *, broken: bool) -> Endpoint:
        """`broken`: whether the connection of an earlier call broke, or could not be made."""
        ...


BROKEN = frozenset({pb.ERROR_REASON_UPSTREAM_UNREACHABLE, pb.ERROR_REASON_UPSTREAM_CUT})


class HttpUpstream:
    """One channel. Raises what the transport and the codec raise."""

    def __init__(
        self,
        transport: Transport,
        formats: Sequence[TextFormat],
        endpoint: EndpointSource,
        deadlines: Deadlines,
        *,
        proxy: str | None = None,
        tls: SSLContext | bool = True,
    ) -> None:
        self._transport = transport
        self._formats = {text_format.name: text_format for text_format in formats}
        self._preferred = formats[0]
        self._endpoint = endpoint
        self._broken = False
        self._deadlines = deadlines
        self._proxy = proxy
        self._tls = tls

    def prepare(self, request: pb.GenerateRequest, model: str, *, stream: bool) -> TextCall:
        """The request in the caller's own format where the channel speaks it, else in the one that it prefers."""
        text_format = self._formats.get(request.source.format, self._preferred)
        same = request.source.format == text_format.name
        encoded = text_format.encode_request(request, model, stream)
        return TextCall(request, text_format, encoded, passes=same and not request.thinking_to_content)

    async def generate(self, call: TextCall, seconds: float) -> pb.GenerateResponse:
        """The answer, within `seconds` and the channel's own deadlines."""
        try:
            status, headers, body = await self._transport.fetch(await self._outgoing(call, seconds))
        except UmgError as error:
            self._broken = error.reason in BROKEN
            raise
        if status != 200:
            raise _refusal(call.format, status, headers, body)
        return call.format.decode_response(body, call.request, call.passes)

    async def stream(self, call: TextCall, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """The answer as it comes, one message a read. Closing the generator closes the provider's connection."""
        answer = None
        try:
            answer = await self._transport.open(await self._outgoing(call, seconds))
            if answer.status != 200:
                raise _refusal(call.format, answer.status, answer.headers, await answer.read())
            if answer.content_type == "application/json":  # an upstream that does not stream
                yield replay(call.format.decode_response(await answer.read(), call.request, False))
                return
            decoder = call.format.stream_decoder(call.request, call.passes)
            async with aclosing(answer.chunks()) as chunks:
                async for chunk in chunks:
                    if (message := decoder.feed(chunk)) is not None:
                        yield message
            if (message := decoder.close()) is not None:
                yield message
        except UmgError as error:
            self._broken = error.reason in BROKEN
            raise
        finally:
            if answer is not None:
                answer.close()

    async def _outgoing(self, call: TextCall, seconds: float) -> Outgoing:
        broken, self._broken = self._broken, False
        endpoint = await self._endpoint(broken=broken)
        return Outgoing(
            url=endpoint.base_url + call.encoded.path,
            headers={"Content-Type": "application/json", **call.encoded.headers, **endpoint.headers},
            body=call.encoded.body,
            deadlines=self._deadlines.within(seconds),
            proxy=self._proxy,
            tls=self._tls,
        )


def _refusal(text_format: TextFormat, status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """Why the provider did not answer with 200."""
    if 300 <= status < 400:
        message = "the provider answered with a redirect, which is not followed; its base_url may be wrong"
        return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status=str(status))
    return text_format.decode_error(
        status, {name.lower(): value for name, value in headers.items()}, body[:MAX_ERROR_BYTES]
    )


def in_turn(base_url: str, headers: Sequence[Mapping[str, str]]) -> EndpointSource:
    """One endpoint for each set of headers (each key of a channel), in turn."""
    turn = itertools.cycle([Endpoint(base_url, each) for each in headers])

    async def endpoint(*, broken: bool) -> Endpoint:  # a provider's address stays
        return next(turn)

    return endpoint
