"""Scale of durations for counts of calls: each power of two of microseconds is divided into 8 equal steps, so that a
step is 6 to 13 % wide. Its numbers are exact in Python and in SQL, and counts of steps are merged by addition alone.
"""

from collections.abc import Mapping
from math import ceil

STEP_BITS = 3
"""Binary digits of the number of steps in a power of two."""
MIN_POWER, MAX_POWER = 10, 36
"""Powers of two that are divided: shorter durations, below 1.024 ms, are in the first step; longer ones, above 38
hours, in the last.
"""
MIN_MICROS, MAX_MICROS = 1 << MIN_POWER, (2 << MAX_POWER) - 1


def step_of(micros: int) -> int:
    """Return the step of a duration."""
    micros = min(max(micros, MIN_MICROS), MAX_MICROS)
    power = micros.bit_length() - 1
    return (power << STEP_BITS) + ((micros >> (power - STEP_BITS)) & 7)


def middle_of(step: int) -> int:
    """Return the middle of a step in microseconds."""
    power, part = step >> STEP_BITS, step & 7
    return ((17 + 2 * part) << (power - STEP_BITS)) >> 1


def step_sql(column: str) -> str:
    """Return the SQL expression for the step of a duration. `column`: name of a column with microseconds."""

    def between(lowest: int, highest: int) -> str:
        if lowest == highest:
            return f"{lowest << STEP_BITS} + (({column} >> {lowest - STEP_BITS}) & 7)"
        middle = (lowest + highest + 1) // 2
        return (
            f"CASE WHEN {column} < {1 << middle} THEN {between(lowest, middle - 1)} ELSE {between(middle, highest)} END"
        )

    first, last = step_of(0), step_of(MAX_MICROS)
    limited = f"WHEN {column} < {MIN_MICROS} THEN {first} WHEN {column} > {MAX_MICROS} THEN {last}"
    return f"CASE {limited} ELSE {between(MIN_POWER, MAX_POWER)} END"


def percentile(counts: Mapping[int, int], percent: int) -> int | None:
    """Return the middle of the step with the duration that `percent` of the calls do not exceed, in microseconds; None
    without calls. `counts`: step -> number of calls.
    """
    rank = ceil(sum(counts.values()) * percent / 100)
    for step in sorted(counts):
        rank -= counts[step]
        if rank <= 0:
            return middle_of(step)
    return None
