"""Headers and JSON values that hostile HTTP callers send, on every route and RPC: each request is answered, none by an
internal error, and a refusal is JSON that names the wrong part.
"""

import asyncio
import json
import os
import random
import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from urllib.parse import urlsplit

import msgspec
import pytest
import pytest_asyncio
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.descriptor_pool import Default

from http_facade.routes import ROUTE_TABLE, Route, Shape
from tests.proofs.fuzz.hostile_values import HEADER_VALUES, JSON_VALUES
from tests.support.gateways import KEY, Running, running
from umg_grpc.operations.embedding_operation import EMBED_OPERATION
from umg_grpc.operations.moderation_operation import MODERATE_OPERATION
from umg_grpc.operations.rerank_operation import RERANK_OPERATION
from umg_grpc.operations.speech_operation import SPEAK_OPERATION
from umg_grpc.operations.transcription_operation import TRANSCRIBE_OPERATION
from umg_grpc.operations.wire_formats_by_name import unary_operation
from umg_grpc.process.service_factory import SERVICE_NAMES

CONFIG = """
channels:
  - {name: sandbox, protocols: [sandbox], pace: 0, models: [famG-2.5-flash, imgC-1, vidA-2, embA-1, rankA-1]}
"""
JSON = b"application/json"
HEADERS = (
    *(b"idempotency-key", b"webhook-id", b"webhook-timestamp", b"webhook-signature", b"authorization", b"x-api-key"),
    *(
        b"x-goog-api-key",
        b"x-request-id",
        b"content-type",
        b"content-encoding",
        b"range",
        b"if-range",
        b"if-none-match",
    ),
    *(
        b"traceparent",
        b"tracestate",
        b"anthropic-version",
        b"anthropic-beta",
        b"openai-beta",
        b"origin",
        b"x-umg-shape",
    ),
    *(b"x-umg-strict", b"x-umg-cache", b"x-umg-timeout", b"x-umg-tags", b"x-stainless-retry-count", b"user-agent"),
    *(b"connect-protocol-version", b"connect-timeout-ms", b"connect-content-encoding", b"grpc-timeout", b"accept"),
    *(b"access-control-request-headers", b"grpc-encoding", b"x-grpc-web", b"cookie", b"x-forwarded-for", b"expect"),
)
UNARY_BODIES = {
    SPEAK_OPERATION: {"model": "tts-1", "input": "x", "voice": "alloy", "speed": 1},
    TRANSCRIBE_OPERATION: {"model": "whisper-1", "file": "x"},
    MODERATE_OPERATION: {"model": "omni-moderation-latest", "input": ["x", {"type": "text", "text": "y"}]},
    EMBED_OPERATION: {"model": "embA-1", "input": ["x"], "dimensions": 4, "content": {"parts": [{"text": "x"}]}},
    RERANK_OPERATION: {"model": "rankA-1", "query": "x", "documents": ["a"], "top_n": 1},
}
BODIES = {
    Shape.GENERATE: {
        "model": "famG-2.5-flash",
        "max_tokens": 9,
        "temperature": 1,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}],
        "input": "x",
        "metadata": {"a": "b"},
        "contents": [{"role": "user", "parts": [{"text": "x"}]}],
    },
    Shape.GENERATE_IMAGE: {
        "model": "imgC-1",
        "prompt": "x",
        "n": 1,
        "size": "1024x1024",
        "response_format": "b64_json",
    },
    Shape.CREATE_VIDEO: {
        "model": "vidA-2",
        "prompt": "x",
        "duration": 4,
        "seconds": "4",
        "seed": 1,
        "image": "https://example.com/a.png",
        "callback_url": "https://example.com/",
        "metadata": {"a": {"b": 1}},
        "content": [{"type": "text", "text": "x"}],
        "parameters": {"prompt": "x"},
    },
    Shape.CREATE_KEY: {"settings": {"name": "n", "tags": {"a": "b"}, "requests_per_minute": 1}},
}
"""Bodies by the shape of a route; each format ignores or refuses the members of others."""
SAMPLES, SEED = (int(os.environ.get(name, default)) for name, default in (("FUZZ_SAMPLES", "24"), ("FUZZ_SEED", "0")))
"""Number of mutations of the body of each route and RPC, and the seed by which they are drawn."""

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass(frozen=True)
class Answer:
    status: int
    content_type: str
    body: bytes


@dataclass(frozen=True)
class Caller:
    gateway: Running

    async def send(self, method: str, path: str, body: bytes, headers: dict[bytes, bytes]) -> Answer:
        """Send a request. Return its whole response; fail if the connection ends without one."""
        fields = {
            b"host": b"x",
            b"authorization": b"Bearer " + KEY.encode(),
            b"content-type": JSON,
            b"content-length": b"%d" % len(body),
            b"connection": b"close",
            **headers,
        }
        place = urlsplit(self.gateway.url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port)
        lines = b"".join(b"%b: %b\r\n" % field for field in fields.items())
        try:
            writer.write(b"%b %b HTTP/1.1\r\n%b\r\n%b" % (method.encode(), path.encode(), lines, body))
            async with asyncio.timeout(60):
                answer = await reader.read()
        finally:
            writer.close()
        assert answer.startswith(b"HTTP/1."), "no response"
        head, _, rest = answer.partition(b"\r\n\r\n")
        kind = re.search(rb"(?mi)^content-type: *([^;\r]*)", head)
        return Answer(int(head[9:12]), kind[1].decode() if kind else "", rest)


