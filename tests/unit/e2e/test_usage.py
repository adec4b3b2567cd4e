"""Usage records of calls, as callers make them: their tokens and cost, through kills and outages."""

import asyncio
import os
import re
import shutil
import signal
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.support.databases import Database, Postgres
from tests.support.gateways import KEY, Running, running
from tests.support.processes import serve
from umg_grpc.store import open_store
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords

CONFIG = """
database: {database}
channels:
  - {{name: sandbox, protocols: [sandbox], pace: {pace}, models: [famO-5-mini, text-embedding-3-small]}}
models:
  famO-5-mini: {{price: {{input: 1.5, output: 2}}}}
"""
CHAT = {"model": "famO-5-mini", "messages": [{"role": "user", "content": "Say hello"}]}
CALLERS = 4
ALL = datetime(1970, 1, 1, tzinfo=UTC)


async def found(database: str, data: Path, *request_ids: str) -> list[UsageRecord]:
    """Return the records of calls in the database, which no gateway has open."""
    store = await open_store(database, data)
    try:
        records = UsageRecords(store)
        return [record for request_id in request_ids for record in await records.find(request_id)]
    finally:
        await store.aclose()


async def total(database: str, data: Path) -> int:
    store = await open_store(database, data)
    try:
        return sum(each.requests for each in await UsageRecords(store).sums([], CallFilter(ALL)))
    finally:
        await store.aclose()


async def post(url: str, key: str, body: dict[str, Any], request_id: str, path: str = "/v1/chat/completions") -> str:
    headers = {"authorization": f"Bearer {key}", "x-request-id": request_id}
    async with aiohttp.ClientSession() as session, session.post(url + path, json=body, headers=headers) as answer:
        text = await answer.text()
        assert answer.status == 200, text
        return text


async def get(url: str) -> str:
    async with aiohttp.ClientSession() as session, session.get(url) as answer:
        return await answer.text()


async def test_each_admitted_call_has_one_record_with_its_tokens_and_cost(tmp_path: Path) -> None:
    async with running(CONFIG.format(database="sqlite", pace=0), tmp_path) as gateway:
        await post(gateway.url, gateway.key, CHAT, "whole")
        await post(gateway.url, gateway.key, {**CHAT, "stream": True}, "stream")
        body = {"model": "text-embedding-3-small", "input": "Hello"}
        await post(gateway.url, gateway.key, body, "embedding", "/v1/embeddings")
        await post(gateway.url, gateway.key, {**CHAT, "max_tokens": 9}, "count", "/v1/messages/count_tokens")
        failing = {**CHAT, "messages": [{"role": "user", "content": "[[fail]]"}]}
        with pytest.raises(AssertionError, match="error"):
            await post(gateway.url, gateway.key, failing, "failed")
        figures = await get(f"{gateway.url}/metrics")
    records = await found("sqlite", tmp_path, "whole", "stream", "embedding", "count", "failed")
    assert [record.request_id for record in records] == ["whole", "stream", "embedding", "failed"]
    whole, stream, embedding, failed = records
    for record in (whole, stream):
        assert record.micro_credits == -(-(record.input_tokens * 1_500_000 + record.output_tokens * 2_000_000) // 10**6)
        assert record.micro_credits > 0
        assert (record.status, record.channel, record.operation, record.face) == ("OK", "sandbox", "generate", "chat")
    assert (embedding.operation, embedding.input_tokens > 0, embedding.micro_credits) == ("embed", True, 0)
    assert (failed.status != "OK", failed.reason != "", failed.micro_credits) == (True, True, 0)
    [cost] = re.findall(r'umg_cost_credits_total\{channel="sandbox",model="famO-5-mini"\} (\S+)', figures)
    assert round(float(cost) * 1_000_000) == whole.micro_credits + stream.micro_credits
    [streams] = re.findall(r"umg_first_output_seconds_count\{.*\} (\S+)", figures)
    assert float(streams) == 1


async def test_a_cached_answer_costs_nothing(tmp_path: Path) -> None:
    config = CONFIG.format(database="sqlite", pace=0).replace("{price:", "{cache: 10m, price:")
    async with running(config, tmp_path) as gateway:
        await post(gateway.url, gateway.key, {**CHAT, "temperature": 0}, "made")
        await post(gateway.url, gateway.key, {**CHAT, "temperature": 0}, "cached")
    made, cached = await found("sqlite", tmp_path, "made", "cached")
    assert (made.cached, made.micro_credits > 0) == (False, True)
    assert (cached.cached, cached.input_tokens, cached.micro_credits) == (True, 0, 0)


async def test_a_stream_whose_caller_leaves_is_billed_by_estimate(tmp_path: Path) -> None:
    async with running(CONFIG.format(database="sqlite", pace=20), tmp_path) as gateway:
        body = {**CHAT, "stream": True, "messages": [{"role": "user", "content": "word " * 200}]}
        headers = {**gateway.headers, "x-request-id": "left"}
        async with aiohttp.ClientSession() as session:
            response = await session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers)
            while b'"content":"' not in await response.content.readline():
                pass
            response.close()
    [left] = await found("sqlite", tmp_path, "left")
    assert (left.status, left.estimated) == ("CANCELLED", True)
    assert left.micro_credits > 0


