"""Objects that the submissions, the poller and the servicer of video tasks share."""

import asyncio
import random
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from umg_grpc.access.callback_signatures import CallbackSignatures
from umg_grpc.access.signed_file_links import FileLinks
from umg_grpc.service.video_tasks.task_messages import TaskView
from umg_grpc.service.video_tasks.task_metrics import TaskMetrics
from umg_grpc.store import Store
from umg_grpc.store.callback_outbox import TaskCallbacks
from umg_grpc.store.table_definitions import MediaTask, TaskCallback
from umg_grpc.store.video_task_polls import VideoTaskPolls
from umg_grpc.store.video_task_table import QUEUED_STATE, VideoTasks
from umg_grpc.v1 import pb
from umg_grpc.wire.video.caller_api_interface import EntryFormat
from umg_grpc.wire.video.provider_task_types import ProviderTask

INTERVAL_JITTER = 0.1
"""Fraction by which an interval is longer or shorter at random, so that tasks are not polled all at the same time."""


class TaskContext:
    """Database rows of the video tasks, and their conversion to messages and notifications. Events signal changes of
    tasks by this process to the callers that watch them.
    """

    def __init__(
        self,
        store: Store,
        process: str,
        links: FileLinks,
        signatures: CallbackSignatures,
        metrics: TaskMetrics,
        entries: "Mapping[pb.VideoEntry.ValueType, EntryFormat]",
        *,
        has_usage: bool,
    ) -> None:
        self.process = process
        self.signatures = signatures
        self.metrics = metrics
        self.clock = store.clock
        self.view = TaskView(links, self.now)
        self.rows = VideoTasks(store, process, self._notification, has_usage=has_usage)
        self.polls = VideoTaskPolls(store, process)
        self.callbacks = TaskCallbacks(store, process)
        self._links = links
        self._entries = entries
        self._watchers: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        self.wake_poller: Callable[[], None] = lambda: None
        self.wake_notifier: Callable[[], None] = lambda: None
        self.resume_receiver: Callable[[str], None] = lambda _: None

    def now(self) -> int:
        """Return the current time of the database in microseconds since 1970 in UTC."""
        return int(self.clock.now() * 1e6)

    def jittered(self, seconds: float) -> int:
        """Return an interval in microseconds, varied at random, so that tasks are not polled at the same time."""
        return int(seconds * 1e6 * random.uniform(1 - INTERVAL_JITTER, 1 + INTERVAL_JITTER))  # noqa: S311  not for security

    def callback_url(self, task_id: str) -> str:
        """Return the gateway's address for a provider's notifications about a task; "" without `https`."""
        base = self._links.base_url
        return base + self.signatures.path_of(task_id) if base.startswith("https://") else ""

    async def accept(
        self, task_id: str, accepted: ProviderTask, first_poll_seconds: float, details: str | None = None
    ) -> MediaTask | None:
        """Record that a provider has accepted the task, with its ids. Return the changed task; None if it has failed or
        was deleted meanwhile. `details`: new value of the column; None for no change.
        """
        now, changed = self.now(), {} if details is None else {"details": details}
        return await self.rows.advance(
            task_id,
            QUEUED_STATE,
            update_micros=now,
            upstream_task_id=accepted.id,
            upstream_model=accepted.model,
            upstream_key_id=accepted.key_id,
            upstream_facts=accepted.facts,
            next_poll_micros=now + self.jittered(first_poll_seconds),
            **changed,
        )

    def changed(self, row: MediaTask) -> None:
        """Signal a change of a task: it wakes the callers that watch the task, and the delivery to its receiver."""
        self.attempted(row.task_id)
        if row.callback_url is not None:
            self.wake_notifier()

    def attempted(self, task_id: str) -> None:
        """Signal an attempt to deliver a notification of a task to the callers that watch the task."""
        for event in self._watchers.get(task_id, ()):
            event.set()

    def redeliver(self, url: str) -> None:
        """Signal notifications that were made due: their receiver is called at once, even if it did not answer."""
        self.resume_receiver(url)
        self.wake_notifier()

    @contextmanager
    def watching(self, task_id: str) -> Iterator[asyncio.Event]:
        """Yield, for the time of the block, an event that is set at each change of the task by this process."""
        event = asyncio.Event()
        self._watchers[task_id].add(event)
        try:
            yield event
        finally:
            self._watchers[task_id].discard(event)
            if not self._watchers[task_id]:
                del self._watchers[task_id]

    def _notification(self, row: MediaTask) -> TaskCallback | None:
        """Return the notification about a task's present state; None if the caller set no URL for notifications."""
        if row.callback_url is None or (entry := self._entries.get(pb.VideoEntry.ValueType(row.entry))) is None:
            return None
        now = self.now()
        return TaskCallback(
            callback_id=f"msg_{secrets.token_urlsafe(24)}",
            task_id=row.task_id,
            owner=row.owner,
            url=row.callback_url,
            attempts=0,
            lease_owner="",
            next_attempt_micros=now,
            create_micros=now,
            state=row.state,
            body=entry.encode_task(self.view.task(row)),
        )
