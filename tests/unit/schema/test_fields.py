"""Page docs/fields.md and the schema: each lists all fields of the other."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor

from umg_grpc.operations import UNARY_OPERATIONS
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_FORMATS
from umg_grpc.wire.video import VIDEO_FACES

PAGE = Path(__file__).parents[3] / "docs" / "fields.md"
OF_ONE_SIDE = ("Member of a request", "Member of a response or an event")
"""Kinds of the tables of formats that callers or providers alone have, which tests of their own compare with the formats."""
FACES = (
    *(name for row in UNARY_OPERATIONS.values() for name in row.faces if name in row.provider_formats),
    "images",
    *VIDEO_FACES,
)
"""Formats with a single request and a single answer."""
ROOTS = (
    pb.GenerateRequest,
    pb.GenerateResponse,
    pb.StreamGenerateRequest,
    pb.StreamGenerateResponse,
    pb.CountTokensRequest,
    pb.CountTokensResponse,
    pb.GetStoredResponseRequest,
    pb.GetStoredResponseResponse,
    pb.DeleteStoredResponseRequest,
    pb.CancelStoredResponseRequest,
    pb.CancelStoredResponseResponse,
    pb.ListInputItemsRequest,
    pb.ListInputItemsResponse,
    pb.EmbedRequest,
    pb.EmbedResponse,
    pb.RerankRequest,
    pb.RerankResponse,
    pb.ModerateRequest,
    pb.ModerateResponse,
    pb.SpeakRequest,
    pb.SpeakResponse,
    pb.StreamSpeakRequest,
    pb.StreamSpeakResponse,
    pb.TranscribeRequest,
    pb.TranscribeResponse,
    pb.StreamTranscribeRequest,
    pb.StreamTranscribeResponse,
    pb.GenerateImageRequest,
    pb.GenerateImageResponse,
    pb.StreamGenerateImageRequest,
    pb.StreamGenerateImageResponse,
    pb.CreateVideoTaskRequest,
    pb.CreateVideoTaskResponse,
    pb.RemixVideoTaskRequest,
    pb.RemixVideoTaskResponse,
    pb.GetVideoTaskRequest,
    pb.GetVideoTaskResponse,
    pb.ListVideoTasksRequest,
    pb.ListVideoTasksResponse,
    pb.DeleteVideoTaskRequest,
    pb.DeleteVideoTaskResponse,
    pb.WatchVideoTaskRequest,
    pb.WatchVideoTaskResponse,
    pb.DownloadVideoRequest,
    pb.DownloadVideoResponse,
    pb.ReceiveVideoCallbackRequest,
    pb.ListModelsRequest,
    pb.ListModelsResponse,
    pb.GetModelRequest,
    pb.GetModelResponse,
)
SCHEMA = pb.GenerateRequest.DESCRIPTOR.file.pool


@dataclass(frozen=True)
class Row:
    section: str
    header: tuple[str, ...]
    cells: tuple[str, ...]

    @property
    def kind(self) -> str:
        return self.header[0]

    @property
    def of_formats(self) -> dict[str, str]:
        return dict(zip(self.header[1:], self.cells[1:], strict=True))

    @property
    def id(self) -> str:
        return f"{self.section}: {self.cells[0]}"[:120]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def rows() -> Iterator[Row]:
    section, header = "", tuple[str, ...]()
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            section = line[3:]
        if not line.startswith("|"):
            header = ()
            continue
        cells = tuple(cell.strip() for cell in line.strip("|").split("|"))
        if not header:
            header = cells
        elif set("".join(cells)) != {"-"}:
            assert len(cells) == len(header), line
            yield Row(section, header, cells)


def message(name: str) -> Descriptor:
    return SCHEMA.FindMessageTypeByName(f"umg.v1.{name}")


def fields_on(path: str) -> list[FieldDescriptor]:
    """Return the fields on a path like `GenerateRequest.reasoning.effort`. Raises KeyError for an unknown one."""
    head, *tail = path.split(".")
    owner: Descriptor | None = message(head)
    passed = []
    for name in tail:
        if owner is None:
            raise KeyError(path)
        passed.append(owner.fields_by_name[name])
        owner = passed[-1].message_type
    return passed


def is_in_the_schema(name: str) -> bool:
    """Return whether the name is a field's path, an RPC, an enum or an enum's value."""
    head, _, tail = name.partition(".")
    values = {value for enum in enums() for value in enum.values_by_name}
    if head.endswith("Service"):
        return tail in SCHEMA.FindServiceByName(f"umg.v1.{head}").methods_by_name
    if head.isupper():
        return name in values or name in SCHEMA.FindEnumTypeByName("umg.v1.ErrorReason").values_by_name
    try:
        if not tail:
            SCHEMA.FindEnumTypeByName(f"umg.v1.{head}")
        return tail == "" or bool(fields_on(name))
    except KeyError:
        return False


def messages() -> list[Descriptor]:
    """Return every message of ours that the calls can contain."""
    found: dict[str, Descriptor] = {}
    waiting = [root.DESCRIPTOR for root in ROOTS]
    while waiting:
        owner = waiting.pop()
        if owner.full_name in found or not owner.full_name.startswith("umg.v1."):
            continue
        if not owner.GetOptions().map_entry:
            found[owner.full_name] = owner
        waiting += [field.message_type for field in owner.fields if field.message_type is not None]
    return list(found.values())


def enums() -> list[EnumDescriptor]:
    found = {
        field.enum_type.full_name: field.enum_type for owner in messages() for field in owner.fields if field.enum_type
    }
    return list(found.values())


ROWS = list(rows())
HOMES = [row for row in ROWS if row.kind == "Canonical home"]
VALUES = [row for row in ROWS if row.kind == "Canonical value"]
BY_FORMAT = [row for row in ROWS if row.kind == "Format"]


@pytest.mark.parametrize("row", HOMES + VALUES, ids=lambda row: row.id)
def test_every_canonical_home_is_in_the_schema(row: Row) -> None:
    assert [name for name in names(row.cells[0]) if not is_in_the_schema(name)] == []
    assert names(row.cells[0]) or row.section == "Around generation"


@pytest.mark.parametrize("owner", messages(), ids=lambda owner: owner.name)
def test_every_field_of_a_message_is_on_the_page(owner: Descriptor) -> None:
    paths = [name for row in HOMES for name in names(row.cells[0]) if name[0].isupper() and "Service" not in name]
    passed = {field.full_name for path in paths if "." in path for field in fields_on(path)}
    assert [field.name for field in owner.fields if field.full_name not in passed] == []


@pytest.mark.parametrize("enum", enums(), ids=lambda enum: enum.name)
def test_every_value_of_an_enum_is_on_the_page(enum: EnumDescriptor) -> None:
    shown = {name for row in VALUES for name in names(row.cells[0])}
    assert [value.name for value in enum.values if value.number and value.name not in shown] == []


@pytest.mark.parametrize("wire", [*TEXT_FORMATS, *FACES])
def test_a_field_of_a_format_is_in_one_row_only(wire: str) -> None:
    homes = Counter((row.section, name) for row in HOMES for name in set(names(row.of_formats.get(wire, ""))))
    alone = Counter((row.section, name) for row in BY_FORMAT if row.cells[0] == wire for name in names(row.cells[1]))
    carried = {name for section, name in homes if section in CARRIED}
    assert homes
    assert [key for key, count in (homes + alone).items() if count > 1] == []
    assert [name for section, name in alone if section == "Only in the source document" and name in carried] == []


CARRIED = ("Request", "Conversation", "Embedding request", "Rerank request", "Image request", "Video request")
"""Sections on the contents of a request."""


def test_every_table_is_of_a_known_kind() -> None:
    assert {row.kind for row in ROWS} == {"Canonical home", "Canonical value", "Format", *OF_ONE_SIDE}
    assert {row.cells[0] for row in BY_FORMAT} == {*TEXT_FORMATS, *FACES} - VIDEO_FACES.keys()
    assert {wire for row in HOMES + VALUES for wire in row.of_formats} == {*TEXT_FORMATS, *FACES}
