"""Text document, "GET /v1/models" and "Model object"; readings, 2 and 14; text formats, 3.7, 4.5, 5.3."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest

from tests.support.callers.api import ApiClient, Reply
from tests.support.gateways import KEY
from umg_grpc.access.api_keys import ApiKeys

pytestmark = pytest.mark.asyncio(loop_scope="module")

CHAT = {"authorization": f"Bearer {KEY}"}
MESSAGES = {**CHAT, "anthropic-version": "2026-10-21"}
NATIVE = {"x-goog-api-key": KEY}
SHAPES = {"chat": CHAT, "messages": MESSAGES, "native": NATIVE}
every_shape = pytest.mark.parametrize("shape", SHAPES)


async def listed(gateway: ApiClient, headers: dict[str, str] | None = None, query: str = "") -> Any:
    reply = await gateway.get(f"/v1/models{query}", CHAT if headers is None else headers)
    assert reply.status == 200, reply.text
    return reply.body


def ids(shape: str, body: Any) -> list[str]:
    if shape == "native":
        return [model["name"].removeprefix("models/") for model in body["models"]]
    return [model["id"] for model in body["data"]]


# --- the documented list


async def test_models_response_fields(gateway: ApiClient) -> None:
    body = await listed(gateway)
    assert body.keys() == {"object", "data"}
    assert body["object"] == "list"
    for model in body["data"]:
        assert model.keys() == {"id", "object", "created", "owned_by"}
        assert model["object"] == "model"
        assert model["id"]
        assert model["owned_by"]
        assert type(model["created"]) is int


async def test_models_field_created_is_the_time_of_release(gateway: ApiClient) -> None:
    created = {model["id"]: model["created"] for model in (await listed(gateway))["data"]}
    assert created["wordllama-256"] == datetime(2024, 7, 1, tzinfo=UTC).timestamp()
    assert created["famX-4"] == 0  # not configured


async def test_models_field_owned_by_is_the_providers_label(gateway: ApiClient) -> None:
    owners = {model["id"]: model["owned_by"] for model in (await listed(gateway))["data"]}
    assert owners["wordllama-256"] == "the label of its provider"
    assert owners["famX-4"] == "sandbox (simulated)"  # its channel, whose name contains that it is simulated


async def test_models_exactly_the_listed_models_answer(gateway: ApiClient) -> None:
    found = ids("chat", await listed(gateway))
    assert found == sorted(found)
    assert {"famO-5", "text-embedding-3-small", "wordllama-256", "rerank-v1"} <= set(found)
    for model in found:
        body: dict[str, object] = {"model": model}
        calls = {
            "/v1/chat/completions": {"messages": [{"role": "user", "content": "x"}]},
            "/v1/embeddings": {"input": "x"},
            "/v1/rerank": {"query": "x", "documents": ["x"]},
            "/v1/moderations": {"input": "x"},
            "/v1/audio/speech": {"input": "x", "stream_format": "sse"},
        }
        statuses = [(await gateway.post(path, body | more)).status for path, more in calls.items()]
        makes_media = model.startswith(("img", "vid", "whisper"))  # tests of their documents call these
        assert sorted(statuses) == [400 if makes_media else 200, 400, 400, 400, 400], (model, statuses)


async def test_models_no_body_and_unknown_queries_are_ignored(gateway: ApiClient) -> None:
    usual = await listed(gateway)
    for query in ("?beta=true", "?limit=1", "?after_id=famO-5", "?x=1&x=2"):
        assert await listed(gateway, query=query) == usual
    assert (await gateway.send("GET", "/v1/models", {"a": 1}, headers=CHAT)).body == usual


# --- the key's own list


@every_shape
async def test_models_depend_on_the_permissions_of_the_key(gateway: ApiClient, shape: str) -> None:
    keys = ApiKeys(gateway.server.service.store)
    for name, patterns, expected in (
        ("one", ["famO-5"], ["famO-5"]),
        ("some", ["text-embedding-3-*", "rerank*"], ["rerank-v1", "text-embedding-3-large", "text-embedding-3-small"]),
        ("none", ["nothing*"], []),
    ):
        _, secret = await keys.create(f"{name} {shape}", model_patterns=patterns)
        headers = {key: value.replace(KEY, secret) for key, value in SHAPES[shape].items()}
        reply = await gateway.get("/v1/models", headers)
        assert ids(shape, reply.body) == expected
        for model in ("famO-5", "rerank-v1"):
            status = (await gateway.get(f"/v1/models/{model}", headers)).status
            assert status == (200 if model in expected else 404)


# --- the choice of the shape


async def test_models_the_shape_is_chosen_by_headers(gateway: ApiClient) -> None:
    for headers, shape in (
        (CHAT, "chat"),
        ({"x-api-key": KEY}, "chat"),
        (MESSAGES, "messages"),
        ({"x-api-key": KEY, "anthropic-version": "2023-06-01"}, "messages"),
        ({"x-api-key": KEY, "anthropic-version": "whatever"}, "messages"),
        (NATIVE, "native"),
        ({"x-vendorg-api-key": KEY}, "native"),
        ({**MESSAGES, "x-goog-api-key": KEY}, "messages"),
    ):
        body = await listed(gateway, headers)
        kind = "native" if "models" in body else "messages" if "has_more" in body else "chat"
        assert kind == shape, headers
    assert "models" in await listed(gateway, {}, f"?key={KEY}")


async def test_models_all_shapes_list_the_same_models(gateway: ApiClient) -> None:
    found = ids("chat", await listed(gateway))
    assert ids("messages", await listed(gateway, MESSAGES, "?limit=1000")) == found
    assert ids("native", await listed(gateway, NATIVE, "?pageSize=1000")) == found


async def test_models_the_native_list_is_under_v1beta_regardless_of_headers(gateway: ApiClient) -> None:
    for headers in (CHAT, NATIVE, MESSAGES, {"x-api-key": KEY}):
        reply = await gateway.get("/v1beta/models", headers)
        assert (reply.status, "models" in reply.body) == (200, True), reply.text
    one = await gateway.get("/v1beta/models/famO-5", CHAT)
    assert one.body["name"] == "models/famO-5"


# --- the messages shape


async def test_models_messages_shape_fields(gateway: ApiClient) -> None:
    body = await listed(gateway, MESSAGES, "?limit=1000")
    assert body.keys() == {"data", "has_more", "first_id", "last_id"}
    assert (body["has_more"], body["first_id"], body["last_id"]) == (
        False,
        body["data"][0]["id"],
        body["data"][-1]["id"],
    )
    for model in body["data"]:
        assert model.keys() >= {"type", "id", "display_name", "created_at", "lifecycle"}
        assert model["type"] == "model"
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", model["created_at"])
    by_id = {model["id"]: model for model in body["data"]}
    assert by_id["wordllama-256"]["created_at"] == "2024-07-01T00:00:00Z"
    assert by_id["wordllama-256"]["display_name"] == "WordLlama"


async def test_models_messages_shape_pages(gateway: ApiClient) -> None:
    found = ids("chat", await listed(gateway))
    seen, query = list[str](), "?limit=3"
    while True:
        body = await listed(gateway, MESSAGES, query)
        seen += ids("messages", body)
        assert len(body["data"]) <= 3
        if not body["has_more"]:
            break
        query = f"?limit=3&after_id={body['last_id']}"
    assert seen == found
    before = await listed(gateway, MESSAGES, f"?limit=2&before_id={found[4]}")
    assert (ids("messages", before), before["has_more"]) == (found[2:4], True)
    assert len((await listed(gateway, MESSAGES))["data"]) == min(20, len(found))
    for query in ("?limit=0", "?limit=1001", "?limit=x", "?limit=-1"):
        reply = await gateway.get(f"/v1/models{query}", MESSAGES)
        assert reply.status == 400
        assert "limit" in reply.body["error"]["message"]


# --- the native shape


async def test_models_native_shape_fields(gateway: ApiClient) -> None:
    by_id = {model["name"]: model for model in (await listed(gateway, NATIVE, "?pageSize=1000"))["models"]}
    for model in by_id.values():
        assert model.keys() >= {"name", "version", "displayName", "description", "supportedGenerationMethods"}
    methods = {name: set(model["supportedGenerationMethods"]) for name, model in by_id.items()}
    assert methods["models/famO-5"] == {"generateContent", "streamGenerateContent", "countTokens"}
    assert methods["models/wordllama-256"] == {"embedContent", "batchEmbedContents"}
    assert methods["models/rerank-v1"] == set()
    assert by_id["models/text-embedding-3-small"]["inputTokenLimit"] == 8192


async def test_models_native_shape_pages(gateway: ApiClient) -> None:
    found = ids("chat", await listed(gateway))
    for root in ("/v1", "/v1beta"):
        seen, query = list[str](), "?pageSize=4"
        while True:
            body = (await gateway.get(f"{root}/models{query}", NATIVE)).body
            seen += ids("native", body)
            assert len(body["models"]) <= 4
            if "nextPageToken" not in body:
                break
            query = f"?pageSize=4&pageToken={body['nextPageToken']}"
        assert seen == found
        for query in ("?pageSize=0", "?pageSize=1001", "?pageSize=x", "?pageToken=nonsense"):
            reply = await gateway.get(f"{root}/models{query}", NATIVE)
            assert reply.status == 400
            assert query[1:].partition("=")[0] in reply.body["error"]["message"]


# --- one model


@every_shape
async def test_models_one_model_is_an_element_of_the_list(gateway: ApiClient, shape: str) -> None:
    query = {"messages": "?limit=1000", "native": "?pageSize=1000"}.get(shape, "")
    body = await listed(gateway, SHAPES[shape], query)
    for model in body["models" if shape == "native" else "data"]:
        name = model.get("id") or model["name"].removeprefix("models/")
        assert (await gateway.get(f"/v1/models/{name}", SHAPES[shape])).body == model
    suffixed = await gateway.get("/v1/models/famG-2.5-pro-thinking", SHAPES[shape])
    assert (suffixed.body.get("id") or suffixed.body["name"]).endswith("famG-2.5-pro-thinking")


# --- errors and the cache


def refused(reply: Reply, shape: str, status: int) -> Any:
    """Return the list's own error body, which clients of every shape can read."""
    assert reply.status == status, reply.text
    error = reply.body["error"]
    assert error.keys() >= {"message", "type", "code"}
    if shape == "native":
        assert error["status"]
    if shape == "messages":
        assert reply.body["type"] == "error"
    return error


