"""Budgets of keys, as callers meet them: exactly the budget is spent, also by several processes and through SIGKILL."""

import asyncio
import re
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import msgspec
import openai
import pytest
from aiohttp import web

from tests.support.accounts import new_organization, new_project, rows_of
from tests.support.databases import Database, Postgres
from tests.support.gateways import KEY, Running, channel, running
from tests.support.processes import serve
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.budget_settings import Budget
from umg_grpc.access.caller_identity import Caller
from umg_grpc.access.usage_record_writer import UsageLog
from umg_grpc.base.errors import UmgError
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config.config_values import Retention
from umg_grpc.service.pipeline.usage_recording import KILLED_STATUS
from umg_grpc.store import open_store
from umg_grpc.store.budget_accounts import (
    NO_BALANCE,
    Balance,
    BudgetAccounts,
    Demand,
    LeaseId,
    end_hold,
    hold,
    period_end,
    period_start,
)
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.in_flight_record_file import OPEN_SUFFIX, records_of
from umg_grpc.store.usage_parts import CallFilter
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords
from umg_grpc.v1 import pb, rpc

CREDIT = 1_000_000
ANSWER = {
    "id": "c", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12},
}  # fmt: skip
PRICE = "models: {m: {price: {request: 1}}}\n"
"""One credit for each call of `m`, independent of its tokens."""


class Provider:
    """Provider of chat completions that counts the calls and answers when it is released; it fails at once."""

    def __init__(self) -> None:
        self.released = asyncio.Event()
        self.arrived = asyncio.Semaphore(0)
        self.calls = 0
        self.failures = 0

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.calls += 1
        self.arrived.release()
        if self.failures:
            self.failures -= 1
            return web.json_response({"error": {"message": "down"}}, status=500)
        await self.released.wait()
        return web.json_response(ANSWER)

    async def wait_arrived(self, count: int) -> None:
        for _ in range(count):
            await self.arrived.acquire()


@asynccontextmanager
async def provider_config(database: str = "sqlite") -> AsyncGenerator[tuple[Provider, str], None]:
    provider, app = Provider(), web.Application()
    app.router.add_post("/chat/completions", provider.answer)
    async with serving(app) as url:
        channels = channel("one", "chat", url, "m") + channel("other", "chat", url, "m")
        yield provider, f"database: {database}\nchannels:\n{channels}{PRICE}"


async def new_key(gateway: Running, budget: int, period: str = "") -> tuple[str, str]:
    """Return the id and the secret of a key with a budget in micro-credits."""
    keys = ApiKeys(gateway.service.store)
    key, secret = await keys.create(f"spender of {budget}", budget_micro_credits=budget, budget_period=period)
    return key.key_id, secret


async def post(session: aiohttp.ClientSession, url: str, key: str, **fields: object) -> tuple[int, dict[str, Any]]:
    body = {"model": "m", "messages": [{"role": "user", "content": "x"}], **fields}
    headers = {"authorization": f"Bearer {key}"}
    async with session.post(f"{url}/v1/chat/completions", json=body, headers=headers) as response:
        return response.status, await response.json()


async def spent(database: str, data: Path, key_id: str) -> Balance:
    store = await open_store(database, data)
    try:
        return (await BudgetAccounts(store).balances({key_id: 0})).get(key_id, NO_BALANCE)
    finally:
        await store.aclose()


