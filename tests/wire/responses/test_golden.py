"""Whole bodies and streams of real kinds of traffic, one directory a case, read and written by the codec.

`request.json`, `response.json` and `stream.sse` are what callers and providers send. What the codec makes of them stands beside them:
`X.txtpb` (canonical), `upstream.json` and `rebuilt.json` (what a provider gets without and with the source), `face.json` and `face.sse`
(what a caller of the canonical answer gets). `python -m tests.wire.responses.test_golden` writes those anew, to be reviewed as a diff.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from google.protobuf import text_format
from google.protobuf.message import Message

from tests.wire.responses.streams import decoded, encoded, told, whole
from umg_grpc.v1 import pb
from umg_grpc.wire.responses import RESPONSES

HERE = Path(__file__).parent
CASES = sorted(path.name for path in HERE.iterdir() if (path / "stream.sse").exists())


def text(message: Message) -> str:
    return text_format.MessageToString(message, as_utf8=True)


def pretty(body: bytes) -> str:
    return msgspec.json.format(body, indent=2).decode() + "\n"


def request_of(case: str) -> pb.GenerateRequest:
    request = RESPONSES.decode_request((HERE / case / "request.json").read_bytes(), {}).canonical
    request.model = "public"
    return request


def streamed(case: str, pass_: bool, step: int = 2**20) -> list[pb.StreamGenerateResponse]:
    stream = (HERE / case / "stream.sse").read_bytes()
    pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
    return decoded(pieces, request_of(case), pass_=pass_)


def made(case: str) -> Iterator[tuple[str, str]]:
    """(file, content) of all that the codec makes of the case."""
    request, stream = RESPONSES.decode_request((HERE / case / "request.json").read_bytes(), {})
    rebuilt = RESPONSES.encode_request(request, "theirs", stream)
    yield "rebuilt.json", pretty(rebuilt.body) + rebuilt.report.header() + "\n"
    request.source.body = b""
    yield "request.txtpb", text(request)
    request.ClearField("source")
    upstream = RESPONSES.encode_request(request, "theirs", stream)
    yield "upstream.json", pretty(upstream.body) + upstream.report.header() + "\n"
    response = RESPONSES.decode_response((HERE / case / "response.json").read_bytes(), request_of(case), False)
    yield "response.txtpb", text(response)
    yield "face.json", pretty(RESPONSES.encode_response(response, request_of(case)))
    messages = streamed(case, False)
    yield "stream.txtpb", text(whole(messages))
    yield "face.sse", encoded(messages, request_of(case)).decode()


@pytest.mark.parametrize("case", CASES)
def test_the_codec_makes_of_a_case_what_stands_beside_it(case: str) -> None:
    for name, content in made(case):
        assert content == (HERE / case / name).read_bytes().decode(), name


@pytest.mark.parametrize("case", CASES)
def test_a_stream_says_the_same_byte_by_byte_and_passed(case: str) -> None:
    answer = whole(streamed(case, False))
    assert whole(streamed(case, False, 1)) == answer
    passed = b"".join(message.source_frames for message in streamed(case, True))
    assert b"".join(message.source_frames for message in streamed(case, True, 1)) == passed
    assert whole(decoded([passed], request_of(case))) == answer
    assert told(passed)[-1]["response"]["model"] == "public"


@pytest.mark.parametrize("case", CASES)
def test_an_answer_says_the_same_streamed_and_not(case: str) -> None:
    whole_answer = RESPONSES.decode_response((HERE / case / "response.json").read_bytes(), request_of(case), False)
    whole_answer.ClearField("complete_time")
    answer = whole(streamed(case, False))
    answer.service_tier = whole_answer.service_tier  # the stream begins before it is chosen
    assert answer == whole_answer


if __name__ == "__main__":
    for name in sys.argv[1:] or CASES:
        for file, content in made(name):
            (HERE / name / file).write_bytes(content.encode())
