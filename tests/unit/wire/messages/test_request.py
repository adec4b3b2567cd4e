"""Requests of other formats to a provider: translated, refused or reported."""

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.knowledge.provider_quirks import known
from umg_grpc.v1 import pb
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.messages import MESSAGES_FORMAT

USER, ASSISTANT, TOOL, SYSTEM = pb.ROLE_USER, pb.ROLE_ASSISTANT, pb.ROLE_TOOL, pb.ROLE_SYSTEM
HI = pb.Message(role=USER, parts=[pb.Part(text=pb.TextPart(text="hi"))])
Fields = dict[str, object]


def text(words: str, **more: object) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words), **more)


def user(*parts: pb.Part) -> pb.Message:
    return pb.Message(role=USER, parts=parts)


def assistant(*parts: pb.Part) -> pb.Message:
    return pb.Message(role=ASSISTANT, parts=parts)


def call(call_id: str, name: str = "f", arguments: str = "{}", **more: object) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments), **more)


def result(call_id: str, *parts: pb.Part, **more: object) -> pb.Part:
    return pb.Part(tool_result=pb.ToolResult(call_id=call_id, parts=parts, **more))


def media(kind: "pb.MediaKind.ValueType", **more: object) -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=kind, **more))


def encoded(
    request: pb.GenerateRequest,
    model: str = "theirs",
    *,
    stream: bool = False,
    source: str = "chat",
    quirks: Quirks = NO_QUIRKS,
    notes: RequestNotes = NO_NOTES,
) -> tuple[Fields, str]:
    if source:
        request.source.format, request.source.body = source, b"{}"
    upstream = MESSAGES_FORMAT.encode_request(request, model, stream, quirks, notes)
    assert upstream.path == "/messages"
    assert upstream.headers == {"anthropic-version": "2023-06-01"}
    return msgspec.json.decode(upstream.body), upstream.report.header()


def turns(*messages: pb.Message, **more: object) -> tuple[list[object], str]:
    fields, report = encoded(pb.GenerateRequest(messages=messages, **more))
    return fields["messages"], report


def options(notes: RequestNotes = NO_NOTES, **more: object) -> tuple[Fields, str]:
    fields, report = encoded(pb.GenerateRequest(messages=[HI], **more), notes=notes)
    assert (fields.pop("model"), fields.pop("messages")) == ("theirs", [{"role": "user", "content": "hi"}])
    return fields, report


def tool_use(call_id: str, name: str = "f", **arguments: object) -> Fields:
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def answered(call_id: str, content: object = None, **more: object) -> Fields:
    return {"type": "tool_result", "tool_use_id": call_id} | ({} if content is None else {"content": content}) | more


IMAGE, DOCUMENT = pb.MEDIA_KIND_IMAGE, pb.MEDIA_KIND_DOCUMENT
PIECE = {"type": "text", "text": "a"}


# --- turns


def test_ids_and_names_are_made_valid_equally_everywhere() -> None:
    request = pb.GenerateRequest(
        messages=[HI, assistant(call("a:1", "get.it"), call("a.1", "get_it")), user(result("a:1"), result("a.1"))],
        tools=[pb.Tool(function=pb.FunctionTool(name=name)) for name in ("get.it", "get_it", "é" * 200)],
        tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=["get.it"]),
    )
    fields, _ = encoded(request)
    assert [tool["name"] for tool in fields["tools"]] == ["get_it_2", "get_it", "_" * 120 + "df20b2aa"]
    assert fields["tool_choice"] == {"type": "tool", "name": "get_it_2"}
    assert fields["messages"][1]["content"] == [tool_use("a_1", "get_it_2"), tool_use("a_1_2", "get_it")]
    assert fields["messages"][2]["content"] == [answered("a_1"), answered("a_1_2")]
    body = {
        "type": "message",
        "content": [tool_use("t", "get_it_2"), tool_use("u", "get_it"), tool_use("v", "other")],
        "usage": {},
    }
    answer = MESSAGES_FORMAT.decode_response(msgspec.json.encode(body), request, False)
    assert [part.tool_call.name for part in answer.candidates[0].message.parts] == ["get.it", "get_it", "other"]


