"""People and service accounts: creation, roles, sign-ins, and the owner that must be left."""

from dataclasses import dataclass

import pytest

from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.role_permissions import ROLE_PERMISSIONS, Extent, permission_of
from umg_grpc.access.users import PERSON_KIND, SERVICE_ACCOUNT, UserFields, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

OWNER = Membership(WHOLE_GATEWAY, Role.OWNER)
ISSUER = "https://issuer.example"


@pytest.fixture
def users(store: Store) -> Users:
    return Users(store)


async def test_a_user_is_found_by_id_address_and_name(users: Users) -> None:
    ada = await users.create(PERSON_KIND, {"name": "Ada", "email": "Ada@Example.com", "memberships": [OWNER]})
    assert (ada.email, ada.memberships, ada.principal.owns_gateway) == ("ada@example.com", (OWNER,), True)
    for reference in (ada.user_id, "ADA@example.com", "Ada"):
        assert await users.get(reference) == ada
    await users.create(SERVICE_ACCOUNT, {"name": "Ada"})
    with pytest.raises(UmgError, match="several users are meant"):
        await users.get("Ada")
    with pytest.raises(UmgError, match="a user with the e-mail address") as caught:
        await users.create(PERSON_KIND, {"name": "other", "email": "ada@example.com"})
    assert caught.value.reason == pb.ERROR_REASON_ALREADY_EXISTS


@dataclass(frozen=True)
class Rejection:
    id: str
    fields: UserFields
    field: str


REJECTIONS = [
    Rejection("no name", {"name": ""}, "name"),
    Rejection("a name with a space at its end", {"name": "ada "}, "name"),
    Rejection("the name of an id", {"name": "user_1"}, "name"),
    Rejection("no address", {"name": "ada", "email": "ada"}, "email"),
    Rejection("two roles in one account", {"name": "ada", "memberships": [OWNER, OWNER]}, "memberships"),
]


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
async def test_a_malformed_setting_is_named(users: Users, case: Rejection) -> None:
    with pytest.raises(UmgError) as caught:
        await users.create(PERSON_KIND, case.fields)
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_INVALID_FIELD, {"field": case.field})


async def test_a_role_in_an_unknown_account_is_refused(users: Users) -> None:
    with pytest.raises(UmgError, match="no such organisation or project"):
        await users.create(PERSON_KIND, {"name": "ada", "memberships": [Membership("project_1", Role.ADMIN)]})
    assert await users.page("", 10) == ([], "")


async def test_users_are_listed_by_name_page_by_page(users: Users) -> None:
    names = ["b", "a", "c", "a", "d"]
    for name in names:
        await users.create(PERSON_KIND, {"name": name})
    found, after = list[str](), ""
    while True:
        page, after = await users.page(after, 2)
        found += [user.name for user in page]
        if not after:
            break
    assert found == sorted(names)
    await users.update((await users.get("d")).user_id, {"disabled": True})
    assert len((await users.page("", 10))[0]) == 4
    assert len((await users.page("", 10, include_disabled=True, accounts=[WHOLE_GATEWAY]))[0]) == 0
    with pytest.raises(UmgError, match="belongs to no page of users"):
        await users.page("user_1", 2)


async def test_the_last_owner_stays_unless_the_key_of_an_administrator_lives(users: Users, keys: ApiKeys) -> None:
    ada = await users.create(PERSON_KIND, {"name": "ada", "memberships": [OWNER]})
    removals: list[UserFields] = [{"memberships": []}, {"disabled": True}]
    for removal in removals:
        with pytest.raises(UmgError, match="the gateway would have no owner") as caught:
            await users.update(ada.user_id, removal)
        assert caught.value.reason == pb.ERROR_REASON_WRONG_STATE
    assert await users.get("ada") == ada
    await keys.create("admin", administrator=True)
    assert (await users.update(ada.user_id, {"disabled": True})).principal.memberships == ()


async def test_a_sign_in_takes_the_person_with_the_verified_address(users: Users) -> None:
    invited = await users.create(PERSON_KIND, {"name": "ada", "email": "ada@example.com", "memberships": [OWNER]})
    viewer = Membership(WHOLE_GATEWAY, Role.VIEWER)
    unknown = Membership("project_1", Role.ADMIN)
    ada = await users.sign_in(ISSUER, "1", name="Ada", email="ada@example.com", memberships=[viewer, unknown])
    assert (ada.user_id, ada.issuer, ada.subject) == (invited.user_id, ISSUER, "1")
    assert (ada.memberships, ada.issuer_memberships) == ((OWNER,), (viewer,))
    assert ada.last_sign_in_time is not None
    again = await users.sign_in(ISSUER, "1", name="Ada", email="")
    assert (again.user_id, again.issuer_memberships, again.email) == (ada.user_id, (), "ada@example.com")
    stranger = await users.sign_in("https://other.example", "1", name="", email="ada@example.com")
    assert stranger.user_id != ada.user_id
    assert (stranger.name, stranger.email) == ("ada@example.com", "")


async def test_a_disabled_user_does_not_sign_in(users: Users) -> None:
    ada = await users.sign_in(ISSUER, "1", name="ada", memberships=[Membership(WHOLE_GATEWAY, Role.VIEWER)])
    disabled = await users.update(ada.user_id, {"disabled": True})
    assert await users.sign_in(ISSUER, "1", name="ada") == disabled
    assert disabled.principal.memberships == ()


def test_the_roles_and_permissions_are_those_of_the_schema() -> None:
    assert [role.value for role in Role] == list(enum_names(pb.UserRole.DESCRIPTOR).values())
    assert ROLE_PERMISSIONS.keys() == set(Role)
    assert permission_of("UserService", "CreateUser") == pb.PERMISSION_USERS_WRITE
    assert ROLE_PERMISSIONS[Role.VIEWER][pb.PERMISSION_USERS_READ] is Extent.PART
    with pytest.raises(KeyError):
        permission_of("ModelService", "ListModels")
