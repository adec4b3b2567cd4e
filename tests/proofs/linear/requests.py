"""Canonical requests that grow in one place."""

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from umg_grpc.v1 import pb

STATE = pb.ReasoningState(data="c2lnbmVk", format="native")
SCHEMA = '{"type":"object","properties":{"a":{"type":"string"}}}'


@dataclass(frozen=True)
class RequestGrowth:
    """One dimension in which a request grows."""

    id: str
    grow: Callable[[pb.GenerateRequest, int], object]
    """Function that enlarges a request of one turn."""
    size: int = 256
    """Smaller of the two sizes whose times are compared."""

    def request(self, size: int) -> pb.GenerateRequest:
        request = pb.GenerateRequest(model="m", max_output_tokens=100)
        self.grow(request, size)
        request.messages.append(_message(pb.ROLE_USER, "go on"))
        return request


def _message(role: "pb.Role.ValueType", text: str) -> pb.Message:
    return pb.Message(role=role, parts=[pb.Part(text=pb.TextPart(text=text))])


def _call(number: int, name: str = "f", call_id: str = "c") -> pb.Part:
    return pb.Part(
        tool_call=pb.ToolCall(call_id=f"{call_id}{number}" if call_id else "", name=name, arguments_json="{}")
    )


def _result(number: int, name: str = "f", call_id: str = "c") -> pb.Part:
    parts = [pb.Part(text=pb.TextPart(text="done"))]
    return pb.Part(tool_result=pb.ToolResult(call_id=f"{call_id}{number}" if call_id else "", name=name, parts=parts))