@pytest.mark.parametrize(
    ("arguments", "sent", "report"),
    [
        ("", {}, ""), ('{"a": 1}', {"a": 1}, ""), (' {"a":1}\n', {"a": 1}, ""), ('{"a":', {"raw_arguments": '{"a":'}, "arguments=raw_arguments"),
        ("[1]", {"raw_arguments": "[1]"}, "arguments=raw_arguments"), ('{"a":1}{}', {"raw_arguments": '{"a":1}{}'}, "arguments=raw_arguments"),
    ],
)  # fmt: skip
def test_arguments_are_always_encoded_as_an_object(arguments: str, sent: Fields, report: str) -> None:
    sent_turns, dropped = turns(HI, assistant(call("a", arguments=arguments)), user(result("a")))
    assert sent_turns[1]["content"][0]["input"] == sent
    assert dropped == report


def test_blank_texts_and_turns_without_other_parts_are_dropped() -> None:
    sent_turns, report = turns(user(text("a"), text(" \n")), assistant(text("")), user(text("b")))
    assert sent_turns == [{"role": "user", "content": [PIECE, {"type": "text", "text": "b"}]}]
    assert not report


def test_a_conversation_of_blanks_is_refused() -> None:
    with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE, metadata={"field": "messages"}):
        turns(user(text(" ")))


def test_the_first_turn_is_a_users() -> None:
    sent_turns, report = turns(assistant(text("a")), user(text("b")))
    assert [turn["content"] for turn in sent_turns] == [".", "a", "b"]
    assert report == "messages=a user's turn first"


def test_instructions_alone_are_a_users_turn() -> None:
    fields, report = encoded(pb.GenerateRequest(messages=[pb.Message(role=SYSTEM, parts=[text("s")])]))
    assert (fields["messages"], "system" in fields) == ([{"role": "user", "content": "s"}], False)
    assert report == "role=user"


PARTS = [
    (media(IMAGE, data=b"hi", mime_type="image/webp"), {"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": "aGk="}}, ""),
    (media(IMAGE, uri="https://i.test", detail="low"), {"type": "image", "source": {"type": "url", "url": "https://i.test"}}, "detail"),
    (
        media(DOCUMENT, data=b"%PDF-1", filename="a.pdf"),
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0x"}, "title": "a.pdf"}, "",
    ),
    (media(DOCUMENT, data=b"# a", mime_type="text/markdown"), {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "# a"}}, ""),
    (media(DOCUMENT, data=b"{}", mime_type="application/json"), {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "{}"}}, ""),
    (media(DOCUMENT, uri="https://d.test"), {"type": "document", "source": {"type": "url", "url": "https://d.test"}}, ""),
    (pb.Part(reasoning=pb.ReasoningPart(texts=["t"])), None, "reasoning"),
]  # fmt: skip


@pytest.mark.parametrize(("part", "block", "report"), PARTS, ids=lambda value: repr(value)[:60])
def test_a_part_of_a_user_message_is_encoded(part: pb.Part, block: object, report: str) -> None:
    sent_turns, dropped = turns(user(text("a"), part))
    assert sent_turns == [{"role": "user", "content": [PIECE, block] if block else "a"}]
    assert dropped == report


