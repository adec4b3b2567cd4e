"""Bounds of the records of refused calls."""

from umg_grpc.access.refused_call_log import CALLER_RECORDS, MAX_CALLERS, PROCESS_RECORDS, RefusalCounter


def test_a_caller_gets_few_records_a_minute_and_the_next_one_counts_the_others() -> None:
    counter = RefusalCounter()
    first = [counter.calls("key_a", "INVALID_FIELD", 1) for _ in range(CALLER_RECORDS + 500)]
    assert first == [1] * CALLER_RECORDS + [0] * 500
    assert counter.calls("key_a", "RATE_LIMITED", 1) == 1, "another reason"
    assert counter.calls("key_b", "INVALID_FIELD", 1) == 1, "another caller"
    assert [counter.calls("key_a", "INVALID_FIELD", 2) for _ in range(2)] == [501, 1]


def test_callers_together_get_a_bounded_number_of_records_and_of_counts() -> None:
    counter = RefusalCounter()
    made = [counter.calls(f"198.51.100.{number}", "INVALID_KEY", 1) for number in range(5000)]
    assert sum(made) == PROCESS_RECORDS
    assert len(counter._uncounted) == MAX_CALLERS
    assert counter.calls("198.51.100.200", "INVALID_KEY", 2) == 2
