"""Odd answers of a provider, for callers of each format: lost parts are reported, and no response at all is an error."""

from collections.abc import AsyncGenerator, Mapping
from typing import Any

import pytest
import pytest_asyncio

from tests.pairs.table import TEXT_FACES, every_face, every_upstream
from tests.support.callers.http_caller import HttpAnswer
from tests.support.callers.requests import Request
from tests.support.recorded_gateway import RecordedGateway, event_stream, recorded_gateway

pytestmark = pytest.mark.asyncio(loop_scope="module")

Body = Mapping[str, object]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[RecordedGateway, None]:
    async with recorded_gateway(tmp_path_factory.mktemp("odd")) as made:
        yield made


async def call(gateway: RecordedGateway, face: str, upstream: str, answer: Any, *, stream: bool = False) -> HttpAnswer:
    """Return the caller's result for a response of a provider of `upstream`: a body, or the events of a stream."""
    gateway.set_answer(event_stream(answer) if stream else answer)
    return await gateway.caller.call(face, f"m-{upstream}", Request("Hi"), stream=stream)


# --- parts that a face cannot express


def native(*parts: Body) -> Body:
    return {"candidates": [{"content": {"parts": [*parts, {"text": "Hi"}]}, "finishReason": "STOP"}]}


def messages(*blocks: Body) -> Body:
    content = [*blocks, {"type": "text", "text": "Hi"}]
    return {"type": "message", "id": "r", "content": content, "stop_reason": "end_turn"}


def responses(*items: Body) -> Body:
    text = {"type": "message", "id": "msg_1", "content": [{"type": "output_text", "text": "Hi"}]}
    return {"id": "r", "status": "completed", "output": [*items, text]}


RAN = [
    {"executableCode": {"language": "PYTHON", "code": "1"}},
    {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
]
CODE = "answer.code_execution x2"
VIDEO = {"inlineData": {"mimeType": "video/mp4", "data": "AAAA"}}
LOST: list[tuple[str, Body, dict[str, str]]] = [
    ("native", native(*RAN), {"chat": CODE, "messages": CODE, "responses": "", "native": ""}),
    ("native", native({"newPart": {"a": 1}}), {"chat": "answer.newPart", "messages": "answer.newPart", "responses": "answer.newPart", "native": ""}),
    ("native", native(VIDEO), {"chat": "answer.video", "messages": "", "responses": "answer.video", "native": ""}),
    ("messages", messages({"type": "new_block", "a": 1}), {"chat": "answer.new_block", "messages": "", "responses": "answer.new_block", "native": "answer.new_block"}),
    ("messages", messages({"type": "odd\r\nx-evil: é", "a": 1}), {"chat": "answer.opaque", "messages": "", "responses": "answer.opaque", "native": "answer.opaque"}),
    ("responses", responses({"type": "new_item", "id": "n_1"}), {"chat": "answer.new_item", "messages": "answer.new_item", "responses": "", "native": "answer.new_item"}),
    ("responses", responses({"type": "new_item", "id": "n_1"}, {"type": "other", "id": "n_2"}), {"chat": "answer.new_item, answer.other"}),
]  # fmt: skip


@pytest.mark.parametrize(
    ("face", "upstream", "answer", "dropped"),
    [(face, upstream, answer, dropped) for upstream, answer, each in LOST for face, dropped in each.items()],
)
async def test_content_that_a_face_cannot_express_is_reported(
    gateway: RecordedGateway, face: str, upstream: str, answer: Body, dropped: str
) -> None:
    got = await call(gateway, face, upstream, answer)
    assert (got.status, got.canonical.candidates[0].message.parts[-1].text.text) == (200, "Hi")
    assert [each for each in got.headers.get("x-umg-dropped", "").split(", ") if each.startswith("answer.")] == (
        dropped.split(", ") if dropped else []
    )


# --- no response


START = {"type": "message_start", "message": {"id": "r", "model": "theirs"}}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
DELTA = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hello"}}
ENDING = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {}}, {"type": "message_stop"}]


@every_face
async def test_a_stream_without_its_start_is_a_failure_before_the_first_byte(
    gateway: RecordedGateway, face: str
) -> None:
    got = await call(gateway, face, "messages", [BLOCK, DELTA, *ENDING], stream=True)
    assert got.status == 502
    assert got.is_error
    assert "cannot be read" in got.body.decode()


