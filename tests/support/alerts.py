"""Processes that evaluate alerts on one database, with a clock of the test, and facts for every rule."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count

from tests.support.store_fixtures import Clock
from tests.support.usage_records import lines, record
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.base.time_units import micros_of
from umg_grpc.config import parse
from umg_grpc.process.alert_factory import budget_sources
from umg_grpc.routing import Router
from umg_grpc.service.alerts.alert_evaluation import RuleEvaluation
from umg_grpc.service.alerts.alert_receiver_clients import ReceiverClients
from umg_grpc.service.alerts.alert_sender import AlertSender
from umg_grpc.service.alerts.alert_watch import AlertWatch, OutageReport
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState
from umg_grpc.service.resilience.learned_quirks import LearnedQuirk
from umg_grpc.store import Store
from umg_grpc.store.alert_facts import AlertFacts
from umg_grpc.store.alert_table import AlertTable
from umg_grpc.store.budget_accounts import Charge, LeaseId, lock_accounts, period_start, settle
from umg_grpc.store.database_time import GivenClock
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.upstream.http1.client import Client

CHANNELS = """
channels:
  - {name: main, protocols: [chat], base_url: "http://127.0.0.1:1", api_key: k, models: [m, free]}
models: {m: {price: {input: 1}}}
shipped_prices: false
alerts:
  interval: 10
"""
_numbers = count()


@dataclass
class AlertProcess:
    """Process that evaluates alerts and sends notifications when the test wants it."""

    watch: AlertWatch
    sender: AlertSender
    table: AlertTable
    facts: AlertFacts
    outages: OutageReport
    learned: list[LearnedQuirk]
    breakers: list[BreakerState]
    prices: list[Router]

    async def step(self) -> None:
        """Evaluate the rules once, and send all due notifications."""
        await self.watch.evaluate()
        await self.deliver()

    async def deliver(self) -> None:
        """Send all due notifications, and wait for their results."""
        while True:
            await self.sender.send_due()
            if sending := self.sender._sending.values():
                await asyncio.wait(sending)
            elif not await self.table.has_due():
                return


@asynccontextmanager
async def alert_process(
    store: Store, clock: Clock, alerts: str, name: str = "process"
) -> AsyncGenerator[AlertProcess, None]:
    """Yield a process on a database. `alerts`: further lines of the config section `alerts`."""
    config = parse(CHANNELS + alerts, "test.yaml", {})
    given = GivenClock(clock)
    async with Client.opened() as client:
        table, facts = AlertTable(store, name, given), AlertFacts(store, name, given)
        learned, breakers, prices = list[LearnedQuirk](), list[BreakerState](), [Router(config)]
        clients = ReceiverClients(client, config.alerts, config.proxies, time.time)
        sender = AlertSender(table, clients)
        evaluation = RuleEvaluation(facts, budget_sources(store), lambda: prices[0], lambda: learned, given.now)
        watch = AlertWatch(config.alerts, table, evaluation, sender, given.now)
        outages = OutageReport(facts, lambda: breakers, given.now)
        yield AlertProcess(watch, sender, table, facts, outages, learned, breakers, prices)


@dataclass
class Facts:
    """Writer of the facts that rules read."""

    store: Store
    clock: Clock
    keys: dict[str, str] = field(default_factory=dict)

    async def calls(
        self, number: int, *, hours_ago: float = 0, failed: int = 0, each: Iterable[int] = (0,), **columns: object
    ) -> None:
        """Insert records of calls, of which the first `failed` ones failed. `each`: offsets in hours, for repetitions."""
        records = [
            record(
                next(_numbers),
                start_micros=micros_of(self.clock()) - int((hours_ago + offset) * 3600e6) - 1,
                status="UNAVAILABLE" if index < failed else "OK",
                **columns,
            )
            for offset in each
            for index in range(number)
        ]
        await UsageRecords(self.store).insert(lines(*records))

    async def key(self, name: str, budget: int, period: str = "day") -> str:
        """Create a key with a budget. Return its id."""
        made, _ = await ApiKeys(self.store).create(name, budget_micro_credits=budget, budget_period=period)
        return made.key_id

    async def spend(self, key_id: str, micro_credits: int, period: str = "day") -> None:
        """Charge an amount to the account of a budget (for one of its own, the id of a key) in the present period."""
        start = period_start(period, self.clock())
        async with self.store.write() as session:
            await lock_accounts(session, [(key_id, start)])
            await settle(session, [Charge(LeaseId(key_id, start, "none"), micro_credits)])
