"""A text format is its functions, one row and the name of its protocol: a format of this module is served on both faces,
in both directions.
"""

import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from pathlib import Path

import aiohttp
import grpc
import msgspec
import pytest
import pytest_asyncio
from aiohttp import web

from http_facade.routes import ROUTE_TABLE, Route, Shape
from tests.support.gateways import KEY, Running, channel, running
from tests.support.serving import serving
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import TEXT_FACES, TEXT_FORMATS, TEXT_UPSTREAMS
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.account_object_detection import ObjectRules
from umg_grpc.wire.core.json_decoding import parse
from umg_grpc.wire.core.stream_decoder import EventDecoder, FrameDecoder
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.errors.provider_errors import cut_off, decode_error
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.provider_protocols import TEXT_PROTOCOLS, TextProtocol
from umg_grpc.wire.text_format_interface import FaceRequest, TextFormat, UpstreamRequest

NAME = "parrot"
END = b"data: end\n\n"


class Body(msgspec.Struct):
    model: str
    prompt: str
    stream: bool = False


class Words(msgspec.Struct):
    """Answer, or one event of a stream."""

    word: str


def decode_request(body: bytes, headers: Mapping[str, str], model: str = "") -> FaceRequest:
    decoded = parse(Body, body)
    request = pb.GenerateRequest(model=decoded.model, source=pb.SourceDocument(format=NAME, body=body))
    request.messages.add(role=pb.ROLE_USER).parts.add().text.text = decoded.prompt
    return FaceRequest(request, decoded.stream, RequestNotes())


def encode_request(
    request: pb.GenerateRequest,
    model: str,
    stream: bool,
    quirks: Quirks = NO_QUIRKS,
    notes: RequestNotes = NO_NOTES,
    /,
) -> UpstreamRequest:
    prompt = " ".join(part.text.text for message in request.messages for part in message.parts)
    return UpstreamRequest("/parrot", msgspec.json.encode(Body(model, prompt, stream)), {}, Report())


def encode_response(response: pb.GenerateResponse, request: pb.GenerateRequest) -> bytes:
    if response.source.body:
        return response.source.body
    return msgspec.json.encode(Words("".join(part.text.text for part in response.candidates[0].message.parts)))


def decode_response(body: bytes, request: pb.GenerateRequest, pass_: bool) -> pb.GenerateResponse:
    candidate = pb.Candidate(finish_reason=pb.FINISH_REASON_STOP)
    if not pass_:
        candidate.message.role = pb.ROLE_ASSISTANT
        candidate.message.parts.add().text.text = msgspec.json.decode(body, type=Words).word
    source = pb.SourceDocument(format=NAME, body=body) if pass_ else None
    return pb.GenerateResponse(model=request.model, candidates=[candidate], source=source)


class StreamEncoder:
    """Canonical events -> events of the format."""

    retained_bytes = 0

    def __init__(self, request: pb.GenerateRequest) -> None:
        self._closed = False

    def feed(self, message: pb.StreamGenerateResponse) -> bytes:
        if message.source_frames:
            self._closed = message.source_frames.endswith(END)
            return message.source_frames
        texts = (event.text_delta for event in message.events if event.HasField("text_delta"))
        return b"".join(sse.frame(msgspec.json.encode(Words(text))) for text in texts)

    def close(self) -> bytes:
        return b"" if self._closed else END

    def closing(self) -> Iterator[bytes]:
        yield self.close()

    def error(self, error: UmgError) -> bytes:
        return sse.frame(msgspec.json.encode({"squawk": error.message}))


class TranslatingDecoder(EventDecoder):
    """Events of the format -> canonical events."""

    _started = False

    def _events(self, event: sse.SseEvent) -> Iterable[pb.GenerateEvent]:
        if event.data == b"end":
            self.done = True
            yield pb.GenerateEvent(part_ended=pb.PartEnded())
            yield pb.GenerateEvent(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP))
            return
        if not self._started:
            self._started = True
            yield pb.GenerateEvent(started=pb.GenerationStarted(model=self._request.model))
            yield pb.GenerateEvent(part_started=pb.Part(text=pb.TextPart()))
        yield pb.GenerateEvent(text_delta=msgspec.json.decode(event.data or b"", type=Words).word)

    def _finish(self) -> Iterator[pb.GenerateEvent]:
        raise cut_off()


class PassthroughDecoder(FrameDecoder):
    """Frames of the format, unchanged."""

    def _frame(self, event: sse.SseEvent, events: list[pb.GenerateEvent]) -> bytes:
        if event.data == b"end":
            self.done = True
            events.append(pb.GenerateEvent(finished=pb.CandidateFinished(finish_reason=pb.FINISH_REASON_STOP)))
        return event.raw

    def _end(self) -> bytes:
        raise cut_off()


def encode_error(error: UmgError, status: int) -> bytes:
    return msgspec.json.encode({"squawk": error.message, "status": status})


