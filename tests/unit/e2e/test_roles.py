"""Roles: the outcome of each administrative method and route for each role, from one table (the roles of the design), on
objects of the own project, of a colleague in it, and of another project.
"""

import asyncio
import re
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor_pool import Default
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from http_facade.handlers.admin_rpc_table import ADMIN_METHODS
from http_facade.routes import ROUTE_TABLE
from tests.support.gateways import KEY, Running, running
from tests.support.http_admin import is_meant, send
from tests.support.stored_tasks import media_task, task_callback
from tests.support.usage_records import lines, record
from umg_grpc.access.account_levels import ORGANIZATION_KIND, PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys, Key
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.role_permissions import HOLDER_PERMISSIONS, ROLE_PERMISSIONS, permission_name, permission_of
from umg_grpc.access.sessions import UserSessions
from umg_grpc.access.users import SERVICE_ACCOUNT, Users
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.base.time_units import micros_of
from umg_grpc.config.sign_on_section import Sessions as SessionTimes
from umg_grpc.operations import ADMINISTRATIVE_SERVICES
from umg_grpc.store.alert_tables import AlertRow
from umg_grpc.store.usage_record_table import UsageRecords
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio(loop_scope="module")

CONFIG = """
channels: [{name: sandbox, protocols: [sandbox], pace: 0, models: [famO-5]}]
overload: {lag: 10}
alerts: {receivers: {ops: {kind: slack, url: "http://127.0.0.1:1/"}}, rules: {task_dead_letter: {enabled: false}}}
"""
FACES = ("grpc", "http")
ROLES = ("owner", "admin", "member", "viewer", "billing", "holder")
"""Callers in the order of the columns: an owner of the gateway, four roles in the project `mine`, and a key of it."""
OUTCOMES = {"+": ("", 200), "-": ("PERMISSION_DENIED", 403), "0": ("OBJECT_NOT_FOUND", 404)}
"""Sign in the table -> reason of the error over gRPC, and status over HTTP."""
NO_RECEIVER = "https://127.0.0.1:1/"
"""Address at which a connection is refused at once. It is of the task, too, so that the notifier is woken."""
OWN, COLLEAGUE, FOREIGN = "own", "colleague", "foreign"
METHODS = [
    method for name in ADMINISTRATIVE_SERVICES for method in Default().FindServiceByName(f"umg.v1.{name}").methods
]


@dataclass(frozen=True)
class Target:
    """Objects that a request names: of the caller, of a colleague in its project, or of another project."""

    key: str
    request_id: str
    project: str
    user: str
    task: str = "task"
    session: str = "session"
    """Session of the user."""


@dataclass(frozen=True)
class Case:
    method: str
    """Method, with the kind of the account if its requests have one."""
    request: Callable[[Target, str], Message]
    """Returns the request for a target. Its second argument is a new name."""
    own: str
    colleague: str = ""
    foreign: str = ""
    """Outcomes for the objects of another project; "" for a method without an object."""

    @property
    def reads(self) -> bool:
        """Whether the method changes no object, so that its cases can have the same ones."""
        return self.method.startswith(("Get", "List"))


@dataclass(frozen=True)
class Browser:
    address: str = "192.0.2.7"
    agent: str = "a browser"


MASK = FieldMask(paths=["tags"])
KINDS = {"organization": pb.ACCOUNT_KIND_ORGANIZATION, "project": pb.ACCOUNT_KIND_PROJECT}


def key_settings(project: str, name: str) -> pb.KeySettings:
    return pb.KeySettings(name=name, project_id=project)


def membership(target: Target) -> list[pb.Membership]:
    return [pb.Membership(account_id=target.project, role=pb.USER_ROLE_VIEWER)]


