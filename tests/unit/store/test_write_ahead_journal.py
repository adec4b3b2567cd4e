"""Journal of records: it survives the end of its process, and delivers each record at least once."""

import errno
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.support.full_disks import LIMITED_BYTES, SmallDisk, disk_at
from umg_grpc.store.write_ahead_journal import DISK_FAILED, JOURNAL_FULL, Journal

SEGMENT = 32 * LIMITED_BYTES
"""Size of which no part may be written under the limit."""
APPENDING = """
import sys
from pathlib import Path
from umg_grpc.store.write_ahead_journal import Journal
journal, number = Journal(Path(sys.argv[1])), 0
while True:
    journal.append(b'record %d' % number)
    print(number, flush=True)
    number += 1
"""


class Receiver:
    def __init__(self, failures: int = 0) -> None:
        self.records = list[bytes]()
        self.failures = failures

    async def __call__(self, records: Sequence[bytes]) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("the database is away")
        self.records.extend(records)


def files(directory: Path) -> list[Path]:
    return sorted(directory.iterdir())


async def test_records_are_delivered_once_and_in_order(tmp_path: Path) -> None:
    journal, receiver = Journal(tmp_path, segment_bytes=40), Receiver()
    expected = [b"record %d" % number for number in range(20)]
    for record in expected:
        assert journal.append(record)
        await journal.drain(receiver)
    await journal.drain(receiver)
    assert receiver.records == expected
    journal.close()
    assert files(tmp_path) == []


async def test_records_that_were_not_delivered_are_delivered_later(tmp_path: Path) -> None:
    journal, receiver = Journal(tmp_path), Receiver(failures=2)
    for number in range(3):
        journal.append(b"%d" % number)
        if receiver.failures:
            with pytest.raises(ConnectionError):
                await journal.drain(receiver)
    assert journal.waiting_bytes == 6
    await journal.drain(receiver)
    assert (sorted(receiver.records), journal.waiting_bytes) == ([b"0", b"1", b"2"], 0)


async def test_a_journal_that_is_closed_keeps_its_records_for_the_next(tmp_path: Path) -> None:
    first = Journal(tmp_path)
    first.append(b"kept")
    first.close()
    receiver = Receiver()
    await Journal(tmp_path).drain(receiver)
    assert receiver.records == [b"kept"]


async def test_the_segment_of_a_live_process_is_left_alone(tmp_path: Path) -> None:
    live, other, receiver = Journal(tmp_path), Journal(tmp_path), Receiver()
    live.append(b"of the live one")
    await other.drain(receiver)
    assert receiver.records == []
    await live.drain(receiver)
    assert receiver.records == [b"of the live one"]


async def test_a_line_that_was_cut_is_no_record_and_harms_no_other(tmp_path: Path) -> None:
    (tmp_path / "0.jsonl").write_bytes(b"whole\ncu")
    journal, receiver = Journal(tmp_path), Receiver()
    journal.append(b"next")
    await journal.drain(receiver)
    assert sorted(receiver.records) == [b"next", b"whole"]


async def test_a_full_journal_rejects_records_until_it_is_delivered(tmp_path: Path) -> None:
    journal, receiver = Journal(tmp_path, segment_bytes=10, waiting_bytes=30), Receiver()
    taken = [journal.append(b"record %d" % number) for number in range(9)]
    assert taken == [True] * 4 + [False] * 5, "a segment has two records of 9 bytes; two segments are above 30"
    await journal.drain(receiver)
    assert len(receiver.records) == 4
    assert journal.append(b"again")


async def test_records_wait_until_a_delivery_succeeds(tmp_path: Path) -> None:
    journal, receiver = Journal(tmp_path), Receiver(failures=1)
    journal.append(b"one", b"two")
    assert journal.waiting_records == 2
    with pytest.raises(ConnectionError):
        await journal.drain(receiver)
    journal.append(b"three")
    assert journal.waiting_records == 3
    await journal.drain(receiver)
    assert journal.waiting_records == 0


async def test_refused_records_are_known_with_the_reason(tmp_path: Path) -> None:
    directory = tmp_path / "journal"
    journal = Journal(directory, segment_bytes=10, waiting_bytes=20)
    assert [journal.append(b"record %d" % number) for number in range(3)] == [1, 1, 1]
    assert (journal.append(b"one", b"two"), journal.refusal) == (0, JOURNAL_FULL)
    assert "bytes wait for the database" in journal.problem
    await journal.drain(Receiver())
    journal.check()
    assert (journal.refusal, journal.problem, journal.append(b"three")) == ("", "", 1)
    await journal.drain(Receiver())
    directory.rmdir()
    assert (journal.append(b"four"), journal.refusal) == (0, DISK_FAILED)
    assert journal.problem == "No such file or directory"


