"""The names of aiohttp that are public but not documented: another version may change them."""

import asyncio
import inspect
import json
import re
from pathlib import Path

import pytest
from aiohttp import web

from http_facade.server.malformed_requests import HttpProtocol

WHERE = "aiohttp has changed: look at http_facade/server/malformed_requests.py"
ROOT = Path(__file__).parents[3] / "http_facade"


def test_errors_are_made_by_the_method_that_ours_overrides() -> None:
    parameters = list(inspect.signature(web.RequestHandler.handle_error).parameters)
    assert parameters == ["self", "request", "status", "exc", "message"], WHERE


def test_a_protocol_takes_the_server_and_the_options_of_ours() -> None:
    parameters = inspect.signature(web.RequestHandler).parameters
    ours = {"manager", "loop", "access_log", "keepalive_timeout", "lingering_time", "auto_decompress"}
    assert ours <= parameters.keys(), WHERE


def test_no_private_name_of_aiohttp_is_used() -> None:
    modules = {path.name: path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py")}
    assert [
        name for name, text in modules.items() if "SLF001" in text or re.search(r"aiohttp\S* import .*\b_", text)
    ] == []
    internal = re.compile(r"^(?:from|import) aiohttp\.(?!typedefs)", re.MULTILINE)
    assert [name for name, text in modules.items() if internal.search(text)] == ["malformed_requests.py"]


@pytest.mark.parametrize(
    ("line", "status"),
    [(b"no HTTP", b"400"), (b"GET /%b HTTP/1.1" % (b"x" * 20_000), b"431")],
    ids=["no HTTP", "a line too long"],
)
async def test_the_answer_to_invalid_http_is_made_by_our_protocol(line: bytes, status: bytes) -> None:
    async def answer(_: web.BaseRequest) -> web.StreamResponse:
        return web.Response()

    loop = asyncio.get_running_loop()
    server = web.Server(answer)
    listening = await loop.create_server(lambda: HttpProtocol(server, loop=loop), "127.0.0.1", 0)
    try:
        reader, writer = await asyncio.open_connection(*listening.sockets[0].getsockname())
        writer.write(line + b"\r\n\r\n")
        head, _, body = (await reader.read()).partition(b"\r\n\r\n")
        assert head.split()[1] == status, WHERE
        assert json.loads(body)["error"]["message"].startswith("the request cannot be read"), WHERE
        writer.close()
    finally:
        listening.close()
        await server.shutdown(1)
