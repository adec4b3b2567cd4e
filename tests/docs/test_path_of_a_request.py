"""Page on the architecture: the path of one request is the one that a chat stream takes through the code."""

import re
import traceback
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from http_facade.server.client_connections import ServerConnection as ClientConnection
from tests.docs.tables import DOCS
from tests.support.gateways import channel, running
from tests.support.serving import serving
from umg_grpc.upstream.http1.connection import ProviderConnection

ROOT = DOCS.parent
PAGE = (DOCS / "architecture.md").read_text(encoding="utf-8")
MAX_FUNCTIONS = 11
ANSWER = b'data: {"id": "1", "choices": [{"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop"}]}\n\n'


def functions_of_the_task() -> list[str]:
    """Return the functions of the gateway that wait for the caller, as `module:function`, outermost first."""
    stack = [frame for frame in traceback.extract_stack() if Path(frame.filename).is_relative_to(ROOT)]
    named = [f"{Path(frame.filename).relative_to(ROOT)}:{frame.name}" for frame in stack]
    return [name for name in named if name.startswith(("umg_grpc/", "http_facade/"))]


async def answer(_: web.Request) -> web.Response:
    return web.Response(body=ANSWER + b"data: [DONE]\n\n", content_type="text/event-stream")


async def test_a_stream_takes_the_path_of_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    sent, written = list[list[str]](), list[list[str]]()
    begin, write = ProviderConnection.begin, ClientConnection.write

    def recorded_begin(*args: object, **options: object) -> object:
        sent.append(functions_of_the_task())
        return begin(*args, **options)  # type: ignore[arg-type]  # passed on as they came

    async def recorded_write(self: ClientConnection, head: bytes, body: bytes = b"") -> None:
        written.append(functions_of_the_task())
        await write(self, head, body)

    monkeypatch.setattr(ProviderConnection, "begin", recorded_begin)
    monkeypatch.setattr(ClientConnection, "write", recorded_write)
    app = web.Application()
    app.router.add_post("/chat/completions", answer)
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]}
    async with (
        serving(app) as url,
        running("channels:\n" + channel("p", "chat", url, "m"), tmp_path) as gateway,
        aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
        session.post("/v1/chat/completions", json=body) as got,
    ):
        assert b'"Hi"' in await got.read()
    [path] = sent
    assert len(path) + 2 <= MAX_FUNCTIONS, path  # and the connections of the client and the provider
    [section] = re.findall(r"\n## The path of one request\n(.*?)\n## ", PAGE, re.DOTALL)
    modules = ["http_facade/server/client_connections.py", *dict.fromkeys(name.partition(":")[0] for name in path)]
    places = [section.find(module) for module in modules]
    assert -1 not in places, modules
    assert places == sorted(places), modules
    assert {name.partition(":")[0] for names in written for name in names[-1:]} == {
        "http_facade/exchange/event_stream_response.py"
    }
