"""Validation of the tool choice of a text request."""

from collections.abc import Sequence
from typing import assert_never

from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid


def check_tool_choice(request: pb.GenerateRequest) -> None:
    """Raise UmgError(INVALID_FIELD) if the tool choice requires an absent tool. Accept any choice if only the provider
    may have the list of tools (an opaque tool, a prompt template, cached content).
    """
    choice, tools = request.tool_choice, request.tools
    if any(tool.HasField("opaque") for tool in tools):
        return
    if request.HasField("prompt_template") or request.cached_content:
        return
    if not tools:
        raise invalid("tool_choice", "a tool is required and there are none; add `tools`")
    known = {name for tool in tools for name in _choice_names(tool)}
    for position, name in enumerate(choice.names):
        if name not in known:
            raise invalid(f"tool_choice.names[{position}]", f"there is no tool `{name[:64]}`; name one of `tools`")


def _choice_names(tool: pb.Tool) -> Sequence[str]:
    """Return the names by which a tool choice may refer to the tool."""
    match tool.WhichOneof("kind"):
        case "function":
            return (tool.function.name,)
        case "custom":
            return (tool.custom.name,)
        case "web_search":
            return ("web_search", tool.web_search.declared_type)
        case "file_search":
            return ("file_search",)
        case "opaque" | None:
            return ()
        case unhandled:
            assert_never(unhandled)
