"""Last uses of keys: noted in memory, and written once a minute."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import event
from sqlalchemy.engine import Engine

from tests.unit.access.conftest import Clock
from umg_grpc.access.api_keys import ApiKeys
from umg_grpc.access.key_last_use import KeyUses

EARLY, LATE = datetime(2026, 5, 1, tzinfo=UTC), datetime(2026, 5, 2, tzinfo=UTC)


@pytest.fixture
def writes() -> Iterator[list[str]]:
    """Return the statements that set a time of use."""
    statements = list[str]()

    def record(_: object, __: object, statement: str, *___: object) -> None:
        if "SET last_use_time" in statement:
            statements.append(statement)

    event.listen(Engine, "before_cursor_execute", record)
    yield statements
    event.remove(Engine, "before_cursor_execute", record)


async def test_a_use_is_written_once_a_minute_and_at_the_end(keys: ApiKeys, clock: Clock, writes: list[str]) -> None:
    key, _ = await keys.create("app")
    other, _ = await keys.create("other")
    uses, began = KeyUses(keys, monotonic=clock), clock.seconds
    for seconds in (0, 10, 20):
        clock.seconds = began + seconds
        uses.used[key.key_id] = clock.seconds
        await uses.write()
    assert (len(writes), (await keys.get("app")).last_use_time) == (1, datetime.fromtimestamp(began, UTC))
    clock.seconds = began + 61
    await uses.write()
    assert (len(writes), (await keys.get("app")).last_use_time) == (2, datetime.fromtimestamp(began + 20, UTC))
    clock.seconds = began + 70
    uses.used[key.key_id] = clock.seconds
    uses.start()
    await uses.aclose()
    assert (len(writes), (await keys.get("app")).last_use_time) == (3, datetime.fromtimestamp(began + 70, UTC))
    assert (await keys.get(other.key_id)).last_use_time is None


async def test_of_several_processes_the_latest_use_remains(keys: ApiKeys) -> None:
    key, _ = await keys.create("app")
    for time in (LATE, EARLY):
        await keys.record_uses({key.key_id: time, "an unknown key": time})
    assert (await keys.get("app")).last_use_time == LATE
