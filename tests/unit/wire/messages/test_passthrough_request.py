"""Requests to a provider of the same format: the caller's body, without the fields of our own document or making."""

import msgspec
import pytest

from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES_FORMAT

Fields = dict[str, object]
USER = {"role": "user", "content": "hi"}
BODY = {"model": "m", "max_tokens": 9, "messages": [USER]}


def rebuilt(body: Fields, *, stream: bool = False, edited: pb.GenerateRequest | None = None) -> tuple[Fields, str]:
    """Return the body sent, without the required fields, and the report. `edited`: fields that a policy has changed."""
    request, _, notes = MESSAGES_FORMAT.decode_request(msgspec.json.encode(BODY | body), {})
    if edited is not None:
        for field, _ in edited.ListFields():
            request.ClearField(field.name)
            notes = notes.with_edited(field.name)
        request.MergeFrom(edited)
    upstream = MESSAGES_FORMAT.encode_request(request, "theirs", stream, notes=notes)
    fields = msgspec.json.decode(upstream.body)
    assert fields.pop("model") == "theirs"
    return {
        name: value for name, value in fields.items() if name not in BODY or value != BODY[name]
    }, upstream.report.header()


PERSISTENT, HOUR = {"cache_control": {"type": "persistent"}}, {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
TEXT = {"type": "text", "text": 'say "persistent"', "x": 1.0}


def conversation(*blocks: object, after: object = "next", **more: object) -> Fields:
    return {
        "messages": [USER, {"role": "assistant", "content": list(blocks)}, {"role": "user", "content": after}],
        **more,
    }


MARKS = [
    ("the request", PERSISTENT, HOUR),
    ("the system prompt", {"system": [TEXT, TEXT | PERSISTENT]}, {"system": [TEXT, TEXT | HOUR]}),
    ("a tool", {"tools": [{"name": "f", "input_schema": {"type": "object", **PERSISTENT}} | PERSISTENT]}, {"tools": [{"name": "f", "input_schema": {"type": "object", **PERSISTENT}} | HOUR]}),
    ("an unknown tool", {"tools": [{"type": "new"} | PERSISTENT]}, {"tools": [{"type": "new"} | HOUR]}),
    ("a block", conversation(TEXT | PERSISTENT), conversation(TEXT | HOUR)),
    ("an unknown block", conversation({"type": "new", "input": PERSISTENT} | PERSISTENT), conversation({"type": "new", "input": PERSISTENT} | HOUR)),
    ("a call", conversation({"type": "tool_use", "id": "t", "name": "f", "input": PERSISTENT} | PERSISTENT), conversation({"type": "tool_use", "id": "t", "name": "f", "input": PERSISTENT} | HOUR)),
    (
        "a result and what is in it",
        conversation(TEXT, after=[{"type": "tool_result", "tool_use_id": "t", "content": [TEXT | PERSISTENT]} | PERSISTENT]),
        conversation(TEXT, after=[{"type": "tool_result", "tool_use_id": "t", "content": [TEXT | HOUR]} | HOUR]),
    ),
    (
        "a piece of a document",
        conversation(TEXT, after=[{"type": "document", "source": {"type": "content", "content": [TEXT | PERSISTENT]}}]),
        conversation(TEXT, after=[{"type": "document", "source": {"type": "content", "content": [TEXT | HOUR]}}]),
    ),
    ("an ephemeral one", conversation(TEXT | HOUR, **HOUR), conversation(TEXT | HOUR, **HOUR)),
]  # fmt: skip


@pytest.mark.parametrize(("body", "sent"), [case[1:] for case in MARKS], ids=[case[0] for case in MARKS])
def test_a_persistent_mark_is_encoded_as_an_hour_at_every_place(body: Fields, sent: Fields) -> None:
    assert rebuilt(body) == (sent, "")


def test_blocks_without_a_persistent_mark_are_unchanged() -> None:
    turns = b'[{"role":"user","content":[{"type" : "text","text":"\\u00e9"} , {"type":"text","text":"b","cache_control":{ "type" : "persistent" }}]}]'
    body = b'{"model":"m","max_tokens":9,"tools" : [ {"name":"f","input_schema":{"b": 1.0}} ],"messages":%b}' % turns
    upstream = MESSAGES_FORMAT.encode_request(MESSAGES_FORMAT.decode_request(body, {}).canonical, "theirs", False)
    assert b'"tools":[ {"name":"f","input_schema":{"b": 1.0}} ]' in upstream.body
    assert (
        b'[{"type" : "text","text":"\\u00e9"},{"type":"text","text":"b","cache_control":{"type":"ephemeral","ttl":"1h"}}]'
        in upstream.body
    )


def test_a_deeply_nested_document_with_a_cache_mark_is_encoded() -> None:
    deep: object = TEXT | PERSISTENT
    for _ in range(200):
        deep = {"type": "new", "content": [deep]}
    fields, _ = rebuilt(conversation(deep, **PERSISTENT))
    assert fields == conversation(deep, **HOUR)


THOUGHT, CALL = (
    {"type": "thinking", "thinking": "t", "signature": "abc="},
    {"type": "tool_use", "id": "t", "name": "f", "input": {}},
)
RESULT = [{"type": "tool_result", "tool_use_id": "t", "content": "r"}]


def thought(signature: str) -> Fields:
    return THOUGHT | {"signature": signature}


def redacted(data: str) -> Fields:
    return {"type": "redacted_thinking", "data": data}


SEARCHED = {"type": "server_tool_use", "id": "srvtoolu_umg_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_umg_1", "content": []}
OURS = {"type": "web_search_result_location", "url": "u", "title": None, "cited_text": "", "encrypted_index": ""}
THEIRS = OURS | {"encrypted_index": "e"}

LEFT_BEHIND = [
    ("own thoughts", [THOUGHT, redacted("d"), TEXT], [THOUGHT, redacted("d"), TEXT], ""),
    ("thoughts without a signature of a provider that gives none", [thought(""), TEXT], [thought(""), TEXT], ""),
    ("thoughts that came without a signature", [thought("umg.unsigned"), TEXT], [TEXT], "reasoning"),
    ("thoughts of another format", [thought("umg.native.abc"), TEXT], [TEXT], "state"),
    ("hidden state of another format", [redacted("umg.responses.abc"), TEXT], [TEXT], "state"),
    ("state of a gateway behind us", [thought("umg.messages.umg.native.a"), redacted("umg.messages.umg.b"), TEXT], [thought("umg.native.a"), redacted("umg.b"), TEXT], ""),
    ("a search of another provider", [SEARCHED, FOUND, TEXT], [TEXT], "server_tool_call, server_tool_result"),
    ("sources of another provider", [TEXT | {"citations": [OURS, THEIRS]}, TEXT | {"citations": [OURS]}], [TEXT | {"citations": [THEIRS]}, TEXT], "citations x2"),
    ("a text that speaks of it", [TEXT | {"text": '"umg. "srvtoolu_umg_'}], [TEXT | {"text": '"umg. "srvtoolu_umg_'}], ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("blocks", "left", "report"), [case[1:] for case in LEFT_BEHIND], ids=[case[0] for case in LEFT_BEHIND]
)
def test_blocks_of_the_gateway_for_other_formats_are_removed(
    blocks: list[Fields], left: list[Fields], report: str
) -> None:
    assert rebuilt(conversation(*blocks)) == (conversation(*left), report)


def test_a_turn_that_becomes_empty_is_dropped() -> None:
    fields, _ = rebuilt(conversation(thought("umg.unsigned")))
    assert fields["messages"] == [USER, {"role": "user", "content": "next"}]


@pytest.mark.parametrize(
    ("blocks", "after", "thinking"),
    [
        ([thought("umg.native.a"), CALL], RESULT, "disabled"), ([THOUGHT, redacted("umg.native.a"), CALL], RESULT, "enabled"),
        ([thought("umg.native.a"), CALL], "another question", "enabled"), ([thought("umg.native.a"), THOUGHT, CALL], RESULT, "enabled"),
    ],
)  # fmt: skip
def test_a_tool_turn_whose_reasoning_is_dropped_disables_reasoning(
    blocks: list[Fields], after: object, thinking: str
) -> None:
    fields, report = rebuilt(
        conversation(*blocks, after=after, thinking={"type": "enabled", "budget_tokens": 1025}, max_tokens=2000)
    )
    assert fields["thinking"]["type"] == thinking
    assert report == ("state, reasoning=disabled" if thinking == "disabled" else "state")


@pytest.mark.parametrize(
    ("body", "sent", "report"),
    [
        ({"max_tokens": 50.0}, {"max_tokens": 50}, ""), ({"top_p": 0}, {"top_p": 0}, ""), ({"stream": True}, {"stream": False}, ""),
        ({"thinking": {"type": "enabled", "budget_tokens": 1025}, "top_p": 0, "temperature": 1.0}, {"thinking": {"type": "enabled", "budget_tokens": 1025}, "temperature": 1.0}, "top_p"),
        ({"thinking": {"type": "adaptive"}, "top_p": 0.97}, {"thinking": {"type": "adaptive"}, "top_p": 0.97}, ""),
        ({"thinking": {"type": "disabled"}, "top_p": 0}, {"thinking": {"type": "disabled"}, "top_p": 0}, ""),
        ({"mcp_servers": [{"name": "s"}], "context_management": {"edits": []}, "container": "c", "new": {"a": 1.0}}, {"mcp_servers": [{"name": "s"}], "context_management": {"edits": []}, "container": "c", "new": {"a": 1.0}}, ""),
        ({"betas": None}, {}, ""),
    ],
    ids=repr,
)  # fmt: skip
def test_only_the_required_fields_are_edited(body: Fields, sent: Fields, report: str) -> None:
    assert rebuilt(body) == (sent, report)


def test_a_streamed_request_has_the_stream_field() -> None:
    assert rebuilt({}, stream=True) == ({"stream": True}, "")


def test_betas_are_sent_in_the_field_of_the_provider() -> None:
    body = msgspec.json.encode(BODY | {"betas": ["b", "c"]})
    upstream = MESSAGES_FORMAT.encode_request(
        MESSAGES_FORMAT.decode_request(body, {"anthropic-beta": "a, b", "anthropic-version": "2023-06-01"}).canonical,
        "m",
        False,
    )
    assert upstream.headers == {"anthropic-beta": "a,b,c", "anthropic-version": "2023-06-01"}
    assert b"betas" not in upstream.body


def test_the_version_has_a_default() -> None:
    upstream = MESSAGES_FORMAT.encode_request(
        MESSAGES_FORMAT.decode_request(msgspec.json.encode(BODY), {}).canonical, "m", False
    )
    assert upstream.headers == {"anthropic-version": "2023-06-01"}


def test_a_sent_body_has_one_model_for_any_body_of_the_caller() -> None:
    body = b'{"model":"a","max_tokens":9,"messages":[{"role":"user","content":"hi"}],"model":"b"}'
    request = MESSAGES_FORMAT.decode_request(body, {}).canonical
    assert request.model == "b"
    sent = MESSAGES_FORMAT.encode_request(request, "theirs", False).body
    assert sent == b'{"model":"theirs","max_tokens":9,"messages":[{"role":"user","content":"hi"}]}'


# --- fields that a family's policy changed

DISABLED = pb.ReasoningOptions(mode=pb.REASONING_MODE_DISABLED)
EDITED = [
    ({"thinking": {"type": "adaptive"}}, pb.GenerateRequest(reasoning=DISABLED), {"thinking": {"type": "disabled"}}, ""),
    (
        {"max_tokens": 3000, "temperature": 0.5, "new": 1, "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"b": 1.0}}}},
        pb.GenerateRequest(reasoning=pb.ReasoningOptions(budget_tokens=5000)),
        {"max_tokens": 8000, "new": 1, "output_config": {"format": {"type": "json_schema", "schema": {"b": 1.0}}}, "thinking": {"type": "enabled", "budget_tokens": 5000}},
        "max_output_tokens=8000, temperature=1",
    ),
    ({"temperature": 0.5, "top_p": 0.1}, pb.GenerateRequest(temperature=0.25), {"temperature": 0.25, "top_p": 0.1}, ""),
    ({"metadata": {"user_id": "u"}}, pb.GenerateRequest(max_output_tokens=7), {"max_tokens": 7, "metadata": {"user_id": "u"}}, ""),
    (
        {"tools": [{"name": "f", "input_schema": {}, "x": 1}]}, pb.GenerateRequest(tools=[pb.Tool(function=pb.FunctionTool(name="g"))]),
        {"tools": [{"name": "g", "input_schema": {"type": "object", "properties": {}}}]}, "",
    ),
    ({"system": "s"}, pb.GenerateRequest(instructions=[pb.Part(text=pb.TextPart(text="t"))]), {"system": "t"}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("body", "edited", "sent", "report"), EDITED, ids=lambda value: repr(value)[:60])
def test_only_the_fields_that_a_rule_edited_are_encoded_again(
    body: Fields, edited: pb.GenerateRequest, sent: Fields, report: str
) -> None:
    assert rebuilt(body, edited=edited) == (sent, report)
