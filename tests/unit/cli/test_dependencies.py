"""A database and a Redis that are away, as an operator sees them: metrics and readiness of a served gateway."""

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import aiohttp

from tests.support.databases import Postgres
from tests.support.gateways import SANDBOX
from tests.support.polling import pause
from tests.support.processes import Served, run, serve
from tests.support.redis import RedisServer

KEY = "sk-umg-of-the-tests-of-dependencies"
ENVIRONMENT = {"UMG_API_KEY": KEY}
HEADERS = {"authorization": f"Bearer {KEY}"}
FIGURE = re.compile(
    r'^(umg_database_up|umg_redis_up|umg_known_keys|umg_writes_waiting\{store="(?:responses|usage)"\}) (\S+)$',
    re.MULTILINE,
)
RESPONSES, USAGE = (f'umg_writes_waiting{{store="{store}"}}' for store in ("responses", "usage"))
Figures = dict[str, float]


async def _figures(session: aiohttp.ClientSession, served: Served, wanted: Callable[[Figures], bool]) -> Figures:
    """Return the figures of the dependencies once they are as `wanted`; the last ones after 60 seconds."""
    found: Figures = {}
    deadline = asyncio.get_running_loop().time() + 60
    while not wanted(found) and asyncio.get_running_loop().time() < deadline:
        async with session.get(f"{served.http}/metrics") as response:
            found = {name: float(value) for name, value in FIGURE.findall(await response.text())}
        await asyncio.sleep(0.05)  # leaves the processor to the gateway
    return found


async def _readiness(session: aiohttp.ClientSession, served: Served) -> tuple[int, str, list[str]]:
    async with session.get(f"{served.http}/readyz") as response:
        body = await response.json()
        return response.status, body["status"], [reason.partition(":")[0] for reason in body["reasons"]]


async def _respond(session: aiohttp.ClientSession, served: Served) -> int:
    body = {"model": "famO-5", "input": "Hi"}
    async with session.post(f"{served.http}/v1/responses", json=body, headers=HEADERS) as response:
        await response.read()
        return response.status


async def _call(served: Served, key: str) -> int:
    """Call a model on a connection of its own, so that every worker gets some calls. Return the status."""
    body = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response,
    ):
        await response.read()
        return response.status


async def test_every_worker_serves_every_key_without_the_database(postgres: Postgres, tmp_path: Path) -> None:
    config, data = tmp_path / "config.yaml", tmp_path / "data"
    config.write_text(f"database: {postgres.create('test_known_keys')}\n{SANDBOX}")
    arguments = ("--config", str(config), "--data", str(data))

    async def create(name: str) -> str:
        code, out, err = await run("keys", "create", name, *arguments, environment=ENVIRONMENT)
        assert code == 0, err
        return out.splitlines()[-1]

    async with serve(data, "--config", str(config), "--workers", "2", environment=ENVIRONMENT) as served:
        secrets = [await create("one"), await create("two")]  # while the gateway runs, and never used
        async with aiohttp.ClientSession() as session:
            found = await _figures(session, served, lambda found: found.get("umg_known_keys") == 3)
        assert found["umg_known_keys"] == 3, found
        postgres.stop()
        try:
            for secret in (KEY, *secrets):
                assert set(await asyncio.gather(*(_call(served, secret) for _ in range(8)))) == {200}
            assert set(await asyncio.gather(*(_call(served, "sk-umg-of-nobody") for _ in range(8)))) == {503}
        finally:
            postgres.start()
        async with asyncio.timeout(60):
            while await _call(served, "sk-umg-of-somebody") != 401:  # without a restart
                await pause()


async def _until_recorded(session: aiohttp.ClientSession, served: Served) -> None:
    async with asyncio.timeout(60):
        while True:
            async with session.get(f"{served.http}/admin/v1/requests", headers=HEADERS) as response:
                if (await response.json())["records"]:
                    return
            await pause()


def _up(found: Figures) -> list[float]:
    return [found.get(name, -1) for name in ("umg_database_up", "umg_redis_up")]


def _waiting(found: Figures) -> list[float]:
    return [found.get(name, -1) for name in (RESPONSES, USAGE)]


async def test_unavailable_dependencies_are_detected_and_calls_continue(
    postgres: Postgres, redis_server: RedisServer, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    database = postgres.create("test_dependencies")
    config.write_text(f"database: {database}\nredis: {redis_server.url}\n{SANDBOX}")
    async with (
        aiohttp.ClientSession() as session,
        serve(tmp_path / "data", "--config", str(config), environment=ENVIRONMENT) as served,
    ):
        assert await _respond(session, served) == 200
        await _until_recorded(session, served)
        found = await _figures(session, served, lambda found: _waiting(found) == [0, 0])
        assert _up(found) == [1, 1], found
        assert await _readiness(session, served) == (200, "ready", [])
        postgres.stop()
        redis_server.stop()
        try:
            found = await _figures(session, served, lambda found: _up(found) == [0, 0])
            assert _up(found) == [0, 0], found
            assert await _readiness(session, served) == (200, "ready", ["database", "redis"])
            assert await _respond(session, served) == 200
            found = await _figures(session, served, lambda found: min(_waiting(found)) > 0)
            assert _waiting(found) == [1, 1], found
        finally:
            postgres.start()
            redis_server.start()
        found = await _figures(session, served, lambda found: _up(found) == [1, 1] and _waiting(found) == [0, 0])
        assert (_up(found), _waiting(found)) == ([1, 1], [0, 0]), found
        assert await _readiness(session, served) == (200, "ready", [])
        assert await served.stop() == 0
