"""A caller's body -> canonical, and canonical -> a provider's body (text document, "POST /v1/responses")."""

from dataclasses import dataclass, field

import msgspec
import pytest
from google.protobuf import text_format

from umg_grpc.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.request_notes import NO_NOTES, RequestNotes
from umg_grpc.wire.responses import RESPONSES

Body = dict[str, object]
HI: Body = {"model": "m", "input": "Hi"}


def decode(body: Body) -> pb.GenerateRequest:
    return RESPONSES.decode_request(msgspec.json.encode(body), {}).canonical


def canonical(text: str) -> pb.GenerateRequest:
    return text_format.Parse(text, pb.GenerateRequest())


def without_source(request: pb.GenerateRequest) -> pb.GenerateRequest:
    request.ClearField("source")
    return request


def encode(request: pb.GenerateRequest, stream: bool = False, notes: RequestNotes = NO_NOTES) -> tuple[Body, str]:
    upstream = RESPONSES.encode_request(request, "theirs", stream, notes=notes)
    return msgspec.json.decode(upstream.body), upstream.report.header()


# --- caller -> canonical


@dataclass(frozen=True)
class Reading:
    id: str
    body: Body
    canonical: str


USER = 'messages { role: ROLE_USER parts { text { text: "Hi" } } }'
READINGS = [
    Reading("a string is a turn of the user", HI, USER),
    Reading(
        "roles of easy messages",
        {"model": "m", "input": [{"role": role, "content": "Hi"} for role in ("system", "developer", "user", "assistant")]},
        'messages { role: ROLE_SYSTEM parts { text { text: "Hi" } } } messages { role: ROLE_DEVELOPER parts { text { text: "Hi" } } }'
        + USER + 'messages { role: ROLE_ASSISTANT parts { text { text: "Hi" } } }',
    ),
    Reading(
        "bare parts that follow one another form one turn (readings, 13)",
        {
            "model": "m",
            "input": [
                {"type": "input_text", "text": "Look"},
                {"type": "input_image", "image_url": "https://a.test/i.png", "detail": "low"},
                {"type": "input_file", "file_url": "https://a.test/f.pdf"},
                {"role": "assistant", "content": "Hi"},
                {"type": "input_text", "text": "Again"},
            ],
        },
        """
        messages { role: ROLE_USER parts { text { text: "Look" } }
          parts { media { kind: MEDIA_KIND_IMAGE uri: "https://a.test/i.png" detail: "low" } }
          parts { media { kind: MEDIA_KIND_DOCUMENT uri: "https://a.test/f.pdf" } } }
        messages { role: ROLE_ASSISTANT parts { text { text: "Hi" } } }
        messages { role: ROLE_USER parts { text { text: "Again" } } }
        """,
    ),
    Reading(
        "files as data URL, bare base64 and id",
        {
            "model": "m",
            "input": [
                {
                    "role": "user",
                    "content": [
                        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
                        {"type": "input_file", "filename": "A.TXT", "file_data": "aGk="},
                        {"type": "input_file", "file_id": "file_1"},
                        {"type": "input_image", "image_url": "data:image/jpg;base64,_-8", "file_id": None},
                        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
                    ],
                }
            ],
        },
        r"""
        messages { role: ROLE_USER
          parts { media { kind: MEDIA_KIND_DOCUMENT data: "hi" mime_type: "application/pdf" filename: "a.pdf" } }
          parts { media { kind: MEDIA_KIND_DOCUMENT data: "hi" mime_type: "text/plain" filename: "A.TXT" } }
          parts { media { kind: MEDIA_KIND_DOCUMENT file_id: "file_1" } }
          parts { media { kind: MEDIA_KIND_IMAGE data: "\377\357" mime_type: "image/jpeg" } }
          parts { media { kind: MEDIA_KIND_AUDIO data: "hi" mime_type: "audio/mpeg" } } }
        """,
    ),
    Reading(
        "calls and their results, with their ids",
        {
            "model": "m",
            "input": [
                {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "f", "arguments": "{}", "status": "completed"},
                {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "g", "input": "x"},
                {"type": "function_call_output", "id": "fco_1", "call_id": "c1", "output": "one"},
                {"type": "custom_tool_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "two"}]},
                {"type": "function_call_output", "call_id": "c3", "output": ""},
            ],
        },
        """
        messages { role: ROLE_ASSISTANT parts { tool_call { call_id: "c1" name: "f" arguments_json: "{}" item_id: "fc_1" } } }
        messages { role: ROLE_ASSISTANT parts { tool_call { call_id: "c2" name: "g" text: "x" item_id: "ctc_1" } } }
        messages { role: ROLE_TOOL parts { tool_result { call_id: "c1" item_id: "fco_1" parts { text { text: "one" } } } } }
        messages { role: ROLE_TOOL parts { tool_result { call_id: "c2" custom: true parts { text { text: "two" } } } } }
        messages { role: ROLE_TOOL parts { tool_result { call_id: "c3" } } }
        """,
    ),
    Reading(
        "an answer replayed: reasoning, message, search",
        {
            "model": "m",
            "input": [
                {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "s"}], "content": [{"type": "reasoning_text", "text": "t"}], "encrypted_content": "E"},
                {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "q", "sources": [{"type": "url", "url": "https://a.test"}]}},
                {
                    "type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "phase": "final_answer",
                    "content": [
                        {"type": "output_text", "text": "Hi", "annotations": [{"type": "url_citation", "url": "https://a.test", "title": "A", "start_index": 0, "end_index": 2}]},
                        {"type": "refusal", "refusal": "no"},
                    ],
                },
            ],
        },
        """
        messages { role: ROLE_ASSISTANT parts { reasoning { item_id: "rs_1" summaries: "s" texts: "t" } state { format: "responses" data: "E" } } }
        messages { role: ROLE_ASSISTANT
          parts { server_tool_call { call_id: "ws_1" name: "web_search" queries: "q" format: "responses"
            input_json: "{\\"type\\":\\"search\\",\\"query\\":\\"q\\",\\"sources\\":[{\\"type\\":\\"url\\",\\"url\\":\\"https://a.test\\"}]}" } }
          parts { server_tool_result { call_id: "ws_1" name: "web_search" results { url: "https://a.test" } } } }
        messages { role: ROLE_ASSISTANT message_id: "msg_1" phase: "final_answer"
          parts { text { text: "Hi" citations { start_index: 0 end_index: 2 title: "A" web { url: "https://a.test" } } } }
          parts { refusal { text: "no" } } }
        """,
    ),
    Reading(
        "items that only this format knows, also a reference without a type",
        {"model": "m", "input": [{"type": "mcp_call", "id": "1"}, {"id": "msg_1"}, {"type": "item_reference", "id": "rs_1"}]},
        """
        messages { parts { opaque { format: "responses" type: "mcp_call" json: "{\\"type\\":\\"mcp_call\\",\\"id\\":\\"1\\"}" } } }
        messages { parts { opaque { format: "responses" type: "item_reference" json: "{\\"id\\":\\"msg_1\\"}" } } }
        messages { parts { opaque { format: "responses" type: "item_reference" json: "{\\"type\\":\\"item_reference\\",\\"id\\":\\"rs_1\\"}" } } }
        """,
    ),
    Reading(
        "function tools flat and nested, searches, others (readings, 13)",
        HI | {
            "tools": [
                {"type": "function", "function": {"name": "f", "description": "d", "parameters": {"type": "object"}}},
                {"type": "function", "name": "g", "parameters": None, "strict": True},
                {"type": "web_search_preview_2025_03_11", "search_context_size": "high", "user_location": {"type": "approximate", "country": "FR", "city": None}},
                {"type": "web_search", "filters": {"allowed_domains": ["a.test"]}},
                {"type": "file_search"},
                {"type": "custom", "name": "h", "format": {"type": "text"}},
                {"type": "mcp", "server_label": "s"},
            ],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
        },
        USER + """
        tools { function { name: "f" description: "d" parameters_json: "{\\"type\\":\\"object\\"}" } }
        tools { function { name: "g" strict: true } }
        tools { web_search { declared_type: "web_search_preview_2025_03_11" context_size: "high" user_location { country: "FR" } } }
        tools { web_search { declared_type: "web_search" allowed_domains: "a.test" } }
        tools { file_search {} }
        tools { custom { name: "h" format_json: "{\\"type\\":\\"text\\"}" } }
        tools { opaque { format: "responses" type: "mcp" json: "{\\"type\\":\\"mcp\\",\\"server_label\\":\\"s\\"}" } }
        tool_choice { mode: TOOL_CHOICE_MODE_REQUIRED names: "f" }
        """,
    ),
    Reading("reasoning of nothing is medium (readings, 13)", HI | {"reasoning": {}}, USER + 'reasoning { effort: "medium" }'),
    Reading(
        "no summary, in the document's word",
        HI | {"reasoning": {"effort": "low", "summary": "none"}},
        USER + 'reasoning { effort: "low" summary: "none" }',
    ),
    Reading("the older name of summary", HI | {"reasoning": {"generate_summary": "concise"}}, USER + 'reasoning { effort: "medium" summary: "concise" }'),
    Reading(
        "a list of allowed tools, flat and as chat has it",
        HI | {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}}, {"type": "custom", "name": "g"}]}}},
        USER + 'tool_choice { mode: TOOL_CHOICE_MODE_AUTO allowed_tools: true names: "f" names: "g" }',
    ),
    Reading(
        "a choice that only this format knows",
        HI | {"tool_choice": {"type": "web_search_preview"}},
        USER + 'tool_choice { opaque { format: "responses" type: "web_search_preview" json: "{\\"type\\":\\"web_search_preview\\"}" } }',
    ),
    Reading(
        "structured output, flat",
        HI | {"text": {"format": {"type": "json_schema", "name": "n", "schema": {"b": 1.0, "a": 2}, "strict": True}, "verbosity": "low"}},
        USER + 'response_format { json_schema { name: "n" schema_json: "{\\"b\\":1.0,\\"a\\":2}" strict: true } } verbosity: "low"',
    ),
    Reading(
        "nulls are absent",
        HI | dict.fromkeys(("tools", "tool_choice", "reasoning", "text", "metadata", "previous_response_id", "max_output_tokens", "background", "prompt", "include", "stream"), None),
        USER,
    ),
    Reading(
        "what continues, and numbers with a point",
        {"model": "m", "previous_response_id": "resp_1", "max_output_tokens": 50.0, "store": False, "background": False, "include": ["message.output_text.logprobs"]},
        'previous_response_id: "resp_1" max_output_tokens: 50 store: false include: "message.output_text.logprobs" logprobs: true',
    ),
    Reading("a conversation by its object", {"model": "m", "conversation": {"id": "conv_1"}}, 'conversation_id: "conv_1"'),
    Reading(
        "a prompt at the provider",
        {"model": "m", "prompt": {"id": "p", "version": "2", "variables": {"a": "b"}}},
        'prompt_template { prompt_id: "p" version: "2" variables_json: "{\\"a\\":\\"b\\"}" }',
    ),
    Reading("instructions alone", {"model": "m", "instructions": "Be"}, 'instructions { text { text: "Be" } }'),
]  # fmt: skip


