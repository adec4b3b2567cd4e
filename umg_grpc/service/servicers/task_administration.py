"""Administration of video tasks: lists, single tasks, and repeated delivery of their notifications. Commands that work
on a database use it too.
"""

from __future__ import annotations  # the context is needed by type checkers alone, and slow to import

from typing import TYPE_CHECKING, Annotated

import msgspec

from umg_grpc.base.errors import UmgError
from umg_grpc.service.servicers.administrative_calls import AdministrativeCalls, RequestCheck
from umg_grpc.service.servicers.caller_references import CallerReferences
from umg_grpc.service.servicers.caller_reports import reader_of
from umg_grpc.service.servicers.task_record_messages import task_message
from umg_grpc.service.servicers.usage_filters import unknown_token
from umg_grpc.store.key_selection import KeySelection
from umg_grpc.store.usage_sum_queries import FOREVER_MICROS
from umg_grpc.store.video_task_queries import ReportedTask, TaskSelection, VideoTaskQueries
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.core.model_list_page_token import PageBoundary, decode_token, encode_token

if TYPE_CHECKING:
    from umg_grpc.access.access_control import Authority
    from umg_grpc.access.role_permissions import Permission
    from umg_grpc.base.inprocess_channel import Context
    from umg_grpc.service.servicers.call_record_report import Reader
    from umg_grpc.service.video_tasks.callback_redelivery import CallbackRedelivery
    from umg_grpc.store import Store

PAGE_SIZE = 100
READ_TASKS, WRITE_TASKS = pb.PERMISSION_TASKS_READ, pb.PERMISSION_TASKS_WRITE


class _TaskPosition(msgspec.Struct, array_like=True):
    """Position in the list of tasks, encoded in a page token: creation and id of the last task of a page."""

    created: Annotated[int, msgspec.Meta(ge=0, lt=FOREVER_MICROS)]
    task_id: str


class TaskAdministration:
    """Methods of `umg.v1.TaskService`. `check` raises UmgError for a request that breaks a rule of the schema."""

    def __init__(self, store: Store, redelivery: CallbackRedelivery, check: RequestCheck) -> None:
        self._calls = AdministrativeCalls("TaskService", store, check)
        self._acts = TaskActs(store, redelivery)

    async def ListTasks(self, request: pb.ListTasksRequest, context: Context) -> pb.ListTasksResponse:
        return await self._calls.run(request, context, self._acts.page)

    async def GetTask(self, request: pb.GetTaskRequest, context: Context) -> pb.GetTaskResponse:
        return await self._calls.run(request, context, self._acts.get)

    async def RedeliverCallback(
        self, request: pb.RedeliverCallbackRequest, context: Context
    ) -> pb.RedeliverCallbackResponse:
        return await self._calls.run(request, context, self._acts.redeliver)


class TaskActs:
    """Acts on video tasks, with the rights of a caller."""

    def __init__(self, store: Store, redelivery: CallbackRedelivery) -> None:
        self._queries, self._references = VideoTaskQueries(store), CallerReferences(store)
        self._redelivery = redelivery

    async def page(self, request: pb.ListTasksRequest, authority: Authority) -> pb.ListTasksResponse:
        """Return one page of tasks that the caller may see."""
        projects = [await self._references.project_id(each, authority, READ_TASKS) for each in request.project_ids]
        reader = _reader(authority, projects)
        selection = TaskSelection(
            keys=reader.keys,
            key_ids=request.key_ids,
            states=request.states,
            models=request.models,
            channels=request.channels if reader.sees_channels else (),
            stuck_minutes=request.stuck_minutes if request.HasField("stuck_minutes") else None,
            callback_states=request.callback_states,
            oldest_first=request.oldest_first,
            after=_position(request.page_token) if request.page_token else None,
        )
        size = request.page_size if request.HasField("page_size") else PAGE_SIZE
        found = await self._queries.page(selection, size + 1)
        response = pb.ListTasksResponse(tasks=[task_message(each, reader) for each in found[:size]])
        if len(found) > size:
            last = found[size - 1].row
            position = msgspec.json.encode(_TaskPosition(last.create_micros, last.task_id)).decode()
            response.next_page_token = encode_token(PageBoundary(position))
        return response

    async def get(self, request: pb.GetTaskRequest, authority: Authority) -> pb.GetTaskResponse:
        """Return a task that the caller may see."""
        found = await self._find(request.task_id, authority)
        return pb.GetTaskResponse(task=task_message(found, _reader(authority)))

    async def redeliver(
        self, request: pb.RedeliverCallbackRequest, authority: Authority
    ) -> pb.RedeliverCallbackResponse:
        """Deliver notifications of a task again. Return the task after the attempts."""
        task = await self._find(request.task_id, authority, WRITE_TASKS)
        await self._redelivery.run(task, request.callback_id)
        task = await self._find(request.task_id, authority)
        return pb.RedeliverCallbackResponse(task=task_message(task, _reader(authority)))

    async def _find(self, task_id: str, authority: Authority, permission: Permission = READ_TASKS) -> ReportedTask:
        """Return a task. Raise UmgError: OBJECT_NOT_FOUND for one that the caller may not see, PERMISSION_DENIED if it
        does not have the permission for it.
        """
        found = await self._queries.get(task_id, _keys(authority, READ_TASKS))
        if found is None:
            message = f"there is no video task {echo(task_id)}, or it was deleted after `tasks.ttl` of the config"
            raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=task_id[:100])
        if permission != READ_TASKS and await self._queries.get(task_id, _keys(authority, permission)) is None:
            raise authority.denied(permission, found.project_id)
        return found


def _keys(authority: Authority, permission: Permission) -> KeySelection:
    return KeySelection(scope=authority.key_scope(permission))


def _reader(authority: Authority, projects: list[str] | None = None) -> Reader:
    keys = KeySelection(projects=projects or (), scope=authority.key_scope(READ_TASKS))
    return reader_of(keys, authority, READ_TASKS)


def _position(token: str) -> tuple[int, str]:
    try:
        found = msgspec.json.decode(decode_token(token).id, type=_TaskPosition)
    except msgspec.DecodeError:
        raise unknown_token() from None
    return found.created, found.task_id
