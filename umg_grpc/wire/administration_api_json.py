"""JSON of the administration API: messages as in `protobuf_json.py`, and request bodies. Null is the same as an absent
field, except in a change of settings: there absent keeps a value, null removes it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Annotated, Literal, TypeAlias, TypeVar

from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.timestamp_pb2 import Timestamp
from msgspec import UNSET, Meta, Struct, UnsetType

from umg_grpc.v1 import pb
from umg_grpc.v1.limits import MAX_COUNT
from umg_grpc.wire.core.json_decoding import INT64_MAX, invalid, parse
from umg_grpc.wire.protobuf_json import enum_names

OPERATION_NAMES: Mapping[int, str] = enum_names(pb.KeyOperation.DESCRIPTOR)
"""Number of an operation that a key may use -> its name in JSON, on the command line and in the database."""
OPERATION_VALUES = {name: pb.KeyOperation.ValueType(value) for value, name in OPERATION_NAMES.items()}

MODEL_OPERATION_VALUES: Mapping[str, "pb.ModelOperation.ValueType"] = {
    name: pb.ModelOperation.ValueType(value) for value, name in enum_names(pb.ModelOperation.DESCRIPTOR).items()
}
"""Name of a model's operation in JSON and in usage records -> operation."""

PERIOD_NAMES: Mapping[int, str] = enum_names(pb.BudgetPeriod.DESCRIPTOR)
"""Number of a budget period -> its name in JSON; `none` for a budget without a period."""
PERIOD_VALUES = {name: pb.BudgetPeriod.ValueType(value) for value, name in PERIOD_NAMES.items()}

Field = TypeVar("Field")
SettingsT = TypeVar("SettingsT", pb.KeySettings, pb.AccountSettings)
Given: TypeAlias = Field | UnsetType | None
Limit: TypeAlias = Annotated[int, Meta(ge=0, le=MAX_COUNT)]
Amount: TypeAlias = Annotated[int, Meta(ge=0, le=INT64_MAX)]
"""Micro-credits. An int32 would only suffice for 2,147 credits."""


class BudgetJson(Struct, kw_only=True, forbid_unknown_fields=True):
    """Budget in a list of budgets of a request body: the fields of `umg.v1.Budget`."""

    period: Literal["none", "day", "month"] = "none"
    micro_credits: Amount
    soft: bool = False


class KeySettingsJson(Struct, kw_only=True, forbid_unknown_fields=True):
    """Settings of a key in a request body: the fields of `umg.v1.KeySettings`. UNSET is an absent field, None an
    explicit null.
    """

    name: Given[str] = UNSET
    model_patterns: Given[list[str]] = UNSET
    operations: Given[list[str]] = UNSET
    channels: Given[list[str]] = UNSET
    administrator: Given[bool] = UNSET
    requests_per_minute: Given[Limit] = UNSET
    tokens_per_minute: Given[Limit] = UNSET
    concurrent_requests: Given[Limit] = UNSET
    budget_micro_credits: Given[Amount] = UNSET
    budget_period: Given[Literal["none", "day", "month"]] = UNSET
    expire_time: Given[Annotated[datetime, Meta(tz=True)]] = UNSET
    show_route: Given[bool] = UNSET
    owner: Given[str] = UNSET
    tags: Given[dict[str, str]] = UNSET
    budgets: Given[list[BudgetJson]] = UNSET
    project_id: Given[str] = UNSET
    user_id: Given[str] = UNSET


class SettingsBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that changes a key."""

    settings: KeySettingsJson


class NewKeyBody(SettingsBody, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that creates a key."""

    ends_with_session: bool = False


class RotateBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that replaces the secret of a key; the old secret stays valid for `overlap_seconds`."""

    overlap_seconds: Annotated[int, Meta(ge=0, le=30 * 86400)] | None = None


def decode_create(body: bytes) -> pb.CreateKeyRequest:
    """Decode the JSON body of a request that creates a key. Raise UmgError naming the field that is invalid."""
    given = parse(NewKeyBody, body)
    settings = _settings(given_fields(given.settings))
    return pb.CreateKeyRequest(settings=settings, ends_with_session=given.ends_with_session)


def decode_update(body: bytes) -> pb.UpdateKeyRequest:
    """Decode a change of a key: fields in the body change, null removes a value. Raise UmgError naming the field."""
    given = changed_fields(parse(SettingsBody, body).settings)
    return pb.UpdateKeyRequest(settings=_settings(given), update_mask=FieldMask(paths=given))


def decode_rotate(body: bytes) -> pb.RotateKeyRequest:
    """Decode a replacement of a key's secret; b"" is a body without fields. Raise UmgError naming the field."""
    seconds = parse(RotateBody, body or b"{}").overlap_seconds
    overlap = None
    if seconds is not None:
        overlap = Duration()
        overlap.FromTimedelta(timedelta(seconds=seconds))
    return pb.RotateKeyRequest(overlap=overlap)


def given_fields(settings: Struct) -> dict[str, object]:
    """Return the fields of settings that a body has, with their values."""
    fields = {name: getattr(settings, name) for name in settings.__struct_fields__}
    return {name: value for name, value in fields.items() if value is not UNSET}


def changed_fields(settings: Struct) -> dict[str, object]:
    """Return the fields of settings that a body changes. Raise UmgError(INVALID_FIELD) for none."""
    given = given_fields(settings)
    if not given:
        raise invalid("settings", "name at least one field to change")
    return given


def _settings(given: Mapping[str, object]) -> pb.KeySettings:
    return set_fields(pb.KeySettings(), given)


def set_fields(settings: SettingsT, given: Mapping[str, object]) -> SettingsT:
    """Set the fields of the settings of a key or an account to the values of a body. Return the settings."""
    for name, value in given.items():
        match value:
            case datetime() if isinstance(settings, pb.KeySettings):
                settings.expire_time.CopyFrom(_timestamp(value))
            case str() if name == "budget_period" and isinstance(settings, pb.KeySettings):
                settings.budget_period = PERIOD_VALUES[value]
            case list() if name == "operations":
                settings.operations.extend(_operation(text, index) for index, text in enumerate(value))
            case list() if name == "budgets":
                settings.budgets.extend(_budget(budget) for budget in value)
            case list():
                getattr(settings, name).extend(value)
            case dict():
                settings.tags.update(value)
            case None:
                pass
            case _:  # a number, a flag or a text
                setattr(settings, name, value)
    return settings


def _timestamp(time: datetime) -> Timestamp:
    made = Timestamp()
    try:
        made.FromDatetime(time.astimezone(UTC))
    except OverflowError:  # a time of the years 1 to 9999 in its own zone alone
        raise invalid("settings.expire_time", "it is not in the years 1 to 9999 in UTC; correct it") from None
    return made


def _budget(budget: BudgetJson) -> pb.Budget:
    return pb.Budget(period=PERIOD_VALUES[budget.period], micro_credits=budget.micro_credits, soft=budget.soft)


def _operation(name: str, index: int) -> "pb.KeyOperation.ValueType":
    if name not in OPERATION_VALUES:
        problem = f"there is no operation `{name}`; choose from {', '.join(OPERATION_VALUES)}"
        raise invalid(f"settings.operations[{index}]", problem)
    return OPERATION_VALUES[name]
