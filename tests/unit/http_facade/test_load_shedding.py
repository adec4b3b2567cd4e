"""Load shedding: the responses to rejected calls, their low cost, and the release of slots."""

import asyncio
import io
import json
import time
from dataclasses import dataclass, field

import aiohttp
import pytest
from structlog.testing import capture_logs
from yarl import URL

from http_facade.exchange.server_settings import Drain
from tests.unit.http_facade.conftest import CHAT, KEY, LARGE, Face, MakeFace
from tests.unit.http_facade.test_stream import request_bytes
from umg_grpc.base.errors import UmgError
from umg_grpc.config import Overload
from umg_grpc.service.resilience.load_shedding import LoadShedder
from umg_grpc.v1 import pb

HUGE = 2**20


class Watched(LoadShedder):
    """Load shedder with events for a call that is checked and for one that leaves."""

    def __init__(self, queue: int = 0) -> None:
        super().__init__(Overload(calls=1, queue=queue, wait=60))
        self.called = asyncio.Event()
        self.left = asyncio.Event()
        self._release, self.leave = self.leave, self._leave

    def admits(self) -> bool:
        self.called.set()
        return super().admits()

    def _leave(self) -> None:
        self._release()
        self.left.set()


async def full_face(make_face: MakeFace, **changes: object) -> tuple[Face, Watched]:
    load_shedder = Watched()
    await load_shedder.enter()
    return await make_face(load_shedder=load_shedder, **changes), load_shedder


@dataclass(frozen=True)
class Refused:
    id: str
    path: str
    message: str = '"error":'  # part of its body, beside the message


REFUSED = [
    Refused(id="chat", path=CHAT),
    Refused(id="chat without a key", path=CHAT),
    Refused(id="responses", path="/v1/responses"),
    Refused(id="compaction of responses", path="/v1/responses/compact"),
    Refused(id="tokens of responses", path="/v1/responses/input_tokens"),
    Refused(id="messages", path="/v1/messages", message='"overloaded_error"'),
    Refused(id="tokens of messages", path="/v1/messages/count_tokens"),
    Refused(id="native", path="/v1beta/models/m:generateContent", message='"UNAVAILABLE"'),
    Refused(id="a native stream", path="/v1/models/a/b:c:streamGenerateContent?alt=sse", message='"UNAVAILABLE"'),
    Refused(id="a native path with a percent sign", path="/v1/models/m%3AgenerateContent"),
    Refused(id="native embedding", path="/v1beta/models/m:embedContent", message='"UNAVAILABLE"'),
    Refused(id="embeddings", path="/v1/embeddings"),
    Refused(id="rerank", path="/v1/rerank"),
    Refused(id="the other rerank", path="/v2/rerank"),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
async def test_a_call_refused_under_overload_gets_an_error_in_its_own_format(
    make_face: MakeFace, case: Refused, large: bool
) -> None:
    face, load_shedder = await full_face(make_face)
    sent = json.dumps({"model": "m", "messages": [], "padding": "x" * HUGE * large}).encode()
    headers = {"x-request-id": "r-1", "content-type": "application/json"}
    with capture_logs() as logs:
        for _ in range(2):  # the connection is used again
            async with face.client.post(face.url(case.path), data=io.BytesIO(sent), headers=headers) as answer:
                body = await answer.text()
                assert (answer.status, answer.headers["retry-after"]) == (503, "1")
                assert answer.headers["x-request-id"] == answer.headers["request-id"] == "r-1"
                assert answer.headers["server"] == "umg"
                assert answer.content_type == "application/json"
    assert "as many calls under way as it takes" in body
    assert case.message in body.replace(" ", "") or "/v" not in case.path
    assert logs == []
    assert load_shedder.calls == 1
    assert face.service.metadata == []


@pytest.mark.parametrize("origins", [(), ("*",), ("https://page.example",), ("https://other.example",)])
async def test_both_ways_to_refuse_send_the_same_error(make_face: MakeFace, origins: tuple[str, ...]) -> None:
    face, _ = await full_face(make_face, cors_origins=origins)
    seen = []
    for path in ("/v1/messages", "/v1/%6dessages"):  # the second is written in an unusual way, so a handler rejects it
        async with face.client.post(
            URL(face.url(path), encoded=True),
            json={},
            headers={"x-request-id": "r-1", "origin": "https://page.example"},
        ) as answer:
            seen.append((answer.status, {k.lower(): v for k, v in answer.headers.items()}, await answer.read()))
    direct, handled = seen
    assert (direct[1].get("connection"), handled[1].get("connection")) == ("keep-alive", None)
    assert direct[0] == handled[0]
    assert direct[2] == handled[2]
    assert {**direct[1], "date": "", "connection": ""} == {**handled[1], "date": "", "connection": ""}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics", "/v1/models", "/v1beta/models"])
async def test_requests_without_a_model_are_answered_under_overload(make_face: MakeFace, path: str) -> None:
    face, _ = await full_face(make_face)
    async with face.client.get(face.url(path), headers=KEY) as answer:
        assert answer.status == 200


async def test_a_refusal_is_sent_before_the_body_is_read(make_face: MakeFace) -> None:
    face, _ = await full_face(make_face)
    reader, writer = await face.raw()
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (CHAT.encode(), HUGE))
    assert await reader.readline() == b"HTTP/1.1 503 Service Unavailable\r\n"


