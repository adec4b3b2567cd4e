"""Selection among several channels of a model."""

from contextlib import AsyncExitStack
from pathlib import Path

import aiohttp
import pytest

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.gateways import channel, running
from tests.support.providers.strict_providers import KEY, provider

TURN = [{"role": "user", "content": "scenario: plain"}]
CALLS: dict[str, tuple[str, dict[str, object]]] = {
    "chat": ("/v1/chat/completions", {"model": "m", "messages": TURN}),
    "responses": ("/v1/responses", {"model": "m", "input": TURN, "store": False}),
    "messages": ("/v1/messages", {"model": "m", "messages": TURN, "max_tokens": 99}),
    "native": (
        "/v1/models/m:generateContent",
        {"contents": [{"role": "user", "parts": [{"text": "scenario: plain"}]}]},
    ),
}


@pytest.mark.parametrize("face", CALLS)
async def test_at_equal_priority_the_channel_of_the_callers_format_is_first(tmp_path: Path, face: str) -> None:
    async with AsyncExitStack() as stack:
        providers = {name: await stack.enter_async_context(provider(name)) for name in TEXT_PROVIDERS}
        config = "channels:\n" + "".join(
            channel(name, name, made.base_url, "m").replace("sk-umg-end-to-end", KEY)
            for name, made in providers.items()
        )
        gateway = await stack.enter_async_context(running(config, tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession(headers=gateway.headers))
        path, body = CALLS[face]
        for _ in range(4):
            async with session.post(gateway.url + path, json=body) as answer:
                assert answer.status == 200, await answer.text()
        assert {name: len(made.received) for name, made in providers.items() if made.received} == {face: 4}


@pytest.mark.parametrize(
    ("face", "priorities"), [("chat", {"messages": 0, "chat": 1}), ("native", {"chat": 0, "native": 1})]
)
async def test_priority_comes_before_the_callers_format(tmp_path: Path, face: str, priorities: dict[str, int]) -> None:
    async with AsyncExitStack() as stack:
        providers = {name: await stack.enter_async_context(provider(name)) for name in priorities}
        config = "channels:\n" + "".join(
            channel(name, name, made.base_url, "m").replace("sk-umg-end-to-end", KEY)
            + f"    priority: {priorities[name]}\n"
            for name, made in providers.items()
        )
        gateway = await stack.enter_async_context(running(config, tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession(headers=gateway.headers))
        path, body = CALLS[face]
        async with session.post(gateway.url + path, json=body) as answer:
            assert answer.status == 200, await answer.text()
        first = min(priorities, key=lambda name: priorities[name])
        assert [name for name, made in providers.items() if made.received] == [first]


async def test_a_channel_that_would_drop_fields_is_last_at_every_priority(tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        providers = {name: await stack.enter_async_context(provider(name)) for name in ("messages", "native")}
        config = "channels:\n" + "".join(
            channel(name, name, made.base_url, "m").replace("sk-umg-end-to-end", KEY) + f"    priority: {priority}\n"
            for priority, (name, made) in enumerate(providers.items())
        )
        gateway = await stack.enter_async_context(running(config, tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession(headers=gateway.headers))
        body = {**CALLS["chat"][1], "seed": 7}  # which native can encode and messages cannot
        async with session.post(f"{gateway.url}/v1/chat/completions", json=body) as answer:
            assert answer.status == 200, await answer.text()
            assert "x-umg-dropped" not in answer.headers
        assert [name for name, made in providers.items() if made.received] == ["native"]