@pytest.mark.parametrize("case", READINGS, ids=lambda case: case.id)
def test_a_body_says(case: Reading) -> None:
    assert without_source(decode(case.body)) == canonical('model: "m"' + case.canonical)


def test_what_has_no_canonical_form_is_noted() -> None:
    body = HI | {
        "reasoning": {"effort": "low", "context": "auto", "mode": "pro"},
        "context_management": [{"type": "compaction"}],
        "tools": [
            {"type": "function", "name": "f", "defer_loading": True},
            {"type": "web_search", "external_web_access": False},
        ],
        "unheard_of": 1,
    }
    notes = RESPONSES.decode_request(msgspec.json.encode(body), {}).notes
    assert notes.uncarried == [
        "defer_loading", "external_web_access", "reasoning.context", "reasoning.mode", "context_management",
    ]  # fmt: skip
    assert notes.indispensable == ["unheard_of"]


def test_a_body_is_kept_with_its_headers_and_says_whether_to_stream() -> None:
    body = msgspec.json.encode(HI | {"stream": True, "stream_options": {"include_obfuscation": False}})
    request, stream, _ = RESPONSES.decode_request(body, {"openai-beta": "b"})
    assert stream
    assert not request.include_obfuscation
    assert request.HasField("include_obfuscation")
    assert (request.source.format, request.source.body, dict(request.source.headers)) == (
        "responses",
        body,
        {"openai-beta": "b"},
    )