def check(answer: Answer, sent: object) -> None:
    """Fail for an internal error, and for an error without a message in JSON."""
    assert answer.status != 500, sent
    assert b"internal error" not in answer.body, sent
    if answer.status == 400 and answer.content_type == "application/json":
        msgspec.json.decode(answer.body)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def caller(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Caller, None]:
    async with running(CONFIG, tmp_path_factory.mktemp("gateway")) as gateway:
        yield Caller(gateway)


def path_of(route: Route) -> str:
    path = re.sub(r"\{model[^}]*\}", "famG-2.5-flash", route.path).replace("{rpc}", "ListModels")
    return re.sub(r"\{[^}]*\}", "abc", path)


def body_of(route: Route) -> bytes:
    unary = UNARY_BODIES[unary_operation(route.format)] if route.shape is Shape.UNARY else {}
    return json.dumps(BODIES.get(route.shape, unary)).encode() if route.method in {"POST", "PATCH"} else b""


def mutations(seed: bytes, count: int) -> Iterator[bytes]:
    """Yield bodies with hostile values in place of values, and of names, of a JSON text: each place before one again."""
    draw = random.Random(SEED)
    places = [found.span() for found in re.finditer(rb'"[^"]*"|-?\d+(?:\.\d+)?|true|\[\]', seed)]
    draw.shuffle(places)
    for start, end in islice(cycle(places), count):
        yield seed[:start] + draw.choice(JSON_VALUES) + seed[end:]


def headers_of(route: Route) -> Sequence[bytes]:
    """Return each third header, or fewer where more routes have this shape and share its code: all of them together
    get every header. The others of a route that is alone meet the routes before and after it.
    """
    alike = [each for each in ROUTE_TABLE if each.shape is route.shape]
    step = min(max(len(alike), 3), 9)
    return HEADERS[(ROUTE_TABLE.index(alike[0]) + alike.index(route)) % step :: step]


@pytest.mark.parametrize("route", ROUTE_TABLE, ids=lambda route: f"{route.method} {route.path}")
async def test_a_header_is_no_internal_error(route: Route, caller: Caller) -> None:
    for name in headers_of(route):
        for value in HEADER_VALUES if name in {b"idempotency-key", b"webhook-id"} else HEADER_VALUES[:2]:
            check(await caller.send(route.method, path_of(route), body_of(route), {name: value}), (name, value))


@pytest.mark.parametrize("route", ROUTE_TABLE, ids=lambda route: f"{route.method} {route.path}")
async def test_a_value_in_a_body_is_no_internal_error(route: Route, caller: Caller) -> None:
    for body in mutations(body_of(route), SAMPLES):
        check(await caller.send(route.method, path_of(route), body, {}), body)


def filled(kind: Descriptor, depth: int = 4) -> dict[str, object]:
    """Return JSON of a message with a value in every field, down to a depth."""
    return {field.json_name: _value(field, depth) for field in kind.fields if depth}


def _value(field: FieldDescriptor, depth: int) -> object:
    inner = field.message_type
    value: object = 1
    if inner is not None and inner.GetOptions().map_entry:
        return {"a": "b"}
    if inner is not None:
        times = {"google.protobuf.Timestamp": "2026-01-01T00:00:00Z", "google.protobuf.Duration": "1s"}
        value = times.get(inner.full_name) or ("name" if inner.name == "FieldMask" else filled(inner, depth - 1))
    elif field.enum_type is not None:
        value = field.enum_type.values[-1].name
    elif field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        value = "YQ=="
    elif field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        value = True
    return [value] if field.is_repeated else value


METHODS = [method for name in SERVICE_NAMES for method in Default().FindServiceByName(name).methods]


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
async def test_a_value_of_an_rpc_in_json_is_no_internal_error(method: MethodDescriptor, caller: Caller) -> None:
    path = f"/{method.containing_service.full_name}/{method.name}"
    seed = json.dumps(filled(method.input_type)).encode()
    kind, is_stream = JSON, method.server_streaming
    if is_stream:
        kind = b"application/connect+json"
    for body in mutations(seed, SAMPLES):
        sent = b"\0" + len(body).to_bytes(4, "big") + body if is_stream else body
        check(await caller.send("POST", path, sent, {b"content-type": kind}), body)


@pytest.mark.parametrize(
    "route",
    [route for route in ROUTE_TABLE if route.needs_key and route.method == "GET"],
    ids=lambda route: f"{route.method} {route.path}",
)
@pytest.mark.parametrize("key", [b"Bearer sk-umg-wrong", b"Basic x"])
async def test_a_wrong_key_is_reported_before_a_query_or_a_header(route: Route, key: bytes, caller: Caller) -> None:
    query = "foo=1&limit=x&page_size=x&start_time=x&bucket=x&after=%ff&index=x&variant=x&pageSize=-1&starting_after=x"
    for headers in ({}, {b"idempotency-key": b"\xff"}):
        answer = await caller.send("GET", f"{path_of(route)}?{query}", b"", {b"authorization": key, **headers})
        assert answer.status == 401, answer.body
