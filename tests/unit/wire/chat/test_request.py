"""Requests to a provider: rewritten for one of the same format; translated, refused or reported for others."""

from collections.abc import Callable

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes

USER = [{"role": "user", "content": "hi"}]


def rebuilt(body: dict[str, object], stream: bool = False) -> tuple[dict[str, object], str]:
    raw = msgspec.json.encode({"model": "m", "messages": USER} | body)
    request, _, notes = CHAT_FORMAT.decode_request(raw, {})
    upstream = CHAT_FORMAT.encode_request(request, "theirs", stream, notes=notes)
    fields = msgspec.json.decode(upstream.body)
    assert (fields.pop("model"), fields.pop("messages")) == ("theirs", USER)
    return fields, upstream.report.header()


@pytest.mark.parametrize(
    ("body", "sent", "report"),
    [
        ({"vendorn_thinking_to_content": True}, {}, ""),
        ({"extra_body": {"vendorg": {"thinking_config": {"thinking_budget": 5}}}}, {"extra_body": {"google": {"thinking_config": {"thinking_budget": 5}}}}, ""),
        ({"vendorg": {"cached_content": "c"}}, {"extra_body": {"google": {"cached_content": "c"}}}, ""),
        ({"google": {"thinking_config": {"include_thoughts": True}}}, {"google": {"thinking_config": {"include_thoughts": True}}}, ""),
        ({"extra_body": {"vendorg": {"tools": [{"googleSearch": {}}]}}}, {"web_search_options": {}}, ""),
        ({"extra_body": {"top_a": 1, "max_tokens": 9}}, {"top_a": 1}, "extra_body.max_tokens"),
        ({"extra_body": None}, {}, ""),
        ({"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}}}, {"extra_body": {"google": {"thinking_config": {"thinking_level": "low"}}}}, ""),
        ({"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}, "topK": 1}, "reasoning_effort": "high"}, {"reasoning_effort": "high"}, "generationConfig.topK, generationConfig.thinkingConfig"),
        ({"tools": [{"type": "function", "function": {"name": "vendorgSearch"}}], "tool_choice": "auto"}, {"web_search_options": {}}, ""),
        ({"tools": [{"type": "function", "function": {"name": "vendorgSearch"}}, {"type": "x"}], "web_search_options": {"search_context_size": "low"}}, {"tools": [{"type": "x"}], "web_search_options": {"search_context_size": "low"}}, ""),
        ({"tools": [{"type": "function", "function": {"name": "vendorgSearch"}}, {"type": "x"}], "tool_choice": {"type": "function", "function": {"name": "vendorgSearch"}}}, {"tools": [{"type": "x"}], "web_search_options": {}}, "tool_choice"),
        ({"generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW", "includeThoughts": True}}, "google": {"x": 1}}, {"extra_body": {"google": {"thinking_config": {"thinking_level": "low", "include_thoughts": True}}}, "google": {"x": 1}}, ""),
        ({"tools": [{"type": "function", "function": {"name": "googleSearch"}}]}, {"web_search_options": {}}, ""),
        ({"tools": [{"type": "function", "function": {"name": "googleSearch", "parameters": {}}}]}, {"tools": [{"type": "function", "function": {"name": "googleSearch", "parameters": {}}}]}, ""),
        ({"extra_body": {"vendorg": {"tools": [{"vendorg_search": {}}], "x": 1}}}, {"web_search_options": {}, "extra_body": {"google": {"x": 1}}}, ""),
        ({"stream": True, "stream_options": {"include_usage": True}}, {"stream": False}, ""),
        ({"parameters": {"enable_search": True}, "enable_thinking": True}, {"parameters": {"enable_search": True}, "enable_thinking": True}, ""),
    ],
    ids=repr,
)  # fmt: skip
def test_our_own_fields_are_rewritten_for_a_provider_of_the_format(
    body: dict[str, object], sent: dict[str, object], report: str
) -> None:
    assert rebuilt(body) == (sent, report)


@pytest.mark.parametrize(
    "options",
    [{}, {"stream_options": None}, {"stream_options": {"include_usage": False, "x": 1}}, {"stream": False}],
    ids=repr,
)
def test_a_stream_always_requests_usage_and_keeps_the_other_options(options: dict[str, object]) -> None:
    fields, _ = rebuilt(options, stream=True)
    extra = {"x": 1} if options.get("stream_options") else {}
    assert fields == {"stream": True, "stream_options": {"include_usage": True, **extra}}


def test_a_sent_body_has_one_model_for_any_body_of_the_caller() -> None:
    body = b'{"model":"a","messages":[{"role":"user","content":"hi"}],"model":"b"}'
    request = CHAT_FORMAT.decode_request(body, {}).canonical
    assert request.model == "b"
    assert (
        CHAT_FORMAT.encode_request(request, "theirs", False).body
        == b'{"model":"theirs","messages":[{"role":"user","content":"hi"}]}'
    )


def test_search_tools_are_decoded_to_one_field_from_every_name() -> None:
    body = {"model": "m", "messages": USER, "extra_body": {"google": {"tools": [{"googleSearch": {}}, {"vendorgSearch": {}}]}},
            "tools": [{"type": "function", "function": {"name": "vendorgSearch"}}]}  # fmt: skip
    tools = CHAT_FORMAT.decode_request(msgspec.json.encode(body), {}).canonical.tools
    assert [tool.web_search.declared_type for tool in tools] == ["vendorgSearch", "googleSearch", "vendorgSearch"]


def text(words: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words))


def call(call_id: str, name: str) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=""))


