"""Objects of another caller: no route and no method serves, changes or reveals them.

The rows come from the table of routes and the service descriptors; a row without an entry in the tables below fails.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import Descriptor, MethodDescriptor

from http_facade.routes import Route, Shape
from tests.support.gateways import running
from tests.support.polling import pause
from tests.unit.e2e.authorisation import (
    BODIES,
    CONFIG,
    KEYED_ROUTES,
    METHODS,
    TEXT,
    VIDEO,
    VIDEO_D,
    Gate,
    call,
    request_of,
)
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.sessions import UserSessions
from umg_grpc.config.sign_on_section import Sessions as SessionTimes
from umg_grpc.process.service_factory import SERVICE_NAMES
from umg_grpc.v1 import pb, rpc
from umg_grpc.wire.video import VIDEO_FACES
from umg_grpc.wire.video.vid_e_v1_caller_api import MEDIA_KINDS

pytestmark = pytest.mark.asyncio(loop_scope="module")

OWNER, STRANGER = "everything", "no administrator"
"""Kinds of the key that makes the objects, and of the key that then names them."""


@dataclass(frozen=True)
class Browser:
    address: str = "192.0.2.7"
    agent: str = "a browser"


@dataclass(frozen=True)
class Owned:
    """Kind of an object of a caller, and the outcome for other callers that name it."""

    make: Callable[[Gate], Awaitable[str]]
    """Makes an object of the owner, and returns its id."""
    status: int = 404
    reason: str = "OBJECT_NOT_FOUND"


async def post(gate: Gate, path: str, body: Mapping[str, Any], request_id: str = "") -> dict[str, Any]:
    headers = gate.headers(OWNER) | ({"x-request-id": request_id} if request_id else {})
    async with gate.session.post(path, json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()
        decoded: dict[str, Any] = await answer.json()
        return decoded


async def make_response(gate: Gate) -> str:
    return str((await post(gate, "/v1/responses", {"model": TEXT, "input": "Hi"}))["id"])


async def make_thread(gate: Gate) -> str:
    """Return the id of the first answer of a new thread."""
    model, body = BODIES["messages"]
    return str((await post(gate, "/v1/messages", {**body, "model": model, "thread": {"type": "create"}}))["id"])


async def make_record(gate: Gate) -> str:
    """Return the id of a new call, once its record is written."""
    request_id = f"call-{secrets.token_hex(8)}"
    await post(gate, "/v1/chat/completions", BODIES["chat"][1], request_id)
    async with asyncio.timeout(60):
        while True:
            async with gate.session.get(f"/admin/v1/requests/{request_id}", headers=gate.headers(OWNER)) as answer:
                if answer.status == 200:
                    return request_id
            await pause()


async def make_key(gate: Gate) -> str:
    """Return the id of a new key, which is not the stranger's."""
    return (await ApiKeys(gate.gateway.service.store).create(secrets.token_hex(8)))[0].key_id


async def make_task(
    gate: Gate,
    entry: "pb.VideoEntry.ValueType" = pb.VIDEO_ENTRY_UNIFIED,
    kind: "pb.VideoTaskKind.ValueType" = pb.VIDEO_TASK_KIND_UNSPECIFIED,
) -> str:
    """Return the id of a new task, which has ended: only then it can be changed or deleted."""
    stub: rpc.VideoServiceAsyncStub = rpc.VideoServiceStub(gate.channel)  # type: ignore[assignment]
    metadata = [*gate.headers(OWNER).items()]
    request = pb.CreateVideoTaskRequest(
        model=VIDEO_D if entry == pb.VIDEO_ENTRY_D else VIDEO,
        entry=entry,
        kind=kind,
        parameters=pb.VideoParameters(prompt="Hi", duration_seconds=1),
    )
    task_id = (await stub.CreateVideoTask(request, metadata=metadata)).task.task_id
    async with asyncio.timeout(60):
        async for _ in stub.WatchVideoTask(pb.WatchVideoTaskRequest(task_id=task_id), metadata=metadata):
            pass
    return task_id


async def make_external_task(gate: Gate) -> str:
    """Return the owner's own id of a new task."""
    stub: rpc.VideoServiceAsyncStub = rpc.VideoServiceStub(gate.channel)  # type: ignore[assignment]
    external_id = secrets.token_hex(8)
    request = pb.CreateVideoTaskRequest(
        model=VIDEO, parameters=pb.VideoParameters(prompt="Hi"), external_task_id=external_id
    )
    await stub.CreateVideoTask(request, metadata=[*gate.headers(OWNER).items()])
    return external_id


async def make_account(gate: Gate, kind: "pb.AccountKind.ValueType") -> str:
    """Return the id of a new organisation or project."""
    stub: rpc.AccountServiceAsyncStub = rpc.AccountServiceStub(gate.channel)  # type: ignore[assignment]
    request = pb.CreateAccountRequest(kind=kind, settings=pb.AccountSettings(name=secrets.token_hex(8)))
    return (await stub.CreateAccount(request, metadata=[*gate.headers(OWNER).items()])).account.account_id