def test_a_counting_call_takes_what_makes_the_prompt() -> None:
    assert RESPONSES.decode_count is not None
    body = msgspec.json.encode(
        HI | {"instructions": "Be", "tools": [{"type": "function", "name": "f"}], "personality": "friendly"}
    )
    request = RESPONSES.decode_count(body, {}).canonical
    assert request.source.body == body
    assert without_source(request) == canonical(
        'model: "m"' + USER + 'instructions { text { text: "Be" } } tools { function { name: "f" } }'
    )
    assert RESPONSES.encode_count is not None
    assert RESPONSES.encode_count(7) == b'{"object":"response.input_tokens","input_tokens":7}'


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
def test_a_provider_of_the_format_gets_its_own_spelling(case: Edit) -> None:
    body, report = encode(decode(HI | case.body), case.stream)
    expected = HI | case.edited if "input" in case.edited else {**HI, **case.edited}
    assert body == expected | {"model": "theirs"}
    assert report == case.report


def test_what_looks_like_a_dialect_and_is_none_stays_to_the_byte() -> None:
    body = (
        b'{ "model" : "m","input":[ {"role":"user","content":[{"type":"input_text","text":"\\"rs_umg_ \\"umg. "}]} ],'
        b'"tools":[{"type":"function","name":"function","parameters":{"function":1.0}}],"tool_choice":"auto","x":[1.0,  1]}'
    )
    request = RESPONSES.decode_request(body, {}).canonical
    rebuilt = RESPONSES.encode_request(request, "m", False).body
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
    Edited("the form of the answer", {"text": {"format": {"type": "text"}, "verbosity": "low", "x": 1}}, ["response_format"], 'verbosity: "low" response_format { json {} }',
           {"text": {"x": 1, "format": {"type": "json_object"}, "verbosity": "low"}}),
]  # fmt: skip


