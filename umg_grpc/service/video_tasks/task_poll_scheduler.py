"""Scheduler of the polls of all video tasks: at the times in the database rows, never because of a call."""

import asyncio
from collections import deque
from collections.abc import Callable

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.service.pipeline.current_channels import Channels
from umg_grpc.service.video_tasks.poll_outcomes import Outcomes
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.store.repeated_background_tasks import Background, reason_of
from umg_grpc.store.repeated_log_lines import RepeatedLines
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_polls import LONGEST_PAUSE_SECONDS, Claim, Poll
from umg_grpc.store.video_task_table import SUBMITTING_STATE
from umg_grpc.upstream.upstream_interfaces import VideoUpstream
from umg_grpc.wire.video.provider_task_types import ProviderStatus, ProviderTask

TICK_SECONDS = 0.25
"""Seconds between two searches for due tasks while there are unfinished tasks."""
IDLE_TICK_SECONDS = 3.0
"""Seconds between two searches while there are none. Tasks of this process are noticed without a wait."""
POLL_SECONDS = 20.0
"""Time limit of one poll."""
LEASE_SECONDS = 30.0
"""Seconds after which a leased task is due again for any process; longer than a poll."""
CLAIMED_BATCHES = 4
"""Number of batches that are leased ahead for each poll that may run at the same time."""
BURST_SECONDS = 0.05
"""Seconds of the rate limit that may be used at once after a pause."""
CLOSE_SECONDS = 5.0

logger: FilteringBoundLogger = structlog.get_logger(__name__)
log_lines = RepeatedLines(__name__)


