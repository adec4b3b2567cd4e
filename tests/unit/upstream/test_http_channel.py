"""HTTP channel: the meaning of its errors for a retry, its keys, and its timeouts."""

import asyncio
import gc
import gzip
import json
import math
import weakref
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import pytest

from tests.support.providers.raw import (
    LINE,
    PATIENT,
    HandleConnection,
    Link,
    Provider,
    answering,
    failed,
    provider,
    sized,
    stall,
)
from umg_grpc.base.errors import Failure
from umg_grpc.upstream.http.embedding_batches import HttpEmbedding
from umg_grpc.upstream.http.provider_connection import HttpChannel
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint, RotatingEndpoints
from umg_grpc.upstream.http.text_generation import HttpText
from umg_grpc.upstream.http1.client import Client
from umg_grpc.upstream.http1.connection import ProviderExchange
from umg_grpc.upstream.http1.deadlines import Deadlines
from umg_grpc.upstream.http1.response import MAX_RESPONSE_BYTES
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS

CHAT = TEXT_FORMATS["chat"]
REQUEST = json.dumps({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}).encode()
WHOLE = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}).encode()  # fmt: skip
CHUNK = b'data: {"id":"1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":%b}]}\n\n'  # fmt: skip
EVENTS = CHUNK % b"null" + CHUNK % b'"stop"' + b"data: [DONE]\n\n"
SSE = LINE + b"Content-Type: text/event-stream\r\n"


@dataclass
class Clock:
    time: float = 1000.0

    def __call__(self) -> float:
        return self.time


def channel(client: Client, made: Provider, deadlines: Deadlines = PATIENT, keys: str = "") -> HttpChannel:
    base = made.url.removesuffix("/x")
    endpoints = [ProviderEndpoint(base, {}, key) for key in keys or ("",)]
    return HttpChannel(client, RotatingEndpoints(endpoints, Clock()), deadlines)


async def generate(http: HttpChannel, seconds: float = math.inf) -> object:
    text = HttpText(http, [CHAT])
    request = CHAT.decode_request(REQUEST, {}).canonical
    return await text.prepare(request, "m", stream=False).send(seconds)


async def generate_as_stream(http: HttpChannel, seconds: float = math.inf) -> object:
    text = HttpText(http, [CHAT])
    request = CHAT.decode_request(REQUEST, {}).canonical
    async with aclosing(text.prepare(request, "m", stream=True).stream(seconds)) as messages:
        return [message async for message in messages]


BOTH = pytest.mark.parametrize("send", [generate, generate_as_stream], ids=["whole", "streamed"])
Send = Callable[..., Awaitable[object]]


@BOTH
async def test_a_redirect_is_down(send: Send) -> None:
    handle = answering(b"HTTP/1.1 308 Go\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")
    async with provider(handle) as made, Client.opened() as client:
        error = await failed(send(channel(client, made)))
    assert (error.name, error.failure) == ("UPSTREAM_FAILED", Failure.DOWN)


