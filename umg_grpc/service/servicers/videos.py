"""Servicer of video tasks: submission, look-up, cancellation, download, and the stream of their changes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from umg_grpc.base.inprocess_channel import Context
from umg_grpc.service.operations.video.video_pipeline import CreatePipeline, RemixPipeline
from umg_grpc.service.pipeline.call import current
from umg_grpc.service.pipeline.schema_validation import check
from umg_grpc.service.video_tasks.database_errors import reports_outages
from umg_grpc.service.video_tasks.provider_notifications import receive_notification
from umg_grpc.service.video_tasks.result_download import TaskContent
from umg_grpc.service.video_tasks.task_changes import TaskChanges
from umg_grpc.service.video_tasks.task_context import TaskContext
from umg_grpc.service.video_tasks.task_lookup import TaskLookup
from umg_grpc.v1 import pb, rpc


class VideoServicer(rpc.VideoServiceServicer):
    """Servicer of `umg.v1.VideoService`: tasks that make videos, and their results."""

    def __init__(
        self,
        creation: CreatePipeline,
        remixes: RemixPipeline,
        tasks: TaskContext,
        lookup: TaskLookup,
        changes: TaskChanges,
        content: TaskContent,
    ) -> None:
        self._creation = creation
        self._remixes = remixes
        self._tasks = tasks
        self._lookup = lookup
        self._changes = changes
        self._content = content

    @reports_outages
    async def CreateVideoTask(self, request: pb.CreateVideoTaskRequest, context: Context) -> pb.CreateVideoTaskResponse:
        """Submit a video task exactly once. Return the task: accepted by a provider, or queued while it is unknown
        whether a provider has accepted it.
        """
        row = await self._creation.create(call := current(), request)
        return pb.CreateVideoTaskResponse(task=self._lookup.shown(call, row))

    @reports_outages
    async def RemixVideoTask(self, request: pb.RemixVideoTaskRequest, context: Context) -> pb.RemixVideoTaskResponse:
        """Submit a task that changes the video of a finished task, to the channel and with the provider's key that made
        it.
        """
        row = await self._remixes.remix(call := current(), request)
        return pb.RemixVideoTaskResponse(task=self._lookup.shown(call, row))

    @reports_outages
    async def GetVideoTask(self, request: pb.GetVideoTaskRequest, context: Context) -> pb.GetVideoTaskResponse:
        """Return a task of the caller from the database, without a call to its provider."""
        check(request)
        row = await self._lookup.find((call := current()).caller, request)
        return pb.GetVideoTaskResponse(task=self._lookup.shown(call, row))

    @reports_outages
    async def ListVideoTasks(self, request: pb.ListVideoTasksRequest, context: Context) -> pb.ListVideoTasksResponse:
        """Return a page of the caller's tasks; an administrator may request the tasks of another key."""
        check(request)
        return await self._lookup.page(current().caller, request)

    async def WatchVideoTask(
        self, request: pb.WatchVideoTaskRequest, context: Context
    ) -> AsyncGenerator[pb.WatchVideoTaskResponse, None]:
        """Yield the task at once, and again after each change of its state or progress, until the task has ended."""
        check(request)
        async with aclosing(self._lookup.changes(current().caller, request.task_id)) as tasks:
            async for task in tasks:
                yield pb.WatchVideoTaskResponse(task=task)

    async def DownloadVideo(
        self, request: pb.DownloadVideoRequest, context: Context
    ) -> AsyncGenerator[pb.DownloadVideoResponse, None]:
        """Yield the metadata of a result of a task, then the requested range of its bytes."""
        check(request)
        row = await self._lookup.own(current().caller, request.task_id)
        async with aclosing(self._content.open(row, request)) as messages:
            async for message in messages:
                yield message

    @reports_outages
    async def DeleteVideoTask(self, request: pb.DeleteVideoTaskRequest, context: Context) -> pb.DeleteVideoTaskResponse:
        """Delete a task that has ended, with its files, or cancel a task that its provider has not started."""
        check(request)
        row = await self._changes.delete(current().caller, request)
        return pb.DeleteVideoTaskResponse(task=self._tasks.view.task(row))

    @reports_outages
    async def ReceiveVideoCallback(
        self, request: pb.ReceiveVideoCallbackRequest, context: Context
    ) -> pb.ReceiveVideoCallbackResponse:
        """Schedule an early poll of a task, about which its provider has sent a notification. The content of the
        notification is not trusted, and changes nothing.
        """
        check(request)
        await receive_notification(self._tasks, request)
        return pb.ReceiveVideoCallbackResponse()
