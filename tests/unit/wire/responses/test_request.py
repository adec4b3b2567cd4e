"""A caller's body -> canonical, and canonical -> a provider's body (text document, "POST /v1/responses")."""

from dataclasses import dataclass, field

import msgspec
import pytest
from google.protobuf import text_format

from tests.support.error_checks import raises_error
from umg_grpc.knowledge.model_quirk_definitions import Quirks
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.responses import RESPONSES_FORMAT

Body = dict[str, object]
HI: Body = {"model": "m", "input": "Hi"}


def decode(body: Body) -> pb.GenerateRequest:
    return RESPONSES_FORMAT.decode_request(msgspec.json.encode(body), {}).canonical


def canonical(text: str) -> pb.GenerateRequest:
    return text_format.Parse(text, pb.GenerateRequest())


def without_source(request: pb.GenerateRequest) -> pb.GenerateRequest:
    request.ClearField("source")
    return request


def encode(request: pb.GenerateRequest, stream: bool = False, notes: RequestNotes = NO_NOTES) -> tuple[Body, str]:
    upstream = RESPONSES_FORMAT.encode_request(request, "theirs", stream, notes=notes)
    return msgspec.json.decode(upstream.body), upstream.report.header()


# --- caller -> canonical


@dataclass(frozen=True)
class DecodedCase:
    id: str
    body: Body
    canonical: str


USER = 'messages { role: ROLE_USER parts { text { text: "Hi" } } }'
DECODED = [
    DecodedCase("a string is a turn of the user", HI, USER),
    DecodedCase(
        "roles of easy messages",
        {"model": "m", "input": [{"role": role, "content": "Hi"} for role in ("system", "developer", "user", "assistant")]},
        'messages { role: ROLE_SYSTEM parts { text { text: "Hi" } } } messages { role: ROLE_DEVELOPER parts { text { text: "Hi" } } }'
        + USER + 'messages { role: ROLE_ASSISTANT parts { text { text: "Hi" } } }',
    ),
    DecodedCase("reasoning without an effort is medium (readings, 13)", HI | {"reasoning": {}}, USER + 'reasoning { effort: "medium" }'),
    DecodedCase(
        "no summary, in the document's value",
        HI | {"reasoning": {"effort": "low", "summary": "none"}},
        USER + 'reasoning { effort: "low" summary: "none" }',
    ),
    DecodedCase("the older name of summary", HI | {"reasoning": {"generate_summary": "concise"}}, USER + 'reasoning { effort: "medium" summary: "concise" }'),
    DecodedCase(
        "a list of allowed tools, flat and as chat has it",
        HI | {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "name": "g"}]}}},
        USER + 'tool_choice { mode: TOOL_CHOICE_MODE_AUTO allowed_tools: true names: "f" names: "g" }',
    ),
    DecodedCase(
        "a choice that only this format has",
        HI | {"tool_choice": {"type": "web_search_preview"}},
        USER + 'tool_choice { opaque { format: "responses" type: "web_search_preview" json: "{\\"type\\":\\"web_search_preview\\"}" } }',
    ),
    DecodedCase(
        "structured output, flat",
        HI | {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"b": 1.0, "a": 2}, "strict": True}, "verbosity": "low"}},
        USER + 'response_format { json_schema { name: "n" schema_json: "{\\"b\\":1.0,\\"a\\":2}" strict: true } } verbosity: "low"',
    ),
    DecodedCase(
        "nulls are absent",
        HI | dict.fromkeys(("tools", "tool_choice", "reasoning", "text", "metadata", "previous_response_id", "max_output_tokens", "background", "prompt", "include", "stream"), None),
        USER,
    ),
    DecodedCase(
        "a continuation, and numbers with a point",
        {"model": "m", "previous_response_id": "resp_1", "max_output_tokens": 50.0, "store": False, "background": False, "include": ["message.output_text.logprobs"]},
        'previous_response_id: "resp_1" max_output_tokens: 50 store: false include: "message.output_text.logprobs" logprobs: true',
    ),
    DecodedCase("a conversation by its object", {"model": "m", "conversation": {"id": "conv_1"}}, 'conversation_id: "conv_1"'),
    DecodedCase(
        "a prompt at the provider",
        {"model": "m", "prompt": {"id": "p", "version": "2", "variables": {"a": "b"}}},
        'prompt_template { prompt_id: "p" version: "2" variables_json: "{\\"a\\":\\"b\\"}" }',
    ),
    DecodedCase("instructions alone", {"model": "m", "instructions": "Be"}, 'instructions { text { text: "Be" } }'),
]  # fmt: skip


