"""Budgets in every operation: a budget for four calls admits four of sixteen, by each route and each method that is charged.

The routes and methods come from the tables of the authorisation tests. A model without a price is refused in the body
of the caller's format before its provider is called.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import pytest
import pytest_asyncio
from aiohttp import web

from http_facade.routes import Route, Shape
from tests.support.gateways import KEY, Running, running
from tests.support.serving import serving
from tests.unit.e2e.authorisation import BODIES, KEYED_ROUTES, METHODS, Gate, call, path_of, payload, request_of
from tests.unit.e2e.authorisation import CONFIG as SIMULATED
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.v1 import pb
from umg_grpc.v1.rpc import VideoServiceStub

pytestmark = pytest.mark.asyncio(loop_scope="module")

CREDIT = 1_000_000
CALLS, PAID = 16, 4
CHARGED = {Shape.GENERATE, Shape.UNARY, Shape.GENERATE_IMAGE, Shape.CREATE_VIDEO}
"""Shapes of routes whose calls are charged. A remix needs a finished video, and has a test of its own."""
STREAMS = {"chat", "responses", "messages", "images", "image_edits"}
"""Formats in which the body selects a stream."""
FREE_METHODS = {"CountTokens", "RemixVideoTask"}
MODELS = sorted({model for model, _ in BODIES.values() if model})
NATIVE_MODELS = {"famG-2.5-pro", "text-embedding-004"}
PROTOCOLS = "chat, responses, messages, embeddings, rerank, moderations, speech, transcriptions, umg_images"
VIDEO_MODELS = {"clips-1", "clips-d"}


def of_providers(url: str, unpriced: str = "refuse") -> str:
    """Return a config whose models are those of a gateway at the URL, which has no prices of them."""
    rest = ", ".join({*MODELS} - NATIVE_MODELS - VIDEO_MODELS)
    native, videos = ", ".join(NATIVE_MODELS), ", ".join(VIDEO_MODELS)
    return f"""
channels:
  - {{name: plain, protocols: [{PROTOCOLS}], base_url: "{url}/v1", api_key: {KEY}, models: [{rest}]}}
  - {{name: native, protocols: [native, native_embeddings], base_url: "{url}/v1beta", api_key: {KEY}, models: [{native}]}}
  - {{name: videos, protocols: [umg_video], base_url: "{url}", api_key: {KEY}, models: [{videos}]}}
