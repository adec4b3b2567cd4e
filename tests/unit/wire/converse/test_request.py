"""Requests of all formats as Converse bodies: rules of the service, facts about models, and reports of losses."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.pairs.table import LEAST
from tests.support.error_checks import raises_error
from tests.support.providers.converse import judge
from tests.support.providers.converse_shapes import parameters
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.provider_quirks import known
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.converse import CONVERSE_FORMAT
from umg_grpc.wire.text_format_interface import UpstreamRequest

Json = dict[str, Any]
CLAUDE, NOVA, NOVA_2 = "anthropic.claude-sonnet-4-5-20250929-v1:0", "us.amazon.nova-pro-v1:0", "amazon.nova-2-lite-v1:0"
LLAMA, GPT = "meta.llama3-1-70b-instruct-v1:0", "openai.gpt-oss-120b-1:0"
OPUS = "global.anthropic.claude-opus-4-7"
URL = "https://bedrock-runtime.us-east-1.amazonaws.com"
HI = [{"text": "Hi"}]
TOOL = {"name": "f", "input_schema": {"type": "object"}}
CALL = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
SPEC = {"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
IMAGE_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}}
RESULT_WITH_IMAGE = {"type": "tool_result", "tool_use_id": "a", "content": [IMAGE_BLOCK]}


def encoded(face: str, body: Json, model: str, quirks: Quirks = NO_QUIRKS) -> UpstreamRequest:
    """Return the encoded request of a caller, after the judge of the fake provider has accepted its body."""
    request, _, notes = TEXT_FORMATS[face].decode_request(json.dumps(LEAST[face] | body).encode(), {}, "m")
    upstream = CONVERSE_FORMAT.encode_request(request, model, False, quirks, notes)
    judge(parameters(json.loads(upstream.body), model))
    return upstream


def turn(role: str, *blocks: Json) -> Json:
    return {"role": role, "content": list(blocks)}


def text(words: str) -> Json:
    return {"type": "text", "text": words}


@dataclass(frozen=True)
class Case:
    """Request of a caller, the members of the body that are compared, and the report."""

    id: str
    body: Json
    expected: Json
    dropped: str = ""
    face: str = "messages"
    model: str = CLAUDE
    quirks: Quirks = field(default=NO_QUIRKS)


RESULT = {"toolResult": {"toolUseId": "a", "content": [{"text": "(no result)"}], "status": "error"}}
CASES = [
    Case(
        id="instructions between turns are marked text of the user",
        face="chat",
        body={"messages": [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Short!"}]},
        expected={"messages": [turn("user", *HI, {"text": "<system-message>\nShort!\n</system-message>"})]},
        dropped="role=user",
    ),
    Case(
        id="a conversation that the model began",
        body={"messages": [turn("assistant", text("Hello")), turn("user", text("Hi"))]},
        expected={"messages": [turn("user", {"text": "."}), turn("assistant", {"text": "Hello"}), turn("user", *HI)]},
        dropped="messages=a user's turn first",
    ),
    Case(
        id="a beginning of a response, for a model that continues none",
        body={"messages": [turn("user", text("Hi")), turn("assistant", text("So "))]},
        model=NOVA,
        expected={"messages": [turn("user", *HI), turn("assistant", {"text": "So "}), turn("user", {"text": "Continue."})]},
        dropped="messages=a user's turn last",
    ),
    Case(
        id="a beginning of a response, for Claude",
        body={"messages": [turn("user", text("Hi")), turn("assistant", text("So "))]},
        expected={"messages": [turn("user", *HI), turn("assistant", {"text": "So"})]},
        dropped="messages=no white space last",
    ),
    Case(
        id="a call without a result, and no tools",
        body={"messages": [turn("user", text("Hi")), turn("assistant", CALL), turn("user", text("Hi"))]},
        expected={"messages": [turn("user", *HI), turn("assistant", {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}), turn("user", RESULT, *HI)]},
        dropped="tool_call=no result, tools=one that is not to be called",
    ),
    Case(
        id="no tool may be called, without calls in the conversation",
        body={"tools": [TOOL], "tool_choice": {"type": "none"}},
        expected={"toolConfig": None},
        dropped="tool_choice=by the gateway",
    ),
    Case(
        id="no tool may be called, with calls in the conversation",
        body={"tools": [TOOL], "tool_choice": {"type": "none"}, "messages": [turn("user", text("Hi")), turn("assistant", CALL), turn("user", {"type": "tool_result", "tool_use_id": "a", "content": "1"})]},
        expected={"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]}},
        dropped="tool_choice=auto",
    ),
    Case(
        id="documents without words, with equal and illegal titles",
        body={"messages": [turn("user", *({"type": "document", "title": "Q3: plan.md", "source": {"type": "text", "media_type": "text/plain", "data": "x"}} for _ in range(2)))]},
        expected={"messages": [turn("user", {"document": {"name": "Q3 plan", "format": "txt", "source": {"bytes": "eA=="}}}, {"document": {"name": "Q3 plan-2", "format": "txt", "source": {"bytes": "eA=="}}}, {"text": "."})]},
        dropped="title=Q3 plan-2 x2, messages=a text beside a document",
    ),
    Case(
        id="a document whose title has accents",
        body={"messages": [turn("user", {"type": "document", "title": "Übersicht für Ärzte", "source": {"type": "text", "media_type": "text/plain", "data": "x"}})]},
        expected={"messages": [turn("user", {"document": {"name": "Ubersicht fur Arzte", "format": "txt", "source": {"bytes": "eA=="}}}, {"text": "."})]},
        dropped="title=Ubersicht fur Arzte, messages=a text beside a document",
    ),
    Case(
        id="cache marks beyond four, and of an hour behind minutes",
        body={
            "system": [text("a") | {"cache_control": {"type": "ephemeral"}}, text("b") | {"cache_control": {"type": "ephemeral"}}],
            "messages": [turn("user", *(text(word) | {"cache_control": {"type": "ephemeral", "ttl": "1h"}} for word in "cde"))],
        },
        expected={"system": [{"text": "a"}, {"text": "b"}, {"cachePoint": {"type": "default"}}]},
        dropped="cache_control=5m x4",
    ),
    Case(
        id="cache marks of tools and of an hour, for Nova",
        model=NOVA,
        body={"tools": [TOOL | {"cache_control": {"type": "ephemeral"}}], "system": [text("a") | {"cache_control": {"type": "ephemeral", "ttl": "1h"}}]},
        expected={"toolConfig": {"tools": [{"toolSpec": {"name": "f", "inputSchema": {"json": {"type": "object"}}}}]}, "system": [{"text": "a"}, {"cachePoint": {"type": "default"}}]},
        dropped="cache_control=5m x2",
    ),
    Case(
        id="cache marks for a model without caches",
        model=LLAMA,
        body={"system": [text("a") | {"cache_control": {"type": "ephemeral"}}]},
        expected={"system": [{"text": "a"}]},
        dropped="cache_control",
    ),
    Case(
        id="added cache marks",
        body={"system": "a", "tools": [TOOL]},
        quirks=Quirks(cache_marks=True),
        expected={"system": [{"text": "a"}, {"cachePoint": {"type": "default"}}], "messages": [turn("user", *HI, {"cachePoint": {"type": "default"}})]},
    ),
    Case(
        id="top_k of Claude", body={"top_k": 5}, expected={"additionalModelRequestFields": {"top_k": 5}}
    ),
    Case(
        id="top_k of Nova", model=NOVA, body={"top_k": 5}, expected={"additionalModelRequestFields": {"inferenceConfig": {"topK": 5}}}
    ),
    Case(id="top_k of others", model=LLAMA, body={"top_k": 5}, expected={"additionalModelRequestFields": None}, dropped="top_k"),
    Case(
        id="reasoning of Nova 2, as high as possible",
        face="chat",
        model=NOVA_2,
        body={"reasoning_effort": "xhigh", "max_completion_tokens": 99, "temperature": 0.5},
        quirks=known(NOVA_2, "", URL, "converse"),
        expected={"additionalModelRequestFields": {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}, "inferenceConfig": None},
        dropped="reasoning_effort=high, temperature, max_tokens",
    ),
    Case(
        id="reasoning of gpt-oss",
        face="responses",
        model=GPT,
        body={"reasoning": {"effort": "low"}},
        quirks=known(GPT, "", URL, "converse"),
        expected={"additionalModelRequestFields": {"reasoning_effort": "low"}},
    ),
    Case(
        id="reasoning of a model without options",
        face="responses",
        model=LLAMA,
        body={"reasoning": {"effort": "low"}},
        expected={"additionalModelRequestFields": None},
        dropped="reasoning.effort",
    ),
    Case(
        id="an effort of Claude",
        body={"output_config": {"effort": "low"}, "max_tokens": 9},
        expected={"outputConfig": {"effort": "low"}},
    ),
    Case(
        id="a schema for a model that none binds",
        face="chat",
        model=LLAMA,
        body={"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}}}},
        quirks=known(LLAMA, "", URL, "converse"),
        expected={"outputConfig": None},
        dropped="response_format.json_schema=instructions",
    ),
    Case(
        id="a tool with a long name and without a description",
        face="chat",
        model=NOVA,
        body={"tools": [{"type": "function", "function": {"name": "n" * 64, "description": " ", "parameters": {"type": "object"}, "strict": False}}]},
        expected={"toolConfig": {"tools": [{"toolSpec": {"name": "n" * 64, "inputSchema": {"json": {"type": "object"}}}}]}},
    ),
    Case(
        id="a forced tool, for a model that cannot be forced",
        model=LLAMA,
        body={"max_tokens": 9, "tools": [TOOL], "tool_choice": {"type": "any"}},
        quirks=known(LLAMA, "", URL, "converse"),
        expected={"toolConfig": {"tools": [SPEC]}},
        dropped="tool_choice=auto",
    ),
    Case(
        id="a choice of the model, which is the default",
        body={"tools": [TOOL], "tool_choice": {"type": "auto"}},
        expected={"toolConfig": {"tools": [SPEC]}},
    ),
    Case(
        id="a strict tool, for a model that takes none",
        body={"tools": [TOOL | {"strict": True}]},
        model=OPUS,
        quirks=known(OPUS, "", URL, "converse"),
        expected={"toolConfig": {"tools": [SPEC]}},
        dropped="tools.strict=false",
    ),
    Case(
        id="stop sequences, for a model that takes none",
        body={"max_tokens": 9, "stop_sequences": ["a"]},
        model=GPT,
        quirks=known(GPT, "", URL, "converse"),
        expected={"inferenceConfig": {"maxTokens": 9}},
        dropped="stop_sequences=by the gateway",
    ),
    Case(
        id="an image in a result and a text after it, for a model whose results are alone and texts",
        body={"max_tokens": 9, "tools": [TOOL], "messages": [turn("user", text("Hi")), turn("assistant", CALL), turn("user", RESULT_WITH_IMAGE, text("And now?"))]},
        model=LLAMA,
        quirks=known(LLAMA, "", URL, "converse"),
        expected={"messages": [
            turn("user", *HI),
            turn("assistant", {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}),
            turn("user", {"toolResult": {"toolUseId": "a", "content": [{"text": "(shown below)"}]}}),
            turn("assistant", {"text": "OK."}),
            turn("user", {"image": {"format": "png", "source": {"bytes": PNG}}}, {"text": "And now?"}),
        ]},
        dropped="messages=an assistant's turn between",
    ),
    Case(
        id="labels that the service refuses",
        face="chat",
        body={"metadata": {"team": "a", "b": "ü"}, "store": False},
        expected={"requestMetadata": {"team": "a"}},
        dropped="metadata=1 of 2",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_request_has_the_form_that_the_service_and_the_model_accept(case: Case) -> None:
    upstream = encoded(case.face, case.body, case.model, case.quirks)
    upstream.report.rename(TEXT_FORMATS[case.face].wire_path)
    body = json.loads(upstream.body)
    assert {name: body.get(name) for name in case.expected} == case.expected
    assert upstream.report.header() == case.dropped


@dataclass(frozen=True)
class Refusal:
    id: str
    body: Json
    field: str
    face: str = "messages"


IMAGE = {"type": "image", "source": {"type": "url", "url": "https://example.test/a.png"}}
REFUSALS = [
    Refusal("an address of an image", {"messages": [turn("user", IMAGE)]}, "messages[0].parts[0]"),
    Refusal("a file of an account", {"messages": [turn("user", {"type": "image", "source": {"type": "file", "file_id": "file_1"}})]}, "messages[0].parts[0]"),
    Refusal("an image in a kind that none reads", {"messages": [turn("user", {"type": "image", "source": {"type": "base64", "media_type": "image/bmp", "data": "Qk0="}})]}, "messages[0].parts[0]"),
    Refusal("several answers", {"n": 2}, "candidate_count", face="chat"),
    Refusal("an unknown member", {"zork": 1}, "zork", face="chat"),
    Refusal("a search that the response needs", {"web_search_options": {}}, "search", face="chat"),
    Refusal("nothing but blanks", {"messages": [turn("user", text(" "))]}, "messages"),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_request_that_would_get_another_answer_is_refused_by_its_field(case: Refusal) -> None:
    with raises_error(field=case.field):
        encoded(case.face, case.body, CLAUDE)


def reasoning(state: str, data: str = "c2ln", *, redacted: bool) -> pb.Part:
    return pb.Part(
        reasoning=pb.ReasoningPart(texts=["Hm."], redacted=redacted),
        state=pb.ReasoningState(data=data, format=state) if state else None,
    )


def conversation(*parts: pb.Part) -> pb.GenerateRequest:
    """Return a request with a turn of the model that has the parts, before a text."""
    hi = pb.Part(text=pb.TextPart(text="Hi"))
    return pb.GenerateRequest(
        model="m",
        messages=[
            pb.Message(role=pb.ROLE_USER, parts=[hi]),
            pb.Message(role=pb.ROLE_ASSISTANT, parts=[*parts, hi]),
            pb.Message(role=pb.ROLE_USER, parts=[hi]),
        ],
    )


def test_reasoning_is_sent_back_in_the_kinds_that_the_model_takes() -> None:
    states = [("messages", False), ("messages", True), ("converse", True), ("native", False), ("", False)]
    parts = [reasoning(name, redacted=redacted) for name, redacted in states]
    request = conversation(*parts)
    signed = {"reasoningText": {"text": "Hm.", "signature": "c2ln"}}
    redacted = {"redactedContent": "c2ln"}
    sent = {CLAUDE: [signed, redacted, redacted], GPT: [redacted, redacted], NOVA: []}
    for model, expected in sent.items():
        upstream = CONVERSE_FORMAT.encode_request(request, model, False)
        content = json.loads(upstream.body)["messages"][1]["content"]
        assert [block["reasoningContent"] for block in content[:-1]] == expected
        assert upstream.report.times == {"reasoning": 5 - len(expected), "state": 1}


@pytest.mark.parametrize("data", ["redacted_1", "YQ", "Y Q=", "ü"])
@pytest.mark.parametrize("state", ["messages", "converse"])
def test_redacted_reasoning_that_is_no_base64_is_reported_and_left_out(state: str, data: str) -> None:
    upstream = CONVERSE_FORMAT.encode_request(conversation(reasoning(state, data, redacted=True)), CLAUDE, False)
    assert json.loads(upstream.body)["messages"][1]["content"] == HI
    assert upstream.report.times == {"reasoning": 1}


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("us-gov.amazon.nova-pro-v1:0", "/model/us-gov.amazon.nova-pro-v1:0/converse"),
        ("arn:aws:bedrock:us-east-1:1:inference-profile/us.x", "/model/arn:aws:bedrock:us-east-1:1:inference-profile%2Fus.x/converse"),
        ("../a b", "/model/..%2Fa%20b/converse"),
    ],
)  # fmt: skip
def test_the_id_of_a_model_is_one_part_of_the_path(model: str, path: str) -> None:
    assert encoded_path(model) == path


def encoded_path(model: str) -> str:
    request, _, notes = TEXT_FORMATS["chat"].decode_request(json.dumps(LEAST["chat"]).encode(), {})
    return CONVERSE_FORMAT.encode_request(request, model, False, NO_QUIRKS, notes).path


STREAMS = {"a model that streams tools": (CLAUDE, True), "a model that does not": (LLAMA, False)}


@pytest.mark.parametrize(("model", "streams"), STREAMS.values(), ids=STREAMS)
def test_a_stream_with_tools_is_requested_whole_of_a_model_that_streams_none(model: str, streams: bool) -> None:
    for tools, is_stream in ([TOOL], streams), ([], True):
        request, _, notes = TEXT_FORMATS["messages"].decode_request(
            json.dumps(LEAST["messages"] | {"tools": tools}).encode(), {}, "m"
        )
        upstream = CONVERSE_FORMAT.encode_request(request, model, True, known(model, "", URL, "converse"), notes)
        assert upstream.path.endswith("/converse-stream") is is_stream
        assert ("Accept" in upstream.headers) is is_stream
