"""Usage records of the tests."""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import combinations

import msgspec

from umg_grpc.base.time_units import micros_of
from umg_grpc.store.usage_parts import DIMENSION_COLUMNS
from umg_grpc.store.usage_record_table import UsageRecord
from umg_grpc.store.usage_tables import AGENT_COLUMN

NOW = datetime(2026, 5, 4, 12, tzinfo=UTC)
ALL = datetime(1970, 1, 1, tzinfo=UTC)


def record(number: int, **changed: object) -> UsageRecord:
    """Return a record with an id of its own, which arrived `number` microseconds after `NOW`."""
    made = UsageRecord(
        record_id=f"boot-{number}", request_id=f"req-{number}", key_id="key_a", operation="generate",
        method="GenerationService/Generate", face="chat", model="m", channel="main", start_micros=micros_of(NOW) + number,
        duration_micros=1500, status="OK", reason="", attempts=1, cached=False, estimated=False,
        input_tokens=10, output_tokens=2**40, micro_credits=7,
    )  # fmt: skip
    return msgspec.structs.replace(made, **changed)


def lines(*made: UsageRecord) -> list[bytes]:
    """Return records as lines of the journal."""
    return [msgspec.json.encode(each) for each in made]


def column_sets() -> Iterator[tuple[str, ...]]:
    """Yield the sets of columns by which usage is summed: all without the agent, and the agent alone, with each other
    column, and with all of them.
    """
    others = [name for name in DIMENSION_COLUMNS if name != AGENT_COLUMN]
    for count in range(len(others) + 1):
        yield from combinations(others, count)
    yield from ((AGENT_COLUMN,), *((name, AGENT_COLUMN) for name in others), tuple(DIMENSION_COLUMNS))
