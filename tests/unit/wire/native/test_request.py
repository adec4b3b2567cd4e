"""Requests: the bodies of native's callers, and those for native's providers."""

import base64
from dataclasses import dataclass

import msgspec
import pytest

from tests.support.error_checks import raises_error
from umg_grpc.base.errors import UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire.core.reasoning_state_conversion import show
from umg_grpc.wire.facts_beside_request import NO_NOTES, RequestNotes
from umg_grpc.wire.native import NATIVE_FORMAT

Json = dict[str, object]


def decoded(**body: object) -> pb.GenerateRequest:
    return noted(**body)[0]


def noted(**body: object) -> tuple[pb.GenerateRequest, RequestNotes]:
    document = {"contents": [{"parts": [{"text": "hi"}]}]} | body
    request, _, notes = NATIVE_FORMAT.decode_request(msgspec.json.encode(document), {})
    return request, notes


def with_question(request: pb.GenerateRequest) -> pb.GenerateRequest:
    """Return the request, with a question if it has none: a request without one is not sent."""
    if request.messages or request.instructions:
        return request
    merged = pb.GenerateRequest(messages=[user(text("hi"))])
    merged.MergeFrom(request)
    return merged


def sent(request: pb.GenerateRequest, model: str = "m", notes: RequestNotes = NO_NOTES) -> tuple[Json, str]:
    upstream = NATIVE_FORMAT.encode_request(with_question(request), model, False, notes=notes)
    return msgspec.json.decode(upstream.body), upstream.report.header()


def turn(role: "pb.Role.ValueType", *parts: pb.Part) -> pb.Message:
    return pb.Message(role=role, parts=parts)


def user(*parts: pb.Part) -> pb.Message:
    return turn(pb.ROLE_USER, *parts)


def model(*parts: pb.Part) -> pb.Message:
    return turn(pb.ROLE_ASSISTANT, *parts)


def text(words: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words))


def call(call_id: str, name: str, arguments: str = "{}", state: pb.ReasoningState | None = None) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name, arguments_json=arguments), state=state)


def result(call_id: str, name: str, *parts: pb.Part, **more: object) -> pb.Part:
    return pb.Part(tool_result=pb.ToolResult(call_id=call_id, name=name, parts=parts, **more))


def media(**fields: object) -> pb.Part:
    return pb.Part(media=pb.MediaPart(**fields))


FILLED = {"role": "user", "parts": [{"text": "."}]}
"""Turn in front of a conversation that begins with calls."""


def contents(*messages: pb.Message, to: str = "m") -> list[Json]:
    """Return the encoded messages, without the turn that is added in front of calls."""
    encoded: list[Json] = sent(pb.GenerateRequest(messages=messages), to)[0]["contents"]
    return encoded[1:] if encoded[0] == FILLED else encoded


def test_the_path_has_the_model_and_whether_to_stream() -> None:
    request = pb.GenerateRequest(messages=[user(text("hi"))])
    paths = {
        name: NATIVE_FORMAT.encode_request(request, name, stream=False).path
        for name in ("m", "models/m", "vendor/m", "a b", "llama:8b", "../x", "a//b")
    }
    assert paths == {
        "m": "/models/m:generateContent",
        "models/m": "/models/m:generateContent",
        "vendor/m": "/models/vendor/m:generateContent",
        "a b": "/models/a%20b:generateContent",
        "llama:8b": "/models/llama%3A8b:generateContent",
        "../x": "/models/..%2Fx:generateContent",
        "a//b": "/models/a%2F%2Fb:generateContent",
    }
    assert NATIVE_FORMAT.encode_request(request, "m", stream=True).path == "/models/m:streamGenerateContent?alt=sse"


# --- bodies of callers


SPELLINGS = [
    {"generationConfig": {"thinkingConfig": {"includeThoughts": True, "thinkingBudget": 5}, "topK": 40, "maxOutputTokens": 7}},
    {"generation_config": {"thinking_config": {"include_thoughts": True, "thinking_budget": "5"}, "top_k": "40", "max_output_tokens": "7"}},
    {"generationConfig": {"thinkingConfig": {"include_thoughts": True, "thinkingBudget": 5.0}, "top_k": 40.0, "maxOutputTokens": 7.0}},
    {"generationConfig": {"thinkingConfig": {"include_thoughts": True, "thinkingBudget": 5, "thinkingLevel": None}, "topK": 40, "maxOutputTokens": 7, "seed": None}, "generation_config": {"topK": 1}, "tools": None, "toolConfig": None, "safetySettings": None, "labels": None},
]  # fmt: skip


@pytest.mark.parametrize("body", SPELLINGS, ids=range(len(SPELLINGS)))
def test_both_spellings_numbers_as_text_and_null_are_decoded_equally(body: Json) -> None:
    request, notes = noted(**body)
    assert request.reasoning == pb.ReasoningOptions(budget_tokens=5, include_thoughts=True)
    assert (request.top_k, request.max_output_tokens, request.HasField("seed")) == (40, 7, False)
    assert not notes.indispensable


@pytest.mark.parametrize("level", ["low", "LOW", "Low"])
def test_words_are_read_in_any_case(level: str) -> None:
    settings = [{"category": "harm_category_harassment", "threshold": "off"}]
    config = {
        "thinkingConfig": {"thinkingLevel": level},
        "responseModalities": ["text", "IMAGE"],
        "mediaResolution": "media_resolution_low",
    }
    calling = {"functionCallingConfig": {"mode": "any", "allowedFunctionNames": ["F"]}}
    request = decoded(generationConfig=config, safetySettings=settings, toolConfig=calling)
    assert (request.reasoning.level, request.output_modalities, request.media_detail) == (
        "low",
        ["text", "image"],
        "low",
    )
    assert request.safety_settings[0] == pb.SafetySetting(category="HARM_CATEGORY_HARASSMENT", threshold="OFF")
    assert request.tool_choice == pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=["F"])


