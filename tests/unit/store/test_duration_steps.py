"""Scale of durations: steps, their middles and percentiles."""

import sqlite3
from collections import Counter

import pytest

from umg_grpc.store.duration_steps import MAX_MICROS, middle_of, percentile, step_of, step_sql

DURATIONS = sorted(
    {0, 1, 500, MAX_MICROS, MAX_MICROS + 1, 2**60}
    | {(1 << power) + offset for power in range(9, 38) for offset in (-1, 0, 1)}
    | {1024 * 105**each // 100**each for each in range(390)}
)


def test_steps_are_those_of_the_database() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE calls (micros INTEGER)")
    connection.executemany("INSERT INTO calls VALUES (?)", [(each,) for each in DURATIONS])
    found = connection.execute(f"SELECT micros, {step_sql('micros')} FROM calls ORDER BY micros").fetchall()
    connection.close()
    assert found == [(each, step_of(each)) for each in DURATIONS]


def test_longer_durations_are_in_the_same_step_or_a_later_one() -> None:
    steps = [step_of(each) for each in DURATIONS]
    assert steps == sorted(steps)
    assert {*steps} == {*range(steps[0], steps[-1] + 1)}


@pytest.mark.parametrize("micros", [1024, 1500, 99_999, 1_234_567, 3600 * 10**6])
def test_the_middle_of_a_step_is_within_seven_percent(micros: int) -> None:
    assert abs(middle_of(step_of(micros)) - micros) <= 0.07 * micros


def test_a_percentile_is_the_duration_that_as_many_calls_do_not_exceed() -> None:
    steps = Counter({step_of(number * 10_000): 1 for number in range(1, 6)})
    assert [percentile(steps, percent) for percent in (50, 60, 61, 100)] == [
        middle_of(step_of(number * 10_000)) for number in (3, 3, 4, 5)
    ]
    assert percentile({}, 50) is None
