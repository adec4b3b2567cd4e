"""Service and OpenAPI document agree: valid calls succeed, and no call has an undocumented answer."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import jsonschema
import msgspec
import pytest
import pytest_asyncio

from tests.proofs.openapi.calls import CALLS, Call
from tests.proofs.openapi.gateway import CONFIG, MODELS
from tests.proofs.openapi.run import fuzz, prepared
from tests.support.gateways import Running, running

EXAMPLES = 2
SEED = 19

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("gateway")) as state:
        yield state


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(gateway: Running) -> AsyncGenerator[aiohttp.ClientSession, None]:
    async with aiohttp.ClientSession(gateway.url, headers=gateway.headers) as session:
        yield session


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def document(client: aiohttp.ClientSession) -> dict[str, Any]:
    async with client.get("/openapi.json") as answer:
        assert answer.status == 200
        found: dict[str, Any] = await answer.json()
        return found


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.id)
async def test_a_valid_call_has_a_documented_answer(
    client: aiohttp.ClientSession, document: dict[str, Any], call: Call
) -> None:
    async with client.request(call.method, call.target, json=call.body) as answer:
        body = await answer.read()
    assert answer.status == 200, body[:500]
    content = document["paths"][call.path][call.method]["responses"]["200"]["content"]
    assert answer.content_type in content
    if answer.content_type == "application/json":
        schema = {**content["application/json"]["schema"], "components": document["components"]}
        jsonschema.Draft202012Validator(schema).validate(msgspec.json.decode(body))


async def test_events_of_a_stream_have_the_documented_schema(
    client: aiohttp.ClientSession, document: dict[str, Any]
) -> None:
    for call in CALLS:
        content = document["paths"][call.path][call.method]["responses"]["200"]["content"]
        if not ((call.body or {}).get("stream") or "alt=sse" in call.query):
            continue
        kind = content["text/event-stream"]["schema"]["x-event-schema"]
        validator = jsonschema.Draft202012Validator({**kind, "components": document["components"]})
        async with client.request(call.method, call.target, json=call.body) as answer:
            lines = (await answer.text()).splitlines()
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: {")]
        assert data
        for event in data:
            validator.validate(msgspec.json.decode(event))


async def test_no_call_has_an_undocumented_answer(gateway: Running, document: dict[str, Any]) -> None:
    described = prepared(document, MODELS)
    found = await asyncio.to_thread(
        lambda: [*fuzz(described, gateway.url, gateway.headers, EXAMPLES, SEED, in_turn=True)]
    )
    assert not found, "\n\n".join(f"{finding.operation}: {finding.text}" for finding in found)


async def test_the_document_is_not_sent_again_to_a_client_that_has_it(client: aiohttp.ClientSession) -> None:
    async with client.get("/openapi.json") as first:
        assert first.headers["cache-control"] == "no-cache"
    async with client.get("/openapi.json", headers={"if-none-match": first.headers["etag"]}) as second:
        assert (second.status, await second.read()) == (304, b"")


async def test_the_document_is_not_served_without_pages(tmp_path: Path) -> None:
    async with running(f"{CONFIG}pages: false\n", tmp_path) as state, aiohttp.ClientSession(state.url) as session:
        async with session.get("/openapi.json") as answer:
            assert answer.status == 404
        async with session.get("/healthz") as answer:
            assert answer.status == 200
