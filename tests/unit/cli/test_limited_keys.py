"""Limits of keys, which several workers without Redis cannot count together."""

from pathlib import Path

import aiohttp
import pytest

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


async def test_running_workers_without_redis_refuse_new_limits_of_keys(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    async with (
        serve(tmp_path, "--config", str(config), "--workers", "2", environment=ENVIRONMENT) as served,
        aiohttp.ClientSession(served.http, headers=served.headers) as session,
    ):
        for path, method, settings in (
            ("/admin/v1/keys", "POST", {"name": "limited", "requests_per_minute": 5}),
            ("/admin/v1/keys", "POST", {"name": "unlimited"}),
            ("/admin/v1/keys/unlimited", "PATCH", {"concurrent_requests": 5}),
            ("/admin/v1/keys/unlimited", "PATCH", {"tokens_per_minute": None, "owner": "a team"}),
        ):
            async with session.request(method, path, json={"settings": settings}) as answer:
                text = await answer.text()
            is_limited = settings.keys() & {"requests_per_minute", "concurrent_requests"}
            assert answer.status == (400 if is_limited else 200), text
            assert ("serve with one worker" in text) == bool(is_limited)


async def test_a_limit_in_the_database_of_running_workers_is_warned_of(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    flags = ("--config", str(config), "--data", str(tmp_path))
    async with serve(tmp_path, "--config", str(config), "--workers", "2", environment=ENVIRONMENT) as served:
        code, out, err = await run("keys", "create", "limited", "--rpm", "5", *flags, environment=ENVIRONMENT)
        assert (code, "2 processes serve" in err, "`redis`" in err) == (0, True, True), err
        prefix = out.splitlines()[-1][:11]
        assert prefix in await served.until_logged("a key has limits, which each worker counts for itself")
        code, _, err = await run("keys", "create", "unlimited", *flags, environment=ENVIRONMENT)
        assert (code, "warning" in err) == (0, False), err


async def test_one_process_has_no_warning_of_limits(tmp_path: Path) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    async with serve(tmp_path, "--config", str(config), environment=ENVIRONMENT) as served:
        flags = ("--config", str(config), "--data", str(tmp_path))
        code, out, err = await run("keys", "create", "limited", "--rpm", "5", *flags, environment=ENVIRONMENT)
        assert (code, "warning" in err) == (0, False), err
        assert await call(served, out.splitlines()[-1]) == 200
        assert [line for line in served.log if "each worker" in line] == []


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_reload_adds_no_limits_of_models_that_workers_cannot_count(tmp_path: Path, workers: str) -> None:
    config = tmp_path / "config.yaml"
    config.write_text(SANDBOX)
    arguments = ("--config", str(config), "--workers", workers)
    async with serve(tmp_path, *arguments, environment=ENVIRONMENT) as served:
        limited = f"{SANDBOX}models: {{famO-5: {{limits: {{rpm: 1}}}}}}\n"
        config.write_text(limited.replace("models: [famG-2.5-flash,", "models: [added-model, famG-2.5-flash,"))
        code, out, err = await run("reload", "--data", str(tmp_path))
        if workers == "1":
            assert code == 0, err
            return
        assert (code, err.count("not reloaded"), err.count("model famO-5")) == (1, 2, 2), out + err
        assert "serve with one worker" in err
        assert {await call(served, ENVIRONMENT["UMG_API_KEY"]) for _ in range(8)} == {200}
