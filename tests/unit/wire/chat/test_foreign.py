"""Requests of other formats towards a provider of chat: a body that its API would refuse is adapted."""

import msgspec
import pytest

from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.responses import RESPONSES_FORMAT
from umg_grpc.wire.text_format_interface import TextFormat

USER = [{"role": "user", "content": "hi"}]


def text(words: str) -> pb.Part:
    return pb.Part(text=pb.TextPart(text=words))


def call(call_id: str, name: str) -> pb.Part:
    return pb.Part(tool_call=pb.ToolCall(call_id=call_id, name=name))


def result(call_id: str, name: str, *parts: pb.Part) -> pb.Part:
    return pb.Part(tool_result=pb.ToolResult(call_id=call_id, name=name, parts=parts))


def message(role: "pb.Role.ValueType", *parts: pb.Part) -> pb.Message:
    return pb.Message(role=role, parts=parts)


def foreign(source: str = "messages", **fields: object) -> tuple[dict[str, object], str]:
    """Return the body of a request that came in another format, without its model."""
    request = pb.GenerateRequest(source=pb.SourceDocument(format=source, body=b"{}"), **fields)
    if not request.messages:
        request.messages.add(role=pb.ROLE_USER).parts.add().text.text = "hi"
    upstream = CHAT_FORMAT.encode_request(request, "theirs", False)
    body = msgspec.json.decode(upstream.body)
    del body["model"]
    return body, upstream.report.header()


def thought(words: str) -> pb.Part:
    return pb.Part(reasoning=pb.ReasoningPart(summaries=[words]))


def called(call_id: str, name: str) -> dict[str, object]:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": "{}"}}


def test_turns_of_the_model_in_a_row_are_one_where_they_hold_calls() -> None:
    """Check items of responses, where each reasoning, text and call is an item of its own."""
    items = [
        message(pb.ROLE_ASSISTANT, thought("so")),
        message(pb.ROLE_ASSISTANT, text("let me see")),
        message(pb.ROLE_ASSISTANT, call("a", "f")),
        message(pb.ROLE_ASSISTANT, call("b", "g")),
        message(pb.ROLE_TOOL, result("a", "", text("1"))),
        message(pb.ROLE_TOOL, result("b", "", text("2"))),
        message(pb.ROLE_ASSISTANT, text("one")),
        message(pb.ROLE_ASSISTANT, text("two")),
    ]
    assert foreign("responses", messages=items)[0]["messages"] == [
        {"role": "assistant", "content": "let me see", "reasoning_content": "so", "tool_calls": [called("a", "f"), called("b", "g")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "assistant", "content": "one"},
        {"role": "assistant", "content": "two"},
    ]  # fmt: skip


def test_an_empty_turn_is_dropped() -> None:
    turns = [
        message(pb.ROLE_USER, text("hi")),
        message(pb.ROLE_ASSISTANT, thought("hm")),
        message(pb.ROLE_USER, text("well?")),
        message(pb.ROLE_ASSISTANT, text("")),
        message(pb.ROLE_ASSISTANT),
    ]
    body, report = foreign(messages=turns)
    assert body["messages"] == [{"role": "user", "content": "hi"}, {"role": "user", "content": "well?"}]
    assert report == "reasoning"


def test_media_of_the_reasoning_are_left_out() -> None:
    """Check the sketches of an image model, which native clients return among the reasoning."""
    sketch = pb.Part(
        media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=b"x", mime_type="image/png"),
        thought=True,
        state=pb.ReasoningState(format="native", data="s"),
    )
    turns = [
        message(pb.ROLE_USER, text("hi")),
        message(pb.ROLE_ASSISTANT, sketch, text("done")),
        message(pb.ROLE_ASSISTANT, sketch),
    ]
    body, report = foreign("native", messages=turns)
    assert body["messages"] == [*USER, {"role": "assistant", "content": "done"}]
    assert report == "thought x2"


LONG_ID = "x" * 65
DOTTED = pb.Tool(function=pb.FunctionTool(name="files.read"))


def test_names_and_ids_are_encoded_within_the_limits_of_providers() -> None:
    calls = message(pb.ROLE_ASSISTANT, call(LONG_ID, "files.read"), call("b", "gone.since"))
    results = message(pb.ROLE_USER, result(LONG_ID, "files.read", text("1")), result("b", "gone.since", text("2")))
    tools = [pb.Tool(function=pb.FunctionTool(name="files_read")), DOTTED, pb.Tool(custom=pb.CustomTool(name="y" * 70))]
    choice = pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=["files.read"])
    body, _ = foreign("native", messages=[calls, results], tools=tools, tool_choice=choice)
    assert [tool[tool["type"]]["name"] for tool in body["tools"]] == [
        "files_read",
        "files_read_2",
        f"{'y' * 55}_a76b8d19",
    ]
    assert body["tool_choice"] == {"type": "function", "function": {"name": "files_read_2"}}
    turn, first, second = body["messages"]
    assert [each["function"]["name"] for each in turn["tool_calls"]] == ["files_read_2", "gone_since"]
    assert [each["id"] for each in turn["tool_calls"]] == [first["tool_call_id"], second["tool_call_id"]]
    assert len(first["tool_call_id"]) == 64
    assert "name" not in first  # providers do not know `name` there


