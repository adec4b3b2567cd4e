"""Request bodies: their type, encoding and size, and uploads that fail."""

import asyncio
import gzip
import http.client
import io
import json
import zlib
from dataclasses import dataclass, field

import pytest

from http_facade.body_decompression import decompress
from tests.support import logs
from tests.unit.http_facade.conftest import BODY_LIMIT, CHAT, Face, MakeFace, body
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

GOOD = json.dumps(body("m")).encode()
HUGE = 65 * 2**20


def raw_deflate(data: bytes) -> bytes:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return compressor.compress(data) + compressor.flush()


@dataclass(frozen=True)
class Sent:
    id: str
    data: bytes = GOOD
    headers: dict[str, str] = field(default_factory=dict)
    status: int = 200
    message: str = "hello"


def typed(value: str) -> dict[str, str]:
    return {"content-type": value}


def encoded(value: str) -> dict[str, str]:
    return {"content-type": "application/json", "content-encoding": value}


SENT = [
    Sent(id="JSON", headers=typed("application/json")),
    Sent(id="JSON with a parameter", headers=typed("application/json; charset=utf-8")),
    Sent(id="JSON in capitals", headers=typed("Application/JSON")),
    Sent(id="no content type", headers={}),
    Sent(
        id="a form, as curl sends it",
        headers=typed("application/x-www-form-urlencoded"),
        status=415,
        message="send the body with content-type: application/json, not application/x-www-form-urlencoded",
    ),
    Sent(id="text", headers=typed("text/plain"), status=415, message="application/json"),
    Sent(id="multipart", headers=typed("multipart/form-data; boundary=x"), status=415, message="multipart/form-data"),
    Sent(id="no JSON", data=b"{", headers=typed("application/json"), status=400, message="error"),
    Sent(id="nothing", data=b"", headers=typed("application/json"), status=400, message="error"),
    Sent(id="no messages", data=b'{"model":"m"}', headers=typed("application/json"), status=400, message="messages"),
    Sent(id="gzip", data=gzip.compress(GOOD, mtime=0), headers=encoded("gzip")),
    Sent(id="gzip by its older name", data=gzip.compress(GOOD, mtime=0), headers=encoded("X-GZIP")),
    Sent(id="deflate", data=zlib.compress(GOOD), headers=encoded("deflate")),
    Sent(id="deflate without its wrapper", data=raw_deflate(GOOD), headers=encoded("deflate")),
    Sent(id="identity", headers=encoded("identity")),
    Sent(id="an encoding we do not know", headers=encoded("br"), status=415, message="gzip or deflate, not br"),
    Sent(id="two encodings", headers=encoded("gzip, gzip"), status=415, message="gzip or deflate"),
    Sent(id="no gzip", headers=encoded("gzip"), status=400, message="not compressed with gzip"),
    Sent(
        id="gzip cut off",
        data=gzip.compress(GOOD, mtime=0)[:-9],
        headers=encoded("gzip"),
        status=400,
        message="one whole gzip",
    ),
    Sent(
        id="gzip twice over",
        data=gzip.compress(GOOD, mtime=0) * 2,
        headers=encoded("gzip"),
        status=400,
        message="one whole",
    ),
    Sent(
        id="a gzip bomb",
        data=gzip.compress(bytes(200 * 2**20), 1, mtime=0),
        headers=encoded("gzip"),
        status=413,
        message=f"larger than {BODY_LIMIT} bytes (2 MiB)",
    ),
    Sent(
        id="a deflate bomb",
        data=zlib.compress(bytes(BODY_LIMIT + 1)),
        headers=encoded("deflate"),
        status=413,
        message="2 MiB",
    ),
]


@pytest.mark.parametrize("case", SENT, ids=lambda case: case.id)
async def test_a_body_is_accepted_or_refused_by_its_content_type_and_encoding(face: Face, case: Sent) -> None:
    skip = ["content-type"] if "content-type" not in case.headers else []
    url = face.url(CHAT)
    async with face.client.post(url, data=case.data, headers=case.headers, skip_auto_headers=skip) as answer:
        assert (answer.status, answer.content_type) == (case.status, "application/json")
        assert case.message in await answer.text()


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_compressed_body_may_have_exactly_the_limit(encoding: str) -> None:
    plain = b"x" * 1000
    packed = gzip.compress(plain, mtime=0) if encoding == "gzip" else zlib.compress(plain)
    assert decompress(packed, encoding, 1000) == plain
    with pytest.raises(UmgError) as caught:
        decompress(packed, encoding, 999)
    assert caught.value.reason == pb.ERROR_REASON_BODY_TOO_LARGE
    assert caught.value.metadata == {"limit_bytes": "999"}


async def test_a_body_of_exactly_the_limit_is_read(face: Face) -> None:
    data = GOOD + b" " * (BODY_LIMIT - len(GOOD))
    for sent, status in ((data, 200), (data + b" ", 413)):
        async with face.client.post(face.url(CHAT), data=io.BytesIO(sent), headers=typed("application/json")) as answer:
            assert answer.status == status


@pytest.mark.parametrize("expect", [b"", b"expect: 100-continue\r\n"], ids=["at once", "after 100 Continue"])
async def test_a_length_may_begin_with_more_zeros_than_python_reads(face: Face, expect: bytes) -> None:
    reader, writer = await face.raw()
    head = b"POST %b HTTP/1.1\r\nhost: x\r\n%bcontent-length: %b%d\r\n\r\n"
    writer.write(head % (CHAT.encode(), expect, b"0" * 5000, len(GOOD)))
    assert await face.alive() == 200  # a round trip later the headers were read
    writer.write(GOOD)
    assert b" 200 OK\r\n" in await reader.readuntil(b"200 OK\r\n")


