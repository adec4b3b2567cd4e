"""Validation of messages by the rules in the .proto files."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid

if TYPE_CHECKING:
    from protovalidate import Validator, Violation

MISSING_RULES = frozenset({"required", "string.min_len", "bytes.min_len", "repeated.min_items"})

FIRST_SECOND, LAST_SECOND = -62_135_596_800, 253_402_300_799
"""Seconds since 1970 of the years 1 to 9999, which times can be in."""
MAX_DURATION_SECONDS = 315_576_000_000
SECOND_NANOS = 10**9

TIME_TYPES = frozenset({"google.protobuf.Timestamp", "google.protobuf.Duration"})


def check(message: Message) -> None:
    """Check a message by the rules in the .proto files. Raise UmgError with the path of the first invalid field."""
    _check_times(message, _time_fields(message.DESCRIPTOR), "")  # first: the rules compare times
    violations = _validator().collect_violations(message, fail_fast=True)
    if violations:
        raise _error(violations[0], message)


@cache
def _validator() -> "Validator":
    from protovalidate import Validator  # here: it takes 10 MB, and bodies of HTTP callers have been checked by codecs

    return Validator()


@dataclass(frozen=True)
class _TimeField:
    """Field with a time or duration (`inner` is empty), or with a message that has one (in the fields `inner`)."""

    name: str
    inner: tuple["_TimeField", ...] = ()


@cache
def _time_fields(kind: Descriptor) -> tuple[_TimeField, ...]:
    return tuple(_found_time_fields(kind, frozenset()))


def _found_time_fields(kind: Descriptor, outer: frozenset[str]) -> Iterator[_TimeField]:
    for field in kind.fields:
        inner = field.message_type
        if inner is None or field.is_repeated or inner.full_name in outer:
            continue
        if inner.full_name in TIME_TYPES:
            yield _TimeField(field.name)
        elif found := tuple(_found_time_fields(inner, outer | {kind.full_name})):
            yield _TimeField(field.name, found)


def _check_times(message: Message, fields: tuple[_TimeField, ...], path: str) -> None:
    """Check the times and durations in those fields of a message that are set."""
    for field in fields:
        if not message.HasField(field.name):
            continue
        value, at = getattr(message, field.name), f"{path}{field.name}"
        if field.inner:
            _check_times(value, field.inner, f"{at}.")
        elif isinstance(value, Timestamp):
            if not (FIRST_SECOND <= value.seconds <= LAST_SECOND and 0 <= value.nanos < SECOND_NANOS):
                raise invalid(at, "it is no time of the years 1 to 9999 with 0 to 999999999 nanos; correct it")
        elif not _is_duration(value.seconds, value.nanos):
            raise invalid(
                at, "its seconds and nanos are no duration; give both one sign, and less than a second as nanos"
            )


def _is_duration(seconds: int, nanos: int) -> bool:
    is_bounded = abs(seconds) <= MAX_DURATION_SECONDS and abs(nanos) < SECOND_NANOS
    return is_bounded and (not seconds or not nanos or (seconds < 0) == (nanos < 0))


def _error(violation: "Violation", message: Message) -> UmgError:
    proto = violation.proto
    rule_id, text = proto.rule_id, proto.message
    path = ""
    for element in proto.field.elements if proto.field is not None else ():
        path += f".{element.field_name}" if path else element.field_name
        subscript = element.subscript
        if subscript is not None:
            path += f"[{subscript.value}]"
    if not path and (named := rule_id.partition(".")[0]) in message.DESCRIPTOR.fields_by_name:
        reason = pb.ERROR_REASON_MISSING_FIELD if rule_id.endswith(".required") else pb.ERROR_REASON_INVALID_FIELD
        return UmgError(reason, text, field=named)
    reason = pb.ERROR_REASON_MISSING_FIELD if rule_id in MISSING_RULES else pb.ERROR_REASON_INVALID_FIELD
    # a rule of the whole message has no path: its id begins with a field, or its text names the fields
    return UmgError(reason, f"{path}: {text}", field=path) if path else UmgError(reason, text)