def test_a_tool_call_has_the_name_that_the_caller_declared() -> None:
    request = pb.GenerateRequest(model="m", tools=[DOTTED], source=pb.SourceDocument(format="native", body=b"{}"))
    calls = [{"index": 0, "id": "c", "type": "function", "function": {"name": "files_read", "arguments": "{}"}}]
    whole = {"choices": [{"message": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    answer = CHAT_FORMAT.decode_response(msgspec.json.encode(whole), request, False)
    assert answer.candidates[0].message.parts[0].tool_call.name == "files.read"
    chunk = {"choices": [{"delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}]}
    decoder = CHAT_FORMAT.translating_decoder(request)
    came = decoder.feed(b"data: " + msgspec.json.encode(chunk) + b"\n\n")
    assert came is not None
    assert [event.part_started.tool_call.name for event in came.events if event.HasField("part_started")] == [
        "files.read"
    ]


def document(data: bytes, mime: str, title: str = "") -> pb.Part:
    return pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_DOCUMENT, data=data, mime_type=mime, title=title))


def test_a_document_of_text_is_written_as_text() -> None:
    turn = message(pb.ROLE_USER, document(b"a,b", "text/csv", "Table"), document("ü".encode(), "text/plain"))
    assert foreign(messages=[turn])[0]["messages"][0]["content"] == [
        {"type": "text", "text": "Table\n\na,b"},
        {"type": "text", "text": "ü"},
    ]


JSON_FORMAT = pb.ResponseFormat(json=pb.JsonFormat())
REQUIRED = pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED)


@pytest.mark.parametrize(
    ("fields", "encoded", "report"),
    [
        ({"stop_sequences": list("abcde")}, {"stop": list("abcd")}, "stop_sequences=by the gateway"),
        ({"truncation": pb.TRUNCATION_DISABLED}, {}, ""),
        ({"truncation": pb.TRUNCATION_AUTO}, {}, ""),
        ({"top_logprobs": 3}, {"top_logprobs": 3, "logprobs": True}, ""),
        ({"parallel_tool_calls": True, "tool_choice": pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_AUTO)}, {}, ""),
        ({"tool_choice": REQUIRED}, {}, "tool_choice"),
        ({"reasoning": pb.ReasoningOptions(effort="low", budget_tokens=4915)}, {"reasoning_effort": "low"}, ""),
        ({"reasoning": pb.ReasoningOptions(level="high", mode=pb.REASONING_MODE_ADAPTIVE)}, {"reasoning_effort": "high"}, ""),
        ({"reasoning": pb.ReasoningOptions(mode=pb.REASONING_MODE_ADAPTIVE)}, {}, "reasoning.mode"),
    ],
    ids=repr,
)  # fmt: skip
def test_the_rules_of_the_format_apply_to_callers_of_other_formats(
    fields: dict[str, object], encoded: dict[str, object], report: str
) -> None:
    assert foreign(**fields) == ({"messages": USER} | encoded, report)


def test_json_output_is_requested_by_an_instruction_unless_the_prompt_has_one() -> None:
    question = message(pb.ROLE_USER, text("As JSON, please"))
    assert foreign(response_format=JSON_FORMAT, messages=[question])[0]["messages"] == [
        {"role": "user", "content": "As JSON, please"}
    ]
    encoded_messages = foreign(response_format=JSON_FORMAT)[0]["messages"]
    assert encoded_messages == [{"role": "system", "content": "Answer in JSON."}, *USER]


@pytest.mark.parametrize("model", ["famO-5", "gpt-5-mini", "openai/gpt-5.1", "o3", "o4-mini"])
def test_models_that_refuse_the_older_limit_field_get_the_newer(model: str) -> None:
    request = pb.GenerateRequest(messages=[message(pb.ROLE_USER, text("hi"))], max_output_tokens=9)
    for name, field in ((model, "max_completion_tokens"), ("gpt-4o", "max_tokens"), ("oss-3", "max_tokens")):
        body = msgspec.json.decode(CHAT_FORMAT.encode_request(request, name, False).body)
        assert body.keys() == {"model", "messages", field}


def test_results_without_their_calls_become_text_and_calls_without_a_result_are_given_one() -> None:
    turns = [
        message(pb.ROLE_USER, result("gone", "", text("0")), text("so?")),
        message(pb.ROLE_ASSISTANT, call("a", "f"), call("b", "f")),
        message(pb.ROLE_USER, result("b", "", text("2")), text("go on")),
        message(pb.ROLE_ASSISTANT, call("c", "f")),
    ]
    body, report = foreign(messages=turns)
    assert body["messages"] == [
        {"role": "user", "content": [{"type": "text", "text": "0"}, {"type": "text", "text": "so?"}]},
        {"role": "assistant", "content": None, "tool_calls": [called("a", "f"), called("b", "f")]},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "tool", "tool_call_id": "a", "content": "No result."},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": None, "tool_calls": [called("c", "f")]},
        {"role": "tool", "tool_call_id": "c", "content": "No result."},
    ]
    assert report == "tool_result=text, tool_call=without a result x2"


@pytest.mark.parametrize("role", [pb.ROLE_SYSTEM, pb.ROLE_DEVELOPER, pb.ROLE_USER], ids=pb.Role.Name)
def test_a_result_comes_before_the_turns_between_it_and_its_call(role: "pb.Role.ValueType") -> None:
    turns = [
        message(pb.ROLE_ASSISTANT, call("a", "f"), call("b", "f")),
        message(pb.ROLE_TOOL, result("a", "", text("1"))),
        message(role, text("meanwhile")),
        message(pb.ROLE_TOOL, result("b", "", text("2"))),
        message(pb.ROLE_USER, text("go on")),
        message(pb.ROLE_ASSISTANT, text("done")),
    ]
    body, report = foreign("responses", messages=turns)
    named = {pb.ROLE_SYSTEM: "system", pb.ROLE_DEVELOPER: "developer", pb.ROLE_USER: "user"}[role]
    assert body["messages"] == [
        {"role": "assistant", "content": None, "tool_calls": [called("a", "f"), called("b", "f")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": named, "content": "meanwhile"},
        {"role": "user", "content": "go on"},
        {"role": "assistant", "content": "done"},
    ]
    assert report == ""


@pytest.mark.parametrize("role", [pb.ROLE_TOOL, pb.ROLE_USER], ids=pb.Role.Name)
def test_a_result_without_its_call_becomes_text_of_the_user(role: "pb.Role.ValueType") -> None:
    turns = [
        message(pb.ROLE_USER, text("hi")),
        message(role, result("gone", "", text("0"))),
        message(pb.ROLE_USER, text("so?")),
    ]
    body, report = foreign(messages=turns)
    assert body["messages"] == [
        {"role": "user", "content": "hi"},
        {"role": "user", "content": [{"type": "text", "text": "0"}, {"type": "text", "text": "so?"}]},
    ]
    assert report == "tool_result=text"


def test_the_text_of_a_result_without_its_call_stays_behind_the_results_of_open_calls() -> None:
    turns = [
        message(pb.ROLE_ASSISTANT, call("a", "f"), call("b", "f")),
        message(pb.ROLE_TOOL, result("a", "", text("1"))),
        message(pb.ROLE_TOOL, result("gone", "", text("0"))),
        message(pb.ROLE_TOOL, result("b", "", text("2"))),
        message(pb.ROLE_ASSISTANT, text("done")),
    ]
    body, _ = foreign("messages", messages=turns)
    assert body["messages"] == [
        {"role": "assistant", "content": None, "tool_calls": [called("a", "f"), called("b", "f")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
        {"role": "user", "content": "0"},
        {"role": "assistant", "content": "done"},
    ]


@pytest.mark.parametrize("target", [CHAT_FORMAT, RESPONSES_FORMAT], ids=lambda target: target.name)
@pytest.mark.parametrize("role", [pb.ROLE_TOOL, pb.ROLE_USER], ids=pb.Role.Name)
def test_a_result_without_its_call_alone_is_a_message_of_the_user(
    role: "pb.Role.ValueType", target: TextFormat
) -> None:
    source = pb.SourceDocument(format="messages", body=b"{}")
    request = pb.GenerateRequest(source=source, messages=[message(role, result("gone", "", text("0")))])
    encoded = target.encode_request(request, "theirs", False)
    body = msgspec.json.decode(encoded.body)
    if target is CHAT_FORMAT:
        assert body["messages"] == [{"role": "user", "content": "0"}]
    else:
        content = [{"type": "input_text", "text": "0"}]
        assert body["input"] == [{"type": "message", "role": "user", "content": content}]
    assert encoded.report.header() == "tool_result=text"


def test_results_keep_their_calls_however_turns_are_cut() -> None:
    picture = pb.Part(media=pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, uri="https://images.test/a.png"))
    turns = [
        message(pb.ROLE_ASSISTANT, call("a", "f")),
        message(pb.ROLE_ASSISTANT, call("b", "f")),
        message(pb.ROLE_TOOL, result("a", "", picture)),
        message(pb.ROLE_TOOL, result("b", "", text("2"))),
        message(pb.ROLE_ASSISTANT, call("c", "f")),
        message(pb.ROLE_USER, result("c", "", text("3"))),
    ]
    body, report = foreign(messages=turns)
    assert [turn["role"] for turn in body["messages"]] == ["assistant", "tool", "tool", "user", "assistant", "tool"]
    assert report == ""
