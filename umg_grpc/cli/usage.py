"""Commands `umg usage` and `umg requests show`, which read the usage records in the database of a config."""

import csv
import json
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path

import msgspec
import typer

from umg_grpc.access.keys import Keys
from umg_grpc.cli.tables import print_table
from umg_grpc.config import Config
from umg_grpc.prices import credits_text
from umg_grpc.store import Store, StoreError, open_store
from umg_grpc.store.database import SQLITE, SQLITE_FILE
from umg_grpc.store.usage_records import BUCKETS, COUNTS, SUMS, CallFilter, UsageRecord, UsageRecords, UsageSum, time_of

INPUTS = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "long_cache_write_tokens", "audio_input_tokens")
OUTPUTS = ("output_tokens", "reasoning_tokens", "audio_output_tokens")


class Format(StrEnum):
    """Format of the printed usage."""

    TABLE = "table"
    JSON = "json"
    CSV = "csv"


async def usage(config: Config, data: Path, by: Sequence[str], calls: CallFilter, printed: Format) -> None:
    """Print the usage of the groups of calls: as a table, one JSON object per line, or CSV with a header."""
    async with _opened(config, data) as store:
        sums = await UsageRecords(store).sums(by, calls)
        names = {key.key_id: key.name for key in await Keys(store).list()} if "key" in by else {}
    if printed is Format.TABLE:
        columns = (*by, "requests", "failed", "input", "cached", "output", "reasoning", "credits")
        print_table(columns, [_table_row(by, each, names) for each in sums])
        return
    rows = [_members(by, each, names) for each in sums]
    if printed is Format.JSON:
        for row in rows:
            print(json.dumps(row, ensure_ascii=False))
        return
    named = ("key", "key_name") if "key" in by else ()
    columns = (*(name for name in by if name != "key"), *named, "requests", "failed", *SUMS)
    writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


async def show_request(config: Config, data: Path, request_id: str) -> None:
    """Print the records of the calls with a request id, oldest first. Exit with 1 if there is none."""
    async with _opened(config, data) as store:
        found = await UsageRecords(store).find(request_id)
    if not found:
        print(
            f"umg: there is no record of {request_id}: it was never admitted, ended less than two seconds ago, or is"
            " older than `usage.ttl` of the config",
            file=sys.stderr,
        )
        raise typer.Exit(1)
    for record in found:
        print_table(("field", "value"), _record_rows(record))


@asynccontextmanager
async def _opened(config: Config, data: Path) -> AsyncGenerator[Store, None]:
    """Yield the store, which must exist. Errors are printed to standard error and exit with 1."""
    if config.database == SQLITE and not (data / SQLITE_FILE).exists():
        print(f"umg: there is no database in {data}; select the gateway's folder with --data", file=sys.stderr)
        raise typer.Exit(1)
    try:
        store = await open_store(config.database, data)
    except StoreError as error:
        print(f"umg: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    try:
        yield store
    finally:
        await store.aclose()


def _table_row(by: Sequence[str], group: UsageSum, names: Mapping[str, str]) -> list[str]:
    sums, values = group.sums, _values(by, group)
    cells = [names.get(value, value) if name == "key" else value for name, value in zip(by, values, strict=True)]
    counts = (
        group.requests,
        group.failed,
        sum(sums[name] for name in INPUTS),
        sums["cache_read_tokens"],
        sum(sums[name] for name in OUTPUTS),
        sums["reasoning_tokens"],
    )
    return [*cells, *map(str, counts), credits_text(sums["micro_credits"])]


def _values(by: Sequence[str], group: UsageSum) -> list[str]:
    return [
        time_of(int(value)).date().isoformat() if name in BUCKETS else str(value)
        for name, value in zip(by, group.group, strict=True)
    ]


def _members(by: Sequence[str], group: UsageSum, names: Mapping[str, str]) -> dict[str, str | int]:
    members: dict[str, str | int] = dict(zip(by, _values(by, group), strict=True))
    if "key" in members:
        members["key_name"] = names.get(str(members["key"]), "")
    return {**members, "requests": group.requests, "failed": group.failed, **group.sums}


def _record_rows(record: UsageRecord) -> list[tuple[str, str]]:
    """Return the fields of a record as rows, without counts of zero."""
    fields = msgspec.structs.asdict(record)
    outcome = f"{record.status} ({record.reason})" if record.reason else record.status
    rows = {
        "request": record.request_id,
        "time": record.start_time.isoformat(timespec="milliseconds"),
        "outcome": outcome,
        "ms": f"{record.duration_micros / 1000:.1f}",
        "key": record.key_id,
        "method": record.method,
        "face": record.face,
        "model": record.model,
        "channel": record.channel or "none",
        "attempts": str(record.attempts),
        "cached answer": "yes" if record.cached else "no",
        **{name.replace("_", " "): str(fields[name]) for name in COUNTS if fields[name]},
        "tokens counted by": "the gateway" if record.estimated else "the provider",
        "credits": credits_text(record.micro_credits),
    }
    return list(rows.items())