ASSISTANT_PARTS = [
    (pb.Part(refusal=pb.RefusalPart(text="no")), {"type": "text", "text": "no"}, "refusal=text"),
    (pb.Part(reasoning=pb.ReasoningPart(texts=["t"])), None, "reasoning"),
    (pb.Part(reasoning=pb.ReasoningPart(texts=["t"]), state=pb.ReasoningState(format="native", data="d")), None, "state, reasoning"),
    (
        pb.Part(reasoning=pb.ReasoningPart(texts=["t"]), state=pb.ReasoningState(format="messages", data="d")),
        {"type": "thinking", "thinking": "t", "signature": "d"}, "",
    ),
    (pb.Part(reasoning=pb.ReasoningPart(), state=pb.ReasoningState(format="messages", data="d")), {"type": "thinking", "thinking": "", "signature": "d"}, ""),
    (text("b", state=pb.ReasoningState(format="native", data="d")), {"type": "text", "text": "b"}, "state"),
    (pb.Part(server_tool_call=pb.ServerToolCall(name="web_search", queries=["q"])), None, "server_tool_call"),
    (pb.Part(server_tool_result=pb.ServerToolResult(name="web_search", call_id="c")), None, "server_tool_result"),
    (pb.Part(media=pb.MediaPart(kind=IMAGE, data=b"hi"), thought=True), None, "thought"),
    (
        pb.Part(text=pb.TextPart(text="b", citations=[pb.Citation(web=pb.WebSource(url="u")), pb.Citation(web=pb.WebSource(url="u", encrypted_index="e"))])),
        {"type": "text", "text": "b", "citations": [{"type": "web_search_result_location", "url": "u", "title": None, "cited_text": "", "encrypted_index": "e"}]},
        "citations",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("part", "block", "report"), ASSISTANT_PARTS, ids=lambda value: repr(value)[:60])
def test_a_part_of_an_assistant_message_is_encoded(part: pb.Part, block: object, report: str) -> None:
    sent_turns, dropped = turns(HI, assistant(text("a"), part), HI)
    assert sent_turns[1] == {"role": "assistant", "content": [PIECE, block] if block else "a"}
    assert dropped == report


def test_calls_of_custom_tools_are_functions_with_one_text() -> None:
    request = pb.GenerateRequest(
        messages=[
            HI,
            assistant(pb.Part(tool_call=pb.ToolCall(call_id="a", name="sh.ell", text="ls"))),
            user(result("a", text("r"), custom=True)),
        ],
        tools=[pb.Tool(custom=pb.CustomTool(name="sh.ell", description="d", format_json="{}"))],
    )
    fields, report = encoded(request)
    free = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert fields["tools"] == [{"name": "sh_ell", "description": "d", "input_schema": free}]
    assert fields["messages"][1]["content"] == [tool_use("a", "sh_ell", input="ls")]
    assert report == "custom=a function with one text, custom.format"
    body = {"type": "message", "content": [tool_use("t", "sh_ell", input="é\n"), tool_use("u", "sh_ell", other=1)]}
    answer = MESSAGES_FORMAT.decode_response(msgspec.json.encode(body), request, False)
    sent_turns = [part.tool_call for part in answer.candidates[0].message.parts]
    assert [(call.name, call.WhichOneof("input"), call.text) for call in sent_turns] == [
        ("sh.ell", "text", "é\n"),
        ("sh.ell", "text", '{"other":1}'),
    ]


# --- refusals

AUDIO, VIDEO = pb.MEDIA_KIND_AUDIO, pb.MEDIA_KIND_VIDEO
FOREIGN = pb.OpaquePart(format="responses", type="item_reference", json="{}")
REFUSED = [
    (user(media(AUDIO, data=b"a", mime_type="audio/wav")), "messages[0].parts[0]"),
    (user(media(VIDEO, uri="https://v.test")), "messages[0].parts[0]"),
    (user(media(IMAGE, data=b"BM", mime_type="image/bmp")), "messages[0].parts[0]"),
    (user(media(IMAGE, uri="gs://bucket/a")), "messages[0].parts[0]"),
    (user(media(IMAGE, file_id="f")), "messages[0].parts[0]"),
    (user(media(DOCUMENT, data=b"PK", mime_type="application/zip")), "messages[0].parts[0]"),
    (user(media(DOCUMENT, data=b"\xff\xfe", mime_type="text/plain")), "messages[0].parts[0]"),
    (user(result("a", media(AUDIO, data=b"a"))), "messages[0].parts[0].tool_result.parts[0]"),
    (assistant(media(IMAGE, data=b"a", mime_type="image/png")), "messages[0].parts[0]"),
    (user(call("a")), "messages[0].parts[0]"),
    (pb.Message(role=TOOL, parts=[text("a")]), "messages[0].parts[0]"),
    (pb.Message(role=SYSTEM, parts=[media(IMAGE, uri="https://i.test")]), "messages[0].parts[0]"),
]


@pytest.mark.parametrize(("message", "field"), REFUSED, ids=lambda value: repr(value)[:60])
def test_a_loss_that_would_change_the_meaning_is_refused(message: pb.Message, field: str) -> None:
    with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE, metadata={"field": field}):
        turns(message)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (pb.GenerateRequest(messages=[pb.Message(parts=[pb.Part(opaque=FOREIGN)])]), "messages[0].parts[0]"),
        (pb.GenerateRequest(messages=[user(result("a", pb.Part(opaque=FOREIGN)))]), "messages[0].parts[0].tool_result.parts[0]"),
        (pb.GenerateRequest(messages=[HI], tools=[pb.Tool(opaque=FOREIGN)]), "tools[0]"),
        (pb.GenerateRequest(messages=[HI], tools=[pb.Tool(file_search=pb.FileSearchTool())]), "tools[0]"),
        (pb.GenerateRequest(messages=[HI], tool_choice=pb.ToolChoice(opaque=FOREIGN)), "tool_choice"),
    ],
    ids=lambda value: repr(value)[:60],
)  # fmt: skip
def test_a_tool_of_another_format_is_refused_and_its_type_named(request_: pb.GenerateRequest, field: str) -> None:
    with pytest.raises(UmgError) as caught:
        encoded(request_)
    assert (caught.value.reason, caught.value.metadata) == (pb.ERROR_REASON_UNSUPPORTED_FIELD, {"field": field})
    assert "responses" in caught.value.message


