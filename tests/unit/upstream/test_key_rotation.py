"""Keys of a channel: the selection of one, and the exclusion of invalid ones."""

from dataclasses import dataclass

import pytest

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.upstream.http.key_rotation import KeyRotation
from umg_grpc.upstream.http.provider_endpoints import ProviderEndpoint, RotatingEndpoints
from umg_grpc.v1 import pb


@dataclass
class Clock:
    time: float = 1000.0

    def __call__(self) -> float:
        return self.time


def bad(status: str = "401") -> UmgError:
    return UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "no", upstream_status=status).with_failure(Failure.DOWN)


def limited(seconds: str | None = None) -> UmgError:
    metadata = {} if seconds is None else {"retry_after_seconds": seconds}
    return UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, "slower", **metadata).with_failure(Failure.OVERLOADED)


def taken(keys: KeyRotation, times: int) -> list[int]:
    return [keys.next() for _ in range(times)]


def test_keys_take_turns() -> None:
    assert taken(KeyRotation(3, Clock()), 7) == [0, 1, 2, 0, 1, 2, 0]


def test_an_invalid_key_is_paused_and_used_again_after_the_pause() -> None:
    clock = Clock()
    keys = KeyRotation(3, clock)
    assert keys.record_failure(1, bad())
    assert (taken(keys, 4), keys.suspended) == ([0, 2, 0, 2], 1)
    clock.time += 60
    assert (taken(keys, 3), keys.suspended) == ([0, 1, 2], 0)


@dataclass(frozen=True)
class Pause:
    id: str
    error: UmgError
    seconds: float  # 0: the key stays in use


PAUSES = [
    Pause("a key that is unknown", bad("401"), 60),
    Pause("an account without credit", bad("402"), 60),
    Pause("a key that may not", bad("403"), 60),
    Pause("a quota that is used up", UmgError(pb.ERROR_REASON_UPSTREAM_RATE_LIMITED, "quota").with_failure(Failure.DOWN), 60),
    Pause("a rate limit", limited("7"), 7),
    Pause("a rate limit without a word of how long", limited(), 1),
    Pause("a rate limit that is over at once", limited("0"), 1),
    Pause("a rate limit for the day", limited("3600"), 60),
    Pause("a model that is not there", bad("404"), 0),
    Pause("an address that is another", bad("308"), 0),
    Pause("a proxy that refuses", bad("407"), 0),
    Pause("a provider with too much to do", UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "", retry_after_seconds="9").with_failure(Failure.OVERLOADED), 0),
    Pause("a failure", UmgError(pb.ERROR_REASON_UPSTREAM_FAILED, "").with_failure(Failure.TRANSIENT), 0),
    Pause("the caller's fault", UmgError(pb.ERROR_REASON_UPSTREAM_REJECTED, "").with_failure(Failure.CALLER), 0),
    Pause("the caller's deadline", UmgError(pb.ERROR_REASON_DEADLINE_EXCEEDED, ""), 0),
]  # fmt: skip


@pytest.mark.parametrize("case", PAUSES, ids=lambda case: case.id)
def test_a_key_is_paused_for_failures_of_the_key_only(case: Pause) -> None:
    clock = Clock()
    keys = KeyRotation(2, clock)
    assert keys.record_failure(0, case.error) is bool(case.seconds)
    if case.seconds:
        clock.time += case.seconds - 0.001
        assert keys.suspended == 1
        clock.time += 0.001
    assert keys.suspended == 0


def test_a_key_that_stays_invalid_is_paused_longer_each_time_up_to_a_quarter_of_an_hour() -> None:
    clock = Clock()
    keys = KeyRotation(2, clock)
    for seconds in (60, 120, 240, 480, 900, 900):
        keys.record_failure(0, bad())
        keys.record_failure(0, bad())  # sent before the first result arrived
        clock.time += seconds - 1
        assert keys.suspended == 1
        clock.time += 1
        assert keys.suspended == 0


def test_a_success_ends_the_pause_and_resets_its_length() -> None:
    clock = Clock()
    keys = KeyRotation(2, clock)
    for _ in range(3):
        keys.record_failure(0, bad())
        clock.time += 1000
    keys.record_failure(0, bad())
    clock.time += 1000
    keys.record_success(0)
    assert (keys.suspended, taken(keys, 2)) == (0, [0, 1])
    keys.record_failure(0, bad())
    clock.time += 60
    assert keys.suspended == 0


def test_a_success_from_before_a_pause_does_not_end_it() -> None:
    keys = KeyRotation(2, Clock())
    keys.record_failure(0, bad())
    keys.record_success(0)  # of a call that was in flight
    assert (keys.suspended, taken(keys, 2)) == (1, [1, 1])


def test_where_all_keys_are_paused_a_success_ends_the_pause_of_its_key() -> None:
    keys = KeyRotation(2, Clock())
    keys.record_failure(0, bad())
    keys.record_failure(1, bad())
    keys.record_success(0)
    assert keys.suspended == 1


def test_when_all_rest_the_first_that_is_due_is_used_and_no_other_is_promised() -> None:
    clock = Clock()
    keys = KeyRotation(3, clock)
    assert keys.record_failure(0, limited("9"))
    assert keys.record_failure(1, limited("3"))
    assert not keys.record_failure(2, limited("6"))
    assert (taken(keys, 3), keys.suspended) == ([1, 1, 1], 3)


def test_the_only_key_is_used_after_any_refusal() -> None:
    keys = KeyRotation(1, Clock())
    assert not keys.record_failure(0, bad())
    assert taken(keys, 2) == [0, 0]


AFFINITIES = [b"%016d" % number for number in range(300)]


def homes(endpoints: RotatingEndpoints) -> list[str]:
    return [endpoints.nearest(affinity).key for affinity in AFFINITIES]


def rotating(*keys: str, now: Clock | None = None) -> RotatingEndpoints:
    return RotatingEndpoints([ProviderEndpoint("http://a", {}, key=key) for key in keys], now or Clock())


def test_an_affinity_has_one_key_in_any_order_of_the_keys() -> None:
    endpoints = rotating("a", "b", "c")
    found = homes(endpoints)
    assert found == homes(endpoints) == homes(rotating("c", "b", "a"))
    assert {key: found.count(key) > 70 for key in "abc"} == dict.fromkeys("abc", True)
    assert taken(endpoints.keys, 3) == [0, 1, 2]  # the turn did not advance


def test_a_key_that_is_added_or_removed_moves_only_its_own_affinities() -> None:
    two, three = homes(rotating("a", "b")), homes(rotating("a", "b", "c"))
    assert {(old, new) for old, new in zip(two, three, strict=True) if old != new} == {("a", "c"), ("b", "c")}


def test_the_affinities_of_a_suspended_key_return_after_the_suspension() -> None:
    clock = Clock()
    endpoints = rotating("a", "b", "c", now=clock)
    before = homes(endpoints)
    endpoints.record_failure(endpoints.endpoints[1], limited("7"))
    during = homes(endpoints)
    moved = {(old, new) for old, new in zip(before, during, strict=True) if old != new}
    assert moved == {("b", "a"), ("b", "c")}
    clock.time += 7
    assert homes(endpoints) == before


def test_when_all_keys_rest_each_affinity_has_the_first_that_is_due() -> None:
    endpoints = rotating("a", "b")
    for endpoint, seconds in zip(endpoints.endpoints, ("9", "3"), strict=True):
        endpoints.record_failure(endpoint, limited(seconds))
    assert set(homes(endpoints)) == {"b"}