def _turns(request: pb.GenerateRequest, size: int) -> None:
    for _ in range(size // 2):
        request.messages.append(_message(pb.ROLE_USER, "ask"))
        request.messages.append(_message(pb.ROLE_ASSISTANT, "answer"))


def _turns_of_one_role(request: pb.GenerateRequest, size: int) -> None:
    request.messages.extend(_message(pb.ROLE_USER, "ask") for _ in range(size))


def _system_turns(request: pb.GenerateRequest, size: int) -> None:
    for _ in range(size // 2):
        request.messages.append(_message(pb.ROLE_SYSTEM, "rule"))
        request.messages.append(_message(pb.ROLE_USER, "ask"))


def _instructions(request: pb.GenerateRequest, size: int) -> None:
    request.instructions.extend(pb.Part(text=pb.TextPart(text="rule")) for _ in range(size))


def _parts(request: pb.GenerateRequest, size: int) -> None:
    message = request.messages.add(role=pb.ROLE_USER)
    message.parts.extend(pb.Part(text=pb.TextPart(text="ask")) for _ in range(size))


def _media(request: pb.GenerateRequest, size: int) -> None:
    image = pb.MediaPart(kind=pb.MEDIA_KIND_IMAGE, data=b"image", mime_type="image/png")
    request.messages.add(role=pb.ROLE_USER).parts.extend(pb.Part(media=image) for _ in range(size))


def _calls_together(request: pb.GenerateRequest, size: int) -> None:
    request.messages.append(_message(pb.ROLE_USER, "ask"))
    request.messages.add(role=pb.ROLE_ASSISTANT).parts.extend(_call(number) for number in range(size))
    request.messages.add(role=pb.ROLE_TOOL).parts.extend(_result(number) for number in range(size))


def _calls_in_turn(request: pb.GenerateRequest, size: int) -> None:
    request.messages.append(_message(pb.ROLE_USER, "ask"))
    for number in range(size):
        request.messages.add(role=pb.ROLE_ASSISTANT).parts.append(_call(number))
        request.messages.add(role=pb.ROLE_TOOL).parts.append(_result(number))


def _calls_without_ids(request: pb.GenerateRequest, size: int) -> None:
    request.messages.append(_message(pb.ROLE_USER, "ask"))
    request.messages.add(role=pb.ROLE_ASSISTANT).parts.extend(_call(0, f"f{number}", "") for number in range(size))
    results = request.messages.add(role=pb.ROLE_TOOL).parts
    results.extend(_result(0, f"f{number}", "") for number in reversed(range(size)))


def _results_out_of_order(request: pb.GenerateRequest, size: int) -> None:
    request.messages.append(_message(pb.ROLE_USER, "ask"))
    request.messages.add(role=pb.ROLE_ASSISTANT).parts.extend(_call(number) for number in range(size))
    for number in reversed(range(size)):
        request.messages.add(role=pb.ROLE_TOOL).parts.append(_result(number))


def _open_calls(request: pb.GenerateRequest, size: int) -> None:
    for number in range(size):
        request.messages.add(role=pb.ROLE_ASSISTANT).parts.append(_call(number))
        request.messages.append(_message(pb.ROLE_USER, "ask"))


def _parts_of_a_result(request: pb.GenerateRequest, size: int) -> None:
    request.messages.append(_message(pb.ROLE_USER, "ask"))
    request.messages.add(role=pb.ROLE_ASSISTANT).parts.append(_call(0))
    result = _result(0)
    result.tool_result.parts.extend(pb.Part(text=pb.TextPart(text="more")) for _ in range(size))
    request.messages.add(role=pb.ROLE_TOOL).parts.append(result)


def _tool(number: int, name: str = "tool_{}", schema: str = SCHEMA) -> pb.Tool:
    return pb.Tool(function=pb.FunctionTool(name=name.format(number), description="d", parameters_json=schema))


def _tools(request: pb.GenerateRequest, size: int) -> None:
    request.tools.extend(_tool(number) for number in range(size))


def _long_names(request: pb.GenerateRequest, size: int) -> None:
    request.tools.extend(_tool(number, "n" * 200 + "{}") for number in range(size))


def _alike_names(request: pb.GenerateRequest, size: int) -> None:
    letters = [chr(0x4E00 + number) for number in range(size)]
    request.tools.extend(_tool(0, f"name {letter}") for letter in letters)
    for letter in letters:
        request.messages.add(role=pb.ROLE_ASSISTANT).parts.append(_call(0, f"name {letter}"))


def _namespaces(request: pb.GenerateRequest, size: int) -> None:
    for number in range(size):
        tool = _tool(number % 7)
        tool.namespace.name, tool.namespace.description = f"space{number // 7}", "d"
        request.tools.append(tool)


def _allowed_tools(request: pb.GenerateRequest, size: int) -> None:
    request.tools.extend(_tool(number) for number in range(size))
    choice = request.tool_choice
    choice.mode, choice.allowed_tools = pb.TOOL_CHOICE_MODE_AUTO, True
    choice.names.extend(f"tool_{number}" for number in range(size))


def _wide_schema(request: pb.GenerateRequest, size: int) -> None:
    members = {f"p{number}": {"type": "string"} for number in range(size)}
    schema = {"type": "object", "properties": members, "required": list(members)}
    request.tools.append(_tool(0, schema=msgspec.json.encode(schema).decode()))


def _deep_schema(request: pb.GenerateRequest, size: int) -> None:
    schema = '{"type":"object","properties":{"a":' * size + '{"type":"string"}' + "}}" * size
    request.tools.append(_tool(0, schema=schema))


def _long_arguments(request: pb.GenerateRequest, size: int) -> None:
    request.messages.append(_message(pb.ROLE_USER, "ask"))
    call = _call(0)
    call.tool_call.arguments_json = '{"a":"' + "é\\n" * size + '"}'
    request.messages.add(role=pb.ROLE_ASSISTANT).parts.append(call)
    request.messages.add(role=pb.ROLE_TOOL).parts.append(_result(0))


def _long_text(request: pb.GenerateRequest, size: int) -> None:
    request.messages.append(_message(pb.ROLE_USER, 'é" \n' * size))


def _thoughts(request: pb.GenerateRequest, size: int) -> None:
    for _ in range(size):
        request.messages.append(_message(pb.ROLE_USER, "ask"))
        thought = pb.Part(reasoning=pb.ReasoningPart(texts=["hm"], summaries=["h"]), state=STATE)
        answer = pb.Part(text=pb.TextPart(text="answer"))
        request.messages.add(role=pb.ROLE_ASSISTANT).parts.extend([thought, answer])


def _citations(request: pb.GenerateRequest, size: int) -> None:
    cited = pb.TextPart(text="é text " * size)
    for number in range(size):
        page = pb.WebSource(url=f"https://pages.test/{number}")
        cited.citations.add(title="t", web=page, start_index=number, end_index=number + 3)
    request.messages.append(_message(pb.ROLE_USER, "ask"))
    request.messages.add(role=pb.ROLE_ASSISTANT).parts.append(pb.Part(text=cited))


def _searches(request: pb.GenerateRequest, size: int) -> None:
    request.messages.append(_message(pb.ROLE_USER, "ask"))
    message = request.messages.add(role=pb.ROLE_ASSISTANT)
    for number in range(size):
        call = pb.ServerToolCall(call_id=f"s{number}", name="web_search", queries=["q"], input_json='{"query":"q"}')
        found = [pb.SearchResult(url=f"https://pages.test/{number}", title="t")]
        result = pb.ServerToolResult(call_id=f"s{number}", name="web_search", results=found)
        message.parts.extend([pb.Part(server_tool_call=call), pb.Part(server_tool_result=result)])
    message.parts.add().text.text = "answer"


def _labels(request: pb.GenerateRequest, size: int) -> None:
    for number in range(size):
        request.metadata[f"k{number}"] = "v"


def _stops(request: pb.GenerateRequest, size: int) -> None:
    request.stop_sequences.extend(f"s{number}" for number in range(size))


def _bias(request: pb.GenerateRequest, size: int) -> None:
    for number in range(size):
        request.logit_bias[str(number)] = 1.0


GROWTHS = [
    RequestGrowth("turns", _turns),
    RequestGrowth("turns of one role", _turns_of_one_role),
    RequestGrowth("system turns between others", _system_turns),
    RequestGrowth("instructions", _instructions),
    RequestGrowth("parts of a turn", _parts),
    RequestGrowth("images", _media),
    RequestGrowth("tool calls of one turn", _calls_together),
    RequestGrowth("tool calls, a turn each", _calls_in_turn),
    RequestGrowth("tool calls without ids", _calls_without_ids),
    RequestGrowth("tool results in another order", _results_out_of_order),
    RequestGrowth("tool calls without results", _open_calls),
    RequestGrowth("parts of a tool result", _parts_of_a_result),
    RequestGrowth("tools", _tools),
    RequestGrowth("tools with long names", _long_names),
    RequestGrowth("tools with illegal names", _alike_names),
    RequestGrowth("tools in namespaces", _namespaces),
    RequestGrowth("allowed tools", _allowed_tools),
    RequestGrowth("members of a schema", _wide_schema),
    RequestGrowth("depth of a schema", _deep_schema, 48),
    RequestGrowth("characters of arguments", _long_arguments, 2**14),
    RequestGrowth("characters of a text", _long_text, 2**14),
    RequestGrowth("signed thoughts", _thoughts),
    RequestGrowth("citations", _citations),
    RequestGrowth("searches", _searches),
    RequestGrowth("labels", _labels),
    RequestGrowth("stop sequences", _stops),
    RequestGrowth("biased tokens", _bias),
]