@pytest.mark.parametrize(
    ("more", "field"),
    [
        ({"previous_response_id": "r"}, "previous_response_id"), ({"conversation_id": "c"}, "conversation_id"),
        ({"prompt_template": pb.PromptTemplate(prompt_id="p")}, "prompt_template"), ({"candidate_count": 2}, "candidate_count"),
        ({"notes": RequestNotes(indispensable=["safety"])}, "safety"),
        ({"response_format": pb.ResponseFormat(enum_text=pb.JsonSchemaFormat(schema_json="{}"))}, "response_format"),
    ],
)  # fmt: skip
def test_fields_that_change_the_answer_are_refused(more: dict[str, object], field: str) -> None:
    with raises_error(reason=pb.ERROR_REASON_UNTRANSLATABLE, metadata={"field": field}):
        options(**more)


def test_a_message_without_a_role_is_refused() -> None:
    with raises_error(reason=pb.ERROR_REASON_MISSING_FIELD, metadata={"field": "messages[0].role"}):
        turns(pb.Message(parts=[text("a")]))


def test_a_file_id_of_the_same_format_is_encoded() -> None:
    request = pb.GenerateRequest(messages=[user(media(DOCUMENT, file_id="f"))])
    fields, _ = encoded(request, source="")
    assert fields["messages"][0]["content"] == [{"type": "document", "source": {"type": "file", "file_id": "f"}}]


# --- options

ENABLED, DISABLED, ADAPTIVE = pb.REASONING_MODE_ENABLED, pb.REASONING_MODE_DISABLED, pb.REASONING_MODE_ADAPTIVE
JSON = "Answer with one JSON value and nothing else: no words around it, no code fence."


def thinks(**more: object) -> pb.ReasoningOptions:
    return pb.ReasoningOptions(**more)


def budget(tokens: int) -> Fields:
    return {"type": "enabled", "budget_tokens": tokens}


