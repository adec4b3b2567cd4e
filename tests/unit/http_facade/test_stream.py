"""Streams: their start and their end, and the cancellation of a call whose caller left."""

import asyncio
import json
import socket
from contextlib import suppress

import aiohttp
import pytest

from tests.unit.http_facade.conftest import CHAT, KEY, Face, MakeFace, body
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

BEAT = TEXT_FORMATS["chat"].heartbeat
BROKEN = UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "the provider's stream broke off")


def request_bytes(model: str, version: bytes = b"1.1") -> bytes:
    data = json.dumps(body(model, stream=True)).encode()
    head = b"POST %b HTTP/%b\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
    return head % (CHAT.encode(), version, len(data)) + data


def text_of(events: bytes) -> str:
    chunks = [json.loads(line[6:]) for line in events.split(b"\n") if line.startswith(b"data: {")]
    return "".join(choice["delta"].get("content") or "" for chunk in chunks for choice in chunk.get("choices", ()))


async def test_a_stream_is_complete_and_has_the_headers_that_proxies_need(face: Face) -> None:
    face.service.initial = (("x-umg-dropped", "seed"), ("retry-after", "1"), ("x-secret", "hidden"))
    async with face.chat("m", stream=True, headers={"accept-encoding": "gzip, deflate"}) as answer:
        events = await answer.read()
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["x-accel-buffering"] == "no"
        assert answer.headers["x-umg-dropped"] == "seed"
        assert answer.headers["x-request-id"].startswith("req_")
        assert "content-encoding" not in answer.headers
        assert "x-secret" not in answer.headers
    assert text_of(events) == "one two"
    assert events.endswith(b"data: [DONE]\n\n")
    assert events.count(b"[DONE]") == 1


async def test_the_status_line_waits_for_the_first_message(face: Face) -> None:
    reader, writer = await face.raw()
    writer.write(request_bytes("wait"))
    await face.service.reached.wait()
    status = asyncio.ensure_future(reader.readline())
    async with face.chat("m") as answer:  # another call completes meanwhile
        assert answer.status == 200
    assert not status.done()
    face.service.go_on.set()
    assert await status == b"HTTP/1.1 200 OK\r\n"
    writer.close()


async def test_each_message_is_sent_as_soon_as_it_arrives(face: Face) -> None:
    async with face.chat("wait mid", stream=True) as answer:
        events = b""
        while b"one" not in events:
            events += await answer.content.readany()
        assert b"two" not in events
        face.service.go_on.set()
        assert text_of(events + await answer.read()) == "one two"


async def test_a_stream_that_ends_before_its_first_message_is_an_error(face: Face) -> None:
    async with face.chat("empty", stream=True) as answer:
        assert answer.status == 502
        assert "before it began" in (await answer.json())["error"]["message"]


async def test_a_failure_after_the_first_byte_is_an_event_and_the_body_ends_cleanly(face: Face) -> None:
    face.service.failure = BROKEN
    async with face.chat("break", stream=True) as answer:
        assert answer.status == 200
        events = await answer.read()  # raises when the chunked body is cut
    last = [line for line in events.split(b"\n") if line][-1]
    assert json.loads(last.removeprefix(b"data: "))["error"]["message"] == BROKEN.message
    assert b"[DONE]" not in events
    async with face.chat("m") as answer:
        assert answer.status == 200


async def test_a_crash_after_the_first_byte_is_an_event_with_the_request_id_only(face: Face) -> None:
    async with face.chat("crash mid", stream=True) as answer:
        events = await answer.read()
        assert answer.headers["x-request-id"].encode() in events
    assert b"nobody" not in events


@pytest.mark.parametrize("model", ["wait", "wait mid"])
@pytest.mark.parametrize("stream", [True, False])
async def test_a_caller_that_disconnects_frees_the_provider_within_100_ms(face: Face, model: str, stream: bool) -> None:
    if model == "wait mid" and not stream:
        return
    loop, seconds = asyncio.get_running_loop(), 1.0
    for _ in range(30):  # the shortest time counts: other processes may delay this one
        face.service.reached.clear()
        face.service.left_at = loop.create_future()
        _, writer = await face.raw()
        data = request_bytes(model)
        writer.write(data if stream else data.replace(b"true", b"null"))
        await face.service.reached.wait()
        left = loop.time()
        writer.close()
        seconds = min(seconds, await asyncio.wait_for(face.service.left_at, 60) - left)
        if seconds < 0.1:
            break
    assert seconds < 0.1


async def test_a_caller_that_does_not_read_is_sent_at_most_the_size_of_the_buffers(face: Face) -> None:
    reader, writer = await face.raw()
    reader._transport.pause_reading()
    writer.write(request_bytes("flood"))
    sent = -1
    while face.service.sent == 0 or sent != face.service.sent:
        sent = face.service.sent
        for _ in range(20):  # other calls complete while the flood could continue
            async with face.chat("m") as answer:
                assert answer.status == 200
    assert sent < 1000  # messages of 64 KiB
    writer.close()