def test_the_disk_blocks_of_a_segment_are_allocated_when_it_is_opened(tmp_path: Path) -> None:
    journal = Journal(tmp_path, segment_bytes=SEGMENT)
    [segment] = files(tmp_path)
    assert segment.stat().st_blocks * 512 >= SEGMENT
    journal.close()


async def test_a_full_disk_takes_the_rest_of_a_segment_and_no_other(tmp_path: Path) -> None:
    record, receiver = b"x" * 99, Receiver()
    with disk_at(tmp_path / "disk", "6m") as disk:
        journal = Journal(tmp_path / "disk" / "journal", segment_bytes=SEGMENT)
        disk.fill(os.getpid())
        try:
            taken = 0
            while journal.append(record):
                taken += 1
            size = SEGMENT if isinstance(disk, SmallDisk) else LIMITED_BYTES
            assert (taken, journal.refusal) == (size // 100, DISK_FAILED)
            journal.check()
            assert journal.problem in {os.strerror(errno.ENOSPC), os.strerror(errno.EFBIG)}
            await journal.drain(receiver)
            assert receiver.records == [record] * taken
        finally:
            disk.empty(os.getpid())
        journal.check()
        assert (journal.problem, journal.append(record)) == ("", 1)
        journal.close()


async def test_a_full_disk_takes_records_while_others_are_delivered(tmp_path: Path) -> None:
    delivered = list[bytes]()
    with disk_at(tmp_path / "disk", "6m") as disk:
        journal = Journal(tmp_path / "disk" / "journal", segment_bytes=SEGMENT)

        async def deliver(records: Sequence[bytes]) -> None:
            delivered.extend(records)
            if isinstance(disk, SmallDisk):  # the unwritten rest of the first segment has become free
                assert journal.append(b"meanwhile") == 1

        disk.fill(os.getpid())
        try:
            journal.append(b"first")
            await journal.drain(deliver)
            assert (delivered, journal.refusal) == ([b"first"], "")
        finally:
            disk.empty(os.getpid())
        journal.close()


def test_a_disk_with_less_than_a_segment_of_space_is_a_problem_before_records_are_refused(tmp_path: Path) -> None:
    with disk_at(tmp_path / "disk", "3m") as disk:
        journal = Journal(tmp_path / "disk" / "journal", segment_bytes=LIMITED_BYTES)
        journal.check()
        assert journal.problem == ""
        journal.close()
        journal = Journal(tmp_path / "disk" / "journal", segment_bytes=SEGMENT)
        journal.check()
        if isinstance(disk, SmallDisk):  # the disk of a test without privileges has space
            assert journal.problem == os.strerror(errno.ENOSPC)
        assert journal.append(b"still") == 1
        journal.close()


async def test_a_segment_that_another_process_delivered_does_not_wait(tmp_path: Path) -> None:
    journal, other, receiver = Journal(tmp_path, segment_bytes=10), Journal(tmp_path), Receiver()
    for number in range(3):
        journal.append(b"record %d" % number)
    await other.drain(receiver)
    assert receiver.records == [b"record 0", b"record 1"]
    await journal.drain(receiver)
    assert (sorted(receiver.records), journal.waiting_records) == ([b"record 0", b"record 1", b"record 2"], 0)


async def test_the_unwritten_rest_of_the_segment_of_a_killed_process_is_no_record(tmp_path: Path) -> None:
    (tmp_path / "0.jsonl").write_bytes(b"whole\n" + bytes(SEGMENT))
    (tmp_path / "1.jsonl").write_bytes(b"whole too\ncut" + bytes(SEGMENT))
    (tmp_path / "2.jsonl").write_bytes(bytes(SEGMENT))
    journal, receiver = Journal(tmp_path), Receiver()
    await journal.drain(receiver)
    assert receiver.records == [b"whole", b"whole too"]
    journal.close()
    assert files(tmp_path) == []


async def test_records_that_are_appended_together_are_delivered_each(tmp_path: Path) -> None:
    journal, receiver = Journal(tmp_path), Receiver()
    assert journal.append(b"one", b"two", b"three")
    await journal.drain(receiver)
    assert receiver.records == [b"one", b"two", b"three"]
    journal.close()


async def test_a_directory_that_cannot_be_made_stops_the_start(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        Journal(tmp_path / "file" / "usage")


def append_until_killed(directory: Path) -> list[int]:
    """Kill a process that appends records. Return the numbers of all records that it reported as appended."""
    command = [sys.executable, "-c", APPENDING, str(directory)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        seen = [int(process.stdout.readline()) for _ in range(2000)]
        process.kill()
        seen += [int(line) for line in process.stdout if line.endswith("\n")]
    return seen


async def test_each_record_that_was_appended_survives_a_kill(tmp_path: Path) -> None:
    seen, receiver = append_until_killed(tmp_path), Receiver()
    await Journal(tmp_path).drain(receiver)
    assert receiver.records[: len(seen)] == [b"record %d" % number for number in seen]
