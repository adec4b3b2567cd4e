"""Alerts and dashboard of `deploy/`: they are those of the tables, of existing metrics, and valid for Prometheus."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from scripts.monitoring.__main__ import DASHBOARD, RULES, files
from scripts.monitoring.alerts import ALERTS
from scripts.monitoring.panels import PANELS
from tests.support.ended_calls import end_attempt, ended_call
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.service import metric_gauges, service_metrics
from umg_grpc.service.video_tasks import task_metrics
from umg_grpc.service.video_tasks.task_metrics import TaskMetrics
from umg_grpc.v1 import pb

ROOT = Path(__file__).parents[2]
PROMTOOL = shutil.which("promtool")
PROMETHEUS = {"instance", "job", "le"}
"""Labels that Prometheus or its histograms add."""


def expressions() -> Iterator[str]:
    yield from (alert.expression for alert in ALERTS)
    yield from (expression for panel in PANELS for expression, _ in panel.queries)


def labels_of_metrics() -> dict[str, set[str]]:
    """Return the labels of each series that `/metrics` has or may have."""
    made = service_metrics.Metrics()
    usage = pb.Usage(input_tokens=1)
    call = ended_call(
        method="/umg.v1.GenerationService/Generate", model="", channel="", usage=usage, first_output_seconds=0.1
    )
    made.finished(call, "OK", 0.1)
    end_attempt(made, "m", "ok")
    made.failure("main", ProviderFailure(FailureKind.WRONG_KEY, 401))
    made.refused("full")
    made.hedged("m", won=True)
    made.fell_back("m", "other", "context")
    made.mended("main", "m", "temperature")
    made.count_guard("secrets", "request", "masked", 0.1)
    made.count_cache_lookup("hit")
    made.count_egress("fetched")
    made.count_credential_read("main", "refreshed")
    made.count_lost_records(1, "full")
    made.count_blob_bytes("stored", 1)
    videos = TaskMetrics(made)
    videos.submitted("main", "accepted")
    videos.polled("main", "ok")
    videos.ended("main", "succeeded")
    videos.called_back("out", "delivered")
    videos.unknown("main")
    videos.read("store", "ok")
    videos.copied("ok")
    families = [*text_string_to_metric_families(made.exposition().decode())]
    modules = (metric_gauges, task_metrics)
    levels = [value for module in modules for value in vars(module).values() if isinstance(value, metric_gauges.Level)]
    uncounted = {family.name for family in families if not family.samples} - {level.name for level in levels}
    assert not uncounted, f"count each of these once above, that its panel is required: {uncounted}"
    counted = {sample.name: set(sample.labels) for family in families for sample in family.samples}
    return counted | {level.name: set(level.labels) for level in levels}


def test_the_files_are_those_of_the_tables() -> None:
    for path, text in files(ROOT).items():
        assert (ROOT / path).read_text() == text, f"run `python -m scripts.monitoring`: {path}"


@pytest.mark.parametrize("expression", sorted(expressions()))
def test_an_expression_has_only_existing_metrics_and_labels(expression: str) -> None:
    known = labels_of_metrics()
    names = set(re.findall(r"\bumg_\w+", expression))
    assert names
    assert names <= known.keys()
    labels = {label for listed in re.findall(r"(?:by|on) \(([\w, ]+)\)", expression) for label in listed.split(", ")}
    labels |= set(re.findall(r'(\w+)=~?"', expression))
    assert labels <= PROMETHEUS.union(*(known[name] for name in names))


def test_the_outcomes_of_an_expression_are_reasons_of_errors() -> None:
    [alert] = [alert for alert in ALERTS if alert.name == "UmgCallsFail"]
    [outcomes] = re.findall(r'outcome=~"([^"]+)"', alert.expression)
    assert {f"ERROR_REASON_{outcome}" for outcome in outcomes.split("|")} <= set(pb.ErrorReason.keys())


def test_the_dashboard_has_every_metric() -> None:
    shown = {
        name for panel in PANELS for expression, _ in panel.queries for name in re.findall(r"\bumg_\w+", expression)
    }
    series = {name for name in labels_of_metrics() if name.startswith("umg_")}
    derived = {name for name in series if name.endswith(("_created", "_count", "_sum"))}
    assert shown == series - derived
    panels = json.loads((ROOT / DASHBOARD).read_text())["panels"]
    places = [(p["gridPos"]["x"] + dx, p["gridPos"]["y"] + dy) for p in panels for dx in range(p["gridPos"]["w"]) for dy in range(p["gridPos"]["h"])]  # fmt: skip
    assert len(places) == len(set(places))  # no panel covers another
    assert len({panel["id"] for panel in panels}) == len(panels)


@dataclass(frozen=True)
class Example:
    """Series (in the notation of promtool, one value a minute) for which an alert fires at a time."""

    series: Mapping[str, str]
    minutes: int


BUILD = 'umg_build_info{version="1",instance="a",job="umg"}'
EXAMPLES = {
    "UmgAbsent": Example({"other": "0x60"}, 10),
    "UmgCallsFail": Example({'umg_calls_total{outcome="OK"}': "0+95x60", 'umg_calls_total{outcome="UPSTREAM_FAILED"}': "0+5x60"}, 20),
    "UmgModelUnavailable": Example({'umg_channel_state{channel="a",model="m"}': "0x5 1x20", 'umg_channel_state{channel="b",model="m"}': "0x8 2x20"}, 12),
    "UmgChannelDown": Example({'umg_attempts_total{channel="a",model="m",outcome="down"}': "_x5 1x60"}, 8),
    "UmgChannelResting": Example({'umg_channel_state{channel="a",model="m"}': "0 1x20", 'umg_channel_state{channel="b",model="m"}': "0x20"}, 10),
    "UmgKeyPaused": Example({'umg_channel_keys_resting{channel="a"}': "1x30"}, 20),
    "UmgCredentialsFail": Example({'umg_credential_reads_total{channel="a",outcome="failed"}': "_x5 1+2x30", 'umg_credential_reads_total{channel="a",outcome="refreshed"}': "7x40"}, 15),
    "UmgModelListFails": Example({'umg_model_list_success{channel="a"}': "1 0x30"}, 20),
    "UmgDatabaseDown": Example({"umg_database_up": "1 0x10"}, 5),
    "UmgClockWrong": Example({"umg_clock_skew_seconds": "-3x10"}, 5),
    "UmgRedisDown": Example({"umg_redis_up": "1 0x10"}, 5),
    "UmgWritesWaiting": Example({'umg_writes_waiting{store="reasoning",instance="a",job="umg"}': "5x40", 'umg_database_up{instance="a",job="umg"}': "1x40"}, 20),
    "UmgJournalDown": Example({"umg_journal_up": "1 0x10"}, 5),
    "UmgUsageLost": Example({'umg_usage_records_lost_total{reason="disk"}': "_x5 3x20"}, 8),
    "UmgUsageDeletedEarly": Example({'umg_usage_records_deleted_early_total{job="umg"}': "_x5 3x20"}, 8),
    "UmgReloadFailed": Example({"umg_reload_success": "1 0x10"}, 5),
    "UmgConfigsDiffer": Example({'umg_config_info{hash="1",instance="a"}': "1x30", 'umg_config_info{hash="2",instance="b"}': "1x30"}, 15),
    "UmgCertificateReloadFailed": Example({"umg_tls_reload_success": "1 0x10"}, 5),
    "UmgCertificateExpires": Example({"umg_tls_certificate_expiry_time_seconds": "600000x20"}, 10),
    "UmgRefusing": Example({'umg_refused_total{reason="full"}': "1x10 2x10"}, 13),
    "UmgLagging": Example({'umg_gate_lag_seconds{clock="processor"}': "0.15x20", 'umg_gate_lag_seconds{clock="wall"}': "9x20"}, 10),
    "UmgChannelQueue": Example({'umg_channel_queue{channel="a"}': "1x20"}, 5),
    "UmgFirstOutputSlow": Example({'umg_first_output_seconds_bucket{channel="a",model="m",le="30"}': "0+1x60", 'umg_first_output_seconds_bucket{channel="a",model="m",le="60"}': "0+10x60", 'umg_first_output_seconds_bucket{channel="a",model="m",le="+Inf"}': "0+10x60"}, 40),
    "UmgCachedShareFalls": Example({'umg_tokens_total{direction="input",model="m"}': "0+30000x180", 'umg_prompt_cache_tokens_total{kind="read",model="m"}': "0+27000x120 3240000+9000x60"}, 175),
    "UmgTasksGrow": Example({'umg_tasks{instance="a"}': "0+10x240", 'umg_gate_calls{instance="a"}': "3x240"}, 200),
    "UmgVersionsDiffer": Example({BUILD: "1x120", BUILD.replace('"1"', '"2"').replace('"a"', '"b"'): "1x120"}, 100),
}  # fmt: skip
QUIET = {
    'umg_calls_total{outcome="OK"}': "0+100x240",
    'umg_calls_total{outcome="UPSTREAM_FAILED"}': "5x240",
    'umg_attempts_total{channel="a",model="m",outcome="down"}': "5x240",
    'umg_refused_total{reason="full"}': "5x240",
    'umg_channel_state{channel="a",model="m"}': "0x240",
    'umg_channel_keys_resting{channel="a"}': "0x240",
    'umg_credential_reads_total{channel="a",outcome="failed"}': "_x20 1 9x219",
    'umg_credential_reads_total{channel="a",outcome="refreshed"}': "_x24 1x216",
    'umg_writes_waiting{store="reasoning",instance="a",job="umg"}': "0 5 0 7 0x240",
    'umg_writes_waiting{store="usage",instance="a",job="umg"}': "0 9 9 0x240",
    'umg_usage_records_lost_total{reason="disk"}': "3x240",
    'umg_usage_records_deleted_early_total{job="umg"}': "3x240",
    'umg_database_up{instance="a",job="umg"}': "1x240",
    "umg_redis_up": "1x240",
    "umg_journal_up": "1 0 1x240",
    "umg_clock_skew_seconds": "0.1 9 0.1x240",
    "umg_reload_success": "1x240",
    'umg_config_info{hash="1",instance="a"}': "1x100 0x140",
    'umg_config_info{hash="2",instance="a"}': "_x100 1x140",
    'umg_config_info{hash="2",instance="b"}': "_x95 1x145",
    "umg_tls_reload_success": "0 1x240",
    "umg_tls_certificate_expiry_time_seconds": "700000x240",
    'umg_gate_lag_seconds{clock="processor"}': "0.01x240",
    'umg_channel_queue{channel="a"}': "0x240",
    'umg_tasks{instance="a"}': "10 20 10 20 10x240",
    'umg_gate_calls{instance="a"}': "1 2 1 2 1x240",
    'umg_tokens_total{direction="input",model="m"}': "0+30000x240",
    'umg_prompt_cache_tokens_total{kind="read",model="m"}': "0+27000x240",
    'umg_tokens_total{direction="input",model="small"}': "0+100x240",
    'umg_prompt_cache_tokens_total{kind="read",model="small"}': "0+90x120 10800x120",
    BUILD: "1x240",
}


def test_every_alert_has_an_example() -> None:
    assert EXAMPLES.keys() == {alert.name for alert in ALERTS}


def _unit_test(series: Mapping[str, str], minutes: int, firing: Mapping[str, bool]) -> dict[str, object]:
    checks = [
        {
            "expr": f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) > 0',
            "eval_time": f"{minutes}m",
            "exp_samples": [{"labels": "{}", "value": 1}] if fires else [],
        }
        for name, fires in firing.items()
    ]
    given = [{"series": name, "values": values} for name, values in series.items()]
    return {"interval": "1m", "input_series": given, "promql_expr_test": checks}


def _run_promtool(*arguments: str | Path) -> None:
    if PROMTOOL is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    done = subprocess.run([PROMTOOL, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _test_rules(file: Path, rules: Path, tests: Sequence[Mapping[str, object]]) -> None:
    written = {"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": list(tests)}
    file.write_text(yaml.safe_dump(written))
    _run_promtool("test", "rules", file)


def test_prometheus_accepts_the_rules_and_they_fire_by_their_examples(tmp_path: Path) -> None:
    rules = ROOT / RULES
    _run_promtool("check", "rules", rules)
    tests = [_unit_test(each.series, each.minutes, {name: True}) for name, each in EXAMPLES.items()]
    tests.append(_unit_test(QUIET, 230, dict.fromkeys(EXAMPLES, False)))
    _test_rules(tmp_path / "tests.yaml", rules, tests)


SELECTOR = re.compile(r'(\w+)\{(\w+)="(\w+)"\}')


def _series(name: str, labels: set[str], **fixed: str) -> dict[str, str]:
    values = {label: fixed.get(label, "1") for label in sorted(labels)}
    return {
        "series": f"{name}{{{', '.join(f'{label}={json.dumps(value)}' for label, value in values.items())}}}",
        "values": "0+1x60",
    }


def test_prometheus_evaluates_every_expression_of_the_dashboard(tmp_path: Path) -> None:
    """Record each expression by a rule, over one series of each metric and selected value: it has a value."""
    queries = [expression.replace("$__rate_interval", "5m") for panel in PANELS for expression, _ in panel.queries]
    records = {f"panel:number_{number}": expression for number, expression in enumerate(queries)}
    entries = [{"record": name, "expr": expression} for name, expression in records.items()]
    rules = tmp_path / "panels.yaml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": entries}]}))
    _run_promtool("check", "rules", rules)
    known = labels_of_metrics()
    series = [
        _series(name, labels, le=bound)
        for name, labels in known.items()
        for bound in (("1", "+Inf") if "le" in labels else ("",))
    ]
    selected = {found for query in queries for found in SELECTOR.findall(query)}
    series += [_series(name, known[name], **{label: value}) for name, label, value in sorted(selected)]
    checks = [
        {
            "expr": f"count({name}) > 0",
            "eval_time": "30m",
            "exp_samples": [{"labels": "{}", "value": 1}],
        }
        for name in records
    ]
    _test_rules(
        tmp_path / "tests.yaml", rules, [{"interval": "1m", "input_series": series, "promql_expr_test": checks}]
    )
