"""Whole bodies of Ollama's callers, one directory per case: `request.json` is sent by a caller and `answer.txtpb` by a
provider of another format. The results are beside them: `request.txtpb` (canonical), `notes.json`, `upstream.json` (the
body for a chat provider, with the report), `face.json` and `face.ndjson` (the response whole and streamed).

`pytest --record` with the path of this file writes the results again, to be reviewed as a diff.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
from google.protobuf import text_format

from tests.support.snapshots import Snapshots
from umg_grpc.v1 import pb
from umg_grpc.wire.chat import CHAT
from umg_grpc.wire.core.response_to_events import response_to_events
from umg_grpc.wire.ollama import OLLAMA_CHAT, OLLAMA_GENERATE

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    path: Path

    def made(self) -> Iterator[tuple[str, str]]:
        """Yield (file, content) of all results."""
        body = (self.path / "request.json").read_bytes()
        face = OLLAMA_GENERATE if b'"prompt"' in body else OLLAMA_CHAT
        request, stream, notes = face.decode_request(body, {})
        upstream = CHAT.encode_request(request, "theirs", stream, notes=notes)
        yield "upstream.json", pretty(upstream.body) + upstream.report.header() + "\n"
        request.source.body = b""
        yield "request.txtpb", text_format.MessageToString(request, as_utf8=True)
        answer = text_format.Parse((self.path / "answer.txtpb").read_text(encoding="utf-8"), pb.GenerateResponse())
        yield "face.json", pretty(face.encode_response(answer, request))
        encoder = face.stream_encoder(request)
        yield "face.ndjson", (encoder.feed(response_to_events(answer)) + encoder.close()).decode()


CASES = [Case(path.parent) for path in sorted(HERE.glob("*/request.json"))]


def pretty(body: bytes) -> str:
    return msgspec.json.format(body, indent=2).decode() + "\n"


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path.name)
def test_the_results_of_the_codec_equal_the_golden_files(case: Case, snapshots: Snapshots) -> None:
    snapshots.check(case.path, case.made())
