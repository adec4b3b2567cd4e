"""Whole bodies and streams of real kinds of traffic, one directory a case, read and written by the codec.

`request.json`, `response.json` and `stream.sse` are what callers and providers send. What the codec makes of them stands beside them:
`X.txtpb` (canonical), `upstream.json` and `rebuilt.json` (what a provider gets without and with the source), `face.json` and `face.sse`
(what a caller of the canonical answer gets). `python -m tests.wire.native.test_golden` writes those anew, to be reviewed as a diff.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message

from tests.wire.accumulate import accumulate
from umg_grpc.v1 import pb
from umg_grpc.wire.native import NATIVE

HERE = Path(__file__).parent
CASES = sorted(
    path.name
    for path in HERE.iterdir()
    if any((path / name).exists() for name in ("request.json", "response.json", "stream.sse"))
)


def text(message: Message) -> str:
    return text_format.MessageToString(message, as_utf8=True)


def pretty(body: bytes) -> str:
    return msgspec.json.format(body, indent=2).decode() + "\n"


def request_of(case: str) -> pb.GenerateRequest:
    path = HERE / case / "request.json"
    request = NATIVE.decode_request(path.read_bytes(), {}).canonical if path.exists() else pb.GenerateRequest()
    request.model = "public"
    return request


def made(case: str) -> Iterator[tuple[str, str]]:
    """(file, content) of all that the codec makes of the case."""
    if (HERE / case / "request.json").exists():
        request, stream = NATIVE.decode_request((HERE / case / "request.json").read_bytes(), {})
        rebuilt = NATIVE.encode_request(request, "gemini-3-pro", stream)
        yield "rebuilt.json", pretty(rebuilt.body) + rebuilt.report.header() + "\n"
        request.source.body = b""
        yield "request.txtpb", text(request)
        request.ClearField("source")
        upstream = NATIVE.encode_request(request, "gemini-3-pro", stream)
        yield "upstream.json", pretty(upstream.body) + upstream.report.header() + "\n"
    if (HERE / case / "response.json").exists():
        response = NATIVE.decode_response((HERE / case / "response.json").read_bytes(), request_of(case), False)
        yield "response.txtpb", text(response)
        yield "face.json", pretty(NATIVE.encode_response(response, request_of(case)))
    if (HERE / case / "stream.sse").exists():
        messages = streamed(case, False, [(HERE / case / "stream.sse").read_bytes()])
        yield "stream.txtpb", text(accumulate(messages))
        encoder = NATIVE.stream_encoder(request_of(case))
        yield "face.sse", (b"".join(map(encoder.feed, messages)) + encoder.close()).decode()


def streamed(case: str, pass_: bool, pieces: list[bytes]) -> list[pb.StreamGenerateResponse]:
    decoder = NATIVE.stream_decoder(request_of(case), pass_)
    messages = [decoder.feed(piece) for piece in pieces]
    return [message for message in [*messages, decoder.close()] if message is not None]


@pytest.mark.parametrize("case", CASES)
def test_the_codec_makes_of_a_case_what_stands_beside_it(case: str) -> None:
    for name, content in made(case):
        assert content == (HERE / case / name).read_bytes().decode(), name


@pytest.mark.parametrize("case", [case for case in CASES if (HERE / case / "stream.sse").exists()])
def test_a_stream_says_the_same_byte_by_byte(case: str) -> None:
    stream = (HERE / case / "stream.sse").read_bytes()
    pieces = [stream[at : at + 1] for at in range(len(stream))]
    assert accumulate(streamed(case, False, pieces)) == accumulate(streamed(case, False, [stream]))
    whole, cut = (
        b"".join(message.source_frames for message in streamed(case, True, way)) for way in ([stream], pieces)
    )
    assert whole == cut


@pytest.mark.parametrize("case", [case for case in CASES if (HERE / case / "stream.sse").exists()])
def test_a_passed_stream_says_what_a_translated_one_does(case: str) -> None:
    stream = (HERE / case / "stream.sse").read_bytes()
    passed = streamed(case, True, [stream])
    frames = b"".join(message.source_frames for message in passed)
    assert accumulate(streamed(case, False, [frames])) == accumulate(streamed(case, False, [stream]))
    said = [event for message in passed for event in message.events]
    translated = accumulate(streamed(case, False, [stream]))
    assert said[0].started.response_id == translated.response_id
    assert [event.usage for event in said if event.HasField("usage")][-1:] == (
        [translated.usage] if translated.HasField("usage") else []
    )


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        for file, content in made(name):
            (HERE / name / file).write_bytes(content.encode())
