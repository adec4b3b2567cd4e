"""Page of the person of a session: the holder of a key sees this key alone, on every page and by every method."""

import asyncio
import json
import re
import secrets
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import FieldDescriptor, MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from http_facade.console import object_names
from http_facade.console.page_table import CONSOLE_PAGES
from tests.support.console_browser import Browser
from tests.support.console_world import World, console_world
from tests.support.gateways import KEY
from tests.support.stored_tasks import media_task
from tests.support.usage_records import lines, record
from umg_grpc.access.account_levels import ORGANIZATION_KIND, PROJECT_KIND
from umg_grpc.access.accounts import Accounts
from umg_grpc.access.api_keys import ApiKeys, Key
from umg_grpc.access.budget_settings import Budget
from umg_grpc.access.principals import WHOLE_GATEWAY, Membership, Role
from umg_grpc.access.sessions import UserSessions
from umg_grpc.access.users import PERSON_KIND, Users
from umg_grpc.base.grpc_status import from_rpc
from umg_grpc.base.time_units import micros_of
from umg_grpc.config.sign_on_section import Sessions as SessionTimes
from umg_grpc.operations import ADMINISTRATIVE_SERVICES
from umg_grpc.store.usage_record_table import AttemptRecord, CallDetails, UsageRecord, UsageRecords
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio(loop_scope="module")

HIDDEN = "hidden-of-others"
"""Part of the names of all objects that are not the holder's."""
MICROS = 1_000_000
METHODS = [
    method
    for name in (*ADMINISTRATIVE_SERVICES, "ModelService")
    for method in Default().FindServiceByName(f"umg.v1.{name}").methods
]


@dataclass(frozen=True)
class Client:
    address: str = "192.0.2.7"
    agent: str = "a browser"


@dataclass(frozen=True)
class Holder:
    """Holder of a key in a project of an organisation, and the objects of others, by the fields that name them."""

    world: World
    browser: Browser
    key: Key
    secret: str
    token: str
    others: dict[str, str]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def holder(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Holder, None]:
    async with console_world(tmp_path_factory.mktemp("me")) as world:
        store = world.gateway.service.store
        accounts, keys, users = Accounts(store), ApiKeys(store), Users(store)
        organization = await accounts.create(ORGANIZATION_KIND, {"name": f"org {HIDDEN}", "requests_per_minute": 777})
        settings = {"name": f"project {HIDDEN}", "organization_id": organization.account_id}
        budget = {"budgets": (Budget("month", 20 * MICROS),)}
        project = await accounts.create(PROJECT_KIND, settings | budget)  # type: ignore[arg-type]
        ada = await users.create(PERSON_KIND, {"name": f"ada {HIDDEN}", "email": f"{HIDDEN}@example.com"})
        other, _ = await keys.create(f"key {HIDDEN}", project_id=project.account_id, user_id=ada.user_id)
        await UsageRecords(store).insert(lines(call_of(other, HIDDEN)))
        task = media_task(f"task-{HIDDEN}", other.key_id)
        async with store.write() as session:
            session.add(task)
        boss = await users.create(
            PERSON_KIND, {"name": f"boss {HIDDEN}", "memberships": (Membership(WHOLE_GATEWAY, Role.OWNER),)}
        )
        sessions = UserSessions(store, SessionTimes())
        theirs = await sessions.get(await sessions.open_of_user(boss, Client()))
        assert theirs is not None
        key, secret = await keys.create(
            "mine", project_id=project.account_id, budget_micro_credits=5 * MICROS, budget_period="month"
        )
        await UsageRecords(store).insert(
            lines(call_of(key, "own-failed", status="UNAVAILABLE", reason="UPSTREAM_FAILED"))
        )
        browser = await (await world.browser()).sign_in(secret)
        yield Holder(
            world,
            browser,
            key,
            secret,
            await sessions.open_of_key(secret, Client()),
            {
                "key": other.key_id,
                "account": project.account_id,
                "organization": organization.account_id,
                "project": project.account_id,
                "user": ada.user_id,
                "request": f"req-{HIDDEN}",
                "task": task.task_id,
                "session": theirs.session_id,
                "channel": "sandbox",
                "model": "famG-2.5-flash",
                "receiver": "ops",
            },
        )


