"""Implementation of `umg tasks callbacks`: prints the notifications to callers that are not delivered yet."""

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import typer
from sqlalchemy import select

from umg_grpc.cli.admin_client import CommandError
from umg_grpc.cli.database_connection import opened_database
from umg_grpc.cli.text_tables import Column, Fit, Form, print_table
from umg_grpc.process.config_loading import load_storage
from umg_grpc.store.table_definitions import MediaTask, TaskCallback

CALLBACK_COLUMNS = (
    Column("task"),
    Column("key", 4),
    Column("URL", 3),
    Column("created", 4),
    Column("attempts", 3, is_number=True),
    Column("next attempt", 2),
    Column("reason", 2, Fit.FOLDED),
)
GIVEN_UP = "given up"


async def list_callbacks(config: Path | None, data: Path, limit: int, form: Form) -> None:
    """Print the newest undelivered notifications in the database of a config. Print a failure and exit with 1."""
    query = (
        select(TaskCallback, MediaTask.callback_error)
        .join(MediaTask, MediaTask.task_id == TaskCallback.task_id, isouter=True)
        .order_by(TaskCallback.create_micros.desc())
        .limit(limit)
    )
    try:
        async with opened_database(load_storage(config).database, data) as store, store.read() as session:
            found = (await session.execute(query)).all()
    except CommandError as error:
        print(f"umg: {error}", file=sys.stderr)
        raise typer.Exit(1) from None
    print_callbacks([(each, reason) for each, reason in found], form)


def print_callbacks(found: Sequence[tuple[TaskCallback, str | None]], form: Form) -> None:
    """Print notifications, each with the reason of its last failure, in a form."""
    rows = [
        (
            *(each.task_id, each.owner, each.url, _time(each.create_micros), str(each.attempts)),
            *(GIVEN_UP if each.next_attempt_micros is None else _time(each.next_attempt_micros), reason or ""),
        )
        for each, reason in found
    ]
    print_table(CALLBACK_COLUMNS, rows, form)


def _time(micros: int) -> str:
    return datetime.fromtimestamp(micros // 10**6, UTC).strftime("%Y-%m-%d %H:%M:%S")
