"""Agents: programs that call the gateway, found by the headers in which they name themselves. Only names in
`data/agents.json` are used, never a caller's text, so that records, totals and metrics have few different names. Pure.
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

UNKNOWN_AGENT = ""
"""Agent of a call whose headers match no row."""
USER_AGENT = "user-agent"
AGENT_HEADER = "x-umg-agent"
"""Header, and key of gRPC metadata, in which a caller names an agent of the table; it precedes other headers."""
MAX_CHARACTERS = 64
"""Number of characters of a header's value that are compared. It bounds the cache, since callers choose the values."""
CACHED_VALUES = 1024


class AgentRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: an agent, and the beginning of a header that it sends."""

    agent: str
    """Name in usage and metrics."""
    client: str
    """Name of the program as its makers write it."""
    header: str
    """Name in lower case."""
    begins: str
    """Beginning of the value, in lower case; "" for any value."""
    is_library: bool = False
    """Whether programs call by this library: the headers of a program then decide before those of the library."""
    source: str
    as_of: str


AGENT_ROWS = tuple(read_rows("agents", AgentRow))
"""Rows in the order in which they decide."""
AGENT_NAMES = frozenset(row.agent for row in AGENT_ROWS)
_OTHER_HEADERS = tuple(dict.fromkeys(row.header for row in AGENT_ROWS if row.header not in {USER_AGENT, AGENT_HEADER}))


def agent_of(headers: Mapping[str, str]) -> str:
    """Return the agent that sent a request; `UNKNOWN_AGENT` if no row matches. The header `AGENT_HEADER` decides, else
    the user agent, else further headers (names in lower case).
    """
    if (named := headers.get(AGENT_HEADER)) in AGENT_NAMES:
        return named
    row = _row_of(USER_AGENT, headers.get(USER_AGENT, "")[:MAX_CHARACTERS])
    if row is not None and not row.is_library:
        return row.agent
    for header in _OTHER_HEADERS:
        if value := headers.get(header):
            other = _row_of(header, value[:MAX_CHARACTERS])
            if other is not None:
                return other.agent
    return UNKNOWN_AGENT if row is None else row.agent


@lru_cache(CACHED_VALUES)
def _row_of(header: str, value: str) -> AgentRow | None:
    value = value.lower()
    return next((row for row in AGENT_ROWS if row.header == header and value and value.startswith(row.begins)), None)
