"""Reasoning that a client does not send back is restored in each later request, not only in the next one: the beginning of
the conversation is the same at the provider.
"""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from tests.pairs.prefixes.conversations import TURNS
from tests.pairs.prefixes.test_prefixes import without_marks
from tests.pairs.table import ROOTS, strict_fake
from tests.support.callers.http_caller import HttpCaller
from tests.support.gateways import running
from tests.support.providers.scenarios import TOOLS, Answer, Failure, ScenarioRequest, answer_to
from tests.support.providers.strict_providers import KEY, Provider, text_provider

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = {
    "chat": "deepseek-reasoner",
    "responses": "gpt-5",
    "messages": "claude-sonnet-4-5",
    "native": "gemini-3-pro-preview",
}
REASONING = {
    "chat": b'"reasoning_content":"',
    "responses": b'"encrypted_content":"',
    "messages": b'"signature":"',
    "native": b'"thoughtSignature":"',
}
"""Format -> member of its turns with reasoning."""
CHANNEL = """\
  - {{name: {name}, protocols: [{name}], base_url: "{base_url}", api_key: {key}, models: [{{id: {name}, upstream: {model}}}]}}
"""
FUNCTIONS = [
    {"type": "function", "function": {"name": name, "parameters": TOOLS[name]}} for name in ("get_weather", "get_time")
]


@dataclass
class Served:
    """Gateway with a provider of each format."""

    caller: HttpCaller
    providers: dict[str, Provider]

    async def send(self, upstream: str, messages: list[dict[str, Any]]) -> tuple[dict[str, Any], list[bytes]]:
        """Return (the message of the response without its reasoning, the turns that the provider got)."""
        body = {"model": upstream, "messages": messages, "tools": FUNCTIONS, "reasoning_effort": "high"}
        answer = await self.caller.send("chat", upstream, body)
        assert answer.status == 200, answer.json
        message = answer.json["choices"][0]["message"]
        kept = {name: message[name] for name in ("role", "content", "tool_calls") if message.get(name)}
        sent = self.providers[upstream].last[TURNS[upstream]]
        return {"content": None, **kept}, [msgspec.json.encode(without_marks(turn)) for turn in sent]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with AsyncExitStack() as stack:
        providers, config = dict[str, Provider](), "channels:\n"
        for name in ROOTS:
            made = providers[name] = await stack.enter_async_context(text_provider(strict_fake(name)()))
            config += CHANNEL.format(name=name, base_url=made.base_url, key=KEY, model=MODELS[name])
        gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("restored")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Served(HttpCaller(session, gateway.url, gateway.key), providers)


@pytest.mark.parametrize("upstream", ROOTS)
async def test_the_beginning_does_not_move_for_a_client_that_omits_reasoning(served: Served, upstream: str) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "scenario: thinking-tools"}]
    before: list[bytes] = []
    for text in ("scenario: plain", "scenario: thinking-tools", "scenario: plain", "scenario: plain"):
        answer, turns = await served.send(upstream, messages)
        assert turns[: len(before)] == before
        before = turns
        calls = [call["id"] for call in answer.get("tool_calls", ())]
        results = [{"role": "tool", "tool_call_id": call_id, "content": "x"} for call_id in calls]
        messages += [answer, *results, {"role": "user", "content": text}]
    assert REASONING[upstream] in b"".join(before)


async def test_reasoning_is_restored_in_the_message_of_its_calls(served: Served) -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "scenario: thinking-tools"}]
    answer, _ = await served.send("chat", messages)
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in answer["tool_calls"]]
    messages.append({"role": "assistant", "content": "A summary of the turns before."})
    answer, _ = await served.send("chat", [*messages, answer, *results])
    assert "My thoughts came back." in answer["content"]


async def test_a_second_channel_gets_the_reasoning_that_the_first_one_made(tmp_path: Path) -> None:
    first_fails = False

    def first_answer(request: ScenarioRequest) -> Answer | Failure:
        return Failure(503, "The model is overloaded.") if first_fails else answer_to(request)

    async with AsyncExitStack() as stack:
        config, providers = "channels:\n", list[Provider]()
        for name, answer in (("first", first_answer), ("second", answer_to)):
            made = await stack.enter_async_context(text_provider(strict_fake("chat")(), model=answer))
            providers.append(made)
            line = CHANNEL.replace("[{name}]", "[chat]").replace("{{id: {name},", "{{id: chat,")
            config += line.format(name=name, base_url=made.base_url, key=KEY, model=MODELS["chat"])
        gateway = await stack.enter_async_context(running(config, tmp_path))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        served = Served(HttpCaller(session, gateway.url, gateway.key), {"chat": providers[0]})
        messages: list[dict[str, Any]] = [{"role": "user", "content": "scenario: thinking-tools"}]
        answer, _ = await served.send("chat", messages)
        first_fails, served.providers = True, {"chat": providers[1]}
        results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in answer["tool_calls"]]
        answer, turns = await served.send("chat", [*messages, answer, *results])
        assert "My thoughts came back." in answer["content"]
        assert REASONING["chat"] in b"".join(turns)
