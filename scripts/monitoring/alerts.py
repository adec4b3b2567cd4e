"""Prometheus alerts of a gateway."""

from dataclasses import dataclass

PAGED, TICKET = "page", "ticket"


@dataclass(frozen=True)
class Alert:
    """Prometheus alert: a condition about which an operator is notified."""

    name: str
    expression: str
    wait: str
    """Time for which the condition has to last."""
    severity: str
    """`page`: callers are affected now, or records are lost; `ticket`: the next working day is early enough."""
    meaning: str
    action: str


def _grows(selector: str, window: str, labels: str) -> str:
    new = f"{selector} unless {selector} offset {window}"
    return f"sum by ({labels}) (increase({selector}[{window}]) > 0 or ({new})) > 0"


def _cached_share(window: str) -> str:
    read = f'sum by (model) (increase(umg_prompt_cache_tokens_total{{kind="read"}}[{window}))'
    return f'{read} / sum by (model) (increase(umg_tokens_total{{direction="input"}}[{window}))'


FAULTS = 'outcome=~"UPSTREAM_FAILED|UPSTREAM_UNREACHABLE|UPSTREAM_CUT|UPSTREAM_TIMEOUT|UNAVAILABLE|INTERNAL"'
ALERTS = [
    Alert(
        "UmgAbsent",
        "absent(umg_build_info)",
        "2m",
        PAGED,
        "no gateway is scraped",
        "look at the processes, and at the scrape configuration",
    ),
    Alert(
        "UmgCallsFail",
        f"sum(rate(umg_calls_total{{{FAULTS}}}[5m])) / sum(rate(umg_calls_total[5m])) > 0.01",
        "5m",
        PAGED,
        "more than one call in a hundred fails by the gateway or its providers",
        "look at the outcomes by channel in the dashboard, and at the lines `channel failed` of the log",
    ),
    Alert(
        "UmgModelUnavailable",
        "min by (model) (umg_channel_state) > 0",
        "1m",
        PAGED,
        "the circuit breakers of all channels of a model of the provider are open",
        "`umg models` prints the last failure of each channel",
    ),
    Alert(
        "UmgChannelDown",
        _grows('umg_attempts_total{outcome="down"}', "10m", "channel, model"),
        "0m",
        TICKET,
        "a provider refuses a key, an account, an address or a model",
        "`umg_channel_failures_total` of the channel and model has the kind, for example `wrong_key` or `unpaid`",
    ),
    Alert(
        "UmgChannelResting",
        "umg_channel_state > 0",
        "5m",
        TICKET,
        "a circuit breaker has been open for five minutes",
        "`umg models` prints the last failure of the channel",
    ),
    Alert(
        "UmgKeyPaused",
        "umg_channel_keys_resting > 0",
        "15m",
        TICKET,
        "a key of a channel has been paused for a quarter of an hour",
        "look for `upstream_key` in the log, and replace the key or raise its limit",
    ),
    Alert(
        "UmgCredentialsFail",
        'increase(umg_credential_reads_total{outcome="failed"}[10m]) > 0 unless ignoring (outcome)'
        ' (increase(umg_credential_reads_total{outcome="refreshed"}[10m]) > 0'
        ' or (umg_credential_reads_total{outcome="refreshed"}'
        ' unless umg_credential_reads_total{outcome="refreshed"} offset 10m))',
        "5m",
        TICKET,
        "the credentials of a cloud cannot be renewed: the channel fails once the valid ones expire",
        "the line `the credentials of a channel could not be renewed` of the log has the cause",
    ),
    Alert(
        "UmgModelListFails",
        "umg_model_list_success == 0",
        "15m",
        TICKET,
        "the model list of a provider has not been readable for a quarter of an hour: new models are missing",
        "`umg models` and the playground print the reason and the remedy",
    ),
    Alert(
        "UmgDatabaseDown",
        "umg_database_up == 0",
        "1m",
        PAGED,
        "the database does not answer: known keys are served, new keys are refused",
        "repair the database; no restart is needed",
    ),
    Alert(
        "UmgClockWrong",
        "abs(umg_clock_skew_seconds) > 0.5",
        "2m",
        PAGED,
        "the clock differs from that of the database; the process is not ready from a difference of one second on",
        "synchronize both machines by NTP; no restart is needed",
    ),
    Alert(
        "UmgRedisDown",
        "umg_redis_up == 0",
        "1m",
        TICKET,
        "Redis does not answer: each process applies its share of the limits",
        "repair Redis; no restart is needed",
    ),
    Alert(
        "UmgWritesWaiting",
        "min_over_time(umg_writes_waiting[15m]) > 0 unless on (instance, job) umg_database_up == 0",
        "0m",
        TICKET,
        "writes have been waiting for a quarter of an hour although the database answers",
        "look at the load of the database, and at the log",
    ),
    Alert(
        "UmgJournalDown",
        "umg_journal_up == 0",
        "1m",
        PAGED,
        "the journal cannot take usage records: they wait in memory for the database, and the process is not ready",
        "make room in the data directory, or repair the database; no restart is needed",
    ),
    Alert(
        "UmgUsageLost",
        _grows("umg_usage_records_lost_total", "10m", "reason"),
        "0m",
        PAGED,
        "usage records are lost: their calls are charged to no key",
        "`full`: repair the database, which has not taken records for long; `disk`: make room in the data directory",
    ),
    Alert(
        "UmgUsageDeletedEarly",
        _grows("umg_usage_records_deleted_early_total", "1h", "job"),
        "0m",
        TICKET,
        "usage records are deleted before `usage.ttl`, since they exceed `usage.max_bytes`",
        "give `usage.max_bytes` more room, or lower `usage.ttl`; with PostgreSQL the limit of size can be left out",
    ),
    Alert(
        "UmgReloadFailed",
        "umg_reload_success == 0",
        "0m",
        TICKET,
        "the config file has an error, and the old config is served",
        "`umg check` and the log name the line",
    ),
    Alert(
        "UmgConfigsDiffer",
        "count(count by (hash) (umg_config_info == 1)) > 1",
        "10m",
        TICKET,
        "the replicas have different configs",
        "`umg reload` each with the same file; the dashboard shows the number of replicas with each",
    ),
    Alert(
        "UmgCertificateReloadFailed",
        "umg_tls_reload_success == 0",
        "1m",
        TICKET,
        "the certificate files cannot be used, and the old certificate is served",
        "the log names the file and the problem",
    ),
    Alert(
        "UmgCertificateExpires",
        "umg_tls_certificate_expiry_time_seconds - time() < 7 * 24 * 3600",
        "5m",
        TICKET,
        "the certificate expires within a week; then clients refuse it",
        "renew the certificate; no restart is needed",
    ),
    Alert(
        "UmgRefusing",
        _grows("umg_refused_total", "5m", "reason"),
        "0m",
        PAGED,
        "calls are refused for overload",
        "add processes, or raise the bounds",
    ),
    Alert(
        "UmgLagging",
        'umg_gate_lag_seconds{clock="processor"} > 0.1',
        "5m",
        TICKET,
        "calls wait for half of the default of `overload.lag` until the process starts them",
        "add processes before calls are refused",
    ),
    Alert(
        "UmgChannelQueue",
        "umg_channel_queue > 0",
        "1m",
        TICKET,
        "calls wait for a place at a channel",
        "raise `concurrency`, or add a channel",
    ),
    Alert(
        "UmgFirstOutputSlow",
        "histogram_quantile(0.95, sum by (le, channel, model) (rate(umg_first_output_seconds_bucket[10m]))) > 30",
        "10m",
        TICKET,
        "one stream in twenty begins after more than half a minute",
        "compare the channels of the model; `hedge` and `timeout.first_byte` bound the wait",
    ),
    Alert(
        "UmgCachedShareFalls",
        f"{_cached_share('1h]')} < 0.7 * {_cached_share('1d] offset 1h')}"
        ' and sum by (model) (increase(umg_tokens_total{direction="input"}[1h])) > 1e6',
        "15m",
        TICKET,
        "the share of a model's input tokens from prompt caches is below 70 % of the day before",
        "look for another order of channels and for prompts whose beginning changes (`umg usage --by model,key,agent`)",
    ),
    Alert(
        "UmgTasksGrow",
        "deriv(umg_tasks[1h]) > 0.05 and deriv(umg_gate_calls[1h]) <= 0",
        "1h",
        TICKET,
        "the tasks of the event loop grow while the calls do not: a leak",
        "restart the process, and report it with the log",
    ),
    Alert(
        "UmgVersionsDiffer",
        "count(count by (version) (umg_build_info)) > 1",
        "1h",
        TICKET,
        "processes of several versions have been running for an hour",
        "complete the rollout",
    ),
]
