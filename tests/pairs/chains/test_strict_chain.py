"""Strict mode through a gateway behind a gateway: fields that the one behind would leave out are refused."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.gateways import KEY, channel, running
from tests.support.serving import serving

BODY: dict[str, Any] = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "theirs", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Hi"}], "usage": {"input_tokens": 7, "output_tokens": 5},
}  # fmt: skip
STREAM = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant",'
    b'"model":"theirs","content":[],"usage":{"input_tokens":7,"output_tokens":1}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}'
    b'\n\nevent: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta",'
    b'"text":"Hi"}}\n\nevent: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn"},'
    b'"usage":{"output_tokens":5}}\n\nevent: message_stop\ndata: {"type":"message_stop"}\n\n'
)


@dataclass
class Provider:
    """Provider whose format has no `seed`."""

    headers: list[Mapping[str, str]] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.Response:
        self.headers.append(request.headers)
        if (await request.json()).get("stream"):
            return web.Response(body=STREAM, content_type="text/event-stream")
        return web.json_response(BODY)


@dataclass(frozen=True)
class Chain:
    front: str
    session: aiohttp.ClientSession
    provider: Provider

    async def call(self, *, strict: bool, stream: bool = False, **fields: object) -> tuple[int, str, str]:
        """Return the status, the dropped fields, and the body of a chat call."""
        headers = {"authorization": f"Bearer {KEY}"} | ({"x-umg-strict": "true"} if strict else {})
        body = {"model": "m", "messages": [{"role": "user", "content": "Hi"}], "stream": stream, **fields}
        async with self.session.post(f"{self.front}/v1/chat/completions", json=body, headers=headers) as got:
            return got.status, got.headers.get("x-umg-dropped", ""), await got.text()


@pytest_asyncio.fixture
async def chain(tmp_path: Path) -> AsyncGenerator[Chain, None]:
    async with AsyncExitStack() as stack:
        provider, app = Provider(), web.Application()
        app.router.add_post("/v1/messages", provider.answer)
        url = str(await stack.enter_async_context(serving(app)))
        theirs = "channels:\n" + channel("provider", "messages", f"{url}/v1", "m", "theirs")
        behind = await stack.enter_async_context(running(theirs, tmp_path / "behind"))
        ours = "channels:\n" + channel("gateway", "chat", f"{behind.url}/v1", "m")
        front = await stack.enter_async_context(running(ours, tmp_path / "front"))
        yield Chain(front.url, await stack.enter_async_context(aiohttp.ClientSession()), provider)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
async def test_a_strict_call_is_refused_if_the_gateway_behind_leaves_a_field_out(chain: Chain, stream: bool) -> None:
    for _ in range(2):
        status, _, body = await chain.call(strict=True, stream=stream, seed=7)
        assert (status, "seed" in body) == (400, True), body
    assert len(chain.provider.headers) == 1, "after the first answer the gateway behind refuses the call itself"
    assert (await chain.call(strict=False, stream=stream, seed=7))[:2] == (200, "seed")
    assert (await chain.call(strict=True, stream=stream))[:2] == (200, "")
    assert not [sent for sent in chain.provider.headers if "x-umg-strict" in sent]
