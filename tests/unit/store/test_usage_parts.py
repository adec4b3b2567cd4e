"""Parts of time spans of usage: which tables they are read from."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from umg_grpc.base.time_units import micros_of
from umg_grpc.store.usage_parts import divided, usable_totals
from umg_grpc.store.usage_record_table import UsageRow
from umg_grpc.store.usage_tables import HOUR_BUCKET
from umg_grpc.store.usage_totals import start_of

NOW = micros_of(datetime(2026, 5, 4, 12, 34, 56, 789, tzinfo=UTC))
DAY = timedelta(days=1) // timedelta(microseconds=1)


def read(until: int) -> list[tuple[str, int, int]]:
    """Return the parts of a day that begins with a minute: their buckets ("" for records) and times."""
    since = start_of("minute", NOW - DAY)
    tables = usable_totals([], HOUR_BUCKET)
    parts = divided(UsageRow.__table__, tables, since, until, NOW)
    return [("" if part.totals is None else part.totals.bucket, part.since, part.until) for part in parts]


def test_a_span_up_to_now_has_the_totals_of_the_running_hour() -> None:
    parts = read(NOW)
    assert {bucket for bucket, _, _ in parts} == {"minute", HOUR_BUCKET}
    assert parts[-1][0] == HOUR_BUCKET
    assert parts[-1][2] > NOW


def test_an_earlier_span_ends_with_records() -> None:
    until = NOW - 1
    parts = read(until)
    assert parts[-1] == ("", start_of("minute", until), until)
    assert all(end == begin for (_, _, end), (_, begin, _) in pairwise(parts))
