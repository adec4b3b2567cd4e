"""Members of a messages body that the gateway recognizes in raw JSON objects. All others are unknown."""

from msgspec import Struct

from umg_grpc.wire.core.unknown_field_detection import Fields, by_type
from umg_grpc.wire.messages import schema
from umg_grpc.wire.messages.context_management import EDIT_TYPES, Management

HARMLESS_MEMBERS = frozenset(
    {
        "diagnostics",  # requests the reason of a cache miss
        "fallback_credit_token",  # billing of a retry
        "input",  # of a body that was written for two paths at once
        "fallbacks",  # models to try after a refusal: the gateway's own routing replaces it
        "speed",  # class of service
        "user_profile_id",
        "workspace_id",
    }
)
"""Top-level fields without canonical form or effect on the response. Translations leave them out and report them."""

REFUSED_FIELDS = frozenset(
    {
        "billing_policy",  # the account to bill
        "compaction",  # the response is a summary of the conversation
        "inference_geo",  # the places where the data may go
    }
)
"""Top-level fields of the SDK types that make a translation fail, as every unknown field does."""

_PIECES: dict[str, type[Struct]] = {"text": schema.TextBlock, "image": schema.ImageBlock}
_RESULTS = _PIECES | {"document": schema.DocumentBlock, "search_result": schema.SearchResultBlock}
_BLOCKS = _RESULTS | {
    "tool_reference": schema.ToolReferenceBlock,
    "thinking": schema.ThinkingBlock,
    "redacted_thinking": schema.RedactedThinkingBlock,
    "tool_use": schema.ToolUseBlock,
    "tool_result": schema.ToolResultBlock,
    "server_tool_use": schema.ServerToolUseBlock,
    "web_search_tool_result": schema.ServerToolResultBlock,
}
_IMAGES: dict[str, type[Struct]] = {"base64": schema.Base64Source, "url": schema.UrlSource, "file": schema.FileSource}
_DOCUMENTS = _IMAGES | {"text": schema.TextSource, "content": schema.ContentSource}

RAW_FIELDS = Fields(
    schema.MessagesRequest,
    {
        (schema.MessagesRequest, "system"): by_type({"text": schema.TextBlock}),
        (schema.Turn, "content"): by_type(_BLOCKS),
        (schema.MessagesRequest, "context_management"): by_type({}, Management),
        (Management, "edits"): by_type(EDIT_TYPES),
        (schema.ImageBlock, "source"): by_type(_IMAGES),
        (schema.DocumentBlock, "source"): by_type(_DOCUMENTS),
        (schema.ContentSource, "content"): by_type(_PIECES),
        (schema.SearchResultBlock, "content"): by_type(_PIECES),
        (schema.ToolResultBlock, "content"): by_type(_RESULTS | {"tool_reference": schema.ToolReferenceBlock}),
        (schema.ServerToolResultBlock, "content"): by_type(
            {"web_search_result": schema.WebSearchResult, "web_search_tool_result_error": schema.WebSearchError}
        ),
        (schema.MessagesRequest, "tools"): by_type(
            {"custom": schema.FunctionTool, "web_search_20250305": schema.WebSearchTool}, schema.FunctionTool
        ),
    },
    {
        # name of the provider's tool that made the call
        **dict.fromkeys((schema.ToolUseBlock, schema.ServerToolUseBlock, schema.ServerToolResultBlock), ("caller",)),
        schema.WebSearchTool: ("name",),  # there is only one
    },
)
