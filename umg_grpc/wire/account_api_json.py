"""JSON of request bodies about organisations, projects and users, by the rules of `administration_api_json.py`."""

from collections.abc import Mapping
from typing import Literal

from google.protobuf.field_mask_pb2 import FieldMask
from msgspec import UNSET, Struct

from umg_grpc.v1 import pb
from umg_grpc.wire.administration_api_json import BudgetJson, Given, Limit, changed_fields, given_fields, set_fields
from umg_grpc.wire.core.json_decoding import parse
from umg_grpc.wire.protobuf_json import enum_names

ROLE_VALUES: Mapping[str, "pb.UserRole.ValueType"] = {
    name: pb.UserRole.ValueType(value) for value, name in enum_names(pb.UserRole.DESCRIPTOR).items()
}
"""Name of a role in JSON and on the command line -> role."""
USER_KIND_VALUES: Mapping[str, "pb.UserKind.ValueType"] = {
    name: pb.UserKind.ValueType(value) for value, name in enum_names(pb.UserKind.DESCRIPTOR).items()
}
"""Name of a kind of users in JSON and on the command line -> kind."""


class AccountSettingsJson(Struct, kw_only=True, forbid_unknown_fields=True):
    """Settings of an organisation or project in a request body: the fields of `umg.v1.AccountSettings`."""

    name: Given[str] = UNSET
    organization_id: Given[str] = UNSET
    model_patterns: Given[list[str]] = UNSET
    channels: Given[list[str]] = UNSET
    operations: Given[list[str]] = UNSET
    requests_per_minute: Given[Limit] = UNSET
    tokens_per_minute: Given[Limit] = UNSET
    concurrent_requests: Given[Limit] = UNSET
    budgets: Given[list[BudgetJson]] = UNSET
    tags: Given[dict[str, str]] = UNSET


class AccountBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that creates or changes an organisation or a project."""

    settings: AccountSettingsJson


class MembershipJson(Struct, kw_only=True, forbid_unknown_fields=True):
    """Role in an account: the fields of `umg.v1.Membership`."""

    role: Literal["owner", "admin", "member", "viewer", "billing"]
    account_id: str = ""
    """Id or name of the organisation or project; empty for the whole gateway."""


class UserSettingsJson(Struct, kw_only=True, forbid_unknown_fields=True):
    """Settings of a user in a request body: the fields of `umg.v1.UserSettings`."""

    name: Given[str] = UNSET
    email: Given[str] = UNSET
    memberships: Given[list[MembershipJson]] = UNSET
    disabled: Given[bool] = UNSET


class NewUserBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that creates a user."""

    settings: UserSettingsJson
    kind: Literal["person", "service_account"] = "person"


class UserBody(Struct, kw_only=True, forbid_unknown_fields=True):
    """Body of the request that changes a user."""

    settings: UserSettingsJson


def decode_create_account(body: bytes) -> pb.CreateAccountRequest:
    """Decode the creation of an account, whose kind is in the path. Raise UmgError naming the field that is invalid."""
    given = given_fields(parse(AccountBody, body).settings)
    return pb.CreateAccountRequest(settings=set_fields(pb.AccountSettings(), given))


def decode_update_account(body: bytes) -> pb.UpdateAccountRequest:
    """Decode a change of an account, as `decode_update` does for a key. Raise UmgError naming the field."""
    given = changed_fields(parse(AccountBody, body).settings)
    settings = set_fields(pb.AccountSettings(), given)
    return pb.UpdateAccountRequest(settings=settings, update_mask=FieldMask(paths=given))


def decode_create_user(body: bytes) -> pb.CreateUserRequest:
    """Decode the creation of a user. Raise UmgError naming the field that is invalid."""
    parsed = parse(NewUserBody, body)
    return pb.CreateUserRequest(kind=USER_KIND_VALUES[parsed.kind], settings=_user(given_fields(parsed.settings)))


def decode_update_user(body: bytes) -> pb.UpdateUserRequest:
    """Decode a change of a user, as `decode_update` does for a key. Raise UmgError naming the field."""
    given = changed_fields(parse(UserBody, body).settings)
    return pb.UpdateUserRequest(settings=_user(given), update_mask=FieldMask(paths=given))


def _user(given: Mapping[str, object]) -> pb.UserSettings:
    settings = pb.UserSettings()
    for name, value in given.items():
        match value:
            case list():
                settings.memberships.extend(
                    pb.Membership(account_id=each.account_id, role=ROLE_VALUES[each.role]) for each in value
                )
            case None:
                pass
            case _:  # a text or a flag
                setattr(settings, name, value)
    return settings
