"""Open sessions of people: their lists and ends over HTTP and gRPC, and by the commands of a database."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import grpc
import pytest_asyncio

from tests.support.gateways import KEY, Running, running
from tests.support.http_admin import HttpAdmin
from tests.support.processes import run
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.sessions import UserSessions
from umg_grpc.access.users import PERSON_KIND, SERVICE_ACCOUNT, User, Users
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.config.sign_on_section import Sessions as SessionTimes
from umg_grpc.store.database_time import utc_of
from umg_grpc.v1 import pb, rpc

CONFIG = """
channels: [{name: sandbox, protocols: [sandbox], models: [famO-5]}]
sign_on: {sessions: {idle: 600, absolute: 6000}}
"""
TIMES = SessionTimes(idle=600, absolute=6000)


@dataclass(frozen=True)
class Browser:
    address: str = "192.0.2.7"
    agent: str = "a browser"


@pytest_asyncio.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Running, None]:
    async with running(CONFIG, tmp_path) as made:
        yield made


async def person(gateway: Running, name: str, role: Role = Role.VIEWER) -> tuple[User, list[str]]:
    """Create a person with two sessions. Return it and the tokens."""
    store = gateway.service.store
    user = await Users(store).create(PERSON_KIND, {"name": name, "memberships": [Membership(WHOLE_GATEWAY, role)]})
    sessions = UserSessions(store, TIMES)
    return user, [await sessions.open_of_user(user, Browser()) for _ in range(2)]


async def sessions_over_grpc(gateway: Running, token: str, **fields: str) -> list[pb.UserSession] | str:
    """Return the sessions that a session lists, or the reason of its refusal."""
    async with grpc.aio.insecure_channel(gateway.grpc) as channel:
        try:
            found = await rpc.UserServiceStub(channel).ListSessions(
                pb.ListSessionsRequest(**fields), metadata=[("authorization", f"Session {token}")]
            )
        except grpc.aio.AioRpcError as error:
            return from_rpc(error).name
        return [*found.sessions]


async def test_a_person_sees_the_own_sessions_and_an_administrator_those_of_a_user(gateway: Running) -> None:
    ada, tokens = await person(gateway, "Ada")
    await person(gateway, "Ben")
    own = await sessions_over_grpc(gateway, tokens[0])
    assert isinstance(own, list)
    admin = HttpAdmin(gateway.url, KEY)
    listed = await admin.call(pb.ListSessionsRequest(user_id="Ada"), pb.ListSessionsResponse)
    assert [*listed.sessions] == own
    assert [(each.user_id, each.key_id, each.address, each.agent) for each in own] == [
        (ada.user_id, "", "192.0.2.7", "a browser")
    ] * 2
    for each in own:
        created = each.create_time.ToDatetime()
        assert each.idle_expire_time.ToDatetime() - each.last_use_time.ToDatetime() == timedelta(seconds=600)
        assert each.expire_time.ToDatetime() - created == timedelta(seconds=6000)
    assert await sessions_over_grpc(gateway, tokens[0], user_id="Ben") == "PERMISSION_DENIED"


async def test_an_ended_session_is_refused_and_the_end_is_audited(gateway: Running) -> None:
    ada, tokens = await person(gateway, "Ada")
    own = await sessions_over_grpc(gateway, tokens[0])
    assert isinstance(own, list)
    admin = HttpAdmin(gateway.url, KEY)
    for each in own:
        await admin.call(pb.EndSessionRequest(session_id=each.session_id), pb.EndSessionResponse)
    assert [await sessions_over_grpc(gateway, token) for token in tokens] == ["INVALID_KEY"] * 2
    events = await admin.call(pb.ListAuditEventsRequest(object_ids=[own[0].session_id]), pb.ListAuditEventsResponse)
    end = events.events[0]
    assert (end.method, end.object_kind, end.object_name) == ("/umg.v1.UserService/EndSession", "session", "Ada")
    assert (await admin.call(pb.ListSessionsRequest(user_id=ada.user_id), pb.ListSessionsResponse)).sessions == []


async def test_the_sessions_of_a_user_include_those_of_its_keys_and_no_others(gateway: Running) -> None:
    store, sessions = gateway.service.store, UserSessions(gateway.service.store, TIMES)
    robot = await Users(store).create(
        SERVICE_ACCOUNT, {"name": "robot", "memberships": [Membership(WHOLE_GATEWAY, Role.VIEWER)]}
    )
    key, secret = await ApiKeys(store).create("robot's", user_id=robot.user_id)
    await sessions.open_of_key(secret, Browser())
    await sessions.open_of_key(KEY, Browser())
    await sessions.new_code(key.key_id)
    past = UserSessions(store, TIMES, lambda: utc_of(store.clock) - timedelta(seconds=700))
    await past.open_of_key(secret, Browser())  # idle for too long
    admin = HttpAdmin(gateway.url, KEY)
    of_robot = await admin.call(pb.ListSessionsRequest(user_id="robot"), pb.ListSessionsResponse)
    assert [(each.user_id, each.key_id) for each in of_robot.sessions] == [(robot.user_id, key.key_id)]
    own = await admin.call(pb.ListSessionsRequest(), pb.ListSessionsResponse)
    assert [each.user_id for each in own.sessions] == [""]
    by_itself = HttpAdmin(gateway.url, secret)
    assert await by_itself.call(pb.ListSessionsRequest(), pb.ListSessionsResponse) == of_robot


async def test_pages_have_each_session_once(gateway: Running) -> None:
    ada, _ = await person(gateway, "Ada")
    for _ in range(3):
        await UserSessions(gateway.service.store, TIMES).open_of_user(ada, Browser())
    admin, found, token = HttpAdmin(gateway.url, KEY), list[str](), ""
    while True:
        request = pb.ListSessionsRequest(user_id="Ada", page_size=2, page_token=token)
        response = await admin.call(request, pb.ListSessionsResponse)
        found += [each.session_id for each in response.sessions]
        if not (token := response.next_page_token):
            break
    assert len(found) == len(set(found)) == 5


async def test_commands_list_and_end_sessions(gateway: Running, tmp_path: Path) -> None:
    _, tokens = await person(gateway, "Ada")
    own = await sessions_over_grpc(gateway, tokens[0])
    assert isinstance(own, list)
    data, remote = ("--data", str(tmp_path)), ("--gateway", gateway.url)
    for flags in (data, remote):
        code, out, err = await run("users", "sessions", "Ada", *flags, environment={"UMG_ADMIN_KEY": KEY})
        assert (code, err) == (0, "")
        assert all(each.session_id in out for each in own)
    code, out, err = await run("users", "end-session", own[0].session_id, *data)
    assert (code, err, own[0].session_id in out) == (0, "", True)
    code, _, err = await run("users", "end-session", own[0].session_id, *data)
    assert (code, "there is no session" in err) == (1, True)
    assert "INVALID_KEY" in [await sessions_over_grpc(gateway, token) for token in tokens]
