"""A gateway whose disk is full, as callers and load balancers see it: no call is free, and no record is lost."""

import asyncio
import signal
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.databases import Postgres
from tests.support.full_disks import LimitedFiles, disk_at
from tests.support.processes import Served, serve
from tests.unit.e2e.test_usage import CHAT, CONFIG, found, get, total
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.store import open_store
from umg_grpc.store.budget_accounts import Balance, BudgetAccounts
from umg_grpc.store.in_flight_record_file import records_of

CREDIT = 1_000_000
CALLS = 300
CALLERS = 6
DISK_SIZE = "24m"
Readiness = tuple[int, str, tuple[str, ...]]
READY: Readiness = (200, "ready", ())
FULL: Readiness = (503, "unavailable", ("journal",))


async def readiness(served: Served) -> Readiness:
    """Return the status of `/readyz`, and its state and reasons."""
    async with aiohttp.ClientSession() as session, session.get(f"{served.http}/readyz") as response:
        body = await response.json()
        return response.status, body["status"], tuple(reason.partition(":")[0] for reason in body["reasons"])


async def until(served: Served, wanted: Readiness) -> None:
    async with asyncio.timeout(60):
        while await readiness(served) != wanted:  # noqa: ASYNC110  # no event reports a change of it
            await asyncio.sleep(0.05)  # leaves the processor to the gateway


async def call(session: aiohttp.ClientSession, served: Served, key: str, request_id: str) -> tuple[int, dict[str, Any]]:
    headers = {"authorization": f"Bearer {key}", "x-request-id": request_id}
    async with session.post(f"{served.http}/v1/chat/completions", json=CHAT, headers=headers) as response:
        return response.status, await response.json()


async def call_many(served: Served, key: str, name: str, count: int) -> list[str]:
    """Make calls, some of them in parallel. Return the ids of the calls that were answered with 200."""
    numbers, answered = iter(range(count)), list[str]()
    async with aiohttp.ClientSession() as session:

        async def make_calls() -> None:
            for number in numbers:
                status, _ = await call(session, served, key, f"{name}-{number}")
                if status == 200:
                    answered.append(f"{name}-{number}")

        await asyncio.gather(*(make_calls() for _ in range(CALLERS)))
    return answered


async def new_key(database: str, data: Path) -> tuple[str, str]:
    """Return the id and the secret of a key with a budget."""
    store = await open_store(database, data)
    try:
        key, secret = await ApiKeys(store).create("spender", budget_micro_credits=CREDIT)
    finally:
        await store.aclose()
    return key.key_id, secret


async def balance(database: str, data: Path, key_id: str) -> Balance:
    store = await open_store(database, data)
    try:
        return (await BudgetAccounts(store).balances({key_id: 0}))[key_id]
    finally:
        await store.aclose()


@asynccontextmanager
async def limited(served: Served) -> AsyncIterator[None]:
    """Let the gateway's files grow no more, as a disk that is full while its journal is."""
    disk = LimitedFiles()
    disk.fill(served.process.pid)
    try:
        yield
    finally:
        disk.empty(served.process.pid)


async def test_calls_on_a_full_disk_are_charged_and_the_process_is_not_ready(
    postgres: Postgres, tmp_path: Path
) -> None:
    url, config = await postgres.create_prepared("test_full_disk"), tmp_path / "config.yaml"
    config.write_text(CONFIG.format(database=url, pace=0))
    key_id, key = await new_key(url, tmp_path)
    with disk_at(tmp_path / "disk", DISK_SIZE) as disk:
        async with serve(tmp_path / "disk" / "data", "--config", str(config)) as served:
            answered = await call_many(served, key, "before", 5)
            assert await readiness(served) == READY
            disk.fill(served.process.pid)
            answered += await call_many(served, key, "full", CALLS)
            await until(served, FULL)
            async with grpc.aio.insecure_channel(served.grpc) as channel:
                watch = health_pb2_grpc.HealthStub(channel).Watch(health_pb2.HealthCheckRequest(service=""))
                state = health_pb2.HealthCheckResponse
                async with asyncio.timeout(60):
                    while (await watch.read()).status != state.NOT_SERVING:
                        pass
                    disk.empty(served.process.pid)
                    assert (await watch.read()).status == state.SERVING
                watch.cancel()
            await until(served, READY)
            answered += await call_many(served, key, "after", 5)
            assert "umg_usage_records_lost_total{" not in await get(f"{served.http}/metrics")
            assert await served.stop() == 0
    assert len(answered) == CALLS + 10
    records = await found(url, tmp_path, *answered)
    assert Counter(record.request_id for record in records) == dict.fromkeys(answered, 1)
    assert await balance(url, tmp_path, key_id) == (sum(record.micro_credits for record in records), 0)


