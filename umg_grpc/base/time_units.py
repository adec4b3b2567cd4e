"""Units of time spans in the config and on the command line, and times in microseconds as the database has them."""

from datetime import UTC, datetime, timedelta

UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}
AGE_UNITS = ((86400, "d"), (3600, "h"), (60, "min"), (1, "s"))
UNIX_EPOCH = datetime.fromtimestamp(0, UTC)


def micros_of(time: datetime) -> int:
    """Return a time as microseconds since 1970 in UTC."""
    return (time - UNIX_EPOCH) // timedelta(microseconds=1)


def time_of(micros: int) -> datetime:
    """Return microseconds since 1970 as a time in UTC."""
    return UNIX_EPOCH + timedelta(microseconds=micros)


def age_text(seconds: float) -> str:
    """Return an age as text in its largest whole unit, for example `3 min`; at least a second."""
    age = max(1, int(seconds))
    size, unit = next((size, unit) for size, unit in AGE_UNITS if age >= size)
    return f"{age // size} {unit}"
