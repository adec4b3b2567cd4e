"""Time of the database: the same in SQL statements and in the process, also if the wall clock of the process is wrong."""

import re
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import insert, literal, select, text

import umg_grpc
from umg_grpc.store import Store
from umg_grpc.store.database_time import CURRENT_MICROS, DatabaseClock, GivenClock, MachineClock, utc_of
from umg_grpc.store.table_definitions import ReasoningRow


@dataclass
class Hands:
    wall: float = 1_800_000_000.0
    monotonic: float = 500.0

    def pass_seconds(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds


@pytest.fixture
def hands() -> Hands:
    return Hands()


@pytest.fixture
def clock(hands: Hands) -> DatabaseClock:
    return DatabaseClock(lambda: hands.wall, lambda: hands.monotonic)


@pytest.fixture
def store(prepared_store: Store) -> Store:
    return prepared_store


async def test_statements_and_the_process_have_the_same_time(store: Store) -> None:
    async with store.read() as session:
        before = time.time()
        in_text = await session.scalar(text(f"SELECT {CURRENT_MICROS[session.get_bind().dialect.name]}"))
        micros = await session.scalar(select(store.clock.sql_micros()))
        moment = await session.scalar(select(store.clock.sql_time(60)))
        after = time.time()
    assert isinstance(micros, int)
    assert isinstance(moment, datetime)
    for seconds in (in_text / 1e6, micros / 1e6, moment.timestamp() - 60, store.clock.now()):
        assert before - 60 <= seconds <= after + 60
    assert abs(store.clock.skew_seconds) < 60


async def test_stored_times_are_compared_with_the_time_of_the_database(store: Store) -> None:
    for clock in (store.clock, GivenClock(lambda: datetime(2027, 1, 1, tzinfo=UTC))):
        now = utc_of(clock)
        async with store.write() as session:
            for name, seconds in (("past", -2), ("future", 2)):
                row = {"owner": str(now), "object_id": name, "expire_time": now + timedelta(seconds=seconds)}
                await session.execute(insert(ReasoningRow).values(**row, size_bytes=0, channel="", thoughts=b""))
            table = ReasoningRow
            live = select(table.object_id).where(table.owner == str(now), table.expire_time > clock.sql_time())
            assert (await session.scalars(live)).all() == ["future"]
            late = select(table.object_id).where(table.owner == str(now), table.expire_time > clock.sql_time(1.5))
            assert (await session.scalars(late)).all() == ["future"]
            later = select(table.object_id).where(table.owner == str(now), table.expire_time > clock.sql_time(2.5))
            assert (await session.scalars(later)).all() == []
            micros = await session.scalar(select(literal(round(now.timestamp() * 1e6)) <= clock.sql_micros()))
            assert micros


WALL_CLOCKS = {
    "access/api_keys.py": "default of the first key and of commands, which open a database for a moment",
    "access/authentication.py": "default",
    "access/signed_file_links.py": "default",
    "service/alerts/alert_receiver_clients.py": "of commands, which send one test",
    "service/caching/response_cache.py": "default",
    "service/service_metrics.py": "not shared: expiry of certificates",
    "service/model_discovery.py": "times of local files",
    "service/pipeline/call_log.py": "last uses of keys, from which the skew is subtracted",
    "service/pipeline/limits_and_budget.py": "headers for callers",
    "service/pipeline/maximum_call_cost.py": "default without usage records",
    "service/operations/generate/text_response_finishing.py": "times shown to callers",
    "service/operations/generate/streamed_text_responses.py": "times shown to callers",
    "service/operations/video/video_pipeline.py": "rate of the hour for the highest price of a call",
    "service/pipeline/usage_recording.py": "default without usage records",
    "service/resilience/channel_protection.py": "default",
    "service/resilience/learned_quirks.py": "default",
    "service/telemetry/opentelemetry_spans.py": "spans of this process",
    "service/stored_model_lists.py": "days on which models retire",
    "store/blob_store.py": "times of local files",
    "store/channel_failure_file.py": "times in local files",
    "store/database_time.py": "the clock itself",
}
"""Modules that may read the wall clock of the process, with the reason."""


def test_no_other_module_that_stores_times_reads_the_wall_clock() -> None:
    package = Path(umg_grpc.__file__).parent
    reads = re.compile(r"\btime\.time(?:_ns)?\b|\bdatetime\.now\b|\bdate\.today\b")
    paths = [path for room in ("access", "service", "store") for path in (package / room).rglob("*.py")]
    found = {str(path.relative_to(package)) for path in paths if reads.search(path.read_text())}
    assert found == WALL_CLOCKS.keys()


def test_the_clock_is_that_of_the_process_until_it_is_measured(clock: DatabaseClock, hands: Hands) -> None:
    assert (clock.now(), clock.skew_seconds) == (hands.wall, 0)


def test_a_wrong_wall_clock_does_not_change_the_time(clock: DatabaseClock, hands: Hands) -> None:
    database = hands.wall - 7200
    clock.measured(database, hands.monotonic, hands.monotonic)
    assert (clock.now(), clock.skew_seconds) == (database, 7200)
    hands.pass_seconds(30)
    hands.wall += 172_800  # a jump of two days
    assert (clock.now(), clock.skew_seconds) == (database + 30, 180_000)


def test_the_clock_of_a_machine_that_jumps_is_not_trusted_for_ten_minutes(hands: Hands) -> None:
    clock, trusted = MachineClock(lambda: hands.wall, lambda: hands.monotonic), list[bool]()
    for seconds, jump in ((86_400, 4), (15, 172_800), (15, -172_800), (599, 0), (1, 0)):
        hands.pass_seconds(seconds)
        hands.wall += jump
        trusted.append(clock.is_trusted)
    assert trusted == [True, False, False, False, True]  # four seconds are a correction


@dataclass(frozen=True)
class Skew:
    id: str
    seconds: float
    problem: str
    is_trusted: bool


SKEWS = [
    Skew("nearly right", 0.9, "", True),
    Skew("ahead", 1.5, "clock: 1.5 s ahead of", True),
    Skew("behind", -4.0, "clock: 4.0 s behind", True),
    Skew("two days ahead", 172_800.0, "clock: 172800.0 s ahead of", False),
    Skew("two hours behind", -7200.0, "clock: 7200.0 s behind", False),
]


@pytest.mark.parametrize("case", SKEWS, ids=lambda case: case.id)
def test_a_process_with_a_wrong_clock_is_not_ready(case: Skew, clock: DatabaseClock, hands: Hands) -> None:
    clock.measured(hands.wall - case.seconds, hands.monotonic, hands.monotonic)
    assert clock.problem.partition(" that of")[0] == case.problem
    assert clock.is_trusted is case.is_trusted


def test_a_slow_answer_alone_does_not_prove_that_the_clock_is_wrong(clock: DatabaseClock, hands: Hands) -> None:
    sent = hands.monotonic
    hands.pass_seconds(4)
    clock.measured(hands.wall, sent, hands.monotonic)
    assert (clock.skew_seconds, clock.problem) == (-2, "")


def test_the_round_trip_is_halved(clock: DatabaseClock, hands: Hands) -> None:
    sent = hands.monotonic
    hands.pass_seconds(0.5)
    clock.measured(hands.wall - 0.25, sent, hands.monotonic)
    assert clock.skew_seconds == 0


def test_a_slow_answer_does_not_replace_a_quick_one_that_it_agrees_with(clock: DatabaseClock, hands: Hands) -> None:
    clock.measured(hands.wall, hands.monotonic, hands.monotonic)
    sent = hands.monotonic
    hands.pass_seconds(4)
    clock.measured(hands.wall - 4, sent, hands.monotonic)  # it read its clock at once, and answered late
    assert clock.skew_seconds == 0
    hands.pass_seconds(60)
    sent = hands.monotonic
    hands.pass_seconds(4)
    clock.measured(hands.wall - 4, sent, hands.monotonic)
    assert clock.skew_seconds == 2


def test_a_jump_of_the_database_is_taken_from_a_slow_answer_too(clock: DatabaseClock, hands: Hands) -> None:
    clock.measured(hands.wall, hands.monotonic, hands.monotonic)
    sent = hands.monotonic
    hands.pass_seconds(4)
    clock.measured(hands.wall + 100, sent, hands.monotonic)
    assert clock.skew_seconds == -102
