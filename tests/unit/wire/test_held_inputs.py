"""The memory of stream decoders for incomplete tool inputs is bounded, over all calls together."""

from collections.abc import Iterator
from dataclasses import dataclass

import msgspec
import pytest

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.streamed_text_buffers import MAX_INPUT_CHARACTERS

PIECE = "x" * 2**16
CUSTOM = pb.Tool(custom=pb.CustomTool(name="patch"))


def chat_chunk(index: int, function: dict[str, str], call_id: str | None = None) -> bytes:
    call = {"index": index, "function": function} | ({"id": call_id} if call_id else {})
    chunk = {"id": "c", "choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": None}]}
    return b"data: %b\n\n" % msgspec.json.encode(chunk)


def chat(name: str) -> Iterator[bytes]:
    for index in range(4):
        yield chat_chunk(index, {"name": name, "arguments": ""}, f"call_{index}")
    while True:
        for index in range(4):
            yield chat_chunk(index, {"arguments": PIECE})


def messages(block: dict[str, object]) -> Iterator[bytes]:
    def frame(event: dict[str, object]) -> bytes:
        return b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), msgspec.json.encode(event))

    yield frame({"type": "message_start", "message": {"id": "m", "role": "assistant", "content": []}})
    for index in range(4):
        yield frame({"type": "content_block_start", "index": index, "content_block": block | {"id": f"t{index}"}})
    while True:
        for index in range(4):
            delta = {"type": "input_json_delta", "partial_json": PIECE}
            yield frame({"type": "content_block_delta", "index": index, "delta": delta})


@dataclass(frozen=True)
class Endless:
    id: str
    format: str
    frames: Iterator[bytes]


ENDLESS = [
    Endless("chat, calls without a name", "chat", chat("")),
    Endless("chat, a custom tool as a function", "chat", chat("patch")),
    Endless("messages, a custom tool", "messages", messages({"type": "tool_use", "name": "patch", "input": {}})),
    Endless(
        "messages, a provider's own tool",
        "messages",
        messages({"type": "server_tool_use", "name": "web_search", "input": {}}),
    ),
]


@pytest.mark.parametrize("case", ENDLESS, ids=lambda case: case.id)
def test_a_stream_of_endless_inputs_fails(case: Endless) -> None:
    decoder = TEXT_FORMATS[case.format].translating_decoder(pb.GenerateRequest(model="m", tools=[CUSTOM]))
    fed = 0
    with pytest.raises(UmgError) as caught:
        for frame in case.frames:
            decoder.feed(frame)
            fed += len(PIECE)
            assert fed < 2 * MAX_INPUT_CHARACTERS
    assert caught.value.reason == pb.ERROR_REASON_UPSTREAM_FAILED
    assert caught.value.failure is Failure.TOO_LARGE
