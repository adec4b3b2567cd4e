"""Every request that the current SDKs can write is accepted on a channel of its format and reaches the provider
unchanged: every field, literal and member of a union of their own types.
"""

import base64
import io
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from anthropic.types import message_count_tokens_params, message_create_params
from anthropic.types.beta import message_count_tokens_params as beta_count_params
from anthropic.types.beta import message_create_params as beta_create_params
from openai.types import embedding_create_params
from openai.types.chat import completion_create_params
from openai.types.responses import input_token_count_params, response_create_params
from PIL import Image

from tests.support.gateways import Running, running
from tests.support.providers.server import RecordingProvider
from tests.world.sdk_types.provider import answering_provider
from tests.world.sdk_types.walk import Variant, Walker


def _png() -> str:
    written = io.BytesIO()
    Image.new("RGB", (2, 2)).save(written, "PNG")
    return base64.b64encode(written.getvalue()).decode()


PNG = _png()
SCHEMA = {"type": "object", "properties": {}}
SAMPLES = {
    "arguments": "{}",
    "budget_tokens": 2048,
    "data": PNG,
    "file_data": f"data:application/pdf;base64,{PNG}",
    "file_url": "https://files.example/a.pdf",
    "image_url": "https://files.example/a.png",
    "input_schema": SCHEMA,
    "max_tokens": 9000,
    "model": "m",
    "parameters": SCHEMA,
    "result": PNG,
    "schema": SCHEMA,
    "server_url": "https://tools.example/mcp",
    "temperature": 1.0,
    "top_p": 1.0,
    "url": "https://files.example/a.png",
}
COMPLETIONS: Mapping[str, Mapping[str, Any]] = {
    # one of the optional fields is required
    "FunctionCallOutput": {"call_id": "call_1"},
    "ResponseInputImageParam": {"image_url": SAMPLES["image_url"]},
    "ResponseInputImageContentParam": {"image_url": SAMPLES["image_url"]},
    "ResponseInputFileParam": {"file_url": SAMPLES["file_url"]},
    "ResponseInputFileContentParam": {"file_url": SAMPLES["file_url"]},
    "BetaInputTokensTriggerParam": {"value": 50_000},  # the least for a compaction
    # objects without a type of their own
    "ChatCompletionAllowedToolsParam": {"tools": [{"type": "function", "function": {"name": "x"}}]},
    "ToolChoiceAllowedParam": {"tools": [{"type": "function", "name": "x"}]},
}
FUNCTION = {"name": "x", "parameters": SCHEMA}


@dataclass(frozen=True)
class Kind:
    id: str
    body: Any
    """Type of the body in the SDK."""
    path: str
    protocol: str
    least: Mapping[str, Any] = field(default_factory=dict)
    """Fields that the gateway requires and the type does not: the model selects the channel."""
    moved: frozenset[str] = frozenset({"stream_options"})
    """Fields that do not arrive: those sent as HTTP headers, and `stream_options` of a request that is not streamed."""
    samples: Mapping[str, Any] = field(default_factory=dict)
    counts: bool = False
    """Whether the gateway answers without a provider."""


# A tool choice is refused without the tools that it names.