def result(call_id: str, name: str, *parts: pb.Part, **more: bool) -> pb.Part:
    return pb.Part(tool_result=pb.ToolResult(call_id=call_id, name=name, parts=parts, **more))


def message(role: "pb.Role.ValueType", *parts: pb.Part) -> pb.Message:
    return pb.Message(role=role, parts=parts)


IMAGE = pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, uri="https://images.test/a.png"))
SHOWN = {"type": "image_url", "image_url": {"url": "https://images.test/a.png"}}


def sent(request: pb.GenerateRequest, notes: RequestNotes = NO_NOTES) -> tuple[dict[str, object], str]:
    upstream = CHAT_FORMAT.encode_request(request, "theirs", False, notes=notes)
    return msgspec.json.decode(upstream.body), upstream.report.header()


def test_results_in_a_user_turn_come_first_and_their_images_in_a_user_message_behind() -> None:
    request = pb.GenerateRequest(
        messages=[
            message(pb.ROLE_ASSISTANT, call("a", "f"), call("b", "g")),
            message(
                pb.ROLE_USER, text("look"), result("a", "", text("one"), IMAGE, is_error=True), result("b", "", IMAGE)
            ),
            message(pb.ROLE_ASSISTANT, text("ok")),
        ]
    )
    fields, report = sent(request)
    assert fields["messages"][1:] == [
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "tool", "tool_call_id": "b", "content": "The result is shown in the next message."},
        {"role": "user", "content": [SHOWN, SHOWN, {"type": "text", "text": "look"}]},
        {"role": "assistant", "content": "ok"},
    ]
    assert report == "is_error"


@pytest.mark.parametrize(
    "last",
    [[], [message(pb.ROLE_ASSISTANT, text("ok"))], [message(pb.ROLE_SYSTEM, text("be nice"))]],
    ids=["end", "answer", "system"],
)
def test_images_of_tool_results_precede_other_content(last: list[pb.Message]) -> None:
    results = [
        message(pb.ROLE_TOOL, result("a", "", text("1"), IMAGE)),
        message(pb.ROLE_TOOL, result("b", "", text("2"))),
    ]
    fields, _ = sent(pb.GenerateRequest(messages=[*results, *last]))
    assert [turn["role"] for turn in fields["messages"][:3]] == ["tool", "tool", "user"]
    assert fields["messages"][2]["content"] == [SHOWN]


