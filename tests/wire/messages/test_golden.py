"""Whole bodies and streams of real kinds of traffic, one directory a case, read and written by the codec.

`request.json`, `response.json` and `stream.sse` are what callers and providers send. What the codec makes of them stands beside them:
`X.txtpb` (canonical), `upstream.json` and `rebuilt.json` (what a provider gets without and with the source), `face.json` and `face.sse`
(what a caller of the canonical answer gets). `python -m tests.wire.messages.test_golden` writes those anew, to be reviewed as a diff.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message

from tests.wire.messages.streams import decoded, encoded, whole
from umg_grpc.v1 import pb
from umg_grpc.wire.messages import MESSAGES

HERE = Path(__file__).parent
CASES = sorted(path.name for path in HERE.iterdir() if any(path.glob("*.json")) or any(path.glob("*.sse")))
STREAMED = [case for case in CASES if (HERE / case / "stream.sse").exists()]
PUBLIC = pb.GenerateRequest(model="public")


def text(message: Message) -> str:
    return text_format.MessageToString(message, as_utf8=True)


def pretty(body: bytes) -> str:
    return msgspec.json.format(body, indent=2).decode() + "\n"


def made(case: str) -> Iterator[tuple[str, str]]:
    """(file, content) of all that the codec makes of the case."""
    if (HERE / case / "request.json").exists():
        request, stream = MESSAGES.decode_request((HERE / case / "request.json").read_bytes(), {})
        rebuilt = MESSAGES.encode_request(request, "theirs", stream)
        yield "rebuilt.json", pretty(rebuilt.body) + rebuilt.report.header() + "\n"
        request.source.body = b""
        yield "request.txtpb", text(request)
        request.ClearField("source")
        upstream = MESSAGES.encode_request(request, "theirs", stream)
        yield "upstream.json", pretty(upstream.body) + upstream.report.header() + "\n"
    if (HERE / case / "response.json").exists():
        response = MESSAGES.decode_response((HERE / case / "response.json").read_bytes(), PUBLIC, False)
        yield "response.txtpb", text(response)
        yield "face.json", pretty(MESSAGES.encode_response(response, PUBLIC))
    if (HERE / case / "stream.sse").exists():
        messages = decoded([(HERE / case / "stream.sse").read_bytes()], PUBLIC)
        yield "stream.txtpb", text(whole(messages))
        yield "face.sse", encoded(messages, PUBLIC).decode()


@pytest.mark.parametrize("case", CASES)
def test_the_codec_makes_of_a_case_what_stands_beside_it(case: str) -> None:
    for name, content in made(case):
        assert content == (HERE / case / name).read_bytes().decode(), name


@pytest.mark.parametrize("case", STREAMED)
def test_a_stream_says_the_same_byte_by_byte(case: str) -> None:
    stream = (HERE / case / "stream.sse").read_bytes()
    pieces = [stream[at : at + 1] for at in range(len(stream))]
    assert whole(decoded(pieces, PUBLIC)) == whole(decoded([stream], PUBLIC))
    passed, cut = (
        b"".join(message.source_frames for message in decoded(way, PUBLIC, pass_=True)) for way in ([stream], pieces)
    )
    assert passed == cut


@pytest.mark.parametrize("case", STREAMED)
def test_a_passed_stream_says_what_a_translated_one_does(case: str) -> None:
    stream = (HERE / case / "stream.sse").read_bytes()
    frames = b"".join(message.source_frames for message in decoded([stream], PUBLIC, pass_=True))
    assert whole(decoded([frames], PUBLIC)) == whole(decoded([stream], PUBLIC))


@pytest.mark.parametrize("case", [case for case in STREAMED if (HERE / case / "response.json").exists()])
def test_a_streamed_answer_is_the_unstreamed_one(case: str) -> None:
    streamed = whole(decoded([(HERE / case / "stream.sse").read_bytes()], PUBLIC))
    response = MESSAGES.decode_response((HERE / case / "response.json").read_bytes(), PUBLIC, False)
    assert spaceless(streamed) == spaceless(response)


def spaceless(response: pb.GenerateResponse) -> pb.GenerateResponse:
    """The answer with the JSON of its calls on one line: a stream has it as the model wrote it."""
    for part in response.candidates[0].message.parts:
        for call, name in ((part.tool_call, "arguments_json"), (part.server_tool_call, "input_json")):
            if written := getattr(call, name):
                setattr(call, name, msgspec.json.format(written, indent=-1))
    return response


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        for file, content in made(name):
            (HERE / name / file).write_bytes(content.encode())
