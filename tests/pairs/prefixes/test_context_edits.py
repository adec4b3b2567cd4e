"""Edits of a conversation that the gateway makes for providers without them: each provider is sent the shortened
conversation, callers get the report, and the prompt moves only when results are removed.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import msgspec
import pytest
import pytest_asyncio

from tests.pairs.prefixes.conversations import TURNS
from tests.pairs.prefixes.test_prefixes import without_marks
from tests.pairs.table import ROOTS, strict_fake
from tests.support.callers.http_caller import HttpCaller
from tests.support.callers.text_format_clients import events
from tests.support.gateways import running
from tests.support.providers.strict_providers import KEY, Provider, text_provider
from umg_grpc.service.conversations.conversation_edits import CLEARED_RESULT

pytestmark = pytest.mark.asyncio(loop_scope="module")

Json = dict[str, Any]
CHANNEL = """\
  - {{name: {name}, protocols: [{protocol}], base_url: "{base_url}", api_key: {key}, models: [{{id: {name}, upstream: m}}]{rest}}}
"""
WITHOUT_EDITS = "messages-without-edits"
UPSTREAMS = [*(name for name in ROOTS if name != "messages"), WITHOUT_EDITS]
"""Channels whose providers make no edits."""
BETA = {"anthropic-beta": "context-management-2025-06-27"}
TOOLS = [{"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}}}]
QUESTION = {"role": "user", "content": "scenario: plain"}


@dataclass
class Served:
    """Gateway with a provider of each format, and one of the messages format without edits."""

    caller: HttpCaller
    providers: dict[str, Provider]

    async def send(self, upstream: str, messages: Sequence[Json], **fields: object) -> tuple[Json, list[bytes]]:
        """Return (the response, the turns that the provider got)."""
        body = {"model": upstream, "max_tokens": 2000, "messages": messages, "tools": TOOLS, **fields}
        answer = await self.caller.send("messages", upstream, body, stream=False, **BETA)
        assert answer.status == 200, answer.json
        sent = self.providers[upstream].last
        return answer.json, [
            msgspec.json.encode(without_marks(turn)) for turn in sent[TURNS[upstream.partition("-")[0]]]
        ]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Served, None]:
    async with AsyncExitStack() as stack:
        providers, config = dict[str, Provider](), "channels:\n"
        for name in (*ROOTS, WITHOUT_EDITS):
            protocol = name.partition("-")[0]
            made = providers[name] = await stack.enter_async_context(text_provider(strict_fake(protocol)()))
            rest = ", quirks: {rejects: [context_management]}" if name == WITHOUT_EDITS else ""
            config += CHANNEL.format(name=name, protocol=protocol, base_url=made.base_url, key=KEY, rest=rest)
        gateway = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("edits")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Served(HttpCaller(session, gateway.url, gateway.key), providers)


def called(number: int, result: str) -> list[Json]:
    """Return the turns of one call of a tool and its result."""
    call = {"type": "tool_use", "id": f"call_{number}", "name": "get_weather", "input": {"city": f"town {number}"}}
    answer = {"type": "tool_result", "tool_use_id": f"call_{number}", "content": result}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]


def clearing(**options: object) -> Json:
    return {"edits": [{"type": "clear_tool_uses_20250919", **options}]}


BY_TOKENS = clearing(
    trigger={"type": "input_tokens", "value": 4500},
    keep={"type": "tool_uses", "value": 2},
    clear_at_least={"type": "input_tokens", "value": 1500},
)


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_results_are_removed_at_a_threshold_and_the_prompt_moves_only_there(
    served: Served, upstream: str
) -> None:
    messages: list[Json] = [QUESTION]
    before: list[bytes] = []
    moved, reported = list[int](), list[int]()
    for number in range(14):
        messages += called(number, f"sunny {number} " * 300)
        answer, turns = await served.send(upstream, messages, context_management=BY_TOKENS)
        applied = (answer.get("context_management") or {"applied_edits": []})["applied_edits"]
        reported.append(applied[0]["cleared_tool_uses"] if applied else 0)
        if turns[: len(before)] != before:
            moved.append(number)
        assert sum(CLEARED_RESULT.encode() in turn for turn in turns) == reported[-1]
        before = turns
    assert moved == [number for number in range(1, 14) if reported[number] != reported[number - 1]]
    assert 2 <= len(moved) <= 4
    assert reported == sorted(reported)


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_a_stream_ends_with_the_report_of_the_edits(served: Served, upstream: str) -> None:
    messages = [QUESTION, *called(0, "sunny " * 100), *called(1, "rainy " * 100)]
    edits = clearing(trigger={"type": "tool_uses", "value": 1}, keep={"type": "tool_uses", "value": 1})
    body = {"model": upstream, "max_tokens": 2000, "messages": messages, "tools": TOOLS, "stream": True}
    body["context_management"] = edits
    answer = await served.caller.send("messages", upstream, body, stream=False, **BETA)
    assert answer.status == 200, answer.body
    ending = next(event for event in events(answer.body) if event["type"] == "message_delta")
    (applied,) = ending["context_management"]["applied_edits"]
    assert applied.pop("cleared_input_tokens") > 50
    assert applied == {"type": "clear_tool_uses_20250919", "cleared_tool_uses": 1}
    assert answer.headers["x-umg-dropped"] == "context_management=by the gateway"


@pytest.mark.parametrize("upstream", UPSTREAMS)
async def test_a_summary_of_the_vendor_replaces_the_conversation_before_it(served: Served, upstream: str) -> None:
    summary = {"type": "compaction", "content": "The user likes Zürich.", "encrypted_content": "opaque"}
    compacted = {"role": "assistant", "content": [summary, {"type": "text", "text": "It is sunny."}]}
    messages = [{"role": "user", "content": "An old turn."}, *called(0, "rainy"), compacted, QUESTION]
    edits = {"edits": [{"type": "compact_20260112"}]}
    _, turns = await served.send(upstream, messages, context_management=edits)
    sent = b"".join(turns).decode()
    assert "The user likes Zürich." in sent
    assert "It is sunny." in sent
    assert all(text not in sent for text in ("An old turn.", "rainy", "opaque"))


async def test_a_provider_with_edits_is_sent_them_as_they_came(served: Served) -> None:
    messages = [QUESTION, *called(0, "sunny " * 100), *called(1, "rainy " * 100)]
    edits = clearing(trigger={"type": "tool_uses", "value": 1}, keep={"type": "tool_uses", "value": 1})
    await served.send("messages", messages, context_management=edits)
    sent = served.providers["messages"].last
    assert (sent["context_management"], sent["messages"]) == (edits, messages)


async def test_tokens_are_counted_after_the_edits(served: Served) -> None:
    messages = [QUESTION, *called(0, "sunny " * 100), *called(1, "rainy " * 100)]
    edits = clearing(trigger={"type": "tool_uses", "value": 1}, keep={"type": "tool_uses", "value": 1})
    body = {"model": "chat", "messages": messages, "tools": TOOLS, "context_management": edits}
    headers = {"x-api-key": served.caller.key, "content-type": "application/json"}
    url = f"{served.caller.url}/v1/messages/count_tokens"
    async with served.caller.session.post(url, data=msgspec.json.encode(body), headers=headers) as response:
        counted = await response.json()
    answer, _ = await served.send("chat", messages, context_management=edits)
    (applied,) = answer["context_management"]["applied_edits"]
    original = counted["context_management"]["original_input_tokens"]
    assert original - counted["input_tokens"] == applied["cleared_input_tokens"] > 50
