"""Records of calls in flight: they outlive the process, and only while the calls are in flight."""

import errno
import os
from pathlib import Path

import pytest

from umg_grpc.store.in_flight_record_file import (
    FIRST_SLOTS,
    MAX_RECORD_BYTES,
    NO_SLOT,
    OPEN_SUFFIX,
    OpenRecords,
    forget,
    records_of,
)


def test_records_are_those_of_the_calls_in_flight(tmp_path: Path) -> None:
    records = OpenRecords(tmp_path, "one")
    first, second = records.add(b"first"), records.add(b"a longer second record")
    records.delete(first)
    third = records.add(b"third")
    assert third == first, "a free slot is used again"
    assert sorted(records_of(tmp_path, "one")) == [b"a longer second record", b"third"]
    records.delete(second)
    records.delete(third)
    assert records_of(tmp_path, "one") == []
    records.close()
    assert not (tmp_path / f"one{OPEN_SUFFIX}").exists()


def test_the_file_grows_with_the_calls_in_flight(tmp_path: Path) -> None:
    records = OpenRecords(tmp_path, "one")
    expected = [b"record %d" % number for number in range(5 * FIRST_SLOTS)]
    slots = [records.add(record) for record in expected]
    assert sorted(records_of(tmp_path, "one")) == sorted(expected)
    for slot in slots[1:]:
        records.delete(slot)
    records.close()
    assert records_of(tmp_path, "one") == expected[:1], "the file stays as long as it has a record"
    forget(tmp_path, "one")
    assert records_of(tmp_path, "one") == []


def test_a_record_that_is_too_long_has_no_slot(tmp_path: Path) -> None:
    records = OpenRecords(tmp_path, "one")
    assert records.add(b"x" * (MAX_RECORD_BYTES + 1)) == NO_SLOT
    longest = records.add(b"y" * MAX_RECORD_BYTES)
    assert records_of(tmp_path, "one") == [b"y" * MAX_RECORD_BYTES]
    records.delete(NO_SLOT)
    records.delete(longest)
    records.close()


def test_a_full_disk_costs_the_records_and_not_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    records = OpenRecords(tmp_path, "one")
    slots = [records.add(b"x") for _ in range(FIRST_SLOTS)]

    def fail(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", fail)
    assert records.add(b"x") == NO_SLOT
    monkeypatch.undo()
    slots.append(records.add(b"x"))
    assert NO_SLOT not in slots
    for slot in slots:
        records.delete(slot)
    records.close()
