"""Conversion between datetimes and protobuf timestamps."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp


def utc(time: Timestamp) -> datetime:
    """Convert a timestamp to a datetime in UTC."""
    return time.ToDatetime(UTC)


def timestamp(time: datetime | None) -> Timestamp | None:
    """Convert a datetime to a timestamp; return None for None."""
    if time is None:
        return None
    message = Timestamp()
    message.FromDatetime(time)
    return message