async def make_user(gate: Gate) -> str:
    """Return the id of a new person."""
    stub: rpc.UserServiceAsyncStub = rpc.UserServiceStub(gate.channel)  # type: ignore[assignment]
    settings = pb.UserSettings(name="Ada", email=f"{secrets.token_hex(8)}@example.com")
    request = pb.CreateUserRequest(kind=pb.USER_KIND_PERSON, settings=settings)
    return (await stub.CreateUser(request, metadata=[*gate.headers(OWNER).items()])).user.user_id


async def make_session(gate: Gate) -> str:
    """Return the id of a new session of the owner's key."""
    service, secret = gate.gateway.service, gate.headers(OWNER)["authorization"].removeprefix("Bearer ")
    sessions = UserSessions(service.store, SessionTimes())
    found = await sessions.get(await sessions.open_of_key(secret, Browser()))
    assert found is not None
    return found.session_id


async def receiver_name(gate: Gate) -> str:
    return "ops"


async def channel_name(gate: Gate) -> str:
    return gate.gateway.service._config.channels[0].name


def task_of(route: Route) -> Owned:
    kind = MEDIA_KINDS.get(route.kind, pb.VIDEO_TASK_KIND_UNSPECIFIED)
    return Owned(partial(make_task, entry=VIDEO_FACES[route.format].entry, kind=kind))


TASK, EXTERNAL_TASK = Owned(make_task), Owned(make_external_task)
RESPONSE, RECORD = Owned(make_response), Owned(make_record)
THREAD = Owned(make_thread, reason="THREAD_NOT_FOUND")
KEY = Owned(make_key, status=403, reason="PERMISSION_DENIED")
ORGANIZATION, PROJECT = (
    Owned(partial(make_account, kind=kind), status=403, reason="PERMISSION_DENIED")
    for kind in (pb.ACCOUNT_KIND_ORGANIZATION, pb.ACCOUNT_KIND_PROJECT)
)
SESSION = Owned(make_session)
USER = Owned(make_user, status=403, reason="PERMISSION_DENIED")
OTHER_USER = Owned(make_user)
ALERT_RECEIVER = Owned(receiver_name, status=403, reason="PERMISSION_DENIED")
CHANNEL = Owned(channel_name, status=403, reason="PERMISSION_DENIED")
OBJECTS: Mapping[Shape, Owned] = {
    Shape.GET_RESPONSE: RESPONSE,
    Shape.DELETE_RESPONSE: RESPONSE,
    Shape.CANCEL_RESPONSE: RESPONSE,
    Shape.LIST_INPUT_ITEMS: RESPONSE,
    Shape.GET_REQUEST: RECORD,
    Shape.GET_TASK: TASK,
    Shape.REDELIVER_CALLBACK: TASK,
    Shape.GET_KEY: KEY,
    Shape.UPDATE_KEY: KEY,
    Shape.ROTATE_KEY: KEY,
    Shape.REVOKE_KEY: KEY,
    Shape.GET_USAGE: KEY,
    Shape.GET_ORGANIZATION: ORGANIZATION,
    Shape.UPDATE_ORGANIZATION: ORGANIZATION,
    Shape.CLOSE_ORGANIZATION: ORGANIZATION,
    Shape.OPEN_ORGANIZATION: ORGANIZATION,
    Shape.GET_PROJECT: PROJECT,
    Shape.UPDATE_PROJECT: PROJECT,
    Shape.CLOSE_PROJECT: PROJECT,
    Shape.OPEN_PROJECT: PROJECT,
    Shape.GET_USER: USER,
    Shape.UPDATE_USER: USER,
    Shape.END_SESSION: SESSION,
    Shape.TEST_ALERT_RECEIVER: ALERT_RECEIVER,
    Shape.CHECK_CHANNEL: CHANNEL,
    Shape.UPDATE_CHANNEL: CHANNEL,
}
"""Objects that the paths of the shapes name. A keyed route with a parameter other than the model needs a row."""
BODIES_OF_SHAPES: Mapping[Shape, Mapping[str, Any]] = {
    Shape.UPDATE_KEY: {"settings": {"owner": "a team"}},
    Shape.UPDATE_ORGANIZATION: {"settings": {"requests_per_minute": 9}},
    Shape.UPDATE_PROJECT: {"settings": {"requests_per_minute": 9}},
    Shape.UPDATE_USER: {"settings": {"name": "Grace"}},
    Shape.REMIX_VIDEO: {"prompt": "at night"},
    Shape.UPDATE_CHANNEL: {"settings": {"disabled": False}},
}
"""Bodies that are not empty."""
AT_A_PROVIDER = "an object in a provider's account; tests/unit/e2e/test_accounts.py has it"
OBJECT_FIELDS: Mapping[str, Owned | str] = {
    "key_id": KEY,
    "task_id": TASK,
    "external_task_id": EXTERNAL_TASK,
    "parameters.draft_task_id": TASK,
    "CreateVideoTask.external_task_id": "the id of a new task",
    "ReceiveVideoCallback.task_id": "its signature is the credential; tests/unit/service/test_video_callbacks.py has it",
    "callback_id": "the id of a notification, which is looked for in the task of the request",
    "request_id": RECORD,
    "response_id": RESPONSE,
    "previous_response_id": RESPONSE,
    "thread.previous_response_id": THREAD,
    "conversation_id": AT_A_PROVIDER,
    "prompt_template.prompt_id": AT_A_PROVIDER,
    "token": "the credential of a link, which needs no key; tests/unit/e2e/test_files.py has it",
    "account_id": PROJECT,
    "organization_id": ORGANIZATION,
    "settings.organization_id": ORGANIZATION,
    "settings.project_id": PROJECT,
    "user_id": USER,
    "ListSessions.user_id": OTHER_USER,
    "session_id": SESSION,
    "settings.user_id": USER,
    "CountTokens.thread.previous_response_id": "a request with a thread is not counted",
}
"""Objects that fields of requests name, or the reason for which a field is not tested here. Each field of a served
method whose name ends in `_id`, and each `token`, needs a row, of its path in the request or in its field `request`; a
row may be for one method alone.
"""

