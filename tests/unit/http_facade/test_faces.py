"""Differences between the faces of the four text formats: keys, paths, error bodies, the framing of streams."""

import json
from dataclasses import dataclass, field

import pytest

from tests.unit.http_facade.conftest import KEY, Face
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
COUNT = "/v1/messages/count_tokens"
NATIVE = "/v1beta/models/{model}:generateContent"
NATIVE_STREAM = "/v1beta/models/{model}:streamGenerateContent"
TURN = [{"role": "user", "content": "hi"}]
BODIES: dict[str, dict[str, object]] = {
    CHAT: {"model": "m", "messages": TURN},
    RESPONSES: {"model": "m", "input": "hi"},
    MESSAGES: {"model": "m", "messages": TURN, "max_tokens": 9},
    COUNT: {"model": "m", "messages": TURN},
    NATIVE: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
    NATIVE_STREAM: {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
}


@dataclass(frozen=True)
class Key:
    id: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    query: str = ""
    sent: str | None = None  # as the service receives it


KEYS = [
    *(Key(f"a Bearer on {path}", path, {"authorization": "Bearer k"}, sent="Bearer k") for path in BODIES),
    Key("the vendor's header on native", NATIVE, {"x-vendorg-api-key": "k"}, sent="Bearer k"),
    Key("the header of SDKs on native", NATIVE, {"x-goog-api-key": "k"}, sent="Bearer k"),
    Key("the query on native", NATIVE, query="?key=k", sent="Bearer k"),
    Key("the query on a native stream", NATIVE_STREAM, query="?alt=sse&key=k", sent="Bearer k"),
    Key("a header before the query", NATIVE, {"x-goog-api-key": "k"}, "?key=other", sent="Bearer k"),
    Key("a Bearer before all", NATIVE, {"authorization": "Bearer k", "x-goog-api-key": "o"}, "?key=o", sent="Bearer k"),
    Key("the older header on messages", MESSAGES, {"x-api-key": "k"}, sent="Bearer k"),
    Key("the older header on counting", COUNT, {"x-api-key": "k"}, sent="Bearer k"),
    Key("the native header on chat", CHAT, {"x-vendorg-api-key": "k"}),
    Key("the native query on chat", CHAT, query="?key=k"),
    Key("the native header on messages", MESSAGES, {"x-goog-api-key": "k"}),
    Key("the messages header on responses", RESPONSES, {"x-api-key": "k"}),
    Key("the messages header on native", NATIVE, {"x-api-key": "k"}),
]


@pytest.mark.parametrize("case", KEYS, ids=lambda case: case.id)
async def test_a_key_is_accepted_only_in_the_headers_and_parameters_of_its_format(face: Face, case: Key) -> None:
    url = face.url(case.path.format(model="m") + case.query)
    async with face.client.post(url, json=BODIES[case.path], headers=case.headers) as answer:
        await answer.read()
    if face.service.metadata:  # this service does not serve counting
        assert face.service.metadata[-1].get("authorization") == case.sent
    else:
        assert case.path == COUNT


@pytest.mark.parametrize("model", ["m", "vendor/name", "models/m", "with:colon", "a b"])
async def test_the_path_names_the_model_of_a_native_call(face: Face, model: str) -> None:
    async with face.client.post(face.url(NATIVE.format(model=model)), json=BODIES[NATIVE]) as answer:
        assert answer.status == 200
        assert (await answer.json())["modelVersion"] == model.removeprefix("models/")
    assert face.service.requests[-1].model == model.removeprefix("models/")


async def test_a_native_stream_has_events_if_the_query_requests_them(face: Face) -> None:
    url = face.url(NATIVE_STREAM.format(model="m"))
    async with face.client.post(f"{url}?alt=sse&foo=1", json=BODIES[NATIVE]) as answer:
        events = await answer.read()
        assert answer.content_type == "text/event-stream"
    chunks = [json.loads(line[6:]) for line in events.split(b"\n") if line.strip()]
    assert "".join(part["text"] for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]) == "one two"


async def test_a_native_stream_is_a_json_array_by_default(face: Face) -> None:
    async with face.client.post(face.url(NATIVE_STREAM.format(model="m")), json=BODIES[NATIVE]) as answer:
        chunks = await answer.json()
        assert answer.content_type == "application/json"
    assert "".join(part["text"] for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]) == "one two"


async def test_a_native_array_that_breaks_off_ends_with_its_error(face: Face) -> None:
    face.service.failure = UmgError(pb.ERROR_REASON_UPSTREAM_CUT, "it broke off")
    async with face.client.post(
        face.url(NATIVE_STREAM.format(model="break")), json=BODIES[NATIVE], headers=KEY
    ) as answer:
        chunks = await answer.json()
    assert chunks[-1]["error"]["message"] == "it broke off"


@dataclass(frozen=True)
class Refusal:
    id: str
    path: str
    method: str = "POST"
    shape: tuple[str, ...] = ("message", "type", "param", "code")
    outer: str | None = None  # `type` of the whole body


REFUSALS = [
    Refusal("chat", CHAT),
    Refusal("responses", RESPONSES),
    Refusal("a stored response", "/v1/responses/x", "GET"),
    Refusal("fields that responses does not have", "/v1/responses/x/y/z", "GET"),
    Refusal("messages", MESSAGES, shape=("type", "message"), outer="error"),
    Refusal("fields that messages does not have", "/v1/messages/batches", shape=("type", "message"), outer="error"),
    Refusal("counting", COUNT, shape=("message", "type", "code"), outer="error"),
    Refusal("native", NATIVE, shape=("code", "message", "status")),
    Refusal("a native action that is none", "/v1beta/models/m:dance", shape=("code", "message", "status")),
    Refusal("a native action that is none, under v1", "/v1/models/m:dance", shape=("code", "message", "status")),
]


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
async def test_an_error_is_in_the_body_of_its_format(face: Face, case: Refusal) -> None:
    url = face.url(case.path.format(model="m"))
    async with face.client.request(case.method, url, data=b"{") as answer:
        body = await answer.json()
        assert answer.status >= 400
        assert answer.headers["request-id"] == answer.headers["x-request-id"]
    assert set(case.shape) <= set(body["error"])
    assert body.get("type") == case.outer
    assert (body.get("request_id") == answer.headers["request-id"]) == (case.outer == "error")
    assert body["error"]["message"]
