"""Tool names and call ids as providers of the messages format accept them: letters, digits, `_` and `-`."""

import re

from umg_grpc.v1 import pb
from umg_grpc.wire.core.tool_name_conversion import NameRules, ToolNames
from umg_grpc.wire.model_quirks import requests_search

SEARCH_NAME = "web_search"
ILLEGAL_CHARACTERS = re.compile(r"[^a-zA-Z0-9_-]")
_NAME_RULES = NameRules(re.compile(r"[a-zA-Z0-9_-]{1,128}"), illegal=ILLEGAL_CHARACTERS, max_characters=128)


def tool_names(request: pb.GenerateRequest) -> ToolNames:
    """Return the mapping of tool names for one request and its response. A search by the provider keeps its name."""
    return ToolNames(request, _NAME_RULES, (SEARCH_NAME,) if requests_search(request) else ())
