"""Delivery of notifications about video tasks to callers: each at least once, in the order of the changes, with a
limited number of attempts. The notifications of a slow key or receiver do not delay those of others.
"""

import asyncio
import random
import time

import structlog
from sqlalchemy.exc import SQLAlchemyError
from structlog.typing import FilteringBoundLogger

from umg_grpc.base.errors import UmgError
from umg_grpc.service.video_tasks.callback_receivers import RECEIVER_SHARE, Receivers
from umg_grpc.service.video_tasks.shared_task_objects import TaskContext
from umg_grpc.store.callback_outbox import AttemptResult, OutgoingCallback
from umg_grpc.store.repeated_background_tasks import Background, reason_of
from umg_grpc.upstream.caller_url_fetch import Fetcher

TICK_SECONDS = 1.0
"""Seconds between two searches for due notifications while some wait."""
IDLE_SECONDS = 3.0
"""Seconds between two searches while none wait. Notifications of this process are sent without a wait."""
SENDING_SLOTS = 128
"""Maximum number of notifications that are sent at the same time."""
POST_SECONDS = 15.0
LEASE_SECONDS = 30.0
CLOSE_SECONDS = 5.0
RETRY_PAUSES: tuple[float, ...] = (5.0, 30.0, 120.0, 600.0, 1800.0, 3600.0, 7200.0, 14_400.0, 28_800.0)
"""Seconds after each failed attempt. After one more, about 16 hours after the first, the notification is given up."""
GONE_STATUS = 410
"""HTTP status by which a receiver refuses all further attempts."""

logger: FilteringBoundLogger = structlog.get_logger(__name__)


class Notifier:
    """Sender of the notifications about video tasks, from `start` to `aclose`."""

    def __init__(self, tasks: TaskContext, fetcher: Fetcher) -> None:
        self._tasks = tasks
        self._fetcher = fetcher
        self._receivers = Receivers(time.monotonic)
        self._sending: set[asyncio.Task[None]] = set()
        self._background: Background | None = None

    def start(self) -> None:
        """Start to search for due notifications and to send them."""
        self._background = Background("notifying callers of video tasks", self._step, every=TICK_SECONDS)
        self._tasks.wake_notifier = self._background.wake
        self._tasks.resume_receiver = self._receivers.resume

    async def aclose(self) -> None:
        """Stop sending. A notification whose result is unknown may be sent again by another process."""
        self._tasks.wake_notifier = lambda: None
        self._tasks.resume_receiver = lambda _: None
        if self._background is not None:
            await self._background.aclose(CLOSE_SECONDS)
        if self._sending:
            _, late = await asyncio.wait(self._sending, timeout=CLOSE_SECONDS)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _step(self) -> None:
        """Send the due notifications, as many at a time as there are free slots. The end of each wakes this step."""
        callbacks = self._tasks.callbacks
        backlog = await callbacks.backlog()
        self._tasks.metrics.set_backlog(backlog)
        if self._background is not None:
            self._background.every = TICK_SECONDS if backlog.waiting else IDLE_SECONDS
        while backlog.waiting and (free := SENDING_SLOTS - len(self._sending)):
            found = await callbacks.claim(LEASE_SECONDS, free, RECEIVER_SHARE, self._receivers.excluded)
            if not found:
                return
            for sent in found:
                self._receivers.begin(sent)
                task = asyncio.create_task(self._send(sent), name="notifying a caller of a video task")
                self._sending.add(task)
                task.add_done_callback(self._free_slot)

    def _free_slot(self, task: asyncio.Task[None]) -> None:
        self._sending.discard(task)
        if self._background is not None:
            self._background.wake()

    async def _send(self, sent: OutgoingCallback) -> None:
        result = AttemptResult(None)
        try:
            result = await self._post(sent)
            await self._record(sent, result)
        except (SQLAlchemyError, OSError) as error:  # the lease of the notification ends, and it is sent again
            logger.warning("the result of a notification is not recorded", task=sent.task_id, reason=reason_of(error))
        finally:
            self._receivers.end(sent, answered=result.status is not None)
            self._tasks.attempted(sent.task_id)

    async def _record(self, sent: OutgoingCallback, result: AttemptResult) -> None:
        """Record the result of an attempt: the notification is delivered, will be repeated, or is given up."""
        problem = result.problem
        if not problem:
            self._tasks.metrics.called_back("out", "delivered")
            await self._tasks.callbacks.delivered(sent, result)
        elif result.status == GONE_STATUS or sent.attempts >= len(RETRY_PAUSES):
            self._tasks.metrics.called_back("out", "given_up")
            logger.warning("a notification was given up", task=sent.task_id, attempts=sent.attempts + 1, reason=problem)
            await self._tasks.callbacks.give_up(sent, result)
        else:
            self._tasks.metrics.called_back("out", "failed")
            pause = RETRY_PAUSES[sent.attempts] * random.uniform(0.8, 1.2)  # noqa: S311  not for security
            await self._tasks.callbacks.retry(sent, result, pause)

    async def _post(self, sent: OutgoingCallback) -> AttemptResult:
        """Send a notification to its receiver, and return the result."""
        seconds = self._tasks.now() // 10**6
        headers = {
            "content-type": "application/json",
            "user-agent": "umg-callbacks",
            **self._tasks.signatures.headers(sent.owner, sent.callback_id, seconds, sent.body),
        }
        try:
            response = await self._fetcher.post(
                sent.url, field="callback_url", body=sent.body, headers=headers, seconds=POST_SECONDS
            )
        except UmgError as error:
            return AttemptResult(None, error.message)
        if 200 <= response.status < 300:
            return AttemptResult(response.status)
        return AttemptResult(response.status, f"the receiver answered with status {response.status}")
