"""Load on a gateway with two workers while its database stops and returns."""

import asyncio
import itertools
import json
import secrets
from collections import Counter
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psycopg

from tests.support.databases import Postgres
from tests.support.gateways import SANDBOX
from tests.support.polling import pause
from tests.support.processes import Served, serve
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import open_store

FIRST = "sk-umg-of-the-test-of-an-outage"
ENVIRONMENT = {"UMG_API_KEY": FIRST}
CALLERS = 6
CONNECTIONS = 24
"""Number of new connections of which every worker gets some."""
PHASE_CALLS = 120
MODEL = "famO-5"


@dataclass
class Load:
    """Callers that call without pause, each call on a connection of its own, so that every worker gets some."""

    url: str
    known: list[str]
    statuses: Counter[int] = field(default_factory=Counter)
    sent: list[str] = field(default_factory=list)
    """Request ids of the calls."""
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    is_over: bool = False

    async def call_until_over(self, number: int) -> None:
        for turn in itertools.count():
            if self.is_over:
                return
            request_id = f"load-{number}-{turn}"
            status, _ = await chat(self.url, self.known[number % len(self.known)], request_id)
            async with self.changed:
                self.statuses[status] += 1
                self.sent.append(request_id)
                self.changed.notify_all()

    async def until_answered(self, more: int) -> None:
        """Wait until `more` further calls were answered."""
        async with self.changed, asyncio.timeout(60):
            wanted = self.statuses.total() + more
            await self.changed.wait_for(lambda: self.statuses.total() >= wanted)


@asynccontextmanager
async def loaded(url: str, known: list[str]) -> AsyncGenerator[Load, None]:
    """Run the callers for the duration of the block."""
    load = Load(url, known)
    callers = [asyncio.create_task(load.call_until_over(number)) for number in range(CALLERS)]
    try:
        yield load
    finally:
        load.is_over = True
        await asyncio.gather(*callers)


async def chat(url: str, secret: str, request_id: str) -> tuple[int, str | None]:
    """Call a model on a new connection. Return the status, and the header `retry-after`."""
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
    headers = {"authorization": f"Bearer {secret}", "x-request-id": request_id}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as answer,
    ):
        await answer.read()
        return answer.status, answer.headers.get("retry-after")


async def unknown(url: str) -> set[tuple[int, str | None]]:
    """Return the outcomes of calls with unknown keys, each another one, of which every worker gets some."""
    calls = (chat(url, f"sk-umg-of-nobody-{secrets.token_hex(8)}", "unknown") for _ in range(CONNECTIONS))
    return set(await asyncio.gather(*calls))


async def readiness(url: str) -> set[tuple[int, str, tuple[str, ...]]]:
    """Return status, state and dependencies that are away, as `/readyz` of every worker names them."""

    async def one() -> tuple[int, str, tuple[str, ...]]:
        async with aiohttp.ClientSession() as session, session.get(f"{url}/readyz") as answer:
            body = await answer.json()
            return answer.status, body["status"], tuple(reason.partition(":")[0] for reason in body["reasons"])

    return set(await asyncio.gather(*(one() for _ in range(CONNECTIONS))))


async def until_ready(url: str, *, away: tuple[str, ...]) -> None:
    """Wait until `/readyz` of every worker names these dependencies."""
    async with asyncio.timeout(60):
        while await readiness(url) != {(200, "ready", away)}:
            await pause()


def workers_of(served: Served) -> list[str]:
    process = served.process.pid
    return sorted(Path(f"/proc/{process}/task/{process}/children").read_text().split())


async def records_of(database: str, request_ids: Iterable[str]) -> list[tuple[str, str, int]]:
    """Return record id, request id and output tokens of each usage record, once all calls have one."""
    wanted = set(request_ids)
    async with asyncio.timeout(60):
        while True:
            query = "SELECT record_id, request_id, output_tokens FROM call_records WHERE request_id LIKE 'load-%'"
            async with await psycopg.AsyncConnection.connect(database) as connection:
                rows: list[tuple[str, str, int]] = await (await connection.execute(query)).fetchall()
            if {request_id for _, request_id, _ in rows} >= wanted:
                return rows
            await asyncio.sleep(0.1)


async def test_known_keys_are_served_and_usage_is_exact_while_the_database_is_unavailable(
    postgres: Postgres, tmp_path: Path
) -> None:
    database, config = postgres.create("test_outage"), tmp_path / "umg.yaml"
    config.write_text(f"database: {database}\n{SANDBOX}overload: {{lag: 10}}\n")
    store = await open_store(database, tmp_path)
    known = [(await ApiKeys(store).create(name))[1] for name in ("one", "two", "three")]
    await store.aclose()
    arguments = ("--config", str(config), "--workers", "2")
    async with serve(tmp_path / "data", *arguments, environment=ENVIRONMENT) as served:
        url, workers = served.http, workers_of(served)
        async with loaded(url, known) as load:
            await load.until_answered(PHASE_CALLS)
            assert await unknown(url) == {(401, None)}
            await asyncio.to_thread(postgres.stop)
            try:
                await load.until_answered(PHASE_CALLS)
                assert await unknown(url) == {(503, "1")}
                await until_ready(url, away=("database",))
                await load.until_answered(PHASE_CALLS)
            finally:
                await asyncio.to_thread(postgres.start)
            await until_ready(url, away=())
            await load.until_answered(PHASE_CALLS)
            async with asyncio.timeout(60):
                while await unknown(url) != {(401, None)}:
                    await pause()
        assert load.statuses.keys() == {200}, load.statuses
        rows = await records_of(database, load.sent)
        assert Counter(request_id for _, request_id, _ in rows) == Counter(load.sent)
        assert min(tokens for *_, tokens in rows) > 0
        assert len({record_id.partition("-")[0] for record_id, *_ in rows}) == 2  # each worker served some calls
        assert workers_of(served) == workers
        failed = [json.loads(line) for line in served.log if "writing usage records failed" in line]
        assert 1 <= len(failed) <= 2, failed  # once for each worker
        assert all("exc_info" not in line for line in failed), failed
