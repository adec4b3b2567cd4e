"""Counts of the gateway's work for single calls: a repeated count is the same, and a costlier call is noticed."""

import sys

import pytest

from bench import call_counts
from bench.call_counts import Counts, calls, exceeded, measure

KNOWN = {"small call": Counts(200, 7000, 600), "embedding": Counts(200, 7000, 600)}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the benchmark reads /proc")


@pytest.mark.parametrize(
    ("counts", "lines"),
    [
        (Counts(200, 7000, 600), []),
        (Counts(206, 7210, 900), []),
        (Counts(100, 3000, 600), []),
        (Counts(207, 7000, 600), ["small call: 207 functions, 200 are written down in call_counts.json"]),
        (Counts(200, 7211, 600), ["small call: 7,211 bytecodes, 7,000 are written down in call_counts.json"]),
    ],
)
def test_a_call_with_more_work_than_tolerated_is_named(counts: Counts, lines: list[str]) -> None:
    assert list(exceeded({**KNOWN, "small call": counts}, KNOWN)) == lines


def test_the_counts_of_a_new_call_are_shown_before_they_are_written_down() -> None:
    shown = call_counts.table({"small call": Counts(201, 7001, 601, 900), "new": Counts(1, 2000, 3)}, KNOWN)
    assert "| small call | 201 | 200 | 7,001 | 7,000 | 601 | 600 | 900 |" in shown
    assert "| new | 1 | - | 2,000 | - | 3 | - | 0 |" in shown


async def test_a_repeated_count_is_the_same() -> None:
    counted = [call for call in calls() if call.name == "small call"]  # `make check` counts all of them
    first, second = await measure(counted), await measure(counted)
    assert list(first) == [call.name for call in counted]
    assert min(each.functions for each in first.values()) > 50
    assert min(each.allocations for each in first.values()) > 100
    assert all(each.longest_turn_micros for each in first.values())
    assert not list(
        exceeded(
            first,
            {
                name: Counts(round(each.functions * 1.02), round(each.bytecodes * 1.02), 0)
                for name, each in second.items()
            },
        )
    )
