"""Tools as coding agents declare them, for providers of the other formats: namespaces, tools declared by items, tools
with a type of their own.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.core.tool_name_conversion import name_of
from umg_grpc.wire.facts_beside_request import RequestNotes
from umg_grpc.wire.responses import RESPONSES_FORMAT
from umg_grpc.wire.responses.typed_client_tools import CLIENT_TOOLS
from umg_grpc.wire.text_format_interface import UpstreamRequest

OTHERS = [name for name in TEXT_FORMATS if name != "responses"]
ADD = {"type": "function", "name": "add", "description": "Adds.", "parameters": {"type": "object"}, "strict": None}
EXEC = {"type": "custom", "name": "exec", "description": "Runs."}
CALC = {"type": "namespace", "name": "mcp__calc", "description": "A calculator.", "tools": [ADD, EXEC]}
HI = {"role": "user", "content": "Hi"}

every_other = pytest.mark.parametrize("name", OTHERS)


def decoded(**body: object) -> pb.GenerateRequest:
    encoded = msgspec.json.encode({"model": "m", "input": [HI], **body})
    return RESPONSES_FORMAT.decode_request(encoded, {}).canonical


def sent(request: pb.GenerateRequest, name: str, *edited: str) -> UpstreamRequest:
    return TEXT_FORMATS[name].encode_request(request, "m", False, notes=RequestNotes(edited=edited))


def declared(upstream: UpstreamRequest) -> list[dict[str, Any]]:
    """Return name and description of each tool in a provider's body."""
    found = list[dict[str, Any]]()
    for tool in msgspec.json.decode(upstream.body).get("tools", ()):
        for inner in tool.get("functionDeclarations", [tool.get("function") or tool.get("custom") or tool]):
            found.append({"name": inner["name"], "description": inner.get("description")})
    return found


def answers(request: pb.GenerateRequest, *calls: pb.ToolCall) -> list[list[dict[str, Any]]]:
    """Return the call items of a response with the calls, whole and streamed, without their ids."""
    parts = [pb.Part(tool_call=call) for call in calls]
    message = pb.Message(role=pb.ROLE_ASSISTANT, parts=parts)
    candidate = pb.Candidate(message=message, finish_reason=pb.FINISH_REASON_TOOL_CALLS)
    response = pb.GenerateResponse(response_id="resp_1", model="m", candidates=[candidate])
    whole = msgspec.json.decode(RESPONSES_FORMAT.encode_response(response, request))["output"]
    encoder = RESPONSES_FORMAT.stream_encoder(request)
    frames = encoder.feed(response_to_events(response)) + encoder.close()
    events = [msgspec.json.decode(line[6:]) for line in frames.split(b"\n") if line.startswith(b"data: ")]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    return [[{key: value for key, value in item.items() if key != "id"} for item in items] for items in (whole, done)]


@every_other
def test_the_tools_of_a_namespace_are_functions_under_joined_names(name: str) -> None:
    upstream = sent(decoded(tools=[CALC, {**ADD, "name": "plain"}]), name)
    assert declared(upstream) == [
        {"name": "mcp__calc__add", "description": "mcp__calc: A calculator.\n\nAdds."},
        {"name": "mcp__calc__exec", "description": "Runs."},
        {"name": "plain", "description": "Adds."},
    ]
    assert upstream.report.dropped.keys() <= {"custom"}  # sent as a function with one text


@every_other
def test_a_namespace_without_tools_is_left_out(name: str) -> None:
    """Check an empty namespace, which an agent's tool server may have."""
    upstream = sent(decoded(tools=[{**CALC, "tools": []}, {**ADD, "name": "plain"}]), name)
    assert declared(upstream) == [{"name": "plain", "description": "Adds."}]
    assert upstream.report.header() == ""


@every_other
def test_a_call_is_decoded_with_its_namespace_and_short_name(name: str) -> None:
    request = decoded(tools=[CALC])
    provider = {
        "chat": {"choices": [{"message": {"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {"name": "mcp__calc__add", "arguments": "{}"}}]}, "finish_reason": "tool_calls"}]},
        "messages": {"id": "m", "type": "message", "content": [{"type": "tool_use", "id": "c", "name": "mcp__calc__add", "input": {}}], "stop_reason": "tool_use"},
        "native": {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"id": "c", "name": "mcp__calc__add", "args": {}}}]}, "finishReason": "STOP"}]},
    }[name]  # fmt: skip
    answer = TEXT_FORMATS[name].decode_response(msgspec.json.encode(provider), request, False)
    [part] = answer.candidates[0].message.parts
    assert (part.tool_call.namespace, part.tool_call.name) == ("mcp__calc", "add")
    expected = {"type": "function_call", "namespace": "mcp__calc", "name": "add", "call_id": "c", "arguments": "{}"}
    assert answers(request, part.tool_call) == [[{**expected, "status": "completed"}]] * 2