def test_calls_without_ids_get_some_and_are_paired_by_name_and_order() -> None:
    request = pb.GenerateRequest(
        messages=[
            message(pb.ROLE_ASSISTANT, call("", "f"), call("", "g"), call("", "f"), call("own", "g")),
            message(
                pb.ROLE_USER,
                result("", "g", text("g1")),
                result("", "f", text("f1")),
                result("", "f", text("f2")),
                result("own", "", text("g2")),
            ),
        ]
    )
    turns = sent(request)[0]["messages"]
    ids = {f"{called['function']['name']}{at}": called["id"] for at, called in enumerate(turns[0]["tool_calls"])}
    assert len(set(ids.values())) == 4
    assert [(turn["tool_call_id"], turn["content"]) for turn in turns[1:]] == [
        (ids["g1"], "g1"),
        (ids["f0"], "f1"),
        (ids["f2"], "f2"),
        ("own", "g2"),
    ]
    assert {called["function"]["arguments"] for called in turns[0]["tool_calls"]} == {"{}"}
    assert sent(request)[0]["messages"] == turns


def test_fields_that_chat_does_not_have_are_reported() -> None:
    request = pb.GenerateRequest(
        messages=[
            message(
                pb.ROLE_USER,
                pb.Part(text=pb.TextPart(text="hi"), cache_control=pb.CacheControl(ttl=pb.CACHE_TTL_ONE_HOUR)),
            ),
            message(
                pb.ROLE_ASSISTANT,
                pb.Part(reasoning=pb.ReasoningPart(texts=["so"]), state=pb.ReasoningState(data="x", format="messages")),
                pb.Part(server_tool_call=pb.ServerToolCall(name="web_search")),
                pb.Part(server_tool_result=pb.ServerToolResult(name="web_search")),
                text("ok"),
            ),
        ],
        instructions=[text("one"), text("two")],
        top_k=3,
        safety_settings=[pb.SafetySetting(category="A", threshold="OFF")],
        tools=[pb.Tool(web_search=pb.WebSearchTool(max_uses=2, allowed_domains=["a.test"], context_size="low"))],
        tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_AUTO),
        reasoning=pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED, budget_tokens=2048, summary="auto"),
        source=pb.SourceDocument(format="messages", body=b"{}"),
    )
    fields, report = sent(request, RequestNotes(uncarried=["context_management", "speed"]))
    assert fields == {
        "model": "theirs",
        "messages": [
            {"role": "system", "content": "one\n\ntwo"},
            {"role": "user", "content": "hi"},
            {"role": "assistant", "content": "ok", "reasoning_content": "so"},
        ],
        "web_search_options": {"search_context_size": "low"},
        "reasoning_effort": "low",
    }
    assert report == (
        "context_management, speed, top_k, safety_settings, cache_control, state, server_tool_call, server_tool_result, "
        "max_uses, allowed_domains, reasoning.summary, reasoning.budget_tokens=effort low"
    )


@pytest.mark.parametrize(
    ("budget", "effort"),
    [(0, "none"), (1, "low"), (4608, "low"), (4609, "medium"), (16384, "medium"), (16385, "high"), (-1, None)],
)
def test_a_budget_is_encoded_as_the_nearest_effort(budget: int, effort: str | None) -> None:
    request = pb.GenerateRequest(
        messages=[message(pb.ROLE_USER, text("hi"))], reasoning=pb.ReasoningOptions(budget_tokens=budget)
    )
    assert sent(request)[0].get("reasoning_effort") == effort


def test_a_schema_of_the_native_subset_becomes_json_schema() -> None:
    native = '{"type":"OBJECT","properties":{"type":{"type":"STRING","nullable":true,"default":{"type":"A"}},"items":{"type":"ARRAY","items":{"type":"INTEGER"}}}}'
    tool = pb.Tool(function=pb.FunctionTool(name="f", parameters_json=native, native_schema=True))
    fields, _ = sent(pb.GenerateRequest(messages=[message(pb.ROLE_USER, text("hi"))], tools=[tool]))
    assert fields["tools"][0]["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "type": {"type": ["string", "null"], "default": {"type": "A"}},
            "items": {"type": "array", "items": {"type": "integer"}},
        },
    }


SEARCH = pb.Tool(web_search=pb.WebSearchTool())
FUNCTION = pb.Tool(function=pb.FunctionTool(name="f"))