async def test_a_connection_whose_call_was_refused_serves_the_next(make_face: MakeFace) -> None:
    face, load_shedder = await full_face(make_face)
    reader, writer = await face.raw()
    for _ in range(3):
        writer.write(request_bytes("m"))
        assert (await reader.readline()).startswith(b"HTTP/1.1 503")
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
        await reader.readexactly(int(length.partition(b":")[2]))
    load_shedder.leave()
    writer.write(request_bytes("m"))
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    assert b"[DONE]" in await reader.readuntil(b"\r\n0\r\n\r\n")
    assert load_shedder.calls == 0


async def test_a_refusal_during_a_drain_closes_its_connection(make_face: MakeFace) -> None:
    face, _ = await full_face(make_face, drain=Drain(is_announced=True))
    reader, writer = await face.raw()
    writer.write(request_bytes("m"))
    async with asyncio.timeout(60):
        answer = (await reader.read()).decode().lower()  # until the connection is closed
    assert answer.startswith("http/1.1 503"), answer
    assert "connection: close\r\n" in answer


async def test_calls_sent_together_are_refused_one_by_one(make_face: MakeFace) -> None:
    face, _ = await full_face(make_face)
    reader, writer = await face.raw()
    writer.write(request_bytes("m") * 5)
    for _ in range(5):
        assert (await reader.readline()).startswith(b"HTTP/1.1 503")
        await reader.readuntil(b"}}")


async def test_a_client_of_http_1_0_that_is_refused_is_closed(make_face: MakeFace) -> None:
    face, _ = await full_face(make_face)
    reader, writer = await face.raw()
    writer.write(request_bytes("m", version=b"1.0"))
    answer = await reader.read()  # to the end of the connection
    assert b" 503 " in answer.partition(b"\r\n")[0]
    assert b"connection: keep-alive" not in answer.lower()


async def test_a_refusal_has_cors_headers(make_face: MakeFace) -> None:
    face, _ = await full_face(make_face, cors_origins=("*",))
    async with face.chat("m", headers={**KEY, "origin": "https://page.example"}) as answer:
        assert answer.status == 503
        assert answer.headers["access-control-allow-origin"] == "*"


async def test_a_call_waits_in_the_queue_for_a_free_slot(make_face: MakeFace) -> None:
    load_shedder = Watched(queue=1)
    face = await make_face(load_shedder=load_shedder)
    await load_shedder.enter()
    first = asyncio.ensure_future(face.chat("m").__aenter__())
    await load_shedder.called.wait()
    await face.alive()
    assert load_shedder.waiting == 1
    async with face.chat("m") as second:
        assert second.status == 503
    load_shedder.leave()
    async with await first as answer:
        assert answer.status == 200


@dataclass(frozen=True)
class Ends:
    id: str
    model: str
    stream: bool = False
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


ENDS = [
    Ends(id="a response", model="m"),
    Ends(id="a stream", model="m", stream=True),
    Ends(id="a failure", model="fail", status=502),
    Ends(id="a stream that fails at once", model="fail", stream=True, status=502),
    Ends(id="a stream that breaks", model="break", stream=True),
    Ends(id="a crash", model="crash", status=500),
    Ends(id="a crash within a stream", model="crash mid", stream=True),
    Ends(id="a stream that never began", model="empty", stream=True, status=502),
    Ends(id="an unknown header", model="m", status=400, headers={"x-umg-timeout": "soon"}),
    Ends(id="a header the service would not take", model="m", status=400, headers={"x-umg-strict": "perhaps"}),
]


