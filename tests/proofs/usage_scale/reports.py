"""Reports of usage: every grouping over several spans of time, page by page."""

import time
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from google.protobuf.timestamp_pb2 import Timestamp

from tests.support.usage_records import column_sets
from umg_grpc.service.servicers.usage_report import BUCKET_NAMES, DIMENSION_NAMES, UsageReport
from umg_grpc.v1 import pb

BUCKETS = {name: number for number, name in BUCKET_NAMES.items()}
DIMENSIONS = {name: number for number, name in DIMENSION_NAMES.items()}
PAGES = 3
"""Pages of a report that are read: the first ones take as long as the others."""


@dataclass(frozen=True)
class Report:
    """Request of usage: its grouping, span of time and filters."""

    by: Sequence[str]
    since: datetime
    until: datetime
    span: str
    """Name of the span."""
    key_ids: Sequence[str] = ()
    models: Sequence[str] = ()

    def __str__(self) -> str:
        filters = [*(["one key"] if self.key_ids else []), *(["two models"] if self.models else [])]
        return f"{','.join(self.by) or 'total':<42}{self.span}{''.join(f', {each}' for each in filters)}"

    def request(self, page_size: int) -> pb.ListUsageRequest:
        request = pb.ListUsageRequest(
            start_time=_timestamp(self.since),
            end_time=_timestamp(self.until),
            key_ids=self.key_ids,
            models=self.models,
            group_by=[pb.UsageDimension.ValueType(DIMENSIONS[name]) for name in self.by if name in DIMENSIONS],
            page_size=page_size,
        )
        for name in self.by:
            if name in BUCKETS:
                request.bucket = pb.UsageBucket.ValueType(BUCKETS[name])
        return request


@dataclass
class Measured:
    report: Report
    entries: int = 0
    seconds: list[float] = field(default_factory=list)
    processor_seconds: list[float] = field(default_factory=list)
    """Processor time of the gateway and of its connection's server process, which other work does not lengthen."""

    def __str__(self) -> str:
        pages = " ".join(
            f"{1000 * processor:6.0f} of {1000 * wall:4.0f}"
            for wall, processor in zip(self.seconds, self.processor_seconds, strict=True)
        )
        return f"{self.report!s:<70}{self.entries:>7} entries, ms of the processor and in all by page: {pages}"


def groupings() -> Iterator[list[str]]:
    """Yield groupings: a time span or none, and columns."""
    for bucket in ([], *([name] for name in BUCKETS if BUCKETS[name])):
        for names in column_sets():
            yield [*bucket, *names]


def reports(end: datetime) -> Iterator[Report]:
    """Yield reports over spans that end now, within an hour, and over past ones."""
    key, models = ["key_0000000000000007"], ["vendor/model-3", "vendor/model-7"]
    spans = {
        "30 days": (end - timedelta(days=30), end),
        "90 days": (end - timedelta(days=90), end),
        "7 days, 50 days ago": (end - timedelta(days=57, minutes=7), end - timedelta(days=50, seconds=5)),
        "6 days": (end - timedelta(days=6), end),
    }
    for name, (since, until) in spans.items():
        for by in groupings():
            if "minute" not in by or until - since < timedelta(days=7):
                yield Report(by, since, until, name)
        for by in ([], ["day"], ["hour", "model"], ["month"]):
            yield Report(by, since, until, name, key_ids=key)
            yield Report(by, since, until, name, models=models)


async def pages(report: UsageReport, request: pb.ListUsageRequest) -> AsyncGenerator[pb.ListUsageResponse]:
    while True:
        page = await report.list(request)
        yield page
        if not page.next_page_token:
            return
        request.page_token = page.next_page_token


async def measure(usage: UsageReport, report: Report, page_size: int, server_process: int | None) -> Measured:
    """Read the first pages of a report. `server_process`: id of the process of the only connection."""
    measured, began, used = Measured(report), time.perf_counter(), processor_seconds(server_process)
    async for page in pages(usage, report.request(page_size)):
        measured.seconds.append(time.perf_counter() - began)
        measured.processor_seconds.append(processor_seconds(server_process) - used)
        measured.entries += len(page.entries)
        if len(measured.seconds) == PAGES:
            break
        began, used = time.perf_counter(), processor_seconds(server_process)
    return measured


def processor_seconds(server_process: int | None) -> float:
    """Return the processor time of this process and of a server's process so far."""
    if server_process is None:
        return time.process_time()
    nanoseconds = int(Path(f"/proc/{server_process}/schedstat").read_text().split()[0])
    return time.process_time() + nanoseconds / 1e9


def _timestamp(moment: datetime) -> Timestamp:
    message = Timestamp()
    message.FromDatetime(moment)
    return message
