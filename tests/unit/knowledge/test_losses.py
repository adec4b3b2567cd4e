"""Losses: each field of a text request has a row, and each member of a body has a field."""

from dataclasses import dataclass

import pytest

from umg_grpc.knowledge.dropped_field_losses import FIELD_LOSSES, LOSS_MEMBERS, field_of_member, loss_of
from umg_grpc.v1 import pb
from umg_grpc.wire import TEXT_UPSTREAMS


def test_each_field_of_a_text_request_has_a_row() -> None:
    fields = {field.name for field in pb.GenerateRequest.DESCRIPTOR.fields}
    assert fields == {field for field in FIELD_LOSSES if "." not in field}


def test_each_row_has_a_reason() -> None:
    assert all(row.reason for row in FIELD_LOSSES.values())


def test_each_format_has_a_table_of_members_whose_fields_have_rows() -> None:
    assert LOSS_MEMBERS.keys() == TEXT_UPSTREAMS.keys()
    fields = {field for members in LOSS_MEMBERS.values() for field in members.values()}
    assert fields <= FIELD_LOSSES.keys()


@dataclass(frozen=True)
class Found:
    id: str
    protocol: str
    member: str
    field: str
    loss: str


FOUND = [
    Found("a plain member", "chat", "temperature", "temperature", "harmless"),
    Found("a member with another name", "chat", "max_completion_tokens", "max_output_tokens", "adapt"),
    Found("a nested member", "native", "generationConfig.topP", "top_p", "harmless"),
    Found("a part of a known member", "chat", "tools.function.name", "tools", "refuse"),
    Found("a member that no format has", "chat", "shoe_size", "", "refuse"),
    Found("a member of an unknown format", "telex", "temperature", "", "refuse"),
]


@pytest.mark.parametrize("case", FOUND, ids=lambda case: case.id)
def test_a_member_is_found_by_the_longest_known_part_of_its_path(case: Found) -> None:
    field = field_of_member(case.protocol, case.member)
    assert (field, loss_of(field)) == (case.field, case.loss)
