"""Tool calls of the sandbox: the chosen tools, and their arguments."""

import json
from dataclasses import dataclass, field

import pytest

from tests.unit.umg_sandbox.sandbox_calls import (
    assistant,
    called,
    function,
    generate,
    make_request,
    refused,
    result,
    stream,
    text,
    user,
)
from umg_grpc.v1 import pb

REQUIRED = pb.TOOL_CHOICE_MODE_REQUIRED
AUTO = pb.TOOL_CHOICE_MODE_AUTO
NONE = pb.TOOL_CHOICE_MODE_NONE
WEATHER = '{"type":"object","properties":{"city":{"type":"string"}},"required":["city"],"additionalProperties":false}'
TOOLS = [function("get_weather", WEATHER), function("get_time"), function("maps.find")]


@dataclass(frozen=True)
class Case:
    id: str
    text: str
    calls: list[str]
    choice: pb.ToolChoice | None = None
    fields: dict[str, object] = field(default_factory=dict)


CASES = [
    Case(id="no tool is named", text="What is up?", calls=[]),
    Case(id="the tool that the text names", text="Please use get_weather for Rome", calls=["get_weather"]),
    Case(id="two named tools, in the order of the text", text="get_time, then get_weather.", calls=["get_time", "get_weather"]),
    Case(id="a name with a dot", text="ask maps.find.", calls=["maps.find"]),
    Case(id="a part of a word", text="forget_weather get_weathers my-get_time", calls=[]),
    Case(id="named twice", text="get_time and get_time", calls=["get_time"]),
    Case(id="no parallel calls", text="get_time, then get_weather", calls=["get_time"], fields={"parallel_tool_calls": False}),
    Case(id="parallel calls", text="get_time, then get_weather", calls=["get_time", "get_weather"], fields={"parallel_tool_calls": True}),
    Case(id="none", text="get_time", calls=[], choice=pb.ToolChoice(mode=NONE)),
    Case(id="forced", text="Hi", calls=["get_time"], choice=pb.ToolChoice(mode=REQUIRED, names=["get_time"])),
    Case(id="forced, while another is named", text="get_weather", calls=["get_time"], choice=pb.ToolChoice(mode=REQUIRED, names=["get_time"])),
    Case(id="required", text="Hi", calls=["get_weather"], choice=pb.ToolChoice(mode=REQUIRED)),
    Case(id="required, and named", text="get_time", calls=["get_time"], choice=pb.ToolChoice(mode=REQUIRED)),
    Case(id="required among some", text="get_weather", calls=["get_time"], choice=pb.ToolChoice(mode=REQUIRED, names=["get_time", "maps.find"])),
    Case(id="allowed among some", text="get_weather and get_time", calls=["get_time"], choice=pb.ToolChoice(mode=AUTO, names=["get_time"])),
    Case(id="one function of the older form", text="get_time, get_weather", calls=["get_time"], fields={"face_hints": pb.FaceHints(legacy_functions=True)}),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_tools_named_in_the_prompt_are_called(case: Case) -> None:
    answer = generate(make_request(case.text, tools=TOOLS, tool_choice=case.choice, **case.fields))
    assert [call.name for call in answer.calls] == case.calls
    assert answer.finish == ("TOOL_CALLS" if case.calls else "STOP")
    assert ("text" in answer.kinds) != bool(case.calls)


def test_arguments_fit_the_schema_and_take_words_of_the_prompt() -> None:
    [call] = generate(make_request("use get_weather for Paris", tools=TOOLS)).calls
    assert json.loads(call.arguments_json) == {"city": "Paris"}


REMINDER = (
    '<system-reminder>\nUse Bash, Read and Edit. Never run `rm -rf build`. Ask for "move permission to user settings".\n'
    "</system-reminder>"
)
ENVIRONMENT = "<environment_context>\n<cwd>/work/repo</cwd> get_time is disabled, 17 files\n</environment_context>"
BASH = {
    "type": "object",
    "properties": {
        "command": {"type": "string"},
        "timeout": {"type": "integer"},
        "description": {"type": "string"},
        "sandbox_permissions": {"enum": ["use_default", "require_escalated"]},
    },
    "required": ["command"],
}
AGENT_TOOLS = [*TOOLS, function("Bash", json.dumps(BASH)), function("Read"), function("Edit")]


@dataclass(frozen=True)
class Turn:
    id: str
    before: list[pb.Message]
    last: list[str | pb.Part]

    def with_question(self, question: str) -> pb.GenerateRequest:
        return make_request(*self.before, user(*self.last, question), tools=AGENT_TOOLS)


TURNS = [
    Turn("reminders in the same message", [], [REMINDER, ENVIRONMENT]),
    Turn("reminders in messages before it", [user(REMINDER), user(ENVIRONMENT)], []),
    Turn("both", [user(ENVIRONMENT)], [REMINDER]),
    Turn("an earlier turn", [user("Use Bash with \"make all\"."), assistant("Done.")], [REMINDER]),
    Turn("instructions among the messages", [user("Hi"), assistant("Hi"), pb.Message(role=pb.ROLE_SYSTEM, parts=[text(REMINDER)])], []),
]  # fmt: skip


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.id)
def test_context_that_agents_add_before_the_question_calls_no_tools(turn: Turn) -> None:
    answer = generate(turn.with_question("What is a cat?"))
    assert (answer.calls, answer.finish) == ([], "STOP")
    assert "You said: What is a cat?\n" in answer.text
    assert "reminder" not in answer.text.partition("You said")[2].partition("My instructions")[0]


