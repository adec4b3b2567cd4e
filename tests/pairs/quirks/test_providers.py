"""Agents in front of providers that are as strict as real ones: no field that they send by default is refused."""

from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from tests.pairs.quirks.requests import CLAUDE_USER
from tests.pairs.quirks.strict import STRICT, marks
from tests.support import gateways
from tests.support.callers.http_caller import HttpAnswer, HttpCaller
from tests.support.gateways import running
from tests.support.providers.scenarios import TOOLS
from tests.support.providers.strict_providers import KEY, Provider, text_provider

pytestmark = pytest.mark.asyncio(loop_scope="module")

MODELS = {
    "chat": ("gpt-4o", "gpt-5", "gpt-4o-search-preview", "deepseek-reasoner"),
    "responses": ("gpt-4o", "gpt-5"),
    "messages": ("claude-3-5-haiku-latest", "claude-sonnet-4-5", "claude-sonnet-5"),
    "native": ("gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro-preview"),
}
VENDORS = {"responses": "openai", "messages": "anthropic", "native": "gemini"}
"""Format -> vendor whose judge refuses requests, too; the models of chat are of several vendors."""
CHANNEL = """\
  - name: {name}
    protocols: [{protocol}]
    base_url: {base_url}
    api_key: {key}
    models: [{models}]
{more}"""


@dataclass
class Strict:
    """A gateway, and the strict providers behind it."""

    caller: HttpCaller
    providers: dict[str, Provider]

    async def send(self, face: str, model: str, body: dict[str, Any], **headers: str) -> HttpAnswer:
        return await self.caller.send(face, model, body | ({} if face == "native" else {"model": model}), **headers)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def strict(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Strict, None]:
    """Yield one gateway with two channels to each provider: with the built-in quirks, and with quirks in the config."""
    async with AsyncExitStack() as stack:
        providers, config = {}, "channels:\n"
        for name, wire_format in STRICT.items():
            made = providers[name] = await stack.enter_async_context(
                text_provider(wire_format(), vendor=VENDORS.get(name, ""))
            )
            for prefix, more in (("", ""), ("written-", "    quirks: {max_user_characters: 64}\n")):
                models = ", ".join(f"{{id: {prefix}{name}-{model}, upstream: {model}}}" for model in MODELS[name])
                config += CHANNEL.format(
                    name=prefix + name, protocol=name, base_url=made.base_url, key=KEY, models=models, more=more
                )
        data = tmp_path_factory.mktemp("strict")
        gateway = await stack.enter_async_context(running(config, data))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        yield Strict(HttpCaller(session, gateway.url, gateways.KEY), providers)