class Lane:
    """Queue of one channel's polls. It limits the polls at the same time and the polls that start in a second."""

    def __init__(self, concurrency: int, per_second: float, now: Callable[[], float]) -> None:
        self.waiting: deque[Claim] = deque()
        self.running = 0
        self._concurrency = concurrency
        self._per_second = per_second
        self._now = now
        self._tokens = 1.0
        self._updated = now()

    def room(self, max_batch: int) -> int:
        """Return the number of tasks that the queue takes; 0 while over half full. `max_batch`: tasks in one poll."""
        limit = self._concurrency * max_batch * CLAIMED_BATCHES
        return max(0, limit - len(self.waiting)) if len(self.waiting) <= limit // 2 else 0

    def take(self, max_batch: int) -> list[Claim]:
        """Remove the tasks of the next poll from the queue, and return them; empty if no poll may start now. All of
        them were submitted with the same provider key. `max_batch`: maximum number of tasks.
        """
        if not self.waiting or self.running >= self._concurrency or not self._spend():
            return []
        first = self.waiting.popleft()
        batch, others = [first], list[Claim]()
        while self.waiting and len(batch) < max_batch and first.state != SUBMITTING_STATE:
            claim = self.waiting.popleft()
            same = claim.upstream_key_id == first.upstream_key_id and claim.state != SUBMITTING_STATE
            (batch if same else others).append(claim)
        self.waiting.extendleft(reversed(others))
        return batch

    def seconds_to_next(self) -> float:
        """Return the seconds until the rate limit allows the next poll."""
        return max(0.0, (1 - self._tokens) / self._per_second)

    @property
    def is_limited_by_rate(self) -> bool:
        """Whether tasks wait only because of the rate limit."""
        return bool(self.waiting) and self.running < self._concurrency

    def _spend(self) -> bool:
        now = self._now()
        burst = max(1.0, self._per_second * BURST_SECONDS)
        self._tokens = min(burst, self._tokens + (now - self._updated) * self._per_second)
        self._updated = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class Poller:
    """Scheduler of the polls of this process, from `start` to `aclose`, with a queue for each channel."""

    def __init__(
        self, channels: Channels, tasks: TaskContext, outcomes: Outcomes, *, concurrency: int, per_second: float
    ) -> None:
        """Create a scheduler. `concurrency`: maximum number of polls of one channel that run at the same time.
        `per_second`: maximum number of polls of one channel that start in a second.
        """
        self._channels = channels
        self._tasks = tasks
        self._outcomes = outcomes
        self._concurrency = concurrency
        self._per_second = per_second
        self._lanes: dict[str, Lane] = {}
        self._in_flight: set[str] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._unwritten: list[Poll] = []
        self._scheduler: Background | None = None
        self._writer: Background | None = None
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._closing = False

    def start(self) -> None:
        """Start to search for due tasks and to poll them."""
        self._writer = Background("recording polls of video tasks", self._write, at_end=True)
        self._scheduler = Background("polling video tasks", self._step, every=TICK_SECONDS)
        self._tasks.wake_poller = self._scheduler.wake
        self._scheduler.wake()

    async def aclose(self) -> None:
        """Stop polling. Polls in flight are cancelled after a while; the tasks at the provider do not change."""
        self._closing = True
        self._tasks.wake_poller = lambda: None
        if self._scheduler is not None:
            await self._scheduler.aclose(CLOSE_SECONDS)
        for timer in self._timers.values():
            timer.cancel()
        unpolled = [claim for lane in self._lanes.values() for claim in lane.waiting]
        self._unwritten += [Poll(claim, 0, claim.poll_failures, stall=claim.stall) for claim in unpolled]
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
        if self._writer is not None:
            await self._writer.aclose(CLOSE_SECONDS)

    async def _step(self) -> None:
        """Lease the due tasks of every channel whose queue has space, and start their polls."""
        due = await self._tasks.polls.due()
        lateness = max((tasks.late_micros for tasks in due.values()), default=0)
        self._tasks.metrics.set_open({channel: tasks.number for channel, tasks in due.items()}, max(0, lateness) / 1e6)
        if self._scheduler is not None:
            self._scheduler.every = TICK_SECONDS if due else IDLE_TICK_SECONDS
        for channel, tasks in due.items():
            if tasks.ahead_micros > LONGEST_PAUSE_SECONDS * 10**6:
                await self._tasks.polls.reset_times(channel)
            lane = self._lanes.get(channel)
            if lane is None:
                clock = asyncio.get_running_loop().time
                lane = self._lanes[channel] = Lane(self._concurrency, self._per_second, clock)
            if tasks.late_micros >= 0 and (room := lane.room(self._max_batch(channel))):
                for claim in await self._tasks.polls.claim(channel, LEASE_SECONDS, room):
                    if claim.task_id not in self._in_flight:
                        self._in_flight.add(claim.task_id)
                        lane.waiting.append(claim)
                self._run_lane(channel)

    def _run_lane(self, channel: str) -> None:
        """Start as many polls of a channel as its limits allow now."""
        lane = self._lanes[channel]
        while not self._closing and (batch := lane.take(self._max_batch(channel))):
            lane.running += 1
            task = asyncio.create_task(self._poll_batch(channel, batch), name="poll of video tasks")
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        if not self._closing and lane.is_limited_by_rate and channel not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[channel] = loop.call_later(lane.seconds_to_next(), self._resume, channel)

    def _resume(self, channel: str) -> None:
        self._timers.pop(channel, None)
        self._run_lane(channel)

    def _max_batch(self, channel: str) -> int:
        upstream = self._channels.videos.get(channel)
        return max(1, upstream.max_batch) if upstream is not None else 1

    async def _poll_batch(self, channel: str, batch: list[Claim]) -> None:
        lane = self._lanes[channel]
        polls = list[Poll]()
        try:
            polls = await self._polled(channel, batch)
        except (SQLAlchemyError, OSError) as error:  # the tasks are due again after their lease
            log_lines.warning("a poll of video tasks was not recorded", channel=channel, reason=reason_of(error))
        except Exception as error:
            logger.error("a poll of video tasks failed", channel=channel, exc_info=error)
        finally:
            self._in_flight.difference_update(claim.task_id for claim in batch)
            lane.running -= 1
            if polls and self._writer is not None:
                self._unwritten += polls
                self._writer.wake()
            self._run_lane(channel)
            if self._scheduler is not None and not lane.waiting:
                self._scheduler.wake()

    async def _polled(self, channel: str, batch: list[Claim]) -> list[Poll]:
        """Poll a batch of tasks of one channel, and change the tasks by the responses. Return their next polls."""
        upstream = self._channels.videos.get(channel)
        if upstream is None:  # the config has changed, and may change again
            return await self._outcomes.without_channel(batch)
        if batch[0].state == SUBMITTING_STATE:
            return await self._outcomes.confirm(upstream, batch[0])
        statuses = await self._statuses(upstream, batch)
        return await self._outcomes.apply(upstream, batch, statuses)

    async def _statuses(self, upstream: VideoUpstream, batch: list[Claim]) -> dict[str, ProviderStatus | UmgError]:
        """Return the provider's task id -> status or error, for a batch of tasks."""
        tasks = [provider_task(claim) for claim in batch]
        try:
            async with asyncio.timeout(POLL_SECONDS):
                return dict(await upstream.poll(tasks, POLL_SECONDS))
        except UmgError as error:
            return dict.fromkeys((task.id for task in tasks), error)
        except TimeoutError:
            return {}

    async def _write(self) -> None:
        """Write the times of the next polls to the database, all in one transaction."""
        polls, self._unwritten = self._unwritten, []
        if not polls:
            return
        try:
            await self._tasks.polls.reschedule(polls, self._tasks.now())
        except BaseException:
            self._unwritten = polls + self._unwritten
            raise


def provider_task(claim: Claim) -> ProviderTask:
    """Return the provider's ids and further data of a leased task, which the request of a poll needs."""
    return ProviderTask(
        id=claim.upstream_task_id, model=claim.upstream_model, key_id=claim.upstream_key_id, facts=claim.upstream_facts
    )


def provider_task_of(row: MediaTask) -> ProviderTask:
    """Return the provider's ids and further data of a stored task, which the request of a poll needs."""
    return ProviderTask(
        id=row.upstream_task_id, model=row.upstream_model, key_id=row.upstream_key_id, facts=row.upstream_facts
    )
