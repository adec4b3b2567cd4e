"""Streams whose provider is slow: early headers and heartbeats, errors after them, and other channels that answer."""

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.support.providers.images.image_file_texts import png
from tests.support.providers.scripted import Scripted, chunk, start_stream, status, succeed, waiting_for
from tests.unit.e2e.test_survival import World, world
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.service.pipeline import early_response_headers
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire import TEXT_FORMATS

SECONDS = 60
PATIENT, QUICK = "stream_headers_after: 600\n", "stream_headers_after: 0.05\n"
USER = {"role": "user", "content": "Hi"}
CONTENTS = [{"role": "user", "parts": [{"text": "Hi"}]}]


@dataclass(frozen=True)
class Face:
    id: str
    format: str
    path: str
    body: dict[str, Any]

    def open(self, made: World) -> Any:
        return made.session.post(made.gateway.url + self.path, json=self.body)


FACES = [
    Face("chat", "chat", "/v1/chat/completions", {"model": "m", "messages": [USER], "stream": True}),
    Face("responses", "responses", "/v1/responses", {"model": "m", "input": "Hi", "stream": True}),
    Face("messages", "messages", "/v1/messages", {"model": "m", "messages": [USER], "max_tokens": 9, "stream": True}),
    Face("native", "native", "/v1beta/models/m:streamGenerateContent?alt=sse", {"contents": CONTENTS}),
    Face("native array", "native", "/v1beta/models/m:streamGenerateContent", {"contents": CONTENTS}),
]
every_face = pytest.mark.parametrize("face", FACES, ids=lambda face: face.id)


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early_response_headers, "ANSWERED_SECONDS", 0.05)


@dataclass
class Gate:
    """Script of a provider that answers 200 and a comment, then waits, and then goes on by another script."""

    then: Callable[[web.StreamResponse, Scripted], Any]
    beginning: bytes = b": PROCESSING\n\n"

    def __post_init__(self) -> None:
        self.open = asyncio.Event()

    async def __call__(self, request: web.Request, provider: Scripted) -> web.StreamResponse:
        response = await start_stream(request)
        await response.write(self.beginning)
        await self.open.wait()
        await self.then(response, provider)
        return response


async def answer(response: web.StreamResponse, provider: Scripted) -> None:
    await response.write(chunk({"content": provider.name}) + chunk({}, "stop") + b"data: [DONE]\n\n")


async def end(response: web.StreamResponse, provider: Scripted) -> None:
    """End the stream without a response."""


async def first_bytes(response: aiohttp.ClientResponse) -> bytes:
    async with asyncio.timeout(SECONDS):
        return await response.content.readany()


@every_face
async def test_headers_and_a_heartbeat_are_sent_while_an_answered_provider_sends_only_comments(
    face: Face, tmp_path: Path
) -> None:
    gate = Gate(answer)
    async with world(tmp_path, {"a": [gate]}, rest=PATIENT) as made, face.open(made) as response:
        assert (response.status, response.headers["x-umg-waiting"]) == (200, "true")
        assert await first_bytes(response) == TEXT_FORMATS[face.format].heartbeat
        gate.open.set()
        text = await response.text()
    assert '"a"' in text
    if face.id == "native array":
        assert json.loads(text)[0]["candidates"][0]["content"]["parts"] == [{"text": "a"}]


@every_face
async def test_another_channel_answers_after_the_headers_and_a_beginning_without_content(
    face: Face, tmp_path: Path
) -> None:
    gate = Gate(end, chunk({"role": "assistant", "content": ""}))
    async with world(tmp_path, {"a": [gate], "b": [succeed]}, rest=PATIENT) as made, face.open(made) as response:
        assert response.headers["x-umg-route"].startswith("channel=a;")
        gate.open.set()
        text = await response.text()
        assert made.counts == {"a": 1, "b": 1}
    assert '"b"' in text
    assert "error" not in text.replace('"error":null', "")


async def test_the_status_of_a_provider_that_answers_late_is_kept(tmp_path: Path) -> None:
    """The stream that begins later is the clock: its headers come after the time of the first stream was over."""
    late, silent = asyncio.Event(), Gate(answer)

    async def refuse(request: web.Request, provider: Scripted) -> web.StreamResponse:
        await late.wait()
        return await status(429, retry_after="7")(request, provider)

    async with world(tmp_path, {"a": [refuse, silent]}, rest=PATIENT) as made:
        waiting = asyncio.create_task(made.generate(stream=True))
        await made["a"].arrived.get()
        async with FACES[0].open(made) as response:
            assert response.status == 200
            assert not waiting.done()
            late.set()
            refused = await waiting
            silent.open.set()
    assert (refused.status, refused.headers["retry-after"]) == (429, "7")
    assert "x-umg-waiting" not in refused.headers


async def test_a_stream_that_begins_at_once_has_no_mark(tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [succeed]}, rest=QUICK) as made:
        assert "x-umg-waiting" not in (await made.generate(stream=True)).headers


