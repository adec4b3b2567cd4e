"""Servicer of video tasks: submission, look-up, cancellation, download, and the stream of their changes."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from umg_grpc.base.inprocess_channel import Context
from umg_grpc.service.operations.video.video_pipeline import CreatePipeline, RemixPipeline
from umg_grpc.service.pipeline.call_state import current
from umg_grpc.service.pipeline.request_validation import validate
from umg_grpc.service.video_tasks.caller_task_changes import TaskChanges
from umg_grpc.service.video_tasks.database_errors import reports_outages
from umg_grpc.service.video_tasks.provider_notifications import ProviderNotifications
from umg_grpc.service.video_tasks.result_download import TaskContent
from umg_grpc.service.video_tasks.task_lookup import TaskLookup
from umg_grpc.v1 import pb, rpc


@dataclass(frozen=True, eq=False)
class VideoServicer(rpc.VideoServiceServicer):
    """Servicer of `umg.v1.VideoService`: tasks that make videos, and their results."""

    creation: CreatePipeline
    remixes: RemixPipeline
    lookup: TaskLookup
    changes: TaskChanges
    notifications: ProviderNotifications
    content: TaskContent

    @reports_outages
    async def CreateVideoTask(self, request: pb.CreateVideoTaskRequest, context: Context) -> pb.CreateVideoTaskResponse:
        row = await self.creation.create(call := current(), request)
        return pb.CreateVideoTaskResponse(task=self.lookup.shown(call, row))

    @reports_outages
    async def RemixVideoTask(self, request: pb.RemixVideoTaskRequest, context: Context) -> pb.RemixVideoTaskResponse:
        row = await self.remixes.remix(call := current(), request)
        return pb.RemixVideoTaskResponse(task=self.lookup.shown(call, row))

    @reports_outages
    async def GetVideoTask(self, request: pb.GetVideoTaskRequest, context: Context) -> pb.GetVideoTaskResponse:
        await validate(request)
        row = await self.lookup.find((call := current()).caller, request)
        return pb.GetVideoTaskResponse(task=self.lookup.shown(call, row))

    @reports_outages
    async def ListVideoTasks(self, request: pb.ListVideoTasksRequest, context: Context) -> pb.ListVideoTasksResponse:
        await validate(request)
        return await self.lookup.page(current().caller, request)

    async def WatchVideoTask(
        self, request: pb.WatchVideoTaskRequest, context: Context
    ) -> AsyncGenerator[pb.WatchVideoTaskResponse, None]:
        await validate(request)
        async with aclosing(self.lookup.changes(current().caller, request.task_id)) as tasks:
            async for task in tasks:
                yield pb.WatchVideoTaskResponse(task=task)

    async def DownloadVideo(
        self, request: pb.DownloadVideoRequest, context: Context
    ) -> AsyncGenerator[pb.DownloadVideoResponse, None]:
        await validate(request)
        row = await self.lookup.own(current().caller, request.task_id)
        async with aclosing(self.content.open(row, request)) as messages:
            async for message in messages:
                yield message

    @reports_outages
    async def DeleteVideoTask(self, request: pb.DeleteVideoTaskRequest, context: Context) -> pb.DeleteVideoTaskResponse:
        await validate(request)
        return pb.DeleteVideoTaskResponse(task=await self.changes.delete(current().caller, request))

    @reports_outages
    async def ReceiveVideoCallback(
        self, request: pb.ReceiveVideoCallbackRequest, context: Context
    ) -> pb.ReceiveVideoCallbackResponse:
        await validate(request)
        return await self.notifications.receive(request)
