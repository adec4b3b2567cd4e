"""Shutdown of a gateway behind a load balancer: announced first, while calls and connections are still accepted."""

import asyncio
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import aiohttp
import grpc
import pytest
import pytest_asyncio
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.gateways import SANDBOX
from tests.support.processes import Served, serve
from umg_grpc.v1 import pb, rpc

KEY = "sk-umg-of-the-tests-of-a-drain"
ENVIRONMENT = {"UMG_API_KEY": KEY}
HEADERS = {"authorization": f"Bearer {KEY}"}
ENDLESS_SECONDS = 600
"""A delay that no test waits for: a signal ends it."""


@pytest_asyncio.fixture
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    config = tmp_path / "config.yaml"
    config.write_text(f"drain_delay: {ENDLESS_SECONDS}\n{SANDBOX}")
    async with serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as gateway:
        yield gateway


async def _call(session: aiohttp.ClientSession, served: Served) -> tuple[int, str | None]:
    body = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}
    async with session.post(f"{served.http}/v1/chat/completions", json=body, headers=HEADERS) as response:
        await response.read()
        return response.status, response.headers.get("connection")


async def test_calls_are_accepted_until_the_delay_ends(served: Served) -> None:
    async with aiohttp.ClientSession() as session, grpc.aio.insecure_channel(served.grpc) as channel:
        assert await _call(session, served) == (200, None)
        watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=""))
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.SERVING
        served.process.send_signal(signal.SIGTERM)
        await served.until_logged("shutdown announced")
        assert (await watch.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        async with session.get(f"{served.http}/readyz") as response:
            assert (response.status, response.headers.get("retry-after")) == (503, "1")
            answer = await response.json()
            assert (answer["status"], "shutting down" in answer["error"]["message"]) == ("draining", True)
        assert await _call(session, served) == (200, "close")  # on the connection from before the signal
        async with aiohttp.ClientSession() as fresh:
            assert await _call(fresh, served) == (200, "close")
        async with grpc.aio.insecure_channel(served.grpc) as new_channel:
            metadata = (("authorization", f"Bearer {KEY}"),)
            models = await rpc.ModelServiceStub(new_channel).ListModels(pb.ListModelsRequest(), metadata=metadata)
            assert models.models
    assert served.process.returncode is None
    assert await served.stop() == 0  # the second signal ends the delay, and not the process before its drain
    await served.until_logged('"draining"')


async def test_workers_accept_calls_until_the_delay_ends(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(f"drain_delay: {ENDLESS_SECONDS}\n{SANDBOX}")
    arguments = ("--config", str(config), "--workers", "2")
    async with serve(tmp_path / "data", *arguments, environment=ENVIRONMENT) as served:
        served.process.send_signal(signal.SIGTERM)
        for _ in range(2):
            served.log.remove(await served.until_logged("shutdown announced"))
        for _ in range(8):  # new connections, which the workers share
            async with aiohttp.ClientSession() as fresh:
                assert await _call(fresh, served) == (200, "close")
        assert await served.stop() == 0


@pytest.mark.parametrize(("host", "seconds"), [("0.0.0.0", 5.0), ("127.0.0.1", None)])
async def test_the_delay_is_the_default_only_where_other_machines_connect(
    tmp_path: Path, host: str, seconds: float | None
) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    arguments = ("--config", str(config), "--http", f"{host}:0")
    async with serve(tmp_path / "data", *arguments, environment=ENVIRONMENT) as served:
        served.process.send_signal(signal.SIGTERM)
        await served.until_logged("shutdown announced" if seconds else '"draining"')
        announced = [line for line in served.log if "shutdown announced" in line]
        assert [f'"seconds":{seconds}' in line for line in announced] == ([True] if seconds else [])
        if seconds:
            served.process.send_signal(signal.SIGINT)
        assert await asyncio.wait_for(served.process.wait(), 60) == 0
