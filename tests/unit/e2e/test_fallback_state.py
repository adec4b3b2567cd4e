"""State of a provider (signatures of its reasoning), which no provider of a fallback is sent."""

import json
from pathlib import Path

from aiohttp import web

from tests.support.providers.scripted import Script, Scripted, status
from tests.unit.e2e.test_fallbacks import FALLBACK
from tests.unit.e2e.test_survival import MESSAGES, world

SIGNATURE = "c2lnbmF0dXJlLW9mLXRoZS1maXJzdC1hY2NvdW50LXdoaWNoLW5vLW90aGVyLXJlYWRz"
THOUGHT = {"type": "thinking", "thinking": "Hm", "signature": SIGNATURE}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}
OPTIONS = {
    "max_tokens": 3000,
    "tools": [{"name": "look", "input_schema": {"type": "object"}}],
    "thinking": {"type": "enabled", "budget_tokens": 2000},
}
CHANNELS = {model: f"models: [{model}]\nprotocols: [messages]" for model in ("m", "other")}


def answer(*content: dict[str, object]) -> Script:
    async def script(request: web.Request, provider: Scripted) -> web.StreamResponse:
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        return web.json_response(head | {"content": content, "usage": {"input_tokens": 1, "output_tokens": 1}})

    return script


async def test_the_signature_of_another_account_is_left_out_for_a_fallback(tmp_path: Path) -> None:
    scripts = {"m": [answer(THOUGHT, CALL), status(500)], "other": [answer({"type": "text", "text": "ok"})]}
    async with world(tmp_path, scripts, CHANNELS, FALLBACK) as here:
        turns: list[dict[str, object]] = [{"role": "user", "content": "Hi"}]
        first = await here.generate(MESSAGES, body=OPTIONS | {"messages": turns})
        assert first.status == 200, first.body
        turns.append({"role": "assistant", "content": first.body["content"]})
        turns.append({"role": "user", "content": [RESULT]})
        second = await here.generate(MESSAGES, body=OPTIONS | {"messages": turns})
        assert (second.status, second.body["model"]) == (200, "other"), second.body
        assert here.counts == {"m": 2, "other": 1}
        assert SIGNATURE in json.dumps(here["m"].calls[1].body)
        assert SIGNATURE not in json.dumps(here["other"].calls[0].body)
    assert second.headers["x-umg-dropped"] == "state"
