"""Changes of channels at a gateway of two workers, which have the same SQLite database."""

import asyncio
from collections import Counter
from pathlib import Path

import aiohttp

from tests.support.polling import pause
from tests.support.processes import Served, run, serve

CONFIG = """
channels:
  - {name: a, protocols: [sandbox], pace: 0, models: [famO-5]}
  - {name: b, protocols: [sandbox], pace: 0, models: [famO-5]}
"""
CALLS = 16
"""Calls by connections of their own, which the kernel gives to both workers."""


async def called(served: Served) -> Counter[str]:
    """Return the number of calls by the channel in `x-umg-route`."""
    found = Counter[str]()
    body = {"model": "famO-5", "messages": [{"role": "user", "content": "Hi"}]}
    for _ in range(CALLS):
        async with (
            aiohttp.ClientSession(headers=served.headers) as session,
            session.post(f"{served.url}/v1/chat/completions", json=body) as response,
        ):
            assert response.status == 200
            found[response.headers["x-umg-route"].partition(";")[0].removeprefix("channel=")] += 1
    return found


async def until_called(served: Served, names: set[str]) -> None:
    async with asyncio.timeout(60):
        while {*await called(served)} != names:  # the other worker applies a change within seconds
            await pause()


async def test_both_workers_apply_a_change_and_have_it_after_a_restart(tmp_path: Path) -> None:
    (file := tmp_path / "umg.yaml").write_text(CONFIG)
    data, arguments = tmp_path / "data", ("--config", str(file), "--workers", "2")
    local = ("--config", str(file), "--data", str(data))
    async with serve(data, *arguments) as served:
        await until_called(served, {"a", "b"})
        code, _, err = await run("channels", "disable", "a", *local)
        assert (code, err) == (0, "")
        await until_called(served, {"b"})
        assert {*await called(served)} == {"b"}
        assert await served.stop() == 0
    async with serve(data, *arguments) as served:
        assert {*await called(served)} == {"b"}
        code, _, err = await run("channels", "enable", "a", *local)
        assert (code, err) == (0, "")
        await until_called(served, {"a", "b"})
        assert await served.stop() == 0
