"""Background tasks: retries of a step that fails, and their lines in the log."""

import asyncio
from collections.abc import Iterator

import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from umg_grpc.store import repeated_work
from umg_grpc.store.repeated_work import Background

AWAY = OperationalError("SELECT a caller's value", None, OSError("the server is away"))


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_work, "FIRST_PAUSE_SECONDS", 0.001)


async def lines_of(outcomes: Iterator[Exception | None]) -> list[tuple[object, ...]]:
    """Run a task whose step has these outcomes in turn. Return level, event and reason of its lines in the log."""
    done = asyncio.Event()

    async def step() -> None:
        outcome = next(outcomes, done)
        if outcome is done:
            done.set()
        elif isinstance(outcome, Exception):
            raise outcome

    with capture_logs() as lines:
        task = Background("the work", step, every=0.001)
        async with asyncio.timeout(60):
            await done.wait()
        await task.aclose(1)
    return [(line["log_level"], line["event"], line.get("reason"), line.get("exc_info")) for line in lines]


async def test_an_outage_of_the_database_has_one_line_at_its_begin_and_one_at_its_end() -> None:
    outage = [
        ("warning", "the work failed; it is repeated until it succeeds", "the server is away", None),
        ("info", "the work succeeds again", None, None),
    ]
    assert await lines_of(iter([AWAY, AWAY, AWAY, None, None, AWAY, TimeoutError(), None])) == outage * 2


async def test_any_other_failure_has_a_line_with_its_traceback() -> None:
    assert (
        await lines_of(iter([ValueError("wrong"), ValueError("wrong"), None]))
        == [("warning", "the work failed", "wrong", True)] * 2
    )
