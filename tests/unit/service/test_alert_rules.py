"""Each rule of alerts opens an alert once, and ends it, on both kinds of databases."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import delete, update

from tests.support.alert_receivers import WebhookServer, webhook_server
from tests.support.alerts import CHANNELS, AlertProcess, Facts, alert_process
from tests.support.store_fixtures import Clock
from umg_grpc.access.budget_sources import BudgetState
from umg_grpc.base.time_units import micros_of
from umg_grpc.config import parse
from umg_grpc.config.alert_settings import BudgetRule
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.routing import Router
from umg_grpc.service.alerts.alert_findings import budget_findings
from umg_grpc.service.resilience.circuit_breaker_snapshots import BreakerState, CircuitState
from umg_grpc.service.resilience.learned_quirks import LearnedQuirk
from umg_grpc.store import Store
from umg_grpc.store.table_definitions import AccountRow, ApiKey, TaskCallback
from umg_grpc.v1 import pb

CREDIT = 10**6
WEEK = tuple(range(2, 160, 3))


@dataclass
class Scene:
    process: AlertProcess
    facts: Facts
    clock: Clock

    def later(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.time = self.clock.later(seconds)


async def spend_budget(scene: Scene) -> None:
    await scene.facts.spend(await scene.facts.key("ci", 10 * CREDIT), 6 * CREDIT)


async def next_day(scene: Scene) -> None:
    scene.later(86_400)


async def usual_week(scene: Scene) -> None:
    scene.later(3600)  # the week before is read once in an hour
    await scene.facts.calls(1, each=WEEK, micro_credits=CREDIT, input_tokens=0, cache_read_tokens=0)


async def expensive_hour(scene: Scene) -> None:
    await usual_week(scene)
    await scene.facts.calls(1, micro_credits=40 * CREDIT)


async def two_hours(scene: Scene) -> None:
    scene.later(7200)


async def open_breaker(scene: Scene) -> None:
    scene.process.breakers.append(BreakerState("main", "m", CircuitState.OPEN, 5.0, 0))
    await scene.process.outages.report()
    scene.later(150)
    await scene.process.outages.report()


async def closed_breaker(scene: Scene) -> None:
    scene.process.breakers.clear()
    await scene.process.outages.report()


async def failing_calls(scene: Scene) -> None:
    await scene.facts.calls(100, failed=30)


async def unpriced_calls(scene: Scene) -> None:
    await scene.facts.calls(3, model="free")


async def given_price(scene: Scene) -> None:
    scene.process.prices[0] = Router(parse(f"{CHANNELS}unpriced: free\n", "test.yaml", {}))


async def refusal(scene: Scene) -> None:
    learned = LearnedQuirk(
        channel="main",
        model="m",
        protocol="chat",
        member="temperature",
        quirks=Quirks(rejects=frozenset({"temperature"})),
        learn_time=scene.clock().timestamp(),
    )
    scene.process.learned.append(learned)


async def forgotten_refusal(scene: Scene) -> None:
    scene.process.learned.clear()


async def lost_cache(scene: Scene) -> None:
    scene.later(3600)
    await scene.facts.calls(1, each=WEEK, input_tokens=10**6, cache_read_tokens=3 * 10**6)
    await scene.facts.calls(1, input_tokens=9 * 10**6, cache_read_tokens=10**6)


async def used_cache(scene: Scene) -> None:
    await scene.facts.calls(1, input_tokens=10**6, cache_read_tokens=50 * 10**6)


async def dead_letter(scene: Scene) -> None:
    row = TaskCallback(
        callback_id="msg_1",
        task_id="task_1",
        owner="key_1",
        url="https://user:password@caller.example/hook?secret=1",
        attempts=10,
        lease_owner="",
        next_attempt_micros=None,
        create_micros=micros_of(scene.clock()),
        body=b"{}",
    )
    async with scene.facts.store.write() as session:
        session.add(row)


async def removed_letter(scene: Scene) -> None:
    async with scene.facts.store.write() as session:
        await session.execute(delete(TaskCallback))


@dataclass(frozen=True)
class Condition:
    id: str
    begin: Callable[[Scene], Awaitable[None]]
    end: Callable[[Scene], Awaitable[None]]
    object: str
    words: str
    """Part of the summary."""
    threshold: int = 0


CONDITIONS = [
    Condition("budget", spend_budget, next_day, "key:", "The daily budget of the key `ci` is spent to 60 %", 50),
    Condition("spend_jump", expensive_hour, two_hours, "", "The last hour cost 40.00 credits"),
    Condition("channel_down", open_breaker, closed_breaker, "main/m", "Channel `main` is down for model `m`"),
    Condition("error_share", failing_calls, two_hours, "m", "30 of 100 calls of model `m`"),
    Condition(
        "unpriced_model", unpriced_calls, given_price, "free", "Model `free` has no price and was called 3 times"
    ),
    Condition("healed_refusals", refusal, forgotten_refusal, "main/m", "refused `temperature` for model `m`"),
    Condition("cached_share", lost_cache, used_cache, "m", "10 % was read from the provider's cache"),
    Condition("task_dead_letter", dead_letter, removed_letter, "https://caller.example", "1 notification about video"),
]


@asynccontextmanager
async def single_receiver(store: Store, clock: Clock) -> AsyncGenerator[tuple[WebhookServer, AlertProcess], None]:
    async with (
        webhook_server() as server,
        alert_process(store, clock, f"  receivers:\n{server.config()}") as process,
    ):
        yield server, process


@pytest.mark.parametrize("case", CONDITIONS, ids=lambda case: case.id)
async def test_a_condition_is_notified_once_and_again_when_it_is_over(
    case: Condition, prepared_store: Store, clock: Clock
) -> None:
    only = "".join(f"    {each.id}: {{enabled: false}}\n" for each in CONDITIONS if each.id != case.id)
    async with webhook_server() as server:
        alerts = f"  receivers:\n{server.config()}  rules:\n{only}"
        async with alert_process(prepared_store, clock, alerts) as process:
            scene = Scene(process, Facts(prepared_store, clock), clock)
            await process.step()
            assert server.events == []
            await case.begin(scene)
            for _ in range(3):
                await process.step()
            assert server.events == [("opened", case.id, case.threshold)]
            alert = server.received[0].alert
            assert case.words in alert.summary
            assert alert.object.startswith(case.object)
            assert not alert.HasField("close_time")
            await case.end(scene)
            for _ in range(3):
                await process.step()
                scene.later(600)
                await process.outages.report()
            await process.step()
            assert server.events[1:] == [("recovered", case.id, case.threshold)]
            ended = server.received[1].alert
            assert (ended.alert_id, ended.HasField("close_time")) == (alert.alert_id, True)


@dataclass(frozen=True)
class Quiet:
    """Facts that are no condition."""

    id: str
    begin: Callable[[Scene], Awaitable[None]]


async def few_failures(scene: Scene) -> None:
    await scene.facts.calls(49, failed=49)


async def rare_failures(scene: Scene) -> None:
    await scene.facts.calls(100, failed=19)


async def first_day(scene: Scene) -> None:
    await scene.facts.calls(1, each=range(2, 20), micro_credits=1)
    await scene.facts.calls(1, micro_credits=40 * CREDIT)


async def cheap_jump(scene: Scene) -> None:
    await scene.facts.calls(1, each=WEEK, micro_credits=10)
    await scene.facts.calls(1, micro_credits=CREDIT - 1)


async def blocked_key(scene: Scene) -> None:
    await scene.facts.spend(await scene.facts.key("blocked", 0), 0)


async def revoked_key(scene: Scene) -> None:
    key_id = await scene.facts.key("old", CREDIT)
    await scene.facts.spend(key_id, CREDIT)
    async with scene.facts.store.write() as session:
        await session.execute(update(ApiKey).values(revoke_time=scene.clock()))


async def short_outage(scene: Scene) -> None:
    scene.process.breakers.append(BreakerState("main", "m", CircuitState.OPEN, 5.0, 0))
    await scene.process.outages.report()
    scene.later(60)
    await scene.process.outages.report()


async def ended_process(scene: Scene) -> None:
    await open_breaker(scene)
    scene.later(400)  # without a report


QUIET = [
    Quiet("few calls, all failed", few_failures),
    Quiet("a small share of failures", rare_failures),
    Quiet("more than usual on the first day", first_day),
    Quiet("a multiple of very little", cheap_jump),
    Quiet("a key with a budget of nothing", blocked_key),
    Quiet("a revoked key", revoked_key),
    Quiet("a breaker that is open for a minute", short_outage),
    Quiet("a breaker of a process that has ended", ended_process),
]


@pytest.mark.parametrize("case", QUIET, ids=lambda case: case.id)
async def test_other_facts_are_not_notified(case: Quiet, prepared_store: Store, clock: Clock) -> None:
    async with webhook_server() as server:
        alerts = f"  receivers:\n{server.config()}  rules: {{unpriced_model: {{enabled: false}}}}\n"
        async with alert_process(prepared_store, clock, alerts) as process:
            await case.begin(Scene(process, Facts(prepared_store, clock), clock))
            await process.step()
            assert server.events == []


async def test_the_thresholds_of_a_budget_are_notified_one_after_the_other(prepared_store: Store, clock: Clock) -> None:
    async with single_receiver(prepared_store, clock) as (server, process):
        facts = Facts(prepared_store, clock)
        key_id = await facts.key("ci", 10 * CREDIT, "month")
        for amount in (5, 1, 2, 2):
            await facts.spend(key_id, amount * CREDIT, "month")
            await process.step()
        assert server.events == [("opened", "budget", percent) for percent in (50, 80, 100)]
        async with prepared_store.write() as session:
            await session.execute(update(ApiKey).values(budget_micro_credits=100 * CREDIT))
        await process.step()
        assert server.events[3:] == [("recovered", "budget", 100)], "one of the three that end together"
        await facts.spend(key_id, 75 * CREDIT, "month")
        await process.step()
        assert server.events[4:] == [("opened", "budget", 80)], "one of the two that open together"


async def test_the_budgets_of_projects_and_organisations_and_soft_ones_are_notified(
    prepared_store: Store, clock: Clock
) -> None:
    clock.time = clock.time.replace(day=1)  # the day and the month begin at the same time
    budgets = [["day", 10 * CREDIT, False], ["month", 20 * CREDIT, False], ["month", 10 * CREDIT, True]]
    values = {"model_patterns": [], "channels": [], "operations": [], "tags": {}, "create_time": clock()}
    async with prepared_store.write() as session:
        session.add(AccountRow(account_id="proj_1", kind="project", name="search", budgets=budgets, **values))
        session.add(
            AccountRow(
                account_id="org_1",
                kind="organization",
                name="north",
                budgets=[["", 10 * CREDIT, False], ["day", 0, False]],
                **values,
            )
        )
        session.add(
            AccountRow(account_id="proj_2", kind="project", name="old", budgets=budgets, close_time=clock(), **values)
        )
    async with single_receiver(prepared_store, clock) as (server, process):
        facts = Facts(prepared_store, clock)
        key_id = await facts.key("ci", 10 * CREDIT, "month")
        async with prepared_store.write() as session:
            await session.execute(update(ApiKey).values(budgets=[["day", 10 * CREDIT, False]]))
        for account, amount, period in (
            *(("proj_1/day", 5, "day"), ("proj_1/month", 9, "month"), ("org_1/total", 10, ""), ("org_1/day", 1, "day")),
            *((f"{key_id}/day", 8, "day"), ("proj_2/day", 10, "day")),
        ):
            await facts.spend(account, amount * CREDIT, period)
        await process.step()
    assert {each.alert.object: each.alert.summary.partition(":")[0] for each in server.received} == {
        "project:proj_1/day": "The daily budget of the project `search` is spent to 50 %",
        "project:proj_1/month/soft": "The soft monthly budget of the project `search` is spent to 90 %",
        "organization:org_1/total": "The budget of the organisation `north` is spent to 100 %",
        f"key:{key_id}/day": "The daily budget of the key `ci` is spent to 80 %",
    }


async def test_a_condition_that_holds_is_notified_again_after_a_day(prepared_store: Store, clock: Clock) -> None:
    clock.time -= timedelta(days=3)
    async with single_receiver(prepared_store, clock) as (server, process):
        facts = Facts(prepared_store, clock)
        key_id = await facts.key("ci", 10 * CREDIT, "month")
        await facts.spend(key_id, 5 * CREDIT, "month")
        await process.step()
        clock.time = clock.later(7200)
        await facts.spend(key_id, 4 * CREDIT, "month")
        for _ in range(26):
            await process.step()
            clock.time = clock.later(3600)
        events = [("opened", "budget", 50), ("opened", "budget", 80), ("reminded", "budget", 80)]
        assert server.events == events, "the lower threshold is not repeated"
        assert "is spent to 90 %" in server.received[-1].alert.summary


async def test_a_share_near_its_threshold_opens_one_alert(prepared_store: Store, clock: Clock) -> None:
    async with single_receiver(prepared_store, clock) as (server, process):
        facts = Facts(prepared_store, clock)
        for failed in (20, 16, 21, 17, 20):
            await facts.calls(100, failed=failed)
            await process.step()
            clock.time = clock.later(660)  # the calls before do not count any more
        assert server.events == [("opened", "error_share", 0)]


async def test_a_condition_that_returns_within_minutes_has_one_alert(prepared_store: Store, clock: Clock) -> None:
    async with single_receiver(prepared_store, clock) as (server, process):
        facts = Facts(prepared_store, clock)
        await facts.calls(100, failed=50)
        await process.step()
        clock.time = clock.later(660)
        await process.step()
        assert [each.calm_micros is not None for each in await process.table.open_alerts()] == [True]
        clock.time = clock.later(200)
        await facts.calls(100, failed=50)
        await process.step()
        assert [each.calm_micros for each in await process.table.open_alerts()] == [None]
        assert server.events == [("opened", "error_share", 0)]


async def test_a_rule_that_is_disabled_later_ends_its_alerts_without_a_notification(
    prepared_store: Store, clock: Clock
) -> None:
    async with webhook_server() as server:
        receivers = f"  receivers:\n{server.config()}"
        async with alert_process(prepared_store, clock, receivers) as process:
            facts = Facts(prepared_store, clock)
            await facts.spend(await facts.key("ci", CREDIT), CREDIT)
            await process.step()
            disabled = parse(f"{CHANNELS}{receivers}  rules: {{budget: {{enabled: false}}}}\n", "test.yaml", {})
            process.watch.configure(disabled.alerts)
            await process.step()
            assert server.events == [("opened", "budget", 100)]
            assert await process.table.open_alerts() == []


async def test_a_threshold_that_is_removed_later_ends_its_alerts_without_a_notification(
    prepared_store: Store, clock: Clock
) -> None:
    async with webhook_server() as server:
        receivers = f"  receivers:\n{server.config()}"
        async with alert_process(prepared_store, clock, receivers) as process:
            facts = Facts(prepared_store, clock)
            await facts.spend(await facts.key("ci", 100 * CREDIT), 92 * CREDIT)
            await process.step()
            changed = parse(f"{CHANNELS}{receivers}  rules: {{budget: {{thresholds: [90]}}}}\n", "test.yaml", {})
            process.watch.configure(changed.alerts)
            await process.step()
            assert server.events == [("opened", "budget", 80), ("opened", "budget", 90)]
            assert [each.threshold for each in await process.table.open_alerts()] == [90]


async def test_a_receiver_that_a_rule_names_twice_is_notified_once(prepared_store: Store, clock: Clock) -> None:
    async with webhook_server() as server:
        rules = "  rules: {budget: {receivers: [ops, ops]}}\n"
        async with alert_process(prepared_store, clock, f"  receivers:\n{server.config()}{rules}") as process:
            facts = Facts(prepared_store, clock)
            await facts.spend(await facts.key("ci", CREDIT), CREDIT)
            await process.step()
    assert server.events == [("opened", "budget", 100)]


@pytest.mark.parametrize(
    ("spent", "amount", "text"),
    [
        (700, 1000, "spent to 70 %: 0.0007 of 0.001 credits"),
        (336_000, 500_000, "spent to 67 %: 0.336 of 0.50 credits"),
        (99_999_999, 100 * CREDIT, "spent to 99 %: 99.99 of 100.00 credits"),
        (1_234_567 * CREDIT, 2 * 10**6 * CREDIT, "spent to 61 %: 1,234,567.00 of 2,000,000.00 credits"),
    ],
)
def test_amounts_of_any_size_are_exact_enough_for_the_percent(spent: int, amount: int, text: str) -> None:
    state = BudgetState("key", "key_1", "ci", "key_1", "", 0, spent, amount)
    assert text in next(budget_findings(BudgetRule(), [state])).summary


def sent_to(server: WebhookServer) -> list["pb.AlertRule.ValueType"]:
    return [each.alert.rule for each in server.received]


async def test_a_rule_has_receivers_of_its_own(prepared_store: Store, clock: Clock) -> None:
    async with webhook_server() as ops, webhook_server() as finance:
        receivers = f"  receivers:\n{ops.config()}{finance.config('finance')}"
        rules = "  rules: {budget: {receivers: [finance]}, error_share: {receivers: [ops]}}\n"
        async with alert_process(prepared_store, clock, receivers + rules) as process:
            facts = Facts(prepared_store, clock)
            await facts.spend(await facts.key("ci", CREDIT), CREDIT)
            await facts.calls(100, failed=50)
            await process.step()
    assert (sent_to(ops), sent_to(finance)) == ([pb.ALERT_RULE_ERROR_SHARE], [pb.ALERT_RULE_BUDGET])
