"""The older `functions` of chat, which have no custom tools: one is declared as a function, and called back as a tool."""

import msgspec
import pytest

from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.streams import decoded
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT_FORMAT

SHELL = pb.CustomTool(name="sh", description="Runs it", format_json='{"type": "grammar"}')
CALLED = pb.ToolCall(name="sh", text='say "a"')
REQUEST = pb.GenerateRequest(
    model="m",
    face_hints=pb.FaceHints(legacy_functions=True),
    tools=[pb.Tool(custom=SHELL)],
    tool_choice=pb.ToolChoice(mode=pb.TOOL_CHOICE_MODE_REQUIRED, names=["sh"]),
    messages=[
        pb.Message(role=pb.ROLE_USER, parts=[pb.Part(text=pb.TextPart(text="hi"))]),
        pb.Message(role=pb.ROLE_ASSISTANT, parts=[pb.Part(tool_call=CALLED)]),
        pb.Message(role=pb.ROLE_TOOL, parts=[pb.Part(tool_result=pb.ToolResult(name="sh", result_json="1"))]),
    ],
)


def test_a_custom_tool_is_encoded_as_a_function_with_one_text() -> None:
    upstream = CHAT_FORMAT.encode_request(REQUEST, "theirs", False)
    body = msgspec.json.decode(upstream.body)
    schema = {"type": "object", "properties": {"input": {"type": "string"}}, "required": ["input"]}
    assert body["functions"] == [{"name": "sh", "description": "Runs it", "parameters": schema}]
    assert body["function_call"] == {"name": "sh"}
    assert body["messages"][1]["function_call"] == {"name": "sh", "arguments": '{"input":"say \\"a\\""}'}
    assert upstream.report.header() == "custom=a function with one text, custom.format"


@pytest.mark.parametrize(
    ("arguments", "text"), [('{"input": "a\\nb"}', "a\nb"), ("plain", "plain"), ('{"input": 1}', '{"input": 1}')]
)
def test_its_call_has_free_text_again_streamed_or_not(arguments: str, text: str) -> None:
    whole = {
        "choices": [{"message": {"function_call": {"name": "sh", "arguments": arguments}}, "finish_reason": "stop"}]
    }
    answer = CHAT_FORMAT.decode_response(msgspec.json.encode(whole), REQUEST, False)
    half = len(arguments) // 2
    deltas = [{"name": "sh", "arguments": ""}, {"arguments": arguments[:half]}, {"arguments": arguments[half:]}]
    chunks = [{"choices": [{"delta": {"function_call": delta}}]} for delta in deltas]
    chunks.append({"choices": [{"delta": {}, "finish_reason": "function_call"}]})
    frames = [b"data: " + msgspec.json.encode(chunk) + b"\n\n" for chunk in chunks]
    for candidate in (answer.candidates[0], accumulate(decoded(CHAT_FORMAT, frames, REQUEST)).candidates[0]):
        assert candidate.message.parts[0].tool_call == pb.ToolCall(name="sh", text=text)