@pytest.mark.parametrize("case", DECODED, ids=lambda case: case.id)
def test_a_body_is_decoded_to_its_canonical_request(case: DecodedCase) -> None:
    assert without_source(decode(case.body)) == canonical('model: "m"' + case.canonical)


def test_fields_without_a_canonical_form_are_noted() -> None:
    body = HI | {
        "reasoning": {"effort": "low", "context": "auto", "mode": "pro"},
        "context_management": [{"type": "compaction"}],
        "tools": [
            {"type": "function", "name": "f", "defer_loading": True},
            {"type": "web_search", "external_web_access": False},
        ],
        "unheard_of": 1,
    }
    notes = RESPONSES_FORMAT.decode_request(msgspec.json.encode(body), {}).notes
    assert notes.uncarried == [
        "defer_loading", "external_web_access", "reasoning.context", "reasoning.mode", "context_management",
    ]  # fmt: skip
    assert notes.indispensable == ["unheard_of"]


def test_a_decoded_body_has_its_source_its_headers_and_the_stream_flag() -> None:
    body = msgspec.json.encode(HI | {"stream": True, "stream_options": {"include_obfuscation": False}})
    request, stream, _ = RESPONSES_FORMAT.decode_request(body, {"openai-beta": "b"})
    assert stream
    assert not request.include_obfuscation
    assert request.HasField("include_obfuscation")
    assert (request.source.format, request.source.body, dict(request.source.headers)) == (
        "responses",
        body,
        {"openai-beta": "b"},
    )


def test_a_counting_call_accepts_the_fields_of_the_prompt() -> None:
    assert RESPONSES_FORMAT.decode_count is not None
    body = msgspec.json.encode(
        HI | {"instructions": "Be", "tools": [{"type": "function", "name": "f"}], "personality": "friendly"}
    )
    request = RESPONSES_FORMAT.decode_count(body, {}).canonical
    assert request.source.body == body
    assert without_source(request) == canonical(
        'model: "m"' + USER + 'instructions { text { text: "Be" } } tools { function { name: "f" } }'
    )
    assert RESPONSES_FORMAT.encode_count is not None
    assert RESPONSES_FORMAT.encode_count(7, None) == b'{"object":"response.input_tokens","input_tokens":7}'


# --- the caller's body -> a provider's of this format


@dataclass(frozen=True)
class Edit:
    id: str
    body: Body
    edited: Body
    report: str = ""
    stream: bool = False


