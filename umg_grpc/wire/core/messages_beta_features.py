"""Beta features that a request of the messages format may enable in the `anthropic-beta` header."""

BETA_FEATURES = {
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
"""Beta of the SDK types -> field of the body that uses it and is checked, since a beta alone has no effect. "" for a
beta that only changes limits, costs or the form of the response.
"""


def betas_without_field(header: str) -> list[str]:
    """Return the beta features in a header that no field of a body uses: translations to other formats lose them."""
    named = [name for part in header.split(",") if (name := part.strip())]
    return [name for name in named if not BETA_FEATURES.get(name)]
