"""Page on failover and overload: it has every key with its default, every failure, metric and header, and the numbers
of the code.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientSession
from msgspec.structs import fields
from prometheus_client.parser import text_string_to_metric_families

from http_facade.exchange import request_bodies
from http_facade.exchange.server_settings import Settings
from http_facade.server import client_connections
from tests.docs.tables import DOCS, quoted, rows, section
from tests.proofs.soak.__main__ import LEAVING
from tests.proofs.soak.overload import THREE_TIMES
from tests.support.callers.api import ApiClient
from tests.support.ended_calls import end_attempt, ended_call
from tests.support.processes import Served, run, serve
from umg_grpc.base import errors, host_list_entries
from umg_grpc.base.errors import Failure
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.config import Breaker, Channel, Config, Overload, Retries, Timeout
from umg_grpc.config.config_values import ModelInfo
from umg_grpc.config.model_settings import _SettingsEntry
from umg_grpc.config.value_parsers import BYTE_UNITS
from umg_grpc.operations import OPERATION_ROWS
from umg_grpc.process.grpc_server import MAX_STREAMS
from umg_grpc.service import metric_gauges, service_metrics
from umg_grpc.service.caching import response_cache
from umg_grpc.service.pipeline import early_response_headers, failure_policy, stream_pipeline
from umg_grpc.service.resilience import call_start_queue, circuit_breaker, load_shedding, retry_budget
from umg_grpc.service.telemetry import content_capture, otlp_export
from umg_grpc.service.video_tasks import task_metrics
from umg_grpc.store import blob_store, redis_client
from umg_grpc.store.write_ahead_journal import JOURNAL_FULL
from umg_grpc.upstream import caller_url_fetch
from umg_grpc.upstream.http import key_rotation
from umg_grpc.v1 import pb
from umg_grpc.wire.core.gateway_headers import MAX_CACHE_SECONDS, MAX_TIMEOUT_SECONDS

ROOT = DOCS.parent
PAGE = (DOCS / "operations.md").read_text(encoding="utf-8")
OPERATING = (DOCS / "operating.md").read_text(encoding="utf-8")
TEXT = " ".join(PAGE.split())
NONE = "none"


def keys_of(page: str) -> Iterator[tuple[str, str]]:
    """Yield each key in the page's tables of keys as it is written, with its default."""
    for table in re.findall(r"^\| key \| default \|.*\n\|[-|]+\n((?:\|.*\n)+)", page, re.MULTILINE):
        for line in table.splitlines():
            key, default, _ = line.strip("| ").split(" | ")
            yield key.strip("`"), default.strip("`")


KEYS = dict(keys_of(PAGE))


def defaults() -> Iterator[tuple[str, object]]:
    """Yield every key that the page is about, with its default in the code."""
    for name, kind in (("retries", Retries), ("breaker", Breaker), ("overload", Overload), ("timeout", Timeout)):
        for field in fields(kind):
            yield f"{name}.{field.name}", field.default
    yield "channels.concurrency", Channel.concurrency
    yield "models.ID.hedge", ModelInfo.hedge
    yield "models.ID.cache", ModelInfo.cache
    usual = Config(channels=())
    yield "aliases", usual.aliases or None
    yield "redis", usual.redis
    yield "cache_bytes", usual.cache_bytes
    yield "stream_headers_after", usual.stream_headers_after
    yield "egress.allow", usual.egress.allow or None
    yield "egress.http", usual.egress.http
    yield "egress.max_bytes", usual.egress.max_bytes
    yield "egress.timeout", usual.egress.timeout
    yield "egress.proxy", usual.egress.proxies.https


DEFAULTS = dict(defaults())


def test_the_page_has_exactly_the_keys_of_the_config() -> None:
    assert KEYS.keys() == DEFAULTS.keys()


@pytest.mark.parametrize("key", DEFAULTS)
def test_a_key_has_the_default_of_the_code(key: str) -> None:
    assert read(KEYS[key]) == DEFAULTS[key]


def read(default: str) -> float | None:
    """Return a documented default: a number, a size, a switch, or none."""
    if default in {"true", "false"}:
        return default == "true"
    found = re.fullmatch(r"([\d.]+)(\w*)", default)
    if found is None:
        assert default == NONE
        return None
    return float(found[1]) * BYTE_UNITS[found[2]]


def test_the_keys_of_a_model_are_those_of_its_entry() -> None:
    assert {"hedge", "cache"} <= {field.name for field in fields(_SettingsEntry)}


