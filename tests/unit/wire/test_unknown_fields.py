"""Unknown fields of a translated body: refused at the top level, reported by their paths below it."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.chat import strategies as chat
from tests.unit.wire.laws import few
from tests.unit.wire.messages import strategies as messages
from tests.unit.wire.responses import strategies as responses
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.caller_field_paths import BODY_PATH
from umg_grpc.wire.dropped_fields_report import Report, header_name
from umg_grpc.wire.unsupported_field_detection import note_nested

Json = Mapping[str, object]

SCHEMA = {"type": "object", "properties": {"zork": {"type": "string", "zork": 1}}, "zork": 1}
USER = {"role": "user", "content": "Hi"}
CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"zork":1}'}}
FUNCTION = {"name": "f", "parameters": SCHEMA}
LEAST: Mapping[str, Json] = {
    "chat": {"model": "m", "messages": [USER]},
    "messages": {"model": "m", "max_tokens": 9, "messages": [USER]},
    "responses": {"model": "m", "input": [USER]},
    "native": {"contents": [{"parts": [{"text": "Hi"}]}]},
}


@dataclass(frozen=True)
class UnknownField:
    """A body with one unknown field."""

    format: str
    path: str
    body: Json

    @property
    def id(self) -> str:
        return f"{self.format} {self.path}"


def message_with(*parts: Json, role: str = "user", **more: object) -> Json:
    return {"messages": [{"role": role, "content": list(parts), **more}]}


def items(*given: Json) -> Json:
    return {"input": list(given)}


DOCUMENT = {"type": "document", "source": {"type": "content", "content": [{"type": "text", "text": "a", "zork": 1}]}}
PNG = {"type": "base64", "data": "aGk=", "media_type": "image/png"}

# fmt: off
UNKNOWN_FIELDS = [
    UnknownField("chat", "messages[0].zork", {"messages": [{**USER, "zork": 1}]}),
    UnknownField("chat", "messages[0].content[0].zork", message_with({"type": "text", "text": "a", "zork": {"type": "ephemeral"}})),
    UnknownField("chat", "messages[0].content[1].image_url.zork", message_with({"type": "text", "text": "a"}, {"type": "image_url", "image_url": {"url": "https://a.test", "zork": 1}})),
    UnknownField("chat", "messages[0].content[0].input_audio.zork", message_with({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav", "zork": 1}})),
    UnknownField("chat", "messages[0].tool_calls[0].zork", {"messages": [{"role": "assistant", "tool_calls": [{**CALL, "zork": 1}]}]}),
    UnknownField("chat", "messages[0].tool_calls[0].function.zork", {"messages": [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "zork": 1}}]}]}),
    UnknownField("chat", "tools[0].function.zork", {"tools": [{"type": "function", "function": {**FUNCTION, "zork": 1}}]}),
    UnknownField("chat", "tools[0].zork", {"tools": [{"type": "function", "function": FUNCTION, "zork": 1}]}),
    UnknownField("chat", "tools[0].custom.zork", {"tools": [{"type": "custom", "custom": {"name": "f", "zork": 1}}]}),
    UnknownField("chat", "functions[0].zork", {"functions": [{**FUNCTION, "zork": 1}]}),
    UnknownField("chat", "tool_choice.zork", {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": {"type": "function", "function": {"name": "f"}, "zork": 1}}),
    UnknownField("chat", "tool_choice.allowed_tools.tools[0].zork", {"tools": [{"type": "function", "function": FUNCTION}], "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "function", "function": {"name": "f"}, "zork": 1}]}}}),
    UnknownField("chat", "web_search_options.zork", {"web_search_options": {"zork": 1}}),
    UnknownField("chat", "web_search_options.user_location.approximate.zork", {"web_search_options": {"user_location": {"type": "approximate", "approximate": {"city": "Uri", "zork": 1}}}}),
    UnknownField("chat", "response_format.json_schema.zork", {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA, "zork": 1}}}),
    UnknownField("chat", "parameters.zork", {"parameters": {"zork": 1}}),
    UnknownField("chat", "parameters.search_options.zork", {"parameters": {"search_options": {"zork": 1}}}),
    UnknownField("chat", "search_parameters.zork", {"search_parameters": {"mode": "on", "zork": 1}}),
    UnknownField("chat", "extra_body.zork", {"extra_body": {"zork": 1}}),
    UnknownField("chat", "extra_body.google.thinking_config.zork", {"extra_body": {"google": {"thinking_config": {"zork": 1}}}}),
    UnknownField("chat", "extra_body.google.tools[0].zork", {"extra_body": {"google": {"tools": [{"zork": {}}]}}}),
    UnknownField("chat", "stream_options.zork", {"stream": True, "stream_options": {"zork": 1}}),
    UnknownField("messages", "messages[0].zork", {"messages": [{**USER, "zork": 1}]}),
    UnknownField("messages", "system[0].zork", {"system": [{"type": "text", "text": "a", "zork": 1}]}),
    UnknownField("messages", "messages[0].content[0].cache_control.zork", message_with({"type": "text", "text": "a", "cache_control": {"type": "ephemeral", "zork": 1}})),
    UnknownField("messages", "messages[0].content[0].source.zork", message_with({"type": "image", "source": {**PNG, "zork": 1}})),
    UnknownField("messages", "messages[0].content[0].source.content[0].zork", message_with(DOCUMENT)),
    UnknownField("messages", "messages[0].content[0].zork", message_with({"type": "tool_use", "id": "c", "name": "f", "input": {"zork": 1}, "zork": 1}, role="assistant")),
    UnknownField("messages", "messages[0].content[0].content[0].zork", message_with({"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "a", "zork": 1}]})),
    UnknownField("messages", "tools[0].defer_loading", {"tools": [{"name": "f", "input_schema": SCHEMA, "defer_loading": True}]}),
    UnknownField("messages", "tools[0].user_location.zork", {"tools": [{"type": "web_search_20250305", "name": "web_search", "user_location": {"type": "approximate", "zork": 1}}]}),
    UnknownField("messages", "output_config.zork", {"output_config": {"zork": 1}}),
    UnknownField("messages", "output_config.format.zork", {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA, "zork": 1}}}),
    UnknownField("messages", "cache_control.zork", {"cache_control": {"type": "ephemeral", "zork": 1}}),
    UnknownField("messages", "thinking.zork", {"thinking": {"type": "disabled", "zork": 1}}),
    UnknownField("messages", "tool_choice.zork", {"tool_choice": {"type": "auto", "zork": 1}}),
    UnknownField("responses", "input[0].zork", items({**USER, "zork": 1})),
    UnknownField("responses", "input[0].content[0].zork", items({"role": "user", "content": [{"type": "input_text", "text": "a", "zork": 1}]})),
    UnknownField("responses", "input[1].input_audio.zork", items(USER, {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav", "zork": 1}})),
    UnknownField("responses", "input[0].zork", items({"type": "function_call", "call_id": "c", "name": "f", "arguments": '{"zork":1}', "zork": 1})),
    UnknownField("responses", "input[1].output[0].zork", items({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}, {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "a", "zork": 1}]})),
    UnknownField("responses", "input[0].summary[0].zork", items({"type": "reasoning", "summary": [{"type": "summary_text", "text": "a", "zork": 1}]}, USER)),
    UnknownField("responses", "tools[0].zork", {"tools": [{"type": "function", **FUNCTION, "zork": 1}]}),
    UnknownField("responses", "tools[0].function.zork", {"tools": [{"type": "function", "function": {**FUNCTION, "zork": 1}}]}),
    UnknownField("responses", "tools[0].filters.zork", {"tools": [{"type": "web_search", "filters": {"zork": 1}}]}),
    UnknownField("responses", "tool_choice.function.zork", {"tools": [{"type": "function", **FUNCTION}], "tool_choice": {"type": "function", "function": {"name": "f", "zork": 1}}}),
    UnknownField("responses", "tool_choice.tools[0].zork", {"tools": [{"type": "function", **FUNCTION}], "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": [{"type": "function", "name": "f", "zork": 1}]}}),
    UnknownField("responses", "reasoning.zork", {"reasoning": {"effort": "low", "zork": 1}}),
    UnknownField("responses", "text.zork", {"text": {"zork": 1}}),
    UnknownField("responses", "text.format.zork", {"text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA, "zork": 1}}}),
    UnknownField("native", "contents[0].parts[1].zork", {"contents": [{"parts": [{"text": "a"}, {"text": "b", "zork": 1}]}]}),
    UnknownField("native", "generation_config.thinkingConfig.zork", {"generation_config": {"thinkingConfig": {"zork": 1}}}),
    UnknownField("native", "generationConfig.speechConfig.voiceConfig.zork", {"generationConfig": {"speechConfig": {"voiceConfig": {"prebuiltVoiceConfig": {"voiceName": "Kore"}, "zork": 1}}}}),
    UnknownField("native", "tools[0].functionDeclarations[0].zork", {"tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "OBJECT"}, "zork": 1}]}]}),
]
# fmt: on


def body_of(case: UnknownField) -> bytes:
    return msgspec.json.encode({**LEAST[case.format], **case.body})


def reports(face: str, body: bytes) -> list[Report]:
    """Return the reports of encoding for each other format that takes the body."""
    (request, _, notes), made = TEXT_FORMATS[face].decode_request(body, {}), list[Report]()
    for name in TEXT_FORMATS.keys() - {face}:
        with suppress(UmgError):  # not every format takes audio
            made.append(TEXT_FORMATS[name].encode_request(request, "m", False, notes=notes).report)
    assert made
    return made


TOP = [UnknownField(face, "zork", {"zork": 1}) for face in LEAST]


@pytest.mark.parametrize("case", UNKNOWN_FIELDS, ids=lambda case: case.id)
def test_a_nested_unknown_field_is_reported_once_by_its_path(case: UnknownField) -> None:
    for report in reports(case.format, body_of(case)):
        report.rename(lambda name: name.removeprefix(BODY_PATH))
        assert report.times[case.path] == 1
        assert header_name(case.path) in report.header().split(", ")


@pytest.mark.parametrize("case", UNKNOWN_FIELDS, ids=lambda case: case.id)
def test_a_strict_call_is_refused_with_the_path_of_its_unknown_field(case: UnknownField) -> None:
    report = Report()
    request, _, notes = TEXT_FORMATS[case.format].decode_request(body_of(case), {})
    for path in notes.uncarried:
        report.drop(path)
    note_nested(request.source, report)
    wire_path = TEXT_FORMATS[case.format].wire_path
    report.rename(lambda name: name if name in notes.uncarried else wire_path(name))
    with pytest.raises(UmgError) as caught:
        report.refuse(wire_path)
    assert wire_path(caught.value.metadata["field"]) == case.path
    assert header_name(case.path) in caught.value.message


CANONICAL = [
    ("responses", "verbosity"),
    ("responses", "logprobs"),
    ("chat", "max_output_tokens"),
    ("native", "metadata"),
]


@pytest.mark.parametrize(("face", "name"), CANONICAL)
def test_an_unknown_field_with_a_canonical_name_is_refused_by_its_own_name(face: str, name: str) -> None:
    request, _, notes = TEXT_FORMATS[face].decode_request(msgspec.json.encode({**LEAST[face], name: {"zork": 1}}), {})
    for other in TEXT_FORMATS.keys() - {face}:
        with pytest.raises(UmgError) as caught:
            TEXT_FORMATS[other].encode_request(request, "m", False, notes=notes)
        assert TEXT_FORMATS[face].wire_path(caught.value.metadata["field"]) == name


def test_the_namespace_of_a_tool_choice_is_reported_towards_another_format() -> None:
    choice = {"type": "function", "name": "f", "namespace": "n"}
    body = {**LEAST["responses"], "tools": [{"type": "function", "name": "f"}], "tool_choice": choice}
    for report in reports("responses", msgspec.json.encode(body)):
        assert report.dropped == {"tool_choice.namespace": None}


def test_a_strict_call_is_refused_by_the_own_name_of_a_field_with_a_canonical_name() -> None:
    report, wire_path = Report(), TEXT_FORMATS["responses"].wire_path
    report.drop("messages")  # as renamed for the caller
    with pytest.raises(UmgError) as caught:
        report.refuse(wire_path)
    assert wire_path(caught.value.metadata["field"]) == "messages"


@pytest.mark.parametrize("case", TOP, ids=lambda case: case.id)
def test_an_unknown_field_of_the_top_level_is_refused_by_name_towards_another_format(case: UnknownField) -> None:
    request, _, notes = TEXT_FORMATS[case.format].decode_request(body_of(case), {})
    for name in TEXT_FORMATS.keys() - {case.format}:
        with pytest.raises(UmgError) as caught:
            TEXT_FORMATS[name].encode_request(request, "m", False, notes=notes)
        assert (caught.value.name, caught.value.metadata) == ("UNTRANSLATABLE", {"field": "zork"})
        assert "`zork`" in caught.value.message


@pytest.mark.parametrize("case", UNKNOWN_FIELDS + TOP, ids=lambda case: case.id)
def test_null_is_not_reported_as_an_unknown_field(case: UnknownField) -> None:
    name = case.path.rpartition(".")[2]
    body = msgspec.json.encode(nulled(msgspec.json.decode(body_of(case)), name, own=SCHEMA))
    assert all(case.path not in report.dropped for report in reports(case.format, body))


def nulled(value: object, name: str, own: object) -> object:
    """Return the document with the members of the name null, except in the caller's own JSON."""
    if isinstance(value, list):
        return [nulled(item, name, own) for item in value]
    if not isinstance(value, dict) or value == own:
        return value
    return {key: None if key == name else nulled(item, name, own) for key, item in value.items()}


