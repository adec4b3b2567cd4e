"""Usage of a compaction that the provider makes within a call: it is in `iterations` alone, and is charged."""

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from tests.support.callers.http_caller import HttpCaller
from tests.support.gateways import channel, running
from tests.support.polling import pause
from tests.support.serving import serving

TOKENS = {"input_tokens": 30, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
SUMMARY = {"input_tokens": 1000, "output_tokens": 200, "cache_read_input_tokens": 400, "cache_creation_input_tokens": 0}
USAGE = {**TOKENS, "iterations": [{"type": "compaction", **SUMMARY}, {"type": "message", **TOKENS}]}
MESSAGE: dict[str, Any] = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "m",
    "content": [{"type": "compaction", "content": "The user walks."}, {"type": "text", "text": "Go on."}],
    "stop_reason": "end_turn",
    "stop_sequence": None,
    "usage": USAGE,
}
EVENTS: list[dict[str, Any]] = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None, "usage": TOKENS}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Go on."}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": USAGE},
    {"type": "message_stop"},
]


async def answer(request: web.Request) -> web.StreamResponse:
    if not json.loads(await request.read()).get("stream"):
        return web.json_response(MESSAGE)
    frames = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in EVENTS)
    return web.Response(text=frames, content_type="text/event-stream")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("face", ["messages", "chat"])
async def test_a_compaction_of_the_provider_is_charged(face: str, stream: bool, tmp_path: Path) -> None:
    app = web.Application()
    app.router.add_post("/{path:.*}", answer)
    models = "models:\n  m: {price: {input: 10, output: 50, cache_read: 1}}\n"
    async with (
        serving(app) as url,
        running(f"channels:\n{channel('main', 'messages', url, 'm')}{models}", tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        caller = HttpCaller(session, gateway.url, gateway.key)
        turns = [{"role": "user", "content": "Hi"}]
        body = {"model": "m", "max_tokens": 500, "messages": turns, "stream": stream}
        sent = await caller.send(face, "m", body)
        assert sent.status == 200
        record = await record_of(session, caller, sent.headers["x-request-id"])
    inputs, read, outputs = 30 + 1000, 400, 5 + 200
    assert record["micro_credits"] == 10 * inputs + read + 50 * outputs
    counts = {each["unit"]: int(each["count"]) for each in record["quantities"]}
    assert counts == {"input_token": inputs, "cache_read_token": read, "output_token": outputs}


async def record_of(session: aiohttp.ClientSession, caller: HttpCaller, call: str) -> dict[str, Any]:
    headers = {"authorization": f"Bearer {caller.key}"}
    async with asyncio.timeout(60):
        while True:
            async with session.get(f"{caller.url}/admin/v1/requests/{call}", headers=headers) as response:
                if response.status == 200:
                    found: dict[str, Any] = (await response.json())["record"]
                    return found
            await pause()
