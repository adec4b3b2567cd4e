"""Beta features that a request of the messages format may enable in the `anthropic-beta` header."""

BETA_FEATURES = {
    **dict.fromkeys(("context-1m-2025-08-07", "dev-full-thinking-2025-05-14", "interleaved-thinking-2025-05-14"), ""),
    **dict.fromkeys(("model-context-window-exceeded-2025-08-26", "thinking-token-count-2026-05-13"), ""),
    **dict.fromkeys(("token-counting-2024-11-01", "token-efficient-tools-2025-02-19"), ""),
    "user-profiles-billing-2026-10-01": "billing_policy",
    **dict.fromkeys(("extended-cache-ttl-2025-04-11", "prompt-caching-2024-07-31"), "cache_control"),
    "compact-2026-09-04": "compaction",
    "skills-2025-10-02": "container",
    **dict.fromkeys(("compact-2026-01-12", "context-management-2025-06-27"), "context_management"),
    "cache-diagnosis-2026-04-07": "diagnostics",
    **dict.fromkeys(("fallback-credit-2026-06-01", "fallback-credit-2026-07-01"), "fallback_credit_token"),
    **dict.fromkeys(("server-side-fallback-2026-06-01", "server-side-fallback-2026-07-01"), "fallbacks"),
    **dict.fromkeys(("output-128k-2025-02-19", "output-300k-2026-03-24"), "max_tokens"),
    **dict.fromkeys(("mcp-client-2025-04-04", "mcp-client-2025-11-20", "mcp-client-2026-09-15"), "mcp_servers"),
    "mcp-tunnels-2026-06-22": "mcp_servers",
    **dict.fromkeys(("files-api-2025-04-14", "inline-tools-2026-09-15"), "messages"),
    "mid-conversation-output-config-2026-07-01": "messages",
    "mid-conversation-system-clear-at-2026-08-21": "messages",
    **dict.fromkeys(("mid-conversation-tool-changes-2026-07-01", "pdfs-2024-09-25"), "messages"),
    **dict.fromkeys(("structured-outputs-2025-11-13", "task-budgets-2026-03-13"), "output_config"),
    "fast-mode-2026-02-01": "speed",
    **dict.fromkeys(("thinking-binding-controls-2026-08-01", "thinking-display-updates-2026-08-18"), "thinking"),
    "message-threads-2026-08-12": "thread",
    **dict.fromkeys(("advisor-tool-2026-03-01", "agent-memory-2026-07-22", "code-execution-2025-05-22"), "tools"),
    **dict.fromkeys(("computer-use-2024-10-22", "computer-use-2025-01-24", "computer-use-2025-11-24"), "tools"),
    **dict.fromkeys(("user-profiles-2026-03-24", "user-profiles-2026-08-18"), "user_profile_id"),
    "user-profiles-2026-09-04": "user_profile_id",
}
"""Beta of the SDK types -> field of the body that uses it and is checked, since a beta alone has no effect. "" for a
beta that only changes limits, costs or the form of the response.
"""


def betas_without_field(header: str) -> list[str]:
    """Return the beta features in a header that no field of a body uses: translations to other formats lose them."""
    named = [name for part in header.split(",") if (name := part.strip())]
    return [name for name in named if not BETA_FEATURES.get(name)]
