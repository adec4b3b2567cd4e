"""Whole bodies of the formats that callers alone have, one directory per case below that of its package: `request.json`
is sent by a caller and `answer.txtpb` by a provider of another format. The results are beside them: `request.txtpb`
(canonical), `notes.json`, `upstream.json` (the body for a chat provider, with the report), `face.json` and
`face.stream` (the response whole and streamed).

`pytest --record` with the path of this file writes the results again, to be reviewed as a diff.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from google.protobuf import text_format

from tests.support.snapshots import Snapshots, indented, text_of_message
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FACES, TEXT_FORMATS
from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.cohere import COHERE_FACE
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.ollama import OLLAMA_CHAT, OLLAMA_GENERATE
from umg_grpc.wire.text_format_interface import TextFace

HERE = Path(__file__).parent
PLACES = (
    (OLLAMA_CHAT, "ollama", "messages"),
    (OLLAMA_GENERATE, "ollama", "prompt"),
    (COHERE_FACE, "cohere", "messages"),
)
"""Format, directory of its package, and the member by which its bodies are known there."""


@dataclass(frozen=True)
class Case:
    face: TextFace
    path: Path

    @property
    def id(self) -> str:
        return f"{self.face.name}/{self.path.name}"

    @property
    def body(self) -> bytes:
        return (self.path / "request.json").read_bytes()

    def made(self) -> Iterator[tuple[str, str]]:
        """Yield (file, content) of all results."""
        request, stream, notes = self.face.decode_request(self.body, {})
        upstream = CHAT_FORMAT.encode_request(request, "theirs", stream, notes=notes)
        yield "upstream.json", indented(upstream.body) + upstream.report.header() + "\n"
        answer = text_format.Parse((self.path / "answer.txtpb").read_text(encoding="utf-8"), pb.GenerateResponse())
        yield "face.json", indented(self.face.encode_response(answer, request))
        encoder = self.face.stream_encoder(request)
        yield "face.stream", (encoder.feed(response_to_events(answer)) + encoder.close()).decode()
        request.source.body = b""
        yield "request.txtpb", text_of_message(request)
        if taken := {name: value for name, value in msgspec.structs.asdict(notes).items() if value}:
            yield "notes.json", indented(msgspec.json.encode(taken))


CASES = [
    Case(face, path.parent)
    for face, package, member in PLACES
    for path in sorted((HERE / package).glob("*/request.json"))
    if member in msgspec.json.decode(path.read_bytes())
]


def test_every_format_of_callers_alone_has_cases() -> None:
    assert {case.face.name for case in CASES} == TEXT_FACES.keys() - TEXT_FORMATS.keys()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_results_of_the_codec_equal_the_golden_files(case: Case, snapshots: Snapshots) -> None:
    snapshots.check(case.path, case.made())
