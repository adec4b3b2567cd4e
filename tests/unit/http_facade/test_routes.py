"""Table of routes: the router serves exactly its rows, and rejects all other paths."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from yarl import URL

import http_facade
from http_facade.exchange.readiness_response import Readiness
from http_facade.exchange.unknown_paths import UNSERVED_ACTIONS, UNSERVED_ROUTES, Unserved
from http_facade.routes import ROUTE_TABLE, Route
from tests.unit.http_facade.conftest import CHAT, KEY, Face, MakeFace
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.embedding_formats import EMBEDDING_FORMATS
from umg_grpc.wire.rerank import RERANK_FORMATS


def concrete(path: str) -> str:
    return re.sub(r"\{.*?\}", "some", path)


def message_of(body: Any) -> str:
    """Return the message of an error body, which some formats have as the error itself."""
    error = body["error"]
    return str(error if isinstance(error, str) else error["message"])


@pytest.mark.parametrize("route", ROUTE_TABLE, ids=lambda route: f"{route.method} {route.path}")
async def test_every_row_is_served(face: Face, route: Route) -> None:
    headers = {**KEY, "accept-encoding": "identity"}
    async with face.client.request(route.method, face.url(concrete(route.path)), headers=headers) as answer:
        assert "no such path" not in await answer.text()
        assert answer.status != 405


@pytest.mark.parametrize("route", ROUTE_TABLE, ids=lambda route: f"{route.method} {route.path}")
async def test_every_row_refuses_other_methods_and_names_the_allowed_one(face: Face, route: Route) -> None:
    async with face.client.put(face.url(concrete(route.path)), headers=KEY) as answer:
        assert answer.status == 405
        assert route.method in answer.headers["allow"].split(", ")
        assert route.method in message_of(await answer.json())


@pytest.mark.parametrize(
    "route", [route for route in ROUTE_TABLE if route.method == "GET"], ids=lambda route: route.path
)
async def test_every_get_answers_head_without_a_body(face: Face, route: Route) -> None:
    url = face.url(concrete(route.path))
    async with face.client.get(url, headers=KEY) as got, face.client.head(url, headers=KEY) as head:
        assert (head.status, head.content_type) == (got.status, got.content_type)
        assert await head.read() == b""


@pytest.mark.parametrize("row", UNSERVED_ROUTES, ids=lambda row: row.prefix)
async def test_a_known_api_that_is_not_served_is_named_in_the_error(face: Face, row: Unserved) -> None:
    method = "POST" if row.method == "*" else row.method
    # only some actions of a model belong to another API
    rest = f"/some/thing:{UNSERVED_ACTIONS[0]}" if row.prefix.endswith("/models") else "/some/thing"
    path = row.prefix if row.is_alone else row.prefix + rest
    async with face.client.request(method, face.url(f"{path}?key=secret"), headers=KEY) as answer:
        message = message_of(await answer.json())
        assert answer.status == 404
        assert f"the {row.api} API, which this gateway does not serve" in message
        assert "secret" not in message


@dataclass(frozen=True)
class Miss:
    id: str
    path: str
    method: str = "POST"
    status: int = 404
    message: str = "no such path"


MISSES = [
    Miss(id="an unknown path", path="/v1/nothing/here", message="no such path: POST /v1/nothing/here"),
    Miss(id="another method of the root", path="/", status=405, message="POST"),
    Miss(id="a trailing slash", path="/v1/chat/completions/"),
    Miss(id="a double slash in front of a path that needs an exact spelling", path="//admin/v1/keys", method="GET"),
    Miss(id="a version in front of a health check", path="/v1/healthz", method="GET"),
    Miss(id="an encoded slash", path="/v1/chat%2Fcompletions"),
    Miss(id="two slashes that leave no model", path="/v1/models/", method="GET"),
    Miss(id="a prefix that goes on", path="/v1/filesystem"),
    Miss(id="a known API itself", path="/v1/files", method="GET", message="the files API"),
    Miss(id="a known API with a trailing slash", path="/v1/batches/", message="the batches API"),
    Miss(id="a native call that is not served", path="/v1/models/m:asyncBatchEmbedContent", message="the asynchronous embeddings API"),
    Miss(id="a native call that is not served, at the other root", path="/v1beta/models/m:asyncBatchEmbedContent", message="native API"),
    Miss(id="a version of an API whose first is served", path="/v2/classify", message="the second version's API"),
    Miss(id="an action that no model has", path="/v1beta/models/a/b:c:nope", message="a model has no action `nope` here; it has generateContent, streamGenerateContent, countTokens, embedContent, batchEmbedContents"),
    Miss(id="an action that no model has, at the other root", path="/v1/models/m:predict", message="no action `predict`"),
    Miss(id="an action of no model", path="/v1beta/models/:generateContent", message="no model is named before `:generateContent`; call /v1beta/models/{model}:generateContent"),
    Miss(id="another method on the model list", path="/v1/models", status=405, message="supports GET, HEAD"),
    Miss(id="a stored completion", path="/v1/chat/completions/1", method="GET", message="stored chat completions"),
    Miss(id="OPTIONS without CORS", path="/v1/chat/completions", method="OPTIONS", status=405, message="supports POST"),
    Miss(id="OPTIONS on an unknown path", path="/nothing", method="OPTIONS"),
    Miss(id="a method that no path has", path="/v1/chat/completions", method="PURGE", status=405, message="PURGE"),
]  # fmt: skip


@pytest.mark.parametrize("case", MISSES, ids=lambda case: case.id)
async def test_an_unknown_path_is_a_json_error_and_never_a_redirect(face: Face, case: Miss) -> None:
    url = URL(face.url(case.path), encoded=True)
    async with face.client.request(case.method, url, allow_redirects=False) as answer:
        assert (answer.status, answer.content_type) == (case.status, "application/json")
        assert case.message in (await answer.json())["error"]["message"]


async def test_a_percent_encoded_letter_in_a_path_is_decoded(face: Face) -> None:
    url = URL(face.url("/v1/%63hat/completions"), encoded=True)
    async with face.client.post(url, json={"model": "m", "messages": [{"role": "user", "content": "x"}]}) as answer:
        assert answer.status == 200


async def test_the_root_path_answers_probing_clients(face: Face) -> None:
    async with face.client.head(face.url("/")) as answer:
        assert (answer.status, await answer.read()) == (200, b"")
    async with face.client.get(face.url("/")) as answer:
        assert await answer.json() == {"status": "alive"}


async def test_public_paths_are_answered_without_a_key(make_face: MakeFace) -> None:
    face = await make_face()
    for route in ROUTE_TABLE:
        if route.is_probe:
            async with face.client.get(face.url(route.path)) as answer:
                assert answer.status == 200
    assert face.service.metadata == []


@dataclass(frozen=True)
class Check:
    id: str
    ready: object
    status: int
    body: str


async def later() -> Readiness:
    return Readiness()


def explode() -> Readiness:
    raise ZeroDivisionError("what nobody may see")


@pytest.mark.parametrize(
    "case",
    [
        Check("ready", Readiness, 200, '{"status": "ready", "reasons": []}'),
        Check("ready, returned by a coroutine", later, 200, '{"status": "ready", "reasons": []}'),
        Check("ready without Redis", lambda: Readiness(reasons=("redis: away",)), 200, '["redis: away"]'),
        Check(
            "draining",
            lambda: Readiness("draining", ("it ends",)),
            503,
            '{"status": "draining", "reasons": ["it ends"]',
        ),
        Check("broken", explode, 500, "error"),
    ],
    ids=lambda case: case.id,
)
async def test_readiness_is_the_state_of_the_service_with_its_reasons(make_face: MakeFace, case: Check) -> None:
    face = await make_face(ready=case.ready)
    async with face.client.get(face.url("/readyz")) as answer:
        assert answer.status == case.status
        text = await answer.text()
        assert "nobody" not in text
        assert case.body in text
        assert ("error" in text) == (case.status != 200)
        assert answer.headers.get("retry-after") == ("1" if case.status == 503 else None)


async def test_metrics_are_served_as_the_service_formats_them(face: Face) -> None:
    async with face.client.get(face.url("/metrics")) as answer:
        assert await answer.read() == b"umg_up 1\n"
        assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"


METRICS_KEY = "a-key-of-the-metrics"


@dataclass(frozen=True)
class Scrape:
    id: str
    headers: dict[str, str]
    status: int = 401
    message: str = "not the key of the metrics"


SCRAPES = [
    Scrape("its key", {"authorization": f"Bearer {METRICS_KEY}"}, 200, "umg_up 1"),
    Scrape("its key, with the scheme in other letters", {"authorization": f"bearer {METRICS_KEY}"}, 200, "umg_up 1"),
    Scrape("no key", {}, message="send the key of the metrics"),
    Scrape("a caller's key", KEY),
    Scrape("the beginning of its key", {"authorization": f"Bearer {METRICS_KEY[:-1]}"}),
    Scrape("more than its key", {"authorization": f"Bearer {METRICS_KEY}s"}),
    Scrape("its key by another scheme", {"authorization": f"Basic {METRICS_KEY}"}),
    Scrape("its key without a scheme", {"authorization": METRICS_KEY}),
    Scrape("letters beyond ASCII", {"authorization": "Bearer \u00e9\u00e9\u00e9"}),
    Scrape("its key in a header of callers", {"x-api-key": METRICS_KEY}, message="send the key of the metrics"),
]


@pytest.mark.parametrize("case", SCRAPES, ids=lambda case: case.id)
async def test_metrics_with_a_key_are_served_only_to_requests_with_it(make_face: MakeFace, case: Scrape) -> None:
    face = await make_face(metrics_key=METRICS_KEY)
    async with face.client.get(face.url("/metrics"), headers=case.headers) as answer:
        assert (answer.status, case.message in await answer.text()) == (case.status, True)
        assert answer.headers.get("www-authenticate") == ("Bearer" if case.status == 401 else None)


PATH_TABLES = {"routes.py", "unknown_paths.py"}


def test_no_path_is_a_literal_outside_the_tables() -> None:
    package = Path(str(http_facade.__file__)).parent
    for module in package.rglob("*.py"):
        if module.name not in PATH_TABLES and "openapi" not in module.relative_to(package).parts:
            assert not re.search(r"""["']/(v\d|vid[A-Z]|healthz|readyz|metrics)""", module.read_text()), module.name


