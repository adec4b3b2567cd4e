"""Construction of the servicers of the operations of models with their pipelines, and their registration."""

import grpc

from umg_grpc.config import Config
from umg_grpc.operations import UNARY_OPERATIONS
from umg_grpc.process.component_factory import ProcessContext
from umg_grpc.service.caching.provider_stored_prompts import StoredPrompts
from umg_grpc.service.operations.generate.conversation_stores import ConversationStores
from umg_grpc.service.operations.generate.text_pipeline import GenerationPipeline
from umg_grpc.service.operations.generate.token_counting import TokenCounting
from umg_grpc.service.operations.image.image_delivery import ImageDelivery
from umg_grpc.service.operations.image.image_pipeline import ImagePipeline
from umg_grpc.service.operations.unary import unary_pipeline
from umg_grpc.service.operations.video.video_pipeline import CreatePipeline, RemixPipeline
from umg_grpc.service.operations.video.video_submission import Submissions
from umg_grpc.service.pipeline.base_pipeline import PipelineContext
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.servicers.generation import GenerationServicer
from umg_grpc.service.servicers.images import ImageServicer
from umg_grpc.service.servicers.unary import UnaryServicer
from umg_grpc.service.servicers.videos import VideoServicer
from umg_grpc.service.video_tasks.caller_task_changes import TaskChanges
from umg_grpc.service.video_tasks.provider_notifications import ProviderNotifications
from umg_grpc.service.video_tasks.result_download import TaskContent
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.service.video_tasks.task_background_worker import Tasks
from umg_grpc.service.video_tasks.task_lookup import TaskLookup
from umg_grpc.service.video_tasks.task_metrics import TaskMetrics
from umg_grpc.store import Store
from umg_grpc.v1 import rpc
from umg_grpc.wire.images import IMAGE_FORMATS
from umg_grpc.wire.video import ENTRY_FORMATS


class OperationServicers:
    """Servicers of the services in `OPERATION_ROWS`."""

    def __init__(
        self,
        config: Config,
        context: PipelineContext,
        process: ProcessContext,
        memory: ConversationStores,
        stored_prompts: StoredPrompts,
        tasks: Tasks,
    ) -> None:
        text = GenerationPipeline(context, memory, stored_prompts)
        self._generation = GenerationServicer(text, TokenCounting(text, context.channels), memory)
        self._unary = [
            UnaryServicer(row, unary_pipeline(row, context, config.limits)) for row in UNARY_OPERATIONS.values()
        ]
        delivery = ImageDelivery(
            context.channels, process.fetcher, process.blobs, process.links, process.response_budget
        )
        self._images = ImageServicer(ImagePipeline(context, IMAGE_FORMATS, delivery))
        self._submissions = Submissions(context, tasks.context, tasks.accepted)
        self._videos = _videos(context, tasks, self._submissions, process)

    def register(self, server: grpc.aio.Server) -> None:
        """Add the services to a `grpc.aio` server."""
        rpc.add_GenerationServiceServicer_to_server(self._generation, server)
        for servicer in self._unary:
            servicer.register(server)
        rpc.add_ImageServiceServicer_to_server(self._images, server)
        rpc.add_VideoServiceServicer_to_server(self._videos, server)

    async def aclose(self) -> None:
        """Finish the submissions of video tasks in flight."""
        await self._submissions.aclose()


def video_tasks(config: Config, store: Store, channels: Channels, process: ProcessContext) -> Tasks:
    """Return the worker on video tasks, which the administration shares."""
    context = TaskContext(
        *(store, process.task_process, process.links, process.signatures, TaskMetrics(process.metrics), ENTRY_FORMATS),
        has_usage=process.usage is not None,
    )
    return Tasks(channels, context, process.task_locks, process.fetcher, process.blobs, config.tasks)


def _videos(context: PipelineContext, tasks: Tasks, submissions: Submissions, process: ProcessContext) -> VideoServicer:
    rows, channels, fetcher, blobs = tasks.context, context.channels, process.fetcher, process.blobs
    lookup = TaskLookup(rows)
    return VideoServicer(
        CreatePipeline(context, rows, submissions, lookup, fetcher),
        RemixPipeline(context, rows, submissions, lookup),
        lookup,
        TaskChanges(channels, tasks, lookup, blobs),
        ProviderNotifications(rows),
        TaskContent(channels, fetcher, blobs, rows.now, rows.metrics.read),
    )
