"""Objects of calls, which are freed when a call ends: not only at the next garbage collection."""

import gc
import json
from collections import Counter
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateways import Running, channel, running
from tests.support.serving import serving

CALLS = 10


async def answer(request: web.Request) -> web.StreamResponse:
    """Answer a chat request, by a stream if it requests one, or fail if the prompt contains `fail`."""
    body = await request.json()
    if body.get("stream"):
        stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await stream.prepare(request)
        for delta, reason in (({"content": "a"}, None), ({"content": "b"}, None), ({}, "stop")):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
            await stream.write(f"data: {json.dumps(chunk)}\n\n".encode())
        await stream.write(b"data: [DONE]\n\n")
        return stream
    if "fail" in str(body):
        return web.json_response({"error": {"message": "no such thing", "type": "invalid_request_error"}}, status=400)
    choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    return web.json_response(
        {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    )


async def call(gateway: Running, path: str, body: dict[str, object]) -> int:
    async with (
        aiohttp.ClientSession(headers=gateway.headers) as session,
        session.post(gateway.url + path, json=body) as response,
    ):
        await response.read()
        return response.status


@pytest.mark.parametrize(
    ("path", "prompt", "status"),
    [
        ("/v1/chat/completions", "hi", 200),
        ("/v1/messages", "hi", 200),
        ("/v1/chat/completions", "fail", 400),
        ("/v1/chat/completions", "stream", 200),
        ("/v1/messages", "stream", 200),
    ],
)
async def test_the_objects_of_a_call_form_no_cycle(path: str, prompt: str, status: int, tmp_path: Path) -> None:
    provider = web.Application()
    provider.router.add_post("/v1/chat/completions", answer)
    body: dict[str, object] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}]}
    body |= {"stream": True} if prompt == "stream" else {}
    async with (
        serving(provider) as url,
        running(f"channels:\n{channel('p', 'chat', url + '/v1', 'm')}", tmp_path) as gateway,
    ):
        assert await call(gateway, path, body) == status
        gc.collect()
        gc.disable()
        try:
            for _ in range(CALLS):
                assert await call(gateway, path, body) == status
            gc.set_debug(gc.DEBUG_SAVEALL)
            gc.collect()
            found = Counter(type(value).__name__ for value in gc.garbage if type(value).__module__.startswith("umg"))
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
    assert not {name: count for name, count in found.items() if count >= CALLS}