async def admit_ten(
    provider: Provider, urls: list[str], *keys: str, calls_made: int = 50, owner: str = "this API key"
) -> None:
    """Make parallel calls with a budget for 10, of which exactly 10 reach the provider and are answered."""
    connector, refused = aiohttp.TCPConnector(limit=0), calls_made - 10
    async with aiohttp.ClientSession(connector=connector) as session:
        places = [(urls[number % len(urls)], keys[number // len(urls) % len(keys)]) for number in range(calls_made)]
        calls = [asyncio.create_task(post(session, *place)) for place in places]
        rejections: list[tuple[int, dict[str, Any]]] = []
        for call in asyncio.as_completed(calls):
            rejections.append(await call)
            if len(rejections) == refused:
                await provider.wait_arrived(10)
                provider.released.set()
    statuses = [status for status, _ in rejections]
    assert (statuses[:refused].count(429), statuses[refused:].count(200), provider.calls) == (refused, 10, 10), statuses
    message = rejections[0][1]["error"]["message"]
    assert message.startswith(f"{owner} has a budget of 10.000000 credits, of which 0.000000 are spent")
    amounts = re.findall(r"([\d.]+) (?:reserved by calls in flight|leased by other processes of the gateway)", message)
    assert sum(map(float, amounts)) == 10, message


async def test_of_fifty_parallel_calls_a_budget_for_ten_admits_exactly_ten(tmp_path: Path) -> None:
    async with provider_config() as (provider, config):
        async with running(config, tmp_path) as gateway:
            key_id, key = await new_key(gateway, 10 * CREDIT)
            await admit_ten(provider, [gateway.url], key)
        assert await spent("sqlite", tmp_path, key_id) == Balance(10 * CREDIT, 0)


async def test_two_replicas_on_postgresql_admit_exactly_ten(tmp_path: Path, postgres: Postgres) -> None:
    database = postgres.create(tmp_path.name)
    async with provider_config(database) as (provider, config):
        async with running(config, tmp_path / "a") as one, running(config, tmp_path / "b") as other:
            key_id, key = await new_key(one, 10 * CREDIT)
            await admit_ten(provider, [one.url, other.url], key)
        assert await spent(database, tmp_path, key_id) == Balance(10 * CREDIT, 0)


async def test_a_project_budget_for_ten_admits_ten_whichever_key_is_used(tmp_path: Path, postgres: Postgres) -> None:
    database = postgres.create(tmp_path.name)
    async with provider_config(database) as (provider, config):
        async with running(config, tmp_path / "a") as one, running(config, tmp_path / "b") as other:
            store = one.service.store
            acme = await new_organization(store, "acme", budgets=rows_of(Budget("month", 1000 * CREDIT)))
            search = await new_project(store, "search", acme, budgets=rows_of(Budget("", 10 * CREDIT)))
            keys = [
                (await ApiKeys(store).create(f"key {number}", project_id=search, budget_micro_credits=20 * CREDIT))[1]
                for number in range(5)
            ]
            await admit_ten(provider, [one.url, other.url], *keys, calls_made=100, owner="the project `search`")
        assert await spent(database, tmp_path, f"{search}/total") == Balance(10 * CREDIT, 0)


async def test_the_keys_of_a_project_share_its_limits(tmp_path: Path) -> None:
    async with provider_config() as (provider, config), running(config, tmp_path) as gateway:
        provider.released.set()
        store = gateway.service.store
        search = await new_project(store, "search", requests_per_minute=3)
        keys = [(await ApiKeys(store).create(f"key {number}", project_id=search))[1] for number in range(2)]
        keys.append((await ApiKeys(store).create("limited", project_id=search, requests_per_minute=100))[1])
        async with aiohttp.ClientSession() as session:
            found = [await post(session, gateway.url, key) for key in keys]
            assert [status for status, _ in found] == [200, 200, 200]
            status, body = await post(session, gateway.url, keys[0])
            message = "the project of this API key has made its 3 requests of a minute"
            assert (status, body["error"]["message"][: len(message)]) == (429, message)
            headers = {"authorization": f"Bearer {keys[2]}"}
            body = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
            async with session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers) as response:
                limits = [response.headers[f"x-ratelimit-{name}-requests"] for name in ("limit", "remaining")]
                assert (response.status, limits) == (429, ["3", "0"])  # the tighter one


async def test_two_workers_on_sqlite_admit_exactly_ten(tmp_path: Path) -> None:
    async with provider_config() as (provider, config):
        path = tmp_path / "umg.yaml"
        path.write_text(config)
        arguments = ("--config", str(path), "--workers", "2")
        async with serve(tmp_path, *arguments, environment={"UMG_API_KEY": KEY}) as process:
            store = await open_store("sqlite", tmp_path, create=False)
            key, secret = await ApiKeys(store).create("spender", budget_micro_credits=10 * CREDIT)
            await store.aclose()
            await admit_ten(provider, [process.http], secret)
            assert await process.stop() == 0
        assert await spent("sqlite", tmp_path, key.key_id) == Balance(10 * CREDIT, 0)


async def test_a_call_that_fails_over_is_charged_once_and_a_failed_call_is_free(tmp_path: Path) -> None:
    async with provider_config() as (provider, config):
        provider.released.set()
        async with running(config, tmp_path) as gateway, aiohttp.ClientSession() as session:
            key_id, key = await new_key(gateway, 2 * CREDIT)
            provider.failures = 1
            assert (await post(session, gateway.url, key))[0] == 200
            provider.failures = 100
            assert (await post(session, gateway.url, key))[0] in {502, 503}
            provider.failures = 0
        assert await spent("sqlite", tmp_path, key_id) == Balance(CREDIT, 0)


SANDBOX_PRICES = """
channels: [{name: sandbox, protocols: [sandbox], pace: PACE, models: [famO-5, famO-5-mini]}]
models: {famO-5: {cache: 10m, price: {request: 1}}}
"""


async def test_a_cancelled_stream_is_charged_once(tmp_path: Path) -> None:
    async with running(SANDBOX_PRICES.replace("PACE", "20"), tmp_path) as gateway:
        key_id, key = await new_key(gateway, 10 * CREDIT)
        messages = [{"role": "user", "content": "word " * 200}]
        body = {"model": "famO-5", "messages": messages, "stream": True}
        headers = {"authorization": f"Bearer {key}"}
        async with aiohttp.ClientSession() as session:
            response = await session.post(f"{gateway.url}/v1/chat/completions", json=body, headers=headers)
            while b'"content":"' not in await response.content.readline():
                pass
            response.close()
    assert await spent("sqlite", tmp_path, key_id) == Balance(CREDIT, 0)


async def test_only_answers_of_providers_for_models_with_a_price_are_charged(tmp_path: Path) -> None:
    async with (
        running(SANDBOX_PRICES.replace("PACE", "0"), tmp_path) as gateway,
        aiohttp.ClientSession() as session,
    ):
        key_id, key = await new_key(gateway, 2 * CREDIT, "month")
        fields = {"model": "famO-5", "temperature": 0}
        for _ in range(3):  # one response and two cached ones
            assert (await post(session, gateway.url, key, **fields))[0] == 200
        assert (await post(session, gateway.url, key, model="famO-5", messages=[]))[0] == 400
        assert (await post(session, gateway.url, key, model="famO-5", temperature=0.5))[0] == 200
        assert (await post(session, gateway.url, key, model="famO-5", temperature=0.6))[0] == 429
        assert (await post(session, gateway.url, key, model="famO-5-mini"))[0] == 200  # it has no price
        headers = {"authorization": f"Bearer {key}"}
        count = {"model": "famO-5", "messages": [{"role": "user", "content": "x"}]}
        for method, path in (("GET", "/v1/models"), ("POST", "/v1/messages/count_tokens")):
            sent = session.request(
                method, gateway.url + path, headers=headers, json=count if method == "POST" else None
            )
            async with sent as response:
                assert response.status == 200, await response.text()
        async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=key) as client:
            with pytest.raises(openai.RateLimitError) as caught:
                await client.responses.create(model="famO-5", input="x")
        assert caught.value.response.headers["x-should-retry"] == "false"
        end = period_end("month", period_start("month", datetime.now(UTC)))
        assert end is not None
        assert f"{end:%Y-%m-%dT00:00:00Z}" in caught.value.message
        assert "of which 2.000000 are spent; " in caught.value.message  # none is in flight
        async with asyncio.timeout(60):  # records are in the database about a second after the calls
            while True:
                async with session.get(f"{gateway.url}/admin/v1/keys/{key_id}", headers=gateway.headers) as response:
                    shown = (await response.json())["key"]
                if shown["spent_micro_credits"]:
                    break
        assert (shown["spent_micro_credits"], shown["settings"]["budget_period"]) == (2 * CREDIT, "month")


async def test_a_killed_gateway_loses_neither_the_spent_amount_nor_the_remaining_one(database: Database) -> None:
    async with provider_config(database.url) as (provider, config):
        provider.released.set()
        path = database.data_dir / "umg.yaml"
        path.write_text(config)
        arguments, environment = ("--config", str(path)), {"UMG_API_KEY": KEY}
        async with serve(database.data_dir, *arguments, environment=environment) as process:
            store = await open_store(database.url, database.data_dir, create=False)
            key, secret = await ApiKeys(store).create("spender", budget_micro_credits=100 * CREDIT)
            await store.aclose()
            async with aiohttp.ClientSession() as session:
                for _ in range(40):
                    assert (await post(session, process.url, secret))[0] == 200
            await process.stop(signal.SIGKILL)
        async with (
            serve(database.data_dir, *arguments, environment=environment) as process,
            aiohttp.ClientSession() as session,
        ):
            answered = 0
            async with asyncio.timeout(60):
                while answered < 60:  # the lease of the killed process is returned after some seconds
                    answered += (await post(session, process.url, secret))[0] == 200
            assert (await post(session, process.url, secret))[0] == 429
            assert await process.stop() == 0
        assert provider.calls == 100
        assert await spent(database.url, database.data_dir, key.key_id) == Balance(100 * CREDIT, 0)


async def test_calls_in_flight_at_a_kill_are_charged_once_at_their_estimate(database: Database) -> None:
    async with provider_config(database.url) as (provider, config):
        path = database.data_dir / "umg.yaml"
        path.write_text(config)
        arguments, environment = ("--config", str(path)), {"UMG_API_KEY": KEY}
        async with serve(database.data_dir, *arguments, environment=environment) as process:
            store = await open_store(database.url, database.data_dir, create=False)
            key, secret = await ApiKeys(store).create("spender", budget_micro_credits=100 * CREDIT)
            await store.aclose()
            async with aiohttp.ClientSession() as session:
                calls = [asyncio.create_task(post(session, process.url, secret, max_tokens=9)) for _ in range(5)]
                await provider.wait_arrived(5)
                await process.stop(signal.SIGKILL)
                provider.released.set()
                await asyncio.gather(*calls, return_exceptions=True)
        for _ in range(2):  # the second start finds nothing left to charge
            async with serve(database.data_dir, *arguments, environment=environment) as process:
                assert await process.stop() == 0
        assert await spent(database.url, database.data_dir, key.key_id) == Balance(5 * CREDIT, 0)
        store = await open_store(database.url, database.data_dir)
        [entry] = await UsageRecords(store).sums(["key"], CallFilter(datetime.fromtimestamp(0, UTC)))
        await store.aclose()
        assert (entry.requests, entry.failed, entry.sums["output_tokens"]) == (5, 5, 45)


async def test_a_failed_attempt_is_not_in_flight(tmp_path: Path) -> None:
    async with provider_config() as (provider, config), running(config, tmp_path) as gateway:
        _, secret = await new_key(gateway, 100 * CREDIT)
        provider.failures = 2
        async with aiohttp.ClientSession() as session:
            call = asyncio.create_task(post(session, gateway.url, secret))
            await provider.wait_arrived(3)
            assert in_flight(tmp_path) == 1, "the third attempt, which is a retry of the first or the second"
            provider.released.set()
            assert (await call)[0] == 200
            assert in_flight(tmp_path) == 0
            provider.failures = 100
            assert (await post(session, gateway.url, secret))[0] == 502
            assert in_flight(tmp_path) == 0


async def test_a_task_keeps_its_reservation_through_the_end_of_the_process(database: Database) -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    store = await open_store(database.url, database.data_dir)
    key, _ = await ApiKeys(store).create("spender", budget_micro_credits=100)
    caller, accounts = Caller(key.key_id, "spender", (), None, None, budget_micro_credits=100), BudgetAccounts(store)
    retention = Retention(ttl=3600, max_bytes=10**6)
    log = UsageLog(store, database.data_dir, retention, lambda: now)
    log.start()
    reservation = await log.budgets.reserve(caller, 40)
    assert reservation is not None
    async with store.write() as session:
        held = await hold(session, reservation.accounts[0], "one", reservation.micro_credits)
    reservation.hand_over()
    await log.aclose()
    assert await accounts.balances({key.key_id: 0}) == {key.key_id: Balance(0, 40)}, "only the task holds an amount"

    later = UsageLog(store, database.data_dir, retention, lambda: now + timedelta(days=9))
    later.start()
    with pytest.raises(UmgError, match=r"0\.000000 are spent and 0\.000040 reserved by calls in flight; "):
        await later.budgets.reserve(caller, 61)
    for expected in (True, False):  # the second time is that of another process
        async with store.write() as session:
            assert await end_hold(session, held, 25) is expected
    await later.aclose()
    latest = UsageLog(store, database.data_dir, retention, lambda: now + timedelta(days=9))
    remaining = await latest.budgets.reserve(caller, 75)
    assert remaining is not None
    remaining.end(0)
    await latest.aclose()
    assert await accounts.balances({key.key_id: 0}) == {key.key_id: Balance(25, 0)}
    await store.aclose()


async def test_a_task_that_fails_costs_nothing(database: Database) -> None:
    store = await open_store(database.url, database.data_dir)
    lease = LeaseId("key", 0, "process")
    await BudgetAccounts(store).lease(lease, "directory", 100, Demand(50))
    async with store.write() as session:
        held = await hold(session, lease, "one", 50)
    async with store.write() as session:
        assert await end_hold(session, held, 0)
    assert (await BudgetAccounts(store).balances({"key": 0})).get("key", NO_BALANCE) == NO_BALANCE
    await store.aclose()


@pytest.mark.parametrize(("limit", "reserved"), [("", 128_000), ("output_tokens: 50", 50)], ids=["unknown", "known"])
async def test_a_maximum_above_that_of_the_model_reserves_no_more(tmp_path: Path, limit: str, reserved: int) -> None:
    async with provider_config() as (provider, config):
        priced = config.replace(PRICE, f"models: {{m: {{price: {{output: 1}}, capabilities: {{{limit}}}}}}}\n")
        async with running(priced, tmp_path) as gateway, aiohttp.ClientSession() as session:
            provider.released.set()
            _, enough = await new_key(gateway, reserved)
            _, short = await new_key(gateway, reserved - 1)
            assert (await post(session, gateway.url, enough, max_tokens=100_000_000))[0] == 200
            assert (await post(session, gateway.url, short, max_tokens=100_000_000))[0] == 429


async def test_a_hedged_call_is_charged_once(tmp_path: Path) -> None:
    async with provider_config() as (provider, config):
        hedged = config.replace("models: {m: {", "models: {m: {hedge: 0.01, ")
        async with running(hedged, tmp_path) as gateway:
            key_id, secret = await new_key(gateway, 100 * CREDIT)
            async with aiohttp.ClientSession() as session:
                call = asyncio.create_task(post(session, gateway.url, secret))
                await provider.wait_arrived(2)
                provider.released.set()
                assert (await call)[0] == 200
        assert provider.calls == 2
        assert await spent("sqlite", tmp_path, key_id) == Balance(CREDIT, 0)


async def test_a_grpc_caller_beyond_the_budget_gets_its_amounts(tmp_path: Path) -> None:
    async with provider_config() as (provider, config), running(config, tmp_path) as gateway:
        provider.released.set()
        key_id, secret = await new_key(gateway, 10 * CREDIT)
        prompt = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="x"))])
        request = pb.GenerateRequest(model="m", messages=[prompt])
        metadata = [("authorization", f"Bearer {secret}")]
        async with grpc.aio.insecure_channel(gateway.grpc) as face:
            stub = rpc.GenerationServiceStub(face)
            calls = [stub.Generate(request, metadata=metadata) for _ in range(50)]
            results = await asyncio.gather(*calls, return_exceptions=True)
        errors = [result for result in results if isinstance(result, grpc.aio.AioRpcError)]
        assert (len(errors), provider.calls) == (40, 10)
        assert {error.code() for error in errors} == {grpc.StatusCode.RESOURCE_EXHAUSTED}
        error = from_rpc(errors[0])
        assert error.reason == pb.ERROR_REASON_QUOTA_EXHAUSTED
        assert error.metadata["budget"] == "10.000000"
    assert await spent("sqlite", tmp_path, key_id) == Balance(10 * CREDIT, 0)


