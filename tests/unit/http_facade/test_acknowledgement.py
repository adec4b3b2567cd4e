"""Interim response 102 to a proxy, before a call can reach a provider."""

import json
import socket
from dataclasses import dataclass

import pytest

from tests.unit.http_facade.conftest import CHAT, KEY, Face, body

ACKNOWLEDGED = "x-umg-acknowledge: true\r\n"
AUTHORIZATION = f"authorization: {KEY['authorization']}\r\n"


def request_of(headers: str, *, model: str = "m", stream: bool = False, version: str = "1.1") -> bytes:
    content = json.dumps(body(model, stream=stream)).encode()
    line = f"POST {CHAT} HTTP/{version}\r\nhost: x\r\nconnection: close\r\n"
    return f"{line}{headers}content-length: {len(content)}\r\n\r\n".encode() + content


@dataclass(frozen=True)
class Case:
    id: str
    request: bytes
    statuses: list[int]


CASES = [
    Case("a call", request_of(AUTHORIZATION + ACKNOWLEDGED), [102, 200]),
    Case("a stream", request_of(AUTHORIZATION + ACKNOWLEDGED, stream=True), [102, 200]),
    Case("a call without the header", request_of(AUTHORIZATION), [200]),
    Case(
        "a call of HTTP/1.0, which has no interim responses",
        request_of(AUTHORIZATION + ACKNOWLEDGED, version="1.0"),
        [200],
    ),
    Case("a call that is refused, and never made", request_of(AUTHORIZATION + ACKNOWLEDGED, model=""), [400]),
    Case("a call with an invalid header", request_of(AUTHORIZATION + ACKNOWLEDGED + "x-umg-timeout: soon\r\n"), [400]),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
async def test_a_call_is_acknowledged_before_it_is_made(face: Face, case: Case) -> None:
    reader, writer = await face.raw()
    writer.write(case.request)
    answer = await reader.read()
    statuses = [int(line.split()[1]) for line in answer.split(b"\r\n") if line.startswith(b"HTTP/1.")]
    assert statuses == case.statuses


async def test_the_acknowledgement_does_not_wait_for_the_answer(face: Face) -> None:
    reader, writer = await face.raw()
    writer.write(request_of(AUTHORIZATION + ACKNOWLEDGED, model="wait"))
    assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 102 Processing\r\n\r\n"
    face.service.go_on.set()
    assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_call_whose_proxy_has_left_before_it_is_read_is_not_made(face: Face) -> None:
    with socket.create_connection(("127.0.0.1", face.port)) as connection:
        assert await face.alive() == 200  # after which the connection is accepted
        connection.sendall(request_of(AUTHORIZATION + ACKNOWLEDGED))
    # the connection is closed before the event loop runs again, as that of a process that was stopped
    async with face.chat("other") as answer:
        assert answer.status == 200
    assert [sent.model for sent in face.service.requests] == ["other"]
