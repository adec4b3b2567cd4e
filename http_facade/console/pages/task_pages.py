"""Pages of video tasks: the list with its filters, and one task with its notifications and their redelivery."""

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf.timestamp_pb2 import Timestamp

from http_facade.console import form_values
from http_facade.console.address_filters import ListPages
from http_facade.console.call_outcomes import Mark
from http_facade.console.object_names import key_ids_of
from http_facade.console.page_interface import Done, Form, Visit, object_path
from http_facade.console.pages.audit_page import history_path
from http_facade.console.pages.request_pages import call_path
from umg_grpc.base.errors import UmgError
from umg_grpc.base.printable_text import printable
from umg_grpc.v1 import pb
from umg_grpc.wire.protobuf_json import enum_names

PAGE_SIZE = 50
MAX_STUCK_MINUTES = 10_000
STATE_NAMES = enum_names(pb.VideoTaskState.DESCRIPTOR)
STATE_COLOURS = {"succeeded": "good", "failed": "bad", "cancelled": "off"}
CALLBACK_MARKS = {
    pb.TASK_CALLBACK_STATE_WAITING: Mark("warn", "not yet delivered"),
    pb.TASK_CALLBACK_STATE_DELIVERED: Mark("good", "delivered"),
    pb.TASK_CALLBACK_STATE_GIVEN_UP: Mark("bad", "given up"),
}
UNDELIVERED_STATES = (pb.TASK_CALLBACK_STATE_WAITING, pb.TASK_CALLBACK_STATE_GIVEN_UP)


@dataclass(frozen=True)
class TaskRow:
    """Row of the list of tasks."""

    task_id: str
    path: str
    mark: Mark
    progress: str
    model: str
    key_name: str
    channel: str
    created: Timestamp | None
    updated: Timestamp
    stall: str
    callbacks: Sequence["CallbackRow"]


@dataclass(frozen=True)
class TaskList:
    """Content of the list of tasks."""

    rows: Sequence[TaskRow]
    undelivered_only: bool
    stuck: str
    max_stuck: int
    pages: ListPages
    may_redeliver: bool


@dataclass(frozen=True)
class CallbackRow:
    """Notification of the caller's server about a task."""

    callback: pb.TaskCallback
    mark: Mark
    is_undelivered: bool
    reported: str
    """State of the task that it reports; "" for one of an earlier version."""

    last_attempt: Timestamp | None
    next_attempt: Timestamp | None
    url: str
    problem: str


@dataclass(frozen=True)
class TaskStory:
    """Content of the page of one task."""

    row: TaskRow
    task: pb.TaskRecord
    states: Sequence[tuple[Mark, Timestamp]]
    problem: str
    request_path: str
    history: str
    """Path of its part of the audit log; "" for a person that may not see it."""

    may_redeliver: bool


async def load_tasks(visit: Visit) -> TaskList:
    """Return a page of the tasks that the filters select, newest first."""
    filters = visit.filters
    undelivered_only, stuck = bool(filters.text("undelivered")), filters.text("stuck")
    request = pb.ListTasksRequest(
        key_ids=await key_ids_of(visit.calls, filters.values("key")),
        models=filters.values("model"),
        channels=filters.values("channel"),
        project_ids=filters.values("project"),
        stuck_minutes=_stuck_minutes(stuck),
        callback_states=UNDELIVERED_STATES if undelivered_only else (),
        page_size=PAGE_SIZE,
        page_token=filters.page_token,
    )
    response = await visit.calls.call(request, pb.ListTasksResponse)
    return TaskList(
        rows=[_row(task) for task in response.tasks],
        undelivered_only=undelivered_only,
        stuck=stuck,
        max_stuck=MAX_STUCK_MINUTES,
        pages=filters.pages(response.next_page_token),
        may_redeliver=visit.rights.may(pb.PERMISSION_TASKS_WRITE),
    )


async def load_task(visit: Visit) -> TaskStory:
    """Return one task. Raise UmgError(OBJECT_NOT_FOUND)."""
    request = pb.GetTaskRequest(task_id=visit.parameters["task_id"])
    task = (await visit.calls.call(request, pb.GetTaskResponse)).task
    return TaskStory(
        row=_row(task),
        task=task,
        states=[(_mark(each.state), each.time) for each in task.state_times],
        problem=printable(task.error.message),
        request_path=call_path(task.request_id) if task.request_id else "",
        history=history_path(visit, task.task_id, "task"),
        may_redeliver=bool(task.callbacks) and visit.rights.may(pb.PERMISSION_TASKS_WRITE),
    )


async def redeliver(visit: Visit, form: Form) -> Done:
    """Deliver a notification again, and wait for the receiver. Raise UmgError with its failure."""
    task_id, callback_id = visit.parameters["task_id"], form_values.text(form, "callback")
    request = pb.RedeliverCallbackRequest(task_id=task_id, callback_id=callback_id)
    task = (await visit.calls.call(request, pb.RedeliverCallbackResponse)).task
    failed = [each for each in task.callbacks if callback_id in {"", each.callback_id} and each.last_error]
    if failed and failed[-1].state != pb.TASK_CALLBACK_STATE_DELIVERED:
        raise UmgError(pb.ERROR_REASON_UNAVAILABLE, f"not delivered: {printable(failed[-1].last_error)}")
    return Done(object_path("tasks", task_id), "callback_delivered")


def _stuck_minutes(given: str) -> int | None:
    if not given:
        return None
    if given.isascii() and given.isdigit() and 1 <= (minutes := int(given[:9])) <= MAX_STUCK_MINUTES:
        return minutes
    message = f"`stuck` must be a whole number of minutes from 1 to {MAX_STUCK_MINUTES}, not `{given[:50]}`"
    raise UmgError(pb.ERROR_REASON_INVALID_FIELD, message, field="stuck")


def _row(task: pb.TaskRecord) -> TaskRow:
    mark = _mark(task.state)
    is_open = mark.word not in STATE_COLOURS
    return TaskRow(
        task_id=printable(task.task_id),
        path=object_path("tasks", task.task_id),
        mark=mark,
        progress=f"{task.progress_percent} %" if is_open and task.HasField("progress_percent") else "",
        model=printable(task.model),
        key_name=printable(task.key_name or task.key_id),
        channel=printable(task.channel),
        created=task.state_times[0].time if task.state_times else None,
        updated=task.update_time,
        stall=printable(task.stall),
        callbacks=[_callback(each) for each in task.callbacks],
    )


def _mark(state: "pb.VideoTaskState.ValueType") -> Mark:
    name = STATE_NAMES.get(state, "")
    return Mark(STATE_COLOURS.get(name, "info"), name)


def _callback(callback: pb.TaskCallback) -> CallbackRow:
    return CallbackRow(
        callback=callback,
        mark=CALLBACK_MARKS[callback.state],
        is_undelivered=callback.state in UNDELIVERED_STATES,
        reported=STATE_NAMES.get(callback.task_state, ""),
        last_attempt=callback.last_attempt_time if callback.HasField("last_attempt_time") else None,
        next_attempt=callback.next_attempt_time if callback.HasField("next_attempt_time") else None,
        url=printable(callback.url),
        problem=printable(callback.last_error),
    )