@pytest.mark.parametrize(
    "instruction",
    [{"parts": [{"text": "be nice"}]}, {"parts": {"text": "be nice"}}, {"role": "user", "parts": [{"text": "be nice"}]}, {"text": "be nice"}],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("name", ["systemInstruction", "system_instruction"])
def test_a_system_instruction_is_decoded_in_every_form(name: str, instruction: object) -> None:
    request = decoded(**{name: instruction})
    assert request.instructions == [text("be nice")]
    rebuilt = sent(request)[0][name]
    assert isinstance(rebuilt, dict)
    assert "parts" in rebuilt


def test_a_turn_is_decoded_without_a_list_and_a_role() -> None:
    request = decoded(contents={"parts": {"text": "a"}})
    assert request.messages == [user(text("a"))]
    assert sent(request)[0]["contents"] == [{"parts": {"text": "a"}}]


def test_roles_of_tool_results_are_read_as_tools() -> None:
    answered = {"functionResponse": {"name": "f", "response": {"output": 1}}}
    request = decoded(contents=[{"role": role, "parts": [answered]} for role in ("user", "function", "tool", "USER")])
    assert [message.role for message in request.messages] == [pb.ROLE_USER, pb.ROLE_TOOL, pb.ROLE_TOOL, pb.ROLE_USER]


@dataclass(frozen=True)
class Result:
    response: object
    message: str
    failed: bool | None = None


RESULTS = [
    Result({"output": "a"}, "a"),
    Result({"output": {"n": 1}}, '{"n":1}'),
    Result({"error": "bad"}, "bad", failed=True),
    Result({"error": {"code": 1}}, '{"code":1}', failed=True),
    Result({"name": "f", "error": "bad"}, '{"name":"f","error":"bad"}', failed=True),
    Result({"output": "a", "error": None}, "a"),
    Result({"output": "a", "error": "b"}, '{"output":"a","error":"b"}'),
    Result({"result": 5}, '{"result":5}'),
    Result({}, "{}"),
]


@pytest.mark.parametrize("case", RESULTS, ids=lambda case: repr(case.response))
def test_a_tool_result_is_decoded_by_its_keys(case: Result) -> None:
    answered = {"functionResponse": {"id": "i", "name": "f", "response": case.response}}
    returned = decoded(contents=[{"parts": [answered]}]).messages[0].parts[0].tool_result
    assert (returned.call_id, returned.name, [part.text.text for part in returned.parts]) == ("i", "f", [case.message])
    assert (returned.is_error if returned.HasField("is_error") else None) == case.failed
    assert msgspec.json.decode(returned.result_json) == case.response


@pytest.mark.parametrize("kind", ["newKind", "opaque"])
def test_a_part_of_an_unknown_kind_is_kept(kind: str) -> None:
    [turn] = decoded(contents=[{"parts": [{kind: 1}]}]).messages
    assert turn.parts == [pb.Part(opaque=pb.OpaquePart(format="native", type=kind, json=f'{{"{kind}":1}}'))]


def test_base64_is_decoded_in_both_alphabets() -> None:
    data = b"\xff\xef\xbe>"
    for spelled in (
        base64.b64encode(data),
        base64.urlsafe_b64encode(data),
        base64.urlsafe_b64encode(data).rstrip(b"="),
    ):
        part = {"inlineData": {"mimeType": "image/jpg", "data": spelled.decode()}}
        decoded_media = decoded(contents=[{"parts": [part]}]).messages[0].parts[0].media
        assert (decoded_media.data, decoded_media.mime_type, decoded_media.kind) == (
            data,
            "image/jpeg",
            pb.MEDIA_KIND_IMAGE,
        )


@pytest.mark.parametrize(
    ("file", "kind", "source"),
    [
        ({"fileUri": "https://h.test/v1beta/files/a-1", "mimeType": "image/png"}, pb.MEDIA_KIND_IMAGE, "file_id"),
        ({"fileUri": "files/a-1"}, pb.MEDIA_KIND_DOCUMENT, "file_id"),
        ({"fileUri": "https://h.test/a.png?x=1"}, pb.MEDIA_KIND_IMAGE, "uri"),
        ({"fileUri": "https://www.youtube.com/watch?v=1"}, pb.MEDIA_KIND_VIDEO, "uri"),
        ({"fileUri": "gs://b/a.wav"}, pb.MEDIA_KIND_AUDIO, "uri"),
        ({"fileUri": "https://h.test/a"}, pb.MEDIA_KIND_DOCUMENT, "uri"),
    ],
    ids=repr,
)  # fmt: skip
def test_the_kind_of_a_file_is_determined_by_its_type_or_address(file: Json, kind: int, source: str) -> None:
    decoded_media = decoded(contents=[{"parts": [{"fileData": file}]}]).messages[0].parts[0].media
    assert (decoded_media.kind, decoded_media.WhichOneof("source")) == (kind, source)
    assert (decoded_media.uri or decoded_media.file_id) == file["fileUri"]


def test_reasoning_state_of_another_format_is_restored_unchanged() -> None:
    state = pb.ReasoningState(data="EqQB+/=", format="messages")
    thought = {"text": "why", "thought": True, "thoughtSignature": show(state, "native")}
    hidden = {"thought": True, "thoughtSignature": show(state, "native")}
    signed = {"thoughtSignature": "AAAA"}
    parts = decoded(contents=[{"role": "model", "parts": [thought, hidden, signed]}]).messages[0].parts
    assert [part.state for part in parts] == [state, state, pb.ReasoningState(data="AAAA", format="native")]
    assert [part.WhichOneof("kind") for part in parts] == ["reasoning", "reasoning", "text"]
    assert [part.reasoning.redacted for part in parts] == [False, True, False]
    assert parts[0].reasoning.texts == ["why"]


@pytest.mark.parametrize(
    "key",
    [
        "vendorgSearch",
        "vendorg_search",
        "googleSearch",
        "google_search",
        "googleSearchRetrieval",
        "google_search_retrieval",
    ],
)
def test_a_search_tool_is_decoded_under_every_name_and_encoded_under_the_providers(key: str) -> None:
    functions = [{"name": "f", "parameters": {"type": "object"}}]
    request = decoded(tools=[{"functionDeclarations": functions, key: {}}])
    assert [tool.WhichOneof("kind") for tool in request.tools] == ["function", "web_search"]
    sent_name = key if not key.startswith("vendorg") else "googleSearch"
    assert sent(request)[0]["tools"] == [{"functionDeclarations": functions, sent_name: {}}]
    request.ClearField("source")
    retrieval = "Retrieval" in key or "retrieval" in key
    assert sent(request)[0]["tools"][1] == {"googleSearchRetrieval" if retrieval else "googleSearch": {}}


# --- bodies of token counting


@pytest.mark.parametrize("key", ["generateContentRequest", "generate_content_request"])
def test_the_counted_request_is_the_body_or_its_member(key: str) -> None:
    inner = {
        "model": "models/m",
        "contents": [{"parts": [{"text": "hi"}]}],
        "systemInstruction": {"parts": [{"text": "s"}]},
    }
    assert NATIVE_FORMAT.decode_count is not None
    for body in (inner, {key: inner}):
        request = NATIVE_FORMAT.decode_count(msgspec.json.encode(body), {}).canonical
        assert (request.messages[0], request.instructions[0]) == (user(text("hi")), text("s"))
    with raises_error(metadata={"field": f"{key}.contents[0].role"}):
        NATIVE_FORMAT.decode_count(msgspec.json.encode({key: {"contents": [{"role": 5}]}}), {})


@pytest.mark.parametrize(("named", "path", "refused"), [
    ("m", "m", False), ("models/m", "m", False), (None, "m", False), ("", "m", False), ("models/m", "", False),
    ("other", "m", True), ("models/models/m", "m", True),
])  # fmt: skip
def test_a_model_in_the_body_is_that_of_the_path(named: str | None, path: str, refused: bool) -> None:
    body = msgspec.json.encode({"contents": [{"parts": [{"text": "hi"}]}], "model": named})
    if not refused:
        assert NATIVE_FORMAT.decode_request(body, {}, path).canonical.model == "m"
        return
    with raises_error(name="INVALID_FIELD", metadata={"field": "model"}):
        NATIVE_FORMAT.decode_request(body, {}, path)


def test_a_count_is_the_total() -> None:
    assert NATIVE_FORMAT.encode_count is not None
    assert NATIVE_FORMAT.encode_count(7, None) == b'{"totalTokens":7}'


# --- bodies for providers


def test_a_same_format_body_is_forwarded_byte_for_byte_except_for_its_model() -> None:
    body = b'{ "model":"models/x","contents": [ {"parts": [ {"text":"\\u00e9"} ] } ],"generation_config":{ "temperature" : 1.0 } }'
    request = NATIVE_FORMAT.decode_request(body, {}).canonical
    assert NATIVE_FORMAT.encode_request(request, "theirs", True).body == (
        b'{"contents":[ {"parts": [ {"text":"\\u00e9"} ] } ],"generation_config":{ "temperature" : 1.0 }}'
    )


@pytest.mark.parametrize("config", ["generationConfig", "generation_config"])
def test_fields_that_a_rule_edited_are_encoded_again_and_the_others_stay(config: str) -> None:
    request = decoded(**{config: {"thinking_config": {"thinkingBudget": 5}, "temperature": 1.0, "x": 1}, "y": 2})
    request.reasoning.Clear()
    request.reasoning.level = "low"
    request.temperature = 0.5
    notes = RequestNotes(edited=("reasoning", "temperature"))
    fields, _ = sent(request, notes=notes)
    assert fields[config] == {"x": 1, "thinkingConfig": {"thinkingLevel": "LOW"}, "temperature": 0.5}
    assert fields["y"] == 2
    request.ClearField("reasoning")
    assert sent(request, notes=notes)[0][config] == {"x": 1, "temperature": 0.5}


def test_turns_and_tools_that_a_rule_edited_are_encoded_again() -> None:
    request, notes = noted(
        system_instruction={"text": "a"},
        tools=[{"function_declarations": [{"name": "f", "response": {}}]}],
        toolConfig={"functionCallingConfig": {"mode": "AUTO"}},
    )
    request.instructions[0].text.text = "b"
    request.messages[0].parts[0].text.text = "c"
    request.tools.add().web_search.SetInParent()
    fields, report = sent(request, notes=notes.with_edited("instructions", "tools"))
    assert fields == {
        "contents": [{"role": "user", "parts": [{"text": "c"}]}],
        "systemInstruction": {"parts": [{"text": "b"}]},
        "tools": [{"functionDeclarations": [{"name": "f"}]}, {"googleSearch": {}}],
        "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
    }
    assert report == "functionDeclarations.response"


def test_an_edited_field_that_the_body_lacks_is_added() -> None:
    request = decoded()
    request.reasoning.budget_tokens = 0
    assert sent(request, notes=RequestNotes(edited=("reasoning",)))[0]["generationConfig"] == {
        "thinkingConfig": {"thinkingBudget": 0}
    }


def test_results_without_ids_find_their_names_by_order() -> None:
    encoded = contents(
        model(call("", "f"), call("", "g")),
        turn(pb.ROLE_TOOL, result("", "", text("1")), result("", "g", text("2"))),
    )
    assert [part["functionResponse"]["name"] for part in encoded[1]["parts"]] == ["f", "g"]


def test_a_callers_result_without_an_id_gets_that_of_its_call() -> None:
    def called(*ids_and_names: str) -> Json:
        pairs = [each.split() for each in ids_and_names]
        return {"role": "model", "parts": [{"functionCall": {"id": id_ or None, "name": name}} for id_, name in pairs]}

    def results(*named: str) -> Json:
        pairs = [each.rpartition(" ")[::2] for each in named]
        return {
            "parts": [{"functionResponse": {"id": id_ or None, "name": name, "response": {}}} for id_, name in pairs]
        }

    request = decoded(
        contents=[
            {"parts": [{"text": "a"}]},
            called("1 f", "2 g", "3 g"), results("g", "3 g"), results("f", "f", "h"),
            called("4 f"), results("f"), {"role": "model", "parts": [{"text": "b"}]}, results("f"),
        ]
    )  # fmt: skip
    answered = [part.tool_result.call_id for message in request.messages for part in message.parts if part.HasField("tool_result")]  # fmt: skip
    assert answered == ["2", "3", "1", "", "", "4", ""]


def test_a_result_without_an_id_answers_a_call_that_has_one() -> None:
    encoded = contents(
        model(call("1", "f"), call("2", "g"), call("3", "g")),
        turn(pb.ROLE_TOOL, result("", "g", text("b")), result("3", "g", text("c")), result("", "f", text("a"))),
    )
    answered = [part["functionResponse"] for part in encoded[1]["parts"]]
    assert [(given["id"], given["response"]["output"]) for given in answered] == [("1", "a"), ("2", "b"), ("3", "c")]


IMAGE = pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=b"\x89PNG\r\n\x1a\n")
SHOWN = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}


