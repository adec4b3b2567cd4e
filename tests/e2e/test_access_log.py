"""The log has one line for each call, with the facts of the call and no secret."""

import json
from pathlib import Path

import aiohttp

from tests.support.gateways import KEY, SANDBOX
from tests.support.processes import Served, serve
from tests.support.secrets import leaked
from umg_grpc.access.keys import shown_prefix

MODEL = "famO-5"


async def post(served: Served, key: str, request_id: str, model: str = MODEL) -> int:
    body = {"model": model, "messages": [{"role": "user", "content": "a confidential question"}]}
    headers = {"authorization": f"Bearer {key}", "x-request-id": request_id}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as answer,
    ):
        await answer.read()
        return answer.status


async def test_a_call_has_one_line_with_its_facts(tmp_path: Path) -> None:
    path = tmp_path / "umg.yaml"
    path.write_text(f"{SANDBOX}models: {{{MODEL}: {{price: {{output: 1000000}}}}}}\nlog: {{format: json}}\n")
    async with serve(tmp_path, "--config", str(path), environment={"UMG_API_KEY": KEY}) as served:
        assert await post(served, KEY, "answered") == 200
        assert await post(served, KEY, "no-model", "no-such-model") == 404
        assert await post(served, f"{KEY}x", "no-key") == 401
        lines = {
            name: json.loads(await served.until_logged(f'"{name}"')) for name in ("answered", "no-model", "no-key")
        }
        assert sum('"answered"' in line for line in served.log) == 1
        assert "confidential" not in "".join(served.log)
        assert leaked(served.log) == []
    answered, unknown, rejected = lines["answered"], lines["no-model"], lines["no-key"]
    expected = {"event": "call", "method": "GenerationService/Generate", "face": "chat", "outcome": "OK"}
    expected |= {"key_prefix": shown_prefix(KEY), "model": MODEL, "channel": "sandbox"}
    assert {name: answered.get(name) for name in expected} == expected
    assert answered["cost"] == answered["output_tokens"] > 0
    assert answered["ms"] > 0
    assert answered["key"].startswith("key_")
    assert (unknown["outcome"], unknown["key_prefix"]) == ("MODEL_NOT_FOUND", shown_prefix(KEY))
    assert (rejected["outcome"], rejected.get("key_prefix")) == ("INVALID_KEY", None)
