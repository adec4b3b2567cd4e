"""The log has one line for each call, with the facts of the call and no secret."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.support.gateways import KEY, SANDBOX, channel
from tests.support.processes import Served, serve
from tests.support.secrets import leaked
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys, shown_prefix
from umg_grpc.store import open_store

MODEL = "famO-5"
CHAT = "/v1/chat/completions"
BODY = {"model": MODEL, "messages": [{"role": "user", "content": "a confidential question"}]}
ANSWER = {
    "id": "c",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
}
STREAM = (
    'data: {"id": "c", "choices": [{"index": 0, "delta": {"role": "assistant", "content": "Hi"}}]}\n\n'
    'data: {"id": "c", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}\n\ndata: [DONE]\n\n'
)


@dataclass(frozen=True)
class Logged:
    """A call, and the fields of its line in the log; None for an absent one."""

    id: str
    status: int
    fields: Mapping[str, object]
    key: str = "first"
    body: Mapping[str, object] | bytes = field(default_factory=lambda: BODY)

    @property
    def data(self) -> bytes:
        return self.body if isinstance(self.body, bytes) else json.dumps(self.body).encode()


ANSWERED = {"outcome": "OK", "model": MODEL, "channel": "sandbox", "attempts": 1, "upstream_status": None}
PROVIDED = {"outcome": "OK", "model": "m", "channel": "provider", "attempts": 1, "upstream_status": 200}
MISSING = {"outcome": "MODEL_NOT_FOUND", "channel": None, "attempts": None}
REJECTED = {"event": "call", "model": None, "attempts": None}
MALFORMED = {"event": "request", "failure": "MALFORMED_BODY"}
CASES = [
    Logged(id="answered by a simulated model", status=200, fields=ANSWERED),
    Logged(id="answered by a provider", status=200, body={**BODY, "model": "m"}, fields=PROVIDED),
    Logged(id="streamed", status=200, body={**BODY, "model": "m", "stream": True}, fields=PROVIDED),
    Logged(
        id="answered by the second provider",
        status=200,
        body={**BODY, "model": "both"},
        fields={**PROVIDED, "model": "both", "attempts": 2},
    ),
    Logged(
        id="refused by the provider",
        status=502,
        body={**BODY, "model": "broken"},
        fields={"model": "broken", "channel": "failing", "attempts": 1, "upstream_status": 500},
    ),
    Logged(
        id="of an unknown model",
        status=404,
        body={**BODY, "model": "no-such-model"},
        fields={**MISSING, "model": "no-such-model"},
    ),
    Logged(
        id="of a long unknown model with a line end",
        status=404,
        body={**BODY, "model": "\n" + "m" * 200},
        fields={**MISSING, "model": "?" + "m" * 79 + "..."},
    ),
    Logged(id="with an unknown key", key="unknown", status=401, fields={**REJECTED, "outcome": "INVALID_KEY"}),
    Logged(id="with a revoked key", key="revoked", status=401, fields={**REJECTED, "outcome": "INVALID_KEY"}),
    Logged(id="with an expired key", key="expired", status=401, fields={**REJECTED, "outcome": "KEY_EXPIRED"}),
    Logged(id="with a former key", key="former", status=401, fields={**REJECTED, "outcome": "KEY_EXPIRED"}),
    Logged(id="no JSON", status=400, body=b"{", fields=MALFORMED),
    Logged(id="no JSON, with an unknown key", key="unknown", status=401, body=b"{", fields={"outcome": "INVALID_KEY"}),
]


async def keys_of(data: Path) -> dict[str, str]:
    """Return a secret of each kind of key, most of which are rejected."""
    past = datetime.now(UTC) - timedelta(hours=1)
    store = await open_store("sqlite", data)
    try:
        keys, earlier = ApiKeys(store), ApiKeys(store, now=lambda: past - timedelta(hours=1))
        made = {
            "first": KEY,
            "unknown": f"{KEY}x",
            "revoked": (await keys.create("revoked"))[1],
            "expired": (await earlier.create("expired", expire_time=past))[1],
            "former": (await earlier.create("rotated"))[1],
        }
        await keys.revoke("revoked")
        await earlier.rotate("rotated", timedelta(minutes=1))
        return made
    finally:
        await store.aclose()


@asynccontextmanager
async def provider() -> AsyncGenerator[str, None]:
    """Run a provider that answers below `/v1`, and fails below `/failing`."""

    async def answer(request: web.Request) -> web.Response:
        if (await request.json()).get("stream"):
            return web.Response(text=STREAM, content_type="text/event-stream")
        return web.json_response(ANSWER)

    async def fail(request: web.Request) -> web.Response:
        return web.json_response({"error": {"message": "it failed"}}, status=500)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", answer)
    app.router.add_post("/failing/chat/completions", fail)
    async with serving(app) as url:
        yield url


async def post(session: aiohttp.ClientSession, case: Logged, secret: str) -> int:
    headers = {"authorization": f"Bearer {secret}", "x-request-id": case.id.replace(" ", "-")}
    async with session.post(CHAT, data=case.data, headers=headers | {"content-type": "application/json"}) as answer:
        await answer.read()
        return answer.status


async def line_of(served: Served, request_id: str) -> dict[str, Any]:
    """Return the line of the log with the request id, the only one but those of failed attempts."""
    line = await served.until_logged(f'"request_id":"{request_id}"')
    while '"channel failed"' in line:
        [*_, line] = [line for line in served.log if f'"{request_id}"' in line]
        await asyncio.sleep(0.01)
    found: dict[str, Any] = json.loads(line)
    return found


async def test_a_call_has_one_line_with_its_facts(tmp_path: Path) -> None:
    path = tmp_path / "umg.yaml"
    secrets = await keys_of(tmp_path)
    async with provider() as url:
        failing = channel("failing", "chat", f"{url}/failing", "broken").replace(
            "models: [", "priority: -1\n    models: [both, "
        )
        provided = channel("provider", "chat", f"{url}/v1", "m").replace("models: [", "models: [both, ")
        prices = f"models: {{{MODEL}: {{price: {{output: 1000000}}}}}}\n"
        path.write_text(f"{SANDBOX}{failing}{provided}{prices}retries: {{repeats: 0}}\nlog: {{format: json}}\n")
        async with (
            serve(tmp_path, "--config", str(path), environment={"UMG_API_KEY": KEY}) as served,
            aiohttp.ClientSession(served.http) as session,
        ):
            for case in CASES:
                assert (case.id, await post(session, case, secrets[case.key])) == (case.id, case.status)
            lines = {case.id: await line_of(served, case.id.replace(" ", "-")) for case in CASES}
            assert sum('"request_id":"streamed"' in line for line in served.log) == 1
            assert "confidential" not in "".join(served.log)
            assert leaked(served.log) == []
    for case in CASES:
        line = lines[case.id]
        assert {name: line.get(name) for name in case.fields} == case.fields, case.id
        known = case.key != "unknown"
        assert line.get("key_prefix") == (shown_prefix(secrets[case.key]) if known else None), case.id
        assert line.get("key", "").startswith("key_") == known, case.id
    answered = lines["answered by a simulated model"]
    assert (answered["event"], answered["method"], answered["face"]) == ("call", "GenerationService/Generate", "chat")
    assert answered["cost"] == answered["output_tokens"] > 0
    assert answered["ms"] > 0


@pytest.mark.parametrize("kind", ["revoked", "expired"])
async def test_a_call_over_grpc_with_a_rejected_key_has_its_prefix(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "umg.yaml"
    path.write_text(SANDBOX)
    secrets = await keys_of(tmp_path)
    async with (
        serve(tmp_path, "--config", str(path), environment={"UMG_API_KEY": KEY}) as served,
        grpc.aio.insecure_channel(served.grpc) as grpc_channel,
    ):
        call = grpc_channel.unary_unary("/umg.v1.ModelService/ListModels")
        with pytest.raises(grpc.aio.AioRpcError, match="API key"):
            await call(b"", metadata=[("authorization", f"Bearer {secrets[kind]}"), ("x-request-id", "rejected")])
        line = await line_of(served, "rejected")
    assert line["key_prefix"] == shown_prefix(secrets[kind])
