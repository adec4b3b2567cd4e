"""Headers that a vendor and the clients of its format exchange besides the body, for example to keep a session
together. They are request headers, and response headers that clients send back or read. A vendor is sent a header only
if the header's row names it as owner. The rows are in `data/client_headers.json`. Pure: no I/O and no clock.
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

MAX_CHARACTERS = 8 * 2**10


class ClientHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: a header that some clients send or read."""

    header: str
    """Name in lower case; a `*` at its end stands for any text."""
    face: str
    """Text format in which the clients call, which is the vendor's format."""
    owner: str
    direction: Literal["request", "response"]
    names_model: bool = False
    """Whether the value is the vendor's model id. It is passed on only to callers that used the same id."""
    client: str
    source: str
    as_of: str


CLIENT_HEADERS = tuple(read_rows("client_headers", ClientHeader))
HEADER_OWNERS = frozenset(row.owner for row in CLIENT_HEADERS)
HEADER_FACES = frozenset(row.face for row in CLIENT_HEADERS)
RESPONSE_HEADERS = tuple(row.header for row in CLIENT_HEADERS if row.direction == "response")


class Names(Struct, frozen=True):
    """Names of request headers."""

    exact: frozenset[str]
    beginnings: tuple[str, ...]

    def select(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers that have these names and a sendable value, by lower-case name."""
        selected = dict[str, str]()
        for written, value in headers.items():
            name = written.lower()
            if (name in self.exact or name.startswith(self.beginnings)) and is_sendable(value):
                selected[name] = value
        return selected


@cache
def request_names(face: str, owners: tuple[str, ...] | None = None) -> Names:
    """Return the request headers that clients of a text format send, by `owners` (vendors; None for all)."""
    rows = [row for row in CLIENT_HEADERS if row.face == face and row.direction == "request"]
    names = [row.header for row in rows if owners is None or row.owner in owners]
    beginnings = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
    return Names(frozenset(name for name in names if not name.endswith("*")), beginnings)


@cache
def response_names(face: str, owners: tuple[str, ...], *, is_renamed: bool) -> tuple[str, ...]:
    """Return the names of response headers to pass from the vendors `owners` to clients of a text format. `is_renamed`:
    whether the caller's model id differs from the vendor's.
    """
    rows = [row for row in CLIENT_HEADERS if row.face == face and row.owner in owners and row.direction == "response"]
    return tuple(row.header for row in rows if not (is_renamed and row.names_model))


def is_sendable(value: str) -> bool:
    """Return whether a value can be passed on as a header."""
    return bool(value) and len(value) <= MAX_CHARACTERS and value.isascii() and value.isprintable()