PARAMETER = re.compile(r"\{(?!(?:model|deployment)\b)\w+(?::.+?)?\}")
OBJECT_ROUTES = [route for route in KEYED_ROUTES if PARAMETER.search(route.path)]


def object_fields(message: Descriptor, prefix: str = "") -> Iterator[str]:
    """Yield the paths of the fields of a request that name an object, except those inside of repeated fields."""
    for field in message.fields:
        if field.is_repeated:
            continue
        if field.message_type is not None and field.message_type.file.package == "umg.v1":
            yield from object_fields(field.message_type, f"{prefix}{field.name}.")
        elif field.name.endswith("_id") or field.name == "token":
            yield f"{prefix}{field.name}"


def object_named_by(method: MethodDescriptor, path: str) -> Owned | str | None:
    """Return the row of a field; None without one."""
    inner = path.removeprefix("request.")
    return OBJECT_FIELDS.get(f"{method.name}.{inner}", OBJECT_FIELDS.get(inner))


OBJECT_METHODS = [
    (method, path)
    for method in METHODS
    if method.containing_service is not None and method.containing_service.full_name in SERVICE_NAMES
    for path in object_fields(method.input_type)
    if not isinstance(object_named_by(method, path), str)
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gate, None]:
    data = tmp_path_factory.mktemp("objects")
    async with (
        running(CONFIG, data) as gateway,
        aiohttp.ClientSession(gateway.url) as session,
        grpc.aio.insecure_channel(gateway.grpc) as channel,
    ):
        keys = ApiKeys(gateway.service.store)
        made = {OWNER: (await keys.create(OWNER, administrator=True))[1], STRANGER: (await keys.create(STRANGER))[1]}
        yield Gate(gateway, session, channel, made)


@pytest.mark.parametrize("route", OBJECT_ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_a_route_has_no_object_of_another_caller(gate: Gate, route: Route) -> None:
    owned = task_of(route) if route.format in VIDEO_FACES else OBJECTS[route.shape]
    object_id = await owned.make(gate)

    async def answer_to(kind: str, named: str) -> tuple[int, str]:
        path = PARAMETER.sub(named, route.path)
        body = BODIES_OF_SHAPES.get(route.shape, {}) if route.method in {"POST", "PATCH"} else None
        async with gate.session.request(route.method, path, json=body, headers=gate.headers(kind)) as answer:
            return answer.status, (await answer.text(errors="replace")).replace(named, "ID")

    refused, text = await answer_to(STRANGER, object_id)
    assert refused == owned.status, text
    absent = object_id[:-1] + ("0" if object_id[-1] != "0" else "1")
    assert without_request_id(await answer_to(STRANGER, absent)) == without_request_id((refused, text))
    answered, text = await answer_to(OWNER, object_id)
    assert answered not in {401, 403, 404}, text


def without_request_id(answer: tuple[int, str]) -> tuple[int, str]:
    return answer[0], re.sub(r"req_[\w-]+", "", answer[1])


@pytest.mark.parametrize(
    ("method", "path"), OBJECT_METHODS, ids=[f"{method.name}.{path}" for method, path in OBJECT_METHODS]
)
async def test_a_method_has_no_object_of_another_caller(gate: Gate, method: MethodDescriptor, path: str) -> None:
    owned = object_named_by(method, path)
    assert isinstance(owned, Owned), "a row of OBJECT_FIELDS is missing"
    object_id = await owned.make(gate)

    async def outcome_for(kind: str, named: str) -> tuple[str, str]:
        request = request_of(method)
        inner: Any = request
        *parents, name = path.split(".")
        for parent in parents:
            inner = getattr(inner, parent)
        setattr(inner, name, named)
        reason, message = await call(gate, method, gate.headers(kind), request)
        return reason, message.replace(named, "ID")

    refused = await outcome_for(STRANGER, object_id)
    assert refused[0] == owned.reason, refused
    absent = object_id[:-1] + ("0" if object_id[-1] != "0" else "1")
    assert await outcome_for(STRANGER, absent) == refused
    assert (await outcome_for(OWNER, object_id))[0] not in {owned.reason, "PERMISSION_DENIED"}
