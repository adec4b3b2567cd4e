"""Authorisation of every route and every method of the schema, for every kind of key.

The rows come from the table of routes and the service descriptors; a row without an entry in the tables below fails.
"""

import re
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest
import pytest_asyncio
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.descriptor_pool import Default
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

from http_facade.routes import ROUTES, Route, Shape
from tests.support.gateways import Running, running
from umg_grpc.access.keys import Keys
from umg_grpc.access.permissions import ADMIN, OPERATIONS
from umg_grpc.server import SERVED
from umg_grpc.status import from_rpc
from umg_grpc.v1 import pb

pytestmark = pytest.mark.asyncio(loop_scope="module")

TEXT, MESSAGES, NATIVE = "famO-5", "famC-sonnet-4-5", "famG-2.5-pro"
EMBEDDING, NATIVE_EMBEDDING, RERANK = "text-embedding-3-small", "text-embedding-004", "rerank-v1"
CONFIG = f"""
channels:
  - name: sandbox
    protocols: [sandbox]
    pace: 0
    models: [{TEXT}, {MESSAGES}, {NATIVE}, {EMBEDDING}, {NATIVE_EMBEDDING}, {RERANK}]
overload: {{lag: 10}}
"""

SHAPES: Mapping[Shape, str] = {
    Shape.GENERATE: "generate",
    Shape.COUNT_TOKENS: "generate",
    Shape.GET_RESPONSE: "generate",
    Shape.DELETE_RESPONSE: "generate",
    Shape.CANCEL_RESPONSE: "generate",
    Shape.LIST_INPUT_ITEMS: "generate",
    Shape.EMBED: "embed",
    Shape.RERANK: "rerank",
    Shape.LIST_MODELS: "models",
    Shape.GET_MODEL: "models",
    Shape.CREATE_KEY: ADMIN,
    Shape.LIST_KEYS: ADMIN,
    Shape.GET_KEY: ADMIN,
    Shape.UPDATE_KEY: ADMIN,
    Shape.ROTATE_KEY: ADMIN,
    Shape.REVOKE_KEY: ADMIN,
    Shape.GET_USAGE: ADMIN,
    Shape.LIST_USAGE: ADMIN,
    Shape.LIST_REQUESTS: ADMIN,
    Shape.GET_REQUEST: ADMIN,
    Shape.LIST_CHANNELS: ADMIN,
}
"""Scope that a key needs for the routes of a shape."""
MODEL_SHAPES = {Shape.GENERATE, Shape.COUNT_TOKENS, Shape.EMBED, Shape.RERANK, Shape.GET_MODEL}

HI = [{"role": "user", "content": "Hi"}]
CONTENT = {"parts": [{"text": "Hi"}]}
RANKED = {"model": RERANK, "query": "Hi", "documents": ["Hi"]}
BODIES: Mapping[str, tuple[str, dict[str, Any]]] = {
    "chat": (TEXT, {"model": TEXT, "messages": HI}),
    "responses": (TEXT, {"model": TEXT, "input": "Hi"}),
    "messages": (MESSAGES, {"model": MESSAGES, "messages": HI, "max_tokens": 9}),
    "native": (NATIVE, {"contents": [CONTENT]}),
    "native_embedding": (NATIVE_EMBEDDING, {"content": CONTENT}),
    "native_embeddings": (NATIVE_EMBEDDING, {"requests": [{"content": CONTENT}]}),
    "embeddings": (EMBEDDING, {"model": EMBEDDING, "input": "Hi"}),
    "rerank": (RERANK, RANKED),
    "rerank_v2": (RERANK, RANKED),
    "models": (TEXT, {}),
    "native_models": (NATIVE, {}),
    "admin": ("", {}),
}
"""Model and body of a call by the format of its route."""
SETTINGS_BODY = {"settings": {"name": "another"}}
SETTINGS_SHAPES = {Shape.CREATE_KEY, Shape.UPDATE_KEY}