def test_every_format_of_the_table_encodes_errors() -> None:
    from http_facade.exchange.error_responses import error_encoder

    error = UmgError(pb.ERROR_REASON_MODEL_NOT_FOUND, "no such model")
    for name in {route.error_format for route in ROUTE_TABLE} | {*TEXT_FORMATS, *EMBEDDING_FORMATS, *RERANK_FORMATS}:
        assert b"no such model" in error_encoder(name)(error, 404), name
    assert CHAT in {route.path for route in ROUTE_TABLE}


@dataclass(frozen=True)
class NearlyRight:
    id: str
    path: str
    message: str


NEARLY_RIGHT = [
    NearlyRight("a slash too many", "/v1/embeddings/", "call /v1/embeddings, without the slash"),
    NearlyRight("a slash too many behind another version", "/v2/rerank/", "call /v2/rerank, without the slash"),
    NearlyRight("a model without an action", "/v1/models/wordllama-256", "name an action of the model"),
]


@pytest.mark.parametrize("case", NEARLY_RIGHT, ids=lambda case: case.id)
async def test_a_call_of_a_similar_path_gets_the_right_path_in_the_error(face: Face, case: NearlyRight) -> None:
    async with face.client.post(face.url(case.path), headers=KEY) as answer:
        assert answer.status == 404
        assert case.message in (await answer.json())["error"]["message"]


@pytest.mark.parametrize("root", ["/v1", "/v1beta"])
async def test_a_wrong_method_of_an_action_has_an_error_in_the_format_of_the_action(face: Face, root: str) -> None:
    async with face.client.get(face.url(f"{root}/models/m:embedContent"), headers=KEY) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (405, 405)
