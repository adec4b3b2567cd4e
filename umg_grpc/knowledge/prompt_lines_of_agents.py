"""Lines that agents put in front of the system prompt only for their own vendor, for example for accounting. The lines
differ between calls whose prompts are otherwise equal, so that other vendors' prompt caches would never match. The rows
are in `data/client_lines.json`. Pure: no I/O and no clock.
"""

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows


class ClientLine(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: lines of one client, each of which starts with a name and a colon."""

    begins: str
    client: str
    source: str
    as_of: str


CLIENT_LINES = tuple(read_rows("client_lines", ClientLine))
LINE_BEGINNINGS = tuple(row.begins for row in CLIENT_LINES)
