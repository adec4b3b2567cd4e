"""Repeated delivery of notifications about video tasks at the request of an operator or of the caller itself. They are
made due in the outbox, so that the process which delivers notifications sends them, in their order.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress

from sqlalchemy import exists, update

from umg_grpc.access.audit_log import ChangedObject, record_change
from umg_grpc.base.errors import UmgError
from umg_grpc.store import Store
from umg_grpc.store.callback_outbox import delivery_state, is_in_state
from umg_grpc.store.database import repeated
from umg_grpc.store.database_time import utc_of
from umg_grpc.store.table_definitions import MediaTask, TaskCallback
from umg_grpc.store.video_task_queries import ReportedTask, callbacks_of
from umg_grpc.v1 import pb
from umg_grpc.wire.core.json_decoding import echo
from umg_grpc.wire.protobuf_json import enum_names

TASK_KIND = "task"
"""Kind of the object in the audit log."""
WAIT_SECONDS = 20.0
"""Maximum time for which a call waits for the attempts, which take up to 15 seconds."""
WATCH_SECONDS = 1.0
"""Seconds between two reads of the notifications, since another process may send them."""
STATE_NAMES = enum_names(pb.TaskCallbackState.DESCRIPTOR)


@contextmanager
def _unwatched(_: str) -> Iterator[asyncio.Event]:
    yield asyncio.Event()


class CallbackRedelivery:
    """Operation that delivers notifications again."""

    def __init__(
        self,
        store: Store,
        watching: Callable[[str], AbstractContextManager[asyncio.Event]] = _unwatched,
        redeliver: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Create the operation. `watching`: returns a context with an event that attempts for a task set; `redeliver`:
        makes this process call the receiver of a URL at once. The defaults are for a process that delivers nothing.
        """
        self._store, self._watching, self._redeliver = store, watching, redeliver

    async def run(self, task: ReportedTask, callback_id: str) -> None:
        """Make a notification of a task due, and wait a bounded time for its attempt. "" is for all that are not
        delivered, or the last one. Raise UmgError: OBJECT_NOT_FOUND for an unknown notification, WRONG_STATE if there
        is none.
        """
        task_id = task.row.task_id
        with self._watching(task_id) as attempted:
            due = await self._make_due(task_id, callback_id, task.project_id)
            if task.row.callback_url is not None:
                self._redeliver(task.row.callback_url)
            with suppress(TimeoutError):
                async with asyncio.timeout(WAIT_SECONDS):
                    while not _is_over(await self._callbacks(task_id), due):
                        with suppress(TimeoutError):
                            await asyncio.wait_for(attempted.wait(), WATCH_SECONDS)
                        attempted.clear()

    @repeated
    async def _make_due(self, task_id: str, callback_id: str, account_id: str) -> Mapping[str, int]:
        """Make notifications due now. Return id -> number of attempts so far."""
        clock = self._store.clock
        async with self._store.write() as session:
            callbacks = (await session.scalars(callbacks_of([task_id]).with_for_update())).all()
            chosen = _chosen(callbacks, callback_id)
            before = {each.callback_id: STATE_NAMES[delivery_state(each)] for each in chosen}
            for each in chosen:
                if not each.lease_owner:  # otherwise a process sends it now
                    each.next_attempt_micros, each.deliver_micros = clock.sql_micros(), None
            await session.flush()
            given_up = exists().where(TaskCallback.task_id == task_id, is_in_state(pb.TASK_CALLBACK_STATE_GIVEN_UP))
            recovered = update(MediaTask).where(MediaTask.task_id == task_id, ~given_up).values(callback_error=None)
            await session.execute(recovered.execution_options(synchronize_session=False))
            after = dict.fromkeys(before, "redelivered")
            changed = ChangedObject(TASK_KIND, task_id, account_id=account_id)
            await record_change(session, utc_of(clock), changed, {"callbacks": before}, {"callbacks": after})
            return {each.callback_id: each.attempts for each in chosen}

    @repeated
    async def _callbacks(self, task_id: str) -> Sequence[TaskCallback]:
        async with self._store.read() as session:
            return (await session.scalars(callbacks_of([task_id]))).all()


def _chosen(callbacks: Sequence[TaskCallback], callback_id: str) -> list[TaskCallback]:
    """Return the notifications that a request means. Earlier ones that wait are among them: they are sent first."""
    if not callbacks:
        message = "the task has no notification: its caller sent no `callback_url`, or its state has not changed yet"
        raise UmgError(pb.ERROR_REASON_WRONG_STATE, message, state="no_callback")
    if not callback_id:
        return [each for each in callbacks if each.deliver_micros is None] or [callbacks[-1]]
    place = next((place for place, each in enumerate(callbacks) if each.callback_id == callback_id), None)
    if place is None:
        message = f"the task has no notification {echo(callback_id)}; `umg tasks callbacks` shows their ids"
        raise UmgError(pb.ERROR_REASON_OBJECT_NOT_FOUND, message, id=callback_id[:100])
    waiting = [each for each in callbacks[:place] if each.next_attempt_micros is not None]
    return [*waiting, callbacks[place]]


def _is_over(callbacks: Sequence[TaskCallback], due: Mapping[str, int]) -> bool:
    """Return whether all notifications have had a further attempt, or one failed for which the later ones wait."""
    attempted = [each for each in callbacks if each.callback_id in due and each.attempts > due[each.callback_id]]
    return len(attempted) == len(due) or any(each.next_attempt_micros is not None for each in attempted)
