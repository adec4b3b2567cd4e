"""Members that clients add to conversation items only for the vendor of their format. A provider is sent a member only
if its quirk `client_headers` names the member's owner. The rows are in `data/client_members.json`. Pure: no I/O and no
clock.
"""

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class ClientMember(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: a member that some clients add to items."""

    member: str
    face: str
    """Text format in which the clients call, which is the vendor's format."""
    owner: str
    client: str
    source: str
    as_of: str


CLIENT_MEMBERS = tuple(read_rows("client_members", ClientMember))


def members_for_others(face: str, owners: tuple[str, ...]) -> frozenset[str]:
    """Return the members of a text format's items whose owner is not in `owners`: a provider must not be sent them."""
    return frozenset(row.member for row in CLIENT_MEMBERS if row.face == face and row.owner not in owners)
