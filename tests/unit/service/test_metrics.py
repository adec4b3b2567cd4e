"""Metrics of attempts, channels and load, and the command line that reads them."""

import asyncio
import os
import platform
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Histogram, generate_latest
from prometheus_client.multiprocess import mark_process_dead

from tests.support.ended_calls import end_attempt, ended_call
from tests.support.serving import serving
from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.cli.breaker_metrics import states
from umg_grpc.config import Breaker
from umg_grpc.service.metric_gauges import CALLS_IN_FLIGHT, CALLS_QUEUED, CHANNEL_PAUSED_KEYS, CHANNEL_QUEUE
from umg_grpc.service.resilience.circuit_breaker import CircuitBreakers
from umg_grpc.service.service_metrics import DURATION_BUCKETS, MAX_MODELS, SHARED_FOLDER, Metrics
from umg_grpc.v1 import pb

DOWN = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "no credit").with_failure(Failure.DOWN)


def lines(metrics: Metrics) -> set[str]:
    return {line for line in metrics.exposition().decode().splitlines() if line.startswith("umg_")}


class Watched:
    """Metrics of circuit breakers with a stopped clock."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.health = CircuitBreakers(Breaker(), now=lambda: self.seconds, chance=lambda: 0.0)
        self.metrics = Metrics()
        self.metrics.watch_channels(self.health.snapshot)

    def call(self, channel: str, model: str, error: UmgError | None = None) -> None:
        self.health.end(channel, model, error, self.health.begin(channel, model))


def test_calls_and_attempts_are_counted() -> None:
    metrics = Metrics()
    for _ in range(2):
        end_attempt(metrics, "m", "ok")
    end_attempt(metrics, "m", Failure.NOT_SENT.value)
    for status in (401, 401, 0, 999):
        metrics.failure("main", ProviderFailure(FailureKind.WRONG_KEY, status, model="m"))
    metrics.refused("full")
    metrics.hedged("m", won=True)
    metrics.hedged("m", won=False)
    metrics.mended("c", "m", "seed")
    metrics.count_cache_lookup("hit")
    metrics.count_egress("refused")
    metrics.count_blob_bytes("served", 7)
    assert lines(metrics) >= {
        'umg_attempts_total{channel="main",model="m",outcome="ok"} 2.0',
        'umg_attempts_total{channel="main",model="m",outcome="not sent"} 1.0',
        'umg_channel_failures_total{channel="main",kind="wrong_key",model="m",status="401"} 2.0',
        'umg_channel_failures_total{channel="main",kind="wrong_key",model="m",status="none"} 1.0',
        'umg_channel_failures_total{channel="main",kind="wrong_key",model="m",status="other"} 1.0',
        'umg_refused_total{reason="full"} 1.0',
        'umg_mended_refusals_total{channel="c",member="seed",model="m"} 1.0',
        'umg_hedges_total{model="m",won="true"} 1.0',
        'umg_hedges_total{model="m",won="false"} 1.0',
        'umg_cache_total{outcome="hit"} 1.0',
        'umg_egress_total{outcome="refused"} 1.0',
        'umg_blob_bytes_total{direction="served"} 7.0',
    }


def test_lengths_of_calls_are_counted_as_the_library_counts_them() -> None:
    metrics, registry = Metrics(), CollectorRegistry()
    labels = {"method": "M", "channel": "main", "model": "m"}
    alike = Histogram("umg_call_seconds", "", [*labels], registry=registry, buckets=DURATION_BUCKETS).labels(**labels)
    for _ in range(2):  # the library receives new values each time
        for seconds in (0.0, *DURATION_BUCKETS, *(1.5 * bound for bound in DURATION_BUCKETS)):
            metrics.finished(ended_call(), "OK", seconds)
            alike.observe(seconds)
        metrics.exposition()
    wanted = generate_latest(registry).decode().splitlines()
    counted = ("umg_call_seconds_bucket", "umg_call_seconds_count")
    assert {line for line in lines(metrics) if line.startswith(counted)} == {
        line for line in wanted if line.startswith(counted)
    }
    [total] = [line.split()[-1] for line in lines(metrics) if line.startswith("umg_call_seconds_sum")]
    assert float(total) == pytest.approx(2 * 2.5 * sum(DURATION_BUCKETS))


def test_gauges_are_read_at_each_scrape() -> None:
    metrics = Metrics()
    calls = [3.0]
    queues: dict[tuple[str, ...], float] = {("main",): 2, ("gone",): 1}
    metrics.watch(CALLS_IN_FLIGHT, lambda: {(): calls[0]})
    metrics.watch(CALLS_QUEUED, lambda: {(): 1})
    metrics.watch(CHANNEL_QUEUE, lambda: queues)
    metrics.watch(CHANNEL_PAUSED_KEYS, lambda: {("main",): 1})
    first = lines(metrics)
    assert first >= {"umg_gate_calls 3.0", "umg_gate_queue 1.0", 'umg_channel_queue{channel="main"} 2.0'}
    assert first >= {'umg_channel_queue{channel="gone"} 1.0', 'umg_channel_keys_resting{channel="main"} 1.0'}
    calls[0] = 4
    del queues["gone",]
    second = lines(metrics)
    assert "umg_gate_calls 4.0" in second
    assert not any("gone" in line for line in second)


def test_the_first_outputs_and_the_cost_of_calls_are_counted() -> None:
    metrics = Metrics()
    for seconds, cost in ((0.02, 1_250_000), (0.03, 500_000)):
        metrics.finished(ended_call(first_output_seconds=seconds, micro_credits=cost), "OK", 9.0)
    metrics.finished(ended_call(), "OK", 9.0)  # no stream
    assert lines(metrics) >= {
        'umg_first_output_seconds_bucket{channel="main",le="0.01",method="M",model="m"} 0.0',
        'umg_first_output_seconds_bucket{channel="main",le="0.025",method="M",model="m"} 1.0',
        'umg_first_output_seconds_count{channel="main",method="M",model="m"} 2.0',
        'umg_first_output_seconds_sum{channel="main",method="M",model="m"} 0.05',
        'umg_cost_credits_total{channel="main",model="m"} 1.75',
    }


def test_tokens_of_prompt_caches_are_counted() -> None:
    metrics = Metrics()
    for read, written, long in ((0, 70, 20), (90, 5, 0)):
        usage = pb.Usage(
            input_tokens=100, cache_read_tokens=read, cache_write_tokens=written, long_cache_write_tokens=long
        )
        metrics.finished(ended_call(usage=usage), "OK", 0.1)
    assert lines(metrics) >= {
        'umg_tokens_total{channel="main",direction="input",model="m"} 200.0',
        'umg_prompt_cache_tokens_total{channel="main",kind="read",model="m"} 90.0',
        'umg_prompt_cache_tokens_total{channel="main",kind="written",model="m"} 95.0',
    }


def test_tokens_of_prompt_caches_are_counted_by_the_program_of_the_call() -> None:
    metrics = Metrics()
    for headers, read in (
        ({"user-agent": "codex_exec/0.171.0"}, 90),
        ({"x-umg-face": "chat", "x-umg-agent": "codex"}, 60),
        ({"x-umg-face": "chat", "x-umg-agent": "a name of a caller"}, 10),
        ({"x-umg-face": "chat", "user-agent": "codex_exec/0.171.0"}, 10),
    ):
        usage = pb.Usage(input_tokens=100, cache_read_tokens=read, cache_write_tokens=5)
        metrics.finished(ended_call(usage=usage, metadata=headers), "OK", 0.1)
    assert sorted(line for line in lines(metrics) if line.startswith("umg_agent_tokens_total")) == [
        'umg_agent_tokens_total{agent="codex",kind="input"} 200.0',
        'umg_agent_tokens_total{agent="codex",kind="read"} 150.0',
        'umg_agent_tokens_total{agent="codex",kind="written"} 10.0',
        'umg_agent_tokens_total{agent="unknown",kind="input"} 200.0',
        'umg_agent_tokens_total{agent="unknown",kind="read"} 20.0',
        'umg_agent_tokens_total{agent="unknown",kind="written"} 10.0',
    ]


def test_a_cached_answer_counts_no_tokens() -> None:
    metrics = Metrics()
    for is_cached in (False, True):
        metrics.finished(ended_call(usage=pb.Usage(input_tokens=3), is_cached=is_cached), "OK", 0.1)
    assert lines(metrics) >= {
        'umg_calls_total{channel="main",method="M",model="m",outcome="OK"} 2.0',
        'umg_tokens_total{channel="main",direction="input",model="m"} 3.0',
    }


def test_the_versions_are_shown() -> None:
    installed = (
        f'umg_build_info{{python="{platform.python_version()}",version="{version("unified-model-gateway")}"}} 1.0'
    )
    assert installed in lines(Metrics())


def test_callers_keys_have_a_bounded_number_of_labels() -> None:
    metrics = Metrics(key_labels=2)
    for key in ("one", "two", "three", "four", "one", None):
        call = ended_call(usage=pb.Usage(input_tokens=3), micro_credits=1_000_000)
        call.known_caller = Caller(key, key, (), None, None) if key is not None else None
        metrics.finished(call, "OK", 0.1)
    assert lines(metrics) >= {
        'umg_calls_total{channel="main",key="one",method="M",model="m",outcome="OK"} 2.0',
        'umg_calls_total{channel="main",key="two",method="M",model="m",outcome="OK"} 1.0',
        'umg_calls_total{channel="main",key="other",method="M",model="m",outcome="OK"} 2.0',
        'umg_calls_total{channel="main",key="",method="M",model="m",outcome="OK"} 1.0',
        'umg_tokens_total{channel="main",direction="input",key="other",model="m"} 6.0',
        'umg_cost_credits_total{channel="main",key="one",model="m"} 2.0',
    }


async def test_running_tasks_are_counted() -> None:
    metrics, stop = Metrics(), asyncio.Event()

    def count() -> float:
        [line] = [line for line in lines(metrics) if line.startswith("umg_tasks ")]
        return float(line.split()[1])

    before = count()
    tasks = [asyncio.create_task(stop.wait()) for _ in range(3)]
    assert count() == before + 3
    stop.set()
    await asyncio.gather(*tasks)
    assert count() == before


def test_the_state_of_each_channel_and_model_is_shown() -> None:
    watched = Watched()
    watched.call("main", "fine")
    watched.call("main", "broken", DOWN)
    watched.health.begin("main", "fine")
    assert lines(watched.metrics) >= {
        'umg_channel_state{channel="main",model="fine"} 0.0',
        'umg_channel_state{channel="main",model="broken"} 1.0',
        'umg_channel_rest_seconds{channel="main",model="broken"} 60.0',
        'umg_channel_calls{channel="main"} 1.0',
    }
    watched.seconds += 60
    assert 'umg_channel_state{channel="main",model="broken"} 2.0' in lines(watched.metrics)


def test_unknown_model_ids_make_a_bounded_number_of_time_series() -> None:
    watched = Watched()
    watched.call("main", "known")
    end_attempt(watched.metrics, "known", "ok")
    for number in range(2 * MAX_MODELS):
        watched.call("main", f"made-up-{number}", DOWN)
        end_attempt(watched.metrics, f"made-up-{number}", "down")
        watched.metrics.finished(ended_call(model=f"made-up-{number}", channel=""), "OK", 0.1)
    metric_lines = lines(watched.metrics)
    assert 'umg_attempts_total{channel="main",model="known",outcome="ok"} 1.0' in metric_lines
    assert 'umg_channel_state{channel="main",model="other"} 1.0' in metric_lines
    assert sum(line.startswith("umg_attempts_total") for line in metric_lines) == MAX_MODELS + 1


@asynccontextmanager
async def served(metrics: Metrics | bytes, status: int = 200) -> AsyncGenerator[str, None]:
    """Run a server with these metrics at /metrics. Yield its HOST:PORT."""

    async def answer(request: web.Request) -> web.Response:
        assert request.path == "/metrics"
        body = metrics if isinstance(metrics, bytes) else metrics.exposition()
        return web.Response(body=body, status=status)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with serving(app) as url:
        yield url.removeprefix("http://")


async def test_the_command_line_reads_the_states_in_words() -> None:
    watched = Watched()
    for model, error in (("fine", None), ("probed", DOWN), ('"quoted"', None)):
        watched.call("main", model, error)
    watched.seconds += 60
    watched.call("spare", "broken", DOWN)
    watched.seconds += 0.5
    async with served(watched.metrics) as http:
        assert await asyncio.to_thread(states, http) == {
            ("main", "fine"): "healthy",
            ("main", "probed"): "half-open",
            ("main", '"quoted"'): "healthy",
            ("spare", "broken"): "paused 60 s",
        }


@pytest.mark.parametrize(
    ("body", "status"), [(b"<html>", 200), (b"\xff\xfe", 200), (b"umg_up 1\n", 200), (b"umg_up 1\n", 503), (b"", 200)]
)
async def test_a_server_that_is_no_gateway_has_no_states(body: bytes, status: int) -> None:
    async with served(body, status) as http:
        assert await asyncio.to_thread(states, http) == {}


async def test_without_a_gateway_there_are_no_states() -> None:
    async with served(b"") as http:
        pass
    assert states(http) == {}


WORKER = """
import sys
from tests.support.ended_calls import end_attempt
from umg_grpc.config import Breaker
from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.resilience.circuit_breaker import CircuitBreakers
from umg_grpc.service.metric_gauges import CALLS_IN_FLIGHT
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.service.pipeline.call_state import Arrival, Call
from umg_grpc.v1 import pb