SERVICES = {
    "umg.v1.GenerationService": {"generate"},
    "umg.v1.EmbeddingService": {"embed"},
    "umg.v1.RerankService": {"rerank"},
    "umg.v1.ModelService": {"models"},
    "umg.v1.ImageService": {"images"},
    "umg.v1.VideoService": {"videos"},
    "umg.v1.FileService": {"images", "videos"},
    "umg.v1.AdminService": {ADMIN},
}
"""Scopes of which a key needs one for the methods of a service."""
OWN = {"GetUsage", "GetRequestRecord"}
"""Methods that every key may call for itself."""
OWN_SHAPES = {Shape.GET_REQUEST}
"""Shapes of routes that every key may call for its own calls; the route of a key names another one here."""
USER = pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="Hi"))])
GENERATE = pb.GenerateRequest(model=TEXT, messages=[USER])
REQUESTS: Mapping[str, Message] = {
    "Generate": GENERATE,
    "StreamGenerate": pb.StreamGenerateRequest(request=GENERATE),
    "CountTokens": pb.CountTokensRequest(request=GENERATE),
    "Embed": pb.EmbedRequest(model=EMBEDDING, inputs=[pb.EmbeddingInput(text="Hi")]),
    "Rerank": pb.RerankRequest(model=RERANK, query="Hi", documents=[pb.RerankDocument(text="Hi")]),
    "GetModel": pb.GetModelRequest(model=TEXT),
    "GetKey": pb.GetKeyRequest(key_id="another"),
}
"""Requests of methods; the request of any other method is empty."""

PROTO = Path(__file__).parents[2] / "proto"
METHODS = [
    method
    for path in sorted(PROTO.glob("umg/v1/*_service.proto"))
    for name in re.findall(r"^service (\w+)", path.read_text(), re.MULTILINE)
    for method in Default().FindServiceByName(f"umg.v1.{name}").methods
]
KEYED_ROUTES = [route for route in ROUTES if route.needs_key]

INVALID = {"no key": "MISSING_KEY", "unknown": "INVALID_KEY", "expired": "KEY_EXPIRED", "revoked": "INVALID_KEY"}
"""Reason by the kind of a key with which no call is possible."""
KINDS = (*INVALID, "another model", "other operations", "administrator alone", "no administrator", "everything")


WITHOUT_THE_MODEL = {"another model", "administrator alone"}
"""Kinds of keys for which the models of this module do not exist: the operation `models` alone permits no model."""


@dataclass(frozen=True)
class Gate:
    """Running gateway with keys of every kind."""

    gateway: Running
    session: aiohttp.ClientSession
    channel: grpc.aio.Channel
    secrets: Mapping[str, str]

    def headers(self, kind: str, scopes: set[str]) -> dict[str, str]:
        """Return the credentials of a kind of key, for a call that needs one of the scopes."""
        if kind == "no key":
            return {}
        named = f"all but {', '.join(sorted(scopes))}" if kind == "other operations" else kind
        return {"authorization": f"Bearer {self.secrets[named]}"}