def edited(body: dict[str, object], *fields: str, **changes: object) -> dict[str, object]:
    """Return a provider's body of the same format after these canonical fields were changed."""
    raw = msgspec.json.encode({"model": "m", "messages": USER} | body)
    request = CHAT_FORMAT.decode_request(raw, {}).canonical
    for name in fields:
        request.ClearField(name)
    request.MergeFrom(pb.GenerateRequest(**changes))
    notes = RequestNotes(edited=fields)
    encoded = msgspec.json.decode(CHAT_FORMAT.encode_request(request, "theirs", False, notes=notes).body)
    del encoded["model"]
    if encoded["messages"] == USER:
        del encoded["messages"]
    return encoded


EVERYWHERE = {
    "reasoning_effort": "low", "thinking": {"type": "enabled"}, "enable_thinking": True, "generationConfig": {"thinkingConfig": {"thinkingLevel": "LOW"}},
    "extra_body": {"vendorg": {"thinking_config": {"thinking_budget": 1}, "x": 1}}, "google": {"thinkingConfig": {"thinkingBudget": 1}}, "y": 2,
}  # fmt: skip
ELSEWHERE = {"extra_body": {"google": {"x": 1}}, "y": 2}
TOOLS = [{"type": "function", "function": {"name": "f"}}]


@pytest.mark.parametrize(
    ("body", "fields", "changes", "encoded"),
    [
        (EVERYWHERE, ["reasoning"], {}, ELSEWHERE),
        (EVERYWHERE, ["reasoning"], {"reasoning": pb.ReasoningOptions(effort="high")}, ELSEWHERE | {"reasoning_effort": "high"}),
        (EVERYWHERE, ["reasoning"], {"reasoning": pb.ReasoningOptions(budget_tokens=0, level="low", include_thoughts=True)}, ELSEWHERE | {"extra_body": {"google": {"x": 1, "thinking_config": {"thinking_budget": 0, "thinking_level": "low", "include_thoughts": True}}}}),
        (EVERYWHERE, ["reasoning"], {"reasoning": pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED, budget_tokens=5)}, ELSEWHERE | {"thinking": {"type": "enabled", "budget_tokens": 5}}),
        (EVERYWHERE, ["reasoning"], {"reasoning": pb.ReasoningOptions(mode=pb.REASONING_MODE_DISABLED), "face_hints": pb.FaceHints(enable_thinking=True)}, ELSEWHERE | {"enable_thinking": False}),
        ({"temperature": 1, "top_p": 1}, ["temperature"], {"temperature": 0.5}, {"temperature": 0.5, "top_p": 1}),
        ({"parameters": {"temperature": 1, "x": 1}}, ["temperature"], {"temperature": 0.5}, {"parameters": {"temperature": 0.5, "x": 1}}),
        ({"parameters": {"top_p": 1}}, ["top_p"], {}, {}),
        ({"max_completion_tokens": 9}, ["max_output_tokens"], {"max_output_tokens": 5}, {"max_completion_tokens": 5}),
        ({"web_search_options": {}, "search_parameters": {"mode": "on"}, "parameters": {"enable_search": True, "search_options": {"region": "eu"}}}, ["search"], {"search": pb.SearchOptions(mode=pb.SEARCH_MODE_OFF)}, {"search_parameters": {"mode": "off"}}),
        ({"tools": TOOLS, "tool_choice": "required"}, ["tools", "tool_choice"], {}, {}),
        ({"tools": [], "stop": "x"}, ["tools", "stop_sequences"], {"tools": [FUNCTION], "stop_sequences": ["y"]}, {"tools": TOOLS, "stop": ["y"]}),
        ({}, ["messages"], {"messages": [pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="new"))])]}, {"messages": [{"role": "user", "content": "new"}]}),
    ],
    ids=repr,
)  # fmt: skip
def test_only_an_edited_field_is_encoded_again(
    body: dict[str, object], fields: list[str], changes: dict[str, object], encoded: dict[str, object]
) -> None:
    assert edited(body, *fields, **changes) == encoded


