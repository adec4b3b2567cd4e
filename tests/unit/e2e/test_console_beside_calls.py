"""Calls come before pages of the console: few pages are drawn at once, and none while calls wait."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest
import pytest_asyncio
from aiohttp import web

from tests.support.console_browser import Browser
from tests.support.databases import Postgres, waiting_queries
from tests.support.gateways import Running, channel, running
from tests.support.polling import pause
from tests.support.providers.waiting_provider import WaitingProvider
from tests.support.serving import serving

PATH = "/v1/chat/completions"
PAGES_AT_ONCE = 4
CALLS_AT_ONCE = 2

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Beside:
    gateway: Running
    owner: Browser
    provider: WaitingProvider
    database: str

    async def call(self) -> tuple[int, str]:
        """Send a streamed call, and return its status and its text."""
        body = {"model": "waiting", "stream": True, "messages": [{"role": "user", "content": "Hi"}]}
        async with self.owner.session.post(PATH, json=body, headers=self.gateway.headers) as response:
            return response.status, await response.text()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def beside(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Beside, None]:
    folder: Path = tmp_path_factory.mktemp("beside")
    provider, database = WaitingProvider(), await postgres.create_prepared("beside")
    application = web.Application()
    application.router.add_post(PATH, provider.answer)
    async with serving(application, handler_cancellation=True) as url:
        config = f"database: {database}\noverload: {{calls: {CALLS_AT_ONCE}, queue: 10, wait: 60}}\nchannels:\n"
        config += channel("waiting", "chat", f"{url}/v1", "waiting")
        async with running(config, folder) as gateway, Browser(gateway.url) as owner:
            yield Beside(gateway, await owner.sign_in(), provider, database)


async def test_four_pages_are_drawn_at_once_and_calls_go_on_beside_them(beside: Beside) -> None:
    beside.provider.go_on.set()
    async with asyncio.timeout(60), await psycopg.AsyncConnection.connect(beside.database) as lock:
        async with await psycopg.AsyncConnection.connect(beside.database, autocommit=True) as watch:
            await lock.execute("LOCK TABLE audit_events IN ACCESS EXCLUSIVE MODE")
            pages = [asyncio.create_task(beside.owner.get("/console/audit")) for _ in range(PAGES_AT_ONCE + 2)]
            while await waiting_queries(watch) < PAGES_AT_ONCE:  # noqa: ASYNC110  no event reports it
                await asyncio.sleep(0.02)
            another = asyncio.create_task(beside.owner.get("/console/config"))
            for _ in range(3):
                status, text = await beside.call()
                assert (status, "two" in text) == (200, True)
            assert await waiting_queries(watch) == PAGES_AT_ONCE
            assert not any(page.done() for page in (*pages, another))
            await lock.rollback()
        replies = await asyncio.gather(*pages, another)
    assert [reply.status for reply in replies] == [200] * len(replies)


async def test_pages_are_refused_while_calls_still_wait_for_a_slot(beside: Beside) -> None:
    beside.provider.go_on.clear()
    async with asyncio.timeout(60):
        calls = [asyncio.create_task(beside.call()) for _ in range(CALLS_AT_ONCE + 1)]
        while (page := await beside.owner.get("/console/config", accept="text/html")).status == 200:
            await pause()  # until the calls hold their slots
        assert (page.status, page.problem) == (
            503,
            "the gateway is busy with calls; load the page again; try again in 1 s",
        )
        assert '<a href="/console/config">Load the page again</a>' in page.text
        assert not any(call.done() for call in calls)
        beside.provider.go_on.set()
        assert [status for status, _ in await asyncio.gather(*calls)] == [200] * len(calls)
        assert (await beside.owner.get("/console/config")).status == 200
