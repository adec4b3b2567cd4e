"""Golden bodies of every protocol of image providers, one directory per case in `golden/<protocol>/`.

`request.txtpb` is the canonical request, `response.json` or `stream.sse` the provider's answer (from the reference). The
codec's results are beside them: `upstream.json` (the call and its report) and `answer.txtpb`. `pytest --record` with the
path of this file writes the results again, to be reviewed as a diff.
"""

import json
from dataclasses import dataclass
from email.parser import BytesParser
from pathlib import Path

import pytest
from google.protobuf import text_format

from tests.support.snapshots import Snapshots
from umg_grpc.v1 import pb
from umg_grpc.wire.images.provider_protocol_interface import ImageProtocol
from umg_grpc.wire.images.providers import IMAGE_PROTOCOLS
from umg_grpc.wire.text_format_interface import UpstreamRequest

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Case:
    protocol: ImageProtocol
    path: Path

    @property
    def id(self) -> str:
        return f"{self.protocol.name}/{self.path.name}"

    @property
    def request(self) -> pb.GenerateImageRequest:
        return text_format.Parse((self.path / "request.txtpb").read_text(), pb.GenerateImageRequest())

    @property
    def streams(self) -> bool:
        return (self.path / "stream.sse").exists()

    def written(self) -> dict[str, str]:
        """Return the codec's results by file name."""
        encoded = self.protocol.encode_request(self.request, f"upstream-{self.path.name}", self.streams)
        found = {"upstream.json": json.dumps(shown(encoded), indent=1, ensure_ascii=False) + "\n"}
        if self.streams or (self.path / "response.json").exists():
            found["answer.txtpb"] = "".join(self.answers())
        return found

    def answers(self) -> list[str]:
        if not self.streams:
            body = (self.path / "response.json").read_bytes()
            return [str(self.protocol.decode_response(body, self.request))]
        assert self.protocol.stream_decoder is not None
        decoder = self.protocol.stream_decoder(self.request)
        message = decoder.feed((self.path / "stream.sse").read_bytes())
        assert message is not None
        return [f"{event}---\n" for event in (*message.events, *decoder.close().events)]


def shown(encoded: UpstreamRequest) -> dict[str, object]:
    """Return a call as JSON; a form as the list of its parts."""
    headers = {name: value.partition(";")[0] for name, value in encoded.headers.items()}
    body: object
    if encoded.headers.get("Content-Type", "").startswith("multipart/"):
        body = parts_of(encoded)
    else:
        body = json.loads(encoded.body) if encoded.body else None
    return {
        "call": f"{encoded.method} {encoded.path}",
        "headers": headers,
        "body": body,
        "dropped": encoded.report.dropped,
    }


def parts_of(encoded: UpstreamRequest) -> list[dict[str, object]]:
    """Return the parts of a form: of a file, its name, type and size."""
    head = f"Content-Type: {encoded.headers['Content-Type']}\r\n\r\n".encode()
    parsed = BytesParser().parsebytes(head + encoded.body)
    parts = list[dict[str, object]]()
    for part in parsed.get_payload():
        data = part.get_payload(decode=True)
        name = part.get_param("name", header="content-disposition")
        if (file_name := part.get_filename()) is None:
            parts.append({"name": name, "value": data.decode()})
        else:
            parts.append({"name": name, "file": file_name, "type": part.get_content_type(), "bytes": len(data)})
    return parts


CASES = [Case(IMAGE_PROTOCOLS[path.parent.name], path) for path in sorted(GOLDEN.glob("*/*"))]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_golden_body_is_encoded_and_decoded_as_before(case: Case, snapshots: Snapshots) -> None:
    snapshots.check(case.path, case.written().items())


def test_every_protocol_has_golden_bodies() -> None:
    assert {case.protocol.name for case in CASES} == IMAGE_PROTOCOLS.keys()