def in_flight(data: Path) -> int:
    """Return the number of calls that would be charged if the gateway was killed now."""
    open_records = [
        msgspec.json.decode(record, type=UsageRecord)
        for path in (data / "usage").glob(f"*{OPEN_SUFFIX}")
        for record in records_of(path.parent, path.stem)
    ]
    return sum(record.status == KILLED_STATUS for record in open_records)


@dataclass(frozen=True)
class Period:
    id: str
    period: str
    time: str
    start: str
    end: str


PERIODS = [
    Period("a day", "day", "2026-02-28T23:59:59+00:00", "2026-02-28T00:00:00+00:00", "2026-03-01T00:00:00+00:00"),
    Period("a day by UTC", "day", "2026-03-01T00:30:00+01:00", "2026-02-28T00:00:00+00:00", "2026-03-01T00:00:00+00:00"),
    Period("a month", "month", "2026-11-30T12:00:00+00:00", "2026-11-01T00:00:00+00:00", "2026-12-01T00:00:00+00:00"),
    Period("a year's last", "month", "2026-12-01T00:00:00+00:00", "2026-12-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00"),
]  # fmt: skip


@pytest.mark.parametrize("case", PERIODS, ids=lambda case: case.id)
def test_a_period_begins_and_ends_in_utc(case: Period) -> None:
    start = period_start(case.period, datetime.fromisoformat(case.time))
    assert start == datetime.fromisoformat(case.start).timestamp()
    assert period_end(case.period, start) == datetime.fromisoformat(case.end)


