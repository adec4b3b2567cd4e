"""Text document, "Errors"; readings, 3 and 4: each status in each format's own body, before and during a stream."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random

import aiohttp
import pytest

from tests.documents.spec.bodies import BODIES, changed
from tests.documents.spec.callers import Chat, Face, Messages, Native, Responses
from tests.support.callers.api import ApiClient, Reply
from tests.support.gateways import SANDBOX, running
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.wire import TEXT_FORMATS

pytestmark = pytest.mark.asyncio(loop_scope="module")

STREAMED = [(name, stream) for name in TEXT_FORMATS for stream in (False, True)]
CUT = "Hello dear gateway, how are you today? [[fail:mid]]"

# Status -> the error's kind: `type` (and `code`) of chat and responses, `type` of messages, `status` of native.
WORDS = {
    400: ("invalid_request_error", "invalid_request_error", "INVALID_ARGUMENT"),
    401: ("invalid_request_error", "authentication_error", "UNAUTHENTICATED"),
    404: ("invalid_request_error", "not_found_error", "NOT_FOUND"),
    429: ("rate_limit_error", "rate_limit_error", "RESOURCE_EXHAUSTED"),
}


@pytest.fixture
def face(request: pytest.FixtureRequest, chat: Chat, responses: Responses, messages: Messages, native: Native) -> Face:
    faces: tuple[Face, ...] = (chat, responses, messages, native)
    return next(face for face in faces if face.name == request.param)


every_face = pytest.mark.parametrize("face", TEXT_FORMATS, indirect=True)
streamed_or_not = pytest.mark.parametrize(
    ("face", "stream"), STREAMED, indirect=["face"], ids=[f"{name}{' streamed' * stream}" for name, stream in STREAMED]
)


async def call(
    face: Face,
    stream: bool,
    fields: dict[str, object] | None = None,
    text: str = "Hi",
    model: str = "",
    key: str | None = None,
) -> Reply:
    """Send a request whose reply may be an error: an error is JSON, with or without a stream."""
    if not stream:
        return await face.post(fields, text=text, model=model, key=key)
    if not isinstance(face, Native):
        return await face.post({**(fields or {}), "stream": True}, text=text, model=model, key=key)
    path = face.of(model or face.model, "streamGenerateContent") + "?alt=sse"
    headers = None if key is None else {"authorization": f"Bearer {key}"}
    return await face.gateway.post(path, face.body(fields, text=text), headers)


def judge(face: Face, reply: Reply, status: int) -> str:
    """Check the format's body and kind of an error, and return its message."""
    error = face.error(reply, status)
    assert reply.headers["content-type"].startswith("application/json")
    if status in WORDS:
        ours, theirs, native = WORDS[status]
        expected = {"messages": theirs, "native": native}.get(face.name, ours)
        assert error["status" if face.name == "native" else "type"] == expected
    return str(error["message"])


# --- the bodies


@streamed_or_not
async def test_errors_status_400(face: Face, stream: bool) -> None:
    field = "generationConfig.temperature" if face.name == "native" else "temperature"
    assert field in judge(face, await call(face, stream, {field: 5}), 400)
    assert face.question_field in judge(face, await call(face, stream, {face.question_field: None}), 400)


@streamed_or_not
async def test_errors_status_401(face: Face, stream: bool) -> None:
    assert judge(face, await call(face, stream, key="sk-nobody"), 401)


@streamed_or_not
async def test_errors_status_404_for_an_unknown_model(face: Face, stream: bool) -> None:
    for model in ("famZ-1", "vendor/name-2"):
        assert model in judge(face, await call(face, stream, model=model), 404)


@streamed_or_not
async def test_errors_status_429_when_a_key_calls_too_often(face: Face, stream: bool, gateway: ApiClient) -> None:
    name = f"one a minute {face.name} {stream}"
    _, secret = await ApiKeys(gateway.server.service.store).create(name, requests_per_minute=1)
    assert (await call(face, stream, key=secret)).status == 200
    reply = await call(face, stream, key=secret)
    assert judge(face, reply, 429)
    assert 1 <= int(reply.headers["retry-after"]) <= 60


@streamed_or_not
async def test_errors_status_429_of_a_provider(face: Face, stream: bool) -> None:
    reply = await call(face, stream, text="[[fail:429]]")
    assert judge(face, reply, 429)
    assert int(reply.headers["retry-after"]) >= 1


@streamed_or_not
async def test_errors_status_500_class_of_a_provider(face: Face, stream: bool) -> None:
    reply = await call(face, stream, text="[[fail]]")
    assert 500 <= reply.status < 600
    assert judge(face, reply, reply.status)
    error = face.error(reply, reply.status)
    word = error["status" if face.name == "native" else "type"]
    assert word in {"chat": {"server_error"}, "responses": {"server_error"}, "messages": {"api_error"}}.get(
        face.name, {"INTERNAL", "UNAVAILABLE"}
    )


async def test_errors_status_500_class_of_a_slow_provider(tmp_path: Path) -> None:
    config = SANDBOX.replace("pace: 0", "pace: 0\n    timeout: {first_byte: 0.05, total: 0.1}")
    async with running(config, tmp_path) as impatient, aiohttp.ClientSession() as session, asyncio.timeout(60):
        for face in (Chat, Responses, Messages, Native):
            slow = face(ApiClient(impatient, session))
            for stream in (False, True):
                assert judge(slow, await call(slow, stream, text="[[slow]]"), 504)