OPTIONS = [
    ({}, {}, ""),
    ({"temperature": 0.5, "top_p": 0.1, "top_k": 4}, {"temperature": 0.5, "top_p": 0.1, "top_k": 4}, ""),
    ({"temperature": 1.7}, {"temperature": 1}, "temperature=1"),
    ({"stop_sequences": ["a"], "user": "u"}, {"stop_sequences": ["a"], "metadata": {"user_id": "u"}}, ""),
    ({"service_tier": "auto"}, {"service_tier": "auto"}, ""),
    ({"service_tier": "priority"}, {}, "service_tier"),
    ({"seed": 1, "presence_penalty": 1, "metadata": {"a": "b"}, "verbosity": "low"}, {}, "seed, presence_penalty, verbosity, metadata"),
    ({"candidate_count": 1, "store": False, "include": ["reasoning.encrypted_content"], "output_modalities": ["text"]}, {}, ""),
    ({"store": True, "include": ["x"], "output_modalities": ["image"]}, {}, "include, store, output_modalities"),
    ({"cache_control": pb.CacheControl(ttl=pb.CACHE_TTL_ONE_HOUR)}, {"cache_control": {"type": "ephemeral", "ttl": "1h"}}, ""),
    ({"response_format": pb.ResponseFormat(text=pb.TextFormat())}, {}, ""),
    ({"response_format": pb.ResponseFormat(json=pb.JsonFormat())}, {"system": JSON}, "response_format=a line of the system prompt"),
    ({"response_format": pb.ResponseFormat(json_schema=pb.JsonSchemaFormat())}, {"system": JSON}, "response_format=a line of the system prompt"),
    (
        {"response_format": pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json='{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}', native_schema=True, name="n", strict=True))},
        {"output_config": {"format": {"type": "json_schema", "schema": {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": False}}}}, "response_format.json_schema.name",
    ),
    ({"reasoning": thinks(mode=DISABLED)}, {"thinking": {"type": "disabled"}}, ""),
    ({"reasoning": thinks(effort="none")}, {"thinking": {"type": "disabled"}}, ""),
    ({"reasoning": thinks(budget_tokens=0)}, {"thinking": {"type": "disabled"}}, ""),
    ({"reasoning": thinks(budget_tokens=-1, include_thoughts=True)}, {"thinking": {"type": "adaptive"}}, ""),
    ({"reasoning": thinks(mode=ADAPTIVE, display="omitted")}, {"thinking": {"type": "adaptive", "display": "omitted"}}, ""),
    ({"reasoning": thinks(budget_tokens=2000)}, {"thinking": budget(2000)}, ""),
    ({"reasoning": thinks(budget_tokens=10)}, {"thinking": budget(1025)}, "reasoning.budget_tokens=1025"),
    ({"reasoning": thinks(mode=ENABLED)}, {"thinking": budget(8192), "max_tokens": 12288}, ""),
    ({"reasoning": thinks(effort="low", summary="auto")}, {"thinking": budget(1280)}, "reasoning.summary, reasoning.effort=budget_tokens 1280"),
    ({"reasoning": thinks(effort="high")}, {"thinking": budget(24576), "max_tokens": 28672}, "reasoning.effort=budget_tokens 24576"),
    ({"reasoning": thinks(level="high"), "max_output_tokens": 10000}, {"thinking": budget(8000), "max_tokens": 10000}, "reasoning.level=budget_tokens 8000"),
    ({"reasoning": thinks(effort="medium"), "max_output_tokens": 100}, {"thinking": budget(1025), "max_tokens": 1125}, "reasoning.effort=budget_tokens 1025, max_output_tokens=1125"),
    ({"reasoning": thinks(budget_tokens=5000, effort="low"), "max_output_tokens": 5000}, {"thinking": budget(5000), "max_tokens": 10000}, "reasoning.effort, max_output_tokens=10000"),
    ({"reasoning": thinks(include_thoughts=True)}, {}, "reasoning.include_thoughts"),
    ({"reasoning": thinks(budget_tokens=2000, include_thoughts=False)}, {"thinking": budget(2000)}, "reasoning.include_thoughts"),
    ({"reasoning": thinks(budget_tokens=2000), "temperature": 0.5, "top_p": 0, "top_k": 3}, {"thinking": budget(2000)}, "temperature=1, top_p, top_k"),
    ({"reasoning": thinks(mode=ADAPTIVE), "temperature": 1, "top_p": 0.96}, {"thinking": {"type": "adaptive"}, "temperature": 1, "top_p": 0.96}, ""),
    ({"search": pb.SearchOptions(context_size="high", region="eu")}, {"tools": [{"type": "web_search_20250305", "name": "web_search", "max_uses": 10}]}, "search.region, search_context_size=max_uses 10"),
    ({"search": pb.SearchOptions(mode=pb.SEARCH_MODE_OFF)}, {}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("more", "sent", "report"), OPTIONS, ids=lambda value: repr(value)[:70])
def test_an_option_of_another_format_is_encoded_as_its_nearest_equivalent(
    more: dict[str, object], sent: Fields, report: str
) -> None:
    assert options(**more) == ({"max_tokens": 4096} | sent, report)


@pytest.mark.parametrize(
    ("model", "tokens"),
    [("famC-1", 4096), ("claude-3-haiku-20240307", 4096), ("claude-3-5-sonnet", 8192), ("claude-opus-4-20250514", 32000), ("eu.claude-sonnet-4-5", 64000)],
)  # fmt: skip
def test_without_a_limit_the_models_own_is_sent(model: str, tokens: int) -> None:
    quirks = known(model, "", "https://provider.example/v1", "messages")
    fields, report = encoded(pb.GenerateRequest(messages=[HI]), model, quirks=quirks)
    assert (fields["max_tokens"], report) == (tokens, "")


def test_a_same_format_request_keeps_its_effort() -> None:
    fields, report = encoded(pb.GenerateRequest(messages=[HI], reasoning=thinks(effort="low")), source="")
    assert (fields["output_config"], "thinking" in fields, report) == ({"effort": "low"}, False, "")


def test_fields_of_the_source_alone_are_reported() -> None:
    notes = RequestNotes(uncarried=["labels", "labels"])
    _, report = encoded(pb.GenerateRequest(messages=[HI]), source="native", notes=notes)
    assert report == "labels x2"


def test_a_streamed_request_has_the_stream_field() -> None:
    fields, _ = encoded(pb.GenerateRequest(messages=[HI]), stream=True)
    assert fields["stream"] is True


# --- tools

F, G = pb.Tool(function=pb.FunctionTool(name="f")), pb.Tool(function=pb.FunctionTool(name="g"))
EMPTY = {"type": "object", "properties": {}}
F_ENCODED, G_ENCODED = {"name": "f", "input_schema": EMPTY}, {"name": "g", "input_schema": EMPTY}
SEARCH = {"type": "web_search_20250305", "name": "web_search"}
AUTO, NONE, REQUIRED, VALIDATED = (
    pb.TOOL_CHOICE_MODE_AUTO, pb.TOOL_CHOICE_MODE_NONE, pb.TOOL_CHOICE_MODE_REQUIRED, pb.TOOL_CHOICE_MODE_VALIDATED,
)  # fmt: skip


def choice(mode: "pb.ToolChoiceMode.ValueType", *names: str, **more: bool) -> pb.ToolChoice:
    return pb.ToolChoice(mode=mode, names=names, **more)


CHOICES = [
    ({}, None, [F_ENCODED, G_ENCODED], ""),
    ({"tool_choice": choice(AUTO)}, {"type": "auto"}, [F_ENCODED, G_ENCODED], ""),
    ({"tool_choice": choice(NONE), "parallel_tool_calls": False}, {"type": "none"}, [F_ENCODED, G_ENCODED], ""),
    ({"tool_choice": choice(REQUIRED)}, {"type": "any"}, [F_ENCODED, G_ENCODED], ""),
    ({"tool_choice": choice(REQUIRED, "g")}, {"type": "tool", "name": "g"}, [F_ENCODED, G_ENCODED], ""),
    ({"tool_choice": choice(REQUIRED, "g", allowed_tools=True)}, {"type": "any"}, [G_ENCODED], ""),
    ({"tool_choice": choice(AUTO, "f")}, {"type": "auto"}, [F_ENCODED], ""),
    ({"tool_choice": choice(VALIDATED)}, {"type": "auto"}, [F_ENCODED, G_ENCODED], "tool_choice.mode=auto"),
    ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}, [F_ENCODED, G_ENCODED], ""),
    ({"tool_choice": choice(REQUIRED), "parallel_tool_calls": True}, {"type": "any", "disable_parallel_tool_use": False}, [F_ENCODED, G_ENCODED], ""),
]  # fmt: skip


@pytest.mark.parametrize(("more", "sent", "tools", "report"), CHOICES, ids=lambda value: repr(value)[:60])
def test_a_tool_choice_is_encoded(more: dict[str, object], sent: object, tools: list[Fields], report: str) -> None:
    fields, dropped = options(tools=[F, G], **more)
    assert (fields.get("tool_choice"), fields["tools"], dropped) == (sent, tools, report)


def test_a_choice_without_tools_is_left_out() -> None:
    assert options(tool_choice=choice(AUTO), parallel_tool_calls=True) == ({"max_tokens": 4096}, "")
    assert options(tool_choice=choice(REQUIRED)) == ({"max_tokens": 4096}, "tool_choice")


TOOLS = [
    (pb.Tool(function=pb.FunctionTool(name="f", parameters_json='{"b": 1.0, "type": "object"}', strict=False)), {"name": "f", "input_schema": {"b": 1.0, "type": "object"}, "strict": False}, ""),
    (pb.Tool(function=pb.FunctionTool(name="f", parameters_json='{"type": "object"}', strict=True)), {"name": "f", "input_schema": {"type": "object"}, "strict": False}, "tools.function.strict=false"),
    (pb.Tool(function=pb.FunctionTool(name="f", strict=True)), {"name": "f", "input_schema": EMPTY | {"additionalProperties": False}, "strict": True}, ""),
    (pb.Tool(function=pb.FunctionTool(name="f", parameters_json='{"properties": {}}')), {"name": "f", "input_schema": EMPTY}, ""),
    (pb.Tool(function=pb.FunctionTool(name="f", parameters_json='{"type": "STRING"}', native_schema=True)), {"name": "f", "input_schema": {"type": "object"}}, ""),
    (pb.Tool(web_search=pb.WebSearchTool(declared_type="googleSearch", context_size="low")), SEARCH | {"max_uses": 1}, "search_context_size=max_uses 1"),
    (pb.Tool(web_search=pb.WebSearchTool(max_uses=3, context_size="low", allowed_domains=["a"], blocked_domains=["b"])), SEARCH | {"max_uses": 3, "allowed_domains": ["a"]}, "search_context_size, blocked_domains"),
    (pb.Tool(web_search=pb.WebSearchTool(user_location=pb.UserLocation(city="Paris"))), SEARCH | {"user_location": {"type": "approximate", "city": "Paris"}}, ""),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "sent", "report"), TOOLS, ids=lambda value: repr(value)[:60])
