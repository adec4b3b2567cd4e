"""Text generation by a provider that speaks a text format over HTTP: codec and transport put together."""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import NamedTuple

from umg_grpc.errors import UmgError
from umg_grpc.quirks import NO_CHANNEL_QUIRKS, ChannelQuirks
from umg_grpc.upstream.bodies import joined
from umg_grpc.upstream.http_channel import HttpChannel, decoded, refusal
from umg_grpc.v1 import pb
from umg_grpc.wire import sse
from umg_grpc.wire.format import BIG_BYTES, TextFormat, UpstreamRequest
from umg_grpc.wire.replay import replay
from umg_grpc.wire.report import Report


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

    def decode(self, body: bytes) -> pb.GenerateResponse:
        """A whole answer."""
        return self.format.decode_response(body, self.request, self.passes)


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

    def prepare(
        self, request: pb.GenerateRequest, model: str, *, stream: bool, quirks: ChannelQuirks = NO_CHANNEL_QUIRKS
    ) -> HttpCall:
        """The request in the caller's own format where the channel speaks it, else in the one that it prefers."""
        self._check(request)
        text_format = self._formats.get(request.source.format, self._preferred)
        own = quirks.of(text_format.name, request.source.format)
        encoded = text_format.encode_request(request, model, stream, own)
        return HttpCall(self, request, text_format, encoded, passes=_passes(request, text_format))

    async def generate(self, call: HttpCall, seconds: float) -> pb.GenerateResponse:
        """The answer, within `seconds` and the channel's own deadlines."""
        codec = call.format
        return await self._channel.fetch(call.encoded, codec.key_header, codec.decode_error, call.decode, seconds)

    async def stream(self, call: HttpCall, seconds: float) -> AsyncGenerator[pb.StreamGenerateResponse, None]:
        """The answer as it comes, one message a read. Closing the generator closes the provider's connection."""
        channel, answer = self._channel, None
        endpoint, outgoing = await channel.outgoing(call.encoded, call.format.key_header, seconds)
        try:
            answer = await channel.transport.open(outgoing)
            channel.is_there(endpoint)
            if answer.status != 200:
                raise refusal(call.format.decode_error, answer.status, answer.headers, await answer.refusal())
            async with aclosing(answer.chunks()) as chunks:
                chunk: bytes | None = await anext(chunks, b"")
                if answer.content_type == JSON and chunk and chunk.removeprefix(sse.BOM).lstrip()[:1] == b"{":
                    answer.heard()
                    yield await _replayed(call, chunk + await joined(chunks))
                    channel.works(endpoint)
                    return
                decoder, heard = call.format.stream_decoder(call.request, call.passes), False
                while chunk is not None:
                    if (message := decoder.feed(chunk)) is not None:
                        if not heard and (heard := _says_something(message)):
                            answer.heard()
                            channel.works(endpoint)
                        yield message
                    chunk = None if decoder.done else await anext(chunks, None)
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


def _says_something(message: pb.StreamGenerateResponse) -> bool:
    """Whether it is no mere comment, with which a provider keeps the connection while it has nothing to say."""
    if message.events:
        return True
    for event in sse.split(message.source_frames):  # noqa: SIM110  `any` over a generator takes longer
        if event.data is not None:
            return True
    return False


async def _replayed(call: HttpCall, body: bytes) -> pb.StreamGenerateResponse:
    """The answer of a provider that was asked for a stream and does not stream."""
    return replay(await decoded(body, lambda body: call.format.decode_response(body, call.request, False)))