@every_shape
async def test_models_error_body(gateway: ApiClient, shape: str) -> None:
    unknown = refused(await gateway.get("/v1/models/famZ-9", SHAPES[shape]), shape, 404)
    assert "famZ-9" in unknown["message"]
    bad = {name: value.replace(KEY, "sk-nobody") for name, value in SHAPES[shape].items()}
    for path in ("/v1/models", "/v1/models/famO-5"):
        assert refused(await gateway.get(path, bad), shape, 401)["code"] == "invalid_api_key"
    without_key = {name: value for name, value in SHAPES[shape].items() if KEY not in value}
    assert refused(await gateway.get("/v1/models", without_key), "chat" if shape == "native" else shape, 401)[
        "code"
    ] == ("invalid_api_key")
    wrong = await gateway.send("DELETE", "/v1/models", headers=SHAPES[shape])
    assert wrong.status == 405


async def test_models_error_body_of_the_native_path_is_native(gateway: ApiClient) -> None:
    for path, headers, status, word in (
        ("/v1beta/models/famZ-9", NATIVE, 404, "NOT_FOUND"),
        ("/v1beta/models", {}, 401, "UNAUTHENTICATED"),
        ("/v1beta/models?pageSize=0", CHAT, 400, "INVALID_ARGUMENT"),
    ):
        reply = await gateway.get(path, headers)
        error = reply.body["error"]
        assert (reply.status, error["code"], error["status"]) == (status, status, word)
        assert error["message"]


@every_shape
async def test_models_may_be_cached_for_an_hour_by_their_caller(gateway: ApiClient, shape: str) -> None:
    for path in ("/v1/models", "/v1/models/famO-5"):
        reply = await gateway.get(path, SHAPES[shape])
        assert reply.headers["cache-control"] == "private, max-age=3600"
        vary = reply.headers["vary"].lower()
        assert all(
            name in vary for name in ("authorization", "anthropic-version", "x-goog-api-key", "x-vendorg-api-key")
        )
        known = await gateway.get(path, {**SHAPES[shape], "if-none-match": reply.headers["etag"]})
        assert (known.status, known.text) == (304, "")
        other = await gateway.get(path, {**SHAPES[shape], "if-none-match": '"another"'})
        assert other.body == reply.body
    etags = [(await gateway.get("/v1/models", headers)).headers["etag"] for headers in SHAPES.values()]
    assert len(set(etags)) == 3
