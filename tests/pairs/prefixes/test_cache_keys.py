"""Keys of the prompt cache for callers whose format has none: the same in each request of a session, and only for vendors
that have the member.
"""

import json
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.table import strict_fake
from tests.pairs.vendors.gateway import Model, send
from tests.support.callers.http_caller import HttpCaller
from tests.support.gateways import running
from tests.support.providers.strict_providers import KEY, Provider, text_provider
from umg_grpc.service.caching.prompt_cache_account_choice import lacks_key, make_key
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

CONFIG = """\
channels:
  - name: p
    protocols: [chat]
    base_url: {base_url}
    api_key: {key}
    models: [{{id: m, upstream: gpt-5}}]
    quirks: {{cache_key: true}}
"""
MESSAGES = {
    "model": "m",
    "max_tokens": 99,
    "system": "Help.",
    "messages": [{"role": "user", "content": "scenario: plain"}],
}
NATIVE = {"contents": [{"role": "user", "parts": [{"text": "scenario: plain"}]}]}


@dataclass
class Served:
    """Gateway with one channel to a provider that takes a key of its prompt cache."""

    caller: HttpCaller
    provider: Provider

    async def key_of(self, face: str, body: dict[str, Any], **headers: str) -> str:
        """Return the key that the provider got for a request."""
        answer = await self.caller.send(face, "m", body, **headers)
        assert answer.status == 200
        assert "prompt_cache_key" not in answer.headers.get("x-umg-dropped", "")
        key: str = self.provider.last.get("prompt_cache_key", "")
        return key


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with AsyncExitStack() as stack:
        provider = await stack.enter_async_context(text_provider(strict_fake("chat")()))
        config = CONFIG.format(base_url=provider.base_url, key=KEY)
        gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("keys")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Served(HttpCaller(session, gateway.url, gateway.key), provider)


@pytest.mark.asyncio(loop_scope="module")
async def test_the_requests_of_a_session_have_one_key(served: Served) -> None:
    header = {"X-Claude-Code-Session-Id": "0199"}
    first = await served.key_of("messages", MESSAGES, **header)
    later = await served.key_of("messages", MESSAGES | {"system": "Help them."}, **header)
    assert first.startswith("umg-")
    assert len(first) <= 64  # the vendors' maximum
    assert first == later
    assert first != await served.key_of("messages", MESSAGES, **header, **{"X-Claude-Code-Agent-Id": "1"})
    assert first != await served.key_of("messages", MESSAGES, **{"X-Claude-Code-Session-Id": "0200"})


@pytest.mark.asyncio(loop_scope="module")
async def test_a_conversation_without_a_session_has_the_key_of_its_beginning(served: Served) -> None:
    first = await served.key_of("native", NATIVE)
    turns = [{"role": "model", "parts": [{"text": "x"}]}, NATIVE["contents"][0]]
    assert first == await served.key_of("native", {"contents": [NATIVE["contents"][0], *turns]})
    assert first != await served.key_of("native", NATIVE | {"systemInstruction": {"parts": [{"text": "Help."}]}})


@pytest.mark.asyncio(loop_scope="module")
async def test_callers_of_formats_with_the_member_get_no_key(served: Served) -> None:
    chat = {"model": "m", "messages": [{"role": "user", "content": "scenario: plain"}]}
    assert await served.key_of("chat", chat, **{"x-session-id": "0199"}) == ""
    assert await served.key_of("chat", chat | {"prompt_cache_key": "own"}) == "own"
    responses = {"model": "m", "input": "scenario: plain"}
    assert await served.key_of("responses", responses) == ""
    assert await served.key_of("responses", responses | {"prompt_cache_key": "own"}) == "own"


def decoded(body: dict[str, Any]) -> pb.GenerateRequest:
    return TEXT_FORMATS["messages"].decode_request(json.dumps(body).encode(), {}).canonical


def test_two_keys_of_the_gateway_share_no_key_of_a_cache() -> None:
    headers = {"x-session-id": "0199"}
    assert make_key("a", decoded(MESSAGES), headers) != make_key("b", decoded(MESSAGES), headers)
    assert make_key("a", decoded(MESSAGES), {}) != make_key("b", decoded(MESSAGES), {})


def test_tools_are_a_part_of_the_beginning_and_volatile_lines_are_none() -> None:
    tool = {"name": "look", "input_schema": {"type": "object"}}
    plain, lines = decoded(MESSAGES), [f"x-anthropic-billing-header: cch={number};" for number in (1, 2)]
    systems = [[{"type": "text", "text": line}, {"type": "text", "text": "Help."}] for line in lines]
    first, second = (make_key("a", decoded(MESSAGES | {"system": system}), {}) for system in systems)
    assert first == second == make_key("a", plain, {})
    assert first != make_key("a", decoded(MESSAGES | {"tools": [tool]}), {})


def test_only_formats_without_the_member_lack_a_key() -> None:
    lacking = {name for name in TEXT_FORMATS if lacks_key(pb.GenerateRequest(source=pb.SourceDocument(format=name)))}
    assert lacking == {"messages", "native"}
    assert not lacks_key(pb.GenerateRequest())


def test_a_key_is_sent_only_to_vendors_that_have_the_member() -> None:
    body = {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}
    for model in (Model("openai", "gpt-6-sol"), Model("mistral", "mistral-medium-3-5"), Model("moonshot", "kimi-k3")):
        assert b"umg-key" in send(model, "native", body, stream=False, cache_key="umg-key").body
    for model in (Model("deepseek", "deepseek-v4-pro"), Model("cerebras", "cerebras/gpt-oss-120b", "gpt-oss-120b")):
        assert b"umg-key" not in send(model, "native", body, stream=False, cache_key="umg-key").body
