"""What a body may hold where its structs keep the JSON raw."""

from msgspec import Struct

from umg_grpc.wire.messages import schema
from umg_grpc.wire.unknown import Fields, by_type

HARMLESS = frozenset(
    {
        "diagnostics",  # asks why a cache was missed
        "fallback_credit_token",  # billing of a retry
        "input",  # of a body that was written for two paths at once
        "fallbacks",  # models to try after a refusal: the gateway's own routing stands for them
        "speed",  # class of service
        "user_profile_id",
        "workspace_id",
    }
)
"""Top-level fields without canonical form that change no answer: left out and reported when a body is translated."""

REFUSED = frozenset(
    {
        "billing_policy",  # who pays
        "compaction",  # the answer is a summary of the conversation
        "inference_geo",  # where the data may go
    }
)
"""Top-level fields of the SDK types that a translated body is refused for, as for every unknown field."""

BETAS = {
    "advisor-tool-2026-03-01": "tools",
    "agent-memory-2026-07-22": "tools",
    "cache-diagnosis-2026-04-07": "diagnostics",
    "code-execution-2025-05-22": "tools",
    "compact-2026-01-12": "context_management",
    "compact-2026-09-04": "compaction",
    "computer-use-2024-10-22": "tools",
    "computer-use-2025-01-24": "tools",
    "computer-use-2025-11-24": "tools",
    "context-1m-2025-08-07": "",
    "context-management-2025-06-27": "context_management",
    "dev-full-thinking-2025-05-14": "",
    "extended-cache-ttl-2025-04-11": "cache_control",
    "fallback-credit-2026-06-01": "fallback_credit_token",
    "fallback-credit-2026-07-01": "fallback_credit_token",
    "fast-mode-2026-02-01": "speed",
    "files-api-2025-04-14": "messages",
    "inline-tools-2026-09-15": "messages",
    "interleaved-thinking-2025-05-14": "",
    "mcp-client-2025-04-04": "mcp_servers",
    "mcp-client-2025-11-20": "mcp_servers",
    "mcp-client-2026-09-15": "mcp_servers",
    "mcp-tunnels-2026-06-22": "mcp_servers",
    "message-threads-2026-08-12": "thread",
    "mid-conversation-output-config-2026-07-01": "messages",
    "mid-conversation-system-clear-at-2026-08-21": "messages",
    "mid-conversation-tool-changes-2026-07-01": "messages",
    "model-context-window-exceeded-2025-08-26": "",
    "output-128k-2025-02-19": "max_tokens",
    "output-300k-2026-03-24": "max_tokens",
    "pdfs-2024-09-25": "messages",
    "prompt-caching-2024-07-31": "cache_control",
    "server-side-fallback-2026-06-01": "fallbacks",
    "server-side-fallback-2026-07-01": "fallbacks",
    "skills-2025-10-02": "container",
    "structured-outputs-2025-11-13": "output_config",
    "task-budgets-2026-03-13": "output_config",
    "thinking-binding-controls-2026-08-01": "thinking",
    "thinking-display-updates-2026-08-18": "thinking",
    "thinking-token-count-2026-05-13": "",
    "token-counting-2024-11-01": "",
    "token-efficient-tools-2025-02-19": "",
    "user-profiles-2026-03-24": "user_profile_id",
    "user-profiles-2026-08-18": "user_profile_id",
    "user-profiles-2026-09-04": "user_profile_id",
    "user-profiles-billing-2026-10-01": "billing_policy",
}
"""Beta of the SDK types -> field of the body that asks for what it permits, "" for one that only changes limits, costs
or the form of the same answer. A beta asks for nothing by itself: the field is judged, and the header is reported.
"""

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
        (schema.ToolResultBlock, "content"): by_type(_RESULTS | {"tool_reference": schema.ToolReferenceBlock}),
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
