"""Graphs of the Grafana dashboard of a gateway."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Panel:
    """Graph of the dashboard."""

    row: str
    title: str
    unit: str
    """Unit of Grafana: `reqps`, `s`, `short`, ..."""
    queries: tuple[tuple[str, str], ...]
    """Pairs of a PromQL expression and its legend."""


def _quantiles(metric: str, *quantiles: float) -> tuple[tuple[str, str], ...]:
    rates = f"sum by (le) (rate({metric}_bucket[$__rate_interval]))"
    return tuple((f"histogram_quantile({share}, {rates})", f"p{share * 100:g}") for share in quantiles)


PANELS = [
    Panel(
        "Calls",
        "Calls by outcome",
        "reqps",
        (("sum by (outcome) (rate(umg_calls_total[$__rate_interval]))", "{{outcome}}"),),
    ),
    Panel(
        "Calls", "Calls by model", "reqps", (("sum by (model) (rate(umg_calls_total[$__rate_interval]))", "{{model}}"),)
    ),
    Panel("Calls", "Duration of calls", "s", _quantiles("umg_call_seconds", 0.5, 0.95, 0.99)),
    Panel("Calls", "Time to the first output of streams", "s", _quantiles("umg_first_output_seconds", 0.5, 0.95, 0.99)),
    Panel(
        "Calls",
        "Result files",
        "bytes",
        (
            ("sum by (direction) (rate(umg_blob_bytes_total[$__rate_interval]))", "{{direction}} a second"),
            ("max(umg_blob_store_bytes)", "all"),
        ),
    ),
    Panel(
        "Calls",
        "URLs from callers",
        "reqps",
        (("sum by (outcome) (rate(umg_egress_total[$__rate_interval]))", "{{outcome}}"),),
    ),
    Panel(
        "Calls",
        "Decisions of guards",
        "reqps",
        (
            (
                "sum by (guard, decision) (rate(umg_guard_decisions_total[$__rate_interval]))",
                "{{guard}}: {{decision}}",
            ),
        ),
    ),
    Panel("Calls", "Duration of checks by guards", "s", _quantiles("umg_guard_seconds", 0.5, 0.95, 0.99)),
    Panel("Videos", "Open video tasks", "short", (("max by (channel) (umg_video_tasks)", "{{channel}}"),)),
    Panel(
        "Videos",
        "Video tasks submitted and ended",
        "reqps",
        (
            ("sum by (outcome) (rate(umg_video_submissions_total[$__rate_interval]))", "{{outcome}}"),
            ("sum by (outcome) (rate(umg_video_task_ends_total[$__rate_interval]))", "ended: {{outcome}}"),
        ),
    ),
    Panel(
        "Videos",
        "Polls of video tasks",
        "reqps",
        (("sum by (channel, outcome) (rate(umg_video_polls_total[$__rate_interval]))", "{{channel}} {{outcome}}"),),
    ),
    Panel(
        "Videos",
        "Unknown states of video tasks",
        "reqps",
        (("sum by (channel) (rate(umg_video_unknown_states_total[$__rate_interval]))", "{{channel}}"),),
    ),
    Panel(
        "Videos",
        "Reads and copies of videos",
        "reqps",
        (
            ("sum by (source, outcome) (rate(umg_video_content_total[$__rate_interval]))", "{{source}} {{outcome}}"),
            ("sum by (outcome) (rate(umg_video_copies_total[$__rate_interval]))", "copies {{outcome}}"),
        ),
    ),
    Panel("Videos", "Lateness of polls", "s", (("max(umg_video_poll_lateness_seconds)", "most overdue"),)),
    Panel(
        "Videos",
        "Notifications of video tasks",
        "reqps",
        (
            (
                "sum by (direction, outcome) (rate(umg_video_callback_attempts_total[$__rate_interval]))",
                "{{direction}} {{outcome}}",
            ),
        ),
    ),
    Panel("Videos", "Undelivered notifications", "short", (("max by (state) (umg_video_callbacks)", "{{state}}"),)),
    Panel(
        "Usage",
        "Tokens by model",
        "short",
        (("sum by (model, direction) (rate(umg_tokens_total[$__rate_interval]))", "{{model}} {{direction}}"),),
    ),
    Panel(
        "Usage",
        "Input tokens read from and written to prompt caches",
        "short",
        (("sum by (model, kind) (rate(umg_prompt_cache_tokens_total[$__rate_interval]))", "{{model}} {{kind}}"),),
    ),
    Panel(
        "Usage",
        "Cached share of input tokens by program",
        "percentunit",
        (
            (
                'sum by (agent) (rate(umg_agent_tokens_total{kind="read"}[$__rate_interval]))'
                ' / sum by (agent) (rate(umg_agent_tokens_total{kind="input"}[$__rate_interval]))',
                "{{agent}}",
            ),
        ),
    ),
    Panel(
        "Usage",
        "Cost by model (credits an hour)",
        "short",
        (("3600 * sum by (model) (rate(umg_cost_credits_total[$__rate_interval]))", "{{model}}"),),
    ),
    Panel(
        "Usage",
        "Look-ups of cached responses",
        "reqps",
        (("sum by (outcome) (rate(umg_cache_total[$__rate_interval]))", "{{outcome}}"),),
    ),
    Panel("Usage", "Models without a price", "short", (("max by (model) (umg_unpriced_models)", "{{model}}"),)),
    Panel(
        "Channels",
        "Attempts by outcome",
        "reqps",
        (("sum by (channel, outcome) (rate(umg_attempts_total[$__rate_interval]))", "{{channel}} {{outcome}}"),),
    ),
    Panel(
        "Channels",
        "Failures by kind and status",
        "reqps",
        (
            (
                "sum by (channel, model, kind, status) (rate(umg_channel_failures_total[$__rate_interval]))",
                "{{channel}} {{model}} {{kind}} {{status}}",
            ),
        ),
    ),
    Panel(
        "Channels",
        "Circuit breakers (0 closed, 1 open, 2 half-open)",
        "short",
        (("max by (channel, model) (umg_channel_state)", "{{channel}} {{model}}"),),
    ),
    Panel(
        "Channels",
        "Remaining pause",
        "s",
        (("max by (channel, model) (umg_channel_rest_seconds)", "{{channel}} {{model}}"),),
    ),
    Panel(
        "Channels",
        "Attempts in flight and calls that wait",
        "short",
        (
            ("sum by (channel) (umg_channel_calls)", "{{channel}} in flight"),
            ("sum by (channel) (umg_channel_queue)", "{{channel}} waiting"),
        ),
    ),
    Panel(
        "Channels",
        "Paused keys and disabled channels",
        "short",
        (
            ("max by (channel) (umg_channel_keys_resting)", "{{channel}}"),
            ("max by (channel) (umg_channel_disabled)", "{{channel}} disabled"),
        ),
    ),
    Panel(
        "Channels",
        "Reads of a cloud's credentials",
        "short",
        (
            (
                "sum by (channel, outcome) (increase(umg_credential_reads_total[$__rate_interval]))",
                "{{channel}} {{outcome}}",
            ),
        ),
    ),
    Panel(
        "Channels",
        "Model lists",
        "short",
        (
            ("min by (channel) (umg_model_list_success)", "{{channel}} success"),
            ("max by (channel) (umg_model_list_age_seconds)", "{{channel}} seconds ago"),
        ),
    ),
    Panel(
        "Channels",
        "Hedges",
        "reqps",
        (("sum by (model, won) (rate(umg_hedges_total[$__rate_interval]))", "{{model}} won: {{won}}"),),
    ),
    Panel(
        "Channels",
        "Fallbacks by cause",
        "reqps",
        (
            (
                "sum by (model, fallback, cause) (rate(umg_fallbacks_total[$__rate_interval]))",
                "{{model}} to {{fallback}}: {{cause}}",
            ),
        ),
    ),
    Panel(
        "Channels",
        "Mended refusals of members",
        "reqps",
        (
            (
                "sum by (channel, model, member) (rate(umg_mended_refusals_total[$__rate_interval]))",
                "{{channel}} {{model}} {{member}}",
            ),
        ),
    ),
    Panel(
        "Process",
        "Calls in flight and waiting",
        "short",
        (("sum(umg_gate_calls)", "in flight"), ("sum(umg_gate_queue)", "waiting")),
    ),
    Panel("Process", "Wait for a start", "s", (("max by (clock) (umg_gate_lag_seconds)", "{{clock}}"),)),
    Panel(
        "Process",
        "Calls refused for overload",
        "reqps",
        (("sum by (reason) (rate(umg_refused_total[$__rate_interval]))", "{{reason}}"),),
    ),
    Panel(
        "Process",
        "Database, Redis and journal",
        "short",
        (("min(umg_database_up)", "database"), ("min(umg_redis_up)", "Redis"), ("min(umg_journal_up)", "journal")),
    ),
    Panel("Process", "Clock skew", "s", (("umg_clock_skew_seconds", "{{instance}}"),)),
    Panel("Process", "Writes waiting", "short", (("sum by (store) (umg_writes_waiting)", "{{store}}"),)),
    Panel(
        "Process",
        "Usage records lost, or deleted before their time",
        "short",
        (
            ("sum by (reason) (increase(umg_usage_records_lost_total[$__rate_interval]))", "{{reason}}"),
            ("sum (increase(umg_usage_records_deleted_early_total[$__rate_interval]))", "deleted early"),
        ),
    ),
    Panel("Process", "Known keys", "short", (("min(umg_known_keys)", "keys"),)),
    Panel(
        "Process",
        "Last reload",
        "short",
        (("min(umg_reload_success)", "success"), ("time() - min(umg_reload_time_seconds)", "seconds ago")),
    ),
    Panel(
        "Process",
        "Seconds until the certificate expires",
        "s",
        (("min(umg_tls_certificate_expiry_time_seconds) - time()", "left"), ("min(umg_tls_reload_success)", "success")),
    ),
    Panel(
        "Process",
        "Limits by memory and open files",
        "short",
        (
            ("max(umg_gate_memory_ratio)", "memory, of its limit"),
            ("min(umg_connections_limit)", "most connections"),
            ("min(umg_open_files_limit)", "most open files"),
        ),
    ),
    Panel("Process", "Tasks of the event loop", "short", (("sum(umg_tasks)", "tasks"),)),
    Panel("Process", "Configs", "short", (("sum by (hash) (umg_config_info)", "{{hash}}"),)),
    Panel(
        "Process",
        "Versions",
        "short",
        (("count by (version, python) (umg_build_info)", "{{version}} (Python {{python}})"),),
    ),
]
