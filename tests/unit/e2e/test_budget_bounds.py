"""Reservations of calls without a stated maximum: no key overdraws, and a limited answer states that."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.gateways import Running, channel, running
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import open_store
from umg_grpc.store.budget_accounts import NO_BALANCE, Balance, BudgetAccounts
from umg_grpc.v1 import pb, rpc

CREDIT = 1_000_000
WISHED_TOKENS = 20_000
"""Output tokens of a response that the request does not limit further."""

DOCUMENTS = 150
PROMPT_TOKENS = 30
"""Tokens that the provider counts for every prompt; it has at least as many bytes."""


class Talker:
    """Provider whose answers are as long as the request allows, in the formats of text."""

    def __init__(self) -> None:
        self.limits = list[int | None]()
        self.arrived = asyncio.Semaphore(0)
        self.released = asyncio.Event()
        self.released.set()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body, path = await request.json(), request.path.rpartition("/")[2]
        config = body.get("generationConfig", {})
        names = ("max_completion_tokens", "max_tokens", "max_output_tokens")
        limit = next((body[name] for name in names if name in body), config.get("maxOutputTokens"))
        self.limits.append(limit)
        self.arrived.release()
        await self.released.wait()
        used = min(WISHED_TOKENS, limit or WISHED_TOKENS)
        return web.json_response(ANSWERS[path](PROMPT_TOKENS, used))


def _chat(prompt: int, used: int) -> dict[str, Any]:
    usage = {"prompt_tokens": prompt, "completion_tokens": used, "total_tokens": prompt + used}
    message = {"role": "assistant", "content": "x"}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}


def _responses(prompt: int, used: int) -> dict[str, Any]:
    content = [{"type": "output_text", "text": "x", "annotations": []}]
    output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}]
    usage = {"input_tokens": prompt, "output_tokens": used, "total_tokens": prompt + used}
    head = {"id": "resp_1", "object": "response", "created_at": 1, "status": "completed", "model": "m"}
    return {**head, "output": output, "usage": usage}


def _messages(prompt: int, used: int) -> dict[str, Any]:
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn"}
    usage = {"input_tokens": prompt, "output_tokens": used}
    return {**head, "content": [{"type": "text", "text": "x"}], "usage": usage}


def _native(prompt: int, used: int) -> dict[str, Any]:
    candidate = {"content": {"role": "model", "parts": [{"text": "x"}]}, "finishReason": "STOP", "index": 0}
    usage = {"promptTokenCount": prompt, "candidatesTokenCount": used, "totalTokenCount": prompt + used}
    return {"candidates": [candidate], "usageMetadata": usage}


def _rerank(_: int, __: int) -> dict[str, Any]:
    results = [{"index": index, "relevance_score": 0.5} for index in range(DOCUMENTS)]
    return {"id": "r", "results": results, "meta": {"billed_units": {"search_units": 2}}}


ANSWERS = {
    "rerank": _rerank,
    "completions": _chat,
    "responses": _responses,
    "messages": _messages,
    "m:generateContent": _native,
}
PRICE = "price: {input: 10, cache_write: 12, output: 1000}, capabilities: {output_tokens: 32000}"


@asynccontextmanager
async def talking(
    data: Path, protocol: str = "chat", price: str = PRICE
) -> AsyncGenerator[tuple[Talker, Running], None]:
    """Run a gateway in front of the provider, with a price for its model `m`."""
    talker, app = Talker(), web.Application()
    app.router.add_post("/{path:.*}", talker.answer)
    async with serving(app) as url:
        config = f"channels:\n{channel('one', protocol, url, 'm')}models: {{m: {{{price}}}}}\n"
        async with running(config, data) as gateway:
            yield talker, gateway


async def new_key(gateway: Running, budget: int) -> tuple[str, str]:
    key, secret = await ApiKeys(gateway.service.store).create(f"spender of {budget}", budget_micro_credits=budget)
    return key.key_id, secret


@dataclass(frozen=True)
class Answer:
    status: int
    dropped: str
    body: dict[str, Any]


async def call(
    session: aiohttp.ClientSession, gateway: Running, key: str, face: str = "chat", **fields: object
) -> Answer:
    path, body = FACES[face]
    headers = {"authorization": f"Bearer {key}"}
    sent = session.post(gateway.url + path, json={**body, **fields}, headers=headers)
    async with sent as response:
        return Answer(response.status, response.headers.get("x-umg-dropped", ""), await response.json())


MESSAGES = [{"role": "user", "content": "x"}]
FACES: dict[str, tuple[str, dict[str, Any]]] = {
    "chat": ("/v1/chat/completions", {"model": "m", "messages": MESSAGES}),
    "responses": ("/v1/responses", {"model": "m", "input": "x", "store": False}),
    "messages": ("/v1/messages", {"model": "m", "messages": MESSAGES, "max_tokens": 500}),
    "rerank": ("/v1/rerank", {"model": "m", "query": "q", "documents": ["d"] * DOCUMENTS}),
    "native": ("/v1beta/models/m:generateContent", {"contents": [{"role": "user", "parts": [{"text": "x"}]}]}),
}


async def balance(data: Path, key_id: str) -> Balance:
    store = await open_store("sqlite", data)
    try:
        return (await BudgetAccounts(store).balances({key_id: 0})).get(key_id, NO_BALANCE)
    finally:
        await store.aclose()


async def test_parallel_calls_without_a_maximum_spend_at_most_the_budget(tmp_path: Path) -> None:
    budget = 10 * CREDIT
    async with talking(tmp_path) as (talker, gateway), aiohttp.ClientSession() as session:
        key_id, key = await new_key(gateway, budget)
        answers = await asyncio.gather(*(call(session, gateway, key) for _ in range(20)))
        for _ in range(40):  # one after the other, until the budget is used up
            answers.append(await call(session, gateway, key))
    statuses = [answer.status for answer in answers]
    assert set(statuses) == {200, 429}
    assert statuses[:20].count(200) > 4, "parallel calls remain possible"
    assert statuses[-1] == 429
    for answer, limit in zip((answer for answer in answers if answer.status == 200), talker.limits, strict=True):
        assert limit is not None
        assert answer.dropped.startswith("max_tokens=")
    spent = await balance(tmp_path, key_id)
    assert budget - 2 * CREDIT < spent.spent <= budget
    assert spent.held == 0


@dataclass(frozen=True)
class Pair:
    id: str
    face: str
    protocol: str
    name: str
    """Name of the limit in the caller's format."""