async def test_a_budget_begins_anew_with_its_period_and_a_reservation_may_outlive_it(tmp_path: Path) -> None:
    now = datetime(2026, 1, 31, 23, 59, tzinfo=UTC)
    store = await open_store("sqlite", tmp_path)
    store.clock = GivenClock(lambda: now)
    log = UsageLog(store, tmp_path, Retention(ttl=3600, max_bytes=10**6), lambda: now)
    try:
        caller = Caller("key_1", "app", (), None, None, budget_micro_credits=10, budget_period="day")
        january = await log.budgets.reserve(caller, 10)
        assert january is not None
        with pytest.raises(UmgError) as caught:
            await log.budgets.reserve(caller, 1)
        assert caught.value.reason == pb.ERROR_REASON_QUOTA_EXHAUSTED
        assert caught.value.metadata["reset_time"] == "2026-02-01T00:00:00Z"
        now = datetime(2026, 2, 1, tzinfo=UTC)
        february = await log.budgets.reserve(caller, 10)
        assert february is not None
        february.end(0)
        february.end(0)
        january.end(0)
        again = await log.budgets.reserve(caller, 10)
        assert again is not None
        with pytest.raises(UmgError):
            await log.budgets.reserve(caller, 1)
    finally:
        await log.aclose()
        await store.aclose()


async def test_without_usage_records_a_key_with_a_budget_is_refused(tmp_path: Path) -> None:
    config = SANDBOX_PRICES.replace("PACE", "0") + "usage: {enabled: false}\n"
    async with running(config, tmp_path) as gateway, aiohttp.ClientSession() as session:
        _, key = await new_key(gateway, CREDIT)
        status, answer = await post(session, gateway.url, key, model="famO-5")
    assert (status, "usage: {enabled: true}" in answer["error"]["message"]) == (503, True)