def test_every_failure_is_in_the_table() -> None:
    assert [quoted(cells[0])[0] for cells in rows(PAGE, "Kinds of failures")] == [f.value for f in Failure]


def test_the_documented_precedence_of_failures_is_that_of_the_code() -> None:
    [sentence] = re.findall(r"Of several failures the caller is sent .*?; of equals the last\.", TEXT)
    assert quoted(sentence) == [failure.value for failure in reversed(failure_policy.FAILURE_PRECEDENCE)]


def test_the_table_has_the_consequences_of_each_failure() -> None:
    table = {quoted(cells[0])[0]: cells for cells in rows(PAGE, "Kinds of failures")}
    for failure in Failure:
        _, _, counts, following, again, _ = table[failure.value]
        assert (again == "later") == (failure in failure_policy.REPEATABLE_FAILURES), failure
        assert (failure in failure_policy.FINAL_FAILURES) <= (following == "no"), failure
        assert counts.startswith("no") == (
            failure in circuit_breaker.INCONCLUSIVE_FAILURES | circuit_breaker.ANSWERED_FAILURES
        ), failure
        assert counts.endswith("answered") == (failure in circuit_breaker.ANSWERED_FAILURES), failure


LEVELS = {
    value.name: set(value.labels)
    for module in (metric_gauges, task_metrics)
    for value in vars(module).values()
    if isinstance(value, metric_gauges.Level)
}


def counted() -> dict[str, set[str]]:
    made = service_metrics.Metrics()
    usage, method = pb.Usage(input_tokens=1, output_tokens=1), "/umg.v1.GenerationService/Generate"
    call = ended_call(method=method, model="", channel="", usage=usage, first_output_seconds=0.1)
    made.finished(call, "OK", 0.1)
    end_attempt(made, "m", "ok")
    made.failure("main", ProviderFailure(FailureKind.WRONG_KEY, 401))
    made.refused(load_shedding.FULL_CAUSE)
    made.mended("main", "m", "seed")
    made.hedged("m", won=True)
    made.fell_back("m", "other", "quota")
    made.count_guard("secrets", "request", "masked", 0.1)
    made.count_cache_lookup("hit")
    made.count_credential_read("main", "failed")
    made.count_egress(caller_url_fetch.FETCHED_OUTCOME)
    made.count_lost_records(1, JOURNAL_FULL)
    made.count_records_deleted_early(1)
    made.count_blob_bytes(blob_store.STORED_BYTES, 1)
    tasks = task_metrics.TaskMetrics(made)
    for count in (tasks.submitted, tasks.polled, tasks.ended, tasks.called_back, tasks.read):
        count("", "")
    tasks.copied("")
    tasks.unknown("")
    families = text_string_to_metric_families(made.exposition().decode())
    return {
        sample.name.removesuffix("_count"): set(sample.labels)
        for family in families
        for sample in family.samples
        if family.name.startswith("umg_") and sample.name.endswith(("_total", "_count"))
    }


def test_every_figure_is_in_the_table_with_its_labels() -> None:
    documented = {name: set(quoted(cells[1])) for cells in rows(PAGE, "Metrics") for name in quoted(cells[0])}
    assert documented == LEVELS | counted()


def test_the_documented_reasons_of_refusals_are_those_of_the_metrics() -> None:
    [cells] = [cells for cells in rows(PAGE, "Metrics") if "umg_refused_total" in cells[0]]
    assert load_shedding.REFUSAL_CAUSES | {"connections"} == set(quoted(cells[2])) - {"lag"}


def test_the_documented_rules_for_urls_are_those_of_the_code() -> None:
    outcomes = {caller_url_fetch.FETCHED_OUTCOME, caller_url_fetch.REFUSED_OUTCOME, caller_url_fetch.FAILED_OUTCOME}
    [cells] = [cells for cells in rows(PAGE, "Metrics") if "umg_egress_total" in cells[0]]
    assert outcomes == set(quoted(cells[2]))
    assert f"at most {caller_url_fetch.MAX_REDIRECTS} redirects are followed" in TEXT
    assert f"the port {host_list_entries.DEFAULT_PORTS['https']};" in TEXT
    for example in ("files.example.com", "*.example.com", "10.0.0.0/8", "minio:9000", "[fd00::/8]:8080"):
        assert f"`{example}`" in TEXT
        host_list_entries.parse_place(example)


