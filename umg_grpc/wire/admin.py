"""JSON of administration: the messages of `umg.v1.AdminService` under their own field names.

Times are RFC 3339 texts, operations lower-case names (`embed`), integers numbers. In a request null is the same as an
absent field, except in a change of settings: there an absent field keeps its value, and null removes it.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeAlias, TypeVar

import msgspec
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import UNSET, Meta, Struct, UnsetType

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.json import JsonObject, invalid, parse

_PREFIX = "KEY_OPERATION_"

OPERATION_NAMES = {value: name.removeprefix(_PREFIX).lower() for name, value in pb.KeyOperation.items() if value != 0}
"""Operation of a key -> name in JSON, on the command line and in the database."""
OPERATION_VALUES = {name: value for value, name in OPERATION_NAMES.items()}

PERIOD_VALUES: Mapping[str, "pb.BudgetPeriod.ValueType"] = {
    "none": pb.BUDGET_PERIOD_UNSPECIFIED,
    "day": pb.BUDGET_PERIOD_DAY,
    "month": pb.BUDGET_PERIOD_MONTH,
}
"""Period of a budget in JSON -> its value."""
PERIOD_NAMES = {value: name for name, value in PERIOD_VALUES.items()}

Field = TypeVar("Field")
Given: TypeAlias = Field | UnsetType | None
Limit: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_COUNT)]


class Settings(Struct, kw_only=True, forbid_unknown_fields=True):
    """`umg.v1.KeySettings`."""

    name: Given[str] = UNSET
    model_patterns: Given[list[str]] = UNSET
    operations: Given[list[str]] = UNSET
    channels: Given[list[str]] = UNSET
    administrator: Given[bool] = UNSET
    requests_per_minute: Given[Limit] = UNSET
    tokens_per_minute: Given[Limit] = UNSET
    concurrent_requests: Given[Limit] = UNSET
    budget_micro_credits: Given[Limit] = UNSET
    budget_period: Given[Literal["none", "day", "month"]] = UNSET
    expire_time: Given[Annotated[datetime, Meta(tz=True)]] = UNSET
    show_route: Given[bool] = UNSET
    owner: Given[str] = UNSET
    tags: Given[dict[str, str]] = UNSET


class SettingsBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of a creation or change of a key."""

    settings: Settings


class RotateBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of a rotation."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=30 * 86400)] | None = None


def decode_create(body: bytes) -> pb.CreateKeyRequest:
    """Return the request with a body. Raise UmgError naming the field."""
    return pb.CreateKeyRequest(settings=_settings(_given(parse(SettingsBody, body).settings)))


def decode_update(key_id: str, body: bytes) -> pb.UpdateKeyRequest:
    """Return the request that changes the settings present in a body. Raise UmgError naming the field."""
    given = _given(parse(SettingsBody, body).settings)
    if not given:
        raise invalid("settings", "name at least one field to change")
    return pb.UpdateKeyRequest(key_id=key_id, settings=_settings(given), update_mask=FieldMask(paths=given))


def decode_rotate(key_id: str, body: bytes) -> pb.RotateKeyRequest:
    """Return the request with a body, which may be empty. Raise UmgError naming the field."""
    seconds = parse(RotateBody, body or b"{}").overlap_seconds
    overlap = None
    if seconds is not None:
        overlap = Duration()
        overlap.FromTimedelta(timedelta(seconds=seconds))
    return pb.RotateKeyRequest(key_id=key_id, overlap=overlap)


def decode_list(query: Mapping[str, str]) -> pb.ListKeysRequest:
    """Return the request with a query. Raise UmgError naming the parameter."""
    request = pb.ListKeysRequest(page_token=query.get("page_token", ""))
    if (size := query.get("page_size")) is not None:
        if not re.fullmatch(r"[0-9]{1,9}", size):
            raise invalid("page_size", "expected a whole number from 1 to 1000; correct its value")
        request.page_size = int(size)
    ended = query.get("include_ended", "false")
    if ended not in {"true", "false"}:
        raise invalid("include_ended", "expected true or false; correct its value")
    request.include_ended = ended == "true"
    return request


def encode_key(key: pb.Key, secret: str = "") -> bytes:
    """Return the body with a key, and with its secret if there is one."""
    body: JsonObject = {"key": _key(key)}
    if secret:
        body["secret"] = secret
    return msgspec.json.encode(body)


def encode_list(response: pb.ListKeysResponse) -> bytes:
    """Return the body with a page of keys."""
    keys = [_key(key) for key in response.keys]
    return msgspec.json.encode({"keys": keys, "next_page_token": response.next_page_token})


def _given(settings: Settings) -> dict[str, object]:
    """Return the fields that a body has, null included."""
    fields = {name: getattr(settings, name) for name in settings.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not UNSET}


def _settings(given: Mapping[str, object]) -> pb.KeySettings:
    settings = pb.KeySettings()
    for name, value in given.items():
        match value:
            case datetime():
                settings.expire_time.FromDatetime(value.astimezone(UTC))
            case str() if name == "budget_period":
                settings.budget_period = PERIOD_VALUES[value]
            case list() if name == "operations":
                settings.operations.extend(_operation(text, index) for index, text in enumerate(value))
            case list():
                getattr(settings, name).extend(value)
            case dict():
                settings.tags.update(value)
            case None:
                pass
            case _:
                setattr(settings, name, value)
    return settings


def _operation(name: str, index: int) -> "pb.KeyOperation.ValueType":
    if name not in OPERATION_VALUES:
        problem = f"there is no operation `{name}`; choose from {', '.join(OPERATION_VALUES)}"
        raise invalid(f"settings.operations[{index}]", problem)
    return OPERATION_VALUES[name]


def _key(key: pb.Key) -> JsonObject:
    """Return a key with all its fields; a limit or time that it does not have is null."""
    given = key.settings
    settings: JsonObject = {
        "name": given.name,
        "model_patterns": list(given.model_patterns),
        "operations": [OPERATION_NAMES[operation] for operation in given.operations],
        "channels": list(given.channels),
        "administrator": given.administrator,
        "requests_per_minute": given.requests_per_minute if given.HasField("requests_per_minute") else None,
        "tokens_per_minute": given.tokens_per_minute if given.HasField("tokens_per_minute") else None,
        "concurrent_requests": given.concurrent_requests if given.HasField("concurrent_requests") else None,
        "budget_micro_credits": given.budget_micro_credits if given.HasField("budget_micro_credits") else None,
        "budget_period": PERIOD_NAMES[given.budget_period],
        "expire_time": _time(given.expire_time) if given.HasField("expire_time") else None,
        "show_route": given.show_route,
        "owner": given.owner,
        "tags": dict(sorted(given.tags.items())),
    }
    return {
        "key_id": key.key_id,
        "prefix": key.prefix,
        "settings": settings,
        "spent_micro_credits": key.spent_micro_credits,
        "reserved_micro_credits": key.reserved_micro_credits,
        "create_time": _time(key.create_time),
        "revoke_time": _time(key.revoke_time) if key.HasField("revoke_time") else None,
        "last_use_time": _time(key.last_use_time) if key.HasField("last_use_time") else None,
        "previous_prefix": key.previous_prefix,
        "previous_expire_time": _time(key.previous_expire_time) if key.HasField("previous_expire_time") else None,
    }


def _time(time: Timestamp) -> str:
    return time.ToJsonString()