@every_other
def test_a_call_of_an_earlier_turn_has_the_same_joined_name(name: str) -> None:
    history = [
        HI,
        {"type": "function_call", "call_id": "c", "namespace": "mcp__calc", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "3"},
    ]
    for tools in ([CALC], None):
        assert b'"mcp__calc__add"' in sent(decoded(input=history, tools=tools), name).body


def test_the_answer_repeats_a_namespace_as_it_was_declared() -> None:
    request = decoded(tools=[CALC, ADD])
    body = RESPONSES_FORMAT.encode_response(pb.GenerateResponse(response_id="resp_1"), request)
    assert msgspec.json.decode(body)["tools"] == [CALC, ADD]


def test_a_namespace_is_kept_when_the_tools_are_encoded_again() -> None:
    request = decoded(tools=[CALC])
    assert msgspec.json.decode(sent(request, "responses", "tools").body)["tools"] == [CALC]


@every_other
def test_tools_that_an_item_declares_are_declared(name: str) -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [CALC, ADD]}
    upstream = sent(decoded(input=[item, HI], tools=[ADD]), name)
    assert [tool["name"] for tool in declared(upstream)] == ["add", "mcp__calc__add", "mcp__calc__exec"]
    assert upstream.report.dropped.keys() <= {"custom"}


def test_a_tool_is_declared_once_however_often_items_declare_it() -> None:
    search = {"type": "web_search"}
    tools = [{**ADD, "name": f"add{index}"} for index in range(2000)]
    item = {"type": "additional_tools", "role": "developer", "tools": [*tools, search]}
    request = decoded(input=[item, HI, item, item], tools=[search])
    assert [name_of(tool).name for tool in request.tools] == ["", *(tool["name"] for tool in tools)]


def test_an_item_that_declares_tools_reaches_a_provider_of_the_format() -> None:
    item = {"type": "additional_tools", "role": "developer", "tools": [CALC]}
    request = decoded(input=[item, HI])
    assert msgspec.json.decode(sent(request, "responses").body)["input"] == [item, HI]
    assert msgspec.json.decode(sent(request, "responses", "messages").body)["input"][0] == item


# --- tools with a type of their own


@dataclass(frozen=True)
class Typed:
    """A tool, its call and its result as the format writes them."""

    tool: dict[str, Any]
    arguments: dict[str, Any]
    call: dict[str, Any]
    output: dict[str, Any]
    text: str

    @property
    def id(self) -> str:
        return str(self.tool["type"])


DIFF = {"type": "update_file", "path": "a.txt", "diff": "@@\n-a\n+b\n"}
LS = {"commands": ["ls"], "timeout_ms": 1000, "max_output_length": None}
RUN = {"type": "exec", "command": ["ls"], "env": {}}
FOUND = [{"type": "function", "name": "found", "parameters": {"type": "object"}}]
TYPED = [
    Typed(
        {"type": "apply_patch"},
        DIFF,
        {"type": "apply_patch_call", "call_id": "c", "status": "completed", "operation": DIFF},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no such file"},
        "no such file",
    ),
    Typed(
        {"type": "shell", "environment": {"type": "local"}},
        {"commands": ["ls"], "timeout_ms": 1000},
        {"type": "shell_call", "call_id": "c", "status": "completed", "action": LS, "environment": {"type": "local"}},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 2}}]},
        "a\n[exit code 2]",
    ),
    Typed(
        {"type": "local_shell"},
        {"command": ["ls"]},
        {"type": "local_shell_call", "call_id": "c", "status": "completed", "action": RUN},
        {"type": "local_shell_call_output", "id": "c", "output": "a"},
        "a",
    ),
    Typed(
        {"type": "tool_search", "execution": "client", "description": "Finds.", "parameters": {"type": "object"}},
        {"query": "x"},
        {"type": "tool_search_call", "call_id": "c", "status": "completed", "execution": "client", "arguments": {"query": "x"}},
        {"type": "tool_search_output", "call_id": "c", "status": "completed", "execution": "client", "tools": FOUND},
        "loaded: found",
    ),
]  # fmt: skip
typed = pytest.mark.parametrize("case", TYPED, ids=lambda case: case.id)


def test_every_tool_of_the_table_is_tried() -> None:
    assert {case.id for case in TYPED} == CLIENT_TOOLS.keys()


@typed
@every_other
def test_a_tool_with_a_type_is_a_function_elsewhere(case: Typed, name: str) -> None:
    upstream = sent(decoded(tools=[case.tool]), name)
    assert [tool["name"] for tool in declared(upstream)] == [case.id]
    assert not upstream.report.lost


CHOSEN: dict[str, Callable[[str], object]] = {
    "chat": lambda tool: {"type": "function", "function": {"name": tool}},
    "messages": lambda tool: {"type": "tool", "name": tool},
    "native": lambda tool: {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [tool]}},
}


@typed
@every_other
def test_a_forced_tool_with_a_type_is_a_forced_function_elsewhere(case: Typed, name: str) -> None:
    choice = {"type": case.id}
    request = decoded(tools=[case.tool, ADD], tool_choice=choice)
    body = msgspec.json.decode(sent(request, name).body)
    assert body["toolConfig" if name == "native" else "tool_choice"] == CHOSEN[name](case.id)
    assert (
        msgspec.json.decode(RESPONSES_FORMAT.encode_response(pb.GenerateResponse(), request))["tool_choice"] == choice
    )


