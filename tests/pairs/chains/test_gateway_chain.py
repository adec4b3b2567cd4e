"""A gateway behind a gateway: limits and budgets of its keys, request ids, the gateway's own headers, costs, and streams
of a provider that starts slowly.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from aiohttp import web

from tests.pairs.table import ROOTS, TEXT_FACES, every_face
from tests.support.callers.http_caller import HttpAnswer, HttpCaller
from tests.support.callers.requests import Request
from tests.support.gateways import KEY, channel, running
from tests.support.serving import serving

pytestmark = pytest.mark.asyncio(loop_scope="module")

CREDIT = 1_000_000
PRICES = "models: {m: {price: {input: 1000000, output: 2000000}}}\n"
"""One credit for each token of the input, two for each of the output."""
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
BODY: dict[str, Any] = {
    "id": "c",
    "model": "theirs",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
}


@dataclass
class Provider:
    """Chat provider that holds streams back until it is released."""

    headers: list[Mapping[str, str]] = field(default_factory=list)
    released: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.headers.append(request.headers)
        if not (await request.json()).get("stream"):
            return web.json_response(BODY, headers={"x-umg-route": "elsewhere", "x-request-id": "req_theirs"})
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await self.released.wait()
        await response.write(CHUNK)
        return response


@dataclass(frozen=True)
class Chain:
    """Callers of both gateways, and the provider of the one behind. Each model of the one in front has its own key."""

    front: HttpCaller
    behind: HttpCaller
    provider: Provider


KEYS: dict[str, dict[str, Any]] = {
    "free": {},
    "limited": {"requests_per_minute": 1},
    "poor": {"budget_micro_credits": 1},
    "shown": {"show_route": True},
}
"""Name of a key of the gateway behind -> its settings."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chain(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Chain, None]:
    """Yield the chain. Model `KEY/FORMAT` of the gateway in front is called by that key in that format."""
    async with AsyncExitStack() as stack:
        provider, app = Provider(), web.Application()
        app.router.add_post("/v1/chat/completions", provider.answer)
        url = str(await stack.enter_async_context(serving(app)))
        config = PRICES + "channels:\n" + channel("provider", "chat", f"{url}/v1", "m", "theirs")
        behind = await stack.enter_async_context(running(config, tmp_path_factory.mktemp("behind")))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        channels = []
        for name, settings in KEYS.items():
            body = {"settings": {"name": name, **settings}}
            async with session.post(f"{behind.url}/admin/v1/keys", json=body, headers=behind.headers) as created:
                secret = (await created.json())["secret"]
            for protocol, root in ROOTS.items():
                model = f"{name}/{protocol}"
                made = channel(f"{name}-{protocol}", protocol, behind.url + root, model, "m")
                channels.append(made.replace(KEY, secret))
        priced = "retries: {repeats: 0}\nmodels:\n" + "".join(
            f"  {name}/{protocol}: {{price: {{input: 3000000, output: 4000000}}}}\n"
            for name in KEYS
            for protocol in ROOTS
        )
        front = await stack.enter_async_context(
            running(priced + "channels:\n" + "".join(channels), tmp_path_factory.mktemp("front"))
        )
        yield Chain(HttpCaller(session, front.url, front.key), HttpCaller(session, behind.url, behind.key), provider)


async def call(chain: Chain, face: str, key: str, **headers: str) -> HttpAnswer:
    model = f"{key}/{face}"
    return await chain.front.send(face, model, TEXT_FACES[face].body(Request("Hi"), model), **headers)


@every_face
async def test_a_limit_of_the_gateway_behind_keeps_its_status_and_wait(chain: Chain, face: str) -> None:
    for _ in range(2):  # the other formats use up the same key
        got = await call(chain, face, "limited")
    assert (got.status, got.is_error) == (429, True)
    assert 0 < int(got.headers["retry-after"]) <= 60
    assert got.headers.get("x-should-retry") != "false"


@every_face
async def test_a_spent_budget_of_the_gateway_behind_is_not_repeated(chain: Chain, face: str) -> None:
    got = await call(chain, face, "poor")
    assert (got.status, got.is_error) == (429, True), got.body
    assert got.headers["x-should-retry"] == "false"


@every_face
async def test_headers_of_the_gateway_are_those_of_the_one_that_was_called(chain: Chain, face: str) -> None:
    sent = {"x-request-id": f"req-of-the-caller-{face}", "x-umg-timeout": "20", "x-umg-cache": "off"}
    got = await call(chain, face, "shown", **sent)
    assert (got.status, got.headers["x-request-id"]) == (200, sent["x-request-id"])
    assert got.headers["x-umg-route"].startswith(f"channel=shown-{face};"), "the first key has `show_route`"
    assert "elsewhere" not in str(got.headers)
    assert not {name.lower() for name in chain.provider.headers[-1]} & {"x-umg-timeout", "x-umg-cache", "x-umg-strict"}
    record = await record_of(chain.front, sent["x-request-id"])
    inner = record["attempts"][0]["upstream_request_id"]
    assert inner
    assert inner != sent["x-request-id"]
    assert (await record_of(chain.behind, inner))["attempts"][0]["upstream_request_id"] == "req_theirs"


async def record_of(caller: HttpCaller, request_id: str) -> dict[str, Any]:
    """Return the record of a call, once it is stored."""
    headers = {"authorization": f"Bearer {caller.key}"}
    async with asyncio.timeout(60):
        while True:
            async with caller.session.get(f"{caller.url}/admin/v1/requests/{request_id}", headers=headers) as answer:
                if answer.status == 200:
                    return (await answer.json())["record"]
            await asyncio.sleep(0.05)  # leaves the processor to the gateway, which stores records in batches


@every_face
async def test_both_gateways_charge_the_same_tokens_at_their_own_prices(chain: Chain, face: str) -> None:
    request_id = f"req-of-costs-{face}"
    got = await call(chain, face, "free", **{"x-request-id": request_id})
    usage = got.canonical.usage
    assert (usage.input_tokens, usage.output_tokens) == (7, 5)
    record = await record_of(chain.front, request_id)
    inner = await record_of(chain.behind, record["attempts"][0]["upstream_request_id"])
    assert record["micro_credits"] == CREDIT * (3 * 7 + 4 * 5)
    assert inner["micro_credits"] == CREDIT * (7 + 2 * 5)


@pytest.mark.parametrize("face", ["chat", "messages"])  # each waits for both gateways, 2 s each
async def test_headers_of_a_slow_stream_come_through_both_gateways_before_its_content(chain: Chain, face: str) -> None:
    chain.provider.released.clear()
    model = f"free/{face}"
    body = TEXT_FACES[face].body(Request("Hi"), model, stream=True)
    url, headers = chain.front.url + TEXT_FACES[face].path(model, True), TEXT_FACES[face].credentials(chain.front.key)
    async with asyncio.timeout(60), chain.front.session.post(url, json=body, headers=headers) as response:
        assert response.status == 200
        first = await response.content.readany()
        assert b"Hi" not in first, "a heartbeat comes before the content"
        chain.provider.released.set()
        assert b"Hi" in await response.read()
