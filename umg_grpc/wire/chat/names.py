"""Names of tools and ids of calls as providers of chat and responses take them."""

import hashlib
import re

from umg_grpc.v1 import pb
from umg_grpc.wire.names import Spelling, ToolNames

MOST_CHARACTERS = 64

_SPELLING = Spelling(re.compile(r"[a-zA-Z0-9_-]{1,64}"), illegal=re.compile(r"[^a-zA-Z0-9_-]"), most=MOST_CHARACTERS)


def tool_names(request: pb.GenerateRequest) -> ToolNames:
    """The names of one request and its answer."""
    return ToolNames(request, _SPELLING)


def told_id(call_id: str) -> str:
    """The id of a call as a provider is told it: itself unless it is too long. The same for a call and its result."""
    if len(call_id) <= MOST_CHARACTERS:
        return call_id
    digest = hashlib.sha256(call_id.encode()).hexdigest()[:32]
    return f"{call_id[: MOST_CHARACTERS - 33]}_{digest}"
