"""Limits of keys, which several workers without Redis cannot count together."""

from pathlib import Path

import aiohttp

from tests.support.databases import create_database
from tests.support.gateways import SANDBOX
from tests.support.processes import Served, run, serve

ENVIRONMENT = {"UMG_API_KEY": "sk-umg-of-the-tests-of-limited-workers"}


async def create(data: Path, *flags: str) -> str:
    code, out, err = await run("keys", "create", *flags, "--data", str(data), environment=ENVIRONMENT)
    assert code == 0, err
    return out.splitlines()[-1]


async def call(served: Served, key: str) -> int:
    """Call a model on a connection of its own, so that every worker gets some calls. Return the status."""
    body = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"authorization": f"Bearer {key}"}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{served.http}/v1/chat/completions", json=body, headers=headers) as response,
    ):
        await response.read()
        return response.status


async def test_workers_without_redis_refuse_keys_with_limits(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    await create_database(tmp_path)
    secret = await create(tmp_path, "limited", "--concurrency", "3")
    await create(tmp_path, "unlimited")
    ports = ("--http", "127.0.0.1:0", "--grpc", "127.0.0.1:0", "--workers", "2")
    arguments = ("serve", "--config", str(config), "--data", str(tmp_path), *ports)
    code, _, err = await run(*arguments, environment=ENVIRONMENT)
    assert code == 1, err
    assert f"limited ({secret[:11]}…)" in err
    assert "`redis`" in err
    assert secret not in err
    await run("keys", "revoke", "limited", "--data", str(tmp_path), environment=ENVIRONMENT)
    async with serve(tmp_path, "--config", str(config), "--workers", "2", environment=ENVIRONMENT) as served:
        assert await call(served, ENVIRONMENT["UMG_API_KEY"]) == 200