CASES = [
    Case("CreateKey", lambda on, name: pb.CreateKeyRequest(settings=key_settings(on.project, name)), "+++---", foreign="+00---"),
    Case("GetKey", lambda on, _: pb.GetKeyRequest(key_id=on.key), "++++++", "++0++-", "+0000-"),
    Case("ListKeys", lambda *_: pb.ListKeysRequest(), "++++++"),
    Case("UpdateKey", lambda on, _: pb.UpdateKeyRequest(key_id=on.key, update_mask=MASK), "+++---", "++0---", "+00---"),
    Case("RotateKey", lambda on, _: pb.RotateKeyRequest(key_id=on.key), "+++--+", "++0---", "+0000-"),
    Case("RevokeKey", lambda on, _: pb.RevokeKeyRequest(key_id=on.key), "+++---", "++0---", "+00---"),
    Case("GetUsage", lambda on, _: pb.GetUsageRequest(key_id=on.key), "++++++", "++0++-", "+0000-"),
    Case("ListUsage", lambda *_: pb.ListUsageRequest(group_by=[pb.USAGE_DIMENSION_MODEL]), "++++++"),
    Case("ListEndUserUsage", lambda *_: pb.ListEndUserUsageRequest(), "++++++"),
    Case("GetCallSummary", lambda *_: pb.GetCallSummaryRequest(), "++++++"),
    Case("GetRequestRecord", lambda on, _: pb.GetRequestRecordRequest(request_id=on.request_id), "++++0+", "++0+00", "+00000"),
    Case("ListRequestRecords", lambda *_: pb.ListRequestRecordsRequest(), "++++++"),
    Case("ListChannels", lambda *_: pb.ListChannelsRequest(), "++-++-"),
    Case("ListChannelDetails", lambda *_: pb.ListChannelDetailsRequest(), "++-+--"),
    Case("CheckChannel", lambda *_: pb.CheckChannelRequest(channel="sandbox", model="famO-5"), "+-----"),
    Case("UpdateChannel", lambda *_: pb.UpdateChannelRequest(channel="sandbox", update_mask=FieldMask(paths=["weight"])), "+-----"),
    Case("ListModelPrices", lambda *_: pb.ListModelPricesRequest(), "+++++-"),
    Case("UpdateModelPrice", lambda *_: pb.UpdateModelPriceRequest(model="famO-5", prices=[pb.Price(unit=pb.BILLABLE_UNIT_REQUEST)]), "+-----"),
    *(
        Case(f"CreateAccount {kind}", lambda _, name, number=number: pb.CreateAccountRequest(kind=number, settings=pb.AccountSettings(name=name)), "+-----")
        for kind, number in KINDS.items()
    ),
    Case("GetAccount project", lambda on, _: pb.GetAccountRequest(kind=KINDS["project"], account_id=on.project), "+++++-", foreign="+0000-"),
    Case("GetAccount organization", lambda *_: pb.GetAccountRequest(kind=KINDS["organization"], account_id="acme"), "+0000-"),
    Case("ListAccounts project", lambda *_: pb.ListAccountsRequest(kind=KINDS["project"]), "+++++-"),
    Case("ListAccounts organization", lambda *_: pb.ListAccountsRequest(kind=KINDS["organization"]), "+++++-"),
    Case("UpdateAccount project", lambda on, _: pb.UpdateAccountRequest(kind=KINDS["project"], account_id=on.project, update_mask=MASK), "++----", foreign="+0----"),
    Case("UpdateAccount organization", lambda *_: pb.UpdateAccountRequest(kind=KINDS["organization"], account_id="acme", update_mask=MASK), "+0----"),
    Case("SetAccountClosed project", lambda on, _: pb.SetAccountClosedRequest(kind=KINDS["project"], account_id=on.project), "++----", foreign="+0----"),
    Case("SetAccountClosed organization", lambda *_: pb.SetAccountClosedRequest(kind=KINDS["organization"], account_id="acme"), "+0----"),
    Case("SetAccountClosed project, closed", lambda *_: pb.SetAccountClosedRequest(kind=KINDS["project"], account_id="unused", closed=True), "+0----"),
    Case("SetAccountClosed organization, closed", lambda *_: pb.SetAccountClosedRequest(kind=KINDS["organization"], account_id="unused", closed=True), "+0----"),
    Case("CreateUser", lambda on, name: pb.CreateUserRequest(kind=pb.USER_KIND_PERSON, settings=pb.UserSettings(name=name, memberships=membership(on))), "++----", foreign="+0----"),
    Case("GetUser", lambda on, _: pb.GetUserRequest(user_id=on.user), "++-+--", foreign="+0-0--"),
    Case("GetCaller", lambda *_: pb.GetCallerRequest(), "++++++"),
    Case("ListUsers", lambda *_: pb.ListUsersRequest(), "++-+--"),
    Case("ListAlerts", lambda *_: pb.ListAlertsRequest(), "++-++-"),
    Case("TestAlertReceiver", lambda *_: pb.TestAlertReceiverRequest(receiver="ops"), "+-----"),
    Case("ListAuditEvents", lambda *_: pb.ListAuditEventsRequest(), "++-+--"),
    Case("ListSessions", lambda *_: pb.ListSessionsRequest(), "++++++"),
    Case("ListSessions of a user", lambda on, _: pb.ListSessionsRequest(user_id=on.user), "++0-00", foreign="+00000"),
    Case("EndSession", lambda on, _: pb.EndSessionRequest(session_id=on.session), "++0-00", foreign="+00000"),
    Case("GetConfig", lambda *_: pb.GetConfigRequest(), "++-+--"),
    Case("ListTasks", lambda *_: pb.ListTasksRequest(), "++++++"),
    Case("GetTask", lambda on, _: pb.GetTaskRequest(task_id=on.task), "++++0+", "++0+00", "+00000"),
    Case("RedeliverCallback", lambda on, _: pb.RedeliverCallbackRequest(task_id=on.task), "+++-0+", "++0-00", "+00000"),
    Case("UpdateUser", lambda on, _: pb.UpdateUserRequest(user_id=on.user, settings=pb.UserSettings(memberships=membership(on)), update_mask=FieldMask(paths=["memberships"])), "++----", foreign="+0----"),
]  # fmt: skip
"""Outcome of each method for each role. For members and holders `own` is the calling key."""


