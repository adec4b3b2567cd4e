"""Chart of a budget: the rest of it on each day of its period, and at its rate so far."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from http_facade.console.address_filters import timestamp_of
from http_facade.console.budget_meters import DAY_PERIOD, MONTH_PERIOD, BudgetMeter, period_span
from http_facade.console.call_charts import (
    BUCKET_NAMES,
    LEFT_FORM,
    TIME_FORMATS,
    USUAL_FORMAT,
    Chart,
    ChartBucket,
    ChartColumn,
    ChartTable,
)
from http_facade.console.figure_texts import UNKNOWN_TEXT, amount_text
from http_facade.console.page_interface import Visit
from umg_grpc.v1 import pb

PERIOD_BUCKETS = {DAY_PERIOD: pb.USAGE_BUCKET_HOUR, MONTH_PERIOD: pb.USAGE_BUCKET_DAY}
PERIOD_STEPS = {DAY_PERIOD: timedelta(hours=1), MONTH_PERIOD: timedelta(days=1)}


async def budget_chart(
    visit: Visit, meters: Sequence[BudgetMeter], *, key_ids: Sequence[str] = (), project_ids: Sequence[str] = ()
) -> ChartTable | None:
    """Return the chart of the first budget that is renewed, a hard one if there is one; None without any. It reads the
    usage of the keys or projects that the budget counts.
    """
    renewed = sorted((each for each in meters if each.period in PERIOD_BUCKETS), key=lambda each: each.is_soft)
    if not renewed or not (key_ids or project_ids):
        return None
    meter = renewed[0]
    starts = period_starts(meter.period, visit.now)
    request = pb.ListUsageRequest(
        start_time=timestamp_of(starts[0]),
        key_ids=key_ids,
        project_ids=project_ids,
        bucket=PERIOD_BUCKETS[meter.period],
    )
    entries = (await visit.calls.call(request, pb.ListUsageResponse)).entries
    spent = {each.start_time.ToDatetime(UTC): each.micro_credits for each in entries}
    soft = next((each for each in renewed if each.is_soft and each.period == meter.period and each is not meter), None)
    return left_chart(meter, soft, [spent.get(start, 0) for start in starts], visit.now)


def period_starts(period: str, now: datetime) -> list[datetime]:
    """Return the beginnings of the hours of a day, or of the days of a month."""
    begin, end = period_span(period, now)
    return [begin + number * PERIOD_STEPS[period] for number in range((end - begin) // PERIOD_STEPS[period])]


def left_chart(meter: BudgetMeter, soft: BudgetMeter | None, spent: Sequence[int], now: datetime) -> ChartTable:
    """Return the chart of a budget by the amounts that were spent in the buckets of its period."""
    starts, step = period_starts(meter.period, now), PERIOD_STEPS[meter.period]
    rate = meter.spent / max((now - starts[0]).total_seconds(), 1)
    left, projected, total = list[str](), list[str](), 0
    for start, amount in zip(starts, spent, strict=True):
        total += amount
        end = start + step
        if end <= now:
            left.append(amount_text(max(0, meter.limit - total)))
            projected.append(UNKNOWN_TEXT)
        elif start <= now:
            left.append(amount_text(meter.left))
            projected.append(left[-1])
        else:
            left.append(UNKNOWN_TEXT)
            projected.append(amount_text(max(0, round(meter.left - rate * (end - now).total_seconds()))))
    columns = [ChartColumn("left", left), ChartColumn("projected", projected)]
    if soft is not None:
        columns.append(ChartColumn("soft", [amount_text(max(0, meter.limit - soft.limit))] * len(starts)))
    columns.append(ChartColumn("soft" if meter.is_soft else "hard", [amount_text(0)] * len(starts)))
    bucket = PERIOD_BUCKETS[meter.period]
    pattern = TIME_FORMATS.get(bucket, USUAL_FORMAT)
    return ChartTable(
        length=BUCKET_NAMES[bucket],
        buckets=[ChartBucket(f"{each:{pattern}}", int(each.timestamp()), each <= now < each + step) for each in starts],
        end=int((starts[-1] + step).timestamp()),
        charts=[Chart(LEFT_FORM, "budget_chart", columns)],
    )
