"""Refusals of the fake providers: fields that a gateway might leave behind or get wrong, and the error for each."""

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import anthropic
import openai
import pytest
from google.genai import errors as native_errors

from tests.pairs.table import TEXT_PROVIDERS
from tests.support.callers.requests import Request
from tests.support.callers.sdk_callers import sdk_caller
from tests.support.providers.scenarios import PNG, TEXT, TOOLS
from tests.support.providers.strict_providers import KEY, Provider, provider

pytestmark = pytest.mark.filterwarnings("ignore:Inheritance class AiohttpClientSession:DeprecationWarning")

Json = dict[str, Any]
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
CALL = {"id": "c1", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
PATHS = {
    "chat": "/chat/completions",
    "responses": "/responses",
    "messages": "/messages",
    "native": "/models/m:generateContent",
}
HEADERS = {
    "chat": {"authorization": f"Bearer {KEY}"},
    "responses": {"authorization": f"Bearer {KEY}"},
    "messages": {"x-api-key": KEY, "anthropic-version": "2023-06-01"},
    "native": {"x-goog-api-key": KEY},
}


@dataclass(frozen=True)
class Case:
    format: str
    id: str
    body: Json
    message: str
    headers: dict[str, str] = field(default_factory=dict)


def chat(name: str, message: str, *messages: Json, **body: Any) -> Case:
    return Case(
        "chat", name, {"model": "m", "messages": list(messages) or [{"role": "user", "content": "x"}]} | body, message
    )


def responses(name: str, message: str, *items: Json, **body: Any) -> Case:
    return Case("responses", name, {"model": "m", "input": list(items) or "x"} | body, message)


def messages(name: str, message: str, *turns: Json, **body: Any) -> Case:
    content = list(turns) or [{"role": "user", "content": "x"}]
    return Case("messages", name, {"model": "m", "max_tokens": 2048, "messages": content} | body, message)


def native(name: str, message: str, *contents: Json, **body: Any) -> Case:
    return Case("native", name, {"contents": list(contents) or [{"parts": [{"text": "x"}]}]} | body, message)


def user(*parts: Json) -> Json:
    return {"role": "user", "content": list(parts)}


def content(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


QUESTION = content("user", {"text": "x"})
CALLED = {"functionCall": {"name": "f", "args": {}}}
GIVEN = {"functionResponse": {"name": "f", "response": {"output": "1"}}}
USE = {"type": "tool_use", "id": "t1", "name": "f", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "content": "1"}
CALL_ITEM = {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "1"}
FUNCTION = {"type": "function", "function": {"name": "f", "parameters": TOOLS["get_time"]}}
MARK = {"type": "text", "text": "x", "cache_control": {"type": "ephemeral"}}

REFUSALS = [
    # --- fields of our documents only
    chat("extra_body", "extra_body", extra_body={"vendorg": {}}),
    chat("vendorg", "vendorg", vendorg={}),
    chat("thinking", "thinking", thinking={"type": "enabled"}),
    chat("enable_thinking", "enable_thinking", enable_thinking=True),
    chat("parameters", "parameters", parameters={"enable_search": True}),
    chat("generationConfig", "generationConfig", generationConfig={}),
    chat("vendorn_thinking_to_content", "vendorn", vendorn_thinking_to_content=True),
    chat("top_k", "top_k", top_k=4),
    chat("the name of a tool message", "messages[2].name", {"role": "user", "content": "x"},
         {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c1", "content": "1", "name": "f"}),
    responses("a nested function", "tools[0].function", tools=[FUNCTION]),
    responses("bare text", "input[0].type", {"type": "input_text", "text": "x"}),
    responses("summary none", "reasoning.summary", reasoning={"summary": "none"}),
    messages("cache_control persistent", "cache_control.type", user(MARK | {"cache_control": {"type": "persistent"}})),
    messages("context_management without a beta", "context_management: Extra inputs", context_management={}),
    native("vendorgSearch", 'Unknown name "vendorgSearch"', tools=[{"vendorgSearch": {}}]),
    native("a model in the body", 'Unknown name "model"', model="m"),
    native("an unknown field deep inside", 'Unknown name "x" at \'contents.0.parts.0\': Cannot find field',
           content("user", {"text": "x", "x": 1})),
    native("the cloud's tools", "enterpriseWebSearch", tools=[{"enterpriseWebSearch": {}}]),
    # --- form
    chat("a role", "messages[0].role", {"role": "robot", "content": "x"}),
    chat("a part of another role", "messages[0].content[0].type",
         {"role": "system", "content": [{"type": "image_url", "image_url": {"url": URL}}]}),
    chat("temperature", "temperature", temperature=2.1),
    chat("a number as text", "max_tokens", max_tokens="5"),
    responses("no parameters", "tools[0].parameters", tools=[{"type": "function", "name": "f"}]),
    responses("a format as in chat", "text.format", text={"format": {"type": "json_schema", "json_schema": {}}}),
    messages("no max_tokens", "max_tokens: Field required", max_tokens=None),
    messages("temperature above 1", "temperature", temperature=1.5),
    native("an enum", "SOME", toolConfig={"functionCallingConfig": {"mode": "SOME"}}),
    native("no contents", "contents is not specified", contents=[]),
    native("no base64", "thoughtSignature", content("user", {"text": "x", "thoughtSignature": "!"})),
    # --- chat
    chat("stream_options without a stream", "stream_options", stream_options={"include_usage": True}),
    chat("both limits", "max_tokens", max_tokens=5, max_completion_tokens=5),
    chat("a choice without tools", "tool_choice", tool_choice="auto"),
    chat("a choice of no tool", "not found in 'tools'", tools=[FUNCTION],
         tool_choice={"type": "function", "function": {"name": "g"}}),
    chat("a tool's name", "name", tools=[{"type": "function", "function": {"name": "a.b"}}]),
    chat("a loose strict schema", "additionalProperties",
         response_format={"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": {"type": "object"}}}),
    chat("five stops", "stop", stop=list("abcde")),
    chat("JSON without the word", "json", response_format={"type": "json_object"}),
    chat("a result without a call", "must be a response", {"role": "tool", "tool_call_id": "c1", "content": "1"}),
    chat("a call without a result", "did not have response messages: c1", {"role": "user", "content": "x"},
         {"role": "assistant", "tool_calls": [CALL]}, {"role": "user", "content": "y"}),
    chat("a response that says nothing", "content", {"role": "user", "content": "x"}, {"role": "assistant", "content": None}),
    chat("arguments that are no JSON", "arguments", {"role": "user", "content": "x"},
         {"role": "assistant", "tool_calls": [CALL | {"function": {"name": "f", "arguments": ""}}]}),
    chat("an image of another type", "does not match",
         user({"type": "image_url", "image_url": {"url": URL.replace("png", "jpeg")}})),
    chat("an image of no known type", "unsupported media type",
         user({"type": "image_url", "image_url": {"url": URL.replace("png", "tiff")}})),
    # --- responses
    responses("input_text of the assistant", "output_text",
              {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
    responses("output_text of the user", "content[0].type",
              {"role": "user", "content": [{"type": "output_text", "text": "x", "annotations": []}]}),
    responses("a result without a call", "No tool call found", OUTPUT),
    responses("a call without a result", "No tool output found for function call c1", CALL_ITEM),
    responses("an id of another kind", "begins with 'fc'", CALL_ITEM | {"id": "call_1"}, OUTPUT),
    responses("a reasoning item alone", "without its required following item",
              {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}, {"role": "user", "content": "x"}),
    responses("a foreign state", "could not be verified",
              {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"}, CALL_ITEM, OUTPUT),
    responses("an item that is not kept", "not found", {"type": "item_reference", "id": "rs_9"}),
    responses("a response that is not kept", "Previous response", previous_response_id="resp_9"),
    responses("too few tokens", "max_output_tokens", max_output_tokens=5),
    responses("a file without a name", "filename",
              user({"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0="})),
    # --- messages
    messages("no text", "must be non-empty", {"role": "user", "content": ""}),
    messages("blank text", "non-whitespace", user({"type": "text", "text": " "})),
    messages("a blank end", "trailing whitespace", user(MARK), {"role": "assistant", "content": "x "}),
    messages("a call without a result", "without `tool_result` blocks immediately after: t1", user(MARK),
             {"role": "assistant", "content": [USE]}, user(MARK)),
    messages("a call at the end", "without `tool_result`", user(MARK), {"role": "assistant", "content": [USE]}),
    messages("a result without a call", "unexpected `tool_use_id`", user(RESULT)),
    messages("text before the result", "must come before", user(MARK), {"role": "assistant", "content": [USE]},
             user(MARK, RESULT)),
    messages("a result twice", "single result", user(MARK), {"role": "assistant", "content": [USE]}, user(RESULT, RESULT)),
    messages("an id", "pattern", user(MARK), {"role": "assistant", "content": [USE | {"id": "a:1"}]},
             user(RESULT | {"tool_use_id": "a:1"})),
    messages("five marks", "A maximum of 4 blocks", user(MARK, MARK, MARK, MARK, MARK)),
    messages("a small budget", "1024", thinking={"type": "enabled", "budget_tokens": 1023}),
    messages("a budget above the limit", "max_tokens", thinking={"type": "enabled", "budget_tokens": 2048}),
    messages("thinking and temperature", "temperature", thinking={"type": "enabled", "budget_tokens": 1024}, temperature=0.5),
    messages("thinking and top_k", "top_k", thinking={"type": "enabled", "budget_tokens": 1024}, top_k=4),
    messages("thinking and a forced tool", "forces tool use", thinking={"type": "enabled", "budget_tokens": 1024},
             tools=[{"name": "f", "input_schema": {"type": "object"}}], tool_choice={"type": "any"}),
    messages("a tool turn without its thoughts", "Expected `thinking`", user(MARK), {"role": "assistant", "content": [USE]},
             user(RESULT), thinking={"type": "enabled", "budget_tokens": 1024}),
    messages("a changed signature", "Invalid `signature`", user(MARK),
             {"role": "assistant", "content": [{"type": "thinking", "thinking": "x", "signature": "x"}, USE]}, user(RESULT)),
    messages("a choice without tools", "tool_choice", tool_choice={"type": "auto"}),
    messages("a tool twice", "unique", tools=[{"name": "f", "input_schema": {"type": "object"}}] * 2),
    messages("an open schema of the response", "additionalProperties",
             output_config={"format": {"type": "json_schema", "schema": {"type": "object"}}}),
    messages("an image of another type", "does not match", user({"type": "image", "source": {
        "type": "base64", "media_type": "image/jpeg", "data": base64.b64encode(PNG).decode()}})),
    # --- native
    native("a role", "valid role", content("assistant", {"text": "x"})),
    native("two turns of the user", "alternate", QUESTION, QUESTION),
    native("a part with nothing", "oneof field 'data'", content("user", {})),
    native("a part with two things", "oneof field 'data'", content("user", {"text": "x"} | CALLED)),
    native("two calls and one result", "number of function response parts", QUESTION, content("model", CALLED, CALLED),
           content("user", GIVEN)),
    native("a result of another name", "No function response", QUESTION, content("model", CALLED),
           content("user", {"functionResponse": {"name": "g", "response": {}}})),
    native("a call first", "function call turn", content("model", CALLED), content("user", GIVEN)),
    native("a call last", "function response turn", QUESTION, content("model", CALLED)),
    native("a foreign signature", "Corrupted thought signature", QUESTION,
           content("model", CALLED | {"thoughtSignature": "AAAA"}), content("user", GIVEN)),
    native("a function's name", "Invalid function name", tools=[{"functionDeclarations": [{"name": "1f"}]}]),
    native("no properties", "should be non-empty", tools=[{"functionDeclarations": [
        {"name": "f", "parameters": {"type": "object", "properties": {}}}]}]),
    native("an array without items", "missing field", tools=[{"functionDeclarations": [
        {"name": "f", "parameters": {"type": "OBJECT", "properties": {"a": {"type": "ARRAY"}}}}]}]),
    native("a keyword of JSON schema", 'Unknown name "$schema"', tools=[{"functionDeclarations": [
        {"name": "f", "parameters": {"$schema": "x", "type": "OBJECT", "properties": {"a": {"type": "STRING"}}}}]}]),
    native("names without ANY", "mode is ANY", tools=[{"functionDeclarations": [{"name": "f"}]}],
           toolConfig={"functionCallingConfig": {"mode": "AUTO", "allowedFunctionNames": ["f"]}}),
    native("budget and level", "only one of", generationConfig={"thinkingConfig": {
        "thinkingBudget": 5, "thinkingLevel": "LOW"}}),
    native("a schema without its type", "response_mime_type", generationConfig={"responseJsonSchema": {"type": "object"}}),
    native("an image it does not know", "unsupported media type",
           content("user", {"inlineData": {"mimeType": "image/gif", "data": "R0lGODlh"}})),
]  # fmt: skip


async def _send(server: Provider, name: str, data: bytes, headers: dict[str, str] | None = None) -> tuple[int, Json]:
    async with aiohttp.ClientSession() as session:
        sent = HEADERS[name] if headers is None else headers
        async with session.post(server.base_url + PATHS[name], data=data, headers=sent) as response:
            return response.status, await response.json()


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: f"{case.format}: {case.id}")
async def test_fields_that_the_vendor_does_not_accept_are_refused(case: Case) -> None:
    body = {key: value for key, value in case.body.items() if value is not None}
    async with provider(case.format) as server:
        status, answer = await _send(server, case.format, json.dumps(body).encode())
    assert status in (400, 404)
    assert case.message in answer["error"]["message"]
    assert server.refusals == [answer["error"]["message"]]


@pytest.mark.parametrize("name", TEXT_PROVIDERS)
@pytest.mark.parametrize("body", [b"{", b"[]", b'{"model": "a", "model": "b"}', b'{"x": NaN}'])
async def test_a_body_that_is_no_plain_object_is_refused(name: str, body: bytes) -> None:
    async with provider(name) as server:
        status, _ = await _send(server, name, body)
    assert status == 400


async def test_a_beta_is_known_by_its_header() -> None:
    body = {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "user", "content": "x"}],
        "context_management": {"edits": []},
    }
    async with provider("messages") as server:
        plain = await _send(server, "messages", json.dumps(body).encode())
        beta = HEADERS["messages"] | {"anthropic-beta": "context-management-2025-06-27"}
        status, answer = await _send(server, "messages", json.dumps(body).encode(), beta)
    assert plain[0] == 400
    assert (status, answer["content"][0]["text"]) == (200, TEXT)


@dataclass(frozen=True)
class Failing:
    """Exceptions of an SDK, by format."""

    scenario: str
    raises: dict[str, type[Exception]]


FAILURES = [
    Failing("error-400", {"chat": openai.BadRequestError, "messages": anthropic.BadRequestError}),
    Failing("error-401", {"chat": openai.AuthenticationError, "messages": anthropic.AuthenticationError}),
    Failing("error-403", {"chat": openai.PermissionDeniedError, "messages": anthropic.PermissionDeniedError}),
    Failing("error-404", {"chat": openai.NotFoundError, "messages": anthropic.NotFoundError}),
    Failing("error-429", {"chat": openai.RateLimitError, "messages": anthropic.RateLimitError}),
    Failing("error-500", {"chat": openai.InternalServerError, "messages": anthropic.InternalServerError}),
    Failing("error-503", {"chat": openai.InternalServerError, "messages": anthropic.InternalServerError}),
    Failing("error-529", {"chat": openai.InternalServerError, "messages": anthropic.InternalServerError}),
]


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("name", TEXT_PROVIDERS)
@pytest.mark.parametrize("case", FAILURES, ids=lambda case: case.scenario)
async def test_an_error_before_the_first_byte_is_the_sdks_own(case: Failing, name: str, streamed: bool) -> None:
    status = int(case.scenario.removeprefix("error-"))
    expected = case.raises.get("chat" if name == "responses" else name)
    raises = expected or (native_errors.ClientError if status < 500 else native_errors.ServerError)
    async with provider(name) as server, sdk_caller(name, server.url, KEY) as sdk:
        with pytest.raises(raises, match=f"the provider says {status}") as caught:
            await (sdk.stream if streamed else sdk.call)(Request(f"scenario: {case.scenario}"))
        assert (getattr(caught.value, "status_code", None) or getattr(caught.value, "code", None)) == status
    assert server.refusals == []


BROKEN: tuple[type[Exception], ...] = (openai.APIError, anthropic.APIError, native_errors.APIError)


@pytest.mark.parametrize("name", TEXT_PROVIDERS)
async def test_a_failure_in_the_middle_of_a_stream_raises(name: str) -> None:
    async with provider(name) as server, sdk_caller(name, server.url, KEY) as sdk:
        if name == "responses":  # the SDK returns the failed response, which has its error
            answer = await sdk.sdk.responses.create(model="m", input="scenario: error-mid", stream=True)  # type: ignore[attr-defined]
            last = [event async for event in answer][-1]
            assert (last.type, last.response.error.message) == ("response.failed", "the model fell over")
        else:
            with pytest.raises(BROKEN, match="the model fell over"):
                await sdk.stream(Request("scenario: error-mid"))
        with pytest.raises(BROKEN, match="the model fell over"):
            await sdk.stream(Request("scenario: error-event"))


@pytest.mark.parametrize("name", TEXT_PROVIDERS)
async def test_a_wrong_key_is_refused(name: str) -> None:
    raises = (openai.AuthenticationError, anthropic.AuthenticationError, native_errors.ClientError)
    async with provider(name) as server, sdk_caller(name, server.url, "wrong") as sdk:
        with pytest.raises(raises):
            await sdk.call(Request("x"))


def streaming(name: str, scenario: str) -> tuple[str, Json]:
    """Return path and body of a streamed request."""
    text = f"scenario: {scenario}"
    bodies: dict[str, Json] = {
        "chat": {"messages": [{"role": "user", "content": text}]},
        "responses": {"input": text},
        "messages": {"max_tokens": 99, "messages": [{"role": "user", "content": text}]},
        "native": {"contents": [{"parts": [{"text": text}]}]},
    }
    path = PATHS[name].replace(":generateContent", ":streamGenerateContent?alt=sse")
    return path, bodies[name] | ({} if name == "native" else {"model": "m", "stream": True})


@pytest.mark.parametrize("name", TEXT_PROVIDERS)
async def test_a_waiting_stream_reports_a_cancelled_call(name: str) -> None:
    path, body = streaming(name, "endless")
    async with provider(name) as server, aiohttp.ClientSession() as session:
        async with session.post(server.base_url + path, json=body, headers=HEADERS[name]):
            await server.waiting.wait()
        await server.left.wait()


async def test_a_native_stream_without_sse_is_one_array() -> None:
    async with provider("native") as server, aiohttp.ClientSession(headers=HEADERS["native"]) as session:
        body = {"contents": [{"parts": [{"text": "scenario: plain"}]}]}
        async with session.post(f"{server.base_url}/models/m:streamGenerateContent", json=body) as response:
            chunks = json.loads(await response.read())
    texts = [part["text"] for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
    assert "".join(texts) == TEXT


@pytest.mark.parametrize("name", TEXT_PROVIDERS)
async def test_a_stream_may_end_early_or_be_cut(name: str) -> None:
    async with provider(name) as server, aiohttp.ClientSession(headers=HEADERS[name]) as session:
        path, body = streaming(name, "ends-early")
        async with session.post(server.base_url + path, json=body) as response:
            ended = await response.text()
        assert "wör" in ended
        assert "done." not in ended
        path, body = streaming(name, "cut")
        async with session.post(server.base_url + path, json=body) as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()