def test_a_tool_is_encoded(tool: pb.Tool, sent: Fields, report: str) -> None:
    fields, dropped = options(tools=[tool])
    assert (fields["tools"], dropped) == ([sent], report)


@pytest.mark.parametrize("schema", ["[]", '"x"', "{", "{}{}"])
def test_a_schema_that_is_no_object_is_refused(schema: str) -> None:
    with raises_error(metadata={"field": "tools[0].function.parameters_json"}):
        options(tools=[pb.Tool(function=pb.FunctionTool(name="f", parameters_json=schema))])


def test_a_forced_search_is_forced_by_its_name() -> None:
    tool = pb.Tool(web_search=pb.WebSearchTool(declared_type="vendorgSearch"))
    fields, _ = options(tools=[tool], tool_choice=choice(REQUIRED, "vendorgSearch"))
    assert fields["tool_choice"] == {"type": "tool", "name": "web_search"}


# --- thinking and tools


def test_a_forced_tool_switches_thinking_off() -> None:
    fields, report = options(
        tools=[F], tool_choice=choice(REQUIRED), reasoning=thinks(budget_tokens=2000), temperature=0.5
    )
    assert (fields["thinking"], fields["tool_choice"], fields["temperature"]) == (
        {"type": "disabled"},
        {"type": "any"},
        0.5,
    )
    assert report == "reasoning=disabled"


