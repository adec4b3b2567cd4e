"""First page: calls, failures and costs, and the channels that are not closed."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.console.call_outcomes import Mark
from http_facade.console.figure_texts import amount_text, change_text, count_text, share_text
from http_facade.console.page_interface import Visit
from http_facade.console.pages.channel_pages import STATE_MARKS
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

TOP_MODELS = 8


@dataclass(frozen=True)
class Figure:
    """Figure with its change against the span before, and the query of the calls behind it."""

    name: str
    """Key of its words."""
    value: str
    change: str
    path: str
    """Page of the calls behind it; "" if the person may not see it."""


@dataclass(frozen=True)
class ChannelRow:
    """Channel at a model whose breaker is not closed."""

    channel: str
    model: str
    mark: Mark
    kind: str
    message: str
    time: Timestamp | None


@dataclass(frozen=True)
class Overview:
    """Content of the first page."""

    figures: Sequence[Figure]
    models: Sequence[tuple[pb.UsageEntry, str]]
    """Usage of the models with the highest cost, with their shares of it."""
    channel_count: int
    troubled: Sequence[ChannelRow]
    shows_channels: bool
    shows_calls: bool


async def load_overview(visit: Visit) -> Overview:
    """Return the state of the gateway, as far as the person may see it."""
    now, start = visit.filters.end or visit.now, visit.filters.start
    present = await _usage(visit, start, now)
    before = _sum(await _usage(visit, start - (now - start), start))
    total = _sum(present)
    sees_calls = visit.rights.may(pb.PERMISSION_RECORDS_READ)
    calls = f"/console/requests{visit.filters.kept()}" if sees_calls else ""
    failed = f"/console/requests{visit.filters.changed(failed='1')}" if sees_calls else ""
    by_cost = sorted(present, key=lambda entry: -entry.micro_credits)[:TOP_MODELS]
    shows_channels = visit.rights.extent(pb.PERMISSION_CHANNELS_READ) == pb.PERMISSION_EXTENT_ALL
    channels = await visit.calls.call(pb.ListChannelsRequest(), pb.ListChannelsResponse) if shows_channels else None
    listed = list(channels.channels) if channels is not None else []
    return Overview(
        figures=[
            Figure(
                "calls",
                count_text(total.request_count),
                change_text(total.request_count, before.request_count),
                calls,
            ),
            Figure(
                "failed",
                share_text(total.failed_request_count, total.request_count),
                change_text(total.failed_request_count, before.failed_request_count),
                failed,
            ),
            Figure(
                "spend",
                amount_text(total.micro_credits),
                change_text(total.micro_credits, before.micro_credits),
                calls,
            ),
        ],
        models=[(entry, share_text(entry.micro_credits, total.micro_credits)) for entry in by_cost],
        channel_count=len({each.channel for each in listed}),
        troubled=[_trouble(each) for each in listed if each.state != pb.CIRCUIT_STATE_CLOSED],
        shows_channels=shows_channels,
        shows_calls=sees_calls,
    )


async def _usage(visit: Visit, start: datetime, end: datetime) -> list[pb.UsageEntry]:
    request = pb.ListUsageRequest(
        group_by=[pb.USAGE_DIMENSION_MODEL],
        start_time=_timestamp(start),
        end_time=_timestamp(end),
        models=visit.filters.values("model"),
        channels=visit.filters.values("channel"),
        project_ids=visit.filters.values("project"),
        page_size=10_000,
    )
    return list((await visit.calls.call(request, pb.ListUsageResponse)).entries)


def _sum(entries: Sequence[pb.UsageEntry]) -> pb.UsageEntry:
    return pb.UsageEntry(
        request_count=sum(entry.request_count for entry in entries),
        failed_request_count=sum(entry.failed_request_count for entry in entries),
        micro_credits=sum(entry.micro_credits for entry in entries),
    )


def _trouble(health: pb.ChannelHealth) -> ChannelRow:
    failure = health.last_failure if health.HasField("last_failure") else None
    return ChannelRow(
        channel=printable(health.channel),
        model=printable(health.upstream_model),
        mark=STATE_MARKS[health.state],
        kind="" if failure is None else failure.kind,
        message="" if failure is None else printable(failure.message),
        time=None if failure is None else failure.time,
    )


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time.astimezone(UTC) + timedelta())
    return stamp