@typed
def test_a_list_of_allowed_tools_may_name_one_with_a_type(case: Typed) -> None:
    choice = {
        "type": "allowed_tools",
        "mode": "auto",
        "tools": [{"type": case.id}, {"type": "function", "name": "add"}],
    }
    request = decoded(tools=[case.tool, ADD], tool_choice=choice)
    payloads_of = msgspec.json.decode(sent(request, "chat").body)["tool_choice"]["allowed_tools"]["tools"]
    assert [tool["function"]["name"] for tool in payloads_of] == [case.id, "add"]
    assert (
        msgspec.json.decode(RESPONSES_FORMAT.encode_response(pb.GenerateResponse(), request))["tool_choice"] == choice
    )
    assert msgspec.json.decode(sent(request, "responses", "tool_choice").body)["tool_choice"] == choice


@typed
def test_its_call_is_encoded_as_the_item_of_its_type(case: Typed) -> None:
    request = decoded(tools=[case.tool])
    call = pb.ToolCall(
        call_id="c", name=case.id, tool_type=case.id, arguments_json=msgspec.json.encode(case.arguments).decode()
    )
    assert answers(request, call) == [[case.call]] * 2
    assert msgspec.json.decode(RESPONSES_FORMAT.encode_response(pb.GenerateResponse(), request))["tools"] == [case.tool]


@typed
def test_its_call_and_result_are_those_of_a_function_elsewhere(case: Typed) -> None:
    request = decoded(input=[HI, case.call, case.output], tools=[case.tool])
    body = msgspec.json.decode(sent(request, "chat").body)
    _, called, result = body["messages"]
    assert called["tool_calls"][0]["function"]["name"] == case.id
    assert (result["role"], result["tool_call_id"], result["content"]) == ("tool", "c", case.text)
    names = [tool["function"]["name"] for tool in body["tools"]]
    assert names == ([case.id, "found"] if case.id == "tool_search" else [case.id])


@typed
def test_its_items_are_kept_when_the_conversation_is_encoded_again(case: Typed) -> None:
    request = decoded(input=[HI, case.call, case.output], tools=[case.tool])
    items = msgspec.json.decode(sent(request, "responses", "messages").body)["input"]
    assert [item["type"] for item in items] == ["message", case.call["type"], case.output["type"]]


def test_arguments_that_are_no_object_reach_the_caller() -> None:
    call = pb.ToolCall(call_id="c", name="apply_patch", tool_type="apply_patch", arguments_json='{"path')
    [[item], _] = answers(decoded(tools=[{"type": "apply_patch"}]), call)
    assert item["operation"]["raw_arguments"] == '{"path'


# --- tools that the provider runs


@every_other
def test_an_optional_hosted_tool_is_dropped_and_reported(name: str) -> None:
    upstream = sent(decoded(tools=[{"type": "image_generation", "quality": "high"}, ADD]), name)
    assert [tool["name"] for tool in declared(upstream)] == ["add"]
    assert upstream.report.header() == "image_generation"


@every_other
def test_a_hosted_tool_that_is_forced_is_refused(name: str) -> None:
    request = decoded(tools=[{"type": "image_generation"}], tool_choice={"type": "image_generation"})
    with raises_error(field="tool_choice"):
        sent(request, name)


@every_other
def test_a_search_among_tools_by_the_provider_is_not_needed_where_all_are_loaded(name: str) -> None:
    items = [
        HI,
        {"type": "tool_search_call", "call_id": None, "execution": "server", "arguments": {}, "status": "completed"},
        {"type": "tool_search_output", "call_id": None, "execution": "server", "tools": [ADD], "status": "completed"},
    ]
    body = {"model": "m", "input": items, "tools": [{"type": "tool_search"}, {**ADD, "defer_loading": True}]}
    request, _, notes = RESPONSES_FORMAT.decode_request(msgspec.json.encode(body), {})
    upstream = TEXT_FORMATS[name].encode_request(request, "m", False, notes=notes)
    assert [tool["name"] for tool in declared(upstream)] == ["add"]
    assert upstream.report.header() == "defer_loading"


@every_other
@pytest.mark.parametrize("kind", ["mcp", "code_interpreter", "computer", "programmatic_tool_calling"])
def test_a_required_hosted_tool_is_refused_by_its_type(kind: str, name: str) -> None:
    with pytest.raises(UmgError) as caught:
        sent(decoded(tools=[{"type": kind}]), name)
    assert caught.value.metadata["field"] == "tools[0]"
    assert f"`{kind}`" in caught.value.message


def test_a_shell_in_a_container_of_the_provider_is_refused() -> None:
    request = decoded(tools=[{"type": "shell", "environment": {"type": "container_auto"}}])
    with pytest.raises(UmgError):
        sent(request, "chat")
