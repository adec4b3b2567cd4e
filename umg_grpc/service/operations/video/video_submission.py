"""Submission of a video task: the task is recorded with the reservation of its cost, then sent to one channel, at most
once. After a refusal, or a failure before anything was sent, another channel may be tried. After any other failure the
provider may have accepted the task: the task's row stays, and the poller looks for the task at the provider.
"""

import asyncio
import secrets
import time
from contextlib import suppress
from functools import partial

import msgspec
import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import Failure, UmgError
from umg_grpc.routing import Target
from umg_grpc.service.operations.video.new_task_call import NewTask
from umg_grpc.service.operations.video.repeated_submission_search import same_task
from umg_grpc.service.operations.video.video_submission_attempts import UNKNOWN_OUTCOME, VideoEncoder, VideoLoop
from umg_grpc.service.pipeline.base_pipeline import PipelineContext
from umg_grpc.service.pipeline.call_state import FACE_HEADER, Call
from umg_grpc.service.pipeline.channel_attempt_order import plan_attempts
from umg_grpc.service.pipeline.usage_recording import GRPC_FACE, MAX_FACE_CHARACTERS, details_of
from umg_grpc.service.video_tasks.accepted_tasks import AcceptedTasks
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.service.video_tasks.task_costs import stored_prices
from umg_grpc.service.video_tasks.task_poll_scheduler import provider_task_of
from umg_grpc.store.database_outages import UnconfirmedCommitError
from umg_grpc.store.table_definitions import MediaTask
from umg_grpc.store.video_task_table import SUBMITTING_STATE, Hold, Pin
from umg_grpc.upstream.upstream_interfaces import VideoUpstream
from umg_grpc.v1 import pb
from umg_grpc.wire.video.provider_task_types import ProviderTask, Submission

TASK_PREFIX = "task_"
DATABASE_PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, None)
"""Seconds between attempts to record an accepted task in the database, else in the journal; none follows after None."""
LEASE_SECONDS = 20.0
"""Seconds without a renewal after which a task is taken over from the process that was submitting it."""
RENEW_SECONDS = 5.0
CLOSE_SECONDS = 5.0

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Submissions:
    """Submissions of video tasks by this process, until `aclose`. They continue if their callers disconnect."""

    def __init__(self, context: PipelineContext, tasks: TaskContext, accepted: AcceptedTasks) -> None:
        self._context = context
        self._tasks = tasks
        self._accepted = accepted
        self._running: set[asyncio.Task[MediaTask]] = set()

    async def aclose(self) -> None:
        """Wait up to `CLOSE_SECONDS` for submissions in flight, then cancel them: the poller finds their results."""
        if self._running:
            _, late = await asyncio.wait(self._running, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)

    def plan(self, new: NewTask) -> None:
        """Make the task's row, which is stored before the first attempt. Raise UmgError for a malformed header."""
        new.row = _new_row(new, self._tasks.process, self._tasks.now())
        new.strict = new.call.strict

    async def submit(self, new: NewTask) -> None:
        """Record the task in the database, and send it. Its row is then of an accepted task, of one with unknown
        outcome, or of another call's task with the same idempotency key or external id. If no provider has accepted the
        task, raise UmgError; nothing stays recorded then.
        """
        task = asyncio.create_task(self._submit(new), name="submission of a task")
        self._running.add(task)
        task.add_done_callback(self._finished)
        submitted = await asyncio.shield(task)
        if submitted.task_id != new.row.task_id:
            same_task(new.row, submitted)
        new.row = submitted

    def _finished(self, task: "asyncio.Task[MediaTask]") -> None:
        self._running.discard(task)
        if not task.cancelled():
            task.exception()  # the caller may have left: it is logged nowhere else, and is no failure of the gateway

    async def _submit(self, new: NewTask) -> MediaTask:
        row, reservation, tasks = new.row, new.call.charges.reservation, self._tasks
        self._pin(row, new.targets[0])
        held = list[Hold]()
        if reservation is not None:
            held = [Hold(lease, amount) for lease, amount in reservation.holds]
            accounts = [(lease.key_id, lease.period) for lease in reservation.accounts]
            row.budget_period = dict(accounts).get(row.owner)
            row.budgets = [list(account) for account in accounts if account[0] != row.owner]
        try:
            existing = await tasks.rows.insert(row, held, LEASE_SECONDS)
        except UnconfirmedCommitError:
            self._accepted.keep_unknown(row.task_id)
            raise
        if existing is not None:
            return existing
        if reservation is not None:
            reservation.hand_over()
        ended = asyncio.Event()
        renewal = asyncio.create_task(self._renew(row.task_id, ended), name="lease of a submission")
        try:
            return await self._send(new)
        except UmgError:
            await self._withdraw(row.task_id)
            new.call.charges.prices = new.model.prices  # the call has a usage record, since no task has one
            raise
        finally:
            ended.set()
            await renewal

    async def _withdraw(self, task_id: str) -> None:
        try:
            await self._tasks.rows.withdraw(task_id)
        except (SQLAlchemyError, OSError):
            await self._accepted.report_unknown(task_id)
            raise

    async def _renew(self, task_id: str, ended: asyncio.Event) -> None:
        """Renew the lease of a task periodically during its submission, until `ended` is set."""
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(ended.wait(), RENEW_SECONDS)
            if ended.is_set():
                return
            with suppress(SQLAlchemyError, OSError):
                await self._tasks.rows.renew(task_id, LEASE_SECONDS)

    def _pin(self, row: MediaTask, target: Target) -> None:
        upstream = self._context.channels.videos[target.channel.name]
        row.channel, row.upstream_model = target.channel.name, target.model
        row.prices = stored_prices(target.prices, row.create_micros / 1e6)
        row.deadline_micros = row.create_micros + int(upstream.deadline_seconds * 1e6)

    async def _send(self, new: NewTask) -> MediaTask:
        """Send the task to the channels in their order until one accepts it."""
        call, channels = new.call, self._context.channels
        encoder = VideoEncoder(channels, partial(self._submission, new))
        plan = plan_attempts(new.targets, encoder, self._context.shared)
        observers, shows_route = self._context.observers, call.caller.show_route
        attempts = VideoLoop(call, new.model, new.request.model, plan, observers, shows_route)
        try:
            while True:
                async with attempts:
                    sent = attempts.attempt.target
                    if call.facts.attempts > 1 or sent is not new.targets[0]:
                        await self._repin(new.row, sent)
                    upstream = channels.videos[sent.channel.name]
                    accepted = await attempts.attempt.call.send()
                    break
        except UmgError as error:
            if error.failure not in UNKNOWN_OUTCOME:
                raise
            return await self._leave_unconfirmed(new, error)
        call.facts.report = attempts.attempt.call.report
        new.row.details = _details(call)
        return await self._record(new.row, sent, accepted, upstream)

    async def _repin(self, row: MediaTask, target: Target) -> None:
        self._pin(row, target)
        pin = Pin(row.channel, row.upstream_model, row.prices, row.deadline_micros, LEASE_SECONDS)
        if not await self._tasks.rows.pin(row.task_id, pin):
            message = "the submission took too long; the task is looked for at the provider"
            raise UmgError(pb.ERROR_REASON_UNAVAILABLE, message).with_failure(Failure.AMBIGUOUS)

    def _submission(self, new: NewTask, target: Target) -> Submission:
        return Submission(
            task_id=new.row.task_id,
            model=target.model,
            request=new.request,
            family=target.family,
            source=None if new.source is None else provider_task_of(new.source),
            callback_url=self._tasks.callback_url(new.row.task_id),
            strict=new.strict,
        )

    async def _record(
        self, row: MediaTask, target: Target, accepted: ProviderTask, upstream: VideoUpstream
    ) -> MediaTask:
        found = None
        for pause in DATABASE_PAUSES:
            try:
                found = await self._tasks.accept(row.task_id, accepted, upstream.first_poll_seconds, row.details)
                break
            except (SQLAlchemyError, OSError):  # without this record the provider's task would be lost
                if self._accepted.keep(row, accepted, upstream.first_poll_seconds):
                    found = row
                    break
                if pause is None:
                    raise
                await asyncio.sleep(pause)
        self._tasks.metrics.submitted(target.channel.name, "accepted")
        if found is None:
            logger.error("a provider's task is lost: it was given up before", task=row.task_id, upstream=accepted.id)
            return await self._tasks.rows.get(row.task_id) or row
        self._tasks.changed(found)
        self._tasks.wake_poller()  # which looks for due tasks less often without open ones
        return found

    async def _leave_unconfirmed(self, new: NewTask, error: UmgError) -> MediaTask:
        """End the lease of a task that may have been accepted, so that the poller looks for it. Return its row."""
        row = new.row
        logger.warning(
            "the outcome of a submission is unknown",
            task=row.task_id,
            request_id=row.request_id,
            channel=row.channel,
            outcome=error.name,
            cause=error.cause or None,
        )
        self._tasks.metrics.submitted(row.channel, "unconfirmed")
        await self._accepted.report_unknown(row.task_id, _details(new.call))
        self._tasks.wake_poller()
        return row


