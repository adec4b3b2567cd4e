"""Losses: consequences of leaving out a request field that a provider rejects. One table for all code that fits
requests to providers: fields that a format or model lacks, bodies adapted in the caller's own format, and requests
repaired after a rejection. The rows are in `data/losses.json`, decisions with a reason in place of a source.
`data/members.json` maps members of providers' bodies to canonical fields.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Loss = Literal["harmless", "adapt", "refuse"]
"""`harmless`: the field may be left out, and is reported; `adapt`: it may be sent only in another form; `refuse`: the
request fails, since without the field the response would differ.
"""


class FieldRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of losses: a field, its loss, and the reason."""

    field: str
    """Canonical field of a text request, as a dotted path without indexes."""
    loss: Loss
    reason: str


class MemberRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table of members: a member of a provider's body and its canonical field."""

    protocol: str
    member: str
    """Member of a provider's body, as a dotted path without indexes, in the spelling that the gateway sends."""
    field: str
    """Canonical field with the same value."""


FIELD_LOSSES: Mapping[str, FieldRow] = MappingProxyType({row.field: row for row in read_rows("losses", FieldRow)})


def _members() -> Mapping[str, Mapping[str, str]]:
    members = dict[str, dict[str, str]]()
    for row in read_rows("members", MemberRow):
        members.setdefault(row.protocol, {})[row.member] = row.field
    return MappingProxyType(members)


LOSS_MEMBERS = _members()
"""Protocol -> member of its bodies -> canonical field."""


def loss_of(field: str) -> Loss:
    """Return the loss of a canonical field: that of its row or the nearest enclosing field's; `refuse` without one."""
    while field not in FIELD_LOSSES:
        field, dot, _ = field.rpartition(".")
        if not dot:
            return "refuse"
    return FIELD_LOSSES[field].loss


def field_of_member(protocol: str, member: str) -> str:
    """Return the canonical field of a provider's member, or of the nearest known enclosing member, else ""."""
    known = LOSS_MEMBERS.get(protocol, {})
    while member and member not in known:
        member = member.rpartition(".")[0]
    return known.get(member, "")
