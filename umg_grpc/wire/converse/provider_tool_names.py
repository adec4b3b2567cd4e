"""Tool names and call ids in the form that Converse providers accept: up to 64 characters."""

import re

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_name_conversion import NameRules, ToolNames

_ILLEGAL = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_RULES = NameRules(re.compile(r"[a-zA-Z0-9_-]{1,64}"), illegal=_ILLEGAL, max_characters=64)
ILLEGAL_IN_IDS = re.compile(r"[^a-zA-Z0-9_.:-]")
MAX_ID_CHARACTERS = 64
UNUSED_TOOL = "no_tool"  # declared if a conversation has tool calls but the request has no tools


def tool_names(request: pb.GenerateRequest) -> ToolNames:
    """Return the mapping between the caller's tool names and a provider's, for one request and its response."""
    return ToolNames(request, _NAME_RULES)