@BOTH
async def test_a_refusal_with_a_stalled_body_has_the_error_of_its_status(
    send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("umg_grpc.upstream.http1.connection.ERROR_BODY_SECONDS", 0.05)
    handle = answering(b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 90\r\n\r\n{")
    async with provider(handle) as made, Client.opened() as client:
        error = await failed(send(channel(client, made)))
    assert (error.name, error.metadata) == ("UPSTREAM_RATE_LIMITED", {"retry_after_seconds": "7"})


async def test_a_provider_that_is_started_for_longer_than_the_caller_waits_is_not_waited_for() -> None:
    async def never(broken: ProviderEndpoint | None) -> ProviderEndpoint:
        await asyncio.Event().wait()
        raise AssertionError

    async with Client.opened() as client:
        error = await failed(generate(HttpChannel(client, never, PATIENT), 0.05))
        assert (error.name, error.failure) == ("DEADLINE_EXCEEDED", None)
        error = await failed(generate(HttpChannel(client, never, replace(PATIENT, total=0.05))))
        assert (error.name, error.failure) == ("UPSTREAM_TIMEOUT", Failure.NOT_SENT)


@pytest.mark.parametrize(("seconds", "failure"), [(0.1, None), (9, Failure.AMBIGUOUS)])
async def test_the_parts_of_a_batch_have_the_channels_deadline_or_the_callers(
    seconds: float, failure: Failure | None
) -> None:
    request = pb.EmbedRequest(model="m", inputs=[pb.EmbeddingInput(text="a"), pb.EmbeddingInput(text="b")])
    codec = EMBEDDING_FORMATS["embeddings"]
    async with provider(stall) as made, Client.opened() as client:
        http = channel(client, made, replace(PATIENT, total=1))
        call = HttpEmbedding(http, [codec], max_items=1).prepare(request, "m")
        error = await failed(call.send(seconds))
    assert (error.name, error.failure) == ("UPSTREAM_TIMEOUT" if failure else "DEADLINE_EXCEEDED", failure)


# --- keys


def by_key(**answers: bytes) -> tuple[HandleConnection, list[str]]:
    """Return a provider that answers by the key, and the list of the keys that were used."""
    used: list[str] = []

    async def handle(link: Link) -> None:
        while True:
            head, _ = await link.request()
            used.append(head.partition(b"Bearer ")[2][:1].decode())
            await link.send(answers[used[-1]])

    return handle, used


GOOD = sized(WHOLE, LINE + b"Content-Type: application/json\r\n")
UNKNOWN = b"HTTP/1.1 401 No\r\nContent-Length: 0\r\n\r\n"
LIMITED = b"HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n"


@BOTH
@pytest.mark.parametrize("refusal", [UNKNOWN, LIMITED], ids=["unknown", "limited"])
async def test_a_key_that_is_refused_gives_way_to_the_others(refusal: bytes, send: Send) -> None:
    handle, used = by_key(a=GOOD, b=refusal, c=GOOD)
    async with provider(handle) as made, Client.opened() as client:
        http = channel(client, made, keys="abc")
        await send(http)
        assert (await failed(send(http))).failure is Failure.OTHER_KEY
        assert http.suspended_keys == 1
        for _ in range(4):
            await send(http)
    assert "".join(used) == "abcaca"


@BOTH
async def test_without_another_key_the_error_is_the_channels(send: Send) -> None:
    handle, used = by_key(a=UNKNOWN, b=LIMITED)
    async with provider(handle) as made, Client.opened() as client:
        http = channel(client, made, keys="ab")
        assert (await failed(send(http))).failure is Failure.OTHER_KEY
        assert (await failed(send(http))).failure is Failure.OVERLOADED
        assert (await failed(send(http))).failure is Failure.OVERLOADED
    assert "".join(used) == "abb"


@BOTH
async def test_the_only_key_of_a_channel_is_the_channel(send: Send) -> None:
    handle, _ = by_key(a=UNKNOWN)
    async with provider(handle) as made, Client.opened() as client:
        assert (await failed(send(channel(client, made, keys="a")))).failure is Failure.DOWN


# --- slow bodies


def dripping(head: bytes, drop: bytes) -> HandleConnection:
    """Return a provider that sends a drop each 10 ms, until the connection closes."""

    async def handle(link: Link) -> None:
        await link.request()
        await link.send(head)
        while not link.writer.is_closing():
            await link.send(drop)
            await asyncio.sleep(0.01)

    return handle


@dataclass(frozen=True)
class Drip:
    id: str
    head: bytes
    drop: bytes
    deadline: str
    deadlines: Deadlines = PATIENT


STREAM = SSE + b"Connection: close\r\n\r\n"
FIRST, TOTAL = replace(PATIENT, first_byte=0.2, idle=0.1), replace(PATIENT, first_byte=0.1, idle=0.1, total=0.4)
COMMENTS = replace(TOTAL, total=0.6)
STREAMS = [
    Drip("comments before the first event", STREAM, b": wait\n\n", "total", COMMENTS),
    Drip("blank lines before the first event", STREAM, b"\n", "total", COMMENTS),
    Drip("an event that does not end", STREAM + b"data: ", b"x", "first_byte", FIRST),
    Drip("hints that do not end", b"", b"HTTP/1.1 103 Early Hints\r\n\r\n", "first_byte", FIRST),
    Drip("a head that does not end", SSE, b"x-a: b\r\n", "first_byte", FIRST),
    Drip("comments after the first event", STREAM + CHUNK % b"null", b": wait\n\n", "total", TOTAL),
    Drip("an event after the first that does not end", STREAM + CHUNK % b"null" + b"data: ", b"x", "total", TOTAL),
    Drip("JSON that does not end", LINE + b"Content-Type: application/json\r\nContent-Length: 99999\r\n\r\n{", b"x", "total", TOTAL),
]  # fmt: skip


@pytest.mark.parametrize("case", STREAMS, ids=lambda case: case.id)
async def test_a_stream_that_drips_ends_by_its_deadlines(case: Drip) -> None:
    async with provider(dripping(case.head, case.drop)) as made, Client.opened() as client:
        error = await failed(generate_as_stream(channel(client, made, case.deadlines)))
    assert (error.name, error.metadata, error.failure) == (
        "UPSTREAM_TIMEOUT",
        {"deadline": case.deadline},
        Failure.AMBIGUOUS,
    )


@pytest.mark.parametrize(
    "head", [LINE[:13], LINE, LINE + b"Content-Length: 99999\r\n\r\n"], ids=["a line", "a head", "a body"]
)
async def test_an_answer_that_drips_ends_by_its_deadline(head: bytes) -> None:
    async with provider(dripping(head, b"x")) as made, Client.opened() as client:
        error = await failed(generate(channel(client, made, replace(PATIENT, total=0.2))))
    assert (error.name, error.metadata) == ("UPSTREAM_TIMEOUT", {"deadline": "total"})


async def test_a_stream_that_stalls_after_its_first_event_is_idle() -> None:
    async with provider(answering(STREAM + CHUNK % b"null")) as made, Client.opened() as client:
        error = await failed(generate_as_stream(channel(client, made, replace(PATIENT, idle=0.1))))
    assert (error.metadata, error.failure) == ({"deadline": "idle"}, Failure.AMBIGUOUS)


async def test_a_stream_that_was_too_late_is_released_from_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    exchanges = list[weakref.ref[ProviderExchange]]()

    class Seen(ProviderExchange, weakref=True):
        def __post_init__(self) -> None:
            exchanges.append(weakref.ref(self))

    monkeypatch.setattr("umg_grpc.upstream.http1.connection.ProviderExchange", Seen)
    async with provider(answering(STREAM + CHUNK % b"null")) as made, Client.opened() as client:
        for _ in range(2):
            await failed(generate_as_stream(channel(client, made, replace(PATIENT, idle=0.1))))
        await asyncio.sleep(0)  # the event loop releases the last timer
        gc.collect()
        assert [exchange() for exchange in exchanges] == [None, None]


async def test_comments_before_the_first_event_do_no_harm() -> None:
    handle = answering(STREAM, b": wait\n\n", b": wait\n\n", EVENTS, then="close")
    async with provider(handle) as made, Client.opened() as client:
        assert await generate_as_stream(channel(client, made, replace(PATIENT, idle=0.5)))


# --- answers over the size limit


@BOTH
async def test_an_answer_that_grows_when_it_is_inflated_is_bounded(send: Send) -> None:
    body = gzip.compress(b'{"a":"' + b"x" * MAX_RESPONSE_BYTES, mtime=0)
    head = LINE + b"Content-Type: application/json\r\nContent-Encoding: gzip\r\n"
    async with provider(answering(sized(body, head))) as made, Client.opened() as client:
        error = await failed(send(channel(client, made)))
    assert (error.name, error.failure) == ("UPSTREAM_FAILED", Failure.TOO_LARGE)
    assert "larger than 64 MiB" in error.message


@pytest.mark.parametrize("encoded", [False, True], ids=["plain", "inflated"])
async def test_an_event_without_end_is_bounded(encoded: bool) -> None:
    event = b"data: " + b"x" * (64 << 20)
    body = gzip.compress(event, mtime=0) if encoded else event
    head = SSE + b"Content-Encoding: gzip\r\n" if encoded else SSE
    async with provider(answering(sized(body, head))) as made, Client.opened() as client:
        error = await failed(generate_as_stream(channel(client, made)))
    assert error.name == "UPSTREAM_FAILED"
    assert "larger than" in error.message
