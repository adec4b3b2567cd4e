"""Repair of passed-through streams with defects: the result does not depend on the cuts between reads."""

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.streams import decoded, frames_of
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS


def chat(delta: dict[str, Any], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c", "model": "m", "choices": [choice]}).encode() + b"\n\n"


def piece(arguments: str, call_id: str = "", index: int = 0) -> dict[str, Any]:
    start = {"id": call_id, "type": "function"} if call_id else {}
    function = ({"name": "look"} if call_id else {}) | {"arguments": arguments}
    return {"tool_calls": [{"index": index, **start, "function": function}]}


def chat_calls(*, indexes: tuple[int, int]) -> bytes:
    """Return a stream of two calls without a finish reason, with these indexes in it."""
    deltas = [
        {"role": "assistant", "content": None},
        *(piece(text, call_id, indexes[0]) for text, call_id in (("", "a"), ('{"x"', ""), (":1}", ""))),
        *(piece(text, call_id, indexes[1]) for text, call_id in (("", "b"), ('{"y"', ""), (":2}", ""))),
    ]
    return b"".join(map(chat, deltas)) + b"data: [DONE]\n\n"


CHAT_END = b'data: {"id":"c","created":0,"model":"m","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\n'  # fmt: skip


def named(kind: str, **members: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **members})}\n\n".encode()


def messages_blocks(*, indexes: tuple[int, int], ended: bool) -> bytes:
    """Return a stream of two blocks with these indexes. `ended`: whether the first has its end."""
    head = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": []}
    stream = named("message_start", message=head | {"usage": {"input_tokens": 1, "output_tokens": 1}})
    for index, content in zip(indexes, ("a", "b"), strict=True):
        stream += named("content_block_start", index=index, content_block={"type": "text", "text": ""})
        for _ in range(2):
            stream += named("content_block_delta", index=index, delta={"type": "text_delta", "text": content})
        stream += named("content_block_stop", index=index) if ended or content == "b" else b""
    stopped = {"stop_reason": "end_turn", "stop_sequence": None}
    return stream + named("message_delta", delta=stopped, usage={"output_tokens": 2}) + named("message_stop")


REPAIRED = {
    "chat": (
        chat_calls(indexes=(0, 0)),
        chat_calls(indexes=(0, 1)).replace(b"data: [DONE]", CHAT_END + b"data: [DONE]"),
    ),
    "messages": (messages_blocks(indexes=(0, 0), ended=False), messages_blocks(indexes=(0, 1), ended=True)),
}


@pytest.mark.parametrize("name", REPAIRED)
@given(st.lists(st.integers(1, 2000)))
def test_a_stream_is_repaired_however_it_is_cut(name: str, cuts: list[int]) -> None:
    stream, repaired = REPAIRED[name]
    places = sorted({0, len(stream), *(at for at in cuts if at < len(stream))})
    frames = [stream[start:end] for start, end in pairwise(places)]
    messages = decoded(TEXT_FORMATS[name], frames, pb.GenerateRequest(model="m"), pass_=True)
    assert _data(frames_of(messages)) == _data(repaired)


def _data(frames: bytes) -> list[Any]:
    return [json.loads(line[6:]) if line[6:] != b"[DONE]" else "[DONE]" for line in frames.splitlines() if line.startswith(b"data: ")]  # fmt: skip