def test_fields_of_families_are_recorded_by_the_paths_of_the_caller() -> None:
    judged = CHAT_FORMAT.decode_request(
        msgspec.json.encode(
            {"model": "m", "messages": USER} | EVERYWHERE | {"top_p": 1, "search_options": 1, "enable_search": None}
        ),
        {},
    ).notes
    assert judged.family == [
        "top_p",
        "thinking",
        "enable_thinking",
        "generationConfig.thinkingConfig",
        "generationConfig.thinkingConfig.thinkingLevel",
        "google.thinkingConfig",
        "google.thinkingConfig.thinkingBudget",
        "extra_body.vendorg.thinking_config",
        "extra_body.vendorg.thinking_config.thinking_budget",
        "google",
        "extra_body.vendorg",
        "search_options",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("body", "paths"),
    [
        ({"extra_body": {"top_a": 1, "google": {"cached_content": "c", "thinking_config": {}}}}, ["extra_body.top_a", "extra_body.google.cached_content"]),
        ({"vendorg": {"y": 1}, "generationConfig": {"topK": 3, "thinkingConfig": {}}}, ["vendorg.y", "generationConfig.topK"]),
        ({"parameters": {"enable_search": True}, "extra_body": None}, []),
    ],
)  # fmt: skip
def test_unknown_members_of_our_own_containers_are_found_by_their_paths(
    body: dict[str, object], paths: list[str]
) -> None:
    raw = msgspec.json.encode({"model": "m", "messages": USER} | body)
    assert CHAT_FORMAT.unknown_fields is not None
    assert CHAT_FORMAT.unknown_fields(raw) == paths


@pytest.mark.parametrize(
    ("body", "mode", "declared"),
    [
        ({"thinking": {"type": "disabled"}, "enable_thinking": True}, pb.REASONING_MODE_ENABLED, True),
        ({"thinking": {"type": "enabled"}, "enable_thinking": False}, pb.REASONING_MODE_ENABLED, False),
        ({"thinking": {"type": "disabled"}}, pb.REASONING_MODE_DISABLED, False),
        ({"enable_thinking": False}, pb.REASONING_MODE_DISABLED, True),
    ],
)
def test_enabling_takes_precedence_over_disabling_of_two_switches(
    body: dict[str, object], mode: "pb.ReasoningMode.ValueType", declared: bool
) -> None:
    raw = msgspec.json.encode({"model": "m", "messages": USER} | body)
    request = CHAT_FORMAT.decode_request(raw, {}).canonical
    assert (request.reasoning.mode, request.face_hints.enable_thinking) == (mode, declared)