async def test_an_idle_stream_gets_heartbeats_that_clients_skip(make_face: MakeFace) -> None:
    face = await make_face(heartbeat_seconds=0.02)
    async with face.chat("wait mid", stream=True) as answer:
        events = b""
        while events.count(BEAT) < 3:
            events += await answer.content.readany()
        face.service.go_on.set()
        events += await answer.read()
    assert text_of(events) == "one two"
    assert events.endswith(b"[DONE]\n\n")


async def test_a_stream_to_http_1_0_ends_with_its_connection(make_face: MakeFace) -> None:
    face = await make_face(heartbeat_seconds=0.02)
    reader, writer = await face.raw()
    writer.write(request_bytes("wait mid", version=b"1.0"))
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"chunked" not in head.lower()
    events = b""
    while events.count(BEAT) < 2:
        events += await reader.read(65536)
    face.service.go_on.set()
    events += await reader.read()
    assert text_of(events) == "one two"
    writer.close()


async def test_a_heartbeat_is_not_sent_before_the_first_message(make_face: MakeFace) -> None:
    face = await make_face(heartbeat_seconds=0.001)
    face.service.failure = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "no luck")
    async with face.chat("fail", stream=True) as answer:
        assert answer.status == 502


async def test_a_slow_stream_has_its_headers_and_heartbeats_early(make_face: MakeFace) -> None:
    face = await make_face(heartbeat_seconds=0.02)
    async with face.chat("slow", stream=True) as answer:
        assert (answer.status, answer.headers["x-umg-waiting"]) == (200, "true")
        assert answer.headers["x-umg-dropped"] == "seed"
        events = b""
        while events.count(BEAT) < 3:
            events += await answer.content.readany()
        face.service.go_on.set()
        events += await answer.read()
    assert text_of(events) == "one two"
    assert events.startswith(BEAT)
    assert events.endswith(b"[DONE]\n\n")


async def test_a_failure_of_a_slow_stream_is_an_event(face: Face) -> None:
    face.service.failure = BROKEN
    async with face.chat("slow fail", stream=True) as answer:
        assert answer.status == 200
        face.service.go_on.set()
        events = await answer.read()
    assert json.loads(events.removeprefix(BEAT + b"data: "))["error"]["code"] == "upstream_cut"


async def test_a_shutdown_ends_a_slow_stream_with_an_event(make_face: MakeFace) -> None:
    face = await make_face(drain_seconds=0.2)
    async with face.chat("slow", stream=True) as answer:
        await face.runner.cleanup()
        events = await answer.read()
    assert json.loads(events.removeprefix(BEAT + b"data: "))["error"]["code"] == "overloaded"


async def test_a_caller_that_leaves_a_slow_stream_ends_the_call(face: Face) -> None:
    face.service.left_at = asyncio.get_running_loop().create_future()
    async with face.chat("slow", stream=True) as answer:
        assert answer.status == 200
        await face.service.reached.wait()  # the headers are sent before the service waits
    await asyncio.wait_for(face.service.left_at, 60)


async def test_answers_in_flight_are_finished_before_the_runner_ends(face: Face) -> None:
    async with face.chat("wait mid", stream=True) as answer:
        await face.service.reached.wait()
        ending = asyncio.ensure_future(face.runner.cleanup())
        with suppress(aiohttp.ClientConnectorError):  # until no new connection is accepted
            while True:
                async with face.client.get(face.url("/healthz"), headers={"connection": "close"}):
                    pass
        assert not ending.done()
        face.service.go_on.set()
        assert text_of(await answer.read()) == "one two"
    await ending


async def test_an_answer_that_is_cut_inside_a_large_event_ends_with_complete_events(face: Face) -> None:
    with socket.socket() as opened:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 14)  # the system's buffer is smaller than an event
        opened.setblocking(False)
        await asyncio.get_running_loop().sock_connect(opened, ("127.0.0.1", face.port))
        reader, writer = await asyncio.open_connection(sock=opened, limit=1 << 14)
        data = json.dumps({"model": "long", "input": "hi", "stream": True}).encode()
        head = "".join(f"{name}: {value}\r\n" for name, value in (KEY | {"content-length": str(len(data))}).items())
        writer.write(b"POST /v1/responses HTTP/1.1\r\nhost: x\r\n%b\r\n%b" % (head.encode(), data))
        await reader.readuntil(b"\r\n\r\n")
        seen = bytearray()
        while b"event: response.completed" not in seen[-(1 << 16) :]:
            seen += await reader.read(1 << 14)
        face.runner.cut_off()
        while not seen.endswith(b"\r\n0\r\n\r\n"):
            seen += await reader.read(1 << 20)
        writer.close()
    events = [json.loads(line[6:]) for line in dechunked(bytes(seen)).split(b"\n") if line.startswith(b"data: ")]
    assert "shutting down" in events[-1]["message"]
    assert events[-2]["type"] == "response.completed"


def dechunked(body: bytes) -> bytes:
    chunks, place = list[bytes](), 0
    while True:
        end = body.index(b"\r\n", place)
        size = int(body[place:end], 16)
        if not size:
            return b"".join(chunks)
        chunks.append(body[end + 2 : end + 2 + size])
        place = end + 2 + size + 2
