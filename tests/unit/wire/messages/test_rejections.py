"""Bodies that the face refuses, and the path in each error."""

import msgspec
import pytest

from tests.unit.wire.rejections import Rejection, check_rejection
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES_FORMAT

MISSING = pb.ERROR_REASON_MISSING_FIELD


def content(*blocks: object) -> dict[str, object]:
    return {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": list(blocks)}]}


def image(source: object) -> dict[str, object]:
    return content({"type": "image", "source": source})


def document(source: object) -> dict[str, object]:
    return content({"type": "document", "source": source})


def result(*blocks: object) -> dict[str, object]:
    return content({"type": "tool_result", "tool_use_id": "t", "content": list(blocks)})


def tool(**tool: object) -> dict[str, object]:
    return {"tools": [{"name": "f", "input_schema": {}}, tool]}


LEAST: dict[str, object] = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
TEXT = {"type": "text", "text": "a"}
AT = "messages[1].content[0]"
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
REJECTIONS = [
    Rejection("no model", "model", {"model": msgspec.UNSET}, MISSING),
    Rejection("no messages", "messages", {"messages": msgspec.UNSET}, MISSING),
    Rejection("messages of another type", "messages", {"messages": "hi"}, message="expected an array, got a string"),
    Rejection("no max_tokens", "max_tokens", {"max_tokens": msgspec.UNSET}, MISSING),
    Rejection("max_tokens of 0", "max_tokens", {"max_tokens": 0}, message="at least 1"),
    Rejection("a fraction of max_tokens", "max_tokens", {"max_tokens": 1.5}, message="whole number"),
    Rejection("a huge max_tokens", "max_tokens", {"max_tokens": 2**63}),
    Rejection("an empty stop sequence", "stop_sequences[0]", {"stop_sequences": [""]}),
    Rejection("a user of another type", "metadata.user_id", {"metadata": {"user_id": 1}}),
    # turns
    Rejection("no role", "messages[0].role", {"messages": [{"content": "a"}]}, MISSING),
    Rejection("no content", "messages[0].content", {"messages": [{"role": "user"}]}, MISSING),
    Rejection("null as content", "messages[0].content", {"messages": [{"role": "user", "content": None}]}, MISSING),
    Rejection("a block without a type", f"{AT}.type", content({"text": "a"}), MISSING),
    Rejection("a type of another type", f"{AT}.type", content({"type": 1})),
    Rejection("a text block without text", f"{AT}.text", content({"type": "text"}), MISSING),
    Rejection("a citation that is no object", f"{AT}.citations[0]", content(TEXT | {"citations": [1]})),
    Rejection("a type of a citation", f"{AT}.citations[0].type", content(TEXT | {"citations": [{"type": 1}]})),
    Rejection("an image without a source", f"{AT}.source", content({"type": "image"}), MISSING),
    Rejection("a source without a type", f"{AT}.source.type", image({"data": "aGk="}), MISSING),
    Rejection("an unknown source", f"{AT}.source.type", image({"type": "text", "data": "a"}), message="`base64`, `url`, `file`"),
    Rejection("an image without data", f"{AT}.source.data", image({"type": "base64", "media_type": "image/png"}), MISSING),
    Rejection("an empty image", f"{AT}.source.data", image({"type": "base64", "media_type": "image/png", "data": ""})),
    Rejection("broken base64", f"{AT}.source.data", image({"type": "base64", "media_type": "image/png", "data": "@"}), message="base64"),
    Rejection("an image without its address", f"{AT}.source.url", image({"type": "url"}), MISSING),
    Rejection("an image that is no address", f"{AT}.source.url", image({"type": "url", "url": "iVBORw0K"})),
    Rejection("an image without its id", f"{AT}.source.file_id", image({"type": "file"}), MISSING),
    Rejection("an unknown document source", f"{AT}.source.type", document({"type": "new"}), message="`content`"),
    Rejection("a text document of another type", f"{AT}.source.data", document({"type": "text", "data": 1})),
    Rejection("an unknown piece of a document", f"{AT}.source.content[0].type", document({"type": "content", "content": [{"type": "new"}]})),
    Rejection("a piece without a type", f"{AT}.source.content[0].type", document({"type": "content", "content": [{}]}), MISSING),
    Rejection("a search result without a title", f"{AT}.title", content({"type": "search_result", "source": "s", "content": []}), MISSING),
    Rejection("thoughts without text", f"{AT}.thinking", content({"type": "thinking", "signature": "s"}), MISSING),
    Rejection("redacted thoughts without data", f"{AT}.data", content({"type": "redacted_thinking"}), MISSING),
    Rejection("a call without an id", f"{AT}.id", content({"type": "tool_use", "name": "f", "input": {}}), MISSING),
    Rejection("a call without a name", f"{AT}.name", content({"type": "tool_use", "id": "t", "input": {}}), MISSING),
    Rejection("a call without its input", f"{AT}.input", content({"type": "tool_use", "id": "t", "name": "f"}), MISSING),
    Rejection("an input that is text", f"{AT}.input", content({"type": "tool_use", "id": "t", "name": "f", "input": "{}"}), message="an object"),
    Rejection("a result of no call", f"{AT}.tool_use_id", content({"type": "tool_result"}), MISSING),
    Rejection("a result's block without a type", f"{AT}.content[0].type", result({}), MISSING),
    Rejection("a result's text of another type", f"{AT}.content[1].text", result(TEXT, {"type": "text", "text": None})),
    Rejection("an unknown cache", f"{AT}.cache_control.type", content(TEXT | {"cache_control": {"type": "forever"}}), message="`ephemeral`, `persistent`"),
    Rejection("a cache without a type", f"{AT}.cache_control.type", content(TEXT | {"cache_control": {}}), MISSING),
    Rejection("an unknown lifetime", f"{AT}.cache_control.ttl", content(TEXT | {"cache_control": {"type": "ephemeral", "ttl": "2h"}})),
    Rejection("persistent for minutes", f"{AT}.cache_control.ttl", content(TEXT | {"cache_control": {"type": "persistent", "ttl": "5m"}})),
    Rejection("a failed search without its error", f"{AT}.content.error_code", content({"type": "web_search_tool_result", "tool_use_id": "t", "content": {}}), MISSING),
    Rejection("a found page without its address", f"{AT}.content[0].url", content({"type": "web_search_tool_result", "tool_use_id": "t", "content": [{}]}), MISSING),
    # system
    Rejection("a system block of another type", "system[0].type", {"system": [{"type": "image"}]}, message="expected `text`"),
    Rejection("a system block without a type", "system[1].type", {"system": [TEXT, {"text": "a"}]}, MISSING),
    # tools
    Rejection("a tool without a name", "tools[1].name", tool(input_schema={}), MISSING),
    Rejection("a tool with an empty name", "tools[1].name", tool(name="", input_schema={})),
    Rejection("a tool without a schema", "tools[1].input_schema", tool(name="f"), MISSING),
    Rejection("a newer web search", "tools[1].type", tool(type="web_search_20260209", name="web_search"), message="web_search_20250305"),
    Rejection("an unknown web search", "tools[1].type", tool(type="web_search_2", name="x")),
    Rejection("a web search of another name", "tools[1].name", tool(type="web_search_20250305", name="search"), message="web_search"),
    Rejection("a web search without a name", "tools[1].name", tool(type="web_search_20250305"), MISSING),
    Rejection("a function named web_search", "tools[1].type", tool(name="web_search", input_schema={})),
    Rejection("an exact place", "tools[1].user_location.type", tool(**SEARCH, user_location={"type": "exact"})),
    Rejection("an unknown cache of a tool", "tools[1].cache_control.type", tool(name="f", input_schema={}, cache_control={"type": "x"})),
    Rejection("an unknown cache of an unknown tool", "tools[1].cache_control.type", tool(type="new", cache_control={"type": "x"})),
    Rejection("an unknown choice", "tool_choice.type", {"tool_choice": {"type": "required"}}, message="`any`, `auto`, `none`, `tool`"),
    Rejection("a choice of no tool", "tool_choice.name", {"tool_choice": {"type": "tool"}}, MISSING),
    # thinking and form
    Rejection("a budget of 1024", "thinking.budget_tokens", {"thinking": {"type": "enabled", "budget_tokens": 1024}}, message="greater than 1024"),
    Rejection("no budget", "thinking.budget_tokens", {"thinking": {"type": "enabled"}}, MISSING),
    Rejection("a budget beside adaptive", "thinking.budget_tokens", {"thinking": {"type": "adaptive", "budget_tokens": 2000}}),
    Rejection("an unknown way to think", "thinking.type", {"thinking": {"type": "hard"}}, message="`adaptive`"),
    Rejection("an unknown effort", "output_config.effort", {"output_config": {"effort": "minimal"}}),
    Rejection("a format without a schema", "output_config.format.schema", {"output_config": {"format": {"type": "json_schema"}}}, MISSING),
    Rejection("a schema that is text", "output_config.format.schema", {"output_config": {"format": {"type": "json_schema", "schema": "{}"}}}),
    Rejection("an unknown format", "output_config.format.type", {"output_config": {"format": {"type": "json_object"}}}),
    Rejection("an older format's schema", "output_format.schema", {"output_format": {"type": "json_schema", "schema": 1}}),
]  # fmt: skip


def body_of(changes: dict[str, object]) -> bytes:
    return msgspec.json.encode(LEAST | changes)


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    check_rejection(MESSAGES_FORMAT.decode_request, LEAST, case)


NULLS = dict.fromkeys(("system", "tools", "stream", "temperature", "top_p", "top_k", "stop_sequences", "tool_choice", "thinking", "output_config", "output_format", "cache_control", "metadata", "service_tier", "mcp_servers", "context_management", "container", "betas"))  # fmt: skip


def test_an_explicit_null_is_treated_as_absent() -> None:
    nulls, *_ = MESSAGES_FORMAT.decode_request(body_of(NULLS), {})
    plain, *_ = MESSAGES_FORMAT.decode_request(body_of({}), {})
    for request in (nulls, plain):
        request.source.body = b""
    assert nulls == plain


def test_nulls_inside_blocks_are_treated_as_absent() -> None:
    blocks = [
        TEXT | {"citations": None, "cache_control": None},
        {"type": "tool_use", "id": "t", "name": "f", "input": {}, "cache_control": None},
        {"type": "thinking", "thinking": "t", "signature": None},
        {"type": "document", "source": {"type": "text", "data": "a", "media_type": None}, "title": None, "context": None, "citations": None},
        {"type": "tool_result", "tool_use_id": "t", "content": None, "is_error": None},
    ]  # fmt: skip
    request, *_ = MESSAGES_FORMAT.decode_request(body_of(content(*blocks)), {})
    parts = request.messages[1].parts
    assert [part.WhichOneof("kind") for part in parts] == ["text", "tool_call", "reasoning", "media", "tool_result"]
    assert not any(part.HasField("state") or part.HasField("cache_control") for part in parts)


WIRE_PATHS = [
    ("messages[0].parts[1].text.text", "messages[0].content[1].text"),
    ("messages[0].parts[1].text.citations[2]", "messages[0].content[1].citations[2]"),
    ("messages[3].parts", "messages[3].content"),
    ("messages[3].role", "messages[3].role"),
    ("messages[0].parts[1].media.uri", "messages[0].content[1].source"),
    ("messages[0].parts[1].media.kind", "messages[0].content[1].source"),
    ("messages[0].parts[1].tool_call.arguments_json", "messages[0].content[1].input"),
    ("messages[0].parts[1].tool_call.name", "messages[0].content[1].name"),
    ("messages[0].parts[1].tool_result.parts[2]", "messages[0].content[1].content[2]"),
    ("messages[0].parts[1].tool_result.parts[2].media", "messages[0].content[1].content[2]"),
    ("messages[0].parts[1].tool_result.call_id", "messages[0].content[1].tool_use_id"),
    ("messages[0].parts[1].opaque.json", "messages[0].content[1]"),
    ("messages[0].parts[1].state.data", "messages[0].content[1].signature"),
    ("messages[0].parts[1].cache_control.ttl", "messages[0].content[1].cache_control.ttl"),
    ("instructions[1].text.text", "system[1].text"),
    ("max_output_tokens", "max_tokens"),
    ("tools[2].function.parameters_json", "tools[2].input_schema"),
    ("tools[2].function.name", "tools[2].name"),
    ("tools[2].web_search.max_uses", "tools[2].max_uses"),
    ("tools[2].opaque.json", "tools[2]"),
    ("tool_choice.names[0]", "tool_choice.name"),
    ("reasoning.budget_tokens", "thinking.budget_tokens"),
    ("reasoning.mode", "thinking.type"),
    ("reasoning.effort", "output_config.effort"),
    ("response_format.json_schema.schema_json", "output_config.format.schema"),
    ("user", "metadata.user_id"),
    ("request.temperature", "temperature"),
    ("messages[0].content[1].text", "messages[0].content[1].text"),
]


@pytest.mark.parametrize(("path", "wired"), WIRE_PATHS)
def test_a_canonical_path_is_converted_to_the_callers_path_by_name(path: str, wired: str) -> None:
    assert MESSAGES_FORMAT.wire_path(path) == wired