PAIRS = [
    Pair(f"{face} by {protocol}", face, protocol, name)
    for face, name in {
        "chat": "max_tokens",
        "responses": "max_output_tokens",
        "native": "generationConfig.maxOutputTokens",
    }.items()
    for protocol in TEXT_PROVIDERS
]


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.id)
async def test_the_provider_is_sent_the_limit_that_the_caller_is_shown(tmp_path: Path, pair: Pair) -> None:
    async with talking(tmp_path, pair.protocol) as (talker, gateway), aiohttp.ClientSession() as session:
        key_id, key = await new_key(gateway, 100 * CREDIT)
        answer = await call(session, gateway, key, pair.face)
        assert answer.status == 200, answer.body
        [limit] = talker.limits
        assert limit is not None
        assert f"{pair.name}={limit}" in answer.dropped.split(", ")
        assert limit > 5000, "a share of the budget"
    assert (await balance(tmp_path, key_id)).spent <= 100 * CREDIT // 16


async def test_a_grpc_caller_gets_the_limit_in_its_answer(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talker, gateway):
        _, key = await new_key(gateway, 100 * CREDIT)
        prompt = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="x"))])
        request = pb.GenerateRequest(model="m", messages=[prompt])
        async with grpc.aio.insecure_channel(gateway.grpc) as face:
            stub = rpc.GenerationServiceStub(face)
            answer = await stub.Generate(request, metadata=[("authorization", f"Bearer {key}")])
        assert list(answer.dropped_fields) == [f"max_output_tokens={talker.limits[0]}"]


@dataclass(frozen=True)
class Unlimited:
    id: str
    budget: int
    fields: dict[str, Any]
    sent: int | None


UNLIMITED = [
    Unlimited("a large budget", 1000 * CREDIT, {}, None),
    Unlimited("a stated maximum", 2 * CREDIT, {"max_tokens": 1900}, 1900),
    Unlimited("a stated maximum above that of the model", 33 * CREDIT, {"max_tokens": 90_000}, 32_000),
]


