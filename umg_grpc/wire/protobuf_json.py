"""Conversion of any protobuf message to JSON, and from URL query parameters, by the message's descriptor.

A field keeps its name. Times are RFC 3339 texts; a duration is a number of seconds, in a member with the suffix
`_seconds`. Enum values are lower-case names without their prefix, integers numbers. A field that is not set is null,
and so is an unspecified enum value unless `ZERO_NAMES` has a name for it. Texts, booleans, lists and maps are never
null.
"""

import re
from collections.abc import Collection, Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from types import MappingProxyType
from typing import TypeVar

from google.protobuf.descriptor import EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.wire.core.json_decoding import JsonObject, echo, invalid

MessageT = TypeVar("MessageT", bound=Message)

ZERO_NAMES: Mapping[str, str] = MappingProxyType({"umg.v1.BudgetPeriod": "none"})
"""Full name of an enum -> JSON name of its zero value, for enums whose zero value means more than "not set"."""
SECONDS_SUFFIX, DURATION_NAME = "_seconds", "google.protobuf.Duration"
_INTEGERS = frozenset({FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_INT64})
_BOOLEANS = {"true": True, "false": False}


def to_json(message: Message) -> JsonObject:
    """Return a message as a JSON object with all its fields; null for a field that is not set."""
    return {member_name(field): _member(message, field) for field in fields_of(type(message)).values()}


def from_query(kind: type[MessageT], parameters: Iterable[tuple[str, str]], in_path: Collection[str] = ()) -> MessageT:
    """Return the message for the (name, text) parameters of a URL query. A list is a repeated parameter, or one with
    commas; a map is a list of NAME=VALUE. Raise UmgError(INVALID_FIELD) naming the parameter. `in_path`: fields that
    the path of the URL has.
    """
    message = kind()
    fields = {member_name(field): field for name, field in fields_of(kind).items() if name not in in_path}
    for name, text in parameters:
        if (field := fields.get(name)) is None:
            raise invalid(echo(name), f"there is no such parameter; {_remedy(fields)}")
        if _is_map(field):
            getattr(message, field.name).update(_pair(name, part.strip()) for part in text.split(",") if part.strip())
        elif field.is_repeated:
            getattr(message, field.name).extend(
                _of_text(field, part.strip()) for part in text.split(",") if part.strip()
            )
        else:
            _assign(message, field, _of_text(field, text))
    return message


def _remedy(names: Collection[str]) -> str:
    return f"choose from {', '.join(names)}" if names else "leave it out: the operation has none"


def fields_of(kind: type[Message]) -> Mapping[str, FieldDescriptor]:
    """Return the fields of a message type by their names in the .proto file."""
    return {field.name: field for field in kind.DESCRIPTOR.fields if isinstance(field, FieldDescriptor)}


def member_name(field: FieldDescriptor) -> str:
    """Return the name of the JSON member for a field: the field's name, for durations with the suffix `_seconds`."""
    return field.name + SECONDS_SUFFIX if _message_name(field) == DURATION_NAME else field.name


@cache
def enum_names(kind: EnumDescriptor) -> Mapping[int, str]:
    """Return enum number -> name in JSON (lower case, without prefix). Zero is included only if `ZERO_NAMES` has it."""
    prefix = kind.values[0].name.removesuffix("UNSPECIFIED")
    names = {value.number: value.name.removeprefix(prefix).lower() for value in kind.values[1:]}
    return {0: ZERO_NAMES[kind.full_name], **names} if kind.full_name in ZERO_NAMES else names


def _message_name(field: FieldDescriptor) -> str:
    return field.message_type.full_name if field.message_type is not None else ""


def _pair(parameter: str, text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise invalid(parameter, "expected NAME=VALUE; correct its value")
    return name, value


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _member(message: Message, field: FieldDescriptor) -> object:
    value = getattr(message, field.name)
    if _is_map(field):
        return dict(sorted(value.items()))
    if field.is_repeated:
        return [_encoded(field, item) for item in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _encoded(field, value)


def _encoded(field: FieldDescriptor, value: object) -> object:
    match value:
        case Timestamp():
            return value.ToJsonString()
        case Duration():
            seconds = value.ToTimedelta().total_seconds()
            return int(seconds) if seconds.is_integer() else seconds
        case Message():
            return to_json(value)
        case int() if field.enum_type is not None:
            return enum_names(field.enum_type).get(value)
        case _:  # any other scalar is a JSON value already
            return value


def _assign(message: Message, field: FieldDescriptor, value: object) -> None:
    if isinstance(value, Message):
        getattr(message, field.name).CopyFrom(value)
    else:
        setattr(message, field.name, value)


@cache
def _enum_values(kind: EnumDescriptor) -> Mapping[str, int]:
    return {name: number for number, name in enum_names(kind).items()}


def _of_text(field: FieldDescriptor, text: str) -> object:
    if field.enum_type is not None:
        values = _enum_values(field.enum_type)
        if text not in values:
            raise invalid(field.name, f"expected one of {', '.join(values)}; correct its value")
        return values[text]
    if _message_name(field) == "google.protobuf.Timestamp":
        try:
            return _timestamp(text)
        except (ValueError, OverflowError):  # OverflowError: a time of the years 1 to 9999 in its own zone alone
            problem = "expected a time with its zone, such as 2030-01-31T12:00:00Z; correct its value"
            raise invalid(field.name, problem) from None
    if _message_name(field) == DURATION_NAME:
        if not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,6})?", text):
            raise invalid(member_name(field), "expected a number of seconds, such as 2.5; correct its value")
        return duration_of(Decimal(text))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        if text not in _BOOLEANS:
            raise invalid(field.name, "expected true or false; correct its value")
        return _BOOLEANS[text]
    if field.cpp_type in _INTEGERS:
        if not re.fullmatch(r"[0-9]{1,9}", text):
            raise invalid(field.name, "expected a whole number; correct its value")
        return int(text)
    return text


def duration_of(seconds: Decimal) -> Duration:
    """Return the duration of a number of seconds, to the microsecond."""
    duration = Duration()
    duration.FromMicroseconds(int(seconds * 10**6))
    return duration


def _timestamp(text: str) -> Timestamp:
    """Return the time of an RFC 3339 text. Raise ValueError for any other text, and for a time without a time zone;
    OverflowError for one that is not in the years 1 to 9999 in UTC.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        raise ValueError(text)
    timestamp = Timestamp()
    timestamp.FromDatetime(time.astimezone(UTC))
    return timestamp
