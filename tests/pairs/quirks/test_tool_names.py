"""Names of tools that are unique for providers: a function with the name of the provider's search, and several tools
of one name.
"""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.pairs.quirks.requests import decoded_request, encoded
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS

NO_PARAMETERS = {"type": "object", "properties": {}}
CITY = {"type": "object", "properties": {"city": {"type": "string"}}}


def chat_function(name: str, parameters: dict[str, Any] = NO_PARAMETERS) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": parameters}}


def responses_function(name: str) -> dict[str, Any]:
    return {"type": "function", "name": name, "parameters": NO_PARAMETERS}


@dataclass(frozen=True)
class Search:
    id: str
    face: str
    fields: dict[str, Any]
    choice: str


SEARCHES = [
    Search("a tool of responses", "responses", {"tools": [{"type": "web_search"}, responses_function("web_search")], "tool_choice": {"type": "function", "name": "web_search"}}, "web_search_2"),
    Search("the function first", "responses", {"tools": [responses_function("web_search"), {"type": "web_search"}]}, ""),
    Search("an option of chat", "chat", {"tools": [chat_function("web_search")], "web_search_options": {}, "tool_choice": {"type": "function", "function": {"name": "web_search"}}}, "web_search_2"),
    Search("a tool of native", "native", {"tools": [{"googleSearch": {}}, {"functionDeclarations": [{"name": "web_search", "parameters": NO_PARAMETERS}]}]}, ""),
]  # fmt: skip


@pytest.mark.parametrize("case", SEARCHES, ids=lambda case: case.id)
def test_a_function_named_as_the_search_of_messages_gets_another_name_and_back(case: Search) -> None:
    body, _ = encoded(case.face, "messages", NO_QUIRKS, **case.fields)
    names = {tool.get("type", "function"): tool["name"] for tool in body["tools"]}
    assert names == {"web_search_20250305": "web_search", "function": "web_search_2"}
    if case.choice:
        assert body["tool_choice"]["name"] == case.choice
    answer = {"type": "message", "content": [{"type": "tool_use", "id": "t", "name": "web_search_2", "input": {}}], "stop_reason": "tool_use"}  # fmt: skip
    request = decoded_request(case.face, **case.fields)
    response = TEXT_FORMATS["messages"].decode_response(json.dumps(answer).encode(), request, False)
    assert response.candidates[0].message.parts[0].tool_call.name == "web_search"


def test_a_call_of_that_function_in_the_conversation_has_the_same_name() -> None:
    call = {"type": "function_call", "call_id": "c", "name": "web_search", "arguments": "{}"}
    result = {"type": "function_call_output", "call_id": "c", "output": "5"}
    tools = [{"type": "web_search"}, responses_function("web_search")]
    body, _ = encoded("responses", "messages", NO_QUIRKS, input=[call, result], tools=tools)
    assert body["messages"][1]["content"][0]["name"] == "web_search_2"


def test_a_function_keeps_the_name_of_the_search_in_a_request_without_a_search() -> None:
    body, _ = encoded("chat", "messages", NO_QUIRKS, tools=[chat_function("web_search")])
    assert [tool["name"] for tool in body["tools"]] == ["web_search"]


def sent_names(upstream: str, body: dict[str, Any]) -> list[str]:
    if upstream == "native":
        return [function["name"] for tool in body["tools"] for function in tool["functionDeclarations"]]
    return [(tool.get("function") or tool)["name"] for tool in body["tools"]]


TWICE = [chat_function("look"), chat_function("look", CITY), chat_function("look_2"), chat_function("look")]


@pytest.mark.parametrize("upstream", ["messages", "native", "responses"])
def test_of_two_functions_of_one_name_the_later_gets_another_name_and_a_repetition_is_left_out(upstream: str) -> None:
    body, report = encoded("chat", upstream, NO_QUIRKS, tools=TWICE)
    assert sent_names(upstream, body) == ["look", "look_3", "look_2"]
    assert "tools=each once" in report


def test_a_call_of_the_later_function_has_the_name_of_the_caller() -> None:
    answer = pb.GenerateResponse()
    answer.candidates.add().message.parts.add().tool_call.name = "look_3"
    encoded_answer = TEXT_FORMATS["native"].encode_response(answer, pb.GenerateRequest())
    response = TEXT_FORMATS["native"].decode_response(encoded_answer, decoded_request("chat", tools=TWICE), False)
    assert response.candidates[0].message.parts[0].tool_call.name == "look"


def test_a_body_of_the_providers_own_format_keeps_its_tools() -> None:
    body, report = encoded("chat", "chat", NO_QUIRKS, tools=TWICE)
    assert (body["tools"], report) == (TWICE, "")