@dataclass
class World:
    gateway: Running
    session: aiohttp.ClientSession
    channel: grpc.aio.Channel
    projects: dict[str, str]
    users: dict[str, str]
    names: int = 0
    callers: dict[str, tuple[Key, str]] = field(default_factory=dict)
    """Role -> a key of it that no call changes, and its secret."""
    objects_to_read: dict[tuple[str, str], tuple[Target, str]] = field(default_factory=dict)
    """Role and kind of the objects -> the objects, and the secret of the role's key, for the methods that read."""

    def name(self) -> str:
        self.names += 1
        return f"name {self.names}"

    async def key(self, project: str, user: str = "", **fields: Any) -> tuple[Key, str]:
        """Create a key with a usage record and a video task. Return the key and its secret."""
        store = self.gateway.service.store
        key, secret = await ApiKeys(store).create(
            self.name(), project_id=self.projects[project], user_id=self.users[user] if user else "", **fields
        )
        made = record(
            0,
            record_id=key.key_id,
            request_id=request_id(key),
            key_id=key.key_id,
            start_micros=micros_of(datetime.now(UTC)),
            end_user=f"of {key.key_id}",
        )
        await UsageRecords(store).insert(lines(made))
        task = media_task(task_id(key), key.key_id, callback_url=NO_RECEIVER)
        async with store.write() as session:
            session.add_all([task, task_callback(f"msg_{key.key_id}", task, url=NO_RECEIVER)])
        return key, secret

    async def target(self, which: str, own: Key) -> Target:
        project = "other" if which == FOREIGN else "mine"
        key = own if which == OWN else (await self.key(project))[0]
        user_id = self.users[f"person of {project}"]
        session = await self.session_of(user_id)
        return Target(key.key_id, request_id(key), self.projects[project], user_id, task_id(key), session)

    async def objects(self, role: str, which: str, *, read: bool) -> tuple[Target, str]:
        """Return objects for a call, and the secret of a key of the role. New ones, unless the call only reads them."""
        if read and (role, which) in self.objects_to_read:
            return self.objects_to_read[role, which]
        if which == OWN and role in {"member", "holder"}:
            own, secret = await self.key_of(role)
        else:
            if role not in self.callers:
                self.callers[role] = await self.key_of(role)
            caller, secret = self.callers[role]
            own = (await self.key("mine"))[0] if which == OWN else caller
        made = await self.target(which, own), secret
        if read:
            self.objects_to_read[role, which] = made
        return made

    async def key_of(self, role: str) -> tuple[Key, str]:
        return await self.key("mine", "" if role == "holder" else role)

    async def session_of(self, user_id: str) -> str:
        """Open a session of a user. Return its id."""
        store = self.gateway.service.store
        user, sessions = await Users(store).get(user_id), UserSessions(store, SessionTimes())
        found = await sessions.get(await sessions.open_of_user(user, Browser()))
        assert found is not None
        return found.session_id

    async def call(self, face: str, request: Message, secret: str) -> tuple[str | int, Message | dict[str, Any]]:
        """Call a method. Return reason or status, and the response."""
        headers = {"authorization": f"Bearer {secret}"} if secret else {}
        if face == "http":
            return await send(self.session, request, headers)
        [service] = request.DESCRIPTOR.file.services_by_name.values()
        method = service.methods_by_name[request.DESCRIPTOR.name.removesuffix("Request")]
        stub = self.channel.unary_unary(
            f"/{service.full_name}/{method.name}",
            request_serializer=lambda message: message.SerializeToString(),
            response_deserializer=GetMessageClass(method.output_type).FromString,
        )
        try:
            return "", await stub(request, metadata=[*headers.items()])
        except grpc.aio.AioRpcError as error:
            return from_rpc(error).name, pb.GetKeyResponse()


