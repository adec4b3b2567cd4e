"""Text generation by a provider that speaks a text format over HTTP: codec and transport put together."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from umg_grpc.errors import UmgError
from umg_grpc.upstream.http_channel import HttpChannel, refusal
from umg_grpc.v1 import pb
from umg_grpc.wire.format import BIG_BYTES, TextFormat, UpstreamRequest
from umg_grpc.wire.replay import replay
from umg_grpc.wire.report import Report
from umg_grpc.wire.sse import BOM


class HttpCall(NamedTuple):
    """A text request as it goes to one channel."""

    upstream: "HttpText"
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


JSON = "application/json"


class HttpText:
    """One channel, for text. Raises what the transport and the codec raise."""

    def __init__(
        self,
        channel: HttpChannel,
        formats: Sequence[TextFormat],
        *,
        check: Callable[[pb.GenerateRequest], None] = lambda _: None,
    ) -> None:
        """`check` raises UmgError for what the channel's models cannot do."""
        self.slow_bytes = BIG_BYTES
        self._channel = channel
        self._formats = {text_format.name: text_format for text_format in formats}
        self._preferred = formats[0]
        self._check = check

    def prepare(self, request: pb.GenerateRequest, model: str, *, stream: bool) -> HttpCall:
        """The request in the caller's own format where the channel speaks it, else in the one that it prefers."""
        self._check(request)
        text_format = self._formats.get(request.source.format, self._preferred)
        encoded = text_format.encode_request(request, model, stream)
        return HttpCall(self, request, text_format, encoded, passes=_passes(request, text_format))

    async def generate(self, call: HttpCall, seconds: float) -> pb.GenerateResponse:
        """The answer, within `seconds` and the channel's own deadlines."""
        codec = call.format
        body = await self._channel.fetch(call.encoded, codec.key_header, codec.decode_error, seconds)
        return await _decoded(call, body, passes=call.passes)

    async def stream(self, call: HttpCall, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """The answer as it comes, one message a read. Closing the generator closes the provider's connection."""
        channel, answer = self._channel, None
        endpoint, outgoing = await channel.outgoing(call.encoded, call.format.key_header, seconds)
        try:
            answer = await channel.transport.open(outgoing)
            channel.works(endpoint)
            if answer.status != 200:
                raise refusal(call.format.decode_error, answer.status, answer.headers, await answer.read())
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
            channel.note(error, endpoint)
            raise
        finally:
            if answer is not None:
                answer.close()


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
