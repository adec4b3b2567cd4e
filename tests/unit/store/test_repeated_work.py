"""Background tasks: retries of a step that fails, their lines in the log, and the times of the steps."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest
from sqlalchemy.exc import OperationalError
from structlog.testing import capture_logs

from tests.support.simulated_time import SimulatedTimeLoop
from umg_grpc.store import repeated_background_tasks
from umg_grpc.store.repeated_background_tasks import Background

AWAY = OperationalError("SELECT a caller's value", None, OSError("the server is away"))


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeated_background_tasks, "FIRST_PAUSE_SECONDS", 0.001)


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


@dataclass(frozen=True)
class Writes:
    id: str
    took: float
    """Seconds of each write."""
    oldest: float
    """Age in seconds of the oldest record at the end of its write."""


WRITES = [
    Writes(id="short ones", took=0.01, oldest=0.8),
    Writes(id="slow ones", took=0.3, oldest=0.8),
    Writes(id="ones that take longer than the time between them", took=2.0, oldest=4.0),
]


@pytest.mark.parametrize("case", WRITES, ids=lambda case: case.id)
def test_the_time_that_writes_take_is_part_of_the_time_between_them(case: Writes) -> None:
    """A record that is added just after a write has begun is stored at the end of the next one."""
    steps = list[tuple[float, float]]()

    async def run() -> None:
        clock, is_writing, enough = asyncio.get_running_loop().time, asyncio.Lock(), asyncio.Event()

        async def write() -> None:
            assert not is_writing.locked()
            async with is_writing:
                began = clock()
                await asyncio.sleep(case.took)
            steps.append((began, clock()))
            if len(steps) == 5:
                enough.set()

        task = Background("the work", write, every=0.8, with_steps=True)
        await enough.wait()
        await task.aclose(10)

    with asyncio.Runner(loop_factory=SimulatedTimeLoop) as runner:
        runner.run(run())
    ages = [ended - began for (began, _), (_, ended) in pairwise(steps)]
    assert ages == pytest.approx([case.oldest] * len(ages))
