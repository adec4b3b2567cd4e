"""Authorisation of every route and every method of the schema, for every kind of key.

The rows come from the table of routes and the service descriptors; a row without an entry in the tables below fails.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from datetime import UTC, datetime, timedelta

import aiohttp
import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import MethodDescriptor

from http_facade.routes import ROUTE_TABLE, Route, Shape
from tests.support.gateways import Running, revoke, running
from tests.unit.e2e.authorisation import (
    BODIES,
    CONFIG,
    KEYED_ROUTES,
    METHODS,
    SETTINGS_BODIES,
    TEXT,
    Gate,
    call,
    call_over_http,
    path_of,
    payload,
    request_of,
)
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.key_permissions import ADMIN_SCOPE, PERMITTED_OPERATIONS
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.moderation_operation import MODERATE_OPERATION
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.operations.speech_operation import SPEAK_OPERATION
from umg_grpc.operations.transcription_operation import TRANSCRIBE_OPERATION
from umg_grpc.operations.wire_formats_by_name import unary_operation

pytestmark = pytest.mark.asyncio(loop_scope="module")

SHAPES: Mapping[Shape, str] = {
    Shape.GENERATE: "generate",
    Shape.COMPACT: "generate",
    Shape.COUNT_TOKENS: "generate",
    Shape.GET_RESPONSE: "generate",
    Shape.DELETE_RESPONSE: "generate",
    Shape.CANCEL_RESPONSE: "generate",
    Shape.LIST_INPUT_ITEMS: "generate",
    Shape.GENERATE_IMAGE: "images",
    Shape.CREATE_VIDEO: "videos",
    Shape.GET_VIDEO: "videos",
    Shape.LIST_VIDEOS: "videos",
    Shape.DELETE_VIDEO: "videos",
    Shape.REMIX_VIDEO: "videos",
    Shape.GET_VIDEO_CONTENT: "videos",
    Shape.LIST_MODELS: "models",
    Shape.GET_MODEL: "models",
    Shape.CREATE_KEY: ADMIN_SCOPE,
    Shape.LIST_KEYS: ADMIN_SCOPE,
    Shape.GET_KEY: ADMIN_SCOPE,
    Shape.UPDATE_KEY: ADMIN_SCOPE,
    Shape.ROTATE_KEY: ADMIN_SCOPE,
    Shape.REVOKE_KEY: ADMIN_SCOPE,
    Shape.GET_USAGE: ADMIN_SCOPE,
    Shape.LIST_USAGE: ADMIN_SCOPE,
    Shape.LIST_END_USER_USAGE: ADMIN_SCOPE,
    Shape.GET_CALL_SUMMARY: ADMIN_SCOPE,
    Shape.LIST_REQUESTS: ADMIN_SCOPE,
    Shape.GET_REQUEST: ADMIN_SCOPE,
    Shape.LIST_CHANNELS: ADMIN_SCOPE,
    Shape.LIST_CHANNEL_DETAILS: ADMIN_SCOPE,
    Shape.CHECK_CHANNEL: ADMIN_SCOPE,
    Shape.UPDATE_CHANNEL: ADMIN_SCOPE,
    Shape.LIST_MODEL_PRICES: ADMIN_SCOPE,
    Shape.UPDATE_MODEL_PRICE: ADMIN_SCOPE,
    Shape.LIST_ALERTS: ADMIN_SCOPE,
    Shape.TEST_ALERT_RECEIVER: ADMIN_SCOPE,
    **{
        Shape[f"{verb}_{kind}"]: ADMIN_SCOPE
        for kind in ("ORGANIZATION", "PROJECT")
        for verb in ("CREATE", "GET", "UPDATE", "CLOSE", "OPEN")
    },
    Shape.LIST_ORGANIZATIONS: ADMIN_SCOPE,
    Shape.LIST_PROJECTS: ADMIN_SCOPE,
    Shape.CREATE_USER: ADMIN_SCOPE,
    Shape.LIST_USERS: ADMIN_SCOPE,
    Shape.GET_CALLER: ADMIN_SCOPE,
    Shape.GET_USER: ADMIN_SCOPE,
    Shape.UPDATE_USER: ADMIN_SCOPE,
    Shape.LIST_AUDIT_EVENTS: ADMIN_SCOPE,
    Shape.LIST_SESSIONS: ADMIN_SCOPE,
    Shape.END_SESSION: ADMIN_SCOPE,
    Shape.GET_CONFIG: ADMIN_SCOPE,
    Shape.LIST_TASKS: ADMIN_SCOPE,
    Shape.GET_TASK: ADMIN_SCOPE,
    Shape.REDELIVER_CALLBACK: ADMIN_SCOPE,
}
"""Scope that a key needs for the routes of a shape."""
UNARY_SCOPES = {
    EMBED_OPERATION: "embed",
    RERANK_OPERATION: "rerank",
    MODERATE_OPERATION: "moderate",
    SPEAK_OPERATION: "speech",
    TRANSCRIBE_OPERATION: "transcribe",
}
"""Scope that a key needs for the routes of an operation of `Shape.UNARY`."""
MODEL_SHAPES = {
    *(Shape.GENERATE, Shape.COMPACT, Shape.COUNT_TOKENS, Shape.UNARY, Shape.GENERATE_IMAGE, Shape.CREATE_VIDEO),
    Shape.GET_MODEL,
}

SERVICES = {
    "umg.v1.GenerationService": {"generate"},
    "umg.v1.EmbeddingService": {"embed"},
    "umg.v1.ModerationService": {"moderate"},
    "umg.v1.SpeechService": {"speech"},
    "umg.v1.TranscriptionService": {"transcribe"},
    "umg.v1.RerankService": {"rerank"},
    "umg.v1.ModelService": {"models"},
    "umg.v1.ImageService": {"images"},
    "umg.v1.VideoService": {"videos"},
    "umg.v1.AdminService": {ADMIN_SCOPE},
    "umg.v1.AlertService": {ADMIN_SCOPE},
    "umg.v1.ChannelService": {ADMIN_SCOPE},
    "umg.v1.AccountService": {ADMIN_SCOPE},
    "umg.v1.UserService": {ADMIN_SCOPE},
    "umg.v1.AuditService": {ADMIN_SCOPE},
    "umg.v1.TaskService": {ADMIN_SCOPE},
    "umg.v1.ConfigService": {ADMIN_SCOPE},
    "umg.v1.ModelPriceService": {ADMIN_SCOPE},
}
"""Scopes of which a key needs one for the methods of a service."""
OWN = {
    *("GetUsage", "GetRequestRecord", "ListKeys", "ListUsage", "ListEndUserUsage", "ListRequestRecords", "RotateKey"),
    *("GetCaller", "ListTasks", "GetTask", "RedeliverCallback"),
    "GetCallSummary",
    *("ListSessions", "EndSession"),
}
"""Methods that every key may call for itself; lists contain its own objects."""
OF_OBJECTS = {
    *("GetVideoTask", "ListVideoTasks", "RemixVideoTask", "CheckChannel"),
    *("ListModelPrices", "UpdateModelPrice"),
}
"""Methods whose `model` is a condition on tasks of the caller, an object of administration, or optional, and not the model
of the call.
"""
OWN_SHAPES = {
    *(Shape.GET_REQUEST, Shape.LIST_KEYS, Shape.LIST_USAGE, Shape.LIST_END_USER_USAGE, Shape.LIST_REQUESTS),
    *(Shape.GET_CALLER, Shape.LIST_TASKS, Shape.GET_TASK, Shape.REDELIVER_CALLBACK),
    Shape.GET_CALL_SUMMARY,
    *(Shape.LIST_SESSIONS, Shape.END_SESSION),
}
"""Shapes of routes that every key may call for its own calls; the route of a key names another one here."""
SIGNED = {"umg.v1.FileService.GetFile", "umg.v1.FileService.DownloadFile", "umg.v1.VideoService.ReceiveVideoCallback"}
"""Methods whose requests have a signature, and whose callers need no key."""

INVALID = {"no key": "MISSING_KEY", "unknown": "INVALID_KEY", "expired": "KEY_EXPIRED", "revoked": "INVALID_KEY"}
"""Reason by the kind of a key with which no call is possible."""
KINDS = (*INVALID, "another model", "other operations", "administrator alone", "no administrator", "everything")


WITHOUT_THE_MODEL = {"another model", "administrator alone"}
"""Kinds of keys for which the models of this module do not exist: the operation `models` alone permits no model."""


async def _secrets(gateway: Running) -> dict[str, str]:
    keys, past = ApiKeys(gateway.service.store), datetime.now(UTC) - timedelta(seconds=1)
    earlier = ApiKeys(gateway.service.store, now=lambda: past - timedelta(hours=1))
    secrets = {
        "unknown": "sk-umg-unknown",
        "expired": (await earlier.create("expired", expire_time=past, administrator=True))[1],
        "revoked": (await keys.create("revoked", administrator=True))[1],
        "another model": (await keys.create("another model", model_patterns=["other-*"], administrator=True))[1],
        "administrator alone": (await keys.create("administrator", operations=["models"], administrator=True))[1],
        "no administrator": (await keys.create("no administrator"))[1],
        "everything": (await keys.create("everything", administrator=True))[1],
    }
    await revoke(gateway.service, "revoked", secrets["revoked"])
    await keys.create("another")
    for scopes in (
        ({scope} for scope in SHAPES.values()),
        ({scope} for scope in UNARY_SCOPES.values()),
        SERVICES.values(),
    ):
        for without in scopes:
            name = f"all but {', '.join(sorted(without))}"
            if name not in secrets:
                rest = [operation for operation in PERMITTED_OPERATIONS if operation not in without]
                _, secrets[name] = await keys.create(name, operations=rest, administrator=ADMIN_SCOPE not in without)
    return secrets


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gate(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Gate, None]:
    data = tmp_path_factory.mktemp("authorisation")
    async with (
        running(CONFIG, data) as gateway,
        aiohttp.ClientSession(gateway.url) as session,
        grpc.aio.insecure_channel(gateway.grpc) as channel,
    ):
        yield Gate(gateway, session, channel, await _secrets(gateway))


def denies(kind: str, scopes: set[str]) -> bool:
    """Return whether a valid key of a kind has none of the scopes."""
    if kind == "administrator alone":
        return scopes.isdisjoint({ADMIN_SCOPE, "models"})
    return kind == "other operations" or (kind == "no administrator" and scopes == {ADMIN_SCOPE})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", KEYED_ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_a_route_is_for_keys_with_its_scope_and_model(gate: Gate, route: Route, kind: str) -> None:
    scopes = {SHAPES[route.shape] if route.shape in SHAPES else UNARY_SCOPES[unary_operation(route.format)]}
    model, body = BODIES[route.format]
    path = re.sub(r"\{\w+\}", "absent", path_of(route, model))
    headers = gate.headers(kind, scopes)
    body = SETTINGS_BODIES.get(route.shape, body)
    has_body = route.method in {"POST", "PATCH"}
    async with gate.session.request(route.method, path, headers=headers, **payload(body) if has_body else {}) as answer:
        status, text = answer.status, await answer.text()
    if kind in INVALID:
        assert status == 401, text
    elif denies(kind, scopes) and route.shape not in OWN_SHAPES:
        assert status == 403, text
    elif kind in WITHOUT_THE_MODEL and route.shape in MODEL_SHAPES:
        assert status == 404, text
        assert model in text
    elif route.shape is Shape.LIST_MODELS:
        lists_it = kind not in WITHOUT_THE_MODEL and route.format != "ollama_running"  # whose list is always empty
        assert (status, TEXT in text) == (200, lists_it), text
    elif route.shape in MODEL_SHAPES:
        assert status == 200, text
    else:
        assert status not in {401, 403}, text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name.removeprefix("umg.v1."))
async def test_a_method_is_for_keys_with_its_scope_and_model(gate: Gate, method: MethodDescriptor, kind: str) -> None:
    assert method.containing_service is not None
    service = method.containing_service.full_name
    if method.full_name in SIGNED:
        found, _ = await call(gate, method, gate.headers(kind, {"generate"}), request_of(method))
        assert found == "MISSING_FIELD"
        return
    scopes = SERVICES[service]
    found, _ = await call(gate, method, gate.headers(kind, scopes), request_of(method))
    if kind in INVALID:
        assert found == INVALID[kind]
    elif denies(kind, scopes) and method.name not in OWN:
        assert found == "PERMISSION_DENIED"
    elif kind in WITHOUT_THE_MODEL and names_model(method):
        assert found == "MODEL_NOT_FOUND"
    elif names_model(method):
        assert found == ""
    else:
        assert found in {"", "MISSING_FIELD"}


@pytest.mark.parametrize("kind", ["no key", "unknown", "another model", "other operations", "everything"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name.removeprefix("umg.v1."))
async def test_a_method_has_the_same_callers_over_http(gate: Gate, method: MethodDescriptor, kind: str) -> None:
    assert method.containing_service is not None
    headers = gate.headers(kind, SERVICES.get(method.containing_service.full_name, {"generate"}))
    request = request_of(method)
    expected, _ = await call(gate, method, headers, request)
    if method.name == "ReceiveVideoCallback" and kind in INVALID:
        expected = INVALID[kind]  # providers call the path with the signature instead
    assert await call_over_http(gate, method, headers, request) == expected


def names_model(method: MethodDescriptor) -> bool:
    """Return whether a request of the method names the model of the call."""
    if method.name in OF_OBJECTS:
        return False
    fields = method.input_type.fields_by_name
    inner = fields.get("request")
    return "model" in fields or (inner is not None and "model" in inner.message_type.fields_by_name)


@pytest.mark.parametrize("route", [route for route in ROUTE_TABLE if route.is_probe], ids=lambda route: route.path)
async def test_a_route_for_probes_answers_without_a_key(gate: Gate, route: Route) -> None:
    async with gate.session.request(route.method, route.path) as answer:
        assert answer.status == 200


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", [route for route in ROUTE_TABLE if route.is_signed], ids=lambda route: route.path)
async def test_a_signed_route_checks_no_key(gate: Gate, route: Route, kind: str) -> None:
    path, body = re.sub(r"\{\w+\}", "absent", route.path), {} if route.method == "POST" else None
    headers = gate.headers(kind, {"generate"})
    async with gate.session.request(route.method, path, json=body, headers=headers) as answer:
        assert answer.status == 404
