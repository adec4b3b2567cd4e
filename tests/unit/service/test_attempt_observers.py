"""Observers of attempts: how each outcome of an attempt is recorded."""

from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.config import parse
from umg_grpc.routing import GENERATE_VALUE, Router, Target
from umg_grpc.service.pipeline.attempt_observers import attempt_observers
from umg_grpc.service.pipeline.call_state import Arrival, Call
from umg_grpc.service.pipeline.channel_attempt import Attempt, EncodedRequest, UnmendedRequests
from umg_grpc.service.pipeline.channel_attempt_order import plan_attempts
from umg_grpc.service.pipeline.failover import FailoverLoop
from umg_grpc.service.resilience.channel_protection import Resilience
from umg_grpc.service.resilience.circuit_breaker import MAX_PROBES
from umg_grpc.service.resilience.circuit_breaker_snapshots import CircuitState
from umg_grpc.service.service_metrics import Metrics
from umg_grpc.store.channel_failure_file import ChannelFailures
from umg_grpc.v1 import pb
from umg_grpc.wire.dropped_fields_report import Report

MODEL = "famO-5-mini"
CHANNELS = f"""
channels:
- {{name: provider, protocols: [chat], base_url: "https://a.example", api_key: k, models: [{MODEL}], concurrency: 1}}
- {{name: simulated, protocols: [sandbox], models: [{MODEL}], concurrency: 1}}
breaker: {{failures: 1}}
retries: {{budget: 0}}
"""


class _Request:
    """Request of a call, encoded for a channel."""

    report = Report()


class _Encoder(UnmendedRequests):
    async def encode(self, target: Target) -> Attempt[EncodedRequest]:
        return Attempt(target.channel.name, target, _Request())


class Process:
    """Components of a process that the attempts of its calls use, and one call."""

    def __init__(self, failures: ChannelFailures) -> None:
        config = parse(CHANNELS, "test.yaml", {})
        self.router, self.metrics = Router(config), Metrics()
        self.protection = Resilience(config, failures)
        self.observers = attempt_observers(self.metrics, self.protection, has_spans=False)
        self.call = Call(Arrival("/umg.v1.GenerationService/Generate", {}, True, "request-1"))

    def attempts(self, channel: str) -> FailoverLoop[Attempt[EncodedRequest]]:
        targets = [each for each in self.router.channels(MODEL, GENERATE_VALUE) if each.channel.name == channel]
        plan, model = plan_attempts(targets, _Encoder(), self.protection), self.router.resolve(MODEL).model
        return FailoverLoop(self.call, model, MODEL, plan, self.observers, True)

    async def run(self, channel: str, error: BaseException | None) -> None:
        """Make one attempt at the channel, which ends with the error, or with a success. Suppress the error."""
        with suppress(*(() if error is None else (type(error),))):
            async with self.attempts(channel):
                if error is not None:
                    raise error


@pytest.fixture
async def process(tmp_path: Path) -> AsyncGenerator[Process]:
    failures = ChannelFailures(tmp_path)
    failures.start()
    yield Process(failures)
    await failures.aclose()


def failed(failure: Failure) -> Callable[[], UmgError]:
    return lambda: UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "no").with_failure(failure)


@dataclass(frozen=True)
class Outcome:
    id: str
    error: Callable[[], BaseException | None]
    outcome: str
    reason: str
    channel: str = "provider"
    state: CircuitState = CircuitState.CLOSED
    failures: int = 0


OUTCOMES = [
    Outcome("a success", lambda: None, "ok", ""),
    Outcome("a caller who left", GeneratorExit, "left", "CANCELLED"),
    Outcome(
        "an error of the gateway", lambda: UmgError(pb.ERROR_REASON_INVALID_FIELD, "no"), "refused", "INVALID_FIELD"
    ),
    Outcome("an error of the caller", failed(Failure.CALLER), "caller", "UPSTREAM_FAILED", failures=1),
    Outcome(
        "a failure", failed(Failure.TRANSIENT), "transient", "UPSTREAM_FAILED", state=CircuitState.OPEN, failures=1
    ),
    Outcome(
        "a failure that the caller demands of the simulated provider",
        failed(Failure.TRANSIENT),
        *("transient", "UPSTREAM_FAILED", "simulated"),
        failures=1,
    ),
]


@pytest.mark.parametrize("case", OUTCOMES, ids=lambda case: case.id)
async def test_every_outcome_is_recorded_once_in_every_room(case: Outcome, process: Process) -> None:
    await process.run(case.channel, case.error())
    printed = process.metrics.exposition().decode()
    assert f'umg_attempts_total{{channel="{case.channel}",model="{MODEL}",outcome="{case.outcome}"}} 1.0' in printed
    assert printed.count("umg_channel_failures_total{") == case.failures
    [record] = process.call.facts.ended_attempts
    assert (record.channel, record.model, record.reason) == (case.channel, MODEL, case.reason)
    assert process.call.facts.attempts == 1
    assert process.protection.limiters[case.channel].free == 1
    [breaker] = process.protection.health.snapshot()
    assert (breaker.channel, breaker.state, breaker.calls) == (case.channel, case.state, 0)


async def test_an_attempt_holds_its_slot_until_its_records_are_made(process: Process) -> None:
    seen: list[tuple[int, int]] = []
    limiter = process.protection.limiters["provider"]

    def look(call: Call, attempt: object, outcome: str, error: object) -> None:
        seen.append((limiter.free, len(call.facts.ended_attempts)))

    *first, last = process.observers.ended
    process.observers = process.observers._replace(ended=(*first, look, last))
    async with process.attempts("provider"):
        assert limiter.free == 0
    assert (seen, limiter.free) == ([(0, 1)], 1)


async def test_an_attempt_that_an_open_circuit_breaker_refuses_is_not_recorded(process: Process) -> None:
    await process.run("provider", failed(Failure.DOWN)())
    for _ in range(MAX_PROBES):
        process.protection.health.begin("provider", MODEL)
    process.call = Call(Arrival("/umg.v1.GenerationService/Generate", {}, True, "request-2"))
    with pytest.raises(UmgError, match="do not answer now"):
        async with process.attempts("provider"):
            pytest.fail("the breaker is open")
    facts = process.call.facts
    assert (facts.attempts, facts.ended_attempts, facts.channel) == (0, [], "")
    assert process.protection.limiters["provider"].free == 1