@pytest.mark.parametrize("case", UNLIMITED, ids=lambda case: case.id)
async def test_a_call_that_the_budget_pays_for_is_not_limited(tmp_path: Path, case: Unlimited) -> None:
    async with talking(tmp_path) as (talker, gateway), aiohttp.ClientSession() as session:
        _, key = await new_key(gateway, case.budget)
        answer = await call(session, gateway, key, **case.fields)
    assert (answer.status, talker.limits) == (200, [case.sent])
    assert bool(answer.dropped) is (case.sent not in {None, case.fields.get("max_tokens")})


async def test_a_strict_call_is_refused_instead_of_limited(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talker, gateway), aiohttp.ClientSession() as session:
        _, key = await new_key(gateway, 31 * CREDIT)
        headers = {"authorization": f"Bearer {key}", "x-umg-strict": "true"}
        body = {"model": "m", "messages": MESSAGES}
        for fields, status in (({}, 429), ({"max_tokens": 30_000}, 200)):
            sent = session.post(f"{gateway.url}/v1/chat/completions", json=body | fields, headers=headers)
            async with sent as response:
                assert response.status == status, await response.text()
    assert talker.limits == [30_000]


async def test_of_fifty_calls_with_a_maximum_a_budget_for_ten_admits_exactly_ten(tmp_path: Path) -> None:
    async with (
        talking(tmp_path, price="price: {output: 1000}") as (talker, gateway),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session,
    ):
        talker.released.clear()
        key_id, key = await new_key(gateway, 10 * CREDIT)
        calls = [asyncio.create_task(call(session, gateway, key, max_tokens=1000)) for _ in range(50)]
        statuses = list[int]()
        for ended in asyncio.as_completed(calls):
            statuses.append((await ended).status)
            if len(statuses) == 40:
                for _ in range(10):
                    await talker.arrived.acquire()
                talker.released.set()
    assert statuses == [429] * 40 + [200] * 10
    assert await balance(tmp_path, key_id) == Balance(10 * CREDIT, 0)


async def test_a_limited_answer_is_not_cached(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talker, gateway), aiohttp.ClientSession() as session:
        _, key = await new_key(gateway, 100 * CREDIT)
        headers = {"authorization": f"Bearer {key}", "x-umg-cache": "60"}
        for _ in range(2):
            body = {"model": "m", "messages": MESSAGES, "temperature": 0}
            async with session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as response:
                assert response.status == 200
    assert len(talker.limits) == 2


async def test_a_continued_conversation_is_part_of_the_reservation(tmp_path: Path) -> None:
    price = "price: {input: 1000}"
    async with talking(tmp_path, price=price) as (_, gateway), aiohttp.ClientSession() as session:
        key_id, key = await new_key(gateway, 7 * CREDIT)
        first = await call(session, gateway, key, "responses", input="x" * 6000, store=True)
        assert first.status == 200
        more = {"input": "x" * 2000, "store": True}
        again = await call(session, gateway, key, "responses", previous_response_id=first.body["id"], **more)
        assert (again.status, again.body["error"]["type"]) == (429, "insufficient_quota")
        assert (await call(session, gateway, key, "responses", **more)).status == 200
    assert (await balance(tmp_path, key_id)) == Balance(2 * PROMPT_TOKENS * 1000, 0)


async def test_search_units_of_reranking_are_reserved_and_charged(tmp_path: Path) -> None:
    async with (
        talking(tmp_path, "rerank", price="price: {search: 1}") as (_, gateway),
        aiohttp.ClientSession() as session,
    ):
        key_id, key = await new_key(gateway, 2 * CREDIT)
        _, short = await new_key(gateway, 2 * CREDIT - 1)
        assert (await call(session, gateway, key, "rerank")).status == 200
        assert (await call(session, gateway, short, "rerank")).status == 429
    assert await balance(tmp_path, key_id) == Balance(2 * CREDIT, 0)


async def test_a_stream_names_its_limit_in_its_headers(tmp_path: Path) -> None:
    async with talking(tmp_path) as (talker, gateway), aiohttp.ClientSession() as session:
        _, key = await new_key(gateway, 100 * CREDIT)
        body = {"model": "m", "messages": MESSAGES, "stream": True}
        headers = {"authorization": f"Bearer {key}"}
        async with session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as response:
            text = await response.text()
        assert (response.status, "[DONE]" in text) == (200, True), text
        assert response.headers["x-umg-dropped"] == f"max_tokens={talker.limits[0]}"
