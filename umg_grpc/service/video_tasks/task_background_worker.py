"""Background work on the video tasks: polls, notifications and copies, from `start` to `aclose`."""

import asyncio
from contextlib import suppress

from sqlalchemy.exc import SQLAlchemyError

from umg_grpc.config.config_values import VideoTaskConfig
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.video_tasks.accepted_tasks import AcceptedTasks
from umg_grpc.service.video_tasks.caller_notifier import Notifier
from umg_grpc.service.video_tasks.poll_outcomes import Outcomes
from umg_grpc.service.video_tasks.result_mirroring import Mirror
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.service.video_tasks.task_poll_scheduler import Poller
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.process_locks import ProcessLocks
from umg_grpc.store.repeated_background_tasks import Background
from umg_grpc.store.video_task_table import ROW_BYTES
from umg_grpc.upstream.caller_url_fetch import Fetcher

TASKS_DIRECTORY = "tasks"
"""Folder of each process's lock file, by which ended processes are found, and the journal of accepted tasks."""
TAKEOVER_SECONDS = 5.0
"""Time between two searches for processes of this data directory that have ended."""
SWEEP_SECONDS = 600.0
CLOSE_SECONDS = 5.0


class Tasks:
    """Background work of this process on video tasks. Tasks of a process that has ended are taken over: at once if it
    shares the data directory, or else when its leases end.
    """

    def __init__(
        self,
        channels: Channels,
        context: TaskContext,
        locks: ProcessLocks,
        fetcher: Fetcher,
        blobs: BlobStore | None,
        config: VideoTaskConfig,
    ) -> None:
        """Create the background work of a process. Raise OSError if its data directory cannot be written."""
        self.context = context
        self.accepted = AcceptedTasks(context, locks.directory)
        self._locks = locks
        self._config = config
        self._mirror = Mirror(context.rows, channels, fetcher, blobs, context.now, context.metrics.copied)
        outcomes = Outcomes(context, blobs, config.ttl, self._mirror.add)
        self._poller = Poller(
            channels, context, outcomes, concurrency=config.concurrency, per_second=config.polls_per_second
        )
        self._notifier = Notifier(context, fetcher)
        self._takeover: Background | None = None
        self._sweeper: Background | None = None

    def start(self) -> None:
        """Start the background work. It first takes over the tasks of processes that have ended."""
        self._takeover = Background("taking over video tasks", self._take_over, every=TAKEOVER_SECONDS)
        self._takeover.wake()
        self.accepted.start()
        self._sweeper = Background("sweeping video tasks", self._sweep, every=SWEEP_SECONDS)
        self._mirror.start()
        self._poller.start()
        self._notifier.start()

    async def aclose(self) -> None:
        """Stop all background work. The submissions in flight must have ended before."""
        await self.accepted.aclose()
        for background in (self._sweeper, self._takeover):
            if background is not None:
                await background.aclose(CLOSE_SECONDS)
        await self._poller.aclose()
        await self._notifier.aclose()
        await self._mirror.aclose()
        self._locks.close(delete=await self._release_own())

    @property
    def retention_micros(self) -> int:
        """Microseconds for which a task is stored after its end."""
        return int(self._config.ttl * 1e6)

    async def _release_own(self) -> bool:
        """Release the tasks that this process has leased or was submitting. Return whether it could."""
        if self.accepted.has_tasks_of(self.context.process):
            return False
        with suppress(SQLAlchemyError, OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.context.polls.release([self.context.process])
                return True
        return False

    async def _take_over(self) -> None:
        ended = {name for name in self._locks.names() if name != self.context.process and self._locks.has_ended(name)}
        if not ended:
            return
        await self.accepted.write()  # before the database states that they have reported all outcomes
        complete = {name for name in ended if not self.accepted.has_tasks_of(name)}
        await self.context.polls.release(complete)
        for name in complete:
            self._locks.forget(name)
        self.context.wake_poller()

    async def _sweep(self) -> None:
        await self.context.callbacks.reset_times()
        await self.context.rows.sweep(max(1, self._config.max_bytes // ROW_BYTES))
