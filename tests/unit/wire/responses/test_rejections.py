"""Bodies and queries that are refused, and the path in each error."""

from dataclasses import dataclass

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.v1 import pb
from umg_grpc.wire.responses import RESPONSES_FORMAT, stored_responses

INVALID, MISSING, UNSUPPORTED = (
    pb.ERROR_REASON_INVALID_FIELD,
    pb.ERROR_REASON_MISSING_FIELD,
    pb.ERROR_REASON_UNSUPPORTED_FIELD,
)


@dataclass(frozen=True)
class Rejection:
    id: str
    body: dict[str, object]
    field: str
    reason: "pb.ErrorReason.ValueType" = INVALID


def of_input(*items: object) -> dict[str, object]:
    return {"input": list(items)}


def of_part(**part: object) -> dict[str, object]:
    return of_input({"role": "user", "content": [part]})


FOUND = {"type": "tool_search_output", "call_id": "c", "execution": "client"}

REJECTIONS = [
    Rejection("no model", {"model": None}, "model"),
    Rejection("nothing to answer", {"input": None}, "input", MISSING),
    Rejection("an empty input", {"input": []}, "input", MISSING),
    Rejection("background (readings, 13)", {"background": True}, "background", UNSUPPORTED),
    Rejection("top_logprobs", {"top_logprobs": 21}, "top_logprobs"),
    Rejection("17 labels", {"metadata": {str(n): "" for n in range(17)}}, "metadata"),
    Rejection("a long label", {"metadata": {"a": "x" * 513}}, "metadata"),
    Rejection("two ways to continue", {"previous_response_id": "r", "conversation": "c"}, "conversation"),
    Rejection("text.format.type", {"text": {"format": {"type": "xml"}}}, "text.format.type"),
    Rejection("a schema without a name", {"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name", MISSING),
    Rejection("a format without a schema", {"text": {"format": {"type": "json_schema", "name": "n"}}}, "text.format.schema", MISSING),
    Rejection("a schema that is no object", {"text": {"format": {"type": "json_schema", "name": "n", "schema": 1}}}, "text.format.schema"),
    Rejection("verbosity", {"text": {"verbosity": "loud"}}, "text.verbosity"),
    Rejection("no content", of_input({"role": "user"}), "input[0].content", MISSING),
    Rejection("an item of nothing", of_input({"role": "user", "content": "x"}, {}), "input[1].type", MISSING),
    Rejection("a part without a type", of_part(text="x"), "input[0].content[0].type", MISSING),
    Rejection("a part without its text", of_part(type="input_text"), "input[0].content[0].text", MISSING),
    Rejection("a bare part without its text", of_input({"type": "input_text"}), "input[0].text", MISSING),
    Rejection("an image of nothing", of_part(type="input_image"), "input[0].content[0].image_url", MISSING),
    Rejection("an image by no address", of_part(type="input_image", image_url="i.png"), "input[0].content[0].image_url"),
    Rejection("an image twice", of_part(type="input_image", image_url="https://a.test/i", file_id="f"), "input[0].content[0].image_url"),
    Rejection("a file of nothing", of_part(type="input_file", filename="f"), "input[0].content[0].file_data", MISSING),
    Rejection("a file twice", of_part(type="input_file", file_id="f", file_url="https://a.test/f"), "input[0].content[0].file_id"),
    Rejection("broken base64", of_part(type="input_file", file_data="x"), "input[0].content[0].file_data"),
    Rejection("sound", of_part(type="input_audio", input_audio={"data": "aGk=", "format": "ogg"}), "input[0].content[0].input_audio.format"),
    Rejection("a call without an id", of_input({"type": "function_call", "name": "f", "arguments": "{}"}), "input[0].call_id", MISSING),
    Rejection("a call without a name", of_input({"type": "custom_tool_call", "call_id": "c", "input": ""}), "input[0].name", MISSING),
    Rejection("a result without an id", of_input({"type": "function_call_output", "output": ""}), "input[0].call_id", MISSING),
    Rejection("a result of nothing", of_input({"type": "function_call_output", "call_id": "c"}), "input[0].output", MISSING),
    Rejection("a result's part", of_input({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_image"}]}), "input[0].output[0].image_url", MISSING),
    Rejection("a search's action", of_input({"type": "web_search_call", "id": "ws", "action": {"queries": 1}}), "input[0].action.queries"),
    Rejection("a tool without a type", {"tools": [{"name": "f"}]}, "tools[0].type", MISSING),
    Rejection("a flat tool without a name", {"tools": [{"type": "function"}]}, "tools[0].name", MISSING),
    Rejection("a nested tool without a name", {"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name", MISSING),
    Rejection("parameters", {"tools": [{"type": "function", "name": "f", "parameters": []}]}, "tools[0].parameters"),
    Rejection("nested parameters", {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}, "tools[0].function.parameters"),
    Rejection("a search's place", {"tools": [{"type": "web_search_preview", "user_location": {"type": "exact"}}]}, "tools[0].user_location.type"),
    Rejection("passages", {"tools": [{"type": "file_search", "max_num_results": 51}]}, "tools[0].max_num_results"),
    Rejection("a choice of no tool", {"tool_choice": {"type": "function"}}, "tool_choice.name", MISSING),
    Rejection("a choice without a type", {"tool_choice": {"name": "f"}}, "tool_choice.type", MISSING),
    Rejection("a list of allowed tools", {"tool_choice": {"type": "allowed_tools", "mode": "none", "tools": []}}, "tool_choice.mode"),
    Rejection("an allowed tool without a name", {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function"}]}}, "tool_choice.tools[0].name", MISSING),
    Rejection("a prompt without an id", {"prompt": {}}, "prompt.id", MISSING),
    Rejection("moderation", {"moderation": "on"}, "moderation"),
    Rejection("a tool that was found and is no object", of_input(FOUND | {"tools": [5]}), "input[0].tools[0]"),
    Rejection("a name of a tool that was found", of_input(FOUND | {"tools": [{"name": 5}]}), "input[0].tools[0].name"),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    with raises_error(reason=case.reason, field=case.field):
        RESPONSES_FORMAT.decode_request(msgspec.json.encode({"model": "m", "input": "Hi"} | case.body), {})


@pytest.mark.parametrize(
    ("path", "wire"),
    [
        ("messages", "input"),
        ("messages[2].parts[1].text.text", "input[2].content[1].text"),
        ("request.messages[2].parts[1].media.uri", "input[2].content[1]"),
        ("messages[2].parts[0].tool_call.arguments_json", "input[2].arguments"),
        ("messages[2].parts[0].tool_result.parts[3].text.text", "input[2].output[3].text"),
        ("messages[2].parts[0].tool_result.call_id", "input[2].call_id"),
        ("messages[2].parts[0].reasoning.texts[0]", "input[2]"),
        ("messages[2].role", "input[2].role"),
        ("instructions[0]", "instructions"),
        ("tools[1].function.parameters_json", "tools[1].parameters"),
        ("tools[1].function.name", "tools[1].name"),
        ("tools[1].web_search.context_size", "tools[1].search_context_size"),
        ("tool_choice.names[0]", "tool_choice"),
        ("response_format.json_schema.schema_json", "text.format.schema"),
        ("conversation_id", "conversation"),
        ("page_size", "limit"),
        ("input[0].content", "input[0].content"),
    ],
)
def test_a_canonical_path_is_converted_to_a_callers_path(path: str, wire: str) -> None:
    assert RESPONSES_FORMAT.wire_path(path) == wire


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"limit": "0"}, "limit"),
        ({"limit": "101"}, "limit"),
        ({"limit": "1.5"}, "limit"),
        ({"limit": ""}, "limit"),
        ({"limit": "²"}, "limit"),
        ({"limit": "1" * 99}, "limit"),
        ({"order": "up"}, "order"),
    ],
)
def test_a_query_of_the_items_is_rejected_by_its_parameter(query: dict[str, str], field: str) -> None:
    with raises_error(reason=INVALID, field=field):
        stored_responses.decode_input_items_query("resp_1", query)


@pytest.mark.parametrize("given", ["-2", "x", "1.5", "²"])
def test_where_to_start_is_a_number(given: str) -> None:
    with raises_error(field="starting_after"):
        stored_responses.decode_starting_after({"starting_after": given})