OPAQUE = pb.OpaquePart(format="messages", type="container_upload", json="{}")
VIDEO = pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_VIDEO, data=b"x", mime_type="video/mp4"))
REFUSED: dict[str, tuple[Callable[[], pb.GenerateRequest], str, str]] = {
    "an earlier response": (lambda: pb.GenerateRequest(previous_response_id="r"), "previous_response_id", "UNTRANSLATABLE"),
    "a conversation": (lambda: pb.GenerateRequest(conversation_id="c"), "conversation_id", "UNTRANSLATABLE"),
    "a provider's prompt": (lambda: pb.GenerateRequest(prompt_template=pb.PromptTemplate(prompt_id="p")), "prompt_template", "UNTRANSLATABLE"),
    "a foreign block": (lambda: pb.GenerateRequest(messages=[message(pb.ROLE_USER, text("a"), pb.Part(opaque=OPAQUE))]), "messages[0].parts[1]", "UNSUPPORTED_FIELD"),
    "a foreign item": (lambda: pb.GenerateRequest(messages=[pb.Message(parts=[pb.Part(opaque=OPAQUE)])]), "messages[0].parts[0]", "UNSUPPORTED_FIELD"),
    "a foreign tool": (lambda: pb.GenerateRequest(tools=[pb.Tool(opaque=OPAQUE)]), "tools[0]", "UNSUPPORTED_FIELD"),
    "a search in files": (lambda: pb.GenerateRequest(tools=[pb.Tool(file_search=pb.FileSearchTool())]), "tools[0]", "UNSUPPORTED_FIELD"),
    "a foreign tool choice": (lambda: pb.GenerateRequest(tool_choice=pb.ToolChoice(opaque=OPAQUE)), "tool_choice", "UNSUPPORTED_FIELD"),
    "a video": (lambda: pb.GenerateRequest(messages=[message(pb.ROLE_USER, VIDEO)]), "messages[0].parts[0]", "UNTRANSLATABLE"),
    "a file's address": (lambda: pb.GenerateRequest(messages=[message(pb.ROLE_USER, pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, uri="https://x.test")))]), "messages[0].parts[0]", "UNTRANSLATABLE"),
    "an image that the model made": (lambda: pb.GenerateRequest(messages=[message(pb.ROLE_ASSISTANT, IMAGE)]), "messages[0].parts[0]", "UNTRANSLATABLE"),
    "a bare enum": (lambda: pb.GenerateRequest(response_format=pb.ResponseFormat(enum_text=pb.JsonSchemaFormat())), "response_format", "UNTRANSLATABLE"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_part_that_changes_the_meaning_is_refused_by_its_canonical_path(name: str) -> None:
    make, path, reason = REFUSED[name]
    with raises_error(name=reason, metadata={"field": path}):
        CHAT_FORMAT.encode_request(make(), "theirs", False)


def test_an_indispensable_field_of_the_source_is_refused_by_its_name() -> None:
    request = pb.GenerateRequest(source=pb.SourceDocument(format="messages", body=b"{}"))
    with raises_error(name="UNTRANSLATABLE", metadata={"field": "mcp_servers"}):
        CHAT_FORMAT.encode_request(request, "theirs", False, notes=RequestNotes(indispensable=["mcp_servers"]))


def test_a_foreign_block_is_named_by_its_type() -> None:
    with pytest.raises(UmgError, match="container_upload"):
        CHAT_FORMAT.encode_request(pb.GenerateRequest(tools=[pb.Tool(opaque=OPAQUE)]), "theirs", False)


@pytest.mark.parametrize(
    ("media", "part"),
    [
        (pb.MediaPart(data=b"%PDF-1", filename="a.pdf"), {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERi0x"}),
        (pb.MediaPart(data=b"\xff", mime_type="text/plain"), {"filename": "document.plain", "file_data": "data:text/plain;base64,/w=="}),
        (pb.MediaPart(file_id="file-1"), {"file_id": "file-1"}),
    ],
    ids=["bytes", "text", "id"],
)  # fmt: skip
def test_a_document_of_another_face_is_written_as_a_file(media: pb.MediaPart, part: dict[str, str]) -> None:
    media.kind = pb.MEDIA_KIND_DOCUMENT
    fields, _ = sent(pb.GenerateRequest(messages=[message(pb.ROLE_USER, pb.Part(media=media))]))
    assert fields["messages"][0]["content"] == [{"type": "file", "file": part}]


FORCED = pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=["web_search"])
IMAGE_PART = pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, uri="https://x.test", detail="ultra_high", title="t", origin="o")
PDF = pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, data=b"%PDF-1", title="a.pdf")
REPORTED: dict[str, tuple[pb.GenerateRequest, str]] = {
    "parallel calls beside a search alone": (pb.GenerateRequest(tools=[SEARCH], parallel_tool_calls=True), ""),
    "a forced search": (pb.GenerateRequest(tools=[SEARCH, FUNCTION], tool_choice=FORCED), "tool_choice"),
    "a budget beside enable_thinking": (pb.GenerateRequest(reasoning=pb.ReasoningOptions(mode=pb.REASONING_MODE_ENABLED, budget_tokens=5), face_hints=pb.FaceHints(enable_thinking=True)), "reasoning.budget_tokens"),
    "a service tier of messages": (pb.GenerateRequest(service_tier="standard_only"), "service_tier"),
    "a resolution of native": (pb.GenerateRequest(messages=[message(pb.ROLE_USER, pb.Part(media=IMAGE_PART))]), "title, origin, detail"),
    "a title that names the file": (pb.GenerateRequest(messages=[message(pb.ROLE_USER, pb.Part(media=PDF))]), ""),
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTED)
def test_options_without_a_field_in_chat_are_dropped_and_reported(name: str) -> None:
    request, report = REPORTED[name]
    fields, dropped = sent(request)
    assert dropped == report
    assert not fields.keys() & {"parallel_tool_calls", "tool_choice", "service_tier"}


