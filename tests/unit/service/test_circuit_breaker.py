"""Circuit breakers: the channels that receive no calls, for how long, and the calls that close the breaker again."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.config import Breaker
from umg_grpc.service.resilience.circuit_breaker import (
    DOWN_SECONDS,
    LONGEST_DOWN_SECONDS,
    LONGEST_OVERLOADED_SECONDS,
    MAX_BREAKERS,
    MAX_PROBES,
    OVERLOADED_SECONDS,
    CircuitBreakers,
)
from umg_grpc.service.resilience.circuit_breaker_snapshots import CircuitState
from umg_grpc.v1 import pb

CHANNEL, MODEL = "main", "model-1"
BREAKER = Breaker(failures=3, share=0.5, window=30, rest=5, max_rest=40)


class Patient:
    """Circuit breakers with a stopped clock, without randomness."""

    def __init__(self, breaker: Breaker = BREAKER, chance: float = 0.0) -> None:
        self.seconds = 1000.0
        self.health = CircuitBreakers(breaker, now=lambda: self.seconds, chance=lambda: chance)

    def call(self, error: UmgError | None = None, model: str = MODEL) -> None:
        self.health.end(CHANNEL, model, error, self.health.begin(CHANNEL, model))

    def fail(self, times: int = 1) -> None:
        for _ in range(times):
            self.call(failed())

    def is_healthy(self) -> bool:
        return self.health.is_healthy(CHANNEL, MODEL)

    def rest(self) -> float:
        return self.health.seconds_to_probe(CHANNEL, MODEL)

    def state(self) -> CircuitState:
        [standing] = self.health.snapshot()
        return standing.state


@pytest.fixture
def patient() -> Patient:
    return Patient()


def failed(failure: Failure | None = Failure.TRANSIENT, **metadata: str) -> UmgError:
    error = UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "the provider failed", **metadata)
    error.failure = failure
    return error


NO_SLOT = UmgError(pb.ERROR_REASON_UNAVAILABLE, "full").with_failure(Failure.NOT_SENT)


@dataclass(frozen=True)
class Ending:
    id: str
    error: UmgError | None
    ejects: bool


ENDINGS = [
    Ending("a good answer", None, ejects=False),
    Ending("the caller's fault", failed(Failure.CALLER), ejects=False),
    Ending("a prompt that is too long", failed(Failure.CONTEXT), ejects=False),
    Ending("no provider was called", failed(None), ejects=False),
    Ending("no place at the channel", NO_SLOT, ejects=False),
    Ending("another key is tried", failed(Failure.OTHER_KEY), ejects=False),
    Ending("not sent", failed(Failure.NOT_SENT), ejects=True),
    Ending("transient", failed(Failure.TRANSIENT), ejects=True),
    Ending("ambiguous", failed(Failure.AMBIGUOUS), ejects=True),
]


@pytest.mark.parametrize("case", ENDINGS, ids=lambda case: case.id)
def test_only_failures_of_the_provider_in_a_row_eject_it(patient: Patient, case: Ending) -> None:
    for _ in range(BREAKER.failures - 1):
        patient.call(case.error)
        assert patient.is_healthy()
    patient.call(case.error)
    assert patient.is_healthy() != case.ejects
    assert patient.rest() == (BREAKER.rest if case.ejects else 0)


@pytest.mark.parametrize("error", [None, failed(Failure.CALLER), failed(Failure.CONTEXT)], ids=repr)
def test_a_success_restarts_the_count_of_consecutive_failures(patient: Patient, error: UmgError | None) -> None:
    for _ in range(4):
        patient.fail(BREAKER.failures - 1)
        patient.call(error)
    assert patient.is_healthy()


@pytest.mark.parametrize(
    "error", [NO_SLOT, failed(None), failed(Failure.OTHER_KEY), failed(Failure.OVERLOADED)], ids=repr
)
def test_outcomes_without_evidence_do_not_restart_the_count_of_failures(patient: Patient, error: UmgError) -> None:
    patient.fail(BREAKER.failures - 1)
    patient.call(error)
    patient.seconds += OVERLOADED_SECONDS
    assert patient.is_healthy()
    patient.fail()
    assert not patient.is_healthy()


def test_a_large_share_of_failures_ejects_though_answers_come_between(patient: Patient) -> None:
    for _ in range(9):
        patient.call()
        patient.call(failed())
        assert patient.is_healthy()
    patient.call()
    patient.call(failed())
    assert not patient.is_healthy()


def test_failures_count_no_longer_than_the_window(patient: Patient) -> None:
    for _ in range(60):
        patient.call(failed())
        patient.call()
        patient.seconds += 4
    assert patient.is_healthy()


def test_a_share_is_that_of_the_last_window_however_the_calls_come(patient: Patient) -> None:
    for _ in range(1000):
        patient.call()
    patient.seconds += BREAKER.window + 1
    for _ in range(10):
        assert patient.is_healthy()
        patient.call()
        patient.call(failed())
    assert not patient.is_healthy()


def test_one_model_of_a_channel_is_ejected_and_the_others_are_not(patient: Patient) -> None:
    patient.fail(BREAKER.failures)
    assert not patient.is_healthy()
    assert patient.health.is_healthy(CHANNEL, "model-2")
    assert patient.health.is_healthy("spare", MODEL)


def test_after_the_ejection_one_call_probes_and_a_success_restores_the_channel(patient: Patient) -> None:
    patient.fail(BREAKER.failures)
    patient.seconds += BREAKER.rest - 0.1
    assert not patient.is_healthy()
    assert patient.state() is CircuitState.OPEN
    patient.seconds += 0.1
    assert patient.is_healthy()
    assert patient.state() is CircuitState.HALF_OPEN
    turn = patient.health.begin(CHANNEL, MODEL)
    assert not patient.is_healthy()
    patient.health.end(CHANNEL, MODEL, None, turn)
    assert patient.is_healthy()
    assert patient.state() is CircuitState.CLOSED
    patient.fail(BREAKER.failures)
    assert patient.rest() == BREAKER.rest


def test_each_failed_probe_doubles_the_ejection_up_to_the_maximum(patient: Patient) -> None:
    patient.fail(BREAKER.failures)
    pauses = []
    for _ in range(5):
        pauses.append(patient.rest())
        patient.seconds += patient.rest()
        patient.fail()
    assert pauses == [5, 10, 20, 40, 40]


def test_an_ejection_has_a_jitter_of_up_to_a_fifth() -> None:
    patient = Patient(chance=1.0)
    patient.fail(BREAKER.failures)
    assert patient.rest() == pytest.approx(1.2 * BREAKER.rest)


@pytest.mark.parametrize("error", [None, failed()], ids=["a good answer", "a failure"])
def test_outcomes_of_calls_begun_before_the_ejection_are_ignored(patient: Patient, error: UmgError | None) -> None:
    early = [patient.health.begin(CHANNEL, MODEL) for _ in range(2)]
    patient.fail(BREAKER.failures)
    patient.health.end(CHANNEL, MODEL, error, early[0])
    assert (patient.is_healthy(), patient.rest()) == (False, BREAKER.rest)
    patient.seconds += BREAKER.rest
    probe = patient.health.begin(CHANNEL, MODEL)
    patient.health.end(CHANNEL, MODEL, error, early[1])
    assert not patient.is_healthy()
    patient.health.end(CHANNEL, MODEL, None, probe)
    assert patient.is_healthy()


@pytest.mark.parametrize("error", [NO_SLOT, failed(None), failed(Failure.OTHER_KEY), "left"], ids=repr)
def test_a_probe_without_an_outcome_is_released(patient: Patient, error: UmgError | str) -> None:
    patient.fail(BREAKER.failures)
    patient.seconds += BREAKER.rest
    turn = patient.health.begin(CHANNEL, MODEL)
    assert not patient.is_healthy()
    if isinstance(error, UmgError):
        patient.health.end(CHANNEL, MODEL, error, turn)
    else:
        patient.health.cancelled(CHANNEL, MODEL, turn)
    assert patient.is_healthy()
    assert patient.state() is CircuitState.HALF_OPEN


def test_a_few_calls_without_another_channel_probe_during_the_ejection(patient: Patient) -> None:
    patient.fail(BREAKER.failures)
    turns = []
    for _ in range(MAX_PROBES):
        assert not patient.health.begin(CHANNEL, MODEL, is_last=False)
        turns.append(patient.health.begin(CHANNEL, MODEL))
    assert all(turns)
    assert not patient.health.begin(CHANNEL, MODEL)
    patient.health.end(CHANNEL, MODEL, failed(), turns.pop())
    turns.append(patient.health.begin(CHANNEL, MODEL))
    assert turns[-1]
    assert patient.rest() == BREAKER.rest
    patient.health.cancelled(CHANNEL, MODEL, turns.pop())
    patient.health.end(CHANNEL, MODEL, None, turns.pop())
    assert patient.is_healthy()
    assert patient.rest() == 0


def test_an_unreachable_channel_is_ejected_at_once_and_longer_each_time(patient: Patient) -> None:
    pauses = []
    for _ in range(6):
        patient.call(failed(Failure.DOWN))
        assert not patient.is_healthy()
        pauses.append(patient.rest())
        patient.seconds += patient.rest()
    assert pauses == [DOWN_SECONDS, 120, 240, 480, LONGEST_DOWN_SECONDS, LONGEST_DOWN_SECONDS]
    patient.call()
    patient.call(failed(Failure.DOWN))
    assert patient.rest() == DOWN_SECONDS


def test_probes_of_an_unreachable_channel_do_not_extend_its_ejection(patient: Patient) -> None:
    for _ in range(4):
        patient.call(failed(Failure.DOWN))
    assert patient.rest() == DOWN_SECONDS


@dataclass(frozen=True)
class Busy:
    id: str
    metadata: dict[str, str]
    rest: float


BUSY = [
    Busy("a stated wait", {"retry_after_seconds": "7"}, 7),
    Busy("it does not say", {}, OVERLOADED_SECONDS),
    Busy("at once", {"retry_after_seconds": "0"}, OVERLOADED_SECONDS),
    Busy("tomorrow", {"retry_after_seconds": "86400"}, LONGEST_OVERLOADED_SECONDS),
]


@pytest.mark.parametrize("case", BUSY, ids=lambda case: case.id)
def test_an_overloaded_channel_is_ejected_for_its_retry_time(patient: Patient, case: Busy) -> None:
    patient.call(failed(Failure.OVERLOADED, **case.metadata))
    assert (patient.is_healthy(), patient.rest(), patient.state()) == (False, case.rest, CircuitState.OPEN)
    patient.seconds += case.rest
    assert (patient.is_healthy(), patient.rest(), patient.state()) == (True, 0, CircuitState.CLOSED)
    for _ in range(3):  # it did not fail: all calls may go there again, not only one probe
        patient.health.begin(CHANNEL, MODEL)
        assert patient.is_healthy()


def test_a_probe_of_an_overloaded_channel_may_extend_its_ejection_and_never_shorten_it(patient: Patient) -> None:
    patient.call(failed(Failure.OVERLOADED, retry_after_seconds="7"))
    patient.call(failed(Failure.OVERLOADED, retry_after_seconds="9"))
    assert patient.rest() == 9
    patient.call(failed(Failure.OVERLOADED))
    assert patient.rest() == 9


def test_a_probe_that_finds_an_overloaded_channel_unreachable_ejects_it(patient: Patient) -> None:
    patient.call(failed(Failure.OVERLOADED))
    patient.call(failed(Failure.DOWN))
    assert patient.rest() == DOWN_SECONDS


def test_a_probe_that_finds_the_channel_busy_is_followed_by_another(patient: Patient) -> None:
    patient.fail(BREAKER.failures)
    patient.seconds += BREAKER.rest
    patient.call(failed(Failure.OVERLOADED, retry_after_seconds="3"))
    assert (patient.is_healthy(), patient.rest()) == (False, 3)
    patient.seconds += 3
    assert patient.state() is CircuitState.HALF_OPEN
    patient.call(failed())
    assert patient.rest() == 2 * BREAKER.rest


def test_calls_in_flight_are_counted_by_channel_and_model(patient: Patient) -> None:
    turns = [patient.health.begin(CHANNEL, MODEL) for _ in range(3)]
    assert patient.health.snapshot() == [(CHANNEL, MODEL, CircuitState.CLOSED, 0, 3)]
    patient.health.end(CHANNEL, MODEL, failed(Failure.DOWN), turns[0])
    patient.health.end(CHANNEL, MODEL, failed(Failure.DOWN), turns[1])
    patient.health.cancelled(CHANNEL, MODEL, turns[2])
    assert patient.health.snapshot() == [(CHANNEL, MODEL, CircuitState.OPEN, DOWN_SECONDS, 0)]


def test_a_reload_drops_the_breakers_of_removed_models_and_keeps_the_others(patient: Patient) -> None:
    down = failed(Failure.DOWN)
    for channel, model in (("gone", "m"), ("kept", "m"), ("kept", "gone"), ("all", "anything")):
        patient.health.end(channel, model, down, patient.health.begin(channel, model))
    patient.health.forget({("kept", "m"), ("all", "*"), ("new", "m")})
    assert {standing[:2] for standing in patient.health.snapshot()} == {("kept", "m"), ("all", "anything")}
    assert not patient.health.is_healthy("kept", "m")
    assert patient.health.is_healthy("gone", "m")


def test_a_call_that_ends_after_it_was_forgotten_changes_nothing(patient: Patient) -> None:
    turn = patient.health.begin(CHANNEL, MODEL)
    patient.health.forget(set())
    patient.health.end(CHANNEL, MODEL, failed(Failure.DOWN), turn)
    patient.health.begin(CHANNEL, MODEL)
    patient.health.end(CHANNEL, MODEL, failed(Failure.DOWN), turn)
    assert patient.is_healthy()


def test_unknown_model_ids_take_bounded_memory_and_evict_no_ejected_channel(patient: Patient) -> None:
    patient.call(failed(Failure.DOWN))
    turn = patient.health.begin(CHANNEL, "under way")
    for number in range(2 * MAX_BREAKERS):
        patient.call(model=f"made-up-{number}")
        if number % 1000 == 0:
            assert len(patient.health.snapshot()) <= MAX_BREAKERS
    assert not patient.is_healthy()
    patient.health.end(CHANNEL, "under way", failed(Failure.DOWN), turn)
    assert not patient.health.is_healthy(CHANNEL, "under way")


def test_a_success_outside_of_calls_closes_the_breaker_and_admits_test_calls_of_other_models(patient: Patient) -> None:
    for model in (MODEL, "model-2", "model-3"):
        for _ in range(3):
            patient.call(failed(Failure.DOWN), model=model)
    patient.health.succeeded(CHANNEL, MODEL)
    states = {each.model: each.state for each in patient.health.snapshot()}
    assert states == {
        MODEL: CircuitState.CLOSED,
        "model-2": CircuitState.HALF_OPEN,
        "model-3": CircuitState.HALF_OPEN,
    }
    assert patient.health.begin(CHANNEL, "model-2", is_last=False)
    assert not patient.health.begin(CHANNEL, "model-2", is_last=False)  # one test call at a time
    patient.health.succeeded(CHANNEL, "")
    assert {each.state for each in patient.health.snapshot() if each.model == "model-3"} == {CircuitState.HALF_OPEN}


def test_a_success_of_another_channel_changes_no_breaker(patient: Patient) -> None:
    patient.call(failed(Failure.DOWN))
    patient.health.succeeded("another", MODEL)
    assert [each.state for each in patient.health.snapshot() if each.channel == CHANNEL] == [CircuitState.OPEN]
