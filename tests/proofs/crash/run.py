"""One run of the crash test: tasks are submitted and polled while their gateways are killed and started again."""

import asyncio
import random
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import grpc
from aiohttp import web
from sqlalchemy import select

from tests.proofs.crash import gateway
from tests.proofs.crash.judge import ENDS, Outcome
from tests.proofs.crash.providers import FAMILIES, Counted, Family, served
from tests.support.proxies import free_ports
from tests.support.replicas import Replica
from tests.support.serving import serving
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.store import open_store
from umg_grpc.store.budget_accounts import NO_BALANCE, BudgetAccounts
from umg_grpc.store.database_constants import SQLITE_KIND
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.usage_tables import UsageRow
from umg_grpc.v1 import pb, rpc

CREDIT = 1_000_000
BUDGET = 1_000_000 * CREDIT
CALLERS = 8
CALL_SECONDS = 20.0
END_SECONDS = 240.0
"""Time for the tasks to end after the last kill."""
STATUS = re.compile(rb'"status":\s*"(\w+)"')
NOTIFIED = frozenset({pb.VIDEO_ENTRY_UNIFIED, pb.VIDEO_ENTRY_D, pb.VIDEO_ENTRY_E_V1})
"""Entries with notifications; that of Entry E 3.0 is left out, since it has to be `https`."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    tasks: int = 300
    kills: int = 20
    seconds: float = 120.0
    """Time in which the tasks are submitted and the gateways are killed."""
    gateways: int = 1
    database: str = SQLITE_KIND
    seed: int = 0
    restarts: bool = True
    """Whether a gateway is started again after a kill."""


@dataclass
class Crash:
    plan: Plan
    directory: Path
    config: Path
    key: str
    ports: Sequence[int]
    chance: random.Random
    task_ids: dict[str, str] = field(default_factory=dict)
    """Tag -> id of the task that the caller got."""
    notified: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    """Tag -> states of its notifications."""
    callback_url: str = ""
    kills: int = 0
    killed_at: float = 0.0
    ended_at: float = 0.0

    @property
    def metadata(self) -> tuple[tuple[str, str]]:
        return (("authorization", f"Bearer {self.key}"),)

    async def receive(self, request: web.Request) -> web.Response:
        """Receive a notification; every fifth is refused at first."""
        if self.chance.random() < 0.2:
            return web.Response(status=503)
        found = STATUS.search(await request.read())
        assert found is not None
        self.notified[request.match_info["tag"]].add(found[1].decode())
        return web.Response()


async def run(plan: Plan, directory: Path) -> Outcome:
    """Run the test. Return all that the callers, the providers, the receiver and the database have."""
    chance, counted = random.Random(plan.seed), Counted()
    key_id, key = await _make_key(plan, directory)
    places, config = free_ports(plan.gateways), directory / "umg.yaml"
    crash = Crash(plan, directory, config, key, [place.grpc for place in places], chance)
    app = web.Application()
    app.router.add_post("/hook/{tag}", crash.receive)
    async with serving(app) as receiver, served(counted, chance) as channels:
        crash.callback_url = f"{receiver}/hook"
        egress = f"egress: {{allow: ['{urlsplit(receiver).netloc}'], http: true}}\n"
        secret = "secret: a-secret-of-the-crash-test\n"
        crash.config.write_text(f"database: {plan.database}\n{secret}{egress}{channels}")
        async with AsyncExitStack() as stack:
            replicas = list[Replica]()
            for number, place in enumerate(places):
                data = directory / (f"data-{number}" if plan.database != SQLITE_KIND else "data")
                replicas.append(Replica(f"gateway {number}", data, config, place, gateway.__name__))
                stack.push_async_callback(replicas[-1].aclose)
                await replicas[-1].start()
            tags = [f"crash-{number}-{'fail' if number % 7 == 0 else 'ok'}" for number in range(plan.tasks)]
            killer = asyncio.create_task(_kill(crash, replicas))
            await _submit_all(crash, tags)
            await killer
            await _until_ended(crash)
    return await _outcome(crash, key_id, counted)


async def _make_key(plan: Plan, directory: Path) -> tuple[str, str]:
    (directory / "data").mkdir()
    store = await open_store(plan.database, directory / "data")
    try:
        key, secret = await ApiKeys(store).create("crash", budget_micro_credits=BUDGET)
        return key.key_id, secret
    finally:
        await store.aclose()


async def _kill(crash: Crash, replicas: Sequence[Replica]) -> None:
    """Kill gateways at random moments of the run."""
    for _ in range(crash.plan.kills):
        await asyncio.sleep(crash.chance.uniform(0.1, 2) * crash.plan.seconds / crash.plan.kills / 2)
        replica = crash.chance.choice(replicas)
        crash.killed_at = time.monotonic()
        await replica.kill()
        if crash.plan.restarts:
            await replica.start()
        crash.kills += 1


async def _submit_all(crash: Crash, tags: Sequence[str]) -> None:
    """Submit all tasks in the time of the plan, by several callers."""
    waiting = list(tags)
    pause = crash.plan.seconds * CALLERS / len(tags)

    async def caller() -> None:
        while waiting:
            await _submit(crash, waiting.pop())
            await asyncio.sleep(crash.chance.uniform(0, 2 * pause))

    async with asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            group.create_task(caller())


async def _submit(crash: Crash, tag: str) -> None:
    """Submit one task, repeated with its idempotency key until a gateway answers."""
    family = _family(tag)
    request = pb.CreateVideoTaskRequest(
        model=family.model,
        entry=family.entry,
        parameters=pb.VideoParameters(prompt=tag, **family.parameters),  # type: ignore[arg-type]
        callback_url=f"{crash.callback_url}/{tag}" if family.entry in NOTIFIED else None,
        idempotency_key=tag,
    )
    while tag not in crash.task_ids:
        port = crash.chance.choice(crash.ports)
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                call = rpc.VideoServiceStub(channel).CreateVideoTask(
                    request, metadata=crash.metadata, timeout=CALL_SECONDS
                )
                crash.task_ids[tag] = (await call).task.task_id
        except grpc.aio.AioRpcError as error:
            if error.code() not in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}:
                raise AssertionError(f"{tag}: {from_rpc(error)!r}") from error
            await asyncio.sleep(0.2)


def _family(tag: str) -> Family:
    return FAMILIES[int(tag.split("-")[1]) % len(FAMILIES)]


async def _until_ended(crash: Crash) -> None:
    """Wait until all tasks have ended and their notifications are delivered."""
    tags = [tag for tag in crash.task_ids if _family(tag).entry in NOTIFIED]
    async with asyncio.timeout(END_SECONDS):
        while True:
            if not await _count_open(crash) and all(crash.notified[tag] & ENDS for tag in tags):
                crash.ended_at = time.monotonic()
                return
            await asyncio.sleep(0.2)


async def _count_open(crash: Crash) -> int:
    """Return the number of tasks that have not ended."""
    request = pb.ListVideoTasksRequest(
        page_size=1,
        states=[pb.VIDEO_TASK_STATE_SUBMITTING, pb.VIDEO_TASK_STATE_QUEUED, pb.VIDEO_TASK_STATE_RUNNING],
    )
    for port in crash.ports:
        with suppress(grpc.aio.AioRpcError):  # a gateway that was killed for good
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                call = rpc.VideoServiceStub(channel).ListVideoTasks(request, metadata=crash.metadata, timeout=5)
                return (await call).total_count
    raise AssertionError("no gateway answers")


async def _outcome(crash: Crash, key_id: str, counted: Counted) -> Outcome:
    store = await open_store(crash.plan.database, crash.directory / "data")
    try:
        async with store.read() as session:
            tasks = {row.task_id: row for row in await session.scalars(select(MediaTask))}
            records = await session.execute(select(UsageRow.record_id, UsageRow.micro_credits))
            charged = {record_id: amount for record_id, amount in records}  # noqa: C416  rows are no pairs
        balances = await BudgetAccounts(store).balances({key_id: 0})
    finally:
        await store.aclose()
    return Outcome(
        task_ids=crash.task_ids,
        tasks=tasks,
        charged=charged,
        balance=balances.get(key_id, NO_BALANCE),
        submissions=counted.submissions,
        accepted=counted.accepted,
        notified={crash.task_ids[tag]: states for tag, states in crash.notified.items()},
        silent={crash.task_ids[tag] for tag in crash.task_ids if _family(tag).entry not in NOTIFIED},
        kills=crash.kills,
        price=CREDIT,
        seconds_after_kill=crash.ended_at - crash.killed_at,
    )