THOUGHT = pb.Part(reasoning=pb.ReasoningPart(texts=["t"]), state=pb.ReasoningState(format="messages", data="s"))
LOOPS = [
    ("no tool", [HI, assistant(text("a")), HI], "enabled"),
    ("a thought call", [HI, assistant(THOUGHT, call("a")), user(result("a"))], "enabled"),
    ("a call without its thoughts", [HI, assistant(call("a")), user(result("a"))], "disabled"),
    ("a later call of a thought turn", [HI, assistant(THOUGHT, call("a")), user(result("a")), assistant(call("b")), user(result("b"))], "enabled"),
    ("two calls without thoughts", [HI, assistant(call("a")), user(result("a")), assistant(call("b")), user(result("b"))], "disabled"),
    ("thoughts of an earlier question", [HI, assistant(THOUGHT, text("a")), HI, assistant(call("b")), user(result("b"))], "disabled"),
    ("a new question behind the call", [HI, assistant(call("a")), user(result("a")), assistant(text("b")), HI], "enabled"),
]  # fmt: skip


@pytest.mark.parametrize(("messages", "thinking"), [loop[1:] for loop in LOOPS], ids=[loop[0] for loop in LOOPS])
def test_a_tool_turn_without_reasoning_disables_reasoning(messages: list[pb.Message], thinking: str) -> None:
    fields, report = encoded(pb.GenerateRequest(messages=messages, tools=[F], reasoning=thinks(budget_tokens=2000)))
    assert fields["thinking"]["type"] == thinking
    assert report == ("reasoning=disabled" if thinking == "disabled" else "")


