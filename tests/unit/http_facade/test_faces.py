"""Differences between the faces of the four text formats: keys, paths, error bodies, the framing of streams."""

from dataclasses import dataclass

import pytest

from tests.unit.http_facade.conftest import Face

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
COUNT = "/v1/messages/count_tokens"
NATIVE = "/v1beta/models/{model}:generateContent"
CONTENTS = {"contents": [{"role": "user", "parts": [{"text": "hi"}]}]}


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"x-goog-api-key": "k"}, "?key=other"),
        ({"authorization": "Bearer k", "x-goog-api-key": "o"}, "?key=o"),
    ],
    ids=["a header before the query", "a Bearer before all"],
)
async def test_of_several_keys_the_first_place_counts(face: Face, headers: dict[str, str], query: str) -> None:
    async with face.client.post(face.url(NATIVE.format(model="m") + query), json=CONTENTS, headers=headers) as answer:
        assert answer.status == 200
    assert face.service.metadata[-1].get("authorization") == "Bearer k"


@pytest.mark.parametrize("model", ["m", "vendor/name", "models/m", "with:colon", "a b"])
async def test_the_path_names_the_model_of_a_native_call(face: Face, model: str) -> None:
    async with face.client.post(face.url(NATIVE.format(model=model)), json=CONTENTS) as answer:
        assert answer.status == 200
        assert (await answer.json())["modelVersion"] == model.removeprefix("models/")
    assert face.service.requests[-1].model == model.removeprefix("models/")


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
