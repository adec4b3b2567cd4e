"""Notifications of providers about video tasks. Their content is not trusted: a task is polled at once after one."""

import msgspec

from umg_grpc.service.possibly_unwritten_error import unwritten
from umg_grpc.service.video_tasks.existing_task_requests import not_found
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_table import TERMINAL_STATES
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import invalid


class ProviderNotifications:
    """Receiver of the notifications of providers."""

    def __init__(self, tasks: TaskContext) -> None:
        self._tasks = tasks

    async def receive(self, request: pb.ReceiveVideoCallbackRequest) -> pb.ReceiveVideoCallbackResponse:
        """Schedule an early poll of the task that a notification is about. Raise UmgError: OBJECT_NOT_FOUND for an
        unknown task or an invalid signature, INVALID_FIELD for a body that is no notification about this task.
        """
        tasks = self._tasks
        is_signed = tasks.signatures.is_valid(request.task_id, request.signature)
        row = await tasks.rows.get(request.task_id) if is_signed else None
        if row is None and is_signed and tasks.rows.may_lack_rows:
            raise unwritten(request.task_id)
        if row is None:
            tasks.metrics.called_back("in", "refused")
            raise not_found(request.task_id)
        _check_body(request.body, row)
        tasks.metrics.called_back("in", "received")
        if row.state not in TERMINAL_STATES:
            await tasks.polls.make_due(row.task_id)
            tasks.wake_poller()
        return pb.ReceiveVideoCallbackResponse()


def _check_body(body: bytes, row: MediaTask) -> None:
    """Check that the body of a provider's notification is about the task `row`. Raise UmgError."""
    try:
        found = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
        ids = [msgspec.json.decode(found[name], type=str) for name in ("id", "task_id") if name in found]
    except msgspec.DecodeError:
        raise invalid(
            "body", "expected a JSON object; its `id` or `task_id` is the provider's id of the task"
        ) from None
    if ids and row.upstream_task_id and row.upstream_task_id not in ids:
        raise invalid("body", "the notification names another task")