@every_face
async def test_a_caller_that_leaves_while_it_waits_stops_the_provider(face: Face, tmp_path: Path) -> None:
    async with world(tmp_path, {"a": [Gate(answer)]}, rest=PATIENT) as made:
        async with face.open(made) as response:
            assert response.status == 200
        async with asyncio.timeout(SECONDS):
            await made["a"].calls[0].left.wait()


ERRORS = {
    "chat": {"code": "rate_limit_exceeded", "type": "rate_limit_error", "status": 429, "retry_after": 7},
    "responses": {"code": "rate_limit_exceeded", "type": "rate_limit_error", "status": 429, "retry_after": 7},
    "messages": {
        "type": "rate_limit_error",
        "details": {
            "error_code": "upstream_rate_limited",
            "retry_after_seconds": "7",
            "status": 429,
            "retry_after": 7,
        },
    },
    "native": {
        "code": 429,
        "status": "RESOURCE_EXHAUSTED",
        "details": [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "7s"}],
    },
}


@every_face
async def test_a_failure_after_the_headers_is_an_event_with_code_and_retry_hint(face: Face, tmp_path: Path) -> None:
    gate = asyncio.Event()
    refuse = waiting_for(gate, status(429, retry_after="7"))
    async with world(tmp_path, {"a": [refuse]}, rest=QUICK) as made, face.open(made) as response:
        assert response.status == 200
        gate.set()
        text = await response.text()
    error = last_error(face, text)
    assert error.items() >= ERRORS[face.format].items()
    assert "try again in 7 s" in error["message"], "the only place where Codex looks"


def last_error(face: Face, text: str) -> dict[str, Any]:
    if face.id == "native array":
        return dict(json.loads(text)[-1]["error"])
    last = [line for line in text.splitlines() if line.startswith("data: {")][-1]
    event = json.loads(last.removeprefix("data: "))
    return dict(event.get("error") or event)


TEXT = pb.Part(text=pb.TextPart(text="Hi"))
REQUEST = pb.StreamGenerateRequest(
    request=pb.GenerateRequest(model="m", messages=[pb.Message(role=pb.ROLE_USER, parts=[TEXT])])
)


async def test_a_grpc_caller_gets_the_initial_metadata_early(tmp_path: Path) -> None:
    gate = Gate(answer)
    async with world(tmp_path, {"a": [gate]}, rest=PATIENT) as made, grpc.aio.insecure_channel(made.gateway.grpc) as to:
        key = ("authorization", f"Bearer {made.gateway.key}")
        call = rpc.GenerationServiceStub(to).StreamGenerate(REQUEST, metadata=(key,))
        async with asyncio.timeout(SECONDS):
            assert ("x-umg-waiting", "true") in tuple(await call.initial_metadata())
        gate.open.set()
        events = [event async for message in call for event in message.events]
    assert "a" in [event.text_delta for event in events]


async def test_a_grpc_call_that_fails_after_its_initial_metadata_has_all_headers_and_the_time_to_wait(
    tmp_path: Path,
) -> None:
    gate = asyncio.Event()
    scripts = {"a": [waiting_for(gate, status(503))], "b": [status(429, retry_after="7")]}
    async with world(tmp_path, scripts, rest=QUICK) as made, grpc.aio.insecure_channel(made.gateway.grpc) as to:
        key = ("authorization", f"Bearer {made.gateway.key}")
        call = rpc.GenerationServiceStub(to).StreamGenerate(REQUEST, metadata=(key,))
        async with asyncio.timeout(SECONDS):
            early = dict(await call.initial_metadata())
        gate.set()
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
    assert "b: overloaded" not in str(early["x-umg-route"])
    assert "b: overloaded" in str(dict(caught.value.trailing_metadata())["x-umg-route"])
    assert (caught.value.code(), from_rpc(caught.value).retry_after) == (grpc.StatusCode.RESOURCE_EXHAUSTED, 7)


IMAGE = {
    "type": "image_generation.completed",
    "b64_json": base64.b64encode(png("a kite", 64, 64)).decode(),
    "created_at": 1,
    "size": "1024x1024",
    "quality": "low",
    "background": "opaque",
    "output_format": "png",
    "usage": {"total_tokens": 2, "input_tokens": 1, "output_tokens": 1, "input_tokens_details": {}},
}


async def draw(response: web.StreamResponse, provider: Scripted) -> None:
    await response.write(b"event: image_generation.completed\ndata: " + json.dumps(IMAGE).encode() + b"\n\n")


async def test_a_slow_stream_of_images_has_headers_and_a_heartbeat(tmp_path: Path) -> None:
    gate = Gate(draw)
    async with world(tmp_path, {"a": [gate]}, {"a": "protocols: [images]\nmodels: [gpt-image-1]"}, PATIENT) as made:
        body = {"model": "gpt-image-1", "prompt": "a kite", "stream": True}
        async with made.session.post(made.gateway.url + "/v1/images/generations", json=body) as response:
            assert response.headers.get("x-umg-waiting") == "true", await response.text()
            assert await first_bytes(response) == b": keep-alive\n\n"
            gate.open.set()
            assert "image_generation.completed" in await response.text()