@pytest.mark.parametrize(
    ("orphan", "encoded"),
    [
        (result("x", "f", text("two")), [{"text": "two"}]),
        (result("x", "f", result_json='{"a":1}'), [{"text": '{"a":1}'}]),
        (result("x", "f"), [{"text": "(no result)"}]),
        (result("x", "f", pb.Part(media=IMAGE)), [SHOWN]),
        (result("x", "f", pb.Part(media=IMAGE), result_json='{"a":1}'), [{"text": '{"a":1}'}, SHOWN]),
    ],
)  # fmt: skip
def test_a_result_without_a_call_becomes_text(orphan: pb.Part, encoded: list[Json]) -> None:
    request = pb.GenerateRequest(messages=[user(text("one")), turn(pb.ROLE_TOOL, orphan), user(text("three"))])
    fields, report = sent(request)
    assert fields["contents"] == [{"role": "user", "parts": [{"text": "one"}, *encoded, {"text": "three"}]}]
    assert report == "tool_result=text"


@pytest.mark.parametrize(
    "messages",
    [
        [user(text(""))],
        [user(text("")), model(text("")), user()],
        [model(pb.Part(reasoning=pb.ReasoningPart()))],
        [user(media(kind=pb.MEDIA_KIND_DOCUMENT, blocks=pb.DocumentBlocks()))],
    ],
)
def test_blank_turns_are_refused(messages: list[pb.Message]) -> None:
    with pytest.raises(UmgError) as caught:
        NATIVE_FORMAT.encode_request(pb.GenerateRequest(messages=messages), "m", False)
    assert (caught.value.name, caught.value.metadata) == ("UNTRANSLATABLE", {"field": "messages"})
    assert caught.value.message == "`messages`: all of them are blank; send some text"


