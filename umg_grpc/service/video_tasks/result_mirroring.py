"""Copies of video results in the blob store, made if the provider's address of a result expires within about a day."""

import asyncio
from collections.abc import Callable

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.video_tasks.result_download import check_type
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_results import TaskResult, results_of
from umg_grpc.store.video_task_table import VideoTasks
from umg_grpc.upstream.caller_url_fetch import DIRECT_ROUTE, Fetcher

SHORT_SECONDS = 25 * 3600.0
"""Seconds after a task's end within which an address expires whose result is copied: a day and the time of a poll."""
MAX_BYTES = 2 << 30
"""Maximum size of a result that is copied, in bytes."""
COPY_CONCURRENCY = 2
FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS = 2.0, 300.0
"""Seconds before the second attempt to copy, doubled before each further one, and their maximum."""
STEP_SECONDS = 2.0
SEARCH_SECONDS = 600.0
"""Seconds between two searches for results that other processes should have copied and have not."""
OWNER_HEAD_START_SECONDS = 120.0
"""Seconds after a task's end in which only the process that has polled the task copies its results."""
SEARCH_ROWS = 200
CLOSE_SECONDS = 5.0

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Mirror:
    """Background copies of video results to the blob store, repeated until the provider's address expires."""

    def __init__(
        self,
        rows: VideoTasks,
        channels: Channels,
        fetcher: Fetcher,
        blobs: BlobStore | None,
        now: Callable[[], int],
        count: Callable[[str], None],
    ) -> None:
        """Create the task; without `blobs` nothing is copied. `count`: called with `ok` or `failed` for each copy."""
        self._rows = rows
        self._channels = channels
        self._fetcher = fetcher
        self._blobs = blobs
        self._now = now
        self._count = count
        self._waiting: dict[str, tuple[int, int]] = {}
        """Task id -> (time of the next attempt in microseconds, number of failed attempts)."""
        self._next_search = 0
        self._copier: Background | None = None

    def start(self) -> None:
        """Start copying. The results that ended processes have not copied come first."""
        if self._blobs is not None:
            self._copier = Background("copying results of videos", self._step, every=STEP_SECONDS)
            self._copier.wake()

    async def aclose(self) -> None:
        """Stop copying. Copies in flight are cancelled after a while, and made again by another process."""
        if self._copier is not None:
            await self._copier.aclose(CLOSE_SECONDS)

    def add(self, task: MediaTask) -> None:
        """Schedule copies of a succeeded task's results whose addresses expire within about a day."""
        if self._copier is not None and any(self._is_short(task, result) for result in results_of(task)):
            self._waiting.setdefault(task.task_id, (0, 0))
            self._copier.wake()

    async def _step(self) -> None:
        now = self._now()
        if now >= self._next_search:
            before = int(OWNER_HEAD_START_SECONDS * 1e6) if self._next_search else 0
            self._next_search = now + int(SEARCH_SECONDS * 1e6)
            for task in await self._rows.find_uncopied(now - int(SHORT_SECONDS * 1e6), now - before, SEARCH_ROWS):
                if any(self._is_short(task, result) for result in results_of(task)):
                    self._waiting.setdefault(task.task_id, (0, 0))
        due = [task_id for task_id, (time, _) in self._waiting.items() if time <= now][:COPY_CONCURRENCY]
        await asyncio.gather(*map(self._copy, due))
        if due and self._copier is not None:
            self._copier.wake()

    async def _copy(self, task_id: str) -> None:
        """Copy the results of a task to the blob store; schedule another attempt if that fails."""
        _, failures = self._waiting.pop(task_id)
        task = await self._rows.get(task_id)
        if task is None or self._blobs is None:
            return
        results, failure = results_of(task), None
        for result in results:
            if self._is_short(task, result):
                try:
                    await self._copy_one(task, result, self._blobs)
                    self._count("ok")
                except UmgError as error:
                    failure = error
                    self._count("failed")
        if any(result.blob_id for result in results):
            await self._rows.set_results(task_id, results)
        if failure is None:
            return
        if not failures:
            logger.warning(
                "a result of a video task cannot be stored yet",
                task=task_id,
                channel=task.channel,
                outcome=failure.name,
                cause=failure.cause or failure.message,
            )
        if failure.failure is Failure.TOO_LARGE:  # as large at the next attempt
            return
        pause = min(FIRST_PAUSE_SECONDS * 2.0 ** min(failures, 16), MAX_PAUSE_SECONDS)
        self._waiting[task_id] = (self._now() + int(pause * 1e6), failures + 1)

    async def _copy_one(self, task: MediaTask, result: TaskResult, blobs: BlobStore) -> None:
        route = self._channels.routes.get(task.channel, DIRECT_ROUTE)
        async with self._fetcher.open(result.url, field=None, route=route) as download:
            check_type(download.headers)
            blob = await blobs.put_stream(download.chunks(), result.mime_type, max_bytes=MAX_BYTES)
        result.blob_id, result.size_bytes = blob.id, blob.size

    def _is_short(self, task: MediaTask, result: TaskResult) -> bool:
        end = result.url_expire_micros
        if not result.url or result.blob_id or end is None or end <= self._now():
            return False
        return end <= (task.complete_micros or task.create_micros) + int(SHORT_SECONDS * 1e6)