calls, fails = int(sys.argv[1]), sys.argv[2] == "fails"
health, metrics = CircuitBreakers(Breaker(), now=lambda: 1000.0, chance=lambda: 0.0), Metrics()
metrics.watch_channels(health.snapshot)
metrics.watch(CALLS_IN_FLIGHT, lambda: {(): calls})
turn = health.begin("main", "m")
health.end("main", "m", UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "").with_failure(Failure.DOWN) if fails else None, turn)
end_attempt(metrics, "m", "ok")
call = Call(Arrival("/umg.v1.S/M", {}, True, "r"))
call.facts.model, call.facts.channel, call.facts.first_output_seconds = "m", "main", 0.02
call.charges.micro_credits = 500_000
metrics.finished(call, "OK", 0.1)
metrics.exposition()
if fails:
    health.forget(set())
    health.end("main", "m", None, health.begin("main", "m"))
    health.begin("main", "m")
    health.end("other", "m", UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "").with_failure(Failure.DOWN), health.begin("other", "m"))
print(metrics.exposition().decode())
"""


def test_metrics_of_workers_are_summed_without_the_gauges_of_ended_ones(tmp_path: Path) -> None:
    def worker(*arguments: str) -> tuple[int, set[str]]:
        environment = {**os.environ, SHARED_FOLDER: str(tmp_path)}
        command = [sys.executable, "-W", "error", "-c", WORKER, *arguments]
        with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
            metric_lines, _ = process.communicate()
        assert process.returncode == 0
        return process.pid, set(metric_lines.splitlines())

    first, metric_lines = worker("3", "fails")
    assert metric_lines >= {
        "umg_gate_calls 3.0",
        'umg_channel_state{channel="main",model="m"} 0.0',
        'umg_channel_state{channel="other",model="m"} 1.0',
        'umg_channel_rest_seconds{channel="other",model="m"} 60.0',
    }
    _, metric_lines = worker("4", "is healthy")
    assert metric_lines >= {
        "umg_gate_calls 7.0",
        'umg_channel_state{channel="other",model="m"} 1.0',
        'umg_channel_calls{channel="main"} 1.0',
        'umg_attempts_total{channel="main",model="m",outcome="ok"} 2.0',
    }
    mark_process_dead(first, tmp_path)
    _, metric_lines = worker("5", "is healthy")
    assert metric_lines >= {
        "umg_gate_calls 9.0",
        'umg_channel_calls{channel="main"} 0.0',
        'umg_attempts_total{channel="main",model="m",outcome="ok"} 3.0',
        'umg_first_output_seconds_count{channel="main",method="M",model="m"} 3.0',
        'umg_cost_credits_total{channel="main",model="m"} 1.5',
        f'umg_build_info{{python="{platform.python_version()}",version="{version("unified-model-gateway")}"}} 1.0',
    }
    assert not any(line.startswith('umg_channel_state{channel="other"') for line in metric_lines)


ENDING = """
import asyncio
from tests.support.ended_calls import end_attempt
from umg_grpc.service.service_metrics import Metrics

async def main():
    metrics = Metrics()
    metrics.start()
    end_attempt(metrics, "m", "ok")
    metrics.close()

asyncio.run(main())
"""


def test_the_last_counts_of_an_ended_worker_are_kept(tmp_path: Path) -> None:
    environment = {**os.environ, SHARED_FOLDER: str(tmp_path)}
    for script, arguments in ((ENDING, []), (WORKER, ["1", "is healthy"])):
        command = [sys.executable, "-W", "error", "-c", script, *arguments]
        metric_lines = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    assert 'umg_attempts_total{channel="main",model="m",outcome="ok"} 2.0' in metric_lines.splitlines()
