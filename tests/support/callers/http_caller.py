"""Test caller of all text formats over plain HTTP, without an SDK."""

import io
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

import aiohttp

from tests.pairs.table import TEXT_CLIENTS
from tests.support.callers.format_free_answers import Answer, canonical_answer
from tests.support.callers.requests import Json, Request, Turn
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.stream_aggregator import StreamAggregator


@dataclass(frozen=True)
class HttpAnswer:
    """Answer to a test call as it came over HTTP."""

    face: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    stream: bool

    @property
    def json(self) -> Json:
        """The answer as one JSON body, aggregated if it was streamed."""
        client = TEXT_CLIENTS[self.face]
        return client.aggregate(client.pieces(self.body)) if self.stream else json.loads(self.body)

    @property
    def turn(self) -> Turn:
        return TEXT_CLIENTS[self.face].turn(self.json)

    @property
    def answer(self) -> Answer:
        """The answer, independent of the format: as its client reads it, else as the gateway's own decoder does."""
        read = TEXT_CLIENTS[self.face].read
        return canonical_answer(self.canonical) if read is None else read(self.json)

    @property
    def canonical(self) -> pb.GenerateResponse:
        """The answer as the gateway's own decoder of this format reads it. Raises UmgError for a stream that failed."""
        request = pb.GenerateRequest(model="m")
        if not self.stream:
            return TEXT_FORMATS[self.face].decode_response(self.body, request, False)
        aggregator = StreamAggregator()
        for message in decode_stream(self.face, [self.body], request):
            aggregator.feed(message)
        return aggregator.response()

    @property
    def error(self) -> UmgError:
        """The error of a rejected call, as the gateway's own decoder of this format reads it."""
        return TEXT_FORMATS[self.face].decode_error(self.status, self.headers, self.body)

    @property
    def is_error(self) -> bool:
        """Whether the body has the form of the format's errors."""
        return TEXT_CLIENTS[self.face].is_error(self.body)


def decode_stream(face: str, frames: list[bytes], request: pb.GenerateRequest) -> list[pb.StreamGenerateResponse]:
    """Return the canonical messages of a stream. `face`: name of its format. Raise UmgError for a failed stream."""
    decoder = TEXT_FORMATS[face].translating_decoder(request)
    messages = [message for data in frames if (message := decoder.feed(data)) is not None]
    last = decoder.close()
    return [*messages, last] if last is not None else messages


def events_before_error(face: str, stream: bytes) -> Iterator[pb.GenerateEvent]:
    """Yield the canonical events of a stream before its error. `face`: name of its format."""
    decoder = TEXT_FORMATS[face].translating_decoder(pb.GenerateRequest(model="m"))
    with suppress(UmgError):
        for byte in stream:
            if (message := decoder.feed(bytes([byte]))) is not None:
                yield from message.events


@dataclass(frozen=True)
class HttpCaller:
    """Caller of one gateway, in any text format."""

    session: aiohttp.ClientSession
    url: str
    key: str

    async def send(
        self, face: str, model: str, body: Json | bytes, *, stream: bool = False, **headers: str
    ) -> HttpAnswer:
        """Send a body unchanged, and return the response. `face`: name of its format."""
        data = body if isinstance(body, bytes) else json.dumps(body, ensure_ascii=False).encode()
        client = TEXT_CLIENTS[face]
        sent = {"content-type": "application/json", **client.credentials(self.key), **headers}
        url = self.url + client.path(model, stream)
        async with self.session.post(url, data=io.BytesIO(data), headers=sent) as response:
            streamed = response.content_type == client.stream_type
            assert streamed or response.content_type == "application/json"
            received = {name.lower(): value for name, value in response.headers.items()}
            return HttpAnswer(face, response.status, received, await response.read(), streamed)

    async def call(
        self, face: str, model: str, request: Request, *, stream: bool, previous: Turn | None = None, **headers: str
    ) -> HttpAnswer:
        """Send a request in a format (`face`), and return the response. `previous`: the response whose tool calls the
        caller has run.
        """
        body = TEXT_CLIENTS[face].body(request, model, previous, stream=stream)
        answer = await self.send(face, model, body, stream=stream, **headers)
        assert answer.status != 200 or answer.stream == stream
        return answer
