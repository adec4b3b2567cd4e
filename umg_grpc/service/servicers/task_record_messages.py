"""Conversion of video tasks with their notifications to messages for operators and for the holders of keys."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from google.protobuf.timestamp_pb2 import Timestamp

from umg_grpc.base.shown_urls import shown_url
from umg_grpc.base.time_units import time_of
from umg_grpc.service.servicers.call_record_report import Reader, attempt_messages
from umg_grpc.service.servicers.timestamps import timestamp
from umg_grpc.store.callback_outbox import delivery_state
from umg_grpc.store.table_definitions import MediaTask, TaskCallback
from umg_grpc.store.usage_record_table import AttemptRecord, decode_details
from umg_grpc.store.video_task_queries import ReportedTask
from umg_grpc.store.video_task_table import FIRST_TERMINAL, SUCCEEDED_STATE
from umg_grpc.v1 import pb


def task_message(task: ReportedTask, reader: Reader) -> pb.TaskRecord:
    """Return a task as a message for a caller."""
    row, attempts = task.row, _attempts(task.row)
    has_ended = row.state >= FIRST_TERMINAL
    message = pb.TaskRecord(
        task_id=row.task_id,
        key_id=row.owner,
        key_name=task.key_name,
        project_id=task.project_id,
        request_id=row.request_id,
        kind=pb.VideoTaskKind.ValueType(row.kind),
        entry=pb.VideoEntry.ValueType(row.entry),
        model=row.model,
        state=pb.VideoTaskState.ValueType(row.state),
        state_times=_state_times(row, attempts),
        progress_percent=row.progress,
        attempts=attempt_messages(time_of(row.create_micros), attempts) if reader.sees_details else [],
        update_time=_time(row.update_micros),
        deadline_time=_time(row.deadline_micros),
        next_poll_time=_time(row.next_poll_micros),
        failed_polls=row.poll_failures,
        stall=row.stall or "",
        stall_time=_time(row.stall_since_micros),
        micro_credits=row.micro_credits if has_ended else 0,
        expire_time=_time(row.expire_micros),
        callbacks=map(_callback_message, task.callbacks),
    )
    if reader.sees_channels:
        message.channel = row.channel
        message.upstream_model, message.upstream_task_id = row.upstream_model, row.upstream_task_id
    if row.error is not None:
        message.error.ParseFromString(row.error)
    if row.usage is not None and row.state == SUCCEEDED_STATE:
        message.usage.ParseFromString(row.usage)
    return message


def _callback_message(callback: TaskCallback) -> pb.TaskCallback:
    return pb.TaskCallback(
        callback_id=callback.callback_id,
        task_state=pb.VideoTaskState.ValueType(callback.state),
        state=delivery_state(callback),
        url=shown_url(callback.url),
        attempts=callback.attempts,
        create_time=_time(callback.create_micros),
        last_attempt_time=_time(callback.attempt_micros),
        next_attempt_time=_time(callback.next_attempt_micros),
        delivered_time=_time(callback.deliver_micros),
        status_code=callback.status,
        last_error=callback.error or "",
    )


def _attempts(row: MediaTask) -> list[AttemptRecord]:
    return [] if row.details is None else decode_details(row.details).attempts


def _state_times(row: MediaTask, attempts: list[AttemptRecord]) -> Iterator[pb.TaskStateTime]:
    created = time_of(row.create_micros)
    yield _state_time(pb.VIDEO_TASK_STATE_SUBMITTING, created)
    if row.upstream_task_id and attempts:
        accepted = timedelta(microseconds=attempts[-1].start_micros + attempts[-1].duration_micros)
        yield _state_time(pb.VIDEO_TASK_STATE_QUEUED, created + accepted)
    if row.start_micros is not None:
        yield _state_time(pb.VIDEO_TASK_STATE_RUNNING, time_of(row.start_micros))
    if row.complete_micros is not None:
        yield _state_time(pb.VideoTaskState.ValueType(row.state), time_of(row.complete_micros))


def _state_time(state: "pb.VideoTaskState.ValueType", time: datetime) -> pb.TaskStateTime:
    return pb.TaskStateTime(state=state, time=timestamp(time))


def _time(micros: int | None) -> Timestamp | None:
    return None if micros is None else timestamp(time_of(micros))