@dataclass(frozen=True)
class Clean:
    """A body without unknown fields."""

    id: str
    format: str
    body: Json = field(default_factory=dict)


# fmt: off
CLEAN = [
    Clean("a schema, arguments and labels", "chat", {"messages": [USER, {"role": "assistant", "tool_calls": [CALL]}, {"role": "tool", "tool_call_id": "c", "content": "a"}], "tools": [{"type": "function", "function": FUNCTION}], "metadata": {"zork": "1"}, "logit_bias": {"7": 1}, "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}}),
    Clean("a response that was brought back", "chat", {"messages": [USER, {"role": "assistant", "content": "a", "refusal": None, "annotations": [{"type": "url_citation", "url_citation": {"zork": 1}}], "audio": {"id": "a", "data": "", "expires_at": 1, "transcript": "a"}, "tool_calls": [{**CALL, "index": 0}]}, {"role": "tool", "tool_call_id": "c", "content": "a"}]}),
    Clean("a place of a cache", "chat", message_with({"type": "text", "text": "a", "prompt_cache_breakpoint": {"type": "ephemeral"}, "cache_control": {"type": "ephemeral"}})),
    Clean("a schema and arguments", "messages", {"messages": [USER, {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {"zork": 1}, "caller": {"type": "direct"}}]}, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "a"}]}], "tools": [{"name": "f", "input_schema": SCHEMA}], "metadata": {"user_id": "u"}}),
    Clean("a schema, arguments and labels", "responses", {"input": [USER, {"type": "function_call", "id": "fc", "status": "completed", "call_id": "c", "name": "f", "arguments": '{"zork":1}'}, {"type": "function_call_output", "call_id": "c", "output": "a", "status": "completed"}], "tools": [{"type": "function", **FUNCTION}], "metadata": {"zork": "1"}, "text": {"format": {"type": "json_schema", "name": "n", "schema": SCHEMA}}}),
    Clean("a response that was brought back", "responses", items(USER, {"type": "message", "id": "msg", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": [{"type": "new", "zork": 1}], "logprobs": []}]}, USER)),
    Clean("fields reported by name", "responses", {"tools": [{"type": "function", **FUNCTION, "defer_loading": True}, {"type": "web_search", "external_web_access": False}]}),
    Clean("a schema, arguments and labels", "native", {"contents": [{"parts": [{"text": "Hi"}]}, {"role": "model", "parts": [{"functionCall": {"name": "f", "args": {"zork": 1}}}]}, {"parts": [{"functionResponse": {"name": "f", "response": {"zork": 1}}}]}], "tools": [{"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}]}], "labels": {"zork": "1"}}),
]
# fmt: on


@pytest.mark.parametrize("case", CLEAN, ids=lambda case: f"{case.format}: {case.id}")
def test_the_callers_own_json_is_not_looked_into(case: Clean) -> None:
    body = msgspec.json.encode({**LEAST[case.format], **case.body})
    report = Report()
    request, _, notes = TEXT_FORMATS[case.format].decode_request(body, {})
    note_nested(request.source, report)
    assert not report.dropped
    assert not any("zork" in path for path in [*notes.uncarried, *notes.indispensable])


def test_an_unknown_part_is_not_searched_for_unknown_fields() -> None:
    body = msgspec.json.encode({"model": "m", **message_with({"type": "new", "zork": 1})})
    assert unknown("chat", body) == []


def unknown(face: str, body: bytes) -> list[str]:
    found = TEXT_FORMATS[face].unknown_fields
    return [] if found is None else list(found(body))


@pytest.mark.parametrize("face", TEXT_FORMATS)
def test_every_field_is_forwarded_to_a_provider_of_the_same_format(face: str) -> None:
    for case in UNKNOWN_FIELDS + TOP:
        if case.format == face and not case.path.startswith("extra_body"):
            request, _, notes = TEXT_FORMATS[face].decode_request(body_of(case), {})
            assert not TEXT_FORMATS[face].encode_request(request, "m", True, notes=notes).report.lost, case.id


def test_a_name_is_shortened_and_loses_unprintable_characters() -> None:
    body = msgspec.json.encode({"model": "m", "messages": [{**USER, "a\n" + "z" * 200: 1}]})
    report = Report()
    for path in unknown("chat", body):
        report.drop(path)
    assert report.header() == ("messages.a_" + "z" * 200)[:80]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"1", b"\xff", b"[" * 100_000])
def test_a_source_that_is_no_body_has_no_fields(body: bytes) -> None:
    for name in TEXT_FORMATS:
        assert unknown(name, body) == []


# Members that hold the caller's own JSON, a provider's own, or one of several types.
OWN = frozenset(
    [
        "arguments",
        "input_schema",
        "parameters",
        "schema",
        "metadata",
        "logit_bias",
        "format",
        "annotations",
        "citations",
        "action",
        "results",
        "outputs",
        "variables",
        "prompt_cache_options",
        "moderation",
        "voice",
        "tool_choice",
        "filters",
        "ranking_options",
        "context_management",
    ]
)
REQUESTS: Mapping[str, tuple[st.SearchStrategy[pb.GenerateRequest], frozenset[str]]] = {
    "chat": (chat.requests, OWN),
    "messages": (messages.requests(), OWN | {"input"}),
    "responses": (responses.requests, OWN),
}


def is_opaque(kind: str) -> bool:
    return kind.startswith("x_") or (kind.endswith("_tool_result") and kind != "web_search_tool_result")


def added(value: object, own: frozenset[str], data: st.DataObject, names: list[str]) -> object:
    """Return the document with additions, each with a unique name, wherever a struct is decoded."""
    if isinstance(value, list):
        return [added(item, own, data, names) for item in value]
    if not isinstance(value, dict) or is_opaque(str(value.get("type", ""))):
        return value
    changed = {key: item if key in own else added(item, own, data, names) for key, item in value.items()}
    if data.draw(st.booleans()):
        names.append(f"zork_{len(names)}")
        changed[names[-1]] = data.draw(st.sampled_from([0, "", [], {}, {"a": 1}]))
    return changed


@pytest.mark.parametrize("face", REQUESTS)
@few
@given(st.data())
def test_as_many_are_counted_as_were_added(face: str, data: st.DataObject) -> None:
    requests, own = REQUESTS[face]
    request, names = data.draw(requests), list[str]()
    body = msgspec.json.decode(TEXT_FORMATS[face].encode_request(request, request.model or "m", False).body)
    changed = added(body, own, data, names)
    assert isinstance(changed, dict)
    nested = [name for name in names if name not in changed]
    found = unknown(face, msgspec.json.encode(changed))
    assert sorted(path.rpartition(".")[2] for path in found) == sorted(nested)