@pytest.mark.parametrize(
    ("answered", "response"),
    [
        (result("1", "f", text('{"a": 1.0}')), {"a": 1.0}),
        (result("1", "f", text("[1]")), {"output": "[1]"}),
        (result("1", "f", text("{broken")), {"output": "{broken"}),
        (result("1", "f", text("a"), text("b")), {"output": "a\nb"}),
        (result("1", "f", text("bad"), is_error=True), {"error": "bad"}),
        (result("1", "f"), {"output": ""}),
        (result("1", "f", text("x"), result_json='{"y":2.0}'), {"y": 2.0}),
    ],
)  # fmt: skip
def test_a_tool_result_is_encoded_as_an_object(answered: pb.Part, response: Json) -> None:
    encoded = contents(model(call("1", "f")), user(answered))
    assert encoded[1]["parts"][0]["functionResponse"]["response"] == response


def test_the_image_of_a_result_follows_it() -> None:
    image, called = pb.Part(media=IMAGE), model(call("1", "f"), call("2", "g"))
    assert contents(called, user(result("1", "f", image), result("2", "g", text("b"))))[1]["parts"] == [
        {"functionResponse": {"id": "1", "name": "f", "response": {"output": "The result is shown below."}}},
        {"functionResponse": {"id": "2", "name": "g", "response": {"output": "b"}}},
        SHOWN,
    ]
    own = result("1", "f", image, result_json="{}")
    assert contents(model(call("1", "f")), user(own))[1]["parts"] == [
        {"functionResponse": {"id": "1", "name": "f", "response": {}, "parts": [SHOWN]}}
    ]


