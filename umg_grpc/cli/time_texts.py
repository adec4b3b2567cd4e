"""Times as the commands print them."""

from datetime import UTC

from google.protobuf.timestamp_pb2 import Timestamp


def time_text(time: Timestamp, timespec: str = "seconds") -> str:
    """Return a time as ISO 8601 text in UTC. `timespec`: its precision."""
    return time.ToDatetime(UTC).isoformat(timespec=timespec).replace("+00:00", "Z")