BROKEN = '{}}}],"model":"evil","tools":[{"type":"function","function":{"name":"f","parameters":{}'
NATIVE_DEEP = '{"a":' + "[" * 2000 + "]" * 2000 + "}"
UNREADABLE: dict[str, tuple[pb.GenerateRequest, str]] = {
    "a schema": (pb.GenerateRequest(tools=[pb.Tool(function=pb.FunctionTool(name="f", parameters_json=BROKEN))]), "tools[0].function.parameters_json"),
    "a native schema": (pb.GenerateRequest(tools=[pb.Tool(function=pb.FunctionTool(name="f", parameters_json=BROKEN, native_schema=True))]), "tools[0].function.parameters_json"),
    "a native schema without an end": (pb.GenerateRequest(tools=[pb.Tool(function=pb.FunctionTool(name="f", parameters_json=NATIVE_DEEP, native_schema=True))]), "tools[0].function.parameters_json"),
    "a grammar": (pb.GenerateRequest(tools=[pb.Tool(custom=pb.CustomTool(name="f", format_json=BROKEN))]), "tools[0].custom.format_json"),
    "a tool": (pb.GenerateRequest(tools=[pb.Tool(opaque=pb.OpaquePart(format="chat", json=BROKEN))]), "tools[0].opaque.json"),
    "a choice": (pb.GenerateRequest(tool_choice=pb.ToolChoice(opaque=pb.OpaquePart(format="chat", json=BROKEN))), "tool_choice.opaque.json"),
    "a part": (pb.GenerateRequest(messages=[message(pb.ROLE_USER, pb.Part(opaque=pb.OpaquePart(format="chat", json=BROKEN)))]), "messages[0].parts[0].opaque.json"),
    "a form of answer": (pb.GenerateRequest(response_format=pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json=BROKEN))), "response_format.json_schema.schema_json"),
    "a voice": (pb.GenerateRequest(audio_output=pb.AudioOutputOptions(format="mp3", voice_json=BROKEN)), "audio_output.voice_json"),
    "cache options": (pb.GenerateRequest(prompt_cache_options_json=BROKEN), "prompt_cache_options_json"),
    "moderation": (pb.GenerateRequest(moderation_json=BROKEN), "moderation_json"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREADABLE)
def test_json_of_a_grpc_caller_cannot_add_members_to_the_body(name: str) -> None:
    request, path = UNREADABLE[name]
    with raises_error(name="INVALID_FIELD", metadata={"field": path}):
        CHAT_FORMAT.encode_request(request, "theirs", False)


def _turn(*parts: pb.Part, role: pb.Role.ValueType = pb.ROLE_USER) -> pb.GenerateRequest:
    return pb.GenerateRequest(model="m", messages=[pb.Message(role=role, parts=parts)])


PICTURE = pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, uri="http://h/i.png"))
TEXT = pb.Part(text=pb.TextPart(text="Hi"))
INEXPRESSIBLE = {
    "a part of no known kind": (_turn(pb.Part()), "messages[0].parts[0]"),
    "a turn of nobody": (_turn(TEXT, role=pb.ROLE_UNSPECIFIED), "messages[0].role"),
    "a prediction that is an image": (
        pb.GenerateRequest(model="m", messages=_turn(TEXT).messages, prediction=[PICTURE]),
        "prediction[0]",
    ),
}


@pytest.mark.parametrize("name", INEXPRESSIBLE, ids=str)
def test_an_incomplete_message_of_a_grpc_caller_is_refused_by_its_path(name: str) -> None:
    request, field = INEXPRESSIBLE[name]
    with raises_error(metadata={"field": field}):
        CHAT_FORMAT.encode_request(request, "theirs", False)


def test_a_tool_result_with_only_json_is_encoded_as_its_json() -> None:
    result = pb.Part(tool_result=pb.ToolResult(call_id="c", result_json='{"a": 1.0}'))
    body = msgspec.json.decode(CHAT_FORMAT.encode_request(_turn(result, role=pb.ROLE_TOOL), "theirs", False).body)
    assert body["messages"] == [{"role": "tool", "tool_call_id": "c", "content": '{"a": 1.0}'}]