def test_system_texts_are_joined_in_order_from_all_positions() -> None:
    request = pb.GenerateRequest(instructions=[text("a")], messages=[turn(pb.ROLE_SYSTEM, text("b")), user(text("hi"))])
    assert sent(request) == (
        {"systemInstruction": {"parts": [{"text": "a"}, {"text": "b"}]}, "contents": [{"role": "user", "parts": [{"text": "hi"}]}]},
        "",
    )  # fmt: skip
    request.messages.append(turn(pb.ROLE_DEVELOPER, text("c")))
    fields, report = sent(request)
    assert fields["systemInstruction"] == {"parts": [{"text": "a"}, {"text": "b"}, {"text": "c"}]}
    assert report == "messages.role=systemInstruction"


def test_a_system_text_alone_is_the_users_turn() -> None:
    fields, report = sent(pb.GenerateRequest(messages=[turn(pb.ROLE_SYSTEM, text("a"))]))
    assert (fields, report) == ({"contents": [{"role": "user", "parts": [{"text": "a"}]}]}, "instructions=a user turn")


def test_a_conversation_that_begins_with_calls_gets_a_users_turn() -> None:
    request = pb.GenerateRequest(messages=[model(text("so far"), call("1", "f")), user(result("1", "f", text("b")))])
    fields, report = sent(request)
    assert [each["role"] for each in fields["contents"]] == ["user", "model", "user"]
    assert fields["contents"][0] == FILLED
    assert report == "messages=a user's turn first"


def test_blank_turns_and_parts_are_left_out() -> None:
    encoded = contents(user(text("a")), model(text("")), user(text("b"), text("")))
    assert encoded == [{"role": "user", "parts": [{"text": "a"}, {"text": "b"}]}]


OWN = pb.ReasoningState(data="AAAA", format="native")


@pytest.mark.parametrize(
    ("to", "signs"),
    [
        ("gemini-3-pro", True),
        ("publishers/google/models/gemini-3.1-flash", True),
        ("famG-3-pro", True),
        ("gemini-2.5-pro", False),
        ("other", False),
    ],
)
def test_the_first_call_of_each_turn_has_a_signature_where_the_model_looks_for_it(to: str, signs: bool) -> None:
    encoded = contents(
        user(text("a")), model(call("0", "f")), user(result("0", "f"), text("b")),
        model(call("1", "f"), call("2", "f")), user(result("1", "f"), result("2", "f")),
        model(call("3", "f", state=OWN)), user(result("3", "f")), to=to,
    )  # fmt: skip
    signatures = [
        [part.get("thoughtSignature") for part in turn_["parts"]] for turn_ in encoded if turn_["role"] == "model"
    ]
    placeholder = "skip_thought_signature_validator" if signs else None
    assert signatures == [[placeholder], [placeholder, None], ["AAAA"]]


@pytest.mark.parametrize("arguments", ["", "  ", "{}"])
def test_a_call_without_arguments_has_none(arguments: str) -> None:
    assert contents(model(call("", "f", arguments)))[0]["parts"][0]["functionCall"]["args"] == {}


@pytest.mark.parametrize("arguments", ['{"a":', "[1]", "text"])
def test_arguments_that_are_no_object_do_not_fail_the_request(arguments: str) -> None:
    called = contents(model(call("", "f", arguments)))[0]["parts"][0]["functionCall"]
    assert called["args"] == {"raw_arguments": arguments}


NAMES = ["ok", "has space", "has_space", "1st", "ümlaut", "x" * 70, "x" * 71, "_1st", "dotted.name"]


