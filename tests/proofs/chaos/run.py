"""Run of one event: load before, during and after it, and the verdict once all gateways have drained."""

import asyncio
import time
from dataclasses import dataclass

from tests.proofs.chaos import cluster as clusters
from tests.proofs.chaos.cluster import Cluster, Servers
from tests.proofs.chaos.events import Event
from tests.proofs.chaos.judge import Facts, Verdict, verdict_of
from tests.proofs.chaos.load import KEYS, Load
from tests.proofs.chaos.videos import VideoLoad, count_tasks, until_ended
from tests.proofs.ledger.run import records_of
from umg_grpc.store.budget_accounts import NO_BALANCE, Balance, BudgetAccounts
from umg_grpc.store.usage_record_table import UsageRecord, UsageRecords


@dataclass(frozen=True)
class Plan:
    before_seconds: float | None = None
    """Time of the load before the event; None for the event's own."""
    after_seconds: float = 6.0
    seconds: float | None = None
    """Time of the event; None for its own."""
    seed: int = 0


async def run(event: Event, proxy: str, plan: Plan, servers: Servers) -> Verdict:
    name = f"chaos_{time.monotonic_ns()}"
    async with clusters.running(servers, name, proxy, plan.seed) as cluster:
        http, grpc = f"http://127.0.0.1:{cluster.address.http}", f"127.0.0.1:{cluster.address.grpc}"
        load = Load(http, grpc, cluster.secrets, cluster.provider, plan.seed)
        videos = VideoLoad(http, cluster.video_secret)
        async with asyncio.TaskGroup() as group, load.calling():
            group.create_task(videos.submit_until(load.stopped))
            await asyncio.sleep(event.before_seconds if plan.before_seconds is None else plan.before_seconds)
            began = time.monotonic()
            await event.apply(cluster, event.seconds if plan.seconds is None else plan.seconds)
            over = time.monotonic()
            await asyncio.sleep(plan.after_seconds)
        await until_ended(cluster.store)
        for _ in range(2):  # the second start charges the calls for which the process before had no time
            codes = await asyncio.gather(*(replica.stop() for replica in cluster.replicas))
            assert not any(codes), codes
            await asyncio.gather(*(replica.start() for replica in cluster.replicas))
        return verdict_of(
            Facts(
                *(load.ended, cluster.provider, *await _ledger(cluster)),
                key_ids=cluster.key_ids,
                tasks=await count_tasks(cluster.store, videos, cluster.counted),
                failed_submissions=videos.failed,
                submissions=videos.attempts,
                event=event,
                began=began,
                over=over,
                kills=cluster.kills,
                has_active_checks=proxy == "Envoy",
            )
        )


async def _ledger(cluster: Cluster) -> tuple[dict[str, list[UsageRecord]], list[Balance | None]]:
    """Return the records of the keys by the ids of the calls, and the balances of the keys with a budget."""
    records, ids = await records_of(UsageRecords(cluster.store)), set(cluster.key_ids)
    found = await BudgetAccounts(cluster.store).balances(dict.fromkeys(cluster.key_ids, 0))
    balances = [
        found.get(key_id, NO_BALANCE) if "budget_micro_credits" in kind.fields else None
        for kind, key_id in zip(KEYS, cluster.key_ids, strict=True)
    ]
    return {call: rows for call, rows in records.items() if rows[0].key_id in ids}, balances
