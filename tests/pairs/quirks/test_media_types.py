"""Media types of pictures in translated requests: by their bytes, since tools often declare the wrong type."""

import base64
import json
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec import Raw

from tests.pairs.quirks.requests import encoded
from umg_grpc.knowledge.model_quirk_definitions import NO_QUIRKS, Quirks
from umg_grpc.wire.core.base64_media import file_type
from umg_grpc.wire.dropped_fields_report import Report
from umg_grpc.wire.messages.passthrough_media_types import fit_media_types

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
DATA = base64.b64encode(PNG).decode()
WRONG_URL, RIGHT_URL = f"data:image/jpeg;base64,{DATA}", f"data:image/png;base64,{DATA}"
RIGHT_SOURCE = {"type": "base64", "media_type": "image/png", "data": DATA}
CLAUDE_IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": DATA}}
CHAT = {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": WRONG_URL}}]}]}
CLAUDE = {"messages": [{"role": "user", "content": [CLAUDE_IMAGE]}]}
CLAUDE_RESULT = {
    "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "look", "input": {}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [CLAUDE_IMAGE]}]},
    ]
}
RESPONSES_RESULT = {
    "input": [
        {"role": "user", "content": "Hi"},
        {"type": "function_call", "call_id": "t", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "t", "output": [{"type": "input_image", "image_url": WRONG_URL}]},
    ]
}


@dataclass(frozen=True)
class Case:
    id: str
    face: str
    upstream: str
    fields: dict[str, Any]
    path: tuple[str | int, ...]
    """Place of the picture in the provider's body."""
    sent: object


CASES = [
    Case("messages", "chat", "messages", CHAT, ("messages", 0, "content", 0, "source"), RIGHT_SOURCE),
    Case(
        "a result in messages",
        "responses",
        "messages",
        RESPONSES_RESULT,
        ("messages", 2, "content", 0, "content", 0, "source"),
        RIGHT_SOURCE,
    ),
    Case("native", "chat", "native", CHAT, ("contents", 0, "parts", 0, "inlineData", "mimeType"), "image/png"),
    Case("chat", "messages", "chat", CLAUDE, ("messages", 0, "content", 0, "image_url", "url"), RIGHT_URL),
    Case("a result in chat", "messages", "chat", CLAUDE_RESULT, ("messages", 3, "content", 0, "image_url", "url"), RIGHT_URL),
    Case("responses", "messages", "responses", CLAUDE, ("input", 0, "content", 0, "image_url"), RIGHT_URL),
    Case("the format of the caller", "messages", "messages", CLAUDE, ("messages", 0, "content", 0), CLAUDE_IMAGE),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_picture_has_the_media_type_of_its_bytes(case: Case) -> None:
    found, report = encoded(case.face, case.upstream, NO_QUIRKS, **case.fields)
    value: Any = found
    for step in case.path:
        value = value[step]
    assert (value, report) == (case.sent, "")


@dataclass(frozen=True)
class Type:
    id: str
    declared: str
    data: bytes
    sent: str


TYPES = [
    Type("a picture of unknown bytes", "image/svg+xml", b"<svg/>", "image/svg+xml"),
    Type("bytes without a type", "", b"%PDF-1.7", "application/pdf"),
    Type("bytes of the general type", "application/octet-stream", PNG, "image/png"),
    Type("a document that begins as a picture", "application/pdf", PNG, "application/pdf"),
    Type("unknown bytes without a type", "", b"?", ""),
]


@pytest.mark.parametrize("case", TYPES, ids=lambda case: case.id)
def test_the_declared_type_is_kept_where_the_bytes_are_no_known_picture(case: Type) -> None:
    assert file_type(case.declared, case.data) == case.sent


EXACT = Quirks(exact_media_types=True)


@pytest.mark.parametrize("fields", [CLAUDE, CLAUDE_RESULT], ids=["a turn", "a result"])
def test_a_body_of_the_format_gets_the_right_type_where_the_vendor_refuses_a_wrong_one(fields: dict[str, Any]) -> None:
    body, report = encoded("messages", "messages", EXACT, **fields)
    right = json.loads(json.dumps(fields["messages"]).replace("image/jpeg", "image/png"))
    assert (body["messages"], report) == (right, "messages.content.source.media_type=image/png")


@pytest.mark.parametrize(
    "source",
    [RIGHT_SOURCE, RIGHT_SOURCE | {"data": "?"}, {"type": "url", "url": "https://a.example/media_type.png"}],
    ids=["a right type", "broken base64", "an address"],
)
def test_any_other_source_stays_as_it_came(source: dict[str, Any]) -> None:
    raw = json.dumps([{"role": "user", "content": [{"type": "image", "source": source}]}])
    fields = {"messages": Raw(raw.encode())}
    report = Report()
    fit_media_types(fields, EXACT, report)
    assert (bytes(fields["messages"]), report.header()) == (raw.encode(), "")