@pytest.mark.parametrize("case", EDITED, ids=lambda case: case.id)
def test_what_was_changed_after_decoding_is_written_anew(case: Edited) -> None:
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
class Saying:
    id: str
    canonical: str
    said: Body = field(default_factory=dict)
    report: str = ""


def saying(kind: str, text: str) -> Body:
    return {"type": "message", "role": kind, "content": [{"type": "input_text", "text": text}]}


SAID_HI: Body = {"input": [saying("user", "Hi")]}
SAYINGS = [
    Saying("results before the words of one turn", 'messages { role: ROLE_USER parts { tool_result { call_id: "c" parts { text { text: "r" } } } } parts { text { text: "Hi" } } }',
           {"input": [{"type": "function_call_output", "call_id": "c", "output": "r"}, saying("user", "Hi")]}),
    Saying("several items of one turn", """messages { role: ROLE_ASSISTANT parts { reasoning { texts: "t" } state { format: "messages" data: "S" } } parts { text { text: "a" } } parts { text { text: "b" } }
           parts { tool_call { call_id: "c" name: "f" item_id: "fc_1" } } parts { text { text: "d" } } }""" + USER,
           {"input": [
               {"type": "message", "id": "msg_umg_1", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": []}, {"type": "output_text", "text": "b", "annotations": []}]},
               {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
               {"type": "message", "id": "msg_umg_2", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "d", "annotations": []}]},
               saying("user", "Hi")]}, "reasoning, state"),
    Saying("reasoning without its item is left out", 'messages { role: ROLE_ASSISTANT parts { reasoning { item_id: "rs_1" } state { format: "responses" data: "S" } } }' + USER,
           SAID_HI | {"include": ["reasoning.encrypted_content"]}, "reasoning"),
    Saying("reasoning with its item, whose ids it keeps", 'messages { role: ROLE_ASSISTANT parts { reasoning { item_id: "rs_1" summaries: "s" } state { format: "responses" data: "S" } } parts { tool_call { call_id: "c" name: "f" item_id: "fc_1" arguments_json: "{}" } } }',
           {"input": [{"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "s"}], "encrypted_content": "S"}, {"type": "function_call", "call_id": "c", "name": "f", "id": "fc_1", "arguments": "{}"}],
            "include": ["reasoning.encrypted_content"]}),
    Saying("calls without ids are paired by name", """messages { role: ROLE_ASSISTANT parts { tool_call { name: "f" arguments_json: "1" } } parts { tool_call { name: "g" text: "x" } } }
           messages { role: ROLE_TOOL parts { tool_result { name: "g" custom: true } } } messages { role: ROLE_TOOL parts { tool_result { name: "f" result_json: "{}" } } }""",
           {"input": [
               {"type": "function_call", "call_id": "call_0_0", "name": "f", "arguments": "1"}, {"type": "custom_tool_call", "call_id": "call_0_1", "name": "g", "input": "x"},
               {"type": "custom_tool_call_output", "call_id": "call_0_1", "output": ""}, {"type": "function_call_output", "call_id": "call_0_0", "output": "{}"}]}),
    Saying("a foreign search is left out", 'messages { role: ROLE_ASSISTANT parts { server_tool_call { call_id: "srvtoolu_1" name: "web_search" format: "messages" input_json: "{}" } } parts { server_tool_result { name: "web_search" } } }' + USER, SAID_HI, "server_tool_call"),
    Saying("instructions are joined", 'instructions { text { text: "a" } } instructions { text { text: "b" } }' + USER, SAID_HI | {"instructions": "a\n\nb"}),
    Saying("what has no words here", USER + """top_k: 3 stop_sequences: "x" seed: 1 presence_penalty: 1 logit_bias { key: "1" value: 2 } cache_control {} output_modalities: "text" output_modalities: "image"
           messages { role: ROLE_USER name: "n" parts { text { text: "Hi" } cache_control {} } }""",
           {"input": [saying("user", "Hi"), saying("user", "Hi")]},
           "top_k, stop_sequences, seed, presence_penalty, logit_bias, cache_control x2, output_modalities, name"),
    Saying("another format's tier", USER + 'service_tier: "standard_only"', SAID_HI, "service_tier"),
    Saying("search by an option", USER + 'search { mode: SEARCH_MODE_AUTO context_size: "low" return_citations: false }', SAID_HI | {"tools": [{"type": "web_search", "search_context_size": "low"}]}, "search.return_citations"),
    Saying("no search", USER + 'search { mode: SEARCH_MODE_OFF }', SAID_HI),
    Saying("a search tool of another format", USER + 'tools { web_search { declared_type: "web_search_20250305" max_uses: 3 blocked_domains: "b.test" } } tool_choice { mode: TOOL_CHOICE_MODE_REQUIRED names: "web_search" }',
           SAID_HI | {"tools": [{"type": "web_search"}], "tool_choice": {"type": "web_search"}}, "max_uses, blocked_domains"),
    Saying("strictness of other formats", USER + 'tools { function { name: "f" parameters_json: "{\\"type\\": \\"OBJECT\\"}" native_schema: true } } tool_choice { mode: TOOL_CHOICE_MODE_VALIDATED }',
           SAID_HI | {"tools": [{"type": "function", "name": "f", "parameters": {"type": "object"}, "strict": False}], "tool_choice": "auto"}, "tool_choice.mode=auto"),
    Saying("a grammar as chat has it", USER + 'tools { custom { name: "f" format_json: "{\\"type\\":\\"grammar\\",\\"grammar\\":{\\"syntax\\":\\"lark\\",\\"definition\\":\\"d\\"}}" } }',
           SAID_HI | {"tools": [{"type": "custom", "name": "f", "format": {"type": "grammar", "syntax": "lark", "definition": "d"}}]}),
    Saying("a budget as the nearest effort, thoughts as a summary", USER + "reasoning { budget_tokens: 2000 include_thoughts: true }",
           SAID_HI | {"reasoning": {"effort": "low", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}, "reasoning.budget_tokens=effort low"),
    Saying("a budget of 0 is none", USER + "reasoning { budget_tokens: 0 }", SAID_HI | {"reasoning": {"effort": "none"}}, "reasoning.budget_tokens=effort none"),
    Saying("thinking is medium", USER + "reasoning { mode: REASONING_MODE_ENABLED }", SAID_HI | {"reasoning": {"effort": "medium", "summary": "auto"}, "include": ["reasoning.encrypted_content"]}, "reasoning.mode=effort medium"),
    Saying("no thinking", USER + "reasoning { mode: REASONING_MODE_DISABLED }", SAID_HI | {"reasoning": {"effort": "none"}}),
    Saying("a level", USER + 'reasoning { level: "high" include_thoughts: false }', SAID_HI | {"reasoning": {"effort": "high"}, "include": ["reasoning.encrypted_content"]}),
    Saying("a schema without a name", USER + "response_format { json_schema {} }", SAID_HI | {"text": {"format": {"type": "json_schema", "name": "answer", "schema": {}}}}),
    Saying("media of other formats", r"""messages { role: ROLE_USER parts { media { kind: MEDIA_KIND_IMAGE data: "\211PNG\r\n\032\n" context: "c" } } parts { media { kind: MEDIA_KIND_DOCUMENT data: "%PDF-" title: "T" citable: true } }
           parts { media { kind: MEDIA_KIND_DOCUMENT title: "T" blocks { parts { text { text: "x" } } } } } }""",
           {"input": [{"type": "message", "role": "user", "content": [
               {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,iVBORw0KGgo="},
               {"type": "input_file", "filename": "T", "file_data": "data:application/pdf;base64,JVBERi0="},
               {"type": "input_text", "text": "T\n\nx"}]}]}, "context, citable"),
    Saying("names and ids that no provider takes", 'tools { function { name: "a.b" strict: true } } tools { function { name: "a_b" strict: true } } tool_choice { mode: TOOL_CHOICE_MODE_REQUIRED names: "a.b" }'
           f'messages {{ role: ROLE_ASSISTANT parts {{ tool_call {{ call_id: "{"x" * 65}" name: "a.b" }} }} }} messages {{ role: ROLE_TOOL parts {{ tool_result {{ call_id: "{"x" * 65}" }} }} }}',
           {"input": [
               {"type": "function_call", "call_id": "x" * 31 + "_9537c5fdf120482f7d58d25e9ed583f5", "name": "a_b_2", "arguments": "{}"},
               {"type": "function_call_output", "call_id": "x" * 31 + "_9537c5fdf120482f7d58d25e9ed583f5", "output": ""}],
            "tools": [{"type": "function", "name": name, "parameters": None, "strict": True} for name in ("a_b_2", "a_b")], "tool_choice": {"type": "function", "name": "a_b_2"}}),
    Saying("a text file as text", 'messages { role: ROLE_USER parts { media { kind: MEDIA_KIND_DOCUMENT data: "hi" mime_type: "text/plain" filename: "a.txt" } } }', {"input": [saying("user", "a.txt\n\nhi")]}),
    Saying("calls without results and results without calls, of other formats", 'source { format: "chat" body: "{}" } messages { role: ROLE_TOOL parts { tool_result { call_id: "b" } } } messages { role: ROLE_ASSISTANT parts { tool_call { call_id: "c" name: "f" text: "x" } } parts { tool_call { call_id: "d" name: "f" } } } messages { role: ROLE_TOOL parts { tool_result { call_id: "d" } } }' + USER + "max_output_tokens: 5",
           {"input": [
               {"type": "custom_tool_call", "call_id": "c", "name": "f", "input": "x"}, {"type": "function_call", "call_id": "d", "name": "f", "arguments": "{}"},
               {"type": "function_call_output", "call_id": "d", "output": ""}, {"type": "custom_tool_call_output", "call_id": "c", "output": "No result."}, saying("user", "Hi")], "max_output_tokens": 16},
           "tool_result, tool_call=without a result, max_output_tokens=16"),
    Saying("stored and likely, when it was asked for", USER + "store: true logprobs: true top_logprobs: 2", SAID_HI | {"store": True, "include": ["message.output_text.logprobs"], "top_logprobs": 2}),
]  # fmt: skip


@pytest.mark.parametrize("case", SAYINGS, ids=lambda case: case.id)
def test_a_provider_is_told(case: Saying) -> None:
    body, report = encode(canonical('model: "m"' + case.canonical))
    assert body == {"store": False} | case.said | {"model": "theirs"}
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
    Refusal("an answer's part of another format", 'messages { role: ROLE_ASSISTANT parts { opaque { format: "chat" type: "x" json: "{}" } } }', "messages[0].parts[0]", FOREIGN),
    Refusal("a tool of another format", USER + 'tools { opaque { format: "messages" type: "bash_20250124" json: "{}" } }', "tools[0]", FOREIGN),
    Refusal("a choice of another format", USER + 'tool_choice { opaque { format: "chat" type: "x" json: "{}" } }', "tool_choice", FOREIGN),
    Refusal("a kind newer than this build", "messages { role: ROLE_USER parts {} }", "messages[0].parts[0]", FOREIGN),
    Refusal("video", 'messages { role: ROLE_USER parts { media { kind: MEDIA_KIND_VIDEO data: "x" mime_type: "video/mp4" } } }', "messages[0].parts[0]"),
    Refusal("an image that another model made", 'messages { role: ROLE_ASSISTANT parts { media { kind: MEDIA_KIND_IMAGE data: "x" } } }', "messages[0].parts[0]"),
    Refusal("words in a tool's turn", 'messages { role: ROLE_TOOL parts { text { text: "x" } } }', "messages[0]"),
    Refusal("sound in a result", 'messages { role: ROLE_TOOL parts { tool_result { parts { media { kind: MEDIA_KIND_AUDIO data: "x" mime_type: "audio/wav" } } } } }', "messages[0].parts[0].tool_result.parts[0]"),
    Refusal("a bare enum", USER + "response_format { enum_text {} }", "response_format"),
    Refusal("what only another provider calls", USER + 'source { format: "messages" body: "{}" }', "mcp_servers", notes=RequestNotes(indispensable=["mcp_servers"])),
    Refusal("nobody's turn", 'messages { parts { text { text: "x" } } }', "messages[0].role", pb.ERROR_REASON_MISSING_FIELD),
]  # fmt: skip


@pytest.mark.parametrize("case", REFUSALS, ids=lambda case: case.id)
def test_what_would_change_the_meaning_is_refused(case: Refusal) -> None:
    with pytest.raises(UmgError) as caught:
        encode(canonical('model: "m"' + case.canonical), notes=case.notes)
    assert (caught.value.reason, caught.value.metadata["field"]) == (case.reason, case.field)