PARROT = TextFormat(
    name=NAME,
    source_headers=(),
    decode_request=decode_request,
    encode_response=encode_response,
    can_express=lambda part: part.HasField("text"),
    stream_encoder=StreamEncoder,
    encode_error=encode_error,
    wire_path=lambda path: path,
    heartbeat=b": .\n\n",
    encode_request=encode_request,
    decode_response=decode_response,
    translating_decoder=TranslatingDecoder,
    passthrough_decoder=PassthroughDecoder,
    decode_error=decode_error,
    has_no_output=lambda frames: False,
    objects=ObjectRules(words=frozenset({"model", "prompt"})),
    conversation_field="prompt",
    key_headers=("x-parrot-key",),
    error_paths=("/parrot",),
)


async def answer(request: web.Request) -> web.StreamResponse:
    """Answer as a provider of the format, which repeats the words."""
    assert request.headers["x-seed"] == KEY
    body = await request.json()
    if not body.get("stream"):
        return web.json_response({"word": body["prompt"]})
    frames = b"".join(sse.frame(json.dumps({"word": word}).encode()) for word in body["prompt"].split(" "))
    return web.Response(body=frames + END, content_type="text/event-stream")


@pytest_asyncio.fixture
async def gateway(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncGenerator[Running, None]:
    """Yield a gateway with the format, one channel to a provider of it, and the simulated provider."""
    for table in (TEXT_FORMATS, TEXT_FACES, TEXT_UPSTREAMS):
        monkeypatch.setitem(table, NAME, PARROT)
    monkeypatch.setitem(TEXT_PROTOCOLS, NAME, TextProtocol(codec=f"{__name__}:PARROT", key_header="x-seed"))
    monkeypatch.setattr(
        "http_facade.routes.ROUTE_TABLE", (*ROUTE_TABLE, Route("POST", "/parrot", Shape.GENERATE, NAME))
    )
    app = web.Application()
    app.router.add_post("/parrot", answer)
    async with serving(app) as url:
        sandbox = "  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famG-2.5-flash]}\n"
        async with running("channels:\n" + channel("polly", NAME, url, "polly") + sandbox, tmp_path) as made:
            yield made


def chat(stream: bool) -> dict[str, object]:
    return {"model": "polly", "stream": stream, "messages": [{"role": "user", "content": "pretty bird"}]}


async def test_a_new_format_is_a_face_and_a_protocol_over_http(gateway: Running) -> None:
    headers = {"x-parrot-key": gateway.key, "content-type": "application/json"}
    async with aiohttp.ClientSession(gateway.url, headers=headers) as session:
        whole, streamed = Body("polly", "pretty bird"), Body("polly", "pretty bird", True)
        async with session.post("/parrot", data=msgspec.json.encode(whole)) as got:
            assert (got.status, await got.json()) == (200, {"word": "pretty bird"})
        async with session.post("/parrot", data=msgspec.json.encode(streamed)) as got:
            assert await got.read() == b'data: {"word": "pretty"}\n\ndata: {"word": "bird"}\n\n' + END
        async with session.post("/parrot", data=b'{"model":"polly"}') as got:
            assert (got.status, (await got.json())["status"]) == (400, 400)
        async with session.get("/parrots/none") as got:
            assert (got.status, (await got.json())["status"]) == (404, 404)
        async with session.post("/parrot", data=msgspec.json.encode(Body("famG-2.5-flash", "hi"))) as got:
            assert "simulated" in (await got.json(content_type=None))["word"]


async def test_callers_of_other_formats_reach_a_provider_of_a_new_one(gateway: Running) -> None:
    async with aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session:
        async with session.post("/v1/chat/completions", json=chat(False)) as got:
            assert (await got.json())["choices"][0]["message"]["content"] == "pretty bird"
        async with session.post("/v1/chat/completions", json=chat(True)) as got:
            events = [json.loads(line[6:]) for line in (await got.read()).splitlines() if line.startswith(b"data: {")]
    deltas = [choice["delta"].get("content") or "" for event in events for choice in event["choices"]]
    assert "".join(deltas) == "prettybird"


async def test_a_new_format_is_a_source_over_grpc(gateway: Running) -> None:
    metadata = (("authorization", f"Bearer {gateway.key}"),)
    source = pb.SourceDocument(format=NAME, body=msgspec.json.encode(Body("polly", "pretty bird")))
    async with grpc.aio.insecure_channel(gateway.grpc) as opened:
        stub = rpc.GenerationServiceStub(opened)
        response = await stub.Generate(pb.GenerateRequest(source=source), metadata=metadata)
        assert response.source.body == b'{"word": "pretty bird"}'
        canonical = pb.GenerateRequest(model="polly")
        canonical.messages.add(role=pb.ROLE_USER).parts.add().text.text = "pretty bird"
        response = await stub.Generate(canonical, metadata=metadata)
        assert response.candidates[0].message.parts[0].text.text == "pretty bird"
