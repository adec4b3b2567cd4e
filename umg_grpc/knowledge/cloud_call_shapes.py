"""Calls to clouds that put the model, or the choice to stream, into the path and not the body. The rows are in
`data/call_shapes.json`; the end of a channel's base URL selects one. Pure: no I/O and no clock.
"""

from collections.abc import Mapping

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class HeaderMember(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Member of the body in which a cloud expects the value of one of the format's headers."""

    member: str
    values: Mapping[str, str] = {}
    """Value of the header -> value of the member, if the two differ."""


class CallShape(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: path and body of calls to a cloud, as far as they differ from the wire format."""

    base_url_end: str
    """End of the base URLs of the cloud's channels, for example `/publishers/anthropic`."""
    protocols: tuple[str, ...]
    path: str
    """Path of a call: `{model}` stands for the model's id, `{path}` for the path in the format."""
    stream_path: str = ""
    """Path of a call with a streamed response; "" if it is the same path."""
    leaves_out: tuple[str, ...] = ()
    """Members left out of the body, because the path contains their values."""
    headers: Mapping[str, HeaderMember] = {}
    """Header of the wire format in lower case -> member of the body that has the header's value, too."""
    query: Mapping[str, str] = {}
    """Parameter that each call needs -> example of its value, at the hosts of a vendor."""
    source: str
    as_of: str


CALL_SHAPES = tuple(read_rows("call_shapes", CallShape))
"""Rows of the data file; at most one matches a base URL and a protocol."""


def call_shape(protocol: str, base_url: str) -> CallShape | None:
    """Return the shape of a protocol's calls at a base URL; None if they are as in the wire format."""
    for row in CALL_SHAPES:
        if protocol in row.protocols and base_url.endswith(row.base_url_end):
            return row
    return None
