"""Chart of calls and failures by time, as columns that the server draws, and the same numbers as rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from umg_grpc.v1 import pb

CHART_WIDTH, CALLS_HEIGHT, FAILED_HEIGHT = 840.0, 120.0, 36.0
COLUMN_GAP = 1.0
MIN_HEIGHT = 1.0
TIME_FORMATS = {pb.USAGE_BUCKET_DAY: "%d %b", pb.USAGE_BUCKET_MONTH: "%b %Y"}
USUAL_FORMAT = "%d %b %H:%M"


@dataclass(frozen=True)
class ChartColumn:
    """Bucket of time: calls above the line, failed ones below it."""

    title: str
    calls: int
    failed: int
    micro_credits: int
    left: str
    width: str
    top: str
    height: str
    failed_height: str


@dataclass(frozen=True)
class CallChart:
    """Columns of a span, with its first and last time in UTC."""

    columns: Sequence[ChartColumn]
    first: str
    last: str
    highest: int
    width: int = int(CHART_WIDTH)
    line: int = int(CALLS_HEIGHT)
    height: int = int(CALLS_HEIGHT + FAILED_HEIGHT)


def call_chart(buckets: Sequence[pb.CallFigures], length: "pb.UsageBucket.ValueType") -> CallChart | None:
    """Return the chart of the buckets of a summary; None without calls."""
    highest = max((each.request_count for each in buckets), default=0)
    if highest == 0:
        return None
    step = CHART_WIDTH / len(buckets)
    pattern = TIME_FORMATS.get(length, USUAL_FORMAT)
    titles = [_time(each).strftime(pattern) for each in buckets]
    columns = list[ChartColumn]()
    for number, (bucket, title) in enumerate(zip(buckets, titles, strict=True)):
        height = _scaled(bucket.request_count, highest, CALLS_HEIGHT)
        columns.append(
            ChartColumn(
                title=title,
                calls=bucket.request_count,
                failed=bucket.failed_request_count,
                micro_credits=bucket.micro_credits,
                left=f"{number * step:.1f}",
                width=f"{max(step - COLUMN_GAP, MIN_HEIGHT):.1f}",
                top=f"{CALLS_HEIGHT - height:.1f}",
                height=f"{height:.1f}",
                failed_height=f"{_scaled(bucket.failed_request_count, highest, FAILED_HEIGHT):.1f}",
            )
        )
    return CallChart(columns, titles[0], titles[-1], highest)


def _scaled(count: int, highest: int, height: float) -> float:
    return 0.0 if count == 0 else max(MIN_HEIGHT, height * count / highest)


def _time(bucket: pb.CallFigures) -> datetime:
    return bucket.start_time.ToDatetime(UTC)
