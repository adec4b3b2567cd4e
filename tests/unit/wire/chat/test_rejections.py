"""Bodies that the face refuses, and the path in each error."""

import msgspec
import pytest
from google.protobuf.descriptor import FieldDescriptor

from tests.unit.wire.rejections import Rejection, check_rejection
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT

MISSING = pb.ERROR_REASON_MISSING_FIELD


def content(*parts: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": list(parts)}]}


def turns(*messages: object) -> dict[str, object]:
    return {"messages": list(messages)}


TEXT = {"type": "text", "text": "a"}
REJECTIONS = [
    Rejection("no model", "model", {"model": msgspec.UNSET}, MISSING),
    Rejection("no messages", "messages", {"messages": msgspec.UNSET}, MISSING),
    Rejection("messages of another type", "messages", {"messages": "hi"}, message="expected an array, got a string"),
    Rejection("no role", "messages[0].role", turns({"content": "a"}), MISSING),
    Rejection("no content", "messages[0].content", turns({"role": "user"}), MISSING),
    Rejection("null as content", "messages[0].content", turns({"role": "system", "content": None}), MISSING),
    Rejection("a number as content", "messages[0].content", turns({"role": "user", "content": 1}), message="a string or an array"),
    Rejection("a part without a type", "messages[1].content[0].type", content({"text": "a"}), MISSING),
    Rejection("a part that is no object", "messages[1].content[0]", content("a")),
    Rejection("a text part without text", "messages[1].content[1].text", content(TEXT, {"type": "text"}), MISSING),
    Rejection("an image without an address", "messages[1].content[0].image_url", content({"type": "image_url"}), MISSING),
    Rejection("an image's address of another type", "messages[1].content[1].image_url.url", content(TEXT, {"type": "image_url", "image_url": {"url": 3}})),
    Rejection("an image that is no address", "messages[1].content[0].image_url.url", content({"type": "image_url", "image_url": {"url": "iVBORw0K"}})),
    Rejection("broken base64", "messages[1].content[0].image_url.url", content({"type": "image_url", "image_url": {"url": "data:image/png;base64,@"}})),
    Rejection("broken base64 in a bare address", "messages[1].content[0].image_url", content({"type": "image_url", "image_url": "data:image/png;base64,@"})),
    Rejection("an empty image", "messages[1].content[0].image_url.url", content({"type": "image_url", "image_url": {"url": "data:image/png;base64,"}})),
    Rejection("an unknown detail", "messages[1].content[0].image_url.detail", content({"type": "image_url", "image_url": {"url": "https://x.test", "detail": "sharp"}})),
    Rejection("an unknown sound", "messages[1].content[0].input_audio.format", content({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "ogg"}})),
    Rejection("a file without bytes", "messages[1].content[0].file.file_data", content({"type": "file", "file": {"filename": "a.pdf"}}), MISSING),
    Rejection("a file of two sources", "messages[1].content[0].file.file_id", content({"type": "file", "file": {"file_id": "f", "file_data": "aGk="}})),
    Rejection("a file of broken base64", "messages[1].content[0].file.file_data", content({"type": "file", "file": {"file_data": "@"}})),
    Rejection("an empty file", "messages[1].content[0].file.file_data", content({"type": "file", "file": {"file_data": "data:application/pdf;base64,"}})),
    Rejection("a file part without its member", "messages[1].content[0].file", content({"type": "file"}), MISSING),
    Rejection("a tool message without its call", "messages[0].tool_call_id", turns({"role": "tool", "content": "a"}), MISSING),
    Rejection("a tool message without content", "messages[0].content", turns({"role": "tool", "tool_call_id": "c"}), MISSING),
    Rejection("a function message without a name", "messages[0].name", turns({"role": "function", "content": "a"}), MISSING),
    Rejection("a call without an id", "messages[0].tool_calls[0].id", turns({"role": "assistant", "tool_calls": [{"type": "function", "function": {"name": "f"}}]}), MISSING),
    Rejection("a call without a name", "messages[0].tool_calls[0].function.name", turns({"role": "assistant", "tool_calls": [{"id": "c", "type": "function", "function": {}}]}), MISSING),
    Rejection("too many messages", "messages", {"messages": [{"role": "user", "content": "a"}] * 20001}),
    Rejection("too many parts", "messages[1].content", content(*[TEXT] * 5001)),
    Rejection("too many tools", "tools", {"tools": [{}] * 5001}),
    Rejection("too many parts with the calls", "messages[0].tool_calls", turns({"role": "assistant", "content": [TEXT] * 5000, "tool_calls": [{"id": "c", "function": {"name": "f"}}] * 2})),
    Rejection("temperature below", "temperature", {"temperature": -0.1}, message="at least 0"),
    Rejection("temperature above", "temperature", {"temperature": 3}, message="at most 2"),
    Rejection("temperature as text", "temperature", {"temperature": "1"}, message="expected a number, got a string"),
    Rejection("a penalty below", "presence_penalty", {"presence_penalty": -2.1}),
    Rejection("a penalty above", "frequency_penalty", {"frequency_penalty": 2.1}),
    Rejection("half a token", "max_tokens", {"max_tokens": 1.5}, message="whole number"),
    Rejection("no tokens in the newer field", "max_completion_tokens", {"max_completion_tokens": 0}),
    Rejection("a limit past 64 bits", "max_tokens", {"max_tokens": 2**70}),
    Rejection("a limit that is no finite number", "max_tokens", {"max_tokens": 1e300}),
    Rejection("no choice", "n", {"n": 0}),
    Rejection("too many choices", "n", {"n": 129}),
    Rejection("a seed past 64 bits", "seed", {"seed": 2**63}),
    Rejection("too many alternatives", "top_logprobs", {"top_logprobs": 21}),
    Rejection("five stop sequences", "stop", {"stop": ["a", "b", "c", "d", "e"]}),
    Rejection("an empty stop sequence", "stop[1]", {"stop": ["a", ""]}),
    Rejection("a stream option of another type", "stream_options.include_usage", {"stream_options": {"include_usage": 1}}),
    Rejection("a bias above", "logit_bias", {"logit_bias": {"50256": 101}}),
    Rejection("an unknown tool choice", "tool_choice", {"tool_choice": "any"}, message="`required`"),
    Rejection("a tool choice without a name", "tool_choice.function", {"tool_choice": {"type": "function"}}, MISSING),
    Rejection("a tool choice without a type", "tool_choice.type", {"tool_choice": {}}, MISSING),
    Rejection("an allowed tool without a name", "tool_choice.allowed_tools.tools[0].custom", {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "custom"}]}}}, MISSING),
    Rejection("a tool without a type", "tools[0].type", {"tools": [{"function": {"name": "f"}}]}, MISSING),
    Rejection("a function without a name", "tools[1].function.name", {"tools": [{"type": "function", "function": {"name": "f"}}, {"type": "function", "function": {}}]}, MISSING),
    Rejection("a schema that is no object", "tools[0].function.parameters", {"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}),
    Rejection("tools and functions", "functions", {"tools": [{"type": "function", "function": {"name": "f"}}], "functions": [{"name": "f"}]}),
    Rejection("an unknown response format", "response_format.type", {"response_format": {"type": "xml"}}, message="`json_schema`"),
    Rejection("a JSON schema without one", "response_format.json_schema", {"response_format": {"type": "json_schema"}}, MISSING),
    Rejection("a JSON schema without a name", "response_format.json_schema.name", {"response_format": {"type": "json_schema", "json_schema": {}}}, MISSING),
    Rejection("an unknown modality", "modalities[0]", {"modalities": ["smell"]}),
    Rejection("an unknown verbosity", "verbosity", {"verbosity": "chatty"}),
    Rejection("half a budget", "google.thinking_config.thinkingBudget", {"google": {"thinking_config": {"thinkingBudget": 1.5}}}),
    Rejection("a location without a place", "web_search_options.user_location.approximate", {"web_search_options": {"user_location": {}}}, MISSING),
    Rejection("recency in parts of days", "parameters.search_options.recency_days", {"parameters": {"search_options": {"recency_days": 0.5}}}),
    Rejection("metadata of another type", "metadata", {"metadata": {"a": 1}}),
    Rejection("too much metadata", "metadata", {"metadata": {str(n): "" for n in range(17)}}),
    Rejection("a long label", "metadata", {"metadata": {"a": "x" * 513}}),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_field_is_refused_by_its_path(case: Rejection) -> None:
    check_rejection(CHAT_FORMAT.decode_request, {"model": "m", "messages": [{"role": "user", "content": "hi"}]}, case)
    assert CHAT_FORMAT.wire_path(case.field) == case.field  # the path is that of the caller's body


def test_null_is_treated_as_absent_in_every_optional_field() -> None:
    from umg_grpc.wire.chat import schema

    names = set(schema.ChatRequest.__struct_encode_fields__) - {"model", "messages"}
    message = {"role": "user", "content": "hi", "name": None, "tool_calls": None, "refusal": None}
    body = {"model": "m", "messages": [message]} | dict.fromkeys(names)
    came = CHAT_FORMAT.decode_request(msgspec.json.encode(body), {}).canonical
    bare = CHAT_FORMAT.decode_request(b'{"model":"m","messages":[{"role":"user","content":"hi"}]}', {}).canonical
    came.ClearField("source")
    bare.ClearField("source")
    assert came == bare


PATHS = {
    "max_output_tokens": "max_tokens",
    "stop_sequences[0]": "stop[0]",
    "candidate_count": "n",
    "model": "model",
    "messages": "messages",
    "request.messages[0].parts[1].text.text": "messages[0].content[1].text",
    "request.max_output_tokens": "max_tokens",
    "messages[2].parts[0].tool_result.call_id": "messages[2].tool_call_id",
    "messages[2].parts[0].tool_result.parts[1].text.text": "messages[2].content[1].text",
    "messages[2].parts[0].media.source": "messages[2].content[0].image_url",
    "messages[2].parts": "messages[2].content",
    "tools[3].function.parameters_json": "tools[3].function.parameters",
    "tools[3].web_search.max_uses": "tools[3]",
    "reasoning.effort": "reasoning_effort",
    "search.context_size": "web_search_options.search_context_size",
    "response_format.json_schema.schema_json": "response_format.json_schema.schema",
    "face_hints.include_usage": "stream_options.include_usage",
    'logit_bias["50256"]': 'logit_bias["50256"]',
}


@pytest.mark.parametrize(("canonical", "wire"), PATHS.items())
def test_a_canonical_path_is_converted_to_the_callers_path(canonical: str, wire: str) -> None:
    assert CHAT_FORMAT.wire_path(canonical) == wire


def test_the_paths_that_are_translated_exist() -> None:
    for canonical in PATHS:
        message = pb.GenerateRequest.DESCRIPTOR
        for name in canonical.removeprefix("request.").split("."):
            plain = name.partition("[")[0]
            found = message.fields_by_name.get(plain) or message.oneofs_by_name.get(plain)
            assert found is not None, canonical
            if isinstance(found, FieldDescriptor) and found.message_type is not None:
                message = found.message_type
