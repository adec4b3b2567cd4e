"""WebSocket handshakes on paths that take none: answered at once with 426, after which Codex uses HTTP (openai/codex
issue 43353; it repeats the handshake six times after a 404 or 405).
"""

import asyncio
import json

import aiohttp
import pytest
from yarl import URL

from tests.unit.http_facade.conftest import KEY, Face

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nhost: {host}\r\nconnection: Upgrade\r\nupgrade: WebSocket\r\nsec-websocket-version: 13\r\n"
    "sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nopenai-beta: responses_websockets=2026-02-06\r\n\r\n"
)
PATHS = ["/v1/responses", "/responses", "/v1/realtime?model=m", "/v1/chat/completions", "/nothing"]


@pytest.mark.parametrize("path", PATHS)
async def test_a_handshake_is_refused_at_once_with_426_and_a_json_body(face: Face, path: str) -> None:
    url = URL(face.url(path))
    reader, writer = await asyncio.open_connection(url.host, url.port)
    async with asyncio.timeout(30):
        writer.write(HANDSHAKE.format(path=path, host=url.host).encode())
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")  # to the end, which the gateway makes
    writer.close()
    await writer.wait_closed()
    lines = head.decode().lower().split("\r\n")
    assert lines[0] == "http/1.1 426 upgrade required"
    assert {"connection: close, upgrade", "upgrade: http/1.1", "content-type: application/json"} <= set(lines)
    assert "supports no WebSocket; send the request over HTTP" in str(json.loads(body)["error"])


async def test_a_websocket_client_gets_the_status(face: Face) -> None:
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await face.client.ws_connect(face.url("/v1/responses"), headers=KEY)
    assert caught.value.status == 426


async def test_a_plain_get_of_the_path_is_still_an_unknown_method(face: Face) -> None:
    async with face.client.get(face.url("/v1/responses"), headers=KEY) as answer:
        assert answer.status == 405
    async with face.client.get(face.url("/v1/responses"), headers=KEY | {"upgrade": "h2c"}) as answer:
        assert answer.status == 405


async def test_an_upgrade_on_a_path_of_get_is_ignored(face: Face) -> None:
    async with face.client.get(face.url("/healthz"), headers={"upgrade": "websocket"}) as answer:
        assert answer.status == 200