def test_every_kind_of_failure_is_in_the_table_with_an_action() -> None:
    table = rows(OPERATING, "Failures of providers")
    assert [quoted(cells[0])[0] for cells in table] == [kind.value for kind in FailureKind]
    assert all(action for _, _, action in table)


def test_every_field_of_a_failure_in_the_log_is_on_the_page() -> None:
    fields_of_log = ProviderFailure(FailureKind.WRONG_KEY).log_fields()
    assert fields_of_log.keys() <= set(quoted(section(OPERATING, "Failures of providers")))


INTERNAL = {"x-umg-face", "x-umg-peer"}
"""Headers with which our own facade calls the service."""


def test_every_header_is_in_the_list() -> None:
    listed = {name for cells in rows(OPERATING, "Headers") for name in quoted(cells[0])}
    sources = [path.read_text() for package in ("http_facade", "umg_grpc") for path in (ROOT / package).rglob("*.py")]
    header_names = {name for source in sources for name in re.findall(r'"(x-umg-[a-z]+)"', source)}
    assert header_names - INTERNAL == {name for name in listed if name.startswith("x-umg-")}
    assert {"retry-after", "x-request-id"} <= listed


@dataclass(frozen=True)
class DocumentedNumber:
    """Number of the page, with the words around it."""

    words: str
    number: float

    @property
    def id(self) -> str:
        return self.words.replace("{}", "N")


DOCUMENTED_NUMBERS = [
    DocumentedNumber("of at least {}.", circuit_breaker.MIN_CALLS),
    DocumentedNumber("by at most {} calls at a time", circuit_breaker.MAX_PROBES),
    DocumentedNumber("longer by up to {} %", circuit_breaker.OPEN_TIME_JITTER * 100),
    DocumentedNumber(
        "the channel is paused for {} seconds, then twice as long each time, at most 15 minutes",
        circuit_breaker.DOWN_SECONDS,
    ),
    DocumentedNumber(
        "paused for 60 seconds, then twice as long each time, at most {} minutes.",
        circuit_breaker.LONGEST_DOWN_SECONDS / 60,
    ),
    DocumentedNumber("({} second where it does not, at most 60)", circuit_breaker.OVERLOADED_SECONDS),
    DocumentedNumber("(1 second where it does not, at most {})", circuit_breaker.LONGEST_OVERLOADED_SECONDS),
    DocumentedNumber("an exhausted quota) is paused for {} seconds", key_rotation.FIRST_SUSPENSION_SECONDS),
    DocumentedNumber("states ({} second without one, at most 60)", key_rotation.RATE_LIMIT_SUSPENSION_SECONDS),
    DocumentedNumber("states (1 second without one, at most {})", key_rotation.MAX_RATE_LIMIT_SUSPENSION_SECONDS),
    DocumentedNumber("at most {} minutes; one that is rate limited", key_rotation.MAX_SUSPENSION_SECONDS / 60),
    DocumentedNumber("held back for up to {} seconds", stream_pipeline.HOLD_SECONDS),
    DocumentedNumber("early, {} seconds after", early_response_headers.ANSWERED_SECONDS),
    DocumentedNumber("after each {} seconds of silence", Settings.heartbeat_seconds),
    DocumentedNumber("One every {} seconds is allowed besides", retry_budget.SECONDS_PER_TOKEN),
    DocumentedNumber("is saved, up to {}. Mended", retry_budget.MAX_TOKENS),
    DocumentedNumber("may take up to {} in advance", retry_budget.MEND_CREDIT),
    DocumentedNumber("({} where it is less)", call_start_queue.ALWAYS_STARTED),
    DocumentedNumber("where more than {} wait.", call_start_queue.ALWAYS_STARTED),
    DocumentedNumber("and {} callers are never rejected", call_start_queue.ALWAYS_STARTED),
    DocumentedNumber("503 with `retry-after: {}`", errors.AGAIN_SECONDS),
    DocumentedNumber("be silent for {} seconds", Settings.silent_seconds),
    DocumentedNumber("one for each {} KiB", request_bodies.MIN_UPLOAD_BYTES_PER_SECOND / 1024),
    DocumentedNumber("carries up to {} calls", MAX_STREAMS),
    DocumentedNumber("and up to {} MiB.", response_cache.MAX_BYTES / 2**20),
    DocumentedNumber("at most `{}d`", MAX_CACHE_SECONDS / 86400),
    DocumentedNumber("more than {},000,000 seconds count as that many", MAX_TIMEOUT_SECONDS / 1e6),
    DocumentedNumber("waits {} seconds for a response", redis_client.ANSWER_SECONDS),
    DocumentedNumber("then with {} callers that leave", LEAVING),
    DocumentedNumber("the process waits at most {} seconds for the last export", otlp_export.SHUTDOWN_SECONDS),
    DocumentedNumber("the newest {} messages, 8192 characters", content_capture.MAX_MESSAGES),
    DocumentedNumber("messages, {} characters of each text", content_capture.MAX_TEXT_CHARACTERS),
    DocumentedNumber("the first {} KiB of a response, and of media", content_capture.MAX_RESPONSE_BYTES / 2**10),
]


