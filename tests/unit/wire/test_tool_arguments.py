"""Text that a model wrote as arguments, which may be anything: formats whose arguments are an object get one object."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.wire.laws import modest
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core.tool_argument_objects import call_arguments, free_text

REQUEST = pb.GenerateRequest(model="m")
WRITTEN = {
    "": {}, " \n": {}, "{}": {}, '{"a":1.0}': {"a": 1.0}, ' {"a":1}\n': {"a": 1}, "[1]": {"raw_arguments": "[1]"}, ' "x"': {"raw_arguments": ' "x"'},
    "null": {"raw_arguments": "null"}, "x": {"raw_arguments": "x"}, "\xa0": {"raw_arguments": "\xa0"}, "\xa0{}": {"raw_arguments": "\xa0{}"},
}  # fmt: skip
CUT_OFF = {'{"a": ': {"raw_arguments": '{"a": '}, "{} {}": {"raw_arguments": "{} {}"}}


@pytest.mark.parametrize("text", WRITTEN | CUT_OFF, ids=repr)
def test_any_arguments_of_a_model_become_an_object(text: str) -> None:
    encoded = msgspec.json.encode(call_arguments(pb.ToolCall(arguments_json=text)))
    assert msgspec.json.decode(encoded) == (WRITTEN | CUT_OFF)[text]


def test_the_text_of_a_custom_call_survives_encoding_and_decoding() -> None:
    assert call_arguments(pb.ToolCall(text="")) == {"input": ""}
    assert free_text('{"input": "a"}') == "a"
    assert free_text('{"input": 1}') == '{"input": 1}'


def whole(face: str, text: str) -> object:
    """Return the arguments in an unstreamed answer."""
    response = pb.GenerateResponse(response_id="r", model="m")
    call = pb.ToolCall(call_id="c", name="f", arguments_json=text)
    response.candidates.add(message=pb.Message(role=pb.ROLE_ASSISTANT, parts=[pb.Part(tool_call=call)]))
    body = msgspec.json.decode(TEXT_FORMATS[face].encode_response(response, REQUEST))
    if face == "messages":
        return body["content"][0]["input"]
    return body["candidates"][0]["content"]["parts"][0]["functionCall"]["args"]


def streamed(face: str, pieces: list[str]) -> object:
    """Return the arguments as a client aggregates them."""
    started = pb.Part(tool_call=pb.ToolCall(call_id="c", name="f", arguments_json=""))
    events = [
        pb.GenerateEvent(started=pb.GenerationStarted(response_id="r", model="m")),
        pb.GenerateEvent(part_started=started),
        *(pb.GenerateEvent(arguments_delta=piece) for piece in pieces),
        pb.GenerateEvent(part_ended=pb.PartEnded()),
    ]
    encoder = TEXT_FORMATS[face].stream_encoder(REQUEST)
    stream = b"".join(encoder.feed(pb.StreamGenerateResponse(events=[event])) for event in events) + encoder.close()
    sent_events = [msgspec.json.decode(frame.partition(b"data: ")[2]) for frame in stream.split(b"\n\n")[:-1]]
    if face == "messages":
        deltas = [event["delta"]["partial_json"] for event in sent_events if event["type"] == "content_block_delta"]
        return msgspec.json.decode("".join(deltas) or "{}")
    parts = [line["candidates"][0]["content"]["parts"][0] for line in sent_events]
    return next(part["functionCall"]["args"] for part in parts if "functionCall" in part)


@pytest.mark.parametrize("face", ["messages", "native"])
@pytest.mark.parametrize("text", WRITTEN, ids=repr)
def test_arguments_are_encoded_equally_streamed_or_not(face: str, text: str) -> None:
    for pieces in ([text], list(text)):
        assert streamed(face, pieces) == whole(face, text) == WRITTEN[text]


@modest
@given(st.text().filter(lambda text: not text.lstrip(" \t\r\n").startswith("{")), st.integers(0, 9))
def test_arguments_that_are_no_object_are_encoded_equally_however_they_are_cut(text: str, place: int) -> None:
    assert streamed("messages", [text[:place], text[place:]]) == whole("messages", text)
