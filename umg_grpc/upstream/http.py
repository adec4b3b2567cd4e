"""A channel to a provider that speaks a wire format over HTTP: codec and transport put together."""

import asyncio
import itertools
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from ssl import SSLContext
from typing import NamedTuple, Protocol

from umg_grpc.errors import UmgError
from umg_grpc.upstream.transport import Deadlines, Outgoing, Transport
from umg_grpc.v1 import pb
from umg_grpc.wire.format import BIG_BYTES, TextFormat, UpstreamRequest
from umg_grpc.wire.replay import replay
from umg_grpc.wire.report import Report
from umg_grpc.wire.sse import BOM


@dataclass(frozen=True)
class Endpoint:
    """Where a channel leads and what opens it."""

    base_url: str
    headers: Mapping[str, str]  # what goes with every request, credentials too where the operator says which header
    key: str = ""  # the credentials where the format says it


class HttpCall(NamedTuple):
    """A text request as it goes to one channel."""

    upstream: "HttpUpstream"
    request: pb.GenerateRequest
    format: TextFormat
    encoded: UpstreamRequest
    passes: bool  # whether the answer goes back as it comes

    @property
    def report(self) -> Report:
        """What the channel cannot be told."""
        return self.encoded.report

    async def generate(self, seconds: float) -> pb.GenerateResponse:
        """See `TextCall`."""
        return await self.upstream.generate(self, seconds)

    def stream(self, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """See `TextCall`."""
        return self.upstream.stream(self, seconds)


class EndpointSource(Protocol):
    """Where a channel leads at this call."""

    async def __call__(self, broken: Endpoint | None) -> Endpoint:
        """`broken` is where a connection last broke, or could not be made."""
        ...


JSON = "application/json"
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
        check: Callable[[pb.GenerateRequest], None] = lambda _: None,
    ) -> None:
        """`check` raises UmgError for what the channel's models cannot do."""
        self.slow_bytes = BIG_BYTES
        self._transport = transport
        self._formats = {text_format.name: text_format for text_format in formats}
        self._preferred = formats[0]
        self._endpoint = endpoint
        self._broken: Endpoint | None = None
        self._deadlines = deadlines
        self._proxy = proxy
        self._tls = tls
        self._check = check

    def prepare(self, request: pb.GenerateRequest, model: str, *, stream: bool) -> HttpCall:
        """The request in the caller's own format where the channel speaks it, else in the one that it prefers."""
        self._check(request)
        text_format = self._formats.get(request.source.format, self._preferred)
        encoded = text_format.encode_request(request, model, stream)
        return HttpCall(self, request, text_format, encoded, passes=_passes(request, text_format))

    async def generate(self, call: HttpCall, seconds: float) -> pb.GenerateResponse:
        """The answer, within `seconds` and the channel's own deadlines."""
        endpoint, outgoing = await self._outgoing(call, seconds)
        try:
            status, headers, body = await self._transport.fetch(outgoing)
            self._works(endpoint)
            if status != 200:
                raise _refusal(call.format, status, headers, body)
            return await _decoded(call, body, passes=call.passes)
        except UmgError as error:
            self._note(error, endpoint)
            raise

    async def stream(self, call: HttpCall, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """The answer as it comes, one message a read. Closing the generator closes the provider's connection."""
        endpoint, outgoing = await self._outgoing(call, seconds)
        answer = None
        try:
            answer = await self._transport.open(outgoing)
            self._works(endpoint)
            if answer.status != 200:
                raise _refusal(call.format, answer.status, answer.headers, await answer.read())
            async with aclosing(answer.chunks()) as chunks:
                first = await anext(chunks, b"")
                if answer.content_type == JSON and first.removeprefix(BOM).lstrip()[:1] == b"{":  # it does not stream
                    body = b"".join([first, *[chunk async for chunk in chunks]])
                    yield replay(await _decoded(call, body, passes=False))
                    return
                decoder = call.format.stream_decoder(call.request, call.passes)
                if (message := decoder.feed(first)) is not None:
                    yield message
                while not decoder.done and (chunk := await anext(chunks, None)) is not None:
                    if (message := decoder.feed(chunk)) is not None:
                        yield message
            if (message := decoder.close()) is not None:
                yield message
            await answer.finish()
        except UmgError as error:
            self._note(error, endpoint)
            raise
        finally:
            if answer is not None:
                answer.close()

    def _works(self, endpoint: Endpoint) -> None:
        """It broke off an answer, but it is there: the next call need not wait for another."""
        if self._broken == endpoint:
            self._broken = None

    def _note(self, error: UmgError, endpoint: Endpoint) -> None:
        if error.reason in BROKEN:
            self._broken = endpoint
        elif error.reason == pb.ERROR_REASON_UPSTREAM_RATE_LIMITED:  # not every provider says for how long
            error.metadata.setdefault("retry_after_seconds", "1")

    async def _outgoing(self, call: HttpCall, seconds: float) -> tuple[Endpoint, Outgoing]:
        """Where the call goes, and what is sent there. Raises UmgError(UPSTREAM_TIMEOUT) when no time is left."""
        started = time.monotonic()
        endpoint = await self._endpoint(self._broken)
        outgoing = Outgoing(
            url=endpoint.base_url + call.encoded.path,
            headers={
                "Content-Type": "application/json",
                **call.encoded.headers,
                **endpoint.headers,
                **_credentials(call.format, endpoint.key),
            },
            body=call.encoded.body,
            deadlines=self._deadlines.within(seconds - (time.monotonic() - started)),
            proxy=self._proxy,
            tls=self._tls,
        )
        return endpoint, outgoing


def _passes(request: pb.GenerateRequest, text_format: TextFormat) -> bool:
    """Whether the provider's answer is the caller's, word for word: not where it has to be written in another way, or
    would have to name a response that its provider was not told of.
    """
    if request.source.format != text_format.name or request.thinking_to_content:
        return False
    return "previous_response_id" not in request.source.edited_fields or bool(request.previous_response_id)


async def _decoded(call: HttpCall, body: bytes, *, passes: bool) -> pb.GenerateResponse:
    body = body.removeprefix(BOM)
    if len(body) < BIG_BYTES:
        return call.format.decode_response(body, call.request, passes)
    return await asyncio.to_thread(call.format.decode_response, body, call.request, passes)


def _refusal(text_format: TextFormat, status: int, headers: Mapping[str, str], body: bytes) -> UmgError:
    """Why the provider did not answer with 200."""
    if 300 <= status < 400:
        message = "the provider answered with a redirect, which is not followed; its base_url may be wrong"
        return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, message, upstream_status=str(status))
    return text_format.decode_error(status, {name.lower(): value for name, value in headers.items()}, body)


def _credentials(text_format: TextFormat, key: str) -> dict[str, str]:
    if not key:
        return {}
    bearer = text_format.key_header == "authorization"
    return {"Authorization": f"Bearer {key}"} if bearer else {text_format.key_header: key}


def in_turn(endpoints: Sequence[Endpoint]) -> EndpointSource:
    """The endpoints (one for each key of a channel) in turn."""
    turn = itertools.cycle(endpoints)

    async def endpoint(broken: Endpoint | None) -> Endpoint:  # a provider's address stays
        return next(turn)

    return endpoint