async def _secrets(gateway: Running) -> dict[str, str]:
    keys, past = Keys(gateway.service.store), datetime.now(UTC) - timedelta(seconds=1)
    earlier = Keys(gateway.service.store, now=lambda: past - timedelta(hours=1))
    secrets = {
        "unknown": "sk-umg-unknown",
        "expired": (await earlier.create("expired", expire_time=past, administrator=True))[1],
        "revoked": (await keys.create("revoked", administrator=True))[1],
        "another model": (await keys.create("another model", model_patterns=["other-*"], administrator=True))[1],
        "administrator alone": (await keys.create("administrator", operations=["models"], administrator=True))[1],
        "no administrator": (await keys.create("no administrator"))[1],
        "everything": (await keys.create("everything", administrator=True))[1],
    }
    await keys.revoke("revoked")
    await keys.create("another")
    for scopes in ({scope} for scope in SHAPES.values()), SERVICES.values():
        for without in scopes:
            name = f"all but {', '.join(sorted(without))}"
            if name not in secrets:
                rest = [operation for operation in OPERATIONS if operation not in without]
                _, secrets[name] = await keys.create(name, operations=rest, administrator=ADMIN not in without)
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
        return scopes.isdisjoint({ADMIN, "models"})
    return kind == "other operations" or (kind == "no administrator" and scopes == {ADMIN})


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("route", KEYED_ROUTES, ids=lambda route: f"{route.method} {route.path}")
async def test_a_route_is_for_keys_with_its_scope_and_model(gate: Gate, route: Route, kind: str) -> None:
    scopes = {SHAPES[route.shape]}
    model, body = BODIES[route.format]
    path = re.sub(r"\{model:.+?\}(?=:|$)", model, route.path) if "{model" in route.path else route.path
    path = re.sub(r"\{\w+\}", "absent", path)
    headers = gate.headers(kind, scopes)
    body = SETTINGS_BODY if route.shape in SETTINGS_SHAPES else body
    has_body = route.method in {"POST", "PATCH"}
    async with gate.session.request(route.method, path, json=body if has_body else None, headers=headers) as answer:
        status, text = answer.status, await answer.text()
    if kind in INVALID:
        assert status == 401, text
    elif denies(kind, scopes) and route.shape not in OWN_SHAPES:
        assert status == 403, text
    elif kind in WITHOUT_THE_MODEL and route.shape in MODEL_SHAPES:
        assert status == 404, text
        assert model in text
    elif route.shape is Shape.LIST_MODELS:
        assert (status, TEXT in text) == (200, kind not in WITHOUT_THE_MODEL), text
    elif route.shape in MODEL_SHAPES:
        assert status == 200, text
    else:
        assert status not in {401, 403}, text


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.full_name.removeprefix("umg.v1."))
async def test_a_method_is_for_keys_with_its_scope_and_model(gate: Gate, method: MethodDescriptor, kind: str) -> None:
    assert method.containing_service is not None
    service = method.containing_service.full_name
    scopes = SERVICES[service]
    found = await outcome(gate, method, gate.headers(kind, scopes))
    if kind in INVALID:
        assert found == INVALID[kind]
    elif denies(kind, scopes) and method.name not in OWN:
        assert found == "PERMISSION_DENIED"
    elif service not in SERVED:
        assert found == "NOT_IMPLEMENTED"  # when it is served, its request belongs in REQUESTS
    elif kind in WITHOUT_THE_MODEL and names_model(method):
        assert found == "MODEL_NOT_FOUND"
    elif names_model(method):
        assert found == ""
    else:
        assert found in {"", "MISSING_FIELD"}


def names_model(method: MethodDescriptor) -> bool:
    """Return whether a request of the method names the model of the call."""
    fields = method.input_type.fields_by_name
    inner = fields.get("request")
    return "model" in fields or (inner is not None and "model" in inner.message_type.fields_by_name)


async def outcome(gate: Gate, method: MethodDescriptor, headers: Mapping[str, str]) -> str:
    """Call the method. Return the reason of its error; "" if there is none."""
    assert method.containing_service is not None
    make = gate.channel.unary_stream if method.server_streaming else gate.channel.unary_unary
    call = make(
        f"/{method.containing_service.full_name}/{method.name}",
        request_serializer=lambda message: message.SerializeToString(),
        response_deserializer=GetMessageClass(method.output_type).FromString,
    )
    request = REQUESTS.get(method.name) or GetMessageClass(method.input_type)()
    try:
        made = call(request, metadata=[*headers.items()])
        if method.server_streaming:
            async for _ in made:
                pass
        else:
            await made
    except grpc.aio.AioRpcError as error:
        return from_rpc(error).name
    return ""


@pytest.mark.parametrize("route", [route for route in ROUTES if not route.needs_key], ids=lambda route: route.path)
async def test_a_route_without_a_key_answers_without_one(gate: Gate, route: Route) -> None:
    async with gate.session.request(route.method, route.path) as answer:
        assert answer.status == 200