async def test_a_gateway_starts_on_a_full_disk_and_writes_the_records_of_a_killed_one(
    postgres: Postgres, tmp_path: Path
) -> None:
    url, config = await postgres.create_prepared("test_start_full"), tmp_path / "config.yaml"
    config.write_text(CONFIG.format(database=url, pace=0))
    with disk_at(tmp_path / "disk", DISK_SIZE) as disk:
        data = tmp_path / "disk" / "data"
        async with serve(data, "--config", str(config)) as served:
            disk.fill(served.process.pid)
            answered = await call_many(served, served.key, "killed", 50)
            await served.stop(signal.SIGKILL)
        async with serve(data, "--config", str(config)) as served:
            disk.fill(served.process.pid)
            await until(served, FULL)
            answered += await call_many(served, served.key, "started", 50)
            assert await served.stop() == 0
    assert Counter(record.request_id for record in await found(url, tmp_path, *answered)) == dict.fromkeys(answered, 1)
    assert len(answered) == 100


async def test_a_kill_on_a_full_disk_loses_no_record_that_a_file_has(postgres: Postgres, tmp_path: Path) -> None:
    """Without the database and space, some records are in the journal, others in the file of calls in flight, and the
    last ones in memory alone.
    """
    url, config, data = await postgres.create_prepared("test_kill_full"), tmp_path / "config.yaml", tmp_path / "data"
    config.write_text(CONFIG.format(database=url, pace=0))
    async with serve(data, "--config", str(config)) as served:
        await until(served, READY)
        async with limited(served):
            postgres.stop()
            try:
                answered = await call_many(served, served.key, "full", 2 * CALLS)
                await until(served, (503, "unavailable", ("journal", "database")))
                await served.stop(signal.SIGKILL)
                [calls] = (data / "usage").glob("*.open")
                in_flight = len(records_of(data / "usage", calls.stem))
                in_journal = sum(path.read_bytes().count(b"\n") for path in (data / "usage").glob("*.jsonl"))
            finally:
                postgres.start()
    assert len(answered) == 2 * CALLS
    kept = in_flight + in_journal
    assert in_flight > 0 < in_journal, "the test shows the places in files"
    assert kept < 2 * CALLS, "the test shows the place in memory"
    async with serve(data, "--config", str(config)) as served:
        assert await served.stop() == 0
    counts = Counter(record.request_id for record in await found(url, tmp_path, *answered))
    assert set(counts.values()) == {1}
    assert sum(counts.values()) == kept == await total(url, tmp_path)


async def test_a_key_with_a_budget_is_refused_while_neither_takes_records(tmp_path: Path) -> None:
    """The database is a file on the same disk."""
    config, data = tmp_path / "config.yaml", tmp_path / "data"
    config.write_text(CONFIG.format(database="sqlite", pace=0))
    async with serve(data, "--config", str(config)) as served:
        key_id, key = await new_key("sqlite", data)
        answered = await call_many(served, key, "before", 5)
        async with limited(served), aiohttp.ClientSession() as session:
            others = await call_many(served, served.key, "others", CALLS)
            await until(served, FULL)
            async with asyncio.timeout(60):
                while True:
                    status, body = await call(session, served, key, request_id := f"budget-{len(answered)}")
                    if status != 200:
                        break
                    answered.append(request_id)
            assert (status, body["error"]["code"]) == (503, "overloaded")
            assert "neither the disk nor the database takes usage records" in body["error"]["message"]
            others += await call_many(served, served.key, "more", 5)
        await until(served, READY)
        answered += await call_many(served, key, "after", 5)
        assert "umg_usage_records_lost_total{" not in await get(f"{served.http}/metrics")
        assert await served.stop() == 0
    assert len(others) == CALLS + 5
    records = await found("sqlite", data, *answered, *others)
    assert Counter(record.request_id for record in records) == dict.fromkeys((*answered, *others), 1)
    spent = sum(record.micro_credits for record in records if record.key_id == key_id)
    assert await balance("sqlite", data, key_id) == (spent, 0)
