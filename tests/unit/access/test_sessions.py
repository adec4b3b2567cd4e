"""Sessions of people: their ends by time, sign-out and the end of their user or key, and the codes that open one."""

from dataclasses import dataclass
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from tests.unit.access.conftest import Clock
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.audit_log import AuditFilter, AuditLog
from umg_grpc.access.authentication import CREDENTIAL_SECONDS, Authenticator
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.sessions import CODE_MINUTES, UserSession, UserSessions
from umg_grpc.access.users import User, Users
from umg_grpc.base.errors import UmgError
from umg_grpc.config.sign_on_section import Sessions as SessionTimes
from umg_grpc.store import Store
from umg_grpc.store.session_table import SessionRow
from umg_grpc.v1 import pb

IDLE, ABSOLUTE = 100, 250


@dataclass(frozen=True)
class Browser:
    address: str = "192.0.2.7"
    agent: str = "a browser\x00" + "x" * 500


@pytest.fixture
def sessions(store: Store, clock: Clock) -> UserSessions:
    return UserSessions(store, SessionTimes(idle=IDLE, absolute=ABSOLUTE), clock.utc)


async def signed_in(store: Store, *roles: Membership) -> User:
    return await Users(store).sign_in(
        "https://issuer.example", "ada", name="Ada", email="ada@example.com", memberships=roles
    )


async def opened(sessions: UserSessions, store: Store) -> str:
    return await sessions.open_of_user(await signed_in(store, Membership(WHOLE_GATEWAY, Role.VIEWER)), Browser())


async def found(sessions: UserSessions, token: str) -> UserSession:
    session = await sessions.get(token)
    assert session is not None
    return session


async def test_a_session_has_its_users_roles_and_ends(sessions: UserSessions, store: Store, clock: Clock) -> None:
    session = await found(sessions, await opened(sessions, store))
    assert (session.name, session.email, session.key_id) == ("Ada", "ada@example.com", "")
    assert session.caller.principal is not None
    assert session.caller.principal.memberships == session.roles == (Membership(WHOLE_GATEWAY, Role.VIEWER),)
    assert session.idle_end - clock.utc() == timedelta(seconds=IDLE)
    assert session.end - clock.utc() == timedelta(seconds=ABSOLUTE)


async def test_a_page_calls_with_its_session_for_some_seconds(
    sessions: UserSessions, keys: ApiKeys, store: Store, clock: Clock
) -> None:
    authenticator = Authenticator(keys, monotonic=clock, now=clock, sessions=sessions)
    token = await opened(sessions, store)
    credential = await authenticator.session_credential(token)
    caller = authenticator.valid_caller(credential)
    assert caller is not None
    assert (caller.name, caller.session_id) == ("Ada", (await found(sessions, token)).session_id)
    clock.seconds += CREDENTIAL_SECONDS
    assert authenticator.valid_caller(credential) is None
    await sessions.end(token)
    with pytest.raises(UmgError) as caught:
        await authenticator.session_credential(token)
    assert caught.value.reason == pb.ERROR_REASON_INVALID_KEY


async def test_the_token_is_not_stored(sessions: UserSessions, store: Store) -> None:
    token = await opened(sessions, store)
    async with store.read() as session:
        row = (await session.execute(select(SessionRow))).scalar_one()
    assert token not in repr(vars(row))
    assert (row.address, len(row.agent), "\x00" in row.agent) == ("192.0.2.7", 200, False)


async def test_a_sign_in_is_in_the_audit_log(sessions: UserSessions, store: Store) -> None:
    await opened(sessions, store)
    events = await AuditLog(store).page(AuditFilter(kinds=["session"]), None, 10)
    assert [(each.actor_name, each.address, each.method) for each in events] == [("Ada", "192.0.2.7", "sign_in")]


async def test_a_session_ends_without_use(sessions: UserSessions, store: Store, clock: Clock) -> None:
    token = await opened(sessions, store)
    clock.seconds += IDLE
    assert await sessions.get(token) is None