@pytest.mark.parametrize("context", [REMINDER, ENVIRONMENT, f"{ENVIRONMENT}\n{REMINDER}"])
def test_context_inside_the_text_of_the_question_is_left_out(context: str) -> None:
    for question in (f"{context}\nWhat is a cat?", f"What is a cat?\n{context}", f"{context}What is a cat?{context}"):
        answer = generate(make_request(question, tools=AGENT_TOOLS))
        assert answer.calls == []
        assert "You said: What is a cat?\n" in answer.text
        assert not {"reminder", "disabled", "permission"} & set(answer.text.split())


def test_a_block_without_an_end_is_part_of_the_question() -> None:
    assert "You said: <system-reminder> a cat?" in generate(make_request("<system-reminder> a cat?")).text


@pytest.mark.parametrize("turn", TURNS, ids=lambda turn: turn.id)
def test_a_command_is_read_from_the_question_alone(turn: Turn) -> None:
    [call] = generate(turn.with_question('Use Bash to run "ls src".')).calls
    assert (call.name, json.loads(call.arguments_json)) == ("Bash", {"command": "ls src"})


@pytest.mark.parametrize("name", ["cmd", "command", "script", "code"])
def test_a_forced_tool_makes_no_command_of_context_or_results(name: str) -> None:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    forced = pb.ToolChoice(mode=REQUIRED, names=["sh"])
    history = [user("?"), assistant(called("sh")), user(result("delete everything"))]
    for request in (
        make_request(user(REMINDER, "?"), tools=[function("sh", json.dumps(schema))], tool_choice=forced),
        make_request(*history, tools=[function("sh", json.dumps(schema))], tool_choice=forced),
        make_request(
            "?", tools=[function("sh", json.dumps(schema))], tool_choice=forced, instructions=[text(REMINDER)]
        ),
        make_request(assistant("delete everything"), tools=[function("sh", json.dumps(schema))], tool_choice=forced),
    ):
        [call] = generate(request).calls
        assert json.loads(call.arguments_json) == {name: "simulated"}


def test_a_custom_tool_takes_its_text_from_the_question_alone() -> None:
    [call] = generate(
        make_request(user(REMINDER, 'run "select all"'), tools=[pb.Tool(custom=pb.CustomTool(name="run"))])
    ).calls
    assert set(call.text.split()) == {"select", "all"}


def test_optional_arguments_are_filled_where_the_question_names_them() -> None:
    [call] = generate(make_request('Use Bash to run "ls src" with a Timeout of 30.', tools=AGENT_TOOLS)).calls
    assert json.loads(call.arguments_json) == {"command": "ls src", "timeout": 30}
    nested = {"type": "object", "properties": {"inner": {"type": "object", "properties": BASH["properties"]}}, "required": ["inner"]}  # fmt: skip
    [call] = generate(make_request("f of Rome, with a description", tools=[function("f", json.dumps(nested))])).calls
    assert json.loads(call.arguments_json) == {"inner": {"description": "Rome"}}


def test_a_tool_without_parameters_is_called_with_an_empty_object() -> None:
    [call] = generate(make_request("get_time", tools=TOOLS)).calls
    assert call.arguments_json == "{}"


def test_parallel_calls_and_calls_of_later_turns_have_different_ids() -> None:
    first = generate(make_request("get_time and get_weather", tools=TOOLS))
    ids = [call.call_id for call in first.calls]
    history = [user("get_time and get_weather"), assistant(*first.parts), user(*(result("x", each) for each in ids))]
    again = generate(make_request(*history, tools=TOOLS, tool_choice=pb.ToolChoice(mode=REQUIRED)))
    ids += [call.call_id for call in again.calls]
    assert len(set(ids)) == 4
    assert all(each.replace("_", "").isalnum() for each in ids)


def test_a_legacy_function_is_called_without_an_id() -> None:
    [call] = generate(make_request("get_time", tools=TOOLS, face_hints=pb.FaceHints(legacy_functions=True))).calls
    assert call.call_id == ""


@pytest.mark.parametrize("role", [pb.ROLE_USER, pb.ROLE_TOOL])
def test_the_answer_to_a_tool_result_is_text_even_if_the_prompt_names_a_tool(role: "pb.Role.ValueType") -> None:
    returned = pb.Message(role=role, parts=[result("18 degrees")])
    answer = generate(make_request("use get_weather", assistant(called("get_weather")), returned, tools=TOOLS))
    assert (answer.calls, answer.finish) == ([], "STOP")
    assert "The tool get_weather gave: 18 degrees" in answer.text


