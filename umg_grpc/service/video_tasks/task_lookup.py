"""Look-up of the caller's video tasks in the database, without calls to their providers."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress

from umg_grpc.access.caller_identity import Caller
from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.call_state import Call
from umg_grpc.service.possibly_unwritten_error import unwritten
from umg_grpc.service.video_tasks.database_errors import reports_outages
from umg_grpc.service.video_tasks.existing_task_requests import not_found
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_table import TERMINAL_STATES, TaskFilter
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid

DEFAULT_PAGE = 20
WATCH_SECONDS = 1.0
"""Seconds between two reads of a watched task from the database, which other processes may have changed."""
ANY_KEY = "*"
POLL_AFTER, RETRY_AFTER = "openai-poll-after-ms", "retry-after"
POLL_SECONDS = ((15.0, 1), (60.0, 3), (600.0, 5), (float("inf"), 10))
"""Pairs of an age in seconds and the seconds until the next read of a task that is younger."""


class TaskLookup:
    """Look-up of tasks for their owners."""

    def __init__(self, tasks: TaskContext) -> None:
        self._tasks = tasks
        self._rows = tasks.rows

    @reports_outages
    async def own(self, caller: Caller, task_id: str) -> MediaTask:
        """Return a task of this caller. Raise UmgError: OBJECT_NOT_FOUND; UNAVAILABLE if it may not be stored yet."""
        row = await self._rows.get(task_id)
        if row is None and self._rows.may_lack_rows:
            raise unwritten(task_id)
        if row is None or row.owner != caller.key_id:
            raise not_found(task_id)
        return row

    async def find(self, caller: Caller, request: pb.GetVideoTaskRequest) -> MediaTask:
        """Return the task that a request names, by its id or by the caller's external id. Raise UmgError as `own` does.
        A task of another HTTP API, kind or model than the request states counts as unknown.
        """
        if request.HasField("external_task_id"):
            named = request.external_task_id
            row = await self._rows.find_external(caller.key_id, named)
            if row is None and self._rows.may_lack_rows:
                raise unwritten(named)
        else:
            row, named = await self.own(caller, request.task_id), request.task_id
        if row is None or not _matches(row, request):
            raise not_found(named)
        return row

    async def page(self, caller: Caller, request: pb.ListVideoTasksRequest) -> pb.ListVideoTasksResponse:
        """Return a page of tasks. A key reads its own tasks; an administrator may read those of any key. Raise
        UmgError: PERMISSION_DENIED; INVALID_FIELD for an unknown page.
        """
        owner = _owner(caller, request)
        after = None
        if request.page_token:
            after = await self._rows.get(request.page_token)
            if after is None or (owner is not None and after.owner != owner):
                raise invalid("page_token", "this task is not in the list; begin with the first page")
        selection = TaskFilter(
            owner=owner,
            entry=request.entry,
            states=[int(state) for state in request.states],
            model=request.model if request.HasField("model") else None,
            task_ids=list(request.task_ids),
            oldest_first=request.order == pb.VIDEO_TASK_ORDER_OLDEST_FIRST,
        )
        size = request.page_size if request.HasField("page_size") else DEFAULT_PAGE
        rows, total = await self._rows.page(selection, after, size + 1)
        page = rows[:size]
        return pb.ListVideoTasksResponse(
            tasks=[self._tasks.view.task(row) for row in page],
            next_page_token=page[-1].task_id if len(rows) > size else "",
            total_count=total,
        )

    async def changes(self, caller: Caller, task_id: str) -> AsyncGenerator[pb.VideoTask, None]:
        """Yield the task at once, and again after each change of its state or progress, until the task has ended."""
        shown = None
        with self._tasks.watching(task_id) as changed:
            while True:
                changed.clear()
                row = await self.own(caller, task_id)
                task = self._tasks.view.task(row)
                if (task.state, task.progress_percent) != shown:
                    shown = task.state, task.progress_percent
                    yield task
                if row.state in TERMINAL_STATES:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(changed.wait(), WATCH_SECONDS)

    def shown(self, call: Call, row: MediaTask) -> pb.VideoTask:
        """Return the task as a message. For an unfinished one, set the headers that state when to read it again."""
        call.facts.model, call.facts.channel = call.facts.model or row.public_model, row.channel
        if row.state not in TERMINAL_STATES:
            call.headers.update(poll_hints(row, self._tasks.now()))
        return self._tasks.view.task(row)


def _owner(caller: Caller, request: pb.ListVideoTasksRequest) -> str | None:
    """Return the id of the key whose tasks are listed; None for all keys. Raise UmgError(PERMISSION_DENIED)."""
    if not request.HasField("key_id") or request.key_id == caller.key_id:
        return caller.key_id
    if not caller.administrator:
        message = "this API key may list its own tasks only; leave out `key_id`"
        raise UmgError(pb.ERROR_REASON_PERMISSION_DENIED, message, operation="admin")
    return None if request.key_id == ANY_KEY else request.key_id


def _matches(row: MediaTask, request: pb.GetVideoTaskRequest) -> bool:
    if request.entry and row.entry != request.entry:
        return False
    if request.kind and row.kind != request.kind:
        return False
    return not request.HasField("model") or row.model == request.model


def poll_hints(task: MediaTask, now_micros: int) -> dict[str, str]:
    """Return headers with the time until the task should be read again, in ms and in s; empty for an ended task."""
    age = (now_micros - task.create_micros) / 1e6
    seconds = next(pause for until, pause in POLL_SECONDS if age < until)
    return {POLL_AFTER: str(1000 * seconds), RETRY_AFTER: str(seconds)}