@every_face
async def test_errors_of_a_malformed_body(face: Face, gateway: ApiClient) -> None:
    for data in (b"{", b"", b"[]", b'"x"', b"\xff{}", b'{"model": "famO-5",}', b"[" * 100_000):
        reply = await gateway.send("POST", face.path, data=data)
        assert judge(face, reply, 400)


@every_face
async def test_errors_no_change_of_a_good_body_is_a_server_error(face: Face) -> None:
    body = BODIES[face.name]
    assert (await face.post(body)).status == 200
    random = Random(face.name)
    for _ in range(300):
        fields = changed(body, random)
        reply = await call(face, random.random() < 0.3, fields)
        assert reply.status in {200, 400, 404}, fields
        if reply.status != 200:
            assert judge(face, reply, reply.status)


@every_face
async def test_errors_of_a_wrong_method(face: Face, gateway: ApiClient) -> None:
    reply = await gateway.get(face.path)
    assert face.error(reply, 405)["message"]
    assert reply.headers["allow"] == "POST"


async def test_errors_status_404_of_a_wrong_path(
    gateway: ApiClient, chat: Chat, messages: Messages, native: Native
) -> None:
    for face, path in (
        (chat, "/v1/nothing"),
        (chat, "/v1/chat/completion"),
        (messages, "/v1/messages/nothing"),
        (native, "/v1beta/models/famG-2.5-pro:explode"),
        (native, "/v1beta/nothing"),
        (native, "/v1/models/famG-2.5-pro:explode"),
    ):
        assert judge(face, await gateway.post(path, {}), 404)


async def test_errors_messages_missing_field_is_a_validation_message(messages: Messages) -> None:
    for field in ("model", "messages", "max_tokens"):
        reply = await messages.post({field: None})
        error = messages.error(reply, 400)
        assert error["type"] == "invalid_request_error"
        assert field in error["message"]


async def test_errors_native_missing_contents(native: Native, gateway: ApiClient) -> None:
    error = native.error(await gateway.post(native.path, {}), 400)
    assert (error["status"], "contents" in error["message"]) == ("INVALID_ARGUMENT", True)


async def test_errors_status_400_for_a_parameter_that_the_model_does_not_support(chat: Chat, native: Native) -> None:
    await chat.refuses("search_parameters", {"mode": "on"}, model="famO-5")
    await native.refuses("generationConfig.thinkingConfig.thinkingLevel", "LOW", model="famG-2.5-pro")


# --- errors during a stream


def data_lines(text: str) -> Iterator[str]:
    return (line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: "))


async def test_errors_in_a_stream_of_chat(chat: Chat) -> None:
    reply = await call(chat, stream=True, text=CUT)
    assert reply.status == 200
    *chunks, last = [json.loads(line) for line in data_lines(reply.text)]  # no [DONE] after a failure
    assert any(chunk["choices"][0]["delta"].get("content") for chunk in chunks)
    assert not any(chunk["choices"][0]["finish_reason"] for chunk in chunks)
    assert last.keys() == {"error"}
    assert last["error"].keys() == {"message", "type", "param", "code"}
    assert last["error"]["message"]


async def test_errors_in_a_stream_of_responses(responses: Responses) -> None:
    frames = await responses.stream(text=CUT)
    assert responses.streamed_text(frames)
    failed, error = frames[-2:]
    assert (failed.event, error.event) == ("response.failed", "error")
    assert error.data["message"] == failed.data["response"]["error"]["message"] != ""
    assert failed.data["response"]["status"] == "failed"
    assert [frame.data["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert not any(frame.event == "response.completed" for frame in frames)


async def test_errors_in_a_stream_of_responses_are_not_stored(responses: Responses, gateway: ApiClient) -> None:
    frames = await responses.stream(text=CUT)
    found = await gateway.get(f"/v1/responses/{frames[0].data['response']['id']}")
    assert found.status == 404 or found.body["status"] == "failed"


async def test_errors_in_a_stream_of_messages(messages: Messages) -> None:
    frames = await messages.stream(text=CUT)
    assert messages.streamed_text(frames)
    assert frames[-1].event == frames[-1].data["type"] == "error"
    assert frames[-1].data["error"]["type"] == "api_error"
    assert frames[-1].data["error"]["message"]
    assert not any(frame.event in {"message_delta", "message_stop"} for frame in frames)


async def test_errors_in_a_stream_of_native(native: Native) -> None:
    frames = await native.stream(text=CUT)
    assert native.streamed_text(frames[:-1])
    error = frames[-1].data["error"]
    assert error.keys() >= {"code", "message", "status"}
    assert 500 <= error["code"] < 600
    assert not any(frame.data["candidates"][0].get("finishReason") for frame in frames[:-1])


async def test_errors_in_a_stream_of_native_as_an_array(native: Native, gateway: ApiClient) -> None:
    reply = await gateway.post(native.of(native.model, "streamGenerateContent"), native.body(text=CUT))
    assert reply.status == 200
    *answers, last = reply.body  # an array that is complete JSON all the same
    assert answers
    assert last["error"]["message"]