@pytest.mark.parametrize("case", ENDS, ids=lambda case: case.id)
async def test_a_slot_is_released_once_for_every_end_of_a_call(make_face: MakeFace, case: Ends) -> None:
    load_shedder = Watched()
    face = await make_face(load_shedder=load_shedder)
    face.service.failure = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "no luck")
    for _ in range(3):
        async with face.chat(case.model, stream=case.stream, headers={**KEY, **case.headers}) as answer:
            assert answer.status == case.status
            await answer.read()
        if load_shedder.calls:  # the client has its response a moment before the slot is released
            await load_shedder.left.wait()
        load_shedder.left.clear()
        assert load_shedder.calls == 0


@pytest.mark.parametrize("stream", [False, True])
async def test_a_slot_is_held_until_the_end_and_released_when_the_caller_disconnects(
    make_face: MakeFace, stream: bool
) -> None:
    load_shedder = Watched()
    face = await make_face(load_shedder=load_shedder)
    _, writer = await face.raw()
    data = request_bytes("wait mid" if stream else "wait")
    writer.write(data if stream else data.replace(b"true", b"null"))
    await face.service.reached.wait()
    assert load_shedder.calls == 1
    async with face.chat("m") as answer:
        assert answer.status == 503
    load_shedder.left.clear()
    writer.close()
    async with asyncio.timeout(60):
        await load_shedder.left.wait()
    assert load_shedder.calls == 0


async def test_a_slow_upload_occupies_no_slot(make_face: MakeFace) -> None:
    load_shedder = Watched()
    face = await make_face(load_shedder=load_shedder)
    _, slow = await face.raw()
    slow.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nhalf" % CHAT.encode())
    await slow.drain()
    async with face.chat("m") as answer:
        assert answer.status == 200


async def test_a_caller_that_does_not_read_is_disconnected_and_its_slot_released(make_face: MakeFace) -> None:
    load_shedder = Watched()
    face = await make_face(load_shedder=load_shedder, write_timeout_seconds=0.05)
    reader, writer = await face.raw()
    reader._transport.pause_reading()
    writer.write(request_bytes("large").replace(b"true", b"null"))
    async with asyncio.timeout(60):
        await load_shedder.left.wait()
    async with face.chat("m") as answer:
        assert answer.status == 200


async def test_a_caller_that_reads_slowly_keeps_its_slot_and_gets_the_whole_answer(make_face: MakeFace) -> None:
    load_shedder = Watched()
    face = await make_face(load_shedder=load_shedder)
    reader, writer = await face.raw()
    reader._transport.pause_reading()
    writer.write(request_bytes("large").replace(b"true", b"null"))
    async with asyncio.timeout(60):
        while not load_shedder.calls:  # until the service has checked its key
            await face.alive()
    for _ in range(20):
        await face.alive()
    assert load_shedder.calls == 1
    reader._transport.resume_reading()
    head = await reader.readuntil(b"\r\n\r\n")
    length = next(line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length"))
    assert len(await reader.readexactly(int(length.partition(b":")[2]))) > LARGE
    await load_shedder.left.wait()


@pytest.mark.parametrize("given", ["30", "90.5s", "45500ms", "2m", "999999999d", "9" * 400])
async def test_a_callers_own_deadline_reaches_the_service(face: Face, given: str) -> None:
    began = time.monotonic()
    async with face.chat("m", headers={**KEY, "x-umg-timeout": given, "x-umg-cache": "5m"}) as answer:
        assert answer.status == 200
    seconds = time.monotonic() - began
    sent = face.service.metadata[-1]
    assert sent["x-umg-cache"] == "5m"
    most = {"30": 30, "90.5s": 90.5, "45500ms": 45.5, "2m": 120}.get(given, 1e8)
    assert most - seconds - 0.001 <= float(sent["x-umg-timeout"]) <= most


@pytest.mark.parametrize("header", [{"x-umg-timeout": "0"}, {"x-umg-timeout": "-1"}, {"x-umg-cache": "for ever"}])
async def test_an_invalid_deadline_or_cache_age_is_refused(face: Face, header: dict[str, str]) -> None:
    async with face.chat("m", headers={**KEY, **header}) as answer:
        assert answer.status == 400
        assert next(iter(header)) in (await answer.json())["error"]["message"]


async def test_a_drain_refuses_no_call_that_holds_a_slot(make_face: MakeFace) -> None:
    load_shedder = Watched()
    face = await make_face(load_shedder=load_shedder)
    call = asyncio.ensure_future(face.chat("wait").__aenter__())
    await face.service.reached.wait()
    ending = asyncio.ensure_future(face.runner.cleanup())
    face.service.go_on.set()
    async with await call as answer:
        assert answer.status == 200
    with pytest.raises(aiohttp.ClientConnectionError):
        async with face.chat("m"):
            pass
    await ending
    assert load_shedder.calls == 0
