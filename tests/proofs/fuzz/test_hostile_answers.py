"""Bodies, lengths and streams of hostile providers, behind a running gateway: callers get a response or an error of the
provider, and no decoder raises.
"""

import asyncio
import json
import random
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field

import pytest
import pytest_asyncio
from aiohttp import ClientSession

from tests.proofs.fuzz.hostile_gateway import gateway_of
from tests.proofs.fuzz.hostile_values import JSON_VALUES, URLS
from tests.proofs.fuzz.test_hostile_providers import CHAT
from tests.proofs.fuzz.test_hostile_requests import SAMPLES, SEED
from tests.support.gateways import Running
from tests.support.providers.raw import LINE, Link, provider, sized

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2, "input_tokens": 1, "output_tokens": 1}
RESPONSE: dict[str, object] = {
    "id": "r",
    "object": "response",
    "created_at": 1,
    "status": "completed",
    "model": "m",
    "output": [
        {
            "type": "message",
            "id": "i",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "x", "annotations": []}],
        }
    ],
    "usage": USAGE,
}
MESSAGE = {
    "id": "m",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "text", "text": "x"}],
}
NATIVE: dict[str, object] = {
    "candidates": [
        {
            "content": {
                "role": "model",
                "parts": [{"text": "x"}, {"inlineData": {"mimeType": "image/png", "data": "!"}}],
            },
            "finishReason": "STOP",
            "index": 0,
        }
    ],
    "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    "modelVersion": "m",
}
IMAGES: dict[str, object] = {"created": 1, "usage": USAGE, "data": [{"b64_json": "iVBORw0KGgo=", "url": URLS[0]}]}
ARK = {"model": "m", "created": 1, "data": [{"url": URLS[0], "size": "1x1", "b64_json": "!"}], "usage": USAGE}
DASHSCOPE = {
    "request_id": "r",
    "output": {
        "task_id": "t",
        "task_status": "SUCCEEDED",
        "choices": [{"message": {"content": [{"image": URLS[0]}]}, "finish_reason": "stop"}],
        "results": [{"url": URLS[0]}],
    },
    "usage": {"image_count": 1, "width": 1, "height": 1},
}
CHUNK = {
    "id": "c",
    "object": "chat.completion.chunk",
    "created": 1,
    "model": "m",
    "choices": [{"index": 0, "delta": {"role": "assistant", "content": "x"}, "finish_reason": None}],
    "usage": USAGE,
}
EVENTS: dict[str, list[dict[str, object]]] = {
    "chat": [CHUNK, {**CHUNK, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}],
    "messages": [
        {"type": "message_start", "message": {"id": "m", "type": "message", "role": "assistant", "model": "m"}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": USAGE},
        {"type": "message_stop"},
    ],
    "responses": [
        {"type": "response.created", "sequence_number": 0, "response": {**RESPONSE, "output": []}},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "i", "delta": "x"},
        {"type": "response.completed", "sequence_number": 2, "response": RESPONSE},
    ],
    "native": [NATIVE],
}
WHOLE: dict[str, object] = {
    "chat": {**CHAT, "usage": USAGE},
    "messages": {**MESSAGE, "stop_reason": "end_turn", "usage": USAGE},
    "responses": RESPONSE,
    "native": NATIVE,
    "embeddings": {"object": "list", "model": "m", "data": [{"index": 0, "embedding": [0.5]}], "usage": USAGE},
    "native_embeddings": {"embeddings": [{"values": [0.5]}], "embedding": {"values": [0.5]}},
    "rerank": {
        "id": "r",
        "results": [{"index": 0, "relevance_score": 0.5}],
        "meta": {"billed_units": {"search_units": 1}},
    },
    "images": IMAGES,
    "native_images": NATIVE,
    "ark_images": ARK,
    "dashscope_images": DASHSCOPE,
}
"""Answers by the protocol of their channel."""
CALLS: dict[str, dict[str, object]] = {
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
    "/v1/responses": {"input": "x"},
    "/v1/messages": {"max_tokens": 9, "messages": [{"role": "user", "content": "x"}]},
    "/v1/embeddings": {"input": "x"},
    "/v1/rerank": {"query": "x", "documents": ["a"]},
    "/v1/images/generations": {"prompt": "x", "response_format": "b64_json"},
}
FACES = ("/v1/chat/completions", "/v1/responses", "/v1/messages")
TEXT = tuple(EVENTS)

