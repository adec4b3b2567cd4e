"""Costs of calls whose prices depend on the prompt, the class of service or the region, over every kind of call."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp
import msgspec
import pytest
from aiohttp import web

from tests.support.gateways import KEY, Running, running
from tests.support.serving import serving
from umg_grpc.base.micro_credits import credits_text
from umg_grpc.knowledge.price_calculation import INPUT_TOKEN, OUTPUT_TOKEN
from umg_grpc.store import open_store
from umg_grpc.store.usage_record_table import UsageRecords

CONFIG = """\
database: sqlite
channels:
  - {{name: openai, protocols: [chat], base_url: {url}, api_key: {key}, models: [gpt-5.4]}}
  - {{name: anthropic, protocols: [messages], base_url: {url}, api_key: {key}, models: [claude-opus-5]}}
"""
HI = [{"role": "user", "content": "Hi"}]


@dataclass(frozen=True)
class Called:
    id: str
    model: str
    path: str
    """Path of the face."""
    usage: dict[str, Any]
    """Usage of the provider's answer."""
    credits: str
    conditions: list[str] = field(default_factory=list)
    tier: str = "default"
    """Class of service of the response, in chat."""


def tokens(prompt: int) -> dict[str, Any]:
    return {"prompt_tokens": prompt, "completion_tokens": 100_000, "total_tokens": prompt + 100_000}


def counted(**others: str) -> dict[str, Any]:
    return {"input_tokens": 100_000, "output_tokens": 100_000} | others


LONG = "above 272000 input tokens"
CALLS = [
    Called("the usual price", "gpt-5.4", "/v1/chat/completions", tokens(100_000), "1.750000"),
    Called("a long prompt", "gpt-5.4", "/v1/chat/completions", tokens(300_000), "3.750000", [LONG]),
    Called("priority", "gpt-5.4", "/v1/chat/completions", tokens(100_000), "3.500000", ["priority tier"], "priority"),
    Called("both", "gpt-5.4", "/v1/chat/completions", tokens(300_000), "7.500000", [LONG, "priority tier"], "priority"),
    Called("flex, translated", "gpt-5.4", "/v1/messages", tokens(100_000), "0.875000", ["flex tier"], "flex"),
    Called("fast", "claude-opus-5", "/v1/messages", counted(speed="fast"), "6.000000", ["fast tier"]),
    Called("a region", "claude-opus-5", "/v1/messages", counted(inference_geo="us"), "3.300000", ["region us"]),
    Called("a region, translated", "claude-opus-5", "/v1/chat/completions", counted(inference_geo="us"), "3.300000", ["region us"]),
]  # fmt: skip


@asynccontextmanager
async def gateway_of(case: Called, data: Path) -> AsyncGenerator[Running, None]:
    """Yield a gateway whose providers answer with the usage of the case."""
    head = {"id": "c", "model": case.model}

    async def chat(request: web.Request) -> web.StreamResponse:
        body = head | {"object": "chat.completion", "created": 1, "service_tier": case.tier}
        if (await request.json()).get("stream"):
            delta = {"index": 0, "delta": {"content": "x"}, "finish_reason": "stop"}
            return await sent(request, [body | {"choices": [delta]}, body | {"choices": [], "usage": case.usage}])
        choice = {"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}
        return web.json_response(body | {"choices": [choice], "usage": case.usage})

    async def messages(request: web.Request) -> web.StreamResponse:
        body = head | {"type": "message", "role": "assistant", "content": [], "stop_reason": "end_turn"}
        if (await request.json()).get("stream"):
            delta = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 100_000}}
            start = {"type": "message_start", "message": body | {"stop_reason": None, "usage": case.usage}}
            return await sent(request, [start, delta, {"type": "message_stop"}])
        return web.json_response(body | {"usage": case.usage})

    app = web.Application()
    app.router.add_post("/chat/completions", chat)
    app.router.add_post("/messages", messages)
    async with serving(app) as url, running(CONFIG.format(url=url, key=KEY), data) as gateway:
        yield gateway


async def sent(request: web.Request, events: list[dict[str, Any]]) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        await response.write(name.encode() + b"data: " + msgspec.json.encode(event) + b"\n\n")
    if "object" in events[0]:
        await response.write(b"data: [DONE]\n\n")
    return response


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_call_without_usage_is_charged_by_its_class_of_service(streamed: bool, tmp_path: Path) -> None:
    case = Called("no usage", "gpt-5.4", "/v1/chat/completions", {}, "", ["flex tier"], "flex")
    assert (await charged(case, tmp_path, streamed=streamed)).price_conditions == case.conditions


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("case", CALLS, ids=lambda case: case.id)
async def test_a_call_is_charged_by_the_terms_of_its_answer(case: Called, streamed: bool, tmp_path: Path) -> None:
    found = await charged(case, tmp_path, streamed=streamed)
    assert (found.credits, found.price_conditions) == (case.credits, case.conditions)
    assert found.units == {INPUT_TOKEN, OUTPUT_TOKEN}


class Charged(NamedTuple):
    credits: str
    price_conditions: list[str]
    units: set[int]


async def charged(case: Called, data: Path, *, streamed: bool) -> Charged:
    async with gateway_of(case, data) as gateway:
        body = {"model": case.model, "messages": HI, "max_tokens": 9, "stream": streamed}
        headers = {"authorization": f"Bearer {gateway.key}", "x-request-id": "rated"}
        async with (
            aiohttp.ClientSession(gateway.url, headers=headers) as session,
            session.post(case.path, json=body) as answer,
        ):
            assert answer.status == 200, await answer.text()
            await answer.read()
    store = await open_store("sqlite", data)
    try:
        (record,) = await UsageRecords(store).find("rated")
    finally:
        await store.aclose()
    assert record.details is not None
    units = {unit for unit, _ in record.details.prices}
    return Charged(credits_text(record.micro_credits), record.details.price_conditions, units)