def request_id(key: Key) -> str:
    return f"req_of_{key.key_id}"


def task_id(key: Key) -> str:
    return f"task_{key.key_id.removeprefix('key_')}"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[World, None]:
    async with (
        running(CONFIG, tmp_path_factory.mktemp("roles")) as gateway,
        aiohttp.ClientSession(gateway.url) as session,
        grpc.aio.insecure_channel(gateway.grpc) as channel,
    ):
        accounts, users = Accounts(gateway.service.store), Users(gateway.service.store)
        organization = await accounts.create(ORGANIZATION_KIND, {"name": "acme"})
        await accounts.create(ORGANIZATION_KIND, {"name": "unused"})
        await accounts.create(PROJECT_KIND, {"name": "unused"})
        projects = {
            name: (
                await accounts.create(PROJECT_KIND, {"name": name, "organization_id": organization.account_id})
            ).account_id
            for name in ("mine", "other")
        }
        memberships = {role: Membership(projects["mine"], Role(role)) for role in ROLES[1:5]}
        memberships["owner"] = Membership(WHOLE_GATEWAY, Role.OWNER)
        memberships |= {f"person of {name}": Membership(projects[name], Role.VIEWER) for name in projects}
        made = {
            name: (await users.create(SERVICE_ACCOUNT, {"name": name, "email": f"{name.replace(chr(32), chr(46))}@a.example", "memberships": [each]})).user_id
            for name, each in memberships.items()
        }  # fmt: skip
        yield World(gateway, session, channel, projects, made)


@pytest.mark.parametrize("role", ROLES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.method)
async def test_a_role_permits_the_acts_of_the_table(world: World, case: Case, role: str) -> None:
    """Each face has every method with half of the roles, since both have the same check of access."""
    face = FACES[(CASES.index(case) + ROLES.index(role)) % 2]
    for which, outcomes in ((OWN, case.own), (COLLEAGUE, case.colleague), (FOREIGN, case.foreign)):
        if not outcomes:
            continue
        target, secret = await world.objects(role, which, read=case.reads)
        request = case.request(target, world.name())
        found, response = await world.call(face, request, secret)
        assert found == OUTCOMES[outcomes[ROLES.index(role)]][face == "http"], (which, response)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.method)
async def test_a_call_without_credentials_is_rejected(world: World, case: Case) -> None:
    target, _ = await world.objects("holder", COLLEAGUE, read=True)  # no call changes them
    request = case.request(target, world.name())
    assert (await world.call("grpc", request, ""))[0] == "MISSING_KEY"
    assert (await world.call("http", request, ""))[0] == 401


async def test_every_method_and_every_route_has_a_row() -> None:
    assert {method.name for method in METHODS} == {case.method.partition(" ")[0] for case in CASES}
    assert all(permission_of(method.containing_service.name, method.name) for method in METHODS)
    nothing = Target("key", "request", "project", "user")
    requests = [case.request(nothing, "name") for case in CASES]
    shapes = {shape for shape, method in ADMIN_METHODS.items() if any(is_meant(method, each) for each in requests)}
    assert shapes == {route.shape for route in ROUTE_TABLE if route.path.startswith("/admin/v1/")}


