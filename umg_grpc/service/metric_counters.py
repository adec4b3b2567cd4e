"""Names, help texts and labels of the counters of the service."""

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Total:
    """Definition of a counter. It is a key in the counts of each call, and is compared by identity, which is fast."""

    name: str
    help_text: str
    labels: tuple[str, ...] = ()
    has_key: bool = False
    """Whether the label `key` follows, in a gateway whose metrics have it."""


FINISHED_CALLS = Total("umg_calls", "Calls finished.", ("method", "channel", "model", "outcome"), has_key=True)
USED_TOKENS = Total("umg_tokens", "Tokens used.", ("channel", "model", "direction"), has_key=True)
PROMPT_CACHE = Total(
    "umg_prompt_cache_tokens",
    "Input tokens that providers read from or wrote to their prompt caches.",
    ("channel", "model", "kind"),
    has_key=True,
)
AGENT_TOKENS = Total(
    "umg_agent_tokens", "Input tokens by the program of the call, all and those of prompt caches.", ("agent", "kind")
)
CALL_COST = Total("umg_cost_credits", "Cost of the calls.", ("channel", "model"), has_key=True)
FINISHED_ATTEMPTS = Total("umg_attempts", "Attempts finished.", ("channel", "model", "outcome"))
CHANNEL_FAILURES = Total(
    "umg_channel_failures", "Failures of providers, by kind and HTTP status.", ("channel", "model", "kind", "status")
)
REFUSED_CALLS = Total("umg_refused", "Calls refused for overload.", ("reason",))
MENDED_REFUSALS = Total(
    "umg_mended_refusals",
    "Requests that succeeded after a provider's refusal of a member was mended.",
    ("channel", "model", "member"),
)
HEDGED_CALLS = Total("umg_hedges", "Second channels called beside a slow one.", ("model", "won"))
FALLBACK_CALLS = Total(
    "umg_fallbacks", "Calls of a fallback in place of a model that failed.", ("model", "fallback", "cause")
)
GUARD_CHECKS = Total(
    "umg_guard_decisions", "Checks of requests and responses by guards.", ("guard", "phase", "decision")
)
CACHE_LOOKUPS = Total("umg_cache", "Lookups of cached responses.", ("outcome",))
BLOB_BYTES = Total("umg_blob_bytes", "Bytes of result files.", ("direction",))
CREDENTIAL_READS = Total("umg_credential_reads", "Reads of a cloud's credentials.", ("channel", "outcome"))
EGRESS_REQUESTS = Total("umg_egress", "Requests to URLs that callers name.", ("outcome",))
LOST_RECORDS = Total("umg_usage_records_lost", "Usage records that were lost.", ("reason",))
DELETED_EARLY = Total("umg_usage_records_deleted_early", "Usage records deleted before their time.")

ALL_TOTALS = tuple(row for row in tuple(globals().values()) if isinstance(row, Total))