FEW = max(2, SAMPLES // 6)
"""Mutations of each answer, each of which is the response to calls of several formats."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


def paths_of(protocol: str) -> tuple[str, ...]:
    """Return the paths of callers whose calls a protocol serves."""
    if protocol in TEXT:
        return FACES
    if "embeddings" in protocol:
        return ("/v1/embeddings",)
    return ("/v1/rerank",) if protocol == "rerank" else ("/v1/images/generations",)


@dataclass
class Hostile:
    """Provider that sends given bytes to each call, and closes the connection."""

    bytes_sent: bytes = b""
    calls: list[bytes] = field(default_factory=list)

    async def handle(self, link: Link) -> None:
        try:
            head, _ = await link.request()
        except asyncio.IncompleteReadError:
            return
        self.calls.append(head)
        await link.send(self.bytes_sent)
        link.writer.close()


@dataclass(frozen=True)
class World:
    gateway: Running
    hostile: Hostile
    session: ClientSession

    async def call(self, path: str, protocol: str, sent: bytes, *, stream: bool = False) -> None:
        """Call the gateway, whose provider sends these bytes. Fail for an internal error, and without a response."""
        self.hostile.bytes_sent = sent
        body = {**CALLS[path], "model": f"m-{protocol}", **({"stream": True} if stream else {})}
        async with self.session.post(self.gateway.url + path, json=body) as response:
            answer = await response.read()
            assert response.status != 500, (path, protocol, sent)
            assert b"internal error" not in answer, (path, protocol, sent)
            if response.status >= 400:
                assert json.loads(answer)["error"]["message"], (path, protocol, sent)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    hostile = Hostile()
    async with provider(hostile.handle) as made:
        base_url = made.url.removesuffix("/x")
        protocols = {name: name for name in WHOLE}
        async with gateway_of(protocols, base_url, "k-channel", tmp_path_factory.mktemp("gateway")) as running:
            gateway, session = running
            yield World(gateway, hostile, session)


@pytest.fixture(autouse=True)
def log(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    """Fail if the gateway logs an exception, also one of a decoder."""
    yield
    errors = [line for line in capfd.readouterr().err.splitlines() if FAULT.search(line)]
    assert not errors, errors[:3]


FAULT = re.compile(r"Traceback|unexpected failure|could not be decoded|never retrieved")


def mutated(draw: random.Random, seed: bytes) -> bytes:
    """Return a JSON text with hostile values in place of one or two values or names."""
    for _ in range(draw.choice((1, 1, 2))):
        places = [found.span() for found in re.finditer(rb'"[^"]*"|-?\d+(?:\.\d+)?|true|\[\]', seed)]
        if places:
            start, end = draw.choice(places)
            urls = [json.dumps(url).encode() for url in URLS if len(url) < 9999]
            seed = seed[:start] + draw.choice((*JSON_VALUES, *urls)) + seed[end:]
    return seed


@pytest.mark.parametrize("protocol", WHOLE)
async def test_a_value_in_an_answer_is_an_answer_or_an_error(world: World, protocol: str) -> None:
    draw = random.Random(f"{SEED} {protocol}")
    seed = json.dumps(WHOLE[protocol]).encode()
    for _ in range(FEW):
        for path in paths_of(protocol):
            await world.call(path, protocol, sized(mutated(draw, seed)))


@pytest.mark.parametrize("protocol", WHOLE)
async def test_a_value_in_an_error_is_an_error(world: World, protocol: str) -> None:
    draw = random.Random(f"{SEED} {protocol}")
    details = [{"reason": "R", "retryDelay": "1s", "fieldViolations": [{"field": "f"}]}]
    inner = {"message": "no", "type": "t", "code": "c", "param": "p", "status": "S", "details": details}
    seed = json.dumps({"error": inner, "code": 400, "message": "no", "detail": [{"loc": ["body", "x"], "msg": "m"}]})
    for _ in range(FEW):
        status = draw.choice((400, 401, 404, 413, 422, 429, 500, 503))
        sent = sized(mutated(draw, seed.encode()), b"HTTP/1.1 %d X\r\n" % status)
        for path in paths_of(protocol):
            await world.call(path, protocol, sent, stream=protocol in TEXT and draw.random() < 0.5)


@pytest.mark.parametrize("protocol", TEXT)
async def test_a_value_in_a_stream_is_an_answer_or_an_error(world: World, protocol: str) -> None:
    draw = random.Random(f"{SEED} {protocol}")
    seeds = [json.dumps(event).encode() for event in EVENTS[protocol]]
    for _ in range(FEW):
        changed = draw.randrange(len(seeds))
        events = [mutated(draw, seed) if number == changed else seed for number, seed in enumerate(seeds)]
        frames = b"".join(b"data: %b\n\n" % event for event in events)
        for path in FACES:
            sent = LINE + b"Content-Type: text/event-stream\r\nConnection: close\r\n\r\n" + frames
            await world.call(path, protocol, sent, stream=True)


LIES: dict[str, Callable[[bytes], bytes]] = {
    "longer": lambda body: LINE + b"Content-Length: %d\r\n\r\n%b" % (len(body) + 9, body),
    "shorter": lambda body: LINE + b"Content-Length: %d\r\n\r\n%b" % (len(body) - 9, body),
    "beyond int64": lambda body: LINE + b"Content-Length: 99999999999999999999\r\n\r\n" + body,
    "of 5000 digits": lambda body: LINE + b"Content-Length: %b\r\n\r\n%b" % (b"9" * 5000, body),
    "negative": lambda body: LINE + b"Content-Length: -1\r\n\r\n" + body,
    "two": lambda body: LINE + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n" + body,
    "no number": lambda body: LINE + b"Content-Length: \xff\r\n\r\n" + body,
    "of chunks": lambda body: LINE + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + body,
    "of no hexadecimal chunk": lambda body: LINE + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n" + body,
    "gzip": lambda body: sized(body, LINE + b"Content-Encoding: gzip\r\n"),
    "no head": lambda body: b"\xff\xfe\r\n\r\n" + body,
    "nothing": lambda body: b"",
}


@pytest.mark.parametrize("lie", LIES)
async def test_a_false_length_is_an_answer_or_an_error(world: World, lie: str) -> None:
    for protocol, answer in WHOLE.items():
        sent = LIES[lie](json.dumps(answer).encode())
        for path in paths_of(protocol):
            for stream in (False, True) if protocol in TEXT else (False,):
                await world.call(path, protocol, sent, stream=stream)
