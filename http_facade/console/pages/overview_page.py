"""First page: calls, failures, times and costs of a span, and the channels that are not closed."""

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.console.call_charts import (
    ChartTable,
    calls_chart,
    first_byte_chart,
    spend_chart,
    summary_charts,
    whole_call_chart,
)
from http_facade.console.call_outcomes import Mark
from http_facade.console.figure_texts import share_text
from http_facade.console.page_interface import LeadElsewhere, Visit
from http_facade.console.pages.channel_pages import STATE_MARKS, channel_path
from http_facade.console.summary_figures import (
    FailureRow,
    Figure,
    SpendRow,
    call_summary,
    failure_rows,
    figures,
    spend_rows,
)
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb

MANY_FAILED_SHARE = 0.1
"""Share of failed calls from which the page does not call the gateway well."""


@dataclass(frozen=True)
class ChannelRow:
    """Channel at a model whose breaker is not closed."""

    channel: str
    path: str
    model: str
    mark: Mark
    kind: str
    message: str
    time: Timestamp | None


@dataclass(frozen=True)
class Overview:
    """Content of the first page."""

    figures: Sequence[Figure]
    charts: ChartTable | None
    models: Sequence[SpendRow]
    reasons: Sequence[FailureRow]
    kinds: Sequence[FailureRow]
    channel_count: int
    troubled: Sequence[ChannelRow]
    shows_channels: bool
    open_alerts: int
    shows_alerts: bool
    unpriced: int
    """Number of models without a price that were called in the last 24 hours."""
    failed_share: str
    """Share of the calls that failed, if it is high; "" otherwise."""


async def load_overview(visit: Visit) -> Overview | LeadElsewhere:
    """Return the state of the gateway, as far as the person may see it; for the holder of a key the way to its page."""
    if visit.rights.is_holder:
        return LeadElsewhere("/console/me")
    summary = await call_summary(visit)
    shows_channels = visit.rights.sees_channels
    channels = await visit.calls.call(pb.ListChannelsRequest(), pb.ListChannelsResponse) if shows_channels else None
    listed = list(channels.channels) if channels is not None else []
    shows_alerts = visit.rights.may(pb.PERMISSION_ALERTS_READ)
    alerts = pb.ListAlertsRequest(open_only=True, page_size=1000)
    charts = (
        calls_chart(summary),
        spend_chart(summary, [group.value for group in summary.groups]),
        first_byte_chart(summary),
        whole_call_chart(summary),
    )
    return Overview(
        figures=list(figures(visit, summary, visit.calls_path(), visit.calls_path(failed="1"))),
        charts=summary_charts(summary, charts, visit.calls_path(), visit.now),
        models=spend_rows(visit, summary),
        reasons=failure_rows(visit, "reason", summary.failures_by_reason),
        kinds=failure_rows(visit, "kind", summary.failures_by_kind),
        channel_count=len({each.channel for each in listed}),
        troubled=[_trouble(each) for each in listed if each.state != pb.CIRCUIT_STATE_CLOSED],
        shows_channels=shows_channels,
        open_alerts=len((await visit.calls.call(alerts, pb.ListAlertsResponse)).alerts) if shows_alerts else 0,
        shows_alerts=shows_alerts,
        unpriced=await _called_unpriced(visit),
        failed_share=_failed_share(summary.total),
    )


def _failed_share(total: pb.CallFigures) -> str:
    is_high = total.failed_request_count >= MANY_FAILED_SHARE * max(total.request_count, 1)
    return share_text(total.failed_request_count, total.request_count) if is_high else ""


async def _called_unpriced(visit: Visit) -> int:
    if visit.rights.extent(pb.PERMISSION_PRICES_READ) < pb.PERMISSION_EXTENT_PART:
        return 0
    request = pb.ListModelPricesRequest(unpriced_only=True, page_size=1)
    return (await visit.calls.call(request, pb.ListModelPricesResponse)).called_unpriced_models


def _trouble(health: pb.ChannelHealth) -> ChannelRow:
    failure = health.last_failure if health.HasField("last_failure") else None
    return ChannelRow(
        channel=printable(health.channel),
        path=channel_path(health.channel),
        model=printable(health.upstream_model),
        mark=STATE_MARKS[health.state],
        kind="" if failure is None else failure.kind,
        message="" if failure is None else printable(failure.message),
        time=None if failure is None else failure.time,
    )