@pytest.mark.parametrize("role", ROLES[1:])
async def test_lists_contain_nothing_of_another_project(world: World, role: str) -> None:
    await world.key("other")
    _, secret = await world.key("mine", "" if role == "holder" else role)
    everything: list[Message] = [
        pb.ListKeysRequest(page_size=1000, include_ended=True),
        pb.ListUsageRequest(group_by=[pb.USAGE_DIMENSION_KEY, pb.USAGE_DIMENSION_PROJECT]),
        pb.ListEndUserUsageRequest(),
        pb.GetCallSummaryRequest(group_by=pb.USAGE_DIMENSION_KEY),
        pb.GetCallSummaryRequest(group_by=pb.USAGE_DIMENSION_PROJECT),
        pb.ListRequestRecordsRequest(page_size=1000),
        pb.ListAccountsRequest(include_closed=True),
        pb.ListUsersRequest(include_disabled=True),
        pb.ListAuditEventsRequest(page_size=1000),
        pb.ListTasksRequest(page_size=1000),
    ]
    theirs = {
        *(key.key_id for key in await ApiKeys(world.gateway.service.store).list() if key.project_id != world.projects["mine"]),
        *(world.projects["other"], world.users["person of other"]),
    }  # fmt: skip
    for request in everything:
        found, response = await world.call("grpc", request, secret)
        assert not theirs & set(re.findall(r"\w+", str(response))), request.DESCRIPTOR.name
        assert (found == "") == bool(response.ByteSize()), request.DESCRIPTOR.name  # type: ignore[union-attr]


async def test_a_member_sees_the_totals_of_its_project_and_its_own_keys_alone(world: World) -> None:
    colleague, _ = await world.key("mine")
    own, secret = await world.key("mine", "member")
    _, totals = await world.call("grpc", pb.ListUsageRequest(), secret)
    _, by_key = await world.call("grpc", pb.ListUsageRequest(group_by=[pb.USAGE_DIMENSION_KEY]), secret)
    assert isinstance(totals, pb.ListUsageResponse)
    assert isinstance(by_key, pb.ListUsageResponse)
    keys = {entry.key_id for entry in by_key.entries}
    assert own.key_id in keys
    assert colleague.key_id not in keys
    assert totals.entries[0].request_count > sum(entry.request_count for entry in by_key.entries)
    _, summary = await world.call("grpc", pb.GetCallSummaryRequest(), secret)
    _, of_keys = await world.call("grpc", pb.GetCallSummaryRequest(group_by=pb.USAGE_DIMENSION_KEY), secret)
    assert isinstance(summary, pb.GetCallSummaryResponse)
    assert isinstance(of_keys, pb.GetCallSummaryResponse)
    assert summary.total.request_count == totals.entries[0].request_count
    assert of_keys.total.request_count == sum(entry.request_count for entry in by_key.entries)
    assert {group.value for group in of_keys.groups} <= keys


async def test_a_member_sees_the_end_users_of_its_own_keys_alone(world: World) -> None:
    colleague, _ = await world.key("mine")
    own, of_member = await world.key("mine", "member")
    holder, of_holder = await world.key("mine")
    _, of_admin = await world.key("mine", "admin")
    shown = [f"of {key.key_id}" for key in (colleague, own, holder)]
    for secret, expected in ((of_admin, shown), (of_member, shown[1:2]), (of_holder, shown[2:])):
        _, response = await world.call("grpc", pb.ListEndUserUsageRequest(page_size=10_000), secret)
        assert isinstance(response, pb.ListEndUserUsageResponse)
        assert [each for each in shown if each in {entry.end_user for entry in response.entries}] == expected


async def test_a_viewer_and_billing_see_a_part_of_users_keys_and_channels(world: World) -> None:
    shown, _ = await world.key("mine", model_patterns=["famO-*"], budget_micro_credits=5)
    for role, has_patterns, has_channels in (("viewer", True, True), ("billing", False, False)):
        _, secret = await world.key("mine", role)
        _, key = await world.call("grpc", pb.GetKeyRequest(key_id=shown.key_id), secret)
        assert isinstance(key, pb.GetKeyResponse)
        assert (bool(key.key.settings.model_patterns), key.key.settings.budget_micro_credits) == (has_patterns, 5)
        _, channels = await world.call("grpc", pb.ListChannelsRequest(), secret)
        assert isinstance(channels, pb.ListChannelsResponse)
        assert (bool(channels.channels), [each.model for each in channels.models]) == (has_channels, ["famO-5"])
    for role, has_email in (("viewer", False), ("admin", True)):
        _, secret = await world.key("mine", role)
        _, user = await world.call("grpc", pb.GetUserRequest(user_id=world.users["billing"]), secret)
        assert isinstance(user, pb.GetUserResponse)
        assert bool(user.user.settings.email) == has_email


