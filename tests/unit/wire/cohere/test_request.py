"""Requests of Cohere's chat, and rejections of malformed ones by the path of the field."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.cohere import COHERE_FACE
from umg_grpc.wire.text_format_interface import FaceRequest

HI: dict[str, Any] = {"role": "user", "content": "Hi"}
WEATHER: dict[str, Any] = {
    "type": "function",
    "function": {"name": "weather", "description": "d", "parameters": {"type": "object"}},
}


def decoded(**members: Any) -> FaceRequest:
    return COHERE_FACE.decode_request(json.dumps({"model": "m", "messages": [HI], **members}).encode(), {})


def without_source(request: pb.GenerateRequest) -> pb.GenerateRequest:
    request.ClearField("source")
    return request


def text(value: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=value))


USER = pb.Message(role=pb.ROLE_USER, parts=[text("Hi")])


@dataclass(frozen=True)
class Options:
    """Members of a body, and the request that they are, beside the model and the message."""

    id: str
    members: dict[str, Any]
    expected: pb.GenerateRequest
    reported: list[str] = field(default_factory=list)


OPTIONS = [
    Options(
        "sampling",
        {"temperature": 0.3, "p": 0.75, "k": 40, "seed": 7, "frequency_penalty": 0.5, "presence_penalty": 0.25},
        pb.GenerateRequest(temperature=0.3, top_p=0.75, top_k=40, seed=7, frequency_penalty=0.5, presence_penalty=0.25),
    ),
    Options("no k-sampling", {"k": 0}, pb.GenerateRequest()),
    Options("numbers of JavaScript", {"max_tokens": 9.0, "k": 4.0}, pb.GenerateRequest(max_output_tokens=9, top_k=4)),
    Options(
        "limits",
        {"max_tokens": 9, "stop_sequences": ["a", "b"], "logprobs": True},
        pb.GenerateRequest(max_output_tokens=9, stop_sequences=["a", "b"], logprobs=True),
    ),
    Options(
        "thinking",
        {"thinking": {"type": "enabled", "token_budget": 500}},
        pb.GenerateRequest(reasoning=pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED, budget_tokens=500)),
    ),
    Options(
        "no thinking",
        {"thinking": {"type": "disabled"}},
        pb.GenerateRequest(reasoning=pb.ReasoningOptions(mode=pb.REASONING_MODE_DISABLED)),
    ),
    Options(
        "JSON",
        {"response_format": {"type": "json_object"}},
        pb.GenerateRequest(response_format=pb.ResponseFormat(json={})),
    ),
    Options(
        "a schema",
        {"response_format": {"type": "json_object", "json_schema": {"type": "object"}}},
        pb.GenerateRequest(
            response_format=pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json='{"type": "object"}'))
        ),
    ),
    Options(
        "a schema by its name in the first version",
        {"response_format": {"type": "json_object", "schema": {"type": "object"}}},
        pb.GenerateRequest(
            response_format=pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json='{"type": "object"}'))
        ),
    ),
    Options(
        "text", {"response_format": {"type": "text"}}, pb.GenerateRequest(response_format=pb.ResponseFormat(text={}))
    ),
    Options(
        "strict tools, one of which has to be called",
        {"tools": [WEATHER], "strict_tools": True, "tool_choice": "REQUIRED"},
        pb.GenerateRequest(
            tools=[
                pb.Tool(
                    function=pb.FunctionTool(
                        name="weather", description="d", parameters_json='{"type": "object"}', strict=True
                    )
                )
            ],
            tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED),
        ),
    ),
    Options(
        "no call", {"tool_choice": "NONE"}, pb.GenerateRequest(tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_NONE))
    ),
    Options(
        "what no other format has",
        {"safety_mode": "STRICT", "priority": 5, "citation_options": {"mode": "FAST"}},
        pb.GenerateRequest(),
        ["citation_options.mode", "safety_mode", "priority"],
    ),
    Options(
        "nulls", dict.fromkeys(["tools", "documents", "thinking", "k", "stream", "priority"]), pb.GenerateRequest()
    ),
]


@pytest.mark.parametrize("case", OPTIONS, ids=lambda case: case.id)
def test_options_have_a_canonical_form(case: Options) -> None:
    request, stream, notes = decoded(**case.members)
    expected = pb.GenerateRequest(model="m", messages=[USER])
    expected.MergeFrom(case.expected)
    assert without_source(request) == expected
    assert (stream, notes.uncarried, notes.indispensable) == (False, case.reported, [])


def test_the_body_is_kept_and_a_stream_is_requested() -> None:
    request, stream, _ = decoded(stream=True)
    assert stream
    assert (request.source.format, json.loads(request.source.body)["stream"]) == ("cohere", True)


def test_an_unknown_member_is_indispensable_and_one_below_the_top_is_reported() -> None:
    body = json.dumps({"model": "m", "messages": [{**HI, "brand_new": 1}], "new": 1}).encode()
    assert COHERE_FACE.decode_request(body, {}).notes.indispensable == ["new"]
    assert COHERE_FACE.unknown_fields is not None
    assert COHERE_FACE.unknown_fields(body) == ["messages[0].brand_new"]


def test_a_round_of_tools() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "weather", "arguments": '{"a": 1.0}'}}
    plan = {"role": "assistant", "tool_plan": "I look.", "tool_calls": [call], "citations": [{"start": 0}]}
    document = {"type": "document", "document": {"id": "d", "data": {"degrees": 18.0}}}
    result = {"role": "tool", "tool_call_id": "1", "content": [{"type": "text", "text": "warm"}, document]}
    system = {"role": "system", "content": [{"type": "text", "text": "s"}]}
    request, _, notes = decoded(messages=[system, HI, plan, result, plan, result])
    assert notes.uncarried == ["messages[2].citations"]
    messages = without_source(request).messages[:4]
    made = pb.ToolCall(call_id="1", name="weather", arguments_json='{"a": 1.0}')
    found = pb.ToolResult(call_id="1", parts=[text("warm"), text('{"id": "d", "data": {"degrees": 18.0}}')])
    assert list(messages) == [
        pb.Message(role=pb.ROLE_SYSTEM, parts=[text("s")]),
        USER,
        pb.Message(role=pb.ROLE_ASSISTANT, parts=[text("I look."), pb.Part(tool_call=made)]),
        pb.Message(role=pb.ROLE_TOOL, parts=[pb.Part(tool_result=found)]),
    ]  # fmt: skip


def test_thoughts_and_images() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo=", "detail": "low"}}
    thought = {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}]}
    messages = decoded(messages=[{"role": "user", "content": [image]}, thought, HI]).canonical.messages
    assert (messages[0].parts[0].media.mime_type, messages[0].parts[0].media.detail) == ("image/png", "low")
    assert [part.WhichOneof("kind") for part in messages[1].parts] == ["reasoning", "text"]


@dataclass(frozen=True)
class Documents:
    id: str
    members: dict[str, Any]
    citable: bool = True


DOCUMENTS: list[Any] = [
    "one",
    {"data": {"text": "two", "title": "T"}, "id": "b"},
    {"data": {"title": "U", "snippet": "three", "n": 1.0}},
]
CITED = [
    Documents("by default", {}),
    Documents("accurate", {"citation_options": {"mode": "ACCURATE"}}),
    Documents("off", {"citation_options": {"mode": "OFF"}}, citable=False),
    Documents("disabled", {"citation_options": {"mode": "DISABLED"}}, citable=False),
    Documents("JSON", {"response_format": {"type": "json_object"}}, citable=False),
]


@pytest.mark.parametrize("case", CITED, ids=lambda case: case.id)
def test_documents_are_files_of_the_last_question(case: Documents) -> None:
    earlier = [HI, {"role": "assistant", "content": "Hello"}]
    messages = decoded(messages=[*earlier, HI], documents=DOCUMENTS, **case.members).canonical.messages
    assert list(messages[0].parts) == list(USER.parts)
    *media, question = messages[2].parts
    assert question == text("Hi")
    assert [(each.media.media_id, each.media.title, each.media.data) for each in media] == [
        ("doc:0", "doc:0", b"one"),
        ("b", "T", b"two"),
        ("doc:2", "U", b'{"title": "U", "snippet": "three", "n": 1.0}'),
    ]
    assert {each.media.citable for each in media} == {case.citable}
    assert {each.media.kind for each in media} == {pb.MEDIA_KIND_DOCUMENT}


@dataclass(frozen=True)
class Rejection:
    id: str
    members: dict[str, Any]
    field: str
    reason: "pb.ErrorReason.ValueType" = pb.ERROR_REASON_INVALID_FIELD


MISSING = pb.ERROR_REASON_MISSING_FIELD


def turn(**members: Any) -> dict[str, Any]:
    return {"messages": [members]}


REJECTIONS = [
    Rejection("no model", {"model": None}, "model"),
    Rejection("no messages", {"messages": []}, "messages"),
    Rejection("an unknown role", turn(role="developer", content="a"), "messages[0].role"),
    Rejection("no content", turn(role="user"), "messages[0].content", MISSING),
    Rejection("an assistant without content and calls", turn(role="assistant"), "messages[0].content", MISSING),
    Rejection("a part without a type", turn(role="user", content=[{}]), "messages[0].content[0].type", MISSING),
    Rejection("a part of another role", turn(role="user", content=[{"type": "thinking"}]), "messages[0].content[0].type"),
    Rejection("a part of an unknown type", turn(role="user", content=[{"type": "x"}]), "messages[0].content[0].type"),
    Rejection("a text without its text", turn(role="user", content=[{"type": "text"}]), "messages[0].content[0].text", MISSING),
    Rejection("an address that no provider reads", turn(role="user", content=[{"type": "image_url", "image_url": {"url": "file:///a"}}]), "messages[0].content[0].image_url.url"),
    Rejection("an empty image", turn(role="user", content=[{"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}]), "messages[0].content[0].image_url.url"),
    Rejection("an unknown detail", turn(role="user", content=[{"type": "image_url", "image_url": {"url": "https://a/b", "detail": "x"}}]), "messages[0].content[0].image_url.detail"),
    Rejection("a result without its call", turn(role="tool", content="a"), "messages[0].tool_call_id", MISSING),
    Rejection("a result without content", turn(role="tool", tool_call_id="1"), "messages[0].content", MISSING),
    Rejection("a call without a name", turn(role="assistant", tool_calls=[{"id": "1", "function": {}}]), "messages[0].tool_calls[0].function.name", MISSING),
    Rejection("a tool without a function", {"tools": [{"type": "function"}]}, "tools[0].function", MISSING),
    Rejection("parameters that are no object", {"tools": [{"type": "function", "function": {"name": "a", "parameters": 1}}]}, "tools[0].function.parameters"),
    Rejection("a choice of nothing", {"tool_choice": "REQUIRED"}, "tool_choice"),
    Rejection("an unknown choice", {"tools": [WEATHER], "tool_choice": "any"}, "tool_choice"),
    Rejection("a document of a wrong type", {"documents": [5]}, "documents[0]"),
    Rejection("a document without data", {"documents": [{"id": "a"}]}, "documents[0].data", MISSING),
    Rejection("data that are no object", {"documents": ["a", {"data": "b"}]}, "documents[1].data"),
    Rejection("documents of no question", {**turn(role="system", content="a"), "documents": ["b"]}, "documents"),
    Rejection("an unknown mode of citations", {"citation_options": {"mode": "x"}}, "citation_options.mode"),
    Rejection("an unknown format", {"response_format": {"type": "json_schema"}}, "response_format.type"),
    Rejection("a schema of a text", {"response_format": {"type": "text", "json_schema": {}}}, "response_format.json_schema"),
    Rejection("a schema of a text, by its older name", {"response_format": {"type": "text", "schema": {}}}, "response_format.schema"),
    Rejection("a schema that is no object", {"response_format": {"type": "json_object", "json_schema": []}}, "response_format.json_schema"),
    Rejection("an unknown safety mode", {"safety_mode": "NONE"}, "safety_mode"),
    Rejection("no tokens", {"max_tokens": 0}, "max_tokens"),
    Rejection("half a token", {"max_tokens": 1.5}, "max_tokens"),
    Rejection("an empty stop sequence", {"stop_sequences": [""]}, "stop_sequences[0]"),
    Rejection("temperature 3", {"temperature": 3}, "temperature"),
    Rejection("k above its maximum", {"k": 501}, "k"),
    Rejection("p above its maximum", {"p": 1.1}, "p"),
    Rejection("a negative penalty", {"presence_penalty": -1}, "presence_penalty"),
    Rejection("a seed below zero", {"seed": -1}, "seed"),
    Rejection("an unknown type of thinking", {"thinking": {"type": "auto"}}, "thinking.type"),
    Rejection("no budget", {"thinking": {"type": "enabled", "token_budget": 0}}, "thinking.token_budget"),
    Rejection("a budget of no thinking", {"thinking": {"type": "disabled", "token_budget": 5}}, "thinking.token_budget"),
    Rejection("a priority above its maximum", {"priority": 1000}, "priority"),
    Rejection("a stream that is no boolean", {"stream": "yes"}, "stream"),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_malformed_body_is_rejected_by_the_path_of_its_field(case: Rejection) -> None:
    with pytest.raises(UmgError) as caught:
        decoded(**case.members)
    assert (caught.value.reason, caught.value.metadata["field"]) == (case.reason, case.field)
    assert json.loads(COHERE_FACE.encode_error(caught.value, 400))["message"] == caught.value.message


@pytest.mark.parametrize(
    ("canonical", "written"),
    [
        ("messages[2].parts[0].tool_result.parts[1].text", "messages[2].content[1]"),
        ("messages[1].parts[3].media.uri", "messages[1].content"),
        ("top_k", "k"),
        ("max_output_tokens", "max_tokens"),
        ("reasoning.budget_tokens", "thinking.token_budget"),
        ("response_format.json_schema.schema_json", "response_format.json_schema"),
        ("tools[0].function.parameters_json", "tools[0].function.parameters"),
        ("seed", "seed"),
    ],
)
def test_errors_name_the_callers_fields(canonical: str, written: str) -> None:
    assert COHERE_FACE.wire_path(canonical) == written