def _new_row(new: NewTask, process: str, now_micros: int) -> MediaTask:
    """Return the row of a new task that `process` submits next. `now_micros`: microseconds since 1970."""
    call, request = new.call, new.request
    arrived_micros = now_micros - int((time.perf_counter() - call.facts.began_at) * 1e6)
    return MediaTask(
        task_id=TASK_PREFIX + secrets.token_urlsafe(24),  # which cannot be guessed
        owner=new.access.caller.key_id,
        entry=int(request.entry),
        kind=int(new.kind),
        model=request.model,
        public_model=new.model.id,
        source_task_id=new.source_task_id,
        external_task_id=request.external_task_id if request.HasField("external_task_id") else None,
        idempotency_key=request.idempotency_key if request.HasField("idempotency_key") else None,
        body_hash=new.body_hash,
        callback_url=request.callback_url if request.HasField("callback_url") else None,
        request_id=call.arrival.request_id,
        face=call.arrival.metadata.get(FACE_HEADER, GRPC_FACE)[:MAX_FACE_CHARACTERS],
        agent=call.agent,
        prices=b"",
        micro_credits=0,
        state=SUBMITTING_STATE,
        channel="",
        upstream_task_id="",
        upstream_model="",
        upstream_key_id="",
        upstream_facts="",
        lease_owner=process,
        poll_failures=0,
        details=_details(call),
        create_micros=arrived_micros,
        update_micros=now_micros,
        request=_without_data(request),
    )


def _details(call: Call) -> str:
    return msgspec.json.encode(details_of(call)).decode()


def _without_data(request: pb.CreateVideoTaskRequest) -> bytes:
    """Return the request in the form in which it is stored with its task: without the bytes of media."""
    stored = pb.CreateVideoTaskRequest()
    stored.CopyFrom(request)
    for medium in stored.parameters.media:
        if medium.HasField("data"):
            medium.data = b""
    return stored.SerializeToString()
