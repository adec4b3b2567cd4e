"""Whole bodies and streams of Converse providers, one folder per case below `golden`, decoded and encoded by the codec.

`canonical.txtpb` is a request of a caller, `response.json` and `events.json` are a provider's answer, the latter as the
payloads of the frames of its event stream. The codec's results are beside them: `upstream.json` (the provider's body and
the report), `response.txtpb` and `stream.txtpb`. `pytest --record tests/unit/wire/converse/test_golden.py` writes the
results again, to be reviewed as a diff.

Sources of the responses: docs.aws.amazon.com, Converse and ConverseStream, Guardrails with the Converse API;
UKGovernmentBEIS/inspect_ai#5217 (redacted reasoning), boto/botocore#3525 (citations).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from google.protobuf import text_format

from tests.support.providers.aws_event_stream import event_or_exception
from tests.support.snapshots import Snapshots, indented, text_of_message
from tests.unit.wire.accumulate import accumulate
from umg_grpc.v1 import pb
from umg_grpc.wire.converse import CONVERSE_FORMAT

FOLDER = Path(__file__).parent / "golden"
MODEL = "anthropic.claude-sonnet-5-v1:0"
REQUEST = pb.GenerateRequest(model="public")


@dataclass(frozen=True)
class Case:
    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def frames(self) -> bytes:
        """Return the stream of the case as the provider sends it."""
        return frames_of(self.read("events.json"))

    def streamed(self, step: int = 2**20) -> pb.GenerateResponse:
        """Decode the stream in pieces of `step` bytes."""
        data, decoder = self.frames(), CONVERSE_FORMAT.translating_decoder(REQUEST)
        messages = [decoder.feed(data[at : at + step]) for at in range(0, len(data), step)]
        return accumulate([message for message in (*messages, decoder.close()) if message is not None])

    def whole(self) -> pb.GenerateResponse:
        """Decode the complete response."""
        return CONVERSE_FORMAT.decode_response(self.read("response.json"), REQUEST, False)

    def made(self) -> Iterator[tuple[str, str]]:
        """Yield (file, content) of all results of the codec for the case."""
        if self.has("canonical.txtpb"):
            canonical = text_format.Parse(self.read("canonical.txtpb"), pb.GenerateRequest())
            upstream = CONVERSE_FORMAT.encode_request(canonical, MODEL, False)
            yield "upstream.json", indented(upstream.body) + upstream.report.header() + "\n"
        if self.has("response.json"):
            yield "response.txtpb", text_of_message(self.whole())
        if self.has("events.json"):
            yield "stream.txtpb", text_of_message(self.streamed())


def frames_of(events: bytes) -> bytes:
    """Return the frames of a stream from a JSON list of objects with one member each: the name of an event or exception, and its payload."""
    listed = msgspec.json.decode(events, type=list[dict[str, Any]])
    return b"".join(event_or_exception(*each) for frames in listed for each in frames.items())


CASES = [Case(path) for path in sorted(FOLDER.iterdir())]
STREAMED = [case for case in CASES if case.has("events.json")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_results_of_the_codec_equal_the_golden_files(case: Case, snapshots: Snapshots) -> None:
    snapshots.check(case.path, case.made())


@pytest.mark.parametrize("case", STREAMED, ids=lambda case: case.id)
def test_a_stream_is_decoded_equally_byte_by_byte(case: Case) -> None:
    assert case.streamed(step=1) == case.streamed()


@pytest.mark.parametrize("case", [case for case in STREAMED if case.has("response.json")], ids=lambda case: case.id)
def test_an_answer_is_equal_streamed_and_unstreamed(case: Case) -> None:
    streamed, whole = case.streamed(), case.whole()
    streamed.service_tier = whole.service_tier  # a stream states it in its last event
    for answer in (streamed, whole):
        for part in answer.candidates[0].message.parts:
            if part.HasField("tool_call"):
                part.tool_call.arguments_json = msgspec.json.format(part.tool_call.arguments_json, indent=-1)
    assert streamed == whole
