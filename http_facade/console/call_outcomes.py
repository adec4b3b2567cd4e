"""Outcome of a recorded call in words, and the state by which its row is marked."""

from typing import NamedTuple

from google.protobuf.duration_pb2 import Duration

from http_facade.console.figure_texts import UNKNOWN_TEXT, milliseconds_text
from umg_grpc.base.token_units import INPUT_UNITS, OUTPUT_UNITS
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

REASON_NAMES = enum_names(pb.ErrorReason.DESCRIPTOR)
OPERATION_NAMES = enum_names(pb.ModelOperation.DESCRIPTOR)
OK_STATUS = "OK"


class Mark(NamedTuple):
    """State of an object: its class of style, by which it has its colour and shape, and its word."""

    state: str
    """`good`, `info`, `warn`, `bad` or `off`."""
    word: str


def outcome(record: pb.RequestRecord) -> Mark:
    """Return how a call ended: the kind of its last failure at a provider, else the reason of its own."""
    if not record.status:
        return Mark("info", "in flight")
    if record.status == OK_STATUS:
        return Mark("good", "cached" if record.cached else "ok")
    kinds = [attempt.failure_kind for attempt in record.attempts if attempt.failure_kind]
    reason = REASON_NAMES.get(record.reason, record.status.lower())
    state = "off" if record.status == "CANCELLED" else "bad"
    return Mark(state, kinds[-1] if kinds else reason)


def tokens(record: pb.RequestRecord | pb.UsageEntry) -> tuple[int, int]:
    """Return the input and the output tokens of calls, of all kinds."""
    found = [
        sum(each.count for each in record.quantities if each.unit in units) for units in (INPUT_UNITS, OUTPUT_UNITS)
    ]
    return found[0], found[1]


def duration_text(duration: Duration, *, is_known: bool) -> str:
    """Return a duration in milliseconds, `UNKNOWN_TEXT` for none."""
    return milliseconds_text(duration) if is_known else UNKNOWN_TEXT