@pytest.mark.parametrize("case", DOCUMENTED_NUMBERS, ids=lambda case: case.id)
def test_a_documented_number_is_that_of_the_code(case: DocumentedNumber) -> None:
    before, after = (re.escape(words) for words in case.words.split("{}"))
    found = re.findall(rf"{before}([\d.,]*\d){after}", TEXT)
    assert [float(number.replace(",", "")) for number in found] == [case.number]


def test_the_page_has_the_names_of_every_operation_in_telemetry() -> None:
    found = [row.telemetry for row in OPERATION_ROWS if row.telemetry is not None]
    assert [name for row in found for name in (f"`{row.name} MODEL`", f"`{row.durations}`") if name not in TEXT] == []


def test_values_that_the_page_has_in_words_are_those_of_the_code() -> None:
    assert "reads nothing of its response for ten minutes" in TEXT
    assert Settings.write_timeout_seconds == 600
    assert "at most sixteen calls in one round of its event loop" in TEXT
    assert call_start_queue.AT_ONCE == 16
    assert "for a second" in TEXT
    assert redis_client.PAUSE_SECONDS == 1
    assert "three times the load" in TEXT
    assert THREE_TIMES == 3
    assert "up to the thousandth" in TEXT
    assert service_metrics.MAX_MODELS == 1000
    assert client_connections.MAX_CONNECTIONS_OVER_LIMIT > 0  # connections accepted beyond the limit, to be rejected


CONFIG = """
aliases: {fast: famO-5, think: famG-2.5-flash-thinking}
channels:
  - name: main
    protocols: [chat]
    base_url: http://127.0.0.1:9/v1
    api_key: k
    models: [famO-5, {id: "vendor/*", upstream: "*"}]
  - {name: backup, protocols: [sandbox], priority: 1, models: [famO-5, famG-2.5-flash]}
models: {famO-5: {cache: 10m}}
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "umg.yaml"
    path.write_text(CONFIG)
    return path


async def test_the_route_header_of_the_page_is_that_of_the_gateway(config: Path, tmp_path: Path) -> None:
    [example] = re.findall(r"```\n(x-umg-route): (.*)\n```", PAGE)
    async with serve(tmp_path, "--config", str(config)) as served, ClientSession() as session:
        call = ApiClient(served, session)
        request = {"model": "fast", "messages": [{"role": "user", "content": "Hi"}], "temperature": 0}
        first, second = [await call("/v1/chat/completions", request) for _ in range(2)]
        assert (first.status, first.headers[example[0]]) == (200, example[1])
        assert [first.headers["x-umg-cache"], second.headers["x-umg-cache"]] == ["miss", "hit"]
        warm = await call("/v1/chat/completions", {**request, "temperature": 1})
        assert warm.headers["x-umg-cache"] == "bypass"
        lost = await call("/v1/chat/completions", {**request, "model": "vendor/x"})
        assert (lost.status, lost.headers[example[0]]) == (502, "channel=main; attempts=2; reason=main: not sent")
        for model in ("think", "famG-2.5-flash"):
            late = await call(
                "/v1/chat/completions",
                {"model": model, "messages": [{"role": "user", "content": "[[slow]]"}]},
                x_umg_timeout="200ms",
            )
            assert late.status == 504
        await explained(served, config, tmp_path)


async def explained(served: Served, config: Path, data: Path) -> None:
    """Check that `umg models` shows the state of the channels, which it reads from the gateway."""
    where = ("--config", str(config), "--data", str(data), "--http", served.http.removeprefix("http://"))
    code, out, _ = await run("models", "--explain", "fast", "--face", "chat", *where)
    assert code == 0
    order, *_ = out.partition("restrictions of ")
    assert [line.split()[0] for line in order.splitlines()[-2:]] == ["main", "backup"]
    assert "healthy" in order
