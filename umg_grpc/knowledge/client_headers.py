"""Headers by which clients and the vendor of their format keep a session together, beside the body. They are of
requests, and of the vendor's responses, which its clients send back or read. The rows are in
`data/client_headers.json`. Only a vendor that a row names as the owner is sent its headers. Pure: no I/O and no clock.
"""

from collections.abc import Mapping
from functools import cache
from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

MAX_CHARACTERS = 8 * 2**10
"""Longest value that is passed on; longer ones are left out."""


class ClientHeader(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: a header of some clients."""

    header: str
    """Name in lower case; a `*` at its end stands for any text."""
    face: str
    """Text format of the clients and of the vendor."""
    owner: str
    """Vendor that the header is for."""
    direction: Literal["request", "response"]
    names_model: bool = False
    """Whether the value is the vendor's id of the model, which is for callers of the model by that id alone."""
    client: str
    source: str
    """Document or report of the fact."""
    as_of: str
    """Date on which the source was read."""


CLIENT_HEADERS = tuple(read_rows("client_headers", ClientHeader))
HEADER_OWNERS = frozenset(row.owner for row in CLIENT_HEADERS)
HEADER_FACES = frozenset(row.face for row in CLIENT_HEADERS)
"""Text formats with rows in the table."""
RESPONSE_HEADERS = tuple(row.header for row in CLIENT_HEADERS if row.direction == "response")


class Names(Struct, frozen=True):
    """Names of request headers."""

    exact: frozenset[str]
    beginnings: tuple[str, ...]

    def select(self, headers: Mapping[str, str]) -> dict[str, str]:
        """Return the headers with these names whose values can be sent, by their names in lower case."""
        selected = dict[str, str]()
        for written, value in headers.items():
            name = written.lower()
            if (name in self.exact or name.startswith(self.beginnings)) and is_sendable(value):
                selected[name] = value
        return selected


@cache
def request_names(face: str, owners: tuple[str, ...] | None = None) -> Names:
    """Return the names of the request headers of clients of a text format. `owners`: of the headers, None for all."""
    rows = [row for row in CLIENT_HEADERS if row.face == face and row.direction == "request"]
    names = [row.header for row in rows if owners is None or row.owner in owners]
    beginnings = tuple(name.removesuffix("*") for name in names if name.endswith("*"))
    return Names(frozenset(name for name in names if not name.endswith("*")), beginnings)


@cache
def response_names(face: str, owners: tuple[str, ...], *, is_renamed: bool) -> tuple[str, ...]:
    """Return the names of the headers in responses of the vendors `owners` that clients of a text format are sent.
    `is_renamed`: whether the caller names the model by another id than the vendor.
    """
    rows = [row for row in CLIENT_HEADERS if row.face == face and row.owner in owners and row.direction == "response"]
    return tuple(row.header for row in rows if not (is_renamed and row.names_model))


def is_sendable(value: str) -> bool:
    """Return whether a value can be passed on as a header."""
    return bool(value) and len(value) <= MAX_CHARACTERS and value.isascii() and value.isprintable()
