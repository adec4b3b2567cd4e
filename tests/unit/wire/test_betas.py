"""A beta is reported as lost only if no field of the body corresponds to it."""

from dataclasses import dataclass

import msgspec
import pytest

from umg_grpc.wire.chat import CHAT_FORMAT
from umg_grpc.wire.messages import MESSAGES_FORMAT
from umg_grpc.wire.native import NATIVE_FORMAT
from umg_grpc.wire.responses import RESPONSES_FORMAT
from umg_grpc.wire.text_format_interface import TextFormat

BODY = {"model": "m", "max_tokens": 50, "messages": [{"role": "user", "content": "hi"}]}


@dataclass(frozen=True)
class Case:
    id: str
    header: str
    report: str


CASES = (
    Case("none is named", "", ""),
    Case("blank", " , ", ""),
    Case("a field is judged", "message-threads-2026-08-12, prompt-caching-2024-07-31", ""),
    Case("no field", "interleaved-thinking-2025-05-14", "anthropic-beta"),
    Case("unknown", "message-threads-2026-08-12,new-2099-01-01", "anthropic-beta"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("target", [CHAT_FORMAT, RESPONSES_FORMAT, NATIVE_FORMAT], ids=lambda target: target.name)
def test_a_beta_without_a_field_is_reported(case: Case, target: TextFormat) -> None:
    request, _, notes = MESSAGES_FORMAT.decode_request(msgspec.json.encode(BODY), {"anthropic-beta": case.header})
    assert target.encode_request(request, "theirs", False, notes=notes).report.header() == case.report