def test_a_forced_tool_is_called_also_after_a_result() -> None:
    history = [user("Hi"), assistant(called("get_time")), user(result("noon"))]
    answer = generate(make_request(*history, tools=TOOLS, tool_choice=pb.ToolChoice(mode=REQUIRED, names=["get_time"])))
    assert [call.name for call in answer.calls] == ["get_time"]


def test_the_next_question_after_a_result_may_name_a_tool_again() -> None:
    history = [user("Hi"), assistant(called("get_time")), user(result("noon")), assistant("noon"), user("get_weather")]
    assert [call.name for call in generate(make_request(*history, tools=TOOLS)).calls] == ["get_weather"]


def test_the_json_of_a_result_without_parts_is_in_the_answer() -> None:
    returned = pb.Part(tool_result=pb.ToolResult(name="get_time", result_json='{"output":"noon"}'))
    assert '{"output":"noon"}' in generate(make_request("Hi", assistant(called("get_time", "")), user(returned))).text


def test_a_custom_tool_gets_text() -> None:
    plain = pb.Tool(custom=pb.CustomTool(name="run"))
    [call] = generate(make_request('run "select all"', tools=[plain])).calls
    assert call.WhichOneof("input") == "text"
    assert "select all" in call.text


def test_a_custom_tool_gets_text_of_its_grammar() -> None:
    grammar = json.dumps({"type": "grammar", "syntax": "regex", "definition": r"^[A-Z]{3}-\d{2}$"})
    [call] = generate(make_request("run", tools=[pb.Tool(custom=pb.CustomTool(name="run", format_json=grammar))])).calls
    assert call.text[:3].isupper()
    assert (call.text[3], call.text[4:].isdigit(), len(call.text)) == ("-", True, 6)


def test_arguments_fit_a_schema_of_the_native_subset() -> None:
    schema = '{"type":"OBJECT","properties":{"type":{"type":"STRING","enum":["A","B"]},"n":{"type":"INTEGER","nullable":true}},"required":["type","n"]}'
    [call] = generate(make_request("f", tools=[function("f", schema, native=True)])).calls
    made = json.loads(call.arguments_json)
    assert made["type"] in ("A", "B")
    assert made["n"] is None or isinstance(made["n"], int)


def test_a_call_that_exceeds_the_token_limit_is_left_out() -> None:
    answer = generate(make_request("get_time and get_weather", tools=TOOLS, max_output_tokens=3))
    assert ([call.name for call in answer.calls], answer.finish) == (["get_time"], "TOOL_CALLS")
    answer = generate(make_request("get_time", tools=TOOLS, max_output_tokens=2))
    assert (answer.parts, answer.finish, answer.usage.output_tokens) == ([], "LENGTH", 0)


def test_streamed_calls_are_those_of_the_whole_answer() -> None:
    request = make_request("get_time and get_weather of Paris", tools=TOOLS)
    assert stream(request).calls == generate(request).calls


def test_a_request_with_a_thousand_tools_and_a_long_prompt_is_answered() -> None:
    tools = [function(f"tool_{number}", WEATHER) for number in range(1000)]
    answer = generate(make_request("blah " * 100_000 + "tool_777", tools=tools))
    assert [call.name for call in answer.calls] == ["tool_777"]


@dataclass(frozen=True)
class Rejection:
    id: str
    request: pb.GenerateRequest
    reason: "pb.ErrorReason.ValueType"
    field: str


REJECTIONS = [
    Rejection(
        id="a choice of a tool that is not there",
        request=make_request("Hi", tools=TOOLS, tool_choice=pb.ToolChoice(mode=REQUIRED, names=["other"])),
        reason=pb.ERROR_REASON_INVALID_FIELD,
        field="tool_choice.names[0]",
    ),
    Rejection(
        id="a required tool where there is none",
        request=make_request("Hi", tool_choice=pb.ToolChoice(mode=REQUIRED)),
        reason=pb.ERROR_REASON_INVALID_FIELD,
        field="tool_choice",
    ),
    Rejection(
        id="a choice that only its format has",
        request=make_request("Hi", tools=TOOLS, tool_choice=pb.ToolChoice(opaque=pb.OpaquePart(format="responses", type="mcp", json="{}"))),
        reason=pb.ERROR_REASON_UNSUPPORTED_FIELD,
        field="tool_choice",
    ),
    Rejection(
        id="a schema that is no JSON",
        request=make_request("f", tools=[function("g"), function("f", "{")]),
        reason=pb.ERROR_REASON_INVALID_FIELD,
        field="tools[1].function.parameters_json",
    ),
    Rejection(
        id="a schema that is a list",
        request=make_request("f", tools=[function("f", "[]")]),
        reason=pb.ERROR_REASON_INVALID_FIELD,
        field="tools[0].function.parameters_json",
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", REJECTIONS, ids=lambda case: case.id)
def test_a_contradictory_request_is_refused_by_the_path_of_its_field(case: Rejection) -> None:
    error = refused(case.request)
    assert (error.reason, error.metadata["field"]) == (case.reason, case.field)