def test_names_invalid_in_native_are_encoded_one_to_one_and_decoded_back() -> None:
    request = pb.GenerateRequest(
        messages=[user(text("hi")), model(call("1", NAMES[1])), user(result("1", ""))],
        tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=NAMES[3:4]),
    )
    request.tools.extend(pb.Tool(function=pb.FunctionTool(name=name)) for name in NAMES)
    fields, _ = sent(request)
    encoded = [declared["name"] for declared in fields["tools"][0]["functionDeclarations"]]
    assert len(set(encoded)) == len(NAMES)
    assert all(name.isascii() and len(name) <= 64 and " " not in name and not name[0].isdigit() for name in encoded)
    assert {name for name in NAMES if name in encoded} == {"ok", "has_space", "_1st", "dotted.name"}
    assert fields["contents"][1]["parts"][0]["functionCall"]["name"] == encoded[1]
    assert fields["contents"][2]["parts"][0]["functionResponse"]["name"] == encoded[1]
    assert fields["toolConfig"]["functionCallingConfig"]["allowedFunctionNames"] == [encoded[3]]
    parts = [{"functionCall": {"name": name, "args": {}}} for name in encoded]
    body = msgspec.json.encode({"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]})
    answer = NATIVE_FORMAT.decode_response(body, request, False).candidates[0].message
    assert [part.tool_call.name for part in answer.parts] == NAMES


def test_a_custom_tool_becomes_a_function_with_a_single_argument() -> None:
    request = pb.GenerateRequest(
        messages=[user(text("hi")), model(pb.Part(tool_call=pb.ToolCall(call_id="1", name="sql", text="select 1")))]
    )
    request.tools.add().custom.MergeFrom(pb.CustomTool(name="sql", description="d", format_json='{"type":"grammar"}'))
    fields, report = sent(request)
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert fields["tools"] == [
        {"functionDeclarations": [{"name": "sql", "description": "d", "parametersJsonSchema": schema}]}
    ]
    assert fields["contents"][1]["parts"][0]["functionCall"]["args"] == {"input": "select 1"}
    assert report == "custom=a function with one text, custom.format"
    for args, expected in (({"input": "select 2"}, "select 2"), ({"x": 1}, '{"x":1}')):
        part = {"functionCall": {"name": "sql", "args": args}}
        body = msgspec.json.encode({"candidates": [{"content": {"parts": [part]}}]})
        decoded_call = NATIVE_FORMAT.decode_response(body, request, False).candidates[0].message.parts[0].tool_call
        assert (decoded_call.WhichOneof("input"), decoded_call.text) == ("text", expected)


def test_a_schema_is_sent_unchanged_under_its_own_key() -> None:
    schema = '{"$defs":{"a":{"const":1.0}},"additionalProperties":false,"properties":{"title":{"$ref":"#/$defs/a"}}}'
    request = pb.GenerateRequest(
        tools=[pb.Tool(function=pb.FunctionTool(name="f", parameters_json=schema, strict=True))]
    )
    request.response_format.json_schema.MergeFrom(pb.JsonSchemaFormat(name="n", schema_json=schema, strict=True))
    body = NATIVE_FORMAT.encode_request(with_question(request), "m", False)
    assert body.body.count(schema.encode()) == 2
    fields = msgspec.json.decode(body.body)
    assert "parametersJsonSchema" in fields["tools"][0]["functionDeclarations"][0]
    assert fields["generationConfig"].keys() == {"responseMimeType", "responseJsonSchema"}
    assert body.report.header() == "strict, response_format.json_schema.name, response_format.json_schema.strict"


FUNCTION, SEARCH = pb.Tool(function=pb.FunctionTool(name="f")), pb.Tool(web_search=pb.WebSearchTool())
OTHER = pb.Tool(function=pb.FunctionTool(name="g"))
AUTO, NONE, REQUIRED, VALIDATED = (pb.TOOL_CHOICE_MODE_AUTO, pb.TOOL_CHOICE_MODE_NONE, pb.TOOL_CHOICE_MODE_REQUIRED, pb.TOOL_CHOICE_MODE_VALIDATED)  # fmt: skip
CHOICES = [
    (pb.ToolChoice(mode=AUTO), {"mode": "AUTO"}, ["f", "g"], ""),
    (pb.ToolChoice(mode=NONE), {"mode": "NONE"}, ["f", "g"], ""),
    (pb.ToolChoice(mode=REQUIRED), {"mode": "ANY"}, ["f", "g"], ""),
    (pb.ToolChoice(mode=REQUIRED, names=["f"]), {"mode": "ANY", "allowedFunctionNames": ["f"]}, ["f", "g"], ""),
    (pb.ToolChoice(mode=VALIDATED, names=["f"]), {"mode": "VALIDATED", "allowedFunctionNames": ["f"]}, ["f", "g"], ""),
    (pb.ToolChoice(mode=AUTO, names=["f"], allowed_tools=True), {"mode": "AUTO"}, ["f"], ""),
    (pb.ToolChoice(mode=REQUIRED, names=["web_search"]), None, ["f", "g"], "tool_choice"),
]


@pytest.mark.parametrize(("choice", "config", "offered", "report"), CHOICES)
def test_a_tool_choice_is_encoded_in_native_terms(
    choice: pb.ToolChoice, config: Json | None, offered: list[str], report: str
) -> None:
    fields, dropped = sent(pb.GenerateRequest(tools=[FUNCTION, SEARCH, OTHER], tool_choice=choice))
    assert [declared["name"] for declared in fields["tools"][0]["functionDeclarations"]] == offered
    assert fields.get("toolConfig", {}).get("functionCallingConfig") == config
    assert dropped == report


def test_a_tool_choice_without_functions_is_not_encoded() -> None:
    for mode, report in ((AUTO, ""), (REQUIRED, "tool_choice")):
        fields, dropped = sent(pb.GenerateRequest(tools=[SEARCH], tool_choice=pb.ToolChoice(mode=mode)))
        assert (fields["tools"], "toolConfig" in fields, dropped) == ([{"googleSearch": {}}], False, report)


def test_a_search_requested_by_an_option_is_encoded_as_a_tool() -> None:
    search_options = pb.SearchOptions(context_size="high", return_citations=False)
    fields, report = sent(pb.GenerateRequest(search=search_options))
    assert fields["tools"] == [{"googleSearch": {}}]
    assert report == "search.context_size, search.return_citations"
    assert "tools" not in sent(pb.GenerateRequest(search=pb.SearchOptions(mode=pb.SEARCH_MODE_OFF)))[0]


ENABLED, DISABLED, ADAPTIVE, BETWEEN = (pb.REASONING_MODE_ENABLED, pb.REASONING_MODE_DISABLED, pb.REASONING_MODE_ADAPTIVE, pb.REASONING_MODE_BETWEEN_TOOLS)  # fmt: skip


@dataclass(frozen=True)
class Thinking:
    options: pb.ReasoningOptions
    encoded: Json | None
    report: str = ""
    to: str = "m"


def reasoning(**fields: object) -> pb.ReasoningOptions:
    return pb.ReasoningOptions(**fields)


THINKING = [
    Thinking(reasoning(budget_tokens=0), {"thinkingBudget": 0}),
    Thinking(reasoning(budget_tokens=-1, include_thoughts=True), {"thinkingBudget": -1, "includeThoughts": True}),
    Thinking(reasoning(level="low", budget_tokens=5), {"thinkingLevel": "LOW"}, "reasoning.budget_tokens=level low"),
    Thinking(reasoning(effort="low", budget_tokens=5), {"thinkingBudget": 5}),
    Thinking(reasoning(effort="medium", level="high"), {"thinkingLevel": "HIGH"}),
    Thinking(reasoning(effort="medium"), {"thinkingBudget": 8192}, "reasoning.effort=budget 8192"),
    Thinking(reasoning(effort="none"), {"thinkingBudget": 0}, "reasoning.effort=budget 0"),
    Thinking(reasoning(effort="unheard"), None, "reasoning.effort"),
    Thinking(reasoning(effort="medium"), {"thinkingLevel": "MEDIUM"}, to="gemini-3-flash"),
    Thinking(reasoning(effort="max"), {"thinkingLevel": "HIGH"}, "reasoning.effort=level high", to="gemini-3-flash"),
    Thinking(reasoning(effort="none"), {"thinkingLevel": "MINIMAL"}, "reasoning.effort=level minimal", to="gemini-3-flash"),
    Thinking(reasoning(mode=DISABLED), {"thinkingLevel": "LOW"}, "reasoning.mode=level low", to="gemini-3-pro"),
    Thinking(reasoning(mode=DISABLED), {"thinkingBudget": 0}),
    Thinking(reasoning(mode=ENABLED, budget_tokens=2048), {"thinkingBudget": 2048, "includeThoughts": True}),
    Thinking(reasoning(mode=ENABLED, budget_tokens=2048, display="omitted"), {"thinkingBudget": 2048}),
    Thinking(reasoning(mode=ENABLED), {"thinkingBudget": -1, "includeThoughts": True}, "reasoning.mode=budget -1"),
    Thinking(reasoning(mode=ADAPTIVE), {"thinkingBudget": -1, "includeThoughts": True}),
    Thinking(reasoning(mode=ADAPTIVE), {"includeThoughts": True}, to="gemini-3-pro"),
    Thinking(reasoning(mode=BETWEEN), None, "reasoning.mode"),
    Thinking(reasoning(budget_tokens=9, summary="auto"), {"thinkingBudget": 9, "includeThoughts": True}),
    Thinking(reasoning(budget_tokens=9, summary="concise"), {"thinkingBudget": 9, "includeThoughts": True}, "reasoning.summary=auto"),
    Thinking(reasoning(budget_tokens=0, summary="auto"), {"thinkingBudget": 0}),
]  # fmt: skip


@pytest.mark.parametrize("case", THINKING, ids=lambda case: f"{case.options} to {case.to}".replace("\n", " "))
def test_reasoning_is_encoded_as_a_budget_or_a_level_and_never_both(case: Thinking) -> None:
    fields, report = sent(pb.GenerateRequest(reasoning=case.options), case.to)
    assert fields.get("generationConfig", {}).get("thinkingConfig") == case.encoded
    assert report == case.report


def test_media_are_encoded_with_their_actual_type() -> None:
    png = media(kind=pb.MEDIA_KIND_IMAGE, data=b"\x89PNG\r\n\x1a\n", detail="low")
    assert contents(user(png, media(kind=pb.MEDIA_KIND_IMAGE, uri="https://x.test/a.jpg")))[0]["parts"] == [
        {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}, "mediaResolution": {"level": "MEDIA_RESOLUTION_LOW"}},
        {"fileData": {"mimeType": "image/jpeg", "fileUri": "https://x.test/a.jpg"}},
    ]  # fmt: skip
    fields, report = sent(pb.GenerateRequest(messages=[user(png)]), "gemini-2.5-flash")
    assert "mediaResolution" not in fields["contents"][0]["parts"][0]
    assert report == "detail"


LABELS = [({"a": "b", "x_1": "y-2"}, {"a": "b", "x_1": "y-2"}, ""), ({"A": "b"}, None, "metadata"), ({"a": "b c", "d": "e"}, {"d": "e"}, "metadata"), ({"a": "x" * 64}, None, "metadata")]  # fmt: skip


@pytest.mark.parametrize(("metadata", "labels", "report"), LABELS)
def test_metadata_are_encoded_as_labels_if_valid(metadata: dict[str, str], labels: Json | None, report: str) -> None:
    fields, dropped = sent(pb.GenerateRequest(metadata=metadata))
    assert (fields.get("labels"), dropped) == (labels, report)


OPAQUE = pb.OpaquePart(format="messages", type="container_upload", json="{}")
REFUSED: dict[str, tuple[pb.GenerateRequest, str, str]] = {
    "an earlier response": (pb.GenerateRequest(previous_response_id="r"), "previous_response_id", "UNTRANSLATABLE"),
    "a prompt of the provider's": (pb.GenerateRequest(prompt_template=pb.PromptTemplate(prompt_id="p")), "prompt_template", "UNTRANSLATABLE"),
    "a foreign part": (pb.GenerateRequest(messages=[user(pb.Part(opaque=OPAQUE))]), "messages[0].parts[0]", "UNSUPPORTED_FIELD"),
    "a foreign tool": (pb.GenerateRequest(tools=[pb.Tool(opaque=OPAQUE)]), "tools[0]", "UNSUPPORTED_FIELD"),
    "a search of files": (pb.GenerateRequest(tools=[pb.Tool(file_search=pb.FileSearchTool())]), "tools[0]", "UNSUPPORTED_FIELD"),
    "a foreign choice": (pb.GenerateRequest(tools=[FUNCTION], tool_choice=pb.ToolChoice(opaque=OPAQUE)), "tool_choice", "UNSUPPORTED_FIELD"),
    "a file of another provider's": (pb.GenerateRequest(messages=[user(media(kind=pb.MEDIA_KIND_DOCUMENT, file_id="file-1"))]), "messages[0].parts[0]", "UNTRANSLATABLE"),
    "a call inside a result": (pb.GenerateRequest(messages=[user(result("1", "f", call("2", "g")))]), "messages[0].parts[0].tool_result.parts[0]", "UNTRANSLATABLE"),
    "a foreign part inside a result": (pb.GenerateRequest(messages=[user(result("1", "f", pb.Part(opaque=OPAQUE)))]), "messages[0].parts[0].tool_result.parts[0]", "UNSUPPORTED_FIELD"),
    "instructions that are an image": (pb.GenerateRequest(instructions=[media(kind=pb.MEDIA_KIND_IMAGE, data=b"x")]), "instructions[0]", "UNTRANSLATABLE"),
    "a sound inside a document": (pb.GenerateRequest(messages=[user(media(kind=pb.MEDIA_KIND_DOCUMENT, blocks=pb.DocumentBlocks(parts=[pb.Part(refusal=pb.RefusalPart())])))]), "messages[0].parts[0].media.blocks.parts[0]", "UNTRANSLATABLE"),
    "a part of no known kind": (pb.GenerateRequest(messages=[user(pb.Part())]), "messages[0].parts[0]", "UNSUPPORTED_FIELD"),
    "a turn of nobody": (pb.GenerateRequest(messages=[pb.Message(parts=[text("a")])]), "messages[0].role", "MISSING_FIELD"),
    "a schema that is none": (pb.GenerateRequest(tools=[pb.Tool(function=pb.FunctionTool(name="f", parameters_json='{}},"x":{'))]), "tools[0].function.parameters_json", "INVALID_FIELD"),
    "a form that is none": (pb.GenerateRequest(response_format=pb.ResponseFormat(json_schema=pb.JsonSchemaFormat(schema_json="{"))), "response_format.json_schema.schema_json", "INVALID_FIELD"),
    "a result that is none": (pb.GenerateRequest(messages=[user(result("1", "f", result_json="[1]"))]), "messages[0].parts[0].tool_result.result_json", "INVALID_FIELD"),
    "an own part that is none": (pb.GenerateRequest(messages=[user(pb.Part(opaque=pb.OpaquePart(format="native", json="}")))]), "messages[0].parts[0].opaque.json", "INVALID_FIELD"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_an_unsupported_part_that_changes_the_meaning_is_refused_by_its_canonical_path(name: str) -> None:
    request, path, reason = REFUSED[name]
    with raises_error(name=reason, metadata={"field": path}):
        NATIVE_FORMAT.encode_request(with_question(request), "theirs", False)


def test_an_indispensable_field_is_refused() -> None:
    request = with_question(pb.GenerateRequest(source=pb.SourceDocument(format="messages")))
    with raises_error(name="UNTRANSLATABLE", metadata={"field": "mcp_servers"}):
        NATIVE_FORMAT.encode_request(request, "theirs", False, notes=RequestNotes(indispensable=["mcp_servers"]))


def test_unknown_fields_are_reported() -> None:
    request = with_question(pb.GenerateRequest(source=pb.SourceDocument(format="chat")))
    upstream = NATIVE_FORMAT.encode_request(request, "m", False, notes=RequestNotes(uncarried=["a.b", "c"]))
    assert upstream.report.header() == "a.b, c"


REPORTED: dict[str, tuple[pb.GenerateRequest, str]] = {
    "options of other formats": (pb.GenerateRequest(logit_bias={"1": 1}, verbosity="low", user="u", truncation=pb.TRUNCATION_AUTO, prompt_cache_key="k", service_tier="auto"), "logit_bias, verbosity, prompt_cache_key, user, service_tier"),
    "one call at a time": (pb.GenerateRequest(parallel_tool_calls=False), "parallel_tool_calls"),
    "calls at once": (pb.GenerateRequest(parallel_tool_calls=True), ""),
    "a seed of 64 bits": (pb.GenerateRequest(seed=2**40), "seed"),
    "a name and a phase": (pb.GenerateRequest(messages=[pb.Message(role=pb.ROLE_USER, name="n", phase="p", message_id="i", parts=[text("a")])]), "phase, name"),
    "a refusal": (pb.GenerateRequest(messages=[model(pb.Part(refusal=pb.RefusalPart(text="no")))]), "refusal=text"),
    "a foreign search": (pb.GenerateRequest(messages=[model(text("a"), pb.Part(server_tool_call=pb.ServerToolCall(name="web_search", format="messages")), pb.Part(server_tool_result=pb.ServerToolResult(name="web_search")))]), "server_tool_call, server_tool_result"),
    "citations and cache marks": (pb.GenerateRequest(messages=[model(pb.Part(text=pb.TextPart(text="a", citations=[pb.Citation()]), cache_control=pb.CacheControl()))]), "cache_control, citations"),
    "search options": (pb.GenerateRequest(tools=[pb.Tool(web_search=pb.WebSearchTool(max_uses=3, allowed_domains=["a"], blocked_domains=["b"]))]), "max_uses, allowed_domains"),
    "a sound's format": (pb.GenerateRequest(audio_output=pb.AudioOutputOptions(format="mp3", voice_json='{"id":"v"}')), "audio_output.format, audio_output.voice_json"),
}  # fmt: skip


@pytest.mark.parametrize("name", REPORTED)
def test_options_without_a_field_in_native_are_dropped_and_reported(name: str) -> None:
    request, report = REPORTED[name]
    assert sent(request)[1] == report
