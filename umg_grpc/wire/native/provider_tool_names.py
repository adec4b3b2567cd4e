"""Conversion of tool names to names that native providers accept."""

import re

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_name_conversion import NameRules, ToolNames

_NAME_RULES = NameRules(
    re.compile(r"[A-Za-z_][\w.:-]{0,63}", re.ASCII), illegal=re.compile(r"[^\w.:-]", re.ASCII), max_characters=64
)


def tool_names(request: pb.GenerateRequest) -> ToolNames:
    """Return the mapping between the caller's tool names and a provider's, for one request and its response."""
    return ToolNames(request, _NAME_RULES)