async def test_a_client_receives_the_refusal_while_it_sends_a_huge_body(face: Face) -> None:
    reader, writer = await face.raw()
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (CHAT.encode(), HUGE))
    writer.write(b"x" * 65536)
    await writer.drain()
    assert await reader.readline() == b"HTTP/1.1 413 Request Entity Too Large\r\n"
    for _ in range(HUGE // 65536 - 1):  # the rest is read without a reset
        writer.write(b"x" * 65536)
        await writer.drain()
    answer = await reader.read()
    assert b"larger than 2097152 bytes" in answer
    assert b"connection: close" in answer.lower()


def post_and_then_read(port: int, chunked: bool) -> tuple[int, str]:
    """Send the whole body before the response is read. Return the status and the text of the response."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    chunk = bytes(2**20)
    data = (chunk for _ in range(65)) if chunked else bytes(HUGE)
    connection.request("POST", CHAT, body=data, headers=typed("application/json"), encode_chunked=chunked)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.mark.parametrize("chunked", [False, True], ids=["with a content-length", "in chunks"])
async def test_a_client_that_sends_all_before_it_reads_gets_the_refusal(face: Face, chunked: bool) -> None:
    status, text = await asyncio.to_thread(post_and_then_read, face.port, chunked)
    assert status == 413
    assert "2 MiB" in text


async def test_a_client_that_waits_gets_100_continue(face: Face) -> None:
    async with face.client.post(face.url(CHAT), json=body("m"), expect100=True) as answer:
        assert answer.status == 200


async def test_a_client_that_waits_for_100_continue_is_refused_before_it_sends_a_large_body(face: Face) -> None:
    reader, writer = await face.raw()
    head = b"POST %b HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: %d\r\n\r\n"
    writer.write(head % (CHAT.encode(), HUGE))
    assert (await reader.readline()).startswith(b"HTTP/1.1 413")
    writer.close()


async def test_an_unknown_expectation_is_ignored(face: Face) -> None:
    async with face.client.post(face.url(CHAT), json=body("m"), headers={"expect": "cake"}) as answer:
        assert answer.status == 200


async def test_an_aborted_upload_frees_its_memory_and_logs_no_error(
    face: Face, quiet: logs.Warnings, capsys: pytest.CaptureFixture[str]
) -> None:
    _, writer = await face.raw()
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 1000\r\n\r\nhalf" % CHAT.encode())
    await writer.drain()
    async with face.chat("m") as answer:  # a round trip later the facade is reading the first request
        assert answer.status == 200
    writer.close()
    await writer.wait_closed()
    async with face.chat("m") as answer:
        assert answer.status == 200
    assert quiet.records == []
    assert "Traceback" not in "".join(capsys.readouterr())


async def test_a_stalled_upload_is_ended(make_face: MakeFace) -> None:
    face = await make_face(upload_seconds=0.05)
    reader, writer = await face.raw()
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000\r\n\r\n" % CHAT.encode() + b"half" * 100_000)
    assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    head = await reader.readuntil(b"\r\n\r\n")
    assert b"connection: close" in head.lower()
    assert b"nothing of it came for 0.05 seconds" in await reader.readuntil(b"}")
    writer.close()


async def test_an_upload_below_the_minimum_rate_is_ended(make_face: MakeFace) -> None:
    face = await make_face(upload_seconds=0.2)
    reader, writer = await face.raw()
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: 100000\r\n\r\n" % CHAT.encode())

    async def trickle() -> None:
        while True:
            writer.write(b"x")
            await face.alive()

    trickling = asyncio.ensure_future(trickle())
    async with asyncio.timeout(60):
        assert (await reader.readline()).startswith(b"HTTP/1.1 400")
        assert b"it came too slowly" in await reader.readuntil(b"}")
    trickling.cancel()


async def test_a_large_body_has_more_time_than_a_small_one(make_face: MakeFace) -> None:
    face = await make_face(upload_seconds=0.5)
    reader, writer = await face.raw()
    data = GOOD + b" " * (BODY_LIMIT // 2 - len(GOOD))
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % (CHAT.encode(), len(data)))
    loop, part = asyncio.get_running_loop(), len(data) // 8
    began = loop.time()
    for number, begin in enumerate(range(0, len(data), part)):  # for longer than 0.5 s in total, with shorter pauses
        writer.write(data[begin : begin + part])
        await writer.drain()
        while loop.time() < began + number * 0.1:
            await face.alive()
    assert (await reader.readline()).startswith(b"HTTP/1.1 200")


async def test_a_broken_chunk_is_a_clean_400(face: Face, quiet: logs.Warnings) -> None:
    reader, writer = await face.raw()
    writer.write(
        b"POST %b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\nno\r\n" % CHAT.encode()
    )
    head, _, text = (await reader.read()).partition(b"\r\n\r\n")
    assert head.split()[1] == b"400"
    assert set(json.loads(text)) == {"error"}  # and no data behind it
    assert quiet.records == []


async def test_a_broken_chunk_in_a_later_packet_ends_the_upload_as_a_stall(
    make_face: MakeFace, quiet: logs.Warnings
) -> None:
    face = await make_face(upload_seconds=0.05)
    reader, writer = await face.raw()
    writer.write(b"POST %b HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n" % CHAT.encode())
    await writer.drain()
    async with face.chat("m") as other:  # a round trip later the facade is reading the first request
        assert other.status == 200
    writer.write(b"nonsense\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.1 400")
    assert b"connection: close" in (await reader.readuntil(b"\r\n\r\n")).lower()
    assert quiet.records == []
