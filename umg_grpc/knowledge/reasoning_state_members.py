"""Members of chat messages in which providers return reasoning state, and expect it in the next request. The chat
format has no member for it, so each provider has its own. The rows are in `data/reasoning_carriers.json`. Pure: no I/O
and no clock.
"""

from typing import Literal

from msgspec import Struct

from umg_grpc.knowledge.data_files import read_rows

Merge = Literal["items", "append", "replace"]
"""Joining of the pieces of a stream: `items`: a list of objects whose texts come in pieces; `append`: a list that later
pieces extend; `replace`: a value that comes as a whole.
"""


class ReasoningCarrier(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Row of the table: one member that contains reasoning state."""

    member: str
    """Name of the member; a dotted path for a member of an object in it."""
    place: Literal["message", "call"]
    """Object that has the member: a message (a delta in streams), or an element of `tool_calls`."""
    merge: Merge
    text_member: str = ""
    """Member of the message for the text of the reasoning at providers with this carrier; "" for the usual one."""
    source: str
    as_of: str


REASONING_CARRIERS = tuple(read_rows("reasoning_carriers", ReasoningCarrier))
