"""What a body may hold where its structs keep the JSON raw."""

from msgspec import Struct

from umg_grpc.wire.messages import schema
from umg_grpc.wire.unknown import Fields, by_type

_PIECES: dict[str, type[Struct]] = {"text": schema.TextBlock, "image": schema.ImageBlock}
_RESULTS = _PIECES | {"document": schema.DocumentBlock, "search_result": schema.SearchResultBlock}
_BLOCKS = _RESULTS | {
    "thinking": schema.ThinkingBlock,
    "redacted_thinking": schema.RedactedThinkingBlock,
    "tool_use": schema.ToolUseBlock,
    "tool_result": schema.ToolResultBlock,
    "server_tool_use": schema.ServerToolUseBlock,
    "web_search_tool_result": schema.ServerToolResultBlock,
}
_IMAGES: dict[str, type[Struct]] = {
    "base64": schema.Base64Source,
    "url": schema.UrlSource,
    "file": schema.FileSource,
}
_DOCUMENTS = _IMAGES | {"text": schema.TextSource, "content": schema.ContentSource}

FIELDS = Fields(
    schema.MessagesRequest,
    {
        (schema.MessagesRequest, "system"): by_type({"text": schema.TextBlock}),
        (schema.Turn, "content"): by_type(_BLOCKS),
        (schema.ImageBlock, "source"): by_type(_IMAGES),
        (schema.DocumentBlock, "source"): by_type(_DOCUMENTS),
        (schema.ContentSource, "content"): by_type(_PIECES),
        (schema.SearchResultBlock, "content"): by_type(_PIECES),
        (schema.ToolResultBlock, "content"): by_type(_RESULTS),
        (schema.ServerToolResultBlock, "content"): by_type(
            {"web_search_result": schema.WebSearchResult, "web_search_tool_result_error": schema.WebSearchError}
        ),
        (schema.MessagesRequest, "tools"): by_type(
            {"custom": schema.FunctionTool, "web_search_20250305": schema.WebSearchTool}, schema.FunctionTool
        ),
    },
    {
        # which of the provider's own tools made the call
        **dict.fromkeys((schema.ToolUseBlock, schema.ServerToolUseBlock, schema.ServerToolResultBlock), ("caller",)),
        schema.WebSearchTool: ("name",),  # there is one only
    },
)
