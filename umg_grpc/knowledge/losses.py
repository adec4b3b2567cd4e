"""Losses: consequences of leaving a field of a request out for a provider that refuses it. Members of providers' bodies
have their canonical fields here. One table for all that fits requests to providers: fields that are dropped for a
format or a model, bodies that are adapted on the same format, and requests that are mended after a refusal. The rows
are in `data/losses.json`, which are decisions and have a reason in place of a source, and in `data/members.json`.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Loss = Literal["harmless", "adapt", "refuse"]
"""`harmless`: the field may be left out, and is reported; `adapt`: only another form of it may be sent; `refuse`: the
request fails, since the response would be another.
"""


class FieldRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of losses."""

    field: str
    """Canonical field of a text request, as a dotted path without indexes."""
    loss: Loss
    reason: str


class MemberRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of members."""

    protocol: str
    member: str
    """Member of a provider's body, as a dotted path without indexes, in the spelling that the gateway sends."""
    field: str
    """Canonical field with its value."""


FIELD_LOSSES: Mapping[str, FieldRow] = MappingProxyType({row.field: row for row in read_rows("losses", FieldRow)})


def _members() -> Mapping[str, Mapping[str, str]]:
    members = dict[str, dict[str, str]]()
    for row in read_rows("members", MemberRow):
        members.setdefault(row.protocol, {})[row.member] = row.field
    return MappingProxyType(members)


LOSS_MEMBERS = _members()
"""Protocol -> member of its bodies -> canonical field."""


def loss_of(field: str) -> Loss:
    """Return the loss of a canonical field by its own row or that of the field around it; `refuse` if unknown."""
    while field not in FIELD_LOSSES:
        field, dot, _ = field.rpartition(".")
        if not dot:
            return "refuse"
    return FIELD_LOSSES[field].loss


def field_of_member(protocol: str, member: str) -> str:
    """Return the canonical field of a member of a provider's body, by the longest known part of its path, or ""."""
    known = LOSS_MEMBERS.get(protocol, {})
    while member and member not in known:
        member = member.rpartition(".")[0]
    return known.get(member, "")
