"""Unreachable channels and failing providers: the errors that callers receive."""

import asyncio
import socket
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.gateways import channel, running
from tests.support.serving import serving

REAL = "real-name-v2"
CALLS = {
    "/v1/chat/completions": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]},
    "/v1/embeddings": {"model": "m", "input": "Hi"},
    "/v1/rerank": {"model": "m", "query": "q", "documents": ["a"]},
}
PROTOCOLS = {"/v1/chat/completions": "chat", "/v1/embeddings": "embeddings", "/v1/rerank": "rerank"}


@pytest.fixture
def silent() -> Iterator[str]:
    """Yield the address of a host that answers no connection, as behind a firewall: its accept queue is full."""
    with ExitStack() as stack:
        listening = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(8):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listening.getsockname())
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


@dataclass(frozen=True)
class Provider:
    url: str
    answer: dict[str, object]  # `status` and `body` to answer with


@pytest_asyncio.fixture
async def provider() -> AsyncGenerator[Provider, None]:
    failure: dict[str, object] = {}

    async def answer(request: web.Request) -> web.StreamResponse:
        assert REAL in await request.text()
        return web.json_response(failure["body"], status=int(str(failure["status"])))

    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    async with serving(app) as url:
        yield Provider(f"{url}/v1", failure)


async def post(url: str, headers: dict[str, str], path: str) -> tuple[int, dict[str, object]]:
    async with (
        aiohttp.ClientSession() as session,
        asyncio.timeout(60),
        session.post(url + path, json=CALLS[path], headers=headers) as answer,
    ):
        return answer.status, await answer.json()


@pytest.mark.parametrize("path", ["/v1/embeddings", "/v1/chat/completions"])
async def test_a_channel_that_refuses_connections_is_followed_by_the_next(
    path: str, silent: str, provider: Provider, tmp_path: Path
) -> None:
    answers: dict[str, dict[str, object]] = {
        "/v1/embeddings": {"object": "list", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}], "model": REAL},
        "/v1/chat/completions": {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}]},
    }  # fmt: skip
    provider.answer.update(status=200, body=answers[path])
    first = channel("silent", PROTOCOLS[path], silent, "m", REAL).rstrip() + "\n    timeout: {connect: 0.2}\n"
    second = channel("well", PROTOCOLS[path], provider.url, "m", REAL).rstrip() + "\n    priority: 1\n"
    async with running("channels:\n" + first + second, tmp_path) as gateway:
        status, body = await post(gateway.url, gateway.headers, path)
    assert (status, body["model"]) == (200, "m")


@pytest.mark.parametrize("path", CALLS)
async def test_an_error_message_of_a_provider_has_the_callers_model_id(
    path: str, provider: Provider, tmp_path: Path
) -> None:
    provider.answer.update(status=400, body={"error": {"message": f"bad input for model {REAL}, not {REAL}-x"}})
    async with running("channels:\n" + channel("c", PROTOCOLS[path], provider.url, "m", REAL), tmp_path) as gateway:
        status, body = await post(gateway.url, gateway.headers, path)
    error = body["error"]
    assert isinstance(error, dict)
    assert (status, error["message"]) == (400, f"bad input for model m, not {REAL}-x")
