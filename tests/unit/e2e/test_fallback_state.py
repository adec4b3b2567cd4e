"""State of a provider (signatures of its reasoning), which no provider of a fallback is sent."""

from pathlib import Path

import aiohttp
from aiohttp import web

from tests.support.gateways import running
from tests.support.serving import serving

SIGNATURE = "c2lnbmF0dXJlLW9mLXRoZS1maXJzdC1hY2NvdW50LXdoaWNoLW5vLW90aGVyLXJlYWRz"
THOUGHT = {"type": "thinking", "thinking": "Hm", "signature": SIGNATURE}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {}}
TOOL = {"name": "look", "input_schema": {"type": "object"}}
CONFIG = """
retries: {{repeats: 0}}
channels:
  - {{name: first, protocols: [messages], base_url: {url}/first, api_key: k, models: [m]}}
  - {{name: second, protocols: [messages], base_url: {url}/second, api_key: k, models: [other]}}
fallbacks: {{m: [other]}}
"""


async def test_the_signature_of_another_account_is_left_out_for_a_fallback(tmp_path: Path) -> None:
    sent, fails = list[tuple[str, bytes]](), list[bool]()

    async def answer(request: web.Request) -> web.Response:
        name = request.path.split("/")[1]
        sent.append((name, await request.read()))
        if name == "first" and fails:
            return web.json_response({"type": "error", "error": {"type": "api_error", "message": "down"}}, status=500)
        content = [THOUGHT, CALL] if name == "first" else [{"type": "text", "text": "ok"}]
        head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
        return web.json_response(head | {"content": content, "usage": {"input_tokens": 1, "output_tokens": 1}})

    app = web.Application()
    app.router.add_post("/{name}/messages", answer)
    async with (
        serving(app) as url,
        running(CONFIG.format(url=url), tmp_path) as gateway,
        aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
    ):
        turns: list[dict[str, object]] = [{"role": "user", "content": "Hi"}]
        body = {
            "model": "m",
            "max_tokens": 3000,
            "tools": [TOOL],
            "thinking": {"type": "enabled", "budget_tokens": 2000},
        }
        async with session.post("/v1/messages", json=body | {"messages": turns}) as got:
            first = await got.json()
            assert got.status == 200, first
        turns.append({"role": "assistant", "content": first["content"]})
        turns.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "x"}]})
        fails.append(True)
        async with session.post("/v1/messages", json=body | {"messages": turns}) as got:
            second, headers = await got.json(), got.headers
        assert (got.status, second["model"]) == (200, "other"), second
    assert [name for name, _ in sent] == ["first", "first", "second"]
    assert SIGNATURE.encode() in sent[1][1]
    assert SIGNATURE.encode() not in sent[2][1]
    assert headers["x-umg-dropped"] == "state"