TOOL = {"name": "get_weather", "description": "The weather", "input_schema": TOOLS["get_weather"]}
CLAUDE_CODE: dict[str, Any] = {
    "max_tokens": 32000,
    "system": [{"type": "text", "text": "You are an agent.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "What is the weather?"}]},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "I shall look.", "signature": "umg.chat.c2ln"},
                {"type": "tool_use", "id": "toolu_1", "name": "get_weather", "input": {"city": "Zürich"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "21 degrees"},
                {"type": "text", "text": "scenario: plain", "cache_control": {"type": "ephemeral"}},
            ],
        },
    ],
    "tools": [TOOL, {"type": "web_search_20250305", "name": "web_search", "max_uses": 8}],
    "thinking": {"type": "enabled", "budget_tokens": 31999},
    "metadata": {"user_id": CLAUDE_USER},
}
CODEX: dict[str, Any] = {
    "instructions": "You are an agent.",
    "input": [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is the weather?"}]},
        {"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": '{"city":"Zürich"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "21 degrees"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "scenario: plain"}]},
    ],
    "tools": [
        {"type": "function", "name": "get_weather", "strict": False, "parameters": TOOLS["get_weather"]},
        {"type": "web_search"},
    ],
    "tool_choice": "auto",
    "parallel_tool_calls": True,
    "reasoning": {"effort": "medium", "summary": "auto"},
    "store": False,
    "include": ["reasoning.encrypted_content"],
    "prompt_cache_key": "0199-session",
}
AGENTS = {"messages": CLAUDE_CODE, "responses": CODEX}

EVERY = [
    (face, upstream, model)
    for face in AGENTS
    for upstream, models in MODELS.items()
    if upstream != face
    for model in models
]


@pytest.mark.parametrize(("face", "upstream", "model"), EVERY)
async def test_every_model_answers_the_requests_of_an_agent(
    strict: Strict, face: str, upstream: str, model: str
) -> None:
    got = await strict.send(face, f"{upstream}-{model}", AGENTS[face])
    assert (got.status, strict.providers[upstream].refusals) == (200, [])


DROPPED = {
    ("messages", "chat", "gpt-4o"): [
        "metadata.user_id=hashed",
        "max_tokens=16384",
        "thinking",
        "web_search",
        "thinking.type",
    ],
    ("messages", "chat", "gpt-5"): ["metadata.user_id=hashed", "thinking", "web_search"],
    ("messages", "chat", "deepseek-reasoner"): ["metadata.user_id=hashed", "web_search"],
    ("messages", "chat", "gpt-4o-search-preview"): ["metadata.user_id=hashed", "max_uses"],
    ("messages", "responses", "gpt-4o"): ["metadata.user_id=hashed", "max_tokens=16384", "thinking.budget_tokens"],
    ("messages", "native", "gemini-2.5-pro"): ["web_search", "metadata.user_id"],
    ("responses", "chat", "gpt-5"): ["web_search"],
    ("responses", "messages", "claude-3-5-haiku-latest"): ["reasoning.effort"],
    ("responses", "native", "gemini-2.0-flash"): ["web_search", "reasoning.effort"],
}


@pytest.mark.parametrize(("pair", "names"), DROPPED.items(), ids="-".join)
async def test_the_report_names_the_dropped_fields(
    strict: Strict, pair: tuple[str, str, str], names: list[str]
) -> None:
    face, upstream, model = pair
    got = await strict.send(face, f"{upstream}-{model}", AGENTS[face])
    dropped = got.headers["x-umg-dropped"].split(", ")
    assert set(names) <= set(dropped), dropped
    refused = await strict.send(face, f"{upstream}-{model}", AGENTS[face], **{"x-umg-strict": "true"})
    assert (refused.status, strict.providers[upstream].refusals) == (400, [])


@pytest.mark.parametrize("model", ["gemini-2.5-pro", "gemini-3-pro-preview"])
async def test_a_search_without_functions_is_sent(strict: Strict, model: str) -> None:
    body = CLAUDE_CODE | {"tools": CLAUDE_CODE["tools"][1:], "messages": CLAUDE_CODE["messages"][:1]}
    got = await strict.send("messages", f"native-{model}", body)
    assert (got.status, strict.providers["native"].last["tools"]) == (200, [{"googleSearch": {}}])


async def test_newer_models_accept_search_beside_functions(strict: Strict) -> None:
    assert (await strict.send("responses", "native-gemini-3-pro-preview", CODEX)).status == 200
    sent = strict.providers["native"].last
    assert [next(iter(tool)) for tool in sent["tools"]] == ["functionDeclarations", "googleSearch"]
    assert sent["toolConfig"]["includeServerSideToolInvocations"] is True


async def test_a_messages_request_gets_the_models_limit_and_cache_marks(strict: Strict) -> None:
    for model, limit in (("claude-3-5-haiku-latest", 8192), ("claude-sonnet-4-5", 64_000), ("claude-sonnet-5", 64_000)):
        got = await strict.send("responses", f"messages-{model}", CODEX)
        sent = strict.providers["messages"].last
        assert (got.status, sent["max_tokens"], marks(sent)) == (200, limit, 3)


async def test_a_same_format_body_is_unchanged_on_a_channel_without_quirks(strict: Strict) -> None:
    own = {"model": "chat-gpt-5", "messages": [{"role": "user", "content": "scenario: plain"}], "user": CLAUDE_USER}
    got = await strict.send("chat", "chat-gpt-5", own)
    refused, strict.providers["chat"].refusals[:] = list(strict.providers["chat"].refusals), []
    assert (got.status, len(refused)) == (400, 1)
    assert "string too long" in refused[0]
    got = await strict.send("chat", "written-chat-gpt-5", own)
    sent = strict.providers["chat"].last
    assert (got.status, got.headers["x-umg-dropped"], len(sent.pop("user"))) == (200, "user=hashed", 64)
    assert sent == {"model": "gpt-5", "messages": own["messages"]}


async def test_reasoning_that_a_client_omitted_is_restored_for_models_that_accept_it(strict: Strict) -> None:
    tools = [{"type": "function", "name": name, "parameters": TOOLS[name]} for name in ("get_weather", "get_time")]
    first = {"input": "scenario: thinking-tools", "reasoning": {"effort": "high"}, "tools": tools}
    for model, taken in (("deepseek-reasoner", True), ("gpt-5", False)):
        answer = (await strict.send("responses", f"chat-{model}", first)).json
        calls = [item for item in answer["output"] if item["type"] == "function_call"]
        items = [
            {"role": "user", "content": "scenario: thinking-tools"},
            *calls,
            *({"type": "function_call_output", "call_id": call["call_id"], "output": "x"} for call in calls),
            {"role": "user", "content": "scenario: plain"},
        ]
        got = await strict.send("responses", f"chat-{model}", first | {"input": items})
        sent = strict.providers["chat"].last["messages"]
        assert (got.status, any("reasoning_content" in message for message in sent)) == (200, taken)
        assert "reasoning" not in got.headers.get("x-umg-dropped", "").split(", ")


async def test_a_provider_of_the_caller_s_format_gets_the_reasoning_back_that_its_client_omits(strict: Strict) -> None:
    """The request does not turn reasoning on: that the model expects the reasoning is known by its id."""
    tools = [
        {"type": "function", "function": {"name": name, "parameters": TOOLS[name]}}
        for name in ("get_weather", "get_time")
    ]
    first = {"messages": [{"role": "user", "content": "scenario: thinking-tools"}], "tools": tools}
    answer = (await strict.send("chat", "chat-deepseek-reasoner", first)).json["choices"][0]["message"]
    assert answer.pop("reasoning_content")
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "x"} for call in answer["tool_calls"]]
    messages = [*first["messages"], answer, *results, {"role": "user", "content": "scenario: plain"}]
    got = await strict.send("chat", "chat-deepseek-reasoner", first | {"messages": messages})
    sent = strict.providers["chat"].last["messages"]
    assert got.status == 200
    assert sent[1]["reasoning_content"]
