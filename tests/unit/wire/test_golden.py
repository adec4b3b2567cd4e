"""Whole bodies and streams of real kinds of traffic, one directory per case below that of its format, decoded and
encoded by the codec.

`request.json`, `response.json` and `stream.sse` are sent by callers and providers, `canonical.txtpb` is the request of a
caller over gRPC or of another format, `answer.txtpb` the response of a provider of another format. The codec's results
are beside them: `X.txtpb` (canonical), `notes.json` (the notes of its decoding), `upstream.json` and `rebuilt.json` (the
provider's body and the report, without and with the source), `face.json` and `face.sse` (the canonical answer, encoded
for a caller). `pytest --record tests/unit/wire/test_golden.py` writes the results again, to be reviewed as a diff.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from google.protobuf import text_format

from tests.support.snapshots import Snapshots, indented, text_of_message
from tests.unit.wire.accumulate import accumulate
from tests.unit.wire.responses.streams import payloads_of
from tests.unit.wire.streams import decoded, encoded, events_of, frames_of, relayed
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.core import sse
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.text_format_interface import TextFormat

HERE = Path(__file__).parent
INPUTS = ("request.json", "response.json", "stream.sse", "canonical.txtpb", "answer.txtpb")
MODELS = {"native": "gemini-3-pro"}  # the generation of the model matters


@dataclass(frozen=True)
class Case:
    codec: TextFormat
    path: Path

    @property
    def id(self) -> str:
        return f"{self.codec.name}/{self.path.name}"

    def has(self, name: str) -> bool:
        return (self.path / name).exists()

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    def request(self) -> pb.GenerateRequest:
        """Return the request of the case."""
        request = pb.GenerateRequest()
        if self.has("request.json"):
            request = self.codec.decode_request(self.read("request.json"), {}).canonical
        request.model = "public"
        if self.codec.name == "chat":
            request.face_hints.include_usage = True
        return request

    def streamed(self, *, pass_: bool, step: int = 2**20) -> list[pb.StreamGenerateResponse]:
        """Decode the provider's stream in pieces of `step` bytes."""
        stream = self.read("stream.sse")
        pieces = [stream[at : at + step] for at in range(0, len(stream), step)]
        return decoded(self.codec, pieces, self.request(), pass_=pass_)

    def made(self) -> Iterator[tuple[str, str]]:
        """Yield (file, content) of all results of the codec for the case."""
        if self.has("request.json"):
            request, stream, notes = self.codec.decode_request(self.read("request.json"), {})
            model = MODELS.get(self.codec.name, "theirs")
            rebuilt = self.codec.encode_request(request, model, stream, notes=notes)
            yield "rebuilt.json", indented(rebuilt.body) + rebuilt.report.header() + "\n"
            request.source.body = b""
            yield "request.txtpb", text_of_message(request)
            if taken := {name: value for name, value in msgspec.structs.asdict(notes).items() if value}:
                yield "notes.json", indented(msgspec.json.encode(taken))
            request.ClearField("source")
            upstream = self.codec.encode_request(request, model, stream)
            yield "upstream.json", indented(upstream.body) + upstream.report.header() + "\n"
        if self.has("canonical.txtpb"):
            canonical = text_format.Parse(self.read("canonical.txtpb"), pb.GenerateRequest())
            upstream = self.codec.encode_request(canonical, MODELS.get(self.codec.name, "theirs"), False)
            yield "upstream.json", indented(upstream.body) + upstream.report.header() + "\n"
        if self.has("answer.txtpb"):
            answer = text_format.Parse(self.read("answer.txtpb"), pb.GenerateResponse())
            yield "face.json", indented(self.codec.encode_response(answer, self.request()))
            yield "face.sse", encoded(self.codec, [response_to_events(answer)], self.request()).decode()
        if self.has("response.json"):
            response = self.codec.decode_response(self.read("response.json"), self.request(), False)
            yield "response.txtpb", text_of_message(response)
            yield "face.json", indented(self.codec.encode_response(response, self.request()))
        if self.has("stream.sse"):
            messages = self.streamed(pass_=False)
            yield "stream.txtpb", text_of_message(accumulate(messages))
            yield "face.sse", encoded(self.codec, messages, self.request()).decode()