models: {{clips-d: {{family: vidD}}}}
shipped_prices: false
unpriced: {unpriced}
overload: {{lag: 10}}
"""


@dataclass(frozen=True)
class Way:
    """Way to make a call that is charged. `call`: returns the reason of its refusal; "" if it was answered."""

    id: str
    call: Callable[[Gate, str], Awaitable[str]]


def headers_of(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def by_route(route: Route, *, stream: bool) -> Way:
    model, body = BODIES[route.format]
    path = path_of(route, model)
    sent = {**body, "stream": True} if stream else body

    async def made(gate: Gate, secret: str) -> str:
        async with gate.session.request(route.method, path, headers=headers_of(secret), **payload(sent)) as answer:
            text = await answer.text()
        if answer.status == 200:
            return ""
        return {403: "MODEL_UNPRICED", 429: "QUOTA_EXHAUSTED"}.get(answer.status, f"{answer.status} {text}")

    return Way(f"{path}{' as a stream' if stream else ''}", made)


def by_method(name: str) -> Way:
    [method] = [each for each in METHODS if each.name == name]

    async def made(gate: Gate, secret: str) -> str:
        reason, _ = await call(gate, method, headers_of(secret), request_of(method))
        return reason

    return Way(f"gRPC {name}", made)


ROUTES = [route for route in KEYED_ROUTES if route.shape in CHARGED]
WAYS = [
    *(by_route(route, stream=False) for route in ROUTES),
    *(by_route(route, stream=True) for route in ROUTES if route.format in STREAMS),
    *(
        by_method(name)
        for name in ("Generate", "StreamGenerate", "Embed", "Rerank", "Moderate", "Speak", "StreamSpeak")
    ),
    *(by_method(name) for name in ("Transcribe", "StreamTranscribe")),
    *(by_method(name) for name in ("GenerateImage", "StreamGenerateImage", "CreateVideoTask")),
]


@asynccontextmanager
async def opened(config: str, data: Path) -> AsyncGenerator[Gate, None]:
    """Yield a running gateway, with clients of both of its faces. A stream that waits has no early headers: its refusal
    has a status of its own, however late it is.
    """
    async with (
        running(f"{config}stream_headers_after: 3600\n", data) as gateway,
        aiohttp.ClientSession(gateway.url, connector=aiohttp.TCPConnector(limit=0)) as session,
        grpc.aio.insecure_channel(gateway.grpc) as channel,
    ):
        yield Gate(gateway, session, channel, {})


async def spender(gateway: Running, name: str, budget: int = PAID * CREDIT) -> str:
    _, secret = await ApiKeys(gateway.service.store).create(name, budget_micro_credits=budget)
    return secret


async def outcomes(gate: Gate, way: Way, name: str) -> Counter[str]:
    """Return the numbers of answers and refusals of parallel calls with a budget for four, and of one more call."""
    secret = await spender(gate.gateway, f"{name} {WAYS.index(way)} {way.id}"[:64])
    found = Counter(await asyncio.gather(*(way.call(gate, secret) for _ in range(CALLS))))
    found.update([await way.call(gate, secret)])
    return found


def a_credit_each(models: list[str]) -> str:
    return "".join(f"  {model}: {{price: {{request: 1}}}}\n" for model in models)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def priced(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gate, None]:
    entries = SIMULATED.replace("{capabilities", "{price: {request: 1}, capabilities").replace(
        "{family", "{price: {request: 1}, family"
    )
    others = [model for model in MODELS if f"  {model}: " not in entries]
    config = entries.replace("models:\n  clips-1", f"models:\n{a_credit_each(others)}  clips-1")
    async with opened(config, tmp_path_factory.mktemp("priced")) as gate:
        yield gate


async def test_every_charged_route_and_method_is_called() -> None:
    called = {way.id.removeprefix("gRPC ") for way in WAYS}
    assert {method.name for method in METHODS if _is_charged(method.full_name)} - FREE_METHODS <= called
    assert len({way.id for way in WAYS}) == len(WAYS)


async def test_a_remix_is_charged_from_the_budget_of_its_key(tmp_path: Path) -> None:
    config = SIMULATED.replace("{capabilities", "{price: {request: 1}, capabilities")
    async with opened(config, tmp_path) as gate:
        secret = await spender(gate.gateway, "remixes", 3 * CREDIT)
        headers = {**headers_of(secret)}
        async with gate.session.post("/v1/videos", json=BODIES["video_object"][1], headers=headers) as made:
            task_id = (await made.json())["id"]
        watch = VideoServiceStub(gate.channel).WatchVideoTask(
            pb.WatchVideoTaskRequest(task_id=task_id), metadata=[*headers.items()]
        )
        states = [message.task.state async for message in watch]
        assert states[-1] == pb.VIDEO_TASK_STATE_SUCCEEDED
        statuses = []
        for _ in range(4):
            remix = gate.session.post(f"/v1/videos/{task_id}/remix", json={"prompt": "Hi"}, headers=headers)
            async with remix as answer:
                statuses.append(answer.status)
    assert Counter(statuses) == {200: 2, 429: 2}


def _is_charged(method: str) -> bool:
    words = ("Generate", "Embed", "Rerank", "Moderate", "Speak", "Transcribe", "CreateVideo", "CountTokens", "Remix")
    return any(word in method.rpartition(".")[2] for word in words)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
async def test_a_budget_for_four_admits_four_of_sixteen_calls(priced: Gate, way: Way) -> None:
    assert await outcomes(priced, way, "priced") == {"": PAID, "QUOTA_EXHAUSTED": CALLS + 1 - PAID}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def unpriced(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Gate, list[str]], None]:
    """Gateway in front of a provider, of whose models it has no price, and the paths that are called at the provider."""
    called = list[str]()

    async def answer(request: web.Request) -> web.Response:
        called.append(request.path)
        return web.json_response({}, status=500)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with serving(app) as url, opened(of_providers(url), tmp_path_factory.mktemp("unpriced")) as gate:
        yield gate, called


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
async def test_a_model_without_a_price_is_refused_before_its_provider_is_called(
    unpriced: tuple[Gate, list[str]], way: Way
) -> None:
    gate, called = unpriced
    assert await outcomes(gate, way, "unpriced") == {"MODEL_UNPRICED": CALLS + 1}
    assert called == []


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def defaults(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gate, None]:
    """Gateway with a default price in front of another one."""
    async with (
        running(SIMULATED, tmp_path_factory.mktemp("provider")) as provider,
        opened(of_providers(provider.url, "{request: 1}"), tmp_path_factory.mktemp("defaults")) as gate,
    ):
        yield gate


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.id)
async def test_a_default_price_is_charged_as_another(defaults: Gate, way: Way) -> None:
    assert await outcomes(defaults, way, "default") == {"": PAID, "QUOTA_EXHAUSTED": CALLS + 1 - PAID}
