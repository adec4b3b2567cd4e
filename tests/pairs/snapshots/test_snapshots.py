"""One input, and a snapshot for each target: a change of a codec shows all pairs that it touches, as a diff.

The inputs are golden bodies of `tests/unit/wire/<format>/<case>/`: the request of a caller, and the response and the
stream of a provider. `request.<format>.json` is the body for a provider and the report for the caller,
`response.<format>.json` and `stream.<format>.sse` are sent to a caller. `pytest --record tests/pairs/snapshots` writes all
of them again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.pairs.table import STRICT_PROVIDERS, TEXT_FACES, TEXT_PROVIDERS
from tests.support.snapshots import Snapshots, indented
from tests.unit.wire.streams import decoded, encoded
from tests.unit.wire.test_golden import HERE as INPUTS
from umg_grpc.base.errors import UmgError
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS, TEXT_UPSTREAMS

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Case:
    """Input of a format: a conversation with many kinds of parts."""

    format: str
    name: str

    @property
    def id(self) -> str:
        return f"{self.format}/{self.name}"

    @property
    def folder(self) -> Path:
        return HERE / self.format / self.name

    def read(self, name: str) -> bytes:
        return (INPUTS / self.format / self.name / name).read_bytes()

    def request(self) -> pb.GenerateRequest:
        """Return the request as a caller of another format would have sent it: without its body."""
        request = TEXT_FORMATS[self.format].decode_request(self.read("request.json"), {}).canonical
        request.ClearField("source")
        return request

    def for_provider(self, target: str) -> str:
        """Return the body for a provider and the report for the caller, or the error of the caller."""
        codec = TEXT_FORMATS[self.format]
        request, stream, notes = codec.decode_request(self.read("request.json"), {})
        try:
            upstream = TEXT_UPSTREAMS[target].encode_request(request, "theirs", stream, NO_QUIRKS, notes)
        except UmgError as error:
            return f"{error.name}: {error.message}\n"
        upstream.report.rename(codec.wire_path)
        return f"{indented(upstream.body)}{upstream.report.header()}\n"

    def for_caller(self, face: str) -> str:
        """Return the provider's response as one body of a face."""
        response = TEXT_FORMATS[self.format].decode_response(self.read("response.json"), self.request(), False)
        return indented(TEXT_FORMATS[face].encode_response(response, self.request()))

    def streamed(self, face: str) -> str:
        """Return the provider's stream as events of a face."""
        messages = decoded(TEXT_FORMATS[self.format], [self.read("stream.sse")], self.request(), pass_=False)
        return encoded(TEXT_FORMATS[face], messages, self.request()).decode()

    def made(self) -> Iterator[tuple[str, str]]:
        """Yield (file, content) for all targets but the format itself, whose results the golden files have."""
        for target in STRICT_PROVIDERS:
            if target != self.format:
                yield f"request.{target}.json", self.for_provider(target)
        for face in TEXT_FACES:
            if face != self.format:
                yield f"response.{face}.json", self.for_caller(face)
                yield f"stream.{face}.sse", self.streamed(face)


CASES = [
    Case("chat", "tools"),
    Case("chat", "search"),
    Case("responses", "agent"),
    Case("responses", "search"),
    Case("messages", "tools"),
    Case("messages", "search"),
    Case("native", "text"),
    Case("native", "tools"),
    Case("native", "search"),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_an_input_has_its_snapshot_for_every_target(case: Case, snapshots: Snapshots) -> None:
    made = dict(case.made())
    snapshots.check(case.folder, made.items())
    assert {path.name for path in case.folder.iterdir()} == made.keys()


def test_every_format_has_inputs() -> None:
    assert {case.format for case in CASES} == set(TEXT_FACES) | set(TEXT_PROVIDERS)
