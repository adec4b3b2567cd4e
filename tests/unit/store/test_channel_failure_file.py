"""Last failures of channels: the file that the processes of a gateway share."""

import stat
from pathlib import Path

import msgspec

from umg_grpc.base.provider_failure import FailureKind, ProviderFailure
from umg_grpc.store.channel_failure_file import (
    FILE_NAME,
    KEEP_SECONDS,
    MAX_FAILURES,
    ChannelFailures,
    LastFailure,
    read_failures,
)


async def write(data: Path, *failures: tuple[float, str, ProviderFailure]) -> None:
    """Record failures at these times as another process would."""
    clock = iter([moment for moment, _, _ in failures] + [failures[-1][0]])
    writer = ChannelFailures(data, now=lambda: next(clock))
    writer.start()
    for _, channel, facts in failures:
        writer.record(channel, facts)
    await writer.aclose()


def facts(kind: FailureKind = FailureKind.DNS, model: str = "m") -> ProviderFailure:
    return ProviderFailure(kind, message="words", model=model, key_tail="wxyz")


async def test_the_last_failure_of_each_channel_and_model_of_all_processes_is_read(tmp_path: Path) -> None:
    assert read_failures(tmp_path) == []
    await write(tmp_path, (1.0, "main", facts()), (2.0, "main", facts(model="n")))
    await write(tmp_path, (3.0, "spare", facts()), (4.0, "main", facts(FailureKind.SLOW)))
    assert read_failures(tmp_path) == [
        LastFailure("main", 4.0, facts(FailureKind.SLOW)),
        LastFailure("spare", 3.0, facts()),
        LastFailure("main", 2.0, facts(model="n")),
    ]
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600


async def test_a_rejected_request_is_no_failure_of_its_channel(tmp_path: Path) -> None:
    await write(tmp_path, (1.0, "main", facts(FailureKind.REQUEST)))
    assert read_failures(tmp_path) == []


async def test_failures_of_the_day_before_are_removed(tmp_path: Path) -> None:
    await write(tmp_path, (1.0, "old", facts()))
    await write(tmp_path, (KEEP_SECONDS + 2.0, "new", facts()))
    assert [failure.channel for failure in read_failures(tmp_path)] == ["new"]


async def test_the_file_is_bounded(tmp_path: Path) -> None:
    for start in (0.0, 1000.0):
        await write(tmp_path, *[(start + n, "main", facts(model=f"{start}-{n}")) for n in range(2 * MAX_FAILURES)])
    found = read_failures(tmp_path)
    assert len(found) == MAX_FAILURES
    assert all(failure.time >= 1000 for failure in found)


async def test_a_damaged_file_is_replaced(tmp_path: Path) -> None:
    for content in (b"[{", b"{}", msgspec.json.encode([{"channel": "main", "time": 1, "facts": ["newer kind"]}])):
        (tmp_path / FILE_NAME).write_bytes(content)
        assert read_failures(tmp_path) == []
        await write(tmp_path, (1.0, "main", facts()))
        assert len(read_failures(tmp_path)) == 1


async def test_models_that_were_refused_as_unknown_are_known_to_all_processes_for_a_day(tmp_path: Path) -> None:
    moment = 1.0
    reader = ChannelFailures(tmp_path, now=lambda: moment)
    assert await reader.read_unknown_models() == frozenset()
    await write(tmp_path, (1.0, "main", facts(FailureKind.WRONG_MODEL)), (1.0, "main", facts(model="n")))
    assert await reader.read_unknown_models() == {("main", "m")}
    moment += KEEP_SECONDS + 1
    assert await reader.read_unknown_models() == frozenset()


async def test_a_model_that_answers_again_is_unknown_to_no_process(tmp_path: Path) -> None:
    await write(tmp_path, (1.0, "main", facts(FailureKind.WRONG_MODEL)), (1.0, "spare", facts()))
    first, second = (ChannelFailures(tmp_path, now=lambda: 2.0) for _ in range(2))
    first.start()
    assert await first.read_unknown_models() == await second.read_unknown_models() == {("main", "m")}
    first.forget_unknown("main", "m")
    assert await first.read_unknown_models() == frozenset()
    await first.aclose()
    assert await second.read_unknown_models() == frozenset()
    assert [failure.channel for failure in read_failures(tmp_path)] == ["spare"]
