"""Times of messages."""

from datetime import UTC, datetime

from google.protobuf.timestamp_pb2 import Timestamp


def utc(time: Timestamp) -> datetime:
    """Return the time of a message, in UTC."""
    return time.ToDatetime(UTC)


def timestamp(time: datetime | None) -> Timestamp | None:
    """Return the message of a time; None for no time."""
    if time is None:
        return None
    message = Timestamp()
    message.FromDatetime(time)
    return message