CASES = [
    Case(codec, path)
    for codec in TEXT_FORMATS.values()
    for path in sorted((HERE / codec.name).iterdir())
    if any((path / name).exists() for name in INPUTS)
]
STREAMED = [case for case in CASES if case.has("stream.sse")]
# Cases whose answer and stream are equal; those of the other formats are different answers.
TWICE = [case for case in STREAMED if case.codec.name in ("messages", "responses") and case.has("response.json")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_results_of_the_codec_equal_the_golden_files(case: Case, snapshots: Snapshots) -> None:
    snapshots.check(case.path, case.made())


@pytest.mark.parametrize("case", STREAMED, ids=lambda case: case.id)
def test_a_stream_is_decoded_equally_byte_by_byte(case: Case) -> None:
    assert accumulate(case.streamed(pass_=False, step=1)) == accumulate(case.streamed(pass_=False))
    assert frames_of(case.streamed(pass_=True, step=1)) == frames_of(case.streamed(pass_=True))


@pytest.mark.parametrize("name", ["chat", "messages", "responses"])
def test_reads_that_need_no_message_change_nothing_in_a_passed_through_stream(name: str) -> None:
    needless = 0
    for case in STREAMED:
        if case.codec.name == name:
            reads = [event.raw for event in sse.split(case.read("stream.sse"))]
            messages, relayed_reads = relayed(case.codec, reads, case.request())
            fed = decoded(case.codec, reads, case.request(), pass_=True)
            assert (frames_of(messages), events_of(messages)) == (frames_of(fed), events_of(fed)), case.id
            needless += relayed_reads
    assert needless


@pytest.mark.parametrize("case", STREAMED, ids=lambda case: case.id)
def test_a_passed_through_stream_decodes_to_the_translated_one(case: Case) -> None:
    passed = case.streamed(pass_=True)
    translated = accumulate(case.streamed(pass_=False))
    assert accumulate(decoded(case.codec, [frames_of(passed)], case.request())) == translated
    beside = events_of(passed)
    assert beside[0].started.response_id == translated.response_id
    assert [event.usage for event in beside if event.HasField("usage")][-1:] == (
        [translated.usage] if translated.HasField("usage") else []
    )


@pytest.mark.parametrize("case", [case for case in STREAMED if case.codec.name == "chat"], ids=lambda case: case.id)
def test_a_passed_chat_stream_ends_once(case: Case) -> None:
    assert frames_of(case.streamed(pass_=True)).count(b"[DONE]") == 1


@pytest.mark.parametrize(
    "case", [case for case in STREAMED if case.codec.name == "responses"], ids=lambda case: case.id
)
def test_a_passed_response_has_the_callers_name_of_the_model(case: Case) -> None:
    assert payloads_of(frames_of(case.streamed(pass_=True)))[-1]["response"]["model"] == "public"


@pytest.mark.parametrize("case", TWICE, ids=lambda case: case.id)
def test_a_golden_answer_is_equal_streamed_and_unstreamed(case: Case) -> None:
    streamed = accumulate(case.streamed(pass_=False))
    response = case.codec.decode_response(case.read("response.json"), case.request(), False)
    if case.codec.name == "responses":
        streamed.service_tier = response.service_tier  # the stream begins before the tier is chosen
        response.ClearField("complete_time")
    else:
        for answer in (streamed, response):
            put_calls_on_one_line(answer)
    assert streamed == response


def put_calls_on_one_line(response: pb.GenerateResponse) -> None:
    """Normalize the JSON of calls: a stream has it as the model wrote it."""
    for part in response.candidates[0].message.parts:
        for call, name in ((part.tool_call, "arguments_json"), (part.server_tool_call, "input_json")):
            if written := getattr(call, name):
                setattr(call, name, msgspec.json.format(written, indent=-1))