async def test_without_records_nothing_is_written(tmp_path: Path) -> None:
    config = CONFIG.format(database="sqlite", pace=0) + "usage: {enabled: false}\n"
    async with running(config, tmp_path) as gateway:
        await post(gateway.url, gateway.key, CHAT, "none")
    assert await found("sqlite", tmp_path, "none") == []
    assert not (tmp_path / "usage").exists()


async def test_records_that_the_journal_does_not_take_reach_the_database(tmp_path: Path) -> None:
    async with running(CONFIG.format(database="sqlite", pace=0), tmp_path) as gateway:
        shutil.rmtree(tmp_path / "usage")
        for number in range(100):
            await post(gateway.url, KEY, CHAT, f"kept-{number}")
        figures = await get(f"{gateway.url}/metrics")
    assert "umg_usage_records_lost_total{" not in figures
    assert len(await found("sqlite", tmp_path, *(f"kept-{number}" for number in range(100)))) == 100


async def call_until_it_ends(make_call: Callable[[str], Awaitable[str]], caller: int, answered: list[str]) -> None:
    """Make calls one after another until the gateway is gone, and note each complete answer."""
    number = 0
    with suppress(aiohttp.ClientError):
        while True:
            await make_call(f"{caller}-{number}")
            answered.append(f"{caller}-{number}")
            number += 1


def kill_all(parent: int) -> None:
    """Kill a gateway and its workers, which have sessions of their own."""
    workers = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    for process in (parent, *map(int, workers)):
        os.kill(process, signal.SIGKILL)


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_kill_under_load_loses_and_doubles_no_record(database: Database, workers: str) -> None:
    config, answered = database.data_dir / "umg.yaml", list[str]()
    config.write_text(CONFIG.format(database=database.url, pace=0))
    arguments = ("--config", str(config), "--workers", workers)
    async with serve(database.data_dir, *arguments) as served:

        def make_call(request_id: str) -> Awaitable[str]:
            streamed = request_id.endswith(("1", "3", "5"))
            return post(served.url, served.key, {**CHAT, "stream": streamed}, request_id)

        callers = [asyncio.create_task(call_until_it_ends(make_call, caller, answered)) for caller in range(CALLERS)]
        while len(answered) < 100:
            await asyncio.wait(callers, timeout=0.01)
        kill_all(served.process.pid)
        await asyncio.gather(*callers)
    async with serve(database.data_dir, *arguments) as served:
        assert await served.stop() == 0
    records = await found(database.url, database.data_dir, *answered)
    counts = Counter(record.request_id for record in records)
    assert {request_id: counts[request_id] for request_id in answered if counts[request_id] != 1} == {}
    unanswered = await total(database.url, database.data_dir) - len(answered)
    assert 0 <= unanswered <= CALLERS, "each caller has at most one call in flight"


async def test_calls_during_an_outage_of_the_database_are_recorded_after_it(postgres: Postgres, tmp_path: Path) -> None:
    url = postgres.create("usage_outage")

    async def serve_during_the_outage(gateway: Running) -> None:
        await post(gateway.url, gateway.key, CHAT, "before")
        postgres.stop()
        try:
            for number in range(5):
                await post(gateway.url, gateway.key, CHAT, f"during-{number}")
        finally:
            postgres.start()
        await post(gateway.url, gateway.key, CHAT, "after")

    async with running(CONFIG.format(database=url, pace=0), tmp_path) as gateway:
        await serve_during_the_outage(gateway)
    expected = ["before", *(f"during-{number}" for number in range(5)), "after"]
    assert [record.request_id for record in await found(url, tmp_path, *expected)] == expected
    assert await total(url, tmp_path) == len(expected)