def call_of(key: Key, name: str, **facts: str) -> UsageRecord:
    return record(
        0,
        record_id=f"rec-{name}",
        request_id=f"req-{name}",
        key_id=key.key_id,
        start_micros=micros_of(datetime.now(UTC)),
        **facts,
    )


def addresses(others: dict[str, str]) -> Iterator[str]:
    """Yield each page of the console, with the ids of objects of others in it."""
    for page in CONSOLE_PAGES:
        path = re.sub(r"\{(\w+?)(?:_id)?(?::.+?)?\}", lambda found: quote(others[found[1]]), page.path)
        yield f"/console/{path}"
    yield f"/console/search?text={HIDDEN}"
    for name in ("keys", "requests", "usage", "tasks", "audit"):
        yield f"/console/{name}?since=30d&project={others['account']}"


def named(others: dict[str, str], request: Message) -> Message:
    """Return the request with the objects of others in all of its fields that name one."""
    for field in request.DESCRIPTOR.fields:
        value = others.get(re.sub("_ids?$", "", field.name), "")
        if value and field.type == FieldDescriptor.TYPE_STRING:
            if field.is_repeated:
                getattr(request, field.name).append(value)
            else:
                setattr(request, field.name, value)
    return request


async def outcome(channel: grpc.aio.Channel, method: MethodDescriptor, request: Message, credential: str) -> object:
    stub: grpc.aio.UnaryUnaryMultiCallable[Message, Message] = channel.unary_unary(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    try:
        response = await stub(request, metadata=[("authorization", credential)])
    except grpc.aio.AioRpcError as error:
        return from_rpc(error).name
    assert HIDDEN not in str(response), method.name
    return response


async def test_every_page_shows_a_holder_the_own_key_alone(holder: Holder) -> None:
    for address in addresses(holder.others):
        page = await holder.browser.get(address)
        shown = re.sub(r'(value|href)="[^"]*"', "", page.text)  # of filters, which repeat the address
        for repeated in (holder.others["task"], holder.others["request"], f"Nothing is named {HIDDEN}"):
            shown = shown.replace(repeated, "")
        assert page.status in {200, 403, 404}, (address, page.text)
        assert HIDDEN not in shown, address
        listed = set(re.findall(r'<li><a href="(/[^"]*)"', page.text))
        assert listed in (set(), {"/console/me", "/console/requests", "/playground", "/docs"}), address


async def test_a_session_of_a_key_has_the_rights_of_the_key(holder: Holder) -> None:
    async with grpc.aio.insecure_channel(holder.world.gateway.grpc) as channel:
        for method in METHODS:
            kind = GetMessageClass(method.input_type)
            for request in (kind(), named(holder.others, kind())):
                found = [
                    await outcome(channel, method, request, credential)
                    for credential in (f"Bearer {holder.secret}", f"Session {holder.token}")
                ]
                by_key, by_session = map(kind_of, found)
                assert by_session == by_key, (method.full_name, request)


def kind_of(found: object) -> object:
    """Return the response without its moments and the session, or the reason of a refusal."""
    if isinstance(found, pb.GetCallerResponse):
        found.ClearField("session_id")
        found.ClearField("session_expire_time")
    text = re.sub(r"\s*(seconds|nanos): \d+", "", str(found))  # a moment at a whole second has no `nanos`
    return re.sub(r"\s*last_use_time \{\s*\}", "", text)  # written some time after the first use


async def test_the_own_page_has_spend_limits_models_calls_and_the_secret_anew(holder: Holder) -> None:
    first = await holder.browser.get("/console")
    assert first.path == "/console/me"
    assert "5.00 left of 5.00" in first.text
    assert "20.00 left of 20.00" in first.text  # of the project
    assert ">777<" in first.text  # of the organisation
    assert 'href="/playground?model=famG-2.5-flash"' in first.text
    assert "req-own-failed" in first.text
    story = await holder.browser.get("/console/requests/req-own-failed")
    assert (story.status, story.problem) == (200, "")
    _, secret = await ApiKeys(holder.world.gateway.service.store).create("rotated")
    browser = await (await holder.world.browser()).sign_in(secret)
    made = await browser.post("/console/me", (await browser.get("/console/me")).form("rotate") | {"overlap": "0"})
    assert re.search(r"sk-umg-[\w-]+", made.text), made.problem
    assert (await browser.get("/console/me")).path.startswith("/auth/login")  # its secret has ended


@pytest.mark.parametrize("role", list(Role))
async def test_a_person_has_roles_keys_and_sessions_there(holder: Holder, role: Role) -> None:
    world = holder.world
    person = await world.person(role, world.projects["mine"])
    page = await person.get("/console/me")
    assert (page.status, f"{role}</strong>" in page.text or f"{role} of mine" in page.text) == (200, True), page.problem
    assert f"key of {world.people[-1]}" in page.text
    assert HIDDEN not in page.text
    assert page.text.count(">this one<") == 1


STORY = CallDetails(
    attempts=[
        AttemptRecord(channel="main", model="real-5", start_micros=0, duration_micros=2000, status=402, request_id="up-7f3c9e", reason="UPSTREAM_FAILED", kind="unpaid", message="<script>alert(1)</script>"),
        AttemptRecord(channel="spare", model="spare-5", start_micros=2000, duration_micros=500, status=0, request_id="", reason="CANCELLED"),
    ],
    message="try again", first_output_micros=None, dropped=["top_k"],
)  # fmt: skip


async def test_the_story_of_a_failed_call_states_the_remedy(holder: Holder) -> None:
    world, store = holder.world, holder.world.gateway.service.store
    key, secret = await ApiKeys(store).create("complains")
    failed = record(0, record_id="story", request_id="req-story", key_id=key.key_id, status="UNAVAILABLE", reason="UPSTREAM_FAILED", start_micros=micros_of(datetime.now(UTC)), details=STORY)  # fmt: skip
    await UsageRecords(store).insert(lines(failed))
    page = await world.owner.get("/console/requests/req-story")
    assert "What to do: the account has no credit or quota left: check its bill at the provider" in page.text
    for shown in ("up-7f3c9e", "402", "top_k", "Bodies are not kept", 'href="/playground?kind=chat&amp;model=m"'):
        assert shown in page.text
    assert "<script>alert" not in page.text
    assert re.findall(r'<rect class="(\w+)" x="[\d.]+" y="(\d+)"', page.text) == [("bad", "1"), ("bad", "1")]
    own = await (await world.browser()).sign_in(secret)
    held = await own.get("/console/requests/req-story")
    assert ("Attempts at providers are shown to administrators." in held.text, "up-7f3c9e" in held.text) == (
        True,
        False,
    )


KEY_PATH = "/console/playground-key.json"


async def forms_of(person: Browser) -> dict[str, str]:
    """Return the protecting fields of a request by a script of a page."""
    async with person.session.get("/auth/me") as response:
        return {"csrf_token": (await response.json())["csrf_token"], "form_id": secrets.token_hex(8)}


async def status_of(world: World, secret: str) -> int:
    headers = {"authorization": f"Bearer {secret}"}
    async with world.owner.session.get("/v1/models", headers=headers) as response:
        return response.status


async def test_a_key_of_the_playground_counts_for_the_person_and_ends_with_the_session(holder: Holder) -> None:
    world, mine = holder.world, holder.world.projects["mine"]
    person = await world.person(Role.MEMBER, mine)
    choices = json.loads((await person.get(KEY_PATH)).text)
    assert (choices["may_create"], choices["without_project"]) == (True, False)
    assert (choices["is_typed"], choices["projects"]) == (False, [{"id": mine, "name": "mine"}])
    form = {"act": "create", "project": mine}
    assert (await person.post(KEY_PATH, form | await forms_of(person), origin="https://evil.example")).status == 403
    made = json.loads((await person.post(KEY_PATH, form | await forms_of(person))).text)
    assert await status_of(world, made["secret"]) == 200
    keys = ApiKeys(world.gateway.service.store)
    key = await keys.get(made["key_id"])
    async with person.session.get("/auth/me") as response:
        me = await response.json()
    assert (key.project_id, key.user_id, key.tags) == (mine, me["user_id"], {"umg.session": me["session_id"]})
    assert key.expire_time is not None
    assert key.expire_time <= datetime.fromisoformat(me["idle_end"])
    await keys.update(key.key_id, {"expire_time": datetime.now(UTC) + timedelta(minutes=1)})
    kept = await person.post(KEY_PATH, {"act": "keep", "key_id": key.key_id} | await forms_of(person))
    assert (kept.status, (await keys.get(key.key_id)).expire_time) == (200, key.expire_time)
    await person.post("/auth/logout", await forms_of(person))
    assert (await keys.get(key.key_id)).revoke_time is not None
    async with asyncio.timeout(60):  # each process reads it within a second, which no event reports
        while await status_of(world, made["secret"]) != 401:  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def test_the_project_of_a_key_of_the_playground_is_typed_where_there_are_many(
    holder: Holder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_names, "MAX_OFFERED", 1)
    owner, world = holder.world.owner, holder.world
    choices = json.loads((await owner.get(KEY_PATH)).text)
    assert (choices["is_typed"], choices["projects"], choices["without_project"]) == (True, [], True)
    for project in ("mine", world.projects["mine"]):
        made = json.loads(
            (await owner.post(KEY_PATH, {"act": "create", "project": project} | await forms_of(owner))).text
        )
        assert (await ApiKeys(world.gateway.service.store).get(made["key_id"])).project_id == world.projects["mine"]
    unknown = await owner.post(KEY_PATH, {"act": "create", "project": "nowhere"} | await forms_of(owner))
    assert (unknown.status, "no such" in json.loads(unknown.text)["error"]["message"]) == (404, True)


async def test_roles_that_may_make_no_keys_make_none_for_the_playground(holder: Holder) -> None:
    world = holder.world
    people = [await world.person(role, world.projects["mine"]) for role in (Role.VIEWER, Role.BILLING)]
    for person in (*people, holder.browser):
        assert not json.loads((await person.get(KEY_PATH)).text)["may_create"]
        form = {"act": "create", "project": world.projects["mine"]} | await forms_of(person)
        refused = await person.post(KEY_PATH, form)
        assert (refused.status, bool(json.loads(refused.text)["error"]["message"])) == (403, True)
    body = {"settings": {"name": "no session"}, "ends_with_session": True}
    headers = {"authorization": f"Bearer {KEY}"}
    async with world.owner.session.post("/admin/v1/keys", json=body, headers=headers) as response:
        assert (response.status, "only a session" in await response.text()) == (403, True)


async def test_the_end_of_a_session_by_another_ends_its_keys(holder: Holder) -> None:
    world = holder.world
    one, secret = world.owner, KEY
    other = await (await world.browser()).sign_in(secret)
    made = json.loads((await other.post(KEY_PATH, {"act": "create"} | await forms_of(other))).text)
    async with other.session.get("/auth/me") as response:
        session_id = (await response.json())["session_id"]
    form = (await one.get("/console/me")).form("end_session") | {"session": session_id}
    ended = await one.post("/console/me", form)
    assert "note=session_ended" in ended.path
    assert (await ApiKeys(world.gateway.service.store).get(made["key_id"])).revoke_time is not None
    assert (await other.get("/console/me")).path.startswith("/auth/login")