async def test_a_caller_learns_its_roles_and_their_permissions(world: World) -> None:
    mine, granted = world.projects["mine"], ROLE_PERMISSIONS[Role.ADMIN].items()
    everything = {permission_name(each) for each, extent in granted if extent and each != pb.PERMISSION_UNSPECIFIED}
    found = dict[str, pb.GetCallerResponse]()
    for role in ("admin", "member", ""):
        _, secret = await world.key("mine", role)
        _, response = await world.call("grpc", pb.GetCallerRequest(), secret)
        assert isinstance(response, pb.GetCallerResponse)
        found[role] = response
    admin, member, holder = found.values()
    assert [(each.account_id, each.role) for each in admin.memberships] == [(mine, pb.USER_ROLE_ADMIN)]
    in_mine = [each for each in admin.permissions if list(each.account_ids) == [mine]]
    assert {each.permission for each in in_mine} == everything
    assert {each.extent for each in in_mine} == {pb.PERMISSION_EXTENT_ALL}
    in_key = {each.permission for each in admin.permissions if not each.account_ids}
    assert in_key == set(map(permission_name, HOLDER_PERMISSIONS))
    own = pb.CallerPermission(permission="keys_write", extent=pb.PERMISSION_EXTENT_OWN, account_ids=[mine])
    assert own in member.permissions
    assert (list(holder.memberships), holder.user_id) == ([], "")
    assert {each.permission for each in holder.permissions} == set(map(permission_name, HOLDER_PERMISSIONS))
    assert {each.extent for each in holder.permissions} == {pb.PERMISSION_EXTENT_CALLING_KEY}
    _, owner = await world.call("grpc", pb.GetCallerRequest(), KEY)
    assert isinstance(owner, pb.GetCallerResponse)
    assert [(each.account_id, each.role) for each in owner.memberships] == [("", pb.USER_ROLE_OWNER)]
    assert not any(each.account_ids for each in owner.permissions)


async def test_a_viewer_of_the_audit_log_sees_no_addresses(world: World) -> None:
    made = {
        "name": "addressed",
        "email": "addressed@a.example",
        "memberships": [Membership(world.projects["mine"], Role.VIEWER)],
    }
    await Users(world.gateway.service.store).create(SERVICE_ACCOUNT, made)  # type: ignore[arg-type]
    for role, has_address in (("viewer", False), ("admin", True)):
        _, secret = await world.key("mine", role)
        _, log = await world.call("grpc", pb.ListAuditEventsRequest(object_kinds=["user"]), secret)
        assert isinstance(log, pb.ListAuditEventsResponse)
        [event] = [each for each in log.events if each.object_name == "addressed"]
        assert ("addressed@a.example" in event.after_json, "addressed" in event.after_json) == (has_address, True)


@pytest.mark.parametrize("face", FACES)
async def test_a_refused_act_that_names_a_key_by_its_secret_is_audited_without_it(world: World, face: str) -> None:
    key, named = await world.key("mine")
    for role in ("viewer", "holder"):
        _, secret = await world.key("mine", "" if role == "holder" else role)
        assert (await world.call(face, pb.RevokeKeyRequest(key_id=named), secret))[0] in {"PERMISSION_DENIED", 403}
    _, secret = await world.key("mine", "owner")
    _, log = await world.call("grpc", pb.ListAuditEventsRequest(refused_only=True, object_ids=[key.prefix]), secret)
    assert isinstance(log, pb.ListAuditEventsResponse)
    assert len(log.events) == 2
    assert named not in str(log)


async def test_a_refusal_states_the_own_role_and_the_right_that_it_lacks(world: World) -> None:
    mine = world.projects["mine"]
    settings = pb.UserSettings(memberships=[pb.Membership(account_id=mine, role=pb.USER_ROLE_OWNER)])
    update = pb.UpdateUserRequest(
        user_id=world.users["admin"], settings=settings, update_mask=FieldMask(paths=["memberships"])
    )
    for request, reason in (
        (update, "which neither gives nor takes the role owner in `mine`"),
        (
            pb.CreateAccountRequest(kind=KINDS["project"], settings=pb.AccountSettings(name="new")),
            "which does not permit `accounts_write` of the gateway",
        ),
    ):
        _, secret = await world.key("mine", "admin")
        _, response = await world.call("http", request, secret)
        assert isinstance(response, dict)
        assert response["error"]["message"] == f"not allowed: your role is admin in `mine`, {reason}"


