"""Implementation of the commands of `umg tasks` for operators: tasks of all keys, and their notifications."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC, datetime

import typer
from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.base.micro_credits import credits_text
from umg_grpc.base.time_units import age_text
from umg_grpc.cli.admin_client import AdminClient
from umg_grpc.cli.admin_connection import opened
from umg_grpc.cli.common_flags import AdminTarget
from umg_grpc.cli.request_record_tables import ATTEMPT_COLUMNS, attempt_row
from umg_grpc.cli.text_tables import Column, Fit, Form, print_fields, print_table
from umg_grpc.cli.time_texts import time_text
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names, to_json

PAGE_TASKS = 1000
TITLE_WIDTH = 15
STATE_NAMES = enum_names(pb.VideoTaskState.DESCRIPTOR)
CALLBACK_STATE_NAMES = enum_names(pb.TaskCallbackState.DESCRIPTOR)
KIND_NAMES = enum_names(pb.VideoTaskKind.DESCRIPTOR)
UNDELIVERED_STATES = (pb.TASK_CALLBACK_STATE_WAITING, pb.TASK_CALLBACK_STATE_GIVEN_UP)
TASK_COLUMNS = (
    Column("task"),
    Column("state"),
    Column("age", 2, is_number=True),
    Column("unchanged", 3, is_number=True),
    Column("key", 4),
    Column("model", 5),
    Column("channel", 4),
    Column("callbacks", 3, Fit.LISTED),
    Column("credits", 6, is_number=True),
    Column("error or stall", 5, Fit.FOLDED),
)
CALLBACK_COLUMNS = (
    Column("task"),
    Column("reports", 4),
    Column("key", 5),
    Column("URL", 3),
    Column("created", 5),
    Column("attempts", 3, is_number=True),
    Column("next attempt", 2),
    Column("reason", 2, Fit.FOLDED),
    Column("callback", 6),
)
HISTORY_COLUMNS = (
    Column("callback", 3),
    Column("reports"),
    Column("state"),
    Column("attempts", 2, is_number=True),
    Column("last attempt", 2),
    Column("status", 2, is_number=True),
    Column("next attempt", 3),
    Column("reason", 2, Fit.FOLDED),
)


async def find_tasks(target: AdminTarget, request: pb.ListTasksRequest, limit: int, form: Form) -> None:
    """Print the selected tasks, at most `limit`, in a form."""
    async with opened(target) as admin:
        found = [task async for task in _pages(admin, request, limit)]
    print_tasks(found, datetime.now(UTC), form)


def print_tasks(tasks: Sequence[pb.TaskRecord], now: datetime, form: Form) -> None:
    """Print tasks in a form, with their age at a time; JSON has all their fields."""
    print_table(TASK_COLUMNS, [_task_row(task, now) for task in tasks], form, map(to_json, tasks))


async def inspect_task(target: AdminTarget, task_id: str, form: Form) -> None:
    """Print a task with its attempts and notifications."""
    async with opened(target) as admin:
        task = (await admin.call(pb.GetTaskRequest(task_id=task_id), pb.GetTaskResponse)).task
    print_task(task, form)


def print_task(task: pb.TaskRecord, form: Form) -> None:
    """Print all fields of a task in a form, with a table of its attempts and one of its notifications."""
    if not form.is_text:
        print_table(HISTORY_COLUMNS, map(_history_row, task.callbacks), form, [to_json(task)])
        return
    print_fields(_lines(task), TITLE_WIDTH, form)
    if task.attempts:
        print("attempts:")
        print_table(ATTEMPT_COLUMNS, [attempt_row(_created(task), each) for each in task.attempts], form)
    if task.callbacks:
        print("callbacks:")
        print_table(HISTORY_COLUMNS, map(_history_row, task.callbacks), form)


async def list_callbacks(target: AdminTarget, limit: int, form: Form) -> None:
    """Print the undelivered notifications of the newest tasks that have one, at most `limit`."""
    request = pb.ListTasksRequest(callback_states=UNDELIVERED_STATES)
    async with opened(target) as admin:
        tasks = [task async for task in _pages(admin, request, limit)]
    print_callbacks(tasks, limit, form)


def print_callbacks(tasks: Sequence[pb.TaskRecord], limit: int, form: Form) -> None:
    """Print the undelivered notifications of tasks in a form, newest first, at most `limit`."""
    found = [(task, each) for task in tasks for each in reversed(task.callbacks) if each.state in UNDELIVERED_STATES][
        :limit
    ]
    records = ({"task_id": task.task_id, "key_id": task.key_id, **to_json(each)} for task, each in found)
    print_table(CALLBACK_COLUMNS, [_callback_row(*each) for each in found], form, records)


def print_deliveries(callbacks: Sequence[pb.TaskCallback], form: Form) -> None:
    """Print notifications with the results of their last attempts in a form."""
    print_table(HISTORY_COLUMNS, map(_history_row, callbacks), form, map(to_json, callbacks))


async def redeliver(target: AdminTarget, task_id: str, callback_id: str, form: Form) -> None:
    """Deliver the notifications of a task again, and print them. Exit with 1 if one is not delivered."""
    async with opened(target) as admin:
        request = pb.RedeliverCallbackRequest(task_id=task_id, callback_id=callback_id)
        task = (await admin.call(request, pb.RedeliverCallbackResponse)).task
    callbacks = [each for each in task.callbacks if callback_id in {"", each.callback_id}]
    print_deliveries(callbacks, form)
    if any(each.state in UNDELIVERED_STATES for each in callbacks):
        raise typer.Exit(1)


async def _pages(admin: AdminClient, request: pb.ListTasksRequest, limit: int) -> AsyncIterator[pb.TaskRecord]:
    """Yield the requested tasks, at most `limit`, page by page."""
    while limit:
        request.page_size = min(limit, PAGE_TASKS)
        response = await admin.call(request, pb.ListTasksResponse)
        for task in response.tasks:
            yield task
        limit -= len(response.tasks)
        if not response.next_page_token:
            return
        request.page_token = response.next_page_token


def _task_row(task: pb.TaskRecord, now: datetime) -> tuple[str, ...]:
    ended = task.state_times[-1].time.ToDatetime(UTC) if _has_ended(task) else now
    unchanged = "" if _has_ended(task) else age_text((now - task.update_time.ToDatetime(UTC)).total_seconds())
    states = [_state_text(each) for each in task.callbacks]
    return (
        task.task_id,
        STATE_NAMES.get(task.state, ""),
        age_text((ended - _created(task).ToDatetime(UTC)).total_seconds()),
        unchanged,
        task.key_name or task.key_id,
        task.model,
        task.channel,
        ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states)),
        credits_text(task.micro_credits),
        task.error.message if task.HasField("error") else task.stall,
    )


def _callback_row(task: pb.TaskRecord, callback: pb.TaskCallback) -> tuple[str, ...]:
    return (
        task.task_id,
        STATE_NAMES.get(callback.task_state, ""),
        task.key_name or task.key_id,
        callback.url,
        time_text(callback.create_time),
        str(callback.attempts),
        _next_attempt(callback),
        callback.last_error,
        callback.callback_id,
    )


def _history_row(callback: pb.TaskCallback) -> tuple[str, ...]:
    return (
        callback.callback_id,
        STATE_NAMES.get(callback.task_state, ""),
        _state_text(callback),
        str(callback.attempts),
        _time(callback.last_attempt_time),
        str(callback.status_code or ""),
        _time(callback.next_attempt_time),
        callback.last_error,
    )


def _next_attempt(callback: pb.TaskCallback) -> str:
    return _time(callback.next_attempt_time) or _state_text(callback)


def _state_text(callback: pb.TaskCallback) -> str:
    return CALLBACK_STATE_NAMES.get(callback.state, "").replace("_", " ")


def _lines(task: pb.TaskRecord) -> Iterator[tuple[str, str]]:
    """Yield the fields of a task as pairs of title and text, without empty ones."""
    yield "task", task.task_id
    for each in task.state_times:
        yield STATE_NAMES.get(each.state, ""), time_text(each.time, "milliseconds")
    yield "request", task.request_id
    yield "key", f"{task.key_name} ({task.key_id})" if task.key_name else task.key_id
    yield "kind", KIND_NAMES.get(task.kind, "").replace("_", " ")
    yield "model", task.model
    yield "channel", task.channel or "none"
    if task.upstream_task_id:
        yield "there", f"{task.upstream_task_id} ({task.upstream_model})"
    if not _has_ended(task):
        yield "progress", f"{task.progress_percent} %" if task.HasField("progress_percent") else "unknown"
        yield "last change", _time(task.update_time)
        yield "next query", _time(task.next_poll_time) or "none"
        yield "given up", _time(task.deadline_time)
    if task.failed_polls:
        yield "failed queries", str(task.failed_polls)
    if task.stall:
        yield "stall", f"{task.stall} since {_time(task.stall_time)}"
    if task.HasField("error"):
        yield "error", f"{task.error.message} ({task.error.code})"
    if task.HasField("usage"):
        yield "videos", f"{task.usage.video_count}, {task.usage.output_seconds} s"
    yield "credits", credits_text(task.micro_credits)
    if task.HasField("expire_time"):
        yield "deleted", _time(task.expire_time)


def _created(task: pb.TaskRecord) -> Timestamp:
    return task.state_times[0].time


def _has_ended(task: pb.TaskRecord) -> bool:
    return task.state >= pb.VIDEO_TASK_STATE_SUCCEEDED


def _time(time: Timestamp) -> str:
    return time_text(time) if time.seconds else ""
