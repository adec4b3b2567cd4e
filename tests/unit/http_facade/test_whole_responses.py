"""Answers on connections of all kinds: each answer is the same however it is sent, and a connection that was reusable
stays so.
"""

import json
from asyncio import StreamReader, StreamWriter, open_connection, timeout
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest

from tests.unit.http_facade.conftest import CHAT, KEY, Face, body


@dataclass(frozen=True)
class RequestHead:
    id: str
    version: str = "1.1"
    header: str = ""
    kept: bool = True


async def connected(face: Face) -> tuple[StreamReader, StreamWriter]:
    url = urlsplit(face.url(CHAT))
    return await open_connection(url.hostname, url.port)


def request(version: str, headers: str, *, stream: bool) -> bytes:
    sent = json.dumps(body("m", stream=stream)).encode()
    head = (
        f"POST {CHAT} HTTP/{version}\r\nhost: x\r\nauthorization: {KEY['authorization']}\r\n{headers}"
        f"content-type: application/json\r\ncontent-length: {len(sent)}\r\n\r\n"
    )
    return head.encode() + sent


@pytest.mark.parametrize(
    "case",
    [
        RequestHead("as usual"),
        RequestHead("to be the last", header="connection: close\r\n", kept=False),
        RequestHead("by an old client", version="1.0", kept=False),
        RequestHead("by an old client that stays", version="1.0", header="connection: keep-alive\r\n"),
    ],
    ids=lambda case: case.id,
)
async def test_an_answer_has_the_same_head_for_every_kind_of_connection(face: Face, case: RequestHead) -> None:
    reader, writer = await connected(face)
    for _ in range(2 if case.kept else 1):
        writer.write(request(case.version, f"{case.header}x-request-id: mine\r\n", stream=False))
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        status, *lines = head.rstrip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        assert status == f"HTTP/{case.version} 200 OK"
        assert len(lines) == len(headers)
        assert headers.keys() - {"connection"} == {
            "content-type",
            "content-length",
            "date",
            "server",
            "x-request-id",
            "request-id",
        }
        assert headers["request-id"] == headers["x-request-id"] == "mine"
        answer = json.loads(await reader.readexactly(int(headers["content-length"])))
        assert answer["object"] == "chat.completion"
    if not case.kept:
        assert await reader.read() == b""
    writer.close()


@pytest.mark.parametrize("header", ["", "connection: keep-alive\r\n"], ids=["leaves", "stays"])
async def test_a_stream_to_an_http_1_0_client_ends_with_its_connection(face: Face, header: str) -> None:
    reader, writer = await connected(face)
    writer.write(request("1.0", header, stream=True))
    async with timeout(60):
        answer = await reader.read()
    assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
    assert answer.endswith(b"data: [DONE]\n\n")
    writer.close()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_a_header_with_a_line_break_is_not_sent(face: Face, *, stream: bool) -> None:
    face.service.initial = (("x-umg-route", "channel=a\r\nset-cookie: x"),)
    async with face.chat("m", stream=stream) as answer:
        assert answer.status >= 500
        assert "set-cookie" not in answer.headers
