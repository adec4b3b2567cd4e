"""Numbers, amounts and times as the console's pages show them."""

from datetime import UTC, datetime

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.base.micro_credits import MICRO_CREDITS, credits_text
from umg_grpc.base.time_units import age_text

UNKNOWN_TEXT = "–"
MAX_DECIMALS = 6
MIN_WHOLE_RATE = 10


def count_text(count: int) -> str:
    """Return a number with separators of thousands."""
    return f"{count:,}"


def amount_text(micro_credits: int) -> str:
    """Return an amount in credits: two decimals from 1 upward, up to six below, and never 0.00 for something."""
    if micro_credits == 0:
        return "0"
    if abs(micro_credits) >= MICRO_CREDITS:
        return f"{micro_credits / MICRO_CREDITS:,.2f}"
    return f"{micro_credits / MICRO_CREDITS:.{MAX_DECIMALS}f}".rstrip("0").rstrip(".")


def exact_amount(micro_credits: int) -> str:
    """Return an exact amount in credits."""
    return credits_text(micro_credits)


def share_text(part: int, whole: int) -> str:
    """Return a share in percent, with more decimals below one percent; `UNKNOWN_TEXT` of nothing."""
    if whole <= 0:
        return UNKNOWN_TEXT
    share = 100 * part / whole
    if part == 0:
        return "0 %"
    return f"{share:.2f} %" if share < 1 else f"{share:.0f} %"


def change_text(now: float, before: float) -> str:
    """Return the relative change of a figure, with its sign; "" where it was nothing before."""
    if before <= 0:
        return ""
    change = 100 * (now - before) / before
    return f"{change:+,.0f} %"


def rate_text(count: int, minutes: float) -> str:
    """Return a count for a minute, with two digits below 10."""
    rate = count / max(minutes, 1.0)
    return f"{rate:,.0f}" if rate >= MIN_WHOLE_RATE else f"{float(f'{rate:.2g}'):g}"


def milliseconds_text(duration: Duration) -> str:
    """Return a duration in milliseconds."""
    return f"{duration.ToMilliseconds():,}"


def exact_time(time: Timestamp) -> str:
    """Return a time as ISO 8601 text in UTC, with milliseconds."""
    return time.ToDatetime(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def relative_time(time: Timestamp, now: datetime) -> str:
    """Return how long ago a time was, or how far it is ahead."""
    seconds = (now - time.ToDatetime(UTC)).total_seconds()
    return age_text(seconds) + " ago" if seconds >= 0 else "in " + age_text(-seconds)
