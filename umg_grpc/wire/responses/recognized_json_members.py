"""Members of raw JSON objects in a responses body that the gateway recognizes, so that it can find unknown ones."""

from collections.abc import Mapping

from msgspec import Struct

from umg_grpc.wire.core.function_tool_encoding import FunctionDefinition
from umg_grpc.wire.core.unknown_field_detection import Fields, by_type
from umg_grpc.wire.responses import schema
from umg_grpc.wire.responses.server_tools import SERVER_TOOLS
from umg_grpc.wire.responses.tools import SEARCH_PREFIX, UNCARRIED_TOOLS

HARMLESS_MEMBERS = frozenset(
    {
        "access_programs",  # access of a vendor's customers to its own models
        "background_options",  # of background responses, which are not served
        "client_metadata",  # labels of a coding agent
        "image",  # compression of the vendor's own context
        *("messages", "max_tokens", "max_completion_tokens"),  # of a body that was written for two paths at once
    }
)
"""Top-level fields without a canonical form that do not affect the response. Translations omit and report them."""

_PARTS: dict[str, type[Struct]] = {
    "input_text": schema.TextPart,
    "output_text": schema.OutputText,
    "refusal": schema.RefusalPart,
    "input_image": schema.ImagePart,
    "input_file": schema.FilePart,
    "input_audio": schema.AudioPart,
}
_ITEMS: dict[str, type[Struct]] = {
    "input_text": schema.TextPart,
    "input_image": schema.ImagePart,
    "input_file": schema.FilePart,
    "input_audio": schema.AudioPart,
    "message": schema.MessageItem,
    "function_call": schema.FunctionCall,
    "custom_tool_call": schema.CustomCall,
    "function_call_output": schema.CallOutput,
    "custom_tool_call_output": schema.CallOutput,
    "reasoning": schema.ReasoningItem,
    "image_generation_call": schema.ImageItem,
    **dict.fromkeys(SERVER_TOOLS, schema.ToolItem),
}


def _item(members: Mapping[str, object]) -> type[Struct] | None:
    kind = members.get("type")
    if isinstance(kind, str):
        return _ITEMS.get(kind)
    return schema.MessageItem if members.get("role") is not None else None  # else a reference to one


def _tool(members: Mapping[str, object]) -> type[Struct] | None:
    match members.get("type"):
        case "function":
            return FunctionDefinition if members.get("function") is None else schema.NestedFunction
        case "custom":
            return schema.CustomTool
        case "namespace":
            return schema.NamespaceTool
        case "file_search":
            return schema.FileSearchTool
        case str(kind) if kind.startswith(SEARCH_PREFIX):
            return schema.WebSearchTool
        case _:  # a type without a struct: all its fields are kept
            return None


def _choice(members: Mapping[str, object]) -> type[Struct] | None:
    match members.get("type"):
        case "function":
            return schema.Named if members.get("function") is None else schema.NestedFunction
        case "custom":
            return schema.Named
        case "allowed_tools":
            return schema.AllowedTools if members.get("allowed_tools") is None else schema.NestedAllowedTools
        case _:  # a type without a struct: all its fields are kept
            return None


RAW_FIELDS = Fields(
    schema.ResponsesRequest,
    {
        (schema.ResponsesRequest, "input"): _item,
        (schema.MessageItem, "content"): by_type(_PARTS),
        (schema.CallOutput, "output"): by_type(_PARTS),
        (schema.ResponsesRequest, "tools"): _tool,
        (schema.ResponsesRequest, "tool_choice"): _choice,
        (schema.NamespaceTool, "tools"): _tool,
        (schema.NestedFunction, "function"): lambda _: FunctionDefinition,
        (schema.NestedAllowedTools, "allowed_tools"): lambda _: schema.AllowedTools,
    },
    {
        # items of an input are always complete
        **dict.fromkeys((schema.MessageItem, schema.ReasoningItem), ("status",)),
        schema.OutputText: ("logprobs",),  # of an earlier response
        # the caller of the call, which the call itself contains
        **dict.fromkeys((schema.FunctionCall, schema.CustomCall), ("status", "caller", "async")),
        schema.CallOutput: ("status", "caller", "namespace"),
        # how the image was made
        schema.ImageItem: ("status", "revised_prompt", "action", "background", "output_format", "quality", "size"),
        # reported by their names
        **dict.fromkeys(
            (FunctionDefinition, schema.NestedFunction, schema.CustomTool, schema.FileSearchTool, schema.WebSearchTool),
            UNCARRIED_TOOLS,
        ),
    },
)
