"""Queries of the console's pages: lists of records at several depths by every filter, and summaries of calls."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from tests.proofs.usage_scale.filling import LARGEST_KEY, RARE_MODEL, SMALL_KEY
from tests.proofs.usage_scale.reports import processor_seconds
from umg_grpc.service.servicers.call_record_report import Reader, RequestReport
from umg_grpc.service.servicers.call_summary_report import CallSummaryReport
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.store import Store
from umg_grpc.store.call_summaries import CallSummaries
from umg_grpc.store.key_selection import EVERY_KEY
from umg_grpc.store.refused_call_table import RefusedCalls
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb

MAX_LIST_SECONDS, MAX_SUMMARY_SECONDS = 0.2, 1.0
FILTERS: Mapping[str, Mapping[str, Any]] = {
    "all": {},
    "largest key": {"key_ids": [LARGEST_KEY]},
    "small key": {"key_ids": [SMALL_KEY]},
    "model": {"models": ["vendor/model-3"]},
    "channel": {"channels": ["channel-2-b"]},
    "agent": {"agents": ["codex"]},
}
"""Filters that lists and summaries have."""
RECORD_FILTERS: Mapping[str, Mapping[str, Any]] = {
    **FILTERS,
    "rare model": {"models": [RARE_MODEL]},
    "rare model of the largest key": {"models": [RARE_MODEL], "key_ids": [LARGEST_KEY]},
    "unknown model": {"models": ["none"]},
    "operation": {"operations": [pb.MODEL_OPERATION_EMBED]},
    "failed": {"failed_only": True},
    "failed of a small key": {"failed_only": True, "key_ids": [SMALL_KEY]},
    "reason": {"reasons": [pb.ERROR_REASON_UPSTREAM_UNPAID]},
    "rare reason": {"reasons": [pb.ERROR_REASON_UPSTREAM_TIMEOUT]},
    "slow": {"min_duration": Duration(seconds=10)},
    "slow of a small key": {"min_duration": Duration(seconds=9), "key_ids": [SMALL_KEY]},
    "slower than all": {"min_duration": Duration(seconds=60)},
    "an id": {"request_id_prefix": f"req_{4123456:032d}"},
    "some ids": {"request_id_prefix": f"req_{412:029d}"},
    "all ids": {"request_id_prefix": "req_"},
    "end user": {"end_users": ["person-100"]},
}
SPANS = {"24 hours": timedelta(days=1), "7 days": timedelta(days=7), "30 days": timedelta(days=30)}
SPANS |= {"45 days": timedelta(days=45), "90 days": timedelta(days=90)}
DEPTHS = {"newest": timedelta(), "40 days ago": timedelta(days=40, hours=3), "last": timedelta(days=89, hours=20)}


@dataclass
class Query:
    """Query, its limit and its times."""

    name: str
    run: Callable[[], Awaitable[int]]
    """Makes the query, and returns a number of its results."""
    limit: float
    found: int = 0
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)

    def __str__(self) -> str:
        times = f"{1000 * min(self.processor_seconds):6.0f} ms of the processor, {1000 * min(self.seconds):6.0f} in all"
        return f"{self.name:<60}{self.found:>9}{times}"

    @property
    def is_slow(self) -> bool:
        """Whether the query took more processor time than its limit at its quickest run."""
        return min(self.processor_seconds) > self.limit


def queries(store: Store, end: datetime) -> Iterator[Query]:
    """Yield all queries of a database whose records end at `end`."""
    lists = RequestReport(UsageRecords(store), RefusedCalls(store), store.clock)
    summaries = CallSummaryReport(CallSummaries(store), store.clock)
    reader = Reader(EVERY_KEY, sees_details=True, sees_channels=True)

    def listed(filters: Mapping[str, Any], age: timedelta) -> Callable[[], Awaitable[int]]:
        async def run() -> int:
            span = {"start_time": timestamp(end - timedelta(days=90)), "end_time": timestamp(end - age)}
            return len((await lists.list(pb.ListRequestRecordsRequest(**span, **filters), reader)).records)

        return run

    def summarised(filters: Mapping[str, Any], span: timedelta) -> Callable[[], Awaitable[int]]:
        async def run() -> int:
            times = {"start_time": timestamp(end - span), "end_time": timestamp(end)}
            return (await summaries.get(pb.GetCallSummaryRequest(**times, **filters))).total.request_count

        return run

    for name, filters in RECORD_FILTERS.items():
        for depth, age in DEPTHS.items():
            yield Query(f"list, {name}, {depth}", listed(filters, age), MAX_LIST_SECONDS)
    for name, filters in {**FILTERS, "by key": {"group_by": pb.USAGE_DIMENSION_KEY}}.items():
        for span, length in SPANS.items():
            yield Query(f"summary, {name}, {span}", summarised(filters, length), MAX_SUMMARY_SECONDS)


async def measure_query(query: Query, server_process: int | None) -> None:
    """Make a query once, and note its times. `server_process`: id of the process of the only connection, or None."""
    began, used = time.perf_counter(), processor_seconds(server_process)
    query.found = await query.run()
    query.seconds.append(time.perf_counter() - began)
    query.processor_seconds.append(processor_seconds(server_process) - used)