async def test_use_keeps_a_session_until_its_absolute_end(sessions: UserSessions, store: Store, clock: Clock) -> None:
    token = await opened(sessions, store)
    for _ in range(3):
        clock.seconds += IDLE - 20
        session = await found(sessions, token)
    assert session.idle_end == session.end
    clock.seconds += 10
    assert await sessions.get(token) is None


async def test_a_sign_out_ends_a_session(sessions: UserSessions, store: Store) -> None:
    token, other = await opened(sessions, store), await opened(sessions, store)
    await sessions.end(token)
    await sessions.end(token)
    assert await sessions.get(token) is None
    assert await found(sessions, other)


async def test_a_session_ends_with_the_roles_of_its_user(sessions: UserSessions, store: Store) -> None:
    token = await opened(sessions, store)
    await signed_in(store)
    assert await sessions.get(token) is None
    with pytest.raises(UmgError, match="session has ended"):
        await sessions.authenticate(token)


async def test_a_person_without_a_role_opens_no_session(sessions: UserSessions, store: Store) -> None:
    with pytest.raises(UmgError, match="no role") as caught:
        await sessions.open_of_user(await signed_in(store), Browser())
    assert caught.value.reason == pb.ERROR_REASON_PERMISSION_DENIED


async def test_a_code_opens_one_session_within_its_time(sessions: UserSessions, keys: ApiKeys, clock: Clock) -> None:
    key, _ = await keys.create("operator", administrator=True)
    code = await sessions.new_code(key.key_id)
    assert await sessions.get(code) is None
    assert (await found(sessions, await sessions.open_by_code(code, Browser()))).key_id == key.key_id
    late = await sessions.new_code(key.key_id)
    clock.seconds += CODE_MINUTES * 60
    for used in (code, late, "unknown"):
        with pytest.raises(UmgError, match="was used or is older"):
            await sessions.open_by_code(used, Browser())


async def test_a_session_is_not_opened_by_its_own_token(sessions: UserSessions, store: Store) -> None:
    token = await opened(sessions, store)
    with pytest.raises(UmgError):
        await sessions.open_by_code(token, Browser())
    assert await found(sessions, token)


async def test_ended_sessions_are_deleted_by_the_next_sign_in(
    sessions: UserSessions, store: Store, clock: Clock
) -> None:
    await opened(sessions, store)
    clock.seconds += IDLE
    await opened(sessions, store)
    async with store.read() as session:
        assert await session.scalar(select(func.count()).select_from(SessionRow)) == 1


async def test_keys_of_service_accounts_open_sessions_with_their_roles(
    sessions: UserSessions, store: Store, keys: ApiKeys
) -> None:
    roles = (Membership(WHOLE_GATEWAY, Role.ADMIN),)
    account = await Users(store).create("service_account", {"name": "deployer", "memberships": roles})
    person = await signed_in(store, *roles)
    _, secret = await keys.create("of deployer", user_id=account.user_id)
    key, own = await keys.create("of ada", user_id=person.user_id)
    session = await found(sessions, await sessions.open_of_key(secret, Browser()))
    assert (session.roles, session.user_id) == (roles, account.user_id)
    token = await sessions.open_of_key(own, Browser())
    held = await found(sessions, token)  # without roles, as a person's key does not administer
    assert (held.roles, held.key_id, held.caller.administrator) == ((), key.key_id, False)
    await Users(store).update(person.user_id, {"disabled": True})
    assert await sessions.get(token) is None


async def test_sessions_of_a_key_end_with_the_secret_that_opened_them(
    sessions: UserSessions, keys: ApiKeys, clock: Clock
) -> None:
    key, secret = await keys.create("leaked")
    token = await sessions.open_of_key(secret, Browser())
    _, fresh = await keys.rotate(key.key_id, timedelta(seconds=60))
    assert await sessions.get(token) is not None
    clock.seconds += 60
    assert await sessions.get(token) is None
    assert await sessions.get(await sessions.open_of_key(fresh, Browser())) is not None
