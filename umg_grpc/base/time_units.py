"""Units of time spans in the config and on the command line, and times in microseconds as the database has them."""

from datetime import UTC, datetime, timedelta

SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
"""Seconds of each unit; a number without a unit is in seconds."""
EPOCH = datetime.fromtimestamp(0, UTC)


def micros_of(time: datetime) -> int:
    """Return a time as microseconds since 1970 in UTC."""
    return (time - EPOCH) // timedelta(microseconds=1)


def time_of(micros: int) -> datetime:
    """Return microseconds since 1970 as a time in UTC."""
    return EPOCH + timedelta(microseconds=micros)
