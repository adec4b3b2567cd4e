"""Processing of a provider's response to a poll: stores the new state and cost of the task, or plans the next poll."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

import structlog
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.service.video_tasks import stalled_tasks
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.service.video_tasks.task_costs import actual_cost, complete_usage
from umg_grpc.store.blob_store import BlobStore
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_polls import Claim, Poll, Stall
from umg_grpc.store.video_task_results import TaskResult, results_text
from umg_grpc.store.video_task_table import (
    CANCELLED_STATE,
    FAILED_STATE,
    QUEUED_STATE,
    RUNNING_STATE,
    SUCCEEDED_STATE,
    TERMINAL_STATES,
)
from umg_grpc.upstream.upstream_interfaces import VideoUpstream
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderResult, ProviderStatus, Submission
from umg_grpc.wire.video.task_error_codes import (
    CONTENT_POLICY_VIOLATION,
    SUBMIT_UNCONFIRMED,
    TASK_CANCELLED,
    TASK_EXPIRED,
    TASK_FAILED,
    task_error,
)

FIND_SECONDS = 45.0
FIND_ATTEMPTS = 3
"""Number of look-ups at the provider without success after which a task whose submission is unconfirmed fails."""
FIND_PAUSE_SECONDS = 5.0
FIND_GIVE_UP_SECONDS = 600.0
"""Age at which a task whose submission is unconfirmed fails although its provider did not answer the look-ups."""
SUBMITTER_SECONDS = 1800.0
"""Age at which it fails although the database was away, and the process that submitted it has reported nothing since.
The file with the acceptance may be on a machine that has not started again.
"""
RESULT_ATTEMPTS = 5
"""Minimum number of successive polls that report success without a usable result before the task fails."""
LOST_ATTEMPTS = 3
"""Minimum number of successive polls without a usable response before a task fails that its provider does not have."""
SLOWEST_FACTOR = 1.5
"""Factor by which the interval between the polls of an old task is longer than that of a new task."""
SLOWING_SECONDS = 600.0
"""Age of a task from which on the interval between its polls has the full length."""
MAX_PAUSE_SECONDS = 300.0
"""Maximum seconds between polls of a task whose last polls failed."""
TAIL_POLL_SECONDS = 3600.0
TAIL_SECONDS = 86_400.0
"""Seconds for which a task past its deadline is polled on: its provider may still finish and charge it."""
MISSING_CHANNEL_SECONDS = 30.0

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Outcomes:
    """Processor of the responses of providers to polls: changes the tasks in the database."""

    def __init__(
        self,
        tasks: TaskContext,
        blobs: BlobStore | None,
        retention_seconds: float,
        mirror: Callable[[MediaTask], None] = lambda _: None,
    ) -> None:
        """Create the processor. `blobs`: store of result files, or None. `retention_seconds`: time for which a task is
        stored after its end. `mirror`: called with each task that has succeeded.
        """
        self._tasks = tasks
        self._blobs = blobs
        self._retention_micros = int(retention_seconds * 1e6)
        self._mirror = mirror

    async def apply(
        self, upstream: VideoUpstream, batch: Sequence[Claim], statuses: Mapping[str, ProviderStatus | UmgError]
    ) -> list[Poll]:
        """Change tasks by the responses (provider's task id -> status). Return the next polls of the open ones."""
        polls = list[Poll]()
        for claim in batch:
            try:
                poll = await self._apply_one(upstream, claim, statuses.get(claim.upstream_task_id))
            except UmgError as error:  # the blob store, for example: the task is polled again
                poll = self._again(upstream, claim, error, claim.stall)
            if poll is not None:
                polls.append(poll)
        return polls

    async def without_channel(self, batch: Sequence[Claim]) -> list[Poll]:
        """Handle tasks whose channel is no longer in the config. Fail those whose deadline has passed; return the next
        polls of the others, since the channel may come back.
        """
        polls = list[Poll]()
        for claim in batch:
            if not await self._expire(claim, tail=False):
                pause = int(MISSING_CHANNEL_SECONDS * 1e6)
                polls.append(Poll(claim, pause, claim.poll_failures, stall=claim.stall))
        return polls

    async def confirm(self, upstream: VideoUpstream, claim: Claim) -> list[Poll]:
        """Look for a task at its provider, since the provider may have accepted it. If the provider has the task, it is
        accepted; after several look-ups without it, it fails. If the database was unavailable in between, the task
        fails only when its submitter has reported that it has no acceptance, or after `SUBMITTER_SECONDS`. The task is
        never sent again. Return the next look-up, or an empty list if the state of the task has changed.
        """
        row = await self._tasks.rows.get(claim.task_id)
        if row is None:
            return []
        submission = Submission(
            task_id=row.task_id,
            model=row.upstream_model,
            request=pb.CreateVideoTaskRequest.FromString(row.request),
            callback_url=self._tasks.callback_url(row.task_id),
        )
        failures, age = claim.poll_failures + 1, (self._tasks.now() - claim.create_micros) / 1e6
        is_awaited = self._tasks.polls.may_lack_report(claim, age)
        is_old = age >= (SUBMITTER_SECONDS if is_awaited else FIND_GIVE_UP_SECONDS)
        pause = min(FIND_PAUSE_SECONDS * 2.0 ** min(failures, 16), MAX_PAUSE_SECONDS)
        try:
            found = await upstream.find(submission, FIND_SECONDS)
        except UmgError as error:
            logger.warning("a submission cannot be confirmed yet", task=claim.task_id, outcome=error.name)
            if not is_old or not self._may_give_up:
                return [Poll(claim, self._tasks.jittered(pause), failures)]
            found = None
        if found is not None:
            accepted = await self._tasks.accept(claim.task_id, found, upstream.first_poll_seconds)
            logger.info("a submission was confirmed", task=claim.task_id, channel=claim.channel)
            if accepted is not None:
                self._tasks.changed(accepted)
            return []
        is_missing = not is_awaited and failures >= FIND_ATTEMPTS
        if not (is_missing or is_old) or not self._may_give_up:
            return [Poll(claim, self._tasks.jittered(pause if is_awaited else FIND_PAUSE_SECONDS), failures)]
        message = "it is unknown whether the provider accepted the task; it was not sent again and is not billed"
        await self._end(claim, FAILED_STATE, task_error(SUBMIT_UNCONFIRMED, message))
        return []

    @property
    def _may_give_up(self) -> bool:
        """Whether tasks may fail because of their age. They may not while the clock of this process is wrong."""
        return self._tasks.clock.is_trusted

    async def _apply_one(
        self, upstream: VideoUpstream, claim: Claim, status: ProviderStatus | UmgError | None
    ) -> Poll | None:
        now = self._tasks.now()
        if status is None or isinstance(status, UmgError):
            self._tasks.metrics.polled(claim.channel, "failed")
            stall = stalled_tasks.failed_poll(claim, status, now)
            if await self._is_lost(claim, status, stall) or await self._expire(claim):
                return None
            return self._again(upstream, claim, status, stall)
        self._tasks.metrics.polled(claim.channel, "ok")
        if claim.state in TERMINAL_STATES:
            return self._tail(claim, status)
        if status.state == SUCCEEDED_STATE:
            return await self._succeed(upstream, claim, status)
        if status.state in {FAILED_STATE, CANCELLED_STATE}:
            code = TASK_CANCELLED if status.state == CANCELLED_STATE else TASK_FAILED
            await self._end(claim, status.state, status.error or task_error(code, "the provider gave no reason"))
            return None
        stall = stalled_tasks.unknown_state(claim, status, now) if status.unknown_word else None
        if stall is not None and await self._is_given_up(upstream, claim, status, stall):
            return None
        if await self._expire(claim):
            return None
        if status.state == RUNNING_STATE and claim.state == QUEUED_STATE:
            await self._start(upstream, claim, status, stall)
            return None
        return Poll(claim, self._tasks.jittered(self._interval(upstream, claim)), 0, status.progress_percent, stall)

    async def _is_given_up(self, upstream: VideoUpstream, claim: Claim, status: ProviderStatus, stall: Stall) -> bool:
        """End a task in an unknown state at its deadline, or if the state has not changed for a long time. Return
        whether the task has ended. It succeeds if the response contains a video all the same.
        """
        now, word = self._tasks.now(), status.unknown_word
        if stall != claim.stall:
            logger.warning(
                "a provider's state of a task is unknown", task=claim.task_id, channel=claim.channel, word=word
            )
            self._tasks.metrics.unknown(claim.channel)
        is_over = stalled_tasks.has_lasted(stall, stalled_tasks.UNKNOWN_STATE, stalled_tasks.UNKNOWN_STATE_SECONDS, now)
        if (not is_over and now < claim.deadline_micros) or not self._may_give_up:
            return False
        if status.results:
            await self._succeed(upstream, claim, status)
            return True
        message = (
            f"the gateway does not know the provider's state of the task, `{word}`, and gave it up; it is not billed"
        )
        await self._end(claim, FAILED_STATE, task_error(TASK_EXPIRED, message), tail=True)
        return True

    async def _start(self, upstream: VideoUpstream, claim: Claim, status: ProviderStatus, stall: Stall | None) -> None:
        now = self._tasks.now()
        row = await self._tasks.rows.advance(
            claim.task_id,
            RUNNING_STATE,
            start_micros=now,
            update_micros=now,
            progress=status.progress_percent,
            stall=stall.name if stall is not None else None,
            stall_since_micros=stall.since_micros if stall is not None else None,
            next_poll_micros=self._next(self._interval(upstream, claim)),
        )
        if row is not None:
            self._tasks.changed(row)

    async def _succeed(self, upstream: VideoUpstream, claim: Claim, status: ProviderStatus) -> Poll | None:
        videos = [result for result in status.results if result.variant == pb.VIDEO_VARIANT_VIDEO]
        if not videos:
            stall, failures = stalled_tasks.no_video(claim, self._tasks.now()), claim.poll_failures + 1
            is_over = stalled_tasks.has_lasted(
                stall, stalled_tasks.NO_VIDEO, stalled_tasks.NO_VIDEO_SECONDS, self._tasks.now()
            )
            if not is_over or failures < RESULT_ATTEMPTS or not self._may_give_up:
                if await self._expire(claim):
                    return None
                return Poll(claim, self._tasks.jittered(upstream.poll_seconds), failures, stall=stall)
            error = task_error(TASK_FAILED, "the provider finished the task without a video")
            await self._end(claim, FAILED_STATE, error, tail=True)
            return None
        row = await self._tasks.rows.get(claim.task_id)
        if row is None or row.state in TERMINAL_STATES:
            return None
        others = [result for result in status.results if result.variant != pb.VIDEO_VARIANT_VIDEO]
        results = [await self._stored(result) for result in [*videos, *others]]
        parameters = pb.CreateVideoTaskRequest.FromString(row.request).parameters
        usage, now = complete_usage(status.usage, parameters, len(videos), row.upstream_model), self._tasks.now()
        ended = await self._tasks.rows.advance(
            claim.task_id,
            SUCCEEDED_STATE,
            results=results_text(results),
            usage=usage.SerializeToString(),
            micro_credits=actual_cost(row.prices, parameters, usage),
            **self._times(now, row),
        )
        if ended is not None:
            self._ended(ended, "succeeded")
            self._mirror(ended)
        return None

    async def _stored(self, result: ProviderResult) -> TaskResult:
        found = TaskResult(
            variant=result.variant,
            url=result.url,
            needs_key=result.needs_key,
            mime_type=result.mime_type,
            duration_seconds=result.duration_seconds,
            width=result.width,
            height=result.height,
            url_expire_micros=_micros(result.url_expire_time),
        )
        if result.data and self._blobs is not None:
            blob = await self._blobs.put(result.data, result.mime_type)
            found.blob_id, found.size_bytes = blob.id, blob.size
        return found

    def _tail(self, claim: Claim, status: ProviderStatus) -> Poll:
        """Return the next poll of a task that failed by its deadline; a late success is only logged."""
        end = claim.deadline_micros + int(TAIL_SECONDS * 1e6)
        if status.state in TERMINAL_STATES:
            if status.state == SUCCEEDED_STATE:
                logger.warning("a task that was given up has succeeded", task=claim.task_id, channel=claim.channel)
                self._tasks.metrics.ended(claim.channel, "late")
            return Poll(claim, None)
        pause = self._tasks.jittered(TAIL_POLL_SECONDS)
        return Poll(claim, pause if self._tasks.now() + pause < end else None)

    async def _is_lost(self, claim: Claim, error: UmgError | None, stall: Stall | None) -> bool:
        """Fail a task that the provider has not had, or refused to query, for some time. Return whether it failed."""
        now = self._tasks.now()
        if (
            claim.state in TERMINAL_STATES
            or claim.poll_failures + 1 < LOST_ATTEMPTS
            or error is None
            or not self._may_give_up
        ):
            return False
        if stalled_tasks.has_lasted(stall, stalled_tasks.LOST_TASK, stalled_tasks.LOST_SECONDS, now):
            found = task_error(TASK_EXPIRED, "the provider does not have the task any more")
        elif stalled_tasks.has_lasted(stall, stalled_tasks.REFUSED_QUERY, stalled_tasks.REFUSED_SECONDS, now):
            is_blocked = error.reason == pb.ERROR_REASON_CONTENT_BLOCKED
            found = task_error(CONTENT_POLICY_VIOLATION if is_blocked else TASK_FAILED, error.message)
        else:
            return False
        await self._end(claim, FAILED_STATE, found, tail=True)
        return True

    async def _expire(self, claim: Claim, *, tail: bool = True) -> bool:
        """Fail a task whose deadline has passed. Return whether it has."""
        now = self._tasks.now()
        if claim.state in TERMINAL_STATES or now < claim.deadline_micros or not self._may_give_up:
            return False
        message = "the provider did not finish the task in time; it is not billed"
        await self._end(claim, FAILED_STATE, task_error(TASK_EXPIRED, message), tail=tail)
        return True

    async def _end(self, claim: Claim, state: int, error: pb.VideoTaskError, *, tail: bool = False) -> None:
        row = await self._tasks.rows.get(claim.task_id)
        if row is None:
            return
        times = self._times(self._tasks.now(), row)
        if tail:
            times["next_poll_micros"] = self._next(TAIL_POLL_SECONDS)
        ended = await self._tasks.rows.advance(claim.task_id, state, error=error.SerializeToString(), **times)
        if ended is not None:
            self._ended(ended, error.code)

    def _ended(self, row: MediaTask, outcome: str) -> None:
        self._tasks.metrics.ended(row.channel, outcome)
        if row.micro_credits:
            self._tasks.metrics.count_cost(row.channel, row.public_model, row.owner, row.micro_credits)
        logger.info(
            "video task ended",
            task=row.task_id,
            request_id=row.request_id,
            key=row.owner,
            model=row.public_model,
            channel=row.channel,
            outcome=outcome,
            seconds=round(((row.complete_micros or 0) - row.create_micros) / 1e6, 1),
            cost=row.micro_credits / 1e6 if row.micro_credits else None,
        )
        self._tasks.changed(row)

    def _times(self, now: int, row: MediaTask) -> dict[str, int | None]:
        return {
            "update_micros": now,
            "complete_micros": max(now, row.create_micros),
            "expire_micros": now + self._retention_micros,
            "next_poll_micros": None,
        }

    def _again(self, upstream: VideoUpstream, claim: Claim, error: UmgError | None, stall: Stall | None) -> Poll:
        """Return the next poll of a task whose last poll failed."""
        failures = claim.poll_failures + 1
        pause = min(upstream.poll_seconds * 2.0 ** min(failures - 1, 16), MAX_PAUSE_SECONDS)
        if error is not None and error.retry_after is not None:
            pause = max(pause, min(error.retry_after, MAX_PAUSE_SECONDS))
        if failures == 1:
            outcome, cause = (error.name, error.cause or error.message) if error is not None else ("MISSING", "")
            logger.info(
                "a task cannot be polled", task=claim.task_id, channel=claim.channel, outcome=outcome, cause=cause
            )
        if claim.state in TERMINAL_STATES and self._tasks.now() > claim.deadline_micros + int(TAIL_SECONDS * 1e6):
            return Poll(claim, None)
        return Poll(claim, self._tasks.jittered(pause), failures, stall=stall)

    def _interval(self, upstream: VideoUpstream, claim: Claim) -> float:
        age = max(0.0, (self._tasks.now() - claim.create_micros) / 1e6)
        return upstream.poll_seconds * (1 + (SLOWEST_FACTOR - 1) * min(1.0, age / SLOWING_SECONDS))

    def _next(self, seconds: float) -> int:
        return self._tasks.now() + self._tasks.jittered(seconds)


def _micros(time: datetime | None) -> int | None:
    return None if time is None else int(time.timestamp() * 1e6)