TOOLS: Mapping[str, Mapping[str, Any]] = {
    "chat": {"tools": [{"type": "function", "function": {"name": "x"}}, {"type": "custom", "custom": {"name": "y"}}]},
    "responses": {"tools": [{"type": "function", "name": "x", "parameters": None, "strict": None}]},
    "messages": {"tools": [{"name": "x", "input_schema": SCHEMA}]},
}
RESPONSES = {"model": "m", "input": "Hi"}
BETA_HEADERS = frozenset({"betas"})
ALLOWED = {"tools{}": {"type": "function", "name": "x"}}
KINDS = [
    Kind("chat", completion_create_params.CompletionCreateParamsNonStreaming, "/v1/chat/completions", "chat", samples={"tools{}": {"type": "function", "function": {"name": "x"}}}),
    Kind("responses", response_create_params.ResponseCreateParamsNonStreaming, "/v1/responses", "responses", RESPONSES, samples=ALLOWED),
    Kind("messages", message_create_params.MessageCreateParamsNonStreaming, "/v1/messages", "messages"),
    Kind("beta messages", beta_create_params.MessageCreateParamsNonStreaming, "/v1/messages?beta=true", "messages", moved=BETA_HEADERS),
    Kind("counting responses", input_token_count_params.InputTokenCountParams, "/v1/responses/input_tokens", "responses", RESPONSES, samples=ALLOWED, counts=True),
    Kind("counting messages", message_count_tokens_params.MessageCountTokensParams, "/v1/messages/count_tokens", "messages", counts=True),
    Kind("counting beta messages", beta_count_params.MessageCountTokensParams, "/v1/messages/count_tokens?beta=true", "messages", counts=True),
    Kind("embeddings", embedding_create_params.EmbeddingCreateParams, "/v1/embeddings", "embeddings"),
]  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A documented rule that refuses a body that an SDK can write."""

    why: str
    kinds: tuple[str, ...]
    applies: Callable[[Variant], bool]


def _named(*names: str) -> Callable[[Variant], bool]:
    return lambda variant: any(name in variant.path for name in names)


RULES = [
    Rule(
        "readings, 13: an unknown `previous_response_id` is 404",
        ("counting responses",),
        _named(".previous_response_id"),
    ),
    Rule("text document, chat rule 8: files go to /v1/responses", ("chat",), _named("{file}")),
    Rule(
        "a trigger of a compaction without a conversation",
        ("responses", "counting responses"),
        _named(".input[]{compaction_trigger}"),
    ),
    Rule("readings, 13: `background: true` is not served", ("responses",), _named(".background")),
    Rule(
        "readings, 14: a web search tool is exactly the documented one",
        ("messages", "beta messages", "counting messages", "counting beta messages"),
        _named(".tools[]{web_search_20260209}", ".tools[]{web_search_20260318}"),
    ),
]


def rule_of(kind: Kind, variant: Variant) -> Rule | None:
    return next((rule for rule in RULES if kind.id in rule.kinds and rule.applies(variant)), None)


@pytest_asyncio.fixture
async def provider() -> AsyncGenerator[RecordingProvider, None]:
    async with answering_provider() as server:
        yield server


@asynccontextmanager
async def gateway_to(provider: RecordingProvider, protocol: str, data: Path) -> AsyncGenerator[Running, None]:
    """Yield a gateway with one channel of a format, whose account is open to all callers."""
    config = (
        f"channels:\n  - {{name: p, protocols: [{protocol}], base_url: '{provider.url}', api_key: k, models: [m],"
        " shared_objects: true}\n"
    )
    async with running(config, data) as gateway:
        yield gateway


def body_of(kind: Kind, variant: Variant) -> dict[str, Any]:
    body = {**kind.least, **variant.value}
    if body.keys() & {"tool_choice", "function_call"} and not body.keys() & {"tools", "functions"}:
        body |= {"functions": [FUNCTION]} if "function_call" in body else TOOLS[kind.protocol]
    return body


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
async def test_every_body_of_the_sdk_reaches_a_provider_of_its_format(
    kind: Kind, provider: RecordingProvider, tmp_path: Path
) -> None:
    variants = list(Walker({**SAMPLES, **kind.samples}, COMPLETIONS).variants(kind.body))
    wrong, refused = list[str](), set[str]()
    async with (
        gateway_to(provider, kind.protocol, tmp_path) as gateway,
        aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session,
    ):
        for variant in variants:
            body = body_of(kind, variant)
            provider.received.clear()
            async with session.post(kind.path, json=body) as answer:
                text = await answer.text()
            if (rule := rule_of(kind, variant)) is not None:
                refused.update([rule.why] if answer.status in (400, 404) else [])
            elif answer.status != 200:
                wrong.append(f"{variant.path}: {answer.status} {text[:200]}")
            elif not kind.counts and provider.bodies != [sent(body, kind)]:
                wrong.append(f"{variant.path}: {body} arrived as {provider.bodies}")
    assert wrong == [], "\n".join(wrong)
    assert refused == {rule.why for rule in RULES if kind.id in rule.kinds}
    assert len(variants) > FEWEST[kind.id]


def sent(body: Mapping[str, Any], kind: Kind) -> dict[str, Any]:
    """Return the body as the provider gets it, with the changes that the documents and providers require."""
    left = {name: value for name, value in body.items() if name not in kind.moved}
    if left.get("reasoning") == {}:
        left["reasoning"] = {"effort": "medium"}  # readings, 13
    return left


# Approximate numbers of variants that the SDKs had when this was written: the walk must not lose variants unnoticed.
FEWEST = {
    "chat": 150,
    "responses": 900,
    "messages": 500,
    "beta messages": 1800,
    "counting responses": 800,
    "counting messages": 400,
    "counting beta messages": 1800,
    "embeddings": 5,
}