def test_an_adaptive_model_needs_no_reasoning_in_a_tool_turn() -> None:
    messages = [HI, assistant(call("a")), user(result("a"))]
    fields, _ = encoded(pb.GenerateRequest(messages=messages, tools=[F], reasoning=thinks(mode=ADAPTIVE)))
    assert fields["thinking"] == {"type": "adaptive"}


# --- cache marks

MARK = pb.CacheControl()


def test_the_last_four_cache_marks_stay() -> None:
    hour = pb.CacheControl(ttl=pb.CACHE_TTL_ONE_HOUR)
    request = pb.GenerateRequest(
        instructions=[text("s", cache_control=hour)],
        messages=[
            user(
                text("a", cache_control=hour),
                text("b", cache_control=hour),
                text("c", cache_control=MARK),
            )
        ],
        tools=[pb.Tool(function=F.function, cache_control=MARK), pb.Tool(function=G.function, cache_control=MARK)],
    )
    fields, report = encoded(request)
    assert fields["tools"] == [F_ENCODED, G_ENCODED]
    assert fields["system"] == [{"type": "text", "text": "s", "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    assert [block["cache_control"].get("ttl") for block in fields["messages"][0]["content"]] == ["1h", "1h", None]
    assert report == "cache_control x2"
    request.cache_control.SetInParent()
    assert encoded(request)[0]["system"] == "s"
