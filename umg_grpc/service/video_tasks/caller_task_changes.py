"""Changes of video tasks by their callers: cancellation of a queued task, deletion of one that has ended."""

from umg_grpc.access.caller_identity import Caller
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.video_tasks.existing_task_requests import not_found, wrong_state
from umg_grpc.service.video_tasks.task_background_worker import Tasks
from umg_grpc.service.video_tasks.task_lookup import TaskLookup
from umg_grpc.service.video_tasks.task_poll_scheduler import provider_task_of
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_results import results_of
from umg_grpc.store.video_task_table import CANCELLED_STATE, QUEUED_STATE, TERMINAL_STATES
from umg_grpc.v1 import pb
from umg_grpc.wire.video.task_error_codes import TASK_CANCELLED, task_error

CANCEL_SECONDS = 30.0


class TaskChanges:
    """Cancellation and deletion of video tasks for their callers."""

    def __init__(self, channels: Channels, tasks: Tasks, lookup: TaskLookup, blobs: BlobStore | None) -> None:
        self._channels = channels
        self._tasks = tasks.context
        self._retention_micros = tasks.retention_micros
        self._lookup = lookup
        self._blobs = blobs

    async def delete(self, caller: Caller, request: pb.DeleteVideoTaskRequest) -> pb.VideoTask:
        """Delete an ended task with its files, or cancel one that has not started. Return the task. Raise UmgError."""
        row = await self._lookup.own(caller, request.task_id)
        if request.entry and row.entry != request.entry:
            raise not_found(request.task_id)
        if row.state not in TERMINAL_STATES:
            return self._tasks.view.task(await self._cancel(row))
        if (deleted := await self._tasks.rows.delete(row.task_id)) is None:
            raise not_found(request.task_id)
        if self._blobs is not None:
            for result in results_of(deleted):
                if result.blob_id:
                    await self._blobs.delete(result.blob_id)
        self._tasks.changed(deleted)
        return self._tasks.view.task(deleted)

    async def _cancel(self, row: MediaTask) -> MediaTask:
        upstream = self._channels.videos.get(row.channel)
        if row.state != QUEUED_STATE or upstream is None:
            raise wrong_state(row, "it can be deleted when it has ended")
        if not await upstream.cancel(provider_task_of(row), CANCEL_SECONDS):
            raise wrong_state(row, "its provider cannot cancel it now; it can be deleted when it has ended")
        now, tasks = self._tasks.now(), self._tasks
        cancelled = await tasks.rows.advance(
            row.task_id,
            CANCELLED_STATE,
            error=task_error(TASK_CANCELLED, "the caller cancelled the task").SerializeToString(),
            update_micros=now,
            complete_micros=now,
            expire_micros=now + self._retention_micros,
            next_poll_micros=None,
        )
        if cancelled is None:  # it ended meanwhile
            return await tasks.rows.get(row.task_id) or row
        tasks.metrics.ended(cancelled.channel, "task_cancelled")
        tasks.changed(cancelled)
        return cancelled