@pytest.mark.parametrize("face", [face for face in TEXT_FACES if face != "messages"])
async def test_a_text_of_no_block_is_not_lost_in_silence(gateway: RecordedGateway, face: str) -> None:
    got = await call(gateway, face, "messages", [START, DELTA, *ENDING], stream=True)
    assert "cannot be read" in got.body.decode()


@every_face
async def test_a_blocked_prompt_is_no_failure(gateway: RecordedGateway, face: str) -> None:
    got = await call(gateway, face, "native", {"promptFeedback": {"blockReason": "SAFETY"}})
    assert got.status == 200


# --- requests that are refused before a provider is called

CHOSEN: dict[str, tuple[Body, Body]] = {
    "chat": (
        {"tool_choice": "required"},
        {"tools": [{"type": "function", "function": {"name": "f"}}], "tool_choice": {"type": "function", "function": {"name": "g"}}},
    ),
    "responses": (
        {"tool_choice": "required"},
        {"tools": [{"type": "function", "name": "f", "parameters": {}}], "tool_choice": {"type": "function", "name": "g"}},
    ),
    "messages": (
        {"tool_choice": {"type": "any"}},
        {"tools": [{"name": "f", "input_schema": {"type": "object"}}], "tool_choice": {"type": "tool", "name": "g"}},
    ),
    "native": (
        {"toolConfig": {"functionCallingConfig": {"mode": "ANY"}}},
        {"tools": [{"functionDeclarations": [{"name": "f"}]}], "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["g"]}}},
    ),
}  # fmt: skip


@every_face
@every_upstream
@pytest.mark.parametrize("named", [False, True], ids=["no tools", "another tool"])
async def test_a_choice_of_a_tool_that_is_not_there_is_refused(
    gateway: RecordedGateway, face: str, upstream: str, named: bool
) -> None:
    before = len(gateway.provider.received)
    body = TEXT_FACES[face].body(Request("Hi"), f"m-{upstream}") | CHOSEN[face][named]
    got = await gateway.caller.send(face, f"m-{upstream}", body)
    assert (got.status, got.is_error) == (400, True)
    text = got.body.decode()
    assert ("there is no tool `g`" in text) if named else ("a tool is required and there are none" in text)
    assert "tool_choice" in text or "toolConfig" in text
    assert len(gateway.provider.received) == before


SEARCHES = {
    "chat": {"tools": [{"type": "function", "function": {"name": "vendorgSearch"}}], "tool_choice": {"type": "function", "function": {"name": "vendorgSearch"}}},
    "messages": {"tools": [{"type": "web_search_20250305", "name": "web_search"}], "tool_choice": {"type": "tool", "name": "web_search"}},
    "responses": {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}},
    "native": {"tools": [{"googleSearch": {}}], "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["googleSearch"]}}},
}  # fmt: skip


@every_face
async def test_a_providers_own_tool_may_be_chosen_by_its_name(gateway: RecordedGateway, face: str) -> None:
    gateway.set_answer(native())
    body = TEXT_FACES[face].body(Request("Hi"), "m-native") | SEARCHES[face]
    got = await gateway.caller.send(face, "m-native", body)
    assert "there is no tool" not in got.body.decode()


@pytest.mark.parametrize("action", ["generateContent", "streamGenerateContent?alt=sse", "countTokens"])
async def test_a_native_body_may_not_name_another_model_than_its_path(gateway: RecordedGateway, action: str) -> None:
    gateway.set_answer(native())
    url = f"{gateway.caller.url}/v1beta/models/m-native:{action}"
    body = {"contents": [{"parts": [{"text": "Hi"}]}]}
    for model, key, status in (
        ("other", gateway.caller.key, 400),
        ("other", "wrong", 401),
        ("models/m-native", gateway.caller.key, 200),
        ("m-native", gateway.caller.key, 200),
    ):
        async with gateway.caller.session.post(
            url, json=body | {"model": model}, headers={"x-goog-api-key": key}
        ) as answer:
            text = await answer.text()
            assert answer.status == status, text
            assert ("`model`: the path names" in text) == (status == 400)
