"""Models without a price, as callers with and without a budget meet them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.support.gateways import KEY, Running, running
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.store import open_store
from umg_grpc.store.budget_accounts import Balance, BudgetAccounts
from umg_grpc.v1 import pb, rpc

CREDIT = 1_000_000
HI = [{"role": "user", "content": "Hi"}]
CHANNELS = """\
channels:
  - {{name: first, protocols: [chat], base_url: {url}/first, api_key: {key}, models: [m, only-first], priority: 1}}
  - {{name: second, protocols: [chat], base_url: {url}/second, api_key: {key}, models: [m], priority: 2{second}}}
"""
ANSWER = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
}  # fmt: skip


@asynccontextmanager
async def gateway_of(second: str, rest: str, data: Path) -> AsyncGenerator[tuple[Running, list[str]], None]:
    """Yield a gateway with two channels, and the names of the channels whose provider is called."""
    called = list[str]()

    async def answer(request: web.Request) -> web.Response:
        called.append(request.match_info["channel"])
        return web.json_response(ANSWER)

    app = web.Application()
    app.router.add_post("/{channel}/chat/completions", answer)
    async with serving(app) as url:
        config = CHANNELS.format(url=url, key=KEY, second=second) + rest
        async with running(config, data) as gateway:
            yield gateway, called


async def post(gateway: Running, key: str, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    headers = {"authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession(gateway.url) as session,
        session.post(path, json=body, headers=headers) as answer,
    ):
        return answer.status, await answer.json()


async def chat(gateway: Running, key: str, model: str = "m") -> int:
    status, _ = await post(gateway, key, "/v1/chat/completions", {"model": model, "messages": HI})
    return status


async def spender(gateway: Running, budget: int) -> tuple[str, str]:
    """Return the id and the secret of a new key with a budget."""
    key, secret = await ApiKeys(gateway.service.store).create(f"spender of {budget}", budget_micro_credits=budget)
    return key.key_id, secret


@dataclass(frozen=True)
class Refused:
    id: str
    path: str
    body: dict[str, Any]
    error: dict[str, Any]
    """Members of the error in the format's own body."""


REFUSED = [
    Refused(
        "chat",
        "/v1/chat/completions",
        {"model": "only-first", "messages": HI},
        {"type": "permission_error", "code": "model_unpriced"},
    ),
    Refused("responses", "/v1/responses", {"model": "only-first", "input": "Hi"}, {"code": "model_unpriced"}),
    Refused(
        "messages",
        "/v1/messages",
        {"model": "only-first", "max_tokens": 9, "messages": HI},
        {"type": "permission_error"},
    ),
    Refused(
        "native",
        "/v1beta/models/only-first:streamGenerateContent?alt=sse",
        {"contents": [{"parts": [{"text": "Hi"}]}]},
        {"code": 403, "status": "PERMISSION_DENIED"},
    ),
    Refused(
        "a stream",
        "/v1/chat/completions",
        {"model": "only-first", "messages": HI, "stream": True},
        {"code": "model_unpriced"},
    ),
]


@pytest.mark.parametrize("case", REFUSED, ids=lambda case: case.id)
async def test_a_refusal_has_the_body_of_the_format_and_the_remedies(case: Refused, tmp_path: Path) -> None:
    async with gateway_of("", "", tmp_path) as (gateway, called):
        _, secret = await spender(gateway, 10 * CREDIT)
        status, answer = await post(gateway, secret, case.path, case.body)
        assert (status, called) == (403, []), answer
        assert case.error.items() <= answer["error"].items()
        for part in ("`only-first` has no price", "another model", "`price` of the model", "`unpriced` to `free`"):
            assert part in answer["error"]["message"]


async def test_a_grpc_caller_gets_the_reason_and_the_model(tmp_path: Path) -> None:
    async with gateway_of("", "", tmp_path) as (gateway, _), grpc.aio.insecure_channel(gateway.grpc) as channel:
        _, secret = await spender(gateway, 10 * CREDIT)
        prompt = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])
        request = pb.GenerateRequest(model="only-first", messages=[prompt])
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await rpc.GenerationServiceStub(channel).Generate(request, metadata=[("authorization", f"Bearer {secret}")])
        error = from_rpc(caught.value)
    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert (error.reason, error.metadata["model"]) == (pb.ERROR_REASON_MODEL_UNPRICED, "only-first")


async def test_keys_without_a_budget_and_token_counts_need_no_price(tmp_path: Path) -> None:
    async with gateway_of("", "", tmp_path) as (gateway, called):
        assert await chat(gateway, KEY) == 200
        _, secret = await spender(gateway, 10 * CREDIT)
        count = {"model": "m", "messages": HI}
        status, answer = await post(gateway, secret, "/v1/messages/count_tokens", count)
        assert (status, called) == (200, ["first"]), answer


@dataclass(frozen=True)
class Used:
    id: str
    second: str
    """Further keys of the second channel."""
    rest: str
    called: list[str]
    """Channels that two calls of a key with a budget for one credit reach."""
    statuses: list[int]


USED = [
    Used("no price", "", "", [], [403, 403]),
    Used("the second channel has a price", ", unpriced: {request: 1}", "", ["second"], [200, 429]),
    Used("the second channel is free", ", unpriced: free", "", ["second", "second"], [200, 200]),
    Used("both are free", "", "unpriced: free\n", ["first", "first"], [200, 200]),
    Used("a price of 0", "", "models: {m: {price: {input: 0, output: 0}}}\n", ["first", "first"], [200, 200]),
    Used("a default price", "", "unpriced: {request: 1}\n", ["first"], [200, 429]),
    Used("an empty price list is none", "", "models: {m: {price: {}}}\n", [], [403, 403]),
    Used("a price of another operation", "", "models: {m: {price: {image: 1}}}\n", [], [403, 403]),
]


@pytest.mark.parametrize("case", USED, ids=lambda case: case.id)
async def test_a_key_with_a_budget_uses_the_channels_with_a_price(case: Used, tmp_path: Path) -> None:
    async with gateway_of(case.second, case.rest, tmp_path) as (gateway, called):
        _, secret = await spender(gateway, CREDIT)
        statuses = [await chat(gateway, secret) for _ in range(2)]
    assert (statuses, called) == (case.statuses, case.called)


async def test_a_call_has_the_price_of_the_channel_that_answered(tmp_path: Path) -> None:
    async with gateway_of(", unpriced: {request: 5}", "unpriced: {request: 2}\n", tmp_path) as (gateway, called):
        key_id, secret = await spender(gateway, 5 * CREDIT)
        _, short = await spender(gateway, 5 * CREDIT - 1)
        assert (await chat(gateway, secret), called) == (200, ["first"])
        assert await chat(gateway, short) == 429, "the dearest channel is reserved"
    store = await open_store("sqlite", tmp_path)
    try:
        assert (await BudgetAccounts(store).balances({key_id: 0}))[key_id] == Balance(2 * CREDIT, 0)
    finally:
        await store.aclose()
