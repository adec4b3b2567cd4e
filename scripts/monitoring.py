"""Write the Prometheus alerts, the Grafana dashboard and the documentation's table of alerts:
`python scripts/monitoring.py`; with `--check`, compare them with the files.
"""

import argparse
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parent.parent
RULES = "deploy/prometheus/alerts.yaml"
DASHBOARD = "deploy/grafana/dashboard.json"
PAGE = "docs/operations.md"
SECTION = re.compile(r"(\n## Alerts\n.*?\n\n)(\|.*?\n)(?=\n)", re.DOTALL)
HEADER = "# Made by scripts/monitoring.py, never edited.\n"
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
    """Return the PromQL condition that a counter grew within a window. A new series counts: `increase` does not see its
    first value.
    """
    new = f"{selector} unless {selector} offset {window}"
    return f"sum by ({labels}) (increase({selector}[{window}]) > 0 or ({new})) > 0"


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
        "UmgDatabaseDown",
        "umg_database_up == 0",
        "1m",
        PAGED,
        "the database does not answer: known keys are served, new keys are refused",
        "repair the database; no restart is needed",
    ),
    Alert(
        "UmgRedisDown",
        "umg_redis_up == 0",
        "1m",
        TICKET,
        "Redis does not answer: limits are counted by each process alone",
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
        "UmgUsageLost",
        _grows("umg_usage_records_lost_total", "10m", "reason"),
        "0m",
        PAGED,
        "usage records are lost: their calls are charged to no key",
        "`full`: repair the database, which has not taken records for long; `disk`: make room in the data directory",
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
    Panel("Channels", "Paused keys", "short", (("max by (channel) (umg_channel_keys_resting)", "{{channel}}"),)),
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
        "Process", "Database and Redis", "short", (("min(umg_database_up)", "database"), ("min(umg_redis_up)", "Redis"))
    ),
    Panel("Process", "Writes waiting", "short", (("sum by (store) (umg_writes_waiting)", "{{store}}"),)),
    Panel(
        "Process",
        "Usage records lost",
        "short",
        (("sum by (reason) (increase(umg_usage_records_lost_total[$__rate_interval]))", "{{reason}}"),),
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
    Panel("Process", "Tasks of the event loop", "short", (("sum(umg_tasks)", "tasks"),)),
    Panel(
        "Process",
        "Versions",
        "short",
        (("count by (version, python) (umg_build_info)", "{{version}} (Python {{python}})"),),
    ),
]
WIDTH, HEIGHT, COLUMNS = 8, 8, 24
"""Size of a panel and width of the dashboard, in units of Grafana's grid."""
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


def rules() -> str:
    """Return the file of Prometheus rules."""
    entries = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            **({"for": alert.wait} if alert.wait != "0m" else {}),
            "labels": {"severity": alert.severity},
            "annotations": {"summary": alert.meaning, "description": alert.action},
        }
        for alert in ALERTS
    ]
    groups = {"groups": [{"name": "umg", "rules": entries}]}
    return HEADER + yaml.safe_dump(groups, sort_keys=False, width=1000)


def dashboard() -> str:
    """Return the dashboard for Grafana 10 or newer, whose data source is selected at its import."""
    panels: list[dict[str, Any]] = []
    top, left, row = 0, 0, ""
    for panel in PANELS:
        if panel.row != row:
            top, left, row = top + (HEIGHT if panels else 0), 0, panel.row
            panels.append(_panel(len(panels) + 1, row, "row", (0, top, COLUMNS, 1)))
            top += 1
        elif left + WIDTH > COLUMNS:
            top, left = top + HEIGHT, 0
        panels.append(_graph(len(panels) + 1, panel, (left, top, WIDTH, HEIGHT)))
        left += WIDTH
    variable = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    made = {
        "uid": "unified-model-gateway",
        "title": "Unified Model Gateway",
        "description": "Made by scripts/monitoring.py, never edited.",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": [variable]},
        "panels": panels,
    }
    return json.dumps(made, indent=2) + "\n"


def _panel(number: int, title: str, kind: str, place: tuple[int, int, int, int]) -> dict[str, Any]:
    return {"id": number, "title": title, "type": kind, "gridPos": dict(zip("xywh", place, strict=True))}


def _graph(number: int, panel: Panel, place: tuple[int, int, int, int]) -> dict[str, Any]:
    targets = [
        {"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": expression, "legendFormat": legend}
        for index, (expression, legend) in enumerate(panel.queries)
    ]
    return {
        **_panel(number, panel.title, "timeseries", place),
        "datasource": SOURCE,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": targets,
    }


def table() -> str:
    """Return the table of alerts for the documentation."""
    lines = ["| alert | severity | meaning | action |", "|---|---|---|---|"]
    lines += [f"| `{alert.name}` | {alert.severity} | {alert.meaning} | {alert.action} |" for alert in ALERTS]
    return "\n".join(lines) + "\n"


def files(root: Path) -> dict[str, str]:
    """Return the content of each generated file by its path. Raise ValueError if the page has no section for
    the table.
    """
    page = (root / PAGE).read_text()
    made, count = SECTION.subn(lambda match: match[1] + table(), page)
    if count != 1:
        raise ValueError(f"{PAGE}: expected one section `## Alerts` with a table")
    return {RULES: rules(), DASHBOARD: dashboard(), PAGE: made}


def main() -> int:
    """Write the files, or compare them. Return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare the files, and write none")
    check = parser.parse_args().check
    different = [path for path, text in files(ROOT).items() if _read(ROOT / path) != text]
    for path in different:
        print(f"{path} differs from scripts/monitoring.py" if check else f"wrote {path}")
        if not check:
            (ROOT / path).parent.mkdir(parents=True, exist_ok=True)
            (ROOT / path).write_text(files(ROOT)[path])
    return 1 if check and different else 0


def _read(path: Path) -> str | None:
    return path.read_text() if path.exists() else None


if __name__ == "__main__":
    sys.exit(main())