EDITS = [
    Edit("bare parts", {"input": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://a.test/i"}, {"role": "user", "content": "b"}]},
         {"input": [{"role": "user", "content": [{"type": "input_text", "text": "a"}, {"type": "input_image", "image_url": "https://a.test/i"}]}, {"role": "user", "content": "b"}]}),
    Edit("nested function tools", {"tools": [{"type": "function", "function": {"name": "f", "parameters": {"b": 1.0}}, "x": 1}, {"type": "file_search"}]},
         {"tools": [{"type": "function", "x": 1, "name": "f", "parameters": {"b": 1.0}}, {"type": "file_search"}]}),
    Edit("a nested choice", {"tool_choice": {"type": "function", "function": {"name": "f"}}}, {"tool_choice": {"type": "function", "name": "f"}}),
    Edit("nested allowed tools", {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}]}}},
         {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f"}]}}),
    Edit("no summary", {"reasoning": {"effort": "low", "summary": "none", "context": "auto"}}, {"reasoning": {"effort": "low", "context": "auto"}}),
    Edit("reasoning of nothing", {"reasoning": {}}, {"reasoning": {"effort": "medium"}}),
    Edit("only no summary", {"reasoning": {"summary": "none"}}, {"reasoning": {"effort": "medium"}}),
    Edit("a stream", {"stream_options": {"include_obfuscation": False}}, {"stream_options": {"include_obfuscation": False}, "stream": True}, stream=True),
    Edit("no stream", {"stream": True, "stream_options": {"include_obfuscation": False}}, {"stream": False}),
    Edit("reasoning that we showed of another format", {"input": [{"role": "user", "content": "a"}, {"type": "reasoning", "id": "rs_umg_1", "summary": [], "encrypted_content": "umg.messages.X"}]},
         {"input": [{"role": "user", "content": "a"}]}, "state"),
    Edit("hidden and attached state of another format", {"input": [{"type": "reasoning", "summary": [], "encrypted_content": "umg.redacted.umg.messages.X"}, {"type": "reasoning", "summary": [], "encrypted_content": "umg.ahead.umg.native.X"}]},
         {"input": []}, "state x2"),
    Edit("reasoning of ours without state", {"input": [{"type": "reasoning", "id": "rs_umg_1", "summary": []}]}, {"input": []}, "reasoning"),
    Edit("state that was marked when it was passed on", {"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "umg.responses.umg.native.X"}]},
         {"input": [{"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "umg.native.X"}]}),
]  # fmt: skip


@pytest.mark.parametrize("case", EDITS, ids=lambda case: case.id)
def test_a_provider_of_the_format_gets_its_own_names(case: Edit) -> None:
    body, report = encode(decode(HI | case.body), case.stream)
    expected = HI | case.edited if "input" in case.edited else {**HI, **case.edited}
    assert body == expected | {"model": "theirs"}
    assert report == case.report


def test_content_that_resembles_marks_of_the_gateway_is_unchanged() -> None:
    body = (
        b'{ "model" : "m","input":[ {"role":"user","content":[{"type":"input_text","text":"\\"rs_umg_ \\"umg. "}]} ],'
        b'"tools":[{"type":"function","name":"function","parameters":{"function":1.0}}],"tool_choice":"auto","x":[1.0,  1]}'
    )
    request = RESPONSES_FORMAT.decode_request(body, {}).canonical
    rebuilt = RESPONSES_FORMAT.encode_request(request, "m", False).body
    assert rebuilt == body.replace(b'{ "model" : "m"', b'{"model":"m"')


@dataclass(frozen=True)
class Edited:
    id: str
    body: Body
    fields: list[str]
    change: str
    expected: Body


EDITED = [
    Edited("the conversation was expanded", {"previous_response_id": "resp_1"}, ["messages", "previous_response_id"], USER + 'messages { role: ROLE_ASSISTANT parts { text { text: "Ho" } message_id: "msg_1" } }',
           {"input": [
               {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi"}]},
               {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "Ho", "annotations": []}]}]}),
    Edited("reasoning, whose other members stay", {"reasoning": {"effort": "low", "summary": "auto", "context": "auto"}}, ["reasoning"], 'reasoning { effort: "high" }', {"reasoning": {"context": "auto", "effort": "high"}}),
    Edited("reasoning is off", {"reasoning": {"effort": "low"}}, ["reasoning"], "", {}),
    Edited("a temperature that is gone, another that came", {"temperature": 1}, ["temperature", "top_p"], "top_p: 0.5", {"top_p": 0.5}),
    Edited("tools", {"tools": [{"type": "function", "name": "f"}], "tool_choice": "auto"}, ["tools"], 'tools { function { name: "g" } }',
           {"tools": [{"type": "function", "name": "g", "parameters": None, "strict": None}], "tool_choice": "auto"}),
    Edited("the form of the response", {"text": {"format": {"type": "text"}, "verbosity": "low", "x": 1}}, ["response_format"], 'verbosity: "low" response_format { json {} }',
           {"text": {"x": 1, "format": {"type": "json_object"}, "verbosity": "low"}}),
]  # fmt: skip


@pytest.mark.parametrize("case", EDITED, ids=lambda case: case.id)
def test_fields_edited_after_decoding_are_encoded_again(case: Edited) -> None:
    source = decode(HI | {"unknown": 1.0} | case.body).source
    request = canonical('model: "m"' + case.change)
    request.source.CopyFrom(source)
    kept = {
        name: value
        for name, value in case.body.items()
        if name not in ("temperature", "previous_response_id", "reasoning", "tools", "text")
    }
    notes = RequestNotes(edited=tuple(case.fields))
    assert encode(request, notes=notes)[0] == HI | {"unknown": 1} | kept | case.expected | {"model": "theirs"}


# --- canonical -> a provider


@dataclass(frozen=True)
class EncodedCase:
    id: str
    canonical: str
    body: Body = field(default_factory=dict)
    report: str = ""


def message_item(kind: str, text: str) -> Body:
    return {"type": "message", "role": kind, "content": [{"type": "input_text", "text": text}]}


ONE_MESSAGE: Body = {"input": [message_item("user", "Hi")]}
ENCODED = [
    EncodedCase("results before the words of one turn", 'messages { role: ROLE_USER parts { tool_result { call_id: "c" parts { text { text: "r" } } } } parts { text { text: "Hi" } } }',
           {"input": [{"type": "function_call_output", "call_id": "c", "output": "r"}, message_item("user", "Hi")]}),
    EncodedCase("reasoning without its item is left out", 'messages { role: ROLE_ASSISTANT parts { reasoning { item_id: "rs_1" } state { format: "responses" data: "S" } } }' + USER,
           ONE_MESSAGE | {"include": ["reasoning.encrypted_content"]}, "reasoning"),
    EncodedCase("reasoning with its item, whose ids it keeps", 'messages { role: ROLE_ASSISTANT parts { reasoning { item_id: "rs_1" summaries: "s" } state { format: "responses" data: "S" } } parts { tool_call { call_id: "c" name: "f" item_id: "fc_1" arguments_json: "{}" } } }',
           {"input": [{"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "S"}, {"type": "function_call", "call_id": "c", "name": "f", "id": "fc_1", "arguments": "{}"}],
            "include": ["reasoning.encrypted_content"]}),
    EncodedCase("a foreign search is left out", 'messages { role: ROLE_ASSISTANT parts { server_tool_call { call_id: "srvtoolu_1" name: "web_search" format: "messages" input_json: "{}" } } parts { server_tool_result { name: "web_search" } } }' + USER, ONE_MESSAGE, "server_tool_call"),
    EncodedCase("instructions are joined", 'instructions { text { text: "a" } } instructions { text { text: "b" } }' + USER, ONE_MESSAGE | {"instructions": "a\n\nb"}),
    EncodedCase("another format's tier", USER + 'service_tier: "standard_only"', ONE_MESSAGE, "service_tier"),
    EncodedCase("search by an option", USER + 'search { mode: SEARCH_MODE_AUTO context_size: "low" return_citations: false }', ONE_MESSAGE | {"tools": [{"type": "web_search", "search_context_size": "low"}]}, "search.return_citations"),
    EncodedCase("no search", USER + 'search { mode: SEARCH_MODE_OFF }', ONE_MESSAGE),
    EncodedCase("a search tool of another format", USER + 'tools { web_search { declared_type: "web_search_20250305" max_uses: 3 blocked_domains: "b.test" } } tool_choice { mode: TOOL_CHOICE_MODE_REQUIRED names: "web_search" }',
           ONE_MESSAGE | {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "max_uses, blocked_domains"),
    EncodedCase("strictness of other formats", USER + 'tools { function { name: "f" parameters_json: "{\\"type\\": \\"OBJECT\\"}" native_schema: true } } tool_choice { mode: TOOL_CHOICE_MODE_VALIDATED }',
           ONE_MESSAGE | {"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}], "tool_choice": "auto"}, "tool_choice.mode=auto"),
    EncodedCase("a grammar as chat has it", USER + 'tools { custom { name: "f" format_json: "{\\"type\\":\\"grammar\\",\\"grammar\\":{\\"syntax\\":\\"lark\\",\\"definition\\":\\"d\\"}}" } }',
           ONE_MESSAGE | {"tools": [{"type": "custom", "name": "f", "format": {"type": "grammar", "syntax": "lark", "definition": "d"}}]}),
    EncodedCase("a budget as the nearest effort, thoughts as a summary", USER + "reasoning { budget_tokens: 2000 include_thoughts: true }",
           ONE_MESSAGE | {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}, "reasoning.budget_tokens=effort low"),
    EncodedCase("a budget of 0 is none", USER + "reasoning { budget_tokens: 0 }", ONE_MESSAGE | {"reasoning": {"effort": "none"}}, "reasoning.budget_tokens=effort none"),
    EncodedCase("thinking is medium", USER + "reasoning { mode: REASONING_MODE_ENABLED }", ONE_MESSAGE | {"reasoning": {"effort": "medium", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}, "reasoning.mode=effort medium"),
    EncodedCase("no thinking", USER + "reasoning { mode: REASONING_MODE_DISABLED }", ONE_MESSAGE | {"reasoning": {"effort": "none"}}),
    EncodedCase("a level", USER + 'reasoning { level: "high" include_thoughts: false }', ONE_MESSAGE | {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]}),
    EncodedCase("a schema without a name", USER + "response_format { json_schema {} }", ONE_MESSAGE | {"text": {"format": {"type": "json_schema", "name": "answer", "schema": {}}}}),
    EncodedCase("a text file as text", 'messages { role: ROLE_USER parts { media { kind: MEDIA_KIND_DOCUMENT data: "hi" mime_type: "text/plain" filename: "a.txt" } } }', {"input": [message_item("user", "a.txt\n\nhi")]}),
    EncodedCase("stored and with logprobs, when requested", USER + "store: true logprobs: true top_logprobs: 2", ONE_MESSAGE | {"store": True, "include": ["message.output_text.logprobs"], "top_logprobs": 2}),
]  # fmt: skip


@pytest.mark.parametrize("case", ENCODED, ids=lambda case: case.id)
def test_a_canonical_request_is_encoded_for_a_provider(case: EncodedCase) -> None:
    body, report = encode(canonical('model: "m"' + case.canonical))
    assert body == {"store": False} | case.body | {"model": "theirs"}
    assert report == case.report


@dataclass(frozen=True)
class Refusal:
    id: str
    canonical: str
    field: str
    reason: "pb.ErrorReason.ValueType" = pb.ERROR_REASON_UNTRANSLATABLE
    notes: RequestNotes = NO_NOTES


FOREIGN = pb.ERROR_REASON_UNSUPPORTED_FIELD
REFUSALS = [
    Refusal("a part of another format", 'messages { role: ROLE_USER parts { opaque { format: "native" json: "{}" } } }', "messages[0].parts[0]", FOREIGN),
    Refusal("a response's part of another format", 'messages { role: ROLE_ASSISTANT parts { opaque { format: "chat" type: "x" json: "{}" } } }', "messages[0].parts[0]", FOREIGN),
    Refusal("a tool of another format", USER + 'tools { opaque { format: "messages" type: "bash_20250124" json: "{}" } }', "tools[0]", FOREIGN),
    Refusal("a choice of another format", USER + 'tool_choice { opaque { format: "chat" type: "x" json: "{}" } }', "tool_choice", FOREIGN),
    Refusal("a kind newer than this build", "messages { role: ROLE_USER parts {} }", "messages[0].parts[0]", FOREIGN),
    Refusal("video", 'messages { role: ROLE_USER parts { media { kind: MEDIA_KIND_VIDEO data: "x" mime_type: "video/mp4" } } }', "messages[0].parts[0]"),
    Refusal("an image that another model made", 'messages { role: ROLE_ASSISTANT parts { media { kind: MEDIA_KIND_IMAGE data: "x" } } }', "messages[0].parts[0]"),
    Refusal("words in a tool's turn", 'messages { role: ROLE_TOOL parts { text { text: "x" } } }', "messages[0]"),
    Refusal("sound in a result", 'messages { role: ROLE_TOOL parts { tool_result { parts { media { kind: MEDIA_KIND_AUDIO data: "x" mime_type: "audio/wav" } } } } }', "messages[0].parts[0].tool_result.parts[0]"),
    Refusal("a bare enum", USER + "response_format { enum_text {} }", "response_format"),
    Refusal("a call of another provider", USER + 'source { format: "messages" body: "{}" }', "mcp_servers", notes=RequestNotes(indispensable=["mcp_servers"])),
    Refusal("nobody's turn", 'messages { parts { text { text: "x" } } }', "messages[0].role", pb.ERROR_REASON_MISSING_FIELD),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_a_loss_that_would_change_the_meaning_is_refused(case: Refusal) -> None:
    with raises_error(reason=case.reason, field=case.field):
        encode(canonical('model: "m"' + case.canonical), notes=case.notes)


METADATA = "internal_chat_message_metadata_passthrough"


@pytest.mark.parametrize("owners", [(), ("openai",)], ids=["another provider", "their vendor"])
def test_members_that_a_client_sends_to_its_vendor_reach_that_vendor_alone(owners: tuple[str, ...]) -> None:
    turn = {"role": "user", "content": "Hi"}
    request = decode(HI | {"input": [turn | {METADATA: {"turn_id": "1"}}, turn]})
    upstream = RESPONSES_FORMAT.encode_request(request, "m", False, Quirks(client_headers=owners))
    sent = msgspec.json.decode(upstream.body)["input"]
    assert sent == [turn | {METADATA: {"turn_id": "1"}} if owners else turn, turn]
    assert upstream.report.header() == ("" if owners else METADATA)
    assert not upstream.report.lost
