"""Members that clients put into the items of a conversation for the vendor of their format alone. The rows are in
`data/client_members.json`. A provider is sent them if it takes the headers of clients of the same owner
(`client_headers` of the quirks). Pure: no I/O and no clock.
"""

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class ClientMember(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: a member of some clients."""

    member: str
    face: str
    """Text format of the clients and of the vendor."""
    owner: str
    """Vendor that the member is for."""
    client: str
    source: str
    """Document or report of the fact."""
    as_of: str
    """Date on which the source was read."""


CLIENT_MEMBERS = tuple(read_rows("client_members", ClientMember))


def members_for_others(face: str, owners: tuple[str, ...]) -> frozenset[str]:
    """Return the members of items of a text format that a provider which takes those of `owners` is not sent."""
    return frozenset(row.member for row in CLIENT_MEMBERS if row.face == face and row.owner not in owners)
