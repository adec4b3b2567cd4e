"""Stored beginnings of prompts of several API keys at one channel: a refusal for one key concerns no other one."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from tests.support.gateways import Running, running
from tests.support.providers.server import FakeProvider, Json, ReceivedRequest, serve_provider
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.service.caching import provider_stored_prompts

MODEL = "gemini-2.0-flash"  # without an implicit cache: a beginning is stored when it comes again at once
WORDS = " of many words" * 4000
REFUSED = "REFUSED"
STATUSES = {400: "INVALID_ARGUMENT", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}
BUDGET = 58_500
"""Micro-credits of a key that pay its calls, but not the storage of a beginning."""


@dataclass
class Storing(FakeProvider):
    """Native provider that stores beginnings, except for those with the word `REFUSED`."""

    stored: int = 0
    refusal: int = 400

    async def answer(self, request: web.Request, received: ReceivedRequest) -> web.StreamResponse:
        if not request.path.endswith("/cachedContents"):
            content = {"role": "model", "parts": [{"text": "Yes."}]}
            usage = {"promptTokenCount": 10, "candidatesTokenCount": 2, "totalTokenCount": 12}
            return web.json_response(
                {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
            )
        if REFUSED.encode() in received.body:
            error = {"code": self.refusal, "message": "Not stored.", "status": STATUSES[self.refusal]}
            return web.json_response({"error": error}, status=self.refusal)
        self.stored += 1
        name = f"cachedContents/{self.stored}"
        return web.json_response({"name": name, "usageMetadata": {"totalTokenCount": 20_000}})


def config_of(url: str, keys: str = "k") -> str:
    return f"""
channels:
  - {{name: g, protocols: [native], base_url: "{url}/v1beta", api_key: [{keys}], prompt_caching: explicit, models: [{MODEL}]}}
models:
  {MODEL}: {{price: {{input: 1, output: 2, cache_read: 0.25}}}}
"""


async def send_twice(gateway: Running, key: str, prompts: Sequence[str]) -> None:
    """Send each system prompt twice, so that its beginning may be stored."""
    async with aiohttp.ClientSession(headers={"authorization": f"Bearer {key}"}) as session:
        for prompt in [each for each in prompts for _ in range(2)]:
            mark = {"cache_control": {"type": "ephemeral"}}
            body: Json = {"model": MODEL, "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}
            body["system"] = [{"type": "text", "text": prompt + WORDS} | mark]
            async with session.post(f"{gateway.url}/v1/messages", json=body) as response:
                assert response.status == 200, await response.text()
            await gateway.service.stored_prompts.settled()


@dataclass(frozen=True)
class Refusal:
    id: str
    prompt: str
    budget: int | None = None


@pytest.mark.parametrize(
    "case",
    [Refusal("of the provider", REFUSED), Refusal("of the budget", "A", budget=BUDGET)],
    ids=lambda case: case.id,
)
async def test_a_refused_storage_of_one_key_does_not_pause_that_of_another(case: Refusal, tmp_path: Path) -> None:
    async with serve_provider(Storing()) as provider, running(config_of(provider.url), tmp_path) as gateway:
        keys = ApiKeys(gateway.service.store)
        _, refused = await keys.create("refused", budget_micro_credits=case.budget)
        _, other = await keys.create("other")
        await send_twice(gateway, refused, [case.prompt, case.prompt])
        assert not provider.stored
        await send_twice(gateway, other, ["B"])
        assert provider.stored == 1


async def test_the_stored_beginnings_of_one_key_take_no_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider_stored_prompts, "MAX_STORED", 2)
    async with serve_provider(Storing()) as provider, running(config_of(provider.url), tmp_path) as gateway:
        keys = [(await ApiKeys(gateway.service.store).create(name))[1] for name in ("one", "other")]
        for count, key in enumerate(keys, start=1):
            await send_twice(gateway, key, ["A", "B", "C"])
            assert provider.stored == 2 * count


@pytest.mark.parametrize("status", [403, 429])
async def test_a_key_that_may_store_nothing_keeps_its_calls(status: int, tmp_path: Path) -> None:
    async with (
        serve_provider(Storing(refusal=status)) as provider,
        running(config_of(provider.url, keys="k1, k2"), tmp_path) as gateway,
    ):
        _, key = await ApiKeys(gateway.service.store).create("one")
        for _ in range(2):  # in all, the beginning comes four times
            await send_twice(gateway, key, [REFUSED])
        storages = [each for each in provider.received if each.path.endswith("/cachedContents")]
        assert len(storages) == 1
        assert len({each.headers["x-goog-api-key"] for each in provider.received}) == 1


async def test_the_metrics_have_the_tokens_and_the_cost_of_the_storage(tmp_path: Path) -> None:
    async with serve_provider(Storing()) as provider, running(config_of(provider.url), tmp_path) as gateway:
        _, key = await ApiKeys(gateway.service.store).create("one")
        await send_twice(gateway, key, ["A"])
        metrics = gateway.service.metrics.exposition().decode()
    model = f'model="{MODEL}"'
    for line in (
        f'umg_prompt_cache_tokens_total{{channel="g",kind="written",{model}}} 20000.0',
        f'umg_tokens_total{{channel="g",direction="input",{model}}} 20020.0',  # with those of the two calls
        'umg_agent_tokens_total{agent="unknown",kind="written"} 20000.0',
        f'umg_cost_credits_total{{channel="g",{model}}} 0.021695',
    ):
        assert line in metrics