async def test_a_role_sees_the_alerts_of_its_budgets_alone(world: World) -> None:
    keys = [(await world.key(project))[0].key_id for project in ("mine", "other", "mine")]
    objects = {
        "budget": [f"project:{world.projects['mine']}/month", f"project:{world.projects['other']}/month", f"key:{keys[0]}",
                   f"key:{keys[1]}", f"key:{keys[2]}/day"],
        "channel_down": ["sandbox/famO-5"],
    }  # fmt: skip
    async with world.gateway.service.store.write() as session:
        for rule, names in objects.items():
            session.add_all(
                AlertRow(
                    alert_id=world.name(),
                    rule=rule,
                    object=name,
                    threshold=80,
                    period_start=0,
                    summary="",
                    details="{}",
                    open_micros=1,
                    notify_micros=1,
                )
                for name in names
            )
    expected = {
        "owner": {*objects["budget"], *objects["channel_down"]},
        **{role: {objects["budget"][place] for place in (0, 2, 4)} for role in ("admin", "viewer", "billing")},
    }
    for role, seen in expected.items():
        _, secret = await world.key("mine", role)
        _, found = await world.call("grpc", pb.ListAlertsRequest(), secret)
        assert isinstance(found, pb.ListAlertsResponse)
        assert {record.alert.object for record in found.alerts} == seen, role


async def test_a_disabled_user_ends_its_keys(world: World) -> None:
    users = Users(world.gateway.service.store)
    user = await users.create(
        SERVICE_ACCOUNT, {"name": "leaver", "memberships": [Membership(WHOLE_GATEWAY, Role.VIEWER)]}
    )
    world.users["leaver"] = user.user_id
    _, secret = await world.key("mine", "leaver")
    assert (await world.call("grpc", pb.ListKeysRequest(), secret))[0] == ""
    for disabled, reason in ((True, "INVALID_KEY"), (False, "")):
        await users.update(user.user_id, {"disabled": disabled})
        async with asyncio.timeout(60):
            while (await world.call("grpc", pb.ListKeysRequest(), secret))[0] != reason:  # noqa: ASYNC110  # no event reports it
                await asyncio.sleep(0.05)


async def test_an_admin_cannot_get_more_rights(world: World) -> None:
    """An admin of a project tries the ways to the rights of an owner."""
    store = world.gateway.service.store
    _, secret = await world.key("mine", "admin")
    strong = await Users(store).create(SERVICE_ACCOUNT, {"name": "strong", "memberships": [
        Membership(world.projects["mine"], Role.VIEWER), Membership(world.projects["other"], Role.ADMIN)
    ]})  # fmt: skip
    world.users["strong"] = strong.user_id
    of_strong, _ = await world.key("mine", "strong")
    administrator, _ = await world.key("mine", administrator=True)
    mine = world.projects["mine"]
    owner = pb.Membership(account_id=mine, role=pb.USER_ROLE_OWNER)
    gateway = pb.Membership(role=pb.USER_ROLE_VIEWER)
    own = world.users["admin"]
    attempts: list[Message] = [
        pb.CreateKeyRequest(settings=pb.KeySettings(name=world.name(), administrator=True)),
        pb.CreateKeyRequest(settings=pb.KeySettings(name=world.name(), user_id=strong.user_id)),
        pb.RotateKeyRequest(key_id=of_strong.key_id),
        pb.RotateKeyRequest(key_id=administrator.key_id),
        pb.UpdateKeyRequest(key_id=administrator.key_id, update_mask=MASK),
        *(
            pb.UpdateUserRequest(
                user_id=own, settings=pb.UserSettings(memberships=[each]), update_mask=FieldMask(paths=["memberships"])
            )
            for each in (owner, gateway)
        ),
        pb.UpdateUserRequest(user_id=strong.user_id, settings=pb.UserSettings(disabled=True), update_mask=FieldMask(paths=["disabled"])),
    ]  # fmt: skip
    for request in attempts:
        assert (await world.call("grpc", request, secret))[0] == "PERMISSION_DENIED", request
    _, made = await world.call("grpc", pb.CreateKeyRequest(settings=pb.KeySettings(name=world.name())), secret)
    assert isinstance(made, pb.CreateKeyResponse)
    assert made.key.settings.project_id == mine
